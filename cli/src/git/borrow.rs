//! A private bare repository of ours that borrows the objects of another one.
//!
//! Git run in it sees the objects and nothing else: no configuration, attributes, hooks, grafts,
//! shallow boundaries, replace refs or refs of the repository that is read. Whatever the source
//! says about how its files should be shown or diffed has no effect.

use std::path::Path;

use codeboost_schema::ids::CommitId;
use tempfile::TempDir;

use crate::context::Context;
use crate::git::run::{Git, GitError};
use crate::stage::{self, FileError};

/// The private repository; removed when dropped.
#[derive(Debug)]
pub struct Borrowed<'a> {
    git: Git<'a>,
    _folder: TempDir,
}

/// Why the private repository could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BorrowError {
    /// The temporary folder or a file in it can't be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git could not be asked about the source.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 hex digits.
    Sha1,
    /// 64 hex digits.
    Sha256,
}

impl ObjectFormat {
    /// The format that a name of this length belongs to.
    #[must_use]
    pub fn of(id: &CommitId) -> Self {
        if id.as_str().len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }

    /// The empty tree.
    #[must_use]
    pub fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }
}

impl<'a> Borrowed<'a> {
    /// Makes a private repository on the objects in `objects_dir`.
    ///
    /// # Errors
    /// [`BorrowError::File`] when the temporary folder can't be written.
    pub fn new(
        context: &'a Context,
        objects_dir: &Path,
        format: ObjectFormat,
    ) -> Result<Self, BorrowError> {
        let folder = tempfile::Builder::new()
            .prefix("codeboost-git-")
            .tempdir()
            .map_err(|e| FileError::new("make a temporary folder in", &std::env::temp_dir(), e))?;
        let path = folder.path();
        // No folder of objects: the variable below names one.
        stage::make_folder(&path.join("refs"))?;
        let mut config = String::from("[core]\n\tbare = true\n\trepositoryformatversion = 1\n");
        if format == ObjectFormat::Sha256 {
            config.push_str("[extensions]\n\tobjectformat = sha256\n");
        }
        stage::write_scratch(&path.join("config"), config.as_bytes())?;
        stage::write_scratch(&path.join("HEAD"), b"ref: refs/heads/none\n")?;
        let git = Git::at(context, path)
            .with_env("GIT_OBJECT_DIRECTORY", objects_dir)
            // A commit-graph file could name other parents than the commits do.
            .with_config("core.commitGraph=false")
            // Size never makes a file binary; content alone does.
            .with_config("core.bigFileThreshold=2g");
        Ok(Self { git, _folder: folder })
    }

    /// Git on the private repository.
    #[must_use]
    pub fn git(&self) -> &Git<'a> {
        &self.git
    }
}
