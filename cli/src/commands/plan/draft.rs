//! `codeboost plan draft`: an agent writes the next revision of a task's plan.

use clap::Args;
use codeboost_schema::ids::Uuid;
use codeboost_schema::registry::{PLAN_SCHEMA, schema_for_tools};
use serde_json::{Value, json};

use super::import::{Judged, tell};
use super::input::Input;
use crate::agent::prompt;
use crate::agent::vendor::Phase;
use crate::commands::contained::{AgentArgs, tell_no_answer};
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::consult::{About, Question};
use crate::execute::item::Site;
use crate::exit_code::Outcome;
use crate::plan::threads::Thread;
use crate::plan::v1::parse::Syntax;
use crate::plan::v1::tokenize::spell;
use crate::review::plan::PlanState;
use crate::store::{PlanOrigin, StoreError};
use crate::task::Actor;

/// Most open threads that an agent is told of.
const MAX_THREADS: usize = 30;
/// Most characters of each text of a thread.
const MAX_TEXT: usize = 4000;

/// Arguments of `plan draft`.
#[derive(Debug, Args)]
pub(super) struct DraftArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Write the next revision of a plan that is there, with its answers and open threads
    #[arg(long)]
    revise: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

pub(super) fn run(context: &Context, args: &DraftArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let number = task.issue;
    let state = PlanState::read(&repository, &store, &task)?;
    let previous = state.rows.last();
    if let Some(row) = previous.filter(|_| !args.revise) {
        let message = format!("the plan of issue #{number} is at r{} already", row.plan.revision);
        return Err(Error::not_allowed(message)
            .hint(format!("write the next revision: codeboost plan draft {number} --revise")));
    }
    if previous.is_none() && args.revise {
        return Err(StoreError::NoPlan(number).into());
    }
    let again =
        format!("codeboost plan draft {number}{}", if args.revise { " --revise" } else { "" });
    let hired = args.agent.hire(context, &repository, &again)?;
    let lease = match store.lease(&task, "plan draft")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let after = previous.map_or(0, |row| row.plan.revision);
    let issue = store.read(|tx| tx.issue(number))?;
    let allowed: Vec<String> = state.allowed.iter().filter_map(|argv| spell(argv)).collect();
    let answers: Vec<(String, String)> = state
        .answers
        .iter()
        .map(|answer| (answer.question.clone(), answer.answer.clone()))
        .collect();
    let open: Vec<&Thread> =
        state.threads.threads.iter().filter(|thread| !thread.resolved).collect();
    let told = &open[..open.len().min(MAX_THREADS)];
    let comments: Vec<Uuid> = told.iter().map(|thread| thread.thread.clone()).collect();
    let prompt = prompt::draft(&prompt::Draft {
        issue: prompt::Issue {
            number,
            title: &task.title,
            body: issue.as_ref().and_then(|issue| issue.body.as_deref()),
        },
        revision: after + 1,
        previous: previous.map(|row| &row.plan),
        answers: &answers,
        threads: &threads_data(&state, told, open.len() - told.len()),
        allowed: &allowed,
    });
    let site = Site { repository: &repository, store: &store };
    let question = Question {
        about: About {
            phase: Phase::Planning,
            item: None,
            revision: previous.map(|row| row.plan.revision),
            comments: &comments,
        },
        commit_id: &task.base_commit_id,
        prompt: &prompt,
        schema: &schema_for_tools(PLAN_SCHEMA),
        commands: &[],
    };
    let answer = hired.ask(context, site, &lease, &question, |value| Ok(value.clone()))?;
    let name = hired.vendor.name();
    let value: Value = match answer {
        Ok(value) => value,
        Err(failure) => {
            tell_no_answer(context, hired.vendor, &failure, &format!("{again} --agent {name}"));
            return Ok(Outcome::Failed);
        }
    };
    // It is held to the same rules as a plan from anybody else.
    let input = Input {
        name: format!("the draft of {name}"),
        bytes: serde_json::to_vec_pretty(&value).unwrap_or_default(),
        syntax: Syntax::Json,
    };
    let judged = Judged::of(&input, &repository, &store, &task)?;
    let Some(plan) = judged.fine(context, &input.name) else {
        context.out.note("Nothing was changed.");
        return Ok(Outcome::Failed);
    };
    let actor = Actor::Agent(name.to_owned());
    let made = store
        .write(|tx| tx.add_plan(&task, after, plan, PlanOrigin::Draft, &actor))
        .map_err(|error: StoreError| error)?;
    tell(context, &task, previous, Some(&made));
    Ok(Outcome::Done)
}

/// The open threads as data: with the lines that they are about, as they stood, and bounded.
fn threads_data(state: &PlanState, told: &[&Thread], n_left_out: usize) -> Value {
    let cut = |text: &str| -> Value {
        let n = text.chars().count();
        if n <= MAX_TEXT {
            return json!(text);
        }
        let start: String = text.chars().take(MAX_TEXT).collect();
        json!(format!("{start} [{} characters left out]", n - MAX_TEXT))
    };
    let threads: Vec<Value> = told
        .iter()
        .map(|thread| {
            let lines = state.texts.get(&thread.snapshot).map(|text| {
                let from = usize::try_from(thread.lines.0.saturating_sub(1)).unwrap_or(usize::MAX);
                let n = usize::try_from(thread.lines.1 - thread.lines.0 + 1).unwrap_or(1);
                let lines: Vec<&str> = text.text.lines().skip(from).take(n).collect();
                cut(&lines.join("\n"))
            });
            let replies: Vec<Value> = thread.replies.iter().map(|reply| cut(&reply.body)).collect();
            json!({
                "thread": thread.thread,
                "revision": state.name_of(&thread.snapshot),
                "lines": lines,
                "quote": thread.quote.as_deref().map(cut),
                "comment": cut(&thread.body),
                "replies": replies,
            })
        })
        .collect();
    json!({"open": threads, "open_left_out": n_left_out})
}
