//! `codeboost status`: where each task stands, and why.

use clap::Args;
use codeboost_schema::ids::CommitId;
use codeboost_schema::ledger::{Ledger, Origin};
use codeboost_schema::status::{
    BlockerStatus, ChoiceStatus, CommitCounts, ItemStatus, PlanRevisions, RefStatus, ReviewStatus,
    SegmentCounts, Status, TaskStatus,
};

use crate::approval::choice::Place;
use crate::commands::next::next;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::gate::Tests;
use crate::git::repository::Repository;
use crate::git::run::{Git, GitError, parse_id};
use crate::ledger;
use crate::output::{Style, columns, counted, plain_line};
use crate::review::sources::Reading;
use crate::review::{Review, read};
use crate::store::{Store, TaskRow, short_ref};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only the newest task of this issue, also a closed one
    issue: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &StatusArgs) -> Result {
    let (repository, store) = open(context)?;
    let tasks: Vec<_> = match args.issue {
        Some(issue) => vec![store.read(|tx| tx.select_any_task(Some(issue)))?],
        None => {
            let all = store.read(|tx| tx.tasks())?;
            all.into_iter().filter(|task| !task.state.is_closed()).collect()
        }
    };
    let mut rows = Vec::new();
    for task in tasks {
        let task = read::follow(&repository, &store, task)?;
        rows.push(look(&repository, &store, &task)?);
    }
    let id = store.read(|tx| tx.repository_id())?;
    let status = Status { schema_version: 1, repository: id.to_string(), tasks: rows };
    if context.out.is_json() {
        context.out.json(&status);
        return Ok(Outcome::Done);
    }
    for (n, task) in status.tasks.iter().enumerate() {
        if n > 0 {
            context.out.line("");
        }
        tell(context, task);
    }
    if status.tasks.is_empty() {
        context.out.note("No task is open. Add one: codeboost task add ISSUE --base BRANCH");
    }
    Ok(Outcome::Done)
}

fn look(repository: &Repository<'_>, store: &Store<'_>, task: &TaskRow) -> Result<TaskStatus> {
    let git = repository.git();
    let (ledger, newest, approved) = store.read(|tx| -> Result<_> {
        Ok((
            tx.ledger(task.id)?,
            tx.newest_plan(task.id)?.map(|row| row.plan.revision),
            tx.approved_plan(task.id)?.map(|row| row.plan.revision),
        ))
    })?;
    let branch = |name: &str, recorded: &CommitId, now: Option<CommitId>| {
        let moved = now.as_ref() != Some(recorded);
        RefStatus { name: name.to_owned(), recorded: recorded.clone(), now, moved }
    };
    let [base_now, head_now] = git.resolve_all([&task.base_ref, &task.head_ref])?;
    let base = branch(&task.base_ref, &task.base_commit_id, base_now);
    let head = branch(&task.head_ref, &task.head_commit_id, head_now);
    let commits = match &head.now {
        Some(now) => Some(count(git, &task.base_commit_id, now, &ledger)?),
        None => None,
    };
    let (review, review_unknown) = if task.state.is_closed() || approved.is_none() {
        (None, None)
    } else {
        let status = Reading::of(repository, store, task).and_then(|reading| {
            reading.known("status", &(), |loaded| review_status(&loaded.review))
        });
        match status {
            Ok(status) => (Some(status), None),
            Err(error) => (None, Some(Error::from(error).chain())),
        }
    };
    let n_blockers = review.as_ref().map(|review| review.blockers.len());
    let next = next(repository, store, task, n_blockers)?;
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
        plan_revisions: newest.map(|newest| PlanRevisions { newest, approved }),
        review,
        review_unknown,
        next,
    })
}

fn review_status(review: &Review) -> ReviewStatus {
    let mut segments = SegmentCounts::default();
    let mut choices = Vec::new();
    for (segment, placed) in review.inputs.link.segments.iter().zip(&review.placed) {
        segments.total += 1;
        let choice: Option<(&'static str, _)> = match &placed.place {
            Place::Item(item) if placed.assigned => {
                segments.assigned += 1;
                Some(("assigned", Some(item.clone())))
            }
            Place::Item(_) => None,
            Place::Ambiguous => {
                segments.ambiguous += 1;
                None
            }
            Place::Unplanned => {
                segments.unplanned += 1;
                None
            }
            Place::Accepted => {
                segments.accepted += 1;
                Some(("accepted", None))
            }
        };
        if let Some((choice, item)) = choice {
            choices.push(ChoiceStatus {
                segment: segment.id,
                key: segment.key.clone(),
                choice: choice.into(),
                item,
            });
        }
    }
    let items = review.items.iter().map(|state| ItemStatus {
        item: state.item.clone(),
        title: review
            .inputs
            .plan
            .item(&state.item)
            .map_or_else(String::new, |item| item.title.clone()),
        approval: state.state.as_str().into(),
        tests: match state.tests {
            Tests::Passed { .. } => "passed",
            Tests::Failed { .. } => "failed",
            Tests::NotRun { .. } => "not run",
            Tests::OutOfDate { .. } => "out of date",
            Tests::NoneDefined => "none defined",
        }
        .into(),
    });
    let blockers = review.blockers.iter().map(|blocker| BlockerStatus {
        code: blocker.code.as_str().into(),
        words: blocker.words.clone(),
    });
    ReviewStatus { items: items.collect(), segments, choices, blockers: blockers.collect() }
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
    let plan = match task.plan_revisions {
        None => "none yet".to_owned(),
        Some(PlanRevisions { newest, approved: None }) => format!("r{newest}, not approved"),
        Some(PlanRevisions { newest, approved: Some(approved) }) if newest == approved => {
            format!("r{newest}, approved")
        }
        Some(PlanRevisions { newest, approved: Some(approved) }) => {
            format!("r{approved}, approved; r{newest} waits for approval")
        }
    };
    out.line(format!("  plan     {plan}"));
    if let Some(error) = &task.review_unknown {
        let error = out.paint(Style::Error, &plain_line(error));
        out.line(format!("  review   unknown: {error}"));
    }
    if let Some(review) = &task.review {
        tell_review(context, review);
    }
    if let Some(next) = &task.next {
        out.line(format!("  next     {}", out.paint(Style::Accent, next)));
    }
}

fn tell_review(context: &Context, review: &ReviewStatus) {
    let out = &context.out;
    let n_approved = review.items.iter().filter(|item| item.approval == "approved").count();
    out.line(format!("  review   {n_approved} of {} approved", review.items.len()));
    let rows: Vec<_> = review
        .items
        .iter()
        .map(|item| {
            let mark = match &*item.approval {
                "approved" => "✓",
                "stale" => "!",
                _ => "–",
            };
            let tests = format!("tests {}", item.tests);
            let approval = format!("{mark} {}", item.approval);
            [item.item.to_string(), approval, tests, plain_line(&item.title)]
        })
        .collect();
    for line in columns(&rows) {
        out.line(format!("           {line}"));
    }
    let counts = [
        ("ambiguous", review.segments.ambiguous),
        ("unplanned", review.segments.unplanned),
        ("accepted", review.segments.accepted),
        ("assigned", review.segments.assigned),
    ];
    let counts = counts.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{n} {word}"));
    let counts: Vec<_> = counts.collect();
    if !counts.is_empty() {
        out.line(format!("  changes  {}", counts.join(", ")));
    }
    for (n, blocker) in review.blockers.iter().enumerate() {
        let word = if n == 0 { "blockers" } else { "" };
        out.line(format!("  {word:<9}{}", plain_line(&blocker.words)));
    }
}
