//! Line diffs: histogram with the indent heuristic, as git makes them.
//!
//! The final diff must be git's to the line, also where several are right. Where git gives up on the
//! histogram, because lines that both texts share are repeated too often, it goes on with another
//! algorithm; there is no answer here then, and git has to be asked. A step only needs one good
//! diff, and what both of its texts begin or end with is left out of the search.
//!
//! The histogram: of the runs of lines that both sides have, take one whose rarest line is the rarest
//! on the old side, the longest among those as they come; what is before and behind it is compared by
//! itself. After that, changes that can stand in several places are moved: so that they merge with
//! others, else beside a change of the other side, else to where indentation says.

use crate::link::history::Block;
use crate::link::lines::{self, Interner};

/// Lines that stand more often on the old side begin no run.
const MAX_COUNT: u32 = 64;
/// A common end is left out in steps of so many bytes.
const TAIL_STEP: usize = 1024;
/// Larger texts git does not compare.
const MAX_BYTES: usize = 1023 << 20;

const NOWHERE: u32 = u32::MAX;

/// A text and the numbers of its lines.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) numbers: &'a [u32],
}

/// Makes diffs. Reused from one to the next.
#[derive(Default)]
pub(crate) struct Differ {
    /// By number: how often the line stands in the old part that is searched, and where first.
    counts: Vec<u32>,
    firsts: Vec<u32>,
    /// By old line: where an equal one stands next in that part.
    nexts: Vec<u32>,
    /// By line: whether it is changed.
    olds: Vec<u8>,
    news: Vec<u8>,
}

const SAME: u8 = 0;
const CHANGED: u8 = 1;

/// Lines of both sides, from and to.
#[derive(Clone, Copy)]
struct Part {
    old: (u32, u32),
    new: (u32, u32),
}

/// What a search found.
enum Found {
    Run(Part),
    Nothing,
    TooRepetitive,
}

impl Differ {
    /// The changed blocks between two texts that are not equal, exactly as git makes them without
    /// context; `None` where only git can tell.
    pub(crate) fn final_blocks(
        &mut self,
        lines: &Interner,
        old: Text<'_>,
        new: Text<'_>,
    ) -> Option<Vec<Block>> {
        if old.bytes.len().max(new.bytes.len()) > MAX_BYTES {
            return None;
        }
        let n_tail = lines::count(common_tail(old.bytes, new.bytes));
        let old = &old.numbers[..old.numbers.len() - n_tail];
        let new = &new.numbers[..new.numbers.len() - n_tail];
        let whole = Part { old: (0, old.len() as u32), new: (0, new.len() as u32) };
        self.compare(lines, old, new, whole)
    }

    /// The changed blocks between two texts, given as numbers of lines; `None` where lines are
    /// repeated too often to tell quickly.
    pub(crate) fn step_blocks(
        &mut self,
        lines: &Interner,
        old: &[u32],
        new: &[u32],
    ) -> Option<Vec<Block>> {
        if old == new {
            return Some(Vec::new());
        }
        let equal = |(a, b): &(&u32, &u32)| a == b;
        let n_head = old.iter().zip(new).take_while(equal).count();
        let (old_rest, new_rest) = (&old[n_head..], &new[n_head..]);
        let n_tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(equal).count();
        let between = |side: &[u32]| (n_head as u32, (side.len() - n_tail) as u32);
        self.compare(lines, old, new, Part { old: between(old), new: between(new) })
    }

    fn compare(
        &mut self,
        lines: &Interner,
        old: &[u32],
        new: &[u32],
        part: Part,
    ) -> Option<Vec<Block>> {
        self.mark(lines, old, new, part)?;
        let indents = Indents { lines };
        compact(old, &mut self.olds, &self.news, &indents);
        compact(new, &mut self.news, &self.olds, &indents);
        Some(to_blocks(&self.olds, &self.news))
    }

    /// Marks the lines that the histogram has changed; outside of `part` there are none.
    fn mark(&mut self, lines: &Interner, old: &[u32], new: &[u32], part: Part) -> Option<()> {
        self.counts.resize(lines.len() as usize, 0);
        self.firsts.resize(lines.len() as usize, NOWHERE);
        self.nexts.clear();
        self.nexts.resize(old.len(), NOWHERE);
        for (marks, side) in [(&mut self.olds, old), (&mut self.news, new)] {
            marks.clear();
            marks.resize(side.len(), SAME);
        }
        let mut todo = vec![part];
        while let Some(part) = todo.pop() {
            let run = if part.old.0 == part.old.1 || part.new.0 == part.new.1 {
                Found::Nothing
            } else {
                self.search(part, old, new)
            };
            match run {
                Found::TooRepetitive => return None,
                Found::Nothing => {
                    self.olds[part.old.0 as usize..part.old.1 as usize].fill(CHANGED);
                    self.news[part.new.0 as usize..part.new.1 as usize].fill(CHANGED);
                }
                Found::Run(run) => {
                    let before =
                        Part { old: (part.old.0, run.old.0), new: (part.new.0, run.new.0) };
                    let behind =
                        Part { old: (run.old.1, part.old.1), new: (run.new.1, part.new.1) };
                    todo.extend([behind, before]);
                }
            }
        }
        Some(())
    }

    fn search(&mut self, part: Part, old: &[u32], new: &[u32]) -> Found {
        for at in (part.old.0..part.old.1).rev() {
            let number = old[at as usize] as usize;
            let is_first = self.counts[number] == 0;
            self.nexts[at as usize] = if is_first { NOWHERE } else { self.firsts[number] };
            self.firsts[number] = at;
            self.counts[number] += 1;
        }
        let mut search = Search {
            old,
            new,
            part,
            counts: &self.counts,
            nexts: &self.nexts,
            best: None,
            least: MAX_COUNT + 1,
            has_common: false,
        };
        let mut at = part.new.0;
        while at < part.new.1 {
            at = search.try_line(at, self.firsts[new[at as usize] as usize]);
        }
        let Search { best, least, has_common, .. } = search;
        for number in &old[part.old.0 as usize..part.old.1 as usize] {
            self.counts[*number as usize] = 0;
        }
        match best {
            _ if has_common && least > MAX_COUNT => Found::TooRepetitive,
            Some(run) => Found::Run(run),
            None => Found::Nothing,
        }
    }
}

/// Looks for the run to keep.
struct Search<'a> {
    old: &'a [u32],
    new: &'a [u32],
    part: Part,
    counts: &'a [u32],
    nexts: &'a [u32],
    best: Option<Part>,
    /// How often the rarest line of the best run stands on the old side.
    least: u32,
    has_common: bool,
}

impl Search<'_> {
    fn count(&self, number: u32) -> u32 {
        self.counts[number as usize]
    }

    fn same(&self, old: u32, new: u32) -> bool {
        self.old[old as usize] == self.new[new as usize]
    }

    /// Tries the runs with the new line at `at`, which stands first at `first` on the old side.
    /// Returns where to go on.
    fn try_line(&mut self, at: u32, first: u32) -> u32 {
        let mut go_on = at + 1;
        let count = self.count(self.new[at as usize]);
        if count == 0 {
            return go_on;
        }
        self.has_common = true;
        if count > self.least {
            return go_on;
        }
        let mut place = first;
        loop {
            let mut rarest = count;
            let (mut old, mut new) = ((place, place + 1), (at, at + 1));
            while old.0 > self.part.old.0
                && new.0 > self.part.new.0
                && self.same(old.0 - 1, new.0 - 1)
            {
                old.0 -= 1;
                new.0 -= 1;
                rarest = rarest.min(self.count(self.old[old.0 as usize]));
            }
            while old.1 < self.part.old.1 && new.1 < self.part.new.1 && self.same(old.1, new.1) {
                rarest = rarest.min(self.count(self.old[old.1 as usize]));
                old.1 += 1;
                new.1 += 1;
            }
            go_on = go_on.max(new.1);
            let longest = self.best.map_or(1, |best| best.old.1 - best.old.0);
            if old.1 - old.0 > longest || rarest < self.least {
                self.best = Some(Part { old, new });
                self.least = rarest;
            }
            // The next one that is not in this run.
            place = self.nexts[place as usize];
            while place != NOWHERE && place < old.1 {
                place = self.nexts[place as usize];
            }
            if place == NOWHERE {
                return go_on;
            }
        }
    }
}

/// What both texts end with, in whole lines, as far as git leaves it out.
fn common_tail<'a>(old: &'a [u8], new: &[u8]) -> &'a [u8] {
    let n = old.len().min(new.len());
    let (old_ends, new_ends) = (old.rchunks_exact(TAIL_STEP), new.rchunks_exact(TAIL_STEP));
    let n_equal = old_ends.zip(new_ends).take_while(|(a, b)| a == b).count();
    debug_assert!(n_equal * TAIL_STEP <= n);
    let tail = &old[old.len() - n_equal * TAIL_STEP..];
    memchr::memchr(b'\n', tail).map_or(&[], |at| &tail[at + 1..])
}

/// A maximal run of changed lines of one side, maybe empty: between two unchanged lines there is
/// always one.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
}

impl Group {
    fn from_start(marks: &[u8], start: usize) -> Self {
        let n = memchr::memchr(SAME, &marks[start..]);
        Self { start, end: n.map_or(marks.len(), |n| start + n) }
    }

    fn to_end(marks: &[u8], end: usize) -> Self {
        let start = memchr::memrchr(SAME, &marks[..end]);
        Self { start: start.map_or(0, |at| at + 1), end }
    }

    /// The group after `n` more unchanged lines, which there must be.
    fn after(mut self, marks: &[u8], mut n: usize) -> Self {
        loop {
            let behind = &marks[self.end..];
            let n_same = memchr::memchr(CHANGED, behind).unwrap_or(behind.len()).min(n);
            self = Self::from_start(marks, self.end + n_same);
            n -= n_same;
            if n == 0 {
                return self;
            }
        }
    }

    /// The group before; there must be one.
    fn before(self, marks: &[u8]) -> Self {
        Self::to_end(marks, self.start - 1)
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn len(self) -> usize {
        self.end - self.start
    }

    /// One line up, if the diff stays right; takes in a group that it comes to stand beside.
    fn up(&mut self, numbers: &[u32], marks: &mut [u8]) -> bool {
        if self.start == 0 || numbers[self.start - 1] != numbers[self.end - 1] {
            return false;
        }
        marks[self.start - 1] = CHANGED;
        marks[self.end - 1] = SAME;
        *self = Self { end: self.end - 1, ..Self::to_end(marks, self.start) };
        true
    }

    /// One line down, likewise.
    fn down(&mut self, numbers: &[u32], marks: &mut [u8]) -> bool {
        if self.end == numbers.len() || numbers[self.start] != numbers[self.end] {
            return false;
        }
        marks[self.start] = SAME;
        marks[self.end] = CHANGED;
        *self = Self { start: self.start + 1, ..Self::from_start(marks, self.end) };
        true
    }
}

/// Moves the changes of one side to where they are best read. `others`: of the other side.
fn compact(numbers: &[u32], marks: &mut [u8], others: &[u8], indents: &Indents<'_>) {
    let mut group = Group::from_start(marks, 0);
    // The group of the other side between the same unchanged lines.
    let mut other = Group::from_start(others, 0);
    loop {
        if !group.is_empty() {
            place(numbers, marks, others, &mut group, &mut other, indents);
        }
        let Some(n) = memchr::memchr(CHANGED, &marks[group.end..]) else { return };
        group = group.after(marks, n);
        other = other.after(others, n);
    }
}

fn place(
    numbers: &[u32],
    marks: &mut [u8],
    others: &[u8],
    group: &mut Group,
    other: &mut Group,
    indents: &Indents<'_>,
) {
    let mut earliest;
    let mut beside;
    loop {
        let len = group.len();
        while group.up(numbers, marks) {
            *other = other.before(others);
        }
        earliest = group.end;
        beside = !other.is_empty();
        while group.down(numbers, marks) {
            *other = other.after(others, 1);
            beside |= !other.is_empty();
        }
        // What merged may go further.
        if group.len() == len {
            break;
        }
    }
    if group.end == earliest {
        return;
    }
    let mut up = |group: &mut Group, other: &mut Group| {
        group.up(numbers, marks);
        *other = other.before(others);
    };
    if beside {
        while other.is_empty() {
            up(group, other);
        }
    } else {
        let best = indents.best_end(numbers, *group, earliest);
        while group.end > best {
            up(group, other);
        }
    }
}

/// Scores the places of a change by the indentation around it.
struct Indents<'a> {
    lines: &'a Interner,
}

/// Of a line that is blank.
const BLANK: i32 = -1;
const MAX_INDENT: i32 = 200;
const MAX_BLANKS: i32 = 20;
const MAX_SLIDING: usize = 100;

/// Lower is better.
#[derive(Clone, Copy, Default)]
struct Score {
    indent: i32,
    penalty: i32,
}

impl Score {
    fn is_no_worse_than(self, other: Self) -> bool {
        const INDENT_WEIGHT: i32 = 60;
        let indents = (self.indent > other.indent) as i32 - (self.indent < other.indent) as i32;
        INDENT_WEIGHT * indents + self.penalty - other.penalty <= 0
    }
}

impl Indents<'_> {
    /// Where a group that can end from `earliest` to its present end should end.
    fn best_end(&self, numbers: &[u32], group: Group, earliest: usize) -> usize {
        let len = group.len();
        let first = earliest.max(group.end.saturating_sub(len + 1));
        let first = first.max(group.end.saturating_sub(MAX_SLIDING));
        let mut best: Option<(usize, Score)> = None;
        for end in first..=group.end {
            let mut score = Score::default();
            self.add_split(numbers, end, &mut score);
            self.add_split(numbers, end - len, &mut score);
            if best.is_none_or(|(_, best)| score.is_no_worse_than(best)) {
                best = Some((end, score));
            }
        }
        best.map_or(group.end, |(end, _)| end)
    }

    fn indent(&self, number: u32) -> i32 {
        let mut indent = 0;
        for byte in self.lines.line(number) {
            match byte {
                b' ' => indent += 1,
                b'\t' => indent += 8 - indent % 8,
                b'\n' | b'\r' => {}
                _ => return indent,
            }
            if indent >= MAX_INDENT {
                return MAX_INDENT;
            }
        }
        BLANK
    }

    /// The indent of the first line that is not blank, and how many blank ones come before it.
    fn first_indent<'n>(&self, numbers: impl Iterator<Item = &'n u32>) -> (i32, i32) {
        let mut n_blanks = 0;
        for number in numbers {
            let indent = self.indent(*number);
            if indent != BLANK {
                return (indent, n_blanks);
            }
            n_blanks += 1;
            if n_blanks == MAX_BLANKS {
                return (0, n_blanks);
            }
        }
        (BLANK, n_blanks)
    }

    /// Adds what it costs to split the text before line `at`.
    fn add_split(&self, numbers: &[u32], at: usize, score: &mut Score) {
        let is_end = at >= numbers.len();
        let here = numbers.get(at).map_or(BLANK, |number| self.indent(*number));
        let (before, blanks_before) = self.first_indent(numbers[..at].iter().rev());
        let behind = numbers.get(at + 1..).unwrap_or_default();
        let (behind, blanks_behind) = self.first_indent(behind.iter());

        if before == BLANK && blanks_before == 0 {
            score.penalty += 1;
        }
        if is_end {
            score.penalty += 21;
        }
        let blanks_from_here = if here == BLANK { 1 + blanks_behind } else { 0 };
        let blanks = blanks_before + blanks_from_here;
        score.penalty += -30 * blanks + 6 * blanks_from_here;
        let indent = if here == BLANK { behind } else { here };
        score.indent += indent;
        if indent == BLANK || before == BLANK {
            return;
        }
        let with_blanks = blanks != 0;
        score.penalty += match indent.cmp(&before) {
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => {
                if with_blanks {
                    10
                } else {
                    -4
                }
            }
            // Whether a block ends here or another one begins, as with an else.
            std::cmp::Ordering::Less if behind != BLANK && behind > indent => {
                if with_blanks {
                    17
                } else {
                    24
                }
            }
            std::cmp::Ordering::Less => {
                if with_blanks {
                    17
                } else {
                    23
                }
            }
        };
    }
}

fn to_blocks(olds: &[u8], news: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut old, mut new) = (Group::from_start(olds, 0), Group::from_start(news, 0));
    loop {
        if !old.is_empty() || !new.is_empty() {
            blocks.push(Block {
                old_start: old.start as u32,
                old_lines: old.len() as u32,
                new_start: new.start as u32,
                new_lines: new.len() as u32,
            });
        }
        let n_old = memchr::memchr(CHANGED, &olds[old.end..]);
        let n_new = memchr::memchr(CHANGED, &news[new.end..]);
        let Some(n) = n_old.into_iter().chain(n_new).min() else { return blocks };
        old = Group::from_start(olds, old.end + n);
        new = Group::from_start(news, new.end + n);
    }
}
