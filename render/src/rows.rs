//! What rows are made of, what changed since an approval, and whole files.

use std::collections::BTreeMap;

use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::link::{Body, Link, Row, Segment, Side, SideKind, Tag};
use rayon::prelude::*;
use serde::Serialize;

use crate::hunks::FileHunks;
use crate::images::{self, Image};
use crate::model::{Contents, Review, SinceFile};
use crate::{index, script, text, wire};

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

    pub(crate) fn side(&self, side: &Side) -> wire::Side {
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
    /// Place of each segment's row in the link.
    pub(crate) row_of: Vec<u32>,
    /// Files in which each row has segments.
    row_files: Vec<Vec<usize>>,
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
fn copies(by_file: &[&[Segment]]) -> BTreeMap<u32, (u64, u64)> {
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
    /// Gathers what all rows are made of.
    pub(crate) fn new(
        review: &'a Review,
        by_file: Vec<&'a [Segment]>,
        hunks: Vec<FileHunks<'a>>,
    ) -> Self {
        let link = &review.link;
        let numbers: BTreeMap<&Row, u32> =
            (0..).zip(&link.rows).map(|(n, summary)| (&summary.row, n)).collect();
        let row_of: Vec<u32> = link
            .segments
            .iter()
            .map(|segment| numbers.get(&segment.row).copied().unwrap_or(u32::MAX))
            .collect();
        let mut row_files = vec![Vec::new(); link.rows.len()];
        for (segment, row) in link.segments.iter().zip(&row_of) {
            let files: Option<&mut Vec<usize>> = row_files.get_mut(*row as usize);
            if let Some(files) =
                files.filter(|files| files.last() != Some(&(segment.file as usize)))
            {
                files.push(segment.file as usize);
            }
        }
        Self {
            link,
            hunks,
            contents: &review.contents,
            images: Images::collect(link, &review.contents),
            copies: copies(&by_file),
            commits: index::commits(link),
            by_file,
            row_of,
            row_files,
        }
    }

    /// The files that a row has segments in, in order.
    pub(crate) fn files_of(&self, row: u32) -> impl Iterator<Item = usize> {
        self.row_files[row as usize].iter().copied()
    }

    /// Whether all segments of a file carry the tag `generated`.
    pub(crate) fn is_generated(&self, file: usize) -> bool {
        let segments = self.by_file[file];
        !segments.is_empty() && segments.iter().all(|one| one.tags.contains(&Tag::Generated))
    }

    /// The largest line number on a row.
    pub(crate) fn most(&self, row: u32) -> u64 {
        self.files_of(row)
            .filter_map(|file| self.hunks[file].hunks.last())
            .map(|hunk| hunk.old.max(hunk.new) + hunk.lines.len() as u64)
            .max()
            .unwrap_or(0)
    }
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
    script::pack(&serde_json::to_vec(value).expect("plain data serializes"))
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
}
