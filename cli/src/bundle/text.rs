//! The same review for terminals and for programs.

use std::collections::BTreeMap;

use codeboost_schema::bytes::{RepoBytes, put, put_opt};
use codeboost_schema::form::ApprovalState;
use codeboost_schema::ids::{CommitId, Fingerprint, ItemId, SegmentKey};
use codeboost_schema::link::{Attributed, Body, InScope, Link, Row, RowSummary, Scope, Segment};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::approval::choice::{Place, Placed};
use crate::approval::freshness::Reason;
use crate::gate::{Blocker, Target, Tests};
use crate::output::{Output, Style, counted, plain, plain_line};
use crate::review::{Explained, ItemState, Review, by, is_pending};
use crate::store::NoteState;

/// Which part of a review is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Rows, counts and blockers, without code.
    Overview,
    /// One item with all that stands on its row, assigned changes included.
    Item(ItemId),
    /// The ambiguous changes.
    Ambiguous,
    /// The unplanned changes.
    Unplanned,
    /// The changes that were accepted as they are.
    Accepted,
}

/// Explanations of stale items, by item.
pub type Explanations = BTreeMap<ItemId, Explained>;

/// The lines of one part of a review.
#[must_use]
pub fn lines(review: &Review, explained: &Explanations, part: &Part, out: &Output) -> Vec<String> {
    match part {
        Part::Overview => overview(review, explained, out),
        Part::Item(item) => one_item(review, explained, item, out),
        Part::Ambiguous => place_lines(review, &Place::Ambiguous, "Ambiguous", out),
        Part::Unplanned => place_lines(review, &Place::Unplanned, "Unplanned", out),
        Part::Accepted => place_lines(review, &Place::Accepted, "Accepted", out),
    }
}

fn overview(review: &Review, explained: &Explanations, out: &Output) -> Vec<String> {
    let inputs = &review.inputs;
    let approved = review.items.iter().filter(|i| i.state == ApprovalState::Approved).count();
    let mut lines = vec![
        out.paint(
            Style::Strong,
            &format!(
                "#{} {} · r{} · {}",
                inputs.task.issue,
                plain_line(&inputs.task.title),
                inputs.plan.revision,
                inputs.task.state
            ),
        ),
        format!("base {:.12} · head {:.12}", inputs.link.base, inputs.link.head),
        format!("{approved} of {} approved", review.items.len()),
        String::new(),
    ];
    for state in &review.items {
        lines.extend(item_head(review, explained, state, out));
    }
    for (place, name) in [
        (Place::Ambiguous, "Ambiguous"),
        (Place::Unplanned, "Unplanned"),
        (Place::Accepted, "Accepted"),
    ] {
        let n = at(review, &place).count();
        let (icon, style) = match (&place, n) {
            (_, 0) => ("–", Style::Muted),
            (Place::Unplanned, _) => ("✕", Style::Error),
            (Place::Ambiguous, _) => ("!", Style::Warning),
            (Place::Item(_) | Place::Accepted, _) => ("✓", Style::Success),
        };
        lines.push(format!("{} {name:<10} {}", out.paint(style, icon), changes(n)));
    }
    lines.push(String::new());
    if review.blockers.is_empty() {
        lines.push(out.paint(Style::Success, "Nothing blocks the merge."));
    } else {
        lines.push(out.paint(Style::Strong, &counted(review.blockers.len() as u64, "blocker")));
        lines.extend(review.blockers.iter().map(|blocker| {
            format!("  {}{}", plain_line(&blocker.words), target_words(blocker, &inputs.link))
        }));
    }
    lines
}

fn changes(n: usize) -> String {
    counted(n as u64, "change")
}

fn target_words(blocker: &Blocker, link: &Link) -> String {
    match &blocker.target {
        None => String::new(),
        Some(Target::Row(row)) => format!(" ({row})"),
        Some(Target::Notes(item)) => format!(" ({item})"),
        Some(Target::Segment(id)) => match link.segments.get(*id as usize) {
            Some(segment) => format!(" ({})", place_name(link, segment)),
            None => String::new(),
        },
    }
}

/// `src/a.rs:118` or `src/a.rs`.
fn place_name(link: &Link, segment: &Segment) -> String {
    let path = plain_line(&link.files[segment.file as usize].path.lossy());
    match &segment.body {
        Body::Text(text) => format!("{path}:{}", text.start),
        Body::File(_) => path,
    }
}

fn item_head(
    review: &Review,
    explained: &Explanations,
    state: &ItemState,
    out: &Output,
) -> Vec<String> {
    let inputs = &review.inputs;
    let title = inputs.plan.item(&state.item).map(|item| plain_line(&item.title));
    let (icon, style) = match state.state {
        ApprovalState::Approved => ("✓", Style::Success),
        ApprovalState::Stale => ("!", Style::Warning),
        ApprovalState::Unreviewed => ("○", Style::Muted),
    };
    let fresh = state.approvals.iter().filter(|(_, fresh)| *fresh).count();
    let mut word = state.state.as_str().to_owned();
    if inputs.policy.required > 1 {
        word.push_str(&format!(" ({fresh} of {} reviewers)", inputs.policy.required));
    }
    let mut lines = vec![format!(
        "{} {:<4} {}  {word}",
        out.paint(style, icon),
        state.item.as_str(),
        title.unwrap_or_default()
    )];
    let summary = row_summary(&inputs.link, &Row::Item(state.item.clone()));
    let n = review.segments_of(&state.item).len();
    let mut marks = vec![changes(n)];
    if let Some(summary) = summary {
        let segments = inputs.link.segments.iter().zip(&review.placed);
        let n_open = segments
            .filter(|(segment, placed)| {
                placed.place == Place::Ambiguous && segment.owners.contains(&state.item)
            })
            .count();
        marks.push(match summary.attributed {
            _ if n_open > 0 => format!("! part of {}", counted(n_open as u64, "ambiguous change")),
            Some(Attributed::None) => "– no changes".to_owned(),
            _ => "✓ attributed".to_owned(),
        });
        match summary.in_scope {
            Some(InScope::Out) => marks.push("✕ out of scope".to_owned()),
            Some(InScope::Ok) => marks.push("✓ in scope".to_owned()),
            Some(InScope::None) | None => {}
        }
    }
    marks.push(tests_words(&state.tests));
    let pending =
        inputs.notes.iter().filter(|note| is_pending(note) && note.item == state.item).count();
    if pending > 0 {
        marks.push(counted(pending as u64, "pending change"));
    }
    lines.push(format!("       {}", marks.join(" · ")));
    if let Some(explained) = explained.get(&state.item) {
        lines.extend(explained.reasons.iter().map(|reason| {
            let words = plain_line(&reason.to_string());
            format!("       {} {words}", out.paint(Style::Warning, "stale:"))
        }));
    }
    lines
}

fn tests_words(tests: &Tests) -> String {
    match tests {
        Tests::Passed { total, place } => format!("✓ {total}/{total} passed ({place})"),
        Tests::Failed { failed, total, .. } => format!("✕ {failed}/{total} failed"),
        Tests::NotRun { total } => format!("– {} not run", counted(u64::from(*total), "check")),
        Tests::OutOfDate { total } => {
            format!("! {} out of date", counted(u64::from(*total), "check"))
        }
        Tests::NoneDefined => "– no tests defined".to_owned(),
    }
}

fn row_summary<'a>(link: &'a Link, row: &Row) -> Option<&'a RowSummary> {
    link.rows.iter().find(|summary| summary.row == *row)
}

fn at<'a>(review: &'a Review, place: &Place) -> impl Iterator<Item = (&'a Segment, &'a Placed)> {
    let place = place.clone();
    let all = review.inputs.link.segments.iter().zip(&review.placed);
    all.filter(move |(_, placed)| placed.place == place)
}

fn one_item(review: &Review, explained: &Explanations, item: &ItemId, out: &Output) -> Vec<String> {
    let Some(state) = review.item(item) else { return Vec::new() };
    let inputs = &review.inputs;
    let mut lines = item_head(review, explained, state, out);
    if let Some(definition) = inputs.plan.item(item) {
        lines.push(format!("       {}", plain_line(&definition.intent)));
        for file in &definition.files {
            let from = file.renamed_from.as_ref();
            let from = from.map_or(String::new(), |from| format!(" from {}", plain_line(from)));
            lines.push(format!("       file {}{from}", plain_line(&file.path)));
        }
        for check in &definition.acceptance {
            lines.push(format!("       check {}", plain_line(&check.text)));
        }
        if !definition.depends_on.is_empty() {
            let ids: Vec<_> = definition.depends_on.iter().map(ItemId::as_str).collect();
            lines.push(format!("       depends on {}", ids.join(", ")));
        }
    }
    for (row, fresh) in &state.approvals {
        let word = if *fresh { "approved" } else { "approved once" };
        lines.push(format!(
            "       {word} by {}",
            plain_line(&by(&row.made.reviewer, &row.made.at))
        ));
    }
    if let Some(explained) = explained.get(item) {
        lines.push(String::new());
        lines.push(out.paint(Style::Strong, "Since the approval"));
        for reason in &explained.reasons {
            lines.extend(reason_lines(reason, out));
        }
        for file in &explained.since {
            lines.push(format!("  {}", plain_line(&file.path.lossy())));
            for line in &file.lines {
                let text = format!(
                    "  {} {}{}",
                    line.status.as_char(),
                    line.op.as_str(),
                    one_line(line.text.as_bytes())
                );
                lines.push(match line.status.as_char() {
                    '-' => out.paint(Style::Error, &text),
                    '+' => out.paint(Style::Success, &text),
                    _ => text,
                });
            }
        }
    }
    lines.push(String::new());
    lines.push(out.paint(Style::Strong, "Changes"));
    let segments: Vec<_> = at(review, &Place::Item(item.clone())).collect();
    lines.extend(segment_lines(review, &segments, out));
    let notes: Vec<_> = inputs
        .notes
        .iter()
        .filter(|note| note.item == *item && note.state != NoteState::Withdrawn)
        .collect();
    if !notes.is_empty() {
        lines.push(String::new());
        lines.push(out.paint(Style::Strong, "Questions and change requests"));
        for note in notes {
            let kind = if is_pending(note) { "pending change" } else { "note" };
            lines.push(format!(
                "  {kind} {} by {}",
                note.made.decision,
                plain_line(&by(&note.made.reviewer, &note.made.at))
            ));
            lines.extend(note.text.lines().map(|line| format!("    {}", plain(line))));
            if let Some(answer) = &note.answer {
                lines.push("  answer".to_owned());
                lines.extend(answer.lines().map(|line| format!("    {}", plain(line))));
            }
        }
    }
    lines
}

fn reason_lines(reason: &Reason, out: &Output) -> Vec<String> {
    let mut lines =
        vec![format!("  {}", out.paint(Style::Warning, &plain_line(&reason.to_string())))];
    // The lines themselves follow, compared.
    let compared = matches!(reason.word.as_str(), "code" | "assigned");
    for (label, bytes) in [("was", &reason.before), ("is", &reason.after)] {
        if let Some(bytes) = bytes.as_ref().filter(|_| !compared) {
            for line in bytes.lossy().lines() {
                lines.push(format!("    {label:<3} {}", plain(line)));
            }
        }
    }
    lines
}

fn place_lines(review: &Review, place: &Place, name: &str, out: &Output) -> Vec<String> {
    let segments: Vec<_> = at(review, place).collect();
    let mut lines =
        vec![format!("{} · {}", out.paint(Style::Strong, name), changes(segments.len()))];
    lines.extend(segment_lines(review, &segments, out));
    lines
}

fn segment_lines(review: &Review, segments: &[(&Segment, &Placed)], out: &Output) -> Vec<String> {
    let link = &review.inputs.link;
    let mut lines = Vec::new();
    if segments.is_empty() {
        lines.push("  none".to_owned());
    }
    for (segment, placed) in segments {
        let file = &link.files[segment.file as usize];
        let mut head = format!("  {} {}", change_name(segment), place_name(link, segment));
        if let Some(old) = file.old_path.as_ref().filter(|old| **old != file.path) {
            head.push_str(&format!(" (from {})", plain_line(&old.lossy())));
        }
        match &segment.body {
            Body::Text(text) if !text.context.is_empty() => {
                head.push_str(&format!("  {}", plain_line(&text.context.lossy())));
            }
            Body::Text(_) => {}
            Body::File(change) => head.push_str(&format!("  {change}")),
        }
        lines.push(out.paint(Style::Accent, &head));
        lines
            .extend(facts(review, segment, placed).into_iter().map(|fact| format!("      {fact}")));
        match &segment.body {
            Body::Text(text) => {
                for line in text.text.as_bytes().split_inclusive(|b| *b == b'\n') {
                    let text = format!("    {}{}", text.op.as_str(), one_line(line));
                    let style =
                        if text.starts_with("    +") { Style::Success } else { Style::Error };
                    lines.push(out.paint(style, &text));
                }
            }
            Body::File(_) => {
                for (name, side) in [("old", &file.old), ("new", &file.new)] {
                    let words = side.as_ref().map_or_else(
                        || "nothing".to_owned(),
                        |side| {
                            let target = side.target.as_ref().map_or(String::new(), |target| {
                                format!(" -> {}", plain_line(&target.lossy()))
                            });
                            format!("{} {}{target}", side.mode, side.oid)
                        },
                    );
                    lines.push(format!("    {name} {words}"));
                }
            }
        }
    }
    lines
}

/// The name by which commands take a segment: its id and the beginning of its key.
#[must_use]
pub fn change_name(segment: &Segment) -> String {
    format!("{}.{}", segment.id, &segment.key.hex()[..8])
}

/// What must be known about a segment beside its text.
fn facts(review: &Review, segment: &Segment, placed: &Placed) -> Vec<String> {
    let mut facts = Vec::new();
    if placed.assigned {
        facts.push("assigned to this item".to_owned());
    }
    if placed.scope == Scope::Out {
        let owners: Vec<_> = placed.scope_owner.iter().map(ItemId::as_str).collect();
        facts.push(if owners.is_empty() {
            "✕ out of scope: no item declares this file".to_owned()
        } else {
            format!("✕ out of scope: {} declares this file", owners.join(", "))
        });
    }
    if !segment.shared_file.is_empty() {
        let others: Vec<_> = segment.shared_file.iter().map(ItemId::as_str).collect();
        facts.push(format!("shared file: {}", others.join(", ")));
    }
    if segment.row == Row::Ambiguous {
        let owners: Vec<_> = segment.owners.iter().map(ItemId::as_str).collect();
        facts.push(format!("made or touched by {}", owners.join(", ")));
    }
    let missing = review.unacknowledged(segment.id);
    for tag in placed.tags_to_acknowledge(segment) {
        facts.push(if missing.contains(&tag) {
            format!("! {tag}: to be acknowledged")
        } else {
            format!("{tag}: acknowledged")
        });
    }
    for tag in segment.tags.iter().filter(|tag| !tag.must_be_acknowledged()) {
        facts.push(tag.name().to_owned());
    }
    facts
}

/// A line with its terminator, for a terminal: everything that can't be seen is made visible.
fn one_line(line: &[u8]) -> String {
    let (text, ended) = match line.strip_suffix(b"\n") {
        Some(text) => (text, true),
        None => (line, false),
    };
    let shown = plain(&String::from_utf8_lossy(text)).into_owned();
    if ended { shown } else { format!("{shown} ⟨no newline at the end⟩") }
}

/// A review for programs.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    schema_version: u32,
    issue: u64,
    title: &'a str,
    state: &'a str,
    revision: u64,
    base: &'a CommitId,
    head: &'a CommitId,
    approved: usize,
    items: Vec<ItemReport<'a>>,
    segments: Vec<SegmentReport<'a>>,
    blockers: Vec<BlockerReport<'a>>,
}

#[derive(Debug, Serialize)]
struct ItemReport<'a> {
    item: &'a ItemId,
    title: &'a str,
    approval: &'static str,
    approved_by: Vec<String>,
    fingerprint: Option<&'a Fingerprint>,
    reasons: Vec<ReasonReport>,
    tests: String,
    segments: Vec<u32>,
    pending_requests: usize,
}

#[derive(Debug)]
struct ReasonReport {
    reason: &'static str,
    words: String,
    before: Option<RepoBytes>,
    after: Option<RepoBytes>,
}

impl Serialize for ReasonReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ReasonReport", 4)?;
        out.serialize_field("reason", self.reason)?;
        out.serialize_field("words", &self.words)?;
        put_opt(&mut out, "before", "before_b64", self.before.as_ref())?;
        put_opt(&mut out, "after", "after_b64", self.after.as_ref())?;
        out.end()
    }
}

#[derive(Debug)]
struct SegmentReport<'a> {
    segment: &'a Segment,
    path: &'a RepoBytes,
    place: String,
    assigned: bool,
    scope: Scope,
    unacknowledged: Vec<&'static str>,
    key: &'a SegmentKey,
}

impl Serialize for SegmentReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SegmentReport", 10)?;
        out.serialize_field("segment", &self.segment.id)?;
        put(&mut out, "path", "path_b64", self.path)?;
        out.serialize_field("row", &self.segment.row)?;
        out.serialize_field("place", &self.place)?;
        out.serialize_field("assigned", &self.assigned)?;
        out.serialize_field("scope", &self.scope)?;
        out.serialize_field("unacknowledged", &self.unacknowledged)?;
        out.serialize_field("key", self.key)?;
        match &self.segment.body {
            Body::Text(text) => {
                out.serialize_field("op", &text.op)?;
                put(&mut out, "text", "text_b64", &text.text)?;
            }
            Body::File(change) => out.serialize_field("change", change)?,
        }
        out.end()
    }
}

#[derive(Debug, Serialize)]
struct BlockerReport<'a> {
    code: &'static str,
    words: &'a str,
}

/// The review for programs, whole.
#[must_use]
pub fn report<'a>(review: &'a Review, explained: &Explanations) -> Report<'a> {
    let inputs = &review.inputs;
    let items = review.items.iter().map(|state| ItemReport {
        item: &state.item,
        title: inputs.plan.item(&state.item).map_or("", |item| &item.title),
        approval: state.state.as_str(),
        approved_by: state
            .approvals
            .iter()
            .map(|(row, _)| by(&row.made.reviewer, &row.made.at))
            .collect(),
        fingerprint: review.now.fingerprints.get(&state.item),
        reasons: explained
            .get(&state.item)
            .map(|explained| {
                let reasons = explained.reasons.iter().map(|reason| ReasonReport {
                    reason: reason.word.as_str(),
                    words: reason.to_string(),
                    before: reason.before.clone(),
                    after: reason.after.clone(),
                });
                reasons.collect()
            })
            .unwrap_or_default(),
        tests: tests_words(&state.tests),
        segments: review.segments_of(&state.item),
        pending_requests: inputs
            .notes
            .iter()
            .filter(|note| is_pending(note) && note.item == state.item)
            .count(),
    });
    let segments =
        inputs.link.segments.iter().zip(&review.placed).map(|(segment, placed)| SegmentReport {
            path: &inputs.link.files[segment.file as usize].path,
            place: match &placed.place {
                Place::Item(item) => item.to_string(),
                Place::Ambiguous => "ambiguous".to_owned(),
                Place::Unplanned => "unplanned".to_owned(),
                Place::Accepted => "accepted".to_owned(),
            },
            assigned: placed.assigned,
            scope: placed.scope,
            unacknowledged: review.unacknowledged(segment.id),
            key: &segment.key,
            segment,
        });
    Report {
        schema_version: 1,
        issue: inputs.task.issue,
        title: &inputs.task.title,
        state: inputs.task.state.word(),
        revision: inputs.plan.revision,
        base: &inputs.link.base,
        head: &inputs.link.head,
        approved: review.items.iter().filter(|i| i.state == ApprovalState::Approved).count(),
        items: items.collect(),
        segments: segments.collect(),
        blockers: review
            .blockers
            .iter()
            .map(|blocker| BlockerReport { code: blocker.code.as_str(), words: &blocker.words })
            .collect(),
    }
}
