//! `codeboost task`: binds an issue to a base and a branch, and lets it go.

use clap::{Args, Subcommand};
use codeboost_schema::ids::CommitId;
use serde_json::json;

use crate::commands::{issues, open};
use crate::config::ForgeKind;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::forge::issue_file::IssueFile;
use crate::git::repository::Repository;
use crate::git::run::Git;
use crate::output::{columns, counted, plain_line};
use crate::stage::FileError;
use crate::store::{NewTask, ReadTx, Store, StoreError, TaskRow, short_ref};
use crate::task::{Actor, TaskState, branch_name};

/// Arguments of `task`.
#[derive(Debug, Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add a task: an issue, the branch to land on, and the branch with the work
    ///
    /// Example: codeboost task add issues/412-retry.md --base main --head agent/retry
    Add(AddArgs),
    /// List the tasks
    ///
    /// Example: codeboost task list --format json
    List,
    /// Give a task up; its branch and record stay
    ///
    /// Example: codeboost task cancel 412 --reason "fixed upstream"
    Cancel {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
        /// Why, for the log
        #[arg(long, default_value = "given up")]
        reason: String,
    },
    /// Take a merged or cancelled task off the lists, with its outputs and the branch made for it
    ///
    /// Refuses while anything would be lost.
    ///
    /// Example: codeboost task remove 412
    Remove {
        /// Issue of the task
        issue: u64,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Number of the issue, or a Markdown file whose first heading is its title
    issue: String,
    /// The branch to land on
    #[arg(long, value_name = "BRANCH")]
    base: String,
    /// The branch with the work; without it codeboost makes codeboost/issue-N-slug at the base
    #[arg(long, value_name = "BRANCH")]
    head: Option<String>,
    /// Number for an issue read from a file [default: of its front matter or name, else the next]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// Title for an issue given by number
    #[arg(long)]
    title: Option<String>,
}

pub(crate) fn run(context: &Context, args: &TaskArgs) -> Result {
    match &args.what {
        What::Add(args) => add(context, args),
        What::List => list(context),
        What::Cancel { issue, reason } => cancel(context, *issue, reason),
        What::Remove { issue } => remove(context, *issue),
    }
}

/// What is known of an issue before it is recorded.
struct Issue {
    number: Option<u64>,
    title: Option<String>,
    body: Option<String>,
    file: Option<Vec<u8>>,
}

fn read_issue(context: &Context, args: &AddArgs) -> Result<Issue> {
    if args.issue.bytes().all(|b| b.is_ascii_digit()) {
        let number = args.issue.parse().ok().filter(|number| *number > 0);
        let number =
            number.ok_or_else(|| Error::usage(format!("{} is no issue number", args.issue)))?;
        if args.number.is_some_and(|other| other != number) {
            return Err(Error::usage("--number is for an issue that is read from a file"));
        }
        return Ok(Issue {
            number: Some(number),
            title: args.title.clone(),
            body: None,
            file: None,
        });
    }
    let path = context.path(&args.issue);
    let issue = IssueFile::read(&path)?;
    if let (Some(given), Some(found)) = (args.number, issue.number)
        && given != found
    {
        return Err(Error::failed(format!("{} is issue #{found}, not #{given}", args.issue))
            .hint("leave --number out, or change the file's number"));
    }
    if issue.is_closed {
        context.out.warn(format!("{} says that the issue is closed", args.issue));
    }
    let path = path.canonicalize().map_err(|source| FileError::new("resolve", &path, source))?;
    Ok(Issue {
        number: args.number.or(issue.number),
        title: Some(args.title.clone().unwrap_or(issue.title)),
        body: Some(issue.body),
        file: Some(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()),
    })
}

/// Takes over what GitHub says about an issue: the title, and the text where it is trusted.
fn from_github(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    number: u64,
    issue: &mut Issue,
) -> Result<()> {
    let gh = issues::open_gh(context, repository, &repository.config()?)?;
    let found = match gh.whole_issue(number) {
        Ok(found) => found,
        Err(error) => {
            context.out.warn(format!(
                "issue #{number} can't be read, so its number is all that is taken: {}",
                plain_line(&error.to_string())
            ));
            return Ok(());
        }
    };
    if !found.is_open {
        context.out.warn(format!("issue #{number} is closed"));
    }
    let trust = issues::trust_of(store, &gh, &found)?;
    if trust.is_given() {
        issue.body = Some(found.body);
    } else {
        context.out.warn(format!(
            "the text of issue #{number} is not taken: it is {}; after reading it: codeboost issues \
             trust {number}",
            trust.word()
        ));
    }
    issue.title.get_or_insert(found.issue.title);
    Ok(())
}

fn add(context: &Context, args: &AddArgs) -> Result {
    let (repository, store) = open(context)?;
    let git = repository.git();
    let mut issue = read_issue(context, args)?;
    if let (ForgeKind::Github, Some(number), None) =
        (repository.config()?.forge, issue.number, &issue.file)
    {
        from_github(context, &repository, &store, number, &mut issue)?;
    }
    let (base_ref, base) = find_branch(git, &args.base)?;
    repository.project_config(&base)?;
    let head = args.head.as_deref().map(|head| find_branch(git, head)).transpose()?;
    let (number, title) = store.read(|tx| -> Result<_> {
        let number = issue.number.map_or_else(|| tx.next_issue(), Ok)?;
        let open: Vec<_> = tx.tasks()?.into_iter().filter(|task| !task.state.is_closed()).collect();
        if open.iter().any(|task| task.issue == number) {
            return Err(StoreError::TaskExists(number).into());
        }
        if let Some((head_ref, _)) = &head
            && let Some(other) = open.iter().find(|task| task.head_ref == *head_ref)
        {
            let message =
                format!("{} is the head of task #{} already", short_ref(head_ref), other.issue);
            return Err(Error::failed(message).hint("one branch carries one task"));
        }
        let known = tx.issue(number)?.map(|known| known.title);
        let title = issue.title.clone().or(known).unwrap_or_else(|| format!("Issue #{number}"));
        Ok((number, title))
    })?;
    let (head_ref, head, made_head) = match head {
        Some((head_ref, head)) => (head_ref, head, false),
        None => (make_branch(git, &store, number, &title, &base)?, base.clone(), true),
    };
    if head_ref == base_ref {
        return Err(Error::failed(format!("{} can't be base and head at once", args.base)));
    }
    let fork = git.merge_base(&base, &head)?.ok_or_else(|| {
        Error::failed(format!(
            "{} and {} have no common history",
            short_ref(&base_ref),
            short_ref(&head_ref)
        ))
    })?;
    let n_behind = git.count(&fork, &base)?;
    let task = store.write(|tx| {
        tx.put_issue(number, &title, issue.body.as_deref(), issue.file.as_deref())?;
        tx.add_task(&NewTask {
            issue: number,
            base_ref: &base_ref,
            base_commit_id: &fork,
            head_ref: &head_ref,
            head_commit_id: &head,
            made_head,
        })
    });
    let task: TaskRow = task.map_err(|error: StoreError| Error::from(error))?;
    if context.out.is_json() {
        context.out.json(&task);
        return Ok(Outcome::Done);
    }
    let made = if made_head { "made " } else { "" };
    context.out.line(format!("Task #{number} added: {}", plain_line(&task.title)));
    context.out.line(format!(
        "  {made}{} ({:.12}) onto {} ({:.12})",
        short_ref(&head_ref),
        head,
        short_ref(&base_ref),
        fork
    ));
    if n_behind > 0 {
        context.out.warn(format!(
            "{} has {} that {} has not; merging will need them",
            short_ref(&base_ref),
            counted(n_behind, "commit"),
            short_ref(&head_ref)
        ));
    }
    if let Some(twin) = remote_twin(git, &base_ref)? {
        context.out.warn(format!(
            "{base} is a branch of this repository: the merge moves it here, and only while it is \
             checked out nowhere; to land on the remote, add the task with --base {twin}",
            base = short_ref(&base_ref),
        ));
    }
    context.out.note(format!("Next: codeboost plan import {number} FILE"));
    Ok(Outcome::Done)
}

/// The remote-tracking branch of the same name, when the base is a local branch and there is one.
fn remote_twin(git: &Git<'_>, base_ref: &str) -> Result<Option<String>> {
    let Some(name) = base_ref.strip_prefix("refs/heads/") else { return Ok(None) };
    let remotes = git.output(["remote"])?;
    for remote in String::from_utf8_lossy(&remotes).lines() {
        if git.resolve(&format!("refs/remotes/{remote}/{name}"))?.is_some() {
            return Ok(Some(format!("{remote}/{name}")));
        }
    }
    Ok(None)
}

fn find_branch(git: &Git<'_>, name: &str) -> Result<(String, CommitId)> {
    git.branch(name)?.ok_or_else(|| {
        Error::failed(format!("there is no branch {}", plain_line(name)))
            .hint("name a branch of this repository, such as main or origin/main")
    })
}

/// Makes the task's branch at the base, moving nothing that exists and no checkout.
fn make_branch(
    git: &Git<'_>,
    store: &Store<'_>,
    issue: u64,
    title: &str,
    base: &CommitId,
) -> Result<String> {
    let name = branch_name(issue, title);
    let taken: Vec<String> =
        store.read(|tx| tx.tasks())?.into_iter().map(|task| task.head_ref).collect();
    for n in 1..=99 {
        let full =
            if n == 1 { format!("refs/heads/{name}") } else { format!("refs/heads/{name}-{n}") };
        match git.branch(&full)? {
            // Left by an `add` that was killed before it recorded the task.
            Some((_, id)) if id == *base && !taken.contains(&full) => return Ok(full),
            Some(_) => {}
            None => {
                git.output_with(
                    ["update-ref", "--stdin"],
                    Some(format!("create {full} {base}\n").as_bytes()),
                )?;
                return Ok(full);
            }
        }
    }
    Err(Error::failed(format!("the branches {name} to {name}-99 exist"))
        .hint("bind one of them with --head"))
}

fn list(context: &Context) -> Result {
    let (_, store) = open(context)?;
    let tasks = store.read(|tx| tx.tasks())?;
    if context.out.is_json() {
        context.out.json(&json!({"tasks": tasks}));
        return Ok(Outcome::Done);
    }
    let rows: Vec<_> = tasks
        .iter()
        .map(|task| {
            [
                format!("#{}", task.issue),
                task.state.to_string(),
                format!("{} → {}", short_ref(&task.head_ref), short_ref(&task.base_ref)),
                plain_line(&task.title),
            ]
        })
        .collect();
    for line in columns(&rows) {
        context.out.line(line);
    }
    if rows.is_empty() {
        context.out.note("No tasks. Add one: codeboost task add ISSUE --base BRANCH");
    }
    Ok(Outcome::Done)
}

fn cancel(context: &Context, issue: Option<u64>, reason: &str) -> Result {
    let (_, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    if !task.state.may_become(TaskState::Cancelled) {
        context.out.warn(format!(
            "the task for issue #{} is {}; it can be cancelled once that is over",
            task.issue, task.state
        ));
        return Ok(Outcome::NotAllowed);
    }
    let _lease = match store.lease(&task, "task cancel")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let task = store
        .write(|tx| tx.set_task_state(&task, TaskState::Cancelled, reason, Actor::Person))
        .map_err(|error: StoreError| error)?;
    if context.out.is_json() {
        context.out.json(&task);
    } else {
        context.out.line(format!("Task #{} cancelled. Its branch stays.", task.issue));
    }
    Ok(Outcome::Done)
}

fn remove(context: &Context, issue: u64) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(Some(issue)))?;
    let _lease = match store.lease(&task, "task remove")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let branch = repository.git().branch(&task.head_ref)?;
    let mut losses = Vec::new();
    if !task.state.is_closed() {
        losses.push(format!("the task is {}: cancel it first", task.state));
    }
    let checked_out = checked_out(repository.git())?;
    if task.made_head
        && let Some((name, head)) = &branch
    {
        let n_only_there = only_there(repository.git(), name, head)?;
        if n_only_there > 0 {
            losses.push(format!(
                "{} has {} that no other branch has",
                short_ref(name),
                counted(n_only_there, "commit")
            ));
        }
        if checked_out.contains(name) {
            losses.push(format!("{} is checked out", short_ref(name)));
        }
    }
    losses.extend(store.read(|tx| waiting(tx, &task))?);
    if !losses.is_empty() {
        if context.out.is_json() {
            context.out.json(&json!({"removed": false, "losses": losses}));
        }
        context
            .out
            .warn(format!("the task for issue #{issue} stays, because something would be lost:"));
        for loss in &losses {
            context.out.warn(format!("  {}", plain_line(loss)));
        }
        return Ok(Outcome::NotAllowed);
    }
    let folder = repository.task_folder(issue)?;
    store.write(|tx| tx.remove_task(&task)).map_err(|error: StoreError| error)?;
    if task.made_head
        && let Some((name, head)) = &branch
    {
        let input = format!("delete {name} {head}\n");
        repository.git().output_with(["update-ref", "--stdin"], Some(input.as_bytes()))?;
    }
    std::fs::remove_dir_all(&folder).map_err(|source| FileError::new("remove", &folder, source))?;
    if context.out.is_json() {
        context.out.json(&json!({"removed": true, "losses": []}));
    } else {
        context
            .out
            .line(format!("Task #{issue} removed. codeboost log {issue} still tells its story."));
    }
    Ok(Outcome::Done)
}

/// What was begun for a task and is not over.
fn waiting(tx: &ReadTx<'_>, task: &TaskRow) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if let Some(workspace) = tx.current_workspace(task.id)? {
        found.push(format!(
            "the workspace of {} in {} is not ended",
            workspace.item,
            workspace.folder.display()
        ));
    }
    let n_errands = tx.open_errands(task.id)?.len() as u64;
    if n_errands > 0 {
        found.push(format!("{} not carried out", counted(n_errands, "recorded decision")));
    }
    Ok(found)
}

/// How many commits of a branch are on no other branch.
fn only_there(git: &Git<'_>, name: &str, head: &CommitId) -> Result<u64> {
    let others = format!("--exclude={}", name.strip_prefix("refs/heads/").unwrap_or(name));
    let answer = git.output([
        "rev-list",
        "--count",
        head.as_str(),
        "--not",
        &others,
        "--branches",
        "--remotes",
        "--tags",
    ])?;
    Ok(crate::git::run::parse_id(&answer, "rev-list", str::parse)?)
}

/// The branches that are checked out in some worktree.
fn checked_out(git: &Git<'_>) -> Result<Vec<String>> {
    let answer = git.output(["worktree", "list", "--porcelain", "-z"])?;
    Ok(String::from_utf8_lossy(&answer)
        .split('\0')
        .filter_map(|line| line.strip_prefix("branch "))
        .map(str::to_owned)
        .collect())
}
