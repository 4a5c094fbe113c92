//! Writing outputs whole, and saying whether a stage has anything to do.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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
    let fail = |source| FileError::new("write", path, source);
    let file = begin(path, |out| out.write_all(bytes)).map_err(fail)?;
    settle(path, file).map_err(fail)
}

/// A temporary file beside `path` that holds what `fill` writes.
fn begin(
    path: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".codeboost-").permissions(permissions()).tempfile_in(folder)?;
    let mut out = io::BufWriter::with_capacity(1 << 16, file.as_file_mut());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    Ok(file)
}

/// Puts a temporary file in place of `path`.
fn settle(path: &Path, file: NamedTempFile) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `bytes` as [`write()`] does, unless the file holds them already.
///
/// Returns whether it wrote. An unchanged file keeps its time, so that `make` sees it as current.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    write(path, bytes).map(|()| true)
}

/// Writes what `fill` writes as [`write()`] does, piece by piece, and returns whether it differs from
/// what was there.
///
/// The file is new even where it does not: `make` has to see it as newer than the inputs that it
/// was just made from.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_again(
    path: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<bool, FileError> {
    let fail = |source| FileError::new("write", path, source);
    let file = begin(path, fill).map_err(fail)?;
    let differs = !are_equal(path, file.path()).unwrap_or(false);
    settle(path, file).map_err(fail)?;
    Ok(differs)
}

/// Whether two files have the same bytes.
fn are_equal(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let len = a.metadata()?.len();
    if len != b.metadata()?.len() {
        return Ok(false);
    }
    let mut rest = len;
    let mut pieces = ([0; 1 << 14], [0; 1 << 14]);
    while rest > 0 {
        let n = rest.min(1 << 14) as usize;
        a.read_exact(&mut pieces.0[..n])?;
        b.read_exact(&mut pieces.1[..n])?;
        if pieces.0[..n] != pieces.1[..n] {
            return Ok(false);
        }
        rest -= n as u64;
    }
    Ok(true)
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
