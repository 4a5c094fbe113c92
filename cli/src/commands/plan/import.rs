//! `codeboost plan import`: a file becomes the next revision of a task's plan.

use std::collections::BTreeSet;

use clap::Args;
use codeboost_schema::plan::Plan;
use serde_json::json;

use super::input::{Input, SyntaxArgs};
use super::report::Report;
use crate::commands::open;
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::git::repository::Repository;
use crate::plan::problem::{Problem, locate};
use crate::plan::read::{ReadPlan, Unreadable};
use crate::plan::source::Source;
use crate::store::{PlanOrigin, PlanRow, Store, StoreError, TaskRow};
use crate::task::Actor;

/// Arguments of `plan import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Issue of the task
    issue: u64,
    /// The plan, in JSON or YAML; - reads standard input
    file: String,
    #[command(flatten)]
    syntax: SyntaxArgs,
}

pub(super) fn run(context: &Context, args: &ImportArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(Some(args.issue)))?;
    let input = Input::read(context, &args.file, &args.syntax)?;
    let after = store.read(|tx| tx.newest_plan(task.id))?;
    let judged = Judged::of(&input, &repository, &store, &task)?;
    let Some(plan) = judged.fine(context, &input.name) else {
        return Ok(Outcome::Failed);
    };
    let made = record(&store, &task, after.as_ref(), plan, PlanOrigin::Import)?;
    tell(context, &task, after.as_ref(), made.as_ref());
    Ok(Outcome::Done)
}

/// An input held against a task's base.
pub(super) struct Judged {
    source: Source,
    plan: Option<Plan>,
    /// By place.
    pub(super) problems: Vec<Problem>,
}

impl Judged {
    pub(super) fn of(
        input: &Input,
        repository: &Repository<'_>,
        store: &Store<'_>,
        task: &TaskRow,
    ) -> Result<Self> {
        match input.plan() {
            Err(Unreadable { source, problems }) => Ok(Self { source, plan: None, problems }),
            Ok(ReadPlan { plan, document, .. }) => {
                let allowed: BTreeSet<_> =
                    store.read(|tx| tx.allowed_commands())?.into_iter().collect();
                let surroundings = Surroundings::read(repository, &task.base_commit_id)?;
                let mut problems = surroundings.judge(&plan, Some(task.issue), &allowed);
                problems.extend(document.warnings.iter().cloned());
                locate(&mut problems, &document);
                Ok(Self { source: document.source, plan: Some(plan), problems })
            }
        }
    }

    /// Prints the problems and returns the plan when it has no failures.
    pub(super) fn fine(&self, context: &Context, name: &str) -> Option<&Plan> {
        let report = Report {
            name,
            source: &self.source,
            plan: self.plan.as_ref(),
            problems: &self.problems,
        };
        let fails = report.n_failures() > 0;
        // As JSON the one result is what became of the plan, or its failures.
        if fails || !context.out.is_json() {
            report.print(context);
        }
        self.plan.as_ref().filter(|_| !fails)
    }
}

/// Adds the plan after the revision that it was made from; `None` when that says the same.
pub(super) fn record(
    store: &Store<'_>,
    task: &TaskRow,
    after: Option<&PlanRow>,
    plan: &Plan,
    origin: PlanOrigin,
) -> Result<Option<PlanRow>> {
    let number = after.map_or(0, |row| row.plan.revision);
    if let Some(row) = after
        && row.plan == (Plan { revision: number, ..plan.clone() })
    {
        return Ok(None);
    }
    let row = store
        .write(|tx| tx.add_plan(task, number, plan, origin, &Actor::Person))
        .map_err(|error: StoreError| error)?;
    Ok(Some(row))
}

/// Says which revision there is now.
pub(super) fn tell(
    context: &Context,
    task: &TaskRow,
    after: Option<&PlanRow>,
    made: Option<&PlanRow>,
) {
    let out = &context.out;
    let Some(row) = made.or(after) else { return };
    let revision = row.plan.revision;
    if out.is_json() {
        out.json(&json!({
            "issue": task.issue, "revision": revision, "digest": row.digest,
            "made": made.is_some(),
        }));
        return;
    }
    match (made, after) {
        (None, _) => out.line(format!("r{revision} says the same already; nothing changed")),
        (Some(_), None) => out.line(format!("Plan of issue #{} is r{revision} now.", task.issue)),
        (Some(_), Some(before)) => {
            let before = before.plan.revision;
            out.line(format!("Plan of issue #{} is r{revision} now.", task.issue));
            out.note(format!(
                "What changed: codeboost plan diff {} r{before} r{revision}",
                task.issue
            ));
        }
    }
    if made.is_some() {
        out.note(format!("Next: codeboost plan approve {}", task.issue));
    }
}
