//! The image with the vendors' tools: which one it has to be, and how it is made.
//!
//! The recipe in `container/` is built in. Its digest is the image's tag, so that another recipe is
//! another image, and an image that is there is the right one. It is made from Debian's packages
//! and the vendors' own packages of npm, without any registry of images.

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use codeboost_schema::ids::Digest;

use crate::context::Context;
use crate::process;
use crate::sandbox::engine::Engine;
use crate::sandbox::error::SandboxError;
use crate::stage::{self, FileError};

const PINS: &str = include_str!("../../../container/pins");
const BASE_SCRIPT: &str = include_str!("../../../container/base.sh");
const TOOLS_SCRIPT: &str = include_str!("../../../container/tools.sh");

/// The names of the images of this recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Debian alone.
    pub base: String,
    /// With the vendors' tools.
    pub agent: String,
}

/// The names that the images of this codeboost have.
#[must_use]
pub fn names() -> Names {
    let tag = |parts: &[&str]| {
        let digest = Digest::of(parts.join("\0").as_bytes()).to_string();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        hex[..12.min(hex.len())].to_owned()
    };
    Names {
        base: format!("codeboost-base:{}", tag(&[PINS, BASE_SCRIPT])),
        agent: format!("codeboost-agent:{}", tag(&[PINS, BASE_SCRIPT, TOOLS_SCRIPT])),
    }
}

/// What a tool in the image says of itself, by its name in the recipe.
#[must_use]
pub fn version(tool: &str) -> Option<&'static str> {
    PINS.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("version") && words.next() == Some(tool)).then(|| words.next())?
    })
}

/// The folder in which downloads and results of building are kept.
#[must_use]
pub fn cache_folder(context: &Context) -> Option<PathBuf> {
    let cache = context.var("XDG_CACHE_HOME").map(PathBuf::from).filter(|at| at.is_absolute());
    let home = || context.var("HOME").map(|home| Path::new(home).join(".cache"));
    Some(cache.or_else(home)?.join("codeboost/image"))
}

/// The id of the agent image.
///
/// # Errors
/// [`SandboxError::NoImage`] when it has to be built first.
pub fn require(engine: &Engine) -> Result<String, SandboxError> {
    let name = names().agent;
    engine.image(&name)?.ok_or(SandboxError::NoImage(name))
}

/// Builds the images that are not there. `tell` gets a line for each step.
///
/// # Errors
/// [`SandboxError`] with the words of what failed.
pub fn build(
    context: &Context,
    engine: &Engine,
    cache: &Path,
    mut tell: impl FnMut(&str),
) -> Result<Names, SandboxError> {
    let names = names();
    let recipe = tempfile::Builder::new()
        .prefix("codeboost-recipe-")
        .tempdir()
        .map_err(|error| FileError::new("make a folder in", &std::env::temp_dir(), error))?;
    stage::make_folder(cache)?;
    let pins = recipe.path().join("pins");
    stage::write_scratch(&pins, PINS.as_bytes())?;
    let recipe = Recipe { context, folder: recipe.path(), cache };
    if engine.image(&names.base)?.is_none() {
        let tar = recipe.make("base.sh", BASE_SCRIPT, &mut tell)?;
        tell(&format!("taking {} into {}", names.base, engine.kind().name()));
        engine.import_image(&tar, &names.base)?;
    }
    if engine.image(&names.agent)?.is_none() {
        let tar = recipe.make("tools.sh", TOOLS_SCRIPT, &mut tell)?;
        tell(&format!("building {} in {}", names.agent, engine.kind().name()));
        engine.build_image(&tar, &names.base, &names.agent)?;
    }
    if engine.image(&names.agent)?.is_none() {
        return Err(SandboxError::ImageNotMade("the engine does not have it afterwards".into()));
    }
    Ok(names)
}

struct Recipe<'a> {
    context: &'a Context,
    folder: &'a Path,
    cache: &'a Path,
}

impl Recipe<'_> {
    /// Runs a script of the recipe and returns the path of what it made.
    fn make(
        &self,
        name: &str,
        text: &str,
        tell: &mut impl FnMut(&str),
    ) -> Result<PathBuf, SandboxError> {
        let failed = |words: String| SandboxError::ImageNotMade(words);
        let script = self.folder.join(name);
        stage::write_scratch(&script, text.as_bytes())?;
        let mut command = process::command(self.context, "bash", self.folder);
        for name in PASSED_ON {
            if let Some(value) = self.context.var(name) {
                command.env(name, value);
            }
        }
        command.arg(&script).arg(self.folder.join("pins")).arg(self.cache);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(format!("bash: {error}")))?;
        let errors = child.stderr.take().map(|pipe| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = pipe.take(64 * 1024).read_to_string(&mut text);
                text
            })
        });
        let mut made = None;
        let lines = child.stdout.take().map(std::io::BufReader::new);
        for line in lines.into_iter().flat_map(|lines| lines.lines()).map_while(Result::ok) {
            match line.strip_prefix("made ") {
                Some(path) => made = Some(PathBuf::from(path)),
                None => tell(&line),
            }
        }
        let status = child.wait().map_err(|error| failed(format!("{name}: {error}")))?;
        let words = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        match made {
            Some(made) if status.success() => Ok(made),
            _ => Err(failed(format!("{name}: {}", words.trim()))),
        }
    }
}

/// What the scripts get of the person's environment: where npm and apt find their way out.
const PASSED_ON: [&str; 10] = [
    "HOME",
    "LANG",
    "XDG_CACHE_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "npm_config_registry",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_pins_every_tool_by_version_and_hash() {
        for tool in ["claude", "codex"] {
            let version = version(tool).expect("a version");
            let line = PINS.lines().find(|line| line.starts_with(&format!("npm {tool} ")));
            let line = line.expect("a package");
            assert!(line.contains(&format!("@{version}")), "{line}");
            let hash = line.rsplit(' ').next().expect("a hash");
            assert_eq!(hash.len(), 88, "the base64 of 64 bytes: {hash}");
        }
        let names = names();
        assert_ne!(names.base.rsplit(':').next(), names.agent.rsplit(':').next());
    }
}
