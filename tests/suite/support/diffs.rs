//! git's own diff of a range, held against a link.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use serde_json::Value;

use crate::support::TestEnv;

/// The bytes of a value that stands as text or as base64.
pub(crate) fn bytes(value: &Value, key: &str) -> Option<Vec<u8>> {
    if let Some(text) = value[key].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    let base64 = value[format!("{key}_b64")].as_str()?;
    Some(base64::engine::general_purpose::STANDARD.decode(base64).unwrap())
}

/// Lines with their terminators.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|b| *b == b'\n').collect()
}

/// The contract's settings.
const SETTINGS: [&str; 6] =
    ["--histogram", "--indent-heuristic", "-M50%", "-l1000", "--no-rename-empty", "--full-index"];

/// Changed lines of each pair of blobs: `-` or `+` and the line's number.
type Lines = BTreeMap<String, Vec<(char, usize)>>;

/// What differs between git's diff of two commits and a link, if anything: first the files with
/// their modes and objects, then the numbers of removed and added lines of each file.
pub(crate) fn difference(
    env: &TestEnv,
    repo: &str,
    ends: [&str; 2],
    link: &Value,
) -> Option<String> {
    let (raw, told) = (raw_of_git(env, repo, ends), raw_of_link(link));
    if raw != told {
        let one = raw.symmetric_difference(&told).next().unwrap();
        return Some(format!("git and link differ in {}", String::from_utf8_lossy(one)));
    }
    let mut wanted = lines_of_git(env, repo, ends);
    let mut shown = Lines::new();
    let files = link["files"].as_array().unwrap();
    // A change of type is a deletion and an addition to git; links and submodules have no lines to
    // us.
    let none = "0".repeat(ends[0].len());
    let index = |file: &Value, op: char| {
        let id = |side: &str| file[side]["oid"].as_str().unwrap_or(&none).to_owned();
        match (file["status"] == "type", op) {
            (true, '-') => format!("{}..{none}", id("old")),
            (true, _) => format!("{none}..{}", id("new")),
            (false, _) => format!("{}..{}", id("old"), id("new")),
        }
    };
    let mut without_lines = BTreeSet::new();
    for file in files {
        for (side, op) in [("old", '-'), ("new", '+')] {
            if !file[side].is_null() && file[side]["kind"] != "blob" {
                without_lines.insert(index(file, op));
            }
        }
    }
    for segment in link["segments"].as_array().unwrap() {
        if segment["kind"] != "text" {
            continue;
        }
        let file = &files[segment["file"].as_u64().unwrap() as usize];
        let op = segment["op"].as_str().unwrap().chars().next().unwrap();
        let start = segment["old_start"].as_u64().or(segment["new_start"].as_u64()).unwrap();
        let n = segment["lines"].as_u64().unwrap();
        let range = (start..start + n).map(|line| (op, line as usize));
        shown.entry(index(file, op)).or_default().extend(range);
    }
    wanted.retain(|index, _| !without_lines.contains(index));
    shown.retain(|index, _| !without_lines.contains(index));
    for all in wanted.values_mut().chain(shown.values_mut()) {
        all.sort_unstable();
    }
    let differs = |index: &&String| wanted.get(*index) != shown.get(*index);
    let index = wanted.keys().chain(shown.keys()).find(differs)?;
    let (wanted, shown) = (wanted.get(index), shown.get(index));
    Some(format!("{index}: git has {wanted:?}, the link {shown:?}"))
}

fn git(env: &TestEnv, repo: &str, args: &[&str], ends: [&str; 2]) -> Vec<u8> {
    let mut command = env.command("git", repo);
    command.args(["-c", "core.quotePath=false", "diff-tree", "-r"]).args(args);
    let out = command.args(SETTINGS).args(ends).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn lines_of_git(env: &TestEnv, repo: &str, ends: [&str; 2]) -> Lines {
    let out = git(env, repo, &["-p", "-U0"], ends);
    let mut found = Lines::new();
    let mut index = String::new();
    let mut rest = lines(&out).into_iter();
    while let Some(line) = rest.next() {
        let line = String::from_utf8_lossy(line);
        if let Some(ids) = line.strip_prefix("index ") {
            index = ids.split_whitespace().next().unwrap().to_owned();
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let mut sides = hunk.split(" @@").next().unwrap().split(" +").map(|side| {
                let (start, n) = side.split_once(',').unwrap_or((side, "1"));
                (start.parse::<usize>().unwrap(), n.parse::<usize>().unwrap())
            });
            let (old, new) = (sides.next().unwrap(), sides.next().unwrap());
            let entry = found.entry(index.clone()).or_default();
            entry.extend((old.0..old.0 + old.1).map(|line| ('-', line)));
            entry.extend((new.0..new.0 + new.1).map(|line| ('+', line)));
            let mut left = old.1 + new.1;
            while left > 0 {
                left -= usize::from(!rest.next().unwrap().starts_with(b"\\"));
            }
        }
    }
    found
}

/// One entry for each file: modes, objects, status, similarity and both paths.
fn raw_of_git(env: &TestEnv, repo: &str, ends: [&str; 2]) -> BTreeSet<Vec<u8>> {
    let out = git(env, repo, &["--raw", "-z", "--no-abbrev"], ends);
    let mut fields = out.split(|b| *b == 0).filter(|field| !field.is_empty());
    let mut found = BTreeSet::new();
    while let Some(facts) = fields.next() {
        let is_renamed = facts.rsplit(|b| *b == b' ').next().unwrap().starts_with(b"R");
        let old = fields.next().unwrap();
        let new = if is_renamed { fields.next().unwrap() } else { old };
        found.insert([facts, b" ", old, b" ", new].concat());
    }
    found
}

fn raw_of_link(link: &Value) -> BTreeSet<Vec<u8>> {
    let none = "0".repeat(link["base"].as_str().unwrap().len());
    let one = |file: &Value| {
        let mode = |side: &str| file[side]["mode"].as_str().unwrap_or("000000").to_owned();
        let id = |side: &str| file[side]["oid"].as_str().unwrap_or(&none).to_owned();
        let status = match file["status"].as_str().unwrap() {
            "added" => "A".to_owned(),
            "deleted" => "D".to_owned(),
            "modified" => "M".to_owned(),
            "type" => "T".to_owned(),
            _ => format!("R{:03}", file["similarity"].as_u64().unwrap()),
        };
        let (old, new) = (mode("old"), mode("new"));
        let facts = format!(":{old} {new} {} {} {status}", id("old"), id("new"));
        let path = bytes(file, "path").unwrap();
        let old_path = bytes(file, "old_path").unwrap_or(path.clone());
        [facts.as_bytes(), b" ", &old_path, b" ", &path].concat()
    };
    link["files"].as_array().unwrap().iter().map(one).collect()
}
