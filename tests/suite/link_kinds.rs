//! `codeboost link` on every kind of history: the scripts in `tests/histories/kinds/`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::link::plan;
use crate::support::{Done, TestEnv};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories")
}

/// Runs a script of `kinds` in the root, and writes `plan.json` and `ledger.json` for its range.
#[track_caller]
pub(crate) fn build(env: &TestEnv, script: &Path) {
    let mut command = env.command("bash", ".");
    command.arg(folder().join("lib.sh")).arg(script);
    command.env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "protocol.file.allow").env("GIT_CONFIG_VALUE_0", "always");
    let done = env.finish(&mut command);
    assert_eq!(done.code, 0, "{}: {done}", script.display());
    let read = |name: &str| std::fs::read_to_string(env.path(name)).unwrap_or_default();
    let mut commits = serde_json::Map::new();
    for line in read("made").lines() {
        let (id, item) = line.split_once(' ').unwrap();
        let entry = match item {
            "nobody" => json!({"item": null, "origin": "foreign"}),
            item => json!({"item": item, "origin": "runner"}),
        };
        commits.insert(id.to_owned(), entry);
    }
    let ledger = json!({"schema_version": 1, "commits": commits});
    env.write("ledger.json", ledger.to_string());
    let declared = read("declared");
    let mut items: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in declared.lines() {
        let mut words = line.split(' ');
        items.push((words.next().unwrap(), words.collect()));
    }
    let names =
        ["log", "--all", "-m", "--format=", "--name-only", "-z", "--ignore-submodules=none"];
    let names = env.git("repo", names);
    let mut all: Vec<&str> = names.split(['\0', '\n']).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|path| {
        !path.is_empty() && !path.contains([char::REPLACEMENT_CHARACTER, '\\', ':', '*', '\t'])
    });
    all.truncate(40);
    if all.is_empty() {
        all.push("nothing");
    }
    for item in ["P1", "P2", "P3"] {
        if !items.iter().any(|(id, _)| *id == item) {
            items.push((item, all.clone()));
        }
    }
    items.sort();
    let items: Vec<(&str, &[&str])> = items.iter().map(|(id, files)| (*id, &files[..])).collect();
    env.write("plan.json", plan(&items).to_string());
}

pub(crate) fn link(env: &TestEnv, more: &[&str]) -> Done {
    let range = ["link", "--repo", "repo", "--base", "base", "--head", "work"];
    let files = ["--plan", "plan.json", "--ledger", "ledger.json"];
    env.run(range.iter().chain(&files).chain(more))
}

fn string(value: &Value, key: &str) -> String {
    match (&value[key], &value[format!("{key}_b64")]) {
        (Value::String(text), _) => text.clone(),
        (_, Value::String(base64)) => format!("base64:{base64}"),
        _ => String::new(),
    }
}

/// Each segment in a line: row and owners, path, place, content, scope, tags.
fn tell(link: &Value) -> Vec<String> {
    let files = link["files"].as_array().unwrap();
    let names = |value: &Value| -> Vec<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let segments = link["segments"].as_array().unwrap();
    let line = |segment: &Value| {
        let file = &files[segment["file"].as_u64().unwrap() as usize];
        let row = segment["row"].as_str().unwrap();
        let mut line = row.to_owned();
        let owners = names(&segment["owners"]);
        if owners != [row] && !owners.is_empty() {
            line += &format!("({})", owners.join(","));
        }
        let name = |key: &str| string(file, key).replace('\n', "\\n");
        let (path, old_path) = (name("path"), name("old_path"));
        line += " ";
        if !old_path.is_empty() && old_path != path {
            line += &format!("{old_path} -> ");
        }
        line += &format!("{path} ");
        if segment["kind"] == "file" {
            line += segment["change"].as_str().unwrap();
            for (side, mark) in [("old", '-'), ("new", '+')] {
                let target = string(&file[side], "target");
                if !target.is_empty() {
                    line += &format!(" {mark}{target:?}");
                }
            }
        } else {
            let start = segment["old_start"].as_u64().or(segment["new_start"].as_u64()).unwrap();
            let text = string(segment, "text");
            let op = segment["op"].as_str().unwrap();
            match segment["lines"].as_u64().unwrap() {
                n @ 4.. => {
                    let first = text.split_inclusive('\n').next().unwrap();
                    line += &format!("{op}{start} {n} lines {first:?}");
                }
                _ if text.len() > 200 => line += &format!("{op}{start} {} bytes", text.len()),
                _ => line += &format!("{op}{start} {text:?}"),
            }
        }
        line += &format!(" {}", segment["scope"].as_str().unwrap());
        for tag in segment["tags"].as_array().unwrap() {
            line += &format!(" #{}", tag["tag"].as_str().unwrap());
            for run in tag["runs"].as_array().into_iter().flatten() {
                line += &run.to_string();
            }
        }
        line
    };
    segments.iter().map(line).collect()
}

/// The lines of a script that begin with `mark`, without it.
fn marked<'a>(script: &'a str, mark: &str) -> Vec<&'a str> {
    script.lines().filter_map(|line| line.strip_prefix(mark)).map(str::trim).collect()
}

#[test]
fn every_kind_of_history_is_told_as_its_script_says() {
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder().join("kinds"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "sh"))
        .collect();
    scripts.sort();
    let mut faults = Vec::new();
    for path in &scripts {
        let script = std::fs::read_to_string(path).unwrap();
        assert!(script.starts_with("# "), "{} says what it shows", path.display());
        let env = TestEnv::new();
        build(&env, path);
        let done = link(&env, &["-o", "-"]);
        let (told, refused) = (marked(&script, "#="), marked(&script, "#!"));
        let name = path.file_stem().unwrap().to_string_lossy();
        if !refused.is_empty() {
            let text = env.redact(&done.stderr);
            let is_told = refused.iter().all(|line| text.contains(line));
            if done.code != 1 || !done.stdout.is_empty() || !is_told {
                faults.push(format!("{name}: must be refused, is\n{text}"));
            }
            continue;
        }
        if done.code != 0 {
            faults.push(format!("{name}: {done}"));
            continue;
        }
        let found = tell(&serde_json::from_str(&done.stdout).unwrap());
        if found != told {
            let lines: Vec<String> = found.iter().map(|line| format!("#= {line}")).collect();
            faults.push(format!("{name}:\n{}", lines.join("\n")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(scripts.len() > 30);
}
