//! Pull requests: finding, opening, describing, queueing and merging them.

use codeboost_schema::ids::CommitId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::MergeMethod;
use crate::forge::gh::{Gh, GhError, segment};

/// So many pages are read at most.
const MAX_PAGES: usize = 20;

/// A pull request of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// Its name in GraphQL.
    pub node_id: String,
    /// Its address.
    pub url: String,
    /// Its description.
    pub body: String,
    /// Whether it is a draft.
    pub is_draft: bool,
    /// Whether it is open, closed or merged.
    pub state: PullState,
    /// The head's branch; `None` when it is of another repository.
    pub head_branch: Option<String>,
    /// The head that GitHub shows; right after a push it may be the one before.
    pub head: CommitId,
    /// The base's branch.
    pub base_branch: String,
}

/// Where a pull request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullState {
    /// Open.
    Open,
    /// Closed without being merged.
    Closed,
    /// Merged, as this commit where GitHub names it.
    Merged(Option<CommitId>),
}

#[derive(Debug, Deserialize)]
struct Record {
    number: u64,
    node_id: String,
    html_url: String,
    #[serde(default)]
    body: Option<String>,
    draft: bool,
    state: String,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
    head: Side,
    base: Side,
}

#[derive(Debug, Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    repo: Option<Repo>,
}

#[derive(Debug, Deserialize)]
struct Repo {
    full_name: String,
}

fn commit(text: &str) -> Result<CommitId, GhError> {
    CommitId::parse(text).map_err(|_| GhError::unknown(format!("{text:?} is no commit")))
}

/// Where a pull request stands in the queue of its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// Its name in GraphQL.
    pub node_id: String,
    /// Whether it is open, closed or merged.
    pub state: PullState,
    /// The head that GitHub shows.
    pub head: CommitId,
    /// Whether the base has a queue.
    pub has_queue: bool,
    /// Its entry: name, state in GitHub's word, position.
    pub entry: Option<(String, String, u64)>,
    /// Its removals from the queue, oldest first: name, reason in GitHub's words.
    pub removals: Vec<(String, String)>,
}

impl Gh<'_> {
    /// A pull request by its number.
    ///
    /// # Errors
    /// [`GhError`].
    pub fn pull(&self, number: u64) -> Result<Pull, GhError> {
        let record: Record = self.read(&format!("/pulls/{number}"))?;
        let pull = self.typed_pull(record)?;
        if pull.number == number {
            return Ok(pull);
        }
        Err(GhError::unknown(format!("asked for {number}, told about {}", pull.number)))
    }

    /// Every pull request of a branch onto a base, closed ones too.
    ///
    /// # Errors
    /// [`GhError`].
    pub fn pulls_of(&self, head: &str, base: &str) -> Result<Vec<Pull>, GhError> {
        let owner = segment(&self.slug().owner);
        let (head_word, base_word) = (segment(head), segment(base));
        let path = format!("/pulls?state=all&head={owner}:{head_word}&base={base_word}");
        let records: Vec<Record> = self.pages(&path, MAX_PAGES)?;
        let pulls = records.into_iter().map(|record| self.typed_pull(record));
        let pulls = pulls.collect::<Result<Vec<_>, _>>()?;
        let fits =
            |pull: &Pull| pull.head_branch.as_deref() == Some(head) && pull.base_branch == base;
        Ok(pulls.into_iter().filter(fits).collect())
    }

    /// Opens a pull request.
    ///
    /// # Errors
    /// [`GhError::Refused`]: it is not there. [`GhError::Unknown`]: it may be.
    pub fn open_pull(
        &self,
        (head, base): (&str, &str),
        title: &str,
        body: &str,
        draft: bool,
    ) -> Result<Pull, GhError> {
        let asked =
            json!({"title": title, "body": body, "head": head, "base": base, "draft": draft});
        let record: Record = self.change("POST", "/pulls", &asked)?;
        self.typed_pull(record)
    }

    /// Changes fields of a pull request: `body`, `state`.
    ///
    /// # Errors
    /// [`GhError`]; an unknown answer may mean that it was changed.
    pub fn edit_pull(&self, number: u64, fields: &Value) -> Result<Pull, GhError> {
        let record: Record = self.change("PATCH", &format!("/pulls/{number}"), fields)?;
        self.typed_pull(record)
    }

    /// Makes a pull request a draft, or ready.
    ///
    /// # Errors
    /// [`GhError`]; an unknown answer may mean that it was changed.
    pub fn set_draft(&self, pull: &Pull, draft: bool) -> Result<(), GhError> {
        let document = if draft {
            include_str!("documents/draft.graphql")
        } else {
            include_str!("documents/ready.graphql")
        };
        self.ask::<Value>(document, json!({"pull": pull.node_id})).map(drop)
    }

    /// The texts of all comments on an issue or pull request, oldest first.
    ///
    /// # Errors
    /// [`GhError`].
    pub fn comment_texts(&self, number: u64) -> Result<Vec<String>, GhError> {
        #[derive(Deserialize)]
        struct Text {
            body: String,
        }
        let all: Vec<Text> = self.pages(&format!("/issues/{number}/comments"), MAX_PAGES)?;
        Ok(all.into_iter().map(|text| text.body).collect())
    }

    /// Writes a comment.
    ///
    /// # Errors
    /// [`GhError`]; an unknown answer may mean that it was written.
    pub fn comment(&self, number: u64, body: &str) -> Result<(), GhError> {
        let path = format!("/issues/{number}/comments");
        self.change::<Value>("POST", &path, &json!({"body": body})).map(drop)
    }

    /// Asks GitHub to merge, if the head is this one.
    ///
    /// # Errors
    /// [`GhError::Refused`]: it was not merged. [`GhError::Unknown`]: it may have been.
    pub fn merge_pull(
        &self,
        number: u64,
        head: &CommitId,
        method: MergeMethod,
        message: &str,
    ) -> Result<(), GhError> {
        let (title, text) = message.split_once('\n').unwrap_or((message, ""));
        let asked = json!({
            "sha": head,
            "merge_method": method.word(),
            "commit_title": title,
            "commit_message": text.trim_start_matches('\n'),
        });
        self.change::<Value>("PUT", &format!("/pulls/{number}/merge"), &asked).map(drop)
    }

    /// Puts a pull request into the queue of its base, if the head is this one.
    ///
    /// # Errors
    /// [`GhError::Refused`]: it is not in it because of this. [`GhError::Unknown`]: it may be.
    pub fn enqueue(&self, node_id: &str, head: &CommitId) -> Result<(), GhError> {
        let variables = json!({"pull": node_id, "head": head});
        self.ask::<Value>(include_str!("documents/enqueue.graphql"), variables).map(drop)
    }

    /// Where a pull request stands in the queue.
    ///
    /// # Errors
    /// [`GhError`].
    pub fn queued(&self, number: u64) -> Result<Queued, GhError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Data {
            repository: Repository,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Repository {
            name_with_owner: String,
            pull_request: Fields,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            id: String,
            number: u64,
            state: String,
            head_ref_oid: String,
            is_merge_queue_enabled: bool,
            merge_commit: Option<Oid>,
            merge_queue_entry: Option<Entry>,
            timeline_items: Nodes,
        }
        #[derive(Deserialize)]
        struct Oid {
            oid: String,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: String,
            state: String,
            position: u64,
        }
        #[derive(Deserialize)]
        struct Nodes {
            nodes: Vec<Removal>,
        }
        #[derive(Deserialize)]
        struct Removal {
            id: String,
            reason: Option<String>,
        }
        let document = include_str!("documents/queue.graphql");
        let data: Data = self.ask(document, json!({"pull": number}))?;
        self.same(&data.repository.name_with_owner)?;
        let fields = data.repository.pull_request;
        if fields.number != number {
            return Err(GhError::unknown(format!(
                "asked for {number}, told about {}",
                fields.number
            )));
        }
        let state = match fields.state.as_str() {
            "OPEN" => PullState::Open,
            "CLOSED" => PullState::Closed,
            "MERGED" => {
                PullState::Merged(fields.merge_commit.map(|one| commit(&one.oid)).transpose()?)
            }
            other => return Err(GhError::unknown(format!("the pull request is {other:?}"))),
        };
        let removals = fields.timeline_items.nodes.into_iter();
        Ok(Queued {
            node_id: fields.id,
            state,
            head: commit(&fields.head_ref_oid)?,
            has_queue: fields.is_merge_queue_enabled,
            entry: fields.merge_queue_entry.map(|entry| (entry.id, entry.state, entry.position)),
            removals: removals
                .map(|one| (one.id, one.reason.unwrap_or_else(|| "without a reason".into())))
                .collect(),
        })
    }

    fn typed_pull(&self, record: Record) -> Result<Pull, GhError> {
        self.same(record.base.repo.as_ref().map_or("", |repo| &repo.full_name))?;
        let is_ours = record.head.repo.as_ref().is_some_and(|repo| self.slug().is(&repo.full_name));
        let state = match (record.state.as_str(), &record.merged_at) {
            ("open", None) => PullState::Open,
            ("closed", None) => PullState::Closed,
            ("closed", Some(_)) => {
                PullState::Merged(record.merge_commit_sha.as_deref().map(commit).transpose()?)
            }
            (other, _) => return Err(GhError::unknown(format!("the pull request is {other:?}"))),
        };
        Ok(Pull {
            number: record.number,
            node_id: record.node_id,
            url: record.html_url,
            body: record.body.unwrap_or_default(),
            is_draft: record.draft,
            state,
            head_branch: is_ours.then_some(record.head.branch),
            head: commit(&record.head.sha)?,
            base_branch: record.base.branch,
        })
    }
}
