//! Evidence: files named by the digest of their bytes, so that they can't change unseen.

use std::io::Write as _;
use std::path::PathBuf;

use codeboost_schema::ids::Digest;

use crate::stage::{self, FileError};
use crate::store::{Store, StoreError};

impl Store<'_> {
    fn evidence_path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.folder().join("evidence").join(&hex[..2]).join(&hex[2..])
    }

    /// Keeps `bytes` and returns their digest. Write the row that names it afterwards: evidence
    /// without a row is harmless, a row without evidence is not.
    ///
    /// # Errors
    /// [`StoreError::File`] when it can't be written.
    pub fn put_evidence(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(bytes);
        let path = self.evidence_path(&digest);
        if stage::read(&path, bytes.len()).is_ok_and(|old| old == bytes) {
            return Ok(digest);
        }
        let folder = path.parent().expect("the path has a folder, built above");
        let fail = |source| FileError::new("write", &path, source);
        std::fs::create_dir_all(folder).map_err(fail)?;
        // Temporary files are their owner's alone.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        file.write_all(bytes).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist(&path).map_err(|error| fail(error.error))?;
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(digest)
    }

    /// The bytes of that digest.
    ///
    /// # Errors
    /// [`StoreError::File`] when they are not there, [`StoreError::Evidence`] when the file's
    /// bytes have another digest.
    pub fn evidence(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let bytes = stage::read(&self.evidence_path(digest), stage::MAX_OUTPUT)?;
        if Digest::of(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err(StoreError::Evidence(digest.to_string()))
        }
    }
}
