//! What a task waits for in *needs amendment*, and the ways on.
//!
//! | why it waits | ways on |
//! |---|---|
//! | whoever carried out an item says that the plan is wrong, and proposes what it should say; nothing of the work was kept | a revision with the proposal; another revision; the same plan once more |
//! | an item changed files that it does not declare; that was committed | a revision that declares them, or gives them to an item of their own; undoing them; leaving them to the review |
//!
//! A revision counts once a person approved it. What was found stays in the record whatever the way.

use std::collections::BTreeMap;

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use codeboost_schema::ledger::{Entry, Origin};
use codeboost_schema::plan::{DeclaredFile, FileKind, Plan};
use codeboost_schema::report::Proposal;
use serde_json::json;

use crate::execute::audit;
use crate::execute::commit::{self, NewCommit};
use crate::execute::item::{
    ItemError, Site, done_items, head, move_head, read_task, set_state, settle,
};
use crate::execute::manifest::Spool;
use crate::git::read::Objects;
use crate::git::tree::{self, TreeChange};
use crate::plan::amend::{Declared, OWN_ITEM_TEXT};
use crate::process::crash_point;
use crate::store::{Event, Lease, ReadTx, StoreError, TaskRow, WorkspaceRow, WorkspaceState};
use crate::task::{Actor, TaskState};

/// The kind of the events that hold proposals.
const PROPOSED: &str = "plan-proposal";

/// A proposal that nobody decided on yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// The item that could not be carried out.
    pub item: ItemId,
    /// The revision that it could not be carried out by.
    pub revision: u64,
    /// Who says so.
    pub by: String,
    /// What is proposed.
    pub proposal: Proposal,
}

/// A change that no approved revision declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeclared {
    /// The item that made it.
    pub item: ItemId,
    /// Where.
    pub path: RepoPath,
    /// What it did there.
    pub kind: FileKind,
    /// The commit that the item began with.
    pub start_commit_id: CommitId,
    /// The commit that made it, as it was made.
    pub commit_id: CommitId,
}

impl Undeclared {
    /// The path, quoted, with its item.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} ({})", audit::quote(self.path.as_bytes()), self.item)
    }
}

/// Gives up the item of an open workspace because the plan is wrong, with what is proposed.
///
/// # Errors
/// [`ItemError`] when it can't be recorded; nothing is changed then.
pub fn propose(
    site: Site<'_>,
    lease: &Lease,
    row: &WorkspaceRow,
    proposal: &Proposal,
    by: Actor,
) -> Result<TaskRow, ItemError> {
    let task = read_task(site.store, lease)?;
    let name = match &by {
        Actor::Agent(name) => name.clone(),
        _ => "a person".to_owned(),
    };
    let digest = site.store.put_evidence(json!(proposal).to_string().as_bytes())?;
    let reason = format!("{name} says that the plan is wrong for {}", row.item);
    Ok(site.store.write(|tx| {
        tx.end_workspace(row, WorkspaceState::Abandoned, &reason)?;
        // The state first, so that leaving it comes after the proposal.
        let task = set_state(tx, &task, TaskState::NeedsAmendment, &reason)?;
        tx.log(&Event {
            task: Some(task.id),
            kind: PROPOSED,
            actor: by,
            detail: json!({
                "item": row.item, "revision": row.revision, "by": name, "proposal": digest,
            }),
            words: &format!("proposed what the plan should say for {}", row.item),
        })?;
        Ok::<_, StoreError>(task)
    })?)
}

/// The proposal that a task waits with.
///
/// `revision`: the one by which it is carried out now; a later one than the proposal's settles it.
///
/// # Errors
/// [`ItemError`] when it can't be read.
pub fn proposed(
    site: Site<'_>,
    task: &TaskRow,
    revision: u64,
) -> Result<Option<Proposed>, ItemError> {
    if task.state != TaskState::NeedsAmendment {
        return Ok(None);
    }
    let found = site.store.read(|tx| newest(tx, task))?;
    let Some((item, of, by, digest)) = found.filter(|(_, of, ..)| *of >= revision) else {
        return Ok(None);
    };
    let bytes = site.store.evidence(&digest)?;
    let proposal = serde_json::from_slice(&bytes)
        .map_err(|_| StoreError::Damaged("a kept proposal can't be read".into()))?;
    Ok(Some(Proposed { item, revision: of, by, proposal }))
}

fn newest(
    tx: &ReadTx<'_>,
    task: &TaskRow,
) -> Result<Option<(ItemId, u64, String, Digest)>, StoreError> {
    let events = tx.events(Some(task.id))?;
    let mut events = events.iter().rev();
    // Whatever moved the task since has settled it.
    let Some(event) = events.find(|event| event.kind == PROPOSED || event.kind == "state") else {
        return Ok(None);
    };
    if event.kind != PROPOSED {
        return Ok(None);
    }
    let text = |key: &str| event.detail[key].as_str().unwrap_or_default();
    let parts = (ItemId::parse(text("item")), Digest::parse(text("proposal")));
    let (Ok(item), Ok(digest)) = parts else {
        return Err(StoreError::Damaged("a proposal's record can't be read".into()));
    };
    let revision = event.detail["revision"].as_u64().unwrap_or_default();
    Ok(Some((item, revision, text("by").to_owned(), digest)))
}

/// What a proposal adds to the plan.
#[must_use]
pub fn of_proposal(proposed: &Proposed) -> Declared {
    let proposal = &proposed.proposal;
    let files = proposal.files.iter().map(|file| DeclaredFile {
        path: file.path.clone(),
        kind: file.kind,
        renamed_from: None,
        change: file.reason.clone(),
    });
    let text = proposal.item_text.trim();
    Declared {
        item: proposed.item.clone(),
        files: files.collect(),
        intent: (!text.is_empty()).then(|| text.to_owned()),
    }
}

/// What the changes of one item that are there already add to the plan.
///
/// # Errors
/// The path that no plan can name, since it is not UTF-8, quoted.
pub fn of_changes(undeclared: &[Undeclared]) -> Result<Vec<Declared>, String> {
    let mut by_item: BTreeMap<&ItemId, Vec<DeclaredFile>> = BTreeMap::new();
    for change in undeclared {
        let path = change.path.as_str().ok_or_else(|| audit::quote(change.path.as_bytes()))?;
        by_item.entry(&change.item).or_default().push(DeclaredFile {
            path: path.to_owned(),
            kind: change.kind,
            renamed_from: None,
            change: OWN_ITEM_TEXT.to_owned(),
        });
    }
    let declared =
        |(item, files): (&ItemId, _)| Declared { item: item.clone(), files, intent: None };
    Ok(by_item.into_iter().map(declared).collect())
}

/// The out-of-scope changes of a task that are still its items' and that the plan does not declare.
///
/// # Errors
/// [`ItemError`] when the history can't be read.
pub fn undeclared(
    site: Site<'_>,
    objects: &Objects,
    task: &TaskRow,
    plan: &Plan,
) -> Result<Vec<Undeclared>, ItemError> {
    let head_commit_id = head(site, task)?;
    let rows = site.store.read(|tx| tx.workspaces(task.id))?;
    let done = done_items(site, task)?;
    let mut found: BTreeMap<(RepoPath, ItemId), Undeclared> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.state == WorkspaceState::Committed) {
        let item = plan.item(&row.item);
        let Some(commit_id) = &row.commit_id else { continue };
        for path in &row.out_of_scope {
            let is_declared = item.is_some_and(|item| {
                audit::declared_paths(item).any(|declared| declared.as_bytes() == path.as_bytes())
            });
            if is_declared {
                continue;
            }
            // Put back to what it was before the item, or before any: nothing is left to declare.
            let first = rows.iter().find(|row| row.out_of_scope.contains(path)).unwrap_or(row);
            let before = objects.entry(&row.start_commit_id, path)?;
            let now = objects.entry(&head_commit_id, path)?;
            if now == before || now == objects.entry(&first.start_commit_id, path)? {
                continue;
            }
            let own = done.get(&row.item).map_or(&[][..], Vec::as_slice);
            if was_put_back(objects, own, path, before.as_ref())? {
                continue;
            }
            let kind = match (before.is_some(), now.is_some()) {
                (false, _) => FileKind::Add,
                (true, false) => FileKind::Delete,
                (true, true) => FileKind::Edit,
            };
            let change = Undeclared {
                item: row.item.clone(),
                path: path.clone(),
                kind,
                start_commit_id: row.start_commit_id.clone(),
                commit_id: commit_id.clone(),
            };
            found.entry((path.clone(), row.item.clone())).or_insert(change);
        }
    }
    Ok(found.into_values().collect())
}

/// Whether one of an item's own commits put a path back to `before`; others may have changed it
/// since.
fn was_put_back(
    objects: &Objects,
    own: &[CommitId],
    path: &RepoPath,
    before: Option<&crate::git::read::TreeEntry>,
) -> Result<bool, ItemError> {
    let mut is_changed = false;
    for commit_id in own {
        let now = objects.entry(commit_id, path)?;
        if now.as_ref() != before {
            is_changed = true;
        } else if is_changed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Changes that were undone.
#[derive(Debug)]
pub struct Undone {
    /// The task, as it stands now.
    pub task: TaskRow,
    /// The commits that put them back, each for its item.
    pub commits: Vec<(ItemId, CommitId)>,
    /// What was put back.
    pub changes: Vec<Undeclared>,
}

/// Undoes the changes that no approved revision declares: a commit for each item that made some
/// puts the files back to what they were when it began. The commit that made them stays in the
/// history.
///
/// # Errors
/// [`ItemError::NotPaused`] when the task does not wait for that, [`ItemError::ChangedSince`] when
/// others changed such a file since; nothing is changed then.
pub fn undo(site: Site<'_>, lease: &Lease, plan: &Plan) -> Result<Undone, ItemError> {
    settle(site, lease, plan)?;
    let Site { repository, store } = site;
    let task = read_task(store, lease)?;
    if task.state != TaskState::NeedsAmendment || proposed(site, &task, plan.revision)?.is_some() {
        return Err(ItemError::NotPaused { issue: task.issue, state: task.state });
    }
    let objects = Objects::open(repository.git())?;
    let changes = undeclared(site, &objects, &task, plan)?;
    let from = head(site, &task)?;
    let now = tree::read_tree(&objects, &from)?;
    let mut parent = from.clone();
    let mut commits: Vec<(ItemId, CommitId)> = Vec::new();
    let mut by_item: BTreeMap<&ItemId, Vec<&Undeclared>> = BTreeMap::new();
    for change in &changes {
        by_item.entry(&change.item).or_default().push(change);
    }
    let spool = Spool::new(&store.folder().join("spool"))?;
    let identity = commit::identity(repository.git())?;
    for (id, changes) in by_item {
        let mut back = Vec::new();
        for change in changes {
            let made = tree::read_tree(&objects, &change.commit_id)?;
            let started = tree::read_tree(&objects, &change.start_commit_id)?;
            if now.get(&change.path) != made.get(&change.path) {
                return Err(ItemError::ChangedSince(change.words()));
            }
            back.push(TreeChange {
                path: change.path.clone(),
                before: now.get(&change.path).cloned(),
                after: started.get(&change.path).cloned(),
            });
        }
        let commit_id = commit::make(
            repository.context(),
            &objects,
            &spool,
            &NewCommit {
                message: &commit::undo_message(id, plan.revision),
                identity: (&identity.0, &identity.1),
                parent: &parent,
                changes: &back,
                time: repository.context().now(),
            },
        )?;
        parent = commit_id.clone();
        commits.push((id.clone(), commit_id));
    }
    store.keep_commits(task.id, commits.iter().map(|(_, id)| id))?;
    let entries: Vec<_> = commits
        .iter()
        .map(|(item, id)| (id.clone(), Entry::new(Some(item.clone()), Origin::Runner)))
        .collect();
    // An entry whose commit never becomes part of the head means nothing.
    store.write(|tx| tx.record_commits(&task, &entries, Actor::Person))?;
    crash_point(repository.context(), "undo-recorded");
    if parent != from {
        parent = move_head(site, &task, &from, &parent)?;
    }
    let done = done_items(site, &task)?;
    let task = store.write(|tx| {
        let task = tx.set_task_commits(&task, &task.base_commit_id, &parent, Actor::Codeboost)?;
        let is_whole = plan.items.iter().all(|item| done.contains_key(&item.id));
        let state = if is_whole { TaskState::InReview } else { TaskState::Queued };
        set_state(tx, &task, state, "what no item declares was undone")
    })?;
    Ok(Undone { task, commits, changes })
}
