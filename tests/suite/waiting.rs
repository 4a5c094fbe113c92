//! States in which a task waits for a person, and the one command that goes on from each.

use std::path::PathBuf;

use serde_json::Value;

use crate::item::{ok, repo};
use crate::support::TestEnv;

fn begin(env: &TestEnv, item: &str) -> PathBuf {
    let done = ok(env, ["item", "begin", "412", item, "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    PathBuf::from(value["workspace"].as_str().unwrap())
}

fn status(env: &TestEnv) -> (String, String) {
    let done = ok(env, ["status", "412", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    let task = &value["tasks"][0];
    let text = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("next"))
}

/// P1 is carried out with these files besides its own, which are left to the review.
fn carry_out(env: &TestEnv, files: &[(&str, &str)]) {
    let folder = begin(env, "P1");
    std::fs::write(folder.join("src/a.txt"), "two\n").unwrap();
    for (path, content) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    ok(env, ["item", "end", "--go-on"]);
}

#[test]
fn a_script_that_the_task_changed_is_not_run_before_it_is_approved_as_it_is() {
    let env = repo();
    carry_out(&env, &[("check.sh", "touch ../../pwned; touch /tmp/codeboost-pwned-412\n")]);
    let done = env.run_in("repo", ["check", "run", "412", "--here"]);
    assert_eq!(done.code, 4, "{done}");
    assert!(done.stderr.contains("\"check.sh\""), "{done}");
    assert!(!std::path::Path::new("/tmp/codeboost-pwned-412").exists(), "nothing was run");
    assert_eq!(status(&env), ("needs approval".into(), "codeboost check approve 412".into()));
    // Nobody can be asked here, and nothing goes on without.
    assert_eq!(env.run_in("repo", ["check", "approve", "412"]).code, 2);
    assert_eq!(env.run_in("repo", ["item", "begin", "412", "P2"]).code, 3);
    assert_eq!(status(&env).0, "needs approval");

    let done = ok(&env, ["check", "approve", "412", "--yes"]);
    assert!(done.stdout.contains("approved \"check.sh\""), "{done}");
    assert_eq!(status(&env).0, "queued");
    // What was approved is its content: another one waits again.
    carry_out(&env, &[("check.sh", "grep -q two src/a.txt\n")]);
    let done = env.run_in("repo", ["check", "run", "412", "--here"]);
    assert_eq!(done.code, 0, "put back as it is at the base: {done}");
    carry_out(&env, &[("check.sh", "true\n")]);
    assert_eq!(env.run_in("repo", ["check", "run", "412", "--here"]).code, 4);
    ok(&env, ["check", "approve", "412", "--yes"]);
    assert_eq!(env.run_in("repo", ["check", "run", "412", "--here"]).code, 0);
}

#[test]
fn dependencies_and_settings_of_tests_are_approved_too() {
    for path in [
        "package.json",
        "web/package-lock.json",
        ".github/workflows/ci.yml",
        "Makefile",
        "tests/conftest.py",
    ] {
        let env = repo();
        carry_out(&env, &[(path, "{}\n"), ("docs/notes.txt", "x\n")]);
        let done = env.run_in("repo", ["check", "run", "412", "--here"]);
        assert_eq!(done.code, 4, "{path}: {done}");
        assert!(done.stderr.contains(path) && !done.stderr.contains("notes.txt"), "{done}");
    }
    let env = repo();
    carry_out(&env, &[("docs/notes.txt", "x\n")]);
    assert_eq!(env.run_in("repo", ["check", "run", "412", "--here"]).code, 0);
    let done = ok(&env, ["check", "approve", "412", "--yes"]);
    assert!(done.stdout.contains("Nothing of what is run"), "{done}");
}

#[test]
fn an_issue_that_something_else_may_have_fixed_is_not_carried_out_before_a_person_looked() {
    let env = repo();
    env.write("patches/01-P1.patch", "");
    let patch = "diff --git a/src/a.txt b/src/a.txt\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
    env.write("patches/01-P1.patch", patch);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "Keep keys\n\nFixes #412"]);
    let replay = ["execute", "412", "--agent", "replay", "--patches", "../patches"];
    let done = env.run_in("repo", replay);
    assert_eq!(done.code, 4, "{done}");
    let waits =
        ("possibly already fixed".to_owned(), "codeboost execute 412 --not-fixed".to_owned());
    assert_eq!(status(&env), waits);
    assert_eq!(
        env.git("repo", ["rev-list", "--count", "main~1..codeboost/issue-412-lost-keys"]),
        "0"
    );
    assert_eq!(env.run_in("repo", replay).code, 4, "it goes on waiting");
    let done = env.run_in("repo", replay.iter().chain(&["--not-fixed"]));
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(status(&env).0, "in review");
}
