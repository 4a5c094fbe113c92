//! Mutates inputs of the plan parser and of the command tokenizer and looks for crashes, hangs and
//! disagreement. Works on stable:
//!
//! ```text
//! nice cargo run --release --manifest-path tests/fuzz/Cargo.toml --target-dir target -- [SECONDS] [SEED]
//! ```
//!
//! What always has to hold:
//!
//! - nothing panics, and nothing takes longer than [`SLOW`];
//! - a refused input has at least one problem, and every place lies in the text;
//! - what `serde_json` refuses as JSON is refused, and what both accept is equal;
//! - an accepted value, written as JSON, is read as the same value in both syntaxes;
//! - a plan that was read, written as YAML and as JSON, is read as the same plan;
//! - a command that is split, spelled again, is split into the same arguments.
//!
//! A finding is printed with its input and ends the run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use codeboost::plan::read::{read, read_answer};
use codeboost::plan::source::{Kind, Node};
use codeboost::plan::v1::parse::{Syntax, parse};
use codeboost::plan::v1::tokenize::{spell, tokenize};
use codeboost::plan::write::{to_json, to_yaml};
use codeboost_schema::registry::Registry;
use serde_json::Value;

/// The longest that one small input may take.
const SLOW: Duration = Duration::from_secs(2);

const SEEDS: &[&str] = &[
    include_str!("../../../schema/examples/plan-412-r3.yaml"),
    include_str!("../../../schema/examples/plan-412-r3.json"),
    include_str!("../../../schema/examples/plan-edit-412-r3.json"),
];

const PIECES: &[&str] = &[
    "{", "}", "[", "]", ",", ":", ": ", "\n", "\r\n", "\r", "\t", " ", "  ", "- ", "-", "? ", "?",
    "\"", "'", "\\", "\\u0000", "\\ud800", "\\udc00", "\\U0010FFFF", "\\x41", "\\\n", "&a ", "*a",
    "!t ", "!", "!!str ", "!<x>", "<<", "<<: ", "|", "|-", "|2+", ">", ">-", "#", " #", "%", "%YAML 1.1\n",
    "%YAML 1.2\n---\n", "%TAG ! x\n", "---", "---\n", "...\n", "~", "null", "true", "True", "0x1F",
    "0o7", "1_0", "1e3", "1e999", "-0", "01", ".5", ".inf", "9007199254740992", "@", "`", "\u{feff}",
    "\u{0}", "\u{1}", "\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "é", "漢", "😀", "\u{301}", "a", "b: c",
    "schema_version: 1\n", "items:\n", "  - id: P1\n", "depends_on: []\n", "text: a\n", "$", ";", "|",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

/// What is tried now, for the message of a panic.
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn main() {
    std::panic::set_hook(Box::new(|info| {
        let input = CURRENT.lock().map(|input| input.clone()).unwrap_or_default();
        println!("FOUND: {info}\n{:?}", String::from_utf8_lossy(&input));
    }));
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(600);
    let seed = args.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut dice = Dice(seed);
    let mut pool: Vec<Vec<u8>> = SEEDS.iter().map(|text| text.as_bytes().to_vec()).collect();
    for name in ["inputs", "commands"] {
        pool.extend(fixtures(name));
    }
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut n_runs, mut n_accepted, mut slowest) = (0u64, 0u64, Duration::ZERO);
    while Instant::now() < until {
        let input = mutate(&pool, &mut dice);
        if let Ok(mut current) = CURRENT.lock() {
            current.clone_from(&input);
        }
        let started = Instant::now();
        let accepted = try_input(&input);
        let took = started.elapsed();
        if took > SLOW {
            finding("too slow", &input);
        }
        slowest = slowest.max(took);
        n_runs += 1;
        n_accepted += u64::from(accepted);
        // What is accepted, or rejected late, is worth mutating again.
        if (accepted || dice.roll(50) == 0) && input.len() < 20_000 {
            if pool.len() < 2000 {
                pool.push(input);
            } else {
                let at = SEEDS.len() + dice.roll(pool.len() - SEEDS.len());
                pool[at] = input;
            }
        }
    }
    println!("{n_runs} inputs, {n_accepted} accepted, slowest {slowest:?}, nothing found");
}

fn fixtures(name: &str) -> Vec<Vec<u8>> {
    let text = match name {
        "inputs" => include_str!("../../../schema/versions/1/fixtures/inputs.json"),
        _ => include_str!("../../../schema/versions/1/fixtures/commands.json"),
    };
    let value: Value = serde_json::from_str(text).expect("fixtures are JSON");
    let mut found = Vec::new();
    let mut todo = vec![&value];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(list) => todo.extend(list),
            Value::Object(object) => {
                for (key, value) in object {
                    match value {
                        Value::String(text) if ["json", "yaml", "command"].contains(&&**key) => {
                            found.push(text.as_bytes().to_vec());
                        }
                        _ => todo.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn mutate(pool: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = pool[dice.roll(pool.len())].clone();
    for _ in 0..1 + dice.roll(6) {
        let at = dice.roll(input.len() + 1);
        let until = (at + dice.roll(40)).min(input.len());
        match dice.roll(9) {
            0 => drop(input.drain(at..until)),
            1 => {
                let copy = input[at..until].to_vec();
                let to = dice.roll(input.len() + 1);
                input.splice(to..to, copy);
            }
            2 => {
                let other = &pool[dice.roll(pool.len())];
                let from = dice.roll(other.len() + 1);
                let to = (from + dice.roll(80)).min(other.len());
                input.splice(at..at, other[from..to].to_vec());
            }
            3 => {
                let byte = dice.roll(256) as u8;
                input.splice(at..(at + 1).min(input.len()), [byte]);
            }
            4 => {
                let piece = PIECES[dice.roll(PIECES.len())].repeat(1 + dice.roll(60));
                input.splice(at..at, piece.into_bytes());
            }
            _ => {
                let piece = PIECES[dice.roll(PIECES.len())];
                let until = if dice.roll(2) == 0 { at } else { until.min(at + 2) };
                input.splice(at..until, piece.bytes());
            }
        }
    }
    input.truncate(50_000);
    input
}

fn finding(what: &str, input: &[u8]) -> ! {
    println!("FOUND: {what}\n{:?}", String::from_utf8_lossy(input));
    std::process::exit(1);
}

/// Tries everything on one input. Returns whether some part of it was accepted.
fn try_input(input: &[u8]) -> bool {
    let mut accepted = false;
    for syntax in [Syntax::Json, Syntax::Yaml] {
        match parse(input, syntax) {
            Ok(document) => {
                accepted = true;
                spans(&document.root, input);
                let value = document.root.to_value();
                if syntax == Syntax::Json && serde_json::from_slice::<Value>(input).is_err() {
                    finding("accepted what is no JSON", input);
                }
                same_again(&value, input);
            }
            Err((source, problems)) => {
                if problems.is_empty() {
                    finding("refused without a problem", input);
                }
                for place in problems.iter().filter_map(|problem| problem.place) {
                    let n_lines = source.text().matches('\n').count() + 1;
                    let width = source.line(place.line).chars().count() + 2;
                    if place.line == 0 || place.line > n_lines || place.column > width {
                        finding("a place outside the text", input);
                    }
                }
            }
        }
        if let Ok(found) = read(input, syntax) {
            for (text, syntax) in
                [(to_yaml(&found.plan), Syntax::Yaml), (to_json(&found.plan), Syntax::Json)]
            {
                match read(text.as_bytes(), syntax) {
                    Ok(again) if again.plan == found.plan => {}
                    _ => finding("a plan that does not survive writing", input),
                }
            }
        }
    }
    let _ = read_answer(input, Registry::get().current());
    if let Ok(text) = std::str::from_utf8(input) {
        for line in text.split('\n') {
            if let Ok(argv) = tokenize(line) {
                accepted = true;
                let spelled = spell(&argv).unwrap_or_else(|| finding("can't be spelled", input));
                if tokenize(&spelled).as_ref() != Ok(&argv) {
                    finding("a command that changes when it is spelled again", input);
                }
            }
        }
        let _ = tokenize(text);
    }
    accepted
}

fn spans(node: &Node, input: &[u8]) {
    if node.span.start > node.span.end || node.span.end > input.len() {
        finding("a span outside the text", input);
    }
    match &node.kind {
        Kind::List(nodes) => nodes.iter().for_each(|node| spans(node, input)),
        Kind::Object(members) => members.iter().for_each(|member| {
            if input.get(member.key_span.clone()).is_none() {
                finding("a key outside the text", input);
            }
            spans(&member.node, input);
        }),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}

/// The value as JSON reads back, as JSON and as YAML.
fn same_again(value: &Value, input: &[u8]) {
    let text = value.to_string();
    match parse(text.as_bytes(), Syntax::Json) {
        Ok(again) if again.root.to_value() == *value => {}
        other => finding(&format!("a value that JSON does not keep: {other:?}"), input),
    }
    // Compact JSON has no tab after a colon and no escapes of pairs.
    match parse(text.as_bytes(), Syntax::Yaml) {
        Ok(again) if again.root.to_value() == *value => {}
        other => finding(&format!("a value that YAML does not keep: {text:?} {other:?}"), input),
    }
}
