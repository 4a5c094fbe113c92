//! The entries that a repository will have after each item. Source: `semantics.md`, 4.2, 4.3, 5.6.

use std::collections::BTreeMap;

use codeboost_schema::bytes::RepoPath;
use unicode_normalization::UnicodeNormalization as _;

/// What a leaf of a tree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link.
    Symlink {
        /// What it stores, never followed.
        target: Vec<u8>,
    },
    /// A submodule.
    Gitlink,
}

/// A leaf of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path, as the tree spells it.
    pub path: RepoPath,
    /// What it is.
    pub kind: EntryKind,
}

/// Which paths name one entry on the file system of the checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathIdentity {
    /// `src/A` and `src/a` are one.
    pub folds_case: bool,
    /// Composed and decomposed characters are one.
    pub folds_unicode: bool,
}

/// What two paths share exactly when they name one entry.
///
/// Parts are divided by NUL, so that everything inside a folder follows it in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathKey(Vec<u8>);

impl PathIdentity {
    /// Bytes are compared, as in a bare repository and on most Linux file systems.
    pub const EXACT: Self = Self { folds_case: false, folds_unicode: false };

    /// The key of a path.
    #[must_use]
    pub fn key(&self, path: &[u8]) -> PathKey {
        let mut key = if *self == Self::EXACT || path.is_ascii() && !self.folds_case {
            path.to_vec()
        } else {
            let mut key = Vec::with_capacity(path.len());
            for chunk in path.utf8_chunks() {
                key.extend_from_slice(self.fold(chunk.valid()).as_bytes());
                key.extend_from_slice(chunk.invalid());
            }
            key
        };
        for byte in &mut key {
            if *byte == b'/' {
                *byte = 0;
            }
        }
        PathKey(key)
    }

    fn fold(self, text: &str) -> String {
        if text.is_ascii() {
            return if self.folds_case { text.to_ascii_lowercase() } else { text.to_owned() };
        }
        let cased = |text: String| match self.folds_case {
            // Upper case first joins what has several lower case forms.
            true => {
                text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
            }
            false => text,
        };
        match self.folds_unicode {
            true => cased(text.nfd().collect()).nfd().collect(),
            false => cased(text.to_owned()),
        }
    }
}

impl PathKey {
    /// The key of the root.
    pub(super) fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether this lies somewhere inside `folder`.
    #[must_use]
    pub fn is_inside(&self, folder: &Self) -> bool {
        if folder.0.is_empty() {
            return !self.0.is_empty();
        }
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The folders that it lies in, outermost first, without the root.
    pub fn folders(&self) -> impl Iterator<Item = Self> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == 0)
            .map(|(at, _)| Self(self.0[..at].to_vec()))
    }

    /// The least key inside this.
    fn first_inside(&self) -> Self {
        let mut first = self.0.clone();
        first.push(0);
        Self(first)
    }
}

/// Why a list of entries is no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Two entries are one on this file system.
    #[error("{} and {} are one entry on this file system", .0.lossy(), .1.lossy())]
    Alias(RepoPath, RepoPath),
    /// An entry lies inside another that is no folder.
    #[error("{} lies inside {}, which is no folder", .1.lossy(), .0.lossy())]
    Inside(RepoPath, RepoPath),
}

/// The entries at one moment.
#[derive(Debug, Clone)]
pub struct Projected {
    entries: BTreeMap<PathKey, Entry>,
    identity: PathIdentity,
}

impl Projected {
    /// The state before the first item.
    ///
    /// # Errors
    /// [`TreeError`] when the entries contradict each other.
    pub fn new(base: &[Entry], identity: PathIdentity) -> Result<Self, TreeError> {
        let mut keyed: Vec<_> =
            base.iter().map(|entry| (identity.key(entry.path.as_bytes()), entry)).collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        for pair in keyed.windows(2) {
            let [(first, before), (second, after)] = pair else { continue };
            if first == second {
                return Err(TreeError::Alias(before.path.clone(), after.path.clone()));
            }
            if second.is_inside(first) {
                return Err(TreeError::Inside(before.path.clone(), after.path.clone()));
            }
        }
        let entries = keyed.into_iter().map(|(key, entry)| (key, entry.clone())).collect();
        Ok(Self { entries, identity })
    }

    /// How paths are compared.
    #[must_use]
    pub fn identity(&self) -> PathIdentity {
        self.identity
    }

    /// The entry of that key.
    #[must_use]
    pub fn get(&self, key: &PathKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Whether there is a folder: an entry inside this path.
    #[must_use]
    pub fn is_folder(&self, key: &PathKey) -> bool {
        self.first_inside(key).is_some()
    }

    /// The first entry inside a folder.
    #[must_use]
    pub fn first_inside(&self, key: &PathKey) -> Option<&Entry> {
        let (inside, entry) = self.entries.range(key.first_inside()..).next()?;
        inside.is_inside(key).then_some(entry)
    }

    /// The entry that stands where a folder of this path would have to be.
    #[must_use]
    pub fn blocking_folder(&self, key: &PathKey) -> Option<&Entry> {
        key.folders().find_map(|folder| self.get(&folder))
    }

    /// All entries, by key.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Puts an entry at a path, over what was there.
    pub fn put(&mut self, path: &str, kind: EntryKind) {
        let key = self.identity.key(path.as_bytes());
        self.entries.insert(key, Entry { path: path.into(), kind });
    }

    /// Takes the entry of that key away.
    pub fn take(&mut self, key: &PathKey) -> Option<Entry> {
        self.entries.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: PathIdentity = PathIdentity { folds_case: true, folds_unicode: false };
    const BOTH: PathIdentity = PathIdentity { folds_case: true, folds_unicode: true };
    const UNICODE: PathIdentity = PathIdentity { folds_case: false, folds_unicode: true };

    #[test]
    fn keys_are_equal_when_the_file_system_says_so() {
        let same = |identity: PathIdentity, a: &[u8], b: &[u8]| identity.key(a) == identity.key(b);
        assert!(!same(PathIdentity::EXACT, b"a/B", b"a/b"));
        assert!(same(CASE, b"a/B", b"A/b"));
        assert!(same(CASE, "STRASSE/É".as_bytes(), "straße/é".as_bytes()));
        assert!(same(CASE, "Σς".as_bytes(), "σσ".as_bytes()));
        assert!(!same(CASE, "é".as_bytes(), "e\u{301}".as_bytes()));
        assert!(same(UNICODE, "é".as_bytes(), "e\u{301}".as_bytes()));
        assert!(!same(UNICODE, "É".as_bytes(), "e\u{301}".as_bytes()));
        assert!(same(BOTH, "É".as_bytes(), "e\u{301}".as_bytes()));
        assert!(same(CASE, b"A\xff", b"a\xff"));
        assert!(!same(CASE, b"a\xff", b"a\xfe"));
        assert!(!same(UNICODE, b"A\xff", b"a\xff"));
        assert!(!same(BOTH, b"a/b", b"ab"));
    }

    fn file(path: &str) -> Entry {
        Entry { path: path.into(), kind: EntryKind::File }
    }

    #[test]
    fn entries_that_contradict_each_other_are_no_tree() {
        let new = |paths: &[&str], identity| {
            let entries: Vec<_> = paths.iter().map(|path| file(path)).collect();
            Projected::new(&entries, identity).map(drop)
        };
        assert_eq!(new(&["a", "a.c", "ab", "b/c"], PathIdentity::EXACT), Ok(()));
        assert_eq!(new(&["a/B", "a/b"], PathIdentity::EXACT), Ok(()));
        assert_eq!(new(&["a/B", "a/b"], CASE), Err(TreeError::Alias("a/B".into(), "a/b".into())));
        assert_eq!(
            new(&["a", "a.c", "a/b"], PathIdentity::EXACT),
            Err(TreeError::Inside("a".into(), "a/b".into()))
        );
        assert_eq!(
            new(&["A", "a.c", "a/b"], CASE),
            Err(TreeError::Inside("A".into(), "a/b".into()))
        );
    }

    #[test]
    fn folders_are_what_has_entries_inside() {
        let state = Projected::new(&[file("a.c"), file("a/b/c"), file("ab")], PathIdentity::EXACT)
            .expect("a tree");
        let key = |path: &str| state.identity().key(path.as_bytes());
        assert!(state.is_folder(&key("a")));
        assert!(state.is_folder(&key("a/b")));
        assert!(!state.is_folder(&key("a/b/c")));
        assert!(!state.is_folder(&key("ab")));
        assert!(state.is_folder(&PathKey::root()));
        assert_eq!(state.blocking_folder(&key("a/b/c/d/e")), Some(&file("a/b/c")));
        assert_eq!(state.blocking_folder(&key("a/b/d")), None);
    }
}
