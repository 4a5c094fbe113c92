//! Object ids of file contents, computed here, so that no program is run where the files lie.

use std::io::Read;

use codeboost_schema::ids::ObjectId;

use crate::git::borrow::ObjectFormat;

/// Why a content has no id.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// Reading failed.
    #[error("can't read the content")]
    Read(#[source] std::io::Error),
    /// The content has another length than was announced: it changes while it is read.
    #[error("the content changes while it is read")]
    Changing,
    /// The content is made to collide with another one.
    #[error("the content is made to collide with another one under SHA-1")]
    Collision,
}

/// Most bytes that are read at once.
const MAX_PIECE: usize = 64 * 1024;

/// The id of the blob with these bytes.
///
/// # Errors
/// [`HashError::Collision`].
pub fn blob_id(format: ObjectFormat, bytes: &[u8]) -> Result<ObjectId, HashError> {
    blob_id_of(format, bytes.len() as u64, &mut &*bytes, |_| Ok(()))
}

/// The id of the blob that `content` holds, which has exactly `size` bytes. Each piece that is
/// read goes to `copy` too.
///
/// # Errors
/// [`HashError`]; an error of `copy` comes back as [`HashError::Read`].
pub fn blob_id_of(
    format: ObjectFormat,
    size: u64,
    content: &mut impl Read,
    mut copy: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<ObjectId, HashError> {
    let mut hasher = gix::hash::hasher(match format {
        ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
        ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
    });
    hasher.update(format!("blob {size}\0").as_bytes());
    // One byte more than announced, so that a longer content is noticed.
    let mut buffer = vec![0; usize::try_from(size).map_or(MAX_PIECE, |n| n.min(MAX_PIECE - 1) + 1)];
    let mut n_read = 0_u64;
    loop {
        let n = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(HashError::Read(error)),
        };
        n_read += n as u64;
        if n_read > size {
            return Err(HashError::Changing);
        }
        hasher.update(&buffer[..n]);
        copy(&buffer[..n]).map_err(HashError::Read)?;
    }
    if n_read != size {
        return Err(HashError::Changing);
    }
    let id = hasher.try_finalize().map_err(|_| HashError::Collision)?;
    Ok(ObjectId::parse(&id.to_string()).expect("a hash in hex is an object id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let id = |format: ObjectFormat| blob_id(format, b"hello\n").expect("no collision");
        assert_eq!(id(ObjectFormat::Sha1).as_str(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(
            id(ObjectFormat::Sha256).as_str(),
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"
        );
    }

    #[test]
    fn content_of_another_length_is_changing() {
        for size in [0, 5, 7] {
            let found = blob_id_of(ObjectFormat::Sha1, size, &mut &b"hello\n"[..], |_| Ok(()));
            assert!(matches!(found, Err(HashError::Changing)), "{size}");
        }
    }
}
