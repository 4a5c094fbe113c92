//! One item from its beginning to its end, with whatever worker.
//!
//! ```text
//! begin                 end
//!   row `making`          read, audit ── violation ──> row stays `open`, task `needs human`
//!   clone                   │
//!   prompt file             ├─ nothing changed ──────> row `unchanged`
//!   row `open`              │
//!                           commit, kept by a ref
//!                           row `committing` + ledger entry, one transaction
//!                           the head moves, from the commit that the item began with
//!                           row `committed` + task, one transaction
//! ```
//!
//! What is about to be done is recorded first. Killed between any two steps, the next command on
//! the task finds out from the head how far it came (`recover`) and goes on from there: a commit
//! is made and recorded before the head moves, so that nothing is ever done twice and no commit of
//! an item is ever without its entry. An entry whose commit never became part of the head lies
//! outside of every range and means nothing.
//!
//! The workspace is whoever's works in it. Git is never run there, and what was committed there by
//! hand is undone and done again simply because only the files are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use codeboost_schema::ledger::{Entry, Origin};
use codeboost_schema::plan::{CheckKind, FileKind, Item, Plan};

use crate::agent::prompt;
use crate::agent::replay::ReplayError;
use crate::execute::amend::{self, Proposed, Undeclared};
use crate::execute::audit::{self, Audit, Violation};
use crate::execute::commit::{self, CommitError, NewCommit};
use crate::execute::manifest::{self, Manifest, Options, Spool};
use crate::execute::workspace::{self, CloneError};
use crate::git::read::{Objects, ReadError};
use crate::git::refs::{self, NewValue, RefChange, Reported};
use crate::git::repository::Repository;
use crate::git::run::GitError;
use crate::git::tree::{self, Mode, Tree, TreeChange};
use crate::plan::v1::tokenize::tokenize;
use crate::process::crash_point;
use crate::sandbox::SandboxError;
use crate::stage::{self, FileError};
use crate::store::{
    Lease, NewWorkspace, Rounds, Store, StoreError, TaskRow, Worker, WorkspaceRow, WorkspaceState,
};
use crate::task::{Actor, TaskState};

/// What carrying out items needs.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The repository.
    pub repository: &'a Repository<'a>,
    /// Its state.
    pub store: &'a Store<'a>,
}

/// What becomes of the task when an item changed files that it does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOfScope {
    /// It stops in *needs amendment* until a revision that declares them is approved.
    #[default]
    Pause,
    /// It goes on: each change has to be acknowledged in the review.
    GoOn,
}

/// How an item begins.
#[derive(Debug, Clone)]
pub struct BeginOptions {
    /// Where the workspace is made; `None`: the default folder.
    pub folder: Option<PathBuf>,
    /// Whether a workspace that is open for the same item is given up first.
    pub again: bool,
    /// What becomes of earlier changes that no item declares.
    pub out_of_scope: OutOfScope,
    /// Who will work in it.
    pub worker: Worker,
    /// What the worker goes by.
    pub source: Option<Digest>,
    /// Who gets the prompt.
    pub reader: prompt::Reader,
}

impl Default for BeginOptions {
    fn default() -> Self {
        Self {
            folder: None,
            again: false,
            out_of_scope: OutOfScope::Pause,
            worker: Worker::Person,
            source: None,
            reader: prompt::Reader::Anyone,
        }
    }
}

/// An item that has begun.
#[derive(Debug)]
pub struct Begun {
    /// Its workspace.
    pub workspace: WorkspaceRow,
    /// The prompt file.
    pub prompt: PathBuf,
    /// Its approved commands, as the plan spells them.
    pub commands: Vec<String>,
    /// Declared operations that the head has no place for, in words.
    pub misfits: Vec<String>,
    /// Where the task's branch is checked out: there the end would be refused.
    pub checked_out: Option<PathBuf>,
    /// The folder that was given up for it.
    pub given_up: Option<PathBuf>,
    /// The commits that the item has already.
    pub earlier: Vec<CommitId>,
}

/// How an item ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndOptions<'a> {
    /// What becomes of the task when files changed that the item does not declare.
    pub out_of_scope: OutOfScope,
    /// What becomes of the folder of the workspace.
    pub folder: FolderAfter,
    /// Where the files lie that were worked on; `None`: in the folder of the workspace.
    pub files: Option<&'a Path>,
}

/// What becomes of a workspace's folder after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FolderAfter {
    /// It is removed when nothing is lost by that.
    #[default]
    Remove,
    /// It stays.
    Keep,
}

/// An item that was brought to an end, or not.
#[derive(Debug)]
pub struct Ended {
    /// The workspace, as it was.
    pub workspace: WorkspaceRow,
    /// What it came to.
    pub what: What,
    /// The task, as it stands now.
    pub task: TaskRow,
    /// The items of the plan that have no result yet.
    pub left: Vec<ItemId>,
    /// Declared paths at which nothing changed.
    pub untouched: Vec<String>,
    /// Left-out files, at most 1,000.
    pub ignored: Vec<RepoPath>,
    /// How many were left out.
    pub n_ignored: usize,
    /// Whether somebody committed inside of the workspace.
    pub had_commits: bool,
    /// Why the folder stays; `None` when it was removed.
    pub kept: Option<&'static str>,
}

/// What an item came to.
#[derive(Debug)]
pub enum What {
    /// The head has its commit.
    Committed {
        /// The commit.
        commit_id: CommitId,
        /// What it changes.
        changes: Vec<TreeChange>,
        /// The changed paths that the item does not declare.
        out_of_scope: Vec<RepoPath>,
    },
    /// Nothing was changed.
    Unchanged,
    /// Nothing may be committed.
    Refused(Vec<Violation>),
}

/// Why an item can't begin or end.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// The plan has no such item.
    #[error("the plan has no item {item}, only {}", list(.items))]
    NoItem {
        /// What was asked for.
        item: ItemId,
        /// What there is.
        items: Vec<ItemId>,
    },
    /// The task can't be worked on in its state.
    #[error("the task for issue #{issue} is {state}: {reason}")]
    State {
        /// The issue.
        issue: u64,
        /// Where the task stands.
        state: TaskState,
        /// Why.
        reason: String,
    },
    /// Files were changed that the plan does not declare yet.
    #[error("{} not declared by any approved revision: {}", are_paths(.paths), paths.join(", "))]
    Amendment {
        /// The issue.
        issue: u64,
        /// The paths with their items, quoted.
        paths: Vec<String>,
    },
    /// The plan is said to be wrong, and nobody decided on that yet.
    #[error("{by} says that r{revision} is wrong for {item}, and it is still the approved plan")]
    Proposed {
        /// The issue.
        issue: u64,
        /// The item that could not be carried out.
        item: ItemId,
        /// The revision.
        revision: u64,
        /// Who says so.
        by: String,
    },
    /// What is run was changed, and nobody approved that yet.
    #[error("{} what is run: {}", if paths.len() == 1 { "a change of" } else { "changes of" }, paths.join(", "))]
    Scripts {
        /// The issue.
        issue: u64,
        /// The files, quoted.
        paths: Vec<String>,
    },
    /// A file that is to be put back was changed by others.
    #[error("{0} was changed again since")]
    ChangedSince(String),
    /// A workspace is open already.
    #[error("{item} has begun already, in {}", folder.display())]
    Open {
        /// The issue.
        issue: u64,
        /// The item that it is open for.
        item: ItemId,
        /// Whether that is the item that was asked for.
        same: bool,
        /// Where it lies.
        folder: PathBuf,
    },
    /// The task is not paused.
    #[error("the task for issue #{issue} is {state}, and does not wait for that")]
    NotPaused {
        /// The issue.
        issue: u64,
        /// Where it stands.
        state: TaskState,
    },
    /// No workspace is open.
    #[error("no item of issue #{0} has begun")]
    NotOpen(u64),
    /// A workspace is open, but for another item.
    #[error("{open} has begun, not {wanted}")]
    OtherItem {
        /// The item that is open.
        open: ItemId,
        /// The one that was asked for.
        wanted: ItemId,
    },
    /// Items that have to be done first are not.
    #[error("{item} depends on {}, which {} not done", list(.missing), be(.missing.len()))]
    Dependencies {
        /// The item.
        item: ItemId,
        /// What is missing.
        missing: Vec<ItemId>,
    },
    /// A declared link can't be judged.
    #[error("{}", lines.join("; "))]
    Links {
        /// One line each.
        lines: Vec<String>,
    },
    /// The branch of the task is gone, or is no branch of its own.
    #[error("{0} names no commit of its own")]
    NoHead(String),
    /// The head is another one than the item began with.
    #[error("{head_ref} moved from {from:.12} to {to:.12} since {item} began")]
    Moved {
        /// The branch, short.
        head_ref: String,
        /// The issue.
        issue: u64,
        /// The item.
        item: ItemId,
        /// Where it was.
        from: CommitId,
        /// Where it is.
        to: CommitId,
    },
    /// The branch is checked out, and no checked-out branch is moved.
    #[error("{head_ref} is checked out in {}", folder.display())]
    CheckedOut {
        /// The branch, short.
        head_ref: String,
        /// Where.
        folder: PathBuf,
    },
    /// The folder of the workspace is gone.
    #[error("the workspace {} is gone", .0.display())]
    Gone(PathBuf),
    /// The head could not be moved.
    #[error("git did not move {head_ref}: {words}")]
    NotMoved {
        /// The branch, short.
        head_ref: String,
        /// Git's words.
        words: String,
    },
    /// This process was told to end while a command ran.
    #[error("told to end; what was running was ended first")]
    Interrupted,
    /// A patch can't be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// An agent can't run, or what it ran in can't be taken down.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The clone could not be made.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// The commit could not be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An object can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The state can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(items: &[ItemId]) -> String {
    items.iter().map(ItemId::as_str).collect::<Vec<_>>().join(", ")
}

fn be(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn are_paths(paths: &[String]) -> &'static str {
    if paths.len() == 1 { "a changed path is" } else { "changed paths are" }
}

/// The item of that name in a plan.
///
/// # Errors
/// [`ItemError::NoItem`] with the names that there are.
pub fn find_item<'p>(plan: &'p Plan, item: &ItemId) -> Result<&'p Item, ItemError> {
    plan.item(item).ok_or_else(|| ItemError::NoItem {
        item: item.clone(),
        items: plan.items.iter().map(|item| item.id.clone()).collect(),
    })
}

/// Begins an item: a workspace with a prompt beside it.
///
/// `plan`: the approved revision. The lease is the proof that nothing else works on the task.
///
/// # Errors
/// [`ItemError`] says what is in the way; nothing is changed then.
pub fn begin(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    item: &ItemId,
    options: &BeginOptions,
) -> Result<Begun, ItemError> {
    let Site { repository, store } = site;
    let context = repository.context();
    recover(site, lease)?;
    let task = read_task(store, lease)?;
    let item = find_item(plan, item)?;
    let objects = Objects::open(repository.git())?;
    require_workable(site, &objects, &task, plan, options.out_of_scope)?;
    let current = store.read(|tx| tx.current_workspace(task.id))?;
    if let Some(row) = &current {
        let same = row.item == item.id;
        if !(same && options.again) {
            return Err(ItemError::Open {
                issue: task.issue,
                item: row.item.clone(),
                same,
                folder: row.folder.clone(),
            });
        }
    }
    let done = done_items(site, &task)?;
    let missing: Vec<_> =
        item.depends_on.iter().filter(|item| !done.contains_key(*item)).cloned().collect();
    if !missing.is_empty() {
        return Err(ItemError::Dependencies { item: item.id.clone(), missing });
    }
    let head_commit_id = head(site, &task)?;
    let before = tree::read_tree(&objects, &head_commit_id)?;
    let link_targets = link_targets(&objects, item, &before)?;
    let unknown = audit::check_declared_links(item, &before, &link_targets);
    if !unknown.is_empty() {
        let lines = unknown.iter().map(Violation::line).collect();
        return Err(ItemError::Links { lines });
    }
    let folder = match &options.folder {
        Some(folder) => context.path(folder),
        None => {
            let repository_id = store.read(|tx| tx.repository_id())?;
            workspace::default_folder(repository, repository_id, task.issue, &item.id)
        }
    };
    let folder = workspace::resolve(repository, &folder)?;
    if let Some(row) = &current {
        store.write(|tx| {
            tx.end_workspace(row, WorkspaceState::Abandoned, "given up, to be begun again")
        })?;
    }
    let row = store.write(|tx| {
        tx.add_workspace(&NewWorkspace {
            task: task.id,
            item: &item.id,
            revision: plan.revision,
            folder: &folder,
            start_commit_id: &head_commit_id,
            worker: &options.worker,
            source: options.source.as_ref(),
        })
    })?;
    crash_point(context, "begin-recorded");
    let made = make(site, &objects, &task, plan, item, &row, options.reader);
    let (clone, commands) = match made {
        Ok(made) => made,
        Err(error) => {
            store.write(|tx| {
                tx.end_workspace(&row, WorkspaceState::Abandoned, "the workspace was not made")
            })?;
            return Err(error);
        }
    };
    crash_point(context, "begin-made");
    let workspace = store.write(|tx| {
        let row = tx.open_workspace(&row, clone.trusts_execute_bit)?;
        set_state(tx, &task, TaskState::Running, &format!("{} has begun", item.id))?;
        Ok::<_, StoreError>(row)
    })?;
    Ok(Begun {
        prompt: workspace::prompt_file(&workspace.folder),
        workspace,
        commands,
        misfits: misfits(item, &before),
        checked_out: refs::checked_out(repository.git(), &task.head_ref)?.into_iter().next(),
        given_up: current.map(|row| row.folder),
        earlier: done.get(&item.id).cloned().unwrap_or_default(),
    })
}

/// The texts of the problems that are open, by item.
pub(super) fn open_problems(
    store: &Store<'_>,
    task: crate::task::TaskId,
) -> Result<BTreeMap<ItemId, Vec<String>>, StoreError> {
    // Whoever accepted one, it is not to be mended.
    let rounds =
        store.read(|tx| Rounds::replay(&tx.events(Some(task))?, &tx.decisions(task)?, |_| true))?;
    let mut open: BTreeMap<ItemId, Vec<String>> = BTreeMap::new();
    for problem in rounds.open() {
        open.entry(problem.item.clone()).or_default().push(problem.text.clone());
    }
    Ok(open)
}

/// Makes the clone and the prompt file.
fn make(
    site: Site<'_>,
    objects: &Objects,
    task: &TaskRow,
    plan: &Plan,
    item: &Item,
    row: &WorkspaceRow,
    reader: prompt::Reader,
) -> Result<(workspace::Clone, Vec<String>), ItemError> {
    let Site { repository, store } = site;
    let clone = workspace::make(repository, objects, &row.start_commit_id, &row.folder)?;
    let (issue, allowed) =
        store.read(|tx| Ok::<_, StoreError>((tx.issue(task.issue)?, tx.allowed_commands()?)))?;
    let commands: Vec<String> = item
        .acceptance
        .iter()
        .filter(|check| check.kind == CheckKind::Cmd)
        .filter(|check| tokenize(&check.text).is_ok_and(|argv| allowed.contains(&argv)))
        .map(|check| check.text.clone())
        .collect();
    let problems = open_problems(store, task.id)?.remove(&item.id).unwrap_or_default();
    let done_before: Vec<&Item> =
        plan.items.iter().filter(|other| item.depends_on.contains(&other.id)).collect();
    let text = prompt::execute(&prompt::Execute {
        issue: task.issue,
        issue_title: &task.title,
        issue_body: issue.as_ref().and_then(|issue| issue.body.as_deref()),
        revision: plan.revision,
        summary: &plan.summary,
        item,
        done_before: &done_before,
        problems: &problems,
        commands: &commands,
        folder: &match reader {
            prompt::Reader::Anyone => clone.folder.to_string_lossy(),
            prompt::Reader::Contained => crate::sandbox::profile::WORK.into(),
        },
        reader,
    });
    stage::write(&workspace::prompt_file(&clone.folder), text.as_bytes())?;
    Ok((clone, commands))
}

/// Ends the item that has begun: looks at what lies in its workspace and makes the commit.
///
/// `plan`: the approved revision of now, by which scope is judged.
///
/// # Errors
/// [`ItemError`] when it can't be looked at or committed; the workspace stays as it is. What the
/// audit refuses is a value.
pub fn end(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    wanted: Option<&ItemId>,
    options: EndOptions<'_>,
) -> Result<Ended, ItemError> {
    let Site { repository, store } = site;
    let task = read_task(store, lease)?;
    let row = store
        .read(|tx| tx.current_workspace(task.id))?
        .filter(|row| row.state != WorkspaceState::Making)
        .ok_or(ItemError::NotOpen(task.issue))?;
    if let Some(wanted) = wanted
        && *wanted != row.item
    {
        return Err(ItemError::OtherItem { open: row.item, wanted: wanted.clone() });
    }
    let item = find_item(plan, &row.item)?;
    let objects = Objects::open(repository.git())?;
    let row = if row.state == WorkspaceState::Committing {
        match land(site, &task, plan, &row, options.out_of_scope)? {
            Landed::Done(task) => return ended_before(site, &objects, plan, task, row, options),
            // Its commit can't become the head any more; what lies there is looked at anew.
            Landed::Reopened(row) => row,
        }
    } else {
        row
    };
    let head_commit_id = head(site, &task)?;
    if head_commit_id != row.start_commit_id {
        return Err(moved(&task, &row, head_commit_id));
    }
    require_not_checked_out(site, &task)?;
    let files = options.files.unwrap_or(&row.folder);
    if !files.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(ItemError::Gone(files.to_owned()));
    }
    let before = tree::read_tree(&objects, &row.start_commit_id)?;
    let mut spool = Spool::new(&store.folder().join("spool"))?;
    let declared = audit::declared_paths(item).map(RepoBytes::from).collect();
    let place = (files, row.trusts_execute_bit);
    let manifest = look(site, &objects, declared, &before, place, &mut spool)?;
    let link_targets = link_targets(&objects, item, &before)?;
    let audit = audit::audit(audit::Input {
        item,
        before: &before,
        manifest: &manifest,
        link_targets: &link_targets,
    });
    let inside = workspace::look_inside(&row.folder, &row.start_commit_id);
    let Audit { changes, violations, out_of_scope, untouched } = audit;
    let left = left(plan, &row.item, &done_items(site, &task)?);
    let ended = |what, task, kept| Ended {
        workspace: row.clone(),
        what,
        task,
        left: left.clone(),
        untouched: untouched.clone(),
        ignored: manifest.ignored.clone(),
        n_ignored: manifest.n_ignored,
        had_commits: inside.has_commits,
        kept,
    };
    if !violations.is_empty() {
        let lines: Vec<String> = violations.iter().map(Violation::line).collect();
        let reason = format!("what was done for {} is not safe to commit", row.item);
        if options.files.is_some() {
            workspace::keep_rejected(&row.folder, &changes, &spool)?;
        }
        let task = store.write(|tx| {
            tx.refuse_workspace(&row, &lines)?;
            set_state(tx, &task, TaskState::NeedsHuman, &reason)
        })?;
        return Ok(ended(What::Refused(violations), task, Some("it has to be mended")));
    }
    // What was left out elsewhere goes with the place that it lies in.
    let has_ignored = manifest.n_ignored > 0 && options.files.is_none();
    let keep = Keeping { has_ignored, inside, folder: options.folder };
    if changes.is_empty() {
        let done: BTreeMap<_, _> = done_items(site, &task)?;
        let task = store.write(|tx| {
            tx.end_workspace(&row, WorkspaceState::Unchanged, "planned but unchanged")?;
            let (state, reason) = state_after(plan, &row.item, &done);
            set_state(tx, &task, state, &reason)
        })?;
        let kept = clean_up(&row, keep);
        return Ok(ended(What::Unchanged, task, kept));
    }
    let (name, email) = commit::identity(repository.git())?;
    let commit_id = commit::make(
        repository.context(),
        &objects,
        &spool,
        &NewCommit {
            message: &commit::message(item, plan.revision),
            identity: (&name, &email),
            parent: &row.start_commit_id,
            changes: &changes,
            time: repository.context().now(),
        },
    )?;
    crash_point(repository.context(), "end-made");
    store.keep_commits(task.id, [&commit_id])?;
    crash_point(repository.context(), "end-kept");
    let committing = store.write(|tx| {
        let actor = match &row.worker {
            Worker::Person => Actor::Person,
            Worker::Agent(name) => Actor::Agent(name.clone()),
        };
        let entry = Entry::new(Some(item.id.clone()), Origin::Runner);
        tx.record_commits(&task, &[(commit_id.clone(), entry)], actor)?;
        tx.commit_workspace(&row, &commit_id, &out_of_scope)
    })?;
    crash_point(repository.context(), "end-recorded");
    let Landed::Done(task) = land(site, &task, plan, &committing, options.out_of_scope)? else {
        let head_commit_id = head(site, &task)?;
        return Err(moved(&task, &row, head_commit_id));
    };
    let kept = clean_up(&row, keep);
    Ok(ended(What::Committed { commit_id, changes, out_of_scope }, task, kept))
}

/// Lets a task go on that is paused: changes that no item declares are left to the review, and what
/// is proposed for the plan is not followed.
///
/// # Errors
/// [`ItemError::NotPaused`] when it is not.
pub fn go_on(site: Site<'_>, lease: &Lease, plan: &Plan) -> Result<TaskRow, ItemError> {
    settle(site, lease, plan)?;
    let task = read_task(site.store, lease)?;
    if task.state != TaskState::NeedsAmendment {
        return Err(ItemError::NotPaused { issue: task.issue, state: task.state });
    }
    let done = done_items(site, &task)?;
    let is_whole = plan.items.iter().all(|item| done.contains_key(&item.id));
    let state = if is_whole { TaskState::InReview } else { TaskState::Queued };
    let reason = match amend::proposed(site, &task, plan.revision)? {
        Some(proposed) => {
            &format!("{} is to be carried out as r{} says", proposed.item, plan.revision)
        }
        None => "changes that no item declares are left to the review",
    };
    Ok(site.store.write(|tx| tx.set_task_state(&task, state, reason, Actor::Person))?)
}

/// Gives up the item that has begun because of what its agent came to: the task goes to a state in
/// which a person decides.
///
/// # Errors
/// [`ItemError`] when the state can't be written.
pub fn give_up(
    site: Site<'_>,
    lease: &Lease,
    row: &WorkspaceRow,
    state: TaskState,
    reason: &str,
) -> Result<TaskRow, ItemError> {
    let task = read_task(site.store, lease)?;
    Ok(site.store.write(|tx| {
        tx.end_workspace(row, WorkspaceState::Abandoned, reason)?;
        set_state(tx, &task, state, reason)
    })?)
}

/// Gives up the item that has begun. Its folder stays.
///
/// # Errors
/// [`ItemError::NotOpen`] when none has.
pub fn abandon(
    site: Site<'_>,
    lease: &Lease,
    plan: Option<&Plan>,
    wanted: Option<&ItemId>,
) -> Result<WorkspaceRow, ItemError> {
    recover(site, lease)?;
    if let Some(plan) = plan {
        settle(site, lease, plan)?;
    }
    let task = read_task(site.store, lease)?;
    let row = site
        .store
        .read(|tx| tx.current_workspace(task.id))?
        .ok_or(ItemError::NotOpen(task.issue))?;
    if let Some(wanted) = wanted
        && *wanted != row.item
    {
        return Err(ItemError::OtherItem { open: row.item, wanted: wanted.clone() });
    }
    let done = done_items(site, &task)?;
    let is_whole =
        plan.is_some_and(|plan| plan.items.iter().all(|item| done.contains_key(&item.id)));
    let state = if is_whole { TaskState::InReview } else { TaskState::Queued };
    site.store.write(|tx| {
        tx.end_workspace(&row, WorkspaceState::Abandoned, "given up")?;
        set_state(tx, &task, state, &format!("{} was given up", row.item))
    })?;
    Ok(row)
}

/// Finishes or takes back what a killed process left half done for a task.
///
/// # Errors
/// [`ItemError`] when the head can't be read or moved.
pub fn settle(site: Site<'_>, lease: &Lease, plan: &Plan) -> Result<(), ItemError> {
    recover(site, lease)?;
    let task = read_task(site.store, lease)?;
    let current = site.store.read(|tx| tx.current_workspace(task.id))?;
    if let Some(row) = current.filter(|row| row.state == WorkspaceState::Committing) {
        land(site, &task, plan, &row, OutOfScope::Pause)?;
    }
    Ok(())
}

/// Takes back a workspace that was never made whole.
fn recover(site: Site<'_>, lease: &Lease) -> Result<(), ItemError> {
    let current = site.store.read(|tx| tx.current_workspace(lease.task()))?;
    let Some(row) = current.filter(|row| row.state == WorkspaceState::Making) else {
        return Ok(());
    };
    workspace::remove_drafts(&row.folder);
    site.store.write(|tx| {
        tx.end_workspace(&row, WorkspaceState::Abandoned, "its making was interrupted")
    })?;
    Ok(())
}

/// What became of a recorded commit.
enum Landed {
    /// The head has it, and the task says so.
    Done(TaskRow),
    /// It can't become the head; the workspace is open again.
    Reopened(WorkspaceRow),
}

/// Moves the head to the recorded commit, unless it has it already, and records that.
fn land(
    site: Site<'_>,
    task: &TaskRow,
    plan: &Plan,
    row: &WorkspaceRow,
    out_of_scope: OutOfScope,
) -> Result<Landed, ItemError> {
    let Site { repository, store } = site;
    let git = repository.git();
    let commit_id =
        row.commit_id.as_ref().ok_or_else(|| StoreError::Damaged("a commit is missing".into()))?;
    let mut head_commit_id = head(site, task)?;
    if head_commit_id == row.start_commit_id {
        head_commit_id = move_head(site, task, &row.start_commit_id, commit_id)?;
    }
    if head_commit_id != *commit_id && !git.is_ancestor(commit_id, &head_commit_id)? {
        return Ok(Landed::Reopened(store.write(|tx| tx.reopen_workspace(row))?));
    }
    let done = done_items(site, task)?;
    let task = store.write(|tx| {
        let paused = !row.out_of_scope.is_empty() && out_of_scope == OutOfScope::Pause;
        let words = format!("committed as {commit_id:.12}{}", scope_words(row));
        tx.end_workspace(row, WorkspaceState::Committed, &words)?;
        let task =
            tx.set_task_commits(task, &task.base_commit_id, &head_commit_id, Actor::Codeboost)?;
        let (state, reason) = if paused {
            let n = row.out_of_scope.len();
            let reason = format!(
                "{} changed {} that it does not declare",
                row.item,
                crate::output::counted(n as u64, "file")
            );
            (TaskState::NeedsAmendment, reason)
        } else {
            state_after(plan, &row.item, &done)
        };
        set_state(tx, &task, state, &reason)
    })?;
    crash_point(repository.context(), "end-done");
    Ok(Landed::Done(task))
}

fn scope_words(row: &WorkspaceRow) -> String {
    match row.out_of_scope.len() {
        0 => String::new(),
        n => format!(", {} out of scope", crate::output::counted(n as u64, "file")),
    }
}

/// What an end that an earlier run had come to says.
fn ended_before(
    site: Site<'_>,
    objects: &Objects,
    plan: &Plan,
    task: TaskRow,
    row: WorkspaceRow,
    options: EndOptions<'_>,
) -> Result<Ended, ItemError> {
    let commit_id =
        row.commit_id.clone().ok_or_else(|| StoreError::Damaged("a commit is missing".into()))?;
    let before = tree::read_tree(objects, &row.start_commit_id)?;
    let after = tree::read_tree(objects, &commit_id)?;
    let inside = workspace::look_inside(&row.folder, &row.start_commit_id);
    // Whether files were left out is not known any more, so nothing is removed.
    let keep = Keeping { has_ignored: true, inside, folder: options.folder };
    let kept = clean_up(&row, keep);
    Ok(Ended {
        what: What::Committed {
            commit_id,
            changes: audit::changes(&before, &after),
            out_of_scope: row.out_of_scope.clone(),
        },
        left: left(plan, &row.item, &done_items(site, &task)?),
        workspace: row,
        task,
        untouched: Vec::new(),
        ignored: Vec::new(),
        n_ignored: 0,
        had_commits: inside.has_commits,
        kept,
    })
}

/// What decides whether a folder may go.
#[derive(Clone, Copy)]
struct Keeping {
    has_ignored: bool,
    inside: workspace::Inside,
    folder: FolderAfter,
}

/// Removes the folder when nothing is lost by that; else says why it stays.
fn clean_up(row: &WorkspaceRow, keep: Keeping) -> Option<&'static str> {
    if keep.folder == FolderAfter::Keep {
        return Some("as asked");
    }
    if keep.inside.has_commits || keep.inside.has_more {
        return Some("it holds commits made by hand");
    }
    if keep.has_ignored {
        return Some("it holds files that were left out");
    }
    let removed = std::fs::remove_dir_all(&row.folder);
    let _ = std::fs::remove_file(workspace::prompt_file(&row.folder));
    removed.is_err().then_some("it could not be removed")
}

/// Whether the task may be worked on, and whether earlier changes are declared by now.
fn require_workable(
    site: Site<'_>,
    objects: &Objects,
    task: &TaskRow,
    plan: &Plan,
    out_of_scope: OutOfScope,
) -> Result<(), ItemError> {
    match task.state {
        TaskState::Queued
        | TaskState::Running
        | TaskState::InReview
        | TaskState::NeedsHuman
        | TaskState::MergeBlocked => Ok(()),
        TaskState::NeedsAmendment => {
            if let Some(Proposed { item, revision, by, .. }) =
                amend::proposed(site, task, plan.revision)?
            {
                return Err(ItemError::Proposed { issue: task.issue, item, revision, by });
            }
            if out_of_scope == OutOfScope::GoOn {
                return Ok(());
            }
            let changes = amend::undeclared(site, objects, task, plan)?;
            if changes.is_empty() {
                return Ok(());
            }
            let mut paths: Vec<String> = changes.iter().map(Undeclared::words).collect();
            paths.sort();
            Err(ItemError::Amendment { issue: task.issue, paths })
        }
        TaskState::NeedsApproval
        | TaskState::PossiblyFixed
        | TaskState::Merging
        | TaskState::Merged
        | TaskState::Cancelled => Err(ItemError::State {
            issue: task.issue,
            state: task.state,
            reason: task.reason.clone(),
        }),
    }
}

/// The items that have a result, with their commits in the range of the task; none for an item
/// that was planned but unchanged.
///
/// # Errors
/// [`ItemError`] when the state or the history can't be read.
pub fn done_items(
    site: Site<'_>,
    task: &TaskRow,
) -> Result<BTreeMap<ItemId, Vec<CommitId>>, ItemError> {
    let Site { repository, store } = site;
    let (ledger, rows) =
        store.read(|tx| Ok::<_, StoreError>((tx.ledger(task.id)?, tx.workspaces(task.id)?)))?;
    let mut done: BTreeMap<ItemId, Vec<CommitId>> = rows
        .into_iter()
        .filter(|row| row.state == WorkspaceState::Unchanged)
        .map(|row| (row.item, Vec::new()))
        .collect();
    let range = format!("{}..{}", task.base_commit_id, head(site, task)?);
    let answer = repository.git().output(["rev-list", "--topo-order", "--reverse", &range])?;
    for line in String::from_utf8_lossy(&answer).lines() {
        let Ok(commit_id) = CommitId::parse(line) else { continue };
        if let Some(item) = ledger.commits.get(&commit_id).and_then(|entry| entry.item.clone()) {
            done.entry(item).or_default().push(commit_id);
        }
    }
    Ok(done)
}

/// The items other than `item` that have no result yet, in plan order.
fn left(plan: &Plan, item: &ItemId, done: &BTreeMap<ItemId, Vec<CommitId>>) -> Vec<ItemId> {
    let ids = plan.items.iter().map(|other| &other.id);
    ids.filter(|other| *other != item && !done.contains_key(*other)).cloned().collect()
}

/// Where a task goes when an item has a result. `done`: the others that have one.
pub(super) fn state_after(
    plan: &Plan,
    item: &ItemId,
    done: &BTreeMap<ItemId, Vec<CommitId>>,
) -> (TaskState, String) {
    let left = left(plan, item, done);
    if left.is_empty() {
        (TaskState::InReview, "every item is carried out".to_owned())
    } else {
        (TaskState::Queued, format!("{item} is carried out; left: {}", list(&left)))
    }
}

/// Moves the task to a state, unless it is there or can't go there.
pub(super) fn set_state(
    tx: &crate::store::WriteTx<'_>,
    task: &TaskRow,
    state: TaskState,
    reason: &str,
) -> Result<TaskRow, StoreError> {
    if task.state == state {
        return Ok(task.clone());
    }
    // From review and from where a person is awaited, the way leads over running.
    let task = if !task.state.may_become(state) && task.state.may_become(TaskState::Running) {
        tx.set_task_state(task, TaskState::Running, "an item is carried out", Actor::Codeboost)?
    } else {
        task.clone()
    };
    if task.state == state {
        return Ok(task);
    }
    tx.set_task_state(&task, state, reason, Actor::Codeboost)
}

/// The commit that the task's branch names now.
pub(crate) fn head(site: Site<'_>, task: &TaskRow) -> Result<CommitId, ItemError> {
    let git = site.repository.git();
    let symbolic = git.finish(["symbolic-ref", "--quiet", "--", &task.head_ref], None)?;
    if symbolic.code == Some(0) {
        return Err(ItemError::NoHead(short(&task.head_ref)));
    }
    git.resolve(&task.head_ref)?.ok_or_else(|| ItemError::NoHead(short(&task.head_ref)))
}

/// Moves the task's branch from one commit to another and returns what it names then.
pub(crate) fn move_head(
    site: Site<'_>,
    task: &TaskRow,
    from: &CommitId,
    to: &CommitId,
) -> Result<CommitId, ItemError> {
    require_not_checked_out(site, task)?;
    let change = RefChange {
        name: task.head_ref.clone(),
        expected: from.clone(),
        new: NewValue::Commit(to.clone()),
    };
    let reported = refs::change_here(site.repository.git(), &[change])?;
    crash_point(site.repository.context(), "end-moved");
    // What git reports is not the truth; the ref is.
    let head_commit_id = head(site, task)?;
    if head_commit_id == *from {
        let words = match reported {
            Reported::Accepted => "it says that it did".to_owned(),
            Reported::Refused(words) | Reported::Unclear(words) => words,
        };
        return Err(ItemError::NotMoved { head_ref: short(&task.head_ref), words });
    }
    Ok(head_commit_id)
}

fn moved(task: &TaskRow, row: &WorkspaceRow, to: CommitId) -> ItemError {
    ItemError::Moved {
        head_ref: short(&task.head_ref),
        issue: task.issue,
        item: row.item.clone(),
        from: row.start_commit_id.clone(),
        to,
    }
}

fn require_not_checked_out(site: Site<'_>, task: &TaskRow) -> Result<(), ItemError> {
    let folders = refs::checked_out(site.repository.git(), &task.head_ref)?;
    match folders.into_iter().next() {
        None => Ok(()),
        Some(folder) => Err(ItemError::CheckedOut { head_ref: short(&task.head_ref), folder }),
    }
}

fn short(name: &str) -> String {
    crate::store::short_ref(name).to_owned()
}

pub(crate) fn read_task(store: &Store<'_>, lease: &Lease) -> Result<TaskRow, StoreError> {
    store
        .read(|tx| tx.task(lease.task()))?
        .ok_or_else(|| StoreError::Damaged("a held task is missing".into()))
}

/// Reads what lies in the workspace.
pub(crate) fn look(
    site: Site<'_>,
    objects: &Objects,
    declared: BTreeSet<RepoPath>,
    before: &Tree,
    (folder, trusts_execute_bit): (&Path, bool),
    spool: &mut Spool,
) -> Result<Manifest, ItemError> {
    let options = Options {
        before,
        rules_before: &rules_in(objects, before)?,
        own_rules: workspace::own_ignore_rules(site.repository)?,
        declared,
        format: objects.format(),
        trusts_execute_bit,
    };
    Ok(manifest::read(folder, &options, spool)?)
}

/// The `.gitignore` files of a tree, by the folder that they lie in.
fn rules_in(objects: &Objects, tree: &Tree) -> Result<BTreeMap<RepoPath, Vec<u8>>, ReadError> {
    let mut rules = BTreeMap::new();
    for (path, leaf) in tree.iter().filter(|(_, leaf)| leaf.mode.is_file()) {
        let Some(folder) = path.as_bytes().strip_suffix(b".gitignore") else { continue };
        match folder.strip_suffix(b"/") {
            Some(folder) => rules.insert(RepoBytes::from(folder), objects.blob(&leaf.object_id)?),
            None if folder.is_empty() => {
                rules.insert(RepoBytes::default(), objects.blob(&leaf.object_id)?)
            }
            None => None,
        };
    }
    Ok(rules)
}

/// Targets of the links in a tree that an item declares.
fn link_targets(
    objects: &Objects,
    item: &Item,
    tree: &Tree,
) -> Result<BTreeMap<RepoPath, RepoBytes>, ReadError> {
    audit::declared_links(item, tree)
        .map(|path| Ok((path.clone(), objects.blob(&tree[&path].object_id)?.into())))
        .collect()
}

/// Declared operations that the head has no place for. The plan was checked against its own
/// projection; the head may have become another one since.
fn misfits(item: &Item, before: &Tree) -> Vec<String> {
    let is_there = |path: &str| before.contains_key(&RepoBytes::from(path));
    let mut found = Vec::new();
    for file in &item.files {
        let path = audit::quote(file.path.as_bytes());
        match file.kind {
            FileKind::Edit | FileKind::Delete if !is_there(&file.path) => {
                let verb = if file.kind == FileKind::Edit { "edit" } else { "delete" };
                found.push(format!("{verb} {path}, which is not there"));
            }
            FileKind::Add if is_there(&file.path) => {
                found.push(format!("add {path}, which is there already"));
            }
            FileKind::Rename => {
                if is_there(&file.path) {
                    found.push(format!("rename to {path}, which is there already"));
                }
                if let Some(from) = file.renamed_from.as_deref().filter(|from| !is_there(from)) {
                    let from = audit::quote(from.as_bytes());
                    found.push(format!("rename {from}, which is not there"));
                }
            }
            FileKind::Edit | FileKind::Delete | FileKind::Add => {}
        }
        let is_submodule = |path: &str| {
            before.get(&RepoBytes::from(path)).is_some_and(|leaf| leaf.mode == Mode::Gitlink)
        };
        if is_submodule(&file.path) {
            found.push(format!("change {path}, which is a submodule"));
        }
    }
    found
}
