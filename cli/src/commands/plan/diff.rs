//! `codeboost plan diff`: what changed between two plans.

use clap::Args;
use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, FileKind, Plan};
use serde::Serialize;

use super::input::{Input, SyntaxArgs};
use super::report::Report;
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::output::{Style, columns, counted, plain_line};
use crate::plan::diff::{Approval, Change, ItemDiff, PlanDiff, Status, Texts, diff};

/// Arguments of `plan diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The old plan, in JSON or YAML; - reads standard input
    before: String,
    /// The new plan
    after: String,
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
    let Some(before) = read(context, &args.before, &args.syntax)? else {
        return Ok(Outcome::Failed);
    };
    let Some(after) = read(context, &args.after, &args.syntax)? else {
        return Ok(Outcome::Failed);
    };
    print(context, &args.before, &args.after, &diff(&before, &after));
    Ok(Outcome::Done)
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
pub(super) fn print(context: &Context, before: &str, after: &str, diff: &PlanDiff) {
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
        0 => "no approval would be lost".to_owned(),
        n => format!("{} would be lost", counted(n as u64, "approval")),
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

fn file_words(file: &DeclaredFile) -> String {
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

fn check_words(check: &Check) -> String {
    let text = plain_line(&check.text);
    match check.kind {
        CheckKind::Cmd => format!("cmd: {text}"),
        CheckKind::Check => format!("check: {text}"),
    }
}
