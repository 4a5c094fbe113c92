//! Publishing on GitHub: the head's branch, one pull request, the part of its description that is
//! ours, one comment a revision.
//!
//! Everything can be done again at any moment and comes to the same. The pull request is recorded
//! before it is asked for; after a lost answer it is found by the line that its description begins
//! with, and GitHub itself allows only one open pull request of a head onto a base, so that asking
//! again opens no second one.

use std::time::Duration;

use codeboost_schema::ids::CommitId;
use serde_json::json;
use uuid::Uuid;

use crate::forge::gh::GhError;
use crate::forge::gh::hub::GitHub;
use crate::forge::gh::pulls::{Pull, PullState};
use crate::forge::{Forge as _, ForgeError, Tips};
use crate::git::refs::Reported;
use crate::github::pull::{self, Facts};
use crate::github::region;
use crate::merge::MergeError;
use crate::process::crash_point;
use crate::store::{OpeningRow, Store, StoreError, TaskRow};

/// How often a head that was pushed is looked for, and the pause between two looks.
const LOOKS: usize = 6;
const PAUSE: Duration = Duration::from_secs(1);

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The pull request's number.
    pub number: u64,
    /// Its address.
    pub url: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Why nothing, or not all, was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPublished {
    /// Why, for people.
    pub why: String,
    /// What makes it possible.
    pub hint: String,
}

fn no<T>(
    why: impl Into<String>,
    hint: impl Into<String>,
) -> Result<Result<T, NotPublished>, MergeError> {
    Ok(Err(NotPublished { why: why.into(), hint: hint.into() }))
}

/// Publishes a task: pushes its head, opens its pull request or brings it up to date.
///
/// `tips`: base and head there, just fetched.
///
/// # Errors
/// [`MergeError`] when something can't be read or written, or an answer is unknown: publishing again
/// goes on.
pub fn publish(
    store: &Store<'_>,
    forge: &GitHub<'_>,
    task: &TaskRow,
    tips: &Tips,
    facts: &Facts<'_>,
    draft: bool,
) -> Result<Result<Published, NotPublished>, MergeError> {
    let Some(branch) = forge.head().map(str::to_owned) else {
        return no(
            format!("{} is no branch", task.head_ref),
            "add the task with a branch as its head",
        );
    };
    if task.base_commit_id == task.head_commit_id {
        return no("there are no changes yet", "carry out the plan first");
    }
    let publishing = Publishing { store, forge, task, facts, branch };
    let pulls = publishing.pulls()?;
    if let Some(foreign) = pulls.foreign {
        return no(
            format!("pull request #{foreign} of this branch was not opened by codeboost"),
            "close it, or give the task another branch",
        );
    }
    if let Err(refused) = publishing.push(tips)? {
        return Ok(Err(refused));
    }
    let (opening, pull) = match pulls.own {
        Some(found) => found,
        None => match publishing.open(draft)? {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        },
    };
    publishing.bring_up_to_date(&opening, pull, draft)
}

struct Publishing<'p, 'a> {
    store: &'p Store<'a>,
    forge: &'p GitHub<'a>,
    task: &'p TaskRow,
    facts: &'p Facts<'p>,
    branch: String,
}

struct Pulls {
    own: Option<(OpeningRow, Pull)>,
    foreign: Option<u64>,
}

impl Publishing<'_, '_> {
    fn crash_point(&self, name: &str) {
        crash_point(self.store.context(), &format!("publish: {name}"));
    }

    /// The open pull request of the branch, found by what its description begins with or by its
    /// number.
    fn pulls(&self) -> Result<Pulls, MergeError> {
        let (openings, current) = self.store.read(|tx| -> Result<_, StoreError> {
            Ok((tx.openings(self.task.id)?, tx.opening(self.task.id)?))
        })?;
        let all =
            self.forge.gh().pulls_of(&self.branch, self.forge.base()).map_err(ForgeError::from)?;
        let mut found = Pulls { own: None, foreign: None };
        for pull in all.into_iter().filter(|pull| pull.state == PullState::Open) {
            let by_line = region::opening(&pull.body);
            let ours = openings
                .iter()
                .find(|row| Some(row.id.as_str()) == by_line || row.number == Some(pull.number));
            match ours {
                Some(row) => {
                    self.store.write(|tx| -> Result<_, StoreError> {
                        tx.put_opened(self.task.id, row, pull.number, pull.is_draft, None)
                    })?;
                    let row = OpeningRow { number: Some(pull.number), ..row.clone() };
                    found.own = Some((row, pull));
                }
                None => found.foreign = Some(pull.number),
            }
        }
        // One that people closed is not opened again under the same name.
        if let (None, Some(row)) = (&found.own, current.filter(|row| row.number.is_some())) {
            self.store.write(|tx| -> Result<_, StoreError> {
                tx.abandon_opening(self.task.id, &row, "it is no longer open")
            })?;
        }
        Ok(found)
    }

    /// Brings the head's branch to the head, over nothing but what is ours.
    fn push(&self, tips: &Tips) -> Result<Result<(), NotPublished>, MergeError> {
        let head = &self.task.head_commit_id;
        if tips.head.as_ref() == Some(head) {
            return Ok(Ok(()));
        }
        if let Some(there) = &tips.head {
            let git = self.store.git();
            let own = self.store.read(|tx| tx.own_commits(self.task.id))?;
            let is_known = git.resolve(there.as_str())?.is_some();
            let is_ours = own.contains(there) || (is_known && git.is_ancestor(there, head)?);
            if !is_ours {
                return no(
                    format!("{} there has {there:.12}, which is not ours", self.branch),
                    format!("look at it: git fetch, then git log {there:.12}"),
                );
            }
        }
        let reported = self.forge.publish_head(tips.head.as_ref(), head)?;
        self.crash_point("head sent");
        let now = self.forge.read()?;
        if now.head.as_ref() == Some(head) {
            return Ok(Ok(()));
        }
        let words = match reported {
            Reported::Refused(words) | Reported::Unclear(words) => words,
            Reported::Accepted => "it was taken and is not shown".to_owned(),
        };
        let is_workflow = words.contains("workflow");
        let hint = if is_workflow {
            "gh auth refresh --scopes workflow, so that the sign-in may change workflow files"
        } else {
            "run it again when nothing refuses it any more"
        };
        no(format!("{} was not pushed: {words}", self.branch), hint)
    }

    fn open(&self, draft: bool) -> Result<Result<(OpeningRow, Pull), NotPublished>, MergeError> {
        let gh = self.forge.gh();
        let current = self.store.read(|tx| tx.opening(self.task.id))?;
        let opening = match current {
            Some(row) => row,
            None => self.store.write(|tx| -> Result<_, StoreError> {
                let id = Uuid::new_v4().to_string();
                let branches = (self.forge.base(), self.branch.as_str());
                tx.record_opening(self.task.id, &id, &gh.slug().to_string(), branches, draft)
            })?,
        };
        self.crash_point("opening recorded");
        let title = pull::title(self.facts.title, self.facts.issue);
        let line = region::opening_line(&opening.id);
        let body = region::replace(&line, &pull::part(self.facts)).text;
        let branches = (self.branch.as_str(), self.forge.base());
        let answer = gh.open_pull(branches, &title, &body, draft);
        self.crash_point("opening sent");
        // What was answered is looked up: the list says whether it is there.
        let found = self.pulls()?;
        if let Some(found) = found.own {
            return Ok(Ok(found));
        }
        match answer {
            Ok(pull) => Ok(Ok((opening, pull))),
            Err(GhError::Refused { words, .. }) => {
                let hint = if words.to_lowercase().contains("draft") {
                    "publish it as ready, or make drafts possible: they need a plan of GitHub"
                } else {
                    "run it again when nothing refuses it any more"
                };
                no(format!("GitHub refused to open a pull request: {words}"), hint)
            }
            Err(error) => Err(ForgeError::from(error).into()),
        }
    }

    fn bring_up_to_date(
        &self,
        opening: &OpeningRow,
        pull: Pull,
        draft: bool,
    ) -> Result<Result<Published, NotPublished>, MergeError> {
        let gh = self.forge.gh();
        let known = |error: GhError| MergeError::from(ForgeError::from(error));
        let mut warnings = Vec::new();
        let part = pull::part(self.facts);
        let body = region::replace(&pull.body, &part);
        if let (Some(before), Some(ours)) = (&body.before, &opening.part)
            && normal(before) != normal(ours)
        {
            self.store.write(|tx| -> Result<_, StoreError> {
                tx.keep_edited_part(self.task.id, pull.number, before)
            })?;
            warnings.push("what people wrote between the markers was kept in the log".to_owned());
        }
        // A description can't be taken over from the line that a person took away.
        if normal(&body.text) != normal(&pull.body) {
            gh.edit_pull(pull.number, &json!({"body": body.text})).map_err(known)?;
        }
        self.crash_point("description sent");
        let head = &self.task.head_commit_id;
        let shown = self.shown(pull.number, head)?;
        let shows_head = shown.head == *head;
        let wants_draft = draft || !shows_head;
        if !shows_head {
            warnings.push(format!(
                "GitHub shows {:.12} as the head, not {head:.12}: it stays a draft",
                shown.head
            ));
        }
        if shown.is_draft != wants_draft {
            match gh.set_draft(&shown, wants_draft) {
                Ok(()) => {}
                Err(GhError::Refused { words, .. }) if wants_draft => {
                    warnings.push(format!("it stays ready: {words}"));
                }
                Err(error) => return Err(known(error)),
            }
        }
        self.crash_point("draft set");
        let line = pull::revision_line(&self.task.plan_id.to_string(), self.facts.plan.revision);
        let comments = gh.comment_texts(pull.number).map_err(known)?;
        if !comments.iter().any(|text| text.starts_with(&line)) {
            let text = pull::revision_comment(&self.task.plan_id.to_string(), self.facts);
            gh.comment(pull.number, &text).map_err(known)?;
        }
        self.crash_point("comment sent");
        let last = gh.pull(pull.number).map_err(known)?;
        self.store.write(|tx| -> Result<_, StoreError> {
            tx.put_opened(self.task.id, opening, pull.number, last.is_draft, Some(&part))?;
            tx.publish(self.task, last.is_draft)
        })?;
        Ok(Ok(Published { number: pull.number, url: last.url, draft: last.is_draft, warnings }))
    }

    /// The pull request once it shows the head that was pushed, or as it is after a while.
    fn shown(&self, number: u64, head: &CommitId) -> Result<Pull, MergeError> {
        let mut pull = self.forge.gh().pull(number).map_err(ForgeError::from)?;
        for _ in 1..LOOKS {
            if pull.head == *head {
                break;
            }
            self.store.context().pause(PAUSE);
            pull = self.forge.gh().pull(number).map_err(ForgeError::from)?;
        }
        Ok(pull)
    }
}

/// Text as it comes back: GitHub may change line ends.
fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end().to_owned()
}
