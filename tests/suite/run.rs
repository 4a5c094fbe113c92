//! `codeboost run`, and the link of a task.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::TestEnv;
use crate::support::road::Road;

fn run(env: &TestEnv, args: &[&str]) -> String {
    env.redact(&env.run_in("repo", args).to_string())
}

/// A task in review, with a page to make.
fn road() -> Road {
    let mut road = Road::new(&[("a.txt", "one\n")]);
    let commit = road.commit("two", &[("a.txt", Some("one\ntwo\n"))]);
    road.start(&[("P1", &["a.txt"], &[])]);
    road.ok(&["ledger", "record", &commit, "--item", "P1", "-q"]);
    road
}

#[test]
fn only_what_is_out_of_date_is_made_again() {
    let road = road();
    assert_snapshot!(run(&road.env, &["run", "412"]));
    assert_snapshot!(run(&road.env, &["run"]));
    let file = |name: &str| {
        std::fs::read(road.env.path(format!("repo/.codeboost/tasks/412/{name}"))).unwrap()
    };
    let outputs = ["plan.yaml", "ledger.json", "link.json", "review.html"];
    let before = outputs.map(file);
    let ledger: Value = serde_json::from_slice(&before[1]).unwrap();
    assert_eq!(ledger["commits"].as_object().unwrap().len(), 1);

    // A lost output comes back as it was.
    std::fs::remove_file(road.env.path("repo/.codeboost/tasks/412/link.json")).unwrap();
    assert_snapshot!(run(&road.env, &["run", "412"]));
    assert_eq!(outputs.map(file), before);

    // A new commit changes both.
    road.commit("three", &[("a.txt", Some("one\ntwo\nthree\n"))]);
    assert_snapshot!(run(&road.env, &["run", "412"]));
    assert_ne!(file("link.json"), before[2]);
    let done = road.env.run_in("repo", ["run", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value[0]["stages"][1]["wrote"], false, "{done}");
}

#[test]
fn a_task_that_waits_does_not_stop_the_others() {
    let road = road();
    road.env.git("repo", ["branch", "-q", "other", "main"]);
    road.ok(&["task", "add", "7", "--base", "main", "--head", "other", "-q"]);
    assert_snapshot!(run(&road.env, &["run"]));
    assert_snapshot!(run(&road.env, &["run", "7"]));
    assert_snapshot!(run(&road.env, &["run", "8"]));
    // One whose head is gone fails alone.
    road.env.git("repo", ["checkout", "-q", "main"]);
    road.ok(&["task", "cancel", "7"]);
    road.ok(&["task", "cancel", "412"]);
    assert_snapshot!(run(&road.env, &["run"]));
}

#[test]
fn the_link_of_a_task_is_that_of_its_files() {
    let road = road();
    assert_snapshot!(run(&road.env, &["link", "412"]));
    let own = std::fs::read(road.env.path("repo/.codeboost/tasks/412/link.json")).unwrap();
    road.ok(&["link", "412", "--verify"]);
    let folder = ".codeboost/tasks/412";
    let (plan, ledger) = (format!("{folder}/plan.yaml"), format!("{folder}/ledger.json"));
    let args = ["link", "--base", "main", "--head", "topic", "--plan", &plan, "--ledger", &ledger];
    let done = road.env.run_in("repo", [&args[..], &["-o", "-"]].concat());
    assert_eq!(done.stdout.as_bytes(), own, "{done}");

    // A file that was changed by hand does not prove right.
    let text =
        String::from_utf8(own).unwrap().replace("\"owners\":[\"P1\"]", "\"owners\":[\"P2\"]");
    road.env.write("repo/.codeboost/tasks/412/link.json", text);
    assert_snapshot!(run(&road.env, &["link", "412", "--verify"]));
    assert_snapshot!(run(&road.env, &["link", "--base", "main"]));
    assert_snapshot!(run(&road.env, &["link", "412", "--max-lines", "3"]));
}
