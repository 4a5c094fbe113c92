//! Output, time and stop rules, and what is found again after a death.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;
use crate::sandbox::supervise::Stopped;

const SMALL: Caps = Caps {
    deadline: Duration::from_secs(60),
    max_stdout_bytes: 1 << 20,
    max_stderr_bytes: 1 << 19,
    max_both_bytes: 1200 << 10,
};

fn run(world: &World, script: &str, caps: Caps) -> (Ended, Duration) {
    let place = world.place();
    let inside = place.first().expect("an inside");
    let profile = place.profile(&inside, &start(script)).expect("a profile");
    let begun = Instant::now();
    let ended = supervise::run(&world.engine, &profile, caps, &|| false).expect("it settles");
    let took = begun.elapsed();
    place.release().expect("released");
    (ended, took)
}

#[test]
fn both_streams_come_whole_and_apart() {
    on_every_engine(|world| {
        let (ended, _) = run(world, "seq 1 50000; seq 1 1000 >&2; exit 3", SMALL);
        assert_eq!((ended.code, ended.stopped), (Some(3), None));
        let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!((count(&ended.stdout), count(&ended.stderr)), (50_000, 1000));
    });
}

#[test]
fn endless_output_is_stopped_on_each_stream() {
    on_every_engine(|world| {
        for script in ["yes out", "yes err >&2", "yes out & yes err >&2"] {
            let script = format!("trap '' TERM; {script}; wait");
            let (ended, took) = run(world, &script, SMALL);
            assert_eq!(ended.stopped, Some(Stopped::OutputLimit), "{script}");
            assert!(ended.stdout.len() <= SMALL.max_stdout_bytes, "{script}");
            assert!(ended.stderr.len() <= SMALL.max_stderr_bytes, "{script}");
            assert!(ended.stdout.len() + ended.stderr.len() <= SMALL.max_both_bytes, "{script}");
            assert!(took < Duration::from_secs(60), "{script}: {took:?}");
        }
    });
}

#[test]
fn whoever_ignores_the_polite_signal_is_ended_with_all_that_it_started() {
    on_every_engine(|world| {
        let caps = Caps { deadline: Duration::from_secs(2), ..SMALL };
        let script = "trap '' TERM INT; (setsid bash -c 'trap \"\" TERM; sleep 1000') & \
            (trap '' TERM; sleep 1000) & echo begun; wait; wait";
        let (ended, took) = run(world, script, caps);
        assert_eq!(ended.stopped, Some(Stopped::Deadline));
        assert_eq!(text(&ended.stdout), "begun\n");
        assert!(took < Duration::from_secs(40), "{took:?}");
    });
}

#[test]
fn an_orphan_that_holds_the_output_does_not_outlive_its_program() {
    on_every_engine(|world| {
        let (ended, took) = run(world, "(setsid sleep 1000) & echo done", SMALL);
        assert_eq!((ended.code, ended.stopped), (Some(0), None));
        assert!(took < Duration::from_secs(40), "{took:?}");
    });
}

#[test]
fn a_program_that_closes_its_output_is_still_waited_for_and_ended() {
    on_every_engine(|world| {
        let caps = Caps { deadline: Duration::from_secs(2), ..SMALL };
        let (ended, _) = run(world, "exec >/dev/null 2>&1; sleep 1000", caps);
        assert_eq!(ended.stopped, Some(Stopped::Deadline));
    });
}

#[test]
fn it_ends_when_it_is_told_to() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let profile = place.profile(&inside, &start("sleep 1000")).expect("a profile");
        let told = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(2));
                told.store(true, Ordering::Relaxed);
            });
            supervise::run(&world.engine, &profile, SMALL, &|| told.load(Ordering::Relaxed))
                .expect("it settles")
        });
        assert_eq!(ended.stopped, Some(Stopped::Cancelled));
        place.release().expect("released");
    });
}

#[test]
fn an_absent_program_is_an_exit_code_on_every_engine() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let absent = Start { argv: vec!["no-such-program".into()], ..start("") };
        let profile = place.profile(&inside, &absent).expect("a profile");
        let ended = world.run(&profile, Duration::from_secs(30)).expect("it runs");
        assert_eq!(ended.code, Some(127));
        place.release().expect("released");
    });
}

#[test]
fn what_a_killed_process_left_is_found_and_removed() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let profile = place.profile(&inside, &start("sleep 1000")).expect("a profile");
        let engine = &world.engine;
        engine.runtime.block_on(async {
            let request = profile.request(engine.kind());
            let id = engine.create(&profile.name, request).await.expect("a container");
            let none = None::<bollard::query_parameters::StartContainerOptions>;
            engine.docker.start_container(&id, none).await.expect("started");
        });
        // As after a kill: nothing of this process is run at its end.
        std::mem::forget(place);
        let removed = clear(world);
        assert_eq!(removed.len(), 2, "{removed:?}");
        assert_eq!(clear(world), Vec::<String>::new());
    });
}

#[test]
fn what_belongs_to_another_task_is_left_alone() {
    on_every_engine(|world| {
        let place = world.place();
        let other = Owner { task: uuid::Uuid::new_v4().to_string(), ..world.owner.clone() };
        let removed = place::clear(&world.context, &world.engine, &world.pool(), &other);
        assert_eq!(removed.expect("cleared"), Vec::<String>::new());
        assert!(exists(&place.work().join("a.txt")));
        place.release().expect("released");
    });
}

#[test]
fn a_project_that_is_larger_than_its_storage_is_refused_and_nothing_stays() {
    on_every_engine(|world| {
        let file = std::fs::File::create(world.folder.path().join("checkout/large"));
        file.expect("a file").set_len(64 << 20).expect("a size");
        assert!(world.try_place().is_err());
    });
}

/// The benchmark of one invocation without what is run in it: storage, container, self-test,
/// removal. The best of five, since other work on the machine only adds.
#[test]
fn one_invocation_costs_at_most_two_seconds() {
    on_every_engine(|world| {
        let best = (0..5)
            .map(|_| {
                let begun = Instant::now();
                let ended = world.script("true");
                assert_eq!(ended.code, Some(0));
                begun.elapsed()
            })
            .min()
            .expect("five");
        eprintln!("one invocation on {}: {best:?} (goal 2 s)", world.engine.kind().name());
        assert!(best < Duration::from_secs(2), "{best:?}");
    });
}
