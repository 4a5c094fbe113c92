//! `check run --here` and `check list`: what runs, where, with what, and what is recorded.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::item::{approve, ok};
use crate::support::TestEnv;

const HEAD: &str = "refs/heads/codeboost/issue-412-checks";

/// A repository whose plan has one item per group of commands.
fn repo(items: &[&[&str]]) -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/a.txt", "one\n");
    env.write("repo/pass.sh", "echo fine\n");
    env.write("repo/fail.sh", "echo out; echo err >&2; exit 3\n");
    env.write("repo/env.sh", "#!/bin/sh\nenv | sort\npwd\nls -A\n");
    env.write("repo/spoil.sh", "echo spoiled > a.txt; echo new > b.txt\n");
    env.write("repo/clean.sh", "test \"$(cat a.txt)\" = one && test ! -e b.txt\n");
    env.write("repo/slow.sh", "sleep 60\n");
    let script = env.path("repo/env.sh");
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    let mut plan = "schema_version: 1\nissue: 412\nrevision: 1\nsummary: S.\nitems:\n".to_owned();
    for (n, commands) in items.iter().enumerate() {
        plan.push_str(&format!(
            "  - id: P{n}\n    title: T\n    intent: I\n    files:\n      - {{path: f{n}, kind: add, \
             renamed_from: null, change: C.}}\n    acceptance:\n",
            n = n + 1
        ));
        for command in *commands {
            plan.push_str(&format!("      - {{type: cmd, text: '{command}'}}\n"));
        }
        plan.push_str("      - {type: check, text: It holds.}\n    depends_on: []\n");
    }
    plan.push_str("questions: []\n");
    env.write("plan.yaml", plan);
    ok(&env, ["init", "-q"]);
    ok(&env, ["task", "add", "412", "--base", "main", "--title", "Checks"]);
    env
}

fn approved(items: &[&[&str]]) -> TestEnv {
    let env = repo(items);
    approve(&env, "../plan.yaml");
    env
}

/// Times that differ between runs are hidden.
fn redact(env: &TestEnv, text: &str) -> String {
    let text = env.redact(text);
    text.lines()
        .map(|line| {
            let hide = |word: &str| {
                let is_time = word.split_once('.').is_some_and(|(a, b)| {
                    !a.is_empty()
                        && [a, b].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
                });
                if is_time { "[T]".to_owned() } else { word.to_owned() }
            };
            line.split(' ').map(hide).collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn each_command_runs_once_and_counts_for_all_its_items() {
    let env = approved(&[&["sh pass.sh", "sh fail.sh"], &["sh pass.sh"], &[]]);
    assert_snapshot!(ok(&env, ["check", "list"]).to_string());
    let before = env.git("repo", ["status", "--porcelain=v2", "--branch"]);
    let done = env.run_in("repo", ["check", "run", "412", "--here"]);
    assert_snapshot!(redact(&env, &done.to_string()));
    assert_eq!(done.code, 1);
    assert_eq!(env.git("repo", ["status", "--porcelain=v2", "--branch"]), before);
    assert_snapshot!(ok(&env, ["check", "list"]).to_string());
    let value: Value =
        serde_json::from_str(&ok(&env, ["check", "list", "--format", "json"]).stdout).unwrap();
    let runs = value["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3, "{value}");
    assert_eq!(runs[2]["result"], "failed");
    assert_eq!(runs[2]["exit_code"], 3);
    assert_eq!(runs[2]["place"], "host");
    // What it wrote is kept under its digest.
    let hex = runs[2]["output"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let file = env.path(format!("repo/.git/codeboost/evidence/{}/{}", &hex[..2], &hex[2..]));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "out\nerr\n");
    // Another head: what was found says nothing of it.
    let tree = env.git("repo", ["rev-parse", "main^{tree}"]);
    let commit = env.git("repo", ["commit-tree", &tree, "-p", HEAD, "-m", "more"]);
    env.git("repo", ["update-ref", HEAD, &commit]);
    assert_snapshot!(ok(&env, ["check", "list"]).to_string());
}

#[test]
fn only_allowed_commands_run() {
    let env = repo(&[&["sh pass.sh"], &["sh fail.sh"]]);
    ok(&env, ["plan", "import", "412", "../plan.yaml"]);
    ok(&env, ["plan", "approve", "412", "--allow-command", "sh pass.sh", "--allow-no-other"]);
    let done = env.run_in("repo", ["check", "run", "--here"]);
    assert_snapshot!(redact(&env, &done.to_string()));
    assert_eq!(done.code, 3);
    let only = env.run_in("repo", ["check", "run", "--here", "--item", "P1", "-q"]);
    assert_eq!(only.code, 0, "{only}");
    let none = env.run_in("repo", ["check", "run", "--here", "--item", "P7"]);
    assert_snapshot!(none.to_string());
}

#[test]
fn without_here_it_says_what_to_do() {
    let mut env = approved(&[&["sh pass.sh"]]);
    env.set("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    assert_snapshot!(env.run_in("repo", ["check", "run"]).to_string());
}

#[test]
fn a_command_gets_a_fresh_checkout_and_a_known_environment() {
    let mut env = approved(&[&["./env.sh"]]);
    std::fs::create_dir(env.path("temp")).unwrap();
    env.set("TMPDIR", env.path("temp").to_str().unwrap());
    env.set("SECRET_TOKEN", "s3cret");
    env.set("EXTRA", "wanted");
    env.set("GIT_DIR", "/nonexistent");
    env.set("CARGO_HOME", "/cargo");
    env.set("LANG", "C.UTF-8");
    // Codeboost itself needs no such thing to be set.
    env.set("SSH_AUTH_SOCK", "/agent");
    env.write("repo/dirty.txt", "not committed");
    let done = env.run_in("repo", ["check", "run", "--here", "--env", "EXTRA"]);
    assert_eq!(done.code, 0, "{done}");
    let value: Value =
        serde_json::from_str(&ok(&env, ["check", "list", "--format", "json"]).stdout).unwrap();
    let hex = value["runs"][0]["output"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let file = env.path(format!("repo/.git/codeboost/evidence/{}/{}", &hex[..2], &hex[2..]));
    let text = env.redact(&std::fs::read_to_string(file).unwrap());
    let path = std::env::var("PATH").unwrap();
    let text = text.replace(&path, "[PATH]");
    let hide = |line: &str| -> String {
        line.split_once("codeboost-check-").map_or(line.to_owned(), |(_, rest)| {
            let name = line.split_once('=').map_or("", |(name, _)| name);
            let rest = rest.split_once('/').map_or("", |(_, rest)| rest);
            format!("{name}=[TEMP]/{rest}")
        })
    };
    let lines: Vec<_> = text.lines().map(hide).collect();
    assert_snapshot!(lines.join("\n"));
    let left = std::fs::read_dir(env.path("temp")).unwrap().count();
    assert_eq!(left, 0, "the checkout is removed");
}

#[test]
fn a_command_that_changes_files_does_not_spoil_the_next_one() {
    let env = approved(&[&["sh spoil.sh", "sh clean.sh"]]);
    let done = env.run_in("repo", ["check", "run", "--here", "-v"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("fresh checkout"), "{done}");
    assert_eq!(std::fs::read_to_string(env.path("repo/a.txt")).unwrap(), "one\n");
}

#[test]
fn a_command_that_takes_too_long_or_is_not_there_has_failed() {
    let env = approved(&[&["sh slow.sh", "no-such-program-here x"]]);
    let started = std::time::Instant::now();
    let done = env.run_in("repo", ["check", "run", "--here", "--timeout", "1"]);
    assert!(started.elapsed().as_secs() < 50);
    assert_eq!(done.code, 1);
    assert_snapshot!(redact(&env, &done.stdout));
}

#[test]
fn a_program_of_a_relative_path_folder_is_never_taken() {
    let mut env = approved(&[&["sh pass.sh"]]);
    for folder in ["repo", "repo/bin"] {
        let script = Path::new(folder).join("sh");
        env.write(&script, "#!/bin/false\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path(&script), mode).unwrap();
    }
    env.set("PATH", &format!(".:bin:{}", std::env::var("PATH").unwrap()));
    assert_eq!(env.run_in("repo", ["check", "run", "--here"]).code, 0);
}
