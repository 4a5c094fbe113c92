//! `codeboost publish`: the pull request of a task; on the local forge a record.

use clap::Args;
use serde_json::json;

use crate::commands::fixed::Fixed;
use crate::commands::{open, open_forge};
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::forge::Forge as _;
use crate::store::{StoreError, short_ref};

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Publish it as a draft, which can't be merged; without this it is ready
    #[arg(long)]
    draft: bool,
}

pub(crate) fn run(context: &Context, args: &PublishArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let _lease = match store.lease(&task, "publish")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let task = store.read(|tx| tx.select_task(Some(task.issue)))?;
    let forge = open_forge(&repository, &repository.config()?, &task)?;
    let tips = forge.fetch(&format!("refs/codeboost/fetch/{}", task.id))?;
    let fixed = Fixed { repository: &repository, store: &store, task: &task, act: "published" };
    if let Some(stop) = fixed.stops(context, &forge, &tips.base, false)? {
        return Ok(stop);
    }
    let published = store
        .write(|tx| -> std::result::Result<_, StoreError> { tx.publish(&task, args.draft) })?;
    if context.out.is_json() {
        context.out.json(&json!({"published": published, "findings": []}));
        return Ok(Outcome::Done);
    }
    context.out.line(format!(
        "Task #{} published{}: {} ({:.12}) onto {} ({:.12})",
        task.issue,
        if args.draft { " as a draft" } else { "" },
        short_ref(&task.head_ref),
        published.head,
        short_ref(&task.base_ref),
        published.base,
    ));
    Ok(Outcome::Done)
}
