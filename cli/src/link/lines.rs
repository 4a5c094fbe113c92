//! Lines of a text, and their numbers.
//!
//! A line ends after LF or at the end of the text. Equal lines of one set of files get one number,
//! so that texts are compared as lists of numbers and each distinct line is kept once.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Git looks this far for a NUL.
const BINARY_LOOK_BYTES: usize = 8000;

/// Whether git takes the content for binary: a NUL in the first 8,000 bytes.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, &content[..content.len().min(BINARY_LOOK_BYTES)]).is_some()
}

/// The lines with their terminators.
pub(crate) fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// Number of lines, where the last may lack a terminator.
pub(crate) fn count(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count() + usize::from(!text.is_empty() && !ends_line(text))
}

fn ends_line(text: &[u8]) -> bool {
    text.last() == Some(&b'\n')
}

/// The line without LF or CRLF.
pub(crate) fn without_terminator(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else { return line };
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Where each line of a text begins, and where the last one ends.
#[derive(Debug)]
pub(crate) struct Starts(Vec<usize>);

impl Starts {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 24 + 2);
        starts.push(0);
        starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        if !text.is_empty() && !ends_line(text) {
            starts.push(text.len());
        }
        Self(starts)
    }

    pub(crate) fn n_lines(&self) -> usize {
        self.0.len() - 1
    }

    /// The bytes of these lines of `text`.
    pub(crate) fn bytes<'a>(&self, text: &'a [u8], lines: std::ops::Range<usize>) -> &'a [u8] {
        &text[self.0[lines.start]..self.0[lines.end]]
    }

    pub(crate) fn line<'a>(&self, text: &'a [u8], line_idx: usize) -> &'a [u8] {
        self.bytes(text, line_idx..line_idx + 1)
    }
}

/// A text, and where its lines begin.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) text: Arc<Vec<u8>>,
    pub(crate) starts: Starts,
}

impl Lines {
    pub(crate) fn of(text: Arc<Vec<u8>>) -> Self {
        let starts = Starts::of(&text);
        Self { text, starts }
    }
}

/// Gives equal lines one number.
#[derive(Default)]
pub(crate) struct Interner {
    text: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    pub(crate) fn line(&self, number: u32) -> &[u8] {
        line_of(&self.text, &self.ends, number)
    }

    pub(crate) fn intern(&mut self, line: &[u8]) -> u32 {
        let Self { text, ends, table, hasher } = self;
        let hash = hasher.hash_one(line);
        let found = table.entry(
            hash,
            |number| line_of(text, ends, *number) == line,
            |number| hasher.hash_one(line_of(text, ends, *number)),
        );
        match found {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = ends.len() as u32;
                entry.insert(number);
                text.extend_from_slice(line);
                ends.push(text.len());
                number
            }
        }
    }

    /// The number of a line, if it has one.
    pub(crate) fn get(&self, line: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(line);
        self.table.find(hash, |number| self.line(*number) == line).copied()
    }

    /// The numbers of the lines of `text`.
    pub(crate) fn intern_all(&mut self, text: &[u8]) -> Vec<u32> {
        let n_lines = count(text);
        let mut numbers = Vec::with_capacity(n_lines);
        if self.ends.is_empty() {
            // Most lines of a text are different ones.
            self.table.reserve(n_lines, |_| 0);
            self.ends.reserve(n_lines);
            self.text.reserve(text.len());
        }
        numbers.extend(split(text).map(|line| self.intern(line)));
        numbers
    }

    /// As [`Self::intern_all`], for a text that is mostly like an `old` one with known numbers:
    /// lines at the beginning and at the end that both have are not looked at again.
    pub(crate) fn intern_like(&mut self, old: &[u8], old_numbers: &[u32], text: &[u8]) -> Vec<u32> {
        let head = line_start(text, common_prefix(old, text));
        let n_head = memchr::memchr_iter(b'\n', &text[..head]).count();
        let (old_rest, rest) = (&old[head..], &text[head..]);
        let tail = common_suffix(old_rest, rest);
        // The common end begins at a line of both.
        let tail_at = rest.len() - tail;
        let begins_line = |text: &[u8], at: usize| at == 0 || text[at - 1] == b'\n';
        let tail_at = if begins_line(rest, tail_at) && begins_line(old_rest, old_rest.len() - tail)
        {
            tail_at
        } else {
            memchr::memchr(b'\n', &rest[tail_at..]).map_or(rest.len(), |at| tail_at + at + 1)
        };
        let n_tail = count(&rest[tail_at..]);
        let mut numbers = Vec::with_capacity(old_numbers.len() + 16);
        numbers.extend_from_slice(&old_numbers[..n_head]);
        numbers.extend(split(&rest[..tail_at]).map(|line| self.intern(line)));
        numbers.extend_from_slice(&old_numbers[old_numbers.len() - n_tail..]);
        numbers
    }
}

fn line_of<'a>(text: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &text[start..ends[number]]
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 64;
    let n = a.len().min(b.len());
    let mut at = 0;
    while at + STEP <= n && a[at..at + STEP] == b[at..at + STEP] {
        at += STEP;
    }
    at + a[at..n].iter().zip(&b[at..n]).take_while(|(x, y)| x == y).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 64;
    let n = a.len().min(b.len());
    let (a, b) = (&a[a.len() - n..], &b[b.len() - n..]);
    let mut at = n;
    while at >= STEP && a[at - STEP..at] == b[at - STEP..at] {
        at -= STEP;
    }
    let more = a[..at].iter().rev().zip(b[..at].iter().rev()).take_while(|(x, y)| x == y).count();
    n - at + more
}

/// The start of the line that the byte at `at` belongs to.
fn line_start(text: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &text[..at]).map_or(0, |lf| lf + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_lf_and_the_end_end_a_line() {
        let lines: Vec<_> = split(b"a\rb\r\nc\n\nd\xe2\x80\xa8e\x0c").collect();
        assert_eq!(lines, [&b"a\rb\r\n"[..], b"c\n", b"\n", b"d\xe2\x80\xa8e\x0c"]);
        assert_eq!(count(b"a\nb"), 2);
        assert_eq!(count(b"a\n"), 1);
        assert_eq!(count(b""), 0);
        assert_eq!(without_terminator(b"a\r\n"), b"a");
        assert_eq!(without_terminator(b"a\r"), b"a\r");
    }

    #[test]
    fn a_nul_after_8000_bytes_is_text() {
        let mut content = vec![b'a'; 8001];
        content[8000] = 0;
        assert!(!is_binary(&content));
        content[7999] = 0;
        assert!(is_binary(&content));
    }

    proptest! {
        #[test]
        fn numbers_do_not_depend_on_what_was_there_before(
            old in "[ab\n]{0,40}", new in "[ab\n]{0,40}", reps in 0usize..40,
        ) {
            let same = "ab\n".repeat(reps);
            for (old, new) in [
                (format!("{same}{old}"), format!("{same}{new}")),
                (format!("{old}{same}"), format!("{new}{same}")),
                (format!("{same}{old}{same}"), format!("{same}{new}{same}")),
            ] {
                let mut interner = Interner::default();
                let numbers = interner.intern_all(old.as_bytes());
                let quick = interner.intern_like(old.as_bytes(), &numbers, new.as_bytes());
                let plain = interner.intern_all(new.as_bytes());
                prop_assert_eq!(quick, plain);
            }
        }

        #[test]
        fn starts_find_every_line(text in "[a\r\n]{0,40}") {
            let text = text.as_bytes();
            let starts = Starts::of(text);
            prop_assert_eq!(starts.n_lines(), count(text));
            for (n, line) in split(text).enumerate() {
                prop_assert_eq!(starts.line(text, n), line);
            }
        }
    }
}
