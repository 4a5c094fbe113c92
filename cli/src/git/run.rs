//! The one place that runs git.
//!
//! Everything is run with an explicit environment. Nothing of the person's configuration, of the
//! system's or of `GIT_*` variables gets in, except in [`Git::with_person`], which fetching and
//! pushing need for the person's own sign-in.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use codeboost_schema::ids::{CommitId, ObjectId};

use crate::context::Context;
use crate::process;

/// Oldest git that has all that is used: `merge-tree --write-tree` and `push --atomic` with
/// several leases.
pub const MIN_VERSION: (u32, u32) = (2, 39);

/// A repository that git is run on.
#[derive(Debug, Clone)]
pub struct Git<'a> {
    context: &'a Context,
    /// The git directory; for a linked worktree its own, not the common one.
    git_dir: PathBuf,
    /// Where it is started; `None`: in the git directory.
    folder: Option<PathBuf>,
    /// Settings given to each call as `-c`.
    config: Vec<String>,
    env: Vec<(&'static str, OsString)>,
    with_person: bool,
    /// What was told when the repository was found.
    found: Option<Found>,
}

/// What git says about a repository when it finds it.
#[derive(Debug, Clone)]
struct Found {
    common_dir: PathBuf,
    is_sha256: bool,
    /// `None` for a bare repository.
    work_tree: Option<PathBuf>,
}

/// A git command that failed or answered what can't be understood.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git could not be started.
    #[error("can't start git")]
    Start(#[source] std::io::Error),
    /// Git ended with another exit code than 0.
    #[error("git {} failed ({}): {}", .args.first().map_or("", String::as_str), .status, .stderr)]
    Failed {
        /// The arguments after the fixed ones.
        args: Vec<String>,
        /// Exit code, or the signal in words.
        status: String,
        /// What git said on stderr, trimmed, at most 4,000 characters.
        stderr: String,
    },
    /// Git answered in an unexpected form.
    #[error("git {command} answered in an unexpected form: {answer:?}")]
    Answer {
        /// The command.
        command: String,
        /// Its answer, cut to 200 characters.
        answer: String,
    },
    /// There is no repository.
    #[error("{} is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository belongs to another user and the person has not said that they trust it.
    #[error("the repository of {} belongs to another user", .0.display())]
    NotOwned(PathBuf),
}

/// What a finished git command left.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, as text, trimmed.
    pub stderr: String,
}

impl<'a> Git<'a> {
    /// Git on an existing git directory.
    #[must_use]
    pub fn at(context: &'a Context, git_dir: impl Into<PathBuf>) -> Self {
        Self {
            context,
            git_dir: git_dir.into(),
            folder: None,
            config: Vec::new(),
            env: Vec::new(),
            with_person: false,
            found: None,
        }
    }

    /// Finds the repository that `folder` lies in, bare ones included.
    ///
    /// # Errors
    /// [`GitError::NoRepository`] when there is none, [`GitError::NotOwned`] when git does not trust
    /// it.
    pub fn discover(context: &'a Context, folder: &Path) -> Result<Self, GitError> {
        let probe = Self::at(context, folder.join(".git"));
        // Whether to trust a repository of another owner is the person's own setting.
        let mut command = probe.with_person().base(folder);
        command.args(["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"]);
        command.args(["--show-object-format", "--is-bare-repository", "--show-toplevel"]);
        let done = finish(command, None)?;
        let lines: Vec<&[u8]> = trim(&done.stdout).split(|b| *b == b'\n').collect();
        let path = |text: &[u8]| PathBuf::from(os_text(text));
        let found = match (done.code, &lines[..]) {
            (Some(0), [git_dir, common_dir, format, b"false", top]) => {
                Some((git_dir, common_dir, format, Some(path(top))))
            }
            // Without a top level: git says all else before it fails.
            (_, [git_dir, common_dir, format, b"true"]) => {
                Some((git_dir, common_dir, format, None))
            }
            _ => None,
        };
        if let Some((git_dir, common_dir, format, work_tree)) = found {
            let is_sha256 = *format == b"sha256";
            let found = Found { common_dir: path(common_dir), is_sha256, work_tree };
            return Ok(Self { git_dir: path(git_dir), found: Some(found), ..probe });
        }
        // Inside the git directory, or a path with a line feed in it: asked for alone.
        let mut command = probe.with_person().base(folder);
        command.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let done = finish(command, None)?;
        if done.code != Some(0) && done.stderr.contains("dubious ownership") {
            return Err(GitError::NotOwned(folder.to_owned()));
        }
        if done.code != Some(0) {
            return Err(GitError::NoRepository(folder.to_owned()));
        }
        Ok(Self { git_dir: path(trim(&done.stdout)), ..probe })
    }

    /// The same repository with the person's own configuration and environment, for fetching and
    /// pushing: their sign-in, proxies and remote helpers. Hooks stay off.
    #[must_use]
    pub fn with_person(&self) -> Self {
        Self { with_person: true, ..self.clone() }
    }

    /// The same repository with one more setting for each call: `core.x=y`.
    #[must_use]
    pub fn with_config(&self, setting: impl Into<String>) -> Self {
        let mut this = self.clone();
        this.config.push(setting.into());
        this
    }

    /// The same repository with one more variable for each call.
    #[must_use]
    pub fn with_env(&self, name: &'static str, value: impl Into<OsString>) -> Self {
        let mut this = self.clone();
        this.env.push((name, value.into()));
        this
    }

    /// The same repository, with git started in `folder`, from where it takes relative paths.
    #[must_use]
    pub fn in_folder(&self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self.clone() }
    }

    /// The git directory.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory that all linked worktrees share.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn common_dir(&self) -> Result<PathBuf, GitError> {
        if let Some(found) = &self.found {
            return Ok(found.common_dir.clone());
        }
        let out = self.output(["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        Ok(PathBuf::from(os_text(trim(&out))))
    }

    /// Whether objects are named by SHA-256.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn is_sha256(&self) -> Result<bool, GitError> {
        match &self.found {
            Some(found) => Ok(found.is_sha256),
            None => Ok(trim(&self.output(["rev-parse", "--show-object-format"])?) == b"sha256"),
        }
    }

    /// The root of the work tree; `None` for a bare repository.
    ///
    /// # Errors
    /// [`GitError`] when git can't be started.
    pub fn work_tree(&self, folder: &Path) -> Result<Option<PathBuf>, GitError> {
        if let Some(found) = &self.found {
            return Ok(found.work_tree.clone());
        }
        let mut command = self.with_person().base(folder);
        command.args(["rev-parse", "--path-format=absolute", "--show-toplevel"]);
        let done = finish(command, None)?;
        Ok((done.code == Some(0)).then(|| PathBuf::from(os_text(trim(&done.stdout)))))
    }

    /// A command with the fixed environment and settings; the caller adds the git arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = self.base(self.folder.as_deref().unwrap_or(&self.git_dir));
        command.arg("--git-dir").arg(&self.git_dir);
        command
    }

    fn base(&self, folder: &Path) -> Command {
        let mut command = process::command(self.context, "git", folder);
        if self.with_person {
            let mine = self.context.vars().iter().filter(|(name, _)| {
                let name = name.to_string_lossy();
                name == "GIT_SSH" || name == "GIT_SSH_COMMAND" || !name.starts_with("GIT_")
            });
            command.envs(mine.filter(|(name, _)| *name != "PATH"));
        } else {
            command
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("HOME", "/nonexistent")
                .env("XDG_CONFIG_HOME", "/nonexistent");
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.env.iter().map(|(name, value)| (*name, value)));
        command.arg("--no-pager").arg("--no-replace-objects");
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.attributesFile=/dev/null",
            "core.quotePath=false",
            "gc.auto=0",
            "i18n.logOutputEncoding=UTF-8",
            "maintenance.auto=false",
            // The empty graft file is ours, and no news to the person.
            "advice.graftFileDeprecated=false",
        ] {
            command.arg("-c").arg(setting);
        }
        for setting in &self.config {
            command.arg("-c").arg(setting);
        }
        command
    }

    /// Runs git to its end, whatever its exit code.
    ///
    /// # Errors
    /// [`GitError::Start`] when it can't be started.
    pub fn finish<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: Option<&[u8]>,
    ) -> Result<Finished, GitError> {
        let mut command = self.command();
        command.args(args);
        finish(command, stdin)
    }

    /// Runs git and returns its standard output.
    ///
    /// # Errors
    /// [`GitError`] when it can't be started or ends with another exit code than 0.
    pub fn output<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Vec<u8>, GitError> {
        self.output_with(args, None)
    }

    /// As [`Self::output`], with `stdin` given to git.
    ///
    /// # Errors
    /// As [`Self::output`].
    pub fn output_with<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: Option<&[u8]>,
    ) -> Result<Vec<u8>, GitError> {
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let done = self.finish(&args, stdin)?;
        if done.code == Some(0) {
            return Ok(done.stdout);
        }
        Err(GitError::Failed {
            args: args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            status: done
                .code
                .map_or("killed by a signal".into(), |code| format!("exit code {code}")),
            stderr: done.stderr.chars().take(4000).collect(),
        })
    }

    /// Runs git and gives its standard output to `to`, which runs with `to_args`.
    ///
    /// # Errors
    /// [`GitError`] when one of the two can't be started or ends with another exit code than 0.
    pub fn pipe(
        &self,
        args: &[&str],
        stdin: &[u8],
        to: &Git<'_>,
        to_args: &[&str],
    ) -> Result<(), GitError> {
        let mut from = self.command();
        from.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut from = from.spawn().map_err(GitError::Start)?;
        let (input, output) = (from.stdin.take(), from.stdout.take());
        let mut into = to.command();
        into.args(to_args).stdin(output.map_or_else(Stdio::null, Stdio::from));
        into.stdout(Stdio::null()).stderr(Stdio::piped());
        let ends = std::thread::scope(|scope| {
            // A git that stops reading says why on stderr and by its exit code.
            scope.spawn(move || input.map(|mut input| input.write_all(stdin)));
            let first = scope.spawn(move || from.wait_with_output());
            // The pipe's end in this process goes with the command, so that the first one notices
            // when the second one ends.
            let second = into.spawn().and_then(|child| {
                drop(into);
                child.wait_with_output()
            });
            (first.join(), second)
        });
        let first = ends.0.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
        for (args, output) in [(args, first), (to_args, ends.1)] {
            let output = output.map_err(GitError::Start)?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                return Err(GitError::Failed {
                    args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                    status: output
                        .status
                        .code()
                        .map_or("killed by a signal".into(), |code| format!("exit code {code}")),
                    stderr: stderr.trim().chars().take(4000).collect(),
                });
            }
        }
        Ok(())
    }

    /// The commit that a revision names; `None` when there is none.
    ///
    /// # Errors
    /// [`GitError`] when git can't be started or answers what is no id.
    pub fn resolve(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        let wanted = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let done = self.finish(args, None)?;
        if done.code != Some(0) {
            return Ok(None);
        }
        parse_id(&done.stdout, "rev-parse", CommitId::parse).map(Some)
    }

    /// The commits that full names of refs name; `None` for those that name none. As
    /// [`Self::resolve`], asked at once.
    ///
    /// # Errors
    /// [`GitError`] when git can't be started or answers what is no id.
    pub fn resolve_all<const N: usize>(
        &self,
        refs: [&str; N],
    ) -> Result<[Option<CommitId>; N], GitError> {
        let wanted: String = refs.iter().map(|name| format!("{name}^{{commit}}\n")).collect();
        let args = ["cat-file", "--batch-check=%(objectname)"];
        let answer = self.output_with(args, Some(wanted.as_bytes()))?;
        let mut found = [const { None }; N];
        let mut lines = trim(&answer).split(|byte| *byte == b'\n');
        for (found, name) in found.iter_mut().zip(refs) {
            let line = lines.next().unwrap_or_default();
            let is_missing = line.strip_prefix(name.as_bytes()) == Some(b"^{commit} missing");
            if !is_missing {
                *found = Some(parse_id(line, "cat-file", CommitId::parse)?);
            }
        }
        Ok(found)
    }

    /// The branch that a person means by `name`: its full name and commit. Tried as a full name,
    /// as a local branch, then as a remote's; `HEAD` is the branch that is checked out. `None`
    /// when it names no branch, such as a tag or a commit.
    ///
    /// # Errors
    /// [`GitError`] when git can't be started or answers what is no id.
    pub fn branch(&self, name: &str) -> Result<Option<(String, CommitId)>, GitError> {
        let candidates = if name == "HEAD" {
            let done = self.finish(["symbolic-ref", "--quiet", "HEAD"], None)?;
            vec![String::from_utf8_lossy(trim(&done.stdout)).into_owned()]
        } else if name.starts_with("refs/") {
            vec![name.to_owned()]
        } else {
            vec![format!("refs/heads/{name}"), format!("refs/remotes/{name}")]
        };
        for full in candidates {
            if !(full.starts_with("refs/heads/") || full.starts_with("refs/remotes/")) {
                continue;
            }
            let args = ["show-ref", "--verify", "--hash", "--", &full];
            let done = self.finish(args, None)?;
            if done.code == Some(0)
                && let Some(id) = self.resolve(&full)?
            {
                return Ok(Some((full, id)));
            }
        }
        Ok(None)
    }

    /// The best common ancestor of two commits; `None` when they have none.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn merge_base(&self, a: &CommitId, b: &CommitId) -> Result<Option<CommitId>, GitError> {
        let args = ["merge-base", a.as_str(), b.as_str()];
        let done = self.finish(args, None)?;
        match done.code {
            Some(0) => parse_id(&done.stdout, "merge-base", CommitId::parse).map(Some),
            Some(1) => Ok(None),
            _ => Err(GitError::Failed {
                args: args.map(str::to_owned).to_vec(),
                status: done.code.map_or("killed".into(), |code| format!("exit code {code}")),
                stderr: done.stderr,
            }),
        }
    }

    /// How many commits `to` has that `from` has not.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn count(&self, from: &CommitId, to: &CommitId) -> Result<u64, GitError> {
        let answer = self.output(["rev-list", "--count", &format!("{from}..{to}")])?;
        parse_id(&answer, "rev-list", str::parse)
    }

    /// The bytes of a regular file in a commit; `None` when there is none at that path.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let entry = self.output(["ls-tree", "-z", "--full-tree", commit.as_str(), "--", path])?;
        let entry = String::from_utf8_lossy(&entry);
        let mut words = entry.split([' ', '\t']);
        let (mode, id) = (words.next().unwrap_or_default(), words.nth(1));
        match (mode, id) {
            ("100644" | "100755", Some(id)) => self.output(["cat-file", "blob", id]).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether `ancestor` is `descendant` or one of its ancestors.
    ///
    /// # Errors
    /// [`GitError`] when git can't tell.
    pub fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, GitError> {
        let args = ["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()];
        let done = self.finish(args, None)?;
        match done.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(GitError::Failed {
                args: args.map(str::to_owned).to_vec(),
                status: done.code.map_or("killed".into(), |code| format!("exit code {code}")),
                stderr: done.stderr,
            }),
        }
    }
}

/// The error of an answer that can't be understood.
pub(super) fn unexpected(command: &str, answer: &[u8]) -> GitError {
    GitError::Answer {
        command: command.to_owned(),
        answer: String::from_utf8_lossy(answer).chars().take(200).collect(),
    }
}

/// Reads one object or commit id from git's answer.
///
/// # Errors
/// [`GitError::Answer`] when it is none.
pub fn parse_id<T, E>(
    answer: &[u8],
    command: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, GitError> {
    let text = String::from_utf8_lossy(trim(answer));
    parse(&text).map_err(|_| GitError::Answer {
        command: command.to_owned(),
        answer: text.chars().take(200).collect(),
    })
}

/// Reads an object id from git's answer.
///
/// # Errors
/// [`GitError::Answer`] when it is none.
pub fn parse_object_id(answer: &[u8], command: &str) -> Result<ObjectId, GitError> {
    parse_id(answer, command, ObjectId::parse)
}

fn trim(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

fn os_text(bytes: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes)
}

fn finish(mut command: Command, stdin: Option<&[u8]>) -> Result<Finished, GitError> {
    command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitError::Start)?;
    let pipe = child.stdin.take();
    let output = std::thread::scope(|scope| {
        if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
            // A git that stops reading says why on stderr and by its exit code.
            scope.spawn(move || pipe.write_all(bytes));
        }
        child.wait_with_output()
    })
    .map_err(GitError::Start)?;
    Ok(Finished {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
