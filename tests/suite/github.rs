//! Publishing and merging on GitHub, with the real `gh` and a real repository on the other side.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::Done;
use crate::support::github::{Github, both_gh};
use crate::support::road::Road;

/// A task with two approved items whose branch nobody has pushed yet, and GitHub beside it.
pub(crate) fn world(state: Value, gh: Option<&Path>) -> (Road, Github) {
    let mut road = Road::new(&[("a.rs", "fn f() {\n    one();\n}\n")]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["+b.rs"], &["P1"])]);
    road.work("P1", &[("a.rs", Some("fn f() {\n    one(1);\n}\n"))]);
    road.work("P2", &[("b.rs", Some("fn b() {}\n"))]);
    road.env.git(".", ["init", "-q", "--bare", "hub.git"]);
    let hub = road.env.path("hub.git").display().to_string();
    road.env.git("repo", ["push", "-q", &hub, "main"]);
    road.env.git("repo", ["remote", "add", "origin", "https://github.com/acme/widget.git"]);
    road.env.write(
        "home/.gitconfig",
        format!("[url \"{hub}\"]\n\tinsteadOf = https://github.com/acme/widget.git\n"),
    );
    road.env.write("repo/.git/codeboost/config.yaml", "forge: github\n");
    road.approve(&["P1", "P2"]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    let mut all = json!({"issues": [
        {"number": 412, "title": "Retry", "user": "boss"},
        {"number": 7, "title": "Another", "user": "boss"},
    ]});
    for (key, value) in state.as_object().unwrap() {
        all[key] = value.clone();
    }
    if let Some(gh) = gh {
        Github::use_gh(&mut road.env, gh);
    }
    let github = Github::start(&mut road.env, &all);
    (road, github)
}

/// A ruleset whose checks have to pass on the newest base.
fn strict() -> Value {
    json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [passed("ci")]})
}

pub(crate) fn checks_rule(strict: bool) -> Value {
    json!({"type": "required_status_checks", "parameters": {
        "required_status_checks": [{"context": "ci"}],
        "strict_required_status_checks_policy": strict,
    }})
}

pub(crate) fn passed(name: &str) -> Value {
    json!({"head_sha": "@topic", "name": name, "status": "completed", "conclusion": "success"})
}

pub(crate) fn queue() -> Value {
    json!({"rules": {"main": [{"type": "merge_queue", "parameters": {}}]}})
}

pub(crate) fn publish(road: &Road) -> Value {
    let done = road.run(&["publish", "412", "--format", "json"]);
    assert_eq!(done.code, 0, "{done}");
    serde_json::from_str::<Value>(&done.stdout).unwrap()["published"].clone()
}

/// The end of a merge: its word, and the run.
pub(crate) fn merge(road: &Road, args: &[&str]) -> (String, Value, Done) {
    let done = road.run(&[&["merge", "412", "--format", "json"], args].concat());
    let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done}"));
    (report["ending"]["outcome"].as_str().unwrap().to_owned(), report, done)
}

pub(crate) fn tip(road: &Road, branch: &str) -> String {
    let name = format!("refs/heads/{branch}");
    road.env.git("hub.git", ["for-each-ref", "--format=%(objectname)", &name])
}

pub(crate) fn here(road: &Road, name: &str) -> String {
    road.env.git("repo", ["rev-parse", name])
}

fn parents(road: &Road, commit: &str) -> Vec<String> {
    let line = road.env.git("hub.git", ["log", "-1", "--format=%P", commit]);
    line.split(' ').map(str::to_owned).collect()
}

fn log(road: &Road) -> String {
    road.ok(&["log", "412"]).stdout
}

#[test]
fn a_task_becomes_one_pull_request_that_is_kept_up_to_date_by_each_gh() {
    for gh in both_gh() {
        let (road, github) = world(json!({}), Some(&gh));
        let published = publish(&road);
        assert_eq!((&published["draft"], &published["number"]), (&json!(false), &json!(413)));
        let number = published["number"].as_u64().unwrap();
        let pull = github.pull(number);
        let body = pull["body"].as_str().unwrap();
        assert!(body.starts_with("<!-- codeboost:opening="), "{body}");
        assert!(
            body.contains("\nFixes #412\n") && body.contains("2 of 2 items approved"),
            "{body}"
        );
        assert_eq!(tip(&road, "topic"), here(&road, "topic"));
        assert_eq!(pull["comments"].as_array().unwrap().len(), 1);

        // Again: nothing changes, and nothing is written.
        github.forget_requests();
        assert_eq!(publish(&road)["number"], number);
        let changes: Vec<_> = github
            .requests()
            .into_iter()
            .filter(|one| one["method"] != "GET" && one["op"] != "query")
            .collect();
        assert!(changes.is_empty(), "{changes:?}");

        // What people wrote around it stays; what they wrote into it is kept in the log.
        let edited = format!("{}\nMine <b>#7</b>\n", body.replace("2 of 2", "9 of 9"));
        github.control(json!({"do": "item", "number": number, "set": {"body": edited}}));
        publish(&road);
        let now = github.pull(number)["body"].as_str().unwrap().to_owned();
        assert_eq!(now, edited.replace("9 of 9", "2 of 2"));
        assert!(log(&road).contains("kept what people wrote between the markers"));

        // A draft, and ready again.
        let draft = road.run(&["publish", "412", "--draft"]);
        assert!(draft.code == 0 && github.pull(number)["draft"] == true, "{draft}");
        let (word, report, _) = merge(&road, &[]);
        assert_eq!(word, "blocked", "{report}");
        publish(&road);
        assert_eq!(github.pull(number)["draft"], false);
        assert_eq!(github.pull(number)["comments"].as_array().unwrap().len(), 1);
        assert!(github.state()["_unsupported"].is_null());
    }
}

#[test]
fn an_opening_is_found_again_and_a_foreign_one_is_refused() {
    // The answer is lost after GitHub opened it.
    let (road, github) = world(json!({}), None);
    github.fault(json!({"method": "POST", "path": "/pulls$"}), json!({"close": "after"}));
    assert_eq!(publish(&road)["number"], 413);
    assert_eq!(github.state()["pulls"].as_array().unwrap().len(), 1);

    // It was opened, and then neither the answer nor the list could be read: it is still ours, and
    // no fix of somebody else.
    let (road, github) = world(json!({}), None);
    github.fault(json!({"method": "POST", "path": "/pulls$"}), json!({"close": "after"}));
    github.control(json!({"do": "fault", "fault": {"match": {"method": "GET", "path": "/pulls$"},
        "after": 1, "times": 3, "action": {"status": 500, "body": {"message": "x"}}}}));
    let done = road.run(&["publish", "412"]);
    assert_eq!(done.code, 1, "{done}");
    assert_eq!(publish(&road)["number"], 413);
    assert_eq!(github.state()["pulls"].as_array().unwrap().len(), 1);

    // Somebody else's pull request is on the branch.
    let (road, github) = world(json!({}), None);
    let hub = road.env.path("hub.git").display().to_string();
    road.env.git("repo", ["push", "-q", &hub, "topic"]);
    let theirs = json!({"number": 50, "title": "Theirs", "body": "x", "state": "open", "user": "boss",
        "head": "topic", "base": "main", "draft": false, "comments": [], "timeline": [], "labels": [],
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"});
    github.control(json!({"do": "append", "key": "pulls", "value": theirs}));
    let done = road.run(&["publish", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stderr.contains("#50") && github.pull(50)["body"] == "x", "{done}");

    // The branch there has a commit that is not ours.
    let (road, github) = world(json!({}), None);
    github.control(json!({"do": "commit", "branch": "topic", "path": "x", "content": "y"}));
    let foreign = tip(&road, "topic");
    let done = road.run(&["publish", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(tip(&road, "topic"), foreign);
    assert!(github.state()["pulls"].as_array().unwrap().is_empty());

    // No drafts here: refused in words, and nothing is opened.
    let (road, github) = world(json!({"repository": {"drafts_supported": false}}), None);
    let done = road.run(&["publish", "412", "--draft"]);
    assert!(done.code == 3 && done.stderr.contains("Draft pull requests"), "{done}");
    assert!(github.state()["pulls"].as_array().unwrap().is_empty());
}

#[test]
fn what_github_knows_of_other_fixes_is_found_and_unknown_is_no_answer() {
    let (road, github) = world(
        json!({"pulls": [
            {"number": 20, "title": "Other", "head": "gone", "user": "boss", "closes": []},
            {"number": 21, "title": "Closed", "head": "gone", "user": "boss", "state": "closed", "closes": [412]},
        ]}),
        None,
    );
    let event = |event: Value| {
        github.control(json!({"do": "event", "number": 412, "event": event}));
    };
    let found = || {
        let done = road.run(&["publish", "412", "--format", "json"]);
        let report: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        let words = report["findings"].as_array().cloned().unwrap_or_default();
        (
            done.code,
            words
                .iter()
                .map(|one| one["words"].as_str().unwrap_or("commit").to_owned())
                .collect::<Vec<_>>(),
        )
    };
    // A mention, one that was closed, one of another repository that only mentions it: nothing.
    event(json!({"event": "cross-referenced", "pull": 20}));
    event(json!({"event": "cross-referenced", "pull": 21}));
    event(
        json!({"event": "cross-referenced", "external": {"repo": "else/where", "number": 20, "kind": "pull", "state": "OPEN"}}),
    );
    assert_eq!(found(), (0, vec![]));
    // Linked by hand, unlinked, linked again.
    event(json!({"event": "connected", "pull": 20}));
    let one = vec!["pull request #20, open, fixes it".to_owned()];
    assert_eq!(found(), (4, one.clone()));
    event(json!({"event": "disconnected", "pull": 20}));
    // A person looked at it and goes on: the same finding does not stop it again.
    let done = road.run(&["merge", "412", "--not-fixed"]);
    assert_eq!(done.code, 0, "{done}");
}

#[test]
fn each_unreadable_answer_about_other_fixes_is_unknown() {
    let (road, github) = world(json!({}), None);
    for action in [
        json!({"close": "before"}),
        json!({"raw": "{"}),
        json!({"status": 500, "body": {"message": "x"}}),
        json!({"patch": {"data": {"repository": {"issue": {"state": "RESTING"}}}}}),
        json!({"patch": {"data": {"repository": {"issue": {"number": 7}}}}}),
        json!({"patch": {"data": {"repository": {"nameWithOwner": "acme/other"}}}}),
        json!({"patch": {"data": {"repository": {"issue": {"timelineItems": {"pageInfo": null}}}}}}),
        json!({"patch": {"data": {"repository": {"issue": {"timelineItems": {"nodes":
            [{"__typename": "OddEvent"}]}}}}}}),
        json!({"graphql_errors": [{"type": "FORBIDDEN", "message": "no"}]}),
    ] {
        github.control(json!({"do": "fault", "fault": {
            "match": {"operation": "IssueLinks"}, "times": 3, "action": action}}));
        let done = road.run(&["publish", "412"]);
        assert_eq!(done.code, 3, "{action}: {done}");
        assert!(done.stderr.contains("can't be told"), "{done}");
        github.control(json!({"do": "clear-faults"}));
    }
    assert!(github.state()["pulls"].as_array().unwrap().is_empty());
    assert_eq!(publish(&road)["number"], 413);
}

#[test]
fn each_way_lands_exactly_what_was_reviewed_by_each_gh() {
    for gh in both_gh() {
        // No rules: a pinned push, one merge commit of exactly base and head.
        let (road, github) = world(json!({}), Some(&gh));
        publish(&road);
        let (base, head) = (here(&road, "main"), here(&road, "topic"));
        let (word, report, done) = merge(&road, &[]);
        assert_eq!(word, "merged", "{done}");
        assert_eq!(report["ending"]["guard"], "pinned-push");
        assert_eq!(parents(&road, &tip(&road, "main")), [base.clone(), head.clone()]);
        assert_eq!(github.pull(413)["merged"], true);
        assert_eq!(merge(&road, &[]).0, "merged");

        // Checks on the newest base: GitHub merges, with the head named.
        let (road, github) = world(strict(), Some(&gh));
        publish(&road);
        let (base, head) = (here(&road, "main"), here(&road, "topic"));
        let (word, report, done) = merge(&road, &[]);
        assert_eq!(
            (word.as_str(), &report["ending"]["guard"]),
            ("merged", &json!("strict-checks")),
            "{done}"
        );
        assert_eq!(parents(&road, &tip(&road, "main")), [base, head.clone()]);
        assert_eq!(report["ending"]["commit"], tip(&road, "main"));
        let asked = github.requests();
        let put = asked.iter().find(|one| one["method"] == "PUT").unwrap();
        assert_eq!(put["body"]["sha"], head);
        assert_eq!(tip(&road, "topic"), "", "the head's branch is deleted as configured");
        assert!(github.state()["_unsupported"].is_null());

        // A queue: it waits its turn across runs.
        let (road, github) = world(queue(), Some(&gh));
        publish(&road);
        let (word, _, done) = merge(&road, &["--no-wait"]);
        assert_eq!((word.as_str(), done.code), ("queued", 4), "{done}");
        assert_eq!(merge(&road, &["--no-wait"]).0, "queued", "no second entry");
        assert_eq!(github.state()["queue"]["main"].as_array().unwrap().len(), 1);
        github.control(json!({"do": "queue", "number": 413, "action": "merge"}));
        let (word, report, done) = merge(&road, &[]);
        assert_eq!(word, "merged", "{done}");
        assert_eq!(report["ending"]["commit"], tip(&road, "main"));
    }
}

#[test]
fn a_squash_goes_by_github_and_lists_the_items() {
    let (road, _github) = world(strict(), None);
    publish(&road);
    let base = here(&road, "main");
    let (word, _, done) = merge(&road, &["--squash"]);
    assert_eq!(word, "merged", "{done}");
    assert_eq!(parents(&road, &tip(&road, "main")), [base]);
    let message = road.env.git("hub.git", ["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("P1: Title of P1") && message.contains("Plan-Item: P2"), "{message}");

    let (road, _github) = world(json!({}), None);
    publish(&road);
    let (word, report, done) = merge(&road, &["--squash"]);
    assert_eq!((word.as_str(), done.code), ("not-allowed", 3), "{report}");
    assert_eq!(tip(&road, "main"), here(&road, "main"));
}

#[test]
fn where_nothing_guards_or_something_is_unknown_nothing_lands() {
    let cases: Vec<(&str, Value, &str)> = vec![
        (
            "checks that need not run on the newest base",
            json!({"rules": {"main": [checks_rule(false)]}, "check_runs": [passed("ci")]}),
            "not-allowed",
        ),
        (
            "a pull request is required and nothing strict",
            json!({"rules": {"main": [{"type": "pull_request", "parameters": {"required_approving_review_count": 0}}]}}),
            "not-allowed",
        ),
        (
            "the account may go past the rule",
            json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [passed("ci")], "bypass": {"42": "always"}}),
            "not-allowed",
        ),
        (
            "a check failed",
            json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [
            {"head_sha": "@topic", "name": "ci", "status": "completed", "conclusion": "failure"}]}),
            "checks-failed",
        ),
        ("a check that has not begun", json!({"rules": {"main": [checks_rule(true)]}}), "waits"),
        (
            "a check of another app",
            json!({"rules": {"main": [{"type": "required_status_checks", "parameters": {
            "required_status_checks": [{"context": "ci", "integration_id": 9}],
            "strict_required_status_checks_policy": true}}]}, "check_runs": [passed("ci")]}),
            "waits",
        ),
        (
            "a word that is not known",
            json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [
            {"head_sha": "@topic", "name": "ci", "status": "completed", "conclusion": "splendid"}]}),
            "rules-unknown",
        ),
        (
            "check runs that can't be read",
            json!({"rules": {"main": [checks_rule(true)]},
            "check_runs": [passed("ci")], "checks_forbidden": true}),
            "rules-unknown",
        ),
        (
            "rules that can't be read",
            json!({"rules_refusal": [403, "Resource not accessible"]}),
            "rules-unknown",
        ),
        (
            "classic protection that only an administrator reads",
            json!({"protection": {"main": {
            "required_status_checks": {"strict": true, "checks": [{"context": "ci"}]}}},
            "check_runs": [passed("ci")]}),
            "not-allowed",
        ),
    ];
    for (name, state, expected) in cases {
        let (road, github) = world(state, None);
        publish(&road);
        let (word, report, done) = merge(&road, &["--no-wait"]);
        assert_eq!(word, expected, "{name}: {report}");
        assert!([3, 4].contains(&done.code), "{name}: {done}");
        assert_eq!(tip(&road, "main"), here(&road, "main"), "{name}");
        let changes = github.requests().into_iter().filter(|one| one["method"] == "PUT").count();
        assert_eq!(changes, 0, "{name}: nothing is learned by trying");
    }
    // An administrator reads it, and it holds for administrators too.
    for (holds, expected) in [(true, "merged"), (false, "not-allowed")] {
        let (road, _github) = world(
            json!({"viewer": "boss", "tokens": {"dummy": "boss"},
            "protection": {"main": {"enforce_admins": {"enabled": holds},
                "required_status_checks": {"strict": true, "checks": [{"context": "ci", "app_id": 15368}]}}},
            "check_runs": [passed("ci")]}),
            None,
        );
        publish(&road);
        assert_eq!(merge(&road, &[]).0, expected);
    }
}

#[test]
fn checks_are_awaited_for_half_an_hour_across_runs() {
    let pending =
        json!({"head_sha": "@topic", "name": "ci", "status": "in_progress", "conclusion": null});
    let state = json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [pending]});
    let (mut road, github) = world(state, None);
    publish(&road);
    assert_eq!(merge(&road, &["--no-wait"]).0, "waits");
    road.env.set("CODEBOOST_NOW", "2026-11-30T12:29:00Z");
    assert_eq!(merge(&road, &["--no-wait"]).0, "waits");
    road.env.set("CODEBOOST_NOW", "2026-11-30T12:30:00Z");
    let (word, _, done) = merge(&road, &["--no-wait"]);
    assert_eq!((word.as_str(), done.code), ("checks-late", 3), "{done}");
    github.control(json!({"do": "patch", "state": {"check_runs": [passed("ci")]}}));
    assert_eq!(merge(&road, &[]).0, "merged");
}

#[test]
fn what_moves_at_the_last_moment_keeps_everything_out() {
    // A head or base that moves between our last look and the merge.
    for (name, branch, state) in [
        ("head", "topic", strict()),
        ("base", "main", strict()),
        ("head of a queue", "topic", queue()),
    ] {
        let (road, github) = world(state, None);
        publish(&road);
        let push = json!({"do": "commit", "branch": branch, "path": "x", "content": "y"});
        let matching = if name.ends_with("queue") {
            json!({"operation": "Enqueue"})
        } else {
            json!({"method": "PUT"})
        };
        github.fault(matching, json!({"control": [push]}));
        let (word, _, done) = merge(&road, &["--no-wait"]);
        assert_eq!(done.code, 3, "{name}: {done}");
        assert!(["head-moved", "base-moved"].contains(&word.as_str()), "{name}: {word}");
        assert_ne!(github.pull(413)["merged"], true, "{name}");
    }
}

#[test]
fn a_queue_that_takes_it_out_says_why_and_a_late_merge_is_found() {
    let (road, github) = world(queue(), None);
    publish(&road);
    assert_eq!(merge(&road, &["--no-wait"]).0, "queued");
    github.control(
        json!({"do": "queue", "number": 413, "action": "remove", "reason": "failed_checks"}),
    );
    let (word, report, _) = merge(&road, &["--no-wait"]);
    assert_eq!(word, "refused", "{report}");
    assert!(report["ending"]["words"].as_str().unwrap().contains("failed_checks"));
    assert_eq!(report["state"], "approved, merge blocked");
    // It is put in again, and the old removal is not taken for a new one.
    assert_eq!(merge(&road, &["--no-wait"]).0, "queued");
    github.control(json!({"do": "queue", "number": 413, "action": "build"}));
    assert_eq!(merge(&road, &["--no-wait"]).0, "queued");
    github.control(json!({"do": "queue", "number": 413, "action": "merge"}));
    let (word, report, _) = merge(&road, &["--no-wait"]);
    assert_eq!((word.as_str(), &report["state"]), ("merged", &json!("merged")));
}

#[test]
fn a_task_takes_the_title_of_its_issue_and_its_text_where_it_is_trusted() {
    let (road, github) = world(
        json!({"issues": [
            {"number": 8, "title": "Theirs", "body": "Follow me", "user": "stranger"},
            {"number": 9, "title": "Ours", "body": "Do it", "user": "boss"},
        ]}),
        None,
    );
    let add = |number: &str| {
        let done = road.run(&["task", "add", number, "--base", "main"]);
        assert_eq!(done.code, 0, "{done}");
        done
    };
    let done = add("8");
    assert!(done.stdout.contains("Theirs") && done.stderr.contains("issues trust 8"), "{done}");
    let done = add("9");
    assert!(done.stdout.contains("Ours") && !done.stderr.contains("trust"), "{done}");
    drop(github);
    let done = add("10");
    assert!(done.stderr.contains("can't be read"), "{done}");
}

#[test]
fn approving_reviews_that_github_demands_are_told_when_the_repository_is_set_up() {
    let rule =
        json!({"type": "pull_request", "parameters": {"required_approving_review_count": 2}});
    let (road, github) = world(json!({"rules": {"main": [rule]}}), None);
    let done = road.ok(&["init"]);
    assert!(done.stderr.contains("2 approving reviews"), "{done}");
    github.control(json!({"do": "patch", "state": {"rules_refusal": [403, "No"]}}));
    let done = road.ok(&["init"]);
    assert!(done.stderr.contains("can't be read"), "{done}");
}

#[test]
fn what_landed_while_nobody_could_ask_is_found_when_github_is_back() {
    let (mut road, github) = world(strict(), None);
    publish(&road);
    // Killed right after the request that merges, and then GitHub is away.
    road.env.set("CODEBOOST_CRASH_AT", "gh: after PUT");
    assert_eq!(road.run(&["merge", "412"]).code, -1);
    road.env.set("CODEBOOST_CRASH_AT", "");
    drop(github);
    let done = road.run(&["merge", "412"]);
    assert_ne!(done.code, 0, "{done}");
    assert!(road.ok(&["status", "412"]).stdout.contains("merging"));
    let _github = Github::resume(&road.env);
    let (word, report, _) = merge(&road, &[]);
    assert_eq!((word.as_str(), &report["ending"]["found"]), ("merged", &json!(true)));
}
