//! Reading a decisions file: a regular file of bounded size, opened without following links.

use std::path::Path;

use codeboost_schema::decisions::MAX_BYTES;

use crate::stage::{FileError, read_unlinked};

/// A detached signature may have this many bytes.
const MAX_SIGNATURE_BYTES: usize = 64 * 1024;

/// The bytes of a decisions file.
///
/// # Errors
/// [`FileError`] on anything but a regular file of at most 4 MiB.
pub fn decisions(path: &Path) -> Result<Vec<u8>, FileError> {
    read_unlinked(path, MAX_BYTES)
}

/// The bytes of a detached signature.
///
/// # Errors
/// As [`decisions`], for 64 KiB.
pub fn signature(path: &Path) -> Result<Vec<u8>, FileError> {
    read_unlinked(path, MAX_SIGNATURE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decisions_file_has_a_limit_and_is_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("decisions.json");
        std::fs::File::create(&file).and_then(|f| f.set_len(MAX_BYTES as u64)).expect("a file");
        assert_eq!(decisions(&file).expect("read").len(), MAX_BYTES);
        std::fs::File::create(&file).and_then(|f| f.set_len(MAX_BYTES as u64 + 1)).expect("a file");
        decisions(&file).expect_err("too large");
        crate::stage::write(&file, b"{}").expect("a file");
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        decisions(&link).expect_err("a link");
    }
}
