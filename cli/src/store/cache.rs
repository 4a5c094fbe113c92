//! What was worked out before, kept beside the state: `cache/known/`.
//!
//! An entry is named by the digest of everything that it was made from, and ends with the digest of
//! its bytes, so that none is out of date and a damaged one is none. Any of them may go at any time;
//! nothing depends on them but how long something takes. They are no evidence of anything.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use codeboost_schema::ids::Digest;

use crate::stage;

/// Entries of that many bytes in all are kept, the newest ones.
const MAX_BYTES: u64 = 128 << 20;
/// So many entries are kept.
const MAX_ENTRIES: usize = 256;

/// Results by the digest of what they were made from.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache of a state; `None` where there is no state to keep it beside.
    #[must_use]
    pub fn beside(state_folder: &Path) -> Option<Self> {
        let is_there = state_folder.is_dir();
        is_there.then(|| Self { folder: state_folder.join("cache/known") })
    }

    /// What was made from `made_from`, of that kind; `None` when it is not there or damaged.
    ///
    /// `kind`: a word that a file may be named by.
    #[must_use]
    pub fn get(&self, kind: &str, made_from: &Digest) -> Option<Vec<u8>> {
        let mut bytes = stage::read(&self.path(kind, made_from), stage::MAX_OUTPUT).ok()?;
        let at = bytes.len().checked_sub(sum(b"").len())?;
        if sum(&bytes[..at]).as_bytes() != &bytes[at..] {
            return None;
        }
        bytes.truncate(at);
        let head = head(kind, made_from);
        bytes.starts_with(head.as_bytes()).then(|| bytes.split_off(head.len()))
    }

    /// Keeps what was made. That it can't be written is no error: the next time takes longer.
    pub fn put(&self, kind: &str, made_from: &Digest, made: &[u8]) {
        let mut bytes = [head(kind, made_from).as_bytes(), made].concat();
        let sum = sum(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        self.make_room(bytes.len() as u64);
        let _ = stage::write(&self.path(kind, made_from), &bytes);
    }

    fn path(&self, kind: &str, made_from: &Digest) -> PathBuf {
        self.folder.join(format!("{kind}-{}", &made_from.hex()[..32]))
    }

    /// Removes the oldest entries until there is room. Another process may do so at once.
    fn make_room(&self, wanted: u64) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        entries.sort();
        let mut all: u64 = wanted + entries.iter().map(|(_, len, _)| len).sum::<u64>();
        let mut n_left = entries.len();
        for (_, len, path) in entries {
            if all <= MAX_BYTES && n_left < MAX_ENTRIES {
                break;
            }
            let _ = std::fs::remove_file(path);
            all -= len;
            n_left -= 1;
        }
    }
}

fn head(kind: &str, made_from: &Digest) -> String {
    format!("codeboost cache 1 {kind} {made_from}\n")
}

fn sum(bytes: &[u8]) -> String {
    format!("\n{}\n", Digest::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_put_for_the_same_inputs_is_got() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Cache::beside(&folder.path().join("nowhere")).is_none());
        let cache = Cache::beside(folder.path()).expect("a cache");
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        assert_eq!(cache.get("kind", &one), None);
        cache.put("kind", &one, b"made of one");
        cache.put("kind", &two, b"");
        assert_eq!(cache.get("kind", &one).as_deref(), Some(&b"made of one"[..]));
        assert_eq!(cache.get("kind", &two).as_deref(), Some(&b""[..]));
        assert_eq!(cache.get("other", &one), None);

        // A file of other inputs under this name, or a changed or cut one, holds nothing.
        let (path, other) = (cache.path("kind", &one), cache.path("kind", &two));
        let bytes = std::fs::read(&path).expect("a file");
        for n in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[n] ^= 1;
            stage::write(&path, &changed).expect("written");
            assert_eq!(cache.get("kind", &one), None, "byte {n}");
            stage::write(&path, &bytes[..n]).expect("written");
            assert_eq!(cache.get("kind", &one), None, "cut at {n}");
        }
        stage::write(&other, &bytes).expect("written");
        assert_eq!(cache.get("kind", &two), None);
    }

    #[test]
    fn the_oldest_entries_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::beside(folder.path()).expect("a cache");
        for n in 0..MAX_ENTRIES + 20 {
            cache.put("kind", &Digest::of(n.to_string().as_bytes()), b"x");
        }
        let n_files = std::fs::read_dir(&cache.folder).expect("a folder").count();
        assert!(n_files <= MAX_ENTRIES, "{n_files}");
        let newest = Digest::of((MAX_ENTRIES + 19).to_string().as_bytes());
        assert!(cache.get("kind", &newest).is_some());
        let files = std::fs::read_dir(folder.path().join("cache")).expect("a folder").count();
        assert_eq!(files, 1, "nothing lies beside it");
    }
}
