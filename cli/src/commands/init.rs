//! `codeboost init`: makes the state of a repository.

use std::path::PathBuf;

use clap::Args;
use codeboost_schema::ids::CommitId;
use codeboost_schema::strict;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::{issues, publish};
use crate::config::ForgeKind;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::git::run::Git;
use crate::output::plain_line;
use crate::plan::v1::tokenize::{spell, tokenize};
use crate::stage;
use crate::store::{Event, FormKey, Store, StoreError};
use crate::task::{Actor, RepositoryId};

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Take over the identity that `key export` wrote, so that forms made here count there
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Allow checks to run this command, spelled as in a plan; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    allow: Vec<Argv>,
    /// No longer allow this command; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    disallow: Vec<Argv>,
}

/// The arguments of one command.
#[derive(Debug, Clone)]
struct Argv(Vec<String>);

fn parse_command(text: &str) -> std::result::Result<Argv, String> {
    tokenize(text)
        .map(Argv)
        .map_err(|error| format!("{}; {}", plain_line(&error.kind.to_string()), error.kind.mend()))
}

/// A command as it would stand in a plan.
fn spelled(argv: &[String]) -> String {
    plain_line(&spell(argv).unwrap_or_else(|| argv.join(" ")))
}

/// What `key export` writes and `init --identity` reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Always 1.
    pub(crate) schema_version: u32,
    /// The repository's name in forms.
    pub(crate) repository: RepositoryId,
    /// An OpenSSH private key. A secret.
    pub(crate) private_key: String,
}

#[derive(Serialize)]
struct Report<'a> {
    state: String,
    made: bool,
    repository: RepositoryId,
    public_key: String,
    allowed_commands: &'a [Vec<String>],
    proposed_commands: &'a [Vec<String>],
}

pub(crate) fn run(context: &Context, args: &InitArgs) -> Result {
    let identity = args.identity.as_deref().map(|path| read_identity(context, path)).transpose()?;
    let repository = Repository::open(context)?;
    repository.config()?;
    let (store, made) =
        Store::create(&repository, identity.as_ref().map(|(identity, _)| identity.repository))?;
    let id = store.read(|tx| tx.repository_id())?;
    let key = match identity {
        Some((identity, key)) => take_over(&store, id, &identity, key)?,
        None => match store.key()? {
            Some(key) => key,
            None => FormKey::generate("codeboost")?,
        },
    };
    store.put_key(&key)?;
    if made {
        store
            .write(|tx| {
                tx.log(&Event {
                    task: None,
                    kind: "init",
                    actor: Actor::Person,
                    detail: json!({"repository": id, "public_key": key.public_text()}),
                    words: "set codeboost up",
                })
            })
            .map_err(|error: StoreError| error)?;
    }
    store
        .write(|tx| {
            for argv in &args.allow {
                tx.allow_command(&argv.0, Actor::Person, None)?;
            }
            for argv in &args.disallow {
                tx.disallow_command(&argv.0, Actor::Person)?;
            }
            Ok(())
        })
        .map_err(|error: StoreError| error)?;
    let allowed = store.read(|tx| tx.allowed_commands())?;
    let mut proposed = match repository.git().resolve("HEAD")? {
        Some(head) => propose(repository.git(), &head)?,
        None => Vec::new(),
    };
    proposed.retain(|argv| !allowed.contains(argv));
    let config = repository.config()?;
    if config.forge == ForgeKind::Github {
        let gh = issues::open_gh(context, &repository, &config)?;
        publish::warn_of_reviews(context, gh.demands(None).map(|(rules, _)| rules));
    }
    if context.out.is_json() {
        context.out.json(&Report {
            state: store.folder().display().to_string(),
            made,
            repository: id,
            public_key: key.public_text(),
            allowed_commands: &allowed,
            proposed_commands: &proposed,
        });
        return Ok(Outcome::Done);
    }
    let what = if made { "Made" } else { "Already there:" };
    context.out.line(format!("{what} the state in {}", store.folder().display()));
    if !allowed.is_empty() {
        context.out.line("");
        context.out.line("Commands that checks may run:");
        for argv in &allowed {
            context.out.line(format!("  {}", spelled(argv)));
        }
    }
    if !proposed.is_empty() {
        context.out.line("");
        context.out.line(
            "Commands of this repository that checks could run. None of them is allowed yet:",
        );
        context
            .out
            .line("approving a plan asks for each that it uses, init --allow COMMAND does it now.");
        for argv in &proposed {
            context.out.line(format!("  {}", spelled(argv)));
        }
    }
    context.out.note("Next: codeboost task add ISSUE --base BRANCH");
    Ok(Outcome::Done)
}

fn read_identity(context: &Context, path: &std::path::Path) -> Result<(Identity, FormKey)> {
    let bytes = stage::read(&context.path(path), stage::MAX_SETTINGS)?;
    let wrong = |error: String| {
        Error::failed(format!("{} is not an identity: {error}", path.display()))
            .hint("make one with codeboost key export FILE --name NAME")
    };
    let value = strict::parse(&bytes, 64 << 10).map_err(|error| wrong(error.to_string()))?;
    let identity: Identity =
        serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
    if identity.schema_version != 1 {
        return Err(wrong(format!("unknown schema_version {}", identity.schema_version)));
    }
    let key = FormKey::parse(&identity.private_key)
        .ok_or_else(|| wrong("its key is not an Ed25519 key without passphrase".into()))?;
    Ok((identity, key))
}

/// Refuses an identity when the state has another one already.
fn take_over(
    store: &Store<'_>,
    id: RepositoryId,
    identity: &Identity,
    key: FormKey,
) -> Result<FormKey> {
    if id != identity.repository {
        return Err(Error::failed(format!(
            "this repository is already {id}, and the identity is of {}",
            identity.repository
        ))
        .hint("take an identity over in a clone where codeboost is not set up"));
    }
    match store.key()? {
        Some(mine) if mine.public_text() != key.public_text() => {
            Err(Error::failed("this repository has a signing key of its own")
                .hint("take an identity over in a clone where codeboost is not set up"))
        }
        _ => Ok(key),
    }
}

/// The commands that the scripts of a commit suggest.
fn propose(git: &Git<'_>, commit: &CommitId) -> Result<Vec<Vec<String>>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut add = |argv: &[&str]| found.push(argv.iter().map(|&word| word.to_owned()).collect());
    if git.file_at(commit, "Cargo.toml")?.is_some() {
        add(&["cargo", "test"]);
        add(&["cargo", "clippy"]);
        add(&["cargo", "fmt", "--check"]);
    }
    if let Some(bytes) = git.file_at(commit, "package.json")? {
        let runner = if git.file_at(commit, "pnpm-lock.yaml")?.is_some() {
            "pnpm"
        } else if git.file_at(commit, "yarn.lock")?.is_some() {
            "yarn"
        } else {
            "npm"
        };
        for script in scripts(&bytes) {
            if script == "test" {
                add(&[runner, "test"]);
            } else {
                add(&[runner, "run", &script]);
            }
        }
    }
    for name in ["GNUmakefile", "makefile", "Makefile"] {
        if let Some(bytes) = git.file_at(commit, name)? {
            for target in targets(&bytes) {
                add(&["make", &target]);
            }
            break;
        }
    }
    Ok(found)
}

/// Whether a script or target of that name checks something and ends by itself.
fn is_check(name: &str) -> bool {
    let first = name.split([':', '-', '_', '.']).next().unwrap_or_default();
    matches!(first, "test" | "tests" | "check" | "lint" | "typecheck" | "build" | "fmt" | "format")
        && !name.split([':', '-', '_', '.']).any(|word| matches!(word, "watch" | "dev" | "fix"))
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b":-_.".contains(&b))
}

fn scripts(package_json: &[u8]) -> Vec<String> {
    let value = serde_json::from_slice::<serde_json::Value>(package_json).unwrap_or_default();
    let scripts = value.get("scripts").and_then(serde_json::Value::as_object);
    let names = scripts.into_iter().flat_map(|scripts| scripts.keys());
    let mut found: Vec<_> = names.filter(|name| is_check(name)).cloned().collect();
    found.sort();
    found
}

fn targets(makefile: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(makefile);
    let mut found = Vec::new();
    for line in text.lines() {
        // A rule; `name := value` sets a variable.
        let Some((names, rest)) = line.split_once(':') else { continue };
        if rest.starts_with('=') || rest.starts_with(":=") || line.starts_with(['\t', ' ', '#']) {
            continue;
        }
        for name in names.split_whitespace().filter(|name| is_check(name)) {
            if !found.iter().any(|old| old == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_check_are_found_and_others_are_not() {
        let package = br#"{"scripts": {"test": "a", "test:watch": "b", "deploy": "c", "lint": "d",
            "lint:fix": "e", "build && rm": "f"}}"#;
        assert_eq!(scripts(package), ["lint", "test"]);
        assert!(scripts(b"no json").is_empty());
        assert!(scripts(br#"{"scripts": []}"#).is_empty());
    }

    #[test]
    fn targets_that_check_are_found_and_variables_are_not() {
        let makefile = b"test := x\nCHECK = 1\n.PHONY: test\ntest check: deps\n\tcargo test: x\ninstall:\nlint:: a\n# build: no\n";
        assert_eq!(targets(makefile), ["test", "check", "lint"]);
    }
}
