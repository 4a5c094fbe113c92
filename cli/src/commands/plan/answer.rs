//! `codeboost plan answer`: answers a question of a task's plan.

use clap::Args;
use serde_json::json;

use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::output::{counted, plain_line};
use crate::store::StoreError;
use crate::task::Actor;

/// Most characters of an answer.
const MAX_CHARS: usize = 4000;

/// Arguments of `plan answer`.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// Issue of the task
    issue: u64,
    /// Place of the question in the plan, from 1
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    question: u64,
    /// The answer, up to 4,000 characters
    text: String,
}

pub(super) fn run(context: &Context, args: &AnswerArgs) -> Result {
    let n_chars = args.text.chars().count();
    if args.text.trim().is_empty() || n_chars > MAX_CHARS {
        return Err(Error::usage(format!("an answer has 1 to {MAX_CHARS} characters"))
            .hint(format!("this one has {n_chars}")));
    }
    let (_, store) = open(context)?;
    let (revision, question) = store.write(|tx| -> Result<_> {
        let task = tx.select_task(Some(args.issue))?;
        let row = tx.newest_plan(task.id)?.ok_or(StoreError::NoPlan(task.issue))?;
        let at = usize::try_from(args.question - 1).unwrap_or(usize::MAX);
        let question = row.plan.questions.get(at).ok_or_else(|| {
            let n = counted(row.plan.questions.len() as u64, "question");
            Error::failed(format!("r{} has {n}", row.plan.revision))
                .hint(format!("codeboost plan show {} lists them", task.issue))
        })?;
        tx.answer_question(task.id, row.plan.revision, question, &args.text, Actor::Person)?;
        Ok((row.plan.revision, question.clone()))
    })?;
    if context.out.is_json() {
        context.out.json(&json!({
            "issue": args.issue, "revision": revision, "question": question, "answer": args.text,
        }));
    } else {
        context.out.line(format!("Answered: {}", plain_line(&question)));
    }
    Ok(Outcome::Done)
}
