//! `codeboost plan suggest`: an assistant's answer becomes cards, or is refused as a whole.

use std::collections::BTreeSet;

use clap::Args;
use codeboost_schema::plan::Plan;
use codeboost_schema::plan_edit::PlanEdit;
use codeboost_schema::registry::{PLAN_EDIT_SCHEMA, Version, schema_for_tools};
use serde_json::{Value, json};

use super::input::Input;
use super::report::Report;
use super::show::{print_suggestions, suggestion_json};
use crate::agent::prompt;
use crate::agent::vendor::Phase;
use crate::commands::contained::{AgentArgs, Hired, tell_no_answer};
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::consult::{About, Question};
use crate::execute::item::Site;
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::git::repository::Repository;
use crate::output::{counted, plain};
use crate::plan::judge::version_of;
use crate::plan::problem::{Problem, locate};
use crate::plan::read::{Unreadable, read_answer};
use crate::plan::source::Document;
use crate::plan::v1::parse::Syntax;
use crate::plan::v1::suggest::check_answer;
use crate::store::{RequestState, Store, StoreError, TaskRow};
use crate::task::Actor;

/// Arguments of `plan suggest`.
#[derive(Debug, Args)]
pub(super) struct SuggestArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// The assistant's answer, as plan-edit.schema.json has it; - reads standard input
    #[arg(long, value_name = "FILE", required_unless_present = "text", conflicts_with = "text")]
    reply: Option<String>,
    /// What the agent is asked for
    #[arg(long, value_name = "TEXT", requires = "agent")]
    text: Option<String>,
    #[command(flatten)]
    agent: AgentArgs,
}

pub(super) fn run(context: &Context, args: &SuggestArgs) -> Result {
    let (repository, store) = open(context)?;
    let hired = match &args.text {
        Some(_) => Some(args.agent.hire(context, &repository, "codeboost plan suggest")?),
        None => None,
    };
    let from_file = args.reply.as_ref().map(|file| Input::read_json(context, file)).transpose()?;
    // Bound before the answer is looked at: it never chooses what it belongs to.
    let (task, row, request, allowed) = store.write(|tx| -> Result<_> {
        let task = tx.select_task(args.issue)?;
        let row = tx.newest_plan(task.id)?.ok_or(StoreError::NoPlan(task.issue))?;
        let allowed: BTreeSet<_> = tx.allowed_commands()?.into_iter().collect();
        let request = tx.new_suggestion_request(&task)?;
        Ok((task, row, request, allowed))
    })?;
    let input = match (from_file, &hired, &args.text) {
        (Some(input), ..) => input,
        (None, Some(hired), Some(text)) => {
            match ask(context, (&repository, &store), &task, &row.plan, hired, text)? {
                Asked::Answered(input) => input,
                Asked::Ended(reason, outcome) => {
                    store.write(|tx| {
                        tx.end_suggestion_request(&request.id, RequestState::Failed, &reason)
                    })?;
                    return Ok(outcome);
                }
            }
        }
        (None, ..) => return Err(Error::usage("neither an answer nor a question is named")),
    };
    let found = version_of(&row.plan)
        .map_err(|problem| Unreadable { source: input.source(), problems: vec![*problem] })
        .and_then(|version| {
            let (answer, document) = read_answer(&input.bytes, version)?;
            let surroundings = Surroundings::read(&repository, &task.base_commit_id);
            Ok((version, answer, document, surroundings))
        });
    let (answer, document, problems) = match found {
        Err(unreadable) => {
            end(&store, &request.id, &unreadable.problems)?;
            report(context, &input, &unreadable);
            return Ok(Outcome::Failed);
        }
        Ok((version, answer, document, surroundings)) => {
            let surroundings = surroundings?;
            let judge = |plan: &Plan| surroundings.judge(plan, Some(task.issue), &allowed);
            let problems = judge_answer(&answer, &row.plan, version, &document, judge);
            (answer, document, problems)
        }
    };
    if !problems.is_empty() {
        end(&store, &request.id, &problems)?;
        report(context, &input, &Unreadable { source: document.source, problems });
        return Ok(Outcome::Failed);
    }
    let actor =
        Actor::Agent(hired.as_ref().map_or("assistant", |hired| hired.vendor.name()).to_owned());
    let rows = store
        .write(|tx| tx.put_suggestions(&request.id, &answer.reply, &answer.edits, actor))
        .map_err(|error: StoreError| error)?;
    let Some(rows) = rows else {
        let expected = row.plan.revision;
        let found = store.read(|tx| tx.newest_plan(task.id))?.map_or(0, |row| row.plan.revision);
        return Err(StoreError::PlanMoved { issue: task.issue, expected, found }.into());
    };
    if context.out.is_json() {
        let cards: Vec<_> = rows.iter().map(suggestion_json).collect();
        context.out.json(&json!({
            "issue": task.issue, "revision": row.plan.revision, "request": request.id,
            "reply": answer.reply, "suggestions": cards,
        }));
        return Ok(Outcome::Done);
    }
    context.out.line(plain(&answer.reply));
    context.out.line(format!(
        "{} for r{}; applying one makes the others stale",
        counted(rows.len() as u64, "suggestion"),
        row.plan.revision
    ));
    print_suggestions(context, &rows);
    Ok(Outcome::Done)
}

enum Asked {
    Answered(Input),
    /// Why there is nothing to look at; that was told.
    Ended(String, Outcome),
}

/// Asks an agent, which reads the project at the task's base.
fn ask(
    context: &Context,
    (repository, store): (&Repository<'_>, &Store<'_>),
    task: &TaskRow,
    plan: &Plan,
    hired: &Hired,
    text: &str,
) -> Result<Asked> {
    let lease = match store.lease(task, "plan suggest")? {
        Ok(lease) => lease,
        Err(held) => return Ok(Asked::Ended("the task was held".into(), held.tell(context))),
    };
    let issue = store.read(|tx| tx.issue(task.issue))?;
    let prompt = prompt::suggest(&prompt::Suggest {
        issue: prompt::Issue {
            number: task.issue,
            title: &task.title,
            body: issue.as_ref().and_then(|issue| issue.body.as_deref()),
        },
        plan,
        request: text,
    });
    let question = Question {
        about: About {
            phase: Phase::Planning,
            item: None,
            revision: Some(plan.revision),
            comments: &[],
        },
        commit_id: &task.base_commit_id,
        prompt: &prompt,
        schema: &schema_for_tools(PLAN_EDIT_SCHEMA),
        commands: &[],
    };
    let site = Site { repository, store };
    let answer = hired.ask(context, site, &lease, &question, |value: &Value| Ok(value.clone()))?;
    let name = hired.vendor.name();
    Ok(match answer {
        Ok(value) => Asked::Answered(Input {
            name: format!("the answer of {name}"),
            bytes: serde_json::to_vec_pretty(&value).unwrap_or_default(),
            syntax: Syntax::Json,
        }),
        Err(failure) => {
            let again = format!("codeboost plan suggest {} --agent {name}", task.issue);
            tell_no_answer(context, hired.vendor, &failure, &again);
            Asked::Ended(failure.to_string(), Outcome::Failed)
        }
    })
}

fn judge_answer(
    answer: &PlanEdit,
    plan: &Plan,
    version: &Version,
    document: &Document,
    judge: impl Fn(&Plan) -> Vec<Problem>,
) -> Vec<Problem> {
    let mut problems = check_answer(answer, plan, version, judge);
    locate(&mut problems, document);
    problems
}

/// Ends the request without an answer, with the first of the problems as its reason.
fn end(
    store: &crate::store::Store<'_>,
    request: &codeboost_schema::ids::Uuid,
    problems: &[Problem],
) -> Result<()> {
    let reason = problems.first().map_or("refused", |problem| problem.message.as_str());
    store.write(|tx| -> Result<()> {
        tx.end_suggestion_request(request, RequestState::Failed, reason)?;
        Ok(())
    })
}

fn report(context: &Context, input: &Input, unreadable: &Unreadable) {
    let report = Report {
        name: &input.name,
        source: &unreadable.source,
        plan: None,
        problems: &unreadable.problems,
    };
    report.print(context);
}
