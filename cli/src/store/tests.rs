//! What the state promises as a whole.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::store::testing::World;
use crate::store::{Event, Store, StoreError};
use crate::task::{Actor, TaskState};

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    std::fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
}

#[test]
fn there_is_no_state_before_it_is_made_and_making_it_twice_keeps_it() {
    let world = World::new();
    let repository = world.repository();
    assert!(matches!(Store::open(&repository), Err(StoreError::NotSetUp)));
    let (store, made) = Store::create(&repository, None).expect("a state");
    assert!(made);
    let id = store.read(|tx| tx.repository_id()).expect("an identity");
    let (store, made) = Store::create(&repository, None).expect("the same state");
    assert!(!made);
    assert_eq!(store.read(|tx| tx.repository_id()).expect("an identity"), id);
    assert!(store.check().expect("a check").is_empty());
}

#[test]
fn all_of_it_is_its_owners_alone() {
    let world = World::new();
    let store = world.store();
    world.add_task(&store, 1);
    let folder = store.folder();
    assert_eq!(mode(folder), 0o700);
    for name in ["state.db", "state.db-wal", "state.db-shm", "locks/write.lock"] {
        assert_eq!(mode(folder.join(name)), 0o600, "{name}");
    }
    std::fs::set_permissions(folder.join("state.db"), std::fs::Permissions::from_mode(0o640))
        .expect("a change of mode");
    let error = Store::open(&world.repository()).expect_err("open to the group");
    assert!(matches!(error, StoreError::Open { mode: 0o640, wanted: 0o600, .. }), "{error}");
}

#[test]
fn a_linked_folder_or_database_is_refused() {
    let world = World::new();
    let folder = world.store().folder().to_owned();
    let moved = folder.with_file_name("moved");
    std::fs::rename(&folder, &moved).expect("moved");
    symlink(&moved, &folder).expect("a link");
    let error = Store::open(&world.repository()).expect_err("a linked folder");
    assert!(matches!(error, StoreError::WrongKind { .. }), "{error}");

    std::fs::remove_file(&folder).expect("removed");
    std::fs::rename(&moved, &folder).expect("moved back");
    for hard in [false, true] {
        let (file, other) = (folder.join("state.db"), folder.join("other.db"));
        std::fs::rename(&file, &other).expect("moved");
        if hard { std::fs::hard_link(&other, &file) } else { symlink(&other, &file) }
            .expect("a link");
        let error = Store::open(&world.repository()).expect_err("a linked database");
        assert!(matches!(error, StoreError::WrongKind { .. }), "{error}");
        std::fs::remove_file(&file).expect("removed");
        std::fs::rename(&other, &file).expect("moved back");
    }
    Store::open(&world.repository()).expect("whole again");
}

#[test]
fn a_newer_version_a_foreign_database_and_no_database_are_refused() {
    let world = World::new();
    let file = world.store().folder().join("state.db");
    let sql = |text: &str| {
        rusqlite::Connection::open(&file).and_then(|db| db.execute_batch(text)).expect("a change");
    };
    sql("PRAGMA user_version = 9000");
    let error = Store::open(&world.repository()).expect_err("a newer version");
    assert!(matches!(error, StoreError::NewerVersion { found: 9000, .. }), "{error}");
    let error = Store::create(&world.repository(), None).expect_err("a newer version");
    assert!(matches!(error, StoreError::NewerVersion { found: 9000, .. }), "{error}");
    sql("PRAGMA user_version = 1; PRAGMA application_id = 1");
    let error = Store::open(&world.repository()).expect_err("another program's");
    assert!(matches!(error, StoreError::Foreign(_)), "{error}");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(file.with_file_name(format!("state.db{suffix}")));
    }
    assert!(matches!(Store::open(&world.repository()), Err(StoreError::NotSetUp)));
}

#[test]
fn linked_worktrees_share_the_state() {
    let world = World::new();
    let task = world.add_task(&world.store(), 7);
    world.git(["worktree", "add", "-q", "../linked", "-b", "other"]);
    let linked = world.root().with_file_name("linked");
    let repository = crate::git::repository::Repository::open_at(&world.context, &linked)
        .expect("a linked worktree");
    assert_eq!(repository.work_tree(), Some(&*linked.canonicalize().expect("it exists")));
    let store = Store::open(&repository).expect("the same state");
    assert_eq!(store.read(|tx| tx.select_task(None)).expect("a task"), task);
}

#[test]
fn a_failed_change_leaves_nothing() {
    let world = World::new();
    let store = world.store();
    let task = world.add_task(&store, 1);
    let before = store.read(|tx| tx.events(None)).expect("events");
    let failed = store.write(|tx| {
        tx.set_task_state(&task, TaskState::Running, "a try", Actor::Person)?;
        Err::<(), _>(StoreError::NoKey)
    });
    assert!(matches!(failed, Err(StoreError::NoKey)));
    assert_eq!(store.read(|tx| tx.events(None)).expect("events"), before);
    assert_eq!(store.read(|tx| tx.task(task.id)).expect("a task"), Some(task));
}

#[test]
fn only_legal_transitions_of_the_task_as_read_are_recorded() {
    let world = World::new();
    let store = world.store();
    let task = world.add_task(&store, 1);
    let change =
        |task, to| store.write(|tx| tx.set_task_state(task, to, "because", Actor::Codeboost));
    let error = change(&task, TaskState::Merged).expect_err("no such step");
    assert!(matches!(error, StoreError::Transition { .. }), "{error}");
    let running = change(&task, TaskState::Running).expect("a legal step");
    assert_eq!((running.state, running.version), (TaskState::Running, 2));
    let error = change(&task, TaskState::InReview).expect_err("read too early");
    assert!(matches!(error, StoreError::TaskMoved(1)), "{error}");
    let events = store.read(|tx| tx.events(Some(task.id))).expect("events");
    let last = events.last().expect("an event");
    assert_eq!(last.words, "queued → running: because");
    assert_eq!((last.actor.as_str(), last.issue), ("codeboost", Some(1)));
}

#[test]
fn events_and_ledger_refuse_to_change() {
    let world = World::new();
    let store = world.store();
    world.add_task(&store, 1);
    for sql in ["UPDATE events SET words = ''", "DELETE FROM events"] {
        let refused = store.write(|tx| Ok::<_, StoreError>(tx.sql().execute(sql, []).is_err()));
        assert!(refused.expect("a transaction"), "{sql}");
    }
}

#[test]
fn one_task_per_issue_is_open_and_leaving_out_the_number_needs_one() {
    let world = World::new();
    let store = world.store();
    assert!(matches!(store.read(|tx| tx.select_task(None)), Err(StoreError::NoOpenTask)));
    let first = world.add_task(&store, 3);
    assert_eq!(store.read(|tx| tx.select_task(None)).expect("the only one"), first);
    let second = world.add_task(&store, 12);
    let error = store.read(|tx| tx.select_task(None)).expect_err("two");
    assert_eq!(error.to_string(), "2 tasks are open: #3, #12");
    let closed = store
        .write(|tx| tx.set_task_state(&first, TaskState::Cancelled, "given up", Actor::Person))
        .expect("closed");
    assert_eq!(store.read(|tx| tx.select_task(None)).expect("the only one"), second);
    assert!(matches!(
        store.read(|tx| tx.select_task(Some(3))),
        Err(StoreError::TaskEnded { issue: 3, .. })
    ));
    assert_eq!(store.read(|tx| tx.select_any_task(Some(3))).expect("the closed one"), closed);
    let again = world.add_task(&store, 3);
    assert_ne!(again.id, first.id);
    assert_eq!(store.read(|tx| tx.select_any_task(Some(3))).expect("the open one"), again);
}

#[test]
fn a_lease_excludes_others_and_ends_with_its_holder() {
    let world = World::new();
    let store = world.store();
    let task = world.add_task(&store, 1);
    let lease = store.lease(&task, "merge").expect("a lock").expect("free");
    assert_eq!(lease.task(), task.id);
    let other = world.store();
    let held = other.lease(&task, "merge").expect("a lock").expect_err("held");
    assert_eq!(held.issue, 1);
    let by = held.by.expect("a note");
    assert!(
        by.starts_with("merge, process ") && by.ends_with("since 2026-11-30T12:00:00Z"),
        "{by}"
    );
    // Short writes go on meanwhile.
    other
        .write(|tx| {
            tx.log(&Event {
                task: Some(task.id),
                kind: "note",
                actor: Actor::Person,
                detail: serde_json::json!({}),
                words: "wrote while the lease was held",
            })
        })
        .map_err(|error: StoreError| error)
        .expect("a write");
    drop(lease);
    other.lease(&task, "merge").expect("a lock").expect("free again");
}

#[test]
fn evidence_is_found_by_its_digest_and_an_altered_file_is_noticed() {
    let world = World::new();
    let store = world.store();
    let digest = store.put_evidence(b"passed\n").expect("kept");
    assert_eq!(store.put_evidence(b"passed\n").expect("kept"), digest);
    assert_eq!(store.evidence(&digest).expect("found"), b"passed\n");
    let hex = digest.hex();
    let file = store.folder().join("evidence").join(&hex[..2]).join(&hex[2..]);
    assert_eq!(mode(&file), 0o600);
    #[expect(clippy::disallowed_methods, reason = "a test that damages a file")]
    std::fs::write(&file, b"PASSED\n").expect("altered");
    assert!(matches!(store.evidence(&digest), Err(StoreError::Evidence(_))));
    let gone = codeboost_schema::ids::Digest::of(b"other");
    assert!(matches!(store.evidence(&gone), Err(StoreError::File(_))));
}

#[test]
fn kept_commits_survive_garbage_collection() {
    let world = World::new();
    let store = world.store();
    let task = world.add_task(&store, 1);
    world.git(["checkout", "-q", "-b", "topic"]);
    world.git(["commit", "-q", "--allow-empty", "-m", "second"]);
    world.git(["commit", "-q", "--allow-empty", "-m", "third"]);
    let (second, third) = (world.commit_id("topic~1"), world.commit_id("topic"));
    store.keep_commits(task.id, [&second, &third]).expect("kept");
    let kept = store.kept_commits().expect("refs");
    assert_eq!(
        kept[&task.id.to_string()],
        std::slice::from_ref(&third),
        "the child keeps its parent"
    );
    world.git(["checkout", "-q", "main"]);
    world.git(["branch", "-q", "-D", "topic"]);
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "-q", "--prune=now"]);
    assert_eq!(store.git().resolve(second.as_str()).expect("git"), Some(second));
    let missing = codeboost_schema::ids::CommitId::parse(&"1".repeat(40)).expect("an id");
    assert!(store.keep_commits(task.id, [&missing]).is_err());
}

#[test]
fn the_key_is_made_once_and_refused_when_others_can_read_it() {
    let world = World::new();
    let store = world.store();
    assert!(store.key().expect("no key").is_none());
    let key = crate::store::FormKey::generate("codeboost").expect("a key");
    assert!(store.put_key(&key).expect("kept"));
    assert!(!store.put_key(&crate::store::FormKey::generate("b").expect("a key")).expect("kept"));
    assert_eq!(mode(store.key_path()), 0o600);
    assert_eq!(store.key().expect("a key").expect("it").public_text(), key.public_text());
    std::fs::set_permissions(store.key_path(), std::fs::Permissions::from_mode(0o644))
        .expect("a change of mode");
    assert!(matches!(store.key(), Err(StoreError::Open { mode: 0o644, .. })));
}

#[test]
fn an_export_is_a_whole_copy_and_never_overwrites() {
    let world = World::new();
    let store = world.store();
    world.add_task(&store, 1);
    let file = world.root().join("copy.db");
    store.export(&file).expect("a copy");
    assert_eq!(mode(&file), 0o600);
    let copy = rusqlite::Connection::open(&file).expect("a database");
    let n: i64 = copy.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).expect("a row");
    assert_eq!(n, 1);
    assert!(store.export(&file).is_err());
}
