//! `codeboost plan render`: the page of a task's plan.

use std::path::PathBuf;

use clap::Args;
use codeboost_render::prepare_plan;
use codeboost_schema::form::{Form, FormThreads};
use codeboost_schema::ids::Digest;

use crate::bundle::plan::page_of_plan;
use crate::commands::open;
use crate::commands::render::{Page, name_of, tell};
use crate::context::{Context, time_text};
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::git::repository::Repository;
use crate::review::form::sign;
use crate::review::plan::PlanState;
use crate::review::uuid;
use crate::stage;
use crate::store::{Store, StoreError, TaskRow};

/// Arguments of `plan render`.
#[derive(Debug, Args)]
pub(in crate::commands) struct RenderArgs {
    /// Issue of the task; may be left out while one task is open
    pub(in crate::commands) issue: Option<u64>,
    /// Where to write the page; its own folder below .codeboost otherwise
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::commands) output: Option<PathBuf>,
}

pub(in crate::commands) fn run(context: &Context, args: &RenderArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(args.issue))?;
    let output = args.output.as_ref().map(|path| context.path(path));
    let page = make(context, &repository, &store, &task, output)?;
    tell(context, &page.path, &page.digest, page.wrote, page.read_only.as_deref());
    Ok(Outcome::Done)
}

/// Writes the page of a task's plan; `output` is another place than its own.
pub(in crate::commands) fn make(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    output: Option<PathBuf>,
) -> Result<Page> {
    let state = PlanState::read(repository, store, task)?;
    let row = state.rows.last().ok_or(StoreError::NoPlan(task.issue))?;
    let key = store.key()?;
    let read_only = match &key {
        _ if task.state.is_closed() => Some(format!("the task is {}", task.state)),
        None => Some("this repository has no signing key".to_owned()),
        Some(_) => None,
    };
    let rendered_at = context
        .source_date_epoch()
        .map(time_text)
        .or_else(|| state.newest_record.clone())
        .unwrap_or_else(|| task.added_at.clone());
    let surroundings = Surroundings::read(repository, &task.base_commit_id)?;
    let page = page_of_plan(
        &state,
        row,
        |plan| surroundings.judge(plan, Some(task.issue), &state.allowed),
        name_of(repository),
        read_only.clone(),
        rendered_at.clone(),
    );
    let snapshot = page.snapshot.clone();
    let prepared = prepare_plan(&page, true);
    let form = key.filter(|_| read_only.is_none()).map(|key| {
        let form = Form {
            schema_version: 1,
            data_digest: prepared.data_digest.clone(),
            repository: state.repository.clone(),
            task: Some(uuid(&task.id)),
            plan: Some(uuid(&task.plan_id)),
            issue: Some(task.issue),
            revision: Some(row.plan.revision),
            base: Some(task.base_commit_id.clone()),
            head: None,
            items: Some(std::collections::BTreeMap::new()),
            segments: None,
            threads: Some(FormThreads { snapshot }),
            rendered_at,
            public_key: key.public_text(),
        };
        sign(&form, &key)
    });
    let html = prepared.finish(form);
    let path = match output {
        Some(path) => path,
        None => repository.task_folder(task.issue)?.join("plan.html"),
    };
    let wrote = stage::write_if_changed(&path, html.as_bytes())?;
    Ok(Page { digest: Digest::of(html.as_bytes()), path, wrote, read_only })
}
