//! Blocks that were removed in one place and added byte-equal in another.
//!
//! A run is at least three lines, with at least twenty letters or digits in them, all inside one
//! removed and one added segment. Runs are as long as they can be, and no line is in two of them;
//! of several candidates the first in the order of segments is taken.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::ops::Range;

use codeboost_schema::link::{Body, Op, Segment, Tag};

use crate::link::lines;

const MIN_LINES: usize = 3;
const MIN_LETTERS: usize = 20;

/// One line of a segment.
#[derive(Clone, Copy)]
struct Line {
    segment: u32,
    /// Counts from 0 within the segment.
    at: u32,
    number: u32,
}

/// Adds the tag to both sides of every run.
pub(crate) fn tag(segments: &mut [Segment]) {
    let may_move = Candidates::of(segments);
    let mut interner = lines::Interner::default();
    let mut collect = |op: Op, known_only: bool| {
        let mut found: Vec<Line> = Vec::new();
        for (segment, n) in segments.iter().zip(0..) {
            let Body::Text(text) = &segment.body else { continue };
            if text.op != op || !may_move.has(n) {
                continue;
            }
            for (line, at) in lines::split(text.text.as_bytes()).zip(0..) {
                let number = if known_only {
                    interner.get(line).unwrap_or(u32::MAX)
                } else {
                    interner.intern(line)
                };
                found.push(Line { segment: n, at, number });
            }
        }
        found
    };
    let removed = collect(Op::Remove, false);
    let added = collect(Op::Add, true);
    let runs = runs(&removed, &added, &interner);
    let mut tags: HashMap<u32, Vec<[u64; 4]>> = HashMap::new();
    for run in runs {
        let (old, new, n) = (removed[run.old], added[run.new], run.lines as u64);
        let (old_at, new_at) = (u64::from(old.at) + 1, u64::from(new.at) + 1);
        let [old_id, new_id] = [old, new].map(|line| u64::from(line.segment));
        tags.entry(old.segment).or_default().push([old_at, n, new_id, new_at]);
        tags.entry(new.segment).or_default().push([new_at, n, old_id, old_at]);
    }
    for (segment, n) in segments.iter_mut().zip(0..) {
        if let Some(mut runs) = tags.remove(&n) {
            runs.sort_unstable();
            segment.tags.push(Tag::Moved { runs });
        }
        segment.tags.sort_by_key(Tag::place);
    }
}

/// The segments that can have a run: those with as many lines in a row as a run has at least that
/// the other side seems to have too.
struct Candidates(Vec<bool>);

impl Candidates {
    fn of(segments: &[Segment]) -> Self {
        let hasher = hashbrown::DefaultHashBuilder::default();
        // By segment: the hashes of all stretches of so many lines.
        let mut stretches: Vec<Range<usize>> = Vec::with_capacity(segments.len());
        let mut hashes: Vec<u32> = Vec::new();
        for segment in segments {
            let first = hashes.len();
            if let Body::Text(text) = &segment.body
                && text.lines as usize >= MIN_LINES
            {
                let mut last = [0u32; MIN_LINES];
                for (line, n) in lines::split(text.text.as_bytes()).zip(1..) {
                    last.rotate_left(1);
                    last[MIN_LINES - 1] = hasher.hash_one(line) as u32;
                    if n >= MIN_LINES {
                        let mix = |all: u32, one: &u32| all.wrapping_mul(0x9e37_79b1) ^ one;
                        hashes.push(last.iter().fold(0, mix));
                    }
                }
            }
            stretches.push(first..hashes.len());
        }
        let mut may_move = vec![true; segments.len()];
        // Removed ones that are among the added ones, then added ones that are among those.
        for (mine, other) in [(Op::Remove, Op::Add), (Op::Add, Op::Remove)] {
            let of = |op: Op, may_move: &[bool]| {
                let is_of = |n: &usize| {
                    matches!(&segments[*n].body, Body::Text(text) if text.op == op) && may_move[*n]
                };
                (0..segments.len()).filter(is_of).collect::<Vec<usize>>()
            };
            let mut seen = Seen::new(hashes.len());
            for n in of(other, &may_move) {
                hashes[stretches[n].clone()].iter().for_each(|hash| seen.add(*hash));
            }
            for n in of(mine, &may_move) {
                may_move[n] = hashes[stretches[n].clone()].iter().any(|hash| seen.has(*hash));
            }
        }
        Self(may_move)
    }

    fn has(&self, segment: u32) -> bool {
        self.0[segment as usize]
    }
}

/// Hashes that came up, and maybe a few others.
struct Seen {
    bits: Vec<u64>,
    mask: u32,
}

impl Seen {
    fn new(n: usize) -> Self {
        let n_bits = (16 * n).next_power_of_two().clamp(64, 1 << 28);
        Self { bits: vec![0; n_bits / 64], mask: n_bits as u32 - 1 }
    }

    fn add(&mut self, hash: u32) {
        let at = hash & self.mask;
        self.bits[at as usize / 64] |= 1 << (at % 64);
    }

    fn has(&self, hash: u32) -> bool {
        let at = hash & self.mask;
        self.bits[at as usize / 64] >> (at % 64) & 1 == 1
    }
}

struct Run {
    old: usize,
    new: usize,
    lines: usize,
}

fn runs(removed: &[Line], added: &[Line], interner: &lines::Interner) -> Vec<Run> {
    let window = |lines: &[Line], at: usize| {
        let lines = lines.get(at..at + MIN_LINES)?;
        let same = lines.iter().all(|line| line.segment == lines[0].segment);
        (same && lines.iter().all(|line| line.number != u32::MAX))
            .then(|| [lines[0].number, lines[1].number, lines[2].number])
    };
    let mut places: HashMap<[u32; 3], Vec<usize>> = HashMap::new();
    for at in 0..removed.len() {
        if let Some(key) = window(removed, at) {
            places.entry(key).or_default().push(at);
        }
    }
    let letters: Vec<usize> = (0..interner.len())
        .map(|n| {
            String::from_utf8_lossy(interner.line(n))
                .chars()
                .filter(|c| c.is_alphanumeric())
                .count()
        })
        .collect();
    let mut taken = vec![false; removed.len()];
    let mut runs = Vec::new();
    let mut at = 0;
    while at < added.len() {
        let candidates = window(added, at).and_then(|key| places.get(&key));
        let mut best: Option<Run> = None;
        // A line that occurs everywhere would be compared with everything.
        for old in candidates.into_iter().flatten().take(MAX_CANDIDATES) {
            let n = removed[*old..]
                .iter()
                .zip(&added[at..])
                .zip(&taken[*old..])
                .take_while(|((old_line, new_line), taken)| {
                    !**taken
                        && old_line.number == new_line.number
                        && old_line.segment == removed[*old].segment
                        && new_line.segment == added[at].segment
                })
                .count();
            if n >= MIN_LINES && best.as_ref().is_none_or(|best| n > best.lines) {
                best = Some(Run { old: *old, new: at, lines: n });
            }
        }
        let Some(run) = best.filter(|run| {
            let lines = &added[run.new..run.new + run.lines];
            lines.iter().map(|line| letters[line.number as usize]).sum::<usize>() >= MIN_LETTERS
        }) else {
            at += 1;
            continue;
        };
        taken[run.old..run.old + run.lines].fill(true);
        at += run.lines;
        runs.push(run);
    }
    runs
}

/// So many places of a run's first lines are looked at.
const MAX_CANDIDATES: usize = 64;
