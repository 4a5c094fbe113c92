//! Reads the review of a task: branches, plan, ledger, records, and the link made anew.
//!
//! The link is always made from the objects. A `link.json` in the outputs folder is for people and
//! programs; no decision is ever compared with a file that lies in a work tree.

use std::collections::BTreeMap;

use codeboost_schema::form::Form;
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use codeboost_schema::ledger::{Ledger, Origin};
use codeboost_schema::link::Link;
use codeboost_schema::plan::Plan;

use crate::approval::choice::{Choice, Choices, Placed, place};
use crate::approval::freshness::Now;
use crate::approval::policy::Policy;
use crate::config::{AcceptedKey, Config};
use crate::git::read::{Objects, ReadError};
use crate::git::repository::{Repository, RepositoryError};
use crate::git::run::GitError;
use crate::link::assemble::LinkError;
use crate::review::form::accepted_keys;
use crate::review::linking::{Budget, LinkingError, link_range};
use crate::review::sources::{Reading, Sources, ledger_of};
use crate::review::{Explained, Inputs, Review, binding_of, form_segments};
use crate::store::{Cache, DecisionRow, REBASE_CONFLICT, Store, StoreError, TaskRow};
use crate::task::{Actor, TaskId, TaskState};

/// Why a review can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The state can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository or its configuration can't be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An object can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The history can't be linked.
    #[error("can't link the changes of task #{issue}")]
    Link {
        /// The task's issue.
        issue: u64,
        /// Why.
        source: LinkError,
    },
    /// Signals can't be caught.
    #[error("can't watch for being told to end")]
    Watch(#[source] std::io::Error),
    /// No revision of the plan was approved.
    #[error("task #{issue} has no approved plan")]
    NoPlan {
        /// The task's issue.
        issue: u64,
        /// The newest revision, if there is any.
        newest: Option<u64>,
    },
}

/// A review as it was read, with what is shown beside it.
#[derive(Debug)]
pub struct Loaded {
    /// The judged review.
    pub review: Review,
    /// Why each stale item is stale.
    pub explained: BTreeMap<ItemId, Explained>,
    /// Changes with every change of the state by another process; for the transaction that
    /// records what was decided on this review.
    pub generation: i64,
}

/// What an older page showed, made again.
#[derive(Debug)]
pub struct OldPage {
    /// Its link.
    pub link: Link,
    /// Where its segments stood.
    pub placed: Vec<Placed>,
    /// What an approval of its items would have covered.
    pub now: Now,
}

/// Brings a task up to where its branches are.
///
/// The head is the commit that its branch names. The base is the newest commit of the base's
/// branch that the head is made on, so that a rebase or a merge of the base moves it along. A
/// branch that somebody else made is in review as soon as it has a commit and a plan, and one that
/// waited for a person to rebase it as soon as it moved.
///
/// # Errors
/// [`ReviewError`] when git or the state can't be read or written.
pub fn follow(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: TaskRow,
) -> Result<TaskRow, ReviewError> {
    if task.state.is_closed() || task.state == TaskState::Merging {
        return Ok(task);
    }
    let git = repository.git();
    let [tip, head] = git.resolve_all([&task.base_ref, &task.head_ref])?;
    let Some(head) = head else { return Ok(task) };
    let mut base = task.base_commit_id.clone();
    // Of a commit and its ancestor the ancestor is the merge base, for all time.
    let cache = Cache::beside(store.folder());
    let pair = Digest::of(format!("{base} {head}").as_bytes());
    let is_known = |cache: &Cache| cache.get("ancestor", &pair).is_some();
    if tip.as_ref() != Some(&base) || !cache.as_ref().is_some_and(is_known) {
        let recorded = base.clone();
        if let Some(tip) = tip
            && let Some(fork) = git.merge_base(&tip, &head)?
            && fork != head
        {
            base = fork;
        }
        // Where the merge happens elsewhere the base's branch here may lag behind what is known.
        if repository.config()?.merges_elsewhere(&task.base_ref) {
            let rebases = store.read(|tx| tx.rebases(task.id))?;
            let onto = rebases.into_iter().filter(|row| row.new_head == head);
            for newer in onto.map(|row| row.new_base).chain([recorded]) {
                if newer != base
                    && git.is_ancestor(&base, &newer)?
                    && git.is_ancestor(&newer, &head)?
                {
                    base = newer;
                }
            }
        }
        if !git.is_ancestor(&base, &head)? {
            return Ok(task);
        }
        if base == task.base_commit_id
            && let Some(cache) = cache
        {
            cache.put("ancestor", &pair, b"");
        }
    }
    let actor = Actor::Codeboost;
    let moved = base != task.base_commit_id || head != task.head_commit_id;
    let task = if moved {
        store.keep_commits(task.id, [&base, &head])?;
        store.write(|tx| tx.set_task_commits(&task, &base, &head, actor.clone()))?
    } else {
        task
    };
    let waits_for_rebase = task.state == TaskState::NeedsHuman
        && moved
        && store
            .read(|tx| tx.merge_runs(task.id))?
            .last()
            .is_some_and(|run| run.outcome.as_deref() == Some(REBASE_CONFLICT));
    if waits_for_rebase {
        let words = "its branch moved since the rebase that conflicted";
        return Ok(store.write(|tx| tx.set_task_state(&task, TaskState::InReview, words, actor))?);
    }
    if task.state != TaskState::Queued || base == head {
        return Ok(task);
    }
    let (has_plan, is_ours) = store.read(|tx| -> Result<_, StoreError> {
        let ledger = tx.ledger(task.id)?;
        let runner = ledger.commits.values().any(|entry| entry.origin == Origin::Runner);
        Ok((tx.approved_plan(task.id)?.is_some(), runner))
    })?;
    if !has_plan || is_ours {
        return Ok(task);
    }
    let words = "its branch has changes to review";
    Ok(store.write(|tx| tx.set_task_state(&task, TaskState::InReview, words, actor))?)
}

/// Reads the review of a task at the base and head that are recorded for it.
///
/// # Errors
/// [`ReviewError`] when anything that it is read from can't be read whole.
pub fn read(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
) -> Result<Loaded, ReviewError> {
    read_at(repository, store, task, &task.base_commit_id, &task.head_commit_id)
}

/// Reads the review of a task at one pair of base and head.
///
/// # Errors
/// As [`read()`].
pub fn read_at(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    base: &CommitId,
    head: &CommitId,
) -> Result<Loaded, ReviewError> {
    Reading::at(repository, store, task, base, head)?.into_loaded()
}

/// Links and judges what was read.
pub(super) fn judge(
    repository: &Repository<'_>,
    store: &Store<'_>,
    sources: &Sources,
) -> Result<Loaded, ReviewError> {
    let Sources { base, head, plan, .. } = sources;
    let link = link(repository, sources.task.issue, plan, &sources.ledger(), base, head)?;
    let review = Review::judge(Inputs {
        repository: sources.repository.clone(),
        task: sources.task.clone(),
        plan: plan.clone(),
        link,
        approvals: sources.approvals.clone(),
        choices: sources.choices.clone(),
        acknowledgements: sources.acknowledgements.clone(),
        notes: sources.notes.clone(),
        rejections: sources.rejections.clone(),
        rounds: sources.rounds.clone(),
        checks: sources.checks.clone(),
        cmd_evidence: sources.cmd_evidence.clone(),
        policy: sources.policy.clone(),
        base: sources.base_tip.clone(),
        head: sources.head_tip.clone(),
    });
    let explained = store.read(|tx| review.explain(|digest| tx.snapshot(digest)))?;
    Ok(Loaded { review, explained, generation: sources.beside.generation })
}

/// Whose decisions count, as the configuration says.
pub(super) fn policy_of(config: &Config) -> Policy {
    Policy {
        required: config.reviewers.required,
        named: config.reviewers.names.iter().cloned().collect(),
        signatures: config.reviewers.signatures,
    }
}

fn link(
    repository: &Repository<'_>,
    issue: u64,
    plan: &Plan,
    ledger: &Ledger,
    base: &CommitId,
    head: &CommitId,
) -> Result<Link, ReviewError> {
    let objects = Objects::open(repository.git())?;
    link_range(repository, &objects, (base, head), plan, ledger, Budget::default()).map_err(
        |error| match error {
            LinkingError::Read(error) => error.into(),
            LinkingError::Repository(error) => error.into(),
            LinkingError::Link(source) => ReviewError::Link { issue, source },
            LinkingError::Watch(error) => ReviewError::Watch(error),
        },
    )
}

/// Makes again what the page of a form showed: the same commits, plan and ledger, and the choices
/// of that time. `None` when that does not come out as the form says.
///
/// # Errors
/// [`ReviewError::Store`] when the state can't be read.
pub fn old_page(
    repository: &Repository<'_>,
    store: &Store<'_>,
    form: &Form,
    review: &Review,
) -> Result<Option<OldPage>, ReviewError> {
    let (Some(revision), Some(base), Some(head)) = (form.revision, &form.base, &form.head) else {
        return Ok(None);
    };
    let inputs = &review.inputs;
    let (plan, ledger, decisions) = store.read(|tx| -> Result<_, StoreError> {
        let plan = tx.plan(inputs.task.id, revision)?.map(|row| row.plan);
        Ok((plan, tx.ledger_rows(inputs.task.id)?, tx.decisions(inputs.task.id)?))
    })?;
    let Some(plan) = plan else { return Ok(None) };
    let then = form.rendered_at.as_str();
    let rows: Vec<_> = ledger.into_iter().filter(|row| row.recorded_at.as_str() <= then).collect();
    let made = link(repository, inputs.task.issue, &plan, &ledger_of(&rows), base, head);
    let link = match made {
        Ok(link) if form.segments.as_ref() == Some(&form_segments(&link)) => link,
        // Without its commits, or from another ledger: the page can't be made again.
        Ok(_) | Err(ReviewError::Read(_) | ReviewError::Link { .. } | ReviewError::Git(_)) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let known: Vec<_> = decisions.iter().filter(|row| row.made.at.as_str() <= then).collect();
    // Of what was decided in the second of the page, only a part may have come before it.
    let n_before = known.iter().filter(|row| row.made.at.as_str() < then).count();
    let mut page = None;
    for n_seen in (n_before..=known.len()).rev() {
        let choices = choices_of(inputs, &known[..n_seen]);
        let placed = place(&link, &plan, &choices);
        let now = Now::take(&link, &placed, &plan, |item| binding_of(inputs, item));
        let is_it = form.offers(&now.fingerprints);
        if is_it || page.is_none() {
            page = Some((placed, now));
        }
        if is_it {
            break;
        }
    }
    Ok(page.map(|(placed, now)| OldPage { link, placed, now }))
}

/// The choices that stood after these decisions, oldest first.
fn choices_of(inputs: &Inputs, decisions: &[&DecisionRow]) -> Choices {
    let mut choices = Choices::new();
    for row in decisions {
        if !inputs.policy.counts(&row.made.reviewer) {
            continue;
        }
        let key = row.decision["key"].as_str();
        let Some(key) = key.and_then(|key| codeboost_schema::ids::Digest::parse(key).ok()) else {
            continue;
        };
        match row.kind.as_str() {
            "accept" => {
                choices.insert(key, Choice::Accepted);
            }
            "assign" => {
                let item = row.decision["item"].as_str().and_then(|id| ItemId::parse(id).ok());
                choices.extend(item.map(|item| (key, Choice::Assigned(item))));
            }
            "unresolve" => {
                choices.remove(&key);
            }
            _ => {}
        }
    }
    choices
}

/// The keys whose forms are accepted: this repository's own, and those that the configuration
/// names.
///
/// # Errors
/// [`StoreError`] when the own key can't be read.
pub fn keys(store: &Store<'_>, config: &Config) -> Result<Vec<AcceptedKey>, StoreError> {
    let own = store.key()?.map(|key| key.public_text());
    Ok(accepted_keys(own, config))
}

/// The task that a form names; `None` when this state has no such task.
///
/// # Errors
/// [`StoreError`] when the state can't be read.
pub fn task_of(store: &Store<'_>, form: &Form) -> Result<Option<TaskRow>, StoreError> {
    let Some(id) = form.task.as_ref().and_then(|id| TaskId::parse(id.as_str())) else {
        return Ok(None);
    };
    store.read(|tx| tx.task(id))
}
