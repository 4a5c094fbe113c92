//! The files of a commit, as paths, modes and object ids.

use std::collections::BTreeMap;

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::{CommitId, ObjectId};

use crate::git::read::{Objects, ReadError};
use crate::git::run::{Git, GitError, unexpected};

/// What a leaf of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A regular file: 100644.
    File,
    /// A regular file that may be executed: 100755.
    Executable,
    /// A symbolic link: 120000.
    Symlink,
    /// A submodule's commit: 160000.
    Gitlink,
}

impl Mode {
    /// Git's six digits.
    #[must_use]
    pub fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// Reads git's digits. Old trees hold other permission bits; only the owner's right to execute
    /// counts, as in git.
    #[must_use]
    pub fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Gitlink),
            [b'1', b'0', b'0', owner @ b'0'..=b'7', b'0'..=b'7', b'0'..=b'7'] => {
                let executable = (owner - b'0') & 1 == 1;
                Some(if executable { Self::Executable } else { Self::File })
            }
            _ => None,
        }
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// A leaf of a tree: what it is, and the object that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// What it is.
    pub mode: Mode,
    /// The blob; for a submodule its commit.
    pub object_id: ObjectId,
}

/// All leaves of a commit, by path.
pub type Tree = BTreeMap<RepoPath, Leaf>;

/// Reads all leaves of a commit.
///
/// # Errors
/// [`ReadError`] when a tree is missing, can't be read, or has an entry of a kind that git
/// does not know.
pub fn read_tree(objects: &Objects, commit_id: &CommitId) -> Result<Tree, ReadError> {
    let mut tree = Tree::new();
    for (path, entry) in objects.files(commit_id)? {
        let mode = Mode::parse(format!("{:06o}", entry.mode).as_bytes()).ok_or_else(|| {
            let what = format!("it names an entry of the unknown mode {:o}", entry.mode);
            ReadError::Corrupt { id: commit_id.to_string(), what }
        })?;
        tree.insert(path, Leaf { mode, object_id: entry.oid });
    }
    Ok(tree)
}

/// One path at which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path.
    pub path: RepoPath,
    /// What was there; `None` when there was nothing.
    pub before: Option<Leaf>,
    /// What is there; `None` when nothing is.
    pub after: Option<Leaf>,
}

/// Where two trees differ, by path; no renames are sought.
///
/// # Errors
/// [`GitError`] when git fails or answers in an unexpected form.
pub fn diff_trees(
    git: &Git<'_>,
    before: &ObjectId,
    after: &ObjectId,
) -> Result<Vec<TreeChange>, GitError> {
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"];
    let ids = [before.as_str(), after.as_str()];
    let answer = git
        .output(args.into_iter().chain(["--ignore-submodules=none", "--no-ext-diff"]).chain(ids))?;
    let mut parts = answer.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(facts) = parts.next().filter(|facts| !facts.is_empty()) {
        let path = parts.next().ok_or_else(|| unexpected("diff-tree", facts))?;
        let (before, after) = parse_raw(facts).ok_or_else(|| unexpected("diff-tree", facts))?;
        changes.push(TreeChange { path: RepoBytes::from(path), before, after });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// `:100644 100755 <id> <id> M`
fn parse_raw(facts: &[u8]) -> Option<(Option<Leaf>, Option<Leaf>)> {
    let words: Vec<_> = facts.strip_prefix(b":")?.split(|byte| *byte == b' ').collect();
    let [mode_before, mode_after, id_before, id_after, _status] = words[..] else { return None };
    let leaf = |mode: &[u8], id: &[u8]| {
        if mode == b"000000" {
            return Some(None);
        }
        let object_id = ObjectId::parse(std::str::from_utf8(id).ok()?).ok()?;
        Some(Some(Leaf { mode: Mode::parse(mode)?, object_id }))
    };
    Some((leaf(mode_before, id_before)?, leaf(mode_after, id_after)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_permission_bits_are_read_as_git_reads_them() {
        for (digits, mode) in [
            (&b"100644"[..], Some(Mode::File)),
            (b"100664", Some(Mode::File)),
            (b"100755", Some(Mode::Executable)),
            (b"100775", Some(Mode::Executable)),
            (b"120000", Some(Mode::Symlink)),
            (b"160000", Some(Mode::Gitlink)),
            (b"040000", None),
            (b"100648", None),
            (b"", None),
        ] {
            assert_eq!(Mode::parse(digits), mode, "{}", String::from_utf8_lossy(digits));
        }
    }
}
