//! Bringing a task's head onto another base.
//!
//! The new commits are made as objects, then recorded with what each was made from, then the head's
//! branch moves from exactly the old head, then the task follows. Before the branch moves nothing
//! is different for anybody; afterwards [`crate::review::read::follow`] knows the new base from the
//! record. So a kill anywhere leaves the branch as it was, or moved and understood.

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ItemId};

use crate::git::borrow::{BorrowError, Borrowed};
use crate::git::identity::{Identity, IdentityError};
use crate::git::read::{Objects, ReadError};
use crate::git::rebase::{self as replay, Conflict, Recipe, Replayed};
use crate::git::refs::{self, NewValue, RefChange, Reported};
use crate::git::run::GitError;
use crate::merge::{Ending, Obstacle};
use crate::process::crash_point;
use crate::store::{Lease, Store, StoreError, TaskRow, short_ref};
use crate::task::Actor;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The head's branch is on the new base.
    Done {
        /// The task as it is now.
        task: TaskRow,
        /// How many commits were made.
        n_commits: usize,
    },
    /// A commit changes the same places as the new base; nothing was changed.
    Conflict(Stopped),
    /// It may not happen as things are; nothing was changed.
    NotPossible(Obstacle),
}

/// Where a rebase stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The commit.
    pub commit: CommitId,
    /// Its author.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// The item that the ledger says it was made for.
    pub item: Option<ItemId>,
    /// The files that both sides change.
    pub files: Vec<RepoPath>,
}

impl Stopped {
    /// The end of a merge that this stopped. `base`: the one that it was to be brought onto.
    #[must_use]
    pub fn into_ending(self, base: CommitId, head_there: Option<CommitId>) -> Ending {
        let Self { commit, author, subject, item, files } = self;
        Ending::RebaseConflict { base, commit, author, subject, item, files, head_there }
    }
}

/// Why it is not known whether a head can be rebased.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// The state can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The private repository could not be made.
    #[error(transparent)]
    Borrow(#[from] BorrowError),
    /// Objects can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Git can't tell in whose name.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Rebases the head of the task that `lease` holds onto `onto`, a commit that is here.
///
/// # Errors
/// [`RebaseError`]; then the head's branch is where it was, unless the last record failed, which
/// the next run makes up for.
pub fn rebase(store: &Store<'_>, lease: &Lease, onto: &CommitId) -> Result<Rebased, RebaseError> {
    let id = lease.task();
    let task = store.read(|tx| tx.task(id))?;
    let task = task.ok_or_else(|| StoreError::Damaged("the task of a lease is missing".into()))?;
    if let Some(obstacle) = obstacle(store, &task, onto)? {
        return Ok(Rebased::NotPossible(obstacle));
    }
    let context = store.context();
    let objects = Objects::open(store.git())?;
    let borrowed = Borrowed::new(context, objects.folder(), objects.format())?;
    let committer = match Identity::of_person(context, store.git()) {
        Err(IdentityError::Missing(_)) => Identity::of_codeboost(),
        found => found?,
    };
    let recipe = Recipe {
        base: &task.base_commit_id,
        head: &task.head_commit_id,
        onto,
        committer: &committer,
        time: context.now(),
    };
    let pairs = match replay::replay(borrowed.git(), &recipe)? {
        Replayed::Commits(pairs) => pairs,
        Replayed::Conflict(conflict) => {
            return Ok(Rebased::Conflict(stopped(store, &task, conflict)?));
        }
        Replayed::Merge(commit) => {
            return Ok(Rebased::NotPossible(Obstacle {
                why: format!("{commit:.12} is a merge: replaying it would lose what it decided"),
                hint: format!(
                    "merge the base into {}, then codeboost run {}",
                    short_ref(&task.head_ref),
                    task.issue
                ),
            }));
        }
    };
    let Some((_, new_head)) = pairs.last() else {
        return Ok(Rebased::NotPossible(Obstacle {
            why: "the head has no commit of its own".to_owned(),
            hint: format!("codeboost status {}", task.issue),
        }));
    };
    store.keep_commits(id, [onto, new_head])?;
    crash_point(context, "rebase: made");
    store.write(|tx| tx.record_rebase(lease, &task, onto, &pairs))?;
    crash_point(context, "rebase: recorded");
    let change = RefChange {
        name: task.head_ref.clone(),
        expected: task.head_commit_id.clone(),
        new: NewValue::Commit(new_head.clone()),
    };
    if let Reported::Refused(words) | Reported::Unclear(words) =
        refs::change_here(store.git(), &[change])?
    {
        return Ok(Rebased::NotPossible(Obstacle {
            why: format!("{} can't be moved: {words}", short_ref(&task.head_ref)),
            hint: format!("codeboost run {}", task.issue),
        }));
    }
    crash_point(context, "rebase: moved");
    let task = store.write(|tx| tx.set_task_commits(&task, onto, new_head, Actor::Codeboost))?;
    Ok(Rebased::Done { task, n_commits: pairs.len() })
}

/// Takes note of a rebase that moved the head's branch and was killed before the task followed.
///
/// # Errors
/// [`RebaseError`] when git or the state can't be read or written.
pub fn finish(store: &Store<'_>, lease: &Lease) -> Result<(), RebaseError> {
    let id = lease.task();
    let (task, rebases) = store.read(|tx| -> Result<_, StoreError> {
        let task = tx.task(id)?;
        let task = task.ok_or_else(|| StoreError::Damaged("the task of a lease is missing".into()));
        Ok((task?, tx.rebases(id)?))
    })?;
    let here = store.git().resolve(&task.head_ref)?;
    let moved = rebases.iter().rev().find(|row| {
        Some(&row.new_head) == here.as_ref()
            && row.old_head == task.head_commit_id
            && row.old_base == task.base_commit_id
    });
    if let Some(row) = moved {
        store.write(|tx| {
            tx.set_task_commits(&task, &row.new_base, &row.new_head, Actor::Codeboost)
        })?;
    }
    Ok(())
}

/// Why the head's branch may not be moved, and what makes it possible.
fn obstacle(
    store: &Store<'_>,
    task: &TaskRow,
    onto: &CommitId,
) -> Result<Option<Obstacle>, RebaseError> {
    let git = store.git();
    let (issue, head) = (task.issue, short_ref(&task.head_ref));
    let refuse = |why: String, hint: String| Ok(Some(Obstacle { why, hint }));
    if !task.head_ref.starts_with("refs/heads/") {
        return refuse(
            format!("{head} is no branch of this repository"),
            "rebase it where it is made, then fetch it".to_owned(),
        );
    }
    if git.resolve(&task.head_ref)?.as_ref() != Some(&task.head_commit_id) {
        return refuse(
            format!("{head} is not at {:.12}", task.head_commit_id),
            format!("codeboost run {issue}"),
        );
    }
    if !git.is_ancestor(&task.base_commit_id, onto)? {
        return refuse(
            format!(
                "{onto:.12} does not contain the base {:.12}: the base's branch was rewritten",
                task.base_commit_id
            ),
            format!("rebase {head} by hand, state it with codeboost ledger map, then run again"),
        );
    }
    if let Some(folder) = refs::checked_out(git, &task.head_ref)?.into_iter().next() {
        return refuse(
            format!("{head} is checked out in {}", folder.display()),
            "in that work tree switch to another branch, or run git switch --detach".to_owned(),
        );
    }
    if let Some(workspace) = store.read(|tx| tx.current_workspace(task.id))? {
        return refuse(
            format!("{} is being carried out in {}", workspace.item, workspace.folder.display()),
            "end it first: codeboost item end".to_owned(),
        );
    }
    Ok(None)
}

fn stopped(store: &Store<'_>, task: &TaskRow, conflict: Conflict) -> Result<Stopped, StoreError> {
    let ledger = store.read(|tx| tx.ledger(task.id))?;
    let item = ledger.commits.get(&conflict.commit).and_then(|entry| entry.item.clone());
    let Conflict { commit, author, subject, files } = conflict;
    Ok(Stopped { commit, author, subject, item, files })
}
