//! `codeboost plan edit`: in an editor, or by deciding on a suggested edit.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Args, Subcommand};
use codeboost_schema::plan::Plan;
use serde_json::json;

use super::import::{Judged, record, tell};
use super::input::Input;
use super::report::Report;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::output::plain_line;
use crate::plan::judge::version_of;
use crate::plan::problem::Problem;
use crate::plan::source::Source;
use crate::plan::v1::parse::Syntax;
use crate::plan::v1::suggest::try_edit;
use crate::plan::write::to_yaml;
use crate::process;
use crate::stage::{self, FileError};
use crate::store::{PlanOrigin, ReadTx, StoreError, SuggestionRow, Taken};
use crate::task::Actor;

/// Arguments of `plan edit`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct EditArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Apply a suggested edit: makes the next revision, and all other suggestions stale
    ///
    /// Example: codeboost plan edit apply 1f0c2d3e
    Apply {
        /// Name of the suggestion, or the first 8 or more characters of it
        suggestion: String,
    },
    /// Drop a suggested edit; the plan stays as it is
    ///
    /// Example: codeboost plan edit dismiss 1f0c2d3e
    Dismiss {
        /// Name of the suggestion, or the first 8 or more characters of it
        suggestion: String,
    },
}

pub(super) fn run(context: &Context, args: &EditArgs) -> Result {
    match &args.what {
        None => in_editor(context, args.issue),
        Some(What::Apply { suggestion }) => apply(context, suggestion),
        Some(What::Dismiss { suggestion }) => dismiss(context, suggestion),
    }
}

fn in_editor(context: &Context, issue: Option<u64>) -> Result {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| context.var(name));
    let editor = editor.ok_or_else(|| {
        Error::failed("no editor is set")
            .hint("set EDITOR, for example EDITOR=vi")
            .hint("or write a file and run codeboost plan import ISSUE FILE")
    })?;
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let row = store.read(|tx| tx.newest_plan(task.id))?.ok_or(StoreError::NoPlan(task.issue))?;
    let folder = tempfile::Builder::new()
        .prefix("codeboost-plan-")
        .tempdir()
        .map_err(|source| FileError::new("make a folder in", &std::env::temp_dir(), source))?;
    let path = folder.path().join(format!("plan-{}-r{}.yaml", task.issue, row.plan.revision));
    let mut text = to_yaml(&row.plan);
    loop {
        stage::write(&path, text.as_bytes())?;
        edit_file(context, editor, &path)?;
        let bytes = stage::read(&path, stage::MAX_SETTINGS)?;
        if bytes == text.as_bytes() {
            if text == to_yaml(&row.plan) {
                context.out.line("nothing changed");
                return Ok(Outcome::Done);
            }
            let kept = folder.keep().join(path.file_name().unwrap_or_default());
            return Err(Error::failed("the plan was left with failures; nothing was changed")
                .hint(format!("your text is kept in {}", kept.display())));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let input = Input { name, bytes, syntax: Syntax::Yaml };
        let judged = Judged::of(&input, &repository, &store, &task)?;
        if let Some(plan) = judged.fine(context, &input.name) {
            let made = record(&store, &task, Some(&row), plan, PlanOrigin::Edit)?;
            tell(context, &task, Some(&row), made.as_ref());
            return Ok(Outcome::Done);
        }
        text = with_problems(&String::from_utf8_lossy(&input.bytes), &judged.problems);
    }
}

/// The mark of the lines that say what is wrong; they go when the text is opened again.
const MARK: &str = "#! ";

fn with_problems(text: &str, problems: &[Problem]) -> String {
    let mut body = text;
    while body.starts_with(MARK.trim_end()) {
        body = body.split_once('\n').map_or("", |(_, rest)| rest);
    }
    let failures: Vec<_> = problems.iter().filter(|problem| problem.is_failure()).collect();
    let n_lines = 2 * failures.len() + 1;
    let n_old = text.lines().count() - body.lines().count();
    let mut out = String::new();
    for problem in failures {
        let place = problem.place.map_or(String::new(), |place| {
            format!("line {}: ", place.line - n_old.min(place.line - 1) + n_lines)
        });
        let _ = writeln!(out, "{MARK}{place}{}", plain_line(&problem.message));
        let _ = writeln!(out, "{MARK}    {}", plain_line(&problem.mend));
    }
    let _ = writeln!(out, "{MARK}mend these and save, or leave the file as it is to give up");
    out + body
}

/// Lets the person edit a file with their own editor, environment and terminal.
fn edit_file(context: &Context, editor: &std::ffi::OsStr, path: &Path) -> Result<()> {
    // An editor may have arguments of its own, as in git.
    let mut script = editor.to_owned();
    script.push(" \"$@\"");
    let mut command = process::command(context, "sh", context.cwd());
    command.arg("-c").arg(script).arg(editor).arg(path).envs(context.vars());
    let status = command.status().map_err(|source| FileError::new("edit", path, source))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::failed(format!("the editor ended with {status}; nothing was changed"))
        .hint("set EDITOR to one that works"))
}

/// The suggestion of that name, which may be cut.
fn find(tx: &ReadTx<'_>, name: &str) -> Result<SuggestionRow> {
    let too_short = name.len() < 8;
    let mut rows = if too_short { Vec::new() } else { tx.find_suggestions(name)? };
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok(row),
        (Some(_), false) => Err(Error::failed(format!("several suggestions begin with {name}"))
            .hint("give more characters")),
        (None, _) if too_short => {
            Err(Error::usage("a suggestion is named by 8 characters or more"))
        }
        (None, _) => Err(StoreError::NoSuggestion(plain_line(name)).into()),
    }
}

fn apply(context: &Context, name: &str) -> Result {
    let (repository, store) = open(context)?;
    let (row, task, allowed) = store.read(|tx| -> Result<_> {
        let row = find(tx, name)?;
        let task = tx.task(row.task)?.ok_or(StoreError::NoOpenTask)?;
        let allowed: BTreeSet<_> = tx.allowed_commands()?.into_iter().collect();
        Ok((row, task, allowed))
    })?;
    if task.state.is_closed() {
        return Err(Error::failed(format!("the task for issue #{} is {}", task.issue, task.state)));
    }
    let surroundings = Surroundings::read(&repository, &task.base_commit_id)?;
    let taken = store.write(|tx| {
        tx.take_suggestion(&task, &row, Actor::Person, |plan, edit| {
            let version = version_of(plan).map_err(|problem| vec![*problem])?;
            let judge = |plan: &Plan| surroundings.judge(plan, Some(task.issue), &allowed);
            try_edit(plan, edit, version, judge)
        })
    });
    match taken.map_err(|error: StoreError| error)? {
        Taken::Made(made) => {
            if context.out.is_json() {
                context.out.json(&json!({
                    "issue": task.issue, "suggestion": row.id, "revision": made.plan.revision,
                    "digest": made.digest,
                }));
            } else {
                context.out.line(format!(
                    "Plan of issue #{} is r{} now; its other suggestions are stale.",
                    task.issue, made.plan.revision
                ));
                context.out.note(format!("Next: codeboost plan approve {}", task.issue));
            }
            Ok(Outcome::Done)
        }
        Taken::NotOpen(state) => Err(not_open(&row, state.word())),
        Taken::Refused(problems) => {
            let source = Source::new(String::new());
            let name = format!("suggestion {}", row.id);
            Report { name: &name, source: &source, plan: None, problems: &problems }.print(context);
            Ok(Outcome::Failed)
        }
    }
}

fn not_open(row: &SuggestionRow, state: &str) -> Error {
    Error::not_allowed(format!("suggestion {} is {state}; nothing was changed", row.id))
        .hint("ask for new suggestions with the plan as it is now")
}

fn dismiss(context: &Context, name: &str) -> Result {
    let (_, store) = open(context)?;
    let row = store.write(|tx| -> Result<_> {
        let row = find(tx, name)?;
        if !tx.dismiss_suggestion(&row, Actor::Person)? {
            return Err(not_open(&row, row.state.word()));
        }
        Ok(row)
    })?;
    if context.out.is_json() {
        context.out.json(&json!({"suggestion": row.id, "state": "dismissed"}));
    } else {
        context.out.line(format!("Suggestion {} dismissed; the plan stays as it is.", row.id));
    }
    Ok(Outcome::Done)
}
