//! Carrying out a plan from recorded patches, item by item, on the same road as any other work:
//! begin, change, end.
//!
//! What was replayed is recorded with the digest of its patch, so that a run that was stopped goes
//! on where it stopped and no patch is applied twice.

use std::collections::BTreeSet;
use std::path::Path;

use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::plan::Plan;

use crate::agent::replay::{self, Patch};
use crate::execute::audit;
use crate::execute::commit::{self, NewCommit};
use crate::execute::item::{
    self, BeginOptions, Begun, EndOptions, Ended, ItemError, OutOfScope, Site, What,
};
use crate::execute::manifest::Spool;
use crate::execute::workspace;
use crate::git::read::Objects;
use crate::stage::FileError;
use crate::store::{Lease, Worker, WorkspaceState};
use crate::task::Actor;

/// What happens while patches are replayed, for whoever shows it.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A patch was applied in this workspace.
    Applied(&'a Patch, &'a Begun),
    /// Its item came to an end.
    Ended(Box<Ended>),
    /// It was replayed before.
    Before(&'a Patch),
}

/// How a replay ended.
#[derive(Debug)]
pub enum Replayed {
    /// Every patch, and every item of the plan, has its result.
    Whole,
    /// The task waits: the last item changed files that it does not declare.
    Paused,
    /// The audit refused the last item.
    Refused,
}

/// Replays patches in their order, then ends the items that have none as unchanged.
///
/// `patches`: from [`replay::read_patches`].
///
/// # Errors
/// [`ItemError`] when an item can't begin or end, or a patch does not apply; its workspace is given
/// up then and stays on disk.
pub fn run(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    patches: &[Patch],
    out_of_scope: OutOfScope,
    mut tell: impl FnMut(Progress<'_>),
) -> Result<Replayed, ItemError> {
    for patch in patches {
        item::find_item(plan, &patch.item)?;
    }
    item::settle(site, lease, plan)?;
    for patch in patches {
        let stop = carry_out(site, lease, plan, &patch.item, Some(patch), out_of_scope, &mut tell)?;
        if let Some(stop) = stop {
            return Ok(stop);
        }
    }
    let task = item::read_task(site.store, lease)?;
    let done = item::done_items(site, &task)?;
    for item in plan.items.iter().filter(|item| !done.contains_key(&item.id)) {
        let stop = carry_out(site, lease, plan, &item.id, None, out_of_scope, &mut tell)?;
        if let Some(stop) = stop {
            return Ok(stop);
        }
    }
    Ok(Replayed::Whole)
}

/// Carries out one item; says why to stop, if there is a reason.
fn carry_out(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    item: &ItemId,
    patch: Option<&Patch>,
    out_of_scope: OutOfScope,
    tell: &mut impl FnMut(Progress<'_>),
) -> Result<Option<Replayed>, ItemError> {
    let digest = patch.map(Patch::digest);
    let rows = site.store.read(|tx| tx.workspaces(lease.task()))?;
    if let Some(patch) = patch
        && rows.iter().any(|row| {
            row.item == *item
                && row.source == digest
                && matches!(row.state, WorkspaceState::Committed | WorkspaceState::Unchanged)
        })
    {
        tell(Progress::Before(patch));
        return Ok(None);
    }
    // An own workspace that a killed run left open holds half a patch at most.
    let is_own = |worker: &Worker| *worker == Worker::Agent(replay::NAME.to_owned());
    let own = rows.iter().find(|row| !row.state.is_over() && is_own(&row.worker));
    if let Some(row) = own {
        item::abandon(site, lease, Some(plan), None)?;
        // It is this agent's own, and what it held is in its patch.
        let _ = std::fs::remove_dir_all(&row.folder);
    }
    let options = BeginOptions {
        worker: Worker::Agent(replay::NAME.to_owned()),
        source: digest,
        out_of_scope,
        ..BeginOptions::default()
    };
    let begun = item::begin(site, lease, plan, item, &options)?;
    if let Some(patch) = patch {
        let applied = replay::apply(
            site.repository.context(),
            &begun.workspace.folder,
            &patch.path,
            &patch.bytes,
        );
        if let Err(error) = applied {
            item::abandon(site, lease, Some(plan), None)?;
            return Err(error.into());
        }
        tell(Progress::Applied(patch, &begun));
    }
    let options = EndOptions { out_of_scope, ..EndOptions::default() };
    let ended = item::end(site, lease, plan, Some(item), options)?;
    let stop = match &ended.what {
        What::Refused(_) => Some(Replayed::Refused),
        What::Committed { .. } | What::Unchanged if ended.task.state.waits_for_person() => {
            Some(Replayed::Paused)
        }
        What::Committed { .. } | What::Unchanged => None,
    };
    tell(Progress::Ended(Box::new(ended)));
    Ok(stop)
}

/// A commit that somebody makes who is no item, for the demo: it has no entry in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct ForeignCommit<'a> {
    /// Name and address of whoever makes it.
    pub author: (&'a str, &'a str),
    /// Its whole message, forged trailers included.
    pub message: &'a str,
}

/// Applies a patch on the task's head and moves the head there, without an entry in the ledger:
/// what somebody does who pushes to the branch. `path`: how messages name the patch.
///
/// # Errors
/// [`ItemError`] when the patch does not apply or the head can't be moved.
pub fn commit_foreign(
    site: Site<'_>,
    lease: &Lease,
    path: &Path,
    patch: &[u8],
    foreign: ForeignCommit<'_>,
) -> Result<CommitId, ItemError> {
    let context = site.repository.context();
    let task = item::read_task(site.store, lease)?;
    let parent = item::head(site, &task)?;
    let objects = Objects::open(site.repository.git())?;
    let temp = tempfile::Builder::new()
        .prefix("codeboost-foreign-")
        .tempdir()
        .map_err(|error| FileError::new("make a folder in", &std::env::temp_dir(), error))?;
    let clone = workspace::make(site.repository, &objects, &parent, &temp.path().join("project"))?;
    replay::apply(context, &clone.folder, path, patch)?;
    let mut spool = Spool::new(temp.path())?;
    let place = (clone.folder.as_path(), clone.trusts_execute_bit);
    let found = item::look(site, &objects, BTreeSet::new(), &clone.tree, place, &mut spool)?;
    let new = NewCommit {
        message: foreign.message,
        identity: foreign.author,
        parent: &parent,
        changes: &audit::changes(&clone.tree, &found.leaves),
        time: context.now(),
    };
    let commit_id = commit::make(context, &objects, &spool, &new)?;
    item::move_head(site, &task, &parent, &commit_id)?;
    site.store.write(|tx| {
        tx.set_task_commits(&task, &task.base_commit_id, &commit_id, Actor::Codeboost)
    })?;
    Ok(commit_id)
}
