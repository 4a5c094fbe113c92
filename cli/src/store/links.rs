//! What linking the lineages of a range came to, kept in the [`Cache`] until the next link of the
//! same base.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use codeboost_schema::ids::{CommitId, Digest};

use crate::link::kept::Kept;
use crate::store::Cache;

/// Above this only what was used last is kept, and nothing where that alone is larger.
const MAX_BYTES: usize = 64 << 20;

const KIND: &str = "lineages";
const HEX: usize = 64;

/// Results by their digest. Each is used by one link, and written by [`KeptLinks::keep`].
pub struct KeptLinks {
    cache: Cache,
    made_from: Digest,
    bytes: Vec<u8>,
    known: BTreeMap<Digest, (Range<usize>, AtomicBool)>,
    new: Mutex<Vec<(Digest, Vec<u8>)>>,
}

impl KeptLinks {
    /// Reads what earlier links of `base` left beside a state. `stamp`: tells this program and its
    /// git from others. `None` where there is no state.
    #[must_use]
    pub fn open(state_folder: &Path, stamp: &str, base: &CommitId) -> Option<Self> {
        let cache = Cache::beside(state_folder)?;
        let made_from = Digest::of(format!("{stamp}\n{base}").as_bytes());
        let bytes = cache.get(KIND, &made_from).unwrap_or_default();
        let known = entries(&bytes).unwrap_or_default();
        Some(Self { cache, made_from, bytes, known, new: Mutex::default() })
    }

    /// Writes what is new.
    pub fn keep(self) {
        let new = self.new.into_inner().unwrap_or_else(PoisonError::into_inner);
        if new.is_empty() {
            return;
        }
        let added: usize = new.iter().map(|(_, bytes)| bytes.len()).sum();
        let is_large = self.bytes.len() + added > MAX_BYTES;
        let mut all = Vec::with_capacity(self.bytes.len() + added + 80 * new.len());
        let mut put = |digest: &Digest, bytes: &[u8]| {
            all.extend_from_slice(digest.hex().as_bytes());
            all.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            all.extend_from_slice(bytes);
        };
        for (digest, (place, is_used)) in &self.known {
            if !is_large || is_used.load(Ordering::Relaxed) {
                put(digest, &self.bytes[place.clone()]);
            }
        }
        new.iter().for_each(|(digest, bytes)| put(digest, bytes));
        if all.len() <= MAX_BYTES {
            self.cache.put(KIND, &self.made_from, &all);
        }
    }
}

/// Where each result stands; `None` when the bytes are not what was written.
fn entries(bytes: &[u8]) -> Option<BTreeMap<Digest, (Range<usize>, AtomicBool)>> {
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = std::str::from_utf8(bytes.get(at..at + HEX)?).ok()?;
        let digest = Digest::parse(&format!("sha256:{hex}")).ok()?;
        let start = at + HEX + 4;
        let length = bytes.get(at + HEX..start)?.try_into().ok().map(u32::from_le_bytes)?;
        let end = start.checked_add(length as usize)?;
        if end > bytes.len() {
            return None;
        }
        found.insert(digest, (start..end, AtomicBool::new(false)));
        at = end;
    }
    Some(found)
}

impl Kept for KeptLinks {
    fn get(&self, made_from: &Digest) -> Option<&[u8]> {
        let (place, is_used) = self.known.get(made_from)?;
        is_used.store(true, Ordering::Relaxed);
        Some(&self.bytes[place.clone()])
    }

    fn put(&self, made_from: Digest, linked: Vec<u8>) {
        if u32::try_from(linked.len()).is_ok() {
            let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
            new.push((made_from, linked));
        }
    }
}
