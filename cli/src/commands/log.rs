//! `codeboost log`: what happened.

use clap::Args;
use serde_json::json;

use crate::commands::open;
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::output::{Style, plain_line};

/// Arguments of `log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Only what happened to the newest task of this issue
    issue: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &LogArgs) -> Result {
    let (_, store) = open(context)?;
    let events = store.read(|tx| {
        let task = args.issue.map(|issue| tx.newest_task(issue)).transpose()?;
        tx.events(task.map(|task| task.id))
    })?;
    if context.out.is_json() {
        context.out.json(&json!({"events": events}));
        return Ok(Outcome::Done);
    }
    for event in &events {
        let time = context.out.paint(Style::Muted, &event.at);
        let issue = event.issue.map_or(String::new(), |issue| format!("#{issue}"));
        let words = plain_line(&event.words);
        let actor = context.out.paint(Style::Muted, &format!("({})", plain_line(&event.actor)));
        context.out.line(format!("{time}  {issue:<6}  {words} {actor}"));
    }
    Ok(Outcome::Done)
}
