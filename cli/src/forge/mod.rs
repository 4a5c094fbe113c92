//! Forges: where issues, pull requests and the merge happen.
//!
//! [`local`] needs nothing but git; [`issue_file`] reads its issues. Whatever can't be read with certainty is `Unknown` or an error,
//! and both block: a failed read is never an empty answer. A forge changes nothing but in
//! [`Forge::land`] and [`Forge::push_head`], and what these report is never taken for the truth;
//! whoever calls them reads back.

pub mod gh;
pub mod issue_file;
pub mod local;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use codeboost_schema::ids::CommitId;
use serde::Serialize;

use crate::config::{HeadAfter, MergeMethod};
use crate::git::refs::{RemoteError, Reported};
use crate::git::run::GitError;

/// Where issues, pull requests and the merge happen.
pub trait Forge: fmt::Debug {
    /// Where the merge lands, in words: `the remote origin`, `this repository`.
    fn place(&self) -> String;

    /// The commits that base and head name there now.
    ///
    /// # Errors
    /// [`ForgeError`] when they can't be read.
    fn read(&self) -> Result<Tips, ForgeError>;

    /// As [`Self::read`], and brings the commits here, named by refs below `keep_below`.
    ///
    /// # Errors
    /// [`ForgeError`] when they can't be read or fetched.
    fn fetch(&self, keep_below: &str) -> Result<Tips, ForgeError>;

    /// Whether the forge is another repository than this one.
    fn is_elsewhere(&self) -> bool;

    /// What becomes of the head's branch when `wanted` is asked for, and why it is something else.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be told.
    fn head_after(&self, wanted: HeadAfter) -> Result<(HeadAfter, Option<String>), ForgeError>;

    /// What guards base and head when this landing happens, or what forbids it.
    ///
    /// # Errors
    /// [`ForgeError::NotAllowed`] names what forbids it, other variants that it is unknown.
    fn guard(&self, landing: &Landing<'_>) -> Result<Guard, ForgeError>;

    /// Brings the head there to `new`, from exactly `old`: one of its ancestors, or what a rebase
    /// made it of.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be tried.
    fn push_head(&self, old: &CommitId, new: &CommitId) -> Result<Reported, ForgeError>;

    /// What has to be remembered before a landing to tell later what became of it.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be read.
    fn mark(&self, _guard: Guard) -> Result<Mark, ForgeError> {
        Ok(Mark::default())
    }

    /// Lands a commit: base and head change together, each only from its validated value.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be tried.
    fn land(&self, landing: &Landing<'_>, guard: Guard) -> Result<Reported, ForgeError>;

    /// What became of a landing that the forge itself carries out; `None` when the refs tell.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be read.
    fn landed(&self, _sent: &Sent<'_>) -> Result<Option<Landed>, ForgeError> {
        Ok(None)
    }

    /// What is to be done once `commit` is known to have landed; done again it does nothing more.
    /// Returns what came of it, for people.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be done; it landed all the same.
    fn finish(
        &self,
        _landing: (&CommitId, HeadAfter),
        _guard: Guard,
        _commit: &CommitId,
    ) -> Result<Option<String>, ForgeError> {
        Ok(None)
    }

    /// The checks that the rules of the base demand, as they stand for `head`.
    ///
    /// # Errors
    /// [`ForgeError`] when rules or checks can't be read whole.
    fn required_checks(&self, head: &CommitId) -> Result<RequiredChecks, ForgeError>;

    /// Whether something other than this task has fixed the issue.
    fn already_fixed(&self, question: &FixQuestion<'_>) -> AlreadyFixed;
}

/// What base and head name at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tips {
    /// The base branch's commit.
    pub base: CommitId,
    /// The head branch's commit; `None` where the forge does not have the branch.
    pub head: Option<CommitId>,
}

/// A commit that is to land, and what it was made and validated from.
#[derive(Debug, Clone, Copy)]
pub struct Landing<'l> {
    /// The base's validated value.
    pub base: &'l CommitId,
    /// The head's validated value.
    pub head: &'l CommitId,
    /// What the base names afterwards.
    pub commit: &'l CommitId,
    /// What becomes of the head's branch.
    pub head_after: HeadAfter,
    /// Whether the forge has the head's branch.
    pub head_is_there: bool,
    /// How the commit is made.
    pub method: MergeMethod,
    /// Its message.
    pub message: &'l str,
}

/// What is remembered of a landing before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// The pull request.
    pub pull: Option<u64>,
    /// The last removal from the merge queue that was seen.
    pub seen: Option<String>,
}

/// A landing that was begun.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'s> {
    /// The head's validated value.
    pub head: &'s CommitId,
    /// What guards it.
    pub guard: Guard,
    /// What was remembered before.
    pub mark: &'s Mark,
}

/// What became of a landing that the forge carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landed {
    /// It landed, as this commit.
    Merged(CommitId),
    /// It waits for its turn.
    Queued(String),
    /// It will not land; why, for people.
    Gone(String),
    /// Nothing shows that it was begun.
    NotYet,
}

/// What keeps anything unreviewed from landing when a ref moves at the last moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// The server compares both refs under its locks, in one atomic push.
    PinnedPush,
    /// The server compares the base alone, since the head's branch stays or is not there.
    PinnedBase,
    /// Git's ref transaction compares both.
    RefTransaction,
    /// Git's ref transaction compares the base alone, since the head is no branch here.
    BaseTransaction,
    /// The forge merges, compares the head, and refuses one that is not up to date with the base.
    StrictChecks,
    /// The forge's queue merges, and checks what it builds; the forge compares the head.
    MergeQueue,
}

impl Guard {
    /// The word in state and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PinnedPush => "pinned-push",
            Self::PinnedBase => "pinned-base",
            Self::RefTransaction => "ref-transaction",
            Self::BaseTransaction => "base-transaction",
            Self::StrictChecks => "strict-checks",
            Self::MergeQueue => "merge-queue",
        }
    }

    /// The guard of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let all = [
            Self::PinnedPush,
            Self::PinnedBase,
            Self::RefTransaction,
            Self::BaseTransaction,
            Self::StrictChecks,
            Self::MergeQueue,
        ];
        all.into_iter().find(|guard| guard.word() == word)
    }

    /// Whether the forge makes the commit that lands.
    #[must_use]
    pub fn is_by_forge(self) -> bool {
        matches!(self, Self::StrictChecks | Self::MergeQueue)
    }

    /// Whether the head is compared too.
    #[must_use]
    pub fn covers_head(self) -> bool {
        !matches!(self, Self::PinnedBase | Self::BaseTransaction)
    }

    /// In words, for the person who merges.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::PinnedPush => "one atomic push, with a lease on base and head",
            Self::PinnedBase => {
                "a push with a lease on the base alone, since the head's branch stays; \
                 what lands is exactly the reviewed head"
            }
            Self::RefTransaction => "one ref transaction that compares base and head",
            Self::BaseTransaction => {
                "a ref transaction that compares the base alone, since the head is no branch here; \
                 what lands is exactly the reviewed head"
            }
            Self::StrictChecks => {
                "a merge by GitHub that names the head, where required checks have to pass on the \
                 newest base"
            }
            Self::MergeQueue => "the merge queue of the base, with the head named",
        }
    }
}

/// The checks that the rules of a base demand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequiredChecks {
    /// Empty only when every source of rules was read and demands nothing.
    pub checks: Vec<RequiredCheck>,
    /// How many approving reviews on the forge the rules demand.
    pub reviews: u64,
}

/// One required check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredCheck {
    /// Its name.
    pub name: String,
    /// How it stands for the head.
    pub state: CheckState,
}

/// How a required check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    /// It passed.
    Passed,
    /// It has not ended, or has not begun.
    Pending,
    /// It failed.
    Failed,
}

/// What the already-fixed check looks at.
#[derive(Debug)]
pub struct FixQuestion<'q> {
    /// The issue.
    pub issue: u64,
    /// The file that the issue was read from.
    pub issue_file: Option<&'q Path>,
    /// The base as it was when the task began.
    pub since: &'q CommitId,
    /// The base now.
    pub base: &'q CommitId,
    /// Commits that the task made itself.
    pub ours: &'q BTreeSet<CommitId>,
    /// Other tasks of the same issue that merged or are published, in words.
    pub others: &'q [String],
}

/// Whether something else has fixed the issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlreadyFixed {
    /// Everything was read, and nothing has.
    No,
    /// What was found; at least one, in a fixed order.
    Found(Vec<Finding>),
    /// Something could not be read: no answer, which blocks as well.
    Unknown(String),
}

/// Something that may have fixed the issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// The issue is closed.
    Closed {
        /// The file that says so.
        file: PathBuf,
    },
    /// Other work on the same issue.
    Linked {
        /// In words.
        words: String,
    },
    /// A commit of the base names the issue.
    Commit {
        /// The commit.
        commit: CommitId,
        /// The first line of its message.
        subject: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { file } => write!(f, "{} says that it is closed", file.display()),
            Self::Linked { words } => f.write_str(words),
            Self::Commit { commit, subject } => {
                write!(f, "commit {commit:.12} of the base names it: {subject}")
            }
        }
    }
}

/// Why a forge can't answer or must not act.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The forge can't be read or reached.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// GitHub can't be asked, refused, or gave no answer that could be relied on.
    #[error(transparent)]
    Gh(#[from] gh::GhError),
    /// The base's branch is not there.
    #[error("{place} has no branch {branch}")]
    NoBase {
        /// Where.
        place: String,
        /// The branch.
        branch: String,
    },
    /// The base is no branch that could move.
    #[error("{0} is no branch")]
    NotABranch(String),
    /// It may not happen here as things are.
    #[error("{what}")]
    NotAllowed {
        /// Why.
        what: String,
        /// What makes it possible.
        hint: String,
    },
}
