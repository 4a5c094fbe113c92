//! Plans of tasks: imported, approved, edited, answered, and suggested edits.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Done, TestEnv};

const EXAMPLE: &str = include_str!("../../schema/examples/plan-412-r3.yaml");
const EDITS: &str = include_str!("../../schema/examples/plan-edit-412-r3.json");

/// A repository `repo` that the example plan fits, with a task for issue 412.
pub(crate) fn repo() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("EDITOR", "false");
    env.git(".", ["init", "-q", "repo"]);
    for path in [
        "src/retry/client.go",
        "src/retry/client_test.go",
        "src/client/retry_settings.go",
        "src/client/client.go",
        "docs/old-retry-notes.md",
    ] {
        env.write(format!("repo/{path}"), "text\n");
    }
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    assert_eq!(run(&env, &["init", "-q"]).code, 0);
    let done = run(&env, &["task", "add", "412", "--base", "main", "--title", "Retries"]);
    assert_eq!(done.code, 0, "{done}");
    env.write("plan.yaml", EXAMPLE);
    env
}

pub(crate) fn run(env: &TestEnv, args: &[&str]) -> Done {
    env.run_in("repo", args)
}

/// As [`run`], must succeed, with its JSON result.
pub(crate) fn json(env: &TestEnv, args: &[&str]) -> Value {
    let done = run(env, &[args, &["--format", "json"]].concat());
    assert_eq!(done.code, 0, "{done}");
    serde_json::from_str(&done.stdout).unwrap()
}

pub(crate) fn show(env: &TestEnv) -> Value {
    json(env, &["plan", "show", "412"])
}

pub(crate) fn import(env: &TestEnv) {
    let done = run(env, &["plan", "import", "412", "../plan.yaml"]);
    assert_eq!(done.code, 0, "{done}");
}

fn changed(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "the example has no {from:?}");
    EXAMPLE.replacen(from, to, 1)
}

/// The state as commands show it, to see that nothing changed.
fn state(env: &TestEnv) -> String {
    run(env, &["log"]).stdout + run(env, &["plan", "allowed", "list"]).stdout.as_str()
}

#[test]
fn an_imported_plan_becomes_the_next_revision() {
    let env = repo();
    let done = run(&env, &["plan", "import", "412", "../plan.yaml", "-q"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.ends_with("Plan of issue #412 is r1 now.\n"), "{done}");
    let again = run(&env, &["plan", "import", "412", "../plan.yaml"]);
    assert!(again.stdout.ends_with("r1 says the same already; nothing changed\n"), "{again}");
    env.write("plan.yaml", changed("title: Count attempts", "title: Count every attempt"));
    let third = json(&env, &["plan", "import", "412", "../plan.yaml"]);
    assert_eq!((&third["revision"], &third["made"]), (&json!(2), &json!(true)));
    assert_snapshot!(env.redact(&run(&env, &["plan", "show"]).to_string()));
    assert_snapshot!(run(&env, &["plan", "diff", "412", "r1", "r2"]));
    assert_snapshot!(run(&env, &["log", "412"]));
    let none = run(&env, &["plan", "diff", "412", "r1", "r9"]);
    assert_snapshot!(none);
}

#[test]
fn what_is_shown_as_a_file_is_the_same_plan() {
    let env = repo();
    import(&env);
    for syntax in ["yaml", "json"] {
        let text = run(&env, &["plan", "show", "412", "r1", "--as", syntax]).stdout;
        env.write(format!("again.{syntax}"), &text);
        let done = run(&env, &["plan", "import", "412", &format!("../again.{syntax}")]);
        assert!(done.stdout.ends_with("nothing changed\n"), "{done}");
    }
}

#[test]
fn a_plan_with_failures_or_for_another_issue_changes_nothing() {
    let env = repo();
    let before = state(&env);
    for plan in [
        changed("issue: 412", "issue: 7"),
        changed("kind: add", "kind: edit"),
        changed("kind: add", "kind: create"),
        changed("issue: 412", "issue: 412\nissue: 412"),
    ] {
        env.write("plan.yaml", plan);
        let done = run(&env, &["plan", "import", "412", "../plan.yaml"]);
        assert_eq!(done.code, 1, "{done}");
        assert_eq!(state(&env), before);
    }
    let done = run(&env, &["plan", "import", "7", "../plan.yaml"]);
    assert_eq!(done.code, 1, "{done}");
    assert_snapshot!(run(&env, &["plan", "show", "412"]));
    assert_snapshot!(run(&env, &["plan", "approve", "412"]));
}

#[test]
fn an_approval_asks_for_every_new_command_and_for_open_questions() {
    let env = repo();
    import(&env);
    let before = state(&env);
    assert_snapshot!(run(&env, &["plan", "approve", "412"]));
    assert_eq!(state(&env), before);
    let done = run(&env, &["plan", "approve", "412", "--allow-no-other"]);
    assert_snapshot!(done);
    let wrong = run(&env, &["plan", "approve", "412", "--allow-command", "rm -rf x"]);
    assert_snapshot!(wrong);
    assert_eq!(state(&env), before);
    let done = run(
        &env,
        &[
            "plan",
            "approve",
            "412",
            "r1",
            "--allow-command",
            "go vet ./...",
            "--allow-no-other",
            "--confirm-open-questions",
        ],
    );
    assert_snapshot!(done);
    assert_snapshot!(run(&env, &["log", "412"]));
    assert_eq!(
        json(&env, &["plan", "allowed", "list"]),
        json!({"allowed": [["go", "vet", "./..."]]})
    );
    let again = run(&env, &["plan", "approve", "412"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "r1 is approved already\n"));

    // A command that was allowed once is not asked for again.
    env.write("plan.yaml", changed("title: Count attempts", "title: Count every attempt"));
    import(&env);
    let done = run(&env, &["plan", "approve", "412", "r1"]);
    assert_eq!(done.code, 1, "{done}");
    let done = json(&env, &["plan", "approve", "412", "--yes"]);
    assert_eq!(done["allowed"].as_array().unwrap().len(), 2);
    assert_eq!(show(&env)["revisions"][1]["approval"]["open_questions"], json!(1));
}

#[test]
fn a_base_that_no_longer_fits_keeps_a_plan_from_being_approved() {
    let env = repo();
    // A plan made where this file does not exist yet.
    env.write("plan.yaml", changed("path: src/retry/metrics.go", "path: late.go"));
    import(&env);
    assert_eq!(run(&env, &["task", "cancel", "412"]).code, 0);
    let text = run(&env, &["plan", "show", "412", "--as", "yaml"]).stdout;
    env.write("plan.yaml", text);
    env.write("repo/late.go", "text\n");
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "late"]);
    assert_eq!(run(&env, &["task", "add", "412", "--base", "main"]).code, 0);
    let done = run(&env, &["plan", "import", "412", "../plan.yaml"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.contains("failure[existing-file]"), "{done}");
}

#[test]
fn answers_close_questions() {
    let env = repo();
    import(&env);
    assert_snapshot!(run(&env, &["plan", "answer", "412", "1", "Yes, as given up."]));
    assert_eq!(run(&env, &["plan", "answer", "412", "2", "x"]).code, 1);
    assert_eq!(run(&env, &["plan", "answer", "412", "1", " "]).code, 2);
    assert_eq!(run(&env, &["plan", "answer", "412", "1", "Only when it was retried."]).code, 0);
    let done = json(&env, &["plan", "approve", "412", "--allow-no-other"]);
    assert_eq!(done["approval"]["open_questions"], json!(0));
    let answers = &show(&env)["answers"];
    assert_eq!(answers.as_array().unwrap().len(), 1);
    assert_eq!(answers[0]["answer"], json!("Only when it was retried."));
}

/// An editor that takes the place of each of these texts in turn.
fn editor(env: &mut TestEnv, texts: &[String]) {
    let folder = env.path("editor");
    for (n, text) in (1..).zip(texts) {
        env.write(format!("editor/{n}"), text);
    }
    env.write(
        "editor/run",
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nn=$(($(cat count 2>/dev/null || echo 0) + 1))\n\
         echo $n > count\ncp \"$2\" seen-$n\nif [ -e $n ]; then cp $n \"$2\"; fi\n",
    );
    let program = folder.join("run");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("EDITOR", &format!("'{}' --wait", program.display()));
}

#[test]
fn an_edited_plan_is_checked_again_until_it_is_right() {
    let mut env = repo();
    import(&env);
    let plan = run(&env, &["plan", "show", "412", "--as", "yaml"]).stdout;
    let bad = plan.replacen("kind: add", "kind: create", 1);
    let good = plan.replacen("title: Count attempts", "title: Count every attempt", 1);
    editor(&mut env, &[bad, good]);
    let done = run(&env, &["plan", "edit", "412"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.ends_with("Plan of issue #412 is r2 now.\n"), "{done}");
    assert_eq!(std::fs::read_to_string(env.path("editor/seen-1")).unwrap(), plan);
    let second = std::fs::read_to_string(env.path("editor/seen-2")).unwrap();
    assert_snapshot!(second.lines().take(5).collect::<Vec<_>>().join("\n"));
    assert_eq!(show(&env)["origin"], json!("edit"));
}

#[test]
fn a_plan_left_unchanged_or_wrong_changes_nothing() {
    let mut env = repo();
    import(&env);
    let before = state(&env);
    editor(&mut env, &[]);
    let done = run(&env, &["plan", "edit", "412"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "nothing changed\n"));
    let bad = changed("kind: add", "kind: create");
    std::fs::remove_file(env.path("editor/count")).unwrap();
    editor(&mut env, std::slice::from_ref(&bad));
    let done = run(&env, &["plan", "edit", "412"]);
    assert_eq!(done.code, 1, "{done}");
    let kept = done.stderr.split("your text is kept in ").nth(1).unwrap().trim();
    assert!(std::fs::read_to_string(kept).unwrap().ends_with(&bad));
    std::fs::remove_dir_all(std::path::Path::new(kept).parent().unwrap()).unwrap();
    env.set("EDITOR", "false");
    assert_eq!(run(&env, &["plan", "edit", "412"]).code, 1);
    assert_eq!(state(&env), before);
}

/// Imports the example until it is at r3, for which the example edits are.
pub(crate) fn at_r3(env: &TestEnv) {
    for title in ["Count attempt", "Count the attempts", "Count attempts"] {
        env.write("plan.yaml", changed("title: Count attempts", &format!("title: {title}")));
        import(env);
    }
    env.write("edits.json", EDITS);
}

pub(crate) fn suggest(env: &TestEnv) -> Vec<String> {
    let found = json(env, &["plan", "suggest", "412", "--reply", "../edits.json"]);
    let cards = found["suggestions"].as_array().unwrap();
    cards.iter().map(|card| card["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_card_makes_the_next_revision_and_its_siblings_stale() {
    let env = repo();
    at_r3(&env);
    let done = run(&env, &["plan", "suggest", "412", "--reply", "../edits.json"]);
    assert_snapshot!(env.redact(&done.to_string()));
    let ids = suggest(&env);
    let applied = json(&env, &["plan", "edit", "apply", &ids[0][..13]]);
    assert_eq!(applied["revision"], json!(4));
    let plan = &show(&env)["plan"];
    assert_eq!(plan["items"][0]["acceptance"].as_array().unwrap().len(), 3);
    assert_eq!(plan["revision"], json!(4));

    // A sibling, the same one again, and those of the request before: all refused.
    let before = state(&env);
    let states: Vec<_> = show(&env)["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["stale", "stale", "applied", "stale"]);
    assert_snapshot!(env.redact(&run(&env, &["plan", "edit", "apply", &ids[1]]).to_string()));
    assert_eq!(run(&env, &["plan", "edit", "apply", &ids[0]]).code, 3);
    assert_eq!(run(&env, &["plan", "edit", "dismiss", &ids[1]]).code, 3);
    assert_eq!(run(&env, &["plan", "edit", "apply", "00000000"]).code, 1);
    assert_eq!(run(&env, &["plan", "edit", "apply", &ids[0][..7]]).code, 2);
    assert_eq!(state(&env), before);
    assert_snapshot!(run(&env, &["log", "412"]));

    // Asked again for the plan as it is, the other can be applied.
    env.write("edits.json", EDITS.replacen("\"base_revision\": 3", "\"base_revision\": 4", 1));
    let ids = suggest(&env);
    assert_eq!(json(&env, &["plan", "edit", "apply", &ids[1]])["revision"], json!(5));
    assert_eq!(show(&env)["plan"]["items"][3]["id"], json!("P4"));
}

#[test]
fn a_dismissed_card_leaves_plan_and_siblings_alone() {
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    assert_eq!(json(&env, &["plan", "edit", "dismiss", &ids[0]])["state"], json!("dismissed"));
    assert_eq!(show(&env)["plan"]["revision"], json!(3));
    assert_eq!(run(&env, &["plan", "edit", "apply", &ids[0]]).code, 3);
    assert_eq!(json(&env, &["plan", "edit", "apply", &ids[1]])["revision"], json!(4));
}

#[test]
fn an_import_makes_cards_stale() {
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    env.write("plan.yaml", changed("title: Count attempts", "title: Count"));
    import(&env);
    assert_eq!(run(&env, &["plan", "edit", "apply", &ids[0]]).code, 3);
    assert_eq!(show(&env)["plan"]["revision"], json!(4));
}

#[test]
fn an_answer_with_one_bad_edit_or_of_another_shape_is_refused_whole() {
    let env = repo();
    at_r3(&env);
    let answer: Value = serde_json::from_str(EDITS).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut answer = answer.clone();
        change(&mut answer);
        answer.to_string()
    };
    let cases = [
        ("stale-revision", with(&|a| a["base_revision"] = json!(2))),
        ("edit-item", with(&|a| a["edits"][0]["item"] = json!("P9"))),
        ("edit-payload", with(&|a| a["edits"][0]["value"] = json!("x"))),
        (
            "existing-file",
            with(&|a| {
                a["edits"][1]["new_item"]["files"][0]["path"] = json!("src/retry/client.go");
            }),
        ),
        ("edit-schema", with(&|a| a["edits"][0]["op"] = json!("move_item"))),
        ("edit-schema", with(&|a| a["task"] = json!("another"))),
        ("edit-schema", "[]".into()),
        ("edit-schema", "null".into()),
        ("parse", format!("```json\n{EDITS}\n```\n")),
        ("parse", EDITS.replacen("\"reply\"", "\"reply\": \"\", \"\\u0072eply\"", 1)),
        ("parse", format!("{EDITS}{}", " ".repeat(1 << 20))),
    ];
    for (code, text) in cases {
        env.write("edits.json", text);
        let done = run(&env, &["plan", "suggest", "412", "--reply", "../edits.json"]);
        assert_eq!(done.code, 1, "{done}");
        assert!(done.stdout.contains(&format!("failure[{code}]")), "{code}: {done}");
        assert_eq!(show(&env)["suggestions"], json!([]));
    }
}

#[test]
fn a_card_changes_the_plan_that_it_was_made_for_whatever_else_is_there() {
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    assert_eq!(run(&env, &["task", "add", "413", "--base", "main", "--title", "x"]).code, 0);
    for title in ["One", "Two", "Three"] {
        let plan = changed("issue: 412", "issue: 413").replacen("Count attempts", title, 1);
        env.write("plan.yaml", plan);
        assert_eq!(run(&env, &["plan", "import", "413", "../plan.yaml"]).code, 0);
    }
    assert_eq!(json(&env, &["plan", "edit", "apply", &ids[0]])["issue"], json!(412));
    assert_eq!(show(&env)["plan"]["revision"], json!(4));
    let other = json(&env, &["plan", "show", "413"]);
    assert_eq!(other["plan"]["revision"], json!(3));
}

/// Many processes apply cards of one revision at once: exactly one wins.
///
/// `CODEBOOST_TEST_APPLIES` sets how many attempts are made.
#[test]
fn of_many_applies_at_once_exactly_one_wins() {
    const PROCESSES: usize = 8;
    let attempts: usize = std::env::var("CODEBOOST_TEST_APPLIES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    let won: Vec<Done> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..PROCESSES)
            .map(|worker| {
                let (env, ids) = (&env, &ids);
                scope.spawn(move || {
                    let mine = (worker..attempts).step_by(PROCESSES);
                    let runs = mine.map(|n| run(env, &["plan", "edit", "apply", &ids[n % 2]]));
                    runs.collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(won.len(), attempts);
    let (winners, losers): (Vec<_>, Vec<_>) = won.iter().partition(|done| done.code == 0);
    assert_eq!(winners.len(), 1, "{winners:?}");
    for done in losers {
        assert_eq!(done.code, 3, "{done}");
        let said = done.stderr.contains("is stale") || done.stderr.contains("is applied");
        assert!(said, "{done}");
    }
    let shown = show(&env);
    assert_eq!(shown["plan"]["revision"], json!(4));
    assert_eq!(shown["revisions"].as_array().unwrap().len(), 4);
    let mut states: Vec<_> = shown["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["state"].as_str().unwrap())
        .collect();
    states.sort_unstable();
    assert_eq!(states, ["applied", "stale"]);
}
