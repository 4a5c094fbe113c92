//! `codeboost issues` and the page of issues, with the real `gh`, old and newest.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::TestEnv;
use crate::support::github::{Github, both_gh};

fn world(state: &Value) -> (TestEnv, Github) {
    let mut env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "base"]);
    env.git("repo", ["remote", "add", "origin", "https://github.com/acme/widget.git"]);
    assert_eq!(env.run_in("repo", ["init", "-q"]).code, 0);
    env.write("repo/.git/codeboost/config.yaml", "forge: github\n");
    let github = Github::start(&mut env, state);
    (env, github)
}

fn sample() -> Value {
    json!({
        "issues": [
            {"number": 1, "title": "Old and quiet", "user": "boss", "created_at": "2024-01-01T00:00:00Z"},
            {"number": 2, "title": "P0 security bug \u{1b}[31m<b>", "user": "stranger",
             "created_at": "2026-11-29T00:00:00Z"},
            {"number": 3, "title": "A leak", "user": "boss", "labels": ["P1", "Security"],
             "reactions": {"+1": 27, "-1": 50, "heart": 1}, "created_at": "2026-11-29T00:00:00Z",
             "comments": [{"id": 1, "user": "boss", "body": "mine"}, {"id": 2, "user": "stranger", "body": "theirs"}]},
            {"number": 4, "title": "Done", "state": "closed", "user": "boss"},
        ],
        "pulls": [{"number": 5, "title": "A pull request", "head": "none", "user": "boss"}],
    })
}

fn json_of(env: &TestEnv, args: &[&str]) -> Value {
    let done = env.run_in("repo", [args, &["--format", "json"]].concat());
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done}"))
}

#[test]
fn issues_are_ranked_with_reasons_by_each_gh() {
    let mut seen = Vec::new();
    for gh in both_gh() {
        let (mut env, github) = world(&sample());
        Github::use_gh(&mut env, &gh);
        let done = env.run_in("repo", ["issues"]);
        seen.push(env.redact(&done.to_string()));
        let asked = github.requests();
        assert!(asked.iter().all(|one| one["method"] == "GET"), "{asked:?}");
        for word in ["Stale", "rate", "PULL"] {
            assert!(!done.stdout.contains(word), "{done}");
        }
        github.control(json!({"do": "append", "key": "issues", "value":
            {"number": 6, "title": "New", "user": "boss", "body": "", "state": "open", "comments": [],
             "labels": ["P0", "security", "bug"], "created_at": "2026-11-30T00:00:00Z", "updated_at": "2026-11-30T00:00:00Z",
             "timeline": []}}));
        assert_eq!(json_of(&env, &["issues", "--offline"])["issues"].as_array().unwrap().len(), 3);
        assert_eq!(json_of(&env, &["issues"])["issues"][0]["number"], 6);
        assert!(github.state()["_unsupported"].is_null());
        assert_eq!(github.pull(5)["state"], "open");
    }
    assert_eq!(seen[0], seen[1]);
    assert_snapshot!(seen[0]);
}

#[test]
fn what_cant_be_read_is_stale_or_unavailable_and_never_half() {
    let (env, github) = world(&sample());
    let list = || json_of(&env, &["issues"]);
    let close = |how: &str| json!({"close": how});
    let fault = |action: Value| {
        github.control(json!({"do": "fault", "fault": {
            "match": {"path": "/issues$"}, "times": 3, "action": action}}));
    };
    fault(close("before"));
    let done = env.run_in("repo", ["issues"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.contains("✕ Unavailable"), "{done}");
    assert_eq!(list()["state"], "fresh");
    let odd = |field: &str, value: Value| {
        let mut issue = json!({"number": 9, "title": "t", "state": "open", "user": {"id": 1, "login": "a"},
            "labels": [{"name": "bug"}], "comments": 0, "created_at": "2026-01-01T00:00:00Z",
            "reactions": {"+1": 0, "heart": 0, "hooray": 0, "rocket": 0},
            "repository_url": "https://api.github.com/repos/acme/widget"});
        issue[field] = value;
        json!({"status": 200, "body": [issue]})
    };
    let faults = [
        close("mid"),
        close("before"),
        json!({"status": 500, "body": {"message": "down"}}),
        json!({"status": 502, "raw": "<html>"}),
        json!({"status": 404, "body": {"message": "Not Found"}}),
        json!({"raw": "[{"}),
        json!({"truncate": 40}),
        odd("number", json!("9")),
        odd("number", json!(-1)),
        odd("title", Value::Null),
        odd("user", json!({"login": "a"})),
        odd("labels", json!([{}])),
        odd("comments", json!(1.5)),
        odd("created_at", json!("yesterday")),
        odd("reactions", json!({})),
        odd("repository_url", json!("https://api.github.com/repos/acme/other")),
    ];
    for action in faults {
        fault(action.clone());
        let listing = list();
        assert_eq!(listing["state"], "stale", "{action}");
        assert_eq!(listing["issues"].as_array().unwrap().len(), 3, "{action}");
        assert!(!listing["why"].as_str().unwrap().is_empty());
        github.control(json!({"do": "clear-faults"}));
    }
    // A read that fails for a moment is tried again.
    github.fault(json!({"path": "/issues$"}), json!({"status": 503, "body": {"message": "busy"}}));
    assert_eq!(list()["state"], "fresh");
    // Another repository answers, as after a rename.
    let body = json!({"full_name": "acme/other", "default_branch": "main",
        "permissions": {"admin": false, "push": true}});
    let whole = json!({"path": "/repos/acme/widget$"});
    github.fault(whole, json!({"status": 200, "body": body}));
    assert_eq!(list()["state"], "stale");
}

#[test]
fn a_used_up_rate_limit_is_waited_for_and_shown() {
    let (env, github) = world(&sample());
    github.fault(
        json!({"path": "/issues$"}),
        json!({"status": 429, "headers": {"Retry-After": "90"}, "body": {"message": "slow down"}}),
    );
    let done = env.run_in("repo", ["issues"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("waiting 90 seconds"), "{done}");
    github.fault(
        json!({"path": "/issues$"}),
        json!({"status": 403, "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"},
               "body": {"message": "API rate limit exceeded"}}),
    );
    assert_eq!(json_of(&env, &["issues"])["state"], "stale");
}

#[test]
fn trust_is_of_who_may_push_or_of_one_issue_of_its_author() {
    let (env, github) = world(&sample());
    let trust = |number: u64| {
        let listing = json_of(&env, &["issues"]);
        let all = listing["issues"].as_array().unwrap();
        all.iter().find(|issue| issue["number"] == number).unwrap()["trust"].clone()
    };
    assert_eq!((trust(3), trust(2)), (json!("collaborator"), json!("untrusted")));
    // A member of the organisation who may not push is no collaborator.
    github.control(json!({"do": "patch", "state": {"members": ["stranger"]}}));
    assert_eq!(trust(2), "untrusted");
    let comments = |number: &str| {
        let shown = json_of(&env, &["issues", "show", number]);
        let all = shown["comments"].as_array().unwrap();
        let words: Vec<_> =
            all.iter().map(|one| one["body"].as_str().unwrap().to_owned()).collect();
        (words, shown["comments_left_out"].as_u64().unwrap())
    };
    assert_eq!(comments("3"), (vec!["mine".to_owned()], 1));
    assert_eq!(env.run_in("repo", ["issues", "trust", "2"]).code, 0);
    assert_eq!(env.run_in("repo", ["issues", "trust", "3"]).code, 0);
    assert_eq!(trust(2), "explicit");
    assert_eq!(comments("3").1, 1, "its author may push: the comments of others are not trusted");
    github.control(json!({"do": "item", "number": 3, "set": {"user": "stranger"}}));
    assert_eq!(trust(3), "untrusted", "trusted with another author");
    assert_eq!(env.run_in("repo", ["issues", "trust", "3"]).code, 0);
    assert_eq!(comments("3").0.len(), 2);
    assert_eq!(env.run_in("repo", ["issues", "trust", "3", "--revoke"]).code, 0);
    assert_eq!(trust(3), "untrusted");
    // Who may push can't be told: nobody is trusted by it.
    github.control(json!({"do": "patch", "state": {"collaborators": {"bot": "read"}}}));
    assert_eq!((trust(1), trust(2)), (json!("unknown"), json!("explicit")));
}

#[test]
fn the_page_of_issues_shows_what_was_read_and_how_old_it_is() {
    let (env, github) = world(&sample());
    let page = || {
        let done = env.run_in("repo", ["render", "--site", "-q"]);
        assert_eq!(done.code, 0, "{done}");
        std::fs::read_to_string(env.path("repo/.codeboost/site/issues.html")).unwrap()
    };
    assert!(page().contains("✕ Unavailable"));
    assert_eq!(env.run_in("repo", ["issues", "-q"]).code, 0);
    github.forget_requests();
    let fresh = page();
    assert!(fresh.contains("✓ Current") && fresh.contains("75 points: P1 priority label"));
    assert!(!fresh.contains("<b>") && fresh.contains("&lt;b&gt;"));
    assert!(github.requests().is_empty(), "a page asks nobody");
    drop(github);
    assert_eq!(env.run_in("repo", ["issues", "-q"]).code, 0);
    assert!(page().contains("! Stale"));
}
