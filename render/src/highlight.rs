//! Syntax highlighting of whole files, kept as short runs for the lines that are shown.
//!
//! Both sides of a file are read in one walk: as long as they agree, a line is parsed once. What
//! is highlighted depends only on sizes, never on time, so that the same input gives the same
//! page on any machine.

use std::collections::HashMap;
use std::sync::LazyLock;

use codeboost_schema::ids::Digest;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::text;

/// Longer lines stay plain.
const MAX_LINE_BYTES: usize = 2000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Scopes and their class letters; of the entries that are a prefix of a scope the first counts.
const CLASSES: &[(&str, char)] = &[
    ("comment", 'c'),
    ("string", 's'),
    ("constant.character", 's'),
    ("constant", 'n'),
    ("entity.name.function", 'f'),
    ("support.function", 'f'),
    ("support.macro", 'm'),
    ("entity.name.macro", 'm'),
    ("entity.name.tag", 'k'),
    ("entity.name", 't'),
    ("entity.other.attribute-name", 'a'),
    ("entity.other.inherited-class", 't'),
    ("support.type", 't'),
    ("support.class", 't'),
    ("storage.type", 'k'),
    ("storage", 'k'),
    ("keyword.operator", '.'),
    ("keyword", 'k'),
    ("variable.parameter", 'v'),
    ("variable.language", 'k'),
    ("variable.annotation", 'a'),
    ("meta.annotation", 'a'),
    ("markup.heading", 'k'),
    ("markup.raw", 's'),
];

/// Remembers what highlighting came to.
pub trait Highlighted: Sync {
    /// The runs that were made from what `digest` names: one line for each line that is shown.
    fn get(&self, digest: &Digest) -> Option<String>;
    /// Takes runs that were just made.
    fn put(&self, digest: Digest, runs: &str);
}

impl Highlighted for () {
    fn get(&self, _: &Digest) -> Option<String> {
        None
    }

    fn put(&self, _: Digest, _: &str) {}
}

/// Names everything that runs are made from: the lexer, the language, and every line in order.
fn digest(language: &SyntaxReference, steps: &[(Step<'_>, bool)]) -> Digest {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(concat!(env!("CARGO_PKG_VERSION"), " classes\n").as_bytes());
    bytes.extend_from_slice(language.name.as_bytes());
    for (step, wanted) in steps {
        let (kind, line) = match step {
            Step::Equal(line) => (b"\n=", line),
            Step::Removed(line) => (b"\n-", line),
            Step::Added(line) => (b"\n+", line),
        };
        bytes.extend_from_slice(kind);
        bytes.push(u8::from(*wanted));
        bytes.extend_from_slice(&(line.len() as u64).to_be_bytes());
        bytes.extend_from_slice(line);
    }
    Digest::of(&bytes)
}

/// As [`runs`], from what is known where it is known.
pub(crate) fn known_runs(
    language: &SyntaxReference,
    steps: &[(Step<'_>, bool)],
    known: &dyn Highlighted,
) -> Vec<String> {
    let digest = digest(language, steps);
    if let Some(found) = known.get(&digest) {
        let found: Vec<String> = found.split('\n').map(str::to_owned).collect();
        if found.len() == steps.iter().filter(|(_, wanted)| *wanted).count() {
            return found;
        }
    }
    let made = runs(language, steps.iter().copied());
    known.put(digest, &made.join("\n"));
    made
}

/// One line on the walk through both sides of a file.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    /// The line stands on both sides.
    Equal(&'a [u8]),
    /// Only at base.
    Removed(&'a [u8]),
    /// Only at head.
    Added(&'a [u8]),
}

/// The language of a file by its name, or by its first line.
pub(crate) fn language(path: &[u8], first_line: &[u8]) -> Option<&'static SyntaxReference> {
    let path = std::str::from_utf8(path).ok()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let found = SYNTAXES
        .find_syntax_by_extension(name)
        .or_else(|| SYNTAXES.find_syntax_by_extension(extension))
        .or_else(|| SYNTAXES.find_syntax_by_extension(&extension.to_ascii_lowercase()))
        .or_else(|| {
            let line = std::str::from_utf8(first_line).ok()?;
            SYNTAXES.find_syntax_by_first_line(line)
        })?;
    (found.name != "Plain Text").then_some(found)
}

/// Runs for each step for which `wanted` holds, in order.
///
/// In the form of [`text::push_classes`]. Lines that are not UTF-8 or too long have none.
pub(crate) fn runs<'a>(
    language: &SyntaxReference,
    steps: impl Iterator<Item = (Step<'a>, bool)>,
) -> Vec<String> {
    let mut classes = Classes::default();
    let mut out = Vec::new();
    let mut new = State::new(language);
    // `None` while both sides are in the same state.
    let mut old: Option<State> = None;
    for (step, wanted) in steps {
        let runs = match step {
            Step::Equal(line) => {
                // In the same state both sides go on as one.
                if old.as_ref() == Some(&new) {
                    old = None;
                }
                if let Some(state) = &mut old {
                    state.line(line, false, &mut classes);
                }
                new.line(line, wanted, &mut classes)
            }
            Step::Added(line) => {
                if old.is_none() {
                    old = Some(new.clone());
                }
                new.line(line, wanted, &mut classes)
            }
            Step::Removed(line) => {
                old.get_or_insert_with(|| new.clone()).line(line, wanted, &mut classes)
            }
        };
        if wanted {
            out.push(runs);
        }
    }
    out
}

#[derive(Clone, PartialEq)]
struct State {
    parse: ParseState,
    stack: ScopeStack,
}

impl State {
    fn new(language: &SyntaxReference) -> Self {
        Self { parse: ParseState::new(language), stack: ScopeStack::new() }
    }

    fn line(&mut self, line: &[u8], wanted: bool, classes: &mut Classes) -> String {
        let mut out = String::new();
        if line.len() > MAX_LINE_BYTES {
            return out;
        }
        let Ok(line) = std::str::from_utf8(line) else { return out };
        let whole = format!("{line}\n");
        let Ok(ops) = self.parse.parse_line(&whole, &SYNTAXES) else { return out };
        let wanted = wanted && !line.contains(text::RAW);
        let mut runs: Vec<(usize, char)> = Vec::new();
        let mut at = 0;
        for (place, op) in ops {
            if wanted {
                push(&mut runs, &line[at.min(line.len())..place.min(line.len())], || {
                    classes.of(&self.stack)
                });
            }
            at = at.max(place);
            if self.stack.apply(&op).is_err() {
                return String::new();
            }
        }
        if wanted {
            push(&mut runs, &line[at.min(line.len())..], || classes.of(&self.stack));
        }
        text::push_classes(&mut out, line, &mut runs);
        out
    }
}

fn push(runs: &mut Vec<(usize, char)>, part: &str, class: impl FnOnce() -> char) {
    let length = text::utf16_len(part);
    if length == 0 {
        return;
    }
    let blank = part.bytes().all(|b| matches!(b, b' ' | b'\t'));
    match runs.last_mut() {
        // Blanks have no colour, so they continue whatever stands before them.
        Some(run) if blank => run.0 += length,
        None if blank => runs.push((length, '.')),
        last => {
            let class = class();
            match last {
                Some(run) if run.1 == class => run.0 += length,
                _ => runs.push((length, class)),
            }
        }
    }
}

struct Classes {
    table: Vec<(Scope, char)>,
    cache: HashMap<Scope, Option<char>>,
}

impl Default for Classes {
    fn default() -> Self {
        let table = CLASSES
            .iter()
            .filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class)))
            .collect();
        Self { table, cache: HashMap::new() }
    }
}

impl Classes {
    fn of(&mut self, stack: &ScopeStack) -> char {
        for scope in stack.as_slice().iter().rev() {
            let table = &self.table;
            let class = self.cache.entry(*scope).or_insert_with(|| {
                table.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|found| found.1)
            });
            if let Some(class) = class {
                return *class;
            }
        }
        '.'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(path: &str, steps: &[Step<'_>]) -> Vec<String> {
        let language = language(path.as_bytes(), b"").unwrap();
        runs(language, steps.iter().map(|step| (*step, true)))
    }

    #[test]
    fn a_line_becomes_runs() {
        assert_eq!(all("a.rs", &[Step::Equal(b"let x = \"s\"; // c")]), ["k..sss.ccc"]);
    }

    #[test]
    fn each_side_keeps_its_own_state() {
        let steps = [
            Step::Removed(b"/* old"),
            Step::Added(b"/* new */"),
            Step::Removed(b"let x = 1; */"),
            Step::Added(b"let x = 1;"),
            Step::Equal(b"let y = 2;"),
        ];
        assert_eq!(all("a.rs", &steps), ["ccc", "ccccc", "ccccccc", "k..n", "k..n"]);
    }

    #[test]
    fn lengths_count_utf16_and_bad_bytes_stay_plain() {
        assert_eq!(all("a.rs", &[Step::Equal("// 😀".as_bytes())]), ["ccc"]);
        assert_eq!(all("a.rs", &[Step::Equal(b"// \xff")]), [""]);
    }

    #[test]
    fn languages_are_known_by_name_or_first_line() {
        assert!(language(b"src/Makefile", b"").is_some());
        assert!(language(b"deploy", b"#!/bin/bash").is_some());
        assert!(language(b"deploy", b"hello").is_none());
        assert!(language(b"notes.txt", b"hello").is_none());
    }
}
