//! `codeboost status`: where each task stands, and why.

use clap::Args;
use codeboost_schema::ids::CommitId;
use codeboost_schema::ledger::{Ledger, Origin};
use codeboost_schema::status::{CommitCounts, RefStatus, Status, TaskStatus};

use crate::commands::open;
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::git::run::{Git, GitError, parse_id};
use crate::ledger;
use crate::output::{Style, counted, plain_line};
use crate::store::{TaskRow, short_ref};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only the newest task of this issue, also a closed one
    issue: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &StatusArgs) -> Result {
    let (_, store) = open(context)?;
    let (repository, tasks) = store.read(|tx| -> Result<_> {
        let tasks: Vec<_> = match args.issue {
            Some(issue) => vec![tx.select_any_task(Some(issue))?],
            None => tx.tasks()?.into_iter().filter(|task| !task.state.is_closed()).collect(),
        };
        let mut found = Vec::new();
        for task in tasks {
            let ledger = tx.ledger(task.id)?;
            found.push((task, ledger));
        }
        Ok((tx.repository_id()?, found))
    })?;
    let mut rows = Vec::new();
    for (task, ledger) in &tasks {
        rows.push(look(store.git(), task, ledger)?);
    }
    let status = Status { schema_version: 1, repository: repository.to_string(), tasks: rows };
    if context.out.is_json() {
        context.out.json(&status);
        return Ok(Outcome::Done);
    }
    for task in &status.tasks {
        tell(context, task);
    }
    if status.tasks.is_empty() {
        context.out.note("No task is open. Add one: codeboost task add ISSUE --base BRANCH");
    }
    Ok(Outcome::Done)
}

fn look(git: &Git<'_>, task: &TaskRow, ledger: &Ledger) -> Result<TaskStatus> {
    let branch = |name: &str, recorded: &CommitId| -> Result<RefStatus> {
        let now = git.resolve(name)?;
        let moved = now.as_ref() != Some(recorded);
        Ok(RefStatus { name: name.to_owned(), recorded: recorded.clone(), now, moved })
    };
    let base = branch(&task.base_ref, &task.base_commit_id)?;
    let head = branch(&task.head_ref, &task.head_commit_id)?;
    let commits = match &head.now {
        Some(now) => Some(count(git, &task.base_commit_id, now, ledger)?),
        None => None,
    };
    Ok(TaskStatus {
        issue: task.issue,
        title: task.title.clone(),
        task: task.id.to_string(),
        plan: task.plan_id.to_string(),
        state: task.state.word().to_owned(),
        reason: task.reason.clone(),
        since: task.changed_at.clone(),
        base,
        head,
        commits,
    })
}

fn count(git: &Git<'_>, from: &CommitId, to: &CommitId, ledger: &Ledger) -> Result<CommitCounts> {
    let answer = git.output(["rev-list", &format!("{from}..{to}")])?;
    let mut counts = CommitCounts { total: 0, owned: 0, adopted: 0, foreign: 0 };
    for line in String::from_utf8_lossy(&answer).lines() {
        let commit: std::result::Result<CommitId, GitError> =
            parse_id(line.as_bytes(), "rev-list", CommitId::parse);
        let commit = commit?;
        counts.total += 1;
        if ledger.commits.get(&commit).is_some_and(|entry| entry.item.is_some()) {
            counts.owned += 1;
            if ledger::descends_from(ledger, &commit, Origin::Adopted) {
                counts.adopted += 1;
            }
        } else {
            counts.foreign += 1;
        }
    }
    Ok(counts)
}

fn tell(context: &Context, task: &TaskStatus) {
    let out = &context.out;
    out.line(format!(
        "{}  {}",
        out.paint(Style::Strong, &format!("#{}", task.issue)),
        plain_line(&task.title)
    ));
    out.line(format!(
        "  state    {}: {} (since {})",
        out.paint(Style::Strong, &task.state),
        plain_line(&task.reason),
        task.since
    ));
    for (word, branch) in [("base", &task.base), ("head", &task.head)] {
        let now = match &branch.now {
            None => out.paint(Style::Error, ", the branch is gone"),
            Some(now) if branch.moved => {
                out.paint(Style::Warning, &format!(", moved to {now:.12} since"))
            }
            Some(_) => String::new(),
        };
        out.line(format!(
            "  {word}     {} at {:.12}{now}",
            plain_line(short_ref(&branch.name)),
            branch.recorded
        ));
    }
    if let Some(commits) = task.commits {
        let mut parts = vec![format!("{} owned by items", commits.owned)];
        if commits.adopted > 0 {
            parts[0] += &format!(" ({} adopted)", commits.adopted);
        }
        if commits.foreign > 0 {
            parts.push(format!("{} nobody's", commits.foreign));
        }
        let total = counted(commits.total, "commit");
        let parts =
            if commits.total == 0 { String::new() } else { format!(": {}", parts.join(", ")) };
        out.line(format!("  commits  {total}{parts}"));
    }
}
