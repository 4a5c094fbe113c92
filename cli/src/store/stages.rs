//! What each stage was last made from, so that a stage with unchanged inputs does nothing.

use codeboost_schema::ids::Digest;
use rusqlite::OptionalExtension as _;
use serde_json::json;

use crate::store::tx::parsed;
use crate::store::{Event, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, TaskId};

/// One stage of a task as it was last made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRow {
    /// Digest of everything that it was made from, the version of the stage included.
    pub inputs: Digest,
    /// Digest of what it wrote.
    pub outputs: Digest,
    /// RFC 3339 UTC.
    pub at: String,
}

impl ReadTx<'_> {
    /// How a stage was last made; `None` when it never was.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn stage(&self, task: TaskId, stage: &str) -> Result<Option<StageRow>, StoreError> {
        let digest = |text: &str| Digest::parse(text).ok();
        let row = self
            .sql()
            .query_row(
                "SELECT inputs, outputs, at FROM stages WHERE task = ?1 AND stage = ?2",
                (task.to_string(), stage),
                |row| {
                    Ok(StageRow {
                        inputs: parsed(row, 0, digest)?,
                        outputs: parsed(row, 1, digest)?,
                        at: row.get(2)?,
                    })
                },
            )
            .optional()?;
        Ok(row)
    }

    /// Whether a stage needs not be made again: its inputs are those it was made from, and what
    /// it wrote is still there. `outputs`: digest of the files as they are, `None` when one is
    /// missing.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn stage_is_current(
        &self,
        task: TaskId,
        stage: &str,
        inputs: &Digest,
        outputs: Option<&Digest>,
    ) -> Result<bool, StoreError> {
        let made = self.stage(task, stage)?;
        Ok(made.is_some_and(|made| made.inputs == *inputs && Some(&made.outputs) == outputs))
    }
}

impl WriteTx<'_> {
    /// Records how a stage was made.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_stage(
        &self,
        task: &TaskRow,
        stage: &'static str,
        inputs: &Digest,
        outputs: &Digest,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO stages (task, stage, inputs, outputs, at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (task, stage) DO UPDATE SET
                 inputs = excluded.inputs, outputs = excluded.outputs, at = excluded.at",
            (task.id.to_string(), stage, inputs.as_str(), outputs.as_str(), self.now()),
        )?;
        self.log(&Event {
            task: Some(task.id),
            kind: "stage",
            actor: Actor::Codeboost,
            detail: json!({"stage": stage, "inputs": inputs, "outputs": outputs}),
            words: &format!("made {stage}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::World;

    #[test]
    fn a_stage_is_current_while_inputs_and_outputs_are_what_they_were() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 1);
        let [a, b, out] = [Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"out")];
        let is_current = |inputs: &Digest, outputs: Option<&Digest>| {
            store.read(|tx| tx.stage_is_current(task.id, "link", inputs, outputs)).expect("read")
        };
        assert!(!is_current(&a, Some(&out)), "never made");
        store.write(|tx| tx.put_stage(&task, "link", &a, &out)).expect("recorded");
        assert!(is_current(&a, Some(&out)));
        assert!(!is_current(&b, Some(&out)), "other inputs");
        assert!(!is_current(&a, Some(&a)), "altered outputs");
        assert!(!is_current(&a, None), "no outputs");
        store.write(|tx| tx.put_stage(&task, "link", &b, &out)).expect("recorded");
        assert!(is_current(&b, Some(&out)) && !is_current(&a, Some(&out)));
    }
}
