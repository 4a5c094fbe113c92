//! Reviews made in code, for tests, benchmarks and looking at the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::{CommitId, Digest, ItemId, ObjectId};
use codeboost_schema::ledger::Origin;
use codeboost_schema::link::{
    Attributed, Body, Change, DiffSettings, FileEntry, FileStatus, InScope, Link, Op, PlanRef, Row,
    RowSummary, Scope, Segment, Side, SideKind, Tag, Text, segment_key,
};
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, FileKind, Item, Plan};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::model::{
    Acknowledgement, AiReview, Approval, Blocker, Choice, Commit, Contents, Finding, Forge, Issue,
    ItemReview, MergeStep, Note, NoteKind, Problem, Review, SinceFile, SinceLine, StaleReason,
    Target, Task, Tests,
};

/// Builds a review whose link follows the rules of the contract for what it needs.
#[derive(Debug)]
pub struct Builder {
    review: Review,
}

/// One side of a file.
#[derive(Debug, Clone)]
pub struct Given {
    /// Git's mode.
    pub mode: &'static str,
    /// The content; the target of a link; the commit of a submodule in hex.
    pub bytes: Vec<u8>,
}

impl Given {
    /// A regular file.
    #[must_use]
    pub fn file(bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: "100644", bytes: bytes.into() }
    }

    fn kind(&self) -> SideKind {
        match self.mode {
            "120000" => SideKind::Symlink,
            "160000" => SideKind::Submodule,
            _ => SideKind::Blob,
        }
    }

    fn side(&self) -> Side {
        let kind = self.kind();
        let binary =
            kind == SideKind::Blob && self.bytes[..self.bytes.len().min(8000)].contains(&0);
        let lines = self.bytes.split_inclusive(|b| *b == b'\n').count() as u64;
        Side {
            mode: self.mode.to_owned(),
            kind,
            oid: if kind == SideKind::Submodule {
                object(&String::from_utf8_lossy(&self.bytes))
            } else {
                blob(&self.bytes)
            },
            size: (kind != SideKind::Submodule).then_some(self.bytes.len() as u64),
            lines: if kind == SideKind::Blob && !binary { lines } else { 0 },
            binary,
            target: (kind == SideKind::Symlink).then(|| self.bytes.clone().into()),
        }
    }
}

/// Any 40 hex digits that follow from the bytes.
fn blob(bytes: &[u8]) -> ObjectId {
    object(&Digest::of(bytes).hex()[..40])
}

fn object(hex: &str) -> ObjectId {
    ObjectId::parse(hex).expect("40 hex digits")
}

/// A commit id that follows from a word.
#[must_use]
pub fn commit_id(word: &str) -> CommitId {
    CommitId::parse(&Digest::of(word.as_bytes()).hex()[..40]).expect("40 hex digits")
}

/// An item id.
#[must_use]
pub fn item_id(text: &str) -> ItemId {
    ItemId::parse(text).expect("an item id")
}

/// Who made a line: the words `P1`, `P1+P2` (ambiguous), or anything else (foreign).
fn owners(word: &str) -> (Row, Vec<ItemId>, bool) {
    let items: Option<Vec<ItemId>> = word.split('+').map(|part| ItemId::parse(part).ok()).collect();
    match items.as_deref() {
        Some([item]) => (Row::Item(item.clone()), vec![item.clone()], false),
        Some(items) => (Row::Ambiguous, items.to_vec(), false),
        None => (Row::Unplanned, Vec::new(), true),
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty review of issue 412.
    #[must_use]
    pub fn new() -> Self {
        let plan = Plan {
            schema_version: 1,
            issue: 412,
            revision: 3,
            summary: "A plan".to_owned(),
            items: Vec::new(),
            questions: Vec::new(),
        };
        let review = Review {
            repository: "sample".to_owned(),
            forge: Forge::GitHub,
            issue: Issue {
                number: 412,
                title: "A title".to_owned(),
                body: None,
                author: None,
                pull_request: None,
            },
            link: Link {
                schema_version: 1,
                base: commit_id("base"),
                head: commit_id("head"),
                plan: PlanRef { issue: 412, revision: 3, digest: plan.digest() },
                diff: DiffSettings {
                    algorithm: "histogram".to_owned(),
                    renames: 50,
                    rename_limit: 1000,
                    renames_skipped: false,
                },
                rows: Vec::new(),
                files: Vec::new(),
                segments: Vec::new(),
            },
            plan,
            contents: Vec::new(),
            commits: BTreeMap::new(),
            items: Vec::new(),
            choices: Vec::new(),
            acknowledgements: Vec::new(),
            notes: Vec::new(),
            problems: Vec::new(),
            findings: Vec::new(),
            blockers: Vec::new(),
            task: Some(Task {
                state: "in review".to_owned(),
                headline: None,
                actions: Vec::new(),
                cause: None,
            }),
            merge_steps: Vec::new(),
            reviewers: Vec::new(),
            read_only: None,
            notices: Vec::new(),
            rendered_at: "2026-11-30T12:00:00Z".to_owned(),
            generator: "0.1.0".to_owned(),
        };
        Self { review }
    }

    /// What was built so far, to change what the builder has no word for.
    pub fn review(&mut self) -> &mut Review {
        &mut self.review
    }

    /// Adds an item; `files` are paths it declares.
    pub fn item(&mut self, id: &str, title: &str, intent: &str, files: &[&str]) -> &mut Item {
        self.review.plan.items.push(Item {
            id: item_id(id),
            title: title.to_owned(),
            intent: intent.to_owned(),
            files: files
                .iter()
                .map(|path| DeclaredFile {
                    path: (*path).to_owned(),
                    kind: FileKind::Edit,
                    renamed_from: None,
                    change: "As the intent says.".to_owned(),
                })
                .collect(),
            acceptance: vec![Check {
                kind: CheckKind::Check,
                text: "The change does what the intent says.".to_owned(),
            }],
            depends_on: Vec::new(),
        });
        self.review.plan.items.last_mut().expect("just pushed")
    }

    /// Adds a text file of which each changed line belongs to the next of `who`, the last of
    /// them to all that follow. A word is an item, `P1+P2`, or anything else for a stranger.
    pub fn file(&mut self, path: &str, old: Option<&str>, new: Option<&str>, who: &[&str]) {
        let side = |text: Option<&str>| text.map(Given::file);
        self.change(path.as_bytes(), None, side(old), side(new), who);
    }

    /// Adds any change of a file. Files must come in byte order of their path.
    pub fn change(
        &mut self,
        path: &[u8],
        old_path: Option<&[u8]>,
        old: Option<Given>,
        new: Option<Given>,
        who: &[&str],
    ) {
        let renamed = old_path.is_some();
        let entry = FileEntry {
            path: path.into(),
            old_path: old.as_ref().map(|_| old_path.unwrap_or(path).into()),
            status: match (&old, &new) {
                (None, _) => FileStatus::Added,
                (_, None) => FileStatus::Deleted,
                (Some(old), Some(new)) if old.kind() != new.kind() => FileStatus::Type,
                _ if renamed => FileStatus::Renamed,
                _ => FileStatus::Modified,
            },
            similarity: renamed.then_some(87),
            old: old.as_ref().map(Given::side),
            new: new.as_ref().map(Given::side),
        };
        let mut who = who.iter().copied().peekable();
        let mut next = || {
            let word = *who.peek().unwrap_or(&"P1");
            if who.clone().count() > 1 {
                who.next();
            }
            word
        };
        let change = file_change(&entry, old.as_ref(), new.as_ref());
        let mut bodies: Vec<(&str, Body)> = Vec::new();
        if !change.is_empty() {
            bodies.push((next(), Body::File(change)));
        }
        let is_text = |side: &Option<Side>| {
            side.as_ref().is_none_or(|one| one.kind == SideKind::Blob && !one.binary)
        };
        if is_text(&entry.old) && is_text(&entry.new) {
            let bytes =
                |given: &Option<Given>| given.as_ref().map_or(Vec::new(), |one| one.bytes.clone());
            text_bodies(&bytes(&old), &bytes(&new), &mut next, &mut bodies);
        }
        self.push(entry, bodies);
        let arc = |given: Option<Given>| {
            given.filter(|one| one.kind() == SideKind::Blob).map(|one| one.bytes.into())
        };
        self.review.contents.push(Contents { old: arc(old), new: arc(new), left_out: None });
    }

    fn push(&mut self, entry: FileEntry, bodies: Vec<(&str, Body)>) {
        let link = &mut self.review.link;
        let file = u32::try_from(link.files.len()).expect("few files");
        let declared = |item: &ItemId, plan: &Plan| {
            plan.item(item).is_some_and(|item| {
                item.files
                    .iter()
                    .flat_map(DeclaredFile::paths)
                    .any(|path| path.as_bytes() == entry.path.as_bytes())
            })
        };
        let equal: Vec<Body> = bodies.iter().map(|(_, body)| body.clone()).collect();
        for (n, (word, body)) in bodies.into_iter().enumerate() {
            let (row, owners, foreign) = owners(word);
            let same = |one: &&Body| match (one, &body) {
                (Body::Text(a), Body::Text(b)) => a.op == b.op && a.text == b.text,
                (Body::File(_), Body::File(_)) => true,
                _ => false,
            };
            let copies = equal.iter().filter(same).count() as u64;
            let copy = equal[..=n].iter().filter(same).count() as u64;
            let others = |item: &ItemId| -> Vec<ItemId> {
                self.review
                    .plan
                    .items
                    .iter()
                    .map(|one| one.id.clone())
                    .filter(|one| one != item && declared(one, &self.review.plan))
                    .collect()
            };
            let (scope, scope_owner, shared_file) = match &row {
                Row::Item(item) if declared(item, &self.review.plan) => {
                    (Scope::In, Vec::new(), others(item))
                }
                Row::Item(item) => (Scope::Out, others(item), Vec::new()),
                Row::Ambiguous => (Scope::Ambiguous, Vec::new(), Vec::new()),
                Row::Unplanned => (Scope::Unplanned, Vec::new(), Vec::new()),
            };
            let mut tags = Vec::new();
            if let Body::File(change) = &body {
                if change.mode {
                    tags.push(Tag::Executable);
                }
                if change.symlink {
                    tags.push(Tag::SymlinkTarget);
                }
                if change.submodule {
                    tags.push(Tag::Submodule);
                }
            }
            if let Body::Text(text) = &body {
                let text = text.text.lossy();
                if text.contains(['\u{202e}', '\u{2066}', '\u{2069}']) {
                    tags.push(Tag::Bidi);
                }
                if text.contains(['\u{200b}', '\u{a0}', '\u{1b}']) {
                    tags.push(Tag::Invisible);
                }
            }
            if scope == Scope::Out {
                tags.push(Tag::OutOfScope);
            }
            link.segments.push(Segment {
                id: u32::try_from(link.segments.len()).expect("few segments"),
                file,
                row,
                owners,
                foreign,
                scope,
                scope_owner,
                shared_file,
                commits: word.split('+').map(commit_id).collect(),
                tags,
                coarse: false,
                key: segment_key(&entry, &body, copy, copies),
                body,
            });
        }
        link.files.push(entry);
    }

    /// The review, with the sums of its rows, and the commits that were named.
    #[must_use]
    pub fn finish(mut self) -> Review {
        let review = &mut self.review;
        let rows = review
            .plan
            .items
            .iter()
            .map(|item| Row::Item(item.id.clone()))
            .chain([Row::Ambiguous, Row::Unplanned]);
        review.link.rows = rows.map(|row| summary(&review.link, row)).collect();
        review.link.plan.digest = review.plan.digest();
        for segment in &mut review.link.segments {
            for id in &segment.commits {
                review.commits.entry(id.clone()).or_insert_with(|| Commit {
                    subject: "work on the item".into(),
                    author: "A. Agent".into(),
                    authored_at: "2026-11-28T09:30:00+02:00".to_owned(),
                    item: segment.owners.first().cloned(),
                    origin: if segment.foreign { None } else { Some(Origin::Runner) },
                    was: None,
                    adopted_by: None,
                });
            }
        }
        for item in &review.plan.items {
            if !review.items.iter().any(|one| one.item == item.id) {
                review.items.push(ItemReview {
                    item: item.id.clone(),
                    fingerprint: Digest::of(item.id.as_str().as_bytes()),
                    approval: Approval::Unreviewed,
                    approved_by: Vec::new(),
                    tests: Tests::NoneDefined,
                    ai_review: AiReview::NotRun,
                });
            }
        }
        self.review
    }
}

fn summary(link: &Link, row: Row) -> RowSummary {
    let own: Vec<&Segment> = link.segments.iter().filter(|one| one.row == row).collect();
    let lines = |op: Op| {
        own.iter()
            .filter_map(|one| match &one.body {
                Body::Text(text) if text.op == op => Some(text.lines),
                _ => None,
            })
            .sum()
    };
    let (attributed, in_scope) = match &row {
        Row::Item(item) => {
            let ambiguous = link
                .segments
                .iter()
                .any(|one| one.row == Row::Ambiguous && one.owners.contains(item));
            let out = own.iter().any(|one| one.scope == Scope::Out);
            (
                Some(match (ambiguous, own.is_empty()) {
                    (true, _) => Attributed::Ambiguous,
                    (false, true) => Attributed::None,
                    (false, false) => Attributed::Ok,
                }),
                Some(match (out, own.is_empty()) {
                    (true, _) => InScope::Out,
                    (false, true) => InScope::None,
                    (false, false) => InScope::Ok,
                }),
            )
        }
        _ => (None, None),
    };
    RowSummary {
        changes: own.len() as u64,
        added: lines(Op::Add),
        removed: lines(Op::Remove),
        row,
        attributed,
        in_scope,
    }
}

fn file_change(entry: &FileEntry, old: Option<&Given>, new: Option<&Given>) -> Change {
    let any = |kind: SideKind| {
        [&entry.old, &entry.new]
            .iter()
            .any(|side| side.as_ref().is_some_and(|one| one.kind == kind))
    };
    let binary =
        [&entry.old, &entry.new].iter().any(|side| side.as_ref().is_some_and(|one| one.binary));
    let same = old.map(|one| &one.bytes) == new.map(|one| &one.bytes);
    let empty = |one: Option<&Given>| one.is_some_and(|one| one.bytes.is_empty());
    Change {
        binary: binary && !same,
        mode: match (old, new) {
            (Some(old), Some(new)) => old.kind() == new.kind() && old.mode != new.mode,
            (Some(one), None) | (None, Some(one)) => one.mode == "100755",
            (None, None) => false,
        },
        empty: (old.is_none() && empty(new)) || (new.is_none() && empty(old)),
        rename: entry.status == FileStatus::Renamed,
        symlink: any(SideKind::Symlink) && !same,
        submodule: any(SideKind::Submodule) && !same,
    }
}

fn text_bodies<'w>(
    old: &[u8],
    new: &[u8],
    next: &mut impl FnMut() -> &'w str,
    out: &mut Vec<(&'w str, Body)>,
) {
    fn split(bytes: &[u8]) -> Vec<&[u8]> {
        bytes.split_inclusive(|b| *b == b'\n').collect()
    }
    let (old, new) = (split(old), split(new));
    let mut hunk = 0_u32;
    let mut last_end: Option<usize> = None;
    for op in capture_diff_slices(Algorithm::Patience, &old, &new) {
        let (removed, added) = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                (op.old_range(), op.new_range())
            }
        };
        if let Some(end) = last_end
            && removed.start > end + 6
        {
            hunk += 1;
        }
        last_end = Some(removed.end);
        let context = old[..removed.start]
            .iter()
            .rev()
            .find(|line| line.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_'))
            .map_or(RepoBytes::default(), |line| {
                RepoBytes::from(line.strip_suffix(b"\n").unwrap_or(line))
            });
        for (op, lines, from) in [
            (Op::Remove, &old[removed.clone()], removed.start),
            (Op::Add, &new[added.clone()], added.start),
        ] {
            let mut last: Option<&str> = None;
            for (n, line) in lines.iter().enumerate() {
                let word = next();
                match out.last_mut() {
                    Some((_, Body::Text(text))) if last == Some(word) => {
                        text.lines += 1;
                        let joined = [text.text.as_bytes(), line].concat();
                        text.text = joined.into();
                    }
                    _ => out.push((
                        word,
                        Body::Text(Text {
                            op,
                            start: (from + n) as u64 + 1,
                            lines: 1,
                            text: (*line).into(),
                            context: context.clone(),
                            hunk,
                            shares_hunk_with: Vec::new(),
                        }),
                    )),
                }
                last = Some(word);
            }
        }
    }
    let rows: Vec<(u32, Row)> = out
        .iter()
        .filter_map(|(word, body)| match body {
            Body::Text(text) => Some((text.hunk, owners(word).0)),
            Body::File(_) => None,
        })
        .collect();
    for (word, body) in out.iter_mut() {
        if let Body::Text(text) = body {
            let own = owners(word).0;
            let mut shares: Vec<Row> = rows
                .iter()
                .filter(|(hunk, row)| *hunk == text.hunk && *row != own)
                .map(|(_, row)| row.clone())
                .collect();
            shares.sort();
            shares.dedup();
            text.shares_hunk_with = shares;
        }
    }
}

mod rich;
pub use rich::{hostile, rich};

/// A review of about `n_lines` changed lines of plausible code, in items of about 400.
#[must_use]
pub fn wide(n_lines: usize) -> Review {
    let mut builder = Builder::new();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 11).unwrap_or(0) % below
    };
    const WORDS: &[&str] = &[
        "buffer", "queue", "retry", "handle", "socket", "timer", "worker", "frame", "packet",
        "stream", "poll", "ready", "limit", "count", "state", "entry", "index", "value",
    ];
    let mut line = move |indent: usize| {
        let mut word = || WORDS[random(WORDS.len())];
        let (a, b, c) = (word(), word(), word());
        let mut text = " ".repeat(indent);
        let _ = match (a.len() + b.len() * 3 + c.len()) % 7 {
            0 => writeln!(
                text,
                "let {a}_{b} = self.{c}.{a}({b}, 0x{:04x});",
                a.len() * 977 + b.len()
            ),
            1 => writeln!(text, "if {a}.{b}() > {c}.len() {{ return Err({a:?}.into()); }}"),
            2 => writeln!(text, "// The {a} keeps its {b} until the {c} is done."),
            3 => writeln!(text, "self.{a}.push({b}_{c}.clone());"),
            4 => writeln!(text, "debug_assert!({a}_{b} <= {c}::MAX, \"{a} over {b}\");"),
            5 => {
                writeln!(text, "for {a} in {b}.iter().filter(|{c}| {c}.is_{a}()) {{ drop({a}); }}")
            }
            _ => writeln!(text, "{a}.{b}_{c}(&mut self.{b})?;"),
        };
        text
    };
    let n_items = n_lines.div_ceil(400).clamp(1, 999);
    let per_item = n_lines.div_ceil(n_items);
    for n in 1..=n_items {
        let paths: Vec<String> =
            (0..4).map(|k| format!("crates/part{n:03}/src/module_{k}.rs")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        builder.item(
            &format!("P{n}"),
            &format!("Part {n} of the work"),
            "A generated item.",
            &paths,
        );
    }
    for n in 1..=n_items {
        for k in 0..4 {
            let (mut old, mut new) = (String::new(), String::new());
            let mut changed = 0;
            let mut function = 0;
            while changed < per_item / 4 {
                let head = format!("fn step_{function}(&mut self) -> Result<(), Error> {{\n");
                function += 1;
                old.push_str(&head);
                new.push_str(&head);
                for at in 0..24 {
                    let text = line(4);
                    match at {
                        5..=8 if changed < per_item / 4 => {
                            old.push_str(&text);
                            new.push_str(&text.replace("self", "this").replace('(', "(&"));
                            new.push_str(&line(4));
                            changed += 3;
                        }
                        _ => {
                            old.push_str(&text);
                            new.push_str(&text);
                        }
                    }
                }
                old.push_str("}\n\n");
                new.push_str("}\n\n");
            }
            let path = format!("crates/part{n:03}/src/module_{k}.rs");
            builder.file(&path, Some(&old), Some(&new), &[&format!("P{n}")]);
        }
    }
    builder.finish()
}

/// The payload of a form for a page with that data digest, signed by nobody.
#[must_use]
pub fn form(review: &Review, data_digest: &Digest) -> Vec<u8> {
    let items: serde_json::Map<String, serde_json::Value> = review
        .items
        .iter()
        .map(|item| {
            let state = match item.approval {
                Approval::Unreviewed => "unreviewed",
                Approval::Approved => "approved",
                Approval::Stale { .. } => "stale",
            };
            (
                item.item.as_str().to_owned(),
                serde_json::json!({"fingerprint": item.fingerprint, "state": state}),
            )
        })
        .collect();
    codeboost_schema::canonical::to_bytes(&serde_json::json!({
        "schema_version": 1,
        "data_digest": data_digest,
        "repository": "00000000-0000-4000-8000-0000000000a1",
        "task": "00000000-0000-4000-8000-0000000000a2",
        "plan": "00000000-0000-4000-8000-0000000000a3",
        "issue": review.issue.number,
        "revision": review.plan.revision,
        "base": review.link.base,
        "head": review.link.head,
        "items": items,
        "segments": {
            "count": review.link.segments.len(),
            "digest": codeboost_schema::canonical::digest(
                &review.link.segments.iter().map(|one| &one.key).collect::<Vec<_>>()
            ),
        },
        "threads": {"snapshot": Digest::of(b"")},
        "rendered_at": review.rendered_at,
        "public_key": "",
    }))
}
