//! What linking reads: the commits of a range with the files each of them changed, and the final
//! diff. Plain data, filled by `git::range`.
//!
//! Contents are not in it. They are fetched one at a time through [`Blobs`], because all of them
//! together may be larger than memory.

use std::collections::HashSet;
use std::sync::Arc;

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::link::FileStatus;

/// The commits of `base..head` and the diff between the two ends.
#[derive(Debug, Clone)]
pub struct History {
    /// An ancestor of `head`, or `head` itself.
    pub base: CommitId,
    /// The last of `commits`, or the base when there are none.
    pub head: CommitId,
    /// Topological, parents first.
    pub commits: Vec<Commit>,
    /// The parents of `commits` that lie outside the range and are not the base: ancestors of the
    /// base from which side branches start.
    pub outside: Vec<Outside>,
    /// The diff of the base and the head.
    pub diff: FinalDiff,
}

/// One commit of the range.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Its name.
    pub id: CommitId,
    /// In git's order, never empty: a root commit has [`At::Nothing`] as its only parent. Without
    /// those that offer a merge no side ([`Sides`]).
    pub parents: Vec<Parent>,
}

/// One parent of a commit, and what the commit changed against it.
#[derive(Debug, Clone)]
pub struct Parent {
    /// Where the parent is.
    pub at: At,
    /// With renames of at least half similarity; in byte order of path.
    pub changes: Vec<FileChange>,
}

/// A state of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The base of the range.
    Base,
    /// Place in [`History::commits`].
    Commit(u32),
    /// Place in [`History::outside`].
    Outside(u32),
    /// The empty tree.
    Nothing,
}

/// A commit outside the range from which a side branch starts.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Its name.
    pub id: CommitId,
    /// What it has otherwise than the base; the base is the old side.
    pub changes: Vec<FileChange>,
}

/// One file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path on the new side; on the old side for a deleted file.
    pub path: RepoPath,
    /// The path on the old side, where that is another one.
    pub renamed_from: Option<RepoPath>,
    /// What stood there.
    pub old: Option<Version>,
    /// What stands there.
    pub new: Option<Version>,
}

impl FileChange {
    /// Whether no side is a link or a submodule.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().all(Version::is_regular)
    }

    /// The path on the old side, whether or not there is one.
    #[must_use]
    pub fn old_path(&self) -> &RepoPath {
        self.renamed_from.as_ref().unwrap_or(&self.path)
    }
}

/// What a tree has at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Git's mode.
    pub mode: u32,
    /// The blob, or for a submodule the commit it points to.
    pub oid: ObjectId,
}

/// Mode of a symbolic link.
pub const SYMLINK: u32 = 0o120_000;
/// Mode of a submodule.
pub const SUBMODULE: u32 = 0o160_000;
/// Mode of an executable file.
pub const EXECUTABLE: u32 = 0o100_755;

impl Version {
    /// Whether it is a regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        !matches!(self.mode, SYMLINK | SUBMODULE)
    }
}

/// Tells which parents of a merge are sides of it.
///
/// A parent that another parent has among its ancestors is none: whatever that one did with it was
/// done knowingly, so a merge that goes back to it undoes this by itself and hands nothing down.
#[derive(Debug, Default)]
pub struct Sides {
    /// By commit: its parents.
    parents: Vec<Vec<At>>,
    /// By commit: whether the base is among its ancestors.
    has_base: Vec<bool>,
}

impl Sides {
    /// Whether each parent of the next commit is a side. Commits come in the order of
    /// [`History::commits`].
    pub fn of_commit(&mut self, parents: &[At]) -> Vec<bool> {
        let has_base = parents.iter().any(|at| self.has_base(*at));
        let below = if parents.len() < 2 { HashSet::new() } else { self.below(parents) };
        let is_side = |at: &At| match at {
            At::Commit(n) => !below.contains(n),
            At::Base => !parents.iter().any(|other| other != at && self.has_base(*other)),
            // All of these are ancestors of the base.
            At::Outside(_) => !has_base,
            At::Nothing => true,
        };
        let sides = parents.iter().map(is_side).collect();
        self.parents.push(parents.to_vec());
        self.has_base.push(has_base);
        sides
    }

    fn has_base(&self, at: At) -> bool {
        match at {
            At::Base => true,
            At::Commit(n) => self.has_base[n as usize],
            At::Outside(_) | At::Nothing => false,
        }
    }

    /// The proper ancestors of these, down to the earliest of them.
    fn below(&self, commits: &[At]) -> HashSet<u32> {
        let number = |at: &At| match at {
            At::Commit(n) => Some(*n),
            At::Base | At::Outside(_) | At::Nothing => None,
        };
        let mut todo: Vec<u32> = commits.iter().filter_map(number).collect();
        let earliest = todo.iter().min().copied().unwrap_or_default();
        let mut below = HashSet::new();
        while let Some(commit) = todo.pop() {
            for parent in self.parents[commit as usize].iter().filter_map(number) {
                if parent >= earliest && below.insert(parent) {
                    todo.push(parent);
                }
            }
        }
        below
    }
}

/// The diff of the base and the head, as git makes it with the contract's settings.
#[derive(Debug, Clone, Default)]
pub struct FinalDiff {
    /// Whether there were too many candidates, so that inexact renames were not sought.
    pub renames_skipped: bool,
    /// In byte order of path.
    pub files: Vec<FinalFile>,
}

/// One file of the final diff.
#[derive(Debug, Clone)]
pub struct FinalFile {
    /// Its two sides.
    pub change: FileChange,
    /// What happened to it.
    pub status: FileStatus,
    /// Percent, for renamed files.
    pub similarity: Option<u32>,
    /// Changed lines, in order; none unless both sides that exist are regular files. `None`: not
    /// known yet; linking works them out.
    pub blocks: Option<Vec<Block>>,
}

/// A run of removed lines and the run of added lines that stands in its place.
///
/// Lines count from 0. At least one unchanged line lies between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First removed line, or the line before which lines are added.
    pub old_start: u32,
    /// Number of removed lines.
    pub old_lines: u32,
    /// First added line, or the line before which lines are removed.
    pub new_start: u32,
    /// Number of added lines.
    pub new_lines: u32,
}

impl Block {
    /// The removed lines.
    #[must_use]
    pub fn olds(&self) -> std::ops::Range<usize> {
        self.old_start as usize..(self.old_start + self.old_lines) as usize
    }

    /// The added lines.
    #[must_use]
    pub fn news(&self) -> std::ops::Range<usize> {
        self.new_start as usize..(self.new_start + self.new_lines) as usize
    }
}

/// Where contents come from.
pub trait Blobs: Sync {
    /// A reader for one thread.
    fn reader(&self) -> Box<dyn BlobReader + '_>;
}

/// Where contents come from, and git's own word on what lies between two of them.
pub trait LineDiffs: Blobs {
    /// The changed lines between two blobs that are no binary content, as git makes the final diff.
    ///
    /// # Errors
    /// [`BlobError`] when git fails.
    fn blocks(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<Block>, BlobError>;
}

/// Reads contents, one at a time.
pub trait BlobReader {
    /// The content of a blob.
    ///
    /// # Errors
    /// [`BlobError`] when it is missing or can't be read.
    fn blob(&mut self, oid: &ObjectId) -> Result<Arc<Vec<u8>>, BlobError>;
}

/// A content that can't be read: the reader's error, which names the object and the next step.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BlobError(pub Box<dyn std::error::Error + Send + Sync>);
