//! Merges: runs of the sequence, their steps, attempts to land a commit; what is published.
//!
//! An attempt is written before anything is sent, with the commit that is to land. From then on
//! the truth about it is in git, and [`WriteTx::settle_attempt`] records what git says. An attempt
//! that was held to have failed may turn out to have landed, never the other way round.

use std::collections::BTreeSet;

use codeboost_schema::ids::{CommitId, Digest};
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::json;

use crate::config::{HeadAfter, MergeMethod};
use crate::store::tx::{parsed, parsed_opt};
use crate::store::{Event, Lease, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, TaskId, TaskState};

/// One run of the merge sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeRunRow {
    /// Grows.
    pub id: i64,
    /// How the commit was to be made.
    pub method: MergeMethod,
    /// What was to become of the head's branch.
    pub head_after: HeadAfter,
    /// RFC 3339 UTC.
    pub started_at: String,
    /// RFC 3339 UTC; `None` while it runs, or when it was killed.
    pub ended_at: Option<String>,
    /// How it ended, one word.
    pub outcome: Option<String>,
    /// Why, for people.
    pub reason: Option<String>,
    /// Its steps in order; a run that stopped lacks those after the last.
    pub steps: Vec<MergeStepRow>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeStepRow {
    /// Its name: `Fetch`.
    pub step: String,
    /// How it stands.
    pub state: StepState,
    /// For people: what is being done, or what came of it.
    pub words: String,
    /// RFC 3339 UTC.
    pub started_at: String,
    /// How long it took, in milliseconds; `None` while it runs.
    pub millis: Option<u64>,
}

/// How a step of a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Under way, or killed in it.
    Running,
    /// Done.
    Done,
    /// There was nothing to do.
    Skipped,
    /// It stopped the run.
    Failed,
}

impl StepState {
    /// The word in state and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Skipped, Self::Failed]
            .into_iter()
            .find(|state| state.word() == word)
    }
}

/// Where an attempt to land a commit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptState {
    /// About to be sent, or sent without a clear answer.
    Submitting,
    /// In a merge queue.
    Queued,
    /// Taken out of the merge queue.
    Removed,
    /// It did not land.
    Failed,
    /// It landed.
    Merged,
}

impl AttemptState {
    /// The contract's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Submitting => "submitting",
            Self::Queued => "queued",
            Self::Removed => "removed",
            Self::Failed => "failed",
            Self::Merged => "merged",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Submitting, Self::Queued, Self::Removed, Self::Failed, Self::Merged]
            .into_iter()
            .find(|state| state.word() == word)
    }

    /// Whether what came of it is still to be found out.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Submitting | Self::Queued)
    }
}

/// One attempt to land a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeAttemptRow {
    /// Grows.
    pub id: i64,
    /// The base that was validated.
    pub base: CommitId,
    /// The head that was validated.
    pub head: CommitId,
    /// What was to land.
    pub commit: CommitId,
    /// What guarded it, one word.
    pub guard: String,
    /// Where it was to land, for people.
    pub place: String,
    /// Where it stands.
    pub state: AttemptState,
    /// Why, for people; the other side's own words where there are any.
    pub reason: String,
    /// The pull request that it is about.
    pub pull: Option<u64>,
    /// The last removal from the merge queue that was seen before it.
    pub seen: Option<String>,
    /// What landed, where the forge made the commit.
    pub landed: Option<CommitId>,
    /// RFC 3339 UTC.
    pub recorded_at: String,
    /// RFC 3339 UTC.
    pub changed_at: String,
}

/// What an attempt is made from.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt<'n> {
    /// The run that it belongs to.
    pub run: i64,
    /// See [`MergeAttemptRow::base`].
    pub base: &'n CommitId,
    /// See [`MergeAttemptRow::head`].
    pub head: &'n CommitId,
    /// See [`MergeAttemptRow::commit`].
    pub commit: &'n CommitId,
    /// See [`MergeAttemptRow::guard`].
    pub guard: &'n str,
    /// See [`MergeAttemptRow::place`].
    pub place: &'n str,
    /// See [`MergeAttemptRow::pull`].
    pub pull: Option<u64>,
    /// See [`MergeAttemptRow::seen`].
    pub seen: Option<&'n str>,
}

/// The pull request of the local forge: a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublicationRow {
    /// Whether it is not to be merged yet.
    pub draft: bool,
    /// The base at that time.
    pub base: CommitId,
    /// The head at that time.
    pub head: CommitId,
    /// RFC 3339 UTC.
    pub published_at: String,
    /// RFC 3339 UTC.
    pub changed_at: String,
}

fn commit(row: &Row<'_>, column: usize) -> rusqlite::Result<CommitId> {
    parsed(row, column, |text| CommitId::parse(text).ok())
}

impl crate::store::Store<'_> {
    /// See [`ReadTx::generation`].
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn generation(&self) -> Result<i64, StoreError> {
        self.read(|tx| -> Result<_, StoreError> { tx.generation() })
    }
}

impl ReadTx<'_> {
    /// Changes whenever another process changes the state. Only for comparing two moments of one
    /// [`crate::store::Store`].
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn generation(&self) -> Result<i64, StoreError> {
        Ok(self.sql().pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    /// The runs of the merge sequence for a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn merge_runs(&self, task: TaskId) -> Result<Vec<MergeRunRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT id, method, head_after, started_at, ended_at, outcome, reason
             FROM merge_runs WHERE task = ?1 ORDER BY id",
        )?;
        let runs = query.query_map([task.to_string()], |row| {
            Ok(MergeRunRow {
                id: row.get(0)?,
                method: parsed(row, 1, MergeMethod::parse)?,
                head_after: parsed(row, 2, HeadAfter::parse)?,
                started_at: row.get(3)?,
                ended_at: row.get(4)?,
                outcome: row.get(5)?,
                reason: row.get(6)?,
                steps: Vec::new(),
            })
        })?;
        let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
        let mut query = self.sql().prepare(
            "SELECT step, state, words, started_at, millis FROM merge_steps
             WHERE run = ?1 ORDER BY nth",
        )?;
        for run in &mut runs {
            let steps = query.query_map([run.id], |row| {
                Ok(MergeStepRow {
                    step: row.get(0)?,
                    state: parsed(row, 1, StepState::parse)?,
                    words: row.get(2)?,
                    started_at: row.get(3)?,
                    millis: row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
                })
            })?;
            run.steps = steps.collect::<Result<_, _>>()?;
        }
        Ok(runs)
    }

    /// The attempts to land a commit of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn merge_attempts(&self, task: TaskId) -> Result<Vec<MergeAttemptRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT id, base_commit_id, head_commit_id, commit_id, guard, place, state, reason,
                    recorded_at, changed_at, pull, seen, landed_commit_id
             FROM merge_attempts WHERE task = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([task.to_string()], |row| {
            Ok(MergeAttemptRow {
                id: row.get(0)?,
                base: commit(row, 1)?,
                head: commit(row, 2)?,
                commit: commit(row, 3)?,
                guard: row.get(4)?,
                place: row.get(5)?,
                state: parsed(row, 6, AttemptState::parse)?,
                reason: row.get(7)?,
                recorded_at: row.get(8)?,
                changed_at: row.get(9)?,
                pull: row.get::<_, Option<i64>>(10)?.map(i64::unsigned_abs),
                seen: row.get(11)?,
                landed: parsed_opt(row, 12, |text| CommitId::parse(text).ok())?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The base that a task was added with, before any rebase.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the record of the task's beginning is missing.
    pub fn first_base(&self, task: &TaskRow) -> Result<CommitId, StoreError> {
        let row: Option<Option<CommitId>> = self
            .sql()
            .query_row(
                "SELECT detail ->> 'base' FROM events
                 WHERE task = ?1 AND kind = 'task-added' ORDER BY seq LIMIT 1",
                [task.id.to_string()],
                |row| parsed_opt(row, 0, |text| CommitId::parse(text).ok()),
            )
            .optional()?;
        row.flatten().ok_or_else(|| {
            StoreError::Damaged(format!("nothing says when the task #{} was added", task.issue))
        })
    }

    /// The commits that a task made itself: those of its ledger, and those it tried to land.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn own_commits(&self, task: TaskId) -> Result<BTreeSet<CommitId>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT commit_id FROM ledger WHERE task = ?1 AND origin <> 'foreign'
             UNION SELECT commit_id FROM merge_attempts WHERE task = ?1
             UNION SELECT landed_commit_id FROM merge_attempts
                 WHERE task = ?1 AND landed_commit_id IS NOT NULL",
        )?;
        let rows = query.query_map([task.to_string()], |row| commit(row, 0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Other tasks of the same issue that merged, or whose record is published and open; in words.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn other_work(&self, task: &TaskRow) -> Result<Vec<String>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT tasks.nth, tasks.head_ref, tasks.state, tasks.changed_at FROM tasks
             LEFT JOIN publications ON publications.task = tasks.id
             WHERE issue = (SELECT issue FROM tasks WHERE id = ?1) AND id <> ?1
               AND (state = 'merged' OR (publications.task IS NOT NULL AND state <> 'cancelled'))
             ORDER BY tasks.nth",
        )?;
        let rows = query.query_map([task.id.to_string()], |row| {
            let (nth, head, state, at): (i64, String, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let head = head.strip_prefix("refs/heads/").unwrap_or(&head).to_owned();
            Ok(format!("task {nth} of this issue, {head}, is {state} since {at}"))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The record of the local forge for a task; `None` while it is not published.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn publication(&self, task: TaskId) -> Result<Option<PublicationRow>, StoreError> {
        let row = self
            .sql()
            .query_row(
                "SELECT draft, base_commit_id, head_commit_id, published_at, changed_at
                 FROM publications WHERE task = ?1",
                [task.to_string()],
                |row| {
                    Ok(PublicationRow {
                        draft: row.get(0)?,
                        base: commit(row, 1)?,
                        head: commit(row, 2)?,
                        published_at: row.get(3)?,
                        changed_at: row.get(4)?,
                    })
                },
            )
            .optional()?;
        Ok(row)
    }

    /// The findings of the already-fixed check with which a person chose to go on.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn continued_findings(&self, task: TaskId) -> Result<BTreeSet<Digest>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT finding FROM fixed_findings WHERE task = ?1 AND continued_at IS NOT NULL",
        )?;
        let rows = query
            .query_map([task.to_string()], |row| parsed(row, 0, |text| Digest::parse(text).ok()))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl WriteTx<'_> {
    /// Records that a run of the merge sequence begins. A run that never ended was killed: it ends
    /// now, as `interrupted`, with the step that it was killed in.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn begin_merge_run(
        &self,
        lease: &Lease,
        method: MergeMethod,
        head_after: HeadAfter,
    ) -> Result<i64, StoreError> {
        let task = lease.task().to_string();
        let reason = "ended from outside";
        self.sql().execute(
            "UPDATE merge_steps SET state = 'failed', millis = 0, words = words || ': ' || ?2
             WHERE state = 'running'
               AND run IN (SELECT id FROM merge_runs WHERE task = ?1 AND ended_at IS NULL)",
            (&task, reason),
        )?;
        self.sql().execute(
            "UPDATE merge_runs SET ended_at = ?2, outcome = 'interrupted', reason = ?3
             WHERE task = ?1 AND ended_at IS NULL",
            (&task, self.now(), reason),
        )?;
        self.sql().execute(
            "INSERT INTO merge_runs (task, method, head_after, started_at) VALUES (?1, ?2, ?3, ?4)",
            (&task, method.word(), head_after.word(), self.now()),
        )?;
        Ok(self.sql().last_insert_rowid())
    }

    /// Records that a step of a run begins. `words`: what is about to be done.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn begin_merge_step(
        &self,
        run: i64,
        nth: usize,
        step: &str,
        words: &str,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO merge_steps (run, nth, step, state, words, started_at)
             VALUES (?1, ?2, ?3, 'running', ?4, ?5)",
            (run, nth_to_sql(nth), step, words, self.now()),
        )?;
        Ok(())
    }

    /// Records how a step of a run ended. `words`: what came of it.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_merge_step(
        &self,
        run: i64,
        nth: usize,
        state: StepState,
        words: &str,
        millis: u64,
    ) -> Result<(), StoreError> {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        self.sql().execute(
            "UPDATE merge_steps SET state = ?3, words = ?4, millis = ?5 WHERE run = ?1 AND nth = ?2",
            (run, nth_to_sql(nth), state.word(), words, millis),
        )?;
        Ok(())
    }

    /// Notes what the step of a run that is under way waits for.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn note_merge_step(&self, run: i64, words: &str) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE merge_steps SET words = ?2 WHERE run = ?1 AND state = 'running'",
            (run, words),
        )?;
        Ok(())
    }

    /// Records how a run ended, unless that was recorded already. `outcome`: one word.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_merge_run(
        &self,
        lease: &Lease,
        run: i64,
        outcome: &'static str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let rows = self.sql().execute(
            "UPDATE merge_runs SET ended_at = ?2, outcome = ?3, reason = ?4
             WHERE id = ?1 AND ended_at IS NULL",
            (run, self.now(), outcome, reason),
        )?;
        if rows == 0 {
            return Ok(());
        }
        // What still waits is asked for as before.
        if !["waits", "unclear", "queued"].contains(&outcome) {
            self.end_errands(lease.task(), "merge", outcome == "merged", reason)?;
        }
        self.log(&Event {
            task: Some(lease.task()),
            kind: "merge",
            actor: Actor::Person,
            detail: json!({"run": run, "outcome": outcome, "reason": reason}),
            words: &format!("merge: {outcome}: {}", reason.lines().next().unwrap_or_default()),
        })
    }

    /// Records what is about to be sent, before it is, and moves the task to `merging`.
    ///
    /// `task` must be as it was read. Returns the attempt's number and the task as it is now.
    ///
    /// # Errors
    /// [`StoreError::TaskMoved`] when the task changed since it was read; other variants when an
    /// attempt is under way or it can't be written.
    pub fn record_attempt(
        &self,
        task: &TaskRow,
        new: &NewAttempt<'_>,
    ) -> Result<(i64, TaskRow), StoreError> {
        let words = format!("{:.12} is about to land on {}", new.commit, new.place);
        let task = self.set_task_state(task, TaskState::Merging, &words, Actor::Person)?;
        self.sql().execute(
            "INSERT INTO merge_attempts (task, run, base_commit_id, head_commit_id, commit_id, guard,
                 place, state, reason, recorded_at, changed_at, pull, seen)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'submitting', '', ?8, ?8, ?9, ?10)",
            (
                task.id.to_string(),
                new.run,
                new.base.as_str(),
                new.head.as_str(),
                new.commit.as_str(),
                new.guard,
                new.place,
                self.now(),
                new.pull.map(|pull| i64::try_from(pull).unwrap_or(i64::MAX)),
                new.seen,
            ),
        )?;
        let id = self.sql().last_insert_rowid();
        self.log(&Event {
            task: Some(task.id),
            kind: "merge-attempt",
            actor: Actor::Person,
            detail: json!({
                "attempt": id, "base": new.base, "head": new.head, "commit": new.commit,
                "guard": new.guard, "place": new.place,
            }),
            words: &format!("merge attempt {id}: {words}"),
        })?;
        Ok((id, task))
    }

    /// Records what came of an attempt, as git says, and moves the task on.
    ///
    /// `reason`: why, for people, with the other side's own words. `task` must be as it was read.
    ///
    /// # Errors
    /// [`StoreError::TaskMoved`] when the task changed since it was read; [`StoreError::Damaged`]
    /// when the attempt is not one of the task or has merged.
    pub fn settle_attempt(
        &self,
        task: &TaskRow,
        attempt: i64,
        state: AttemptState,
        reason: &str,
        to: TaskState,
    ) -> Result<TaskRow, StoreError> {
        let rows = self.sql().execute(
            "UPDATE merge_attempts SET state = ?3, reason = ?4, changed_at = ?5
             WHERE id = ?1 AND task = ?2 AND state <> 'merged'",
            (attempt, task.id.to_string(), state.word(), reason, self.now()),
        )?;
        if rows == 0 {
            return Err(StoreError::Damaged(format!("there is no open merge attempt {attempt}")));
        }
        self.log(&Event {
            task: Some(task.id),
            kind: "merge-attempt",
            actor: Actor::Codeboost,
            detail: json!({"attempt": attempt, "state": state.word(), "reason": reason}),
            words: &format!("merge attempt {attempt}: {}: {reason}", state.word()),
        })?;
        if task.state == to {
            return Ok(task.clone());
        }
        self.set_task_state(task, to, reason, Actor::Codeboost)
    }

    /// Records which commit the forge made of an attempt.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_landed(&self, attempt: i64, commit: &CommitId) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE merge_attempts SET landed_commit_id = ?2 WHERE id = ?1",
            (attempt, commit.as_str()),
        )?;
        Ok(())
    }

    /// Records the pull request of the local forge, or that it is a draft or no longer one.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn publish(&self, task: &TaskRow, draft: bool) -> Result<PublicationRow, StoreError> {
        self.sql().execute(
            "INSERT INTO publications (task, draft, base_commit_id, head_commit_id, published_at, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)
             ON CONFLICT (task) DO UPDATE SET draft = excluded.draft,
                 base_commit_id = excluded.base_commit_id,
                 head_commit_id = excluded.head_commit_id, changed_at = excluded.changed_at",
            (
                task.id.to_string(),
                draft,
                task.base_commit_id.as_str(),
                task.head_commit_id.as_str(),
                self.now(),
            ),
        )?;
        self.log(&Event {
            task: Some(task.id),
            kind: "published",
            actor: Actor::Person,
            detail: json!({
                "draft": draft, "base": task.base_commit_id, "head": task.head_commit_id,
            }),
            words: if draft { "published as a draft" } else { "published, ready to merge" },
        })?;
        self.publication(task.id)?
            .ok_or_else(|| StoreError::Damaged("a published record is missing".into()))
    }

    /// Records what the already-fixed check found: of each its digest and its words.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn record_findings(
        &self,
        task: TaskId,
        findings: &[(Digest, String)],
    ) -> Result<(), StoreError> {
        for (digest, words) in findings {
            self.sql().execute(
                "INSERT OR IGNORE INTO fixed_findings (task, finding, words, found_at)
                 VALUES (?1, ?2, ?3, ?4)",
                (task.to_string(), digest.as_str(), words, self.now()),
            )?;
        }
        Ok(())
    }

    /// Records that somebody looked at all that the already-fixed check has found for a task, and
    /// goes on. What it finds later stops the task again.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn continue_findings(&self, task: TaskId, actor: &Actor) -> Result<(), StoreError> {
        let mut query = self.sql().prepare(
            "UPDATE fixed_findings SET continued_at = ?2, continued_by = ?3
             WHERE task = ?1 AND continued_at IS NULL RETURNING words",
        )?;
        let rows = query
            .query_map((task.to_string(), self.now(), self.actor_text(actor)), |row| {
                row.get::<_, String>(0)
            })?;
        let mut words = rows.collect::<Result<Vec<_>, _>>()?;
        words.sort();
        if words.is_empty() {
            return Ok(());
        }
        self.log(&Event {
            task: Some(task),
            kind: "fixed-continued",
            actor: actor.clone(),
            detail: json!({"findings": words}),
            words: &format!("goes on although: {}", words.join("; ")),
        })
    }
}

fn nth_to_sql(nth: usize) -> i64 {
    i64::try_from(nth).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::World;

    fn in_review(store: &crate::store::Store<'_>, task: &TaskRow) -> TaskRow {
        store
            .write(|tx| tx.set_task_state(task, TaskState::InReview, "linked", Actor::Codeboost))
            .map_err(|error: StoreError| error)
            .expect("a legal step")
    }

    #[test]
    fn an_attempt_is_recorded_before_and_settled_after_and_lands_once() {
        let world = World::new();
        let store = world.store();
        let task = in_review(&store, &world.add_task(&store, 12));
        let lease = store.lease(&task, "merge").expect("a lock").expect("free");
        let id = world.commit_id("main");
        let run = store
            .write(|tx| tx.begin_merge_run(&lease, MergeMethod::Merge, HeadAfter::Delete))
            .map_err(|error: StoreError| error)
            .expect("a run");
        let new = NewAttempt {
            run,
            base: &id,
            head: &id,
            commit: &id,
            guard: "pinned-push",
            place: "the remote origin",
            pull: None,
            seen: None,
        };
        let (first, merging) =
            store.write(|tx| tx.record_attempt(&task, &new)).expect("an attempt");
        assert_eq!(merging.state, TaskState::Merging);

        let again: Result<_, StoreError> = store.write(|tx| tx.record_attempt(&task, &new));
        assert!(matches!(again, Err(StoreError::TaskMoved(12))), "{again:?}");

        let task = store
            .write(|tx| {
                let to = TaskState::MergeBlocked;
                tx.settle_attempt(&merging, first, AttemptState::Failed, "refused", to)
            })
            .map_err(|error: StoreError| error)
            .expect("settled");
        let (second, merging) =
            store.write(|tx| tx.record_attempt(&task, &new)).expect("another attempt");
        let merged = |attempt, task: &TaskRow| -> Result<TaskRow, StoreError> {
            let to = TaskState::Merged;
            store.write(|tx| tx.settle_attempt(task, attempt, AttemptState::Merged, "landed", to))
        };
        let task = merged(second, &merging).expect("merged");
        assert_eq!(task.state, TaskState::Merged);
        assert!(merged(second, &task).is_err(), "what merged never changes");
        assert!(merged(first, &task).is_err(), "a task merges once");

        let attempts = store.read(|tx| tx.merge_attempts(task.id)).expect("readable");
        let states: Vec<_> = attempts.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states, [AttemptState::Failed, AttemptState::Merged]);
    }

    #[test]
    fn a_killed_run_is_told_by_the_next_one() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 12);
        let lease = store.lease(&task, "merge").expect("a lock").expect("free");
        let begin = || -> Result<i64, StoreError> {
            store.write(|tx| tx.begin_merge_run(&lease, MergeMethod::Squash, HeadAfter::Keep))
        };
        let run = begin().expect("a run");
        store
            .write(|tx| {
                tx.begin_merge_step(run, 1, "Fetch", "reading")?;
                tx.end_merge_step(run, 1, StepState::Done, "read", 30)?;
                tx.begin_merge_step(run, 2, "Rebase", "looking")
            })
            .map_err(|error: StoreError| error)
            .expect("steps");
        begin().expect("the next run");
        let runs = store.read(|tx| tx.merge_runs(task.id)).expect("readable");
        assert_eq!(runs[0].outcome.as_deref(), Some("interrupted"));
        let steps: Vec<_> =
            runs[0].steps.iter().map(|step| (step.state, step.words.as_str())).collect();
        let expected =
            [(StepState::Done, "read"), (StepState::Failed, "looking: ended from outside")];
        assert_eq!(steps, expected);
        assert_eq!(runs[1].ended_at, None);
    }

    #[test]
    fn other_work_on_an_issue_is_what_merged_or_is_published() {
        let world = World::new();
        let store = world.store();
        let first = in_review(&store, &world.add_task(&store, 12));
        let other = world.add_task(&store, 13);
        let work = |task: &TaskRow| store.read(|tx| tx.other_work(task)).expect("readable");
        assert!(work(&first).is_empty());
        store
            .write(|tx| {
                tx.publish(&other, false)?;
                tx.set_task_state(&first, TaskState::Merged, "landed", Actor::Codeboost)
            })
            .map_err(|error: StoreError| error)
            .expect("merged");
        let second = world.add_task(&store, 12);
        let found = work(&second);
        assert_eq!(found, ["task 1 of this issue, topic, is merged since 2026-11-30T12:00:00Z"]);
        assert_eq!(store.read(|tx| tx.first_base(&second)).expect("known"), second.base_commit_id);
    }

    #[test]
    fn the_generation_changes_when_another_process_writes() {
        let world = World::new();
        let (mine, theirs) = (world.store(), world.store());
        let now = || mine.generation().expect("readable");
        let before = now();
        world.add_task(&mine, 12);
        assert_eq!(now(), before, "one's own changes don't count");
        world.add_task(&theirs, 13);
        assert_ne!(now(), before);
    }
}
