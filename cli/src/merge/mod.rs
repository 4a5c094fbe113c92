//! Landing what was reviewed, and nothing else: a resumable sequence of steps.
//!
//! | step | here | effect, and what is written before it |
//! |---|---|---|
//! | Fetch | reads base and head, and finds out what became of earlier attempts | private refs only |
//! | Rebase | replays the head onto a base that moved, or says what keeps it from that | the rebase, with what became of each commit |
//! | Push | brings a head that lags behind on the forge up to the reviewed one | the step, with both ids |
//! | Re-run checks | links the pair anew and asks the gate: approvals, choices, checks | none |
//! | Required checks | asks the forge | none |
//! | Already-fixed check | asks the forge | none |
//! | Merge | makes the commit, reads and judges everything once more, lands it, reads back | the attempt, with the commit |
//!
//! | attempt | task | becomes |
//! |---|---|---|
//! | `submitting` | `merging` | `merged` when the base has the commit, whatever was answered; `failed` when it has not; stays while it can't be told |
//! | `failed` | `in review`, or `approved, merge blocked` when the other side refused | `merged` when a late push turns out to have landed |
//! | `merged` | `merged` | nothing |
//!
//! Where the process ends does not matter. Before the attempt is written nothing was sent, and the
//! next run begins anew. Afterwards the attempt names the commit, and every run first looks whether
//! the base has it. The push itself moves base and head only from the values that were judged, so a
//! second one can't land twice, and nothing lands that was not judged. What a push reports is for
//! people; the truth is read.
//!
//! Absent on purpose: a way to merge in spite of a blocker.

pub mod fixed;
mod message;
pub mod publish;
pub mod rebase;
mod sequence;
#[cfg(test)]
mod tests;

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::plan::Plan;
use serde::Serialize;

use crate::config::{HeadAfter, MergeMethod};
use crate::error;
use crate::exit_code::Outcome;
use crate::forge::{Finding, ForgeError};
use crate::gate::Blocker;
use crate::git::identity::IdentityError;
use crate::git::run::GitError;
use crate::store::{REBASE_CONFLICT, StepState, StoreError};
use crate::task::TaskState;

pub use sequence::Sequence;

/// The steps, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum Step {
    /// Reads base and head.
    Fetch,
    /// Brings the head onto a moved base.
    Rebase,
    /// Brings the forge's head up to the reviewed one.
    Push,
    /// Approvals, choices and `cmd` checks for exactly this pair.
    Checks,
    /// What the rules of the base demand.
    RequiredChecks,
    /// Whether something else has fixed the issue.
    AlreadyFixed,
    /// Makes the commit and lands it.
    Merge,
}

impl Step {
    /// The steps, in order.
    pub const ALL: [Self; 7] = [
        Self::Fetch,
        Self::Rebase,
        Self::Push,
        Self::Checks,
        Self::RequiredChecks,
        Self::AlreadyFixed,
        Self::Merge,
    ];

    /// The name, as people see it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fetch => "Fetch",
            Self::Rebase => "Rebase",
            Self::Push => "Push",
            Self::Checks => "Re-run checks",
            Self::RequiredChecks => "Required checks",
            Self::AlreadyFixed => "Already-fixed check",
            Self::Merge => "Merge",
        }
    }

    /// The place in the order, from 1.
    #[must_use]
    pub fn nth(self) -> usize {
        self as usize + 1
    }
}

impl From<Step> for &'static str {
    fn from(step: Step) -> Self {
        step.name()
    }
}

/// A step that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Which.
    pub step: Step,
    /// How.
    pub state: StepState,
    /// What came of it, for people.
    pub words: String,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// What the gate says about one pair of base and head.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What keeps it from merging; empty: it may.
    pub blockers: Vec<Blocker>,
    /// How the `cmd` checks stand, for people: `3 of 3 passed`.
    pub checks: String,
    /// The approved plan, for the message.
    pub plan: Plan,
}

/// Says whether a task may merge as one pair of base and head.
pub trait Judge {
    /// Reads everything anew, links `base..head`, and compares with what is recorded now.
    ///
    /// # Errors
    /// Whatever can't be read: unknown, so it blocks.
    fn judge(&self, base: &CommitId, head: &CommitId) -> error::Result<Verdict>;
}

/// What the person chose.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How the commit is made.
    pub method: MergeMethod,
    /// What becomes of the head's branch.
    pub head_after: HeadAfter,
    /// What to do about something that may have fixed the issue.
    pub if_fixed: IfFixed,
    /// Whether the head is brought onto a base that moved; else such a base ends the run.
    pub rebase: bool,
    /// Whether required checks and a merge queue are waited for; else the run ends and the next one
    /// goes on.
    pub waits: bool,
}

/// What to do about something that may have fixed the issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfFixed {
    /// Stop, so that a person looks at it.
    Stop,
    /// The person has looked: go on, and remember what was found.
    GoOn,
}

/// How a run of the sequence ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Ending {
    /// It landed.
    Merged {
        /// What the base named when it landed.
        commit: CommitId,
        /// The validated base.
        base: CommitId,
        /// The validated head.
        head: CommitId,
        /// What guarded it, one word.
        guard: String,
        /// What became of the head's branch; `None` when an earlier run landed it.
        head_after: Option<HeadAfter>,
        /// Whether an earlier run had landed it.
        found: bool,
    },
    /// The task is in a state from which nothing merges.
    WrongState {
        /// The state.
        state: TaskState,
        /// Why it is in it.
        reason: String,
    },
    /// Something is not yet true.
    Blocked {
        /// What; at least one.
        #[serde(serialize_with = "named")]
        blockers: Vec<Blocker>,
    },
    /// The base has commits that the head has not.
    BaseMoved {
        /// The base that was reviewed.
        expected: CommitId,
        /// The base now.
        found: CommitId,
        /// The head's branch where the merge happens; `None` when it is not there.
        #[serde(skip)]
        head_there: Option<CommitId>,
        /// What keeps the head from being brought onto it; `None` when that was not tried.
        stays: Option<Obstacle>,
    },
    /// The head can't be brought onto a base that moved: both change the same places.
    RebaseConflict {
        /// The base now.
        base: CommitId,
        /// The commit that could not be replayed.
        commit: CommitId,
        /// Its author.
        author: String,
        /// The first line of its message.
        subject: String,
        /// The item that the ledger says it was made for.
        item: Option<ItemId>,
        /// Where.
        #[serde(serialize_with = "paths")]
        files: Vec<RepoPath>,
        /// The head's branch where the merge happens; `None` when it is not there.
        #[serde(skip)]
        head_there: Option<CommitId>,
    },
    /// The head is not the one that was reviewed.
    HeadMoved {
        /// The head that was reviewed.
        expected: CommitId,
        /// The head now; `None` when its branch is gone.
        found: Option<CommitId>,
    },
    /// Something else may have fixed the issue.
    PossiblyFixed {
        /// What was found.
        findings: Vec<Finding>,
    },
    /// Whether something else has fixed the issue can't be told.
    FixedUnknown {
        /// Why.
        why: String,
    },
    /// Required checks have not ended.
    Waits {
        /// Their names.
        checks: Vec<String>,
    },
    /// Required checks took too long.
    ChecksLate {
        /// Their names.
        checks: Vec<String>,
        /// For how many minutes they were awaited.
        minutes: u64,
    },
    /// It is in the merge queue.
    Queued {
        /// Where, for people.
        words: String,
    },
    /// What the base demands, or whether it is met, can't be told.
    RulesUnknown {
        /// Why.
        why: String,
    },
    /// Required checks failed.
    ChecksFailed {
        /// Their names.
        checks: Vec<String>,
    },
    /// Base and head change the same places.
    Conflict {
        /// Where.
        #[serde(serialize_with = "paths")]
        files: Vec<RepoPath>,
    },
    /// It may not happen here as things are.
    NotAllowed {
        /// Why.
        why: String,
        /// What makes it possible.
        hint: String,
    },
    /// The other side refused.
    Refused {
        /// In its own words.
        words: String,
    },
    /// Whether it landed can't be told yet.
    Unclear {
        /// What is known.
        words: String,
    },
}

/// What keeps something from being done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// Why.
    pub why: String,
    /// What makes it possible.
    pub hint: String,
}

fn named<S: serde::Serializer>(blockers: &[Blocker], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        blockers.iter().map(
            |blocker| serde_json::json!({"code": blocker.code.as_str(), "words": blocker.words}),
        ),
    )
}

fn paths<S: serde::Serializer>(files: &[RepoPath], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(RepoPath::lossy))
}

impl Ending {
    /// The exit code's meaning.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Merged { .. } => Outcome::Done,
            Self::WrongState { state, .. } if state.waits_for_person() => Outcome::Waits,
            Self::PossiblyFixed { .. }
            | Self::Waits { .. }
            | Self::Queued { .. }
            | Self::RebaseConflict { .. } => Outcome::Waits,
            Self::WrongState { .. }
            | Self::Blocked { .. }
            | Self::BaseMoved { .. }
            | Self::HeadMoved { .. }
            | Self::FixedUnknown { .. }
            | Self::ChecksFailed { .. }
            | Self::ChecksLate { .. }
            | Self::RulesUnknown { .. }
            | Self::Conflict { .. }
            | Self::NotAllowed { .. }
            | Self::Refused { .. } => Outcome::NotAllowed,
            Self::Unclear { .. } => Outcome::Failed,
        }
    }

    /// One word for the record.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Merged { .. } => "merged",
            Self::WrongState { .. } => "wrong-state",
            Self::Blocked { .. } => "blocked",
            Self::BaseMoved { .. } => "base-moved",
            Self::RebaseConflict { .. } => REBASE_CONFLICT,
            Self::HeadMoved { .. } => "head-moved",
            Self::PossiblyFixed { .. } => "possibly-fixed",
            Self::FixedUnknown { .. } => "fixed-unknown",
            Self::Waits { .. } => "waits",
            Self::ChecksFailed { .. } => "checks-failed",
            Self::ChecksLate { .. } => "checks-late",
            Self::Queued { .. } => "queued",
            Self::RulesUnknown { .. } => "rules-unknown",
            Self::Conflict { .. } => "conflict",
            Self::NotAllowed { .. } => "not-allowed",
            Self::Refused { .. } => "refused",
            Self::Unclear { .. } => "unclear",
        }
    }

    /// Why, for people: a lower-case fragment, then maybe more lines.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Merged { commit, found: false, .. } => format!("landed as {commit:.12}"),
            Self::Merged { commit, found: true, .. } => {
                format!("an earlier run had landed it as {commit:.12}")
            }
            Self::WrongState { state, reason } => format!("the task is {state}: {reason}"),
            Self::Blocked { blockers } => {
                let words: Vec<_> = blockers.iter().map(|blocker| &*blocker.words).collect();
                words.join("\n")
            }
            Self::BaseMoved { expected, found, stays, .. } => {
                let moved = format!("the base moved from {expected:.12} to {found:.12}");
                match stays {
                    None => moved,
                    Some(Obstacle { why, .. }) => format!("{moved}, and {why}"),
                }
            }
            Self::RebaseConflict { base, commit, author, subject, item, files, .. } => {
                let whose = match item {
                    Some(item) => format!("{item}'s commit"),
                    None => "nobody's commit".to_owned(),
                };
                let names: Vec<_> = files.iter().map(|file| file.lossy()).collect();
                format!(
                    "{whose} {commit:.12} by {author} ({subject}) and the new base {base:.12} \
                     change the same places in {}",
                    names.join(", ")
                )
            }
            Self::HeadMoved { expected, found: Some(found) } => {
                format!("the head moved from {expected:.12} to {found:.12}")
            }
            Self::HeadMoved { expected, found: None } => {
                format!("the branch of the head is gone; {expected:.12} was reviewed")
            }
            Self::PossiblyFixed { findings } => {
                let words: Vec<_> = findings.iter().map(Finding::to_string).collect();
                words.join("\n")
            }
            Self::FixedUnknown { why } => {
                format!("whether the issue is already fixed can't be told: {why}")
            }
            Self::Waits { checks } => {
                format!("required checks have not ended: {}", checks.join(", "))
            }
            Self::ChecksLate { checks, minutes } => format!(
                "required checks have not ended within {minutes} minutes: {}",
                checks.join(", ")
            ),
            Self::Queued { words } => words.clone(),
            Self::RulesUnknown { why } => {
                format!("what the base demands, or whether it is met, can't be told: {why}")
            }
            Self::ChecksFailed { checks } => {
                format!("required checks failed: {}", checks.join(", "))
            }
            Self::Conflict { files } => {
                let names: Vec<_> = files.iter().map(|file| file.lossy()).collect();
                format!("base and head change the same places in {}", names.join(", "))
            }
            Self::NotAllowed { why, .. } => why.clone(),
            Self::Refused { words } => format!("refused: {words}"),
            Self::Unclear { words } => format!("whether it landed can't be told yet: {words}"),
        }
    }
}

/// What went wrong in a way that says nothing about the merge.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Whether the head can be brought onto another base can't be told.
    #[error(transparent)]
    Rebase(#[from] rebase::RebaseError),
    /// The state can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The forge can't be read.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Nobody to make the commit as.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The pair can't be judged.
    #[error("can't judge what is to merge: {}", .0.message())]
    Judge(error::Error),
    /// Other processes keep changing the state.
    #[error("other processes changed the state each time it was about to merge")]
    Restless,
}
