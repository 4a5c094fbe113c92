//! The repository that a command works on, and the two folders that codeboost has in it.
//!
//! State lies in the git common directory, so that all worktrees share it and cleaning a work tree
//! can't delete it. Outputs lie in `.codeboost/` of the work tree; all of them can be made again.
//! Nothing else in the checkout is ever touched.

use std::path::{Path, PathBuf};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::CommitId;

use crate::config::{Config, ConfigError, ProjectConfig};
use crate::context::Context;
use crate::git::read::{Objects, ReadError, TreeEntry};
use crate::git::run::{Git, GitError};
use crate::stage::{self, FileError};

/// An opened repository.
#[derive(Debug, Clone)]
pub struct Repository<'a> {
    context: &'a Context,
    git: Git<'a>,
    common_dir: PathBuf,
    work_tree: Option<PathBuf>,
}

/// Why the repository or its outputs folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// Git refused or failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The project's configuration can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The outputs folder is a symbolic link or not a folder.
    #[error("{} is not a folder of its own", .0.display())]
    NotAFolder(PathBuf),
    /// The outputs folder holds files that git tracks.
    #[error("{} holds files that git tracks", .0.display())]
    Tracked(PathBuf),
}

impl<'a> Repository<'a> {
    /// Opens the repository that the command was started in.
    ///
    /// # Errors
    /// [`RepositoryError::Git`] when there is none.
    pub fn open(context: &'a Context) -> Result<Self, RepositoryError> {
        Self::open_at(context, context.cwd())
    }

    /// Opens the repository that `folder` lies in; bare ones and linked worktrees included.
    ///
    /// # Errors
    /// [`RepositoryError::Git`] when there is none.
    pub fn open_at(context: &'a Context, folder: &Path) -> Result<Self, RepositoryError> {
        // Git started in a folder that is not there fails as a git that is not there.
        std::fs::read_dir(folder)
            .map_err(|source| FileError::new("open the folder", folder, source))?;
        let git = Git::discover(context, folder)?;
        let common_dir = git.common_dir()?;
        // Resolved, so that only what lies inside may be refused for being a link.
        let common_dir = common_dir
            .canonicalize()
            .map_err(|source| FileError::new("resolve", &common_dir, source))?;
        let work_tree = git.work_tree(folder)?;
        Ok(Self { context, git, common_dir, work_tree })
    }

    /// The context that it was opened in.
    #[must_use]
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Git on this repository.
    #[must_use]
    pub fn git(&self) -> &Git<'a> {
        &self.git
    }

    /// The directory that all linked worktrees share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The root of the work tree; `None` for a bare repository.
    #[must_use]
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    /// Where the state lies: `<git common dir>/codeboost`. It may not exist yet.
    #[must_use]
    pub fn state_folder(&self) -> PathBuf {
        self.common_dir.join("codeboost")
    }

    /// What the project says about itself in `codeboost.yaml` of `base`; nothing when there is no
    /// such file. Always of the base, never of a branch under review.
    ///
    /// # Errors
    /// [`RepositoryError::Config`] naming the place when the file is wrong,
    /// [`RepositoryError::Read`] when it can't be read.
    pub fn project_config(&self, base: &CommitId) -> Result<ProjectConfig, RepositoryError> {
        self.project_config_in(&Objects::open(&self.git)?, base)
    }

    /// As [`Self::project_config`], from objects of this repository that are open already.
    ///
    /// # Errors
    /// As [`Self::project_config`].
    pub fn project_config_in(
        &self,
        objects: &Objects,
        base: &CommitId,
    ) -> Result<ProjectConfig, RepositoryError> {
        let found = objects.entry(base, &RepoPath::from("codeboost.yaml"))?;
        let Some(entry) = found.filter(TreeEntry::is_regular) else {
            return Ok(ProjectConfig::default());
        };
        let bytes = objects.blob(&entry.oid)?;
        Ok(ProjectConfig::parse(&format!("codeboost.yaml of {base:.12}"), &bytes)?)
    }

    /// Reads the local configuration.
    ///
    /// # Errors
    /// [`RepositoryError::Config`] naming file and place.
    pub fn config(&self) -> Result<Config, RepositoryError> {
        Ok(Config::read(self.context, &self.state_folder())?)
    }

    /// Makes the folder for outputs, with its own ignore-everything `.gitignore`, and returns it:
    /// `.codeboost` in the work tree, or `codeboost-outputs` in a bare repository.
    ///
    /// # Errors
    /// [`RepositoryError`] when it is a symbolic link, no folder, or holds tracked files.
    pub fn outputs_folder(&self) -> Result<PathBuf, RepositoryError> {
        let Some(work_tree) = &self.work_tree else {
            let folder = self.common_dir.join("codeboost-outputs");
            make_folder(&folder)?;
            return Ok(folder);
        };
        let folder = work_tree.join(".codeboost");
        self.check_outputs()?;
        make_folder(&folder)?;
        stage::write_if_changed(&folder.join(".gitignore"), b"*\n")?;
        Ok(folder)
    }

    /// Refuses an outputs folder of the work tree that can't be used, without making one.
    ///
    /// # Errors
    /// As [`Self::outputs_folder`].
    pub fn check_outputs(&self) -> Result<(), RepositoryError> {
        let Some(work_tree) = &self.work_tree else { return Ok(()) };
        let folder = work_tree.join(".codeboost");
        let tracked = self.git.output(["ls-files", "-z", "--cached", "--", ".codeboost"])?;
        if !tracked.is_empty() {
            return Err(RepositoryError::Tracked(folder));
        }
        match std::fs::symlink_metadata(&folder) {
            Ok(meta) if !meta.is_dir() => Err(RepositoryError::NotAFolder(folder)),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FileError::new("look at", &folder, error).into())
            }
            _ => Ok(()),
        }
    }

    /// Makes the folder for the outputs of one task and returns it: `tasks/<issue>` in
    /// [`Self::outputs_folder`].
    ///
    /// # Errors
    /// As [`Self::outputs_folder`].
    pub fn task_folder(&self, issue: u64) -> Result<PathBuf, RepositoryError> {
        let tasks = self.outputs_folder()?.join("tasks");
        make_folder(&tasks)?;
        let folder = tasks.join(issue.to_string());
        make_folder(&folder)?;
        Ok(folder)
    }

    /// The folder of the pages around the reviews, made if need be.
    ///
    /// # Errors
    /// As [`Self::outputs_folder`].
    pub fn site_folder(&self) -> Result<PathBuf, RepositoryError> {
        let folder = self.outputs_folder()?.join("site");
        make_folder(&folder)?;
        Ok(folder)
    }
}

/// Makes a folder unless it is there, and refuses a link in its place.
fn make_folder(folder: &Path) -> Result<(), RepositoryError> {
    match std::fs::create_dir(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = std::fs::symlink_metadata(folder)
                .map_err(|source| FileError::new("look at", folder, source))?;
            if meta.is_dir() { Ok(()) } else { Err(RepositoryError::NotAFolder(folder.to_owned())) }
        }
        Err(source) => Err(FileError::new("make", folder, source).into()),
    }
}
