//! Marks the words that changed inside a line that was rewritten.

use std::cmp::Ordering;
use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::text;

/// Blocks with more lines than this on a side are not paired: the marks would cost more to find
/// than they tell.
const MAX_LINES: usize = 40;
/// Longer lines get no marks.
const MAX_LINE_BYTES: usize = 1000;
/// A pair with less than this share of equal bytes is a different line, not a rewritten one.
const MIN_EQUAL: f64 = 0.4;

/// Marks for one change block.
///
/// `removed` and `added` are its lines without terminators. Returns one entry per line of each
/// side, in the form of runs where class `w` is a changed word and `.` an equal one; empty where
/// the line has no partner, is not UTF-8, or is too long.
pub(crate) fn marks<'a>(removed: &[&'a [u8]], added: &[&'a [u8]]) -> (Vec<String>, Vec<String>) {
    let mut old = vec![String::new(); removed.len()];
    let mut new = vec![String::new(); added.len()];
    if removed.is_empty() || added.is_empty() || removed.len().max(added.len()) > MAX_LINES {
        return (old, new);
    }
    let mut names: HashMap<&'a str, u32> = HashMap::new();
    let mut lines = |lines: &[&'a [u8]]| -> Vec<Option<Line>> {
        lines.iter().map(|line| Line::of(line, &mut names)).collect()
    };
    let (old_lines, new_lines) = (lines(removed), lines(added));
    for (i, j) in pair(&old_lines, &new_lines) {
        if let (Some(a), Some(b)) = (&old_lines[i], &new_lines[j])
            && let Some(marks) = runs(a, b)
        {
            (old[i], new[j]) = marks;
        }
    }
    (old, new)
}

/// A line as tokens: an identifier or number, a run of blanks, or one other character each.
struct Line {
    /// Number of each token in order; equal tokens have equal numbers.
    tokens: Vec<u32>,
    /// Length of each token in UTF-16 units, and its bytes; blanks weigh nothing.
    sizes: Vec<(usize, usize)>,
    /// Number and bytes of each token that is no blank, by number.
    bag: Vec<(u32, usize)>,
    total: usize,
}

impl Line {
    fn of<'a>(line: &'a [u8], names: &mut HashMap<&'a str, u32>) -> Option<Self> {
        if line.len() > MAX_LINE_BYTES {
            return None;
        }
        let line = std::str::from_utf8(line).ok().filter(|line| !line.contains(text::RAW))?;
        let kind = |c: char| match c {
            ' ' | '\t' => 1,
            c if c.is_alphanumeric() || c == '_' => 2,
            _ => 0,
        };
        let (mut tokens, mut sizes) = (Vec::new(), Vec::new());
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let this = kind(first);
            let end = rest
                .char_indices()
                .skip(1)
                .find(|(_, c)| this == 0 || kind(*c) != this)
                .map_or(rest.len(), |(at, _)| at);
            let (token, after) = rest.split_at(end);
            rest = after;
            let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
            tokens.push(*names.entry(token).or_insert(next));
            sizes.push((text::utf16_len(token), if this == 1 { 0 } else { token.len() }));
        }
        let mut bag: Vec<(u32, usize)> = tokens
            .iter()
            .zip(&sizes)
            .filter(|(_, (_, bytes))| *bytes > 0)
            .map(|(token, (_, bytes))| (*token, *bytes))
            .collect();
        bag.sort_unstable();
        Some(Self { total: bag.iter().map(|(_, bytes)| bytes).sum(), tokens, sizes, bag })
    }

    /// Share of bytes in tokens that both lines have, whatever their order; blanks not counted.
    fn likeness(&self, other: &Self) -> f64 {
        let (mut a, mut b) = (&self.bag[..], &other.bag[..]);
        let mut equal = 0;
        while let ([first, rest_a @ ..], [second, rest_b @ ..]) = (a, b) {
            match first.cmp(second) {
                Ordering::Less => a = rest_a,
                Ordering::Greater => b = rest_b,
                Ordering::Equal => {
                    equal += first.1;
                    (a, b) = (rest_a, rest_b);
                }
            }
        }
        share(equal, self.total + other.total)
    }
}

/// Twice `equal` over `total`.
fn share(equal: usize, total: usize) -> f64 {
    if total == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "both are at most a few thousand")]
    {
        2.0 * equal as f64 / total as f64
    }
}

/// The order-preserving pairs with the largest total likeness.
fn pair(old: &[Option<Line>], new: &[Option<Line>]) -> Vec<(usize, usize)> {
    let score = |i: usize, j: usize| -> f64 {
        match (&old[i], &new[j]) {
            (Some(a), Some(b)) => Some(a.likeness(b)).filter(|like| *like >= MIN_EQUAL),
            _ => None,
        }
        .unwrap_or(0.0)
    };
    // Rewritten in place is the common case and needs no search.
    if old.len() == new.len() {
        let scores: Vec<f64> = (0..old.len()).map(|i| score(i, i)).collect();
        if scores.iter().all(|score| *score > 0.0) {
            return (0..old.len()).map(|i| (i, i)).collect();
        }
    }
    let (n, m) = (old.len(), new.len());
    let table: Vec<Vec<f64>> =
        (0..n).map(|i| (0..m).map(|j| score(i, j)).collect::<Vec<_>>()).collect();
    let mut best = vec![vec![0.0_f64; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let joined = if table[i][j] > 0.0 { table[i][j] + best[i + 1][j + 1] } else { 0.0 };
            best[i][j] = joined.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < n && j < m {
        if table[i][j] > 0.0 && table[i][j] + best[i + 1][j + 1] >= best[i][j] {
            pairs.push((i, j));
            i += 1;
            j += 1;
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Marks of a pair; `None` when too little is equal in order.
fn runs(a: &Line, b: &Line) -> Option<(String, String)> {
    let mut old: Vec<(usize, char)> = Vec::new();
    let mut new: Vec<(usize, char)> = Vec::new();
    let add = |side: &mut Vec<(usize, char)>, sizes: &[(usize, usize)], class: char| {
        let length: usize = sizes.iter().map(|(length, _)| length).sum();
        match side.last_mut() {
            _ if length == 0 => {}
            Some(run) if run.1 == class => run.0 += length,
            _ => side.push((length, class)),
        }
    };
    let mut equal = 0;
    for op in capture_diff_slices(Algorithm::Myers, &a.tokens, &b.tokens) {
        let class = if matches!(op, DiffOp::Equal { .. }) { '.' } else { 'w' };
        if class == '.' {
            equal += a.sizes[op.old_range()].iter().map(|(_, bytes)| bytes).sum::<usize>();
        }
        add(&mut old, &a.sizes[op.old_range()], class);
        add(&mut new, &b.sizes[op.new_range()], class);
    }
    if share(equal, a.total + b.total) < MIN_EQUAL {
        return None;
    }
    let write = |side: Vec<(usize, char)>| {
        let mut out = String::new();
        if side.iter().any(|run| run.1 == 'w') {
            for (length, class) in side {
                text::push_run(&mut out, length, class);
            }
        }
        out
    };
    Some((write(old), write(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(removed: &[&str], added: &[&str], old: &[&str], new: &[&str]) {
        let bytes = |lines: &[&str]| -> Vec<Vec<u8>> {
            lines.iter().map(|line| line.as_bytes().to_vec()).collect()
        };
        let (removed, added) = (bytes(removed), bytes(added));
        let slices = |lines: &[Vec<u8>]| -> Vec<Vec<u8>> { lines.to_vec() };
        let (removed, added) = (slices(&removed), slices(&added));
        let removed: Vec<&[u8]> = removed.iter().map(Vec::as_slice).collect();
        let added: Vec<&[u8]> = added.iter().map(Vec::as_slice).collect();
        let (a, b) = marks(&removed, &added);
        assert_eq!((a, b), (own(old), own(new)));
    }

    fn own(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn changed_words_are_marked_on_both_sides() {
        check(&["let a = one(x);"], &["let a = two(x);"], &["8.3w4."], &["8.3w4."]);
    }

    #[test]
    fn equal_tokens_in_another_order_make_no_rewritten_line() {
        let (old, new) = ("a bb ccc dddd eeeee", "eeeee dddd ccc bb a");
        let mut names = HashMap::new();
        let mut line = |text: &'static str| Line::of(text.as_bytes(), &mut names).unwrap();
        assert!(line(old).likeness(&line(new)) > 0.99);
        check(&[old], &[new], &[""], &[""]);
    }

    #[test]
    fn lengths_count_utf16() {
        check(&["x = \"😀\" + a"], &["x = \"😀\" + b"], &["B.w"], &["B.w"]);
    }

    #[test]
    fn unrelated_lines_stay_unmarked() {
        check(&["alpha beta gamma"], &["if (zero) { run(); }"], &[""], &[""]);
    }

    #[test]
    fn an_inserted_line_does_not_shift_the_pairs() {
        check(
            &["first(alpha, beta)", "second(gamma, delta)"],
            &["first(alpha, BETA)", "completely new line here", "second(gamma, DELTA)"],
            &["D.4w.", "E.5w."],
            &["D.4w.", "", "E.5w."],
        );
    }
}
