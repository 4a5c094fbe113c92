//! The file system that a container writes to: as large as it may become, really allocated before
//! the start, and gone afterwards.
//!
//! ```text
//! <pool>/<run>/
//!   disk.img    an ext4 file system in a file of the full size, allocated
//!   disk/       where it is mounted, for this machine and nobody else
//!     work/     the project's files, with an empty folder where .git is mounted
//!     home/     the home folder
//!     temp/     temporary files
//!     more/     the same two for the containers of commands
//! ```
//!
//! Whatever is written inside comes to an end at the size of the file, in bytes and in files, and
//! takes nothing from this machine that was not taken before. Making and mounting it needs root;
//! without, there is no sandbox: nothing weaker is used in its place.

use std::os::unix::fs::{PermissionsExt as _, chown, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, StatVfs};

use crate::context::Context;
use crate::process::{self, Limits};
use crate::sandbox::error::SandboxError;
use crate::sandbox::profile::{DiskCap, USER};
use crate::stage::{self, FileError};

/// What the storage of all runs together may take, and what must stay free beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCap {
    /// Most bytes of all storages of the pool.
    pub max_bytes: u64,
    /// Bytes that have to stay free on this machine's file system.
    pub min_free_bytes: u64,
}

/// Whether a storage can be made by whoever runs this.
#[must_use]
pub fn can_be_made() -> bool {
    rustix::process::geteuid().is_root()
}

/// The storage of one run; taken down when dropped.
#[derive(Debug)]
pub struct Storage<'c> {
    context: &'c Context,
    folder: PathBuf,
    is_released: bool,
}

impl<'c> Storage<'c> {
    /// Allocates and mounts a storage in the folder `folder` of the pool, which must not exist.
    ///
    /// # Errors
    /// [`SandboxError`] when it can't be enforced here, or when there is no room.
    pub fn make(
        context: &'c Context,
        folder: &Path,
        cap: DiskCap,
        pool: PoolCap,
    ) -> Result<Self, SandboxError> {
        if !can_be_made() {
            return Err(SandboxError::NotEnforced(
                "a file system of a fixed size can only be made and mounted by root".into(),
            ));
        }
        let parent = folder.parent().unwrap_or(Path::new("/"));
        stage::make_folder(parent)?;
        require_room(parent, cap, pool)?;
        private_folder(folder)?;
        let storage = Self { context, folder: folder.to_owned(), is_released: false };
        match storage.fill(cap) {
            Ok(()) => Ok(storage),
            Err(error) => {
                storage.release()?;
                Err(error)
            }
        }
    }

    fn fill(&self, cap: DiskCap) -> Result<(), SandboxError> {
        let image = self.folder.join("disk.img");
        let fail = |error| FileError::new("allocate", &image, error);
        let file = std::fs::File::create_new(&image).map_err(fail)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, cap.max_bytes)
            .map_err(|errno| fail(errno.into()))?;
        drop(file);
        let inodes = cap.max_inodes.to_string();
        let image_text = image.to_string_lossy().into_owned();
        self.step(
            "making the file system",
            "mkfs.ext4",
            &[
                "-q",
                "-F",
                "-m",
                "0",
                "-O",
                "^has_journal",
                "-E",
                "nodiscard,root_owner=0:0",
                "-N",
                &inodes,
                &image_text,
            ],
        )?;
        let disk = self.disk();
        private_folder(&disk)?;
        let disk_text = disk.to_string_lossy().into_owned();
        self.step(
            "mounting the file system",
            "mount",
            &["-t", "ext4", "-o", "loop,nosuid,nodev,noatime", &image_text, &disk_text],
        )?;
        for name in ["work", "home", "temp", "more", "more/home", "more/temp"] {
            self.folder_for_user(&disk.join(name))?;
        }
        Ok(())
    }

    fn folder_for_user(&self, path: &Path) -> Result<(), FileError> {
        std::fs::create_dir(path).map_err(|error| FileError::new("make", path, error))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode)
            .map_err(|error| FileError::new("set the mode of", path, error))?;
        give(path)
    }

    fn step(&self, what: &'static str, program: &str, args: &[&str]) -> Result<(), SandboxError> {
        step(self.context, what, program, args)
    }

    /// The folder of the run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// Where the project's files lie.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.disk().join("work")
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.disk().join("home")
    }

    /// The folder for temporary files.
    #[must_use]
    pub fn temp(&self) -> PathBuf {
        self.disk().join("temp")
    }

    /// An empty home folder and an empty temporary one for another container of the run.
    ///
    /// # Errors
    /// [`SandboxError`] when what was there can't be removed.
    pub fn fresh(&self) -> Result<(PathBuf, PathBuf), SandboxError> {
        let more = self.disk().join("more");
        let [home, temp] = ["home", "temp"].map(|name| more.join(name));
        for folder in [&home, &temp] {
            std::fs::remove_dir_all(folder)
                .map_err(|error| FileError::new("empty", folder, error))?;
            self.folder_for_user(folder)?;
        }
        Ok((home, temp))
    }

    /// Copies the files of a checkout in, all but its `.git`, for the container's user. `from` must
    /// be trusted: one that nobody worked in since it was made.
    ///
    /// # Errors
    /// [`SandboxError`], also when the files are more than the storage holds.
    pub fn copy_in(&self, from: &Path) -> Result<(), SandboxError> {
        let work = self.work();
        let walk = walkdir::WalkDir::new(from).min_depth(1).into_iter();
        let is_git = |entry: &walkdir::DirEntry| entry.depth() == 1 && entry.file_name() == ".git";
        for entry in walk.filter_entry(|entry| !is_git(entry)) {
            let entry = entry.map_err(|error| FileError::new("read", from, error.into()))?;
            let relative = entry.path().strip_prefix(from).expect("the walk stays below its root");
            let target = work.join(relative);
            let fail = |error| FileError::new("copy in", entry.path(), error);
            let kind = entry.file_type();
            if kind.is_dir() {
                std::fs::create_dir(&target).map_err(fail)?;
            } else if kind.is_symlink() {
                let to = std::fs::read_link(entry.path()).map_err(fail)?;
                std::os::unix::fs::symlink(to, &target).map_err(fail)?;
            } else {
                std::fs::copy(entry.path(), &target).map_err(fail)?;
            }
            give(&target)?;
        }
        let git = work.join(".git");
        std::fs::create_dir(&git).map_err(|error| FileError::new("make", &git, error))?;
        Ok(())
    }

    /// Unmounts and removes it.
    ///
    /// # Errors
    /// [`SandboxError::Unreleased`] naming what is still there.
    pub fn release(mut self) -> Result<(), SandboxError> {
        self.is_released = true;
        release(self.context, &self.folder)
    }
}

impl Drop for Storage<'_> {
    fn drop(&mut self) {
        if !self.is_released {
            // The next run on the task removes what stays.
            let _ = release(self.context, &self.folder);
        }
    }
}

/// Runs one of the programs that make and mount file systems.
fn step(
    context: &Context,
    what: &'static str,
    program: &str,
    args: &[&str],
) -> Result<(), SandboxError> {
    let mut command = process::command(context, program, Path::new("/"));
    // They lie where people without root don't look.
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").args(args);
    let limits = Limits { deadline: Duration::from_secs(120), max_output_bytes: 4096 };
    let failed = |words: String| SandboxError::Storage { what, words };
    let ended = process::run(command, None, limits)
        .map_err(|error| failed(format!("{program}: {error}")))?;
    if ended.code == Some(0) {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&ended.stderr).trim().to_owned()))
}

/// Gives a path to the container's user, without following it.
fn give(path: &Path) -> Result<(), FileError> {
    lchown(path, Some(USER), Some(USER)).map_err(|error| FileError::new("give away", path, error))
}

fn private_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir(path).map_err(|error| FileError::new("make", path, error))?;
    chown(path, None, None)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)))
        .map_err(|error| FileError::new("set the mode of", path, error))
}

/// Whether the pool and the machine have room for one more storage.
fn require_room(pool_folder: &Path, cap: DiskCap, pool: PoolCap) -> Result<(), SandboxError> {
    let images = walkdir::WalkDir::new(pool_folder).max_depth(3).into_iter().flatten();
    let used: u64 = images
        .filter(|entry| entry.file_name() == "disk.img")
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum();
    let wanted = used.saturating_add(cap.max_bytes);
    if wanted > pool.max_bytes {
        return Err(SandboxError::NotEnforced(format!(
            "the storage of all runs would take {} MiB, and may take {} MiB",
            wanted >> 20,
            pool.max_bytes >> 20
        )));
    }
    let stat: StatVfs = rustix::fs::statvfs(pool_folder)
        .map_err(|errno| FileError::new("look at", pool_folder, errno.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < cap.max_bytes.saturating_add(pool.min_free_bytes) {
        return Err(SandboxError::NotEnforced(format!(
            "{} has {} MiB free: {} MiB are needed, and {} MiB have to stay",
            pool_folder.display(),
            free >> 20,
            cap.max_bytes >> 20,
            pool.min_free_bytes >> 20
        )));
    }
    Ok(())
}

/// Where something is mounted, of all that is below a folder; the deepest first.
fn mounted_below(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescape(field))))
        .filter(|path| path.starts_with(folder))
        .collect();
    found.sort();
    found.reverse();
    found
}

/// The kernel writes blanks and such in its tables as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match octal {
            Some(byte) if *first == b'\\' => {
                out.push(byte);
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

/// Unmounts all below the folder of a run and removes it. One that is not there is released.
///
/// # Errors
/// [`SandboxError::Unreleased`] naming what is still there.
pub fn release(context: &Context, folder: &Path) -> Result<(), SandboxError> {
    let mut words = String::new();
    for attempt in 0..5 {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        for mount in mounted_below(folder) {
            if let Err(error) = step(context, "unmounting", "umount", &[&mount.to_string_lossy()]) {
                words = error.to_string();
            }
        }
        // Never removed while something is mounted: it would be emptied first.
        if !mounted_below(folder).is_empty() {
            continue;
        }
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => words = error.to_string(),
        }
    }
    Err(SandboxError::Unreleased { what: vec![format!("{} ({words})", folder.display())] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read_with_its_escapes() {
        assert_eq!(unescape(br"/a\040b\134c"), b"/a b\\c");
        assert_eq!(unescape(br"/a\04"), br"/a\04");
    }

    #[test]
    fn a_pool_without_room_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let cap = DiskCap { max_bytes: 1 << 20, max_inodes: 100 };
        let wide = PoolCap { max_bytes: 10 << 20, min_free_bytes: 0 };
        assert!(require_room(folder.path(), cap, wide).is_ok());
        let narrow = PoolCap { max_bytes: 1 << 19, ..wide };
        assert!(require_room(folder.path(), cap, narrow).is_err());
        let proud = PoolCap { min_free_bytes: u64::MAX / 2, ..wide };
        assert!(require_room(folder.path(), cap, proud).is_err());
        std::fs::create_dir(folder.path().join("run")).expect("a folder");
        let other = std::fs::File::create(folder.path().join("run/disk.img")).expect("a file");
        other.set_len((9 << 20) + 1).expect("a size");
        assert!(require_room(folder.path(), cap, wide).is_err(), "with that of another run");
    }
}
