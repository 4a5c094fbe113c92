//! `codeboost ask`: questions about items, and their answers.

use clap::Args;
use codeboost_schema::ids::ItemId;
use codeboost_schema::registry::schema_for_tools;
use codeboost_schema::reply::{self, Reply};
use serde_json::json;

use crate::agent::prompt;
use crate::agent::vendor::Phase;
use crate::commands::contained::{AgentArgs, Hired, tell_no_answer};
use crate::commands::decide::{self, NoteArgs, parse_item, parse_lines};
use crate::commands::{approved_plan, open};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::consult::{self, Question};
use crate::execute::item::{Site, done_items, head};
use crate::exit_code::Outcome;
use crate::output::{counted, plain};
use crate::store::{Lease, NoteKind, NoteRow, NoteState, Store, TaskRow};

/// Arguments of `ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The task's issue, which may be left out when one task is open, and the item; without an item
    /// the questions that are open are answered
    #[arg(value_name = "ISSUE|ITEM", num_args = 0..=2, value_parser = parse_about)]
    about: Vec<About>,
    /// The text; - reads it from standard input
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The change it is about, as `codeboost review` names it
    #[arg(long, value_name = "CHANGE", requires = "text")]
    change: Option<String>,
    /// First and last line within the change, from 1
    #[arg(long, value_name = "FROM-TO", requires = "change", value_parser = parse_lines)]
    lines: Option<(u64, u64)>,
    #[command(flatten)]
    agent: AgentArgs,
}

#[derive(Debug, Clone)]
enum About {
    Issue(u64),
    Item(ItemId),
}

fn parse_about(text: &str) -> std::result::Result<About, String> {
    match text.parse() {
        Ok(number) => Ok(About::Issue(number)),
        Err(_) => parse_item(text).map(About::Item),
    }
}

pub(crate) fn run(context: &Context, args: &AskArgs) -> Result {
    let (issue, item) = match args.about.as_slice() {
        [] => (None, None),
        [About::Issue(issue)] => (Some(*issue), None),
        [About::Item(item)] => (None, Some(item)),
        [About::Issue(issue), About::Item(item)] => (Some(*issue), Some(item)),
        _ => return Err(Error::usage("expected an issue, then an item")),
    };
    if item.is_some() != args.text.is_some() {
        return Err(Error::usage("a question has an item and a --text"));
    }
    if let (Some(item), Some(text)) = (item, &args.text) {
        let note = NoteArgs {
            issue,
            item: item.clone(),
            text: text.clone(),
            change: args.change.clone(),
            lines: args.lines,
        };
        let outcome = decide::ask(context, &note)?;
        if args.agent.agent.is_none() || outcome != Outcome::Done {
            if outcome == Outcome::Done {
                let issue = issue.map(|issue| format!(" {issue}")).unwrap_or_default();
                context.out.note(format!("To get an answer: codeboost ask{issue} --agent claude"));
            }
            return Ok(outcome);
        }
    }
    answer_open(context, issue, &args.agent)
}

/// Answers the questions that are open, oldest first.
fn answer_open(context: &Context, issue: Option<u64>, agent: &AgentArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    let issue = task.issue;
    let hired = agent.hire(context, &repository, &format!("codeboost ask {issue}"))?;
    let plan = approved_plan(&store, &task)?;
    let open: Vec<NoteRow> = store
        .read(|tx| tx.notes(task.id))?
        .into_iter()
        .filter(|note| note.kind == NoteKind::Question && note.state == NoteState::Open)
        .collect();
    let lease = match store.lease(&task, "ask")? {
        Ok(lease) => lease,
        Err(held) => {
            context.out.note("The question is recorded, and is answered by the next ask.");
            return Ok(held.tell(context));
        }
    };
    let site = Site { repository: &repository, store: &store };
    let mut answered = Vec::new();
    for note in &open {
        let Some(item) = plan.item(&note.item) else {
            context.out.warn(format!("the plan has no item {} any more", note.item));
            continue;
        };
        let one = One { context, site, lease: &lease, task: &task, hired: &hired };
        match one.answer(note, item, plan.revision)? {
            Ok(reply) => answered.push((note, reply)),
            Err(failure) => {
                let again = format!("codeboost ask {issue} --agent {}", hired.vendor.name());
                tell_no_answer(context, hired.vendor, &failure, &again);
                return Ok(Outcome::Failed);
            }
        }
    }
    if context.out.is_json() {
        let answers: Vec<_> = answered
            .iter()
            .map(|(note, reply)| {
                json!({
                    "question": note.made.decision, "item": note.item, "text": note.text,
                    "answer": reply.reply,
                })
            })
            .collect();
        context.out.json(&json!({"issue": issue, "answers": answers}));
        return Ok(Outcome::Done);
    }
    for (note, reply) in &answered {
        context.out.line(format!("{}: {}", note.item, plain(note.text.trim())));
        for line in plain(reply.reply.trim()).lines() {
            context.out.line(format!("  {line}"));
        }
    }
    context.out.note(match answered.len() as u64 {
        0 => "No question is open.".to_owned(),
        n => format!("{} in the next render: codeboost run {issue}", counted(n, "answer")),
    });
    Ok(Outcome::Done)
}

#[derive(Clone, Copy)]
struct One<'a> {
    context: &'a Context,
    site: Site<'a>,
    lease: &'a Lease,
    task: &'a TaskRow,
    hired: &'a Hired,
}

impl One<'_> {
    fn answer(
        &self,
        note: &NoteRow,
        item: &codeboost_schema::plan::Item,
        revision: u64,
    ) -> Result<std::result::Result<Reply, crate::agent::invoke::Failure>> {
        let Self { context, site, lease, task, hired } = *self;
        let store: &Store<'_> = site.store;
        let issue = store.read(|tx| tx.issue(task.issue))?;
        let head_commit_id = head(site, task)?;
        let commits = done_items(site, task)?.remove(&item.id).unwrap_or_default();
        let lines = note
            .context
            .as_ref()
            .map(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
        let prompt = prompt::question(&prompt::Question {
            issue: prompt::Issue {
                number: task.issue,
                title: &task.title,
                body: issue.as_ref().and_then(|issue| issue.body.as_deref()),
            },
            item,
            base: task.base_commit_id.as_str(),
            text: &note.text,
            lines: lines.as_deref(),
            commits: &commits,
        });
        let comments = [note.made.decision.clone()];
        let question = Question {
            about: consult::About {
                phase: Phase::Questions,
                item: Some(&item.id),
                revision: Some(revision),
                comments: &comments,
            },
            commit_id: &head_commit_id,
            prompt: &prompt,
            schema: &schema_for_tools(reply::SCHEMA),
            commands: &[],
        };
        let answer = hired.ask(context, site, lease, &question, Reply::read)?;
        if let Ok(reply) = &answer {
            let by = crate::task::Actor::Agent(hired.vendor.name().to_owned());
            let is_open =
                store.write(|tx| tx.answer_note(task.id, &note.made.decision, &reply.reply, by))?;
            if !is_open {
                return Err(Error::failed("the question was withdrawn or answered meanwhile"));
            }
        }
        Ok(answer)
    }
}
