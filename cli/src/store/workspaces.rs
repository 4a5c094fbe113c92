//! Workspaces of items: the one that is open, and what became of the others.
//!
//! | state | means | next |
//! |---|---|---|
//! | `making` | the folder is chosen; the clone may be half made | `open`, `abandoned` |
//! | `open` | somebody works in it | `committing`, `unchanged`, `abandoned` |
//! | `committing` | the commit and its ledger entry are recorded; the head may not have moved yet | `committed`, `open` |
//! | `committed` | the head has the commit | |
//! | `unchanged` | planned but unchanged | |
//! | `abandoned` | given up; the folder stays | |
//!
//! Of one task at most one is in the first three states.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use rusqlite::{OptionalExtension as _, Row};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::store::tx::{parsed, parsed_opt, to_sql, unreadable};
use crate::store::{Event, ReadTx, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// A workspace as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRow {
    /// Its number; grows.
    pub id: i64,
    /// Its task.
    pub task: TaskId,
    /// The item that is carried out in it.
    pub item: ItemId,
    /// The plan's revision at its beginning.
    pub revision: u64,
    /// Where it lies, absolute.
    pub folder: PathBuf,
    /// The task's head when it was made.
    pub start_commit_id: CommitId,
    /// Whether its file system keeps the right to execute; false while it is being made.
    pub trusts_execute_bit: bool,
    /// Who works in it.
    pub worker: Worker,
    /// What the worker goes by; for replay the digest of the patch.
    pub source: Option<Digest>,
    /// Where it stands.
    pub state: WorkspaceState,
    /// The commit that was made of it, from `committing` on.
    pub commit_id: Option<CommitId>,
    /// The changed paths that the item did not declare.
    pub out_of_scope: Vec<RepoPath>,
    /// What the last audit refused, one line each.
    pub violations: Vec<String>,
    /// RFC 3339 UTC.
    pub begun_at: String,
    /// RFC 3339 UTC.
    pub changed_at: String,
}

/// Where a workspace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceState {
    /// The clone is being made.
    Making,
    /// Somebody works in it.
    Open,
    /// Its commit is recorded and on its way to the head.
    Committing,
    /// The head has its commit.
    Committed,
    /// Nothing was changed in it.
    Unchanged,
    /// Given up.
    Abandoned,
}

impl WorkspaceState {
    const ALL: [Self; 6] = [
        Self::Making,
        Self::Open,
        Self::Committing,
        Self::Committed,
        Self::Unchanged,
        Self::Abandoned,
    ];

    /// The word in the state.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Open => "open",
            Self::Committing => "committing",
            Self::Committed => "committed",
            Self::Unchanged => "unchanged",
            Self::Abandoned => "abandoned",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether nothing happens with it any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Committed | Self::Unchanged | Self::Abandoned)
    }
}

impl Serialize for WorkspaceState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Who works in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worker {
    /// A person, with whatever tool they like.
    Person,
    /// An agent that codeboost started, by its name.
    Agent(String),
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.pad("person"),
            Self::Agent(name) => f.pad(name),
        }
    }
}

/// What a new workspace is made from.
#[derive(Debug, Clone)]
pub struct NewWorkspace<'a> {
    /// See [`WorkspaceRow::task`].
    pub task: TaskId,
    /// See [`WorkspaceRow::item`].
    pub item: &'a ItemId,
    /// See [`WorkspaceRow::revision`].
    pub revision: u64,
    /// See [`WorkspaceRow::folder`].
    pub folder: &'a Path,
    /// See [`WorkspaceRow::start_commit_id`].
    pub start_commit_id: &'a CommitId,
    /// See [`WorkspaceRow::worker`].
    pub worker: &'a Worker,
    /// See [`WorkspaceRow::source`].
    pub source: Option<&'a Digest>,
}

const COLUMNS: &str = "id, task, item, revision, folder, start_commit_id, execute_bit, worker, \
                       source, state, commit_id, out_of_scope, violations, begun_at, changed_at";

fn workspace_row(row: &Row<'_>) -> rusqlite::Result<WorkspaceRow> {
    let worker: String = row.get(7)?;
    let out_of_scope: String = row.get(11)?;
    let violations: String = row.get(12)?;
    Ok(WorkspaceRow {
        id: row.get(0)?,
        task: parsed(row, 1, TaskId::parse)?,
        item: parsed(row, 2, |text| ItemId::parse(text).ok())?,
        revision: row.get::<_, i64>(3)?.unsigned_abs(),
        folder: path_from(row.get(4)?),
        start_commit_id: parsed(row, 5, |text| CommitId::parse(text).ok())?,
        trusts_execute_bit: row.get::<_, Option<bool>>(6)?.unwrap_or(false),
        worker: if worker == "person" { Worker::Person } else { Worker::Agent(worker) },
        source: parsed_opt(row, 8, |text| Digest::parse(text).ok())?,
        state: parsed(row, 9, WorkspaceState::parse)?,
        commit_id: parsed_opt(row, 10, |text| CommitId::parse(text).ok())?,
        out_of_scope: paths_from(&out_of_scope).ok_or_else(|| unreadable(11, &out_of_scope))?,
        violations: serde_json::from_str(&violations).map_err(|_| unreadable(12, &violations))?,
        begun_at: row.get(13)?,
        changed_at: row.get(14)?,
    })
}

fn path_from(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes()
}

fn paths_from(text: &str) -> Option<Vec<RepoPath>> {
    let coded: Vec<String> = serde_json::from_str(text).ok()?;
    coded.into_iter().map(|path| STANDARD.decode(path).ok().map(RepoBytes::from)).collect()
}

fn paths_text(paths: &[RepoPath]) -> String {
    json!(paths.iter().map(RepoBytes::canonical).collect::<Vec<_>>()).to_string()
}

impl ReadTx<'_> {
    /// Every workspace of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn workspaces(&self, task: TaskId) -> Result<Vec<WorkspaceRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM workspaces WHERE task = ?1 ORDER BY id");
        let mut query = self.sql().prepare(&sql)?;
        let rows = query.query_map([task.to_string()], workspace_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The workspace of a task that is not over.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn current_workspace(&self, task: TaskId) -> Result<Option<WorkspaceRow>, StoreError> {
        Ok(self.workspaces(task)?.into_iter().find(|row| !row.state.is_over()))
    }

    fn workspace(&self, id: i64) -> Result<WorkspaceRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM workspaces WHERE id = ?1");
        let found = self.sql().query_row(&sql, [id], workspace_row).optional()?;
        found.ok_or_else(|| StoreError::Damaged(format!("workspace {id} is missing")))
    }
}

impl WriteTx<'_> {
    /// Records that a workspace is about to be made.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written, or while another one of the task is not over.
    pub fn add_workspace(&self, new: &NewWorkspace<'_>) -> Result<WorkspaceRow, StoreError> {
        self.sql().execute(
            "INSERT INTO workspaces (task, item, revision, folder, start_commit_id, worker, source,
                 state, begun_at, begun_by, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'making', ?8, ?9, ?8)",
            (
                new.task.to_string(),
                new.item.as_str(),
                to_sql(new.revision)?,
                path_bytes(new.folder),
                new.start_commit_id.as_str(),
                new.worker.to_string(),
                new.source.map(Digest::as_str),
                self.now(),
                self.actor_text(&Actor::Person),
            ),
        )?;
        self.workspace(self.sql().last_insert_rowid())
    }

    /// Records that the clone is made.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn open_workspace(
        &self,
        row: &WorkspaceRow,
        trusts_execute_bit: bool,
    ) -> Result<WorkspaceRow, StoreError> {
        self.sql().execute(
            "UPDATE workspaces SET state = 'open', execute_bit = ?1, changed_at = ?2 WHERE id = ?3",
            (trusts_execute_bit, self.now(), row.id),
        )?;
        self.log(&Event {
            task: Some(row.task),
            kind: "item-begun",
            actor: Actor::Person,
            detail: json!({
                "item": row.item, "revision": row.revision, "worker": row.worker.to_string(),
                "head": row.start_commit_id, "folder": row.folder.to_string_lossy(),
            }),
            words: &format!("began {} at {:.12}", row.item, row.start_commit_id),
        })?;
        self.workspace(row.id)
    }

    /// Records the commit that is about to become the head, and what the audit said.
    ///
    /// Its ledger entry has to be recorded in the same transaction.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn commit_workspace(
        &self,
        row: &WorkspaceRow,
        commit_id: &CommitId,
        out_of_scope: &[RepoPath],
    ) -> Result<WorkspaceRow, StoreError> {
        self.sql().execute(
            "UPDATE workspaces SET state = 'committing', commit_id = ?1, out_of_scope = ?2,
                 violations = '[]', changed_at = ?3
             WHERE id = ?4",
            (commit_id.as_str(), paths_text(out_of_scope), self.now(), row.id),
        )?;
        self.workspace(row.id)
    }

    /// Takes a recorded commit back that can't become the head: the workspace is open again.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn reopen_workspace(&self, row: &WorkspaceRow) -> Result<WorkspaceRow, StoreError> {
        self.sql().execute(
            "UPDATE workspaces SET state = 'open', commit_id = NULL, out_of_scope = '[]',
                 changed_at = ?1
             WHERE id = ?2 AND state = 'committing'",
            (self.now(), row.id),
        )?;
        self.workspace(row.id)
    }

    /// Records how a workspace ended.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_workspace(
        &self,
        row: &WorkspaceRow,
        state: WorkspaceState,
        reason: &str,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE workspaces SET state = ?1, changed_at = ?2 WHERE id = ?3",
            (state.word(), self.now(), row.id),
        )?;
        let kind = match state {
            WorkspaceState::Abandoned => "item-abandoned",
            _ => "item-ended",
        };
        let paths: Vec<String> =
            row.out_of_scope.iter().map(|path| path.lossy().into_owned()).collect();
        self.log(&Event {
            task: Some(row.task),
            kind,
            actor: Actor::Person,
            detail: json!({
                "item": row.item, "revision": row.revision, "state": state,
                "commit": row.commit_id, "out_of_scope": paths,
            }),
            words: &format!("{}: {reason}", row.item),
        })
    }

    /// Records what an audit refused.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn refuse_workspace(
        &self,
        row: &WorkspaceRow,
        violations: &[String],
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE workspaces SET violations = ?1, changed_at = ?2 WHERE id = ?3",
            (json!(violations).to_string(), self.now(), row.id),
        )?;
        self.log(&Event {
            task: Some(row.task),
            kind: "item-refused",
            actor: Actor::Codeboost,
            detail: json!({"item": row.item, "violations": violations}),
            words: &format!(
                "refused what was done for {}: {}",
                row.item,
                violations.first().map_or("", String::as_str)
            ),
        })
    }
}
