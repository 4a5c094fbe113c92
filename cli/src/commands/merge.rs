//! `codeboost merge`: lands exactly what was reviewed.

use clap::Args;
use codeboost_schema::ids::CommitId;
use serde_json::{Value, json};

use crate::commands::{open, open_forge};
use crate::config::{HeadAfter, MergeMethod};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::gate::{Code, Tests};
use crate::git::repository::Repository;
use crate::merge::{Ending, IfFixed, Judge, Options, Sequence, Step, StepReport, Verdict};
use crate::output::{Output, Style, counted, plain, plain_line};
use crate::review::{self, Review};
use crate::store::{Held, StepState, Store, TaskRow, short_ref};
use crate::task::{TaskId, TaskState};

/// Arguments of `merge`.
#[derive(Debug, Default, Args)]
pub struct MergeArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Land one commit with the base as its only parent, instead of a merge commit
    #[arg(long)]
    squash: bool,
    /// Leave the head's branch as it is, instead of what the configuration says
    #[arg(long)]
    keep_head: bool,
    /// Go on although the already-fixed check found something: you have looked at it
    #[arg(long)]
    not_fixed: bool,
    /// Stop when the base has moved, instead of bringing the head's branch onto it
    #[arg(long)]
    no_rebase: bool,
    /// Wait for nothing: end while required checks or a merge queue take their time, and go on with
    /// the next run
    #[arg(long)]
    no_wait: bool,
}

impl MergeArgs {
    /// For a decisions file: what it asked to merge is one pair of base and head.
    pub(crate) fn of_one_pair() -> Self {
        Self { no_rebase: true, ..Self::default() }
    }
}

/// The gate of a task: its review, read anew for the pair that is asked about.
struct ReviewGate<'g, 'a> {
    repository: &'g Repository<'a>,
    store: &'g Store<'a>,
    task: TaskId,
}

impl Judge for ReviewGate<'_, '_> {
    fn judge(&self, base: &CommitId, head: &CommitId) -> Result<Verdict> {
        let task = self.store.read(|tx| tx.task(self.task))?;
        let task = task.ok_or_else(|| Error::failed("the task is gone"))?;
        let review = review::read::read_at(self.repository, self.store, &task, base, head)
            .map_err(|error| Error::from_error(&error))?
            .review;
        let checks = checks(&review);
        let mut blockers = review.blockers;
        // The sequence compares the pair with the forge itself; the branches here may lag behind.
        blockers.retain(|blocker| !matches!(blocker.code, Code::Base | Code::Head));
        Ok(Verdict { blockers, checks, plan: review.inputs.plan })
    }
}

/// How the `cmd` checks stand that count, for people.
fn checks(review: &Review) -> String {
    let total: u32 = review
        .items
        .iter()
        .map(|item| match &item.tests {
            Tests::Passed { total, .. }
            | Tests::Failed { total, .. }
            | Tests::NotRun { total }
            | Tests::OutOfDate { total } => *total,
            Tests::NoneDefined => 0,
        })
        .sum();
    let approved = counted(review.items.len() as u64, "item");
    if total == 0 {
        format!("{approved} approved, no cmd checks defined")
    } else {
        format!("{approved} approved, {} passed on this head", counted(total.into(), "cmd check"))
    }
}

pub(crate) fn run(context: &Context, args: &MergeArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(args.issue))?;
    let merged = match carry_out(context, &repository, &store, &task, args)? {
        Ok(merged) => merged,
        Err(held) => return Ok(held.tell(context)),
    };
    if context.out.is_json() {
        context.out.json(&merged.report());
    } else {
        merged.tell(&context.out);
    }
    for hint in merged.hints() {
        context.out.note(hint);
    }
    Ok(merged.outcome())
}

/// How a merge ended.
pub(crate) struct Merged {
    task: TaskRow,
    place: String,
    steps: Vec<StepReport>,
    ending: Ending,
}

/// Merges a task, unless another run holds it. Each step is told as it ends, except as JSON.
pub(crate) fn carry_out(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    args: &MergeArgs,
) -> Result<std::result::Result<Merged, Held>> {
    let config = repository.config()?;
    let options = Options {
        method: if args.squash { MergeMethod::Squash } else { config.merge.method },
        head_after: if args.keep_head { HeadAfter::Keep } else { config.merge.head },
        if_fixed: if args.not_fixed { IfFixed::GoOn } else { IfFixed::Stop },
        rebase: !args.no_rebase,
        waits: !args.no_wait,
    };
    let lease = match store.lease(task, "merge")? {
        Ok(lease) => lease,
        Err(held) => return Ok(Err(held)),
    };
    let forge = open_forge(repository, store, &config, task)?;
    let judge = ReviewGate { repository, store, task: task.id };
    let mut told = Told::default();
    let mut report = |step: &StepReport| told.step(&context.out, step);
    let sequence = Sequence::new(store, &lease, &*forge, &judge, options, &mut report);
    let ending = sequence.run()?;
    let task = store.read(|tx| tx.select_any_task(Some(task.issue)))?;
    Ok(Ok(Merged { task, place: forge.place(), steps: told.steps, ending }))
}

impl Merged {
    /// For programs.
    pub(crate) fn report(&self) -> Value {
        json!({
            "issue": self.task.issue,
            "state": self.task.state,
            "steps": self.steps,
            "ending": self.ending,
        })
    }

    /// For people: what landed, or word for word what keeps it from landing.
    pub(crate) fn tell(&self, out: &Output) {
        tell(out, &self.task, &self.place, &self.ending);
    }

    /// The next steps.
    pub(crate) fn hints(&self) -> Vec<String> {
        hints(&self.task, &self.place, &self.ending)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.ending.outcome()
    }
}

/// The steps that ended so far; each is told as it ends.
#[derive(Default)]
struct Told {
    steps: Vec<StepReport>,
}

impl Told {
    fn step(&mut self, out: &Output, step: &StepReport) {
        self.steps.push(step.clone());
        if out.is_json() {
            return;
        }
        let (icon, style) = match step.state {
            StepState::Done => ("✓", Style::Success),
            StepState::Skipped => ("–", Style::Muted),
            StepState::Running => ("…", Style::Muted),
            StepState::Failed => ("✗", Style::Error),
        };
        let width = Step::ALL.map(|step| step.name().len()).into_iter().max().unwrap_or(0);
        let seconds = format!("{}.{} s", step.millis / 1000, step.millis % 1000 / 100);
        let mut words = step.words.lines();
        out.line(format!(
            "{} {:width$}  {:<7}  {seconds:>7}  {}",
            out.paint(style, icon),
            step.step.name(),
            step.state.word(),
            plain_line(words.next().unwrap_or_default()),
        ));
    }
}

/// Tells how it ended: what landed, or word for word what keeps it from landing.
fn tell(out: &Output, task: &TaskRow, place: &str, ending: &Ending) {
    let issue = task.issue;
    let base = short_ref(&task.base_ref);
    let head = short_ref(&task.head_ref);
    match ending {
        Ending::Merged { commit, found, head_after, .. } => {
            let earlier = if *found { ", by an earlier run" } else { "" };
            out.line(format!("Merged #{issue} as {commit:.12}{earlier}: {base} of {place}"));
            match head_after {
                Some(HeadAfter::Delete) => out.line(format!("  {head} was deleted there")),
                Some(HeadAfter::Move) => out.line(format!("  {head} moved there too")),
                Some(HeadAfter::Keep) | None => {}
            }
        }
        Ending::Blocked { blockers } => {
            let plural = if blockers.len() == 1 { "" } else { "s" };
            out.line(format!("Not merged: {} blocker{plural}", blockers.len()));
            for blocker in blockers {
                out.line(format!("  {}", plain_line(&blocker.words)));
            }
        }
        Ending::Refused { words } => {
            out.line(format!("Not merged: {place} refused it. Its words:"));
            for line in plain(words).lines() {
                out.line(format!("  {line}"));
            }
        }
        Ending::PossiblyFixed { findings } => {
            out.line(format!("Not merged: issue #{issue} is possibly already fixed"));
            for finding in findings {
                out.line(format!("  {}", plain_line(&finding.to_string())));
            }
        }
        _ => out.line(format!("Not merged: {}", plain(&ending.reason()))),
    }
}

/// The next steps.
fn hints(task: &TaskRow, place: &str, ending: &Ending) -> Vec<String> {
    let issue = task.issue;
    let base = short_ref(&task.base_ref);
    let head = short_ref(&task.head_ref);
    let hint = |text: String| vec![text];
    match ending {
        Ending::Merged { .. } if place == "this repository" => Vec::new(),
        Ending::Merged { .. } => {
            hint(format!("{base} here did not move; git pull where it is checked out follows"))
        }
        Ending::Blocked { .. } => hint(format!("Next: codeboost review {issue}")),
        Ending::HeadMoved { found: Some(_), .. } => hint(format!(
            "Next: make {head} here the one to review (git pull or git reset), then codeboost run \
             {issue} and review what changed"
        )),
        Ending::HeadMoved { expected, found: None } => {
            hint(format!("Next: git branch {head} {expected}"))
        }
        Ending::BaseMoved { stays: Some(obstacle), .. } => {
            vec![format!("Next: {}", obstacle.hint), format!("  codeboost merge {issue}")]
        }
        Ending::RebaseConflict { head_there, .. } => {
            rebase_by_hand(task, place, &task.base_commit_id, head_there.as_ref())
        }
        Ending::BaseMoved { expected, head_there, .. } => {
            rebase_by_hand(task, place, expected, head_there.as_ref())
        }
        Ending::PossiblyFixed { .. } => vec![
            format!("Next, when you have looked: codeboost merge {issue} --not-fixed"),
            format!("  or codeboost task cancel {issue}"),
        ],
        Ending::WrongState { state: TaskState::PossiblyFixed, .. } => {
            hint(format!("Next, when you have looked: codeboost merge {issue} --not-fixed"))
        }
        Ending::NotAllowed { hint: text, .. } => hint(format!("Next: {text}")),
        Ending::Refused { words } if words.contains("deletion") => {
            hint(format!("Next: codeboost merge {issue} --keep-head, if the branch may stay"))
        }
        Ending::Refused { .. } => {
            hint(format!("Next, when nothing refuses it any more: codeboost merge {issue}"))
        }
        Ending::Unclear { .. } => {
            hint(format!("Next: codeboost merge {issue}; it first finds out whether it landed"))
        }
        Ending::Queued { .. } => {
            hint(format!("Next: codeboost merge {issue}; it goes on from here"))
        }
        Ending::Conflict { .. }
        | Ending::WrongState { .. }
        | Ending::FixedUnknown { .. }
        | Ending::Waits { .. }
        | Ending::RulesUnknown { .. }
        | Ending::ChecksLate { .. }
        | Ending::ChecksFailed { .. } => hint(format!("Next: codeboost status {issue}")),
    }
}

/// The commands that bring a head onto a base that moved, up to the review of what came of it.
fn rebase_by_hand(
    task: &TaskRow,
    place: &str,
    expected: &CommitId,
    head_there: Option<&CommitId>,
) -> Vec<String> {
    let base = short_ref(&task.base_ref);
    let head = short_ref(&task.head_ref);
    let remote = place.strip_prefix("the remote ");
    let mut lines = Vec::new();
    if let Some(remote) = remote {
        let spec = if task.base_ref.starts_with("refs/heads/") {
            format!(" {base}:{base}, or git pull where {base} is checked out")
        } else {
            String::new()
        };
        lines.push(format!("git fetch {remote}{spec}"));
    }
    lines.push(format!("git branch {head}-before {head} && git rebase {base} {head}"));
    lines.push(format!("codeboost ledger map {expected:.12}..{head}-before {base}..{head}"));
    // What the remote never had needs no push: the merge brings it.
    if let (Some(remote), Some(old)) = (remote, head_there) {
        lines.push(format!("git push --force-with-lease={head}:{old:.12} {remote} {head}"));
    }
    lines.push(format!("codeboost run {}, and review what changed", task.issue));
    let lines = lines.into_iter().enumerate();
    lines
        .map(|(n, line)| if n == 0 { format!("Next: {line}") } else { format!("  {line}") })
        .collect()
}
