//! The record of a task on the local forge.

use insta::assert_snapshot;

use crate::support::TestEnv;

fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/5-retry.md", "# Retry\n");
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "base"]);
    env.git("repo", ["checkout", "-q", "-b", "topic"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "work for #5"]);
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    let args = ["task", "add", "5-retry.md", "--base", "main", "--head", "topic"];
    assert_eq!(env.run_in("repo", args).code, 0);
    env
}

fn publish(env: &TestEnv, args: &[&str]) -> String {
    env.redact(&env.run_in("repo", [&["publish"], args].concat()).to_string())
}

#[test]
fn a_task_is_published_as_a_draft_and_then_as_ready() {
    let env = repo();
    assert_snapshot!(publish(&env, &["--draft"]));
    assert_snapshot!(publish(&env, &["5"]));
    assert_snapshot!(publish(&env, &["--format", "json"]));
}

#[test]
fn what_seems_to_be_fixed_is_not_published() {
    let env = repo();
    env.git("repo", ["checkout", "-q", "main"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "closes #5 at last"]);
    assert_snapshot!(publish(&env, &[]));
    assert_snapshot!(publish(&env, &["--format", "json"]));
    assert_snapshot!(env.redact(&env.run_in("repo", ["status"]).to_string()));

    let env = repo();
    env.write("repo/5-retry.md", "---\nstate: closed\n---\n# Retry\n");
    assert_snapshot!(publish(&env, &[]));
    env.write("repo/5-retry.md", "---\nstate: done\n---\n# Retry\n");
    assert_snapshot!(publish(&env, &[]));
}
