//! `codeboost ledger`: a person states who made existing commits, or which commit became which.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::ledger::{Entry, Ledger, Origin};
use serde::Serialize;

use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::run::{Git, GitError};
use crate::ledger::{self, Rewrite};
use crate::output::{columns, counted, plain_line};
use crate::store::{LedgerRow, Store, StoreError, TaskRow};
use crate::task::Actor;

/// Arguments of `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// State which item existing commits were made for
    ///
    /// You vouch for it: your name and the time are recorded, and the changes stay tagged as
    /// adopted.
    ///
    /// Example: codeboost ledger record 1a2b3c4 5d6e7f8 --item P1
    Record {
        /// Commits, as anything that git can resolve
        #[arg(required = true, value_name = "COMMIT")]
        commits: Vec<String>,
        /// The item, or none for somebody else's work
        #[arg(long, value_parser = parse_item)]
        item: Target,
        #[command(flatten)]
        task: TaskChoice,
    },
    /// Vouch for the Plan-Item trailers of commits
    ///
    /// Commits without a trailer stay nobody's, and commits that are in the ledger stay as they
    /// are.
    ///
    /// Example: codeboost ledger adopt --from-trailers main..agent/retry
    Adopt {
        /// The commits to look at; without a value those from the task's base to its head
        #[arg(
            long,
            required = true,
            num_args = 0..=1,
            default_missing_value = "",
            value_name = "RANGE"
        )]
        from_trailers: String,
        #[command(flatten)]
        task: TaskChoice,
    },
    /// State which commit became which in a rebase made by hand
    ///
    /// Two commits, or two ranges of equal length that are matched in order. Each new commit gets
    /// the item of its old one.
    ///
    /// Example: codeboost ledger map main~3..old-retry main..agent/retry
    Map {
        /// The commit as it was, or OLD_BASE..OLD
        old: String,
        /// What it became, or NEW_BASE..NEW
        new: String,
        #[command(flatten)]
        task: TaskChoice,
    },
    /// Show who made each commit; with --format json the ledger.json of the task
    ///
    /// Example: codeboost ledger show --format json > ledger.json
    Show {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
    },
}

#[derive(Debug, Args)]
struct TaskChoice {
    /// Issue of the task; may be left out while one task is open
    #[arg(long, value_name = "N")]
    issue: Option<u64>,
}

/// An item, or nobody.
#[derive(Debug, Clone)]
struct Target(Option<ItemId>);

fn parse_item(text: &str) -> std::result::Result<Target, String> {
    if text == "none" {
        return Ok(Target(None));
    }
    ItemId::parse(text)
        .map(|item| Target(Some(item)))
        .map_err(|_| "expected an item such as P1, or none".to_owned())
}

pub(crate) fn run(context: &Context, args: &LedgerArgs) -> Result {
    match &args.what {
        What::Record { commits, item, task } => {
            record(context, commits, item.0.as_ref(), task.issue)
        }
        What::Adopt { from_trailers, task } => adopt(context, from_trailers, task.issue),
        What::Map { old, new, task } => map(context, old, new, task.issue),
        What::Show { issue } => show(context, *issue),
    }
}

/// What a change of the ledger answers.
#[derive(Serialize)]
struct Report {
    #[serde(serialize_with = "as_map")]
    recorded: Vec<(CommitId, Entry)>,
    already: Vec<CommitId>,
}

/// In the form of `commits` in `ledger.json`.
fn as_map<S: serde::Serializer>(
    entries: &[(CommitId, Entry)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(commit, entry)| (commit, entry)))
}

impl Report {
    fn tell(&self, context: &Context) {
        if context.out.is_json() {
            context.out.json(self);
            return;
        }
        for (commit, entry) in &self.recorded {
            context.out.line(format!("{commit:.12}  {}", ledger::words(entry)));
        }
        if !self.already.is_empty() {
            let n_already = counted(self.already.len() as u64, "commit");
            context.out.note(format!("{n_already} recorded before"));
        }
        if self.recorded.is_empty() && self.already.is_empty() {
            context.out.note("Nothing to record");
        }
    }
}

fn record(
    context: &Context,
    commits: &[String],
    item: Option<&ItemId>,
    issue: Option<u64>,
) -> Result {
    let (_, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let entry = match item {
        Some(item) => Entry::new(Some(item.clone()), Origin::Adopted),
        None => Entry::new(None, Origin::Foreign),
    };
    let mut entries = Vec::new();
    for name in commits {
        entries.push((resolve(store.git(), name)?, entry.clone()));
    }
    vouch(context, &store, &task, &entries)
}

fn adopt(context: &Context, range: &str, issue: Option<u64>) -> Result {
    let (_, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let (from, to) = if range.is_empty() {
        let head = head_now(store.git(), &task)?;
        (task.base_commit_id.clone(), head)
    } else {
        parse_range(store.git(), range)?.ok_or_else(|| {
            Error::usage(format!("{} is no range such as main..agent/retry", plain_line(range)))
        })?
    };
    let known = store.read(|tx| tx.ledger(task.id))?;
    let mut entries = Vec::new();
    for (commit, values) in trailers(store.git(), &from, &to)? {
        let Some(item) = ledger::trailer_item(&commit, values.iter().map(String::as_str))? else {
            continue;
        };
        match known.commits.get(&commit) {
            None => entries.push((commit, Entry::new(Some(item), Origin::Adopted))),
            Some(entry) if entry.item.as_ref() != Some(&item) => context.out.warn(format!(
                "the trailer of {commit:.12} names {item}, but it is recorded as {}; that stays",
                ledger::words(entry)
            )),
            Some(entry) => entries.push((commit, Entry { was: None, ..entry.clone() })),
        }
    }
    vouch(context, &store, &task, &entries)
}

/// Records entries that a person vouches for.
fn vouch(
    context: &Context,
    store: &Store<'_>,
    task: &TaskRow,
    entries: &[(CommitId, Entry)],
) -> Result {
    store.keep_commits(task.id, entries.iter().map(|(commit, _)| commit))?;
    let new = store
        .write(|tx| tx.record_commits(task, entries, Actor::Person))
        .map_err(|error: StoreError| error)?;
    let new: BTreeSet<_> = new.into_iter().collect();
    let (recorded, already): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|(commit, _)| new.contains(commit));
    let report =
        Report { recorded, already: already.into_iter().map(|(commit, _)| commit).collect() };
    report.tell(context);
    Ok(Outcome::Done)
}

fn map(context: &Context, old: &str, new: &str, issue: Option<u64>) -> Result {
    let (_, store) = open(context)?;
    let git = store.git();
    let task = store.read(|tx| tx.select_task(issue))?;
    let known = store.read(|tx| tx.ledger(task.id))?;
    let pairs = match (parse_range(git, old)?, parse_range(git, new)?) {
        (Some(old), Some(new)) => ledger::in_order(in_range(git, old)?, in_range(git, new)?)?,
        (None, None) => vec![(resolve_source(git, old, &known)?, resolve(git, new)?)],
        _ => {
            return Err(Error::usage("a range can be mapped only to a range")
                .hint("name two commits, or OLD_BASE..OLD NEW_BASE..NEW"));
        }
    };
    let pairs: Vec<_> = pairs.into_iter().map(|(old, new)| (old, new, Rewrite::Plain)).collect();
    // Both ends of each step stay: provenance is followed through them.
    let mut kept = BTreeSet::new();
    for (old, new, _) in &pairs {
        kept.insert(new);
        if git.resolve(old.as_str())?.is_some() {
            kept.insert(old);
        }
    }
    store.keep_commits(task.id, kept)?;
    let recorded = store
        .write(|tx| tx.map_commits(&task, &pairs, Actor::Person))
        .map_err(|error: StoreError| error)?;
    let made: BTreeSet<_> = recorded.iter().map(|(commit, _)| commit.clone()).collect();
    for (old, new, _) in &pairs {
        if !known.commits.contains_key(old) && !made.contains(old) {
            context.out.warn(format!("{old:.12} is not in the ledger, so {new:.12} is nobody's"));
        } else if patch_id(git, old)? != patch_id(git, new)? {
            context.out.warn(format!("{new:.12} changes other lines than {old:.12} did"));
        }
    }
    let already = pairs.iter().map(|(_, new, _)| new);
    let already = already.filter(|new| !made.contains(*new)).cloned().collect();
    Report { recorded, already }.tell(context);
    Ok(Outcome::Done)
}

fn show(context: &Context, issue: Option<u64>) -> Result {
    let (_, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    if context.out.is_json() {
        context.out.json(&store.read(|tx| tx.ledger(task.id))?);
        return Ok(Outcome::Done);
    }
    let rows = store.read(|tx| tx.ledger_rows(task.id))?;
    let mut rows: BTreeMap<_, _> =
        rows.into_iter().map(|row| (row.commit_id.clone(), row)).collect();
    let head = head_now(store.git(), &task)?;
    let mut lines = Vec::new();
    for (commit, subject) in subjects(store.git(), &task.base_commit_id, &head)? {
        let row = rows.remove(&commit);
        lines.push(line(&commit, row.as_ref(), subject));
    }
    let n_in_range = lines.len();
    for (commit, row) in &rows {
        lines.push(line(commit, Some(row), "not between base and head".to_owned()));
    }
    for text in columns(&lines) {
        context.out.line(text);
    }
    if n_in_range == 0 {
        context.out.note("There are no commits between base and head");
    }
    Ok(Outcome::Done)
}

fn line(commit: &CommitId, row: Option<&LedgerRow>, subject: String) -> [String; 4] {
    let (item, how) = match row {
        None => ("–".to_owned(), "not in the ledger".to_owned()),
        Some(row) => {
            let item = row.entry.item.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string);
            let mut how = ledger::origin_word(row.entry.origin).to_owned();
            if let Some(from) = &row.entry.from {
                how += &format!(" from {from:.12}");
            }
            if row.entry.origin == Origin::Adopted {
                how += &format!(" by {}", plain_line(&row.recorded_by));
            }
            if let (Some(was), Some(revision)) = (&row.entry.was, row.retired_by) {
                how += &format!(", made for {was}, which r{revision} removed");
            }
            (item, how)
        }
    };
    [format!("{commit:.12}"), item, how, plain_line(&subject)]
}

/// The commit that a person names, which must be in the repository.
fn resolve(git: &Git<'_>, name: &str) -> Result<CommitId> {
    git.resolve(name)?.ok_or_else(|| {
        Error::failed(format!("there is no commit {}", plain_line(name)))
            .hint("name a commit of this repository, such as HEAD or 1a2b3c4")
    })
}

/// As [`resolve`], but the full id of a commit in the ledger may name one that is gone.
fn resolve_source(git: &Git<'_>, name: &str, known: &Ledger) -> Result<CommitId> {
    match CommitId::parse(name) {
        Ok(commit) if known.commits.contains_key(&commit) => Ok(commit),
        _ => resolve(git, name),
    }
}

/// The ends of `A..B`; `None` when the text is no range.
fn parse_range(git: &Git<'_>, text: &str) -> Result<Option<(CommitId, CommitId)>> {
    match text.split_once("..") {
        Some((from, to)) if !to.starts_with('.') => {
            let head =
                |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
            Ok(Some((resolve(git, &head(from))?, resolve(git, &head(to))?)))
        }
        _ => Ok(None),
    }
}

/// The commits of a range, parents first, which must not hold a merge.
fn in_range(git: &Git<'_>, (from, to): (CommitId, CommitId)) -> Result<Vec<CommitId>> {
    let range = format!("{from}..{to}");
    let answer = git.output(["rev-list", "--reverse", "--topo-order", "--parents", &range])?;
    let mut commits = Vec::new();
    for line in String::from_utf8_lossy(&answer).lines() {
        let mut words = line.split(' ');
        let commit = words.next().and_then(|word| CommitId::parse(word).ok());
        let commit = commit.ok_or_else(|| unexpected("rev-list", line))?;
        if words.count() > 1 {
            return Err(Error::failed(format!("{commit:.12} is a merge, so the order is not one"))
                .hint("map the commits one by one: codeboost ledger map OLD NEW"));
        }
        commits.push(commit);
    }
    Ok(commits)
}

/// The head's branch as it stands, or the recorded head when the branch is gone.
fn head_now(git: &Git<'_>, task: &TaskRow) -> Result<CommitId> {
    Ok(git.resolve(&task.head_ref)?.unwrap_or_else(|| task.head_commit_id.clone()))
}

/// The commits of a range, parents first, each with one text that git makes of it.
fn each(
    git: &Git<'_>,
    from: &CommitId,
    to: &CommitId,
    format: &str,
) -> Result<Vec<(CommitId, String)>> {
    let (range, format) = (format!("{from}..{to}"), format!("--format=%H {format}%x00"));
    // What ends the name of a trailer can be configured in the repository.
    let git = git.with_config("trailer.separators=:");
    let args = ["rev-list", "--no-commit-header", "--reverse", "--topo-order"];
    let answer = git.output(args.into_iter().chain([format.as_str(), range.as_str()]))?;
    let mut found = Vec::new();
    for record in String::from_utf8_lossy(&answer).split_terminator("\0\n") {
        let (commit, text) =
            record.split_once(' ').ok_or_else(|| unexpected("rev-list", record))?;
        let commit = CommitId::parse(commit).map_err(|_| unexpected("rev-list", record))?;
        found.push((commit, text.to_owned()));
    }
    Ok(found)
}

fn subjects(git: &Git<'_>, from: &CommitId, to: &CommitId) -> Result<Vec<(CommitId, String)>> {
    each(git, from, to, "%s")
}

fn trailers(git: &Git<'_>, from: &CommitId, to: &CommitId) -> Result<Vec<(CommitId, Vec<String>)>> {
    let found = each(git, from, to, "%(trailers:key=Plan-Item,valueonly,unfold,separator=%x0A)")?;
    let values = |text: String| text.lines().map(str::to_owned).collect();
    Ok(found.into_iter().map(|(commit, text)| (commit, values(text))).collect())
}

/// What git's patch id is of a commit's change; `None` for an empty change or a commit that is
/// gone.
fn patch_id(git: &Git<'_>, commit: &CommitId) -> Result<Option<String>> {
    if git.resolve(commit.as_str())?.is_none() {
        return Ok(None);
    }
    let args = ["diff-tree", "--root", "-p", "--no-textconv", "--no-ext-diff", "--binary"];
    let patch = git.output(args.into_iter().chain([commit.as_str()]))?;
    let answer = git.output_with(["patch-id", "--stable"], Some(&patch))?;
    Ok(String::from_utf8_lossy(&answer).split(' ').next().map(str::to_owned))
}

fn unexpected(command: &str, answer: &str) -> Error {
    let answer = answer.chars().take(200).collect();
    GitError::Answer { command: command.to_owned(), answer }.into()
}
