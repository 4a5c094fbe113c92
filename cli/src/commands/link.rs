//! `codeboost link`: history, ledger and plan to `link.json`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::{Link, Row};
use codeboost_schema::plan::Plan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::commands::plan::input::{Input, SyntaxArgs};
use crate::commands::plan::report::Report;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::read::{self, Objects};
use crate::git::repository::Repository;
use crate::link::assemble::{self, Options};
use crate::link::verify::{verify_diff, verify_link};
use crate::output::{counted, plain_line};
use crate::stage;

/// Arguments of `link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// The repository [default: the one here]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The commit that the changes start from: a branch, a tag or an id
    #[arg(long, value_name = "REV")]
    base: String,
    /// The commit that the changes end at
    #[arg(long, value_name = "REV")]
    head: String,
    /// The plan, in JSON or YAML
    #[arg(long, value_name = "FILE")]
    plan: String,
    /// Who made each commit: ledger.json
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// Where to write the result; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "link.json")]
    output: PathBuf,
    /// Only prove an existing result again: put its segments together and compare with the commits
    #[arg(long, conflicts_with_all = ["max_lines", "max_commits", "deadline"])]
    verify: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    syntax: SyntaxArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Budget; without it only memory is a limit")]
struct BudgetArgs {
    /// Refuse a final diff with more changed lines
    #[arg(long, value_name = "N")]
    max_lines: Option<u64>,
    /// Refuse a range with more commits
    #[arg(long, value_name = "N")]
    max_commits: Option<usize>,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &LinkArgs) -> Result {
    let begun = Instant::now();
    let repository = match &args.repo {
        Some(folder) => Repository::open_at(context, &context.path(folder))?,
        None => Repository::open(context)?,
    };
    let resolve = |name: &str, what: &str| {
        repository.git().resolve(name)?.ok_or_else(|| {
            Error::failed(format!("the {what} {} names no commit", plain_line(name)))
                .hint("name a branch, a tag or a commit id; git log --oneline lists commits")
        })
    };
    let base = resolve(&args.base, "base")?;
    let head = resolve(&args.head, "head")?;
    let input = Input::read(context, &args.plan, &args.syntax)?;
    let plan: Plan = match input.plan() {
        Ok(read) => read.plan,
        Err(unreadable) => {
            let (source, problems) = (&unreadable.source, unreadable.problems.as_slice());
            Report { name: &input.name, source, plan: None, problems }.print(context);
            return Ok(Outcome::Failed);
        }
    };
    let ledger_path = context.path(&args.ledger);
    let ledger = Ledger::parse(&stage::read(&ledger_path)?).map_err(|error| {
        Error::from_error(&error)
            .context(format!("can't read the ledger {}", args.ledger.display()))
            .hint("schema/ledger.schema.json says what a ledger is; each commit id is whole")
    })?;
    let objects = Objects::open(repository.git())?;
    if args.verify {
        return verify(context, args, &objects, (&base, &head), &plan);
    }
    let is_late = || {
        let deadline = args.budget.deadline.map(Duration::from_secs);
        deadline.is_some_and(|deadline| begun.elapsed() > deadline)
    };
    let history = read::history(context, &objects, &base, &head, args.budget.max_commits)?;
    let project = repository.project_config(&base)?;
    let progress = Progress::new(context, history.diff.files.len() as u64, begun);
    let options = Options {
        generated: &project.generated,
        max_lines: args.budget.max_lines,
        is_over: Some(&is_late),
        progress: Some(&|done, all| progress.tell(done, all)),
    };
    let linked = assemble::link(&history, &plan, &ledger, &objects, &options);
    progress.end();
    let linked = linked?;
    let text = to_json(&linked);
    if args.output == Path::new("-") {
        context.out.raw(&text);
        return Ok(Outcome::Done);
    }
    let wrote = stage::write_if_changed(&context.path(&args.output), &text)?;
    report(context, &linked, &args.output, wrote);
    Ok(Outcome::Done)
}

/// The bytes of `link.json`: one line for each file and segment.
pub(crate) fn to_json(link: &Link) -> Vec<u8> {
    fn list<T: Serialize>(out: &mut Vec<u8>, name: &str, values: &[T]) {
        out.extend_from_slice(format!("  \"{name}\": [").as_bytes());
        for (n, value) in values.iter().enumerate() {
            out.extend_from_slice(if n == 0 { b"\n    " } else { b",\n    " });
            write(out, value);
        }
        out.extend_from_slice(if values.is_empty() { b"]" } else { b"\n  ]" });
    }
    fn write<T: Serialize>(out: &mut Vec<u8>, value: &T) {
        serde_json::to_writer(out, value).expect("our own types always serialize");
    }
    let mut out = Vec::new();
    out.extend_from_slice(b"{\n  \"schema_version\": 1,\n  \"base\": ");
    write(&mut out, &link.base);
    out.extend_from_slice(b",\n  \"head\": ");
    write(&mut out, &link.head);
    out.extend_from_slice(b",\n  \"plan\": ");
    write(&mut out, &link.plan);
    out.extend_from_slice(b",\n  \"diff\": ");
    write(&mut out, &link.diff);
    out.extend_from_slice(b",\n");
    list(&mut out, "rows", &link.rows);
    out.extend_from_slice(b",\n");
    list(&mut out, "files", &link.files);
    out.extend_from_slice(b",\n");
    list(&mut out, "segments", &link.segments);
    out.extend_from_slice(b"\n}\n");
    out
}

fn verify(
    context: &Context,
    args: &LinkArgs,
    objects: &Objects,
    (base, head): (&codeboost_schema::ids::CommitId, &codeboost_schema::ids::CommitId),
    plan: &Plan,
) -> Result {
    let name = args.output.display();
    let again = format!("link again: codeboost link … -o {name}");
    let text = stage::read(&context.path(&args.output))?;
    let link: Link = serde_json::from_slice(&text).map_err(|error| {
        Error::from_error(&error).context(format!("can't read {name}")).hint(&again)
    })?;
    for (what, is_same) in [
        ("base", link.base == *base),
        ("head", link.head == *head),
        ("plan", link.plan.digest == plan.digest()),
    ] {
        if !is_same {
            return Err(Error::failed(format!("{name} was made for another {what}")).hint(again));
        }
    }
    let diff = read::final_diff(context, objects, base, head)?;
    verify_link(&link, objects).and_then(|()| verify_diff(&link, &diff)).map_err(|error| {
        Error::from_error(&error).context(format!("{name} does not prove right")).hint(&again)
    })?;
    let n_files = counted(link.files.len() as u64, "file");
    let n_segments = counted(link.segments.len() as u64, "segment");
    context.out.line(format!("{name} proves right: {n_segments} in {n_files}"));
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Summary<'a> {
    output: String,
    wrote: bool,
    base: &'a codeboost_schema::ids::CommitId,
    head: &'a codeboost_schema::ids::CommitId,
    files: usize,
    segments: usize,
    rows: &'a [codeboost_schema::link::RowSummary],
}

fn report(context: &Context, link: &Link, output: &Path, wrote: bool) {
    if context.out.is_json() {
        context.out.json(&Summary {
            output: output.display().to_string(),
            wrote,
            base: &link.base,
            head: &link.head,
            files: link.files.len(),
            segments: link.segments.len(),
            rows: &link.rows,
        });
        return;
    }
    for row in link.rows.iter().filter(|row| row.changes > 0 || matches!(row.row, Row::Item(_))) {
        let changes = counted(row.changes, "change");
        let mut line = format!("{:<9}  {changes}, +{} -{}", row.row, row.added, row.removed);
        if row.attributed == Some(codeboost_schema::link::Attributed::Ambiguous) {
            line.push_str(", part of ambiguous changes");
        }
        if row.in_scope == Some(codeboost_schema::link::InScope::Out) {
            line.push_str(", out of scope");
        }
        context.out.line(line);
    }
    if link.diff.renames_skipped {
        context.out.warn("too many files were added and removed: similar ones were not paired");
    }
    let state = if wrote { "written" } else { "unchanged" };
    context.out.line(format!("{} is {state}", output.display()));
}

/// A bar that appears after a second.
struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: AtomicU64,
}

impl Progress {
    fn new(context: &Context, n_files: u64, begun: Instant) -> Self {
        let bar = ProgressBar::with_draw_target(Some(n_files), ProgressDrawTarget::hidden());
        if context.out.shows_progress() {
            let style = ProgressStyle::with_template("linking {bar:30} {pos} of {len} files");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        let hidden = u64::from(!context.out.shows_progress());
        Self { bar, begun, shown: AtomicU64::new(2 * hidden) }
    }

    fn tell(&self, done: u64, _all: u64) {
        let late = self.begun.elapsed() > Duration::from_secs(1);
        if late && self.shown.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
