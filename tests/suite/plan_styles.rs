//! One plan in many spellings: whatever legal style of JSON or YAML it is written in, it reads back
//! as the same plan.

use codeboost::plan::read::read;
use codeboost::plan::v1::parse::Syntax;
use codeboost::plan::write::{to_json, to_yaml};
use codeboost_schema::plan::Plan;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

/// How many plans are tried; `CODEBOOST_TEST_PLANS` sets another number.
fn cases() -> u32 {
    std::env::var("CODEBOOST_TEST_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

fn text(max: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,6}",
        4 => Just(" ".to_owned()),
        2 => prop::sample::select(vec![
            ": ", " #", "#", "- ", "? ", "'", "\"", "\\", "\n", "\n\n", "  ", "\t", "\r", "\r\n",
            "[", "]", "{", "}", ",", "&a", "*a", "!t", "|", ">", "%", "@", "`", "<<", "---", "...",
            "~", "null", "true", "no", "0x1F", "1_000", "1e3", ".inf", "2026-11-30", "</script>",
        ])
        .prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            'é', 'ß', '漢', '😀', '\u{301}', '\u{a0}', '\u{85}', '\u{2028}', '\u{feff}', '\u{7f}',
            '\u{9f}', '\u{202e}', '\u{200d}', '\u{fffd}', '\u{e000}', '\u{1}', '\u{1b}', '\u{10ffff}',
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(piece, 1..8)
        .prop_map(move |pieces| pieces.concat().chars().take(max).collect::<String>())
}

fn item() -> impl Strategy<Value = Value> {
    let file = (text(300), 0..4usize, text(300), any::<bool>(), text(1200)).prop_map(
        |(path, kind, from, has_from, change)| {
            let path = path.replace('\\', "/").trim_start_matches('/').to_owned();
            let path = if path.is_empty() { "p".into() } else { path };
            let kind = ["edit", "add", "delete", "rename"][kind];
            json!({
                "path": path,
                "kind": kind,
                "renamed_from": has_from.then_some(from),
                "change": change,
            })
        },
    );
    let check = (any::<bool>(), text(400))
        .prop_map(|(cmd, text)| json!({"type": if cmd { "cmd" } else { "check" }, "text": text}));
    (
        1..1000u32,
        text(120),
        text(600),
        prop::collection::vec(file, 1..4),
        prop::collection::vec(check, 1..3),
        prop::collection::vec(1..1000u32, 0..3),
    )
        .prop_map(|(id, title, intent, files, acceptance, needs)| {
            json!({
                "id": format!("P{id}"), "title": title, "intent": intent, "files": files,
                "acceptance": acceptance,
                "depends_on": needs.iter().map(|id| format!("P{id}")).collect::<Vec<_>>(),
            })
        })
}

fn plan() -> impl Strategy<Value = Value> {
    (
        1..1_000_000u64,
        prop_oneof![1..10u64, Just(9_007_199_254_740_991)],
        text(600),
        prop::collection::vec(item(), 1..4),
        prop::collection::vec(text(400), 0..3),
    )
        .prop_map(|(issue, revision, summary, items, questions)| {
            json!({
                "schema_version": 1, "issue": issue, "revision": revision, "summary": summary,
                "items": items, "questions": questions,
            })
        })
}

/// A small source of choices, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    /// The members in some order.
    fn members<'v>(&mut self, object: &'v Map<String, Value>) -> Vec<(&'v String, &'v Value)> {
        let mut members: Vec<_> = object.iter().collect();
        for n in (1..members.len()).rev() {
            let other = self.roll(n + 1);
            members.swap(n, other);
        }
        members
    }

    fn number(&mut self, number: u64) -> String {
        match self.roll(5) {
            0 => format!("{number}.0"),
            1 => format!("{number}e0"),
            2 => format!("{number}0E-1"),
            _ => number.to_string(),
        }
    }
}

mod as_json {
    use super::*;

    pub(super) fn write(value: &Value, dice: &mut Dice) -> String {
        let mut out = String::new();
        blank(&mut out, dice);
        add(&mut out, value, dice);
        blank(&mut out, dice);
        out
    }

    fn blank(out: &mut String, dice: &mut Dice) {
        for _ in 0..dice.roll(3) {
            out.push_str(dice.pick(&[" ", "\n", "\t", "\r\n", "  "]));
        }
    }

    fn add(out: &mut String, value: &Value, dice: &mut Dice) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&dice.number(number.as_u64().unwrap())),
            Value::String(text) => string(out, text, dice),
            Value::Array(list) => {
                out.push('[');
                blank(out, dice);
                for (n, value) in list.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                        blank(out, dice);
                    }
                    add(out, value, dice);
                    blank(out, dice);
                }
                out.push(']');
            }
            Value::Object(object) => {
                out.push('{');
                blank(out, dice);
                for (n, (key, value)) in dice.members(object).into_iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                        blank(out, dice);
                    }
                    string(out, key, dice);
                    blank(out, dice);
                    out.push(':');
                    blank(out, dice);
                    add(out, value, dice);
                    blank(out, dice);
                }
                out.push('}');
            }
        }
    }

    fn string(out: &mut String, text: &str, dice: &mut Dice) {
        out.push('"');
        for c in text.chars() {
            let must = c < ' ' || c == '"' || c == '\\';
            if !must && dice.roll(6) > 0 {
                out.push(c);
                continue;
            }
            let short = match c {
                '"' => Some("\\\""),
                '\\' => Some("\\\\"),
                '/' => Some("\\/"),
                '\n' => Some("\\n"),
                '\r' => Some("\\r"),
                '\t' => Some("\\t"),
                _ => None,
            };
            match short {
                Some(short) if dice.roll(2) == 0 => out.push_str(short),
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&match dice.roll(2) {
                            0 => format!("\\u{unit:04x}"),
                            _ => format!("\\u{unit:04X}"),
                        });
                    }
                }
            }
        }
        out.push('"');
    }
}

mod as_yaml {
    use super::*;

    pub(super) fn write(value: &Value, dice: &mut Dice) -> String {
        let mut out = String::from(dice.pick(&[
            "",
            "",
            "---\n",
            "# a comment: 'with' [signs]\n",
            "%YAML 1.2\n---\n",
            "\n\n--- # here it begins\n",
        ]));
        match dice.roll(5) {
            0 => flow(&mut out, value, 1, dice),
            _ => block(&mut out, value, 0, dice),
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(dice.pick(&["", "", "...\n", "# the end\n", "...\n# the end\n"]));
        // Line ends inside block strings are read as LF whatever they are.
        if dice.roll(4) == 0 { out.replace('\n', "\r\n") } else { out }
    }

    /// A collection in block style, at the beginning of a line.
    fn block(out: &mut String, value: &Value, indent: usize, dice: &mut Dice) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                for (key, value) in dice.members(object) {
                    comment(out, indent, dice);
                    out.push_str(&" ".repeat(indent));
                    member(out, key, value, indent, dice);
                }
            }
            Value::Array(list) if !list.is_empty() => {
                for value in list {
                    comment(out, indent, dice);
                    out.push_str(&" ".repeat(indent));
                    entry(out, value, indent, dice);
                }
            }
            _ => flow(out, value, indent + 1, dice),
        }
    }

    fn comment(out: &mut String, indent: usize, dice: &mut Dice) {
        match dice.roll(12) {
            0 => out.push('\n'),
            1 => {
                out.push_str(&" ".repeat(indent));
                out.push_str("# key: &a *b !c [\n");
            }
            _ => {}
        }
    }

    fn end(out: &mut String, dice: &mut Dice) {
        out.push_str(dice.pick(&["", "", "", " ", "  # why"]));
        out.push('\n');
    }

    fn member(out: &mut String, key: &str, value: &Value, indent: usize, dice: &mut Dice) {
        let key = match dice.roll(8) {
            0 => format!("'{key}'"),
            1 => format!("\"{key}\""),
            2 => format!("? {key}\n{}", " ".repeat(indent)),
            _ => key.to_owned(),
        };
        out.push_str(&key);
        out.push(':');
        let is_list = value.is_array();
        match value {
            Value::Object(_) | Value::Array(_) if is_empty(value) || dice.roll(6) == 0 => {
                out.push(' ');
                flow(out, value, indent + 1, dice);
                end(out, dice);
            }
            Value::Object(_) | Value::Array(_) => {
                end(out, dice);
                // A list may stand as far left as its key.
                let more = if is_list { dice.roll(3) } else { 1 + dice.roll(3) };
                block(out, value, indent + more, dice);
            }
            _ => {
                out.push(' ');
                scalar(out, value, indent, dice);
            }
        }
    }

    fn entry(out: &mut String, value: &Value, indent: usize, dice: &mut Dice) {
        out.push('-');
        match value {
            Value::Object(object) if !object.is_empty() && dice.roll(5) > 0 => {
                // The first member on the line of the dash.
                let spaces = 1 + dice.roll(3);
                out.push_str(&" ".repeat(spaces));
                let inner = indent + 1 + spaces;
                for (n, (key, value)) in dice.members(object).into_iter().enumerate() {
                    if n > 0 {
                        out.push_str(&" ".repeat(inner));
                    }
                    member(out, key, value, inner, dice);
                }
            }
            Value::Object(_) | Value::Array(_) => {
                out.push(' ');
                flow(out, value, indent + 1, dice);
                end(out, dice);
            }
            _ => {
                out.push(' ');
                scalar(out, value, indent, dice);
            }
        }
    }

    fn is_empty(value: &Value) -> bool {
        value.as_array().is_some_and(Vec::is_empty)
    }

    fn flow(out: &mut String, value: &Value, indent: usize, dice: &mut Dice) {
        let gap = |out: &mut String, dice: &mut Dice| match dice.roll(5) {
            0 => {
                out.push('\n');
                out.push_str(&" ".repeat(indent + 1));
            }
            1 => out.push_str("  "),
            _ => {}
        };
        match value {
            Value::Array(list) => {
                out.push('[');
                for (n, value) in list.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    gap(out, dice);
                    flow(out, value, indent, dice);
                    gap(out, dice);
                }
                out.push(']');
            }
            Value::Object(object) => {
                out.push('{');
                for (n, (key, value)) in dice.members(object).into_iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    gap(out, dice);
                    out.push_str(&match dice.roll(3) {
                        0 => format!("{key}: "),
                        1 => format!("\"{key}\": "),
                        _ => format!("'{key}' : "),
                    });
                    flow(out, value, indent, dice);
                    gap(out, dice);
                }
                out.push('}');
            }
            Value::String(text) => match dice.roll(2) {
                0 if can_single(text) => single(out, text),
                _ => double(out, text, indent, dice),
            },
            _ => other(out, value, dice),
        }
    }

    fn other(out: &mut String, value: &Value, dice: &mut Dice) {
        match value {
            Value::Number(number) => out.push_str(&dice.number(number.as_u64().unwrap())),
            _ => out.push_str(&value.to_string()),
        }
    }

    /// A scalar after a key or a dash, with its line end.
    fn scalar(out: &mut String, value: &Value, indent: usize, dice: &mut Dice) {
        let Value::String(text) = value else {
            other(out, value, dice);
            return end(out, dice);
        };
        match dice.roll(5) {
            0 | 1 if can_plain(text) => out.push_str(text),
            2 if can_single(text) => single(out, text),
            3 if can_block(text) => return literal(out, text, indent, dice),
            4 if can_fold(text) => return folded(out, text, indent, dice),
            _ => double(out, text, indent + 1, dice),
        }
        end(out, dice);
    }

    fn is_shown(c: char) -> bool {
        !c.is_control() && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
    }

    fn can_plain(text: &str) -> bool {
        let is_word = ["null", "true", "no"].contains(&text);
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && (!is_word || text == "no")
            && text.chars().all(is_shown)
            && !text.ends_with([' ', ':'])
            && !text.contains(": ")
            && !text.contains(" #")
    }

    fn can_single(text: &str) -> bool {
        text.chars().all(|c| c >= ' ')
    }

    fn single(out: &mut String, text: &str) {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    }

    fn double(out: &mut String, text: &str, indent: usize, dice: &mut Dice) {
        out.push('"');
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let must = c < ' ' || c == '"' || c == '\\';
            if !must && dice.roll(8) > 0 {
                out.push(c);
            } else {
                let short = match c {
                    '"' => Some("\\\""),
                    '\\' => Some("\\\\"),
                    '/' => Some("\\/"),
                    '\n' => Some("\\n"),
                    '\r' => Some("\\r"),
                    '\t' => Some("\\t"),
                    '\u{1b}' => Some("\\e"),
                    '\u{85}' => Some("\\N"),
                    '\u{a0}' => Some("\\_"),
                    '\u{2028}' => Some("\\L"),
                    _ => None,
                };
                let code = u32::from(c);
                out.push_str(&match (short, dice.roll(4)) {
                    (Some(short), 0 | 1) => short.to_owned(),
                    (_, 2) if code < 0x100 => format!("\\x{code:02x}"),
                    (_, 0..=2) if code < 0x10000 => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
            // An escaped line end joins two lines; blanks after it would be lost.
            if chars.peek().is_some_and(|next| !" \t".contains(*next)) && dice.roll(40) == 0 {
                out.push_str("\\\n");
                out.push_str(&" ".repeat(indent + 1));
            }
        }
        out.push('"');
    }

    fn can_block(text: &str) -> bool {
        let body = text.strip_suffix('\n').unwrap_or(text);
        !body.is_empty() && body.chars().all(|c| is_shown(c) || c == '\n')
    }

    fn literal(out: &mut String, text: &str, indent: usize, dice: &mut Dice) {
        let trimmed = text.trim_end_matches('\n');
        let n_ends = text.len() - trimmed.len();
        // Leading blanks hide how far the text is indented, so that has to be said.
        let say = text.starts_with([' ', '\n']) || dice.roll(3) == 0;
        let more = 1 + dice.roll(4);
        out.push('|');
        if say {
            out.push_str(&more.to_string());
        }
        out.push_str(match n_ends {
            0 => "-",
            1 if !trimmed.is_empty() => "",
            _ => "+",
        });
        end(out, dice);
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if !line.is_empty() {
                out.push_str(&" ".repeat(indent + more));
                out.push_str(line);
            }
            out.push('\n');
        }
    }

    fn can_fold(text: &str) -> bool {
        !text.is_empty() && text.chars().all(is_shown) && !text.starts_with(' ')
    }

    fn folded(out: &mut String, text: &str, indent: usize, dice: &mut Dice) {
        out.push_str(">-");
        end(out, dice);
        let pad = " ".repeat(indent + 2);
        out.push_str(&pad);
        // A line end between two words stands for their space.
        let mut rest = text;
        while let Some(at) = rest.find(' ') {
            let (word, more) = (&rest[..at], &rest[at + 1..]);
            out.push_str(word);
            let alone = !word.is_empty() && !more.is_empty() && !more.starts_with(' ');
            if alone && dice.roll(3) == 0 {
                out.push('\n');
                out.push_str(&pad);
            } else {
                out.push(' ');
            }
            rest = more;
        }
        out.push_str(rest);
        out.push('\n');
    }
}

fn same(text: &str, syntax: Syntax, expected: &Plan) -> Result<(), TestCaseError> {
    match read(text.as_bytes(), syntax) {
        Ok(found) => {
            prop_assert_eq!(&found.plan, expected, "{:?} {}", syntax, text);
            prop_assert_eq!(found.plan.digest(), expected.digest());
            Ok(())
        }
        Err(unreadable) => {
            prop_assert!(false, "{:?}: {:?}\n{}", syntax, unreadable.problems, text);
            Ok(())
        }
    }
}

#[test]
fn a_plan_in_any_legal_style_reads_back_as_the_same_plan() {
    let mut runner = TestRunner::new(Config {
        cases: cases(),
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&(plan(), any::<u64>()), |(value, seed)| {
            let plan: Plan = serde_json::from_value(value.clone()).unwrap();
            let mut dice = Dice(seed);
            same(&as_json::write(&value, &mut dice), Syntax::Json, &plan)?;
            same(&as_yaml::write(&value, &mut dice), Syntax::Yaml, &plan)?;
            same(&to_json(&plan), Syntax::Json, &plan)?;
            // JSON without tabs after colons is YAML of the subset, too; only pairs are not.
            same(&to_yaml(&plan), Syntax::Yaml, &plan)
        })
        .unwrap();
}
