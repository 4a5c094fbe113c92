//! Open issues, their comments, and who may push.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;

use crate::forge::gh::{Gh, GhError};
use crate::github::issues::{Collaborators, Comment, Issue, Person};

/// So many pages are read at most.
const MAX_PAGES: usize = 100;

#[derive(Debug, Deserialize)]
struct User {
    id: u64,
    login: String,
}

impl From<User> for Person {
    fn from(user: User) -> Self {
        Self { id: user.id, login: user.login }
    }
}

#[derive(Debug, Deserialize)]
struct Label {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Reactions {
    #[serde(rename = "+1")]
    up: u64,
    heart: u64,
    hooray: u64,
    rocket: u64,
}

#[derive(Debug, Deserialize)]
struct Record {
    number: u64,
    title: String,
    state: String,
    #[serde(deserialize_with = "there")]
    user: Option<User>,
    labels: Vec<Label>,
    comments: u64,
    reactions: Reactions,
    created_at: String,
    repository_url: String,
    #[serde(default)]
    body: Option<String>,
    pull_request: Option<serde_json::Value>,
}

/// A value that may be null but must be there.
fn there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<User>, D::Error> {
    Option::deserialize(from)
}

#[derive(Debug, Deserialize)]
struct CommentRecord {
    id: u64,
    #[serde(deserialize_with = "there")]
    user: Option<User>,
    body: String,
    created_at: String,
}

/// An issue with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeIssue {
    /// The issue.
    pub issue: Issue,
    /// Its Markdown.
    pub body: String,
    /// Whether it is open.
    pub is_open: bool,
    /// Its comments, oldest first.
    pub comments: Vec<Comment>,
}

impl Gh<'_> {
    /// Every open issue, by number. Pull requests are none.
    ///
    /// # Errors
    /// [`GhError`]: one page or record that can't be read makes the whole list unknown.
    pub fn open_issues(&self) -> Result<Vec<Issue>, GhError> {
        let records: Vec<Record> = self.pages("/issues?state=open", MAX_PAGES)?;
        // The same issue may stand on two pages when one is opened meanwhile.
        let mut all = BTreeMap::new();
        for record in records {
            let is_pull = record.pull_request.is_some();
            let is_open = record.state == "open";
            let issue = self.issue(record)?;
            if !is_pull && is_open {
                all.insert(issue.number, issue);
            }
        }
        Ok(all.into_values().collect())
    }

    /// One issue with its text and comments.
    ///
    /// # Errors
    /// [`GhError`], also when the number is a pull request's.
    pub fn whole_issue(&self, number: u64) -> Result<WholeIssue, GhError> {
        let record: Record = self.read(&format!("/issues/{number}"))?;
        if record.number != number || record.pull_request.is_some() {
            return Err(GhError::unknown(format!("{number} is a pull request, not an issue")));
        }
        let is_open = match record.state.as_str() {
            "open" => true,
            "closed" => false,
            state => return Err(GhError::unknown(format!("the issue is {state:?}"))),
        };
        let body = record.body.clone().unwrap_or_default();
        let issue = self.issue(record)?;
        let records: Vec<CommentRecord> =
            self.pages(&format!("/issues/{number}/comments"), MAX_PAGES)?;
        let comments = records
            .into_iter()
            .map(|record| {
                Ok(Comment {
                    id: record.id,
                    author: record.user.map(Person::from),
                    written_at: time(&record.created_at)?,
                    body: record.body,
                })
            })
            .collect::<Result<_, GhError>>()?;
        Ok(WholeIssue { issue, body, is_open, comments })
    }

    /// The accounts that may push, by id.
    ///
    /// # Errors
    /// [`GhError`], when the account that asks may not know, among others.
    pub fn collaborators(&self) -> Result<BTreeSet<u64>, GhError> {
        let path = "/collaborators?affiliation=all&permission=push";
        let users: Vec<User> = self.pages(path, MAX_PAGES)?;
        Ok(users.into_iter().map(|user| user.id).collect())
    }

    /// As [`Self::collaborators`], with the reason in words when it can't be told.
    pub fn who_may_push(&self) -> Collaborators {
        self.collaborators().map_err(|error| format!("who may push can't be read: {error}"))
    }

    fn issue(&self, record: Record) -> Result<Issue, GhError> {
        let of = record.repository_url.rsplit_once("/repos/").map_or("", |(_, name)| name);
        self.same(of)?;
        let reactions = &record.reactions;
        let reactions = [reactions.up, reactions.heart, reactions.hooray, reactions.rocket];
        Ok(Issue {
            number: record.number,
            title: record.title,
            author: record.user.map(Person::from),
            labels: record.labels.into_iter().map(|label| label.name).collect(),
            reactions: reactions.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)),
            comments: record.comments,
            opened_at: time(&record.created_at)?,
        })
    }
}

fn time(text: &str) -> Result<Timestamp, GhError> {
    text.parse().map_err(|_| GhError::unknown(format!("{text:?} is no time")))
}
