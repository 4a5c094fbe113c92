//! Everything that can go wrong on the other side, one fault at a time.
//!
//! After each: nothing landed twice, nothing landed that was not reviewed, no record is lost, and
//! once the fault is gone the next run ends right.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// What the other side does wrong.
struct Fault {
    name: &'static str,
    /// Whether it has to be seen in the first run.
    first: First,
    make: fn(&Case),
}

/// How the first run may end, where that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The commit landed although the answer may be lost.
    Lands,
    /// It did not land.
    Fails,
    /// Either, as long as what is told is what is there.
    Either,
}

/// Lets a hook do what somebody else would do to the repository meanwhile.
const OUTSIDE: &str =
    "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n";

fn hook(case: &Case, name: &str, script: &str) {
    case.site.hook(name, &format!("{OUTSIDE}{script}"));
}

fn configure(case: &Case, setting: [&str; 2]) {
    let remote = case.site.remote().display().to_string();
    case.site.world.git(["-C", &remote, "config", setting[0], setting[1]]);
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "pre-receive refuses",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "echo no; exit 1"),
    },
    Fault {
        name: "update refuses the base",
        first: First::Fails,
        make: |case| hook(case, "update", "[ $1 != refs/heads/main ]"),
    },
    Fault {
        name: "update refuses the head",
        first: First::Either,
        make: |case| hook(case, "update", "[ $1 != refs/heads/topic ]"),
    },
    Fault {
        name: "a refusal full of control characters",
        first: First::Fails,
        make: |case| {
            hook(case, "pre-receive", "printf 'a\\033[2Jb\\000c\\377\\n' >&2; exit 1");
        },
    },
    Fault {
        name: "a refusal that never ends talking",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "yes refused | head -c 3000000 >&2; exit 1"),
    },
    Fault {
        name: "the transaction is refused",
        first: First::Fails,
        make: |case| hook(case, "reference-transaction", "[ $1 != prepared ]"),
    },
    Fault {
        name: "a lock is left on the base",
        first: First::Fails,
        make: |case| {
            let lock = case.site.remote().join("refs/heads/main.lock");
            crate::stage::write(&lock, b"").expect("a lock");
        },
    },
    Fault {
        name: "a lock is left on the head",
        first: First::Either,
        make: |case| {
            let lock = case.site.remote().join("refs/heads/topic.lock");
            crate::stage::write(&lock, b"").expect("a lock");
        },
    },
    Fault {
        name: "no room for objects",
        first: First::Fails,
        make: |case| configure(case, ["receive.maxInputSize", "1"]),
    },
    Fault {
        name: "no deletions",
        first: First::Either,
        make: |case| configure(case, ["receive.denyDeletes", "true"]),
    },
    Fault {
        name: "only fast-forwards",
        first: First::Either,
        make: |case| configure(case, ["receive.denyNonFastForwards", "true"]),
    },
    Fault {
        name: "the remote is gone",
        first: First::Fails,
        make: |case| {
            let remote = case.site.remote();
            std::fs::rename(&remote, remote.with_extension("away")).expect("moved away");
        },
    },
    Fault {
        name: "the remote goes away in the middle",
        first: First::Either,
        make: |case| hook(case, "pre-receive", "mv \"$PWD\" \"${PWD%.git}.away\""),
    },
    Fault {
        name: "the remote is no repository any more",
        first: First::Fails,
        make: |case| {
            let head = case.site.remote().join("HEAD");
            std::fs::rename(&head, head.with_extension("away")).expect("moved away");
        },
    },
    Fault {
        name: "a hook hangs before anything changes",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "sleep 60"),
    },
    Fault {
        name: "a hook hangs after everything changed",
        first: First::Lands,
        make: |case| hook(case, "post-receive", "sleep 60"),
    },
    Fault {
        name: "the server dies before anything changes",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "kill -9 $PPID"),
    },
    Fault {
        name: "the server dies as it changes the refs",
        first: First::Either,
        make: |case| hook(case, "reference-transaction", "[ $1 != prepared ] || kill -9 $PPID"),
    },
    Fault {
        name: "the server dies before it answers",
        first: First::Either,
        make: |case| hook(case, "reference-transaction", "[ $1 != committed ] || kill -9 $PPID"),
    },
    Fault {
        name: "the base moves before",
        first: First::Fails,
        make: |case| {
            let spec = format!("{}:refs/heads/main", case.site.head);
            case.site.world.git(["push", "-q", "origin", &spec]);
        },
    },
    Fault {
        name: "the head moves before",
        first: First::Fails,
        make: |case| {
            let world = &case.site.world;
            world.git(["switch", "-q", "--detach", "topic"]);
            world.git(["commit", "-q", "--allow-empty", "-m", "theirs"]);
            world.git(["push", "-q", "origin", "HEAD:topic"]);
        },
    },
    Fault {
        name: "the base moves in the window",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "git update-ref refs/heads/main refs/heads/topic"),
    },
    Fault {
        name: "the head moves in the window",
        first: First::Either,
        make: |case| hook(case, "pre-receive", "git update-ref refs/heads/topic refs/heads/main"),
    },
    Fault {
        name: "the head is deleted in the window",
        first: First::Either,
        make: |case| hook(case, "pre-receive", "git update-ref -d refs/heads/topic"),
    },
    Fault {
        name: "the base is deleted in the window",
        first: First::Fails,
        make: |case| hook(case, "pre-receive", "git update-ref -d refs/heads/main"),
    },
    Fault {
        name: "the base moves right after",
        first: First::Either,
        make: |case| {
            let script =
                "new=$(git commit-tree -p refs/heads/main -m theirs refs/heads/main^{tree})
                git update-ref refs/heads/main $new";
            let identity = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x.invalid \
                            GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x.invalid";
            hook(case, "post-receive", &format!("{identity}\n{script}"));
        },
    },
];

/// Ends the fault, and puts back what others moved, unless the commit has landed.
fn heal(case: &Case) {
    let remote = case.site.remote();
    let away = remote.with_extension("away");
    if away.exists() {
        std::fs::rename(&away, &remote).expect("moved back");
    }
    let head = remote.join("HEAD.away");
    if head.exists() {
        std::fs::rename(&head, remote.join("HEAD")).expect("moved back");
    }
    for hook in ["pre-receive", "update", "post-receive", "reference-transaction"] {
        let _ = std::fs::remove_file(remote.join("hooks").join(hook));
    }
    // What a server leaves that died: a person takes these away.
    for lock in ["refs/heads/main.lock", "refs/heads/topic.lock", "packed-refs.lock", "HEAD.lock"] {
        let _ = std::fs::remove_file(remote.join(lock));
    }
    for (name, value) in [
        ("receive.maxInputSize", "0"),
        ("receive.denyDeletes", "false"),
        ("receive.denyNonFastForwards", "false"),
    ] {
        configure(case, [name, value]);
    }
    if landed(case).is_none() {
        for (name, id) in [("main", &case.site.base), ("topic", &case.site.head)] {
            let there = remote.display().to_string();
            let name = format!("refs/heads/{name}");
            case.site.world.git(["-C", &there, "update-ref", &name, id.as_str()]);
        }
    }
}

/// The attempt whose commit the remote's base has, however many there are on top of it.
fn landed(case: &Case) -> Option<CommitId> {
    let remote = case.site.remote().display().to_string();
    if case.base_there().is_empty() {
        return None;
    }
    let log = case.site.world.git(["-C", &remote, "rev-list", "refs/heads/main"]);
    let landed: Vec<_> = case
        .attempts()
        .into_iter()
        .map(|(_, commit)| commit)
        .filter(|commit| log.lines().any(|line| line == commit.as_str()))
        .collect();
    let mut distinct = landed.clone();
    distinct.dedup();
    assert!(distinct.len() <= 1, "landed twice: {landed:?}");
    distinct.pop()
}

fn check(fault: &Fault, options: Options) {
    let name = format!("{}, {:?}, {:?}", fault.name, options.method, options.head_after);
    let mut case = Case::new(Some("origin"));
    // Enough for a push on a busy machine, and little enough to wait for.
    case.timeout = Duration::from_secs(if fault.name.contains("hangs") { 3 } else { 60 });
    (fault.make)(&case);
    let first = case.try_run(options);
    let is_there = case.site.remote().join("HEAD").exists();
    let told = match &first {
        Ok(Ending::Merged { commit, .. }) => Some(commit.clone()),
        Ok(_) | Err(_) => None,
    };
    if is_there {
        let landed = landed(&case);
        match fault.first {
            First::Lands => assert!(landed.is_some(), "{name}: {first:?}"),
            First::Fails => assert!(landed.is_none(), "{name}: {first:?}"),
            First::Either => {}
        }
        // What is told is what is there; what is not known is not told as failed.
        let unknown = matches!(&first, Ok(Ending::Unclear { .. }));
        assert!(told == landed || unknown, "{name}: {first:?}");
    }
    if matches!(first, Ok(Ending::Unclear { .. })) {
        assert_eq!(case.task().state, TaskState::Merging, "{name}");
    }

    heal(&case);
    case.timeout = Duration::from_secs(60);
    let second = case.try_run(options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let Ending::Merged { commit, .. } = &second else {
        panic!("{name}: first {first:?}, then {second:?}")
    };
    assert_eq!(landed(&case).as_ref(), Some(commit), "{name}");
    assert_eq!(case.task().state, TaskState::Merged, "{name}");
    let merged = case.attempts();
    let merged = merged.iter().filter(|(state, _)| *state == AttemptState::Merged).count();
    assert_eq!(merged, 1, "{name}");
    let parents = case.site.world.git(["log", "-1", "--format=%P", commit.as_str()]);
    let (base, head) = (&case.site.base, &case.site.head);
    let wanted = match options.method {
        MergeMethod::Merge => format!("{base} {head}"),
        MergeMethod::Squash => base.to_string(),
    };
    assert_eq!(parents, wanted, "{name}");
    // Run once more it changes nothing.
    let before = case.base_there();
    let third = case.try_run(options).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(matches!(third, Ending::Merged { found: true, .. }), "{name}: {third:?}");
    assert_eq!(case.base_there(), before, "{name}");
}

#[test]
fn no_fault_of_the_other_side_lands_anything_twice_or_unreviewed() {
    let mut modes = vec![(MergeMethod::Merge, HeadAfter::Delete)];
    // More on demand: every way to land.
    if crate::context::Context::environment().contains_key(std::ffi::OsStr::new("CODEBOOST_FAULTS"))
    {
        modes.extend([
            (MergeMethod::Merge, HeadAfter::Move),
            (MergeMethod::Merge, HeadAfter::Keep),
            (MergeMethod::Squash, HeadAfter::Delete),
            (MergeMethod::Squash, HeadAfter::Move),
            (MergeMethod::Squash, HeadAfter::Keep),
        ]);
    }
    let cases: Vec<_> =
        modes.iter().flat_map(|mode| FAULTS.iter().map(move |fault| (fault, *mode))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((fault, (method, head_after))) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let options = Options { method: *method, head_after: *head_after, ..DEFAULT };
                    check(fault, options);
                }
            });
        }
    });
    let mut out = std::io::stderr().lock();
    let _ = std::io::Write::write_all(
        &mut out,
        format!("merge, faults of the other side: {} cases\n", cases.len()).as_bytes(),
    );
}
