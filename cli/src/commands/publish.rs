//! `codeboost publish`: the pull request of a task; on the local forge a record.

use clap::Args;
use serde_json::json;

use crate::commands::fixed::Fixed;
use crate::commands::{approved_plan, open, open_forge, open_github};
use crate::config::ForgeKind;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::forge::gh::GhError;
use crate::forge::gh::hub::GitHub;
use crate::forge::{Forge, Tips};
use crate::git::repository::Repository;
use crate::github::pull::Facts;
use crate::github::rules::Rules;
use crate::merge::publish;
use crate::output::{counted, plain_line};
use crate::review::read;
use crate::store::{Store, StoreError, TaskRow, short_ref};
use crate::task::TaskState;

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
    let config = repository.config()?;
    // GitHub has more to publish on than the trait of all forges.
    let github = match config.forge {
        ForgeKind::Github => Some(open_github(&repository, &store, &config, &task)?),
        ForgeKind::Local => None,
    };
    let local;
    let forge: &dyn Forge = match &github {
        Some(forge) => forge,
        None => {
            local = open_forge(&repository, &store, &config, &task)?;
            &*local
        }
    };
    let tips = forge.fetch(&format!("refs/codeboost/fetch/{}", task.id))?;
    let fixed = Fixed { repository: &repository, store: &store, task: &task, act: "published" };
    if let Some(stop) = fixed.stops(context, forge, &tips.base, false)? {
        return Ok(stop);
    }
    if let Some(forge) = &github {
        return on_github(context, &repository, &store, forge, &task, &tips, args.draft);
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

fn on_github(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    forge: &GitHub<'_>,
    task: &TaskRow,
    tips: &Tips,
    draft: bool,
) -> Result {
    let plan = approved_plan(store, task)?;
    let needs_human = (task.state == TaskState::NeedsHuman).then_some(task.reason.as_str());
    let read = read::read(repository, store, task);
    let (items, blockers) = match &read {
        Ok(loaded) => {
            let review = &loaded.review;
            (
                Some(review.items.iter().map(|item| item.state).collect()),
                review.blockers.iter().map(|blocker| blocker.words.clone()).collect(),
            )
        }
        Err(error) => (None, vec![format!("The review can't be read: {error}")]),
    };
    let page = store.read(|tx| tx.stage(task.id, "render"))?;
    let facts = Facts {
        issue: task.issue,
        title: &task.title,
        plan: &plan,
        base: &task.base_commit_id,
        head: &task.head_commit_id,
        items,
        blockers,
        needs_human,
        bundle: page.map(|page| page.outputs.to_string()),
    };
    let draft = draft || needs_human.is_some();
    match publish::publish(store, forge, task, tips, &facts, draft)? {
        Ok(published) => {
            warn_of_reviews(context, forge.rules().map(|(rules, _)| rules));
            for warning in &published.warnings {
                context.out.warn(plain_line(warning));
            }
            if context.out.is_json() {
                context.out.json(&json!({
                    "published": {
                        "number": published.number, "url": published.url, "draft": published.draft,
                        "base": task.base_commit_id, "head": task.head_commit_id,
                        "warnings": published.warnings,
                    },
                    "findings": [],
                }));
                return Ok(Outcome::Done);
            }
            context.out.line(format!(
                "Task #{} is pull request #{}{}: {}",
                task.issue,
                published.number,
                if published.draft { ", a draft" } else { "" },
                plain_line(&published.url),
            ));
            Ok(Outcome::Done)
        }
        Err(refused) => {
            Err(Error::not_allowed(format!("not published: {}", refused.why)).hint(refused.hint))
        }
    }
}

/// Tells of approving reviews that a base demands on GitHub: nothing here can give them.
pub(crate) fn warn_of_reviews(context: &Context, rules: std::result::Result<Rules, GhError>) {
    match rules {
        Ok(rules) if rules.reviews > 0 => context.out.warn(format!(
            "the base demands {} on GitHub, which codeboost can't give",
            counted(rules.reviews, "approving review")
        )),
        Ok(_) => {}
        Err(error) => context.out.warn(format!(
            "what the base demands on GitHub can't be read: {}",
            plain_line(&error.to_string())
        )),
    }
}
