//! Reading files whole and bounded, writing outputs whole, and saying whether a stage has anything
//! to do.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use codeboost_schema::ids::Digest;
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// Settings, keys and rules that people write may have this many bytes.
pub const MAX_SETTINGS: usize = 16 << 20;
/// What codeboost made itself may have this many bytes: a `link.json`, a ledger, a page, evidence.
pub const MAX_OUTPUT: usize = 1 << 30;

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
    // A pipe or a device is not to be replaced by a file; a link is, and a missing file is made.
    if let Ok(meta) = std::fs::symlink_metadata(path)
        && !meta.is_symlink()
    {
        require_file(meta.file_type())?;
    }
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
    if read(path, bytes.len()).is_ok_and(|old| old == bytes) {
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
    let (mut a, mut b) = (open(a, OFlags::empty())?, open(b, OFlags::empty())?);
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

/// Reads a whole file of at most `max_bytes`.
///
/// Only a regular file, or a link to one: a pipe is not waited for, a device not read.
///
/// # Errors
/// [`FileError`] naming the path, on anything else and on a larger file.
pub fn read(path: &Path, max_bytes: usize) -> Result<Vec<u8>, FileError> {
    let fail = |source| FileError::new("read", path, source);
    let file = open(path, OFlags::empty()).map_err(fail)?;
    whole(file, max_bytes).map_err(fail)
}

/// Digest of a file of ours; `None` where there is none that can be read.
#[must_use]
pub fn digest(path: &Path) -> Option<Digest> {
    let file = open(path, OFlags::empty()).ok()?;
    Digest::of_all(file.take(MAX_OUTPUT as u64)).ok()
}

/// Reads as [`read()`] does, and follows no link in the path's last place.
///
/// # Errors
/// As [`read()`].
pub fn read_unlinked(path: &Path, max_bytes: usize) -> Result<Vec<u8>, FileError> {
    let fail = |source| FileError::new("read", path, source);
    let file = open(path, OFlags::NOFOLLOW).map_err(fail)?;
    whole(file, max_bytes).map_err(fail)
}

/// Reads the first `max_bytes` of a file as [`read()`] does: for formats that tell themselves that
/// they are too large.
///
/// # Errors
/// As [`read()`], but for a larger file.
pub fn read_start(path: &Path, max_bytes: usize) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    open(path, OFlags::empty())
        .and_then(|file| file.take(max_bytes as u64).read_to_end(&mut bytes))
        .map_err(|source| FileError::new("read", path, source))?;
    Ok(bytes)
}

/// Opens a regular file to read it. Whatever stands there by now, a pipe is not waited for.
fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let meta = if flags.contains(OFlags::NOFOLLOW) {
        std::fs::symlink_metadata(path)
    } else {
        std::fs::metadata(path)
    };
    require_file(meta?.file_type())?;
    let flags = i32::try_from((flags | OFlags::NONBLOCK | OFlags::CLOEXEC).bits());
    let file =
        File::options().read(true).custom_flags(flags.map_err(io::Error::other)?).open(path)?;
    require_file(file.metadata()?.file_type())?;
    Ok(file)
}

fn whole(file: File, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take((max_bytes as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        let what = format!("it is larger than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Requires a regular file, and says what is there instead.
fn require_file(kind: std::fs::FileType) -> io::Result<()> {
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    let what = format!("it is {what}, not a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    // The umask still applies.
    std::fs::Permissions::from_mode(0o666)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(result: Result<Vec<u8>, FileError>) -> String {
        result.expect_err("refused").source.to_string()
    }

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read_or_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        write(&file, b"12345").expect("a file");
        assert_eq!(read(&file, 5).expect("read"), b"12345");
        assert_eq!(read_start(&file, 3).expect("read"), b"123");
        assert_eq!(cause(read(&file, 4)), "it is larger than 4 bytes");

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert_eq!(read(&link, 5).expect("read"), b"12345");
        assert_eq!(cause(read_unlinked(&link, 5)), "it is a symbolic link, not a regular file");

        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe");
        let to_pipe = folder.path().join("to pipe");
        std::os::unix::fs::symlink(&pipe, &to_pipe).expect("a link");
        for (path, what) in [
            (pipe.as_path(), "a pipe"),
            (&to_pipe, "a pipe"),
            (folder.path(), "a folder"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let said = format!("it is {what}, not a regular file");
            assert_eq!(cause(read(path, 5)), said, "{}", path.display());
            assert_eq!(cause(read_start(path, 5)), said, "{}", path.display());
        }
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            write(path, b"new").expect_err("refused");
            write_if_changed(path, b"new").expect_err("refused");
            write_again(path, |out| out.write_all(b"new")).expect_err("refused");
            assert!(!std::fs::symlink_metadata(path).expect("still there").is_file());
        }
    }
}
