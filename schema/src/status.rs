//! Where each task stands: `codeboost status --format json`.
//!
//! Only codeboost writes it. Keys may be added within a version; none changes its meaning.

use serde::Serialize;

use crate::ids::CommitId;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
            }],
        };
        let value = serde_json::to_value(&status).expect("JSON");
        assert_eq!(crate::registry::violations(SCHEMA, &value), []);
        assert!(!crate::registry::violations(SCHEMA, &serde_json::json!({})).is_empty());
    }
}
