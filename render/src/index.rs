//! The index of the page: everything but code.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::CommitId;
use codeboost_schema::link::{Link, Row, Tag};
use serde_json::{Value, json};

use crate::model::{AiReview, Approval, Forge, NoteKind, Review, Target, Tests};
use crate::rows::Source;
use crate::{markdown, text, wire};

fn encode(bytes: &RepoBytes) -> String {
    text::encode(bytes.as_bytes())
}

/// The commits that segments name, in order of their ids.
pub(crate) fn commits(link: &Link) -> BTreeMap<&CommitId, usize> {
    let mut out: BTreeMap<&CommitId, usize> =
        link.segments.iter().flat_map(|segment| &segment.commits).map(|id| (id, 0)).collect();
    for (n, place) in out.values_mut().enumerate() {
        *place = n;
    }
    out
}

/// Gathers the index. `notices` are those that drawing adds; `whole` says per file whether its
/// unchanged lines are in the page, and `parts` per row where its parts begin.
pub(crate) fn index<'a>(
    review: &'a Review,
    source: &Source<'a>,
    notices: Vec<String>,
    whole: &[bool],
    parts: Vec<Vec<wire::Place>>,
) -> wire::Index<'a> {
    let link = &review.link;
    let mut end = 0;
    let files = link
        .files
        .iter()
        .enumerate()
        .map(|(n, file)| {
            let segments = source.by_file[n];
            end += u32::try_from(segments.len()).unwrap_or(u32::MAX);
            wire::FileEntry {
                path: encode(&file.path),
                old_path: file.old_path.as_ref().filter(|old| **old != file.path).map(encode),
                status: file.status,
                end,
                generated: source.is_generated(n),
                whole: whole.get(n).copied().unwrap_or(false),
            }
        })
        .collect();
    wire::Index {
        version: 1,
        generator: &review.generator,
        rendered_at: &review.rendered_at,
        repository: &review.repository,
        forge: match review.forge {
            Forge::Local => "local",
            Forge::GitHub => "github",
        },
        issue: wire::Issue {
            number: review.issue.number,
            title: &review.issue.title,
            body: review.issue.body.as_deref().map(markdown::tree),
            author: review.issue.author.as_deref(),
            pull_request: review.issue.pull_request.as_deref(),
        },
        revision: review.plan.revision,
        summary: &review.plan.summary,
        questions: &review.plan.questions,
        base: &link.base,
        head: &link.head,
        renames_skipped: link.diff.renames_skipped,
        items: items(review),
        rows: &link.rows,
        files,
        n_segments: u32::try_from(link.segments.len()).unwrap_or(u32::MAX),
        choices: review
            .choices
            .iter()
            .map(|choice| {
                json!({"segment": choice.segment, "key": choice.key, "item": choice.item, "by": choice.by})
            })
            .collect(),
        acknowledgements: review
            .acknowledgements
            .iter()
            .map(|one| (one.segment, one.tag.as_str()))
            .collect(),
        notes: review
            .notes
            .iter()
            .map(|note| {
                json!({
                    "id": note.id,
                    "kind": match note.kind {
                        NoteKind::Question => "question",
                        NoteKind::Request => "request",
                        NoteKind::Sent => "sent",
                    },
                    "item": note.item,
                    "segment": note.segment,
                    "lines": note.lines,
                    "text": markdown::tree(&note.text),
                    "by": note.by,
                    "answer": note.answer.as_deref().map(markdown::tree),
                    "outdated": note.outdated,
                })
            })
            .collect(),
        problems: review
            .problems
            .iter()
            .map(|one| {
                json!({"id": one.id, "item": one.item, "state": one.state,
                       "text": markdown::tree(&one.text), "source": one.source})
            })
            .collect(),
        findings: review
            .findings
            .iter()
            .map(|one| {
                json!({"id": one.id, "subject": one.subject, "state": one.state,
                       "location": one.location, "text": markdown::tree(&one.text)})
            })
            .collect(),
        blockers: review
            .blockers
            .iter()
            .map(|one| {
                let target = match &one.target {
                    None => Value::Null,
                    Some(Target::Row(row)) => json!({"row": row}),
                    Some(Target::Segment(segment)) => json!({"segment": segment}),
                    Some(Target::Notes(item)) => json!({"notes": item}),
                };
                json!({"code": one.code, "words": one.words, "target": target})
            })
            .collect(),
        task: review.task.as_ref().map(|task| {
            json!({"state": task.state, "headline": task.headline, "actions": task.actions,
                   "cause": task.cause})
        }),
        merge_steps: review
            .merge_steps
            .iter()
            .map(|step| {
                json!({"name": step.name, "state": step.state, "seconds": step.seconds,
                       "detail": step.detail})
            })
            .collect(),
        reviewers: &review.reviewers,
        read_only: review.read_only.as_deref(),
        notices: review.notices.iter().cloned().chain(notices).collect(),
        segment_rows: segment_rows(source),
        must_acknowledge: grouped(link.segments.iter().filter_map(|segment| {
            let tags: Vec<&'static str> = segment
                .tags
                .iter()
                .filter(|tag| tag.must_be_acknowledged())
                .map(Tag::name)
                .collect();
            (!tags.is_empty()).then_some((segment.id, tags))
        })),
        ambiguous_owners: grouped(
            link.segments
                .iter()
                .filter(|segment| segment.row == Row::Ambiguous)
                .map(|segment| (segment.id, &segment.owners[..])),
        ),
        commits: source.commits.keys().map(|id| commit(review, id)).collect(),
        most: (0..).zip(&link.rows).map(|(row, _)| source.most(row)).collect(),
        parts,
    }
}

/// The row of each segment: place and how many in a row, alternating.
fn segment_rows(source: &Source<'_>) -> Vec<u32> {
    source
        .row_of
        .chunk_by(|a, b| a == b)
        .flat_map(|run| [run[0], u32::try_from(run.len()).unwrap_or(u32::MAX)])
        .collect()
}

/// Segments by what they share, in the order in which that appears.
fn grouped<T: Eq + Hash + Clone>(all: impl Iterator<Item = (u32, T)>) -> wire::Grouped<T> {
    let mut places: HashMap<T, (usize, u32)> = HashMap::new();
    let mut out: wire::Grouped<T> = Vec::new();
    for (id, shared) in all {
        let (place, last) = places.entry(shared.clone()).or_insert_with(|| {
            out.push((shared, Vec::new()));
            (out.len() - 1, 0)
        });
        out[*place].1.push(id - *last);
        *last = id;
    }
    out
}

fn items(review: &Review) -> Vec<wire::ItemEntry<'_>> {
    review
        .plan
        .items
        .iter()
        .map(|plan| {
            let recorded = review.items.iter().find(|one| one.item == plan.id);
            let (approval, reasons, since) = match recorded.map(|one| &one.approval) {
                Some(Approval::Approved) => ("approved", &[][..], None),
                Some(Approval::Stale { reasons, since }) => {
                    ("stale", &reasons[..], Some(since.len()))
                }
                Some(Approval::Unreviewed) | None => ("unreviewed", &[][..], None),
            };
            wire::ItemEntry {
                plan,
                fingerprint: recorded.map(|one| &one.fingerprint),
                approval,
                reasons: reasons
                    .iter()
                    .map(|one| wire::Reason {
                        reason: &one.reason,
                        words: &one.words,
                        before: one.before.as_ref().map(encode),
                        after: one.after.as_ref().map(encode),
                    })
                    .collect(),
                since,
                approved_by: recorded.map_or(&[], |one| &one.approved_by),
                tests: recorded.map_or(Value::Null, |one| tests(&one.tests)),
                ai_review: recorded.map_or(Value::Null, |one| match one.ai_review {
                    AiReview::Open(n) => json!({"state": "open", "n": n}),
                    AiReview::NoneOpen => json!({"state": "none open"}),
                    AiReview::NotRun => json!({"state": "not run"}),
                }),
            }
        })
        .collect()
}

fn tests(tests: &Tests) -> Value {
    match tests {
        Tests::Passed { total, place } => {
            json!({"state": "passed", "total": total, "place": place})
        }
        Tests::Failed { failed, total, output } => {
            json!({"state": "failed", "failed": failed, "total": total, "output": encode(output)})
        }
        Tests::NotRun { total } => json!({"state": "not run", "total": total}),
        Tests::OutOfDate { total } => json!({"state": "out of date", "total": total}),
        Tests::NoneDefined => json!({"state": "none defined"}),
    }
}

fn commit<'a>(review: &'a Review, id: &'a CommitId) -> wire::CommitEntry<'a> {
    let known = review.commits.get(id);
    wire::CommitEntry {
        id: &id.as_str()[..12],
        subject: known.map(|one| encode(&one.subject)),
        author: known.map(|one| encode(&one.author)),
        item: known.and_then(|one| one.item.as_ref()),
        was: known.and_then(|one| one.was.as_ref()),
        adopted_by: known.and_then(|one| one.adopted_by.as_deref()),
    }
}
