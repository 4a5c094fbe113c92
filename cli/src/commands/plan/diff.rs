//! `codeboost plan diff`: what changed between two plans.

use clap::Args;
use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, FileKind, Plan};
use serde::Serialize;

use super::input::{Input, SyntaxArgs};
use super::report::Report;
use super::show::find;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::output::{Style, columns, plain_line};
use crate::plan::diff::{Approval, Change, ItemDiff, PlanDiff, Status, Texts, diff};

/// Arguments of `plan diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Two plan files, or two revisions such as r2 r3, with the task's issue before them
    #[arg(required = true, num_args = 2..=3, value_name = "PLAN")]
    plans: Vec<String>,
    #[command(flatten)]
    syntax: SyntaxArgs,
}

#[derive(Serialize)]
struct Json<'a> {
    before: &'a str,
    after: &'a str,
    #[serde(flatten)]
    diff: &'a PlanDiff,
}

pub(super) fn run(context: &Context, args: &DiffArgs) -> Result {
    let revision = |text: &str| text.strip_prefix('r').and_then(|n| n.parse::<u64>().ok());
    match &args.plans[..] {
        [before, after] if revision(before).is_none() || revision(after).is_none() => {
            let Some(old) = read(context, before, &args.syntax)? else {
                return Ok(Outcome::Failed);
            };
            let Some(new) = read(context, after, &args.syntax)? else {
                return Ok(Outcome::Failed);
            };
            print(context, before, after, &diff(&old, &new));
            Ok(Outcome::Done)
        }
        [issue @ .., before, after] => {
            let issue = match issue {
                [] => None,
                [issue, ..] => Some(issue.parse::<u64>().map_err(|_| not_revisions())?),
            };
            let (Some(old), Some(new)) = (revision(before), revision(after)) else {
                return Err(not_revisions());
            };
            let (_, store) = open(context)?;
            let (task, rows) = store.read(|tx| -> Result<_> {
                let task = tx.select_any_task(issue)?;
                let rows = tx.plans(task.id)?;
                Ok((task, rows))
            })?;
            let (old, new) = (find(&rows, &task, old)?, find(&rows, &task, new)?);
            print(context, before, after, &diff(&old.plan, &new.plan));
            Ok(Outcome::Done)
        }
        _ => Err(not_revisions()),
    }
}

fn not_revisions() -> Error {
    Error::usage("name two plan files, or two revisions of a task's plan")
        .hint("codeboost plan diff 412 r2 r3")
}

fn read(context: &Context, file: &str, syntax: &SyntaxArgs) -> Result<Option<Plan>> {
    let input = Input::read(context, file, syntax)?;
    match input.plan() {
        Ok(read) => Ok(Some(read.plan)),
        Err(unreadable) => {
            let report = Report {
                name: &input.name,
                source: &unreadable.source,
                plan: None,
                problems: &unreadable.problems,
            };
            report.print(context);
            Ok(None)
        }
    }
}

/// Prints a comparison: a table, then what changed in words.
fn print(context: &Context, before: &str, after: &str, diff: &PlanDiff) {
    let out = &context.out;
    if out.is_json() {
        out.json(&Json { before, after, diff });
        return;
    }
    out.line(format!("{} -> {}", plain_line(before), plain_line(after)));
    if diff.is_empty() {
        out.line("the plans say the same");
        return;
    }
    let mut rows = vec![["item".to_owned(), "is".into(), "its approval".into(), "title".into()]];
    rows.extend(diff.items.iter().map(row));
    for line in columns(&rows) {
        out.line(line);
    }
    if let Some(texts) = &diff.summary {
        out.line("");
        print_texts(context, "summary", texts);
    }
    if let Some(order) = &diff.order {
        out.line("");
        out.line(format!("order: {} -> {}", list(&order.before), list(&order.after)));
    }
    for (mark, questions) in [("-", &diff.gone_questions), ("+", &diff.new_questions)] {
        for question in questions {
            out.line(format!("{mark} question: {}", plain_line(question)));
        }
    }
    for item in diff.items.iter().filter(|item| !item.changes.is_empty()) {
        out.line("");
        let head = format!("{}  {}", item.id, plain_line(&item.title));
        out.line(out.paint(Style::Strong, &head));
        for change in &item.changes {
            print_change(context, change);
        }
    }
    let n_lost = diff.items.iter().filter(|item| item.approval.is_lost()).count();
    out.line("");
    out.line(match n_lost {
        0 => "no item would lose its approval".to_owned(),
        1 => "1 item would lose its approval".to_owned(),
        n => format!("{n} items would lose their approval"),
    });
}

fn row(item: &ItemDiff) -> [String; 4] {
    let status = match item.status {
        Status::New => "new",
        Status::Gone => "gone",
        Status::Changed => "changed",
        Status::Same => "the same",
    };
    let approval = match &item.approval {
        Approval::None => "is needed".to_owned(),
        Approval::Kept => "stays".into(),
        Approval::Definition => "is lost".into(),
        Approval::Dependency { items } => format!("is lost with {}", list(items)),
        Approval::Gone => "goes".into(),
    };
    [item.id.to_string(), status.into(), approval, plain_line(&item.title)]
}

fn list(ids: &[ItemId]) -> String {
    if ids.is_empty() {
        return "none".into();
    }
    ids.iter().map(ItemId::as_str).collect::<Vec<_>>().join(", ")
}

fn print_change(context: &Context, change: &Change) {
    let out = &context.out;
    match change {
        Change::Title(texts) => print_texts(context, "title", texts),
        Change::Intent(texts) => print_texts(context, "intent", texts),
        Change::FileAdded { file } => {
            out.line(format!("  + {}", file_words(file)));
            out.line(format!("      {}", plain_line(&file.change)));
        }
        Change::FileRemoved { file } => out.line(format!("  - {}", file_words(file))),
        Change::FileChanged { before, after } => {
            if before.kind == after.kind && before.renamed_from == after.renamed_from {
                out.line(format!("  ~ {}", file_words(after)));
            } else {
                out.line(format!("  ~ {} -> {}", file_words(before), file_words(after)));
            }
            if before.change != after.change {
                out.line(format!("      - {}", plain_line(&before.change)));
                out.line(format!("      + {}", plain_line(&after.change)));
            }
        }
        Change::CheckAdded { check } => out.line(format!("  + {}", check_words(check))),
        Change::CheckRemoved { check } => out.line(format!("  - {}", check_words(check))),
        Change::FileOrder => out.line("  ~ the files are in another order"),
        Change::CheckOrder => out.line("  ~ the acceptance entries are in another order"),
        Change::DependsOn(lists) => {
            out.line(format!("  ~ depends on {} -> {}", list(&lists.before), list(&lists.after)));
        }
    }
}

fn print_texts(context: &Context, what: &str, texts: &Texts) {
    context.out.line(format!("  ~ {what}"));
    context.out.line(format!("      - {}", plain_line(&texts.before)));
    context.out.line(format!("      + {}", plain_line(&texts.after)));
}

pub(super) fn file_words(file: &DeclaredFile) -> String {
    let path = plain_line(&file.path);
    match (file.kind, &file.renamed_from) {
        (FileKind::Edit, _) => format!("edit {path}"),
        (FileKind::Add, _) => format!("add {path}"),
        (FileKind::Delete, _) => format!("delete {path}"),
        (FileKind::Rename, from) => {
            format!("rename {} to {path}", plain_line(from.as_deref().unwrap_or_default()))
        }
    }
}

pub(super) fn check_words(check: &Check) -> String {
    let text = plain_line(&check.text);
    match check.kind {
        CheckKind::Cmd => format!("cmd: {text}"),
        CheckKind::Check => format!("check: {text}"),
    }
}
