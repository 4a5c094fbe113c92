//! `codeboost item propose` and `item undo`: what a worker says of a wrong plan, and the way back.

use codeboost_schema::report::Report;
use serde_json::json;

use crate::commands::plan::input::Input;
use crate::commands::{approved_plan, open};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::amend;
use crate::execute::item::{ItemError, Site};
use crate::exit_code::Outcome;
use crate::output::counted;
use crate::store::WorkspaceState;
use crate::task::Actor;

pub(super) fn propose(context: &Context, issue: u64, file: &str) -> Result {
    let input = Input::read_json(context, file)?;
    let value = serde_json::from_slice(&input.bytes)
        .map_err(|error| Error::failed(format!("{}: {error}", input.name)))?;
    let report =
        Report::read(&value).map_err(|words| Error::failed(format!("{}: {words}", input.name)))?;
    let Some(proposal) = report.proposal else {
        return Err(Error::failed(format!("{} proposes nothing", input.name))
            .hint("outcome is needs-amendment, and proposal says what the plan should say"));
    };
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(Some(issue)))?;
    let lease = match store.lease(&task, "item propose")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let row = store
        .read(|tx| tx.current_workspace(task.id))?
        .filter(|row| row.state == WorkspaceState::Open)
        .ok_or(ItemError::NotOpen(issue))?;
    let task = amend::propose(site, &lease, &row, &proposal, Actor::Person)?;
    if context.out.is_json() {
        let folder = row.folder.to_string_lossy();
        context.out.json(&json!({
            "issue": issue, "item": row.item, "task_state": task.state, "workspace": folder,
        }));
    } else {
        context.out.line(format!("#{issue} is {}: {}", task.state, task.reason));
        context.out.note(format!("Its workspace stays on disk: {}", row.folder.display()));
        context.out.note(format!("Next: codeboost plan amend {issue}"));
    }
    Ok(Outcome::Done)
}

pub(super) fn undo(context: &Context, issue: Option<u64>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "item undo")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let undone = amend::undo(site, &lease, &plan)?;
    let words: Vec<String> = undone.changes.iter().map(amend::Undeclared::words).collect();
    if context.out.is_json() {
        let commits: Vec<_> =
            undone.commits.iter().map(|(item, id)| json!({"item": item, "commit": id})).collect();
        context.out.json(&json!({
            "issue": task.issue, "task_state": undone.task.state, "commits": commits,
            "undone": words,
        }));
        return Ok(Outcome::Done);
    }
    for (item, id) in &undone.commits {
        let n = undone.changes.iter().filter(|change| change.item == *item).count();
        context.out.line(format!("{item}: {id:.12} undoes {}", counted(n as u64, "file")));
    }
    context.out.line(format!("#{} is {}: {}", task.issue, undone.task.state, undone.task.reason));
    Ok(Outcome::Done)
}
