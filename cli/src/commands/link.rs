//! `codeboost link`: history, ledger and plan to `link.json`, of a task or of files alone.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use codeboost_schema::canonical;
use codeboost_schema::ids::{CommitId, Digest};
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::{Link, Row, RowSummary};
use codeboost_schema::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::bundle::GENERATOR;
use crate::commands::open;
use crate::commands::plan::input::{Input, SyntaxArgs};
use crate::commands::plan::report::Report;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::range::{self, Source};
use crate::git::read::Objects;
use crate::git::repository::Repository;
use crate::link::verify::{verify_diff, verify_link};
use crate::output::{counted, plain_json, plain_line};
use crate::plan;
use crate::process;
use crate::review::linking::{Budget, link_range};
use crate::review::read::follow;
use crate::review::sources::Reading;
use crate::stage;
use crate::store::Store;

/// Arguments of `link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// The task's issue; may be left out when one task is open
    #[arg(conflicts_with_all = ["repo", "base", "head", "plan", "ledger"])]
    issue: Option<u64>,
    /// Without a task: the repository [default: the one here]
    #[arg(long, value_name = "DIR", requires = "base")]
    repo: Option<PathBuf>,
    /// Without a task: the commit that the changes start from, a branch, a tag or an id
    #[arg(long, value_name = "REV", requires_all = ["head", "plan", "ledger"])]
    base: Option<String>,
    /// Without a task: the commit that the changes end at
    #[arg(long, value_name = "REV", requires = "base")]
    head: Option<String>,
    /// Without a task: the plan, in JSON or YAML
    #[arg(long, value_name = "FILE", requires = "base")]
    plan: Option<String>,
    /// Without a task: who made each commit, a ledger.json
    #[arg(long, value_name = "FILE", requires = "base")]
    ledger: Option<PathBuf>,
    /// Where to write the result; - is standard output [default: link.json, for a task in its own
    /// folder below .codeboost]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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

impl BudgetArgs {
    fn is_set(&self) -> bool {
        self.max_lines.is_some() || self.max_commits.is_some() || self.deadline.is_some()
    }

    fn budget(&self) -> Budget {
        Budget {
            max_lines: self.max_lines,
            max_commits: self.max_commits,
            deadline: self.deadline.map(Duration::from_secs),
        }
    }
}

pub(crate) fn run(context: &Context, args: &LinkArgs) -> Result {
    match (&args.base, &args.head, &args.plan, &args.ledger) {
        (Some(base), Some(head), Some(plan), Some(ledger)) => {
            of_files(context, args, &FilesArgs { base, head, plan, ledger })
        }
        _ => of_task(context, args),
    }
}

/// Links a task, and leaves what it was made from beside it.
fn of_task(context: &Context, args: &LinkArgs) -> Result {
    if args.budget.is_set() {
        return Err(Error::usage("a task is linked without a budget: half a review is none")
            .hint("name --base, --head, --plan and --ledger to link with a budget"));
    }
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(args.issue))?;
    let task = follow(&repository, &store, task)?;
    let reading = Reading::of(&repository, &store, &task)?;
    if args.verify {
        let link = &reading.loaded()?.review.inputs.link;
        let path = match &args.output {
            Some(path) => context.path(path),
            None => repository.task_folder(task.issue)?.join("link.json"),
        };
        let objects = Objects::open(repository.git())?;
        let plan = &reading.sources().plan;
        // The ledger is at hand, so who owns what can be held against it too.
        let expected = to_json(link);
        let pair = (&link.base, &link.head);
        return verify(context, &path, &objects, pair, plan, Some(&expected));
    }
    if let Some(path) = &args.output {
        return put(context, &reading.loaded()?.review.inputs.link, path);
    }
    let made = make(&repository, &store, &reading)?;
    let facts = reading.known("link", &(), |loaded| Facts::of(&loaded.review.inputs.link))?;
    report(context, &facts, &made.path, made.wrote);
    Ok(Outcome::Done)
}

/// The outputs of a task that are made from its history.
pub(crate) struct Made {
    /// Where `link.json` is.
    pub(crate) path: PathBuf,
    /// Whether any of the files was written anew.
    pub(crate) wrote: bool,
}

/// Brings `plan.yaml`, `ledger.json` and `link.json` of a task up to date.
pub(crate) fn make(
    repository: &Repository<'_>,
    store: &Store<'_>,
    reading: &Reading<'_>,
) -> Result<Made> {
    let sources = reading.sources();
    let folder = repository.task_folder(sources.task.issue)?;
    let ledger = serde_json::to_string_pretty(&sources.ledger()).expect("ledgers always serialize");
    let ledger = ledger + "\n";
    let mut wrote = stage::write_if_changed(
        &folder.join("plan.yaml"),
        plan::write::to_yaml(&sources.plan).as_bytes(),
    )?;
    wrote |= stage::write_if_changed(&folder.join("ledger.json"), ledger.as_bytes())?;
    let path = folder.join("link.json");
    let made_from = canonical::digest(&serde_json::json!({
        "generator": GENERATOR, "program": process::stamp(repository.context()),
        "base": sources.base, "head": sources.head,
        "plan": sources.plan.digest(), "ledger": Digest::of(ledger.as_bytes()),
    }));
    let there = stage::digest(&path);
    let task = sources.task.id;
    if store.read(|tx| tx.stage_is_current(task, STAGE, &made_from, there.as_ref()))? {
        return Ok(Made { path, wrote });
    }
    let link = to_json(&reading.loaded()?.review.inputs.link);
    let outputs = Digest::of(&link);
    if there.as_ref() != Some(&outputs) {
        stage::write(&path, &link)?;
        wrote = true;
    }
    store.write(|tx| tx.put_stage(&sources.task, STAGE, &made_from, &outputs))?;
    Ok(Made { path, wrote })
}

const STAGE: &str = "link";

fn put(context: &Context, link: &Link, output: &Path) -> Result {
    if output == Path::new("-") {
        let text = to_json(link);
        let text = String::from_utf8_lossy(&text);
        context.out.raw(plain_json(&text).as_bytes());
        return Ok(Outcome::Done);
    }
    let wrote = stage::write_again(&context.path(output), |out| write_json(link, out))?;
    report(context, &Facts::of(link), output, wrote);
    Ok(Outcome::Done)
}

/// What a link without a task is made from.
struct FilesArgs<'a> {
    base: &'a str,
    head: &'a str,
    plan: &'a str,
    ledger: &'a Path,
}

fn of_files(context: &Context, args: &LinkArgs, files: &FilesArgs<'_>) -> Result {
    let repository = match &args.repo {
        Some(folder) => Repository::open_at(context, &context.path(folder))?,
        None => Repository::open(context)?,
    };
    let objects = Objects::open(repository.git())?;
    let resolve = |name: &str, what: &str| {
        // A whole id of a commit needs no asking.
        if let Ok(id) = CommitId::parse(name)
            && objects.commit(&id).is_ok()
        {
            return Ok(id);
        }
        repository.git().resolve(name)?.ok_or_else(|| {
            Error::failed(format!("the {what} {} names no commit", plain_line(name)))
                .hint("name a branch, a tag or a commit id; git log --oneline lists commits")
        })
    };
    let base = resolve(files.base, "base")?;
    let head = resolve(files.head, "head")?;
    let input = Input::read(context, files.plan, &args.syntax)?;
    let plan: Plan = match input.plan() {
        Ok(read) => read.plan,
        Err(unreadable) => {
            let (source, problems) = (&unreadable.source, unreadable.problems.as_slice());
            Report { name: &input.name, source, plan: None, problems }.print(context);
            return Ok(Outcome::Failed);
        }
    };
    let ledger_path = context.path(files.ledger);
    let ledger =
        Ledger::parse(&stage::read(&ledger_path, stage::MAX_OUTPUT)?).map_err(|error| {
            Error::from_error(&error)
                .context(format!("can't read the ledger {}", files.ledger.display()))
                .hint("schema/ledger.schema.json says what a ledger is; each commit id is whole")
        })?;
    let output = args.output.as_deref().unwrap_or(Path::new("link.json"));
    if args.verify {
        return verify(context, &context.path(output), &objects, (&base, &head), &plan, None);
    }
    let budget = args.budget.budget();
    let linked = link_range(&repository, &objects, (&base, &head), &plan, &ledger, budget)?;
    let outcome = put(context, &linked, output);
    // The process ends here: taking hundreds of thousands of values apart is left to that.
    std::mem::forget(linked);
    outcome
}

/// The bytes of `link.json`: one line for each file and segment.
pub(crate) fn to_json(link: &Link) -> Vec<u8> {
    let mut out = Vec::new();
    write_json(link, &mut out).expect("a list of bytes takes everything");
    out
}

fn write_json(link: &Link, mut out: &mut dyn io::Write) -> io::Result<()> {
    const AT_ONCE: usize = 1 << 16;
    fn list<T: Serialize>(out: &mut dyn io::Write, name: &str, values: &[T]) -> io::Result<()> {
        write!(out, ",\n  \"{name}\": [")?;
        let mut text = Vec::with_capacity(2 * AT_ONCE);
        for (n, value) in values.iter().enumerate() {
            text.extend_from_slice(if n == 0 { b"\n    " } else { b",\n    " });
            serde_json::to_writer(&mut text, value)?;
            if text.len() > AT_ONCE {
                out.write_all(&text)?;
                text.clear();
            }
        }
        out.write_all(&text)?;
        out.write_all(if values.is_empty() { b"]" } else { b"\n  ]" })
    }
    out.write_all(b"{\n  \"schema_version\": 1,\n  \"base\": ")?;
    serde_json::to_writer(&mut out, &link.base)?;
    out.write_all(b",\n  \"head\": ")?;
    serde_json::to_writer(&mut out, &link.head)?;
    out.write_all(b",\n  \"plan\": ")?;
    serde_json::to_writer(&mut out, &link.plan)?;
    out.write_all(b",\n  \"diff\": ")?;
    serde_json::to_writer(&mut out, &link.diff)?;
    list(out, "rows", &link.rows)?;
    list(out, "files", &link.files)?;
    list(out, "segments", &link.segments)?;
    out.write_all(b"\n}\n")
}

fn verify(
    context: &Context,
    path: &Path,
    objects: &Objects,
    (base, head): (&CommitId, &CommitId),
    plan: &Plan,
    expected: Option<&[u8]>,
) -> Result {
    let name = path.display();
    let again = format!("link again: codeboost link … -o {name}");
    let text = stage::read(path, stage::MAX_OUTPUT)?;
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
    let diff = range::final_diff(&Source::new(context, objects), base, head)?;
    verify_link(&link, objects).and_then(|()| verify_diff(&link, &diff)).map_err(|error| {
        Error::from_error(&error).context(format!("{name} does not prove right")).hint(&again)
    })?;
    if expected.is_some_and(|expected| expected != text) {
        let words = "is the right difference, but not what the ledger says of it";
        return Err(Error::failed(format!("{name} {words}")).hint(again));
    }
    let n_files = counted(link.files.len() as u64, "file");
    let n_segments = counted(link.segments.len() as u64, "segment");
    context.out.line(format!("{name} proves right: {n_segments} in {n_files}"));
    Ok(Outcome::Done)
}

/// What is said about a link.
#[derive(Serialize, Deserialize)]
struct Facts {
    base: CommitId,
    head: CommitId,
    files: usize,
    segments: usize,
    rows: Vec<RowSummary>,
    renames_skipped: bool,
}

impl Facts {
    fn of(link: &Link) -> Self {
        Self {
            base: link.base.clone(),
            head: link.head.clone(),
            files: link.files.len(),
            segments: link.segments.len(),
            rows: link.rows.clone(),
            renames_skipped: link.diff.renames_skipped,
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    output: String,
    wrote: bool,
    base: &'a CommitId,
    head: &'a CommitId,
    files: usize,
    segments: usize,
    rows: &'a [RowSummary],
}

fn report(context: &Context, facts: &Facts, output: &Path, wrote: bool) {
    if context.out.is_json() {
        context.out.json(&Summary {
            output: output.display().to_string(),
            wrote,
            base: &facts.base,
            head: &facts.head,
            files: facts.files,
            segments: facts.segments,
            rows: &facts.rows,
        });
        return;
    }
    for row in facts.rows.iter().filter(|row| row.changes > 0 || matches!(row.row, Row::Item(_))) {
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
    if facts.renames_skipped {
        context.out.warn("too many files were added and removed: similar ones were not paired");
    }
    let state = if wrote { "written" } else { "unchanged" };
    context.out.line(format!("{} is {state}", output.display()));
}
