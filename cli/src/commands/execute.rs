//! `codeboost execute`: carries out an approved plan, item by item.

use std::path::PathBuf;

use clap::Args;

use crate::agent::replay as agent;
use crate::agent::vendor::Vendor;
use crate::commands::contained::{self, Work};
use crate::commands::fixed::Fixed;
use crate::commands::item::{ScopeArgs, ended_json, ended_outcome, tell_ended, tell_next};
use crate::commands::{approved_plan, open};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::item::Site;
use crate::execute::replay::{self, Progress, Replayed};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::store::{Store, StoreError, TaskRow};
use crate::task::{Actor, TaskState};

/// Arguments of `execute`.
///
/// Example: codeboost execute 412 --agent replay --patches patches/
#[derive(Debug, Args)]
pub struct ExecuteArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Who carries it out: `claude` or `codex` in a container, or `replay`, which applies recorded
    /// patches
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// For claude and codex: first build the image that they run in, unless it is there
    #[arg(long, conflicts_with = "patches")]
    build_image: bool,
    /// For replay: the folder with the patches, named 01-P1.patch, 02-P2.patch and so on
    #[arg(long, value_name = "FOLDER")]
    patches: Option<PathBuf>,
    /// Go on although something else may have fixed the issue: you have looked at it
    #[arg(long)]
    not_fixed: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(context: &Context, args: &ExecuteArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let issue = task.issue;
    let by_hand = format!("to use any agent or tool yourself: codeboost item begin {issue} P1");
    let replay_it = format!(
        "to apply recorded patches: codeboost execute {issue} --agent replay --patches FOLDER"
    );
    let contain_it = format!(
        "to let one work in a container: codeboost execute {issue} --agent claude, or codex"
    );
    match args.agent.as_deref() {
        None => {
            return Err(Error::usage("no agent is named, and none is the default")
                .hint(contain_it)
                .hint(replay_it)
                .hint(by_hand));
        }
        Some(agent::NAME) => {}
        Some(name) => {
            let Some(vendor) = Vendor::parse(name) else {
                let message = format!(
                    "codeboost can't start the agent {name:?}; it knows claude, codex and replay"
                );
                return Err(Error::usage(message).hint(replay_it).hint(by_hand));
            };
            if args.patches.is_some() {
                return Err(Error::usage("only replay takes patches").hint(replay_it));
            }
            if let Some(stop) = not_begun(context, &repository, &store, &task, args.not_fixed)? {
                return Ok(stop);
            }
            let task = store.read(|tx| tx.select_task(Some(issue)))?;
            let work = Work { repository: &repository, store: &store, task: &task, vendor };
            return contained::run(context, work, args.build_image, args.scope.out_of_scope());
        }
    }
    let Some(patches) = &args.patches else {
        return Err(Error::usage("replay needs the patches that it applies").hint(replay_it));
    };
    let patches = agent::read_patches(&context.path(patches))?;
    if let Some(stop) = not_begun(context, &repository, &store, &task, args.not_fixed)? {
        return Ok(stop);
    }
    let task = store.read(|tx| tx.select_task(Some(issue)))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "execute")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let out_of_scope = args.scope.out_of_scope();
    let mut last = None;
    let mut ends = Vec::new();
    let replayed =
        replay::run(site, &lease, &plan, &patches, out_of_scope, |progress| match progress {
            Progress::Applied(patch, begun) => context.out.detail(format!(
                "applied {} in {}",
                patch.path.display(),
                begun.workspace.folder.display()
            )),
            Progress::Before(patch) => {
                context.out.note(format!("{} was replayed before", patch.path.display()));
            }
            Progress::Ended(ended) => {
                if context.out.is_json() {
                    ends.push(ended_json(&ended));
                } else {
                    tell_ended(context, &ended);
                }
                last = Some(*ended);
            }
        })?;
    if context.out.is_json() {
        context.out.json(&serde_json::json!({"issue": issue, "items": ends}));
    } else if let Some(ended) = &last {
        tell_next(context, ended);
    } else {
        context.out.line("Nothing to do: every item has its result.");
    }
    Ok(match (replayed, last) {
        (Replayed::Paused | Replayed::Refused, Some(ended)) => ended_outcome(&ended),
        (Replayed::Whole | Replayed::Paused | Replayed::Refused, _) => Outcome::Done,
    })
}

/// Why nothing begins: something else may have fixed the issue.
fn not_begun(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    goes_on: bool,
) -> Result<Option<Outcome>> {
    let _lease = match store.lease(task, "execute")? {
        Ok(lease) => lease,
        Err(held) => return Ok(Some(held.tell(context))),
    };
    let fixed = Fixed { repository, store, task, act: "carried out" };
    let stop = fixed.stops_now(context, goes_on)?;
    match stop {
        Some(Outcome::Waits) => context.out.note(format!(
            "Next, when you have looked: codeboost execute {} --not-fixed",
            task.issue
        )),
        None if task.state == TaskState::PossiblyFixed => {
            let reason = "a person looked at what may have fixed it";
            store.write(|tx| -> std::result::Result<_, StoreError> {
                tx.set_task_state(task, TaskState::Queued, reason, Actor::Person)
            })?;
        }
        _ => {}
    }
    Ok(stop)
}
