//! A plan that turns out to be wrong: what is proposed, what was changed beside the declared files,
//! and each of the ways on.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::item::{ok, repo};
use crate::support::TestEnv;

const HEAD: &str = "codeboost/issue-412-lost-keys";

fn begin(env: &TestEnv, item: &str) -> PathBuf {
    let done = ok(env, ["item", "begin", "412", item, "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    PathBuf::from(value["workspace"].as_str().unwrap())
}

fn state(env: &TestEnv) -> String {
    let done = ok(env, ["status", "412", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    value["tasks"][0]["state"].as_str().unwrap().to_owned()
}

/// The newest revision.
fn plan(env: &TestEnv) -> Value {
    let done = ok(env, ["plan", "show", "412", "--as", "json"]);
    serde_json::from_str(&done.stdout).unwrap()
}

/// Writes a report that proposes another file and returns its path.
fn report(env: &TestEnv, path: &str, kind: &str, text: &str) -> String {
    let report = json!({
        "outcome": "needs-amendment", "summary": "", "not_done": "All of it.",
        "proposal": {
            "files": [{"path": path, "kind": kind, "reason": "It checks the old way."}],
            "reason": "The check has to change too.", "item_text": text,
        },
    });
    env.write("report.json", report.to_string());
    "../report.json".to_owned()
}

/// P1 is carried out, and changes `check.sh` and adds `more.txt`, which it does not declare.
fn out_of_scope(env: &TestEnv) {
    let folder = begin(env, "P1");
    std::fs::write(folder.join("src/a.txt"), "two\n").unwrap();
    std::fs::write(folder.join("src/new.txt"), "new\n").unwrap();
    std::fs::write(folder.join("check.sh"), "true\n").unwrap();
    std::fs::write(folder.join("more.txt"), "more\n").unwrap();
    let done = env.run_in("repo", ["item", "end"]);
    assert_eq!(done.code, 4, "{done}");
    assert_eq!(state(env), "needs amendment");
}

fn rows(env: &TestEnv) -> Vec<(String, Vec<String>)> {
    ok(env, ["link", "412"]);
    let text = std::fs::read_to_string(env.path("repo/.codeboost/tasks/412/link.json")).unwrap();
    let link: Value = serde_json::from_str(&text).unwrap();
    let paths: Vec<&str> =
        link["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    let mut rows = std::collections::BTreeMap::<String, Vec<String>>::new();
    for segment in link["segments"].as_array().unwrap() {
        let file = paths[usize::try_from(segment["file"].as_u64().unwrap()).unwrap()];
        let place = format!("{file} {}", segment["scope"].as_str().unwrap());
        let row = rows.entry(segment["row"].as_str().unwrap().to_owned()).or_default();
        if !row.contains(&place) {
            row.push(place);
        }
    }
    rows.into_iter().collect()
}

#[test]
fn what_is_proposed_becomes_the_next_revision_and_the_item_begins_again() {
    let env = repo();
    let folder = begin(&env, "P1");
    std::fs::write(folder.join("src/a.txt"), "half\n").unwrap();
    let before = env.git("repo", ["rev-parse", HEAD]);
    let file = report(&env, "check.sh", "edit", "Keep it, and check it.");
    ok(&env, ["item", "propose", "412", &file]);
    assert_eq!(state(&env), "needs amendment");
    assert_eq!(env.git("repo", ["rev-parse", HEAD]), before, "nothing partial is kept");

    let done = env.run_in("repo", ["item", "begin", "412", "P1"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stderr.contains("r1 is wrong for P1"), "{done}");

    let done = ok(&env, ["plan", "amend", "412"]);
    assert!(done.stdout.contains("The check has to change too."), "{done}");
    let made = plan(&env);
    assert_eq!(made["revision"], 2);
    assert_eq!(made["items"][0]["intent"], "Keep it, and check it.");
    assert_eq!(made["items"][0]["files"][2]["path"], "check.sh");
    assert_eq!(made["items"][0]["files"][2]["change"], "It checks the old way.");
    // Until a person approved it, it counts for nothing.
    assert_eq!(env.run_in("repo", ["item", "begin", "412", "P1"]).code, 3);
    ok(&env, ["plan", "approve", "412", "--yes"]);
    let folder = begin(&env, "P1");
    assert!(std::fs::read_to_string(folder.join("src/a.txt")).unwrap().starts_with("one"));
    assert_eq!(state(&env), "running");
}

#[test]
fn a_proposal_that_makes_no_valid_plan_changes_nothing() {
    let env = repo();
    for (path, kind, text, words) in [
        ("../out.txt", "edit", "", "path"),
        ("missing.txt", "edit", "", "missing.txt"),
        ("check.sh", "add", "", "check.sh"),
        ("src/b.txt", "delete", "", "src/b.txt"),
        ("check.sh", "edit", &*"x".repeat(601), "600"),
    ] {
        begin(&env, "P1");
        let file = report(&env, path, kind, text);
        ok(&env, ["item", "propose", "412", &file]);
        let done = env.run_in("repo", ["plan", "amend", "412"]);
        assert_eq!(done.code, 1, "{path}: {done}");
        assert!(done.stdout.contains(words), "{path}: {done}");
        assert_eq!(plan(&env)["revision"], 1);
        assert_eq!(state(&env), "needs amendment");
        // Not following it is a way on too.
        ok(&env, ["item", "go-on", "412"]);
        let done = env.run_in("repo", ["plan", "amend", "412"]);
        assert_eq!(done.code, 3, "{done}");
    }
}

#[test]
fn a_report_that_proposes_nothing_or_is_damaged_gives_nothing_up() {
    let env = repo();
    begin(&env, "P1");
    for (text, words) in [
        ("{", "EOF"),
        ("{}", "outcome"),
        (r#"{"outcome": "done", "summary": "", "not_done": "", "proposal": null}"#, "nothing"),
    ] {
        env.write("report.json", text);
        let done = env.run_in("repo", ["item", "propose", "412", "../report.json"]);
        assert_eq!(done.code, 1, "{done}");
        assert!(done.stderr.contains(words), "{done}");
        assert_eq!(state(&env), "running");
    }
}

#[test]
fn what_was_changed_beside_the_declared_files_can_be_declared() {
    let env = repo();
    out_of_scope(&env);
    ok(&env, ["plan", "amend", "412"]);
    let made = plan(&env);
    let files: Vec<String> = made["items"][0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            format!("{} {}", file["kind"].as_str().unwrap(), file["path"].as_str().unwrap())
        })
        .collect();
    assert_eq!(files, ["edit src/a.txt", "add src/new.txt", "edit check.sh", "add more.txt"]);
    let done = env.run_in("repo", ["plan", "amend", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stderr.contains("plan approve"), "{done}");
    ok(&env, ["plan", "approve", "412", "--yes"]);
    begin(&env, "P2");
    // What was out of scope by the revision of then is within it by the one of now.
    let all = rows(&env);
    assert_eq!(all[0].0, "P1");
    assert!(all[0].1.contains(&"check.sh in".to_owned()), "{all:?}");
    let listed = ok(&env, ["item", "list", "412"]);
    assert!(listed.stdout.contains("2 files out of scope"), "the finding stays: {listed}");
}

#[test]
fn what_was_changed_beside_the_declared_files_can_be_undone_and_the_evidence_stays() {
    let env = repo();
    out_of_scope(&env);
    let made = env.git("repo", ["rev-parse", HEAD]);
    let done = ok(&env, ["item", "undo", "412"]);
    assert!(done.stdout.contains("undoes 2 files"), "{done}");
    assert_eq!(state(&env), "queued");
    let changed = env.git("repo", ["diff", "--name-only", "main", HEAD]);
    assert_eq!(changed, "src/a.txt\nsrc/new.txt");
    assert_eq!(env.git("repo", ["rev-parse", &format!("{HEAD}^")]), made, "the commit stays");
    let all = rows(&env);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0], ("P1".into(), vec!["src/a.txt in".into(), "src/new.txt in".into()]));
    let listed = ok(&env, ["item", "list", "412"]);
    assert!(listed.stdout.contains("2 files out of scope"), "{listed}");
    begin(&env, "P2");
    assert_eq!(env.run_in("repo", ["item", "undo", "412"]).code, 3, "it waits for nothing now");
}

#[test]
fn killed_while_undoing_the_next_run_ends_it() {
    let mut env = repo();
    out_of_scope(&env);
    for point in ["undo-recorded", "end-moved"] {
        env.set("CODEBOOST_CRASH_AT", point);
        let done = env.run_in("repo", ["item", "undo", "412"]);
        assert_eq!(done.code, -1, "{point}: {done}");
        assert_eq!(state(&env), "needs amendment");
    }
    env.set("CODEBOOST_CRASH_AT", "");
    ok(&env, ["item", "undo", "412"]);
    assert_eq!(state(&env), "queued");
    assert_eq!(env.git("repo", ["rev-list", "--count", &format!("main..{HEAD}")]), "2");
    assert_eq!(rows(&env).len(), 1);
}

#[test]
fn what_was_changed_beside_the_declared_files_can_become_an_item_of_its_own() {
    let env = repo();
    out_of_scope(&env);
    let done = ok(&env, ["plan", "amend", "412", "--split"]);
    let made = plan(&env);
    assert_eq!(made["items"][2]["id"], "P3");
    assert_eq!(made["items"][2]["depends_on"], json!(["P1"]));
    assert_eq!(made["items"][0]["files"].as_array().unwrap().len(), 2);
    assert!(done.stderr.contains("split.patch"), "{done}");
    ok(&env, ["plan", "approve", "412", "--yes"]);
    // As long as the change is P1's it is not settled.
    let done = env.run_in("repo", ["item", "begin", "412", "P2"]);
    assert_eq!(done.code, 3, "{done}");
    ok(&env, ["item", "undo", "412"]);
    let folder = begin(&env, "P3");
    let patch = env.path("repo/.codeboost/tasks/412/split.patch");
    let applied = std::process::Command::new("git")
        .arg("apply")
        .arg(&patch)
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(applied.success());
    ok(&env, ["item", "end"]);
    let all = rows(&env);
    assert_eq!(all[0].0, "P1");
    // P1 did remove the line of the base, before P3 did, and its row goes on saying so.
    assert_eq!(all[0].1, ["check.sh out", "src/a.txt in", "src/new.txt in"]);
    assert_eq!(all[1], ("P3".into(), vec!["check.sh in".into(), "more.txt in".into()]));
    begin(&env, "P2");
}
