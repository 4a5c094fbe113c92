//! The agent that applies recorded patches: for tests, for the demo, and for work made elsewhere.
//!
//! A folder holds patches named `<number>-<item>.patch`, such as `01-P1.patch`: which item each is
//! for, in the order of their numbers. An item may have several. A patch is what `git diff
//! --binary` or `git format-patch` writes.

use std::path::{Path, PathBuf};

use codeboost_schema::ids::{Digest, ItemId};

use crate::context::Context;
use crate::git::run::{Git, GitError};
use crate::stage::{self, FileError};

/// The name of this agent.
pub const NAME: &str = "replay";

/// Largest patch.
const MAX_PATCH_BYTES: u64 = 256 * 1024 * 1024;

/// A recorded patch.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Its place in the order; several may share one.
    pub number: u64,
    /// The item that it was made for.
    pub item: ItemId,
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Patch {
    /// The digest of its content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// Why patches can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no patch in the folder.
    #[error("there is no patch in {}", .0.display())]
    None(PathBuf),
    /// A patch has another name.
    #[error("{} is not named as a patch is", .0.display())]
    Name(PathBuf),
    /// A patch is too large or no regular file.
    #[error("{} is no regular file of at most 256 MiB", .0.display())]
    Form(PathBuf),
    /// A patch does not apply.
    #[error("{} does not apply", path.display())]
    Apply {
        /// The patch.
        path: PathBuf,
        /// Git's words.
        source: GitError,
    },
}

/// The patches in a folder, in the order in which they are applied: by number, then name.
///
/// # Errors
/// [`ReplayError`] when there is none, or one with another name.
pub fn read_patches(folder: &Path) -> Result<Vec<Patch>, ReplayError> {
    let fail = |error| FileError::new("read the folder", folder, error);
    let folder = &folder.canonicalize().map_err(fail)?;
    let mut patches = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let parsed = name
            .split_once('-')
            .and_then(|(number, item)| Some((number.parse().ok()?, ItemId::parse(item).ok()?)));
        let Some((number, item)) = parsed else { return Err(ReplayError::Name(path)) };
        let meta = path.symlink_metadata().map_err(|e| FileError::new("look at", &path, e))?;
        if !meta.is_file() || meta.len() > MAX_PATCH_BYTES {
            return Err(ReplayError::Form(path));
        }
        let bytes = stage::read(&path, stage::MAX_OUTPUT)?;
        patches.push(Patch { number, item, path, bytes });
    }
    if patches.is_empty() {
        return Err(ReplayError::None(folder.to_owned()));
    }
    patches.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    Ok(patches)
}

/// Applies a patch to the files in `folder`, all of it or nothing. `path`: how messages name it.
///
/// Git is run on an empty repository of ours beside the folder's own `.git`: neither that nor any
/// attribute, filter or hook has a say. Git itself refuses a patch that goes through a link or out
/// of the folder.
///
/// # Errors
/// [`ReplayError::Apply`] with git's words.
pub fn apply(
    context: &Context,
    folder: &Path,
    path: &Path,
    patch: &[u8],
) -> Result<(), ReplayError> {
    let scratch = tempfile::Builder::new()
        .prefix("codeboost-replay-")
        .tempdir()
        .map_err(|error| FileError::new("make a folder in", &std::env::temp_dir(), error))?;
    let git_dir = scratch.path().join("git");
    let fail = |source| ReplayError::Apply { path: path.to_owned(), source };
    let git = Git::at(context, &git_dir).in_folder(scratch.path());
    git.output(["init", "--quiet", "--bare", "--template="]).map_err(fail)?;
    let info = git_dir.join("info");
    stage::make_folder(&info)?;
    // The exact bytes, whatever the attributes in the folder say.
    stage::write_scratch(&info.join("attributes"), b"* -text !eol -ident -filter\n")?;
    let git = git
        .in_folder(folder)
        .with_config("core.bare=false")
        .with_config("core.autocrlf=false")
        .with_config("apply.whitespace=nowarn")
        .with_env("GIT_WORK_TREE", folder.as_os_str());
    git.output_with(["apply", "--whitespace=nowarn", "-"], Some(patch)).map_err(fail)?;
    Ok(())
}
