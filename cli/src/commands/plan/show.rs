//! `codeboost plan show`: a task's plan as it stands.

use clap::{Args, ValueEnum};
use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::Plan;
use serde::Serialize;
use serde_json::json;

use super::diff::{check_words, file_words};
use super::parse_revision;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::output::{Style, plain_json, plain_line};
use crate::plan::text::PlanText;
use crate::plan::write::{to_json, to_yaml};
use crate::store::{
    AnswerRow, PlanApproval, PlanRow, StoreError, SuggestionRow, SuggestionState, TaskRow,
};

/// Arguments of `plan show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Revision, such as r2 [default: the newest]
    #[arg(value_parser = parse_revision)]
    revision: Option<u64>,
    /// Print the plan alone: json and yaml can be imported, text is what threads refer to
    #[arg(long = "as", value_name = "SYNTAX")]
    syntax: Option<FileSyntax>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FileSyntax {
    Json,
    Yaml,
    /// The text that review threads refer to, with the numbers of its lines
    Text,
}

#[derive(Serialize)]
struct Json<'a> {
    issue: u64,
    #[serde(flatten)]
    row: &'a PlanRow,
    revisions: Vec<Revision<'a>>,
    answers: &'a [AnswerRow],
    suggestions: &'a [SuggestionRow],
}

#[derive(Serialize)]
struct Revision<'a> {
    revision: u64,
    digest: &'a codeboost_schema::ids::Digest,
    origin: crate::store::PlanOrigin,
    made_at: &'a str,
    made_by: &'a str,
    approval: Option<&'a PlanApproval>,
}

pub(super) fn run(context: &Context, args: &ShowArgs) -> Result {
    let (_, store) = open(context)?;
    let (task, rows, answers, suggestions) = store.read(|tx| -> Result<_> {
        let task = tx.select_any_task(args.issue)?;
        let rows = tx.plans(task.id)?;
        Ok((task.clone(), rows, tx.plan_answers(task.id)?, tx.suggestions(task.id)?))
    })?;
    let row = match args.revision {
        None => rows.last().ok_or(StoreError::NoPlan(task.issue))?,
        Some(revision) => find(&rows, &task, revision)?,
    };
    match args.syntax {
        Some(FileSyntax::Json) => {
            context.out.raw(plain_json(&to_json(&row.plan)).as_bytes());
        }
        Some(FileSyntax::Yaml) => context.out.raw(to_yaml(&row.plan).as_bytes()),
        Some(FileSyntax::Text) => {
            for (n, line) in (1..).zip(PlanText::of(&row.plan).text.lines()) {
                context.out.line(format!("{n:>4}  {}", plain_line(line)).trim_end());
            }
        }
        None if context.out.is_json() => context.out.json(&Json {
            issue: task.issue,
            row,
            revisions: rows.iter().map(revision).collect(),
            answers: &answers,
            suggestions: &suggestions,
        }),
        None => print(context, &task, &rows, row, &answers, &suggestions),
    }
    Ok(Outcome::Done)
}

/// The row of a revision.
pub(super) fn find<'r>(rows: &'r [PlanRow], task: &TaskRow, revision: u64) -> Result<&'r PlanRow> {
    rows.iter().find(|row| row.plan.revision == revision).ok_or_else(|| {
        let error = Error::failed(format!("the plan of issue #{} has no r{revision}", task.issue));
        match rows.last() {
            Some(last) => error.hint(format!("the newest is r{}", last.plan.revision)),
            None => error.hint(format!("run codeboost plan import {} FILE", task.issue)),
        }
    })
}

fn revision(row: &PlanRow) -> Revision<'_> {
    Revision {
        revision: row.plan.revision,
        digest: &row.digest,
        origin: row.origin,
        made_at: &row.made_at,
        made_by: &row.made_by,
        approval: row.approval.as_ref(),
    }
}

fn print(
    context: &Context,
    task: &TaskRow,
    rows: &[PlanRow],
    row: &PlanRow,
    answers: &[AnswerRow],
    suggestions: &[SuggestionRow],
) {
    let out = &context.out;
    let plan = &row.plan;
    let head = format!("Plan of issue #{}, r{}", task.issue, plan.revision);
    let standing = match &row.approval {
        Some(approval) => {
            format!("approved {} by {}", approval.approved_at, plain_line(&approval.approved_by))
        }
        None => {
            let approved = rows.iter().rev().find(|row| row.approval.is_some());
            match approved.filter(|other| other.plan.revision < plan.revision) {
                Some(other) => format!("draft; r{} is approved", other.plan.revision),
                None => "draft".into(),
            }
        }
    };
    out.line(format!("{}: {standing}", out.paint(Style::Strong, &head)));
    out.line(format!("{} by {}", row.origin.word(), plain_line(&row.made_by)));
    if let Some(last) = rows.last().filter(|last| last.plan.revision > plan.revision) {
        out.line(format!("a newer revision is there: r{}", last.plan.revision));
    }
    print_questions(context, plan, answers);
    out.line("");
    out.line(plain_line(&plan.summary));
    for item in &plan.items {
        out.line("");
        let head = format!("{}  {}", item.id, plain_line(&item.title));
        out.line(out.paint(Style::Strong, &head));
        out.line(format!("    {}", plain_line(&item.intent)));
        for file in &item.files {
            out.line(format!("  - {}", file_words(file)));
            out.line(format!("      {}", plain_line(&file.change)));
        }
        for check in &item.acceptance {
            out.line(format!("  - {}", check_words(check)));
        }
        if !item.depends_on.is_empty() {
            let ids: Vec<_> = item.depends_on.iter().map(ItemId::as_str).collect();
            out.line(format!("  - depends on {}", ids.join(", ")));
        }
    }
    print_suggestions(context, suggestions);
}

fn print_questions(context: &Context, plan: &Plan, answers: &[AnswerRow]) {
    if plan.questions.is_empty() {
        return;
    }
    context.out.line("");
    for (n, question) in (1..).zip(&plan.questions) {
        context.out.line(format!("question {n}: {}", plain_line(question)));
        match answers.iter().find(|answer| answer.question == *question) {
            Some(answer) => context.out.line(format!("    {}", plain_line(&answer.answer))),
            None => context.out.line("    (no answer yet)"),
        }
    }
}

/// Open and stale suggestions, as cards.
pub(super) fn print_suggestions(context: &Context, suggestions: &[SuggestionRow]) {
    let out = &context.out;
    let cards: Vec<_> = suggestions
        .iter()
        .filter(|row| matches!(row.state, SuggestionState::Open | SuggestionState::Stale))
        .collect();
    for row in &cards {
        out.line("");
        let head = format!("suggestion {}", row.id);
        out.line(format!(
            "{}: {} ({})",
            out.paint(Style::Strong, &head),
            plain_line(&row.edit.summary),
            row.edit.item
        ));
        out.line(format!("    {}", plain_line(&row.edit.reason)));
        if row.state == SuggestionState::Stale {
            out.line("    plan changed: ask for new suggestions");
        }
    }
    if cards.iter().any(|row| row.state == SuggestionState::Open) {
        out.note(
            "Apply one: codeboost plan edit apply ID; drop one: codeboost plan edit dismiss ID",
        );
    }
}

/// A suggestion for programs.
pub(super) fn suggestion_json(row: &SuggestionRow) -> serde_json::Value {
    json!({"id": row.id, "revision": row.revision, "state": row.state, "edit": row.edit})
}
