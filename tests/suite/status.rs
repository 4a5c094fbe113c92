//! Where tasks stand, and what is installed.

use insta::assert_snapshot;

use crate::support::TestEnv;

fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "first"]);
    env.git("repo", ["branch", "topic"]);
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    env
}

#[test]
fn status_tells_state_reason_and_what_moved() {
    let env = repo();
    assert_snapshot!(env.run_in("repo", ["status"]));
    let done = env.run_in("repo", ["task", "add", "5", "--base", "main", "--head", "topic"]);
    assert_eq!(done.code, 0, "{done}");
    assert_snapshot!(env.redact(&env.run_in("repo", ["status"]).to_string()));
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "later"]);
    env.git("repo", ["branch", "-q", "-D", "topic"]);
    assert_snapshot!(env.redact(&env.run_in("repo", ["status", "5"]).to_string()));
    assert_eq!(env.run_in("repo", ["task", "cancel"]).code, 0);
    assert_snapshot!(env.redact(&env.run_in("repo", ["status", "5"]).to_string()));
    assert_snapshot!(env.run_in("repo", ["status", "6"]));
}

#[test]
fn status_as_json_validates_against_its_schema() {
    let env = repo();
    for issue in ["5", "6"] {
        assert_eq!(env.run_in("repo", ["task", "add", issue, "--base", "main"]).code, 0);
    }
    let done = env.run_in("repo", ["status", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let found = codeboost_schema::registry::violations(codeboost_schema::status::SCHEMA, &value);
    assert_eq!(found, [], "{done}");
    assert_eq!(value["tasks"].as_array().unwrap().len(), 2);
    assert_snapshot!(
        env.redact(&env.run_in("repo", ["status", "5", "--format", "json"]).to_string())
    );
}

#[test]
fn status_tells_the_review_and_what_forbids_the_merge() {
    let env = repo();
    env.git("repo", ["checkout", "-q", "topic"]);
    for (file, message) in [("new/P1.txt", "one"), ("new/P2.txt", "two"), ("stray.txt", "three")] {
        env.write(format!("repo/{file}"), message);
        env.git("repo", ["add", "."]);
        env.git("repo", ["commit", "-q", "-m", message]);
    }
    env.write("plan.json", crate::ledger::sample_plan(5, &["P1", "P2"]));
    for args in [
        "task add 5 --base main --head topic",
        "plan import 5 ../plan.json",
        "status 5",
        "plan approve 5",
        "ledger record topic~2 --item P1",
        "ledger record topic~1 --item P2",
    ] {
        let done = env.run_in("repo", args.split(' '));
        assert_eq!(done.code, 0, "{done}");
        if args == "status 5" {
            assert_snapshot!(env.redact(&done.to_string()));
        }
    }
    let done = env.run_in("repo", ["status"]);
    assert_snapshot!(env.redact(&done.to_string()));
    let done = env.run_in("repo", ["status", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let found = codeboost_schema::registry::violations(codeboost_schema::status::SCHEMA, &value);
    assert_eq!(found, [], "{done}");
    let review = &value["tasks"][0]["review"];
    assert_eq!(review["segments"]["unplanned"], 1, "{done}");
    assert_eq!(review["items"][1]["approval"], "unreviewed", "{done}");

    // A review that can't be read is unknown, never empty.
    env.git("repo", ["checkout", "-q", "main"]);
    env.git("repo", ["branch", "-q", "-D", "topic"]);
    for id in env.git("repo", ["for-each-ref", "--format=%(refname)", "refs/codeboost"]).lines() {
        env.git("repo", ["update-ref", "-d", id]);
    }
    env.git("repo", ["reflog", "expire", "--expire=now", "--all"]);
    env.git("repo", ["gc", "-q", "--prune=now"]);
    let done = env.run_in("repo", ["status"]);
    assert_snapshot!(env.redact(&done.to_string()));
}

/// Lines about programs differ between machines.
fn without_programs(text: &str) -> String {
    let mut out = Vec::new();
    let mut is_program = false;
    for line in text.lines() {
        if !line.starts_with(' ') {
            is_program = ["git ", "ssh-keygen", "gh ", "container", "agent image", "limits"]
                .iter()
                .any(|name| line.chars().skip(11).collect::<String>().starts_with(name));
        }
        if !is_program {
            out.push(line);
        }
    }
    out.join("\n")
}

#[test]
fn doctor_tells_what_is_there_and_what_is_missing() {
    let mut env = repo();
    env.set("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let doctor = |env: &TestEnv| {
        let done = env.run_in("repo", ["doctor"]);
        let text = env.redact(&done.to_string());
        let lines = text.lines().map(|line| match line.split_once("ok       signing key    ") {
            Some((mark, _)) => format!("{mark}ok       signing key    [PUBLIC KEY]"),
            None => line.to_owned(),
        });
        without_programs(&lines.collect::<Vec<_>>().join("\n"))
    };
    assert_snapshot!(doctor(&env));
    env.write("home/.gitconfig", "[user]\nname = A. Person\nemail = a@example.invalid\n");
    env.write("repo/.git/codeboost/config.yaml", "reviewers: {required: 2}\n");
    assert_snapshot!(doctor(&env));
    env.write("repo/.git/codeboost/config.yaml", "reviewer: {required: 2}\n");
    std::fs::remove_file(env.path("repo/.git/codeboost/signing-key")).unwrap();
    env.write("repo/.codeboost", "a file");
    assert_snapshot!(doctor(&env));
    std::fs::remove_dir_all(env.path("repo/.git/codeboost")).unwrap();
    assert_snapshot!(doctor(&env));
    assert_snapshot!("doctor_rights", env.run_in("repo", ["doctor", "--rights"]).to_string());
    env.set("PATH", "/nonexistent");
    let done = env.run_in("repo", ["doctor", "--format", "json"]);
    assert_eq!(done.code, 1);
    assert_snapshot!(env.redact(&done.to_string()));
}

#[test]
fn doctor_finds_a_damaged_database() {
    let env = repo();
    let path = env.path("repo/.git/codeboost/state.db");
    assert_eq!(env.run_in("repo", ["task", "add", "5", "--base", "main"]).code, 0);
    let mut bytes = std::fs::read(&path).unwrap();
    let n_bytes = bytes.len();
    assert!(n_bytes > 3 * 4096);
    for byte in &mut bytes[4096..n_bytes - 4096] {
        *byte ^= 0x55;
    }
    std::fs::write(&path, bytes).unwrap();
    let done = env.run_in("repo", ["doctor"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.contains("✗ broken   state"), "{done}");
}
