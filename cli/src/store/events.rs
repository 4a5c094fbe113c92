//! What happened: append-only, written in the transaction that did it.

use serde::Serialize;
use serde_json::Value;

use crate::store::tx::{parsed_opt, unreadable};
use crate::store::{ReadTx, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// Something that happens now.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// The task; `None` for what concerns the whole repository.
    pub task: Option<TaskId>,
    /// A fixed word per kind: `task-added`, `state`, `ledger`.
    pub kind: &'static str,
    /// Who caused it.
    pub actor: Actor,
    /// For programs.
    pub detail: Value,
    /// For people: one line, past tense, without time and actor.
    pub words: &'a str,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventRow {
    /// Grows; the order in which things happened.
    pub seq: i64,
    /// RFC 3339 UTC.
    pub at: String,
    /// The task; `None` for what concerns the whole repository.
    pub task: Option<TaskId>,
    /// The task's issue.
    pub issue: Option<u64>,
    /// A fixed word per kind.
    pub kind: String,
    /// Who caused it.
    pub actor: String,
    /// For people.
    pub words: String,
    /// For programs.
    pub detail: Value,
}

impl WriteTx<'_> {
    /// Appends to the event log.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn log(&self, event: &Event<'_>) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO events (at, task, kind, actor, detail, words) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                self.now(),
                event.task.map(|task| task.to_string()),
                event.kind,
                self.actor_text(&event.actor),
                event.detail.to_string(),
                event.words,
            ),
        )?;
        Ok(())
    }
}

impl ReadTx<'_> {
    /// What happened to a task, or in the whole repository, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn events(&self, task: Option<TaskId>) -> Result<Vec<EventRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT seq, at, task, kind, actor, words, detail,
                    (SELECT issue FROM tasks WHERE tasks.id = events.task)
             FROM events WHERE ?1 IS NULL OR task = ?1 ORDER BY seq",
        )?;
        let rows = query.query_map([task.map(|task| task.to_string())], |row| {
            let detail: String = row.get(6)?;
            Ok(EventRow {
                seq: row.get(0)?,
                at: row.get(1)?,
                task: parsed_opt(row, 2, TaskId::parse)?,
                kind: row.get(3)?,
                actor: row.get(4)?,
                words: row.get(5)?,
                detail: serde_json::from_str(&detail).map_err(|_| unreadable(6, &detail))?,
                issue: row.get::<_, Option<i64>>(7)?.map(i64::unsigned_abs),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
