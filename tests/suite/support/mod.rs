//! What every test needs: an emptied environment, real repositories, and one redactor.

pub(crate) mod browser;
pub(crate) mod diffs;
pub(crate) mod github;
pub(crate) mod histories;
pub(crate) mod oracle;
pub(crate) mod page;
pub(crate) mod vendor;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) mod road;

use tempfile::TempDir;

/// A temporary folder with a fixed clock, identity and environment.
pub(crate) struct TestEnv {
    root: TempDir,
    vars: BTreeMap<String, String>,
}

/// How a run of a program ended.
#[derive(Clone)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The form that snapshots hold.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "\n--- {name} ---\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("codeboost-test-").tempdir().unwrap();
        let home = root.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        let mut vars = BTreeMap::new();
        let mut set = |name: &str, value: &str| vars.insert(name.to_owned(), value.to_owned());
        set("PATH", &std::env::var("PATH").unwrap());
        set("HOME", home.to_str().unwrap());
        set("CODEBOOST_NOW", "2026-11-30T12:00:00Z");
        set("GIT_CONFIG_NOSYSTEM", "1");
        for (role, name) in [("AUTHOR", "A. Author"), ("COMMITTER", "C. Committer")] {
            set(&format!("GIT_{role}_NAME"), name);
            set(&format!("GIT_{role}_EMAIL"), "test@example.invalid");
            set(&format!("GIT_{role}_DATE"), "2026-11-01T10:00:00Z");
        }
        Self { root, vars }
    }

    /// The temporary folder, where programs start.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    /// Changes the environment of the programs started from now on.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Runs codeboost in the root.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        self.run_in(".", args)
    }

    /// Runs codeboost in a folder.
    pub(crate) fn run_in<S: AsRef<OsStr>>(
        &self,
        folder: impl AsRef<Path>,
        args: impl IntoIterator<Item = S>,
    ) -> Done {
        self.finish(&mut self.codeboost(folder, args))
    }

    /// A codeboost command, not yet started.
    pub(crate) fn codeboost<S: AsRef<OsStr>>(
        &self,
        folder: impl AsRef<Path>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_codeboost"), folder);
        command.args(args);
        command
    }

    /// Any program in the same environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, folder: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path(folder)).env_clear().envs(&self.vars).stdin(Stdio::null());
        command
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Done {
        let output = command.output().unwrap();
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs git in a folder, must succeed, and returns its trimmed output.
    pub(crate) fn git<S: AsRef<OsStr>>(
        &self,
        folder: impl AsRef<Path>,
        args: impl IntoIterator<Item = S>,
    ) -> String {
        let mut command = self.command("git", folder);
        command.args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]);
        command.args(args);
        let done = self.finish(&mut command);
        assert_eq!(done.code, 0, "{command:?}: {done}");
        done.stdout.trim_end().to_owned()
    }

    /// `text` with the temporary folder, object ids, uuids and digests replaced by words.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(text, self.root())
    }
}

/// Replaces what differs between runs; the length of columns is kept where it was fixed.
pub(crate) fn redact(text: &str, root: &Path) -> String {
    let text = without_keys(&text.replace(root.to_str().unwrap(), "[ROOT]"));
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let hex = |n: usize| word.len() == n && word.bytes().all(|b| b.is_ascii_hexdigit());
        if is_uuid(word) {
            out.push_str("[UUID]");
        } else if hex(40) {
            out.push_str("[ID]");
        } else if hex(64) {
            out.push_str("[HEX64]");
        } else if hex(12) {
            out.push_str("[SHORT-ID]  ");
        } else {
            out.push_str(word);
        }
        word.clear();
    };
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(c);
        }
    }
    flush(&mut word, &mut out);
    out
}

/// Replaces the public keys of forms: 32 bytes in base64.
fn without_keys(text: &str) -> String {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_base64(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        out += if word.len() == 44 && word.ends_with('=') { "[PUBLIC KEY]" } else { word };
        let gap = rest[end..].find(is_base64).map_or(rest.len(), |gap| end + gap);
        out += &rest[end..gap];
        rest = &rest[gap..];
    }
    out
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(n, b)| match n {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}
