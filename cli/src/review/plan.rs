//! The plan of a task as it stands, with all that is said about it.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::decisions::Action;
use codeboost_schema::ids::{Digest, Uuid};

use crate::approval::policy::Policy;
use crate::git::repository::Repository;
use crate::plan::text::{PlanText, count_lines};
use crate::plan::threads::Threads;
use crate::review::read::{ReviewError, policy_of};
use crate::review::uuid;
use crate::store::{
    AnswerRow, PlanRow, ReadTx, RequestRow, Store, StoreError, SuggestionRow, TaskRow,
};

/// The plan of a task.
#[derive(Debug, Clone)]
pub struct PlanState {
    /// The repository.
    pub repository: Uuid,
    /// The task.
    pub task: TaskRow,
    /// Every revision, oldest first.
    pub rows: Vec<PlanRow>,
    /// The newest answer to each question.
    pub answers: Vec<AnswerRow>,
    /// What an assistant was asked.
    pub requests: Vec<RequestRow>,
    /// Every suggested edit.
    pub suggestions: Vec<SuggestionRow>,
    /// The commands that may run.
    pub allowed: BTreeSet<Vec<String>>,
    /// The review threads.
    pub threads: Threads,
    /// The texts that threads can refer to, by digest.
    pub texts: BTreeMap<Digest, Text>,
    /// Whose decisions count.
    pub policy: Policy,
    /// Who holds the task, when that keeps its plan from being approved.
    pub held: Option<String>,
    /// When the newest record of the task was made; RFC 3339 UTC.
    pub newest_record: Option<String>,
    /// Changes with every change of the state by another process.
    pub generation: i64,
}

/// One text that threads can refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The revision whose text it is; `None` when only an earlier codeboost wrote it so.
    pub revision: Option<u64>,
    /// The text.
    pub text: String,
}

impl PlanState {
    /// Reads it.
    ///
    /// # Errors
    /// [`ReviewError`] when the state or the configuration can't be read.
    pub fn read(
        repository: &Repository<'_>,
        store: &Store<'_>,
        task: &TaskRow,
    ) -> Result<Self, ReviewError> {
        let policy = policy_of(&repository.config()?);
        Ok(store.read(|tx| Self::read_in(tx, task, policy))?)
    }

    fn read_in(tx: &ReadTx<'_>, task: &TaskRow, policy: Policy) -> Result<Self, StoreError> {
        let rows = tx.plans(task.id)?;
        let records = tx.thread_records(task.id)?;
        let mut texts: BTreeMap<Digest, Text> = BTreeMap::new();
        for row in &rows {
            let text = PlanText::of(&row.plan);
            let revision = Some(row.plan.revision);
            texts.insert(text.snapshot(), Text { revision, text: text.text });
        }
        for record in &records {
            if let Ok(Action::PlanComment { snapshot, .. }) = serde_json::from_str(&record.decision)
                && !texts.contains_key(&snapshot)
                && let Some(text) = tx.plan_text(&snapshot)?
            {
                texts.insert(snapshot, Text { revision: None, text });
            }
        }
        let lines_of = |digest: &Digest| texts.get(digest).map(|text| count_lines(&text.text));
        Ok(Self {
            repository: uuid(&tx.repository_id()?),
            task: task.clone(),
            threads: Threads::replay(&records, lines_of),
            texts,
            rows,
            answers: tx.plan_answers(task.id)?,
            requests: tx.suggestion_requests(task.id)?,
            suggestions: tx.suggestions(task.id)?,
            allowed: tx.allowed_commands()?.into_iter().collect(),
            policy,
            held: None,
            newest_record: tx.newest_record(task.id)?.map(|(_, at)| at),
            generation: tx.generation()?,
        })
    }

    /// Where a text comes from, for people: `r3`.
    #[must_use]
    pub fn name_of(&self, snapshot: &Digest) -> String {
        match self.texts.get(snapshot).and_then(|text| text.revision) {
            Some(revision) => format!("r{revision}"),
            None => "an earlier text".to_owned(),
        }
    }
}
