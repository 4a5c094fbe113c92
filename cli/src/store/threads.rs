//! Records of review threads, and the texts that they refer to.
//!
//! A record is a decision; nothing besides is written down. What the threads are now is for
//! `plan::threads` to say.

use codeboost_schema::ids::Digest;
use rusqlite::OptionalExtension as _;

use crate::approval::policy::Reviewer;
use crate::plan::threads::{KINDS, Record, by};
use crate::store::{ReadTx, StoreError, WriteTx};
use crate::task::TaskId;

impl ReadTx<'_> {
    /// The records of a task's threads, oldest first, as they are stored: malformed ones too.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn thread_records(&self, task: TaskId) -> Result<Vec<Record>, StoreError> {
        let [a, b, c, d] = KINDS;
        let mut query = self.sql().prepare(
            "SELECT id, decision, recorded_at, reviewer, signed FROM decisions
             WHERE task = ?1 AND kind IN (?2, ?3, ?4, ?5) ORDER BY seq",
        )?;
        let rows = query.query_map((task.to_string(), a, b, c, d), |row| {
            let name: String = row.get(3)?;
            let reviewer =
                if row.get(4)? { Reviewer::Signed(name) } else { Reviewer::Terminal(name) };
            Ok(Record {
                id: row.get(0)?,
                decision: row.get(1)?,
                at: row.get(2)?,
                by: by(&reviewer),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The kept text of that digest; `None` when none was kept.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it was altered.
    pub fn plan_text(&self, snapshot: &Digest) -> Result<Option<String>, StoreError> {
        let sql = "SELECT snapshot FROM snapshots WHERE digest = ?1";
        let found: Option<Vec<u8>> =
            self.sql().query_row(sql, [snapshot.as_str()], |row| row.get(0)).optional()?;
        let Some(bytes) = found else { return Ok(None) };
        if Digest::of(&bytes) != *snapshot {
            return Err(StoreError::Damaged(format!("the text {snapshot} was altered")));
        }
        let damaged = |_| StoreError::Damaged(format!("the text {snapshot} is not UTF-8"));
        String::from_utf8(bytes).map(Some).map_err(damaged)
    }
}

impl WriteTx<'_> {
    /// Keeps a text that a thread refers to, so that it stays what it was.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn keep_plan_text(&self, text: &str) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT OR IGNORE INTO snapshots (digest, snapshot) VALUES (?1, ?2)",
            (Digest::of(text.as_bytes()).as_str(), text.as_bytes()),
        )?;
        Ok(())
    }
}
