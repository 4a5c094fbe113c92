//! The commands that checks may run, each as its exact argument list.

use serde_json::json;

use crate::store::{Event, ReadTx, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

impl ReadTx<'_> {
    /// Every allowed command, in the order in which they were allowed.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn allowed_commands(&self) -> Result<Vec<Vec<String>>, StoreError> {
        let mut query = self.sql().prepare("SELECT argv FROM allowed_commands ORDER BY rowid")?;
        let rows = query.query_map([], |row| row.get::<_, String>(0))?;
        let mut found = Vec::new();
        for row in rows {
            let text = row?;
            let argv = serde_json::from_str(&text)
                .map_err(|_| StoreError::Damaged(format!("an unreadable command {text:?}")))?;
            found.push(argv);
        }
        Ok(found)
    }
}

impl WriteTx<'_> {
    /// Allows a command. Returns whether it was not allowed before. `task`: whose plan it came
    /// with, if any.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn allow_command(
        &self,
        argv: &[String],
        actor: Actor,
        task: Option<TaskId>,
    ) -> Result<bool, StoreError> {
        let text = json!(argv).to_string();
        let rows = self.sql().execute(
            "INSERT OR IGNORE INTO allowed_commands (argv, allowed_at, allowed_by)
             VALUES (?1, ?2, ?3)",
            (&text, self.now(), self.actor_text(&actor)),
        )?;
        if rows > 0 {
            self.log(&Event {
                task,
                kind: "command-allowed",
                actor,
                detail: json!({"argv": argv}),
                words: &format!("allowed the command {text}"),
            })?;
        }
        Ok(rows > 0)
    }

    /// Takes the permission back. Returns whether it was allowed before.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn disallow_command(&self, argv: &[String], actor: Actor) -> Result<bool, StoreError> {
        let text = json!(argv).to_string();
        let rows = self.sql().execute("DELETE FROM allowed_commands WHERE argv = ?1", [&text])?;
        if rows > 0 {
            self.log(&Event {
                task: None,
                kind: "command-disallowed",
                actor,
                detail: json!({"argv": argv}),
                words: &format!("no longer allows the command {text}"),
            })?;
        }
        Ok(rows > 0)
    }
}
