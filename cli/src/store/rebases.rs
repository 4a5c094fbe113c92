//! Rebases that codeboost made.
//!
//! One is written before the head's branch moves, together with what became of each commit. Whether
//! the branch moved is read from the branch, so a kill in between leaves nothing to mend.

use codeboost_schema::ids::CommitId;
use rusqlite::Row;
use serde_json::json;

use crate::ledger::Rewrite;
use crate::store::tx::parsed;
use crate::store::{Event, Lease, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, TaskId};

/// How a run of the merge sequence ends that could not bring the head onto a moved base.
pub const REBASE_CONFLICT: &str = "rebase-conflict";

/// One rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebaseRow {
    /// Grows.
    pub id: i64,
    /// What the old commits were made on.
    pub old_base: CommitId,
    /// The last of them.
    pub old_head: CommitId,
    /// What the new commits are made on.
    pub new_base: CommitId,
    /// The last of them.
    pub new_head: CommitId,
    /// RFC 3339 UTC.
    pub recorded_at: String,
}

fn rebase_row(row: &Row<'_>) -> rusqlite::Result<RebaseRow> {
    let commit = |column| parsed(row, column, |text| CommitId::parse(text).ok());
    Ok(RebaseRow {
        id: row.get(0)?,
        old_base: commit(1)?,
        old_head: commit(2)?,
        new_base: commit(3)?,
        new_head: commit(4)?,
        recorded_at: row.get(5)?,
    })
}

impl ReadTx<'_> {
    /// The rebases of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn rebases(&self, task: TaskId) -> Result<Vec<RebaseRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT id, old_base_id, old_head_id, new_base_id, new_head_id, recorded_at
             FROM rebases WHERE task = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([task.to_string()], rebase_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether `old` is a head that rebases, one after the other, turned into `head`.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn was_rebased_to(
        &self,
        task: TaskId,
        old: &CommitId,
        head: &CommitId,
    ) -> Result<bool, StoreError> {
        let mut heads = vec![head.clone()];
        for row in self.rebases(task)?.into_iter().rev() {
            if heads.contains(&row.new_head) {
                heads.push(row.old_head);
            }
        }
        Ok(heads.iter().skip(1).any(|known| known == old))
    }
}

impl WriteTx<'_> {
    /// Records a rebase that is about to move the head's branch: the ends of both ranges, and what
    /// became of each commit. Keep the new commits first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written; then the transaction has to fail.
    pub fn record_rebase(
        &self,
        lease: &Lease,
        task: &TaskRow,
        new_base: &CommitId,
        pairs: &[(CommitId, CommitId)],
    ) -> Result<(), StoreError> {
        debug_assert_eq!(lease.task(), task.id);
        let new_head = pairs.last().map_or(new_base, |(_, new)| new);
        self.sql().execute(
            "INSERT INTO rebases
                 (task, old_base_id, old_head_id, new_base_id, new_head_id, recorded_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                task.id.to_string(),
                task.base_commit_id.as_str(),
                task.head_commit_id.as_str(),
                new_base.as_str(),
                new_head.as_str(),
                self.now(),
            ),
        )?;
        let rewrites: Vec<_> =
            pairs.iter().map(|(old, new)| (old.clone(), new.clone(), Rewrite::Plain)).collect();
        self.map_commits(task, &rewrites, Actor::Codeboost)?;
        self.log(&Event {
            task: Some(task.id),
            kind: "rebase",
            actor: Actor::Codeboost,
            detail: json!({
                "old_base": task.base_commit_id, "old_head": task.head_commit_id,
                "new_base": new_base, "new_head": new_head,
            }),
            words: &format!(
                "rebases {} commit{} onto {new_base:.12}: {:.12} → {new_head:.12}",
                pairs.len(),
                if pairs.len() == 1 { "" } else { "s" },
                task.head_commit_id,
            ),
        })
    }
}
