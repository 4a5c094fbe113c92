//! Whether an approval is still true, and if not, why.
//!
//! An approval is fresh while all of this holds:
//!
//! 1. the item's fingerprint is the approved one;
//! 2. the fingerprints of all its transitive dependencies are those that were stored with it;
//! 3. the item owns no part of an ambiguous segment that is neither assigned nor accepted;
//! 4. no merge queue has replaced the head since.
//!
//! Rule 2 compares with what was stored, so that a dependency which changed and was approved again
//! leaves its dependents stale until they are approved themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::{CommitId, Fingerprint, ItemId};
use codeboost_schema::link::{Body, Link, Op, Row};
use codeboost_schema::plan::Plan;
use serde_json::Value;

use crate::approval::choice::{Place, Placed};
use crate::approval::fingerprint::{Binding, Snapshot, SnapshotFile, snapshots};
use crate::approval::since;

/// The state of all items now.
#[derive(Debug, Clone)]
pub struct Now {
    /// What an approval of each item would cover.
    pub snapshots: BTreeMap<ItemId, Snapshot>,
    /// The fingerprint of each item.
    pub fingerprints: BTreeMap<ItemId, Fingerprint>,
    /// All that each item depends on, directly or not.
    pub dependencies: BTreeMap<ItemId, BTreeSet<ItemId>>,
    /// The undecided ambiguous segments that each item owns a part of, by id.
    pub ambiguous: BTreeMap<ItemId, Vec<u32>>,
}

impl Now {
    /// Takes the state of all items of `plan`.
    ///
    /// `placed`: one entry per segment of `link`, from [`crate::approval::choice::place`].
    #[must_use]
    pub fn take(
        link: &Link,
        placed: &[Placed],
        plan: &Plan,
        binding: impl Fn(&ItemId) -> Binding,
    ) -> Self {
        let snapshots: BTreeMap<_, _> = snapshots(link, placed, plan, binding)
            .into_iter()
            .map(|snapshot| (snapshot.binding.item.clone(), snapshot))
            .collect();
        let fingerprints =
            snapshots.iter().map(|(id, snapshot)| (id.clone(), snapshot.fingerprint())).collect();
        let mut ambiguous: BTreeMap<ItemId, Vec<u32>> = BTreeMap::new();
        for (segment, placed) in link.segments.iter().zip(placed) {
            if segment.row == Row::Ambiguous && placed.place == Place::Ambiguous {
                for owner in &segment.owners {
                    ambiguous.entry(owner.clone()).or_default().push(segment.id);
                }
            }
        }
        Self { snapshots, fingerprints, dependencies: transitive(plan), ambiguous }
    }

    /// The fingerprints of all that `item` depends on, as they are stored with an approval.
    #[must_use]
    pub fn dependencies_of(&self, item: &ItemId) -> BTreeMap<ItemId, Fingerprint> {
        self.dependencies
            .get(item)
            .into_iter()
            .flatten()
            .filter_map(|id| Some((id.clone(), self.fingerprints.get(id)?.clone())))
            .collect()
    }
}

/// All that each item depends on, directly or not.
#[must_use]
pub fn transitive(plan: &Plan) -> BTreeMap<ItemId, BTreeSet<ItemId>> {
    plan.items
        .iter()
        .map(|item| {
            let mut found = BTreeSet::new();
            let mut todo: Vec<_> = item.depends_on.iter().collect();
            while let Some(id) = todo.pop() {
                if found.insert(id.clone())
                    && let Some(item) = plan.item(id)
                {
                    todo.extend(&item.depends_on);
                }
            }
            (item.id.clone(), found)
        })
        .collect()
}

/// What an approval stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// Which item.
    pub item: ItemId,
    /// The fingerprint that was approved.
    pub fingerprint: Fingerprint,
    /// The fingerprints of all that the item depended on.
    pub dependencies: BTreeMap<ItemId, Fingerprint>,
    /// The head that a merge queue put in place of another since: then, and now.
    pub queue_replaced: Option<(CommitId, CommitId)>,
}

impl Approved {
    /// Whether the approval is still true.
    #[must_use]
    pub fn is_fresh(&self, now: &Now) -> bool {
        now.fingerprints.get(&self.item) == Some(&self.fingerprint)
            && self.dependencies == now.dependencies_of(&self.item)
            && !now.ambiguous.contains_key(&self.item)
            && self.queue_replaced.is_none()
    }
}

/// One reason why an approval is no longer true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The word.
    pub word: Word,
    /// The file, for `code`, `file-change`, `context` and `assigned`.
    pub path: Option<RepoPath>,
    /// The field, for `definition` and `plan-identity`.
    pub field: Option<&'static str>,
    /// The other item, for `dependency`.
    pub item: Option<ItemId>,
    /// Bytes when it was approved.
    pub before: Option<RepoBytes>,
    /// Bytes now.
    pub after: Option<RepoBytes>,
}

/// The closed list of reasons, in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// It belongs to another repository, task, plan or item.
    PlanIdentity,
    /// What the item promises differs.
    Definition,
    /// Lines differ.
    Code,
    /// A path, mode, type or binary content differs.
    FileChange,
    /// The same lines stand in another function.
    Context,
    /// Only what was assigned to the item differs.
    Assigned,
    /// The item owns part of an ambiguous segment that nobody decided.
    Ambiguous,
    /// An item that it depends on differs.
    Dependency,
    /// A merge queue replaced the head.
    QueueReplaced,
}

impl Word {
    /// The word of the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlanIdentity => "plan-identity",
            Self::Definition => "definition",
            Self::Code => "code",
            Self::FileChange => "file-change",
            Self::Context => "context",
            Self::Assigned => "assigned",
            Self::Ambiguous => "ambiguous",
            Self::Dependency => "dependency",
            Self::QueueReplaced => "queue-replaced",
        }
    }
}

/// The reason for people, as a full phrase: `Code changed in src/a.rs`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_ref().map(|path| path.lossy()).unwrap_or_default();
        match self.word {
            Word::PlanIdentity => {
                write!(f, "Approved for another {}", self.field.unwrap_or("piece of work"))
            }
            Word::Definition => f.write_str(match self.field {
                Some("title") => "Title changed",
                Some("intent") => "Intent changed",
                Some("files") => "Declared files changed",
                Some("acceptance") => "Acceptance checks changed",
                Some("depends_on") => "Dependencies changed",
                Some(_) | None => "Plan item changed",
            }),
            Word::Code => write!(f, "Code changed in {path}"),
            Word::FileChange => write!(f, "File changed: {path}"),
            Word::Context => write!(f, "Moved to another function in {path}"),
            Word::Assigned => write!(f, "Assigned changes differ in {path}"),
            Word::Ambiguous => f.write_str("Owns part of an ambiguous change"),
            Word::Dependency => match &self.item {
                Some(item) => write!(f, "Depends on {item}, which changed"),
                None => f.write_str("A dependency changed"),
            },
            Word::QueueReplaced => f.write_str("A merge queue replaced the reviewed commit"),
        }
    }
}

/// Why `approved` is not fresh; empty exactly when it is.
///
/// `then`: the snapshot that was stored with the approval. `link`: for the bytes of ambiguous
/// segments. The order is that of [`Word`], within a word by file, field or item.
#[must_use]
pub fn reasons(approved: &Approved, then: &Snapshot, now: &Now, link: &Link) -> Vec<Reason> {
    let mut reasons = Vec::new();
    match now.snapshots.get(&approved.item) {
        Some(_) if now.fingerprints.get(&approved.item) == Some(&approved.fingerprint) => {}
        Some(snapshot) => {
            compare_binding(&then.binding, &snapshot.binding, &mut reasons);
            compare_definition(then, snapshot, &mut reasons);
            compare_changes(then, snapshot, &mut reasons);
        }
        None => reasons.push(Reason {
            field: Some("item"),
            before: Some(approved.item.as_str().into()),
            ..Reason::of(Word::PlanIdentity)
        }),
    }
    if let Some(segments) = now.ambiguous.get(&approved.item) {
        let text: Vec<u8> = segments
            .iter()
            .filter_map(|id| link.segments.get(*id as usize))
            .flat_map(|segment| match &segment.body {
                Body::Text(text) => marked(text.op, text.text.as_bytes()),
                Body::File(change) => format!("{change}\n").into_bytes(),
            })
            .collect();
        reasons.push(Reason { after: Some(text.into()), ..Reason::of(Word::Ambiguous) });
    }
    let dependencies = now.dependencies_of(&approved.item);
    let ids: BTreeSet<_> = approved.dependencies.keys().chain(dependencies.keys()).collect();
    for id in ids {
        let (before, after) = (approved.dependencies.get(id), dependencies.get(id));
        if before != after {
            let bytes = |fingerprint: &Fingerprint| fingerprint.as_str().into();
            reasons.push(Reason {
                item: Some(id.clone()),
                before: before.map(bytes),
                after: after.map(bytes),
                ..Reason::of(Word::Dependency)
            });
        }
    }
    if let Some((before, after)) = &approved.queue_replaced {
        reasons.push(Reason {
            before: Some(before.as_str().into()),
            after: Some(after.as_str().into()),
            ..Reason::of(Word::QueueReplaced)
        });
    }
    reasons
}

impl Reason {
    fn of(word: Word) -> Self {
        Self { word, path: None, field: None, item: None, before: None, after: None }
    }
}

fn compare_binding(then: &Binding, now: &Binding, reasons: &mut Vec<Reason>) {
    let fields = [
        ("repository", then.repository.as_str(), now.repository.as_str()),
        ("task", then.task.as_str(), now.task.as_str()),
        ("plan", then.plan.as_str(), now.plan.as_str()),
        ("item", then.item.as_str(), now.item.as_str()),
    ];
    for (field, before, after) in fields {
        if before != after {
            reasons.push(Reason {
                field: Some(field),
                before: Some(before.into()),
                after: Some(after.into()),
                ..Reason::of(Word::PlanIdentity)
            });
        }
    }
}

fn compare_definition(then: &Snapshot, now: &Snapshot, reasons: &mut Vec<Reason>) {
    let (then, now) = (&then.definition, &now.definition);
    let fields: [(&'static str, Value, Value); 5] = [
        ("title", value(&then.title), value(&now.title)),
        ("intent", value(&then.intent), value(&now.intent)),
        ("files", value(&then.files), value(&now.files)),
        ("acceptance", value(&then.acceptance), value(&now.acceptance)),
        ("depends_on", value(&then.depends_on), value(&now.depends_on)),
    ];
    for (field, before, after) in fields {
        if before != after {
            reasons.push(Reason {
                field: Some(field),
                before: Some(words_of(&before)),
                after: Some(words_of(&after)),
                ..Reason::of(Word::Definition)
            });
        }
    }
}

fn value<T: serde::Serialize>(part: &T) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}

/// A text as it is, anything else as JSON with one entry per line.
fn words_of(value: &Value) -> RepoBytes {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Array(entries) => entries
            .iter()
            .map(|entry| match entry {
                Value::String(text) => format!("{text}\n"),
                other => format!("{other}\n"),
            })
            .collect::<String>()
            .into(),
        other => other.to_string().into(),
    }
}

/// Compares lines and file changes. What only the set of assigned segments explains is `assigned`.
fn compare_changes(then: &Snapshot, now: &Snapshot, reasons: &mut Vec<Reason>) {
    let mut found = Vec::new();
    for (then, now) in since::pair(&then.files, &now.files) {
        let Some(path) = now.or(then).map(|file| file.path.clone()) else { continue };
        let own = (then.map(own_part), now.map(own_part));
        if covers_same(own.0.as_ref(), own.1.as_ref()) {
            if !covers_same(then, now) {
                found.push(Reason {
                    before: then.map(shown),
                    after: now.map(shown),
                    path: Some(path),
                    ..Reason::of(Word::Assigned)
                });
            }
            continue;
        }
        compare_file(&path, then, now, &mut found);
    }
    found.sort_by_key(|reason| reason.word);
    reasons.extend(found);
}

fn own_part(file: &SnapshotFile) -> SnapshotFile {
    SnapshotFile {
        runs: file.runs.iter().filter(|run| !run.assigned).cloned().collect(),
        meta: file.meta.clone().filter(|_| !file.meta_assigned),
        ..file.clone()
    }
}

/// Whether a fingerprint covers the same of both. A side without lines and file change is as good
/// as absent.
fn covers_same(then: Option<&SnapshotFile>, now: Option<&SnapshotFile>) -> bool {
    let there = |file: &&SnapshotFile| !file.runs.is_empty() || file.meta.is_some();
    match (then.filter(there), now.filter(there)) {
        (None, None) => true,
        (Some(then), Some(now)) => {
            then.path == now.path
                && then.old_path == now.old_path
                && then.meta == now.meta
                && then.covered_lines().eq(now.covered_lines())
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn compare_file(
    path: &RepoPath,
    then: Option<&SnapshotFile>,
    now: Option<&SnapshotFile>,
    found: &mut Vec<Reason>,
) {
    let bytes = |file: Option<&SnapshotFile>| -> Vec<(Op, Vec<u8>)> {
        file.iter()
            .flat_map(|file| file.covered_lines().map(|(op, _, line)| (op, line.to_vec())))
            .collect()
    };
    let contexts = |file: Option<&SnapshotFile>| -> Vec<RepoBytes> {
        file.iter().flat_map(|file| file.covered_lines().map(|(_, c, _)| c.clone())).collect()
    };
    let push = |found: &mut Vec<Reason>, word, before: Option<RepoBytes>, after| {
        found.push(Reason { path: Some(path.clone()), before, after, ..Reason::of(word) });
    };
    if bytes(then) != bytes(now) {
        push(found, Word::Code, then.map(shown), now.map(shown));
    } else if contexts(then) != contexts(now) {
        let text = |file: Option<&SnapshotFile>| {
            let mut names = contexts(file);
            names.dedup();
            let joined: Vec<u8> =
                names.iter().flat_map(|name| [name.as_bytes(), b"\n"].concat()).collect();
            Some(joined.into())
        };
        push(found, Word::Context, text(then), text(now));
    }
    let placed = |file: Option<&SnapshotFile>| {
        file.map(|file| (file.path.clone(), file.old_path.clone(), file.meta.clone()))
    };
    let (before, after) = (placed(then), placed(now));
    // A file whose lines came or went is told by its lines alone.
    let meta = |side: &Option<(RepoPath, Option<RepoPath>, Option<Value>)>| {
        side.as_ref().and_then(|(_, _, meta)| meta.clone())
    };
    let moved = then.is_some() && now.is_some() && before != after;
    if moved || meta(&before) != meta(&after) {
        push(found, Word::FileChange, then.map(file_words), now.map(file_words));
    }
}

/// The lines of a file's change with their signs, for people to compare.
fn shown(file: &SnapshotFile) -> RepoBytes {
    let mut out = Vec::new();
    for run in &file.runs {
        out.extend(marked(run.op, run.text.as_bytes()));
    }
    if out.is_empty() { file_words(file) } else { out.into() }
}

fn marked(op: Op, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    for line in text.split_inclusive(|b| *b == b'\n') {
        out.extend_from_slice(op.as_str().as_bytes());
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.push(b'\n');
        }
    }
    out
}

/// Paths and file change in words: `src/b.rs, from src/a.rs, rename, 100644 to 100755`.
#[must_use]
pub fn file_words(file: &SnapshotFile) -> RepoBytes {
    let mut out = file.path.as_bytes().to_vec();
    if let Some(old) = file.old_path.as_ref().filter(|old| **old != file.path) {
        out.extend_from_slice(b", from ");
        out.extend_from_slice(old.as_bytes());
    }
    if let Some(meta) = &file.meta {
        out.extend_from_slice(format!(", {}", meta_words(meta)).as_bytes());
    }
    out.into()
}

/// A file change in words: `mode, 100644 to 100755`.
#[must_use]
pub fn meta_words(meta: &Value) -> String {
    let side = |name: &str| match &meta[name] {
        Value::Null => "nothing".to_owned(),
        side => {
            let text = |key: &str| side[key].as_str().unwrap_or_default().to_owned();
            match side["oid"].as_str() {
                Some(oid) => format!("{} {} {oid}", text("kind"), text("mode")),
                None => format!("{} {}", text("kind"), text("mode")),
            }
        }
    };
    let change = meta["change"].as_str().unwrap_or_default();
    format!("{change}: {} to {}", side("old"), side("new"))
}

#[cfg(test)]
mod tests {
    use codeboost_schema::link::Segment;
    use proptest::prelude::*;

    use super::*;
    use crate::approval::choice::{Choice, Choices, place};
    use crate::approval::samples::{self, Sample, binding, item, sample, text};

    fn now(sample: &Sample, choices: &Choices) -> Now {
        let placed = place(&sample.link, &sample.plan, choices);
        Now::take(&sample.link, &placed, &sample.plan, binding)
    }

    fn approve(now: &Now, id: &str) -> (Approved, Snapshot) {
        let id = item(id);
        let approved = Approved {
            fingerprint: now.fingerprints[&id].clone(),
            dependencies: now.dependencies_of(&id),
            queue_replaced: None,
            item: id.clone(),
        };
        (approved, now.snapshots[&id].clone())
    }

    /// Approves `id` in `then`, and tells why that is stale in `after`.
    fn check_with(
        then: (&Sample, &Choices),
        after: (&Sample, &Choices),
        id: &str,
        expected: &[&str],
    ) -> Vec<Reason> {
        let (approved, snapshot) = approve(&now(then.0, then.1), id);
        let after_now = now(after.0, after.1);
        let found = reasons(&approved, &snapshot, &after_now, &after.0.link);
        assert_eq!(found.is_empty(), approved.is_fresh(&after_now), "{found:?}");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        found
    }

    fn check(then: &Sample, after: &Sample, id: &str, expected: &[&str]) -> Vec<Reason> {
        check_with((then, &decided(then)), (after, &decided(after)), id, expected)
    }

    /// Accepts whatever is ambiguous, so that it doesn't hide what a test is about.
    fn decided(sample: &Sample) -> Choices {
        let ambiguous = sample.link.segments.iter().filter(|s| s.row == Row::Ambiguous);
        ambiguous.map(|segment| (segment.key.clone(), Choice::Accepted)).collect()
    }

    fn segment(sample: &mut Sample, n: usize) -> &mut codeboost_schema::link::Text {
        match &mut sample.link.segments[n].body {
            Body::Text(text) => text,
            Body::File(_) => panic!("a file segment"),
        }
    }

    #[test]
    fn lines_that_only_move_stay_approved() {
        let mut after = sample();
        for n in [0, 1, 2] {
            segment(&mut after, n).start += 100;
            segment(&mut after, n).hunk += 3;
        }
        after.link.segments[0].commits = vec![samples::commit(99)];
        for id in ["P1", "P2", "P3"] {
            check(&sample(), &after, id, &[]);
        }
    }

    #[test]
    fn a_whitespace_change_is_a_change_of_code_and_reaches_dependents() {
        let mut after = sample();
        segment(&mut after, 1).text = "    new();\n\tmore();\n".into();
        let found = check(&sample(), &after, "P1", &["Code changed in a.rs"]);
        assert_eq!(
            found[0].before.as_ref().map(|bytes| bytes.lossy().into_owned()).as_deref(),
            Some("-    old();\n+    new();\n+    more();\n")
        );
        assert_eq!(
            found[0].after.as_ref().map(|bytes| bytes.lossy().into_owned()).as_deref(),
            Some("-    old();\n+    new();\n+\tmore();\n")
        );
        let found = check(&sample(), &after, "P2", &["Depends on P1, which changed"]);
        assert_ne!(found[0].before, found[0].after);
        check(&sample(), &after, "P3", &[]);
    }

    #[test]
    fn a_flipped_line_ending_alone_stays_approved() {
        let mut after = sample();
        segment(&mut after, 1).text = "    new();\r\n    more();\r\n".into();
        segment(&mut after, 1).context = "fn f() {\r".into();
        check(&sample(), &after, "P1", &[]);
        segment(&mut after, 1).text = "    new();\r\n    more();\r".into();
        check(&sample(), &after, "P1", &["Code changed in a.rs"]);
    }

    #[test]
    fn the_same_lines_in_another_function_are_stale() {
        let mut after = sample();
        segment(&mut after, 0).context = "fn g() {".into();
        segment(&mut after, 1).context = "fn g() {".into();
        let found = check(&sample(), &after, "P1", &["Moved to another function in a.rs"]);
        assert_eq!(found[0].before, Some("fn f() {\n".into()));
        assert_eq!(found[0].after, Some("fn g() {\n".into()));
    }

    #[test]
    fn each_part_of_the_definition_is_covered() {
        let changes: [(&str, fn(&mut codeboost_schema::plan::Item)); 5] = [
            ("Title changed", |item| item.title.push('!')),
            ("Intent changed", |item| item.intent.push('!')),
            ("Declared files changed", |item| item.files[0].change.push('!')),
            ("Acceptance checks changed", |item| item.acceptance[0].text.push('!')),
            ("Dependencies changed", |item| item.depends_on.clear()),
        ];
        for (words, change) in changes {
            let mut after = sample();
            change(&mut after.plan.items[1]);
            let mut expected = vec![words];
            if words == "Dependencies changed" {
                // What it depended on is no longer there to be equal.
                expected.push("Depends on P1, which changed");
            }
            let found = check(&sample(), &after, "P2", &expected);
            assert_eq!(found[0].word, Word::Definition);
            assert_ne!(found[0].before, found[0].after);
            check(&sample(), &after, "P1", &[]);
        }
    }

    #[test]
    fn every_part_of_a_file_change_is_covered() {
        let with = |change: &dyn Fn(&mut Sample)| {
            let mut after = sample();
            change(&mut after);
            samples::renumber(&mut after.link);
            after
        };
        let mode = with(&|s| s.link.files[1].new = Some(samples::side("100644", 2)));
        check(&sample(), &mode, "P2", &["File changed: b.rs"]);
        let gone = with(&|s| {
            s.link.segments.remove(3);
        });
        check(&sample(), &gone, "P2", &["File changed: b.rs"]);
        check(&gone, &sample(), "P2", &["File changed: b.rs"]);
        let renamed = with(&|s| s.link.files[1].path = "c.rs".into());
        check(
            &sample(),
            &renamed,
            "P2",
            // P1 has a stray line in that file.
            &["File changed: c.rs", "Depends on P1, which changed"],
        );
        let kind = with(&|s| {
            if let Body::File(change) = &mut s.link.segments[3].body {
                change.rename = true;
            }
        });
        check(&sample(), &kind, "P2", &["File changed: b.rs"]);

        let binary = |oid: u32| {
            with(&|s| {
                s.link.files[1].new = Some(samples::side("100755", oid));
                if let Body::File(change) = &mut s.link.segments[3].body {
                    change.binary = true;
                }
            })
        };
        check(&binary(5), &binary(6), "P2", &["File changed: b.rs"]);
        // Without content in it, the change of a mode doesn't depend on the content.
        let content = with(&|s| s.link.files[1].new = Some(samples::side("100755", 77)));
        check(&sample(), &content, "P2", &[]);
    }

    #[test]
    fn assigning_makes_the_item_stale_for_that_reason_alone() {
        let then = sample();
        let stray = samples::segment_of(&then.link, &Row::Unplanned);
        let before = decided(&then);
        let mut choices = before.clone();
        choices.insert(stray.key.clone(), Choice::Assigned(item("P1")));
        let words = ["Assigned changes differ in a.rs"];
        check_with((&then, &before), (&then, &choices), "P1", &words);
        check_with((&then, &choices), (&then, &before), "P1", &words);
        // It survives an unrelated revision.
        let mut revised = sample();
        revised.plan.items[2].intent.push('!');
        check_with((&then, &choices), (&revised, &choices), "P1", &[]);
    }

    #[test]
    fn a_part_in_an_undecided_ambiguous_segment_is_stale() {
        let sample = sample();
        let (decided, open) = (decided(&sample), Choices::new());
        let found = check_with(
            (&sample, &decided),
            (&sample, &open),
            "P3",
            &["Owns part of an ambiguous change"],
        );
        assert_eq!(found[0].after, Some("+    both();\n".into()));
        let ambiguous = samples::segment_of(&sample.link, &Row::Ambiguous);
        let assigned = Choices::from([(ambiguous.key.clone(), Choice::Assigned(item("P1")))]);
        check_with((&sample, &decided), (&sample, &assigned), "P3", &[]);
    }

    #[test]
    fn a_dependent_stays_stale_until_it_is_approved_itself() {
        let then = sample();
        let mut after = sample();
        segment(&mut after, 1).text = "    newer();\n".into();
        let choices = decided(&after);
        let now = now(&after, &choices);
        let (dependent, snapshot) = approve(&self::now(&then, &choices), "P2");
        // P1 is approved again: nothing about P2 changes by that.
        let (again, _) = approve(&now, "P1");
        assert!(again.is_fresh(&now));
        assert!(!dependent.is_fresh(&now));
        let words: Vec<_> =
            reasons(&dependent, &snapshot, &now, &after.link).iter().map(|r| r.word).collect();
        assert_eq!(words, [Word::Dependency]);
        let (itself, _) = approve(&now, "P2");
        assert!(itself.is_fresh(&now));
    }

    #[test]
    fn an_approval_never_moves_to_another_plan_or_item() {
        let sample = sample();
        let choices = decided(&sample);
        let (approved, snapshot) = approve(&now(&sample, &choices), "P1");
        let placed = place(&sample.link, &sample.plan, &choices);
        let other = Now::take(&sample.link, &placed, &sample.plan, |id| Binding {
            plan: samples::uuid(99),
            ..binding(id)
        });
        assert!(!approved.is_fresh(&other));
        let found = reasons(&approved, &snapshot, &other, &sample.link);
        assert_eq!(found[0].to_string(), "Approved for another plan");
        assert_eq!(found[0].before, Some(samples::uuid(3).as_str().into()));

        let mut renamed = sample.clone();
        renamed.plan.items[0].id = item("P9");
        let gone = now(&renamed, &choices);
        assert!(!approved.is_fresh(&gone));
        let found = reasons(&approved, &snapshot, &gone, &sample.link);
        assert_eq!(found[0].to_string(), "Approved for another item");
    }

    #[test]
    fn a_replaced_head_in_a_merge_queue_is_stale() {
        let sample = sample();
        let now = now(&sample, &decided(&sample));
        let (mut approved, snapshot) = approve(&now, "P1");
        approved.queue_replaced = Some((samples::commit(1), samples::commit(2)));
        assert!(!approved.is_fresh(&now));
        let found = reasons(&approved, &snapshot, &now, &sample.link);
        assert_eq!(found[0].word, Word::QueueReplaced);
    }

    #[test]
    fn a_neighbour_that_joins_two_blocks_changes_nothing() {
        // P1 replaces one line in two places; then P3 rewrites the line between them.
        let plan = samples::plan(&[("P1", &["a.rs"], &[]), ("P3", &["a.rs"], &[])]);
        let p1 = |op, start, line| text("P1", &["P1"], 0, op, start, "fn f() {", line);
        let p3 = |op, start, line| text("P3", &["P3"], 0, op, start, "fn f() {", line);
        let apart = Sample {
            plan: plan.clone(),
            link: samples::link(
                vec![samples::file("a.rs", Some("a.rs"))],
                vec![
                    p1(Op::Remove, 2, "a\n"),
                    p1(Op::Add, 2, "A\n"),
                    p1(Op::Remove, 4, "c\n"),
                    p1(Op::Add, 4, "C\n"),
                ],
            ),
        };
        let joined = Sample {
            plan,
            link: samples::link(
                vec![samples::file("a.rs", Some("a.rs"))],
                vec![
                    p1(Op::Remove, 2, "a\n"),
                    p3(Op::Remove, 3, "b\n"),
                    p1(Op::Remove, 4, "c\n"),
                    p1(Op::Add, 2, "A\n"),
                    p3(Op::Add, 3, "B\n"),
                    p1(Op::Add, 4, "C\n"),
                ],
            ),
        };
        check(&apart, &joined, "P1", &[]);
    }

    #[test]
    fn a_snapshot_survives_being_stored() {
        let sample = sample();
        for snapshot in now(&sample, &decided(&sample)).snapshots.values() {
            let text = serde_json::to_vec(snapshot).expect("JSON");
            let read: Snapshot = serde_json::from_slice(&text).expect("a snapshot");
            assert_eq!(read, *snapshot);
            assert_eq!(read.fingerprint(), snapshot.fingerprint());
        }
    }

    #[test]
    fn the_covered_bytes_are_the_contract_s() {
        let sample = sample();
        let now = now(&sample, &decided(&sample));
        let bytes = now.snapshots[&item("P2")].canonical_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            concat!(
                r#"{"binding":{"item":"P2","plan":"00000000-0000-4000-8000-000000000003","#,
                r#""repository":"00000000-0000-4000-8000-000000000001","#,
                r#""task":"00000000-0000-4000-8000-000000000002"},"#,
                r#""definition":{"acceptance":[{"text":"make test","type":"cmd"}],"#,
                r#""depends_on":["P1"],"files":[{"change":"Changes.","kind":"edit","#,
                r#""path":"b.rs","renamed_from":null}],"#,
                r#""intent":"Intent of P2","title":"Title of P2"},"#,
                r#""files":[{"lines":[["+","Zm4gaCgpIHs=","ICAgIHR3bygpOwo="]],"#,
                r#""meta":{"change":"mode","new":{"kind":"blob","mode":"100755"},"#,
                r#""old":{"kind":"blob","mode":"100644"}},"#,
                r#""old_path":"Yi5ycw==","path":"Yi5ycw=="}]}"#,
            )
        );
    }

    fn cases() -> u32 {
        let set = crate::context::Context::environment()
            .remove(std::ffi::OsStr::new("CODEBOOST_PROPTEST_CASES"))
            .and_then(|n| n.to_str()?.parse().ok());
        set.unwrap_or(64)
    }

    fn any_segments() -> impl Strategy<Value = Vec<Segment>> {
        let line = prop::sample::select(vec!["a\n", "b\n", "}\n", "\n", " a\n", "a\r\n"]);
        let one = (
            0..3_u32,
            prop::sample::select(vec!["P1", "P2", "P3", "unplanned", "ambiguous"]),
            any::<bool>(),
            prop::sample::select(vec!["fn f() {", "fn g() {", ""]),
            prop::collection::vec(line, 1..4),
        );
        prop::collection::vec(one, 0..12).prop_map(|mut list| {
            list.sort_by_key(|(file, ..)| *file);
            let segment = |(n, (file, row, add, context, lines)): (usize, _)| {
                let owners: &[&str] = match row {
                    "P1" => &["P1"],
                    "P2" => &["P2"],
                    "P3" => &["P3"],
                    "ambiguous" => &["P1", "P2"],
                    _ => &[],
                };
                let op = if add { Op::Add } else { Op::Remove };
                let lines: Vec<&str> = lines;
                text(row, owners, file, op, 10 * n as u64 + 1, context, &lines.concat())
            };
            list.into_iter().enumerate().map(segment).collect()
        })
    }

    fn sample_of(segments: Vec<Segment>) -> Sample {
        let plan = samples::plan(&[
            ("P1", &["f0", "f1"], &[]),
            ("P2", &["f1"], &["P1"]),
            ("P3", &["f2"], &["P2"]),
        ]);
        let files =
            (0..3).map(|n| samples::file(&format!("f{n}"), Some(&format!("f{n}")))).collect();
        Sample { plan, link: samples::link(files, segments) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases()))]

        #[test]
        fn shifted_lines_other_commits_and_splits_keep_every_fingerprint(
            segments in any_segments(), shift in 0_u64..1000,
        ) {
            let then = sample_of(segments.clone());
            // Each segment of several lines is cut in two, as another owner beside it would do.
            let mut cut = Vec::new();
            for mut segment in segments {
                segment.commits = vec![samples::commit(5), samples::commit(6)];
                let Body::Text(text) = &mut segment.body else { continue };
                text.start += shift;
                let lines: Vec<_> =
                    text.text.as_bytes().split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                let (first, rest) = lines.split_at(lines.len() / 2);
                for part in [first, rest] {
                    if !part.is_empty() {
                        let mut piece = segment.clone();
                        let Body::Text(text) = &mut piece.body else { unreachable!() };
                        text.text = part.concat().into();
                        cut.push(piece);
                    }
                }
            }
            let after = sample_of(cut);
            prop_assert_eq!(
                now(&then, &Choices::new()).fingerprints,
                now(&after, &Choices::new()).fingerprints
            );
        }

        #[test]
        fn any_other_byte_is_stale_and_says_why(
            segments in any_segments(), pick in any::<prop::sample::Index>(),
            place_in in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            prop_assume!(!segments.is_empty());
            let then = sample_of(segments.clone());
            let mut changed = segments;
            let n = pick.index(changed.len());
            let row = changed[n].row.clone();
            let Body::Text(text) = &mut changed[n].body else { unreachable!() };
            let mut bytes = text.text.as_bytes().to_vec();
            let at = place_in.index(bytes.len());
            let cr_lf = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
            let old = bytes.clone();
            bytes[at] = byte;
            prop_assume!(cr_lf(&old) != cr_lf(&bytes));
            text.text = bytes.into();
            let after = sample_of(changed);
            let (then_now, after_now) =
                (now(&then, &Choices::new()), now(&after, &Choices::new()));
            for id in ["P1", "P2", "P3"].map(item) {
                let (approved, snapshot) = approve(&then_now, id.as_str());
                let found = reasons(&approved, &snapshot, &after_now, &after.link);
                prop_assert_eq!(found.is_empty(), approved.is_fresh(&after_now));
                if row == Row::Item(id.clone()) {
                    prop_assert!(found.iter().any(|reason| reason.word == Word::Code), "{:?}", found);
                }
                let depends = then_now.dependencies[&id].iter().any(|d| row == Row::Item(d.clone()));
                prop_assert_eq!(depends, found.iter().any(|r| r.word == Word::Dependency));
            }
        }

        #[test]
        fn two_states_differ_in_a_fingerprint_exactly_when_a_reason_says_so(
            before in any_segments(), after in any_segments(),
        ) {
            let (then, after) = (sample_of(before), sample_of(after));
            let (then_now, after_now) =
                (now(&then, &Choices::new()), now(&after, &Choices::new()));
            for id in ["P1", "P2", "P3"].map(item) {
                let (approved, snapshot) = approve(&then_now, id.as_str());
                let found = reasons(&approved, &snapshot, &after_now, &after.link);
                prop_assert_eq!(found.is_empty(), approved.is_fresh(&after_now), "{:?}", found);
                let since = since::compare(&snapshot, &after_now.snapshots[&id]);
                let same = approved.fingerprint == after_now.fingerprints[&id];
                prop_assert_eq!(same, since.is_empty());
            }
        }
    }
}
