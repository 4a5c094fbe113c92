//! The state stays whole: under abrupt ends, under several processes, and in the wrong hands.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Child;

use insta::assert_snapshot;

use crate::support::TestEnv;

fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.git("repo", ["commit", "-q", "--allow-empty", "-m", "first"]);
    env
}

/// What a whole state answers: the tasks and the story that led to them, and that nothing is wrong.
fn look(env: &TestEnv) -> (String, String) {
    let done = env.run_in("repo", ["doctor"]);
    assert_eq!(done.code, 0, "{done}");
    let list = env.run_in("repo", ["task", "list", "--format", "json"]);
    let log = env.run_in("repo", ["log", "--format", "json"]);
    assert_eq!((list.code, log.code), (0, 0), "{list}\n{log}");
    (list.stdout, log.stdout)
}

#[test]
fn a_process_that_is_killed_around_the_commit_leaves_the_old_state_or_the_new_one() {
    for (point, is_done) in [("store-before-commit", false), ("store-after-commit", true)] {
        let mut env = repo();
        assert_eq!(env.run_in("repo", ["init"]).code, 0);
        let before = look(&env);
        env.set("CODEBOOST_CRASH_AT", point);
        let args = ["task", "add", "5", "--base", "main"];
        assert_eq!(env.run_in("repo", args).code, -1, "ended by a signal");
        env.set("CODEBOOST_CRASH_AT", "");
        let after = look(&env);
        assert_eq!(after != before, is_done, "{point}");
        // The log and the tasks agree, and the next run goes on from there.
        assert_eq!(after.0.contains("\"issue\": 5"), after.1.contains("task-added"));
        let again = env.run_in("repo", args);
        assert_eq!(again.code, i32::from(is_done), "{again}");
        let branches = env.git("repo", ["branch", "--list", "codeboost/*"]);
        assert_eq!(branches.lines().count(), 1, "the left branch is taken over: {branches}");
    }
}

#[test]
fn an_init_that_is_killed_is_made_whole_by_the_next() {
    for point in ["store-before-commit", "store-after-commit"] {
        let mut env = repo();
        env.set("CODEBOOST_CRASH_AT", point);
        assert_eq!(env.run_in("repo", ["init"]).code, -1);
        env.set("CODEBOOST_CRASH_AT", "");
        assert_eq!(env.run_in("repo", ["init"]).code, 0);
        look(&env);
        let show = env.run_in("repo", ["key", "show"]);
        assert!(!show.stdout.contains("no key"), "{show}");
    }
}

#[test]
fn processes_that_are_killed_at_any_time_never_tear_the_state() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    for round in 0..12_u64 {
        let mut running: Vec<Child> = (0..4)
            .map(|n| {
                let issue = (round * 4 + n + 1).to_string();
                env.codeboost("repo", ["task", "add", &issue, "--base", "main", "-q"])
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(round * 7));
        for child in &mut running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let (list, log) = look(&env);
        assert_eq!(
            list.matches("\"plan_id\"").count(),
            log.matches("\"task-added\"").count(),
            "each task has its story"
        );
    }
}

#[test]
fn many_processes_write_at_once_and_each_is_recorded_once() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    let running: Vec<Child> = (1..=16_u32)
        .map(|n| {
            // Two processes per issue: one wins.
            let issue = n.div_ceil(2).to_string();
            env.codeboost("repo", ["task", "add", &issue, "--base", "main", "-q"])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<_> =
        running.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    for pair in codes.chunks(2) {
        assert_eq!(pair.iter().sum::<i32>(), 1, "one of two: {codes:?}");
    }
    let (_, log) = look(&env);
    assert_eq!(log.matches("\"task-added\"").count(), 8);
}

#[test]
fn linked_worktrees_share_the_state_and_cleaning_one_keeps_it() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    env.git("repo", ["worktree", "add", "-q", "../linked"]);
    let done = env.run_in("linked", ["task", "add", "5", "--base", "main"]);
    assert_eq!(done.code, 0, "{done}");
    let list = |folder| env.run_in(folder, ["task", "list"]).stdout;
    assert_eq!(list("linked"), list("repo"));
    env.git("repo", ["clean", "-q", "-ffdx"]);
    env.git("repo", ["worktree", "remove", "--force", "../linked"]);
    assert!(list("repo").starts_with("#5"));
}

#[test]
fn a_state_in_the_wrong_hands_or_form_is_refused_with_the_next_step() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    let folder = env.path("repo/.git/codeboost");
    let list = || env.redact(&env.run_in("repo", ["task", "list"]).to_string());
    let chmod = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&folder, 0o755);
    assert_snapshot!("state_folder_open_to_others", list());
    chmod(&folder, 0o700);
    chmod(&folder.join("state.db"), 0o664);
    assert_snapshot!("state_file_open_to_others", list());
    chmod(&folder.join("state.db"), 0o600);

    let moved = env.path("moved");
    std::fs::rename(&folder, &moved).unwrap();
    symlink(&moved, &folder).unwrap();
    assert_snapshot!("state_folder_is_a_link", list());
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&moved, &folder).unwrap();

    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("state.db{suffix}")));
    }
    // The version stands in bytes 60 to 63 of the file.
    let mut bytes = std::fs::read(folder.join("state.db")).unwrap();
    bytes[60..64].copy_from_slice(&9000_u32.to_be_bytes());
    std::fs::write(folder.join("state.db"), &bytes).unwrap();
    assert_snapshot!("state_of_a_newer_version", list());
    std::fs::write(folder.join("state.db"), "no database, but longer than a header".repeat(99))
        .unwrap();
    assert_snapshot!("state_is_no_database", list());
}

#[test]
fn a_task_that_another_run_holds_answers_3_and_changes_nothing() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    assert_eq!(env.run_in("repo", ["task", "add", "5", "--base", "main"]).code, 0);
    let list = env.run_in("repo", ["task", "list", "--format", "json"]).stdout;
    let id = list.split("\"id\": \"").nth(1).unwrap().split('"').next().unwrap();
    let path = env.path(format!("repo/.git/codeboost/locks/task-{id}.lock"));
    std::fs::write(&path, "execute, process 4711, since 2026-11-30T11:00:00Z\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.lock().unwrap();
    assert_snapshot!("task_is_held", env.run_in("repo", ["task", "cancel"]));
    assert_eq!(env.run_in("repo", ["task", "list", "--format", "json"]).stdout, list);
    drop(file);
    assert_eq!(env.run_in("repo", ["task", "cancel"]).code, 0, "a lock ends with its holder");
}
