//! Where each task stands: `codeboost status --format json`.
//!
//! Only codeboost writes it. Keys may be added within a version; none changes its meaning.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::{CommitId, ItemId, SegmentKey};

/// The JSON Schema of [`Status`].
pub const SCHEMA: &str = include_str!("../status.schema.json");

/// Where each task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Always 1.
    pub schema_version: u32,
    /// The repository's uuid.
    pub repository: String,
    /// By issue; without a given issue the open ones.
    pub tasks: Vec<TaskStatus>,
}

/// Where one task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    /// Number of the issue.
    pub issue: u64,
    /// Its title.
    pub title: String,
    /// The task's uuid.
    pub task: String,
    /// The plan's uuid.
    pub plan: String,
    /// The contract's word, such as `in review`.
    pub state: String,
    /// Why it stands there, for people.
    pub reason: String,
    /// Since when: RFC 3339 UTC.
    pub since: String,
    /// The branch to land on.
    pub base: RefStatus,
    /// The branch under review.
    pub head: RefStatus,
    /// The commits from the recorded base to the head as it is now; null when the branch is gone.
    pub commits: Option<CommitCounts>,
    /// The revisions of the plan; null before the first.
    pub plan_revisions: Option<PlanRevisions>,
    /// Where its review stands; null before a plan is approved, and for a closed task.
    pub review: Option<ReviewStatus>,
    /// Why the review can't be told although there should be one: it is unknown then.
    pub review_unknown: Option<String>,
    /// The command that goes on; null when nothing is to be done.
    pub next: Option<String>,
}

/// The revisions of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlanRevisions {
    /// The newest one.
    pub newest: u64,
    /// The newest approved one, which work and review follow; null when none is.
    pub approved: Option<u64>,
}

/// Where a review stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewStatus {
    /// In the order of the plan.
    pub items: Vec<ItemStatus>,
    /// Where the changes stand, as counts of segments.
    pub segments: SegmentCounts,
    /// The choices in force, in the order of their segments.
    pub choices: Vec<ChoiceStatus>,
    /// What forbids the merge.
    pub blockers: Vec<BlockerStatus>,
}

/// Where one item stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemStatus {
    /// Its id.
    pub item: ItemId,
    /// Its title.
    pub title: String,
    /// The contract's word: `unreviewed`, `approved` or `stale`.
    pub approval: Cow<'static, str>,
    /// The contract's word: `passed`, `failed`, `not run`, `out of date` or `none defined`.
    pub tests: Cow<'static, str>,
}

/// How many segments stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SegmentCounts {
    /// All of them.
    pub total: u64,
    /// On the Ambiguous row.
    pub ambiguous: u64,
    /// On the Unplanned row.
    pub unplanned: u64,
    /// On the Accepted row.
    pub accepted: u64,
    /// On an item's row because a person assigned them.
    pub assigned: u64,
}

/// A choice in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceStatus {
    /// Id of the segment.
    pub segment: u32,
    /// Its key.
    pub key: SegmentKey,
    /// `accepted` or `assigned`.
    pub choice: Cow<'static, str>,
    /// The item that it was assigned to.
    pub item: Option<ItemId>,
}

/// Something that forbids the merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockerStatus {
    /// A fixed word per kind.
    pub code: Cow<'static, str>,
    /// For people, as an instruction.
    pub words: String,
}

/// A branch of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefStatus {
    /// Its full name, such as `refs/heads/main`.
    #[serde(rename = "ref")]
    pub name: String,
    /// The commit that the review is about.
    pub recorded: CommitId,
    /// The commit that the branch names now; null when the branch is gone.
    pub now: Option<CommitId>,
    /// Whether the two differ.
    pub moved: bool,
}

/// Who made the commits of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitCounts {
    /// All of them.
    pub total: u64,
    /// Those with an item.
    pub owned: u64,
    /// Those of the owned ones for which a person vouched, also before a rebase.
    pub adopted: u64,
    /// Those without an item.
    pub foreign: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_validates_and_an_empty_object_does_not() {
        let id = CommitId::parse(&"0a".repeat(20)).expect("an id");
        let branch = |name: &str, now: Option<&CommitId>| RefStatus {
            name: name.into(),
            recorded: id.clone(),
            now: now.cloned(),
            moved: now.is_none(),
        };
        let status = Status {
            schema_version: 1,
            repository: "0191d2f0-0000-4000-8000-00000000000a".into(),
            tasks: vec![TaskStatus {
                issue: 412,
                title: "Retry on 5xx".into(),
                task: "0191d2f0-0000-4000-8000-00000000000b".into(),
                plan: "0191d2f0-0000-4000-8000-00000000000c".into(),
                state: "in review".into(),
                reason: "ready".into(),
                since: "2026-11-30T12:00:00Z".into(),
                base: branch("refs/heads/main", Some(&id)),
                head: branch("refs/heads/agent/retry", None),
                commits: Some(CommitCounts { total: 3, owned: 2, adopted: 1, foreign: 1 }),
                plan_revisions: Some(PlanRevisions { newest: 2, approved: None }),
                review: Some(ReviewStatus {
                    items: vec![ItemStatus {
                        item: ItemId::parse("P1").expect("an item"),
                        title: "Retry".into(),
                        approval: "stale".into(),
                        tests: "none defined".into(),
                    }],
                    segments: SegmentCounts { total: 1, accepted: 1, ..Default::default() },
                    choices: vec![ChoiceStatus {
                        segment: 0,
                        key: SegmentKey::of(b"a segment"),
                        choice: "accepted".into(),
                        item: None,
                    }],
                    blockers: vec![BlockerStatus {
                        code: "stale".into(),
                        words: "Review P1".into(),
                    }],
                }),
                review_unknown: None,
                next: Some("codeboost review 412".into()),
            }],
        };
        let value = serde_json::to_value(&status).expect("JSON");
        assert_eq!(crate::registry::violations(SCHEMA, &value), []);
        assert!(!crate::registry::violations(SCHEMA, &serde_json::json!({})).is_empty());
    }
}
