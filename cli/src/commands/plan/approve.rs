//! `codeboost plan approve`: fixes the newest revision, and allows its commands one by one.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;

use super::check::parse_commands;
use super::confirm::{ask, can_ask};
use super::parse_revision;
use super::report::Report;
use super::threads::warn_of_skipped;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::output::{counted, plain_line};
use crate::plan::judge::commands;
use crate::plan::problem::{Code, Problem, locate};
use crate::plan::v1::parse::{Syntax, parse};
use crate::plan::v1::tokenize::spell;
use crate::plan::write::to_yaml;
use crate::review::plan::PlanState;
use crate::store::{NewPlanApproval, PlanRow, StoreError};
use crate::task::Actor;

/// Arguments of `plan approve`.
#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Revision that has to be the newest, such as r3 [default: the newest]
    #[arg(value_parser = parse_revision)]
    revision: Option<u64>,
    /// Allow this command, spelled as in a plan; may be repeated
    #[arg(long = "allow-command", value_name = "COMMAND")]
    allow: Vec<String>,
    /// Allow no other command than those of --allow-command, without asking
    #[arg(long, conflicts_with = "yes")]
    allow_no_other: bool,
    /// Approve although questions are open
    #[arg(long)]
    confirm_open_questions: bool,
    /// Approve although review threads are open
    #[arg(long)]
    confirm_open_threads: bool,
    /// Allow every new command, and approve although questions or threads are open
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(context: &Context, args: &ApproveArgs) -> Result {
    let given = parse_commands(&args.allow)?;
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let _lease = match store.lease(&task, "plan approve")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let threads = PlanState::read(&repository, &store, &task)?;
    warn_of_skipped(context, &threads);
    let (row, allowed, open_questions) = store.read(|tx| -> Result<_> {
        let row = tx.newest_plan(task.id)?.ok_or(StoreError::NoPlan(task.issue))?;
        let found = row.plan.revision;
        if let Some(expected) = args.revision.filter(|revision| *revision != found) {
            return Err(StoreError::PlanMoved { issue: task.issue, expected, found }.into());
        }
        let open: Vec<_> = tx.open_questions(task.id, &row.plan)?;
        let open: Vec<_> = open.into_iter().map(|(n, text)| (n, text.to_owned())).collect();
        let allowed: BTreeSet<_> = tx.allowed_commands()?.into_iter().collect();
        Ok((row, allowed, open))
    })?;
    if row.approval.is_some() {
        context.out.line(format!("r{} is approved already", row.plan.revision));
        return Ok(Outcome::Done);
    }
    let mut problems = Surroundings::read(&repository, &task.base_commit_id)?.judge(
        &row.plan,
        Some(task.issue),
        &allowed,
    );
    // Commands and questions are asked about below.
    problems.retain(|p| !matches!(p.code, Code::CommandNotAllowed | Code::OpenQuestions));
    if !context.out.is_json() || problems.iter().any(Problem::is_failure) {
        print_problems(context, &row, &mut problems);
    }
    if problems.iter().any(Problem::is_failure) {
        return Ok(Outcome::Failed);
    }
    let new: Vec<_> =
        commands(&row.plan).into_iter().filter(|argv| !allowed.contains(argv)).collect();
    if let Some(other) = given.iter().find(|argv| !new.contains(argv) && !allowed.contains(*argv)) {
        let message = format!("the plan has no command {}", plain_line(&words(other)));
        return Err(Error::usage(message).hint("codeboost plan show lists its commands"));
    }
    let asks = can_ask() && !args.yes;
    if asks {
        context.out.note(to_yaml(&row.plan));
    }
    let allow = choose_commands(context, args, &given, &new)?;
    confirm_questions(context, args, &open_questions)?;
    confirm_threads(context, args, &threads)?;
    let question = format!("Approve r{} of issue #{}?", row.plan.revision, task.issue);
    if asks && ask(&question) != Some(true) {
        return Err(Error::not_allowed(format!("r{} was not approved", row.plan.revision))
            .hint(format!("change it first: codeboost plan edit {}", task.issue)));
    }
    let approval = NewPlanApproval {
        revision: row.plan.revision,
        base: &task.base_commit_id,
        allow: &allow,
        actor: Actor::Person,
    };
    let row =
        store.write(|tx| tx.approve_plan(&task, &approval)).map_err(|error: StoreError| error)?;
    if context.out.is_json() {
        context.out.json(&json!({
            "issue": task.issue, "revision": row.plan.revision, "digest": row.digest,
            "allowed": allow, "approval": row.approval,
        }));
        return Ok(Outcome::Done);
    }
    for argv in &allow {
        context.out.line(format!("allowed: {}", plain_line(&words(argv))));
    }
    let left = new.len() - allow.len();
    if left > 0 {
        context.out.warn(format!(
            "{} of the plan may not run: {}",
            counted(left as u64, "command"),
            "codeboost plan allowed add allows one later"
        ));
    }
    context.out.line(format!("Plan r{} of issue #{} approved.", row.plan.revision, task.issue));
    Ok(Outcome::Done)
}

fn print_problems(context: &Context, row: &PlanRow, problems: &mut [Problem]) {
    if problems.is_empty() {
        return;
    }
    // A stored plan has no text of its own; places are those of how it is shown as YAML.
    let text = to_yaml(&row.plan);
    let Ok(document) = parse(text.as_bytes(), Syntax::Yaml) else { return };
    locate(problems, &document);
    let name = format!("r{}", row.plan.revision);
    let report = Report { name: &name, source: &document.source, plan: Some(&row.plan), problems };
    report.print(context);
}

/// A command as a plan spells it.
pub(super) fn words(argv: &[String]) -> String {
    spell(argv).unwrap_or_else(|| json!(argv).to_string())
}

/// Which of the new commands are allowed.
fn choose_commands(
    context: &Context,
    args: &ApproveArgs,
    given: &BTreeSet<Vec<String>>,
    new: &[Vec<String>],
) -> Result<Vec<Vec<String>>> {
    let mut allow = Vec::new();
    let mut unclear = Vec::new();
    for argv in new {
        if args.yes || given.contains(argv) {
            allow.push(argv.clone());
        } else if !args.allow_no_other {
            unclear.push(argv);
        }
    }
    for argv in &unclear {
        let exact = json!(argv);
        match ask(&format!("Allow the command {}  {exact}?", plain_line(&words(argv)))) {
            Some(true) => allow.push((*argv).clone()),
            Some(false) => {}
            None => {
                let mut error = Error::not_allowed(format!(
                    "the plan has {} that nobody allowed yet",
                    counted(unclear.len() as u64, "command")
                ));
                for argv in &unclear {
                    let word = words(argv);
                    let quote = if word.contains('"') { '\'' } else { '"' };
                    error =
                        error.hint(format!("--allow-command {quote}{}{quote}", plain_line(&word)));
                }
                return Err(error.hint("or --yes for all, or --allow-no-other for none of these"));
            }
        }
    }
    if allow.len() + unclear.len() > new.len() {
        context.out.detail("commands that were refused can be allowed later");
    }
    Ok(allow)
}

fn confirm_questions(context: &Context, args: &ApproveArgs, open: &[(u64, String)]) -> Result<()> {
    if open.is_empty() || args.yes || args.confirm_open_questions {
        return Ok(());
    }
    for (n, question) in open {
        context.out.note(format!("question {n}: {}", plain_line(question)));
    }
    let n = counted(open.len() as u64, "question");
    match ask(&format!("No answer yet to {n}. Approve anyway?")) {
        Some(true) => Ok(()),
        Some(false) | None => {
            Err(Error::not_allowed(format!("the plan has {n} without an answer"))
                .hint("answer with codeboost plan answer ISSUE N TEXT")
                .hint("or approve anyway with --confirm-open-questions"))
        }
    }
}

fn confirm_threads(context: &Context, args: &ApproveArgs, plan: &PlanState) -> Result<()> {
    let n_open = plan.threads.n_open();
    if n_open == 0 || args.yes || args.confirm_open_threads {
        return Ok(());
    }
    for thread in plan.threads.threads.iter().filter(|thread| !thread.resolved) {
        let name = plan.name_of(&thread.snapshot);
        context.out.note(format!("{} on {name}: {}", thread.thread, plain_line(&thread.body)));
    }
    let n = counted(n_open, "open thread");
    match ask(&format!("There {} {n}. Approve anyway?", if n_open == 1 { "is" } else { "are" })) {
        Some(true) => Ok(()),
        Some(false) | None => Err(Error::not_allowed(format!("the plan has {n}"))
            .hint("say that one is done with codeboost plan resolve ISSUE THREAD")
            .hint("or approve anyway with --confirm-open-threads")),
    }
}
