//! What a plan is held against: the entries of its base, and which paths name one entry where the
//! work is checked out.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use codeboost_schema::ids::CommitId;
use codeboost_schema::plan::Plan;

use crate::git::read::{Objects, ReadError};
use crate::git::repository::Repository;
use crate::git::tree::{Mode, read_tree};
use crate::plan::judge::judge;
use crate::plan::problem::{Code, Problem};
use crate::plan::v1::check::CheckContext;
use crate::plan::v1::projected::{Entry, EntryKind, PathIdentity};
use crate::stage::FileError;

/// What plans are held against, read once for any number of checks.
#[derive(Debug)]
pub struct Surroundings {
    entries: Vec<Entry>,
    identity: Result<PathIdentity, FileError>,
}

impl Surroundings {
    /// Reads the base's tree and finds out how paths are compared.
    ///
    /// # Errors
    /// [`ReadError`] when the base can't be read.
    pub fn read(repository: &Repository<'_>, base: &CommitId) -> Result<Self, ReadError> {
        let objects = Objects::open(repository.git())?;
        let entries = base_entries(&objects, base)?;
        Ok(Self { entries, identity: path_identity(repository) })
    }

    /// Every problem of a plan. `issue`: the selected one, if any; `allowed`: what may run.
    #[must_use]
    pub fn judge(
        &self,
        plan: &Plan,
        issue: Option<u64>,
        allowed: &BTreeSet<Vec<String>>,
    ) -> Vec<Problem> {
        let identity = match &self.identity {
            Ok(identity) => *identity,
            Err(error) => return vec![unknown_identity(error)],
        };
        judge(plan, &CheckContext { issue, base: &self.entries, identity, allowed })
    }
}

fn unknown_identity(error: &FileError) -> Problem {
    Problem::new(
        Code::Context,
        "",
        format!("it can't be found out which paths are one on this file system: {error}"),
        "when that is not known nothing is checked (4.2)",
        "make the git directory writable, or check in a bare clone, which compares bytes",
    )
}

/// The leaves of a commit's tree, with the targets of links.
///
/// # Errors
/// [`ReadError`] when a tree or a link can't be read: unknown is never taken for absent.
pub fn base_entries(objects: &Objects, commit: &CommitId) -> Result<Vec<Entry>, ReadError> {
    let mut entries = Vec::new();
    for (path, leaf) in read_tree(objects, commit)? {
        let kind = match leaf.mode {
            Mode::File | Mode::Executable => EntryKind::File,
            Mode::Symlink => EntryKind::Symlink { target: objects.blob(&leaf.object_id)? },
            Mode::Gitlink => EntryKind::Gitlink,
        };
        entries.push(Entry { path, kind });
    }
    Ok(entries)
}

/// Finds out which paths name one entry in the work tree, by trying it.
///
/// The try happens in a temporary folder of the git directory when that lies on the same file
/// system, so that the work tree stays untouched; else in one of the work tree. A bare repository
/// has no work tree, so its paths are compared byte by byte.
///
/// # Errors
/// [`FileError`] when it can't be found out. Nothing may be assumed then.
pub fn path_identity(repository: &Repository<'_>) -> Result<PathIdentity, FileError> {
    let Some(work_tree) = repository.work_tree() else {
        return Ok(PathIdentity::EXACT);
    };
    let device = |path: &Path| {
        std::fs::metadata(path)
            .map(|meta| meta.dev())
            .map_err(|source| FileError::new("look at", path, source))
    };
    let git_dir = repository.git().git_dir();
    let folder = if device(git_dir)? == device(work_tree)? { git_dir } else { work_tree };
    let mut identity = probe(folder)?;
    // Some file systems decide this folder by folder, so the work tree's own root counts too.
    identity.folds_case |= same_entry(work_tree, ".git", ".GIT")?;
    Ok(identity)
}

fn probe(folder: &Path) -> Result<PathIdentity, FileError> {
    let temp = tempfile::Builder::new()
        .prefix("codeboost-probe-")
        .tempdir_in(folder)
        .map_err(|source| FileError::new("find out how paths are compared in", folder, source))?;
    let folds = |made: &str, asked: &str| {
        let path = temp.path().join(made);
        std::fs::create_dir(&path).map_err(|source| FileError::new("make", &path, source))?;
        same_entry(temp.path(), made, asked)
    };
    Ok(PathIdentity {
        folds_case: folds("case", "CASE")?,
        folds_unicode: folds("\u{e9}", "e\u{301}")?,
    })
}

/// Whether both names reach the same entry of a folder; false when the second reaches none.
fn same_entry(folder: &Path, name: &str, other: &str) -> Result<bool, FileError> {
    let look = |name: &str| {
        let path = folder.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(meta) => Ok(Some((meta.dev(), meta.ino()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FileError::new("look at", &path, source)),
        }
    };
    let other = look(other)?;
    Ok(other.is_some() && look(name)? == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_entry_are_told_from_names_of_two() {
        let temp = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(temp.path().join("a")).expect("a folder inside");
        std::fs::create_dir(temp.path().join("b")).expect("another folder inside");
        assert!(same_entry(temp.path(), "a", "a/../a").expect("an answer"));
        assert!(!same_entry(temp.path(), "a", "b").expect("an answer"));
        assert!(!same_entry(temp.path(), "a", "c").expect("an answer"));
    }

    #[test]
    fn what_is_probed_is_what_the_file_system_does() {
        let temp = tempfile::tempdir().expect("a folder");
        let found = probe(temp.path()).expect("an answer");
        std::fs::create_dir(temp.path().join("x")).expect("a folder inside");
        assert_eq!(found.folds_case, temp.path().join("X").exists());
        assert!(probe(&temp.path().join("missing")).is_err());
        let left: Vec<_> = std::fs::read_dir(temp.path()).expect("a listing").collect();
        assert_eq!(left.len(), 1);
    }
}
