//! The one command that goes on with a task, said wherever a task is shown.

use crate::error::Result;
use crate::execute::item::{Site, done_items};
use crate::git::repository::Repository;
use crate::store::{Store, TaskRow, short_ref};
use crate::task::TaskState;

/// The command that goes on; `None` when nothing is to be done.
///
/// `n_blockers`: of its review; `None` when there is no review or it is unknown.
pub(crate) fn next(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    n_blockers: Option<usize>,
) -> Result<Option<String>> {
    let issue = task.issue;
    if task.state.is_closed() {
        return Ok(None);
    }
    if task.head_ref.starts_with("refs/heads/")
        && repository.git().resolve(&task.head_ref)?.is_none()
    {
        let head = short_ref(&task.head_ref);
        return Ok(Some(format!("git branch {head} {}", task.head_commit_id)));
    }
    let (newest, approved, workspace) = store.read(|tx| -> Result<_> {
        Ok((
            tx.newest_plan(task.id)?.map(|row| row.plan.revision),
            tx.approved_plan(task.id)?,
            tx.current_workspace(task.id)?,
        ))
    })?;
    let Some(newest) = newest else {
        return Ok(Some(format!("codeboost plan import {issue} FILE")));
    };
    let Some(approved) = approved.filter(|row| row.plan.revision == newest) else {
        return Ok(Some(format!("codeboost plan approve {issue}")));
    };
    if let Some(workspace) = workspace {
        return Ok(Some(format!("codeboost item end {issue} {}", workspace.item)));
    }
    Ok(match task.state {
        TaskState::Queued | TaskState::Running => {
            let done = done_items(Site { repository, store }, task)?;
            let item = approved.plan.items.iter().find(|item| !done.contains_key(&item.id));
            Some(match item {
                Some(item) => format!("codeboost item begin {issue} {}", item.id),
                None => format!("codeboost run {issue}"),
            })
        }
        TaskState::InReview | TaskState::MergeBlocked => match n_blockers {
            Some(0) => Some(format!("codeboost merge {issue}")),
            Some(_) => Some(format!("codeboost run {issue}")),
            None => None,
        },
        TaskState::NeedsAmendment => Some(format!("codeboost plan amend {issue}")),
        TaskState::NeedsApproval => Some(format!("codeboost check approve {issue}")),
        TaskState::NeedsHuman => Some(format!("codeboost log {issue}")),
        TaskState::PossiblyFixed => {
            let done = done_items(Site { repository, store }, task)?;
            let is_whole = approved.plan.items.iter().all(|item| done.contains_key(&item.id));
            let command = if is_whole { "merge" } else { "execute" };
            Some(format!("codeboost {command} {issue} --not-fixed"))
        }
        TaskState::Merging => Some(format!("codeboost merge {issue}")),
        _ => None,
    })
}
