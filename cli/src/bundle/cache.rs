//! What highlighting came to, kept beside the state, so that a page is made again without it.
//!
//! An entry is named by the digest of everything that it was made from, so none can be out of
//! date. The file may go at any time; nothing depends on it but how long a page takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use codeboost_render::Highlighted;
use codeboost_schema::ids::Digest;

use crate::stage;

/// Above this, only what was used last is kept.
const MAX_BYTES: usize = 64 << 20;

/// The runs of files, by the digest of what they were made from.
#[derive(Debug)]
pub struct HighlightCache {
    /// `None` where there is no state to keep it beside.
    path: Option<PathBuf>,
    known: BTreeMap<Digest, String>,
    used: Mutex<BTreeMap<Digest, Option<String>>>,
}

impl HighlightCache {
    /// Reads what is kept. `state_folder`: `<git common dir>/codeboost`. A file that is not there,
    /// or that can't be read, holds nothing.
    #[must_use]
    pub fn open(state_folder: &Path) -> Self {
        let path = state_folder.is_dir().then(|| state_folder.join("cache/highlight"));
        let bytes = path
            .as_ref()
            .and_then(|path| stage::read(path, stage::MAX_OUTPUT).ok())
            .unwrap_or_default();
        let known = String::from_utf8(bytes).ok().and_then(|text| parse(&text)).unwrap_or_default();
        Self { path, known, used: Mutex::default() }
    }

    /// Writes what is new. That it can't be written is no error: the next page takes longer.
    pub fn keep(self) {
        let used = self.used.into_inner().unwrap_or_default();
        let Some(path) = self.path.filter(|_| used.values().any(Option::is_some)) else { return };
        let mut all = self.known;
        let is_kept = |digest: &Digest| used.contains_key(digest);
        if all.values().map(String::len).sum::<usize>() > MAX_BYTES {
            all.retain(|digest, _| is_kept(digest));
        }
        for (digest, runs) in used {
            if let Some(runs) = runs {
                all.insert(digest, runs);
            }
        }
        let mut text = String::from(HEAD);
        for (digest, runs) in all {
            text.push_str(&format!("{digest} {}\n{runs}\n", runs.len()));
        }
        text.push_str(&format!("{}\n", Digest::of(text.as_bytes())));
        let folder = path.parent().map(std::fs::create_dir_all);
        if matches!(folder, Some(Ok(()))) {
            let _ = stage::write_if_changed(&path, text.as_bytes());
        }
    }
}

const HEAD: &str = "codeboost highlight 1\n";

/// The entries; `None` when the file is not what was written.
fn parse(text: &str) -> Option<BTreeMap<Digest, String>> {
    let at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let (body, sum) = text.split_at(at);
    if Digest::of(body.as_bytes()).to_string() != sum.trim_end() {
        return None;
    }
    let mut rest = body.strip_prefix(HEAD)?;
    let mut out = BTreeMap::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_once('\n')?;
        let (digest, length) = head.split_once(' ')?;
        let length: usize = length.parse().ok()?;
        out.insert(Digest::parse(digest).ok()?, after.get(..length)?.to_owned());
        rest = after.get(length..)?.strip_prefix('\n')?;
    }
    Some(out)
}

impl Highlighted for HighlightCache {
    fn get(&self, digest: &Digest) -> Option<String> {
        let found = self.known.get(digest)?.clone();
        self.used.lock().ok()?.insert(digest.clone(), None);
        Some(found)
    }

    fn put(&self, digest: Digest, runs: &str) {
        if let Ok(mut used) = self.used.lock() {
            used.insert(digest, Some(runs.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_found_again_and_a_damaged_file_holds_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let cache = HighlightCache::open(folder.path());
        assert_eq!(cache.get(&one), None);
        cache.put(one.clone(), "3k5.\n\n2s");
        cache.put(two.clone(), "");
        cache.keep();
        let cache = HighlightCache::open(folder.path());
        assert_eq!(cache.get(&one).as_deref(), Some("3k5.\n\n2s"));
        assert_eq!(cache.get(&two).as_deref(), Some(""));
        let path = folder.path().join("cache/highlight");
        let text = std::fs::read_to_string(&path).expect("a file");
        stage::write(&path, text.replacen("3k5", "4k5", 1).as_bytes()).expect("written");
        assert_eq!(HighlightCache::open(folder.path()).get(&one), None);
    }
}
