//! The one place that turns errors into what people see.
//!
//! Rooms define their own errors, as lower-case fragments that name the thing. Here each gets its
//! causes and its hint: the next command or step.

use std::error::Error as StdError;

use codeboost_schema::decisions::DecisionsError;
use serde::Serialize;

use crate::agent::replay::ReplayError;
use crate::apply::ApplyError;
use crate::config::ConfigError;
use crate::execute::item::ItemError;
use crate::execute::workspace::CloneError;
use crate::exit_code;
use crate::forge::ForgeError;
use crate::forge::gh::GhError;
use crate::forge::issue_file::IssueFileError;
use crate::git::identity::IdentityError;
use crate::git::read::{Absence, ReadError};
use crate::git::refs::RemoteError;
use crate::git::repository::RepositoryError;
use crate::git::run::GitError;
use crate::ledger::LedgerError;
use crate::link::assemble::LinkError;
use crate::merge::MergeError;
use crate::merge::rebase::RebaseError;
use crate::output::{Output, Style};
use crate::review::form::FormRefusal;
use crate::review::linking::LinkingError;
use crate::review::read::ReviewError;
use crate::sandbox::SandboxError;
use crate::stage::FileError;
use crate::store::StoreError;
use crate::task::TaskState;

/// An error on its way to a person.
#[derive(Debug)]
pub struct Error {
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    code: u8,
}

/// What a command returns: how it ended, or an error.
pub type Result<T = crate::exit_code::Outcome> = std::result::Result<T, Error>;

impl Error {
    /// A failure of the operation: exit code 1.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            code: exit_code::FAILED,
        }
    }

    /// Wrong usage: exit code 2.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: exit_code::USAGE, ..Self::failed(message) }
    }

    /// Not allowed yet: exit code 3.
    #[must_use]
    pub fn not_allowed(message: impl Into<String>) -> Self {
        Self { code: exit_code::NOT_ALLOWED, ..Self::failed(message) }
    }

    /// A failure with the whole chain of `error` as message and causes: exit code 1.
    #[must_use]
    pub fn from_error(error: &(dyn StdError + 'static)) -> Self {
        let mut this = Self::failed(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            this.causes.push(cause.to_string());
            source = cause.source();
        }
        this
    }

    /// Puts `message` before this error, which becomes its first cause.
    #[must_use]
    pub fn context(mut self, message: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, message.into());
        self.causes.insert(0, cause);
        self
    }

    /// Adds the next step, shown as a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The message without causes and hints.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Message and causes on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        for cause in &self.causes {
            text.push_str(": ");
            text.push_str(cause);
        }
        text
    }

    /// The next steps.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    pub(crate) fn print(&self, out: &Output) {
        if out.is_json() {
            out.json(&ErrorReport {
                error: ErrorBody {
                    message: &self.message,
                    causes: &self.causes,
                    hints: &self.hints,
                    exit_code: self.code,
                },
            });
        }
        out.error_line("error:", Style::Error, &self.message);
        for cause in &self.causes {
            out.error_line("caused by:", Style::Muted, cause);
        }
        for hint in &self.hints {
            out.error_line("hint:", Style::Accent, hint);
        }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::from_error(&error)
    }
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Self {
        let this = Self::from_error(&error);
        match error {
            GitError::Start(_) => this.hint("install git, or put its folder on PATH"),
            GitError::NoRepository(_) => {
                this.hint("change to a repository, or make one with git init")
            }
            GitError::NotOwned(path) => this.hint(format!(
                "if you trust it, run git config --global --add safe.directory {}",
                path.display()
            )),
            GitError::Failed { .. } | GitError::Answer { .. } => this,
        }
    }
}

impl From<SandboxError> for Error {
    fn from(error: SandboxError) -> Self {
        let hint = match &error {
            SandboxError::NoEngine { .. } => Some(
                "install Docker or Podman and start it, or name its socket in DOCKER_HOST or in \
                 sandbox.engine of the configuration",
            ),
            SandboxError::Address(_) => Some("use an engine on this machine: unix:///path"),
            SandboxError::NoImage(_) => Some("build it: codeboost doctor --build-image"),
            SandboxError::Differs { .. } | SandboxError::SelfTest { .. } => Some(
                "nothing was run: this engine does not hold the container to what was asked for",
            ),
            SandboxError::NotEnforced(_) => {
                Some("nothing was run; codeboost runs no agent without these limits")
            }
            SandboxError::Unreleased { .. } => {
                Some("the next run on this task tries again to remove it")
            }
            SandboxError::Engine { .. }
            | SandboxError::Silent { .. }
            | SandboxError::ImageNotMade(_)
            | SandboxError::Storage { .. }
            | SandboxError::SocketPath(_)
            | SandboxError::Interrupted
            | SandboxError::File(_)
            | SandboxError::Runtime(_) => None,
        };
        hint.into_iter().fold(Self::from_error(&error), Self::hint)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let this = Self::from_error(&error);
        match error {
            ConfigError::Writable { path, .. } => {
                this.hint(format!("run chmod go-w {}", path.display()))
            }
            ConfigError::Content { .. } => this.hint("mend the file, then run codeboost doctor"),
            ConfigError::File(_) | ConfigError::Form { .. } => this,
        }
    }
}

impl From<IdentityError> for Error {
    fn from(error: IdentityError) -> Self {
        let hint = match &error {
            IdentityError::Missing(what) => {
                Some(format!("run git config --global user.{what} with yours"))
            }
            IdentityError::Git(_) => None,
        };
        hint.into_iter().fold(Self::from_error(&error), Self::hint)
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        let hint = match &error {
            RemoteError::Unknown(_) => {
                Some("set remote in the configuration to a name that git remote lists, or to a URL")
            }
            RemoteError::SeveralUrls { .. } => {
                Some("set remote in the configuration to the one URL that is to be pushed to")
            }
            RemoteError::Unreachable { .. } | RemoteError::TimedOut { .. } => {
                Some("nothing was changed; run this again when the remote answers")
            }
            RemoteError::Git(_) => None,
        };
        match error {
            RemoteError::Git(error) => error.into(),
            error => hint.into_iter().fold(Self::from_error(&error), Self::hint),
        }
    }
}

impl From<ForgeError> for Error {
    fn from(error: ForgeError) -> Self {
        match error {
            ForgeError::Remote(error) => error.into(),
            ForgeError::Git(error) => error.into(),
            ForgeError::Gh(error) => error.into(),
            ForgeError::NoBase { .. } => {
                Self::from_error(&error).hint("push the base there, or bind the task to another")
            }
            ForgeError::NotABranch(_) => Self::from_error(&error)
                .hint("a merge moves a branch: add the task again with a branch as its base"),
            ForgeError::NotAllowed { what, hint } => Self::not_allowed(what).hint(hint),
        }
    }
}

impl From<GhError> for Error {
    fn from(error: GhError) -> Self {
        let this = Self::from_error(&error);
        match error {
            GhError::Missing => this.hint("install it: https://cli.github.com"),
            GhError::NotSignedIn => this.hint("gh auth login, or set GH_TOKEN"),
            GhError::Refused { status: 401, .. } => this.hint("gh auth login, or set GH_TOKEN"),
            GhError::Refused { status: 404, .. } => {
                this.hint("see that the account may read the repository: gh auth status")
            }
            GhError::Refused { .. } | GhError::Unknown(_) => this.hint("run it again"),
        }
    }
}

impl From<IssueFileError> for Error {
    fn from(error: IssueFileError) -> Self {
        let this = Self::from_error(&error);
        match error {
            IssueFileError::File(_) => this.hint("give an issue number or a Markdown file"),
            IssueFileError::Form { .. } => {
                this.hint("an issue is a Markdown file whose first heading is its title")
            }
            IssueFileError::FrontMatter { .. } => {
                this.hint("front matter may say number: 412 and state: open or closed")
            }
        }
    }
}

impl From<MergeError> for Error {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Store(error) => error.into(),
            MergeError::Forge(error) => error.into(),
            MergeError::Git(error) => error.into(),
            MergeError::Identity(error) => error.into(),
            MergeError::Rebase(error) => match error {
                RebaseError::Store(error) => error.into(),
                RebaseError::Git(error) => error.into(),
                RebaseError::Borrow(error) => ReadError::Borrow(error).into(),
                RebaseError::Read(error) => error.into(),
                RebaseError::Identity(error) => error.into(),
            },
            MergeError::Judge(error) => error.context("can't judge what is to merge"),
            MergeError::Restless => Self::from_error(&error).hint("run this again"),
        }
    }
}

impl From<RepositoryError> for Error {
    fn from(error: RepositoryError) -> Self {
        let hint = match &error {
            RepositoryError::Git(_)
            | RepositoryError::Read(_)
            | RepositoryError::File(_)
            | RepositoryError::Config(_) => None,
            RepositoryError::NotAFolder(path) => {
                Some(format!("move {} away; codeboost makes its own", path.display()))
            }
            RepositoryError::Tracked(_) => Some(
                "take them out of the index with git rm -r --cached .codeboost, and commit".into(),
            ),
        };
        match error {
            RepositoryError::Git(error) => error.into(),
            RepositoryError::Read(error) => error.into(),
            RepositoryError::Config(error) => error.into(),
            error => hint.into_iter().fold(Self::from_error(&error), Self::hint),
        }
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        let hint = match &error {
            LedgerError::Differs { .. } => "what is recorded stays; see codeboost ledger show",
            LedgerError::Twice { .. } | LedgerError::Itself(_) => "name each commit once",
            LedgerError::ManyToOne { .. } => {
                "a commit made from several has no one source: record it with codeboost ledger record"
            }
            LedgerError::OneToMany { .. } => {
                "a commit that was split has no one successor: record the parts with codeboost ledger record"
            }
            LedgerError::Lengths { .. } => {
                "map the commits one by one: codeboost ledger map OLD NEW"
            }
            LedgerError::NoItem(_) => "see the items with codeboost plan show",
            LedgerError::SeveralItems { .. } | LedgerError::BadTrailer { .. } => {
                "say it yourself: codeboost ledger record COMMIT --item P1"
            }
        };
        Self::from_error(&error).hint(hint)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let hint = match &error {
            StoreError::NotSetUp => Some("run codeboost init".to_owned()),
            StoreError::WrongKind { path, .. } => {
                Some(format!("look at what {} is, and move it away", path.display()))
            }
            StoreError::Open { path, wanted, .. } => {
                Some(format!("run chmod {wanted:o} {}", path.display()))
            }
            StoreError::NewerVersion { .. } => Some("install a newer codeboost".to_owned()),
            StoreError::Foreign(path) => {
                Some(format!("move {} away, or restore it from a back-up", path.display()))
            }
            StoreError::Damaged(_) | StoreError::Evidence(_) => {
                Some("run codeboost doctor; restore the state from a back-up".to_owned())
            }
            StoreError::Busy(_) => Some("look for a codeboost that hangs, and end it".to_owned()),
            StoreError::Key(path) => {
                Some(format!("move {} away and run codeboost init for a new key", path.display()))
            }
            StoreError::NoKey => Some("run codeboost init, which makes one".to_owned()),
            StoreError::NoTask(_) => Some(
                "codeboost task list shows those there are; codeboost task add adds one".into(),
            ),
            StoreError::TaskEnded { issue, .. } => Some(format!(
                "codeboost log {issue} tells how; a new one: codeboost task add {issue}"
            )),
            StoreError::NoOpenTask => Some("run codeboost task add ISSUE --base REF".to_owned()),
            StoreError::SeveralTasks(_) => Some("name the task by its issue number".to_owned()),
            StoreError::TaskExists(issue) => {
                Some(format!("go on with it, or run codeboost task cancel {issue} first"))
            }
            StoreError::NoPlan(issue) => Some(format!("run codeboost plan import {issue} FILE")),
            StoreError::NoSuggestion(_) => {
                Some("codeboost plan show lists the suggestions".to_owned())
            }
            StoreError::PlanMoved { issue, .. } => {
                Some(format!("look at it with codeboost plan show {issue}, then decide again"))
            }
            StoreError::TaskMoved(_) => Some("run this again".to_owned()),
            StoreError::Random(_)
            | StoreError::Transition { .. }
            | StoreError::Ledger(_)
            | StoreError::File(_)
            | StoreError::Git(_)
            | StoreError::Repository(_)
            | StoreError::Sql(_) => None,
        };
        match error {
            StoreError::Git(error) => error.into(),
            StoreError::Repository(error) => error.into(),
            StoreError::Ledger(error) => error.into(),
            error => hint.into_iter().fold(Self::from_error(&error), Self::hint),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        let this = Self::from_error(&error);
        match &error {
            ReadError::Missing { absence: Absence::Shallow, .. } => {
                this.hint("fetch the rest of the history: git fetch --unshallow")
            }
            ReadError::Missing { absence: Absence::Partial, .. } => this.hint(
                "fetch what the partial clone left out: git fetch --refetch --no-filter origin",
            ),
            ReadError::Missing { absence: Absence::Damage, .. } | ReadError::Corrupt { .. } => {
                this.hint("see what is damaged: git fsck; then fetch it again from the remote")
            }
            ReadError::NotAncestor { base, head } => this
                .hint(format!("find a base that is: git merge-base {base} {head}"))
                .hint("after a merge of the base branch, the base is the commit that was merged"),
            ReadError::TooManyCommits { .. } => {
                this.hint("raise --max-commits, or leave it out for no limit")
            }
            ReadError::Kind { .. }
            | ReadError::Borrow(_)
            | ReadError::Git(_)
            | ReadError::Open { .. } => this,
        }
    }
}

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Self {
        let this = Self::from_error(&error);
        match error {
            LinkError::UnknownItem(_) => this
                .hint("correct the ledger, or link with the plan revision that has the item")
                .hint(r#"for an item that was removed write "item": null, "was": "<item>""#),
            LinkError::TooManyLines { .. } => {
                this.hint("raise --max-lines, or leave it out for no limit")
            }
            LinkError::Over => this.hint("raise --deadline, or leave it out for no limit"),
            LinkError::Wrong(_) => {
                this.hint("this is a fault of codeboost; report it with the repository if you can")
            }
            LinkError::Blob(error) => match error.0.downcast::<ReadError>() {
                Ok(error) => (*error).into(),
                Err(_) => this,
            },
        }
    }
}

impl From<LinkingError> for Error {
    fn from(error: LinkingError) -> Self {
        match error {
            LinkingError::Read(error) => error.into(),
            LinkingError::Repository(error) => error.into(),
            LinkingError::Link(error) => error.into(),
            LinkingError::Watch(_) => Self::from_error(&error),
        }
    }
}

impl From<ReviewError> for Error {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Store(error) => error.into(),
            ReviewError::Repository(error) => error.into(),
            ReviewError::Git(error) => error.into(),
            ReviewError::Read(error) => error.into(),
            ReviewError::Watch(_) => Self::from_error(&error),
            ReviewError::Link { issue, source } => {
                Self::from(source).context(format!("can't link the changes of task #{issue}"))
            }
            ReviewError::NoPlan { issue, newest: None } => Self::from_error(&error)
                .hint(format!("codeboost plan import {issue} FILE, then plan approve {issue}")),
            ReviewError::NoPlan { issue, newest: Some(revision) } => Self::from_error(&error)
                .hint(format!("r{revision} waits for it: codeboost plan approve {issue}")),
        }
    }
}

impl From<ApplyError> for Error {
    fn from(error: ApplyError) -> Self {
        let nothing = "nothing was changed";
        match error {
            ApplyError::File(error) => error.into(),
            ApplyError::Review(error) => error.into(),
            ApplyError::Store(error) => error.into(),
            ApplyError::Malformed { source: DecisionsError::Version(_), .. } => {
                Self::from_error(&error)
                    .hint(nothing)
                    .hint("render the page with this codeboost, and decide there")
            }
            ApplyError::Form { source: FormRefusal::UnknownKey(_), .. } => {
                Self::from_error(&error).hint(nothing).hint(
                    "a page made elsewhere needs its key under keys in the configuration; \
                     codeboost key show prints a key",
                )
            }
            ApplyError::Malformed { .. } | ApplyError::Form { .. } => Self::from_error(&error)
                .hint(nothing)
                .hint("save the decisions again in the page they were made in"),
            ApplyError::Elsewhere { .. } => Self::from_error(&error)
                .hint(nothing)
                .hint("apply it in the repository that the page was made in"),
            ApplyError::Signature { .. } => Self::from_error(&error)
                .hint(nothing)
                .hint("ssh-keygen -Y sign -n codeboost-decisions -f KEY FILE makes a signature"),
            ApplyError::Signers { .. } | ApplyError::NoSigners(_) => Self::from_error(&error)
                .hint(nothing)
                .hint("mend the file, or allowed_signers in the configuration"),
            ApplyError::Busy => Self::from_error(&error).hint(nothing).hint("run this again"),
        }
    }
}

impl From<ReplayError> for Error {
    fn from(error: ReplayError) -> Self {
        let this = Self::from_error(&error);
        match error {
            ReplayError::File(_) => this,
            ReplayError::None(_) | ReplayError::Name(_) => {
                this.hint("a patch is named by its place and its item: 01-P1.patch")
            }
            ReplayError::Form(_) => this.hint("split it, or copy it to a file of its own"),
            ReplayError::Apply { .. } => this.hint(
                "make it anew against the branch as it is, with git diff --binary; what was \
                 applied before stays",
            ),
        }
    }
}

impl From<CloneError> for Error {
    fn from(error: CloneError) -> Self {
        let this = Self::from_error(&error);
        match error {
            CloneError::Exists(_) => this.hint("name a folder that does not exist yet with --at"),
            CloneError::Inside { .. } => this.hint("name a folder elsewhere with --at"),
            CloneError::Unfaithful { .. } => {
                this.hint("name a folder on another file system with --at")
            }
            CloneError::Read(error) => error.into(),
            CloneError::File(_) | CloneError::Git(_) => this,
        }
    }
}

impl From<ItemError> for Error {
    fn from(error: ItemError) -> Self {
        let refused = || Self::not_allowed(error.to_string());
        match error {
            ItemError::NoItem { .. } => {
                Self::from_error(&error).hint("see the items with codeboost item list")
            }
            ItemError::State { issue, state, .. } => refused().hint(match state {
                TaskState::Merging => format!("wait for the merge: codeboost status {issue}"),
                TaskState::NeedsApproval | TaskState::PossiblyFixed => {
                    format!("decide on it first: codeboost status {issue}")
                }
                _ => format!("see why: codeboost log {issue}"),
            }),
            ItemError::Amendment { issue, .. } => refused()
                .hint(format!(
                    "declare them: codeboost plan amend {issue}, then codeboost plan approve {issue}"
                ))
                .hint(format!("or undo them: codeboost item undo {issue}"))
                .hint(format!(
                    "or leave them to the review, where each has to be acknowledged: codeboost \
                     item go-on {issue}"
                )),
            ItemError::Proposed { issue, .. } => refused()
                .hint(format!(
                    "take what is proposed: codeboost plan amend {issue}, then codeboost plan \
                     approve {issue}"
                ))
                .hint(format!("or write it yourself: codeboost plan edit {issue}"))
                .hint(format!("or try again as the plan is: codeboost item go-on {issue}")),
            ItemError::Scripts { issue, .. } => Self { code: exit_code::Outcome::Waits.code(), ..refused() }
                .hint(format!("look at them and approve them: codeboost check approve {issue}")),
            ItemError::ChangedSince(_) => {
                refused().hint("declare it with codeboost plan amend, or undo it by hand as an item")
            }
            ItemError::NotPaused { issue, .. } => {
                refused().hint(format!("see where it stands: codeboost status {issue}"))
            }
            ItemError::Open { issue, ref item, same, .. } => {
                let end = format!("bring it to an end: codeboost item end {issue} {item}");
                let this = refused().hint(end);
                if same {
                    this.hint(format!(
                        "or begin anew and leave that workspace on disk: codeboost item begin \
                         {issue} {item} --again"
                    ))
                } else {
                    this.hint(format!("or give it up: codeboost item abandon {issue} {item}"))
                }
            }
            ItemError::NotOpen(issue) => {
                refused().hint(format!("begin one: codeboost item begin {issue} P1"))
            }
            ItemError::OtherItem { ref open, .. } => {
                refused().hint(format!("name {open}, or leave the item out"))
            }
            ItemError::Dependencies { ref missing, .. } => {
                let first = missing.first().map_or("", |item| item.as_str());
                refused().hint(format!(
                    "do {first} first, or state which commit did it: codeboost ledger record \
                     COMMIT --item {first}"
                ))
            }
            ItemError::Links { .. } => {
                refused().hint("change the plan: declare the link and its target in two items")
            }
            ItemError::NoHead(_) => {
                refused().hint("see the branch with git for-each-ref; add the task again with it")
            }
            ItemError::Moved { issue, ref item, .. } => refused()
                .hint(format!(
                    "begin anew on the new commit: codeboost item begin {issue} {item} --again; \
                     the old workspace stays on disk"
                ))
                .hint("take your changes over from there"),
            ItemError::CheckedOut { ref folder, .. } => refused().hint(format!(
                "no checked-out branch is moved; check out another one there: git -C {} switch \
                 --detach; then run this again",
                folder.display()
            )),
            ItemError::Gone(_) => Self::from_error(&error)
                .hint("put it back, or give the item up: codeboost item abandon"),
            ItemError::NotMoved { .. } => Self::from_error(&error)
                .hint("the commit is made and recorded; run this again to go on from there"),
            ItemError::Interrupted => {
                Self::from_error(&error).hint("what ran to its end before is recorded")
            }
            ItemError::Replay(error) => error.into(),
            ItemError::Sandbox(error) => error.into(),
            ItemError::Clone(error) => error.into(),
            ItemError::Commit(error) => Self::from_error(&error),
            ItemError::File(error) => error.into(),
            ItemError::Git(error) => error.into(),
            ItemError::Read(error) => error.into(),
            ItemError::Store(error) => error.into(),
        }
    }
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    causes: &'a [String],
    hints: &'a [String],
    exit_code: u8,
}
