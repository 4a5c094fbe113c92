//! What forbids the merge, said so that each line names its fix.
//!
//! Rules only: the facts come in, the blockers go out, in the order in which a person works
//! through them. There is no way around a blocker. What is not known blocks like what is wrong.

use codeboost_schema::bytes::{RepoBytes, as_base64};
use codeboost_schema::canonical;
use codeboost_schema::form::ApprovalState;
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use codeboost_schema::link::Row;
use codeboost_schema::plan::{CheckKind, Item};
use serde::Serialize;

use crate::config::EvidenceSource;
use crate::plan::v1::tokenize;
use crate::task::TaskState;

/// Something that forbids the merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// What kind of thing it is.
    pub code: Code,
    /// For people, as an instruction: `Review 2 stale items`.
    pub words: String,
    /// Where the fix is, in the review.
    pub target: Option<Target>,
}

/// The kinds of blockers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The task is not in a state from which it can be merged.
    Task,
    /// The head is not the one that was linked.
    Head,
    /// The base is not the one that was linked.
    Base,
    /// An item is not approved, or no longer.
    Approval,
    /// An ambiguous change was not decided.
    Ambiguous,
    /// An unplanned change was not decided.
    Unplanned,
    /// A tag was not acknowledged.
    Acknowledge,
    /// A check did not pass on this head.
    Tests,
    /// A problem is open.
    Problem,
    /// A change request is pending.
    Requests,
    /// A rule or required check of the forge is not met, or unknown.
    Rules,
    /// The issue seems to be fixed already, or that is unknown.
    AlreadyFixed,
}

impl Code {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Head => "head",
            Self::Base => "base",
            Self::Approval => "approval",
            Self::Ambiguous => "ambiguous",
            Self::Unplanned => "unplanned",
            Self::Acknowledge => "acknowledge",
            Self::Tests => "tests",
            Self::Problem => "problem",
            Self::Requests => "requests",
            Self::Rules => "rules",
            Self::AlreadyFixed => "already-fixed",
        }
    }
}

/// A place in the review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A row.
    Row(Row),
    /// A segment, by id.
    Segment(u32),
    /// The questions and change requests of an item.
    Notes(ItemId),
}

/// What the gate looks at.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Where the task stands, and why.
    pub task: (TaskState, String),
    /// Whether the base is still the linked one.
    pub base: Tip,
    /// Whether the head is still the linked one.
    pub head: Tip,
    /// Every item of the plan, in its order.
    pub items: Vec<ItemFacts>,
    /// Whether change requests were sent for which there is no new revision yet.
    pub is_rejected: bool,
    /// The ambiguous segments that nobody decided, by id.
    pub ambiguous: Vec<u32>,
    /// The unplanned segments that nobody decided, by id.
    pub unplanned: Vec<u32>,
    /// The segments of items and accepted ones whose tags were not all acknowledged: id, tag.
    pub unacknowledged: Vec<(u32, String)>,
}

/// What the gate looks at of one item.
#[derive(Debug, Clone)]
pub struct ItemFacts {
    /// Which item.
    pub item: ItemId,
    /// Its approval.
    pub approval: ApprovalState,
    /// Its `cmd` checks.
    pub tests: Tests,
    /// How many problems are open.
    pub open_problems: u32,
    /// How many change requests are pending.
    pub pending_requests: u32,
}

/// Whether a branch still names the commit that was linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Tip {
    /// It does.
    Same,
    /// It names another one.
    Moved(CommitId),
    /// It is gone.
    Gone,
    /// That can't be told, and why.
    Unknown(String),
}

/// Result of the `cmd` checks of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tests {
    /// All of them ran on this head, where it counts, and passed.
    Passed {
        /// How many.
        total: u32,
        /// Where they ran, for people.
        place: String,
    },
    /// Some failed on this head.
    Failed {
        /// How many failed.
        failed: u32,
        /// Of how many.
        total: u32,
        /// Output of the failed ones.
        output: RepoBytes,
    },
    /// At least one never ran where it counts, and none failed.
    NotRun {
        /// How many there are.
        total: u32,
    },
    /// They ran, but not on this head or not with this command.
    OutOfDate {
        /// How many there are.
        total: u32,
    },
    /// The item has none.
    NoneDefined,
}

/// Evidence: one run of one `cmd` check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The item whose check it is.
    pub item: ItemId,
    /// Digest of the argument list, from [`argv_digest`].
    pub argv: Digest,
    /// The commit that it ran on.
    pub head: CommitId,
    /// Where it ran.
    pub source: EvidenceSource,
    /// Who ran it there, for people; `None` for codeboost itself.
    pub by: Option<String>,
    /// Whether it ended with exit code 0.
    pub passed: bool,
    /// What it wrote, bounded.
    #[serde(serialize_with = "as_base64")]
    pub output: RepoBytes,
}

/// The name of an argument list in evidence.
#[must_use]
pub fn argv_digest(argv: &[String]) -> Digest {
    canonical::digest(&argv)
}

/// The result of the `cmd` checks of `item` on `head`.
///
/// `results`: oldest first. Only those from `counted` places count; of several for one command on
/// one head the newest one does.
#[must_use]
pub fn tests(
    item: &Item,
    results: &[CheckResult],
    head: &CommitId,
    counted: impl Fn(EvidenceSource) -> bool,
) -> Tests {
    let commands: Vec<_> =
        item.acceptance.iter().filter(|check| check.kind == CheckKind::Cmd).collect();
    let total = commands.len() as u32;
    if total == 0 {
        return Tests::NoneDefined;
    }
    let mine = || results.iter().filter(|result| result.item == item.id && counted(result.source));
    let (mut passed, mut failed, mut output, mut places) = (0, 0, Vec::new(), Vec::new());
    let mut names = Vec::new();
    for command in &commands {
        let Ok(argv) = tokenize::tokenize(&command.text) else { continue };
        let name = argv_digest(&argv);
        names.push(name.clone());
        let newest = mine().rfind(|result| result.head == *head && result.argv == name);
        match newest {
            Some(result) if result.passed => {
                passed += 1;
                let place = match (result.source, &result.by) {
                    (EvidenceSource::Sandbox, _) => "sandbox".to_owned(),
                    (EvidenceSource::Ci, _) => "ci".to_owned(),
                    (EvidenceSource::Host, Some(by)) => format!("host, by {by}"),
                    (EvidenceSource::Host, None) => "host".to_owned(),
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            Some(result) => {
                failed += 1;
                output.extend_from_slice(format!("$ {}\n", command.text).as_bytes());
                output.extend_from_slice(result.output.as_bytes());
                if !output.ends_with(b"\n") {
                    output.push(b'\n');
                }
            }
            None => {}
        }
    }
    if failed > 0 {
        Tests::Failed { failed, total, output: output.into() }
    } else if passed == total {
        Tests::Passed { total, place: places.join("; ") }
    } else if mine().any(|result| result.head != *head || !names.contains(&result.argv)) {
        Tests::OutOfDate { total }
    } else {
        Tests::NotRun { total }
    }
}

/// All that forbids the merge; empty when nothing does.
#[must_use]
pub fn blockers(facts: &Facts) -> Vec<Blocker> {
    let mut found = Vec::new();
    let mut push = |code, words: String, target| found.push(Blocker { code, words, target });

    let (state, reason) = &facts.task;
    match state {
        TaskState::InReview | TaskState::MergeBlocked | TaskState::Merging => {}
        TaskState::Queued
        | TaskState::Running
        | TaskState::NeedsHuman
        | TaskState::NeedsAmendment
        | TaskState::NeedsApproval
        | TaskState::PossiblyFixed
        | TaskState::Merged
        | TaskState::Cancelled => {
            push(Code::Task, format!("The task is {state}: {reason}"), None);
        }
    }
    for (code, name, tip) in [(Code::Head, "head", &facts.head), (Code::Base, "base", &facts.base)]
    {
        match tip {
            Tip::Same => {}
            Tip::Moved(to) if code == Code::Base => {
                push(code, format!("The base moved to {to:.12}: bring the head onto it"), None);
            }
            Tip::Moved(to) => push(code, format!("The {name} moved to {to:.12}: link again"), None),
            Tip::Gone => push(code, format!("The {name}'s branch is gone"), None),
            Tip::Unknown(why) => push(code, format!("The {name} is unknown: {why}"), None),
        }
    }

    let with = |state| facts.items.iter().filter(move |item| item.approval == state);
    for (state, words) in
        [(ApprovalState::Stale, "stale item"), (ApprovalState::Unreviewed, "unreviewed item")]
    {
        let n = with(state).count();
        if let Some(first) = with(state).next() {
            push(
                Code::Approval,
                format!("Review {}", count(n, words)),
                Some(Target::Row(Row::Item(first.item.clone()))),
            );
        }
    }
    for (code, segments, words) in [
        (Code::Ambiguous, &facts.ambiguous, "ambiguous change"),
        (Code::Unplanned, &facts.unplanned, "unplanned change"),
    ] {
        if let Some(first) = segments.first() {
            let words = format!("Resolve {}", count(segments.len(), words));
            push(code, words, Some(Target::Segment(*first)));
        }
    }
    if let Some((first, _)) = facts.unacknowledged.first() {
        let words = format!("Acknowledge {}", count(facts.unacknowledged.len(), "warning"));
        push(Code::Acknowledge, words, Some(Target::Segment(*first)));
    }

    let tests = [
        ("Open", "failed check"),
        ("Run", "check that has not run"),
        ("Run", "check again on this head"),
    ];
    for (n, (verb, words)) in tests.into_iter().enumerate() {
        let of = |item: &ItemFacts| match &item.tests {
            Tests::Failed { failed, .. } if n == 0 => *failed,
            Tests::NotRun { total } if n == 1 => *total,
            Tests::OutOfDate { total } if n == 2 => *total,
            _ => 0,
        };
        let sum: u32 = facts.items.iter().map(of).sum();
        if let Some(first) = facts.items.iter().find(|item| of(item) > 0) {
            let words = match n {
                0 => format!("{verb} {}", count(sum as usize, words)),
                1 if sum > 1 => format!("{verb} {sum} checks that have not run"),
                2 if sum > 1 => format!("{verb} {sum} checks again on this head"),
                _ => format!("{verb} 1 {words}"),
            };
            push(Code::Tests, words, Some(Target::Row(Row::Item(first.item.clone()))));
        }
    }
    let problems: u32 = facts.items.iter().map(|item| item.open_problems).sum();
    if let Some(first) = facts.items.iter().find(|item| item.open_problems > 0) {
        let words = format!("Resolve {}", count(problems as usize, "open problem"));
        push(Code::Problem, words, Some(Target::Row(Row::Item(first.item.clone()))));
    }
    let requests: u32 = facts.items.iter().map(|item| item.pending_requests).sum();
    if let Some(first) = facts.items.iter().find(|item| item.pending_requests > 0) {
        let words = format!("Send {}", count(requests as usize, "pending change request"));
        push(Code::Requests, words, Some(Target::Notes(first.item.clone())));
    }
    if facts.is_rejected {
        let words = "Make the next revision: change requests were sent".to_owned();
        push(Code::Requests, words, None);
    }
    found
}

fn count(n: usize, words: &str) -> String {
    if n == 1 { format!("1 {words}") } else { format!("{n} {words}s") }
}

#[cfg(test)]
mod gate_tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::approval::samples::{self, item};
    use crate::config::EvidenceSource::{Ci, Host, Sandbox};

    fn ready() -> Facts {
        let facts = |id: &str| ItemFacts {
            item: item(id),
            approval: ApprovalState::Approved,
            tests: Tests::NoneDefined,
            open_problems: 0,
            pending_requests: 0,
        };
        Facts {
            task: (TaskState::InReview, "linked".into()),
            base: Tip::Same,
            head: Tip::Same,
            items: vec![facts("P1"), facts("P2"), facts("P3")],
            is_rejected: false,
            ambiguous: Vec::new(),
            unplanned: Vec::new(),
            unacknowledged: Vec::new(),
        }
    }

    fn check(change: impl FnOnce(&mut Facts), expected: &[&str]) {
        let mut facts = ready();
        change(&mut facts);
        let found: Vec<_> = blockers(&facts)
            .into_iter()
            .map(|b| format!("{}: {} -> {:?}", b.code.as_str(), b.words, b.target))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn with_everything_in_place_nothing_blocks() {
        check(|_| {}, &[]);
        check(|facts| facts.task.0 = TaskState::MergeBlocked, &[]);
    }

    #[test]
    fn each_kind_blocks_and_names_its_first_fix() {
        check(
            |facts| {
                facts.items[0].approval = ApprovalState::Stale;
                facts.items[1].approval = ApprovalState::Unreviewed;
                facts.items[2].approval = ApprovalState::Stale;
                facts.ambiguous = vec![4];
                facts.unplanned = vec![5, 6, 7];
                facts.unacknowledged = vec![(8, "eol".into())];
                facts.items[1].open_problems = 2;
                facts.items[2].pending_requests = 2;
            },
            &[
                "approval: Review 2 stale items -> Some(Row(Item(P1)))",
                "approval: Review 1 unreviewed item -> Some(Row(Item(P2)))",
                "ambiguous: Resolve 1 ambiguous change -> Some(Segment(4))",
                "unplanned: Resolve 3 unplanned changes -> Some(Segment(5))",
                "acknowledge: Acknowledge 1 warning -> Some(Segment(8))",
                "problem: Resolve 2 open problems -> Some(Row(Item(P2)))",
                "requests: Send 2 pending change requests -> Some(Notes(P3))",
            ],
        );
        check(
            |facts| {
                facts.items[0].tests =
                    Tests::Failed { failed: 1, total: 3, output: RepoBytes::default() };
                facts.items[1].tests = Tests::NotRun { total: 2 };
                facts.items[2].tests = Tests::OutOfDate { total: 1 };
            },
            &[
                "tests: Open 1 failed check -> Some(Row(Item(P1)))",
                "tests: Run 2 checks that have not run -> Some(Row(Item(P2)))",
                "tests: Run 1 check again on this head -> Some(Row(Item(P3)))",
            ],
        );
    }

    #[test]
    fn a_moved_a_missing_and_an_unknown_branch_block_alike() {
        check(
            |facts| {
                facts.head = Tip::Moved(samples::commit(1));
                facts.base = Tip::Unknown("the remote does not answer".into());
            },
            &[
                "head: The head moved to 000000000000: link again -> None",
                "base: The base is unknown: the remote does not answer -> None",
            ],
        );
        check(
            |facts| facts.is_rejected = true,
            &["requests: Make the next revision: change requests were sent -> None"],
        );
        check(|facts| facts.head = Tip::Gone, &["head: The head's branch is gone -> None"]);
    }

    #[test]
    fn only_a_reviewed_task_can_be_merged() {
        for state in TaskState::ALL {
            let mut facts = ready();
            facts.task.0 = state;
            let may = blockers(&facts).is_empty();
            assert_eq!(
                may,
                matches!(state, TaskState::InReview | TaskState::MergeBlocked | TaskState::Merging),
                "{state}"
            );
        }
    }

    #[test]
    fn evidence_counts_for_its_command_its_head_and_its_place() {
        let plan = samples::plan(&[("P1", &["a"], &[])]);
        let (p1, head) = (&plan.items[0], samples::commit(9));
        let result = |head: u32, source, passed| CheckResult {
            item: item("P1"),
            argv: argv_digest(&["make".into(), "test".into()]),
            head: samples::commit(head),
            source,
            by: Some("A. Person".into()),
            passed,
            output: "words".into(),
        };
        let both = BTreeSet::from([Sandbox, Host]);
        let check = |results: &[CheckResult], expected: Tests| {
            assert_eq!(tests(p1, results, &head, |source| both.contains(&source)), expected);
        };
        check(&[], Tests::NotRun { total: 1 });
        check(&[result(9, Ci, true)], Tests::NotRun { total: 1 });
        check(&[result(8, Host, true)], Tests::OutOfDate { total: 1 });
        let passed = Tests::Passed { total: 1, place: "host, by A. Person".into() };
        check(&[result(9, Host, true)], passed.clone());
        check(&[result(9, Host, false), result(9, Host, true)], passed);
        check(
            &[result(9, Host, true), result(9, Sandbox, false)],
            Tests::Failed { failed: 1, total: 1, output: "$ make test\nwords\n".into() },
        );
        let mut other = result(9, Host, true);
        other.argv = argv_digest(&["make".into(), "test".into(), "-k".into()]);
        check(&[other], Tests::OutOfDate { total: 1 });
    }
}
