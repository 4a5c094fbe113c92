//! What GitHub links to an issue: who closed it, and which other pull requests would.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::forge::gh::{Gh, GhError};

/// So many pages are read at most.
const MAX_PAGES: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    repository: Repository,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repository {
    name_with_owner: String,
    default_branch_ref: Option<Branch>,
    issue: Issue,
}

#[derive(Debug, Deserialize)]
struct Branch {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Issue {
    number: u64,
    state: String,
    timeline_items: Timeline,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timeline {
    page_info: PageInfo,
    nodes: Vec<Event>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "__typename")]
enum Event {
    #[serde(rename = "ClosedEvent")]
    Closed { closer: Option<Subject> },
    #[serde(rename = "ReopenedEvent")]
    Reopened,
    #[serde(rename = "CrossReferencedEvent", rename_all = "camelCase")]
    CrossReferenced { will_close_target: bool, source: Subject },
    #[serde(rename = "ConnectedEvent")]
    Connected { subject: Subject },
    #[serde(rename = "DisconnectedEvent")]
    Disconnected { subject: Subject },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "__typename")]
enum Subject {
    PullRequest(Pull),
    Issue,
    Commit { oid: String },
    ProjectV2,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    number: u64,
    state: String,
    base_ref_name: String,
    repository: Name,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Name {
    name_with_owner: String,
}

/// One's own pull requests and the branch that they go onto.
#[derive(Debug, Clone, Copy)]
pub struct Own<'o> {
    /// Their numbers.
    pub pulls: &'o [u64],
    /// The base's branch.
    pub base: &'o str,
}

impl Gh<'_> {
    /// What may have fixed an issue besides one's own pull requests, in words; in a fixed order.
    ///
    /// A mere mention is nothing. A pull request counts while it is open or merged, when it would
    /// close the issue, is linked by hand, or mentions it and goes onto the same base, where GitHub
    /// closes nothing by itself.
    ///
    /// # Errors
    /// [`GhError`]; whatever can't be read whole makes the answer unknown.
    pub fn fixes(&self, issue: u64, own: Own<'_>) -> Result<Vec<String>, GhError> {
        let mut after = None::<String>;
        let mut closer = None;
        let mut by_hand = BTreeMap::new();
        let mut others = BTreeMap::new();
        for _ in 0..MAX_PAGES {
            let document = include_str!("documents/issue_links.graphql");
            let data: Data = self.ask(document, json!({"issue": issue, "after": after}))?;
            self.same(&data.repository.name_with_owner)?;
            let found = data.repository.issue;
            if found.number != issue {
                return Err(GhError::unknown(format!(
                    "asked for {issue}, told about {}",
                    found.number
                )));
            }
            let is_open = match found.state.as_str() {
                "OPEN" => true,
                "CLOSED" => false,
                other => return Err(GhError::unknown(format!("the issue is {other:?}"))),
            };
            let closes_by_itself = data
                .repository
                .default_branch_ref
                .as_ref()
                .is_some_and(|branch| branch.name == own.base);
            for event in found.timeline_items.nodes {
                match event {
                    Event::Closed { closer: by } => closer = Some(self.closer(by)),
                    Event::Reopened => closer = None,
                    Event::CrossReferenced { will_close_target, source } => {
                        if let Subject::PullRequest(pull) = source {
                            let onto_ours = !closes_by_itself
                                && pull.base_ref_name == own.base
                                && self.slug().is(&pull.repository.name_with_owner);
                            if (will_close_target || onto_ours) && !self.is_own(&pull, own) {
                                others.insert(key(&pull), pull);
                            }
                        }
                    }
                    Event::Connected { subject: Subject::PullRequest(pull) } => {
                        by_hand.insert(key(&pull), (true, pull));
                    }
                    Event::Disconnected { subject: Subject::PullRequest(pull) } => {
                        by_hand.insert(key(&pull), (false, pull));
                    }
                    Event::Connected { .. } | Event::Disconnected { .. } => {}
                }
            }
            let page = found.timeline_items.page_info;
            if page.has_next_page {
                after =
                    Some(page.end_cursor.ok_or_else(|| GhError::unknown("a page without an end"))?);
                continue;
            }
            let linked = by_hand.into_values().filter(|(is, _)| *is).map(|(_, pull)| pull);
            for pull in linked.filter(|pull| !self.is_own(pull, own)) {
                others.insert(key(&pull), pull);
            }
            let mut words = Vec::new();
            if !is_open {
                let by = closer
                    .ok_or_else(|| GhError::unknown("it is closed and nothing says by what"))?;
                words.push(format!("issue #{issue} is closed, {by}"));
            }
            for ((name, number), pull) in others {
                let state = match pull.state.as_str() {
                    "OPEN" => "open",
                    "MERGED" => "merged",
                    "CLOSED" => continue,
                    other => return Err(GhError::unknown(format!("a pull request is {other:?}"))),
                };
                let place = if self.slug().is(&name) { String::new() } else { name };
                words.push(format!("pull request {place}#{number}, {state}, fixes it"));
            }
            return Ok(words);
        }
        Err(GhError::unknown("the issue has too long a history"))
    }

    fn is_own(&self, pull: &Pull, own: Own<'_>) -> bool {
        // A merged one of ours is a fix like any other.
        own.pulls.contains(&pull.number)
            && self.slug().is(&pull.repository.name_with_owner)
            && pull.state != "MERGED"
    }

    fn closer(&self, by: Option<Subject>) -> String {
        match by {
            Some(Subject::PullRequest(pull)) => {
                let name = &pull.repository.name_with_owner;
                let place = if self.slug().is(name) { "" } else { name };
                format!("by pull request {place}#{}", pull.number)
            }
            Some(Subject::Commit { oid }) => format!("by commit {oid:.12}"),
            Some(Subject::ProjectV2) => "by a project".to_owned(),
            Some(Subject::Issue) | None => "by a person".to_owned(),
        }
    }
}

fn key(pull: &Pull) -> (String, u64) {
    (pull.repository.name_with_owner.to_lowercase(), pull.number)
}
