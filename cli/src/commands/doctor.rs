//! `codeboost doctor`: what is there, what is missing, and which feature needs it.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::agent::vendor::{RIGHTS, Rights, SignIn, SignedIn, Vendor};
use crate::config::{AllowedSigners, Config, Sandbox};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::git::run::MIN_VERSION;
use crate::output::{Style, columns, plain_line};
use crate::process::{self, Limits};
use crate::sandbox::engine::Engine;
use crate::sandbox::{image, storage};
use crate::store::Store;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// First build the image that agents run in, unless it is there
    ///
    /// From Debian's packages and the vendors' own packages of npm, pinned by version and hash; no
    /// registry of images is asked. Needs mmdebstrap and npm, and takes some minutes.
    #[arg(long)]
    build_image: bool,

    /// Instead show what each vendor's tool may do in each phase, and what holds it to that
    #[arg(long, conflicts_with = "build_image")]
    rights: bool,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found, for people.
    pub(super) found: String,
    /// Which feature needs it.
    pub(super) needed_for: &'static str,
    /// What to do about it; empty when nothing.
    pub(super) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// There, and as it should be.
    Ok,
    /// Not there, and some feature can't be used.
    Missing,
    /// There, but something about it is to be looked at.
    Warning,
    /// Nothing works as it should before this is mended.
    Broken,
}

#[derive(Serialize)]
struct Report<'a> {
    checks: &'a [Check],
}

const EVERYTHING: &str = "everything";

/// Looks at everything.
pub(super) fn checks(context: &Context) -> Vec<Check> {
    let (repository, no_repository) = match Repository::open(context) {
        Ok(repository) => (Some(repository), None),
        Err(error) => (None, Some(Error::from(error))),
    };
    let sandbox = sandbox_config(context, repository.as_ref());
    let mut checks = vec![git(context), ssh_keygen(context)];
    if let Some(repository) = &repository {
        look_inside(context, repository, &mut checks);
    }
    checks.extend(no_repository.map(|error| broken("repository", error, EVERYTHING)));
    checks.push(program(context, "gh", &["--version"], "issues and pull requests on GitHub"));
    container(context, &sandbox, &mut checks);
    sign_ins(context, &mut checks);
    checks
}

pub(crate) fn run(context: &Context, args: &DoctorArgs) -> Result {
    if args.rights {
        tell_rights(context);
        return Ok(Outcome::Done);
    }
    if args.build_image {
        let repository = Repository::open(context).ok();
        let sandbox = sandbox_config(context, repository.as_ref());
        let engine = Engine::connect(context, sandbox.engine.as_deref())?;
        let names = build_image(context, &engine)?;
        context.out.note(format!("{} is in {}", names.agent, engine.kind().name()));
    }
    let checks = checks(context);
    if context.out.is_json() {
        context.out.json(&Report { checks: &checks });
    } else {
        for check in &checks {
            tell(context, check);
        }
    }
    let is_broken = checks.iter().any(|check| check.state == State::Broken);
    Ok(if is_broken { Outcome::Failed } else { Outcome::Done })
}

fn tell(context: &Context, check: &Check) {
    let out = &context.out;
    let (word, style) = match check.state {
        State::Ok => ("✓ ok     ", Style::Success),
        State::Missing => ("– missing", Style::Muted),
        State::Warning => ("! look at", Style::Warning),
        State::Broken => ("✗ broken ", Style::Error),
    };
    out.line(format!(
        "{}  {:<13}  {}",
        out.paint(style, word),
        check.name,
        plain_line(&check.found)
    ));
    if check.state != State::Ok {
        out.line(format!("{:27}needed for {}", "", check.needed_for));
    }
    if let Some(hint) = &check.hint {
        out.line(format!("{:27}{}", "", out.paint(Style::Accent, &plain_line(hint))));
    }
}

fn ok(name: &'static str, found: impl Into<String>, needed_for: &'static str) -> Check {
    Check { name, state: State::Ok, found: found.into(), needed_for, hint: None }
}

fn broken(name: &'static str, error: Error, needed_for: &'static str) -> Check {
    Check {
        name,
        state: State::Broken,
        found: error.chain(),
        needed_for,
        hint: error.hints().first().cloned(),
    }
}

/// Runs a program that prints its version; `None` when it is not there or fails.
fn version(context: &Context, name: &str, args: &[&str]) -> Option<String> {
    let mut command = process::command(context, name, context.cwd());
    command.args(args);
    let limits = Limits { deadline: Duration::from_secs(10), max_output_bytes: 4096 };
    let ended = process::run(command, None, limits).ok().filter(|ended| ended.code == Some(0))?;
    // ssh says it on stderr.
    let text = if ended.stdout.is_empty() { ended.stderr } else { ended.stdout };
    let text = String::from_utf8_lossy(&text);
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text[from..].split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn git(context: &Context) -> Check {
    let (major, minor) = MIN_VERSION;
    let found = version(context, "git", &["--version"]);
    let state = match found.as_deref().and_then(numbers) {
        Some(found) if found >= MIN_VERSION => State::Ok,
        _ => State::Broken,
    };
    Check {
        name: "git",
        state,
        found: found.unwrap_or_else(|| "not found on PATH".into()),
        needed_for: EVERYTHING,
        hint: (state == State::Broken).then(|| format!("install git {major}.{minor} or newer")),
    }
}

fn ssh_keygen(context: &Context) -> Check {
    const NEEDED_FOR: &str = "signing decisions";
    // ssh-keygen has no option that tells its version; ssh comes with it.
    let mut check = program(context, "ssh", &["-V"], NEEDED_FOR);
    check.name = "ssh-keygen";
    let number = check.found.strip_prefix("OpenSSH_").and_then(numbers);
    if check.state == State::Ok && number.is_some_and(|number| number < (8, 1)) {
        check.state = State::Missing;
        check.hint = Some("install OpenSSH 8.1 or newer, whose ssh-keygen -Y signs files".into());
    }
    check
}

fn program(
    context: &Context,
    name: &'static str,
    args: &[&str],
    needed_for: &'static str,
) -> Check {
    match version(context, name, args) {
        Some(found) => ok(name, found, needed_for),
        None => Check {
            name,
            state: State::Missing,
            found: "not found on PATH".into(),
            needed_for,
            hint: None,
        },
    }
}

/// What is configured of the sandbox; the defaults where no configuration can be read, which
/// another row tells.
fn sandbox_config(context: &Context, repository: Option<&Repository<'_>>) -> Sandbox {
    let config = match repository {
        Some(repository) => repository.config().ok(),
        None => Config::of_user(context).ok(),
    };
    config.unwrap_or_default().sandbox
}

/// Builds the image, telling each step.
pub(crate) fn build_image(context: &Context, engine: &Engine) -> Result<image::Names> {
    let Some(cache) = image::cache_folder(context) else {
        return Err(Error::failed("there is no folder for what is downloaded")
            .hint("set HOME or XDG_CACHE_HOME"));
    };
    Ok(image::build(context, engine, &cache, |step| context.out.note(plain_line(step)))?)
}

fn container(context: &Context, sandbox: &Sandbox, checks: &mut Vec<Check>) {
    const NEEDED_FOR: &str = "running agents in containers";
    let engine = match Engine::connect(context, sandbox.engine.as_deref()) {
        Ok(engine) => engine,
        Err(error) => {
            let check = broken("container", error.into(), NEEDED_FOR);
            checks.push(Check { state: State::Missing, ..check });
            return;
        }
    };
    let found =
        format!("{} {} at {}", engine.kind().name(), engine.version(), engine.socket().display());
    checks.push(ok("container", found, NEEDED_FOR));
    let tools = ["claude", "codex"]
        .map(|tool| format!("{tool} {}", image::version(tool).unwrap_or("of an unknown version")));
    match image::require(&engine) {
        Ok(_) => {
            let found = format!("{} with {}", image::names().agent, tools.join(", "));
            checks.push(ok("agent image", found, NEEDED_FOR));
        }
        Err(error) => {
            let check = broken("agent image", error.into(), NEEDED_FOR);
            checks.push(Check { state: State::Missing, ..check });
        }
    }
    let limits = if storage::can_be_made() {
        ok("limits", "storage of a fixed size, mounted for each run", NEEDED_FOR)
    } else {
        Check {
            name: "limits",
            state: State::Missing,
            found: "only root can mount a storage of a fixed size for each run".into(),
            needed_for: NEEDED_FOR,
            hint: Some("run codeboost execute as root; nothing weaker is used instead".into()),
        }
    };
    checks.push(limits);
}

/// Who is signed in with which vendor.
fn sign_ins(context: &Context, checks: &mut Vec<Check>) {
    for vendor in Vendor::ALL {
        let (name, needed_for) = match vendor {
            Vendor::Claude => ("claude", "execute --agent claude"),
            Vendor::Codex => ("codex", "execute --agent codex"),
        };
        checks.push(match SignedIn::find(context, vendor) {
            Some(signed_in) => {
                let SignIn { variable, what, .. } = signed_in.sign_in;
                ok(name, format!("{what} in {variable}; it stays on this machine"), needed_for)
            }
            None => {
                let names: Vec<&str> =
                    vendor.sign_ins().iter().map(|sign_in| sign_in.variable).collect();
                Check {
                    name,
                    state: State::Missing,
                    found: "no sign-in".into(),
                    needed_for,
                    hint: Some(format!("set one of {}", names.join(", "))),
                }
            }
        });
    }
}

/// Shows the table of rights.
fn tell_rights(context: &Context) {
    const HELD_BY: [&str; 4] = [
        "own: all other means of the tool are off: no shell, no web, no other agents, no \
         configuration of the project or the person",
        "asks: what codeboost answers on the one channel; commands by number, approved ones only, \
         in a container of their own",
        "files: the project is mounted read-only, or its copy may be changed; .git never",
        "all: no network but the vendor's interface, on which the sign-in is added on this machine",
    ];
    let files = |rights: &Rights| if rights.phase.may_edit() { "changes" } else { "reads" };
    if context.out.is_json() {
        let rows: Vec<_> = RIGHTS
            .iter()
            .map(|rights| {
                serde_json::json!({
                    "vendor": rights.vendor.name(), "phase": rights.phase.word(),
                    "files": files(rights), "own": rights.own, "asks": rights.channel,
                })
            })
            .collect();
        context.out.json(&serde_json::json!({"rights": rows, "held_by": HELD_BY}));
        return;
    }
    let head = ["vendor", "phase", "files", "own", "asks"].map(str::to_owned);
    let rows = RIGHTS.iter().map(|rights| {
        let list = |words: &[&str]| if words.is_empty() { "-".into() } else { words.join(" ") };
        [
            rights.vendor.name().to_owned(),
            rights.phase.word().to_owned(),
            files(rights).to_owned(),
            list(rights.own),
            list(rights.channel),
        ]
    });
    let table: Vec<_> = std::iter::once(head).chain(rows).collect();
    for line in columns(&table) {
        context.out.line(line);
    }
    for line in HELD_BY {
        context.out.note(line);
    }
}

fn look_inside(context: &Context, repository: &Repository<'_>, checks: &mut Vec<Check>) {
    let place = repository.work_tree().unwrap_or(repository.common_dir());
    checks.push(ok("repository", place.display().to_string(), EVERYTHING));
    state(repository, checks);
    match repository.config() {
        Ok(config) => {
            let mut check = ok("configuration", configuration(context, repository), EVERYTHING);
            if config.reviewers.signatures && config.allowed_signers.is_none() {
                check.state = State::Warning;
                check.found = "signatures are required, but no allowed_signers are named".into();
                check.hint = Some(format!(
                    "name a file in allowed_signers of {}",
                    repository.state_folder().join("config.yaml").display()
                ));
            }
            if let Some(AllowedSigners::File(path)) = &config.allowed_signers
                && let Err(error) = std::fs::metadata(path)
            {
                check.state = State::Warning;
                check.found = format!("allowed_signers: {}: {error}", path.display());
            }
            checks.push(check);
        }
        Err(error) => checks.push(broken("configuration", error.into(), EVERYTHING)),
    }
    let project = match repository.git().resolve("HEAD") {
        Ok(Some(head)) => match repository.project_config(&head) {
            Ok(_) => None,
            Err(error) => Some(Error::from(error)),
        },
        Ok(None) => None,
        Err(error) => Some(error.into()),
    };
    if let Some(error) = project {
        let needed_for = "tasks onto this commit";
        checks.push(Check { state: State::Warning, ..broken("project", error, needed_for) });
    }
    if repository.work_tree().is_some() {
        match repository.check_outputs() {
            Ok(()) => checks.push(ok("outputs", ".codeboost in the work tree", "bundles")),
            Err(error) => checks.push(broken("outputs", error.into(), "bundles")),
        }
    }
}

fn state(repository: &Repository<'_>, checks: &mut Vec<Check>) {
    let folder = repository.state_folder().display().to_string();
    let store = match Store::open_if_there(repository) {
        Ok(Some(store)) => store,
        Ok(None) => {
            checks.push(Check {
                name: "state",
                state: State::Missing,
                found: "codeboost is not set up in this repository".into(),
                needed_for: "tasks, approvals, merging; link and render work on files without it",
                hint: Some("run codeboost init".into()),
            });
            return;
        }
        Err(error) => {
            checks.push(broken("state", error.into(), EVERYTHING));
            return;
        }
    };
    match store.check() {
        Ok(faults) if faults.is_empty() => checks.push(ok("state", folder, EVERYTHING)),
        Ok(faults) => checks.push(Check {
            name: "state",
            state: State::Broken,
            found: faults.join("; "),
            needed_for: EVERYTHING,
            hint: Some("restore the state from a back-up".into()),
        }),
        Err(error) => checks.push(broken("state", error.into(), EVERYTHING)),
    }
    const KEY: &str = "forms that apply accepts";
    match store.key() {
        Ok(Some(key)) => checks.push(ok("signing key", key.public_text(), KEY)),
        Ok(None) => checks.push(Check {
            name: "signing key",
            state: State::Missing,
            found: "none; bundles are read-only".into(),
            needed_for: KEY,
            hint: Some("run codeboost init, which makes one".into()),
        }),
        Err(error) => checks.push(broken("signing key", error.into(), KEY)),
    }
    if store.person() == "unknown" || !store.person().contains('@') {
        checks.push(Check {
            name: "your name",
            state: State::Warning,
            found: format!("git does not know you; the log says {}", store.person()),
            needed_for: "the record of who did what, and commits",
            hint: Some("run git config --global user.name and user.email with yours".into()),
        });
    } else {
        checks.push(ok("your name", store.person(), "the record of who did what, and commits"));
    }
}

fn configuration(context: &Context, repository: &Repository<'_>) -> String {
    let paths = Config::paths(context, &repository.state_folder());
    let there: Vec<_> = paths
        .into_iter()
        .flatten()
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    if there.is_empty() { "none; the defaults hold".into() } else { there.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        assert_eq!(numbers("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(numbers("9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19"), Some((9, 2)));
        assert_eq!(numbers("podman version 4.3.1"), Some((4, 3)));
        assert_eq!(numbers("no number"), None);
    }
}
