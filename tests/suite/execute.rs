//! `execute`: a plan carried out from recorded patches, on the same road as work by hand.

use insta::assert_snapshot;
use serde_json::Value;

use crate::item::{approve, ok};
use crate::support::TestEnv;

const HEAD: &str = "refs/heads/codeboost/issue-412-keys";

fn fixture(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../site-fixtures/demo").join(path)
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The sample project with its plan approved, and the patches of its items in `patches`.
fn repo() -> TestEnv {
    let env = TestEnv::new();
    copy(&fixture("project"), &env.path("repo"));
    env.git(".", ["init", "-q", "repo"]);
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    copy(&fixture("patches"), &env.path("patches"));
    std::fs::copy(fixture("plan.yaml"), env.path("plan.yaml")).unwrap();
    ok(&env, ["init", "-q"]);
    ok(&env, ["task", "add", "412", "--base", "main", "--title", "Keys"]);
    approve(&env, "../plan.yaml");
    env
}

const REPLAY: [&str; 6] = ["execute", "412", "--agent", "replay", "--patches", "../patches"];

fn history(env: &TestEnv) -> String {
    let range = format!("main..{HEAD}");
    env.git("repo", ["log", "--reverse", "--raw", "--abbrev=7", "--format=%s", &range])
}

#[test]
fn recorded_patches_become_the_commits_of_their_items() {
    let env = repo();
    let done = env.run_in("repo", REPLAY.iter().chain(&["--go-on"]));
    assert_snapshot!(env.redact(&done.to_string()));
    assert_eq!(done.code, 0);
    assert_snapshot!(history(&env));
    let again = env.run_in("repo", REPLAY);
    assert_snapshot!(env.redact(&again.to_string()));
    // The project's own checks pass on what came out.
    let checked = env.run_in("repo", ["check", "run", "--here", "-q"]);
    assert_eq!(checked.code, 0, "{checked}");
}

#[test]
fn it_pauses_at_a_change_that_no_item_declares() {
    let env = repo();
    let done = env.run_in("repo", REPLAY);
    assert_eq!(done.code, 4, "{done}");
    let again = env.run_in("repo", REPLAY);
    assert_eq!(again.code, 3, "{again}");
    let args = REPLAY.iter().chain(&["--go-on", "--format", "json"]);
    let rest = env.run_in("repo", args);
    assert_eq!(rest.code, 0, "{rest}");
    let value: Value = serde_json::from_str(&rest.stdout).unwrap();
    assert_eq!(value["items"].as_array().unwrap().len(), 1, "{value}");
}

#[test]
fn an_agent_has_to_be_named() {
    let env = repo();
    let refuse = |args: &[&str]| env.redact(&env.run_in("repo", args).to_string());
    assert_snapshot!("execute_no_agent", refuse(&["execute"]));
    assert_snapshot!("execute_other_agent", refuse(&["execute", "--agent", "other"]));
    for agent in ["claude", "codex"] {
        assert_snapshot!(
            format!("execute_no_sign_in_{agent}"),
            refuse(&["execute", "--agent", agent])
        );
    }
    assert_snapshot!("execute_no_patches", refuse(&["execute", "--agent", "replay"]));
    let with = |patches| ["execute", "--agent", "replay", "--patches", patches];
    env.write("foreign/01-foreign.patch", "x");
    assert_snapshot!("execute_foreign", refuse(&with("../foreign")));
    std::fs::create_dir(env.path("empty")).unwrap();
    assert_snapshot!("execute_empty", refuse(&with("../empty")));
    env.write("badly/first.patch", "x");
    assert_snapshot!("execute_name", refuse(&with("../badly")));
    env.write("other/01-P9.patch", "x");
    assert_snapshot!("execute_no_item", refuse(&with("../other")));
}

#[test]
fn a_patch_that_does_not_apply_leaves_what_came_before() {
    let env = repo();
    let second = std::fs::read_dir(env.path("patches"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_str().unwrap().contains("P2"))
        .unwrap();
    let good = std::fs::read_to_string(&second).unwrap();
    std::fs::write(&second, good.replace("key=$(new_key)", "key=$(another)")).unwrap();
    let done = env.run_in("repo", REPLAY);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.contains("does not apply"), "{done}");
    assert_eq!(env.git("repo", ["rev-list", "--count", &format!("main..{HEAD}")]), "1");
    std::fs::write(&second, good).unwrap();
    let done = env.run_in("repo", REPLAY.iter().chain(&["--go-on"]));
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(env.git("repo", ["rev-list", "--count", &format!("main..{HEAD}")]), "3");
}

#[test]
fn a_patch_can_not_reach_out_of_the_workspace() {
    for (patch, code) in [
        ("--- a/../out\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n", 1),
        (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            1,
        ),
        ("--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n", 1),
    ] {
        let env = repo();
        std::fs::remove_dir_all(env.path("patches")).unwrap();
        env.write("patches/01-P1.patch", patch);
        let before = env.git("repo", ["for-each-ref"]);
        let done = env.run_in("repo", REPLAY);
        assert_eq!(done.code, code, "{patch}: {done}");
        assert_eq!(env.git("repo", ["for-each-ref"]), before, "{patch}");
    }
}

#[test]
fn killed_anywhere_it_goes_on_where_it_stopped() {
    let mut env = repo();
    let log = env.path("points");
    env.set("CODEBOOST_CRASH_LOG", log.to_str().unwrap());
    assert_eq!(env.run_in("repo", REPLAY.iter().chain(&["--go-on"])).code, 0);
    let whole = history(&env);
    let mut points: Vec<_> =
        std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect();
    points.sort();
    points.dedup();
    for point in points {
        let mut env = repo();
        env.set("CODEBOOST_CRASH_AT", &point);
        assert_eq!(env.run_in("repo", REPLAY.iter().chain(&["--go-on"])).code, -1, "{point}");
        env.set("CODEBOOST_CRASH_AT", "");
        let done = env.run_in("repo", REPLAY.iter().chain(&["--go-on"]));
        assert_eq!(done.code, 0, "{point}: {done}");
        assert_eq!(history(&env), whole, "{point}");
    }
}
