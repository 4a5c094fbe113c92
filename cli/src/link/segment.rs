//! Splits one file of the final diff into segments that have one row, owner set and scope each.
//!
//! Put back together they are exactly the final diff; [`verify`](crate::link::verify) proves it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::{CommitId, SegmentKey};
use codeboost_schema::link::{
    Body as SegmentBody, Change, FileEntry, FileStatus, Op, Row, Scope, Segment, Side, SideKind,
    Tag, Text, segment_key,
};
use hashbrown::HashMap;

use crate::link::context::{self, Contexts};
use crate::link::hidden::{self, Hidden};
use crate::link::history::{
    BlobError, Block, EXECUTABLE, FinalFile, History, SUBMODULE, SYMLINK, Version,
};
use crate::link::lines::{self, Lines, Starts};
use crate::link::pair::{self, Pairs};
use crate::link::place::{Place, Places};
use crate::link::realign::{Aligner, LineOwner};
use crate::link::replay::{Body, FileState, Node};
use crate::link::sets::{SetId, Sets};
use crate::link::touch::{HeadPlace, NOBODY, Touched};

/// Unchanged lines shown around a change, which decide what is one hunk.
const CONTEXT_LINES: u32 = 3;

/// One file of `link.json`.
pub(crate) struct Linked {
    pub(crate) entry: FileEntry,
    /// Ids and files are still 0.
    pub(crate) segments: Vec<Segment>,
}

/// What the segments of a lineage are made from.
pub(crate) struct Splitter<'a, 'b> {
    pub(crate) history: &'a History,
    pub(crate) places: &'b Places<'b>,
    pub(crate) generated: &'b dyn Fn(&[u8]) -> bool,
    pub(crate) aligner: Aligner<'a>,
    pub(crate) judged: HashMap<(SetId, u32), Arc<Place>>,
}

/// One side of a file: what it is, and its text where it has lines.
struct Content {
    side: Side,
    text: Option<Lines>,
}

impl Splitter<'_, '_> {
    /// The segments of one file, in order, and the lines of its two sides.
    pub(crate) fn split(&mut self, n: u32) -> Result<(Linked, [Option<Lines>; 2]), BlobError> {
        let file = &self.history.diff.files[n as usize];
        let old = self.content(file, Op::Remove)?;
        let new = self.content(file, Op::Add)?;
        let entry = FileEntry {
            path: file.change.path.clone(),
            old_path: file.change.old.is_some().then(|| file.change.old_path().clone()),
            status: file.status,
            similarity: file.similarity,
            old: old.as_ref().map(|content| content.side.clone()),
            new: new.as_ref().map(|content| content.side.clone()),
        };
        let change = change_of(&entry);
        let mut segments = Vec::new();
        if !change.is_empty() {
            segments.push(self.file_segment(n, file, &entry, change));
        }
        let is_binary = |content: &Option<Content>| content.as_ref().is_some_and(|c| c.side.binary);
        let text = |content: Option<Content>| content.and_then(|content| content.text);
        let has_text = !is_binary(&old) && !is_binary(&new);
        let (old, new) = (text(old), text(new));
        if has_text {
            self.text_segments(n, file, old.as_ref(), new.as_ref(), &mut segments);
        }
        set_keys(&entry, &mut segments);
        segments.shrink_to_fit();
        Ok((Linked { entry, segments }, [old, new]))
    }

    fn content(&mut self, file: &FinalFile, op: Op) -> Result<Option<Content>, BlobError> {
        let version = match op {
            Op::Remove => &file.change.old,
            Op::Add => &file.change.new,
        };
        let Some(version) = version else { return Ok(None) };
        let touches = &self.aligner.touches;
        let state = match op {
            Op::Remove => touches
                .replay
                .base_file_at(file.change.old_path())
                .map(|base| Rc::clone(&base.state)),
            Op::Add => {
                touches.file_at(&file.change.path).map(|n| Rc::clone(&touches.files[n as usize].1))
            }
        };
        let state = state.expect("a replay ends with every file of the final diff");
        let mut side = bare_side(version);
        let mut text = None;
        match (&state.body, side.kind) {
            (_, SideKind::Submodule) => {}
            (_, SideKind::Symlink) => {
                let target = self.aligner.touches.replay.content(version)?;
                side.size = Some(target.len() as u64);
                side.lines = lines::count(&target) as u64;
                side.target = Some(target.as_slice().into());
            }
            (Body::Text { bytes, .. }, SideKind::Blob) => {
                let lines = Lines::of(Arc::clone(bytes));
                side.size = Some(bytes.len() as u64);
                side.lines = lines.starts.n_lines() as u64;
                text = Some(lines);
            }
            (Body::Other { n_bytes }, SideKind::Blob) => {
                side.size = *n_bytes;
                side.binary = true;
            }
        }
        Ok(Some(Content { side, text }))
    }

    fn place(&mut self, nodes: SetId, n: u32) -> Arc<Place> {
        if let Some(place) = self.judged.get(&(nodes, n)) {
            return Arc::clone(place);
        }
        let replay = &self.aligner.touches.replay;
        let members: Vec<&Node> =
            replay.sets.members(nodes).iter().map(|n| &replay.nodes[*n as usize]).collect();
        let change = &self.history.diff.files[n as usize].change;
        let mut paths = vec![&change.path];
        paths.extend(change.renamed_from.as_ref());
        let place = Arc::new(self.places.judge(&members, &paths));
        self.judged.insert((nodes, n), Arc::clone(&place));
        place
    }

    /// The commits of nodes, parents first.
    fn commits(&self, nodes: SetId) -> Vec<CommitId> {
        let replay = &self.aligner.touches.replay;
        let places = replay.sets.members(nodes).iter();
        let mut places: Vec<u32> = places.map(|n| replay.nodes[*n as usize].commit).collect();
        places.dedup();
        places.iter().map(|n| self.history.commits[*n as usize].id.clone()).collect()
    }

    fn file_segment(
        &mut self,
        n: u32,
        file: &FinalFile,
        entry: &FileEntry,
        change: Change,
    ) -> Segment {
        let is_whole = change.binary || change.symlink || change.submodule || change.empty;
        let nodes = self.file_events(file, is_whole);
        let place = self.place(nodes, n);
        let mut tags = Vec::new();
        let is_executable = |side: &Option<Side>| {
            side.as_ref().is_some_and(|side| side.mode == format!("{EXECUTABLE:06o}"))
        };
        if change.mode && is_executable(&entry.old) != is_executable(&entry.new) {
            tags.push(Tag::Executable);
        }
        if change.symlink {
            tags.push(Tag::SymlinkTarget);
        }
        if change.submodule {
            tags.push(Tag::Submodule);
        }
        self.common_tags(file, &place, &mut tags);
        Segment {
            id: 0,
            file: 0,
            row: place.row.clone(),
            owners: place.owners.clone(),
            foreign: place.is_foreign,
            scope: place.scope,
            scope_owner: place.scope_owner.iter().cloned().collect(),
            shared_file: place.shared_file.iter().cloned().collect(),
            commits: self.commits(nodes),
            tags,
            key: SegmentKey::of(b""),
            coarse: false,
            body: SegmentBody::File(change),
        }
    }

    /// Everyone who changed path, mode, type or binary content of a file; with `is_whole` everyone
    /// who changed its content at all.
    fn file_events(&mut self, file: &FinalFile, is_whole: bool) -> SetId {
        let events_of = |state: &FileState, sets: &mut Sets| match is_whole {
            true => state.whole_events(sets),
            false => state.events(sets),
        };
        let touches = &mut self.aligner.touches;
        let mut events = NOBODY.nodes;
        if file.change.new.is_some()
            && let Some(n) = touches.file_at(&file.change.path)
        {
            let state = Rc::clone(&touches.files[n as usize].1);
            let more = events_of(&state, &mut touches.replay.sets);
            events = touches.replay.sets.union(events, more);
        }
        if file.change.old.is_some()
            && let Some(base) = touches.replay.base_file_at(file.change.old_path())
        {
            // Deleted, or alive somewhere in the head.
            let place = base.state.base_file;
            let ended = touches.replay.end_of_file(base);
            let alive = touches.files.iter().find(|(_, state)| state.base_file == place);
            let alive = alive.map(|(_, state)| Rc::clone(state));
            let more = match (alive, ended) {
                (Some(state), _) => events_of(&state, &mut touches.replay.sets),
                (None, Some(ended)) if is_whole => ended.whole_events,
                (None, Some(ended)) => ended.events,
                (None, None) => NOBODY.nodes,
            };
            events = touches.replay.sets.union(events, more);
        }
        if events == NOBODY.nodes {
            events = self.aligner.anyone(&file.change.path).touched.nodes;
        }
        events
    }

    fn common_tags(&self, file: &FinalFile, place: &Place, tags: &mut Vec<Tag>) {
        if place.scope == Scope::Out {
            tags.push(Tag::OutOfScope);
        }
        if place.is_adopted {
            tags.push(Tag::Adopted);
        }
        if place.is_conflict_agent {
            tags.push(Tag::ConflictAgent);
        }
        if (self.generated)(file.change.path.as_bytes()) {
            tags.push(Tag::Generated);
        }
    }

    fn text_segments(
        &mut self,
        n: u32,
        file: &FinalFile,
        old: Option<&Lines>,
        new: Option<&Lines>,
        segments: &mut Vec<Segment>,
    ) {
        let n_lines = |side: Option<&Lines>| side.map_or(0, |lines| lines.starts.n_lines() as u32);
        let (n_old, n_new) = (n_lines(old), n_lines(new));
        let whole = [Block { old_start: 0, old_lines: n_old, new_start: 0, new_lines: n_new }];
        let final_blocks = self.aligner.blocks(n);
        // A change of type has no lines in common.
        let blocks: &[Block] = match file.status {
            FileStatus::Type if n_old + n_new > 0 => &whole,
            FileStatus::Type => &[],
            _ => &final_blocks,
        };
        let empty = Lines::of(Arc::default());
        let Lines { text: old_text, starts: old_starts } = old.unwrap_or(&empty);
        let Lines { text: new_text, starts: new_starts } = new.unwrap_or(&empty);
        let first_old = self
            .aligner
            .touches
            .replay
            .base_file_at(file.change.old_path())
            .map_or(0, |base| base.first);
        let head = self.aligner.touches.file_at(&file.change.path).unwrap_or_default();
        let contexts = Contexts::of(file.change.old_path());
        let edges = Edges::of(old.is_some(), old_text, new.is_some(), new_text);

        let first = segments.len();
        let mut hunk = 0;
        let mut old_before: Option<u32> = None;
        let mut context_from = 0;
        let mut context: Option<Range<usize>> = None;
        for block in blocks {
            if let Some(before) = old_before
                && block.old_start - before > 2 * CONTEXT_LINES
            {
                hunk += 1;
            }
            old_before = Some(block.old_start + block.old_lines);
            // Searched upwards, to where the search for the block before began.
            let found = (context_from..block.old_start as usize).rev().find(|line| {
                contexts.names(lines::without_terminator(old_starts.line(old_text, *line)))
            });
            if let Some(line) = found {
                context = Some(line..line + 1);
            }
            context_from = block.old_start as usize;
            let context_line = context.clone().map_or(&[][..], |line| {
                context::cut(lines::without_terminator(old_starts.bytes(old_text, line)))
            });
            let context_line = RepoBytes::from(context_line);
            let flips = eol_flips(block, old_text, old_starts, new_text, new_starts);

            for op in [Op::Remove, Op::Add] {
                let (range, text, starts) = match op {
                    Op::Remove => (block.olds(), old_text, old_starts),
                    Op::Add => (block.news(), new_text, new_starts),
                };
                let mut at = range.start;
                let mut pending: Option<(LineOwner, Arc<Place>)> = None;
                while at < range.end {
                    let (owner, place) = match pending.take() {
                        Some(next) => next,
                        None => {
                            let owner = self.owner(op, first_old, head, at);
                            (owner, self.place(owner.touched.nodes, n))
                        }
                    };
                    let mut run = Run::new(owner, &place);
                    let start = at;
                    at += 1;
                    let mut last = owner.touched.nodes;
                    while at < range.end {
                        let owner = self.owner(op, first_old, head, at);
                        // Mostly the same as of the line before.
                        if owner.touched.nodes == last {
                            run.is_realigned |= owner.is_realigned;
                            run.touched.is_coarse |= owner.touched.is_coarse;
                            at += 1;
                            continue;
                        }
                        let next = self.place(owner.touched.nodes, n);
                        last = owner.touched.nodes;
                        if !next.joins(&place) {
                            pending = Some((owner, next));
                            break;
                        }
                        run.add(&mut self.aligner, owner, &next);
                        at += 1;
                    }
                    let bytes = starts.bytes(text, start..at);
                    let mut tags = Vec::new();
                    hidden_tags(hidden::look(bytes), &mut tags);
                    if flips.iter().any(|(side, line)| *side == op && (start..at).contains(line)) {
                        tags.push(Tag::Eol);
                    }
                    edges.tags(start..at, starts.n_lines(), &mut tags);
                    self.common_tags(file, &place, &mut tags);
                    if run.is_realigned {
                        tags.push(Tag::Realigned);
                    }
                    segments.push(Segment {
                        id: 0,
                        file: 0,
                        row: place.row.clone(),
                        owners: place.owners.clone(),
                        foreign: place.is_foreign,
                        scope: place.scope,
                        scope_owner: run.scope_owner.into_iter().collect(),
                        shared_file: run.shared_file.into_iter().collect(),
                        commits: self.commits(run.touched.nodes),
                        tags,
                        key: SegmentKey::of(b""),
                        coarse: run.touched.is_coarse,
                        body: SegmentBody::Text(Text {
                            op,
                            start: start as u64 + 1,
                            lines: (at - start) as u64,
                            text: bytes.into(),
                            context: context_line.clone(),
                            hunk,
                            shares_hunk_with: Vec::new(),
                        }),
                    });
                }
            }
        }
        set_shared_hunks(&mut segments[first..]);
    }

    fn owner(&mut self, op: Op, first_old: u32, head: u32, line: usize) -> LineOwner {
        match op {
            Op::Remove => self.aligner.removed(first_old + line as u32),
            Op::Add => self.aligner.added(HeadPlace { file: head, line: line as u32 }),
        }
    }
}

/// A side, without what its content says.
pub(crate) fn bare_side(version: &Version) -> Side {
    let kind = match version.mode {
        SYMLINK => SideKind::Symlink,
        SUBMODULE => SideKind::Submodule,
        _ => SideKind::Blob,
    };
    Side {
        mode: format!("{:06o}", version.mode),
        kind,
        oid: version.oid.clone(),
        size: None,
        lines: 0,
        binary: false,
        target: None,
    }
}

/// A segment in the making.
struct Run {
    touched: Touched,
    is_realigned: bool,
    scope_owner: BTreeSet<codeboost_schema::ids::ItemId>,
    shared_file: BTreeSet<codeboost_schema::ids::ItemId>,
}

impl Run {
    fn new(owner: LineOwner, place: &Place) -> Self {
        Self {
            touched: owner.touched,
            is_realigned: owner.is_realigned,
            scope_owner: place.scope_owner.clone(),
            shared_file: place.shared_file.clone(),
        }
    }

    fn add(&mut self, aligner: &mut Aligner<'_>, owner: LineOwner, place: &Place) {
        self.is_realigned |= owner.is_realigned;
        if owner.touched == self.touched {
            return;
        }
        self.touched = aligner.touches.union(self.touched, owner.touched);
        self.scope_owner.extend(place.scope_owner.iter().cloned());
        self.shared_file.extend(place.shared_file.iter().cloned());
    }
}

/// What changed about a file besides its lines.
fn change_of(entry: &FileEntry) -> Change {
    let mut change = Change::default();
    let of_kind = |side: &Option<Side>, kind| side.as_ref().is_some_and(|s| s.kind == kind);
    let any = |kind| of_kind(&entry.old, kind) || of_kind(&entry.new, kind);
    let content = |side: &Option<Side>| side.as_ref().map(|side| (side.kind, side.oid.clone()));
    let differs = content(&entry.old) != content(&entry.new);
    let is_binary = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.binary);
    change.binary = differs && (is_binary(&entry.old) || is_binary(&entry.new));
    change.symlink = differs && any(SideKind::Symlink);
    change.submodule = differs && any(SideKind::Submodule);
    change.rename = entry.status == FileStatus::Renamed;
    let executable = format!("{EXECUTABLE:06o}");
    match (&entry.old, &entry.new) {
        (Some(old), Some(new)) => change.mode = old.kind == new.kind && old.mode != new.mode,
        (Some(one), None) | (None, Some(one)) => {
            let is_regular = one.kind == SideKind::Blob;
            change.mode = is_regular && one.mode == executable;
            change.empty = is_regular && one.size == Some(0);
        }
        (None, None) => {}
    }
    change
}

fn hidden_tags(hidden: Hidden, tags: &mut Vec<Tag>) {
    for (is_set, tag) in [
        (hidden.has_bidi, Tag::Bidi),
        (hidden.has_invisible, Tag::Invisible),
        (hidden.has_confusable, Tag::Confusable),
    ] {
        if is_set {
            tags.push(tag);
        }
    }
}

/// What changed at the very beginning and the very end of a file.
struct Edges {
    has_bom_changed: bool,
    has_final_newline_changed: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Edges {
    fn of(has_old: bool, old: &[u8], has_new: bool, new: &[u8]) -> Self {
        let ends = |text: &[u8]| text.last().map(|last| *last == b'\n');
        Self {
            has_bom_changed: has_new && old.starts_with(BOM) != new.starts_with(BOM),
            has_final_newline_changed: has_old
                && has_new
                && matches!((ends(old), ends(new)), (Some(a), Some(b)) if a != b),
        }
    }

    fn tags(&self, lines: Range<usize>, n_lines: usize, tags: &mut Vec<Tag>) {
        if self.has_final_newline_changed && lines.end == n_lines {
            tags.push(Tag::FinalNewline);
        }
        if self.has_bom_changed && lines.start == 0 {
            tags.push(Tag::Bom);
        }
    }
}

/// The lines of a block whose ending flipped between LF and CRLF: equal or paired lines that end
/// otherwise on the other side.
fn eol_flips(
    block: &Block,
    old_text: &[u8],
    old_starts: &Starts,
    new_text: &[u8],
    new_starts: &Starts,
) -> Vec<(Op, usize)> {
    if block.old_lines == 0 || block.new_lines == 0 {
        return Vec::new();
    }
    let old_bytes = old_starts.bytes(old_text, block.olds());
    let new_bytes = new_starts.bytes(new_text, block.news());
    let kinds = |text: &[u8]| {
        let n_lf = memchr::memchr_iter(b'\n', text).count();
        let n_crlf = memchr::memmem::find_iter(text, b"\r\n").count();
        (n_lf > n_crlf, n_crlf > 0)
    };
    let ((old_lf, old_crlf), (new_lf, new_crlf)) = (kinds(old_bytes), kinds(new_bytes));
    if !(old_lf && new_crlf || old_crlf && new_lf) {
        return Vec::new();
    }
    fn side<'a>(text: &'a [u8], starts: &Starts, range: Range<usize>) -> Vec<&'a [u8]> {
        range.map(|line| starts.line(text, line)).collect()
    }
    let olds = side(old_text, old_starts, block.olds());
    let news = side(new_text, new_starts, block.news());
    fn bare<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
        lines.iter().map(|line| lines::without_terminator(line)).collect()
    }
    let (bare_olds, bare_news) = (bare(&olds), bare(&news));
    let mut interner = lines::Interner::default();
    let old_numbers: Vec<u32> = bare_olds.iter().map(|line| interner.intern(line)).collect();
    let new_numbers: Vec<u32> = bare_news.iter().map(|line| interner.intern(line)).collect();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    match pair::equal_lines(&old_numbers, &new_numbers) {
        Some(equal) => {
            let (mut i, mut j) = (0, 0);
            let past = (olds.len() as u32, news.len() as u32);
            for (old, new) in equal.into_iter().chain([past]) {
                let (old, new) = (old as usize, new as usize);
                let between = (&bare_olds[i..old], &bare_news[j..new]);
                if let Pairs::Some(more) = pair::similar_lines(between.0, between.1) {
                    pairs.extend(more.iter().map(|(a, b)| (i + *a as usize, j + *b as usize)));
                }
                if old < olds.len() {
                    pairs.push((old, new));
                }
                (i, j) = (old + 1, new + 1);
            }
        }
        // Too large to pair: line by line.
        None => pairs.extend((0..olds.len().min(news.len())).map(|n| (n, n))),
    }
    let ending = |line: &[u8]| line.ends_with(b"\n").then(|| line.ends_with(b"\r\n"));
    let mut flips = Vec::new();
    for (old, new) in pairs {
        if let (Some(a), Some(b)) = (ending(olds[old]), ending(news[new]))
            && a != b
        {
            flips.push((Op::Remove, block.olds().start + old));
            flips.push((Op::Add, block.news().start + new));
        }
    }
    flips
}

/// Segments of one hunk follow one another.
fn set_shared_hunks(segments: &mut [Segment]) {
    let hunk = |segment: &Segment| match &segment.body {
        SegmentBody::Text(text) => Some(text.hunk),
        SegmentBody::File(_) => None,
    };
    for hunk in segments.chunk_by_mut(|a, b| hunk(a) == hunk(b)) {
        if hunk.iter().all(|segment| segment.row == hunk[0].row) {
            continue;
        }
        let rows: BTreeSet<Row> = hunk.iter().map(|segment| segment.row.clone()).collect();
        for segment in hunk {
            if let SegmentBody::Text(text) = &mut segment.body {
                let others = rows.iter().filter(|row| **row != segment.row);
                text.shares_hunk_with = others.cloned().collect();
            }
        }
    }
}

fn set_keys(entry: &FileEntry, segments: &mut [Segment]) {
    let mut copies: HashMap<(Op, RepoBytes), (u64, u64)> = HashMap::new();
    for segment in &*segments {
        if let SegmentBody::Text(text) = &segment.body {
            copies.entry((text.op, text.text.clone())).or_default().1 += 1;
        }
    }
    for segment in segments {
        let (copy, of) = match &segment.body {
            SegmentBody::Text(text) => {
                let count = copies.get_mut(&(text.op, text.text.clone()));
                let count = count.expect("every text was counted");
                count.0 += 1;
                *count
            }
            SegmentBody::File(_) => (1, 1),
        };
        segment.key = segment_key(entry, &segment.body, copy, of);
    }
}
