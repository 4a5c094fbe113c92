//! Review threads of a task's plan: listed, opened, answered, resolved and reopened.

use clap::Args;
use codeboost_schema::decisions::Action;
use codeboost_schema::ids::{Digest, Uuid};
use serde_json::json;

use crate::apply;
use crate::apply::desk::lines_words;
use crate::commands::apply::{outcome, tell};
use crate::commands::decide::parse_lines;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::output::{Style, counted, plain, plain_line};
use crate::plan::text::PlanText;
use crate::plan::threads::Thread;
use crate::review::plan::PlanState;
use crate::review::uuid;
use crate::store::{PlanRow, Store, StoreError};

/// Arguments of `plan threads`.
#[derive(Debug, Args)]
pub(super) struct ThreadsArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// List resolved ones too
    #[arg(long)]
    all: bool,
}

/// Arguments of `plan comment`.
#[derive(Debug, Args)]
pub(super) struct CommentArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Lines of the plan's text, as `plan show --as text` numbers them
    #[arg(long, value_name = "FROM-TO", value_parser = parse_lines, required_unless_present = "quote")]
    lines: Option<(u64, u64)>,
    /// What it is about, as it stands in one line of the plan's text
    #[arg(long, value_name = "TEXT")]
    quote: Option<String>,
    /// The comment, up to 4,000 characters
    #[arg(long, value_name = "TEXT")]
    text: String,
}

/// Arguments of `plan reply`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct ReplyArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Name of the thread, or the first 8 or more characters of it
    thread: String,
    /// The reply, up to 4,000 characters
    #[arg(long, value_name = "TEXT")]
    text: String,
}

/// Arguments of `plan resolve` and `plan reopen`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct ThreadArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Name of the thread, or the first 8 or more characters of it
    thread: String,
}

/// A task's plan from the terminal.
struct Desk<'a> {
    repository: Repository<'a>,
    store: Store<'a>,
    plan: PlanState,
}

impl<'a> Desk<'a> {
    fn open(context: &'a Context, issue: Option<u64>) -> Result<Self> {
        let (repository, store) = open(context)?;
        let task = store.read(|tx| tx.select_any_task(issue))?;
        let plan = PlanState::read(&repository, &store, &task)?;
        warn_of_skipped(context, &plan);
        Ok(Self { repository, store, plan })
    }

    fn newest(&self) -> Result<&PlanRow> {
        Ok(self.plan.rows.last().ok_or(StoreError::NoPlan(self.plan.task.issue))?)
    }

    fn decide(&self, context: &Context, action: Action) -> Result {
        let task = &self.plan.task;
        let applied = apply::apply_plan_actions(&self.repository, &self.store, task, vec![action])?;
        tell(context, &applied);
        Ok(outcome(&applied.answers))
    }

    /// The thread of that name, which may be cut.
    fn thread(&self, name: &str) -> Result<&Thread> {
        let list = format!("codeboost plan threads {} --all lists them", self.plan.task.issue);
        if name.len() < 8 {
            return Err(Error::usage("a thread is named by 8 characters or more").hint(list));
        }
        let mut found = self
            .plan
            .threads
            .threads
            .iter()
            .filter(|thread| thread.thread.as_str().starts_with(name));
        match (found.next(), found.next()) {
            (Some(thread), None) => Ok(thread),
            (Some(_), Some(_)) => {
                Err(Error::usage(format!("several threads begin with {}", plain_line(name)))
                    .hint("give more characters"))
            }
            (None, _) => {
                Err(Error::failed(format!("there is no thread {}", plain_line(name))).hint(list))
            }
        }
    }
}

/// Says which records of threads could not be read.
pub(super) fn warn_of_skipped(context: &Context, plan: &PlanState) {
    for skipped in &plan.threads.skipped {
        context.out.warn(format!(
            "record {} of a thread is left out: {}",
            plain_line(&skipped.record),
            plain_line(&skipped.why)
        ));
    }
}

pub(super) fn list(context: &Context, args: &ThreadsArgs) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let threads = &desk.plan.threads;
    let shown: Vec<_> =
        threads.threads.iter().filter(|thread| args.all || !thread.resolved).collect();
    let out = &context.out;
    if out.is_json() {
        let rows: Vec<_> = shown
            .iter()
            .map(|thread| {
                let revision = desk.plan.texts.get(&thread.snapshot).and_then(|text| text.revision);
                json!({"revision": revision, "thread": thread})
            })
            .collect();
        let issue = desk.plan.task.issue;
        out.json(&json!({
            "issue": issue, "open": threads.n_open(), "threads": rows,
            "skipped": threads.skipped,
        }));
        return Ok(Outcome::Done);
    }
    for thread in &shown {
        print(context, &desk.plan, thread);
    }
    let n_all = threads.threads.len() as u64;
    out.line(format!("{} of {} open", threads.n_open(), counted(n_all, "thread")));
    Ok(Outcome::Done)
}

fn print(context: &Context, plan: &PlanState, thread: &Thread) {
    let out = &context.out;
    let state = if thread.resolved { "resolved" } else { "open" };
    out.line(format!(
        "{} {state}, {} of {}",
        out.paint(Style::Strong, thread.thread.as_str()),
        lines_words(thread.lines),
        plan.name_of(&thread.snapshot)
    ));
    if let Some(quote) = &thread.quote {
        out.line(format!("    “{}”", plain_line(quote)));
    }
    let say = |by: &str, at: &str, body: &str| {
        let day = at.get(..10).unwrap_or(at);
        out.line(format!("  {}, {day}:", plain_line(by)));
        for line in plain(body).lines() {
            out.line(format!("    {line}"));
        }
    };
    say(&thread.by, &thread.at, &thread.body);
    for reply in &thread.replies {
        say(&reply.by, &reply.at, &reply.body);
    }
    out.line("");
}

pub(super) fn comment(context: &Context, args: &CommentArgs) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let text = PlanText::of(&desk.newest()?.plan);
    let lines = match (args.lines, &args.quote) {
        (Some(lines), _) => lines,
        (None, Some(quote)) => line_of(&text, quote, desk.plan.task.issue)?,
        (None, None) => return Err(Error::usage("give --lines or --quote")),
    };
    let snapshot: Digest = text.snapshot();
    let thread: Uuid = uuid(&uuid::Uuid::new_v4().hyphenated());
    let action = Action::PlanComment {
        snapshot,
        lines,
        quote: args.quote.clone(),
        thread: thread.clone(),
        body: args.text.clone(),
    };
    let outcome = desk.decide(context, action)?;
    if outcome == Outcome::Done && !context.out.is_json() {
        context.out.line(format!("thread {thread}"));
    }
    Ok(outcome)
}

/// The line that holds a quote, when only one does.
fn line_of(text: &PlanText, quote: &str, issue: u64) -> Result<(u64, u64)> {
    let show = format!("codeboost plan show {issue} --as text numbers the lines");
    let mut found = (1..).zip(text.text.lines()).filter(|(_, line)| line.contains(quote));
    match (found.next(), found.next()) {
        (Some((line, _)), None) => Ok((line, line)),
        (Some((a, _)), Some((b, _))) => {
            Err(Error::usage(format!("the quote stands in lines {a} and {b}"))
                .hint("say which with --lines"))
        }
        (None, _) => Err(Error::usage("the quote stands in no line of the plan's text").hint(show)),
    }
}

pub(super) fn reply(context: &Context, args: &ReplyArgs) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let thread = desk.thread(&args.thread)?;
    let action = Action::PlanReply {
        snapshot: thread.snapshot.clone(),
        thread: thread.thread.clone(),
        body: args.text.clone(),
    };
    desk.decide(context, action)
}

pub(super) fn resolve(context: &Context, args: &ThreadArgs, resolved: bool) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let found = desk.thread(&args.thread)?;
    if found.resolved == resolved {
        let state = if resolved { "resolved" } else { "open" };
        context.out.line(format!("the thread is {state} already"));
        return Ok(Outcome::Done);
    }
    let (snapshot, thread) = (found.snapshot.clone(), found.thread.clone());
    let action = if resolved {
        Action::PlanResolve { snapshot, thread }
    } else {
        Action::PlanReopen { snapshot, thread }
    };
    desk.decide(context, action)
}
