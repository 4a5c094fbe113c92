//! Tasks: bound to an issue, a base and a branch, and let go without losing anything.

use insta::assert_snapshot;

use crate::support::TestEnv;

/// A repository `repo` with `main`, and `agent/retry` one commit ahead.
fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/a.txt", "one\n");
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env.git("repo", ["checkout", "-q", "-b", "agent/retry"]);
    env.write("repo/a.txt", "two\n");
    env.git("repo", ["commit", "-q", "-am", "second"]);
    env.git("repo", ["checkout", "-q", "main"]);
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    env
}

/// Every ref, and what the checkout looks like.
fn checkout(env: &TestEnv) -> String {
    env.git("repo", ["for-each-ref"])
        + env.git("repo", ["status", "--porcelain=v2", "--branch"]).as_str()
}

#[test]
fn an_existing_branch_is_bound_by_number_or_by_file() {
    let env = repo();
    env.write("repo/issues/412-retry.md", "# Retry on 5xx\n\nIt fails too early.\n");
    let before = checkout(&env);
    let done = env.run_in(
        "repo",
        ["task", "add", "issues/412-retry.md", "--base", "main", "--head", "agent/retry"],
    );
    assert_snapshot!(env.redact(&done.to_string()));
    assert_eq!(checkout(&env), before, "binding a branch moves nothing");
    assert_snapshot!(env.redact(&env.run_in("repo", ["task", "list"]).to_string()));
    assert_snapshot!(
        env.redact(&env.run_in("repo", ["task", "list", "--format", "json"]).to_string())
    );
    assert_snapshot!(env.run_in("repo", ["log", "412"]));
}

#[test]
fn without_a_head_a_branch_is_made_at_the_base_and_no_checkout_moves() {
    let env = repo();
    env.write("repo/issue.md", "# Retry on 5xx\n");
    let status = env.git("repo", ["status", "--porcelain=v2", "--branch"]);
    let done = env.run_in("repo", ["task", "add", "issue.md", "--base", "main"]);
    assert_snapshot!(env.redact(&done.to_string()));
    assert_eq!(env.git("repo", ["status", "--porcelain=v2", "--branch"]), status);
    let made = env.git("repo", ["rev-parse", "codeboost/issue-1-retry-on-5xx"]);
    assert_eq!(made, env.git("repo", ["rev-parse", "main"]));

    // A branch of that name that stands elsewhere is not taken over.
    env.git("repo", ["branch", "codeboost/issue-9-x", "agent/retry"]);
    let done = env.run_in("repo", ["task", "add", "9", "--title", "x", "--base", "main"]);
    assert!(done.stdout.contains("made codeboost/issue-9-x-2"), "{done}");
}

#[test]
fn what_can_not_be_a_task_is_refused_and_changes_nothing() {
    let env = repo();
    env.write("repo/empty.md", "");
    env.write("repo/7.md", "# Seven\n");
    env.git("repo", ["tag", "v1"]);
    env.git("repo", ["checkout", "-q", "--orphan", "other"]);
    env.git("repo", ["commit", "-q", "-m", "unrelated"]);
    env.git("repo", ["checkout", "-q", "main"]);
    let added = env.run_in("repo", ["task", "add", "5", "--base", "main", "--head", "agent/retry"]);
    assert_eq!(added.code, 0, "{added}");
    let before = (checkout(&env), env.run_in("repo", ["log"]).stdout);
    let mut all = String::new();
    for args in [
        &["0", "--base", "main"][..],
        &["missing.md", "--base", "main"],
        &["empty.md", "--base", "main"],
        &["7.md", "--number", "8", "--base", "main"],
        &["6", "--base", "nowhere"],
        &["6", "--base", "v1"],
        &["6", "--base", "main", "--head", "main"],
        &["6", "--base", "main", "--head", "other"],
        &["6", "--base", "main", "--head", "agent/retry"],
        &["5", "--base", "main", "--head", "other"],
    ] {
        let done = env.run_in("repo", [&["task", "add"], args].concat());
        all += &format!("$ task add {}\n{done}\n", args.join(" "));
    }
    assert_snapshot!(env.redact(&all));
    assert_eq!((checkout(&env), env.run_in("repo", ["log"]).stdout), before);
}

#[test]
fn a_base_that_moved_on_is_told_and_the_fork_is_what_is_compared_with() {
    let env = repo();
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "later"]);
    let done = env.run_in("repo", ["task", "add", "5", "--base", "main", "--head", "agent/retry"]);
    assert_snapshot!(env.redact(&done.to_string()));
}

#[test]
fn a_cancelled_task_is_removed_only_when_nothing_is_lost() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["task", "add", "5", "--base", "main"]).code, 0);
    env.git("repo", ["checkout", "-q", "codeboost/issue-5-issue-5"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "work"]);
    let mut all = String::new();
    let mut run = |args: &[&str]| {
        let done = env.run_in("repo", args);
        all += &format!("$ {}\n{done}\n", args.join(" "));
    };
    run(&["task", "remove", "5"]);
    run(&["task", "cancel", "--reason", "fixed upstream"]);
    run(&["task", "remove", "5"]);
    env.git("repo", ["checkout", "-q", "main"]);
    env.git("repo", ["branch", "kept", "codeboost/issue-5-issue-5"]);
    run(&["task", "remove", "5"]);
    run(&["task", "remove", "5"]);
    run(&["task", "list"]);
    run(&["log", "5"]);
    assert_snapshot!(env.redact(&all));
    let branches = env.git("repo", ["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "agent/retry\nkept\nmain");

    // The issue can come back; its number was never free.
    let done = env.run_in("repo", ["task", "add", "5", "--base", "main", "--head", "kept"]);
    assert_eq!(done.code, 0, "{done}");
}

#[test]
fn leaving_out_the_issue_needs_exactly_one_open_task() {
    let env = repo();
    assert_snapshot!(env.run_in("repo", ["task", "cancel"]));
    for issue in ["3", "12"] {
        assert_eq!(env.run_in("repo", ["task", "add", issue, "--base", "main"]).code, 0);
    }
    assert_snapshot!(env.run_in("repo", ["task", "cancel"]));
    assert_snapshot!(env.run_in("repo", ["task", "cancel", "4"]));
}
