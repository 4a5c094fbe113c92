//! The merge from the command line: what lands, what keeps it from landing, and what a kill leaves.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Done;
use crate::support::road::Road;

/// Where a merge lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A bare repository next door.
    Remote,
    /// The repository itself.
    Here,
}

/// Two approved items, on a branch that is nowhere checked out.
pub(crate) fn ready(place: Place) -> Road {
    ready_with(place, "fn f() {\n    one();\n}\n", "fn f() {\n    one(1);\n}\n")
}

/// The same, with what P1 finds in `a.rs` and what it makes of it.
pub(crate) fn ready_with(place: Place, before: &str, after: &str) -> Road {
    let mut road = Road::new(&[("a.rs", before)]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["+b.rs"], &["P1"])]);
    road.work("P1", &[("a.rs", Some(after))]);
    road.work("P2", &[("b.rs", Some("fn b() {}\n"))]);
    if place == Place::Remote {
        road.env.git(".", ["clone", "-q", "--bare", "repo", "remote.git"]);
        road.env.git("remote.git", ["symbolic-ref", "HEAD", "refs/heads/main"]);
        road.env.git("repo", ["remote", "add", "origin", "../remote.git"]);
        configure(&road, "");
    }
    road.approve(&["P1", "P2"]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    road.keep();
    road
}

/// The local configuration of a repository with a remote.
fn configure(road: &Road, more: &str) {
    let config = format!("remote: origin\n{more}");
    road.env.write("repo/.git/codeboost/config.yaml", config);
}

pub(crate) fn folder(place: Place) -> &'static str {
    match place {
        Place::Remote => "remote.git",
        Place::Here => "repo",
    }
}

/// What a branch names there, or nothing.
pub(crate) fn tip(road: &Road, place: Place, branch: &str) -> String {
    let name = format!("refs/heads/{branch}");
    road.env.git(folder(place), ["for-each-ref", "--format=%(objectname)", &name])
}

pub(crate) fn here(road: &Road, name: &str) -> String {
    road.env.git("repo", ["rev-parse", name])
}

pub(crate) fn parents(road: &Road, place: Place, commit: &str) -> String {
    road.env.git(folder(place), ["log", "-1", "--format=%P", commit])
}

pub(crate) fn state(road: &Road) -> String {
    let done = road.ok(&["status", "412", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    value["tasks"][0]["state"].as_str().unwrap().to_owned()
}

/// The run, without what differs from run to run.
pub(crate) fn shown(road: &Road, done: &Done) -> String {
    let text = road.env.redact(&done.to_string());
    let seconds = |line: &str| {
        let words: Vec<_> = line.split("  ").collect();
        let timed = words.iter().map(|word| {
            let is_time = word.trim().strip_suffix(" s").is_some_and(|n| n.parse::<f64>().is_ok());
            if is_time { "[TIME]" } else { word }
        });
        timed.collect::<Vec<_>>().join("  ")
    };
    text.lines().map(seconds).collect::<Vec<_>>().join("\n")
}

fn hook(road: &Road, name: &str, script: &str) {
    let path = format!("remote.git/hooks/{name}");
    road.env.write(&path, format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(road.env.path(path), mode).unwrap();
}

/// What somebody else's push does while ours is in the server's hands.
fn move_in_the_window(road: &Road, branch: &str, to: &str) {
    let outside = "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES";
    hook(road, "pre-receive", &format!("{outside}\ngit update-ref refs/heads/{branch} {to}"));
}

/// A commit of somebody else on top of a branch of the remote, pushed or only brought there.
pub(crate) fn theirs(road: &Road, branch: &str, push: bool) -> String {
    let env = &road.env;
    let _ = std::fs::remove_dir_all(env.path("theirs"));
    env.git(".", ["clone", "-q", "-b", branch, "remote.git", "theirs"]);
    env.write("theirs/theirs.txt", "theirs\n");
    env.git("theirs", ["add", "-A"]);
    env.git("theirs", ["commit", "-q", "-m", "theirs"]);
    let to = if push { branch } else { "elsewhere" };
    env.git("theirs", ["push", "-q", "origin", &format!("HEAD:refs/heads/{to}")]);
    env.git("theirs", ["rev-parse", "HEAD"])
}

/// What holds after every merge: one commit more on the base, made from the reviewed pair, and
/// nothing here has moved that a person stands on.
pub(crate) fn assert_landed(
    road: &Road,
    place: Place,
    pair: &(String, String),
    name: &str,
) -> String {
    let (base, head) = pair;
    let commit = tip(road, place, "main");
    assert_eq!(parents(road, place, &commit), format!("{base} {head}"), "{name}");
    assert_eq!(state(road), "merged", "{name}");
    let tree = |of: &str| road.env.git(folder(place), ["rev-parse", &format!("{of}^{{tree}}")]);
    assert_eq!(tree(&commit), tree(head), "{name}");
    road.env.git("repo", ["fsck", "--strict", "--no-dangling"]);
    let log = road.ok(&["log", "412", "--format", "json"]).stdout;
    assert_eq!(log.matches("→ merged: ").count(), 1, "{name}: {log}");
    commit
}

pub(crate) fn pair(road: &Road) -> (String, String) {
    (here(road, "main"), here(road, "topic"))
}

#[test]
fn the_reviewed_pair_lands_and_nothing_else_moves() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let before = pair(&road);
        let done = road.run(&["merge", "412"]);
        assert_snapshot!(format!("lands_{place:?}"), shown(&road, &done));
        assert_eq!(done.code, 0);
        let commit = assert_landed(&road, place, &before, "landed");
        assert_eq!(tip(&road, place, "topic"), "", "deleted in the same step");
        if place == Place::Remote {
            assert_eq!(pair(&road), before, "branches here");
        }
        let message = road.env.git(folder(place), ["log", "-1", "--format=%B", &commit]);
        assert_snapshot!("message_of_merge", message);
        assert_snapshot!(
            format!("log_{place:?}"),
            road.env.redact(&road.ok(&["log", "412"]).stdout)
        );
        // Once more: nothing to do, said so.
        let again = road.run(&["merge", "412"]);
        assert_eq!(again.code, 0, "{again}");
        assert_snapshot!(format!("again_{place:?}"), shown(&road, &again));
        assert_eq!(tip(&road, place, "main"), commit);
        road.ok(&["task", "remove", "412"]);
    }
}

#[test]
fn a_squash_has_the_base_as_its_only_parent() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let (base, head) = pair(&road);
        let done = road.run(&["merge", "412", "--squash", "--format", "json"]);
        assert_eq!(done.code, 0, "{done}");
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        let commit = tip(&road, place, "main");
        assert_eq!(report["ending"]["outcome"], "merged");
        assert_eq!(report["ending"]["commit"], commit.as_str());
        assert_eq!(report["ending"]["base"], base.as_str());
        assert_eq!(report["ending"]["head"], head.as_str());
        assert_eq!(report["steps"].as_array().unwrap().len(), 7);
        assert_eq!(parents(&road, place, &commit), base);
        let tree = |of: &str| road.env.git(folder(place), ["rev-parse", &format!("{of}^{{tree}}")]);
        assert_eq!(tree(&commit), tree(&head));
        assert_eq!(state(&road), "merged");
        let message = road.env.git(folder(place), ["log", "-1", "--format=%B", &commit]);
        assert_snapshot!("message_of_squash", message);
    }
}

#[test]
fn the_heads_branch_is_deleted_moved_or_kept_as_configured() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let (_, head) = pair(&road);
        for (what, args) in
            [("delete", &[][..]), ("move", &[]), ("keep", &[]), ("move", &["--keep-head"])]
        {
            road.again();
            let config = format!("merge:\n  head: {what}\n");
            match place {
                Place::Remote => configure(&road, &config),
                Place::Here => road.env.write("repo/.git/codeboost/config.yaml", config),
            }
            let done = road.ok(&[&["merge", "412"], args].concat());
            let wanted = match what {
                _ if !args.is_empty() => head.clone(),
                "delete" => String::new(),
                "move" => tip(&road, place, "main"),
                _ => head.clone(),
            };
            assert_eq!(tip(&road, place, "topic"), wanted, "{place:?} {what}: {done}");
        }
    }
}

#[test]
fn a_branch_that_is_checked_out_here_is_never_moved() {
    let road = ready(Place::Here);
    let before = pair(&road);
    road.env.git("repo", ["checkout", "-q", "main"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("base_checked_out", shown(&road, &done));
    assert_eq!(pair(&road), before);
    // A head that is checked out stays, and what was reviewed lands all the same.
    road.env.git("repo", ["checkout", "-q", "topic"]);
    let status = road.env.git("repo", ["status", "--porcelain=v2", "--branch"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 0, "{done}");
    assert_snapshot!("head_checked_out", shown(&road, &done));
    assert_landed(&road, Place::Here, &before, "head checked out");
    assert_eq!(road.env.git("repo", ["status", "--porcelain=v2", "--branch"]), status);
}

#[test]
fn each_blocker_keeps_it_from_landing() {
    let road = ready(Place::Remote);
    let refuse = |name: &str, words: &[&str]| {
        let base = tip(&road, Place::Remote, "main");
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 3, "{name}: {done}");
        for words in words {
            assert!(done.stdout.contains(&format!("\n  {words}\n")), "{name}: {done}");
        }
        assert_eq!(tip(&road, Place::Remote, "main"), base, "{name}");
        assert_eq!(state(&road), "in review", "{name}");
        done
    };
    road.ok(&["withdraw", "412", "P2"]);
    let done = refuse("unreviewed", &["Review 1 unreviewed item"]);
    assert_snapshot!("blocked", shown(&road, &done));

    road.again();
    road.ok(&["request", "412", "P1", "--text", "Less."]);
    refuse("a change request", &["Send 1 pending change request"]);

    road.again();
    road.env.git("repo", ["checkout", "-q", "topic"]);
    road.work("P1", &[("a.rs", Some("fn f() {\n    one(2);\n}\n"))]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    road.review();
    refuse("stale", &["Review 2 stale items"]);

    road.again();
    road.env.git("repo", ["checkout", "-q", "topic"]);
    road.commit("stray", &[("a.rs", Some("fn f() {\n    one(1);\n    stray();\n}\n"))]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    road.review();
    refuse("unplanned", &["Resolve 1 unplanned change"]);

    road.again();
    road.ok(&["publish", "412", "--draft"]);
    refuse("a draft", &["Publish it as ready: it is a draft"]);
}

#[test]
fn a_head_that_moved_goes_back_to_review() {
    // On the remote.
    let road = ready(Place::Remote);
    let (base, head) = pair(&road);
    let there = theirs(&road, "topic", true);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("head_moved_there", shown(&road, &done));
    assert_eq!(tip(&road, Place::Remote, "main"), base);
    assert_eq!(state(&road), "in review");
    // Followed as the hint says, their commit is unplanned and blocks.
    road.env.git("repo", ["fetch", "-q", "origin"]);
    road.env.git("repo", ["branch", "-q", "-f", "topic", &there]);
    let done = road.run(&["run", "412"]);
    assert_eq!(road.blockers(), ["Resolve 1 unplanned change"], "{done}");
    assert_eq!(road.run(&["merge", "412"]).code, 3);
    assert_eq!(tip(&road, Place::Remote, "main"), base);

    // Here, with nothing looked at since.
    road.again();
    let tree = here(&road, "topic^{tree}");
    let more = road.env.git("repo", ["commit-tree", "-p", "topic", "-m", "more", &tree]);
    road.env.git("repo", ["branch", "-q", "-f", "topic", &more]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(done.stdout.contains(&format!("the head moved from {head:.12} to {more:.12}")));
    assert_eq!(tip(&road, Place::Remote, "main"), base);

    // Gone altogether.
    road.again();
    road.env.git("repo", ["branch", "-q", "-D", "topic"]);
    road.env.git("remote.git", ["branch", "-q", "-D", "topic"]);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("head_gone", shown(&road, &done));
}

#[test]
fn a_base_that_moved_is_refused_where_it_is_asked_for_and_the_way_on_leads_to_the_merge() {
    for place in [Place::Remote, Place::Here] {
        let road = ready(place);
        let (base, _) = pair(&road);
        let moved = match place {
            Place::Remote => theirs(&road, "main", true),
            Place::Here => {
                road.env.git("repo", ["checkout", "-q", "main"]);
                let commit = road.commit("theirs", &[("theirs.txt", Some("theirs\n"))]);
                road.env.git("repo", ["checkout", "-q", "--detach"]);
                commit
            }
        };
        let done = road.run(&["merge", "412", "--no-rebase"]);
        assert_eq!(done.code, 3, "{done}");
        assert_snapshot!(format!("base_moved_{place:?}"), shown(&road, &done));
        assert_eq!(tip(&road, place, "main"), moved);
        assert_eq!(state(&road), "in review");
        // The hint, word for word.
        for line in done.stderr.lines() {
            let line = line.trim_start_matches("Next: ").split(", ").next().unwrap();
            let line = line.replace("codeboost", env!("CARGO_BIN_EXE_codeboost"));
            let mut shell = road.env.command("sh", "repo");
            let done = road.env.finish(shell.args(["-c", &line]));
            assert_eq!(done.code, 0, "{line}: {done}");
        }
        road.env.git("repo", ["checkout", "-q", "--detach"]);
        assert!(road.blockers().is_empty(), "nothing that was approved changed");
        let before = pair(&road);
        assert_ne!(before.0, base);
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 0, "{done}");
        assert_landed(&road, place, &before, "after the rebase");
    }
}

#[test]
fn what_moves_inside_the_servers_window_keeps_it_out() {
    for branch in ["main", "topic"] {
        let road = ready(Place::Remote);
        let before = pair(&road);
        let moved = theirs(&road, branch, false);
        move_in_the_window(&road, branch, &moved);
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 3, "{branch}: {done}");
        assert_snapshot!(format!("window_{branch}"), shown(&road, &done));
        assert_eq!(tip(&road, Place::Remote, branch), moved, "theirs stands");
        if branch == "topic" {
            assert_eq!(tip(&road, Place::Remote, "main"), before.0, "nothing landed");
        }
        assert_eq!(state(&road), "in review");
        // The hook moves nothing any more, and theirs is still there: refused again.
        hook(&road, "pre-receive", "exit 0");
        assert_eq!(road.run(&["merge", "412", "--no-rebase"]).code, 3);
        // Once it is as it was reviewed, the next run lands it.
        let was = if branch == "main" { &before.0 } else { &before.1 };
        road.env.git("remote.git", ["update-ref", &format!("refs/heads/{branch}"), was]);
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 0, "{branch}: {done}");
        assert_landed(&road, Place::Remote, &before, branch);
    }
}

#[test]
fn a_refusal_of_the_server_is_shown_word_for_word() {
    let road = ready(Place::Remote);
    let before = pair(&road);
    hook(
        &road,
        "pre-receive",
        "printf 'Not on Fridays.\\nAsk \\033[31mAnn\\033[0m.\\n' >&2\nexit 1",
    );
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 3, "{done}");
    assert!(!done.stdout.contains('\u{1b}'), "no terminal control: {done:?}");
    assert_snapshot!("refused", shown(&road, &done));
    assert_eq!(state(&road), "approved, merge blocked");
    assert_eq!(tip(&road, Place::Remote, "main"), before.0);
    assert_eq!(tip(&road, Place::Remote, "topic"), before.1);
    let page = road.page();
    assert!(page.index.contains("Not on Fridays."), "the next page tells of it");
    hook(&road, "pre-receive", "exit 0");
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 0, "{done}");
    assert_landed(&road, Place::Remote, &before, "allowed");
}

#[test]
fn what_seems_to_be_fixed_waits_for_a_person() {
    let mut road = Road::new(&[("a.rs", "one();\n")]);
    road.start(&[("P1", &["a.rs"], &[])]);
    // While it was worked on, the base got a fix, and the branch was rebased onto it.
    road.env.git("repo", ["checkout", "-q", "main"]);
    road.commit("Fixes #412 another way", &[("other", Some("other\n"))]);
    road.env.git("repo", ["checkout", "-q", "-B", "topic", "main"]);
    road.work("P1", &[("a.rs", Some("one(1);\n"))]);
    road.approve(&["P1"]);
    road.env.git("repo", ["checkout", "-q", "--detach"]);
    let before = pair(&road);
    let done = road.run(&["merge", "412"]);
    assert_eq!(done.code, 4, "{done}");
    assert_snapshot!("fixed", shown(&road, &done));
    assert_eq!(state(&road), "possibly already fixed");
    assert_eq!(pair(&road), before);
    let again = road.run(&["merge", "412"]);
    assert_eq!(again.code, 4, "{again}");
    assert_snapshot!("fixed_again", shown(&road, &again));
    assert_eq!(pair(&road), before);
    let done = road.run(&["merge", "412", "--not-fixed"]);
    assert_eq!(done.code, 0, "{done}");
    assert_landed(&road, Place::Here, &before, "a person has looked");
}

#[test]
fn killed_between_any_two_steps_it_lands_exactly_once_on_a_remote() {
    killed(Place::Remote);
}

#[test]
fn killed_between_any_two_steps_it_lands_exactly_once_without_a_remote() {
    killed(Place::Here);
}

fn killed(place: Place) {
    let mut road = ready(place);
    let before = pair(&road);
    road.killed_everywhere(&["merge", "412"], |road, name| {
        let landed = tip(road, place, "main");
        let done = road.run(&["merge", "412"]);
        assert_eq!(done.code, 0, "{name}: {done}");
        let commit = assert_landed(road, place, &before, name);
        if landed != before.0 {
            assert_eq!(commit, landed, "{name}: landed twice");
        }
    });
}

#[test]
fn two_runs_at_once_land_it_once() {
    let road = ready(Place::Remote);
    let before = pair(&road);
    let start = || {
        let mut command = road.env.codeboost("repo", ["merge", "412"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    let codes: Vec<_> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    assert!(codes.contains(&0), "{codes:?}");
    assert!(codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
    assert_landed(&road, Place::Remote, &before, "once");
}

#[test]
fn a_merge_that_a_page_asks_for_is_carried_out_once() {
    let road = ready(Place::Remote);
    let before = pair(&road);
    let page = road.page();
    road.save(&page, &[road.decision(json!({"type": "merge"}))]);
    let first = road.run(&["apply", "../decisions.json", "--record-only"]);
    assert_eq!(first.code, 0, "{first}");
    assert_eq!(tip(&road, Place::Remote, "main"), before.0);
    let done = road.run(&["apply", "../decisions.json", "--format", "json"]);
    assert_eq!(done.code, 0, "{done}");
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    let found = codeboost_schema::registry::violations(codeboost_schema::answers::SCHEMA, &value);
    assert_eq!(found, [], "{done}");
    assert_eq!(value["merge"]["ending"]["outcome"], "merged");
    let commit = assert_landed(&road, Place::Remote, &before, "asked for");
    let done = road.run(&["apply", "../decisions.json", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value["merge"], Value::Null, "carried out before: {done}");
    assert_eq!(tip(&road, Place::Remote, "main"), commit);

    // One that was refused is over: the same file does not try again.
    road.again();
    road.save(&road.page(), &[road.decision(json!({"type": "merge"}))]);
    hook(&road, "pre-receive", "echo no >&2; exit 1");
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!("apply_refused", shown(&road, &done));
    hook(&road, "pre-receive", "exit 0");
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(tip(&road, Place::Remote, "main"), before.0, "{done}");
}

#[test]
fn a_file_with_everything_lands_and_killed_anywhere_lands_once() {
    let mut road = ready(Place::Remote);
    road.ok(&["withdraw", "412", "P1"]);
    road.ok(&["withdraw", "412", "P2"]);
    road.keep();
    let before = pair(&road);
    let decisions = [
        json!({"type": "approve", "item": "P1"}),
        json!({"type": "approve", "item": "P2"}),
        json!({"type": "merge"}),
    ];
    let decisions: Vec<_> = decisions.into_iter().map(|one| road.decision(one)).collect();
    road.save(&road.page(), &decisions);
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 0, "{done}");
    assert_snapshot!("apply_merges", shown(&road, &done));
    assert_landed(&road, Place::Remote, &before, "in one file");
    road.killed_everywhere(&["apply", "../decisions.json"], |road, name| {
        let log = || road.ok(&["log", "412", "--format", "json"]).stdout;
        let n_decisions = || log().matches("\"kind\": \"decision\"").count();
        let recorded = n_decisions();
        assert!([4, 7].contains(&recorded), "{name}: all or nothing, {recorded}");
        let (lines, done) = road.apply();
        assert_eq!(lines.len(), 3, "{name}: {done}");
        let word = if recorded == 7 { "already " } else { "applied " };
        assert!(lines.iter().all(|line| line.starts_with(word)), "{name}: {lines:?}");
        assert_eq!(done.code, 0, "{name}: {done}");
        assert_eq!(n_decisions(), 7, "{name}");
        assert_landed(road, Place::Remote, &before, name);
    });
}
