//! The sandbox against real engines: each control, and what happens without it.
//!
//! `CODEBOOST_TEST_ENGINES` names the sockets of the engines, with colons between; the image must be
//! there. Without, these tests say loudly that they did not run; with `CI=true` that is a failure.

#![expect(clippy::disallowed_methods, reason = "tests set up the world")]
#![expect(clippy::print_stderr, reason = "a skipped test has to be heard")]

mod controls;
mod escapes;
mod supervision;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::ContainerCreateBody;

use crate::config::{Config, Sandbox};
use crate::context::Context;
use crate::output::{ColorChoice, Format, Output};
use crate::sandbox::engine::Engine;
use crate::sandbox::error::SandboxError;
use crate::sandbox::image;
use crate::sandbox::place::{self, Inside, Owner, Place, Project, Start};
use crate::sandbox::profile::{Access, Profile};
use crate::sandbox::supervise::{self, Caps, Ended};

/// A world for one test: engine, checkout, pool.
struct World {
    context: Context,
    engine: Engine,
    image_id: String,
    folder: tempfile::TempDir,
    owner: Owner,
    config: Sandbox,
}

fn context() -> Context {
    let env: BTreeMap<_, _> =
        std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME").collect();
    Context::new("/".into(), env, Output::new(Format::Text, 0, ColorChoice::Never, true))
}

/// Runs a test on every engine.
fn on_every_engine(test: impl Fn(&World)) {
    let Some(sockets) = std::env::var_os("CODEBOOST_TEST_ENGINES") else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must run everything: no engine");
        eprintln!("\nSKIPPED: a test of the sandbox: CODEBOOST_TEST_ENGINES names no engine\n");
        return;
    };
    for socket in std::env::split_paths(&sockets) {
        let context = context();
        let engine = Engine::connect(&context, Some(&socket)).expect("an engine");
        let image_id = image::require(&engine).expect("the image");
        let folder = tempfile::tempdir().expect("a folder");
        let checkout = folder.path().join("checkout");
        std::fs::create_dir(&checkout).expect("a folder");
        let git = |args: &[&str]| {
            let mut command = crate::process::command(&context, "git", &checkout);
            command.env("HOME", folder.path());
            let status = command
                .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
                .args(args)
                .status()
                .expect("git");
            assert!(status.success());
        };
        git(&["init", "--quiet"]);
        std::fs::write(checkout.join("a.txt"), "old\n").expect("a file");
        std::os::unix::fs::symlink("a.txt", checkout.join("link")).expect("a link");
        git(&["add", "-A"]);
        git(&["commit", "--quiet", "-m", "first"]);
        let world = World {
            context,
            engine,
            image_id,
            owner: Owner {
                repository: uuid::Uuid::new_v4().to_string(),
                task: uuid::Uuid::new_v4().to_string(),
            },
            config: Sandbox {
                memory_mib: 256,
                processes: 64,
                cpu_percent: 100,
                disk_mib: 32,
                inodes: 2000,
                min_free_mib: 0,
                ..Config::default().sandbox
            },
            folder,
        };
        eprintln!("on {} {}", world.engine.kind().name(), world.engine.version());
        test(&world);
        world.must_be_clean();
    }
}

impl World {
    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    fn place(&self) -> Place<'_> {
        self.try_place().expect("a place")
    }

    fn try_place(&self) -> Result<Place<'_>, SandboxError> {
        let checkout = self.folder.path().join("checkout");
        let project = Project { checkout: &checkout, submodules: &[] };
        let pool = self.pool();
        Place::make(&self.context, &self.config, &pool, &self.owner, &self.image_id, project)
    }

    /// Runs a script in a fresh place.
    fn script(&self, script: &str) -> Ended {
        let place = self.place();
        let inside = place.first().expect("an inside");
        let profile = place.profile(&inside, &start(script)).expect("a profile");
        let ended = self.run(&profile, Duration::from_secs(60)).expect("it runs");
        place.release().expect("released");
        ended
    }

    fn run(&self, profile: &Profile, deadline: Duration) -> Result<Ended, SandboxError> {
        supervise::run(&self.engine, profile, Caps::until(deadline), &|| false)
    }

    /// Runs a request that was changed, past the comparison with the engine's view.
    fn run_altered(
        &self,
        alter: impl FnOnce(&mut ContainerCreateBody, &mut Profile, &Inside),
    ) -> Result<Ended, SandboxError> {
        let place = self.place();
        let inside = place.first().expect("an inside");
        let mut profile = place.profile(&inside, &start("true")).expect("a profile");
        let mut request = profile.request(self.engine.kind());
        alter(&mut request, &mut profile, &inside);
        let ended = supervise::run_unchecked(&self.engine, &profile, request);
        place.release().expect("released");
        ended
    }

    /// Nothing of this world is left on the machine.
    fn must_be_clean(&self) {
        let labels = [(crate::sandbox::profile::LABEL_TASK, self.owner.task.as_str())];
        assert_eq!(self.engine.containers(&labels).expect("a list"), []);
        let left = std::fs::read_dir(self.pool().join(&self.owner.task));
        assert_eq!(left.map_or(0, Iterator::count), 0, "storages");
        let table = std::fs::read_to_string("/proc/self/mountinfo").expect("the table");
        assert!(!table.contains(self.folder.path().to_str().expect("UTF-8")), "mounts");
    }
}

fn start(script: &str) -> Start {
    Start {
        argv: vec!["bash".into(), "-c".into(), script.into()],
        env: BTreeMap::new(),
        work: Access::Writable,
        relays: Vec::new(),
        input: None,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn clear(world: &World) -> Vec<String> {
    place::clear(&world.context, &world.engine, &world.pool(), &world.owner).expect("cleared")
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
