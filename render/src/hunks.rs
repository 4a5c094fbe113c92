//! Changed files as hunks: the lines of all owners in order, with the lines around them.

use std::sync::Arc;

use codeboost_schema::link::{Body, FileEntry, Op, Segment, Text};
use rayon::prelude::*;

use crate::highlight::{self, Highlighted, Step};
use crate::model::Contents;
use crate::{text, words};

/// Unchanged lines shown above and below a change.
const CONTEXT: u64 = 3;

/// The text segments of one file as hunks, in order.
pub(crate) struct FileHunks<'a> {
    pub(crate) hunks: Vec<Hunk<'a>>,
    /// Whether both sides have CRLF at the end of every line.
    pub(crate) crlf: bool,
    /// Lines at head, when they are known.
    pub(crate) new_lines: Vec<&'a [u8]>,
}

/// A stretch of lines in which changes lie close together.
pub(crate) struct Hunk<'a> {
    /// Line numbers of the first line.
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) lines: Vec<Line<'a>>,
    /// The segments in it, in order: place in the link, lines.
    pub(crate) segments: Vec<(u32, u64)>,
    /// Place of the first line of each change block, and its context.
    pub(crate) contexts: Vec<(usize, &'a [u8])>,
}

/// One line of a hunk.
pub(crate) struct Line<'a> {
    /// Blank, `-` or `+`.
    pub(crate) kind: char,
    /// The segment, for a changed line.
    pub(crate) segment: Option<u32>,
    /// Without its terminator.
    pub(crate) text: &'a [u8],
    pub(crate) ended: bool,
    pub(crate) runs: String,
    pub(crate) words: String,
}

/// What can be made of one file before any highlighting.
pub(crate) fn build<'a>(segments: &'a [Segment], contents: &'a Contents) -> FileHunks<'a> {
    let texts: Vec<(u32, &Text)> = segments
        .iter()
        .filter_map(|segment| match &segment.body {
            Body::Text(text) => Some((segment.id, text)),
            Body::File(_) => None,
        })
        .collect();
    let side = |bytes: &'a Option<Arc<[u8]>>| -> Vec<(&'a [u8], bool)> {
        bytes.as_deref().map(|bytes| text::lines(bytes).collect()).unwrap_or_default()
    };
    let new = side(&contents.new);
    let all_crlf = |bytes: &Option<Arc<[u8]>>| {
        bytes.as_deref().is_none_or(|bytes| {
            text::lines(bytes).all(|(line, ended)| !ended || line.ends_with(b"\r"))
        })
    };
    let some_crlf = [&contents.old, &contents.new]
        .iter()
        .any(|bytes| bytes.as_deref().is_some_and(|bytes| bytes.contains(&b'\r')));
    let crlf = some_crlf && all_crlf(&contents.old) && all_crlf(&contents.new);

    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    // Added minus removed lines so far: head line = base line + shift outside of changes.
    let mut shift: i64 = 0;
    // The next line at head that no hunk has taken yet.
    let mut next_new = 1_u64;
    let mut rest = &texts[..];
    while let Some((_, first)) = rest.first() {
        let n = rest.iter().take_while(|(_, text)| text.hunk == first.hunk).count();
        let new = contents.new.is_some().then_some(&new[..]);
        let (hunk, used) = hunk(&rest[..n], new, &mut shift, &mut next_new);
        rest = &rest[used..];
        hunks.push(hunk);
    }
    FileHunks { hunks, crlf, new_lines: new.into_iter().map(|(line, _)| line).collect() }
}

fn add(number: u64, shift: i64) -> u64 {
    number.saturating_add_signed(shift)
}

/// Makes one hunk of the first segments; returns how many it took.
///
/// Where the lines at head are not known (`new` is `None`), a hunk ends at the first gap, because
/// its lines could not be numbered otherwise.
fn hunk<'a>(
    segments: &[(u32, &'a Text)],
    new: Option<&[(&'a [u8], bool)]>,
    shift: &mut i64,
    next_new: &mut u64,
) -> (Hunk<'a>, usize) {
    // Where a segment begins at head; for removed lines, where they would stand.
    let place = |text: &Text, shift: i64| match text.op {
        Op::Add => text.start,
        Op::Remove => add(text.start, shift),
    };
    let first = place(segments[0].1, *shift);
    let begin = match new {
        Some(_) => first.saturating_sub(CONTEXT).max(*next_new).max(1).min(first),
        None => first,
    };
    let mut hunk = Hunk {
        old: add(begin, -*shift),
        new: begin,
        lines: Vec::new(),
        segments: Vec::new(),
        contexts: Vec::new(),
    };
    let mut at = begin;
    let unchanged = |hunk: &mut Hunk<'a>, from: u64, to: u64| {
        for number in from..to {
            let Some((line, ended)) =
                usize::try_from(number - 1).ok().and_then(|idx| new?.get(idx)).copied()
            else {
                break;
            };
            hunk.lines.push(Line {
                kind: ' ',
                segment: None,
                text: line,
                ended,
                runs: String::new(),
                words: String::new(),
            });
        }
    };
    let mut last_op = None;
    for (id, text) in segments {
        let place = place(text, *shift);
        if place > at && new.is_none() && last_op.is_some() {
            break;
        }
        // A removed line after added ones, or a gap, begins another change block.
        let new_block =
            place > at || last_op.is_none() || (last_op, text.op) == (Some(Op::Add), Op::Remove);
        if place > at {
            unchanged(&mut hunk, at, place);
            at = place;
        }
        if new_block {
            hunk.contexts.push((hunk.lines.len(), text.context.as_bytes()));
        }
        last_op = Some(text.op);
        let mut n_lines = 0;
        for (line, ended) in text::lines(text.text.as_bytes()) {
            n_lines += 1;
            hunk.lines.push(Line {
                kind: if text.op == Op::Add { '+' } else { '-' },
                segment: Some(*id),
                text: line,
                ended,
                runs: String::new(),
                words: String::new(),
            });
        }
        hunk.segments.push((*id, n_lines));
        let n = i64::try_from(n_lines).unwrap_or(i64::MAX);
        match text.op {
            Op::Add => {
                at += n_lines;
                *shift += n;
            }
            Op::Remove => *shift -= n,
        }
    }
    let end = add(at, CONTEXT.cast_signed());
    let before = hunk.lines.len();
    unchanged(&mut hunk, at, end);
    *next_new = at + (hunk.lines.len() - before) as u64;
    let used = hunk.segments.len();
    (hunk, used)
}

impl FileHunks<'_> {
    /// Marks the words that changed inside lines.
    pub(crate) fn mark_words(&mut self) {
        for hunk in &mut self.hunks {
            let mut at = 0;
            while at < hunk.lines.len() {
                let run = |from: usize, kind: char| {
                    hunk.lines[from..].iter().take_while(|line| line.kind == kind).count()
                };
                let removed = run(at, '-');
                let added = run(at + removed, '+');
                if removed > 0 && added > 0 {
                    let texts = |from: usize, n: usize| -> Vec<&[u8]> {
                        hunk.lines[from..from + n].iter().map(|line| line.text).collect()
                    };
                    let (old, new) = words::marks(&texts(at, removed), &texts(at + removed, added));
                    for (n, marks) in old.into_iter().chain(new).enumerate() {
                        hunk.lines[at + n].words = marks;
                    }
                }
                at += (removed + added).max(1);
            }
        }
    }

    /// Bytes that highlighting this file would read.
    pub(crate) fn weight(&self) -> u64 {
        let last = self.hunks.last().map_or(0, |hunk| hunk.new + hunk.lines.len() as u64);
        let last = usize::try_from(last).unwrap_or(usize::MAX).min(self.new_lines.len());
        let whole: usize = self.new_lines[..last].iter().map(|line| line.len() + 1).sum();
        let removed: usize = self
            .hunks
            .iter()
            .flat_map(|hunk| &hunk.lines)
            .filter(|line| line.kind == '-')
            .map(|line| line.text.len() + 1)
            .sum();
        (whole + removed) as u64
    }

    /// Highlights the lines of the hunks.
    pub(crate) fn highlight(&mut self, file: &FileEntry, known: &dyn Highlighted) {
        let first_line = self
            .new_lines
            .first()
            .copied()
            .or_else(|| Some(self.hunks.first()?.lines.first()?.text))
            .unwrap_or_default();
        let Some(language) = highlight::language(file.path.as_bytes(), first_line) else { return };
        let mut steps: Vec<(Step<'_>, bool)> = Vec::new();
        let mut at = 1_u64;
        for hunk in &self.hunks {
            let idx = |number: u64| {
                usize::try_from(number.saturating_sub(1))
                    .unwrap_or(usize::MAX)
                    .min(self.new_lines.len())
            };
            let between = &self.new_lines[idx(at).min(idx(hunk.new))..idx(hunk.new)];
            steps.extend(between.iter().map(|line| (Step::Equal(line), false)));
            at = hunk.new;
            for line in &hunk.lines {
                steps.push((
                    match line.kind {
                        '-' => Step::Removed(line.text),
                        '+' => Step::Added(line.text),
                        _ => Step::Equal(line.text),
                    },
                    true,
                ));
                at += u64::from(line.kind != '-');
            }
        }
        let runs = highlight::known_runs(language, &steps, known);
        let lines = self.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines);
        for (line, runs) in lines.zip(runs) {
            line.runs = runs;
        }
    }
}

/// All files, with words marked, and highlighted as far as `max_bytes` goes.
///
/// Files take their share in order; returns also how many were left plain for the budget.
pub(crate) fn build_all<'a>(
    files: &'a [FileEntry],
    segments: &[&'a [Segment]],
    contents: &'a [Contents],
    max_bytes: u64,
    known: &dyn Highlighted,
) -> (Vec<FileHunks<'a>>, usize) {
    static NOTHING: Contents = Contents { old: None, new: None, left_out: None };
    let mut all: Vec<FileHunks<'a>> = (0..files.len())
        .into_par_iter()
        .map(|n| build(segments[n], contents.get(n).unwrap_or(&NOTHING)))
        .collect();
    let mut left = max_bytes;
    let mut n_plain = 0;
    let mut chosen = Vec::with_capacity(all.len());
    for file in &all {
        let weight = file.weight();
        let fits = weight <= left && !file.hunks.is_empty();
        if fits {
            left -= weight;
        } else if !file.hunks.is_empty() {
            n_plain += 1;
        }
        chosen.push(fits);
    }
    all.par_iter_mut().enumerate().for_each(|(n, file)| {
        file.mark_words();
        if chosen[n] {
            file.highlight(&files[n], known);
        }
    });
    (all, n_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Builder;

    fn show(hunks: &FileHunks<'_>) -> String {
        let mut out = String::new();
        for hunk in &hunks.hunks {
            out.push_str(&format!("@@ -{} +{} {:?}\n", hunk.old, hunk.new, hunk.segments));
            for (at, context) in &hunk.contexts {
                out.push_str(&format!("   {at}: {}\n", String::from_utf8_lossy(context)));
            }
            for line in &hunk.lines {
                out.push_str(&format!("{}{}\n", line.kind, String::from_utf8_lossy(line.text)));
            }
        }
        out
    }

    #[test]
    fn hunks_carry_three_lines_around_and_their_numbers() {
        let mut builder = Builder::new();
        builder.file(
            "a.txt",
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n"),
            Some("1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n16\n17\n18\nnew\n"),
            &["P1"],
        );
        let review = builder.finish();
        let hunks = build(&review.link.segments, &review.contents[0]);
        insta::assert_snapshot!(show(&hunks), @r"
        @@ -2 +2 [(0, 1), (1, 1)]
           3: 
         2
         3
         4
        -5
        +five
         6
         7
         8
        @@ -12 +12 [(2, 1), (3, 1)]
           3: 
           7: 
         12
         13
         14
        -15
         16
         17
         18
        +new
        ");
    }

    #[test]
    fn without_contents_only_the_changed_lines_are_there() {
        let mut builder = Builder::new();
        builder.file("a.txt", Some("1\n2\n3\n"), Some("1\ntwo\n3\n"), &["P1"]);
        let review = builder.finish();
        let unknown = Contents::default();
        let hunks = build(&review.link.segments, &unknown);
        insta::assert_snapshot!(show(&hunks), @r"
        @@ -2 +2 [(0, 1), (1, 1)]
           0: 
        -2
        +two
        ");
    }
}
