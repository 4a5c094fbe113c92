//! Issues and tasks.

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::CommitId;
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::json;

use crate::store::tx::{parsed, to_sql};
use crate::store::{Event, ReadTx, StoreError, WriteTx};
use crate::task::{Actor, PlanId, TaskId, TaskState, derive_ids};

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// Its name in forms.
    pub id: TaskId,
    /// Its plan's name in forms.
    pub plan_id: PlanId,
    /// Its issue.
    pub issue: u64,
    /// The title of its issue.
    pub title: String,
    /// The branch to land on, as a full name: `refs/heads/main`.
    pub base_ref: String,
    /// The commit that the review compares with; an ancestor of the head.
    pub base_commit_id: CommitId,
    /// The branch under review, as a full name.
    pub head_ref: String,
    /// The head that was last looked at.
    pub head_commit_id: CommitId,
    /// Whether codeboost made the head's branch.
    pub made_head: bool,
    /// Where it stands.
    pub state: TaskState,
    /// Why it stands there, for people.
    pub reason: String,
    /// Grows by one with each change of this row.
    pub version: u64,
    /// RFC 3339 UTC.
    pub added_at: String,
    /// RFC 3339 UTC.
    pub changed_at: String,
}

/// An issue as it was last taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueRow {
    /// 1 or more.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text; `None` when only the number is known.
    pub body: Option<String>,
    /// The absolute path of the file that it was read from.
    pub file: Option<RepoBytes>,
    /// RFC 3339 UTC.
    pub taken_at: String,
}

/// What a new task is made from.
#[derive(Debug, Clone)]
pub struct NewTask<'a> {
    /// Its issue, which must have been recorded.
    pub issue: u64,
    /// See [`TaskRow::base_ref`].
    pub base_ref: &'a str,
    /// See [`TaskRow::base_commit_id`].
    pub base_commit_id: &'a CommitId,
    /// See [`TaskRow::head_ref`].
    pub head_ref: &'a str,
    /// See [`TaskRow::head_commit_id`].
    pub head_commit_id: &'a CommitId,
    /// See [`TaskRow::made_head`].
    pub made_head: bool,
}

const COLUMNS: &str = "tasks.id, plan_id, issue, title, base_ref, base_commit_id, head_ref, \
                       head_commit_id, made_head, state, reason, version, added_at, changed_at";

fn task_row(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        id: parsed(row, 0, TaskId::parse)?,
        plan_id: parsed(row, 1, PlanId::parse)?,
        issue: row.get::<_, i64>(2)?.unsigned_abs(),
        title: row.get(3)?,
        base_ref: row.get(4)?,
        base_commit_id: parsed(row, 5, |text| CommitId::parse(text).ok())?,
        head_ref: row.get(6)?,
        head_commit_id: parsed(row, 7, |text| CommitId::parse(text).ok())?,
        made_head: row.get(8)?,
        state: parsed(row, 9, TaskState::parse)?,
        reason: row.get(10)?,
        version: row.get::<_, i64>(11)?.unsigned_abs(),
        added_at: row.get(12)?,
        changed_at: row.get(13)?,
    })
}

impl ReadTx<'_> {
    /// Every task that was not removed, by issue, then age.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        let mut query = self.sql().prepare(&format!(
            "SELECT {COLUMNS} FROM tasks JOIN issues ON issues.number = tasks.issue
             WHERE removed_at IS NULL ORDER BY issue, nth"
        ))?;
        let rows = query.query_map([], task_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The task of that name, also a removed one.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn task(&self, id: TaskId) -> Result<Option<TaskRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tasks JOIN issues ON issues.number = tasks.issue WHERE tasks.id = ?1"
        );
        Ok(self.sql().query_row(&sql, [id.to_string()], task_row).optional()?)
    }

    /// The open task of that issue, or, without a number, the only open one.
    ///
    /// # Errors
    /// [`StoreError::NoTask`], [`StoreError::TaskEnded`], [`StoreError::NoOpenTask`] or
    /// [`StoreError::SeveralTasks`].
    pub fn select_task(&self, issue: Option<u64>) -> Result<TaskRow, StoreError> {
        let mut open: Vec<_> =
            self.tasks()?.into_iter().filter(|task| !task.state.is_closed()).collect();
        if let Some(issue) = issue {
            if let Some(task) = open.into_iter().find(|task| task.issue == issue) {
                return Ok(task);
            }
            let ended = self.tasks()?.into_iter().rfind(|task| task.issue == issue);
            return Err(match ended {
                Some(task) => StoreError::TaskEnded { issue, state: task.state },
                None => StoreError::NoTask(issue),
            });
        }
        match open.len() {
            0 => Err(StoreError::NoOpenTask),
            1 => Ok(open.remove(0)),
            _ => Err(StoreError::SeveralTasks(open.iter().map(|task| task.issue).collect())),
        }
    }

    /// As [`Self::select_task`], but for a given issue also its newest closed task: for commands
    /// that only look.
    ///
    /// # Errors
    /// As [`Self::select_task`].
    pub fn select_any_task(&self, issue: Option<u64>) -> Result<TaskRow, StoreError> {
        match (self.select_task(issue), issue) {
            (Err(StoreError::TaskEnded { .. }), Some(issue)) => self
                .tasks()?
                .into_iter()
                .rfind(|task| task.issue == issue)
                .ok_or(StoreError::NoTask(issue)),
            (found, _) => found,
        }
    }

    /// The newest task of an issue, also a removed one: for the story it left.
    ///
    /// # Errors
    /// [`StoreError::NoTask`] when there never was one.
    pub fn newest_task(&self, issue: u64) -> Result<TaskRow, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tasks JOIN issues ON issues.number = tasks.issue
             WHERE issue = ?1 ORDER BY nth DESC LIMIT 1"
        );
        let row = self.sql().query_row(&sql, [to_sql(issue)?], task_row).optional()?;
        row.ok_or(StoreError::NoTask(issue))
    }

    /// An issue that was recorded.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn issue(&self, number: u64) -> Result<Option<IssueRow>, StoreError> {
        let row = self
            .sql()
            .query_row(
                "SELECT number, title, body, file, taken_at FROM issues WHERE number = ?1",
                [to_sql(number)?],
                |row| {
                    Ok(IssueRow {
                        number: row.get::<_, i64>(0)?.unsigned_abs(),
                        title: row.get(1)?,
                        body: row.get(2)?,
                        file: row.get::<_, Option<Vec<u8>>>(3)?.map(RepoBytes::from),
                        taken_at: row.get(4)?,
                    })
                },
            )
            .optional()?;
        Ok(row)
    }

    /// One more than the highest number of a recorded issue.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn next_issue(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(number), 0) + 1 FROM issues";
        Ok(self.sql().query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }
}

impl WriteTx<'_> {
    /// Records an issue, over what was known of it. A text that is known is kept when `body` is
    /// `None`.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_issue(
        &self,
        number: u64,
        title: &str,
        body: Option<&str>,
        file: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO issues (number, title, body, file, taken_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (number) DO UPDATE SET
                 title = iif(excluded.body IS NULL, title, excluded.title),
                 body = coalesce(excluded.body, body),
                 file = coalesce(excluded.file, file),
                 taken_at = excluded.taken_at",
            (to_sql(number)?, title, body, file, self.now()),
        )?;
        Ok(())
    }

    /// Adds a task in state `queued`.
    ///
    /// # Errors
    /// [`StoreError::TaskExists`] while one of its issue is open.
    pub fn add_task(&self, new: &NewTask<'_>) -> Result<TaskRow, StoreError> {
        if self.tasks()?.iter().any(|task| task.issue == new.issue && !task.state.is_closed()) {
            return Err(StoreError::TaskExists(new.issue));
        }
        let issue = to_sql(new.issue)?;
        let nth: i64 = self.sql().query_row(
            "SELECT coalesce(max(nth), 0) + 1 FROM tasks WHERE issue = ?1",
            [issue],
            |row| row.get(0),
        )?;
        let (id, plan_id) = derive_ids(self.repository_id()?, new.issue, nth.unsigned_abs());
        self.sql().execute(
            "INSERT INTO tasks (id, plan_id, issue, nth, base_ref, base_commit_id, head_ref,
                 head_commit_id, made_head, state, reason, added_at, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)",
            (
                id.to_string(),
                plan_id.to_string(),
                issue,
                nth,
                new.base_ref,
                new.base_commit_id.as_str(),
                new.head_ref,
                new.head_commit_id.as_str(),
                new.made_head,
                TaskState::Queued.word(),
                "added",
                self.now(),
            ),
        )?;
        self.log(&Event {
            task: Some(id),
            kind: "task-added",
            actor: Actor::Person,
            detail: json!({
                "issue": new.issue, "plan": plan_id,
                "base_ref": new.base_ref, "base": new.base_commit_id,
                "head_ref": new.head_ref, "head": new.head_commit_id,
                "made_head": new.made_head,
            }),
            words: &format!("added: {} onto {}", short_ref(new.head_ref), short_ref(new.base_ref)),
        })?;
        self.task(id)?.ok_or_else(|| StoreError::Damaged("an added task is missing".into()))
    }

    /// Moves a task to another state.
    ///
    /// `reason`: why, for people, as a lower-case fragment. `task` must be as it was read, else
    /// another process came between.
    ///
    /// # Errors
    /// [`StoreError::Transition`] when the table has no such step, [`StoreError::TaskMoved`] when
    /// the task changed since it was read.
    pub fn set_task_state(
        &self,
        task: &TaskRow,
        to: TaskState,
        reason: &str,
        actor: Actor,
    ) -> Result<TaskRow, StoreError> {
        if !task.state.may_become(to) {
            return Err(StoreError::Transition { issue: task.issue, from: task.state, to });
        }
        let rows = self.sql().execute(
            "UPDATE tasks SET state = ?1, reason = ?2, version = version + 1, changed_at = ?3
             WHERE id = ?4 AND version = ?5",
            (to.word(), reason, self.now(), task.id.to_string(), to_sql(task.version)?),
        )?;
        if rows == 0 {
            return Err(StoreError::TaskMoved(task.issue));
        }
        if to.is_closed() {
            self.end_errands(task.id, "merge", to == TaskState::Merged, reason)?;
            self.end_errands(task.id, "reject", false, reason)?;
        }
        self.log(&Event {
            task: Some(task.id),
            kind: "state",
            actor,
            detail: json!({"from": task.state, "to": to, "reason": reason}),
            words: &format!("{} → {to}: {reason}", task.state),
        })?;
        self.reread(task)
    }

    /// Records the base and head that are looked at from now on.
    ///
    /// Does nothing when both are the recorded ones. `task` must be as it was read.
    ///
    /// # Errors
    /// [`StoreError::TaskMoved`] when the task changed since it was read.
    pub fn set_task_commits(
        &self,
        task: &TaskRow,
        base: &CommitId,
        head: &CommitId,
        actor: Actor,
    ) -> Result<TaskRow, StoreError> {
        if task.base_commit_id == *base && task.head_commit_id == *head {
            return Ok(task.clone());
        }
        let rows = self.sql().execute(
            "UPDATE tasks SET base_commit_id = ?1, head_commit_id = ?2, version = version + 1,
                 changed_at = ?3
             WHERE id = ?4 AND version = ?5",
            (base.as_str(), head.as_str(), self.now(), task.id.to_string(), to_sql(task.version)?),
        )?;
        if rows == 0 {
            return Err(StoreError::TaskMoved(task.issue));
        }
        let mut moved = Vec::new();
        for (name, old, new) in
            [("base", &task.base_commit_id, base), ("head", &task.head_commit_id, head)]
        {
            if old != new {
                moved.push(format!("{name} {old:.12} → {new:.12}"));
            }
        }
        self.log(&Event {
            task: Some(task.id),
            kind: "commits",
            actor,
            detail: json!({
                "base": base, "head": head,
                "old_base": task.base_commit_id, "old_head": task.head_commit_id,
            }),
            words: &moved.join(", "),
        })?;
        self.reread(task)
    }

    /// Takes a closed task off the lists. Its record stays.
    ///
    /// # Errors
    /// [`StoreError::TaskMoved`] when the task changed since it was read or is open.
    pub fn remove_task(&self, task: &TaskRow) -> Result<(), StoreError> {
        let rows = self.sql().execute(
            "UPDATE tasks SET removed_at = ?1, version = version + 1
             WHERE id = ?2 AND version = ?3 AND state IN ('merged', 'cancelled')",
            (self.now(), task.id.to_string(), to_sql(task.version)?),
        )?;
        if rows == 0 {
            return Err(StoreError::TaskMoved(task.issue));
        }
        self.log(&Event {
            task: Some(task.id),
            kind: "task-removed",
            actor: Actor::Person,
            detail: json!({}),
            words: "removed from the lists",
        })
    }

    fn reread(&self, task: &TaskRow) -> Result<TaskRow, StoreError> {
        self.task(task.id)?.ok_or_else(|| StoreError::Damaged("a changed task is missing".into()))
    }
}

/// A ref as people say it: `main`, `origin/main`.
#[must_use]
pub fn short_ref(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/remotes/")).unwrap_or(name)
}
