//! A base that moved: the head is brought onto it, and what was approved stays approved only where
//! it is still the same.

use insta::assert_snapshot;
use serde_json::Value;

use crate::merge::{
    Place, assert_landed, folder, here, pair, ready, ready_with, shown, state, theirs, tip,
};
use crate::support::road::Road;

/// Moves the base, with these files, where the merge happens.
fn move_base(road: &Road, place: Place, files: &[(&str, &str)]) -> String {
    let env = &road.env;
    let folder = match place {
        Place::Remote => {
            let _ = std::fs::remove_dir_all(env.path("theirs"));
            env.git(".", ["clone", "-q", "-b", "main", "remote.git", "theirs"]);
            "theirs"
        }
        Place::Here => {
            env.git("repo", ["checkout", "-q", "main"]);
            "repo"
        }
    };
    for (path, text) in files {
        env.write(format!("{folder}/{path}"), text);
    }
    env.git(folder, ["add", "-A"]);
    env.git(folder, ["commit", "-q", "-m", "theirs"]);
    let moved = env.git(folder, ["rev-parse", "HEAD"]);
    match place {
        Place::Remote => drop(env.git(folder, ["push", "-q", "origin", "main"])),
        Place::Here => drop(env.git(folder, ["checkout", "-q", "--detach"])),
    }
    moved
}

/// What git itself makes of the same commits on that base, in a clone: id of the tree, and what
/// each commit says of its author and itself.
fn rebased_by_git(road: &Road, place: Place, old: &(String, String), onto: &str) -> String {
    let env = &road.env;
    let _ = std::fs::remove_dir_all(env.path("oracle"));
    env.git(".", ["clone", "-q", "repo", "oracle"]);
    if place == Place::Remote {
        env.git("oracle", ["fetch", "-q", "../remote.git", onto]);
    }
    env.git("oracle", ["checkout", "-q", "--detach", &old.1]);
    env.git("oracle", ["rebase", "-q", "--empty=keep", "--onto", onto, &old.0]);
    env.git("oracle", ["log", "--format=%T %an %ae %at %B", &format!("{onto}..HEAD")])
}

#[test]
fn a_head_is_brought_onto_a_base_that_moved_and_lands_with_its_approvals() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let old = pair(&road);
        // In the file of P1, but elsewhere in it; and a new one.
        let text = "// theirs\nfn f() {\n    one();\n}\n";
        let moved = move_base(&road, place, &[("theirs.txt", "theirs\n"), ("c.rs", text)]);
        let expected = rebased_by_git(&road, place, &old, &moved);
        let done = road.run(&["merge", "412"]);
        assert_snapshot!(format!("lands_rebased_{place:?}"), shown(&road, &done));
        assert_eq!(done.code, 0, "{done}");
        let commit = tip(&road, place, "main");
        let head = road.env.git(folder(place), ["rev-parse", &format!("{commit}^2")]);
        assert_landed(&road, place, &(moved.clone(), head.clone()), "rebased");
        let range = format!("{moved}..{head}");
        let log = road.env.git(folder(place), ["log", "--format=%T %an %ae %at %B", &range]);
        assert_eq!(log, expected, "the commits that git would have made");
        let shown = road.ok(&["ledger", "show", "412", "--format", "json"]).stdout;
        let ledger: Value = serde_json::from_str(&shown).unwrap();
        let entry = |id: &str| ledger["commits"][id].clone();
        assert_eq!(entry(&head)["item"], "P2", "{ledger}");
        assert_eq!(entry(&head)["origin"], "rebased");
        assert_eq!(entry(&head)["from"], old.1);
    }
}

#[test]
fn a_head_that_is_no_more_what_was_approved_goes_back_to_review() {
    let body = "    zero();\n    zero();\n    zero();\n    zero();\n";
    let text = |name: &str, last: &str| format!("fn {name}() {{\n{body}{last}}}\n");
    let road = ready_with(Place::Remote, &text("f", "    one();\n"), &text("f", "    one(1);\n"));
    let old = pair(&road);
    // The function that P1's change stands in gets another name.
    let moved = move_base(&road, Place::Remote, &[("a.rs", &text("g", "    one();\n"))]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("stale_after_the_rebase", shown(&road, &done));
    assert_eq!(state(&road), "in review");
    assert_eq!(tip(&road, Place::Remote, "main"), moved, "nothing landed");
    let head = here(&road, "topic");
    assert_ne!(head, old.1);
    assert_eq!(tip(&road, Place::Remote, "topic"), head, "what is reviewed is there to see");
    // The base here lags behind, which is nothing to review.
    assert_eq!(here(&road, "main"), old.0);
    road.ok(&["run", "412"]);
    let states = road.states();
    assert_eq!((&*states["P1"], &*states["P2"]), ("stale", "stale"), "{states:?}");
    assert!(road.blockers().iter().all(|words| !words.contains("moved")), "{:?}", road.blockers());
    road.approve(&["P1", "P2"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 0, "{done}");
    assert_landed(&road, Place::Remote, &(moved, head), "reviewed again");
}

#[test]
fn a_conflict_names_commit_author_and_files_and_changes_nothing() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let old = pair(&road);
        let text = "fn f() {\n    two();\n}\n";
        let moved = move_base(&road, place, &[("a.rs", text), ("b.rs", "fn c() {}\n")]);
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 4, "{done}");
        assert_snapshot!(format!("conflict_{place:?}"), shown(&road, &done));
        assert_eq!(state(&road), "needs human");
        assert_eq!(here(&road, "topic"), old.1);
        assert_eq!(tip(&road, place, "topic"), old.1);
        assert_eq!(tip(&road, place, "main"), moved);
        // Tried again, it says so again.
        let done = road.run(&["merge", "412"]);
        assert_eq!((done.code, state(&road)), (4, "needs human".to_owned()), "{done}");

        // Resolved by hand, as the hint says, it is reviewed and lands.
        let env = &road.env;
        if place == Place::Remote {
            env.git("repo", ["fetch", "-q", "origin", "main:main"]);
        }
        env.git("repo", ["branch", "-q", "topic-before", "topic"]);
        let rebase = ["-c", "core.editor=true", "rebase", "-q", "-X", "theirs", "main", "topic"];
        env.git("repo", rebase);
        let range = format!("{:.12}..topic-before", old.0);
        road.ok(&["ledger", "map", &range, "main..topic"]);
        env.git("repo", ["checkout", "-q", "--detach"]);
        if place == Place::Remote {
            let lease = format!("--force-with-lease=topic:{:.12}", old.1);
            env.git("repo", ["push", "-q", &lease, "origin", "topic"]);
        }
        road.ok(&["run", "412"]);
        assert_eq!(state(&road), "in review");
        road.approve(&["P1", "P2"]);
        let pair = pair(&road);
        assert_eq!(pair.0, moved);
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 0, "{done}");
        assert_landed(&road, place, &pair, "resolved by hand");
    }
}

#[test]
fn killed_anywhere_a_rebase_is_done_once_or_not_at_all_and_lands() {
    let place = Place::Remote;
    let mut road = ready(place);
    let old = pair(&road);
    let moved = move_base(&road, place, &[("theirs.txt", "theirs\n")]);
    road.keep();
    road.killed_everywhere(&["merge", "412"], |road, name| {
        let landed = tip(road, place, "main");
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 0, "{name}: {done}");
        let commit = tip(road, place, "main");
        let head = road.env.git(folder(place), ["rev-parse", &format!("{commit}^2")]);
        assert_landed(road, place, &(moved.clone(), head.clone()), name);
        assert_ne!(head, old.1);
        if landed != moved {
            assert_eq!(commit, landed, "{name}: landed twice");
        }
    });
}

#[test]
fn what_stands_in_the_way_of_a_rebase_is_named_and_nothing_moves() {
    // Checked out.
    let road = ready(Place::Remote);
    let old = pair(&road);
    move_base(&road, Place::Remote, &[("theirs.txt", "theirs\n")]);
    road.env.git("repo", ["checkout", "-q", "topic"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("rebase_of_a_checked_out_branch", shown(&road, &done));
    assert_eq!(pair(&road), old);

    // A merge in the range.
    road.env.git("repo", ["checkout", "-q", "-b", "side", "main"]);
    road.commit("side", &[("side.txt", Some("side\n"))]);
    road.env.git("repo", ["checkout", "-q", "topic"]);
    road.env.git("repo", ["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    road.env.git("repo", ["push", "-q", "origin", "topic"]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    let head = here(&road, "topic");
    road.ok(&["run", "412"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stdout.contains("is a merge: replaying it would lose"), "{done}");
    assert_eq!(here(&road, "topic"), head);
    assert_eq!(state(&road), "in review");

    // Somebody else's push to the head meanwhile.
    let road = ready(Place::Remote);
    move_base(&road, Place::Remote, &[("theirs.txt", "theirs\n")]);
    let pushed = theirs(&road, "topic", true);
    let old = pair(&road);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stdout.contains("the head moved"), "{done}");
    assert_eq!((pair(&road), tip(&road, Place::Remote, "topic")), (old, pushed));
}

#[test]
fn run_brings_a_branch_of_ours_onto_its_base_before_it_is_first_shown_and_others_when_asked() {
    let road = ready(Place::Here);
    let old = pair(&road);
    let moved = move_base(&road, Place::Here, &[("theirs.txt", "theirs\n")]);
    let done = road.ok(&["run", "412"]);
    assert!(!done.stdout.contains("rebase"), "a branch that somebody made stays: {done}");
    assert_eq!(here(&road, "topic"), old.1);
    assert!(road.blockers().iter().any(|words| words.contains("base moved")));
    let done = road.ok(&["run", "412", "--rebase"]);
    assert_snapshot!("run_rebase", shown(&road, &done));
    assert_ne!(here(&road, "topic"), old.1);
    assert!(road.env.git("repo", ["merge-base", "main", "topic"]) == moved);
    assert!(road.blockers().is_empty(), "{:?}", road.blockers());
    let done = road.ok(&["run", "412", "--rebase"]);
    assert!(!done.stdout.contains("rebase"), "{done}");
}
