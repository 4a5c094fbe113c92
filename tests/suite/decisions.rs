//! Single decisions that are refused, each for its reason and without a trace; and what choices and
//! approvals do as a task goes on.

use serde_json::{Value, json};

use crate::apply::road;
use crate::support::road::{Road, on, segments};

#[test]
fn each_decision_that_does_not_fit_is_refused_alone_and_leaves_no_trace() {
    let road = road();
    let page = road.page();
    let own = page.segment("fn b()");
    let stray = page.segment("sneaked");
    let unknown = format!("sha256:{}", "0".repeat(64));
    let mut gone = on(&stray, json!({"type": "accept"}));
    gone["key"] = json!(unknown);
    let request = json!({"type": "request_change", "item": "P1", "text": "Less."});
    let anchored = |segment: &Value, from: u64, to: u64| {
        let mut one = on(segment, request.clone());
        (one["from"], one["to"]) = (json!(from), json!(to));
        one
    };
    let uuid = "00000000-0000-4000-8000-999999999999";
    let cases = [
        (json!({"type": "approve", "item": "P9"}), "unknown-item"),
        (gone, "unknown-segment"),
        (on(&stray, json!({"type": "assign", "item": "P9"})), "unknown-item"),
        (on(&own, json!({"type": "accept"})), "wrong-state"),
        (on(&stray, json!({"type": "acknowledge", "tag": "bidi"})), "wrong-state"),
        (on(&own, request.clone()), "invalid-anchor"),
        (anchored(&stray, 1, 9), "invalid-anchor"),
        (anchored(&stray, 2, 1), "invalid-anchor"),
        (json!({"type": "request_change", "item": "P1", "text": "x".repeat(4001)}), "too-long"),
        (json!({"type": "ask", "item": "P1", "text": "x".repeat(4001)}), "too-long"),
        (json!({"type": "withdraw_request", "request": uuid}), "unknown-request"),
        (json!({"type": "reject", "summary": "No."}), "nothing-to-send"),
        (json!({"type": "confirm_no_change", "item": "P2"}), "wrong-state"),
        (json!({"type": "approve", "item": "P1"}), "not-acknowledged"),
        (json!({"type": "merge"}), "blocked"),
    ];
    let before = road.state();
    for (decision, reason) in cases {
        let kind = decision["type"].as_str().unwrap().to_owned();
        road.save(&page, &[road.decision(decision)]);
        let (lines, done) = road.apply();
        assert_eq!(done.code, 3, "{kind}: {done}");
        assert_eq!(lines, [format!("refused {kind} {reason}")]);
        let text = road.run(&["apply", "../decisions.json"]);
        assert!(text.stdout.starts_with(&format!("✕ {kind} refused, {reason}: ")), "{text}");
        assert!(text.stdout.ends_with("0 decisions recorded, 1 refused\n"), "{text}");
        assert!(road.state() == before, "{kind} {reason} left a trace");
    }
}

#[test]
fn what_must_still_be_equal_and_is_not_is_named() {
    let mut road = road();
    let page = road.page();
    let refused = |road: &Road, decision: Value| {
        road.save(&page, &[road.decision(decision)]);
        let before = road.state();
        let (lines, done) = road.apply();
        assert_eq!(done.code, 3, "{done}");
        assert!(road.state() == before, "{lines:?} left a trace");
        lines[0].clone()
    };
    road.commit("more", &[("more.rs", Some("more();\n"))]);
    road.review();
    assert_eq!(refused(&road, json!({"type": "merge"})), "refused merge stale/head");
    road.revise(|plan| plan["items"][1]["title"] = json!("Another title"));
    assert_eq!(
        refused(&road, json!({"type": "approve", "item": "P2"})),
        "refused approve stale/definition"
    );
    let request = json!({"type": "request_change", "item": "P1", "text": "Less."});
    assert_eq!(refused(&road, request), "refused request_change stale/revision");
    // One more copy of an equal line, and the page's key is nobody's.
    let stray = page.segment("sneaked");
    let text =
        "fn f() {\n    one(1);\n    sneaked();\n}\n\nfn g() {\n    two();\n    sneaked();\n}\n";
    road.commit("a copy", &[("a.rs", Some(text))]);
    road.review();
    let line = refused(&road, on(&stray, json!({"type": "accept"})));
    assert_eq!(line, "refused accept stale/copies");
}

#[test]
fn a_page_of_a_task_that_was_given_up_decides_nothing_of_the_next() {
    let road = road();
    let page = road.page();
    road.save(&page, &[road.decision(json!({"type": "approve", "item": "P2"}))]);
    road.ok(&["task", "cancel", "412", "-q"]);
    road.ok(&["task", "remove", "412", "-q"]);
    road.ok(&["task", "add", "412", "--base", "main", "--head", "topic", "-q"]);
    road.ok(&["plan", "import", "412", "../plan.json", "-q"]);
    road.ok(&["plan", "approve", "412", "--yes", "-q"]);
    road.review();
    let before = road.state();
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(lines, ["refused approve wrong-state"], "{done}");
    assert!(done.stdout.contains("the task is cancelled"), "{done}");
    assert!(road.state() == before, "nothing is recorded for either");
    assert_eq!(road.states()["P2"], "unreviewed");
}

#[test]
fn of_two_files_of_one_page_the_second_is_judged_on_what_the_first_did() {
    let road = road();
    let page = road.page();
    let stray = page.segment("sneaked");
    let warning = page.segment("stray");
    road.save(&page, &[road.decision(on(&stray, json!({"type": "assign", "item": "P1"})))]);
    assert_eq!(road.apply().0, ["applied assign"]);
    let second = [
        on(&warning, json!({"type": "acknowledge", "tag": "out-of-scope"})),
        json!({"type": "approve", "item": "P1"}),
        json!({"type": "approve", "item": "P2"}),
    ];
    let second: Vec<_> = second.into_iter().map(|one| road.decision(one)).collect();
    road.save(&page, &second);
    let (lines, _) = road.apply();
    assert_eq!(
        lines,
        [
            "applied acknowledge",
            "refused approve stale/assigned",
            "refused approve stale/dependency"
        ]
    );
}

#[test]
fn no_change_can_not_be_confirmed_while_an_ambiguous_one_is_open() {
    let mut road = Road::new(&[("a.rs", "one();\n")]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["a.rs"], &[])]);
    road.work("P1", &[("a.rs", Some("one(1);\n"))]);
    road.work("P2", &[("a.rs", Some("one(1, 2);\n"))]);
    let page = road.page();
    road.save(&page, &[road.decision(json!({"type": "confirm_no_change", "item": "P2"}))]);
    let (lines, done) = road.apply();
    assert_eq!(lines, ["refused confirm_no_change blocked/ambiguous"], "{done}");
    // Decided for P1, both can be.
    road.decide(|page| {
        let all = page.segments("ambiguous");
        all.iter().map(|one| on(one, json!({"type": "assign", "item": "P1"}))).collect()
    });
    road.decide(|_| {
        vec![
            json!({"type": "approve", "item": "P1"}),
            json!({"type": "confirm_no_change", "item": "P2"}),
        ]
    });
    assert!(road.blockers().is_empty());
}

#[test]
fn work_that_was_undone_leaves_nothing_but_a_question() {
    let mut road = Road::new(&[("a.rs", "one();\n")]);
    road.start(&[("P1", &["a.rs"], &[])]);
    road.work("P1", &[("a.rs", Some("one(1);\n"))]);
    road.work("P1", &[("a.rs", Some("one();\n"))]);
    let page = road.page();
    assert!(page.review["segments"].as_array().unwrap().is_empty());
    road.save(&page, &[road.decision(json!({"type": "approve", "item": "P1"}))]);
    assert_eq!(road.apply().0, ["refused approve wrong-state"]);
    assert_eq!(road.blockers(), ["Review 1 unreviewed item"]);
    road.decide(|_| vec![json!({"type": "confirm_no_change", "item": "P1"})]);
    assert!(road.blockers().is_empty());
    // A change that comes later was not confirmed.
    road.work("P1", &[("a.rs", Some("one(2);\n"))]);
    assert_eq!(road.states()["P1"], "stale");
}

#[test]
fn an_assigned_rename_is_in_scope_only_where_both_sides_are_declared() {
    for (declared, scope) in [("old.rs>new.rs", "in"), ("+new.rs", "out"), ("old.rs", "out")] {
        let mut road = Road::new(&[("old.rs", "one();\ntwo();\nthree();\n"), ("c.rs", "c();\n")]);
        road.start(&[("P1", &[declared], &[]), ("P2", &["c.rs"], &[])]);
        road.work("P2", &[("c.rs", Some("c(1);\n"))]);
        road.commit("moved", &[("old.rs", None), ("new.rs", Some("one();\ntwo();\nthree();\n"))]);
        road.decide(|page| {
            let found = page.segments("unplanned");
            assert_eq!(found.len(), 1, "{found:#?}");
            vec![on(&found[0], json!({"type": "assign", "item": "P1"}))]
        });
        let found = segments(&road.review(), "P1");
        assert_eq!(found[0]["change"], "rename", "{declared}");
        assert_eq!(found[0]["scope"], scope, "{declared}");
    }
}

#[test]
fn an_assignment_to_an_item_that_was_removed_stays_gone() {
    let mut road = road();
    road.decide(|page| vec![on(&page.segment("sneaked"), json!({"type": "assign", "item": "P2"}))]);
    assert_eq!(road.page().segment("sneaked")["place"], "P2");
    let p2 = std::cell::RefCell::new(Value::Null);
    road.revise(|plan| *p2.borrow_mut() = plan["items"].as_array_mut().unwrap().remove(1));
    assert_eq!(road.page().segment("sneaked")["place"], "unplanned");
    road.revise(|plan| plan["items"].as_array_mut().unwrap().push(p2.into_inner()));
    let page = road.page();
    assert_eq!(page.segment("sneaked")["place"], "unplanned", "another item of the old name");
    assert_eq!(page.segment("fn b()")["place"], "unplanned");
    assert_eq!(road.states()["P2"], "unreviewed");
}

#[test]
fn neither_environment_nor_configuration_of_git_changes_anything_of_the_road() {
    let mut road = road();
    let plain = (road.review(), road.link());
    // What git would take history, diffs and names from, if it were asked carelessly.
    let (topic, main) = (road.env.git("repo", ["rev-parse", "topic"]), "main");
    road.env.git("repo", ["config", "diff.relative", "true"]);
    road.env.git("repo", ["config", "diff.renames", "false"]);
    road.env.git("repo", ["config", "core.quotePath", "false"]);
    road.env.git("repo", ["config", "core.abbrev", "4"]);
    road.env.git("repo", ["config", "alias.rev-parse", "!false"]);
    road.env.git("repo", ["config", "alias.log", "!false"]);
    let tree = road.env.git("repo", ["rev-parse", "topic~1^{tree}"]);
    let other = road.env.git("repo", ["commit-tree", "-p", main, "-m", "other", &tree]);
    road.env.git("repo", ["replace", "topic", &other]);
    road.env.write("repo/.git/info/grafts", format!("{topic}\n"));
    road.env.write("repo/sub/x", "");
    assert_eq!(road.review(), plain.0, "replaced and grafted");
    let done = road.env.run_in("repo/sub", ["review", "412", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap(), plain.0, "{done}");
    assert_eq!(done.stderr, "", "no noise of git");
    for (name, value) in [
        ("GIT_DIR", "/nonexistent"),
        ("GIT_WORK_TREE", "/nonexistent"),
        ("GIT_INDEX_FILE", "/nonexistent"),
        ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nonexistent"),
        ("GIT_NAMESPACE", "other"),
        ("GIT_REPLACE_REF_BASE", "refs/heads/"),
        ("GIT_GRAFT_FILE", "/nonexistent"),
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_DIFF_OPTS", "-u0"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "diff.algorithm"),
        ("GIT_CONFIG_VALUE_0", "patience"),
        ("LC_ALL", "tr_TR.UTF-8"),
    ] {
        road.env.set(name, value);
    }
    assert_eq!(road.review(), plain.0);
    assert_eq!(road.link(), plain.1);
    road.approve_with_warnings(&["P1", "P2"]);
    road.decide(|page| vec![on(&page.segment("sneaked"), json!({"type": "accept"}))]);
    let done = road.ok(&["merge", "412"]);
    assert!(done.stdout.contains("Merged #412 as "), "{done}");
}

#[test]
fn a_page_proves_itself_also_after_choices_of_its_own_second() {
    let road = road();
    let page = road.page();
    let rendered = road.ok(&["render", "412", "--format", "json"]).stdout;
    let rendered: Value = serde_json::from_str(&rendered).unwrap();
    std::fs::copy(rendered["path"].as_str().unwrap(), road.env.path("page.html")).unwrap();
    let stray = page.segment("sneaked");
    road.save(&page, &[road.decision(on(&stray, json!({"type": "assign", "item": "P1"})))]);
    let verify = || road.run(&["verify", "../page.html", "../decisions.json", "--repo", "."]);
    assert_eq!(verify().code, 0, "{}", verify());
    assert_eq!(road.apply().0, ["applied assign"]);
    let done = verify();
    assert_eq!(done.code, 0, "the clock of both is the same: {done}");
    // One character of the form, and it proves nothing.
    let html = std::fs::read_to_string(road.env.path("page.html")).unwrap();
    let at = html.find(&page.payload_b64).unwrap() + 60;
    let mut bytes = html.into_bytes();
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    road.env.write("page.html", bytes);
    let done = verify();
    assert_eq!(done.code, 1, "{done}");
}

#[test]
fn what_was_asked_for_and_never_done_keeps_no_task_from_being_removed() {
    let mut road = road();
    let reject = |road: &Road| {
        road.decide(|_| {
            vec![
                json!({"type": "request_change", "item": "P2", "text": "Less."}),
                json!({"type": "reject", "summary": "Once more."}),
            ]
        });
    };
    reject(&road);
    assert!(road.blockers().iter().any(|words| words.contains("Make the next revision")));
    road.revise(|plan| plan["summary"] = json!("Less."));
    assert!(!road.blockers().iter().any(|words| words.contains("Make the next revision")));
    reject(&road);
    road.ok(&["task", "cancel", "412", "-q"]);
    let done = road.run(&["task", "remove", "412"]);
    assert_eq!(done.code, 0, "{done}");
}

#[test]
fn a_request_keeps_the_lines_that_it_was_made_on() {
    let road = road();
    let page = road.page();
    let old = page.segment("    one();\n");
    assert_eq!(old["op"], "-");
    let request = json!({
        "type": "request_change", "item": "P1", "from": 1, "to": 1, "text": "Keep it.",
    });
    road.save(&page, &[road.decision(on(&old, request))]);
    road.work("P1", &[("a.rs", Some("fn f() {\n    one(1, 2);\n}\n\nfn g() {\n    two();\n}\n"))]);
    road.review();
    assert_eq!(road.apply().0, ["applied request_change"], "made on an older page");
    let review = road.review();
    assert_eq!(review["items"][0]["pending_requests"], 1);
    assert!(road.page().index.contains("Keep it."));
    let text = road.ok(&["review", "412", "P1"]).stdout;
    assert!(text.contains("Keep it."), "{text}");
    assert!(text.contains("    one();"), "the line as it was, told with it: {text}");
}
