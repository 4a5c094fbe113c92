//! The local forge against real repositories.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use codeboost_schema::ids::CommitId;

use super::*;
use crate::config::MergeMethod;
use crate::forge::Guard;
use crate::forge::testing::Site;
use crate::git::identity::Identity;
use crate::git::merge::{self, Made, Recipe};

#[test]
fn one_push_moves_the_base_and_takes_the_head_away() {
    for (head_after, guard) in [
        (HeadAfter::Delete, Guard::PinnedPush),
        (HeadAfter::Move, Guard::PinnedPush),
        (HeadAfter::Keep, Guard::PinnedBase),
    ] {
        for method in [MergeMethod::Merge, MergeMethod::Squash] {
            let site = Site::new();
            let repository = site.world.repository();
            let forge = site.forge(&repository, Some("origin"));
            let commit = site.merge(method);
            let landing = site.landing(&commit, head_after);
            assert_eq!(forge.guard(&landing).expect("allowed"), guard);
            assert_eq!(forge.land(&landing, Guard::PinnedPush).expect("tried"), Reported::Accepted);
            assert_eq!(site.at(&site.remote(), "refs/heads/main"), commit.as_str());
            let left = match head_after {
                HeadAfter::Delete => "",
                HeadAfter::Move => commit.as_str(),
                HeadAfter::Keep => site.head.as_str(),
            };
            assert_eq!(site.at(&site.remote(), "refs/heads/topic"), left);
            let parents = site.world.git(["log", "-1", "--format=%P", commit.as_str()]);
            let wanted = match method {
                MergeMethod::Merge => format!("{} {}", site.base, site.head),
                MergeMethod::Squash => site.base.to_string(),
            };
            assert_eq!(parents, wanted);
            let tips = forge.read().expect("readable");
            assert_eq!((&tips.base, tips.head.is_some()), (&commit, !left.is_empty()));
        }
    }
}

#[test]
fn a_path_and_a_url_do_as_well_as_a_name() {
    let site = Site::new();
    let repository = site.world.repository();
    let path = site.remote().display().to_string();
    for spec in ["../remote.git", &path, &format!("file://{path}")] {
        let forge = site.forge(&repository, Some(spec));
        assert_eq!(forge.read().expect("readable").base, site.base, "{spec}");
        let tips = forge.fetch("refs/codeboost/test").expect("fetched");
        assert_eq!(tips.head.as_ref(), Some(&site.head), "{spec}");
        assert_eq!(site.at(site.world.root(), "refs/codeboost/test/base"), site.base.as_str());
    }
    for spec in ["nowhere", "--upload-pack=touch x", ""] {
        let options = LocalOptions {
            remote: Some(spec),
            base_ref: "refs/heads/main",
            head_ref: "refs/heads/topic",
            timeout: Duration::from_secs(60),
        };
        let error = Local::open(&repository, options).expect_err("no remote");
        assert!(error.to_string().contains("there is no remote"), "{error}");
    }
}

#[test]
fn a_base_that_follows_a_remote_names_the_remote() {
    let site = Site::new();
    site.world.git(["fetch", "-q", "origin"]);
    let repository = site.world.repository();
    let options = LocalOptions {
        remote: None,
        base_ref: "refs/remotes/origin/main",
        head_ref: "refs/heads/topic",
        timeout: Duration::from_secs(60),
    };
    let forge = Local::open(&repository, options).expect("a forge");
    assert_eq!(forge.place(), "the remote origin");
    assert_eq!((forge.base(), forge.head()), ("refs/heads/main", "refs/heads/topic"));
    let options = LocalOptions { base_ref: "refs/remotes/other/main", ..options };
    assert!(matches!(Local::open(&repository, options), Err(ForgeError::NotABranch(_))));
}

#[test]
fn a_ref_that_moves_inside_the_servers_window_stops_the_whole_push() {
    for (moved, to) in [("main", "refs/heads/topic"), ("topic", "refs/heads/main")] {
        for head_after in [HeadAfter::Delete, HeadAfter::Move] {
            let site = Site::new();
            let repository = site.world.repository();
            let forge = site.forge(&repository, Some("origin"));
            let commit = site.merge(MergeMethod::Merge);
            site.hook_that_moves(moved, to);
            let reported =
                forge.land(&site.landing(&commit, head_after), Guard::PinnedPush).expect("tried");
            let Reported::Refused(words) = reported else { panic!("{moved}: {reported:?}") };
            assert!(words.contains("cannot lock ref"), "{words}");
            assert_ne!(site.at(&site.remote(), "refs/heads/main"), commit.as_str());
            let both = [&site.base, &site.head].map(CommitId::as_str);
            let now = ["main", "topic"]
                .map(|name| site.at(&site.remote(), &format!("refs/heads/{name}")));
            assert_eq!(now[0], now[1], "the hook moved one onto the other");
            assert!(both.contains(&now[0].as_str()));
        }
    }
}

#[test]
fn a_stale_lease_sends_nothing() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge(&repository, Some("origin"));
    let commit = site.merge(MergeMethod::Merge);
    site.hook("pre-receive", "touch \"$PWD/asked\"");
    site.world.git(["push", "-q", "origin", "main:topic", "--force"]);
    std::fs::remove_file(site.remote().join("asked")).expect("the hook works");
    let reported =
        forge.land(&site.landing(&commit, HeadAfter::Delete), Guard::PinnedPush).expect("tried");
    assert!(
        matches!(&reported, Reported::Refused(words) if words.contains("stale info")),
        "{reported:?}"
    );
    assert!(!site.remote().join("asked").exists());
}

#[test]
fn the_servers_words_come_through_as_they_are() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge(&repository, Some("origin"));
    let commit = site.merge(MergeMethod::Merge);
    let landing = site.landing(&commit, HeadAfter::Delete);
    site.hook("update", "echo \"Rule 7: nobody moves $1 on a Friday.\" >&2; exit 1");
    let reported = forge.land(&landing, Guard::PinnedPush).expect("tried");
    let Reported::Refused(words) = reported else { panic!("{reported:?}") };
    assert!(words.contains("remote: Rule 7: nobody moves refs/heads/main on a Friday."), "{words}");
    assert!(words.contains("hook declined"), "{words}");

    site.hook("update", "exit 0");
    let remote = site.remote().display().to_string();
    site.world.git(["-C", &remote, "config", "receive.denyDeletes", "true"]);
    let reported = forge.land(&landing, Guard::PinnedPush).expect("tried");
    let Reported::Refused(words) = reported else { panic!("{reported:?}") };
    assert!(words.contains("denying ref deletion for refs/heads/topic"), "{words}");
    assert_eq!(site.at(&site.remote(), "refs/heads/main"), site.base.as_str());
}

#[test]
fn a_hook_that_hangs_is_ended_at_the_deadline_and_nothing_moved() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge_within(&repository, Some("origin"), Duration::from_secs(2));
    let commit = site.merge(MergeMethod::Merge);
    site.hook("pre-receive", "sleep 100");
    let started = Instant::now();
    let reported =
        forge.land(&site.landing(&commit, HeadAfter::Delete), Guard::PinnedPush).expect("tried");
    let Reported::Unclear(words) = reported else { panic!("{reported:?}") };
    assert!(words.starts_with("no answer within 2 seconds"), "{words}");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(site.at(&site.remote(), "refs/heads/main"), site.base.as_str());
}

#[test]
fn a_remote_that_is_gone_is_an_error_and_no_empty_answer() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge(&repository, Some("origin"));
    let commit = site.merge(MergeMethod::Merge);
    std::fs::remove_dir_all(site.remote()).expect("removed");
    let error = forge.read().expect_err("gone");
    assert!(error.to_string().starts_with("can't read origin: "), "{error}");
    assert!(forge.fetch("refs/codeboost/test").is_err());
    let reported =
        forge.land(&site.landing(&commit, HeadAfter::Delete), Guard::PinnedPush).expect("tried");
    assert!(matches!(reported, Reported::Unclear(_)), "{reported:?}");
}

#[test]
fn without_a_remote_one_transaction_compares_both() {
    for head_after in [HeadAfter::Delete, HeadAfter::Move, HeadAfter::Keep] {
        let site = Site::new();
        site.world.git(["switch", "-q", "--detach"]);
        let repository = site.world.repository();
        let forge = site.forge(&repository, None);
        let commit = site.merge(MergeMethod::Merge);
        let landing = site.landing(&commit, head_after);
        assert_eq!(forge.guard(&landing).expect("allowed"), Guard::RefTransaction);

        // Each moved ref alone stops it, the one that stays included.
        for (name, other) in [("main", &site.head), ("topic", &site.base)] {
            let name = format!("refs/heads/{name}");
            let before = site.at(site.world.root(), &name);
            site.world.git(["update-ref", &name, other.as_str()]);
            let reported = forge.land(&landing, Guard::PinnedPush).expect("tried");
            assert!(
                matches!(&reported, Reported::Refused(words) if words.contains("expected")),
                "{reported:?}"
            );
            site.world.git(["update-ref", &name, &before]);
        }

        assert_eq!(forge.land(&landing, Guard::PinnedPush).expect("tried"), Reported::Accepted);
        assert_eq!(site.at(site.world.root(), "refs/heads/main"), commit.as_str());
        let left = match head_after {
            HeadAfter::Delete => "",
            HeadAfter::Move => commit.as_str(),
            HeadAfter::Keep => site.head.as_str(),
        };
        assert_eq!(site.at(site.world.root(), "refs/heads/topic"), left);
    }
}

#[test]
fn a_base_that_a_work_tree_stands_on_is_not_moved() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge(&repository, None);
    let commit = site.merge(MergeMethod::Merge);
    let landing = site.landing(&commit, HeadAfter::Keep);
    assert!(forge.guard(&landing).is_ok(), "only topic is checked out");

    site.world.git(["worktree", "add", "-q", "../second", "main"]);
    let error = forge.guard(&landing).expect_err("checked out");
    assert!(
        error.to_string().contains("main is checked out in ")
            && error.to_string().contains("second"),
        "{error}"
    );
    site.world.git(["-C", "../second", "switch", "-q", "--detach"]);
    assert!(forge.guard(&landing).is_ok());

    // A branch that is being rebased is checked out nowhere, and yet in use.
    site.world.git(["worktree", "remove", "../second"]);
    site.world.git(["switch", "-q", "main"]);
    site.world.git(["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--root"]);
    assert!(forge.guard(&landing).is_err(), "main is being rebased");
    site.world.git(["rebase", "--abort"]);
}

#[test]
fn a_remote_with_a_work_tree_on_the_base_is_refused() {
    let site = Site::new();
    site.world.git(["clone", "-q", "../remote.git", "../clone"]);
    site.world.git(["-C", "../clone", "switch", "-q", "main"]);
    let repository = site.world.repository();
    let forge = site.forge(&repository, Some("../clone"));
    let commit = site.merge(MergeMethod::Merge);
    let landing = site.landing(&commit, HeadAfter::Keep);
    let error = forge.guard(&landing).expect_err("checked out there");
    assert!(error.to_string().ends_with("a work tree of the remote"), "{error}");
}

#[test]
fn a_conflict_names_its_files() {
    let site = Site::new();
    for (branch, text) in [("main", "one\n"), ("topic", "two\n")] {
        site.world.git(["switch", "-q", branch]);
        crate::stage::write(&site.world.root().join("f"), text.as_bytes()).expect("written");
        site.world.git(["add", "f"]);
        site.world.git(["commit", "-q", "-m", branch]);
    }
    let identity = Identity { name: "A".into(), email: "a@example.invalid".into() };
    let (base, head) = (site.world.commit_id("main"), site.world.commit_id("topic"));
    let made = merge::make(
        site.world.repository().git(),
        &Recipe {
            base: &base,
            head: &head,
            method: MergeMethod::Merge,
            message: "Land\n",
            identity: &identity,
            time: site.world.context.now(),
        },
    );
    assert_eq!(made.expect("git works"), Made::Conflict(vec!["f".into()]));
}

fn fixed(
    site: &Site,
    remote: Option<&str>,
    file: Option<&Path>,
    ours: &[&CommitId],
) -> AlreadyFixed {
    let repository = site.world.repository();
    let forge = site.forge(&repository, remote);
    let ours: BTreeSet<_> = ours.iter().copied().cloned().collect();
    forge.already_fixed(&FixQuestion {
        issue: 12,
        issue_file: file,
        since: &site.base,
        base: &site.world.commit_id("main"),
        ours: &ours,
        others: &[],
    })
}

#[test]
fn a_new_commit_of_the_base_that_names_the_issue_is_found_unless_it_is_ours() {
    let site = Site::new();
    assert_eq!(fixed(&site, None, None, &[]), AlreadyFixed::No);
    site.world.git(["switch", "-q", "main"]);
    site.world.git(["commit", "-q", "--allow-empty", "-m", "see #123 and other/repo#12"]);
    assert_eq!(fixed(&site, None, None, &[]), AlreadyFixed::No);
    site.world.git(["commit", "-q", "--allow-empty", "-m", "done\n\nFixes #12."]);
    let commit = site.world.commit_id("main");
    let AlreadyFixed::Found(found) = fixed(&site, None, None, &[]) else { panic!("not found") };
    assert_eq!(found, [Finding::Commit { commit: commit.clone(), subject: "done".into() }]);
    assert_eq!(fixed(&site, None, None, &[&commit]), AlreadyFixed::No);

    site.world.git(["commit", "-q", "--allow-empty", "-m", "https://h.example/me/it/issues/12"]);
    let ours = [&commit];
    assert!(matches!(fixed(&site, None, None, &ours), AlreadyFixed::Found(_)));
    site.world.git(["remote", "add", "hub", "https://h.example/me/other.git"]);
    assert_eq!(fixed(&site, Some("hub"), None, &ours), AlreadyFixed::No);
    site.world.git(["remote", "set-url", "hub", "https://h.example/me/it.git"]);
    assert!(matches!(fixed(&site, Some("hub"), None, &ours), AlreadyFixed::Found(_)));
}

#[test]
fn the_issues_file_says_whether_it_is_closed_and_doubt_is_unknown() {
    let site = Site::new();
    let file = site.world.root().join("issue.md");
    for (text, expected) in [
        ("# Title\nstate: closed\n", "no"),
        ("---\ntitle: x\n---\ntext\n", "no"),
        ("no title, no front matter", "no"),
        ("---\nstate: open\n---\n# Title\n", "no"),
        ("---\r\nstate: closed\r\n---\r\n# Title\r\n", "found"),
        ("---\ntitle: x\nstate: \"closed\"\n---\nstate: open\n", "found"),
        ("---\nstate: done\n---\n# Title\n", "unknown"),
        ("---\nstate: [closed]\n---\n", "unknown"),
        ("---\nstate: {\n---\n", "unknown"),
    ] {
        crate::stage::write(&file, text.as_bytes()).expect("written");
        let answer = match fixed(&site, None, Some(&file), &[]) {
            AlreadyFixed::No => "no",
            AlreadyFixed::Found(_) => "found",
            AlreadyFixed::Unknown(_) => "unknown",
        };
        assert_eq!(answer, expected, "{text:?}");
    }
    std::fs::remove_file(&file).expect("removed");
    assert!(matches!(fixed(&site, None, Some(&file), &[]), AlreadyFixed::Unknown(_)));
}

#[test]
fn a_base_that_cannot_be_read_is_unknown() {
    let site = Site::new();
    let repository = site.world.repository();
    let forge = site.forge(&repository, None);
    let missing = CommitId::parse(&"1".repeat(40)).expect("an id");
    let answer = forge.already_fixed(&FixQuestion {
        issue: 12,
        issue_file: None,
        since: &missing,
        base: &site.base,
        ours: &BTreeSet::new(),
        others: &[],
    });
    assert!(matches!(answer, AlreadyFixed::Unknown(_)), "{answer:?}");
}
