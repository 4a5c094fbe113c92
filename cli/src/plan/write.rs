//! A plan as text, always in one spelling: the same plan gives the same bytes.

use std::fmt::Write as _;

use codeboost_schema::plan::{CheckKind, FileKind, Plan};

use super::v1::yaml;

/// The plan as JSON, indented, with a line end.
///
/// # Panics
/// Never: plans hold only strings, integers and lists.
#[must_use]
pub fn to_json(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("plans always serialize");
    text.push('\n');
    text
}

/// The plan as YAML for people: texts unquoted where every reader of YAML takes them for text.
#[must_use]
pub fn to_yaml(plan: &Plan) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "schema_version: {}", plan.schema_version);
    let _ = writeln!(out, "issue: {}", plan.issue);
    let _ = writeln!(out, "revision: {}", plan.revision);
    field(&mut out, "summary", &plan.summary, 0);
    out.push_str("items:\n");
    for item in &plan.items {
        let _ = writeln!(out, "  - id: {}", item.id);
        field(&mut out, "    title", &item.title, 4);
        field(&mut out, "    intent", &item.intent, 4);
        out.push_str("    files:\n");
        for file in &item.files {
            field(&mut out, "      - path", &file.path, 8);
            let kind = match file.kind {
                FileKind::Edit => "edit",
                FileKind::Add => "add",
                FileKind::Delete => "delete",
                FileKind::Rename => "rename",
            };
            let _ = writeln!(out, "        kind: {kind}");
            match &file.renamed_from {
                Some(path) => field(&mut out, "        renamed_from", path, 8),
                None => out.push_str("        renamed_from: null\n"),
            }
            field(&mut out, "        change", &file.change, 8);
        }
        out.push_str("    acceptance:\n");
        for check in &item.acceptance {
            let kind = match check.kind {
                CheckKind::Cmd => "cmd",
                CheckKind::Check => "check",
            };
            let _ = writeln!(out, "      - type: {kind}");
            field(&mut out, "        text", &check.text, 8);
        }
        let ids: Vec<_> = item.depends_on.iter().map(|id| id.as_str()).collect();
        let _ = writeln!(out, "    depends_on: [{}]", ids.join(", "));
    }
    if plan.questions.is_empty() {
        out.push_str("questions: []\n");
    } else {
        out.push_str("questions:\n");
        for question in &plan.questions {
            let _ = writeln!(out, "  - {}", scalar(question, 2));
        }
    }
    out
}

fn field(out: &mut String, key: &str, text: &str, indent: usize) {
    let _ = writeln!(out, "{key}: {}", scalar(text, indent));
}

/// A string as YAML spells it, as the value of a key at `indent`.
fn scalar(text: &str, indent: usize) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    if is_block(text) {
        return block(text, indent);
    }
    quoted(text)
}

fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let starts = first.is_alphabetic() || matches!(first, '/' | '_');
    starts
        && text.chars().all(is_shown)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !yaml::is_a_word_of_other_readers(text)
}

/// Whether a block of lines spells the text in a way that people can read and edit.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && body.split('\n').all(|line| line.chars().all(is_shown) && !line.ends_with(' '))
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
}

fn block(text: &str, indent: usize) -> String {
    let (mark, body) = text.strip_suffix('\n').map_or(("|-", text), |body| ("|", body));
    let mut out = mark.to_owned();
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent + 2));
            out.push_str(line);
        }
    }
    out
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_shown(c) => out.push(c),
            // All of these are of the basic plane.
            c => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::read::read;
    use crate::plan::v1::parse::Syntax;

    #[test]
    fn the_example_reads_back_from_both_spellings() {
        let text = include_str!("../../../schema/examples/plan-412-r3.json");
        let plan: Plan = serde_json::from_str(text).expect("a plan");
        let yaml = read(to_yaml(&plan).as_bytes(), Syntax::Yaml).expect("a plan").plan;
        let json = read(to_json(&plan).as_bytes(), Syntax::Json).expect("a plan").plan;
        assert_eq!((&yaml, &json), (&plan, &plan));
    }

    #[test]
    fn texts_are_spelled_so_that_every_reader_takes_them_for_text() {
        let check = |text: &str, expected: &str| assert_eq!(scalar(text, 2), expected);
        check("plain text", "plain text");
        check("src/a.rs", "src/a.rs");
        check("no", "\"no\"");
        check("12", "\"12\"");
        check("2026-11-30", "\"2026-11-30\"");
        check("a: b", "\"a: b\"");
        check("a #b", "\"a #b\"");
        check("*.rs", "\"*.rs\"");
        check(" x", "\" x\"");
        check("a\tb\u{85}", "\"a\\tb\\u0085\"");
        check("one\ntwo\n", "|\n    one\n    two");
        check("one\n\ntwo", "|-\n    one\n\n    two");
        check("one\n two \n", "\"one\\n two \\n\"");
    }
}
