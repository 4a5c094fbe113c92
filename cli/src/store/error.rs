//! What can go wrong with the state.

use std::path::PathBuf;

use crate::git::repository::RepositoryError;
use crate::git::run::GitError;
use crate::ledger::LedgerError;
use crate::stage::FileError;
use crate::task::TaskState;

/// Why the state can't be used, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// `init` was not run here.
    #[error("codeboost is not set up in this repository")]
    NotSetUp,
    /// A part of the state is a symbolic link, or not the kind of file it should be.
    #[error("{} is not {expected} of its own", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
    },
    /// Others than the owner can get at a part of the state.
    #[error("{} can be opened by others (mode {mode:04o})", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The most that is accepted.
        wanted: u32,
    },
    /// A newer codeboost wrote the state.
    #[error("the state has version {found}, and this codeboost knows versions up to {known}")]
    NewerVersion {
        /// The version of the state.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The database was not made by codeboost.
    #[error("{} is not a state of codeboost", .0.display())]
    Foreign(PathBuf),
    /// The database can't be read as what it should hold.
    #[error("the state is damaged: {0}")]
    Damaged(String),
    /// Another process has been writing for too long.
    #[error("another process has been writing the state for {0} seconds")]
    Busy(u64),
    /// The signing key can't be read as one.
    #[error("{} is not an Ed25519 key without passphrase", .0.display())]
    Key(PathBuf),
    /// There is no signing key.
    #[error("there is no signing key")]
    NoKey,
    /// The operating system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// Evidence whose bytes no longer have its digest.
    #[error("the evidence {0} was altered")]
    Evidence(String),
    /// No task of this issue.
    #[error("there is no task for issue #{0}")]
    NoTask(u64),
    /// The task of that issue has ended.
    #[error("the task for issue #{issue} is {state}")]
    TaskEnded {
        /// Its issue.
        issue: u64,
        /// How it ended.
        state: TaskState,
    },
    /// No open task at all.
    #[error("no task is open")]
    NoOpenTask,
    /// Several tasks are open and none was named.
    #[error("{} tasks are open: {}", .0.len(), list(.0))]
    SeveralTasks(Vec<u64>),
    /// A task of this issue is open already.
    #[error("a task for issue #{0} is open already")]
    TaskExists(u64),
    /// A transition that the table does not have.
    #[error("the task for issue #{issue} is {from}, which can't become {to}")]
    Transition {
        /// The task's issue.
        issue: u64,
        /// Where the task stands.
        from: TaskState,
        /// Where it should go.
        to: TaskState,
    },
    /// The task changed since it was read.
    #[error("the task for issue #{0} was changed by another process meanwhile")]
    TaskMoved(u64),
    /// The task has no plan.
    #[error("the task for issue #{0} has no plan")]
    NoPlan(u64),
    /// No suggested edit of that name, or not of this task.
    #[error("there is no suggestion {0}")]
    NoSuggestion(String),
    /// Another revision of the plan came between.
    #[error("the plan of issue #{issue} is at r{found}, not at r{expected} any more")]
    PlanMoved {
        /// The task's issue.
        issue: u64,
        /// The revision that was meant; 0 for none.
        expected: u64,
        /// The newest revision; 0 for none.
        found: u64,
    },
    /// The ledger does not allow it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The repository can't be used.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// SQLite refused.
    #[error("the state can't be read or written")]
    Sql(#[from] rusqlite::Error),
}

fn list(issues: &[u64]) -> String {
    issues.iter().map(|issue| format!("#{issue}")).collect::<Vec<_>>().join(", ")
}
