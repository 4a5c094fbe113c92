//! Reading a decisions file: a regular file of bounded size, opened without following links.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use codeboost_schema::decisions::MAX_BYTES;

use crate::stage::FileError;

/// A detached signature may have this many bytes.
const MAX_SIGNATURE_BYTES: usize = 64 * 1024;

/// Why a file can't be read as decisions.
#[derive(Debug, thiserror::Error)]
pub enum ReadFileError {
    /// It is not there, or can't be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is a link, a folder, a device or a pipe.
    #[error("{} is not a regular file", .0.display())]
    NotRegular(PathBuf),
    /// It is larger than allowed.
    #[error("{} is larger than {max_bytes} bytes", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The limit.
        max_bytes: usize,
    },
}

/// The bytes of a decisions file.
///
/// # Errors
/// [`ReadFileError`] on anything but a regular file of at most 4 MiB.
pub fn decisions(path: &Path) -> Result<Vec<u8>, ReadFileError> {
    bounded(path, MAX_BYTES)
}

/// The bytes of a detached signature.
///
/// # Errors
/// As [`decisions`], for 64 KiB.
pub fn signature(path: &Path) -> Result<Vec<u8>, ReadFileError> {
    bounded(path, MAX_SIGNATURE_BYTES)
}

/// The bytes of a regular file of at most `max_bytes`.
///
/// # Errors
/// [`ReadFileError`] on anything else.
pub fn bounded(path: &Path, max_bytes: usize) -> Result<Vec<u8>, ReadFileError> {
    let fail = |source| FileError::new("read", path, source);
    let meta = std::fs::symlink_metadata(path).map_err(fail)?;
    if !meta.is_file() {
        return Err(ReadFileError::NotRegular(path.to_owned()));
    }
    // Whatever stands there by now: a link is not followed, a pipe is not waited for.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file =
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(ReadFileError::NotRegular(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() > max_bytes {
        return Err(ReadFileError::TooLarge { path: path.to_owned(), max_bytes });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("decisions.json");
        std::fs::File::create(&file).and_then(|f| f.set_len(MAX_BYTES as u64)).expect("a file");
        assert_eq!(decisions(&file).expect("read").len(), MAX_BYTES);
        std::fs::File::create(&file).and_then(|f| f.set_len(MAX_BYTES as u64 + 1)).expect("a file");
        assert!(matches!(decisions(&file), Err(ReadFileError::TooLarge { .. })));

        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert!(matches!(decisions(&link), Err(ReadFileError::NotRegular(_))));
        assert!(matches!(decisions(folder.path()), Err(ReadFileError::NotRegular(_))));
        assert!(matches!(decisions(Path::new("/dev/zero")), Err(ReadFileError::NotRegular(_))));
        assert!(matches!(decisions(&folder.path().join("none")), Err(ReadFileError::File(_))));
    }
}
