//! The blocks of the page: what each row shows, and what changed since an approval.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::link::{Body, FileEntry, Link, Row, Scope, Segment, Side, SideKind};
use flate2::Compression;
use rayon::prelude::*;
use serde::Serialize;

use crate::hunks::{FileHunks, Hunk};
use crate::images::{self, Image};
use crate::model::{Contents, SinceFile};
use crate::{text, wire};

/// Lines of other owners further than this from the row's own lines are left out of a large hunk.
const NEAR: usize = 3;
/// A hunk with at most this many lines that are not the row's own is shown whole.
const MAX_OTHER: usize = 16;

/// Previews of all binary files, each once.
#[derive(Default)]
pub(crate) struct Images {
    by_oid: BTreeMap<ObjectId, Result<usize, &'static str>>,
    pub(crate) list: Vec<Image>,
}

impl Images {
    /// Together they may take this many bytes of base64.
    const MAX_TOTAL: usize = 4 * 1024 * 1024;

    pub(crate) fn collect(link: &Link, contents: &[Contents]) -> Self {
        let mut images = Self::default();
        let mut total = 0;
        for (file, contents) in link.files.iter().zip(contents) {
            for (side, bytes) in [(&file.old, &contents.old), (&file.new, &contents.new)] {
                let Some(side) = side else { continue };
                if !side.binary
                    || side.kind != SideKind::Blob
                    || images.by_oid.contains_key(&side.oid)
                {
                    continue;
                }
                let result = match bytes {
                    None => Err("the content is not in this page"),
                    Some(bytes) => images::preview(bytes).and_then(|image| {
                        if total + image.data.len() > Self::MAX_TOTAL {
                            return Err("this page has no room for more previews");
                        }
                        total += image.data.len();
                        images.list.push(image);
                        Ok(images.list.len() - 1)
                    }),
                };
                images.by_oid.insert(side.oid.clone(), result);
            }
        }
        images
    }

    fn side(&self, side: &Side) -> wire::Side {
        let preview = self.by_oid.get(&side.oid);
        wire::Side {
            mode: side.mode.clone(),
            kind: side.kind,
            oid: side.oid.clone(),
            size: side.size,
            lines: side.lines,
            binary: side.binary,
            target: side.target.as_ref().map(|target| text::encode(target.as_bytes())),
            image: preview.and_then(|found| found.ok()),
            no_image: preview.and_then(|found| found.err()),
        }
    }
}

/// What is equal for all rows.
pub(crate) struct Source<'a> {
    pub(crate) link: &'a Link,
    /// Segments of each file.
    pub(crate) by_file: Vec<&'a [Segment]>,
    pub(crate) hunks: Vec<FileHunks<'a>>,
    pub(crate) contents: &'a [Contents],
    pub(crate) images: Images,
    /// Copy and copies of each segment of which there are several.
    pub(crate) copies: BTreeMap<u32, (u64, u64)>,
    /// Place of each commit in the index.
    pub(crate) commits: BTreeMap<&'a CommitId, usize>,
}

/// The segments of each file, which stand together in the link.
pub(crate) fn by_file(link: &Link) -> Vec<&[Segment]> {
    let mut rest = &link.segments[..];
    (0..link.files.len())
        .map(|n| {
            let here = rest.iter().take_while(|segment| segment.file as usize == n).count();
            let (segments, later) = rest.split_at(here);
            rest = later;
            segments
        })
        .collect()
}

/// Copy numbers as they are in segment keys: among segments of one file that are equal in
/// operation and content, counted in order.
pub(crate) fn copies(by_file: &[&[Segment]]) -> BTreeMap<u32, (u64, u64)> {
    let mut out = BTreeMap::new();
    for segments in by_file {
        let mut same: BTreeMap<(char, &[u8]), Vec<u32>> = BTreeMap::new();
        for segment in *segments {
            if let Body::Text(text) = &segment.body {
                let content = (wire::op_char(text.op), text.text.as_bytes());
                same.entry(content).or_default().push(segment.id);
            }
        }
        for ids in same.values().filter(|ids| ids.len() > 1) {
            for (n, id) in ids.iter().enumerate() {
                out.insert(*id, (n as u64 + 1, ids.len() as u64));
            }
        }
    }
    out
}

impl<'a> Source<'a> {
    /// The block of one row.
    pub(crate) fn block(&self, row: &Row) -> wire::Block<'a> {
        let mut files = Vec::new();
        let mut segments = Vec::new();
        let mut last_commits: &[CommitId] = &[];
        for (n, here) in self.by_file.iter().enumerate() {
            let own: Vec<&'a Segment> = here.iter().filter(|one| one.row == *row).collect();
            if own.is_empty() {
                continue;
            }
            for segment in &own {
                let meta = self.meta(segment, last_commits);
                last_commits = &segment.commits;
                if meta != (wire::Segment { id: segment.id, ..wire::Segment::default() }) {
                    segments.push(meta);
                }
            }
            files.push(self.file(n, &self.link.files[n], row, &own));
        }
        let hunks = || files.iter().flat_map(|file: &wire::BlockFile| &file.hunks);
        let text: Vec<&str> = hunks().map(|hunk| hunk.text.as_str()).collect();
        let runs: Vec<&str> = hunks().map(|hunk| hunk.runs.as_str()).collect();
        let (text, runs) = (text.join("\n"), runs.join("\n"));
        let has_runs = runs.bytes().any(|byte| byte != b'\n');
        wire::Block { segments, text, runs: if has_runs { runs } else { String::new() }, files }
    }

    fn meta(&self, segment: &'a Segment, last_commits: &[CommitId]) -> wire::Segment<'a> {
        let commits = (segment.commits != last_commits).then(|| {
            segment.commits.iter().filter_map(|id| self.commits.get(id).copied()).collect()
        });
        let is_own = match &segment.row {
            Row::Item(item) => segment.owners == [item.clone()],
            Row::Ambiguous | Row::Unplanned => segment.owners.is_empty(),
        };
        wire::Segment {
            id: segment.id,
            commits,
            owners: if is_own { &[] } else { &segment.owners },
            foreign: segment.foreign,
            scope: (segment.scope == Scope::Out).then_some(Scope::Out),
            scope_owner: &segment.scope_owner,
            shared_file: &segment.shared_file,
            tags: &segment.tags,
            coarse: segment.coarse,
            copy: self.copies.get(&segment.id).copied(),
        }
    }

    fn file(&self, n: usize, file: &FileEntry, row: &Row, own: &[&Segment]) -> wire::BlockFile {
        let card = own.iter().find_map(|segment| match segment.body {
            Body::File(change) => Some((segment.id, change.to_string())),
            Body::Text(_) => None,
        });
        let mut last_context: Option<&[u8]> = None;
        let mut hunks = Vec::new();
        for hunk in &self.hunks[n].hunks {
            if hunk.segments.iter().any(|(id, _)| self.link.segments[*id as usize].row == *row) {
                hunks.push(self.hunk(hunk, row, &mut last_context));
            }
        }
        wire::BlockFile {
            file: u32::try_from(n).unwrap_or(u32::MAX),
            similarity: file.similarity,
            old: file.old.as_ref().filter(|_| card.is_some()).map(|side| self.images.side(side)),
            new: file.new.as_ref().filter(|_| card.is_some()).map(|side| self.images.side(side)),
            card: card.as_ref().map(|(id, _)| *id),
            change: card.map(|(_, change)| change),
            crlf: self.hunks[n].crlf,
            left_out: self.contents.get(n).and_then(|contents| contents.left_out.clone()),
            hunks,
        }
    }

    fn hunk<'h>(
        &self,
        hunk: &'h Hunk<'_>,
        row: &Row,
        last_context: &mut Option<&'h [u8]>,
    ) -> wire::Hunk {
        let is_own = |place: usize| {
            hunk.lines[place].segment.is_some_and(|id| self.link.segments[id as usize].row == *row)
        };
        let own: Vec<bool> = (0..hunk.lines.len()).map(is_own).collect();
        let here = here(&own);
        let mut out = wire::Hunk {
            hunk: hunk.number,
            old: hunk.old,
            new: hunk.new,
            kinds: hunk.lines.iter().map(|line| line.kind).collect(),
            first: hunk.segments[0].0,
            counts: hunk.segments.iter().map(|(_, n)| *n).collect(),
            contexts: Vec::new(),
            here: None,
            text: String::new(),
            unended: Vec::new(),
            runs: String::new(),
            words: Vec::new(),
        };
        for (place, context) in &hunk.contexts {
            if last_context.is_none_or(|last| last != *context) {
                out.contexts.push((*place, text::encode(context)));
            }
            *last_context = Some(context);
        }
        let mut is_first = true;
        for (begin, n) in &here {
            for (place, line) in hunk.lines.iter().enumerate().skip(*begin).take(*n) {
                if !is_first {
                    out.text.push('\n');
                    out.runs.push('\n');
                }
                is_first = false;
                text::push(&mut out.text, line.text);
                out.runs.push_str(&line.runs);
                if !line.ended {
                    out.unended.push(place);
                }
                if !line.words.is_empty() {
                    out.words.push((place, line.words.clone()));
                }
            }
        }
        if here != [(0, hunk.lines.len())] {
            out.here = Some(here);
        }
        out
    }
}

/// Which lines of a hunk a row gets: all, or those near its own.
fn here(own: &[bool]) -> Vec<(usize, usize)> {
    let n_other = own.iter().filter(|own| !**own).count();
    if n_other <= MAX_OTHER {
        return vec![(0, own.len())];
    }
    let mut near = vec![false; own.len()];
    for (place, _) in own.iter().enumerate().filter(|(_, own)| **own) {
        let end = (place + NEAR + 1).min(own.len());
        near[place.saturating_sub(NEAR)..end].fill(true);
    }
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (place, _) in near.iter().enumerate().filter(|(_, near)| **near) {
        match out.last_mut() {
            Some((begin, n)) if *begin + *n == place => *n += 1,
            _ => out.push((place, 1)),
        }
    }
    out
}

/// What changed about an item since it was approved.
pub(crate) fn since(files: &[SinceFile]) -> Vec<wire::Since> {
    files
        .iter()
        .map(|file| {
            let mut out = wire::Since {
                path: text::encode(file.path.as_bytes()),
                meta: file.meta.clone(),
                statuses: file.lines.iter().map(|line| line.status).collect(),
                ops: file.lines.iter().map(|line| line.op).collect(),
                contexts: Vec::new(),
                text: String::new(),
                unended: Vec::new(),
            };
            let mut last: Option<&[u8]> = None;
            for (place, line) in file.lines.iter().enumerate() {
                let context = line.context.as_bytes();
                if last != Some(context) {
                    out.contexts.push((place, text::encode(context)));
                    last = Some(context);
                }
                if place > 0 {
                    out.text.push('\n');
                }
                let bytes = line.text.as_bytes();
                match bytes.strip_suffix(b"\n") {
                    Some(bytes) => text::push(&mut out.text, bytes),
                    None => {
                        text::push(&mut out.text, bytes);
                        out.unended.push(place);
                    }
                }
            }
            out
        })
        .collect()
}

/// JSON, deflated without header, as base64.
pub(crate) fn pack<T: Serialize>(value: &T) -> String {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, value)
        .expect("plain data serializes, and a vector takes every byte");
    STANDARD.encode(encoder.finish().expect("a vector takes every byte"))
}

/// Packs blocks in parallel; the order stays.
pub(crate) fn pack_all<T: Serialize + Send>(blocks: impl Iterator<Item = T>) -> Vec<String> {
    let blocks: Vec<T> = blocks.collect();
    blocks.into_par_iter().map(|block| pack(&block)).collect()
}

/// The unchanged lines that the page carries.
pub(crate) struct WholeFiles {
    /// Per file of the link, whether its lines are there.
    pub(crate) has: Vec<bool>,
    /// Place of the file and its packed lines.
    pub(crate) parts: Vec<(usize, String)>,
    /// What the page must say about it.
    pub(crate) notice: Option<String>,
}

/// Packs the lines that stand in no hunk, file by file in order, as long as `max_bytes` lasts.
pub(crate) fn whole(source: &Source<'_>, max_bytes: u64) -> WholeFiles {
    let mut left = max_bytes;
    let mut n_left_out = 0;
    let mut chosen = vec![false; source.hunks.len()];
    let mut all: Vec<Option<wire::Whole>> = Vec::new();
    for (n, file) in source.hunks.iter().enumerate() {
        let whole =
            (!file.hunks.is_empty()).then(|| unchanged(file)).filter(|one| !one.ranges.is_empty());
        let bytes = whole.as_ref().map_or(0, |one| one.text.len() as u64);
        let fits = bytes <= left;
        match whole {
            Some(whole) if fits => {
                left -= bytes;
                chosen[n] = true;
                all.push(Some(whole));
            }
            Some(_) => {
                n_left_out += 1;
                all.push(None);
            }
            None => all.push(None),
        }
    }
    let parts = all
        .par_iter()
        .enumerate()
        .filter_map(|(n, whole)| Some((n, pack(whole.as_ref()?))))
        .collect();
    let notice = (n_left_out > 0 && max_bytes > 0).then(|| {
        format!(
            "The unchanged lines of {n_left_out} files are not in this page: it carries up to {} KiB of them.",
            max_bytes >> 10
        )
    });
    WholeFiles { has: chosen, parts, notice }
}

fn unchanged(file: &FileHunks<'_>) -> wire::Whole {
    let mut out = wire::Whole { ranges: Vec::new(), text: String::new() };
    let mut is_first = true;
    let mut take = |from: u64, to: u64, old: u64| {
        let place = |number: u64| usize::try_from(number - 1).unwrap_or(usize::MAX);
        let lines = file.new_lines.get(place(from)..place(to)).unwrap_or_default();
        if lines.is_empty() {
            return;
        }
        for line in lines {
            if !is_first {
                out.text.push('\n');
            }
            is_first = false;
            text::push(&mut out.text, line);
        }
        out.ranges.push((from, lines.len() as u64, old));
    };
    let (mut at, mut old) = (1, 1);
    for hunk in &file.hunks {
        take(at, hunk.new.max(at), old);
        let lines =
            |other: char| hunk.lines.iter().filter(|line| line.kind != other).count() as u64;
        (at, old) = (hunk.new + lines('-'), hunk.old + lines('+'));
    }
    take(at, file.new_lines.len() as u64 + 1, old);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_lines_carry_their_numbers_on_both_sides() {
        let lines =
            |from: u32, to: u32| -> String { (from..to).map(|n| format!("{n}\n")).collect() };
        let mut builder = crate::sample::Builder::new();
        let old = lines(1, 31);
        let new = format!("{}a\nb\n{}{}", lines(1, 10), lines(10, 20), lines(22, 31));
        builder.file("a.txt", Some(&old), Some(&new), &["P1"]);
        let review = builder.finish();
        let hunks = crate::hunks::build(&review.link.segments, &review.contents[0]);
        let whole = unchanged(&hunks);
        // Two lines came in before line 10, and lines 20 and 21 went.
        assert_eq!(whole.ranges, [(1, 6, 1), (15, 4, 13), (25, 6, 25)]);
        let old: Vec<&str> = old.lines().collect();
        let mut texts = whole.text.split('\n');
        for (_, n, from) in whole.ranges {
            for place in from..from + n {
                assert_eq!(texts.next(), old.get(place as usize - 1).copied());
            }
        }
    }

    #[test]
    fn far_lines_of_others_are_left_out() {
        let mut own = vec![false; 100];
        own[50] = true;
        assert_eq!(here(&own), [(47, 7)]);
        assert_eq!(here(&[false, true, false]), [(0, 3)]);
    }
}
