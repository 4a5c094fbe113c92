//! `codeboost item`: carries out one item of a plan with whatever worker, in a workspace.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{FileKind, Item};
use serde_json::{Value, json};

use crate::commands::{amend, approved_plan, open};
use crate::context::Context;
use crate::error::Result;
use crate::execute::audit::quote;
use crate::execute::item::{
    self, BeginOptions, Begun, EndOptions, Ended, FolderAfter, OutOfScope, Site, What,
};
use crate::exit_code::Outcome;
use crate::git::tree::{Mode, TreeChange};
use crate::output::{Style, columns, counted, plain_line};
use crate::store::{Worker, WorkspaceRow, short_ref};

/// Arguments of `item`.
#[derive(Debug, Args)]
pub struct ItemArgs {
    #[command(subcommand)]
    what: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Make a workspace for an item, with a prompt file beside it
    ///
    /// The workspace is a standalone clone of the task's head. Work in it with whatever tool you
    /// like, then run `codeboost item end`.
    ///
    /// Example: codeboost item begin 412 P1
    Begin(BeginArgs),
    /// Look at what was done in the workspace and commit it to the task's branch
    ///
    /// Git is not run in the workspace and nothing there is executed. What is not safe to commit is
    /// refused with a list, and the workspace stays.
    ///
    /// Example: codeboost item end
    End(EndArgs),
    /// List the items of the plan with what became of them
    ///
    /// Example: codeboost item list 412
    List {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
    },
    /// Say that the plan is wrong for the item that has begun, with what it should say
    ///
    /// The item is given up and nothing of it is kept; the task waits in needs amendment until a
    /// revision is approved. The file is a report as report.schema.json has it, with a proposal.
    ///
    /// Example: codeboost item propose 412 report.json
    Propose {
        /// Issue of the task
        issue: u64,
        /// The report; - reads standard input
        file: String,
    },
    /// Undo what an item changed beside its files
    ///
    /// A commit of that item puts the files back to what they were when it began. What it did stays
    /// in the history and in the record.
    ///
    /// Example: codeboost item undo 412
    Undo {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
    },
    /// Let a paused task go on as its plan is
    ///
    /// A task pauses when an item changed a file that the plan does not declare: after this each
    /// such change has to be acknowledged in the review. It pauses too when whoever works on an item
    /// says that the plan is wrong: after this the item can begin again.
    ///
    /// Example: codeboost item go-on 412
    GoOn {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
    },
    /// Give up the item that has begun; its workspace stays on disk
    ///
    /// Example: codeboost item abandon 412
    Abandon {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
        /// The item, to be sure which
        #[arg(value_parser = parse_item)]
        item: Option<ItemId>,
    },
}

#[derive(Debug, Args)]
struct BeginArgs {
    /// Issue of the task
    issue: u64,
    /// The item
    #[arg(value_parser = parse_item)]
    item: ItemId,
    /// Make the workspace in this folder, which must not exist
    #[arg(long, value_name = "FOLDER")]
    at: Option<PathBuf>,
    /// Give up the workspace that is open for this item, leave it on disk, and make a new one
    #[arg(long)]
    again: bool,
}

#[derive(Debug, Args)]
struct EndArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// The item, to be sure which
    #[arg(value_parser = parse_item)]
    item: Option<ItemId>,
    /// What becomes of the workspace's folder
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    workspace: WorkspaceAfter,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// What becomes of the task when files change that the plan does not declare.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ScopeArgs {
    /// Don't pause the task for changes that the plan does not declare: leave them to the review,
    /// where each has to be acknowledged
    #[arg(long)]
    go_on: bool,
}

impl ScopeArgs {
    pub(crate) fn out_of_scope(self) -> OutOfScope {
        if self.go_on { OutOfScope::GoOn } else { OutOfScope::Pause }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum WorkspaceAfter {
    /// Remove it when nothing is lost by that.
    #[default]
    Remove,
    /// Leave it.
    Keep,
}

pub(crate) fn parse_item(text: &str) -> std::result::Result<ItemId, String> {
    ItemId::parse(text).map_err(|error| error.to_string())
}

pub(crate) fn run(context: &Context, args: &ItemArgs) -> Result {
    match &args.what {
        Sub::Begin(args) => begin(context, args),
        Sub::End(args) => end(context, args),
        Sub::List { issue } => list(context, *issue),
        Sub::Propose { issue, file } => amend::propose(context, *issue, file),
        Sub::Undo { issue } => amend::undo(context, *issue),
        Sub::GoOn { issue } => go_on(context, *issue),
        Sub::Abandon { issue, item } => abandon(context, *issue, item.as_ref()),
    }
}

fn begin(context: &Context, args: &BeginArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(Some(args.issue)))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "item begin")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let options = BeginOptions {
        folder: args.at.clone(),
        again: args.again,
        out_of_scope: OutOfScope::Pause,
        worker: Worker::Person,
        ..BeginOptions::default()
    };
    let begun = item::begin(site, &lease, &plan, &args.item, &options)?;
    let item = item::find_item(&plan, &args.item)?;
    if context.out.is_json() {
        context.out.json(&begun_json(args.issue, item, &begun));
        return Ok(Outcome::Done);
    }
    tell_begun(context, args.issue, item, &begun);
    for misfit in &begun.misfits {
        context.out.warn(format!("{} is to {misfit}", item.id));
    }
    if let Some(folder) = &begun.checked_out {
        context.out.warn(format!(
            "{} is checked out in {}, and no checked-out branch is moved: check out another one \
             there before the item ends",
            short_ref(&task.head_ref),
            folder.display()
        ));
    }
    context.out.note(format!("Next: work there, then run codeboost item end {}", args.issue));
    Ok(Outcome::Done)
}

fn tell_begun(context: &Context, issue: u64, item: &Item, begun: &Begun) {
    let out = &context.out;
    let title = plain_line(&item.title);
    out.line(format!("{} of #{issue} has begun: {title}", item.id));
    let folder = begun.workspace.folder.display().to_string();
    let mut rows = vec![
        ["workspace".to_owned(), out.paint(Style::Accent, &folder)],
        ["prompt".to_owned(), begun.prompt.display().to_string()],
        ["head".to_owned(), format!("{:.12}", begun.workspace.start_commit_id)],
    ];
    for file in &item.files {
        let from = file.renamed_from.as_deref();
        let from = from.map_or(String::new(), |from| format!(" from {}", plain_line(from)));
        let kind = kind_word(file.kind);
        rows.push(["declared".to_owned(), format!("{} ({kind}{from})", plain_line(&file.path))]);
    }
    for command in &begun.commands {
        rows.push(["command".to_owned(), plain_line(command)]);
    }
    for commit_id in &begun.earlier {
        rows.push(["has already".to_owned(), format!("{commit_id:.12}")]);
    }
    if let Some(folder) = &begun.given_up {
        rows.push(["given up".to_owned(), folder.display().to_string()]);
    }
    once(&mut rows);
    for line in columns(&rows) {
        out.line(format!("  {line}"));
    }
}

/// Leaves a label out that repeats the one above.
fn once(rows: &mut [[String; 2]]) {
    for n in (1..rows.len()).rev() {
        if rows[n][0] == rows[n - 1][0] {
            rows[n][0].clear();
        }
    }
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Edit => "edit",
        FileKind::Add => "add",
        FileKind::Delete => "delete",
        FileKind::Rename => "rename",
    }
}

fn begun_json(issue: u64, item: &Item, begun: &Begun) -> Value {
    json!({
        "issue": issue,
        "item": item.id,
        "revision": begun.workspace.revision,
        "workspace": begun.workspace.folder.to_string_lossy(),
        "prompt": begun.prompt.to_string_lossy(),
        "head": begun.workspace.start_commit_id,
        "commands": begun.commands,
        "misfits": begun.misfits,
        "earlier": begun.earlier,
        "given_up": begun.given_up.as_ref().map(|folder| folder.to_string_lossy()),
    })
}

fn end(context: &Context, args: &EndArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "item end")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let options = EndOptions {
        out_of_scope: args.scope.out_of_scope(),
        folder: match args.workspace {
            WorkspaceAfter::Remove => FolderAfter::Remove,
            WorkspaceAfter::Keep => FolderAfter::Keep,
        },
        files: None,
    };
    let ended = item::end(site, &lease, &plan, args.item.as_ref(), options)?;
    if context.out.is_json() {
        context.out.json(&ended_json(&ended));
    } else {
        tell_ended(context, &ended);
        tell_next(context, &ended);
    }
    Ok(ended_outcome(&ended))
}

/// How a command ends that brought an item to this end.
pub(crate) fn ended_outcome(ended: &Ended) -> Outcome {
    match &ended.what {
        What::Refused(_) => Outcome::Failed,
        What::Committed { .. } | What::Unchanged if ended.task.state.waits_for_person() => {
            Outcome::Waits
        }
        What::Committed { .. } | What::Unchanged => Outcome::Done,
    }
}

/// Shows people what an item came to.
pub(crate) fn tell_ended(context: &Context, ended: &Ended) {
    let item = &ended.workspace.item;
    let out = &context.out;
    let mut rows: Vec<[String; 2]> = Vec::new();
    match &ended.what {
        What::Refused(violations) => {
            out.line(format!("Nothing of {item} was committed:"));
            for violation in violations {
                let line = out.paint(Style::Error, &violation.line());
                out.line(format!("  {line}"));
                out.line(format!("    {}", violation.rule.mend()));
            }
        }
        What::Unchanged => out.line(format!("{item} is planned but unchanged: no commit")),
        What::Committed { commit_id, changes, out_of_scope } => {
            let branch = short_ref(&ended.task.head_ref);
            out.line(format!("{item} is committed as {commit_id:.12} on {branch}"));
            for change in changes.iter().take(MAX_SHOWN) {
                rows.push(["changed".to_owned(), change_words(change)]);
            }
            if changes.len() > MAX_SHOWN {
                rows.push(["changed".to_owned(), format!("{} more", changes.len() - MAX_SHOWN)]);
            }
            for path in out_of_scope.iter().take(MAX_SHOWN) {
                rows.push(["out of scope".to_owned(), out.paint(Style::Error, &shown(path))]);
            }
            if out_of_scope.len() > MAX_SHOWN {
                let n_more = out_of_scope.len() - MAX_SHOWN;
                rows.push(["out of scope".to_owned(), format!("{n_more} more")]);
            }
        }
    }
    for path in &ended.untouched {
        rows.push(["untouched".to_owned(), plain_line(path)]);
    }
    if ended.n_ignored > 0 {
        let mut some: Vec<_> = ended.ignored.iter().take(3).map(shown).collect();
        if ended.n_ignored > some.len() {
            some.push(format!("{} more", ended.n_ignored - some.len()));
        }
        rows.push(["left out".to_owned(), format!("{} (ignored)", some.join(", "))]);
    }
    if let Some(why) = ended.kept {
        let folder = ended.workspace.folder.display();
        rows.push(["workspace".to_owned(), format!("{folder} stays, since {why}")]);
    }
    once(&mut rows);
    for line in columns(&rows) {
        out.line(format!("  {line}"));
    }
    if ended.had_commits {
        out.note(
            "Commits made in the workspace don't count: their changes are in this one commit.",
        );
    }
    if let What::Committed { out_of_scope, .. } = &ended.what
        && !out_of_scope.is_empty()
    {
        let files = if out_of_scope.len() == 1 { "a file" } else { "files" };
        out.warn(format!("{item} changed {files} that it does not declare"));
    }
}

/// Says where the task stands after an item, and the next step.
pub(crate) fn tell_next(context: &Context, ended: &Ended) {
    context.out.note(next_words(ended));
}

/// Most paths that are shown one by one.
const MAX_SHOWN: usize = 20;

fn next_words(ended: &Ended) -> String {
    use crate::task::TaskState;
    let issue = ended.task.issue;
    if matches!(ended.what, What::Refused(_)) {
        return format!(
            "Next: mend it and run codeboost item end {issue}, or codeboost item abandon {issue}"
        );
    }
    match ended.task.state {
        TaskState::NeedsAmendment => format!(
            "The task waits for you in needs amendment. Next, one of:\n  \
             declare the change: codeboost plan amend {issue}, then codeboost plan approve {issue}\n  \
             give it to an item of its own: codeboost plan amend {issue} --split\n  \
             undo it: codeboost item undo {issue}\n  \
             leave it to the review: codeboost item go-on {issue}"
        ),
        TaskState::InReview => format!(
            "Every item is carried out.\n\
             Next: codeboost check run {issue} --here, then codeboost run {issue}"
        ),
        _ => match ended.left.first() {
            Some(next) => format!("Next: codeboost item begin {issue} {next}"),
            None => format!("Next: codeboost status {issue}"),
        },
    }
}

/// A path, quoted only where it has to be.
fn shown(path: &RepoPath) -> String {
    match path.as_str() {
        Some(text) if plain_line(text) == text && !text.contains('"') => text.to_owned(),
        _ => quote(path.as_bytes()),
    }
}

fn change_words(change: &TreeChange) -> String {
    let path = shown(&change.path);
    let modes = (change.before.as_ref(), change.after.as_ref());
    let what = match modes {
        (None, Some(_)) => "added",
        (Some(_), None) => "deleted",
        (Some(before), Some(after)) if before.mode == after.mode => "edited",
        (Some(before), Some(after)) if before.mode.is_file() && after.mode.is_file() => {
            match (after.mode, before.object_id == after.object_id) {
                (Mode::Executable, true) => "made executable",
                (Mode::Executable, false) => "edited, made executable",
                (_, true) => "no longer executable",
                (_, false) => "edited, no longer executable",
            }
        }
        _ => "another type",
    };
    format!("{path} ({what})")
}

/// The same for programs.
pub(crate) fn ended_json(ended: &Ended) -> Value {
    let paths = |paths: &[RepoPath]| -> Vec<Value> {
        paths
            .iter()
            .map(|path| match path.as_str() {
                Some(text) => json!({"path": text}),
                None => json!({"path_b64": path.canonical()}),
            })
            .collect()
    };
    let mut value = json!({
        "issue": ended.task.issue,
        "item": ended.workspace.item,
        "revision": ended.workspace.revision,
        "task_state": ended.task.state,
        "untouched": ended.untouched,
        "ignored": paths(&ended.ignored),
        "n_ignored": ended.n_ignored,
        "had_commits": ended.had_commits,
        "left": ended.left,
        "workspace": ended.kept.map(|_| ended.workspace.folder.to_string_lossy()),
    });
    let more = match &ended.what {
        What::Refused(violations) => json!({
            "result": "refused",
            "violations": violations.iter().map(|found| json!({
                "words": found.line(), "mend": found.rule.mend(),
            })).collect::<Vec<_>>(),
        }),
        What::Unchanged => json!({"result": "unchanged"}),
        What::Committed { commit_id, changes, out_of_scope } => json!({
            "result": "committed",
            "commit": commit_id,
            "changes": changes.len(),
            "out_of_scope": paths(out_of_scope),
        }),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

fn list(context: &Context, issue: Option<u64>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    let plan = approved_plan(&store, &task)?;
    let site = Site { repository: &repository, store: &store };
    let done = item::done_items(site, &task)?;
    let rows = store.read(|tx| tx.workspaces(task.id))?;
    let current = |item: &ItemId| rows.iter().find(|row| row.item == *item && !row.state.is_over());
    let out_of_scope = |item: &ItemId| -> Vec<RepoPath> {
        let mine = rows.iter().filter(|row| row.item == *item && row.state.is_over());
        mine.flat_map(|row| row.out_of_scope.iter().cloned()).collect()
    };
    if context.out.is_json() {
        let items: Vec<Value> = plan
            .items
            .iter()
            .map(|item| {
                json!({
                    "item": item.id,
                    "title": item.title,
                    "state": state_word(current(&item.id), done.get(&item.id)),
                    "commits": done.get(&item.id).cloned().unwrap_or_default(),
                    "workspace": current(&item.id).map(|row| row.folder.to_string_lossy()),
                    "out_of_scope": out_of_scope(&item.id).iter().map(shown).collect::<Vec<_>>(),
                    "violations": current(&item.id).map(|row| row.violations.clone()),
                })
            })
            .collect();
        context.out.json(&json!({"issue": task.issue, "revision": plan.revision, "items": items}));
        return Ok(Outcome::Done);
    }
    let mut table = Vec::new();
    for item in &plan.items {
        let row = current(&item.id);
        let commits = done.get(&item.id);
        let mut more = match (row, commits) {
            (Some(row), _) => row.folder.display().to_string(),
            (None, Some(commits)) => {
                commits.iter().map(|id| format!("{id:.12}")).collect::<Vec<_>>().join(" ")
            }
            (None, None) => String::new(),
        };
        let n_out = out_of_scope(&item.id).len();
        if n_out > 0 {
            more.push_str(&format!("  {} out of scope", counted(n_out as u64, "file")));
        }
        if row.is_some_and(|row| !row.violations.is_empty()) {
            more.push_str("  refused by the audit");
        }
        let state = state_word(row, commits).to_owned();
        table.push([item.id.to_string(), state, plain_line(&item.title), more]);
    }
    for line in columns(&table) {
        context.out.line(line);
    }
    Ok(Outcome::Done)
}

fn state_word(
    current: Option<&WorkspaceRow>,
    commits: Option<&Vec<codeboost_schema::ids::CommitId>>,
) -> &'static str {
    match (current, commits) {
        (Some(_), _) => "begun",
        (None, Some(commits)) if commits.is_empty() => "unchanged",
        (None, Some(_)) => "done",
        (None, None) => "not begun",
    }
}

fn go_on(context: &Context, issue: Option<u64>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "item go-on")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let task = item::go_on(site, &lease, &plan)?;
    if context.out.is_json() {
        context.out.json(&json!({"issue": task.issue, "task_state": task.state}));
    } else {
        context.out.line(format!("#{} is {}: {}", task.issue, task.state, task.reason));
    }
    Ok(Outcome::Done)
}

fn abandon(context: &Context, issue: Option<u64>, wanted: Option<&ItemId>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let lease = match store.lease(&task, "item abandon")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let plan = store.read(|tx| tx.approved_plan(task.id))?.map(|row| row.plan);
    let row = item::abandon(site, &lease, plan.as_ref(), wanted)?;
    if context.out.is_json() {
        let folder = row.folder.to_string_lossy();
        context.out.json(&json!({"issue": task.issue, "item": row.item, "workspace": folder}));
        return Ok(Outcome::Done);
    }
    context.out.line(format!("{} of #{} is given up", row.item, task.issue));
    if row.folder.symlink_metadata().is_ok() {
        context.out.note(format!("Its workspace stays on disk: {}", row.folder.display()));
    }
    Ok(Outcome::Done)
}
