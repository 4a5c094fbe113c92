//! What a review is made from, read and named by its digest before anything is linked or judged:
//! whoever made something of the same sources before has no need to do it again.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use codeboost_schema::ids::{CommitId, Digest, Uuid};
use codeboost_schema::ledger::Ledger;
use codeboost_schema::plan::Plan;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::approval::policy::Policy;
use crate::config::{Config, EvidenceSource};
use crate::gate::{CheckResult, Tip};
use crate::git::repository::Repository;
use crate::process;
use crate::review::read::{Loaded, ReviewError, judge, policy_of};
use crate::review::uuid;
use crate::store::{
    AcknowledgementRow, ApprovalRow, Cache, ChoiceRow, LedgerRow, Made, MergeRunRow, NoteRow,
    ReadTx, Rounds, Store, StoreError, TaskRow,
};

/// Everything that a review is made from but the objects, which its commits name.
#[derive(Debug, Clone, Serialize)]
pub struct Sources {
    /// The base of the review.
    pub base: CommitId,
    /// The head of the review.
    pub head: CommitId,
    /// The repository.
    pub repository: Uuid,
    /// The task.
    pub task: TaskRow,
    /// The plan at the revision under review.
    pub plan: Plan,
    /// Who made each commit.
    pub ledger: Vec<LedgerRow>,
    /// Approvals that were not withdrawn, oldest first.
    pub approvals: Vec<ApprovalRow>,
    /// Choices that were not ended.
    pub choices: Vec<ChoiceRow>,
    /// Acknowledgements.
    pub acknowledgements: Vec<AcknowledgementRow>,
    /// Questions and change requests, oldest first.
    pub notes: Vec<NoteRow>,
    /// Rejections that sent change requests, oldest first.
    pub rejections: Vec<Made>,
    /// Review rounds and their problems.
    pub rounds: Rounds,
    /// Evidence of checks, oldest first.
    pub checks: Vec<CheckResult>,
    /// Where evidence counts.
    pub cmd_evidence: BTreeSet<EvidenceSource>,
    /// Whose decisions count.
    pub policy: Policy,
    /// Whether the base's branch still names that base.
    pub base_tip: Tip,
    /// Whether the head's branch still names that head.
    pub head_tip: Tip,
    /// What is shown beside a review and decides nothing of it.
    #[serde(skip)]
    pub beside: Beside,
}

/// What is shown beside a review.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Runs of the merge sequence, oldest first.
    pub merge_runs: Vec<MergeRunRow>,
    /// The issue's text.
    pub body: Option<String>,
    /// The local configuration.
    pub config: Config,
    /// The newest record of the task: its place in the log, and when it was made.
    pub newest_record: Option<(i64, String)>,
    /// Changes with every change of the state by another process.
    pub generation: i64,
}

impl Sources {
    /// Reads them for one pair of base and head.
    ///
    /// # Errors
    /// [`ReviewError`] when one of them can't be read, or no revision of the plan was approved.
    pub fn read(
        repository: &Repository<'_>,
        store: &Store<'_>,
        task: &TaskRow,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Self, ReviewError> {
        let config = repository.config()?;
        let mut this = store.read(|tx| -> Result<_, ReviewError> {
            let newest = tx.newest_plan(task.id)?.map(|row| row.plan.revision);
            let plan = tx.approved_plan(task.id)?.map(|row| row.plan);
            Ok(Self {
                base: base.clone(),
                head: head.clone(),
                repository: uuid(&tx.repository_id()?),
                task: task.clone(),
                plan: plan.ok_or(ReviewError::NoPlan { issue: task.issue, newest })?,
                ledger: tx.ledger_rows(task.id)?,
                approvals: tx.approvals(task.id)?,
                choices: tx.choices(task.id)?,
                acknowledgements: tx.acknowledgements(task.id)?,
                notes: tx.notes(task.id)?,
                rejections: tx
                    .open_errands(task.id)?
                    .into_iter()
                    .filter(|errand| errand.kind == "reject")
                    .map(|errand| errand.made)
                    .collect(),
                rounds: rounds(tx, task, &policy_of(&config))?,
                checks: Vec::new(),
                cmd_evidence: config.cmd_evidence.clone(),
                policy: policy_of(&config),
                base_tip: Tip::Gone,
                head_tip: Tip::Gone,
                beside: Beside {
                    merge_runs: tx.merge_runs(task.id)?,
                    body: tx.issue(task.issue)?.and_then(|issue| issue.body),
                    config,
                    newest_record: tx.newest_record(task.id)?,
                    generation: tx.generation()?,
                },
            })
        })?;
        // Later than the moment above: what is newer than its generation is noticed.
        this.checks = store.check_results(task.id)?;
        let [base_now, head_now] =
            repository.git().resolve_all([&task.base_ref, &task.head_ref])?;
        let tip = |found: Option<CommitId>, expected: &CommitId| match found {
            Some(found) if found == *expected => Tip::Same,
            Some(found) => Tip::Moved(found),
            None => Tip::Gone,
        };
        // Where the merge happens elsewhere, a base here that lags behind is nothing new.
        let lags = match &base_now {
            Some(found) if this.beside.config.merges_elsewhere(&task.base_ref) => {
                found != base && repository.git().is_ancestor(found, base)?
            }
            _ => false,
        };
        this.base_tip = if lags { Tip::Same } else { tip(base_now, base) };
        this.head_tip = tip(head_now, head);
        Ok(this)
    }

    /// Who made each commit, as `ledger.json` says it.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        ledger_of(&self.ledger)
    }
}

/// Whose decisions count in a repository.
///
/// # Errors
/// [`ReviewError`] when the configuration can't be read.
pub fn policy_of_repository(repository: &Repository<'_>) -> Result<Policy, ReviewError> {
    Ok(policy_of(&repository.config()?))
}

/// The review rounds of a task, with what people who count say of their problems.
///
/// # Errors
/// [`StoreError`] when they can't be read whole.
pub fn rounds(tx: &ReadTx<'_>, task: &TaskRow, policy: &Policy) -> Result<Rounds, StoreError> {
    let (events, decisions) = (tx.events(Some(task.id))?, tx.decisions(task.id)?);
    Rounds::replay(&events, &decisions, |row| policy.counts(&row.made.reviewer))
}

/// The ledger of these rows.
pub(super) fn ledger_of(rows: &[LedgerRow]) -> Ledger {
    let commits = rows.iter().map(|row| (row.commit_id.clone(), row.entry.clone()));
    Ledger { schema_version: 1, commits: commits.collect() }
}

/// A review whose sources are read, and that is linked and judged when somebody needs to know.
pub struct Reading<'a> {
    repository: &'a Repository<'a>,
    store: &'a Store<'a>,
    sources: Sources,
    made_from: Digest,
    loaded: OnceCell<Loaded>,
}

impl<'a> Reading<'a> {
    /// Reads the sources of a task's review at the base and head that are recorded for it.
    ///
    /// # Errors
    /// As [`Sources::read`].
    pub fn of(
        repository: &'a Repository<'a>,
        store: &'a Store<'a>,
        task: &TaskRow,
    ) -> Result<Self, ReviewError> {
        Self::at(repository, store, task, &task.base_commit_id, &task.head_commit_id)
    }

    /// Reads the sources of a task's review at one pair of base and head.
    ///
    /// # Errors
    /// As [`Sources::read`].
    pub fn at(
        repository: &'a Repository<'a>,
        store: &'a Store<'a>,
        task: &TaskRow,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Self, ReviewError> {
        let sources = Sources::read(repository, store, task, base, head)?;
        let text = serde_json::to_vec(&(process::stamp(repository.context()), &sources));
        let made_from = Digest::of(&text.expect("sources always serialize"));
        Ok(Self { repository, store, sources, made_from, loaded: OnceCell::new() })
    }

    /// What the review is made from.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Digest of everything that the review follows from: the sources, this program and git.
    #[must_use]
    pub fn made_from(&self) -> &Digest {
        &self.made_from
    }

    /// The review.
    ///
    /// # Errors
    /// [`ReviewError`] when its history can't be read or linked.
    pub fn loaded(&self) -> Result<&Loaded, ReviewError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = judge(self.repository, self.store, &self.sources)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// The review, with nothing kept of what it was read from.
    ///
    /// # Errors
    /// As [`Self::loaded`].
    pub fn into_loaded(self) -> Result<Loaded, ReviewError> {
        self.loaded()?;
        Ok(self.loaded.into_inner().expect("loaded above"))
    }

    /// What forbids the merge, in words.
    ///
    /// # Errors
    /// As [`Self::loaded`].
    pub fn blockers(&self) -> Result<Vec<String>, ReviewError> {
        self.known("blockers", &(), |loaded| {
            loaded.review.blockers.iter().map(|blocker| blocker.words.clone()).collect()
        })
    }

    /// What `make` makes of the review, or made of the same one before. `kind`: a word for it, that
    /// a file may be named by; `of`: what it depends on besides the review.
    ///
    /// # Errors
    /// As [`Self::loaded`].
    pub fn known<T: Serialize + DeserializeOwned>(
        &self,
        kind: &str,
        of: &impl Serialize,
        make: impl FnOnce(&Loaded) -> T,
    ) -> Result<T, ReviewError> {
        let text = serde_json::to_vec(&(&self.made_from, of)).expect("plain values serialize");
        let made_from = Digest::of(&text);
        let cache = Cache::beside(self.store.folder());
        let found = cache.as_ref().and_then(|cache| cache.get(kind, &made_from));
        if let Some(value) = found.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(value);
        }
        let value = make(self.loaded()?);
        if let Some(cache) = cache {
            let bytes = serde_json::to_vec(&value).expect("what is kept serializes");
            cache.put(kind, &made_from, &bytes);
        }
        Ok(value)
    }
}
