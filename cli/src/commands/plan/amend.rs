//! `codeboost plan amend`: the next revision from what a paused task waits for.

use std::collections::BTreeSet;

use clap::Args;
use codeboost_schema::plan::Plan;

use super::import::{record, tell};
use super::report::Report;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::amend::{self, Proposed, Undeclared};
use crate::execute::item::{ItemError, Site};
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::git::read::Objects;
use crate::git::repository::Repository;
use crate::output::{plain, plain_line};
use crate::plan::amend::{declare, require, split};
use crate::plan::source::Source;
use crate::plan::write::to_yaml;
use crate::stage;
use crate::store::{PlanOrigin, StoreError, TaskRow};
use crate::task::TaskState;

/// Arguments of `plan amend`.
#[derive(Debug, Args)]
pub(super) struct AmendArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Give the files that an item changed beside its own to an item of their own: lines of the base
    /// that it removed there stay its own as well
    #[arg(long)]
    split: bool,
}

/// What the revision is made from.
enum Cause {
    Proposed(Proposed),
    Changes(Vec<Undeclared>),
}

pub(super) fn run(context: &Context, args: &AmendArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    if task.state != TaskState::NeedsAmendment {
        let (issue, state) = (task.issue, task.state);
        return Err(ItemError::NotPaused { issue, state }.into());
    }
    let row = store.read(|tx| tx.newest_plan(task.id))?.ok_or(StoreError::NoPlan(task.issue))?;
    let site = Site { repository: &repository, store: &store };
    let cause = match amend::proposed(site, &task, row.plan.revision)? {
        Some(proposed) => Cause::Proposed(proposed),
        None => {
            let objects = Objects::open(repository.git()).map_err(ItemError::from)?;
            Cause::Changes(amend::undeclared(site, &objects, &task, &row.plan)?)
        }
    };
    let declared = match &cause {
        Cause::Proposed(proposed) => {
            if args.split {
                return Err(Error::usage("--split is for files that were changed already"));
            }
            tell_proposal(context, proposed);
            vec![amend::of_proposal(proposed)]
        }
        Cause::Changes(changes) if changes.is_empty() => {
            let message = format!("r{} declares everything that was changed", row.plan.revision);
            let error = Error::not_allowed(message);
            return Err(match row.approval {
                None => error.hint(format!("approve it: codeboost plan approve {}", task.issue)),
                Some(_) => error.hint(format!("go on: codeboost execute {}", task.issue)),
            });
        }
        Cause::Changes(changes) => amend::of_changes(changes).map_err(|path| {
            Error::not_allowed(format!("{path} is not UTF-8, so that no plan can name it"))
                .hint(format!("undo it: codeboost item undo {}", task.issue))
        })?,
    };
    let made = if args.split {
        split(&row.plan, &declared).ok_or_else(|| Error::failed("no name is free for an item"))?
    } else {
        declare(&row.plan, &declared)
    };
    let allowed: BTreeSet<_> = store.read(|tx| tx.allowed_commands())?.into_iter().collect();
    let surroundings = Surroundings::read(&repository, &task.base_commit_id)?;
    let judge = |plan: &Plan| surroundings.judge(plan, Some(task.issue), &allowed);
    if let Err(problems) = require(&made, judge) {
        let source = Source::new(to_yaml(&made));
        Report { name: "the amended plan", source: &source, plan: None, problems: &problems }
            .print(context);
        context.out.note(format!("Next: write it yourself: codeboost plan edit {}", task.issue));
        return Ok(Outcome::Failed);
    }
    let made = record(&store, &task, Some(&row), &made, PlanOrigin::Amendment)?;
    tell(context, &task, Some(&row), made.as_ref());
    if args.split
        && let Cause::Changes(changes) = &cause
    {
        keep_patch(context, &repository, &task, changes)?;
    }
    Ok(Outcome::Done)
}

fn tell_proposal(context: &Context, proposed: &Proposed) {
    let out = &context.out;
    if out.is_json() {
        return;
    }
    out.line(format!("{} proposed this for {}:", proposed.by, proposed.item));
    for line in plain(proposed.proposal.reason.trim()).lines().take(20) {
        out.line(format!("  {}", plain_line(line)));
    }
}

/// Writes what was changed as a patch, for whoever carries out the new item.
fn keep_patch(
    context: &Context,
    repository: &Repository<'_>,
    task: &TaskRow,
    changes: &[Undeclared],
) -> Result<()> {
    let mut patch = Vec::new();
    for change in changes {
        let range = format!("{}..{}", change.start_commit_id, change.commit_id);
        let path = change.path.as_str().unwrap_or_default();
        let args = [
            "diff",
            "--binary",
            "--full-index",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            &range,
            "--",
            path,
        ];
        patch.extend(repository.git().with_env("GIT_LITERAL_PATHSPECS", "1").output(args)?);
    }
    let folder = repository.task_folder(task.issue)?;
    let path = folder.join("split.patch");
    stage::write(&path, &patch)?;
    let issue = task.issue;
    context.out.note(format!(
        "Then: codeboost item undo {issue}, and carry out the new item; what was changed is kept in {}",
        path.display()
    ));
    Ok(())
}
