//! Records of review threads, and the texts that they refer to.
//!
//! A record is a decision; nothing besides is written down. What the threads are now is for
//! `plan::threads` to say.

use codeboost_schema::ids::Digest;
use rusqlite::OptionalExtension as _;

use crate::plan::threads::{KINDS, Record, by};
use crate::store::review::reviewer;
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
            "SELECT id, decision, recorded_at, reviewer, signed, signer_key FROM decisions
             WHERE task = ?1 AND kind IN (?2, ?3, ?4, ?5) ORDER BY seq",
        )?;
        let rows = query.query_map((task.to_string(), a, b, c, d), |row| {
            let reviewer = reviewer(row.get(4)?, row.get(3)?, row.get(5)?);
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

#[cfg(test)]
mod tests {
    use codeboost_schema::decisions::{Action, Decision};
    use codeboost_schema::ids::Uuid;

    use super::*;
    use crate::approval::policy::Reviewer;
    use crate::plan::text::{PlanText, count_lines};
    use crate::plan::threads::Threads;
    use crate::store::Occasion;
    use crate::store::testing::World;

    #[test]
    fn a_damaged_record_of_a_thread_hides_no_other() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        let plan = include_str!("../../../schema/examples/plan-412-r3.json");
        let text = PlanText::of(&serde_json::from_str(plan).expect("a plan"));
        let uuid = |n: u32| Uuid::parse(&format!("00000000-0000-4000-8000-{n:012}")).expect("one");
        let on = Occasion {
            task: task.id,
            revision: 3,
            base: task.base_commit_id.clone(),
            head: task.head_commit_id.clone(),
            reviewer: Reviewer::Signed { name: "A".into(), key: None },
            file: None,
            signature: None,
        };
        let comment = |n: u32| {
            let action = Action::PlanComment {
                snapshot: text.snapshot(),
                lines: (1, 2),
                quote: None,
                thread: uuid(n),
                body: "Why?".into(),
            };
            Decision::new(uuid(100 + n), action)
        };
        store
            .write(|tx| -> Result<(), StoreError> {
                tx.record_decision(&on, &comment(1), "commented")?;
                for (n, decision) in
                    [r#"{"type":"plan_comment"}"#, r#"["plan_reply"]"#, "1", r#"{"v":2}"#]
                        .iter()
                        .enumerate()
                {
                    tx.sql().execute(
                        "INSERT INTO decisions (id, task, kind, content, decision, signed, reviewer,
                             revision, base_commit_id, head_commit_id, recorded_at)
                         VALUES (?1, ?2, 'plan_comment', 'x', ?3, 0, 'me', 3, 'b', 'h', 'now')",
                        (format!("damaged {n}"), task.id.to_string(), decision),
                    )?;
                }
                tx.record_decision(&on, &comment(2), "commented")?;
                tx.keep_plan_text(&text.text)
            })
            .expect("written");
        let (records, kept) = store
            .read(|tx| -> Result<_, StoreError> {
                Ok((tx.thread_records(task.id)?, tx.plan_text(&text.snapshot())?))
            })
            .expect("read");
        assert_eq!(kept.as_deref(), Some(text.text.as_str()));
        let lines = count_lines(&text.text);
        let threads = Threads::replay(&records, |one| (*one == text.snapshot()).then_some(lines));
        let names: Vec<_> = threads.threads.iter().map(|one| &one.thread).collect();
        assert_eq!(names, [&uuid(1), &uuid(2)]);
        assert_eq!(threads.threads[0].by, "A (signed)");
        let skipped: Vec<_> = threads.skipped.iter().map(|one| one.record.as_str()).collect();
        assert_eq!(skipped, ["damaged 0", "damaged 1", "damaged 2", "damaged 3"]);
    }
}
