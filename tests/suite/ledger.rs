//! Who made which commit: stated by a person, through rebases, never from the branch alone.

use insta::assert_snapshot;

use crate::support::TestEnv;

/// A repository with `main` and `topic`: four commits, the first three with trailers.
fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    commit(&env, "base", "a.txt", "0\n");
    env.git("repo", ["checkout", "-q", "-b", "topic"]);
    commit(&env, "one\n\nPlan-Item: P1", "a.txt", "1\n");
    commit(&env, "two\n\nWhy.\n\nPlan-Item: P2\nPlan-Item: P2", "b.txt", "2\n");
    commit(&env, "three\n\nPlan-Item: P1", "c.txt", "3\n");
    commit(&env, "four: Plan-Item: P1 in the text", "d.txt", "4\n");
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    let done = env.run_in("repo", ["task", "add", "5", "--base", "main", "--head", "topic"]);
    assert_eq!(done.code, 0, "{done}");
    plan(&env, &["P1", "P2", "P3"]);
    env
}

/// Imports a revision with these items and approves it.
fn plan(env: &TestEnv, items: &[&str]) {
    env.write("plan.json", sample_plan(5, items));
    for args in [&["plan", "import", "5", "../plan.json"][..], &["plan", "approve", "5"]] {
        let done = env.run_in("repo", args);
        assert_eq!(done.code, 0, "{done}");
    }
}

/// A plan with these items, each adding `new/<item>.txt`.
pub(crate) fn sample_plan(issue: u64, items: &[&str]) -> String {
    let items: Vec<_> = items
        .iter()
        .map(|id| {
            serde_json::json!({
                "id": id, "title": "Add a file", "intent": "It is needed",
                "files": [{
                    "path": format!("new/{id}.txt"), "kind": "add", "renamed_from": null,
                    "change": "New",
                }],
                "acceptance": [{"type": "check", "text": "The file is there"}],
                "depends_on": [],
            })
        })
        .collect();
    let plan = serde_json::json!({
        "schema_version": 1, "issue": issue, "revision": 1, "summary": "Add files",
        "items": items, "questions": [],
    });
    plan.to_string()
}

fn commit(env: &TestEnv, message: &str, file: &str, text: &str) {
    env.write(format!("repo/{file}"), text);
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", message]);
}

fn json(env: &TestEnv) -> serde_json::Value {
    let done = env.run_in("repo", ["ledger", "show", "--format", "json"]);
    assert_eq!(done.code, 0, "{done}");
    serde_json::from_str(&done.stdout).unwrap()
}

fn id(env: &TestEnv, name: &str) -> String {
    env.git("repo", ["rev-parse", name])
}

#[test]
fn a_trailer_alone_proves_nothing_until_a_person_vouches() {
    let env = repo();
    assert_eq!(json(&env)["commits"], serde_json::json!({}));
    let done = env.run_in("repo", ["ledger", "adopt", "--from-trailers"]);
    assert_snapshot!(env.redact(&done.to_string()));
    let again = env.run_in("repo", ["ledger", "adopt", "--from-trailers", "main..topic"]);
    assert_snapshot!(again);
    assert_snapshot!(env.redact(&env.run_in("repo", ["ledger", "show"]).to_string()));
    let ledger = json(&env);
    assert_eq!(ledger["commits"].as_object().unwrap().len(), 3);
    assert_eq!(
        ledger["commits"][id(&env, "topic~3")],
        serde_json::json!({"item": "P1", "origin": "adopted"})
    );
    assert_snapshot!(env.redact(&env.run_in("repo", ["status"]).to_string()));
    assert_snapshot!(env.redact(&env.run_in("repo", ["log", "5"]).to_string()));
}

#[test]
fn trailers_that_name_no_item_or_several_are_refused_and_nothing_is_recorded() {
    let env = repo();
    commit(&env, "five\n\nPlan-Item: P1\nPlan-Item: P2", "e.txt", "5\n");
    assert_snapshot!(
        env.redact(&env.run_in("repo", ["ledger", "adopt", "--from-trailers"]).to_string())
    );
    env.git("repo", ["commit", "-q", "--amend", "-m", "five\n\nPlan-Item: retry"]);
    assert_snapshot!(
        env.redact(&env.run_in("repo", ["ledger", "adopt", "--from-trailers"]).to_string())
    );
    assert_eq!(json(&env)["commits"], serde_json::json!({}));
}

#[test]
fn what_is_recorded_stays() {
    let env = repo();
    let record = |commits: &[&str], item: &str| {
        let args = [&["ledger", "record"], commits, &["--item", item]].concat();
        env.redact(&env.run_in("repo", args).to_string())
    };
    assert_snapshot!(record(&["topic~3", "topic~1"], "P1"));
    assert_snapshot!(record(&["topic"], "none"));
    assert_snapshot!(record(&["topic~3"], "P1"));
    let before = json(&env);
    // One that differs refuses all of them.
    assert_snapshot!(record(&["topic~2", "topic~3"], "P2"));
    assert_snapshot!(record(&["topic~2", "nowhere"], "P2"));
    assert_snapshot!(record(&["topic~2"], "p2"));
    assert_snapshot!(record(&["topic~2"], "P9"));
    assert_eq!(json(&env), before);
    // A trailer that says something else changes nothing either.
    assert_eq!(env.run_in("repo", ["ledger", "record", "topic~2", "--item", "P3"]).code, 0);
    let done = env.run_in("repo", ["ledger", "adopt", "--from-trailers"]);
    assert_snapshot!(env.redact(&done.to_string()));
}

#[test]
fn a_rebase_made_by_hand_is_mapped_in_order_and_again() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["ledger", "adopt", "--from-trailers"]).code, 0);
    let old = id(&env, "topic");
    for n in ["first", "second"] {
        env.git("repo", ["checkout", "-q", "main"]);
        commit(&env, n, "base.txt", n);
        env.git("repo", ["branch", "-f", n, "topic"]);
        env.git("repo", ["rebase", "-q", "main", "topic"]);
        let (old, new) = (format!("main~1..{n}"), "main..topic");
        let done = env.run_in("repo", ["ledger", "map", &old, new]);
        assert_snapshot!(env.redact(&done.to_string()));
    }
    let ledger = json(&env);
    let rebased = &ledger["commits"][id(&env, "topic~3")];
    assert_eq!(rebased["item"], "P1");
    assert_eq!(rebased["origin"], "rebased");
    let source = &ledger["commits"][rebased["from"].as_str().unwrap()];
    assert_eq!(source["origin"], "rebased");
    assert_eq!(ledger["commits"][source["from"].as_str().unwrap()]["origin"], "adopted");
    assert_eq!(ledger["commits"][id(&env, "topic")]["item"], serde_json::Value::Null);

    // All of them are kept, also when no branch has them any more.
    env.git("repo", ["branch", "-q", "-D", "first", "second"]);
    env.git("repo", ["reflog", "expire", "--expire=now", "--all"]);
    env.git("repo", ["gc", "-q", "--prune=now"]);
    assert_eq!(id(&env, &format!("{old}^{{commit}}")), old);
}

#[test]
fn a_mapping_that_is_not_one_to_one_is_refused() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["ledger", "adopt", "--from-trailers"]).code, 0);
    env.git("repo", ["checkout", "-q", "-b", "squashed", "main"]);
    commit(&env, "squashed", "a.txt", "9\n");
    let map = |old: &str, new: &str| {
        let done = env.run_in("repo", ["ledger", "map", old, new]);
        env.redact(&done.to_string())
    };
    assert_snapshot!(map("main..topic", "main..squashed"));
    assert_snapshot!(map("topic~3", "squashed"));
    let before = json(&env);
    assert_snapshot!(map("topic~2", "squashed"));
    assert_snapshot!(map("main..topic", "squashed"));
    assert_snapshot!(map("topic", "topic"));
    assert_snapshot!(map(&"1".repeat(40), "topic"));
    assert_eq!(
        json(&env)["commits"][id(&env, "squashed")],
        before["commits"][id(&env, "squashed")]
    );
}

#[test]
fn a_merge_in_a_range_has_to_be_mapped_one_by_one() {
    let env = repo();
    env.git("repo", ["checkout", "-q", "main"]);
    commit(&env, "later", "z.txt", "z\n");
    env.git("repo", ["checkout", "-q", "topic"]);
    env.git("repo", ["merge", "-q", "-m", "update", "main"]);
    let done = env.run_in("repo", ["ledger", "map", "main~1..topic", "main~1..topic"]);
    assert_snapshot!(env.redact(&done.to_string()));
}

#[test]
fn the_configuration_of_the_repository_does_not_change_what_is_read() {
    let env = repo();
    let args = ["ledger", "adopt", "--from-trailers", "--format", "json"];
    for (key, value) in [
        ("log.showSignature", "true"),
        ("trailer.separators", "#"),
        ("log.showRoot", "false"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("diff.external", "false"),
    ] {
        env.git("repo", ["config", key, value]);
    }
    let done = env.run_in("repo", args);
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(json(&env)["commits"].as_object().unwrap().len(), 3, "{done}");
}

#[test]
fn commits_of_an_item_that_a_revision_removed_are_nobodys_and_say_so() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["ledger", "adopt", "--from-trailers"]).code, 0);
    plan(&env, &["P1", "P3"]);
    let two = id(&env, "topic~2");
    let removed = serde_json::json!({"item": null, "origin": "adopted", "was": "P2"});
    assert_eq!(json(&env)["commits"][&two], removed);
    assert_snapshot!(env.redact(&env.run_in("repo", ["ledger", "show"]).to_string()));
    // Another item of the old name owns nothing that the old one made.
    plan(&env, &["P1", "P2"]);
    assert_eq!(json(&env)["commits"][&two], removed);
    let log = env.run_in("repo", ["log", "5"]).stdout;
    assert!(log.contains("r2 removed P2; its commits are nobody's now"), "{log}");
}

#[test]
fn without_a_plan_no_commit_can_be_anybodys() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    commit(&env, "base", "a.txt", "0\n");
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    assert_eq!(env.run_in("repo", ["task", "add", "5", "--base", "main"]).code, 0);
    assert_snapshot!(env.run_in("repo", ["ledger", "record", "HEAD", "--item", "P1"]));
    assert_eq!(env.run_in("repo", ["ledger", "record", "HEAD", "--item", "none"]).code, 0);
}
