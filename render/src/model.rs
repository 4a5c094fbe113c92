//! What one review page shows, gathered by the command line and drawn here.
//!
//! Everything here is data of the moment the page was made ("recorded"); what a reader drafts in
//! the page never enters it.

use std::collections::BTreeMap;
use std::sync::Arc;

use codeboost_schema::bytes::RepoBytes;
pub use codeboost_schema::decisions::SignedForm;
use codeboost_schema::ids::{CommitId, Fingerprint, ItemId, SegmentKey};
use codeboost_schema::ledger::Origin;
use codeboost_schema::link::Link;
use codeboost_schema::plan::Plan;

/// One review of one task.
#[derive(Debug, Clone)]
pub struct Review {
    /// Name of the repository, for people.
    pub repository: String,
    /// Where the merge happens.
    pub forge: Forge,
    /// The issue.
    pub issue: Issue,
    /// The plan that the changes are linked to.
    pub plan: Plan,
    /// The changes.
    pub link: Link,
    /// Both sides of each file of `link.files`, in that order.
    pub contents: Vec<Contents>,
    /// The commits that segments name.
    pub commits: BTreeMap<CommitId, Commit>,
    /// One per item of the plan, in its order.
    pub items: Vec<ItemReview>,
    /// Recorded choices that are in force.
    pub choices: Vec<Choice>,
    /// Recorded acknowledgements whose segment is still there.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Questions with their answers, and change requests, oldest first.
    pub notes: Vec<Note>,
    /// Problems from review rounds and checks.
    pub problems: Vec<Problem>,
    /// Findings of the advisory reader.
    pub findings: Vec<Finding>,
    /// What forbids the merge now, with what is recorded; empty when nothing does.
    pub blockers: Vec<Blocker>,
    /// The task; `None` when the page was made from files alone.
    pub task: Option<Task>,
    /// Steps of the last merge attempt, in order.
    pub merge_steps: Vec<MergeStep>,
    /// How many reviewers must approve, and what of it the page must say.
    pub reviewers: Vec<String>,
    /// Why nothing can be decided with this page; `None` when its decisions can be applied.
    pub read_only: Option<String>,
    /// Sentences that the page must show, such as budgets that were hit.
    pub notices: Vec<String>,
    /// RFC 3339 UTC.
    pub rendered_at: String,
    /// Version of codeboost.
    pub generator: String,
}

/// Where the merge happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forge {
    /// A git remote or a local repository.
    Local,
    /// GitHub.
    GitHub,
}

/// The issue that a plan is for.
#[derive(Debug, Clone)]
pub struct Issue {
    /// Its number.
    pub number: u64,
    /// Its title; empty when unknown.
    pub title: String,
    /// Its text as Markdown, untrusted; `None` when unknown.
    pub body: Option<String>,
    /// Who wrote it; `None` when unknown.
    pub author: Option<String>,
    /// The pull request, for people: `#12`.
    pub pull_request: Option<String>,
}

/// Both sides of one changed file.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Bytes at base; `None` when absent, a submodule, or left out for size.
    pub old: Option<Arc<[u8]>>,
    /// Bytes at head.
    pub new: Option<Arc<[u8]>>,
    /// Why a side was left out; `None` when nothing was.
    pub left_out: Option<String>,
}

/// One commit of the range.
#[derive(Debug, Clone)]
pub struct Commit {
    /// First line of the message, untrusted.
    pub subject: RepoBytes,
    /// Name of the author, untrusted.
    pub author: RepoBytes,
    /// RFC 3339, with the author's offset.
    pub authored_at: String,
    /// The item it was made for.
    pub item: Option<ItemId>,
    /// How codeboost knows; `None` when the ledger has no entry.
    pub origin: Option<Origin>,
    /// The item that it was made for and that a later revision removed.
    pub was: Option<ItemId>,
    /// Who vouched for it and when, for people.
    pub adopted_by: Option<String>,
}

/// What is recorded about one item.
#[derive(Debug, Clone)]
pub struct ItemReview {
    /// Which item.
    pub item: ItemId,
    /// Its fingerprint now, choices in force included.
    pub fingerprint: Fingerprint,
    /// State of its approval.
    pub approval: Approval,
    /// Who approved and when, for people.
    pub approved_by: Vec<String>,
    /// Result of its `cmd` checks.
    pub tests: Tests,
    /// Result of the last review round.
    pub ai_review: AiReview,
}

/// State of an approval.
#[derive(Debug, Clone)]
pub enum Approval {
    /// Never approved.
    Unreviewed,
    /// Approved, and still true.
    Approved,
    /// Approved once, and no longer true.
    Stale {
        /// Why; at least one.
        reasons: Vec<StaleReason>,
        /// What was approved against what is there now, per file.
        since: Vec<SinceFile>,
    },
}

/// Why an approval is no longer true.
#[derive(Debug, Clone)]
pub struct StaleReason {
    /// A word of the closed list: `code`, `file-change`, `context`, `definition`, `dependency`,
    /// `assigned`, `ambiguous`, `plan-identity`, `queue-replaced`.
    pub reason: String,
    /// For people: `Depends on P2, which changed`.
    pub words: String,
    /// Bytes when it was approved.
    pub before: Option<RepoBytes>,
    /// Bytes now.
    pub after: Option<RepoBytes>,
}

/// One file in the difference between an approved state of an item and the one now.
#[derive(Debug, Clone)]
pub struct SinceFile {
    /// The path now, or then if it is no longer changed.
    pub path: RepoBytes,
    /// The item's own changed lines then and now, compared; in order.
    pub lines: Vec<SinceLine>,
    /// What changed about the file besides lines, in words: before, after.
    pub meta: Option<(String, String)>,
}

/// One line of the item's change, compared with what was approved.
#[derive(Debug, Clone)]
pub struct SinceLine {
    /// `=` in both, `-` only in what was approved, `+` only now.
    pub status: char,
    /// The line's own operation: `-` or `+`.
    pub op: char,
    /// The line with its terminator.
    pub text: RepoBytes,
    /// Context of the line.
    pub context: RepoBytes,
}

/// Result of the `cmd` checks of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tests {
    /// All of them ran on this head and passed.
    Passed {
        /// How many.
        total: u32,
        /// Where they ran, for people: `host, by A. Person`.
        place: String,
    },
    /// Some failed on this head.
    Failed {
        /// How many failed.
        failed: u32,
        /// Of how many.
        total: u32,
        /// Output of the failed ones, bounded, untrusted.
        output: RepoBytes,
    },
    /// None of them ran.
    NotRun {
        /// How many there are.
        total: u32,
    },
    /// They ran on another head or with another command.
    OutOfDate {
        /// How many there are.
        total: u32,
    },
    /// The item has none.
    NoneDefined,
}

/// Result of the last review round for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AiReview {
    /// So many problems are open.
    Open(u32),
    /// None is open.
    NoneOpen,
    /// There was no round.
    NotRun,
}

/// A recorded choice about an ambiguous or unplanned segment.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Place of the segment in the link.
    pub segment: u32,
    /// Its key.
    pub key: SegmentKey,
    /// The item it is assigned to; `None` when it is accepted as it is.
    pub item: Option<ItemId>,
    /// Who and when, for people.
    pub by: String,
}

/// A recorded acknowledgement of one tag of one segment.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    /// Place of the segment in the link.
    pub segment: u32,
    /// The tag's word.
    pub tag: String,
}

/// A question or a change request.
#[derive(Debug, Clone)]
pub struct Note {
    /// Its id, a UUID.
    pub id: String,
    /// What it is.
    pub kind: NoteKind,
    /// The item it is about.
    pub item: ItemId,
    /// The segment it is about, where that is still there.
    pub segment: Option<u32>,
    /// First and last line within the segment; counts from 1.
    pub lines: Option<(u64, u64)>,
    /// The text, Markdown, untrusted.
    pub text: String,
    /// Who and when, for people.
    pub by: String,
    /// The answer to a question, Markdown, untrusted.
    pub answer: Option<String>,
    /// Whether the code has changed since.
    pub outdated: bool,
}

/// What a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// Answered, changes nothing.
    Question,
    /// Pending: saved for the next revision, blocks the merge.
    Request,
    /// Sent with an earlier rejection.
    Sent,
}

/// A problem from a review round or a failed check.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Its id, a UUID.
    pub id: String,
    /// The item it is filed on.
    pub item: ItemId,
    /// `open`, `fixed` or `accepted`.
    pub state: String,
    /// Its text, untrusted.
    pub text: String,
    /// Where it came from, for people.
    pub source: String,
}

/// A finding of the advisory reader; it never gates.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its id, a UUID.
    pub id: String,
    /// What it is about.
    pub subject: String,
    /// `open`, `accepted`, `rejected` or `deferred`.
    pub state: String,
    /// Where, for people.
    pub location: Option<String>,
    /// Its text, untrusted.
    pub text: String,
}

/// Something that forbids the merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// A word: `approval`, `ambiguous`, `unplanned`, `acknowledge`, `tests`, `problem`,
    /// `requests`, `task`, `base`, `head`, `rules`, `already-fixed`, …
    pub code: String,
    /// For people: `Review 2 stale items`.
    pub words: String,
    /// Where the fix is.
    pub target: Option<Target>,
}

/// A place in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A row: an item's id, `ambiguous`, `unplanned`.
    Row(String),
    /// A segment.
    Segment(u32),
    /// The notes of an item.
    Notes(ItemId),
}

/// The task that the page belongs to.
#[derive(Debug, Clone)]
pub struct Task {
    /// A word of the contract: `in review`, `needs human`, …
    pub state: String,
    /// Headline of the banner for states that wait for a person.
    pub headline: Option<String>,
    /// The actions that the state offers, main action first: word for the decision, label.
    pub actions: Vec<(String, String)>,
    /// The cause that a decision on the state must name.
    pub cause: Option<String>,
}

/// One step of a merge attempt.
#[derive(Debug, Clone)]
pub struct MergeStep {
    /// `Fetch`, `Rebase`, `Push`, …
    pub name: String,
    /// `done`, `failed`, `running`, `waiting`, `skipped`.
    pub state: String,
    /// Elapsed time in seconds, where it ran.
    pub seconds: Option<u64>,
    /// What failed, or what is awaited, for people.
    pub detail: Option<String>,
}
