//! Writing outputs whole, and saying whether a stage has anything to do.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A file operation that failed, with its path.
#[derive(Debug, thiserror::Error)]
#[error("can't {action} {}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Wraps `source`: `action` is an imperative such as "read".
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_owned(), source }
    }

    /// The kind of the failure underneath.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Writes `bytes` to `path`: to a temporary name beside it, synced, then renamed over it.
///
/// A killed process leaves the old file or the new one. Missing folders are made.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let fail = |source| FileError::new("write", path, source);
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut file = tempfile::Builder::new()
        .prefix(".codeboost-")
        .permissions(permissions())
        .tempfile_in(folder)
        .map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    sync_folder(folder).map_err(fail)
}

/// Writes `bytes` as [`write`] does, unless the file holds them already.
///
/// Returns whether it wrote. An unchanged file keeps its time, so that `make` sees it as current.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    if holds(path, bytes).unwrap_or(false) {
        return Ok(false);
    }
    write(path, bytes).map(|()| true)
}

/// Writes `bytes` as [`write`] does, and returns whether they differ from what was there.
///
/// The file is new even where they do not: `make` has to see it as newer than the inputs that it
/// was just made from.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_again(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let differs = !holds(path, bytes).unwrap_or(false);
    write(path, bytes).map(|()| differs)
}

/// Whether a file has exactly these bytes. It is read piece by piece: outputs may be large.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut piece = [0; 1 << 14];
    let mut rest = bytes;
    loop {
        let n = file.read(&mut piece)?;
        if n == 0 {
            return Ok(rest.is_empty());
        }
        match rest.strip_prefix(&piece[..n]) {
            Some(after) => rest = after,
            None => return Ok(false),
        }
    }
}

/// Writes a file that nobody needs after a crash: not synced, not renamed.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_scratch(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    File::create(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|source| FileError::new("write", path, source))
}

/// Makes a folder and its parents where they are missing.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(|source| FileError::new("make", path, source))
}

/// Reads a whole file.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(|source| FileError::new("read", path, source))
}

fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    // The umask still applies.
    std::fs::Permissions::from_mode(0o666)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
