//! `codeboost run`: brings every stale stage of a task up to date.

use clap::Args;
use codeboost_schema::ids::CommitId;
use serde::Serialize;

use crate::commands::next::next;
use crate::commands::{link, open, render};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::merge::MergeError;
use crate::merge::rebase::{self, Rebased};
use crate::output::{Style, counted, plain_line};
use crate::review::read;
use crate::review::sources::Reading;
use crate::store::{Store, TaskRow};
use crate::task::TaskState;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Issue of the task [default: every open task]
    issue: Option<u64>,
    /// Bring each head onto a base that moved, also after its review was first shown and where the
    /// branch is not one that codeboost made
    #[arg(long)]
    rebase: bool,
}

/// Where a task stands when its stages are up to date.
#[derive(Serialize)]
struct TaskRun {
    issue: u64,
    state: TaskState,
    /// What came of a base that moved; `None` when it has not, or nothing was to be done about it.
    rebase: Option<String>,
    stages: Vec<StageRun>,
    /// What forbids the merge, in words.
    blockers: Vec<String>,
    /// Why no review could be made.
    waits: Option<String>,
    /// Why a stage failed.
    error: Option<String>,
    /// The command that goes on.
    next: Option<String>,
}

#[derive(Serialize)]
struct StageRun {
    stage: &'static str,
    path: String,
    wrote: bool,
}

impl TaskRun {
    fn outcome(&self) -> Outcome {
        match self {
            Self { error: Some(_), .. } => Outcome::Failed,
            Self { waits: Some(_), .. } => Outcome::Waits,
            _ => Outcome::Done,
        }
    }
}

pub(crate) fn run(context: &Context, args: &RunArgs) -> Result {
    let (repository, store) = open(context)?;
    let tasks: Vec<_> = match args.issue {
        Some(issue) => vec![store.read(|tx| tx.select_task(Some(issue)))?],
        None => {
            let all = store.read(|tx| tx.tasks())?;
            all.into_iter().filter(|task| !task.state.is_closed()).collect()
        }
    };
    let mut runs = Vec::new();
    for task in tasks {
        let (issue, state) = (task.issue, task.state);
        let run = bring(context, &repository, &store, task, args.rebase).unwrap_or_else(|error| {
            TaskRun {
                issue,
                state,
                rebase: None,
                stages: Vec::new(),
                blockers: Vec::new(),
                waits: None,
                error: Some(error.chain()),
                next: Some(format!("codeboost status {issue}")),
            }
        });
        if !context.out.is_json() {
            tell(context, &run);
        }
        runs.push(run);
    }
    if context.out.is_json() {
        context.out.json(&runs);
    } else if runs.is_empty() {
        context.out.line("No open task.");
        context.out.note("Next: codeboost task add ISSUE --base BRANCH");
    }
    let has = |wanted: Outcome| runs.iter().any(|run| run.outcome() == wanted);
    Ok(if has(Outcome::Failed) {
        Outcome::Failed
    } else if has(Outcome::Waits) {
        Outcome::Waits
    } else {
        Outcome::Done
    })
}

fn bring(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: TaskRow,
    is_asked: bool,
) -> Result<TaskRun> {
    let task = read::follow(repository, store, task)?;
    let (task, rebase) = onto_its_base(repository, store, task, is_asked)?;
    let (newest, approved) = store
        .read(|tx| -> Result<_> { Ok((tx.newest_plan(task.id)?, tx.approved_plan(task.id)?)) })?;
    let mut run = TaskRun {
        issue: task.issue,
        state: task.state,
        rebase,
        stages: Vec::new(),
        blockers: Vec::new(),
        waits: None,
        error: None,
        next: None,
    };
    run.waits = match (newest, approved) {
        (None, _) => Some("it has no plan yet".to_owned()),
        (Some(newest), None) => {
            Some(format!("r{} of its plan is not approved", newest.plan.revision))
        }
        _ if task.base_commit_id == task.head_commit_id => {
            Some("its branch has no commit yet".to_owned())
        }
        _ => None,
    };
    if run.waits.is_none() {
        let reading = Reading::of(repository, store, &task)?;
        let made = link::make(repository, store, &reading)?;
        run.stages.push(stage("link", &made.path, made.wrote));
        let limits = reading.sources().beside.config.page;
        let page = render::make(context, repository, store, &reading, limits, None)?;
        run.stages.push(stage("render", &page.path, page.wrote));
        run.blockers = reading.blockers()?;
    }
    let n_blockers = run.waits.is_none().then_some(run.blockers.len());
    run.next = next(repository, store, &task, n_blockers)?;
    Ok(run)
}

/// Brings the head of a task onto the commit that its base names here, if that moved: when asked
/// for, and on a branch that codeboost made before its review is first shown.
fn onto_its_base(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: TaskRow,
    is_asked: bool,
) -> Result<(TaskRow, Option<String>)> {
    let git = repository.git();
    let unseen = || store.read(|tx| tx.stage(task.id, "render")).map(|row| row.is_none());
    let is_open = matches!(task.state, TaskState::InReview | TaskState::MergeBlocked);
    if !is_open || !(is_asked || task.made_head && unseen()?) {
        return Ok((task, None));
    }
    let Some(tip) = git.resolve(&task.base_ref)? else { return Ok((task, None)) };
    let has = |commit: &CommitId| Ok::<_, Error>(tip == *commit || git.is_ancestor(&tip, commit)?);
    if has(&task.base_commit_id)? {
        return Ok((task, None));
    }
    let lease = match store.lease(&task, "run")? {
        Ok(lease) => lease,
        Err(held) if is_asked => return Err(held.into_error()),
        Err(_) => return Ok((task, None)),
    };
    let stays = |why: String| format!("not onto {tip:.12}: {why}");
    Ok(match rebase::rebase(store, &lease, &tip).map_err(MergeError::from)? {
        Rebased::Done { task, n_commits } => {
            let commits = counted(n_commits as u64, "commit");
            (task, Some(format!("{commits} replayed onto {tip:.12}")))
        }
        Rebased::Conflict(stopped) => {
            let ending = stopped.into_ending(tip.clone(), None);
            (task, Some(stays(ending.reason())))
        }
        Rebased::NotPossible(obstacle) => {
            (task, Some(stays(format!("{}; {}", obstacle.why, obstacle.hint))))
        }
    })
}

fn stage(stage: &'static str, path: &std::path::Path, wrote: bool) -> StageRun {
    StageRun { stage, path: path.display().to_string(), wrote }
}

fn tell(context: &Context, run: &TaskRun) {
    let out = &context.out;
    let heading = match (&run.error, &run.waits) {
        (Some(error), _) => format!("failed: {}", out.paint(Style::Error, &plain_line(error))),
        (None, Some(why)) => format!("waits: {why}"),
        (None, None) if run.blockers.is_empty() => "nothing blocks the merge".to_owned(),
        (None, None) => {
            format!("{} before it can merge", counted(run.blockers.len() as u64, "blocker"))
        }
    };
    out.line(format!("#{}  {heading}", run.issue));
    if let Some(words) = &run.rebase {
        out.line(format!("  rebase  {}", plain_line(words)));
    }
    for stage in &run.stages {
        let done = if stage.wrote { "made" } else { "up to date" };
        out.line(format!("  {:<7} {done:<10}  {}", stage.stage, stage.path));
    }
    for blocker in &run.blockers {
        out.line(format!("  {}", plain_line(blocker)));
    }
    if let (Some(page), false) = (run.stages.last(), run.blockers.is_empty()) {
        let apply = out.paint_err(Style::Accent, "codeboost apply FILE");
        out.note(format!("Next: open {}, decide, save, then {apply}", page.path));
    } else if let Some(next) = &run.next {
        out.note(format!("Next: {}", out.paint_err(Style::Accent, next)));
    }
}
