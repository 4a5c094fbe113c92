//! The one text of a revision: what line numbers, quotes and digests of review threads refer to.
//!
//! It is Markdown that is made from the plan alone, so the same revision always gives the same
//! bytes. Texts of the plan stand behind `> `, line by line, and what takes one line has its
//! control characters written out: nothing in a plan can look like a heading or another block.

use std::fmt::Write as _;

use codeboost_schema::ids::Digest;
use codeboost_schema::plan::{CheckKind, DeclaredFile, FileKind, Plan};

/// A text with more bytes takes no comments.
pub const MAX_BYTES: usize = 256 * 1024;

/// The text of a revision, with its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanText {
    /// Markdown; every line ends with LF.
    pub text: String,
    /// In the order of the text; they don't overlap.
    pub blocks: Vec<Block>,
}

/// One part of a plan in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The part as a JSON pointer, such as `/items/0/files/2`.
    pub pointer: String,
    /// First and last line; from 1, inclusive.
    pub lines: (u64, u64),
}

impl PlanText {
    /// Writes the text of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let mut out = Writer::default();
        out.line(&format!("# Plan for issue #{}, revision {}", plan.issue, plan.revision));
        out.block("/summary".into(), |out| out.quote("", &plan.summary));
        for (n, question) in plan.questions.iter().enumerate() {
            out.line(&format!("\n## Question {}", n + 1));
            out.block(format!("/questions/{n}"), |out| out.quote("", question));
        }
        for (n, item) in plan.items.iter().enumerate() {
            let at = format!("/items/{n}");
            out.block(format!("{at}/title"), |out| {
                out.line(&format!("## {} {}", item.id, one_line(&item.title)));
            });
            out.block(format!("{at}/intent"), |out| out.quote("", &item.intent));
            for (k, file) in item.files.iter().enumerate() {
                out.block(format!("{at}/files/{k}"), |out| {
                    out.line(&format!("- {}", file_line(file)));
                    out.quote("  ", &file.change);
                });
            }
            for (k, check) in item.acceptance.iter().enumerate() {
                out.block(format!("{at}/acceptance/{k}"), |out| match check.kind {
                    CheckKind::Cmd => out.line(&format!("- run `{}`", one_line(&check.text))),
                    CheckKind::Check => {
                        out.line("- judged by the reviewer");
                        out.quote("  ", &check.text);
                    }
                });
            }
            if !item.depends_on.is_empty() {
                let ids: Vec<_> = item.depends_on.iter().map(|id| id.as_str()).collect();
                out.block(format!("{at}/depends_on"), |out| {
                    out.line(&format!("Depends on {}", ids.join(", ")));
                });
            }
        }
        Self { text: out.text, blocks: out.blocks }
    }

    /// The digest that names this text.
    #[must_use]
    pub fn snapshot(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// Whether it takes no comments because of its size.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.text.len() > MAX_BYTES
    }
}

/// How many lines a text has.
#[must_use]
pub fn count_lines(text: &str) -> u64 {
    text.lines().count() as u64
}

#[derive(Default)]
struct Writer {
    text: String,
    n_lines: u64,
    blocks: Vec<Block>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.n_lines += 1 + line.matches('\n').count() as u64;
    }

    fn quote(&mut self, indent: &str, text: &str) {
        for line in text.replace("\r\n", "\n").replace('\r', "\n").split('\n') {
            self.line(format!("{indent}> {}", one_line(line)).trim_end());
        }
    }

    fn block(&mut self, pointer: String, write: impl FnOnce(&mut Self)) {
        self.line("");
        let first = self.n_lines + 1;
        write(self);
        self.blocks.push(Block { pointer, lines: (first, self.n_lines) });
    }
}

fn file_line(file: &DeclaredFile) -> String {
    let path = one_line(&file.path);
    match (file.kind, &file.renamed_from) {
        (FileKind::Edit, _) => format!("edit `{path}`"),
        (FileKind::Add, _) => format!("add `{path}`"),
        (FileKind::Delete, _) => format!("delete `{path}`"),
        (FileKind::Rename, from) => {
            format!("rename `{}` to `{path}`", one_line(from.as_deref().unwrap_or_default()))
        }
    }
}

/// Text on one line: controls and separators of lines are written out, tabs stay.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}') {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = include_str!("../../../schema/examples/plan-412-r3.json");
        serde_json::from_str(text).expect("a plan")
    }

    #[test]
    fn the_text_of_the_example() {
        insta::assert_snapshot!(PlanText::of(&plan()).text);
    }

    #[test]
    fn every_part_is_a_block_and_blocks_hold_their_text() {
        let mut plan = plan();
        plan.summary = "One.\r\nTwo.\rThree.\n\n## P9 Forged\n".into();
        plan.items[0].title = "A\n## P8 Forged\u{2028}x".into();
        let text = PlanText::of(&plan);
        let lines: Vec<_> = text.text.lines().collect();
        assert_eq!(count_lines(&text.text), lines.len() as u64);
        let of = |pointer: &str| {
            let block = text.blocks.iter().find(|block| block.pointer == pointer).expect(pointer);
            let (first, last) = block.lines;
            lines[usize::try_from(first - 1).expect("small")..usize::try_from(last).expect("small")]
                .join("\n")
        };
        assert_eq!(of("/summary"), "> One.\n> Two.\n> Three.\n>\n> ## P9 Forged\n>");
        assert_eq!(of("/items/0/title"), "## P1 A\\u{a}## P8 Forged\\u{2028}x");
        let n_files: usize = plan.items.iter().map(|item| item.files.len()).sum();
        let n = |part: &str| text.blocks.iter().filter(|b| b.pointer.contains(part)).count();
        assert_eq!((n("/files/"), n("/title")), (n_files, plan.items.len()));
        let mut last = 0;
        for block in &text.blocks {
            assert!(block.lines.0 > last && block.lines.1 >= block.lines.0, "{block:?}");
            last = block.lines.1;
        }
        let headings = lines.iter().filter(|line| line.starts_with("## P")).count();
        assert_eq!(headings, plan.items.len());
    }

    #[test]
    fn another_revision_has_another_text() {
        let (plan, mut next) = (plan(), plan());
        next.revision += 1;
        assert_ne!(PlanText::of(&plan).snapshot(), PlanText::of(&next).snapshot());
        assert_eq!(PlanText::of(&plan), PlanText::of(&plan.clone()));
    }
}
