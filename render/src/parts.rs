//! Rows in parts, each of which the page reads by itself: where they are cut, and what is in them.

use std::collections::HashMap;

use codeboost_schema::link::{Body, Row, Scope, Segment};
use rayon::prelude::*;

use crate::hunks::Hunk;
use crate::rows::Source;
use crate::{text, wire};

/// Lines of other owners further than this from the row's own lines are left out of a large hunk.
const NEAR: usize = 3;
/// A hunk with at most this many lines that are not the row's own is shown whole.
const MAX_OTHER: usize = 16;
/// A part ends with the file that brings it to this many lines.
const PART_LINES: u64 = 5000;
/// Longer hunks are cut, at the same places for all rows.
const PIECE_LINES: usize = 2000;

/// One part of a row.
pub(crate) struct Part {
    files: Vec<PartFile>,
    pub(crate) place: wire::Place,
}

struct PartFile {
    /// Place in the link.
    file: usize,
    pieces: Vec<Piece>,
    /// The line at head after the row's last piece in an earlier part.
    from: Option<u64>,
    /// Whether a later part goes on with the file.
    more: bool,
}

/// A stretch of a hunk.
struct Piece {
    hunk: usize,
    begin: usize,
    end: usize,
    /// First line and number of lines that are here, counted from `begin`.
    here: Vec<(usize, usize)>,
}

impl Piece {
    fn lines(&self) -> u64 {
        self.here.iter().map(|(_, n)| *n as u64).sum()
    }
}

/// Segments in a stretch of a hunk, with the lines that they have there.
struct Cut {
    /// Id of the first segment; the others follow in order.
    first: u32,
    /// Lines of the first that stand before the stretch, and of the last that stand after it.
    before: u64,
    after: u64,
    /// Segments in the stretch.
    n: u32,
}

fn cut(hunk: &Hunk<'_>, begin: usize, end: usize) -> Cut {
    let ids = |lines: &[crate::hunks::Line<'_>]| -> Option<u32> {
        lines.iter().find_map(|line| line.segment)
    };
    let first = ids(&hunk.lines[begin..end]).unwrap_or(hunk.segments[0].0);
    let last = hunk.lines[begin..end].iter().rev().find_map(|line| line.segment).unwrap_or(first);
    let of = |lines: &[crate::hunks::Line<'_>], id: u32| {
        lines.iter().filter(|line| line.segment == Some(id)).count() as u64
    };
    Cut {
        first,
        before: of(&hunk.lines[..begin], first),
        after: of(&hunk.lines[end..], last),
        n: last - first + 1,
    }
}

impl<'a> Source<'a> {
    /// The parts of one row, by its place in the link.
    pub(crate) fn parts(&self, row: u32) -> Vec<Part> {
        let mut out: Vec<Part> = Vec::new();
        let mut part = Part { files: Vec::new(), place: (0, 0, 0, 0, 0) };
        for file in self.files_of(row) {
            self.add_file(row, file, &mut part, &mut out);
            if part.place.2 >= PART_LINES {
                out.push(std::mem::replace(
                    &mut part,
                    Part { files: Vec::new(), place: (0, 0, 0, 0, 0) },
                ));
            }
        }
        if !part.files.is_empty() {
            out.push(part);
        }
        out
    }

    fn add_file(&self, row: u32, file: usize, part: &mut Part, out: &mut Vec<Part>) {
        let is_folded = self.is_generated(file);
        let card = self.by_file[file]
            .first()
            .filter(|one| matches!(one.body, Body::File(_)) && self.row_of[one.id as usize] == row);
        let begin = |part: &mut Part, place: (u32, u64), from: Option<u64>| {
            if part.files.is_empty() {
                (part.place.0, part.place.1) = place;
            }
            part.files.push(PartFile { file, pieces: Vec::new(), from, more: false });
            part.place.3 += 1;
        };
        let mut is_begun = false;
        if let Some(card) = card {
            begin(part, (card.id, 0), None);
            is_begun = true;
        }
        let mut end_new = None;
        for (n, hunk) in self.hunks[file].hunks.iter().enumerate() {
            if !hunk.segments.iter().any(|(id, _)| self.row_of[*id as usize] == row) {
                continue;
            }
            for from in (0..hunk.lines.len()).step_by(PIECE_LINES) {
                let to = (from + PIECE_LINES).min(hunk.lines.len());
                let own: Vec<bool> = hunk.lines[from..to]
                    .iter()
                    .map(|line| line.segment.is_some_and(|id| self.row_of[id as usize] == row))
                    .collect();
                if !own.contains(&true) {
                    continue;
                }
                let piece = Piece { hunk: n, begin: from, end: to, here: here(&own) };
                // A file that is larger than a part goes on in the next.
                let is_full = part.place.2 + piece.lines() > PART_LINES + PIECE_LINES as u64;
                if is_full && part.files.last().is_some_and(|one| !one.pieces.is_empty()) {
                    if is_begun && let Some(last) = part.files.last_mut() {
                        last.more = true;
                    }
                    out.push(std::mem::replace(
                        part,
                        Part { files: Vec::new(), place: (0, 0, 0, 0, 0) },
                    ));
                    is_begun = false;
                }
                if !is_begun {
                    let cut = cut(hunk, from, to);
                    begin(part, (cut.first, cut.before), end_new);
                    is_begun = true;
                }
                part.place.2 += piece.lines();
                part.place.3 += u64::from(from == 0);
                part.place.4 += if is_folded { piece.lines() } else { 0 };
                if let Some(last) = part.files.last_mut() {
                    last.pieces.push(piece);
                }
                let shown = hunk.lines[..to].iter().filter(|line| line.kind != '-').count();
                end_new = Some(hunk.new + shown as u64);
            }
        }
    }

    /// What a part shows.
    pub(crate) fn block(&self, row: u32, part: &Part) -> wire::Block<'a> {
        let mut maker = Maker {
            source: self,
            row,
            block: wire::Block {
                files: Vec::new(),
                gaps: Vec::new(),
                shifts: Vec::new(),
                skips: Vec::new(),
                steps: String::new(),
                cuts: Vec::new(),
                here: Vec::new(),
                context_hunks: Vec::new(),
                contexts: Vec::new(),
                unended: Vec::new(),
                word_lines: Vec::new(),
                words: String::new(),
                said: vec![wire::Segment::default()],
                says: Vec::new(),
                copies: Vec::new(),
                text: String::new(),
                runs: String::new(),
            },
            said: HashMap::from([(wire::Segment::default(), 0)]),
            n_segments: 0,
            last_segment: None,
            next_segment: 0,
            n_lines: 0,
            last_word_line: 0,
            last_context_hunk: 0,
        };
        for file in &part.files {
            maker.file(file);
        }
        let mut block = maker.block;
        if block.runs.bytes().all(|byte| byte == b'\n') {
            block.runs.clear();
        }
        block
    }

    fn says(&self, segment: &'a Segment) -> wire::Segment<'a> {
        let is_own = match &segment.row {
            Row::Item(item) => segment.owners == [item.clone()],
            Row::Ambiguous | Row::Unplanned => segment.owners.is_empty(),
        };
        wire::Segment {
            commits: segment
                .commits
                .iter()
                .filter_map(|id| self.commits.get(id).copied())
                .collect(),
            owners: if is_own { &[] } else { &segment.owners },
            foreign: segment.foreign,
            scope: (segment.scope == Scope::Out).then_some(Scope::Out),
            scope_owner: &segment.scope_owner,
            shared_file: &segment.shared_file,
            tags: &segment.tags,
            coarse: segment.coarse,
        }
    }

    /// Parts of all rows with their packed blocks, in order.
    pub(crate) fn pack_parts(&self) -> Vec<Vec<(wire::Place, String)>> {
        let rows = u32::try_from(self.link.rows.len()).unwrap_or(u32::MAX);
        let parts: Vec<Vec<Part>> = (0..rows).into_par_iter().map(|row| self.parts(row)).collect();
        let all: Vec<(u32, &Part)> = (0..)
            .zip(&parts)
            .flat_map(|(row, parts)| parts.iter().map(move |one| (row, one)))
            .collect();
        let mut packed: Vec<String> = all
            .into_par_iter()
            .map(|(row, part)| crate::rows::pack(&self.block(row, part)))
            .collect();
        let mut packed = packed.drain(..);
        parts
            .iter()
            .map(|parts| parts.iter().map(|one| one.place).zip(packed.by_ref()).collect())
            .collect()
    }
}

/// Fills the block of one part.
struct Maker<'s, 'a> {
    source: &'s Source<'a>,
    row: u32,
    block: wire::Block<'a>,
    /// Place of what was said before.
    said: HashMap<wire::Segment<'a>, usize>,
    n_segments: usize,
    last_segment: Option<u32>,
    /// The segment that comes next where none is skipped.
    next_segment: u32,
    n_lines: usize,
    last_word_line: usize,
    last_context_hunk: usize,
}

impl<'a> Maker<'_, 'a> {
    fn file(&mut self, part: &PartFile) {
        let source = self.source;
        let file = &source.link.files[part.file];
        let card = source.by_file[part.file].first().and_then(|segment| match segment.body {
            Body::File(change)
                if self.source.row_of[segment.id as usize] == self.row && part.from.is_none() =>
            {
                Some((segment, change.to_string()))
            }
            Body::File(_) | Body::Text(_) => None,
        });
        let side = |side: &Option<codeboost_schema::link::Side>| {
            side.as_ref().filter(|_| card.is_some()).map(|side| source.images.side(side))
        };
        self.block.files.push(wire::BlockFile {
            file: u32::try_from(part.file).unwrap_or(u32::MAX),
            n: part.pieces.len(),
            similarity: file.similarity,
            old: side(&file.old),
            new: side(&file.new),
            card: card.as_ref().map(|(segment, _)| segment.id),
            change: card.as_ref().map(|(_, change)| change.clone()),
            crlf: source.hunks[part.file].crlf,
            left_out: source.contents.get(part.file).and_then(|one| one.left_out.clone()),
            from: part.from,
            more: part.more,
        });
        if let Some((segment, _)) = card {
            self.segment(segment);
        }
        let (mut old, mut new) = (1, 1);
        let mut context: Option<&[u8]> = None;
        for piece in &part.pieces {
            let hunk = &source.hunks[part.file].hunks[piece.hunk];
            self.piece(hunk, piece, &mut context, &mut old, &mut new);
        }
    }

    fn segment(&mut self, segment: &'a Segment) {
        if self.last_segment == Some(segment.id) {
            return;
        }
        self.last_segment = Some(segment.id);
        let says = self.source.says(segment);
        let next = self.said.len();
        let place = *self.said.entry(says).or_insert_with_key(|says| {
            self.block.said.push(says.clone());
            next
        });
        match self.block.says.len() {
            n if n > 0 && self.block.says[n - 2] == place => self.block.says[n - 1] += 1,
            _ => self.block.says.extend([place, 1]),
        }
        if let Some((copy, copies)) = self.source.copies.get(&segment.id) {
            self.block.copies.push((self.n_segments, *copy, *copies));
        }
        self.n_segments += 1;
    }

    fn piece<'h>(
        &mut self,
        hunk: &'h Hunk<'_>,
        piece: &Piece,
        last_context: &mut Option<&'h [u8]>,
        end_old: &mut i64,
        end_new: &mut i64,
    ) {
        let number = self.block.gaps.len();
        let Cut { first, before, after, n } = cut(hunk, piece.begin, piece.end);
        for id in first..first + n {
            if self.source.row_of[id as usize] == self.row {
                self.segment(&self.source.link.segments[id as usize]);
            }
        }
        let ahead = |kind: char| {
            hunk.lines[..piece.begin].iter().filter(|line| line.kind != kind).count() as u64
        };
        let (old, new) =
            ((hunk.old + ahead('+')).cast_signed(), (hunk.new + ahead('-')).cast_signed());
        let block = &mut self.block;
        block.gaps.push(new - *end_new);
        block.shifts.push((old - *end_old) - (new - *end_new));
        block.skips.push(first.saturating_sub(self.next_segment));
        self.next_segment = first + n - u32::from(after > 0);
        if (before, after) != (0, 0) {
            block.cuts.push((number, before, after));
        }
        if piece.here != [(0, piece.end - piece.begin)] {
            block.here.push((number, piece.here.clone()));
        }
        if number > 0 {
            block.steps.push('|');
        }
        let lines = &hunk.lines[piece.begin..piece.end];
        for run in lines.chunk_by(|a, b| a.segment == b.segment) {
            block.steps.push(if run[0].kind == ' ' { '=' } else { run[0].kind });
            if run.len() > 1 {
                block.steps.push_str(&run.len().to_string());
            }
        }
        let without =
            |kind: char| lines.iter().filter(|line| line.kind != kind).count().cast_signed() as i64;
        (*end_old, *end_new) = (old + without('+'), new + without('-'));
        let first_change = lines.iter().take_while(|line| line.segment.is_none()).count();
        let before = |place: usize| place <= piece.begin + first_change;
        let context =
            hunk.contexts.iter().rev().find(|(place, _)| before(*place)).map(|(_, text)| *text);
        if let Some(context) = context.filter(|context| *last_context != Some(context)) {
            block.context_hunks.push(number - self.last_context_hunk);
            self.last_context_hunk = number;
            block.contexts.push(text::encode(context));
            *last_context = Some(context);
        }
        for (begin, n) in &piece.here {
            for line in &lines[*begin..begin + n] {
                if self.n_lines > 0 {
                    block.text.push('\n');
                    block.runs.push('\n');
                }
                text::push(&mut block.text, line.text);
                block.runs.push_str(&line.runs);
                if !line.ended {
                    block.unended.push(self.n_lines);
                }
                if !line.words.is_empty() {
                    if !block.word_lines.is_empty() {
                        block.words.push('\n');
                    }
                    block.word_lines.push(self.n_lines - self.last_word_line);
                    self.last_word_line = self.n_lines;
                    block.words.push_str(&line.words);
                }
                self.n_lines += 1;
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Builder;

    #[test]
    fn a_hunk_larger_than_a_part_goes_on_in_the_next() {
        let lines = |n: u32| -> String { (0..n).map(|n| format!("{n}\n")).collect() };
        let mut builder = Builder::new();
        builder.item("P1", "Title", "Intent", &["a.txt", "b.txt", "c.txt"]);
        builder.file("a.txt", Some("1\n"), Some("one\n"), &["P1"]);
        builder.file("b.txt", None, Some(&lines(7001)), &["P1"]);
        builder.file("c.txt", Some("1\n"), Some("one\n"), &["P1"]);
        let review = builder.finish();
        let by_file = crate::rows::by_file(&review.link);
        let (hunks, _) =
            crate::hunks::build_all(&review.link.files, &by_file, &review.contents, 0, &());
        let source = Source::new(&review, by_file, hunks);
        let parts = source.parts(0);
        let places: Vec<_> = parts.iter().map(|part| part.place).collect();
        // Two changed lines and three pieces of a hunk; the fourth piece and two changed lines.
        assert_eq!(places, [(0, 0, 6002, 4, 0), (2, 6000, 1003, 3, 0)]);
        let blocks: Vec<_> = parts.iter().map(|part| source.block(0, part)).collect();
        assert_eq!(blocks[0].steps, "-+|+2000|+2000|+2000");
        assert_eq!(blocks[0].cuts, [(1, 0, 5001), (2, 2000, 3001), (3, 4000, 1001)]);
        assert_eq!(blocks[1].steps, "+1001|-+");
        assert_eq!(blocks[1].cuts, [(0, 6000, 0)]);
        assert_eq!((blocks[0].files[1].more, blocks[1].files[0].from), (true, Some(6001)));
        let text: Vec<&str> = blocks.iter().flat_map(|block| block.text.split('\n')).collect();
        assert_eq!(text[2..7003].join("\n") + "\n", lines(7001));
    }

    #[test]
    fn far_lines_of_others_are_left_out() {
        let mut own = vec![false; 100];
        own[50] = true;
        assert_eq!(here(&own), [(47, 7)]);
        assert_eq!(here(&[false, true, false]), [(0, 3)]);
    }
}
