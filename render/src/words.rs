//! Marks the words that changed inside a line that was rewritten.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

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
pub(crate) fn marks(removed: &[&[u8]], added: &[&[u8]]) -> (Vec<String>, Vec<String>) {
    let mut old = vec![String::new(); removed.len()];
    let mut new = vec![String::new(); added.len()];
    if removed.is_empty() || added.is_empty() || removed.len().max(added.len()) > MAX_LINES {
        return (old, new);
    }
    let tokens = |lines: &[&[u8]]| -> Vec<Option<Vec<String>>> {
        lines.iter().map(|line| tokenize(line)).collect()
    };
    let (old_tokens, new_tokens) = (tokens(removed), tokens(added));
    for (i, j) in pair(&old_tokens, &new_tokens) {
        if let (Some(a), Some(b)) = (&old_tokens[i], &new_tokens[j]) {
            (old[i], new[j]) = runs(a, b);
        }
    }
    (old, new)
}

/// An identifier or number, a run of blanks, or one other character each.
fn tokenize(line: &[u8]) -> Option<Vec<String>> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let line = std::str::from_utf8(line).ok().filter(|line| !line.contains(text::RAW))?;
    let kind = |c: char| match c {
        ' ' | '\t' => 1,
        c if c.is_alphanumeric() || c == '_' => 2,
        _ => 0,
    };
    let mut tokens: Vec<String> = Vec::new();
    let mut last = 0;
    for c in line.chars() {
        let this = kind(c);
        match tokens.last_mut() {
            Some(token) if this != 0 && this == last => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = this;
    }
    Some(tokens)
}

/// Share of equal bytes, blanks not counted.
fn likeness(a: &[String], b: &[String]) -> f64 {
    let weigh = |tokens: &[String]| -> usize { tokens.iter().map(|token| weight(token)).sum() };
    let total = weigh(a) + weigh(b);
    if total == 0 {
        return 0.0;
    }
    let equal: usize = capture_diff_slices(Algorithm::Myers, a, b)
        .iter()
        .map(|op| match op {
            DiffOp::Equal { old_index, len, .. } => weigh(&a[*old_index..old_index + len]),
            _ => 0,
        })
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "both are at most a few thousand")]
    {
        2.0 * equal as f64 / total as f64
    }
}

fn weight(token: &str) -> usize {
    if token.starts_with([' ', '\t']) { 0 } else { token.len() }
}

/// The tokens of a line without their order, for ruling lines out before they are compared.
struct Bag {
    /// Hash and bytes of each token that is no blank, sorted.
    tokens: Vec<(u64, usize)>,
    total: usize,
}

impl Bag {
    fn of(tokens: &[String]) -> Self {
        let mut out: Vec<(u64, usize)> = tokens
            .iter()
            .filter(|token| weight(token) > 0)
            .map(|token| {
                let mut hasher = DefaultHasher::new();
                token.hash(&mut hasher);
                (hasher.finish(), weight(token))
            })
            .collect();
        out.sort_unstable();
        Self { total: out.iter().map(|(_, bytes)| bytes).sum(), tokens: out }
    }

    /// No order of the tokens gives a greater likeness than this.
    fn most(&self, other: &Self) -> f64 {
        let total = self.total + other.total;
        if total == 0 {
            return 0.0;
        }
        let (mut a, mut b) = (&self.tokens[..], &other.tokens[..]);
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
        #[expect(clippy::cast_precision_loss, reason = "both are at most a few thousand")]
        {
            2.0 * equal as f64 / total as f64
        }
    }
}

/// The order-preserving pairs with the largest total likeness.
fn pair(old: &[Option<Vec<String>>], new: &[Option<Vec<String>>]) -> Vec<(usize, usize)> {
    let bags = |side: &[Option<Vec<String>>]| -> Vec<Bag> {
        side.iter().map(|line| Bag::of(line.as_deref().unwrap_or_default())).collect()
    };
    let (old_bags, new_bags) = (bags(old), bags(new));
    let score = |i: usize, j: usize| -> f64 {
        match (&old[i], &new[j]) {
            (Some(_), Some(_)) if old_bags[i].most(&new_bags[j]) < MIN_EQUAL => None,
            (Some(a), Some(b)) => Some(likeness(a, b)).filter(|like| *like >= MIN_EQUAL),
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

fn runs(a: &[String], b: &[String]) -> (String, String) {
    let mut old: Vec<(usize, char)> = Vec::new();
    let mut new: Vec<(usize, char)> = Vec::new();
    let add = |side: &mut Vec<(usize, char)>, tokens: &[String], class: char| {
        let length: usize = tokens.iter().map(|token| text::utf16_len(token)).sum();
        match side.last_mut() {
            _ if length == 0 => {}
            Some(run) if run.1 == class => run.0 += length,
            _ => side.push((length, class)),
        }
    };
    for op in capture_diff_slices(Algorithm::Myers, a, b) {
        let class = if matches!(op, DiffOp::Equal { .. }) { '.' } else { 'w' };
        add(&mut old, &a[op.old_range()], class);
        add(&mut new, &b[op.new_range()], class);
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
    (write(old), write(new))
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
    fn the_bound_is_never_below_the_likeness() {
        let lines =
            ["", "  ", "a(b, c)", "c(b, a)", "let a = one(x);", "let b = two(x) ;;", "x x x y"];
        let tokens: Vec<_> = lines.iter().map(|line| tokenize(line.as_bytes()).unwrap()).collect();
        for a in &tokens {
            for b in &tokens {
                assert!(Bag::of(a).most(&Bag::of(b)) >= likeness(a, b), "{a:?} {b:?}");
            }
        }
        assert!(Bag::of(&tokens[4]).most(&Bag::of(&tokens[6])) < MIN_EQUAL);
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
