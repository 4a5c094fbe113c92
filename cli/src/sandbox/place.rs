//! The place of one run: storage, the project's `.git`, and what codeboost itself puts in.
//!
//! | seen in the container | is | may be changed |
//! |---|---|---|
//! | `/work` | the project's files, in the storage | as the phase says |
//! | `/work/.git` | its metadata, on this machine | never |
//! | `/work/<submodule>` | an empty folder | never |
//! | `/home/agent`, `/tmp` | in the storage, empty at the start | yes |
//! | `/run`, `/var/tmp` | empty but for the next | never |
//! | `/run/codeboost` | the program that is started first, what it expects, sockets, inputs | never |
//!
//! Everything that a run leaves on this machine carries its id: containers as a label, the storage
//! and the folder of the sockets in their names. So what a killed process left is found again.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::config::Sandbox;
use crate::context::Context;
use crate::sandbox::engine::Engine;
use crate::sandbox::error::SandboxError;
use crate::sandbox::profile::{
    self, Access, Bind, DiskCap, ENTER, HOME, OWN, Profile, Relay, Resources, SECCOMP, TEMP, WORK,
};
use crate::sandbox::storage::{self, PoolCap, Storage};
use crate::stage::{self, FileError};

/// Whose containers and storages these are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The repository's id.
    pub repository: String,
    /// The task's id.
    pub task: String,
}

impl Owner {
    /// The folder of this owner's storages in a pool.
    fn folder(&self, pool: &Path) -> PathBuf {
        pool.join(&self.task)
    }
}

/// What is seen of the project.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    /// A checkout with its `.git`, in which nobody worked since it was made.
    pub checkout: &'a Path,
    /// The paths of its submodules.
    pub submodules: &'a [String],
}

/// Everything that is made for one run; taken down when dropped.
#[derive(Debug)]
pub struct Place<'c> {
    storage: Storage<'c>,
    shared: Shared,
    id: Uuid,
    owner: Owner,
    image_id: String,
    resources: Resources,
    disk: DiskCap,
    git: PathBuf,
    submodules: Vec<String>,
    n_made: std::sync::atomic::AtomicU32,
}

/// The folder for what is mounted at `/run/codeboost`, with a short name: the paths of sockets are
/// limited to some hundred bytes.
#[derive(Debug)]
struct Shared(PathBuf);

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shared_folder(id: Uuid) -> PathBuf {
    std::env::temp_dir().join(format!("codeboost-{}", &id.simple().to_string()[..16]))
}

/// What a container is for: its own folders, sockets and inputs.
#[derive(Debug)]
pub struct Inside {
    folder: PathBuf,
    home: PathBuf,
    temp: PathBuf,
    n: u32,
}

impl Inside {
    /// The folder that is mounted at `/run/codeboost`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts a file there that can be read inside. Returns its path inside.
    ///
    /// # Errors
    /// [`FileError`] naming the path.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<String, FileError> {
        let path = self.folder.join(name);
        stage::write_scratch(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))
            .map_err(|error| FileError::new("set the mode of", &path, error))?;
        Ok(format!("{OWN}/{name}"))
    }

    /// Where a socket of that name is to be made.
    ///
    /// # Errors
    /// [`SandboxError::SocketPath`] when the path is too long.
    pub fn socket(&self, name: &str) -> Result<PathBuf, SandboxError> {
        let path = self.folder.join(name);
        // The kernel has room for 108 bytes with their end.
        if path.as_os_str().len() > 104 {
            return Err(SandboxError::SocketPath(path));
        }
        Ok(path)
    }
}

/// What is started in a container.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// What may be done to the project's files.
    pub work: Access,
    /// Ports that lead to sockets.
    pub relays: Vec<Relay>,
    /// The file that its standard input comes from, by its path inside; `None`: nothing.
    pub input: Option<String>,
}

/// Where programs are looked for inside.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl<'c> Place<'c> {
    /// Makes a place and copies the project in. `pool`: the folder of all storages.
    ///
    /// # Errors
    /// [`SandboxError`]; nothing is left then.
    pub fn make(
        context: &'c Context,
        config: &Sandbox,
        pool: &Path,
        owner: &Owner,
        image_id: &str,
        project: Project<'_>,
    ) -> Result<Self, SandboxError> {
        let id = Uuid::new_v4();
        let disk = DiskCap { max_bytes: config.disk_mib << 20, max_inodes: config.inodes };
        let cap =
            PoolCap { max_bytes: config.pool_mib << 20, min_free_bytes: config.min_free_mib << 20 };
        let git = project.checkout.join(".git");
        for path in [pool, &git] {
            if !profile::can_be_mounted(path) {
                return Err(SandboxError::NotEnforced(format!(
                    "{} has signs in its name that engines take for something else",
                    path.display()
                )));
            }
        }
        let folder = owner.folder(pool).join(id.to_string());
        let storage = Storage::make(context, &folder, disk, cap)?;
        let shared = shared_folder(id);
        std::fs::create_dir(&shared).map_err(|error| FileError::new("make", &shared, error))?;
        let shared = Shared(shared);
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&shared.0, private)
            .map_err(|error| FileError::new("set the mode of", &shared.0, error))?;
        stage::write_scratch(&shared.0.join("seccomp.json"), SECCOMP.as_bytes())?;
        stage::make_folder(&shared.0.join("empty"))?;
        stage::make_folder(&shared.0.join("run/codeboost"))?;
        // Podman mounts a file of its own there.
        stage::write_scratch(&shared.0.join("run/.containerenv"), b"")?;
        storage.copy_in(project.checkout)?;
        Ok(Self {
            storage,
            shared,
            id,
            owner: owner.clone(),
            image_id: image_id.to_owned(),
            resources: resources(config),
            disk,
            git,
            submodules: project.submodules.to_vec(),
            n_made: std::sync::atomic::AtomicU32::new(0),
        })
    }

    /// Where the project's files lie on this machine. Nothing there is to be trusted.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.storage.work()
    }

    /// What a first container of this run sees as its own.
    ///
    /// # Errors
    /// [`SandboxError`] when it can't be made.
    pub fn first(&self) -> Result<Inside, SandboxError> {
        self.inside(self.storage.home(), self.storage.temp())
    }

    /// What a further container sees as its own, beside the first: other folders, all empty.
    ///
    /// # Errors
    /// As for [`Place::first`].
    pub fn further(&self) -> Result<Inside, SandboxError> {
        let (home, temp) = self.storage.fresh()?;
        self.inside(home, temp)
    }

    fn inside(&self, home: PathBuf, temp: PathBuf) -> Result<Inside, SandboxError> {
        let n = self.n_made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = self.shared.0.join(n.to_string());
        stage::make_folder(&folder)?;
        let inside = Inside { folder, home, temp, n };
        inside.put("enter.sh", ENTER.as_bytes())?;
        Ok(inside)
    }

    /// Everything about a container of this run.
    ///
    /// # Errors
    /// [`FileError`] when what it has to expect can't be written.
    pub fn profile(&self, inside: &Inside, start: &Start) -> Result<Profile, SandboxError> {
        let bind = |source: &Path, target: &str, access| Bind {
            source: source.to_owned(),
            target: target.to_owned(),
            access,
        };
        let mut binds = vec![
            bind(&self.storage.work(), WORK, start.work),
            bind(&self.git, &format!("{WORK}/.git"), Access::ReadOnly),
            bind(&inside.home, HOME, Access::Writable),
            bind(&inside.temp, TEMP, Access::Writable),
            // Where nothing is mounted Podman mounts something that can be written.
            bind(&self.shared.0.join("run"), "/run", Access::ReadOnly),
            bind(&self.shared.0.join("empty"), "/var/tmp", Access::ReadOnly),
            bind(&inside.folder, OWN, Access::ReadOnly),
        ];
        for path in &self.submodules {
            let empty = self.shared.0.join("empty");
            binds.push(bind(&empty, &format!("{WORK}/{path}"), Access::ReadOnly));
        }
        let mut env = start.env.clone();
        env.insert("HOME".into(), HOME.into());
        env.insert("PATH".into(), SEARCH_PATH.into());
        let labels = BTreeMap::from([
            (profile::LABEL_REPOSITORY.to_owned(), self.owner.repository.clone()),
            (profile::LABEL_TASK.to_owned(), self.owner.task.clone()),
            (profile::LABEL_RUN.to_owned(), self.id.to_string()),
        ]);
        let profile = Profile {
            image_id: self.image_id.clone(),
            name: format!("codeboost-{}-{}", self.id.simple(), inside.n),
            argv: start.argv.clone(),
            env,
            binds,
            labels,
            resources: self.resources,
            disk: self.disk,
            relays: start.relays.clone(),
            input: start.input.clone(),
            seccomp_file: self.shared.0.join("seccomp.json"),
        };
        inside.put("expect", profile.expectations().as_bytes())?;
        Ok(profile)
    }

    /// Takes the place down.
    ///
    /// # Errors
    /// [`SandboxError::Unreleased`] naming what is still there.
    pub fn release(self) -> Result<(), SandboxError> {
        drop(self.shared);
        self.storage.release()
    }
}

fn resources(config: &Sandbox) -> Resources {
    // More processors than there are is refused by the engines.
    let n_cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = u32::try_from(n_cpus).unwrap_or(u32::MAX).saturating_mul(100);
    Resources {
        max_processes: config.processes,
        max_memory_bytes: config.memory_mib << 20,
        max_cpu_percent: config.cpu_percent.min(most),
        max_open_files: 4096,
    }
}

/// Removes what earlier runs for the same task left: containers, storages, sockets.
///
/// To be called only by who holds the task's lease: then nothing of it is in use. Returns what was
/// removed, in words.
///
/// # Errors
/// [`SandboxError::Unreleased`] naming what is still there.
pub fn clear(
    context: &Context,
    engine: &Engine,
    pool: &Path,
    owner: &Owner,
) -> Result<Vec<String>, SandboxError> {
    let labels = [
        (profile::LABEL_REPOSITORY, owner.repository.as_str()),
        (profile::LABEL_TASK, owner.task.as_str()),
    ];
    let mut removed = Vec::new();
    let mut left = Vec::new();
    for found in engine.containers(&labels)? {
        // What the engine's filter lets through is looked at again before it is removed.
        let is_ours = labels
            .iter()
            .all(|(name, value)| found.labels.get(*name).is_some_and(|found| found == value));
        if !is_ours {
            continue;
        }
        match engine.remove(&found.id) {
            Ok(()) => removed.push(format!("container {}", found.name)),
            Err(error) => left.push(format!("container {}: {error}", found.name)),
        }
    }
    let folder = owner.folder(pool);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return done(removed, left),
        Err(error) => return Err(FileError::new("read", &folder, error).into()),
    };
    for entry in entries {
        let entry = entry.map_err(|error| FileError::new("read", &folder, error))?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| Uuid::try_parse(name).ok()) else { continue };
        drop(Shared(shared_folder(id)));
        match storage::release(context, &entry.path()) {
            Ok(()) => removed.push(format!("storage {}", entry.path().display())),
            Err(SandboxError::Unreleased { what }) => left.extend(what),
            Err(error) => return Err(error),
        }
    }
    done(removed, left)
}

fn done(removed: Vec<String>, left: Vec<String>) -> Result<Vec<String>, SandboxError> {
    if left.is_empty() { Ok(removed) } else { Err(SandboxError::Unreleased { what: left }) }
}
