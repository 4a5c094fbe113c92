//! What lies in a workspace: read without following links, without running anything there and
//! without trusting its `.git`.
//!
//! Every folder is opened from the one above it, never by a path, and never through a link. Each
//! regular file is opened once: the id is computed from what is read, and a content that the tree
//! before does not have is copied to a [`Spool`] in the same breath, checked against that id. So
//! what is audited is what is committed, whatever happens in the workspace meanwhile.
//!
//! What counts: every file that the tree before has or the item declares, and every new one that
//! no ignore rule covers. Rules are those of the person (`info/exclude` and their own file), and
//! the `.gitignore` files of the tree before and of the work tree: a file is left out when either
//! set says so. Left-out files are listed, never committed, never looked into.
//!
//! Absent on purpose: renames (git's diff finds them) and empty folders (git keeps none).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::ObjectId;
use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, Stat};
use rustix::io::Errno;

use crate::execute::audit;
use crate::git::borrow::ObjectFormat;
use crate::git::hash::{self, HashError};
use crate::git::ignore::IgnoreRules;
use crate::git::tree::{Leaf, Mode, Tree};
use crate::stage::FileError;

/// Most entries that are looked at.
const MAX_ENTRIES: usize = 2_000_000;
/// Deepest nesting of folders: each level holds a file descriptor.
const MAX_DEPTH: usize = 200;
/// Largest file.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Largest sum of changed contents.
const MAX_CHANGED_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Largest `.gitignore` that is read.
const MAX_RULES_BYTES: u64 = 1024 * 1024;
/// Most left-out entries that are kept by name.
const MAX_LISTED: usize = 1000;

/// What was found in a workspace.
#[derive(Debug, Default)]
pub struct Manifest {
    /// Every leaf that counts, by path. Submodules stand as the tree before has them.
    pub leaves: Tree,
    /// Targets of the links among them.
    pub targets: BTreeMap<RepoPath, RepoBytes>,
    /// What can't be part of a commit, by path.
    pub oddities: Vec<(RepoPath, Oddity)>,
    /// Left-out files and folders (these with a slash at the end), at most 1,000.
    pub ignored: Vec<RepoPath>,
    /// How many were left out.
    pub n_ignored: usize,
    /// Links among the left-out entries.
    pub ignored_links: BTreeSet<RepoPath>,
}

/// Something that can't be part of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// A name that git takes for `.git`.
    DotGit,
    /// A folder or file `.git` below the root.
    NestedRepository,
    /// The folder of a submodule is not empty.
    SubmoduleContent,
    /// A device, a pipe or a socket.
    SpecialFile,
    /// Another file system is mounted here.
    OtherFileSystem,
    /// A file with another name that was not seen.
    HardLink,
    /// An entry can't be read.
    Unreadable,
    /// An entry changes while it is read.
    Changing,
    /// A file, or the sum of all changed ones, is too large.
    TooLarge,
    /// Too many entries, or too deep.
    TooManyEntries,
}

/// What reading goes by.
#[derive(Debug)]
pub struct Options<'a> {
    /// The tree that the item began with.
    pub before: &'a Tree,
    /// Contents of the `.gitignore` files of that tree, by the folder that they lie in.
    pub rules_before: &'a BTreeMap<RepoPath, Vec<u8>>,
    /// The person's own ignore rules, weakest first.
    pub own_rules: Vec<Vec<u8>>,
    /// Paths that count also where an ignore rule covers them.
    pub declared: BTreeSet<RepoPath>,
    /// The hash of the repository.
    pub format: ObjectFormat,
    /// Whether the file system keeps the right to execute; else the tree before decides.
    pub trusts_execute_bit: bool,
}

/// Contents that the tree before does not have, copied out of the workspace.
#[derive(Debug)]
pub struct Spool {
    folder: tempfile::TempDir,
    contents: BTreeMap<ObjectId, PathBuf>,
    n_bytes: u64,
}

impl Spool {
    /// An empty one, in a folder of its own below `parent` that only this user can read.
    ///
    /// # Errors
    /// [`FileError`] naming the path.
    pub fn new(parent: &Path) -> Result<Self, FileError> {
        std::fs::create_dir_all(parent).map_err(|e| FileError::new("make", parent, e))?;
        let folder = tempfile::Builder::new()
            .prefix("spool-")
            .tempdir_in(parent)
            .map_err(|e| FileError::new("make a folder in", parent, e))?;
        Ok(Self { folder, contents: BTreeMap::new(), n_bytes: 0 })
    }

    /// The copies, by the id of their content.
    #[must_use]
    pub fn contents(&self) -> &BTreeMap<ObjectId, PathBuf> {
        &self.contents
    }

    /// The folder that the copies lie in; nothing else does.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn next_path(&self) -> PathBuf {
        self.folder.path().join(self.contents.len().to_string())
    }
}

/// Reads the folder `root`.
///
/// # Errors
/// [`FileError`] when `root` itself is no folder or can't be read, or when the spool can't be
/// written. Whatever is wrong inside is an [`Oddity`] of the manifest.
pub fn read(root: &Path, options: &Options<'_>, spool: &mut Spool) -> Result<Manifest, FileError> {
    let fail = |errno: Errno| FileError::new("open the folder", root, errno.into());
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags, Permissions::empty()).map_err(fail)?;
    let stat = rustix::fs::fstat(&folder).map_err(fail)?;
    let own_rules = || IgnoreRules::new(options.own_rules.iter().map(Vec::as_slice));
    let mut walk = Walk {
        options,
        spool,
        root: stat,
        manifest: Manifest::default(),
        rules_before: own_rules(),
        rules_now: own_rules(),
        names: BTreeMap::new(),
        n_entries: 0,
        is_given_up: false,
    };
    walk.folder(folder, &[], Ignored::No, 0)?;
    Ok(walk.end())
}

/// Whether the entries of a folder are left out as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ignored {
    Yes,
    No,
}

struct Walk<'a> {
    options: &'a Options<'a>,
    spool: &'a mut Spool,
    root: Stat,
    manifest: Manifest,
    rules_before: IgnoreRules,
    rules_now: IgnoreRules,
    /// Files with several names, by inode: the number of names, and the paths seen.
    names: BTreeMap<u64, (u64, Vec<RepoPath>)>,
    n_entries: usize,
    is_given_up: bool,
}

impl Walk<'_> {
    fn end(mut self) -> Manifest {
        for (n_names, paths) in std::mem::take(&mut self.names).into_values() {
            if n_names > paths.len() as u64 {
                for path in paths {
                    self.odd(path, Oddity::HardLink);
                }
            }
        }
        // Submodules whose folder is gone stay: git keeps no empty folders, so that its absence
        // says nothing.
        for (path, leaf) in self.options.before {
            if leaf.mode == Mode::Gitlink
                && !self.manifest.leaves.contains_key(path)
                && !self.has_leaf_at_or_above(path)
            {
                self.manifest.leaves.insert(path.clone(), leaf.clone());
            }
        }
        self.manifest
    }

    /// Whether a file stands where a folder of `path` would have to be.
    fn has_leaf_at_or_above(&self, path: &RepoPath) -> bool {
        let bytes = path.as_bytes();
        (1..=bytes.len())
            .filter(|n| bytes.get(*n).is_none_or(|byte| *byte == b'/'))
            .any(|n| self.manifest.leaves.contains_key(&RepoBytes::from(&bytes[..n])))
    }

    fn odd(&mut self, path: impl Into<RepoPath>, oddity: Oddity) {
        self.manifest.oddities.push((path.into(), oddity));
    }

    fn left_out(&mut self, path: Vec<u8>) {
        self.manifest.n_ignored += 1;
        if self.manifest.ignored.len() < MAX_LISTED {
            self.manifest.ignored.push(path.into());
        }
    }

    /// Whether a path counts whatever the ignore rules say.
    fn always_counts(&self, path: &RepoPath) -> bool {
        self.options.before.contains_key(path) || self.options.declared.contains(path)
    }

    /// Whether anything beneath a folder counts whatever the ignore rules say.
    fn has_counting_beneath(&self, folder: &[u8]) -> bool {
        let mut prefix = folder.to_vec();
        prefix.push(b'/');
        let first = RepoBytes::from(prefix.clone());
        let tracked = self.options.before.range(first.clone()..).next().map(|(path, _)| path);
        let declared = self.options.declared.range(first..).next();
        tracked.into_iter().chain(declared).any(|path| path.as_bytes().starts_with(&prefix))
    }

    fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        self.rules_before.is_ignored(path, is_folder) || self.rules_now.is_ignored(path, is_folder)
    }

    fn folder(
        &mut self,
        folder: OwnedFd,
        path: &[u8],
        ignored: Ignored,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth > MAX_DEPTH {
            self.odd(path, Oddity::TooManyEntries);
            return Ok(());
        }
        let Ok(names) = read_names(&folder) else {
            self.odd(path, Oddity::Unreadable);
            return Ok(());
        };
        let mark_before = {
            let rules = self.options.rules_before.get(&RepoBytes::from(path));
            self.rules_before.push(path_of(path), rules.map_or(&[][..], Vec::as_slice))
        };
        let rules = read_rules(&folder).unwrap_or_default();
        let mark_now = self.rules_now.push(path_of(path), &rules);
        for name in names {
            if self.is_given_up {
                break;
            }
            self.n_entries += 1;
            if self.n_entries > MAX_ENTRIES {
                self.odd(RepoBytes::default(), Oddity::TooManyEntries);
                self.is_given_up = true;
                break;
            }
            self.entry(folder.as_fd(), &name, path, ignored, depth)?;
        }
        self.rules_before.pop_to(mark_before);
        self.rules_now.pop_to(mark_now);
        Ok(())
    }

    fn entry(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        parent: &[u8],
        ignored: Ignored,
        depth: usize,
    ) -> Result<(), FileError> {
        let mut path = parent.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        if depth == 0 && name.to_bytes() == b".git" {
            return Ok(());
        }
        let key = RepoBytes::from(path.as_slice());
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // It went away since its folder was read.
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => {
                self.odd(key, Oddity::Unreadable);
                return Ok(());
            }
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_folder = kind == FileType::Directory;
        let is_left_out = ignored == Ignored::Yes || self.is_ignored(&path, is_folder);
        let counts = if is_folder {
            self.always_counts(&key) || self.has_counting_beneath(&path)
        } else {
            self.always_counts(&key)
        };
        if is_left_out && !counts {
            if kind == FileType::Symlink {
                self.manifest.ignored_links.insert(key);
            }
            if is_folder {
                path.push(b'/');
            }
            self.left_out(path);
            return Ok(());
        }
        if name.to_bytes() == b".git" {
            self.odd(key, Oddity::NestedRepository);
            return Ok(());
        }
        if audit::is_dot_git(name.to_bytes()) {
            self.odd(key, Oddity::DotGit);
            return Ok(());
        }
        let submodule =
            self.options.before.get(&key).filter(|leaf| leaf.mode == Mode::Gitlink).cloned();
        match kind {
            FileType::Directory => {
                let Some(inner) = self.open_folder(folder, name, &stat, &key) else {
                    return Ok(());
                };
                if let Some(leaf) = submodule {
                    if read_names(&inner).is_ok_and(|names| names.is_empty()) {
                        self.manifest.leaves.insert(key, leaf);
                    } else {
                        self.odd(key, Oddity::SubmoduleContent);
                    }
                    return Ok(());
                }
                let ignored = if is_left_out { Ignored::Yes } else { Ignored::No };
                self.folder(inner, &path, ignored, depth + 1)
            }
            FileType::RegularFile => self.file(folder, name, &stat, key),
            FileType::Symlink => self.link(folder, name, key),
            _ => {
                self.odd(key, Oddity::SpecialFile);
                Ok(())
            }
        }
    }

    fn open_folder(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        stat: &Stat,
        key: &RepoPath,
    ) -> Option<OwnedFd> {
        if stat.st_dev != self.root.st_dev {
            self.odd(key.clone(), Oddity::OtherFileSystem);
            return None;
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, name, flags, Permissions::empty()) {
            Ok(inner) => match rustix::fs::fstat(&inner) {
                Ok(now) if now.st_dev == stat.st_dev && now.st_ino == stat.st_ino => Some(inner),
                _ => {
                    self.odd(key.clone(), Oddity::Changing);
                    None
                }
            },
            Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => {
                self.odd(key.clone(), Oddity::Changing);
                None
            }
            Err(_) => {
                self.odd(key.clone(), Oddity::Unreadable);
                None
            }
        }
    }

    fn file(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        stat: &Stat,
        key: RepoPath,
    ) -> Result<(), FileError> {
        if stat.st_dev != self.root.st_dev {
            self.odd(key, Oddity::OtherFileSystem);
            return Ok(());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if size > MAX_FILE_BYTES {
            self.odd(key, Oddity::TooLarge);
            return Ok(());
        }
        // Without NONBLOCK a pipe put here since would stop us for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Permissions::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::NOENT | Errno::ISDIR | Errno::NXIO) => {
                self.odd(key, Oddity::Changing);
                return Ok(());
            }
            Err(_) => {
                self.odd(key, Oddity::Unreadable);
                return Ok(());
            }
        };
        let is_same = rustix::fs::fstat(&file).is_ok_and(|now| {
            now.st_dev == stat.st_dev && now.st_ino == stat.st_ino && now.st_mode == stat.st_mode
        });
        if !is_same {
            self.odd(key, Oddity::Changing);
            return Ok(());
        }
        let mut file = File::from(file);
        let n_names = file.metadata().map_or(1, |meta| meta.nlink());
        if n_names > 1 {
            let names = self.names.entry(stat.st_ino).or_insert((n_names, Vec::new()));
            names.1.push(key.clone());
        }
        let before = self.options.before.get(&key).filter(|leaf| leaf.mode.is_file());
        let mode = match before {
            Some(leaf) if !self.options.trusts_execute_bit => leaf.mode,
            None if !self.options.trusts_execute_bit => Mode::File,
            _ if stat.st_mode & 0o100 != 0 => Mode::Executable,
            _ => Mode::File,
        };
        let object_id = match hash::blob_id_of(self.options.format, size, &mut file, |_| Ok(())) {
            Ok(object_id) => object_id,
            Err(HashError::Read(_) | HashError::Collision) => {
                self.odd(key, Oddity::Unreadable);
                return Ok(());
            }
            Err(HashError::Changing) => {
                self.odd(key, Oddity::Changing);
                return Ok(());
            }
        };
        if before.is_none_or(|leaf| leaf.object_id != object_id)
            && !self.spool.contents.contains_key(&object_id)
        {
            self.spool.n_bytes += size;
            if self.spool.n_bytes > MAX_CHANGED_BYTES {
                self.odd(key, Oddity::TooLarge);
                return Ok(());
            }
            if !self.copy(&mut file, size, &object_id)? {
                self.odd(key, Oddity::Changing);
                return Ok(());
            }
        }
        self.manifest.leaves.insert(key, Leaf { mode, object_id });
        Ok(())
    }

    /// Copies a content to the spool; `false` when it is not the one that was seen before.
    fn copy(&mut self, file: &mut File, size: u64, wanted: &ObjectId) -> Result<bool, FileError> {
        let path = self.spool.next_path();
        let fail = |error| FileError::new("write", &path, error);
        let mut copy = File::create_new(&path).map_err(fail)?;
        if file.rewind().is_err() {
            return Ok(false);
        }
        let mut write_error = None;
        let found = hash::blob_id_of(self.options.format, size, file, |piece| {
            copy.write_all(piece).map_err(|error| {
                let kind = error.kind();
                write_error = Some(error);
                kind.into()
            })
        });
        if let Some(error) = write_error {
            return Err(fail(error));
        }
        if found.is_ok_and(|id| id == *wanted) {
            self.spool.contents.insert(wanted.clone(), path);
            return Ok(true);
        }
        let _ = std::fs::remove_file(&path);
        Ok(false)
    }

    fn link(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        key: RepoPath,
    ) -> Result<(), FileError> {
        let Ok(target) = rustix::fs::readlinkat(folder, name, Vec::new()) else {
            self.odd(key, Oddity::Changing);
            return Ok(());
        };
        let target = target.into_bytes();
        let Ok(object_id) = hash::blob_id(self.options.format, &target) else {
            self.odd(key, Oddity::Changing);
            return Ok(());
        };
        if self.options.before.get(&key).is_none_or(|leaf| leaf.object_id != object_id)
            && !self.spool.contents.contains_key(&object_id)
        {
            let path = self.spool.next_path();
            File::create_new(&path)
                .and_then(|mut file| file.write_all(&target))
                .map_err(|error| FileError::new("write", &path, error))?;
            self.spool.contents.insert(object_id.clone(), path);
        }
        self.manifest.targets.insert(key.clone(), target.into());
        self.manifest.leaves.insert(key, Leaf { mode: Mode::Symlink, object_id });
        Ok(())
    }
}

/// The names in a folder, in byte order, without `.` and `..`.
fn read_names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if names.len() > MAX_ENTRIES {
            return Err(Errno::OVERFLOW);
        }
    }
    names.sort();
    Ok(names)
}

/// The rules in the `.gitignore` of a folder; `None` when there is none that can be read.
fn read_rules(folder: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, c".gitignore", flags, Permissions::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut rules = Vec::new();
    File::from(file).take(MAX_RULES_BYTES).read_to_end(&mut rules).ok()?;
    Some(rules)
}

fn path_of(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
