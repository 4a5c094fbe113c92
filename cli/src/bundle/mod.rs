//! Gathers what one review page shows.
//!
//! The judged review, the contents of both sides and the people's words become the page model of
//! `codeboost_render`, which draws it. Nothing here decides anything, and nothing of it depends on
//! the folder, the clock or the machine: the same records and objects give the same model.

pub mod cache;
pub mod plan;
pub mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use codeboost_render::model;
use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::ledger::{Ledger, Origin};
use codeboost_schema::link::{Link, Side, SideKind};
use codeboost_schema::plan::Plan;
use jiff::Timestamp;

use crate::approval::choice::Choice;
use crate::approval::freshness::{Reason, file_words, meta_words};
use crate::approval::since::{SinceFile, SinceLine};
use crate::config::ForgeKind;
use crate::context::time_text;
use crate::gate::{self, Blocker, Target, Tests};
use crate::git::read::{Objects, ReadError};
use crate::review::{Explained, ItemState, Review, by};
use crate::store::{
    LedgerRow, MergeRunRow, NoteKind, NoteRow, NoteState, ProblemRow, RoundRow, StepState,
};

/// Name and version of the program that makes a page.
pub const GENERATOR: &str = concat!("codeboost ", env!("CARGO_PKG_VERSION"));

/// What a page shows beside the judged review.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// Name of the repository, for people.
    pub repository: String,
    /// Where the merge happens.
    pub forge: ForgeKind,
    /// The issue's text; `None` when unknown.
    pub body: Option<String>,
    /// Who wrote the issue; `None` when unknown.
    pub author: Option<String>,
    /// Who made each commit, with who vouched for it.
    pub ledger: &'a [LedgerRow],
    /// Runs of the merge sequence, oldest first.
    pub merge_runs: &'a [MergeRunRow],
    /// Why nothing can be decided with this page.
    pub read_only: Option<String>,
    /// RFC 3339 UTC.
    pub rendered_at: String,
}

/// The page of a task.
///
/// `explained`: why each stale item is stale.
///
/// # Errors
/// [`ReadError`] when a commit or content can't be read.
pub fn page_of_task(
    review: &Review,
    explained: &BTreeMap<codeboost_schema::ids::ItemId, Explained>,
    around: &Surroundings<'_>,
    objects: &Objects,
) -> Result<model::Review, ReadError> {
    let inputs = &review.inputs;
    let ledger: BTreeMap<_, _> = around.ledger.iter().map(|row| (&row.commit_id, row)).collect();
    let commits = commits(&inputs.link, objects, |id| {
        let row = ledger.get(id)?;
        let adopted = row.entry.origin == Origin::Adopted;
        Some(Made {
            item: row.entry.item.clone(),
            origin: row.entry.origin,
            was: row.entry.was.clone(),
            adopted_by: adopted.then(|| format!("{}, {}", row.recorded_by, day(&row.recorded_at))),
        })
    })?;
    let waits = inputs.task.state.waits_for_person();
    Ok(model::Review {
        repository: around.repository.clone(),
        forge: match around.forge {
            ForgeKind::Local => model::Forge::Local,
            ForgeKind::Github => model::Forge::GitHub,
        },
        issue: model::Issue {
            number: inputs.task.issue,
            title: inputs.task.title.clone(),
            body: around.body.clone(),
            author: around.author.clone(),
            pull_request: None,
        },
        plan: inputs.plan.clone(),
        contents: contents(&inputs.link, objects)?,
        commits,
        items: review.items.iter().map(|state| item(review, state, explained)).collect(),
        choices: choices(review),
        acknowledgements: acknowledgements(review),
        notes: inputs.notes.iter().filter_map(|row| note(review, row)).collect(),
        problems: inputs.rounds.problems.iter().map(problem).collect(),
        findings: Vec::new(),
        blockers: review.blockers.iter().map(blocker).collect(),
        task: Some(model::Task {
            state: inputs.task.state.word().to_owned(),
            headline: waits
                .then(|| format!("The task {}: {}", inputs.task.state, inputs.task.reason)),
            actions: Vec::new(),
            cause: waits.then(|| inputs.task.reason.clone()),
        }),
        merge_steps: around.merge_runs.last().map(merge_steps).unwrap_or_default(),
        reviewers: inputs.policy.words(),
        read_only: around.read_only.clone(),
        notices: notices(&inputs.link),
        rendered_at: around.rendered_at.clone(),
        generator: GENERATOR.to_owned(),
        link: inputs.link.clone(),
    })
}

/// The read-only page of a link and a plan alone.
///
/// `ledger`: only for the words about commits. Approvals need a task; without one each item is
/// unreviewed and has no fingerprint that anything could be bound to, so the fingerprint is that
/// of nothing.
///
/// # Errors
/// [`ReadError`] when a commit or content can't be read.
pub fn page_of_files(
    link: &Link,
    plan: &Plan,
    ledger: &Ledger,
    objects: &Objects,
    read_only: String,
    source_date: Option<Timestamp>,
) -> Result<model::Review, ReadError> {
    let commits = commits(link, objects, |id| {
        ledger.commits.get(id).map(|entry| Made {
            item: entry.item.clone(),
            origin: entry.origin,
            was: entry.was.clone(),
            adopted_by: None,
        })
    })?;
    // The newest input is the head itself.
    let head = objects.commit(&link.head)?;
    let newest = Timestamp::from_second(head.committer_seconds).unwrap_or_default();
    Ok(model::Review {
        repository: String::new(),
        forge: model::Forge::Local,
        issue: model::Issue {
            number: plan.issue,
            title: String::new(),
            body: None,
            author: None,
            pull_request: None,
        },
        plan: plan.clone(),
        contents: contents(link, objects)?,
        commits,
        items: plan
            .items
            .iter()
            .map(|item| model::ItemReview {
                item: item.id.clone(),
                fingerprint: codeboost_schema::ids::Digest::of(b""),
                approval: model::Approval::Unreviewed,
                approved_by: Vec::new(),
                tests: match gate::tests(item, &[], &link.head, |_| false) {
                    Tests::NoneDefined => model::Tests::NoneDefined,
                    other => tests(&other),
                },
                ai_review: model::AiReview::NotRun,
            })
            .collect(),
        choices: Vec::new(),
        acknowledgements: Vec::new(),
        notes: Vec::new(),
        problems: Vec::new(),
        findings: Vec::new(),
        blockers: Vec::new(),
        task: None,
        merge_steps: Vec::new(),
        reviewers: Vec::new(),
        read_only: Some(read_only),
        notices: notices(link),
        rendered_at: time_text(source_date.unwrap_or(newest)),
        generator: GENERATOR.to_owned(),
        link: link.clone(),
    })
}

/// What the ledger says about a commit.
struct Made {
    item: Option<codeboost_schema::ids::ItemId>,
    origin: Origin,
    was: Option<codeboost_schema::ids::ItemId>,
    adopted_by: Option<String>,
}

fn commits(
    link: &Link,
    objects: &Objects,
    made: impl Fn(&CommitId) -> Option<Made>,
) -> Result<BTreeMap<CommitId, model::Commit>, ReadError> {
    let mut commits = BTreeMap::new();
    for id in link.segments.iter().flat_map(|segment| &segment.commits) {
        if commits.contains_key(id) {
            continue;
        }
        let text = objects.commit(id)?;
        let made = made(id);
        let (item, origin, was, adopted_by) = match made {
            Some(made) => (made.item, Some(made.origin), made.was, made.adopted_by),
            None => (None, None, None, None),
        };
        commits.insert(
            id.clone(),
            model::Commit {
                subject: text.subject().into(),
                author: text.author_name.as_slice().into(),
                authored_at: time_text(
                    Timestamp::from_second(text.author_seconds).unwrap_or_default(),
                ),
                item,
                origin,
                was,
                adopted_by,
            },
        );
    }
    Ok(commits)
}

fn contents(link: &Link, objects: &Objects) -> Result<Vec<model::Contents>, ReadError> {
    let read = |side: &Option<Side>| -> Result<Option<Arc<[u8]>>, ReadError> {
        match side {
            // What a link points to stands in the link itself.
            Some(side) if side.kind == SideKind::Blob => Ok(Some(objects.blob(&side.oid)?.into())),
            Some(_) | None => Ok(None),
        }
    };
    link.files
        .iter()
        .map(|file| {
            Ok(model::Contents { old: read(&file.old)?, new: read(&file.new)?, left_out: None })
        })
        .collect()
}

fn notices(link: &Link) -> Vec<String> {
    let mut notices = Vec::new();
    if link.diff.renames_skipped {
        notices.push(format!(
            "More than {} files were added and removed: similar ones were not paired as renames.",
            link.diff.rename_limit
        ));
    }
    notices
}

fn item(
    review: &Review,
    state: &ItemState,
    explained: &BTreeMap<codeboost_schema::ids::ItemId, Explained>,
) -> model::ItemReview {
    use codeboost_schema::form::ApprovalState;
    let approval = match (state.state, explained.get(&state.item)) {
        (ApprovalState::Unreviewed, _) => model::Approval::Unreviewed,
        (ApprovalState::Approved, _) => model::Approval::Approved,
        (ApprovalState::Stale, explained) => model::Approval::Stale {
            reasons: explained
                .map(|explained| explained.reasons.iter().map(stale_reason).collect())
                .unwrap_or_default(),
            since: explained
                .map(|explained| explained.since.iter().map(since_file).collect())
                .unwrap_or_default(),
        },
    };
    let fingerprint = review.now.fingerprints.get(&state.item).cloned();
    model::ItemReview {
        item: state.item.clone(),
        fingerprint: fingerprint.unwrap_or_else(|| codeboost_schema::ids::Digest::of(b"")),
        approval,
        approved_by: state
            .approvals
            .iter()
            .map(|(row, _)| by(&row.made.reviewer, &row.made.at))
            .collect(),
        tests: tests(&state.tests),
        ai_review: ai_review(review, &state.item),
    }
}

/// What the last round says of an item; nothing when it looked at another head.
fn ai_review(review: &Review, item: &ItemId) -> model::AiReview {
    let inputs = &review.inputs;
    let is_now = |round: &RoundRow| round.head_commit_id == inputs.link.head;
    match (review.open_problems(item), inputs.rounds.rounds.last()) {
        (0, Some(round)) if is_now(round) => model::AiReview::NoneOpen,
        (0, _) => model::AiReview::NotRun,
        (n, _) => model::AiReview::Open(n),
    }
}

fn problem(row: &ProblemRow) -> model::Problem {
    model::Problem {
        id: row.id.to_string(),
        item: row.item.clone(),
        state: row.state.word().to_owned(),
        text: row.text.clone(),
        source: row.source.clone(),
    }
}

fn stale_reason(reason: &Reason) -> model::StaleReason {
    model::StaleReason {
        reason: reason.word.as_str().to_owned(),
        words: reason.to_string(),
        before: reason.before.clone(),
        after: reason.after.clone(),
    }
}

fn since_file(file: &SinceFile) -> model::SinceFile {
    let words = |meta: &Option<serde_json::Value>| {
        meta.as_ref().map_or_else(|| "no file change".to_owned(), meta_words)
    };
    let paths = file.paths.as_ref().map(|(then, now)| {
        let words = |(path, old_path): &crate::approval::since::Paths| {
            let file = crate::approval::fingerprint::SnapshotFile {
                path: path.clone(),
                old_path: old_path.clone(),
                runs: Vec::new(),
                meta: None,
                meta_assigned: false,
            };
            file_words(&file).lossy().into_owned()
        };
        (words(then), words(now))
    });
    let meta = file.meta.as_ref().map(|(then, now)| (words(then), words(now)));
    model::SinceFile {
        path: file.path.clone(),
        lines: file.lines.iter().map(since_line).collect(),
        meta: match (meta, paths) {
            (Some((then, now)), Some((from, to))) => {
                Some((format!("{from}; {then}"), format!("{to}; {now}")))
            }
            (meta, paths) => meta.or(paths),
        },
    }
}

fn since_line(line: &SinceLine) -> model::SinceLine {
    model::SinceLine {
        status: line.status.as_char(),
        op: line.op.as_str().chars().next().unwrap_or('+'),
        text: line.text.clone(),
        context: line.context.clone(),
    }
}

fn tests(tests: &Tests) -> model::Tests {
    match tests {
        Tests::Passed { total, place } => {
            model::Tests::Passed { total: *total, place: place.clone() }
        }
        Tests::Failed { failed, total, output } => {
            model::Tests::Failed { failed: *failed, total: *total, output: output.clone() }
        }
        Tests::NotRun { total } => model::Tests::NotRun { total: *total },
        Tests::OutOfDate { total } => model::Tests::OutOfDate { total: *total },
        Tests::NoneDefined => model::Tests::NoneDefined,
    }
}

fn choices(review: &Review) -> Vec<model::Choice> {
    let inputs = &review.inputs;
    let rows: BTreeMap<_, _> = inputs.choices.iter().map(|row| (&row.key, row)).collect();
    let undecided =
        |row: &codeboost_schema::link::Row| !matches!(row, codeboost_schema::link::Row::Item(_));
    inputs
        .link
        .segments
        .iter()
        .filter(|segment| undecided(&segment.row))
        .filter_map(|segment| {
            let choice = review.choices.get(&segment.key)?;
            let item = match choice {
                Choice::Assigned(item) => {
                    inputs.plan.item(item)?;
                    Some(item.clone())
                }
                Choice::Accepted => None,
            };
            let row = rows.get(&segment.key)?;
            Some(model::Choice {
                segment: segment.id,
                key: segment.key.clone(),
                item,
                by: by(&row.made.reviewer, &row.made.at),
            })
        })
        .collect()
}

fn acknowledgements(review: &Review) -> Vec<model::Acknowledgement> {
    let segments = &review.inputs.link.segments;
    segments
        .iter()
        .flat_map(|segment| {
            review
                .acknowledged
                .get(&segment.key)
                .into_iter()
                .flatten()
                .map(|tag| model::Acknowledgement { segment: segment.id, tag: tag.clone() })
        })
        .collect()
}

fn note(review: &Review, row: &NoteRow) -> Option<model::Note> {
    let kind = match (row.kind, row.state) {
        (_, NoteState::Withdrawn) => return None,
        (NoteKind::Question, _) => model::NoteKind::Question,
        (NoteKind::Request, NoteState::Sent) => model::NoteKind::Sent,
        (NoteKind::Request, _) => model::NoteKind::Request,
    };
    let segments = &review.inputs.link.segments;
    let segment =
        row.key.as_ref().and_then(|key| segments.iter().find(|segment| segment.key == *key));
    Some(model::Note {
        id: row.made.decision.as_str().to_owned(),
        kind,
        item: row.item.clone(),
        segment: segment.map(|segment| segment.id),
        lines: row.lines.filter(|_| segment.is_some()),
        text: row.text.clone(),
        by: by(&row.made.reviewer, &row.made.at),
        answer: row.answer.clone(),
        outdated: row.made.head != review.inputs.link.head,
    })
}

fn blocker(blocker: &Blocker) -> model::Blocker {
    model::Blocker {
        code: blocker.code.as_str().to_owned(),
        words: blocker.words.clone(),
        target: blocker.target.as_ref().map(|target| match target {
            Target::Row(row) => model::Target::Row(row.to_string()),
            Target::Segment(id) => model::Target::Segment(*id),
            Target::Notes(item) => model::Target::Notes(item.clone()),
        }),
    }
}

fn merge_steps(run: &MergeRunRow) -> Vec<model::MergeStep> {
    run.steps
        .iter()
        .map(|step| model::MergeStep {
            name: step.step.clone(),
            state: match step.state {
                StepState::Running => "running",
                StepState::Done => "done",
                StepState::Skipped => "skipped",
                StepState::Failed => "failed",
            }
            .to_owned(),
            seconds: step.millis.map(|millis| millis / 1000),
            detail: (!step.words.is_empty()).then(|| step.words.clone()),
        })
        .collect()
}

fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}
