//! What a person must be able to rely on, case by case: where a change is shown, when an approval
//! ends, and what a choice covers.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::support::road::{Road, on, segments};

const A: &str = "fn f() {\n    one();\n}\n\nfn g() {\n    two();\n}\n";

/// P1 edits `a.rs` in `f`, P2 adds `b.rs`; neither depends on the other.
fn two_items() -> Road {
    let mut road = Road::new(&[("a.rs", A), ("c.rs", "c();\n")]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["+b.rs"], &[])]);
    road.work("P1", &[("a.rs", Some(&A.replace("one()", "one(1)")))]);
    road.work("P2", &[("b.rs", Some("fn b() {}\n"))]);
    road
}

/// Text or change of the segments of a row, in order.
fn row(link: &Value, row: &str) -> Vec<String> {
    let all = link["segments"].as_array().unwrap().iter().filter(|one| one["row"] == row);
    all.map(|one| {
        let text = one["text"].as_str().or(one["change"].as_str()).unwrap();
        format!("{}{}", one["op"].as_str().unwrap_or(""), text.trim_end())
    })
    .collect()
}

/// What the row of an item says: `attributed` and `in_scope`.
fn checks(link: &Value, row: &str) -> (String, String) {
    let rows = link["rows"].as_array().unwrap();
    let found = rows.iter().find(|one| one["row"] == row).unwrap();
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("attributed"), text("in_scope"))
}

fn pair(left: &str, right: &str) -> (String, String) {
    (left.to_owned(), right.to_owned())
}

fn words(states: &BTreeMap<String, String>) -> Vec<&str> {
    states.values().map(String::as_str).collect()
}

/// The kinds of reason for which an item is stale.
fn kinds(road: &Road, item: &str) -> Vec<String> {
    let review = road.review();
    let found = review["items"].as_array().unwrap().iter().find(|one| one["item"] == item);
    let reasons = found.unwrap()["reasons"].as_array().unwrap().clone();
    reasons.iter().map(|reason| reason["reason"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_of_two_items_has_its_own_changes_on_its_row() {
    let road = two_items();
    let link = road.link();
    assert_eq!(row(&link, "P1"), ["-    one();", "+    one(1);"]);
    assert_eq!(row(&link, "P2"), ["+fn b() {}"]);
    assert_eq!(row(&link, "ambiguous"), [""; 0]);
    assert_eq!(row(&link, "unplanned"), [""; 0]);
    assert_eq!(checks(&link, "P1"), pair("ok", "ok"));
    assert_eq!(checks(&link, "P2"), pair("ok", "ok"));
    assert_eq!(road.blockers(), ["Review 2 unreviewed items"]);
    road.approve(&["P1", "P2"]);
    assert!(road.blockers().is_empty());
}

#[test]
fn a_file_that_an_item_did_not_declare_is_out_of_scope_on_its_row() {
    let road = two_items();
    road.work("P1", &[("c.rs", Some("c(1);\n"))]);
    road.work("P1", &[("b.rs", Some("fn b() {}\nfn mine() {}\n"))]);
    let link = road.link();
    assert_eq!(
        row(&link, "P1"),
        ["-    one();", "+    one(1);", "+fn mine() {}", "-c();", "+c(1);"]
    );
    assert_eq!(row(&link, "unplanned"), [""; 0]);
    assert_eq!(checks(&link, "P1"), pair("ok", "out"));
    assert_eq!(checks(&link, "P2"), pair("ok", "ok"));
    let scope = |text: &str| {
        let all = link["segments"].as_array().unwrap();
        let found = all.iter().find(|one| one["text"] == text).unwrap();
        (found["scope"].as_str().unwrap().to_owned(), found["scope_owner"].clone())
    };
    assert_eq!(scope("c(1);\n"), ("out".to_owned(), json!([])));
    assert_eq!(scope("fn mine() {}\n"), ("out".to_owned(), json!(["P2"])), "whose file it is");
    // It blocks until somebody has said that they saw it, and then it does not.
    assert_eq!(road.blockers(), ["Review 2 unreviewed items", "Acknowledge 3 warnings"]);
    road.approve_with_warnings(&["P1", "P2"]);
    assert!(road.blockers().is_empty());
    assert_eq!(checks(&road.link(), "P1"), pair("ok", "out"), "the finding stays");
}

#[test]
fn a_push_by_somebody_else_is_unplanned() {
    let road = two_items();
    road.approve(&["P1", "P2"]);
    let env = &road.env;
    env.git("repo", ["checkout", "-q", "--detach"]);
    env.git(".", ["clone", "-q", "-b", "topic", "repo", "theirs"]);
    env.write("theirs/a.rs", A.replace("one()", "one(1)").replace("two()", "theirs()"));
    env.git("theirs", ["commit", "-q", "-am", "pushed"]);
    env.git("theirs", ["push", "-q", "origin", "topic"]);
    let link = road.link();
    assert_eq!(row(&link, "unplanned"), ["-    two();", "+    theirs();"]);
    assert_eq!(row(&link, "P1"), ["-    one();", "+    one(1);"]);
    assert_eq!(words(&road.states()), ["approved", "approved"], "their lines are untouched");
    assert_eq!(road.blockers(), ["Resolve 2 unplanned changes"]);
}

#[test]
fn lines_that_were_only_deleted_belong_to_the_item_that_deleted_them() {
    let mut road = Road::new(&[("a.rs", A), ("c.rs", "one\ntwo\nthree\n")]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["c.rs", "-README"], &[])]);
    road.work("P1", &[("a.rs", Some("fn f() {\n    one();\n}\n"))]);
    road.work("P2", &[("c.rs", Some("one\nthree\n")), ("README", None)]);
    let link = road.link();
    assert_eq!(row(&link, "P1"), ["-\nfn g() {\n    two();\n}"]);
    assert_eq!(row(&link, "P2"), ["-The sample.", "-two"]);
    assert_eq!(row(&link, "unplanned"), [""; 0]);
    assert_eq!(checks(&link, "P2"), pair("ok", "ok"));
}

#[test]
fn a_line_that_two_items_changed_is_ambiguous_and_both_say_so() {
    let mut road = Road::new(&[("a.rs", A)]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["a.rs"], &[])]);
    road.work("P1", &[("a.rs", Some(&A.replace("one()", "one(1)")))]);
    road.work("P2", &[("a.rs", Some(&A.replace("one()", "one(1, 2)")))]);
    let link = road.link();
    assert_eq!(row(&link, "ambiguous"), ["-    one();", "+    one(1, 2);"]);
    let found = &link["segments"].as_array().unwrap()[1];
    assert_eq!(found["owners"], json!(["P1", "P2"]));
    assert_eq!(checks(&link, "P1").0, "ambiguous");
    assert_eq!(checks(&link, "P2").0, "ambiguous");
    // Nobody can approve either before somebody decides what it is.
    let page = road.page();
    road.save(&page, &[road.decision(json!({"type": "approve", "item": "P1"}))]);
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("refused approve"), "{lines:?}");
}

#[test]
fn a_hunk_with_lines_of_two_items_is_two_changes_that_say_so() {
    let mut road = Road::new(&[("a.rs", A)]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["a.rs"], &[])]);
    road.work("P1", &[("a.rs", Some(&A.replace("two();", "two();\n    of_p1();")))]);
    road.work("P2", &[("a.rs", Some(&A.replace("two();", "two();\n    of_p1();\n    of_p2();")))]);
    let link = road.link();
    assert_eq!(row(&link, "P1"), ["+    of_p1();"]);
    assert_eq!(row(&link, "P2"), ["+    of_p2();"]);
    let all = link["segments"].as_array().unwrap();
    assert_eq!(all[0]["hunk"], all[1]["hunk"]);
    assert_eq!(all[0]["shares_hunk_with"], json!(["P2"]));
    assert_eq!(all[1]["shares_hunk_with"], json!(["P1"]));
    assert_eq!(all[0]["shared_file"], json!(["P2"]));
}

#[test]
fn a_revision_of_one_item_ends_only_its_approval() {
    let mut road = two_items();
    road.approve(&["P1", "P2"]);
    road.revise(|plan| plan["items"][0]["intent"] = json!("Another intent."));
    assert_eq!(words(&road.states()), ["stale", "approved"]);
    assert_eq!(kinds(&road, "P1"), ["definition"]);
    assert_eq!(road.blockers(), ["Review 1 stale item"]);
}

#[test]
fn a_rebase_that_only_moves_lines_ends_no_approval() {
    let road = two_items();
    road.approve(&["P1", "P2"]);
    let env = &road.env;
    env.git("repo", ["checkout", "-q", "main"]);
    road.commit("on the base", &[("a.rs", Some(&format!("//! Words.\n//! More.\n\n{A}")))]);
    env.git("repo", ["branch", "before", "topic"]);
    env.git("repo", ["rebase", "-q", "main", "topic"]);
    // Rewritten commits are nobody's until somebody says which they were.
    assert_eq!(segments(&road.review(), "unplanned").len(), 3);
    assert_eq!(words(&road.states()), ["stale", "stale"]);
    road.ok(&["ledger", "map", "main~1..before", "main..topic", "-q"]);
    assert_eq!(words(&road.states()), ["approved", "approved"]);
    assert!(road.blockers().is_empty());
    let link = road.link();
    let text = |one: &Value| one["text"] == "    one(1);\n";
    let moved = link["segments"].as_array().unwrap().iter().find(|one| text(one)).unwrap();
    assert_eq!(moved["new_start"], 5, "it did move");
}

#[test]
fn an_item_under_another_id_inherits_no_approval() {
    let mut road = two_items();
    road.approve(&["P1", "P2"]);
    assert!(road.blockers().is_empty());
    road.revise(|plan| plan["items"][1]["id"] = json!("P3"));
    let states = road.states();
    assert_eq!(states.get("P2"), None);
    assert_eq!(states["P1"], "approved");
    assert_eq!(states["P3"], "unreviewed");
    let link = road.link();
    assert_eq!(row(&link, "P3"), [""; 0]);
    assert_eq!(row(&link, "unplanned"), ["+fn b() {}"], "made for an item that is gone");
    let ledger = road.ok(&["ledger", "show", "412", "--format", "json"]).stdout;
    assert!(ledger.contains("\"was\": \"P2\""), "{ledger}");
    let blocked = road.blockers();
    assert_eq!(blocked, ["Review 1 unreviewed item", "Resolve 1 unplanned change"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    // Reconciled, it is whole again.
    road.decide(|page| {
        let change = page.segment("fn b()");
        vec![
            on(&change, json!({"type": "assign", "item": "P3"})),
            json!({"type": "approve", "item": "P3"}),
        ]
    });
    assert!(road.blockers().is_empty());
}

#[test]
fn a_change_of_whitespace_alone_ends_the_approval() {
    let road = two_items();
    road.approve(&["P1", "P2"]);
    road.work("P1", &[("a.rs", Some(&A.replace("    one()", "\tone(1)")))]);
    assert_eq!(words(&road.states()), ["stale", "approved"]);
    assert_eq!(kinds(&road, "P1"), ["code"]);
    assert_eq!(road.blockers(), ["Review 1 stale item"]);
}

/// Something done to the work tree.
type Change = fn(&Road);

fn at(road: &Road, path: &str) -> std::path::PathBuf {
    road.env.path("repo").join(path)
}

fn write(road: &Road, path: &str, text: &str) {
    std::fs::write(at(road, path), text).unwrap();
}

fn rename(road: &Road, from: &str, to: &str) {
    std::fs::rename(at(road, from), at(road, to)).unwrap();
}

fn remove(road: &Road, path: &str) {
    std::fs::remove_file(at(road, path)).unwrap();
}

fn mode(road: &Road, path: &str, bits: u32) {
    std::fs::set_permissions(at(road, path), std::fs::Permissions::from_mode(bits)).unwrap();
}

fn point(road: &Road, path: &str, target: &str) {
    let _ = std::fs::remove_file(at(road, path));
    symlink(target, at(road, path)).unwrap();
}

/// A submodule that is not checked out, as git records one.
fn submodule(road: &Road, path: &str, commit: char) {
    let id = commit.to_string().repeat(40);
    road.env.git("repo", ["update-index", "--add", "--cacheinfo", "160000", &id, path]);
    std::fs::create_dir_all(at(road, path)).unwrap();
}

/// A kind of change without lines: how the base is prepared, what the item does, and what can
/// happen to it afterwards.
struct Lineless {
    change: &'static str,
    declared: &'static str,
    prepare: Change,
    make: Change,
    later: &'static [(&'static str, Change)],
}

const LINELESS: &[Lineless] = &[
    Lineless {
        change: "binary",
        declared: "x",
        prepare: |road| write(road, "x", "\0one"),
        make: |road| write(road, "x", "\0two"),
        later: &[
            ("content", |road| write(road, "x", "\0three")),
            ("path", |road| rename(road, "x", "y")),
            ("mode", |road| mode(road, "x", 0o755)),
            ("operation", |road| remove(road, "x")),
            ("presence", |road| write(road, "x", "\0one")),
        ],
    },
    Lineless {
        change: "mode",
        declared: "x",
        prepare: |road| write(road, "x", "one\ntwo\nthree\n"),
        make: |road| mode(road, "x", 0o755),
        later: &[
            ("path", |road| rename(road, "x", "y")),
            ("operation", |road| remove(road, "x")),
            ("presence", |road| mode(road, "x", 0o644)),
        ],
    },
    Lineless {
        change: "empty",
        declared: "+x",
        prepare: |_| {},
        make: |road| write(road, "x", ""),
        later: &[
            ("content", |road| write(road, "x", "text\n")),
            ("path", |road| rename(road, "x", "y")),
            ("mode", |road| mode(road, "x", 0o755)),
            ("presence", |road| remove(road, "x")),
        ],
    },
    Lineless {
        change: "rename",
        declared: "w>x",
        prepare: |road| write(road, "w", "one\ntwo\nthree\n"),
        make: |road| rename(road, "w", "x"),
        later: &[
            ("path", |road| rename(road, "x", "y")),
            ("mode", |road| mode(road, "x", 0o755)),
            ("operation", |road| remove(road, "x")),
            ("presence", |road| rename(road, "x", "w")),
        ],
    },
    Lineless {
        change: "symlink",
        declared: "x",
        prepare: |road| point(road, "x", "one"),
        make: |road| point(road, "x", "two"),
        later: &[
            ("content", |road| point(road, "x", "three")),
            ("path", |road| rename(road, "x", "y")),
            ("operation", |road| {
                remove(road, "x");
                write(road, "x", "two");
            }),
            ("presence", |road| point(road, "x", "one")),
        ],
    },
    Lineless {
        // A plan can't declare one, so it is out of scope as well.
        change: "submodule",
        declared: "README",
        prepare: |road| submodule(road, "x", '1'),
        make: |road| submodule(road, "x", '2'),
        later: &[
            ("content", |road| submodule(road, "x", '3')),
            ("operation", |road| std::fs::remove_dir(at(road, "x")).unwrap()),
            ("presence", |road| submodule(road, "x", '1')),
        ],
    },
];

/// Commits what was done; git has to be told of a submodule that is gone.
fn commit(road: &Road, message: &str, item: &str) -> String {
    let commit = road.commit_all(message);
    road.record(&commit, item);
    commit
}

#[test]
fn an_approval_of_a_change_without_lines_ends_when_anything_of_it_changes() {
    for case in LINELESS {
        let mut road = Road::new(&[]);
        let env = &road.env;
        env.git("repo", ["checkout", "-q", "main"]);
        (case.prepare)(&road);
        road.commit("prepared", &[("other", Some("one\n"))]);
        env.git("repo", ["checkout", "-q", "-B", "topic", "main"]);
        road.start(&[("P1", &[case.declared], &[]), ("P2", &["other"], &["P1"])]);
        (case.make)(&road);
        let made = commit(&road, "made", "P1");
        let approved = road.work("P2", &[("other", Some("two\n"))]);
        assert_eq!(row(&road.link(), "P1"), [case.change], "{made}");
        road.approve_with_warnings(&["P1", "P2"]);
        assert!(road.blockers().is_empty(), "{}: {:?}", case.change, road.blockers());
        for (what, later) in case.later {
            let name = format!("{} {what}", case.change);
            later(&road);
            commit(&road, &name, "P1");
            assert_eq!(words(&road.states()), ["stale", "stale"], "{name}");
            assert_eq!(kinds(&road, "P2"), ["dependency"], "{name}");
            let blocked = road.blockers();
            assert!(blocked[0].starts_with("Review 2 stale items"), "{name}: {blocked:?}");
            let done = road.run(&["merge", "412", "-q"]);
            assert_eq!(done.code, 3, "{name}: {done}");
            road.env.git("repo", ["reset", "-q", "--hard", &approved]);
            road.env.git("repo", ["clean", "-qfd"]);
            assert!(road.blockers().is_empty(), "{name}: what was approved is there again");
        }
    }
}

#[test]
fn an_approval_of_a_change_without_lines_survives_lines_that_move() {
    for case in LINELESS {
        if !["mode", "rename"].contains(&case.change) {
            continue;
        }
        let mut road = Road::new(&[]);
        road.env.git("repo", ["checkout", "-q", "main"]);
        (case.prepare)(&road);
        road.commit_all("prepared");
        road.env.git("repo", ["checkout", "-q", "-B", "topic", "main"]);
        road.start(&[("P1", &[case.declared], &[])]);
        (case.make)(&road);
        commit(&road, "made", "P1");
        road.approve_with_warnings(&["P1"]);
        write(&road, "x", "zero\none\ntwo\nthree\n");
        commit(&road, "above", "none");
        assert_eq!(words(&road.states()), ["approved"], "{}", case.change);
        assert_eq!(road.blockers(), ["Resolve 1 unplanned change"], "{}", case.change);
    }
}

#[test]
fn an_assigned_change_ends_the_approval_and_the_choice_survives_a_revision() {
    let mut road = two_items();
    road.commit("stray", &[("c.rs", Some("c();\nstray();\n"))]);
    road.approve(&["P1", "P2"]);
    road.decide(|page| vec![on(&page.segment("stray"), json!({"type": "assign", "item": "P1"}))]);
    assert_eq!(words(&road.states()), ["stale", "approved"]);
    assert_eq!(kinds(&road, "P1"), ["assigned"]);
    assert_eq!(road.page().segment("stray")["scope"], "out", "judged at its new item");
    road.revise(|plan| plan["items"][1]["intent"] = json!("Another intent."));
    let found = road.page().segment("stray");
    assert_eq!((&found["place"], &found["assigned"]), (&json!("P1"), &json!(true)));
    road.approve_with_warnings(&["P1", "P2"]);
    assert!(road.blockers().is_empty());
}

#[test]
fn the_already_fixed_check_finds_nothing_in_the_tasks_own_work() {
    let road = two_items();
    let c = road.commit("Fixes #412 for good", &[("a.rs", Some(&A.replace("one()", "one(2)")))]);
    road.record(&c, "P1");
    road.approve(&["P1", "P2"]);
    let done = road.ok(&["publish", "412"]);
    assert!(!done.to_string().contains("possibly"), "{done}");
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    let done = road.ok(&["merge", "412"]);
    let line = done.stdout.lines().find(|line| line.contains("Already-fixed check")).unwrap();
    assert!(line.ends_with("nothing found"), "{done}");
}

/// Three functions, with this many copies of a line in them.
fn with_copies(n: usize) -> String {
    let body = |at: usize| if at < n { "    copy();\n" } else { "" };
    let all = ["f", "g", "h"].iter().enumerate();
    let all =
        all.map(|(at, name)| format!("fn {name}() {{\n    {name}{name}();\n{}}}\n", body(at)));
    all.collect::<Vec<_>>().join("\n")
}

/// Somebody adds the same line in two functions; P1 edits nothing near.
fn copies() -> Road {
    let mut road = Road::new(&[("a.rs", &with_copies(0))]);
    road.start(&[("P1", &["+b.rs"], &[])]);
    road.work("P1", &[("b.rs", Some("b();\n"))]);
    road.commit("copies", &[("a.rs", Some(&with_copies(2)))]);
    road
}

#[test]
fn of_two_equal_changes_only_the_one_that_was_accepted_is() {
    let road = copies();
    let page = road.page();
    let found = page.segments("unplanned");
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["text"], found[1]["text"]);
    assert_ne!(found[0]["key"], found[1]["key"]);
    road.decide(|_| vec![on(&found[0], json!({"type": "accept"}))]);
    let page = road.page();
    assert_eq!(page.segments("accepted"), [with(&found[0], "place", "accepted")]);
    assert_eq!(page.segments("unplanned"), [found[1].clone()]);
    assert_eq!(
        road.blockers(),
        ["Review 1 unreviewed item", "Resolve 1 unplanned change"],
        "the other still blocks"
    );
}

fn with(segment: &Value, key: &str, value: &str) -> Value {
    let mut segment = segment.clone();
    segment[key] = json!(value);
    segment
}

#[test]
fn when_a_copy_goes_away_the_choice_about_it_does_not_move_to_the_other() {
    let road = copies();
    let first = road.page().segments("unplanned")[0].clone();
    road.decide(|_| vec![on(&first, json!({"type": "accept"}))]);
    road.commit("one copy less", &[("a.rs", Some(&with_copies(1)))]);
    let page = road.page();
    assert!(page.segments("accepted").is_empty());
    let left = page.segments("unplanned");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["text"], first["text"]);
    // One more is a new question about all of them.
    road.commit("two", &[("a.rs", Some(&with_copies(2)))]);
    road.decide(|page| {
        let all = page.segments("unplanned");
        all.iter().map(|one| on(one, json!({"type": "accept"}))).collect()
    });
    assert_eq!(segments(&road.review(), "accepted").len(), 2);
    road.commit("three", &[("a.rs", Some(&with_copies(3)))]);
    assert_eq!(segments(&road.review(), "accepted").len(), 0);
    assert_eq!(segments(&road.review(), "unplanned").len(), 3);
}

#[test]
fn an_approval_covers_the_job_the_place_and_what_it_depends_on() {
    let base = "fn f() {\n    one();\n}\n\nfn g() {\n    one();\n}\n";
    let in_f = base.replacen("one();\n", "one();\n    new();\n", 1);
    let in_g = "fn f() {\n    one();\n}\n\nfn g() {\n    one();\n    new();\n}\n";
    let road = || {
        let mut road = Road::new(&[("a.rs", base)]);
        road.start(&[("P1", &["a.rs"], &[]), ("P2", &["+b.rs"], &["P1"]), ("P3", &["+c.rs"], &[])]);
        road.work("P1", &[("a.rs", Some(&in_f))]);
        road.work("P2", &[("b.rs", Some("b();\n"))]);
        road.work("P3", &[("c.rs", Some("c();\n"))]);
        road.approve(&["P1", "P2", "P3"]);
        road
    };
    // The job: what has to hold changed, not one line of code.
    let mut job = road();
    job.revise(|plan| plan["items"][0]["acceptance"][0]["text"] = json!("Something else holds."));
    assert_eq!(words(&job.states()), ["stale", "stale", "approved"]);
    assert_eq!(kinds(&job, "P1"), ["definition"]);
    assert_eq!(kinds(&job, "P2"), ["dependency"]);
    // Approved again, what depends on it is still stale.
    job.approve(&["P1"]);
    assert_eq!(words(&job.states()), ["approved", "stale", "approved"]);
    job.approve(&["P2"]);
    assert!(job.blockers().is_empty());

    // The place: the same line in another function.
    let place = road();
    place.work("P1", &[("a.rs", Some(in_g))]);
    assert_eq!(words(&place.states()), ["stale", "stale", "approved"]);
    assert_eq!(kinds(&place, "P1"), ["context"]);

    // Lines that only shift: fresh.
    let shift = road();
    shift.commit("above", &[("a.rs", Some(&format!("// Words.\n\n{in_f}")))]);
    assert_eq!(words(&shift.states()), ["approved"; 3]);
}

#[test]
fn only_the_ledger_says_who_made_a_commit() {
    let road = two_items();
    let forged = A.replace("one()", "one(1)").replace("two()", "forged()");
    road.commit("P2: more\n\nPlan-Item: P2\nPlan-Revision: 1", &[("a.rs", Some(&forged))]);
    let unplanned = ["-    two();", "+    forged();"];
    assert_eq!(row(&road.link(), "unplanned"), unplanned);

    // A rebase with a conflict in both kinds of commit, solved and mapped by a person.
    let env = &road.env;
    env.git("repo", ["checkout", "-q", "main"]);
    road.commit("base", &[("a.rs", Some(&A.replace("one()", "uno()").replace("two()", "due()")))]);
    env.git("repo", ["branch", "before", "topic"]);
    env.git("repo", ["checkout", "-q", "-B", "topic", "main"]);
    let one = A.replace("one()", "uno(1)").replace("two()", "due()");
    road.commit("work for P1", &[("a.rs", Some(&one))]);
    road.commit("work for P2", &[("b.rs", Some("fn b() {}\n"))]);
    let two = one.replace("due()", "forged()");
    road.commit("P2: more\n\nPlan-Item: P2\nPlan-Revision: 1", &[("a.rs", Some(&two))]);
    road.ok(&["ledger", "map", "main~1..before", "main..topic", "-q"]);
    let link = road.link();
    assert_eq!(row(&link, "P1"), ["-    uno();", "+    uno(1);"]);
    assert_eq!(row(&link, "P2"), ["+fn b() {}"]);
    assert_eq!(row(&link, "unplanned"), ["-    due();", "+    forged();"], "still nobody's");
    let ledger = road.ok(&["ledger", "show", "412", "--format", "json"]).stdout;
    let ledger: Value = serde_json::from_str(&ledger).unwrap();
    let tip = env.git("repo", ["rev-parse", "topic"]);
    let entry = &ledger["commits"][&tip];
    assert_eq!(entry["item"], Value::Null);
    assert_eq!(entry["from"], env.git("repo", ["rev-parse", "before"]), "{ledger:#}");
}

#[test]
fn every_kind_of_change_without_lines_has_a_row_and_blocks() {
    for case in LINELESS {
        for item in ["P1", "none"] {
            let mut road = Road::new(&[]);
            road.env.git("repo", ["checkout", "-q", "main"]);
            (case.prepare)(&road);
            road.commit("prepared", &[("other", Some("one\n"))]);
            road.env.git("repo", ["checkout", "-q", "-B", "topic", "main"]);
            road.start(&[("P1", &[case.declared, "other"], &[])]);
            road.work("P1", &[("other", Some("two\n"))]);
            road.approve(&["P1"]);
            (case.make)(&road);
            commit(&road, "made", item);
            let name = format!("{} by {item}", case.change);
            let link = road.link();
            let blocked = road.blockers();
            if item == "P1" {
                assert!(row(&link, "P1").contains(&case.change.to_owned()), "{name}");
                assert_eq!(blocked[0], "Review 1 stale item", "{name}");
                assert_eq!(kinds(&road, "P1"), ["file-change"], "{name}");
                road.approve_with_warnings(&["P1"]);
            } else {
                assert_eq!(row(&link, "unplanned"), [case.change], "{name}");
                assert_eq!(blocked[0], "Resolve 1 unplanned change", "{name}");
                road.decide(|page| {
                    let mut decisions: Vec<_> = page
                        .warnings()
                        .into_iter()
                        .map(|(one, tag)| on(&one, json!({"type": "acknowledge", "tag": tag})))
                        .collect();
                    let found = &page.segments("unplanned")[0];
                    decisions.push(on(found, json!({"type": "accept"})));
                    decisions
                });
            }
            assert!(road.blockers().is_empty(), "{name}: {:?}", road.blockers());
        }
    }
}
