//! Refs here and in other repositories: reading them, fetching what they name, and changing
//! several at once or none.
//!
//! Every change names the value that it expects, and the side that holds the refs compares it under
//! its own locks: git's atomic push with a lease on each ref, or its ref transaction. Reading
//! before changing only spares a useless try. What a push reports is never taken for the truth:
//! whoever pushes reads back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codeboost_schema::ids::CommitId;

use crate::git::run::{Git, GitError};
use crate::process::{Ended, Limits};

/// A ref that has to have a value, and the value it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// The full name: `refs/heads/main`.
    pub name: String,
    /// What it has to name now.
    pub expected: CommitId,
    /// What it names afterwards.
    pub new: NewValue,
}

/// What becomes of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewValue {
    /// It names this commit.
    Commit(CommitId),
    /// It goes away.
    Deleted,
    /// It stays; only a ref transaction in one's own repository can guard that.
    Unchanged,
}

/// Another repository, as git is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// What git gets: the configured name, or a URL or absolute path.
    address: String,
    /// What people see: the name or the URL without a user's sign-in.
    shown: String,
    /// The URL that is read and pushed to.
    url: String,
    /// Where git runs, since it takes relative paths from there.
    folder: PathBuf,
}

/// Why another repository can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No remote of that name is configured, and it is no URL or path.
    #[error("there is no remote {0:?}")]
    Unknown(String),
    /// A remote has several addresses, so that no single push could be atomic.
    #[error("the remote {name} has {count} push URLs")]
    SeveralUrls {
        /// The remote.
        name: String,
        /// How many.
        count: usize,
    },
    /// It can't be reached or refuses to be read.
    #[error("can't {action} {remote}: {words}")]
    Unreachable {
        /// What was tried, as an imperative.
        action: &'static str,
        /// The remote.
        remote: String,
        /// Git's and the server's words.
        words: String,
    },
    /// It did not answer in time.
    #[error("{remote} did not answer within {} seconds", after.as_secs())]
    TimedOut {
        /// The remote.
        remote: String,
        /// How long was waited.
        after: Duration,
    },
    /// Git failed here.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What a push or transaction seemed to come to. What it came to is read from the refs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// All was taken.
    Accepted,
    /// Refused, with the words of git and of the other side as they came.
    Refused(String),
    /// No clear answer: it may have happened, or may still.
    Unclear(String),
}

/// A tree of settings that have to be off, so that a push does what is asked and nothing more.
const PUSH_CONFIG: [&str; 4] = [
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "push.useForceIfIncludes=false",
];

impl Remote {
    /// Finds the remote that `spec` names: a configured name, a URL or a path.
    ///
    /// `folder`: where relative paths start, the root of the work tree. The URL for pushing is used
    /// for reading too, so that what is read is what is pushed to.
    ///
    /// # Errors
    /// [`RemoteError::Unknown`] or [`RemoteError::SeveralUrls`].
    pub fn find(git: &Git<'_>, spec: &str, folder: &Path) -> Result<Self, RemoteError> {
        let unknown = || RemoteError::Unknown(spec.to_owned());
        if spec.is_empty() || spec.starts_with('-') {
            return Err(unknown());
        }
        let git = git.with_person();
        let urls = |args: &[&str]| -> Result<Option<Vec<String>>, GitError> {
            let done = git.finish([&["remote", "get-url"], args, &["--", spec]].concat(), None)?;
            let text = String::from_utf8_lossy(&done.stdout);
            Ok((done.code == Some(0)).then(|| text.lines().map(str::to_owned).collect()))
        };
        let folder = folder.to_owned();
        let Some(mut push) = urls(&["--push", "--all"])? else {
            let looks_like_url = spec.contains("://") || scp_host(spec).is_some();
            if !looks_like_url && !folder.join(spec).is_dir() {
                return Err(unknown());
            }
            let (url, shown) = (spec.to_owned(), without_sign_in(spec));
            return Ok(Self { address: url.clone(), shown, url, folder });
        };
        if push.len() != 1 {
            return Err(RemoteError::SeveralUrls { name: spec.to_owned(), count: push.len() });
        }
        let url = push.remove(0);
        // By its name git also keeps the remote-tracking branches current.
        let same = urls(&["--all"])?.is_some_and(|fetch| fetch.first() == Some(&url));
        let address = if same { spec.to_owned() } else { url.clone() };
        Ok(Self { address, shown: spec.to_owned(), url, folder })
    }

    /// The remote as people see it: its name, or its URL without a sign-in.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The URL or path, with whatever sign-in it holds: never to be shown.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the repository lies, when it is a folder of this machine.
    #[must_use]
    pub fn local_path(&self) -> Option<PathBuf> {
        let path = match self.url.strip_prefix("file://") {
            Some(path) => path,
            None if self.url.contains("://") || scp_host(&self.url).is_some() => return None,
            None => &self.url,
        };
        Some(self.folder.join(path))
    }

    /// The commits that these refs name now; a ref that does not exist is absent.
    ///
    /// # Errors
    /// [`RemoteError`] when the remote can't be read. Nothing read is never an empty answer.
    pub fn read(
        &self,
        git: &Git<'_>,
        names: &[&str],
        limits: Limits,
    ) -> Result<BTreeMap<String, CommitId>, RemoteError> {
        let mut args = vec!["ls-remote", "--refs", "--quiet", "--", &self.address];
        args.extend(names);
        let ended = self.talk("read", git, &args, limits)?;
        let mut found = BTreeMap::new();
        for line in String::from_utf8_lossy(&ended.stdout).lines() {
            let parsed = line
                .split_once('\t')
                .and_then(|(id, name)| Some((CommitId::parse(id).ok()?, name.to_owned())));
            let Some((id, name)) = parsed.filter(|_| !ended.cut) else {
                return Err(GitError::Answer {
                    command: "ls-remote".into(),
                    answer: line.chars().take(200).collect(),
                }
                .into());
            };
            // Git takes a name for the end of a longer one too.
            if names.contains(&name.as_str()) {
                found.insert(name, id);
            }
        }
        Ok(found)
    }

    /// Fetches refs of the remote into refs of this repository: pairs of (theirs, ours).
    ///
    /// Ours are overwritten; nothing else is touched, and no tag comes along.
    ///
    /// # Errors
    /// [`RemoteError`] when the remote can't be read or lacks one of the refs.
    pub fn fetch(
        &self,
        git: &Git<'_>,
        refs: &[(&str, &str)],
        limits: Limits,
    ) -> Result<(), RemoteError> {
        let specs: Vec<_> = refs.iter().map(|(theirs, ours)| format!("+{theirs}:{ours}")).collect();
        let mut args = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-prune",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--refmap=",
            "--",
            &self.address,
        ];
        args.extend(specs.iter().map(String::as_str));
        self.talk("fetch from", git, &args, limits).map(drop)
    }

    /// Changes refs of the remote, all or none, each only from its expected value.
    ///
    /// A [`NewValue::Unchanged`] is left out: git sends no command for a ref that stays, so the
    /// server can't guard it.
    ///
    /// # Errors
    /// [`RemoteError::Git`] when git can't be started. Everything else is in [`Reported`].
    pub fn push(
        &self,
        git: &Git<'_>,
        changes: &[RefChange],
        limits: Limits,
    ) -> Result<Reported, RemoteError> {
        let mut git = git.with_person();
        for setting in PUSH_CONFIG {
            git = git.with_config(setting);
        }
        let mut args: Vec<String> =
            ["push", "--atomic", "--porcelain", "--no-verify", "--no-progress"]
                .map(str::to_owned)
                .to_vec();
        let mut specs = Vec::new();
        for RefChange { name, expected, new } in changes {
            let source = match new {
                NewValue::Commit(id) => id.as_str(),
                NewValue::Deleted => "",
                NewValue::Unchanged => continue,
            };
            args.push(format!("--force-with-lease={name}:{expected}"));
            specs.push(format!("{source}:{name}"));
        }
        args.push("--".to_owned());
        args.push(self.address.clone());
        args.extend(specs);
        let mut command = git.command();
        command.current_dir(&self.folder).args(&args);
        let ended = crate::process::run(command, None, limits).map_err(GitError::Start)?;
        Ok(self.report(&ended, limits))
    }

    fn report(&self, ended: &Ended, limits: Limits) -> Reported {
        let words = self.words(ended);
        if ended.timed_out {
            let after = limits.deadline.as_secs();
            return Reported::Unclear(join(&format!("no answer within {after} seconds"), &words));
        }
        let answer = String::from_utf8_lossy(&ended.stdout);
        let refused: Vec<_> = answer.lines().filter(|line| line.starts_with('!')).collect();
        match ended.code {
            Some(0) => Reported::Accepted,
            // What git says before it sends anything.
            Some(_) if words.contains("does not support --atomic push") => Reported::Refused(
                "the server does not support atomic pushes, and nothing was sent: without them base \
                 and head can't be compared and moved as one"
                    .to_owned(),
            ),
            Some(_) if !refused.is_empty() => {
                // Flag, source and destination, summary.
                let reason = |line: &&str| {
                    let mut fields = line.split('\t').skip(1);
                    let to = fields.next()?.rsplit(':').next()?;
                    let branch = to.strip_prefix("refs/heads/").unwrap_or(to);
                    Some(format!("{branch}: {}", fields.next()?))
                };
                let reasons: Vec<_> = refused.iter().filter_map(reason).collect();
                Reported::Refused(join(&words, &reasons.join("\n")))
            }
            Some(_) => Reported::Unclear(words),
            None => Reported::Unclear(join("the push was ended by a signal", &words)),
        }
    }

    fn talk(
        &self,
        action: &'static str,
        git: &Git<'_>,
        args: &[&str],
        limits: Limits,
    ) -> Result<Ended, RemoteError> {
        let mut command = git.with_person().command();
        command.current_dir(&self.folder).args(args);
        let ended = crate::process::run(command, None, limits).map_err(GitError::Start)?;
        let remote = self.shown.clone();
        if ended.timed_out {
            Err(RemoteError::TimedOut { remote, after: limits.deadline })
        } else if ended.code == Some(0) {
            Ok(ended)
        } else {
            Err(RemoteError::Unreachable { action, remote, words: self.words(&ended) })
        }
    }

    /// What git and the other side said, without a sign-in that the URL may hold.
    fn words(&self, ended: &Ended) -> String {
        let words = String::from_utf8_lossy(&ended.stderr);
        // The side band pads its lines to wipe what stood on the screen.
        let lines: Vec<_> = words.lines().map(str::trim_end).collect();
        let words = lines.join("\n");
        let words = words.trim().replace(&self.url, &without_sign_in(&self.url));
        words.chars().take(MAX_WORDS).collect()
    }
}

/// How much of the other side's words is kept, in characters.
const MAX_WORDS: usize = 4000;

fn join(first: &str, second: &str) -> String {
    [first, second].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The host of `host:path`; `None` for a path or URL.
fn scp_host(spec: &str) -> Option<&str> {
    let (host, _) = spec.split_once(':')?;
    (!host.contains('/') && !host.is_empty()).then_some(host)
}

/// A URL without user name and password, which may be a token.
fn without_sign_in(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match place.rsplit_once('@') {
        Some((_, host)) if scheme != "ssh" => format!("{scheme}://{host}{path}"),
        _ => url.to_owned(),
    }
}

/// Changes refs of this repository, all or none, each only from its expected value.
///
/// # Errors
/// [`GitError`] when git can't be started. A refusal is in [`Reported`].
pub fn change_here(git: &Git<'_>, changes: &[RefChange]) -> Result<Reported, GitError> {
    let mut input = String::from("start\n");
    for RefChange { name, expected, new } in changes {
        // Without this a symbolic ref would be followed to a branch that nobody checked.
        input.push_str("option no-deref\n");
        let _ = match new {
            NewValue::Commit(id) => writeln!(input, "update {name} {id} {expected}"),
            NewValue::Deleted => writeln!(input, "delete {name} {expected}"),
            NewValue::Unchanged => writeln!(input, "verify {name} {expected}"),
        };
    }
    input.push_str("prepare\ncommit\n");
    let done = git.finish(["update-ref", "--stdin"], Some(input.as_bytes()))?;
    Ok(match done.code {
        Some(0) => Reported::Accepted,
        Some(_) => Reported::Refused(done.stderr.chars().take(MAX_WORDS).collect()),
        None => Reported::Unclear(join("git was ended by a signal", &done.stderr)),
    })
}

/// The work trees in which a branch is checked out, being rebased or bisected.
///
/// # Errors
/// [`GitError`] when git can't list them.
pub fn checked_out(git: &Git<'_>, branch: &str) -> Result<Vec<PathBuf>, GitError> {
    use std::os::unix::ffi::OsStrExt as _;
    let answer = git.output(["worktree", "list", "--porcelain", "-z"])?;
    let mut found = Vec::new();
    let mut folder = PathBuf::new();
    let mut is_bare = false;
    for field in answer.split(|byte| *byte == 0) {
        if let Some(path) = field.strip_prefix(b"worktree ") {
            folder = PathBuf::from(std::ffi::OsStr::from_bytes(path));
            is_bare = false;
        } else if field == b"bare" {
            is_bare = true;
        } else if field.strip_prefix(b"branch ") == Some(branch.as_bytes()) && !is_bare {
            found.push(folder.clone());
        }
    }
    // While a branch is rebased or bisected its work tree stands on no branch.
    let common = git.common_dir()?;
    let linked = std::fs::read_dir(common.join("worktrees"));
    let mut git_dirs = vec![common];
    git_dirs.extend(linked.into_iter().flatten().flatten().map(|entry| entry.path()));
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    for git_dir in git_dirs {
        for file in ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"] {
            let name = std::fs::read_to_string(git_dir.join(file)).unwrap_or_default();
            if [branch, short].contains(&name.trim_end()) {
                found.push(git_dir.clone());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_in_a_url_is_not_shown() {
        assert_eq!(
            without_sign_in("https://me:token@host.example/r.git"),
            "https://host.example/r.git"
        );
        assert_eq!(without_sign_in("https://host.example/a@b"), "https://host.example/a@b");
        assert_eq!(without_sign_in("ssh://git@host.example/r"), "ssh://git@host.example/r");
        assert_eq!(without_sign_in("../r.git"), "../r.git");
    }

    #[test]
    fn only_a_host_before_a_colon_makes_an_ssh_address() {
        assert_eq!(scp_host("git@host:r.git"), Some("git@host"));
        assert_eq!(scp_host("./odd:name"), None);
        assert_eq!(scp_host("/srv/r.git"), None);
    }
}
