//! What linking a lineage came to, to be kept and taken again.
//!
//! The files of a lineage are linked from nothing but what `made_from` writes down: the commits
//! that it is replayed at with the blobs of each step, its files in the final diff, and what ledger
//! and plan say of these commits and paths. Commits and blobs are named by their content, so a
//! result of the same digest is the same result, proven when it was made: new commits, or a new
//! entry in the ledger, only concern the lineages that they touch.
//!
//! An encoding is only read with the lineage that it was made of; one that does not fit is none.

use std::collections::HashMap;

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::{CommitId, Digest, ItemId, SegmentKey};
use codeboost_schema::link::{Body, Change, FileEntry, Op, Row, Scope, Segment, Side, Tag, Text};

use crate::link::history::{At, FileChange, History, Version};
use crate::link::lineage::{Course, Lineage};
use crate::link::place::Places;
use crate::link::segment::{Linked, bare_side};

/// Results of earlier links, by the digest of what they were made from.
pub trait Kept: Sync {
    /// The result; `None` when it is not there.
    fn get(&self, made_from: &Digest) -> Option<&[u8]>;

    /// A new result.
    fn put(&self, made_from: Digest, linked: Vec<u8>);
}

/// Changes whenever linking, or the encoding, changes.
const FORMAT: &[u8] = b"codeboost lineage 2";

/// Digest of everything that the files of a lineage are linked from.
pub(crate) fn made_from(
    history: &History,
    lineage: &Lineage,
    course: &Course<'_>,
    places: &Places<'_>,
    is_generated: impl Fn(&[u8]) -> bool,
) -> Digest {
    let mut out = Writer::default();
    out.bytes(FORMAT);
    out.bytes(history.base.as_str().as_bytes());
    out.number(course.turns.len());
    for turn in &course.turns {
        let commit = &history.commits[turn.commit as usize];
        out.bytes(commit.id.as_str().as_bytes());
        places.write_maker(turn.commit, &mut out);
        out.number(turn.parents.len());
        for at in &turn.parents {
            out.at(history, *at);
        }
        out.number(turn.steps.len());
        for step in turn.steps {
            out.number(step.parent as usize);
            out.change(&commit.parents[step.parent as usize].changes[step.change as usize], places);
        }
    }
    out.at(history, course.head);
    out.number(lineage.outside.len());
    for (commit, change) in &lineage.outside {
        let outside = &history.outside[*commit as usize];
        out.bytes(outside.id.as_str().as_bytes());
        out.change(&outside.changes[*change as usize], places);
    }
    out.number(lineage.finals.len());
    for n in &lineage.finals {
        let file = &history.diff.files[*n as usize];
        out.change(&file.change, places);
        out.number(file.status as usize);
        out.option(file.similarity.map(u64::from));
        out.option(file.blocks.as_ref().map(|blocks| blocks.len() as u64));
        for block in file.blocks.iter().flatten() {
            let sides = [block.old_start, block.old_lines, block.new_start, block.new_lines];
            sides.iter().for_each(|n| out.number(*n as usize));
        }
        out.flag(is_generated(file.change.path.as_bytes()));
    }
    Digest::of(&out.out)
}

/// Everything that can be told from the final diff is left out. `None`: it can't be kept.
pub(crate) fn encode<'l>(linked: impl Iterator<Item = &'l Linked>) -> Option<Vec<u8>> {
    let mut commits = Table::default();
    let mut items = Table::default();
    let mut out = Writer::default();
    for Linked { entry, segments } in linked {
        for side in [&entry.old, &entry.new].into_iter().flatten() {
            out.option(side.size);
            out.number(side.lines as usize);
            out.flag(side.binary);
            out.flag(side.target.is_some());
            out.bytes(side.target.as_ref().map_or(&[], RepoBytes::as_bytes));
        }
        out.number(segments.len());
        for segment in segments {
            out.row(&segment.row, &mut items);
            for list in [&segment.owners, &segment.scope_owner, &segment.shared_file] {
                out.number(list.len());
                list.iter().for_each(|item| out.number(items.place(item)));
            }
            out.flag(segment.foreign);
            out.number(SCOPES.iter().position(|scope| *scope == segment.scope)?);
            out.number(segment.commits.len());
            segment.commits.iter().for_each(|commit| out.number(commits.place(commit)));
            out.number(segment.tags.len());
            for tag in &segment.tags {
                out.number(TAGS.iter().position(|known| known == tag)?);
            }
            out.out.extend_from_slice(segment.key.hex().as_bytes());
            out.flag(segment.coarse);
            match &segment.body {
                Body::File(change) => {
                    out.number(0);
                    let Change { binary, mode, empty, rename, symlink, submodule } = *change;
                    for flag in [binary, mode, empty, rename, symlink, submodule] {
                        out.flag(flag);
                    }
                }
                Body::Text(text) => {
                    out.number(if text.op == Op::Remove { 1 } else { 2 });
                    out.number(text.start as usize);
                    out.number(text.lines as usize);
                    out.bytes(text.text.as_bytes());
                    out.bytes(text.context.as_bytes());
                    out.number(text.hunk as usize);
                    out.number(text.shares_hunk_with.len());
                    text.shares_hunk_with.iter().for_each(|row| out.row(row, &mut items));
                }
            }
        }
    }
    let mut all = Writer::default();
    all.number(commits.values.len());
    commits.values.iter().for_each(|commit| all.bytes(commit.as_str().as_bytes()));
    all.number(items.values.len());
    items.values.iter().for_each(|item| all.bytes(item.as_str().as_bytes()));
    all.out.extend_from_slice(&out.out);
    Some(all.out)
}

/// The files of a lineage, in its order; `None` when the bytes are not what [`encode`] wrote of it.
pub(crate) fn decode(bytes: &[u8], history: &History, lineage: &Lineage) -> Option<Vec<Linked>> {
    let mut from = Reader { rest: bytes };
    let parse = |text: &[u8]| std::str::from_utf8(text).ok().map(str::to_owned);
    let commits = from.list(|from| CommitId::parse(&parse(from.bytes()?)?).ok())?;
    let items = from.list(|from| ItemId::parse(&parse(from.bytes()?)?).ok())?;
    let mut linked = Vec::with_capacity(lineage.finals.len());
    for n in &lineage.finals {
        let file = &history.diff.files[*n as usize];
        let mut side = |version: &Option<Version>| -> Option<Option<Side>> {
            let Some(version) = version else { return Some(None) };
            let mut side = bare_side(version);
            side.size = from.option()?;
            side.lines = from.number()?;
            side.binary = from.flag()?;
            let has_target = from.flag()?;
            let target = from.bytes()?;
            side.target = has_target.then(|| target.into());
            Some(Some(side))
        };
        let (old, new) = (side(&file.change.old)?, side(&file.change.new)?);
        let segments = from.list(|from| segment(from, &commits, &items))?;
        let entry = FileEntry {
            path: file.change.path.clone(),
            old_path: file.change.old.is_some().then(|| file.change.old_path().clone()),
            status: file.status,
            similarity: file.similarity,
            old,
            new,
        };
        linked.push(Linked { entry, segments });
    }
    from.rest.is_empty().then_some(linked)
}

fn segment(from: &mut Reader<'_>, commits: &[CommitId], items: &[ItemId]) -> Option<Segment> {
    let of = |from: &mut Reader<'_>| items.get(from.number()? as usize).cloned();
    let row = from.row(items)?;
    let (owners, scope_owner, shared_file) = (from.list(of)?, from.list(of)?, from.list(of)?);
    let foreign = from.flag()?;
    let scope = *SCOPES.get(from.number()? as usize)?;
    let commits = from.list(|from| commits.get(from.number()? as usize).cloned())?;
    let tags = from.list(|from| TAGS.get(from.number()? as usize).cloned())?;
    let key = from.key()?;
    let coarse = from.flag()?;
    let body = match from.number()? {
        0 => Body::File(Change {
            binary: from.flag()?,
            mode: from.flag()?,
            empty: from.flag()?,
            rename: from.flag()?,
            symlink: from.flag()?,
            submodule: from.flag()?,
        }),
        op => Body::Text(Text {
            op: if op == 1 { Op::Remove } else { Op::Add },
            start: from.number()?,
            lines: from.number()?,
            text: from.bytes()?.into(),
            context: from.bytes()?.into(),
            hunk: u32::try_from(from.number()?).ok()?,
            shares_hunk_with: from.list(|from| from.row(items))?,
        }),
    };
    Some(Segment {
        id: 0,
        file: 0,
        row,
        owners,
        foreign,
        scope,
        scope_owner,
        shared_file,
        commits,
        tags,
        key,
        coarse,
        body,
    })
}

const SCOPES: [Scope; 4] = [Scope::In, Scope::Out, Scope::Ambiguous, Scope::Unplanned];

/// All tags but that of moves, which are found once all lineages are linked.
const TAGS: [Tag; 14] = [
    Tag::Bidi,
    Tag::Invisible,
    Tag::Confusable,
    Tag::Eol,
    Tag::FinalNewline,
    Tag::Bom,
    Tag::Executable,
    Tag::SymlinkTarget,
    Tag::Submodule,
    Tag::OutOfScope,
    Tag::Adopted,
    Tag::ConflictAgent,
    Tag::Generated,
    Tag::Realigned,
];

/// Numbers values in the order in which they come up.
struct Table<'v, T> {
    values: Vec<&'v T>,
    places: HashMap<&'v T, usize>,
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }
}

impl<'v, T: Eq + std::hash::Hash> Table<'v, T> {
    fn place(&mut self, value: &'v T) -> usize {
        *self.places.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}

/// Writes values so that no two lists of values have the same bytes.
#[derive(Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Seven bits to a byte, the lowest first.
    pub(crate) fn number(&mut self, number: usize) {
        let mut rest = number;
        while rest > 0x7f {
            self.out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.out.push(rest as u8);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.out.push(u8::from(flag));
    }

    fn option(&mut self, number: Option<u64>) {
        self.flag(number.is_some());
        self.number(number.unwrap_or_default() as usize);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    fn row<'v>(&mut self, row: &'v Row, items: &mut Table<'v, ItemId>) {
        self.number(match row {
            Row::Unplanned => 0,
            Row::Ambiguous => 1,
            Row::Item(item) => 2 + items.place(item),
        });
    }

    fn at(&mut self, history: &History, at: At) {
        let (kind, id) = match at {
            At::Base => (0, ""),
            At::Nothing => (1, ""),
            At::Outside(n) => (2, history.outside[n as usize].id.as_str()),
            At::Commit(n) => (3, history.commits[n as usize].id.as_str()),
        };
        self.number(kind);
        self.bytes(id.as_bytes());
    }

    fn change(&mut self, change: &FileChange, places: &Places<'_>) {
        for path in [Some(&change.path), change.renamed_from.as_ref()] {
            self.flag(path.is_some());
            let Some(path) = path else { continue };
            self.bytes(path.as_bytes());
            places.write_declaring(path, self);
        }
        for version in [&change.old, &change.new] {
            self.option(version.as_ref().map(|version| u64::from(version.mode)));
            self.bytes(version.as_ref().map_or(b"", |version| version.oid.as_str().as_bytes()));
        }
    }
}

/// Reads what a [`Writer`] wrote; `None` where that is something else.
struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, n: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn option(&mut self) -> Option<Option<u64>> {
        let is_some = self.flag()?;
        let number = self.number()?;
        Some(is_some.then_some(number))
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let n = usize::try_from(self.number()?).ok()?;
        self.take(n)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.number()?;
        // Each value has at least a byte.
        if n > self.rest.len() as u64 {
            return None;
        }
        (0..n).map(|_| one(self)).collect()
    }

    fn row(&mut self, items: &[ItemId]) -> Option<Row> {
        Some(match self.number()? {
            0 => Row::Unplanned,
            1 => Row::Ambiguous,
            n => Row::Item(items.get(usize::try_from(n).ok()? - 2)?.clone()),
        })
    }

    fn key(&mut self) -> Option<SegmentKey> {
        let hex = std::str::from_utf8(self.take(64)?).ok()?;
        SegmentKey::parse(&format!("sha256:{hex}")).ok()
    }
}
