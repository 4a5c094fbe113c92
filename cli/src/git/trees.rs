//! What lies between two trees, and the line of commits between two of them, read from the objects.
//!
//! Only what needs no search for renames: where a comparison both loses and gains files, git is
//! asked, because how alike two files are is git's to say.

use std::collections::HashMap;
use std::rc::Rc;

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};

use crate::git::read::{FOLDER, Handle, Objects, ReadError, parse_octal};
use crate::link::history::{EXECUTABLE, FileChange, SUBMODULE, SYMLINK, Version};

/// Bytes of trees that are kept, because the next comparison mostly reads one of them again.
const KEPT_BYTES: usize = 4 << 20;

/// Reads commits and trees.
pub(super) struct Trees<'a> {
    objects: &'a Objects,
    handle: Option<Handle>,
    buffer: Vec<u8>,
    kept: HashMap<gix::ObjectId, Rc<[u8]>>,
    n_kept_bytes: usize,
}

/// What a commit says about others.
pub(super) struct Links {
    /// Its tree.
    pub(super) tree: gix::ObjectId,
    /// In order.
    pub(super) parents: Vec<gix::ObjectId>,
}

impl<'a> Trees<'a> {
    pub(super) fn new(objects: &'a Objects) -> Self {
        let handle = Some(objects.handle());
        Self { objects, handle, buffer: Vec::new(), kept: HashMap::new(), n_kept_bytes: 0 }
    }

    fn read(&mut self, id: &gix::hash::oid, expected: &'static str) -> Result<(), ReadError> {
        let handle = self.handle.get_or_insert_with(|| self.objects.handle());
        self.objects.read_id_into(handle, id, expected, &mut self.buffer)
    }

    /// The tree and the parents of a commit.
    pub(super) fn commit(&mut self, id: &gix::hash::oid) -> Result<Links, ReadError> {
        self.read(id, "commit")?;
        let corrupt = |what: &dyn ToString| corrupt(id, what);
        let mut commit = gix::objs::CommitRefIter::from_bytes(&self.buffer, id.kind());
        let tree = commit.tree_id().map_err(|error| corrupt(&error))?;
        let parents = commit.parent_ids().collect();
        Ok(Links { tree, parents })
    }

    /// The commits after `base` up to `head` with their trees, `base` itself first, where each has
    /// the one before it as its only parent; else `None`.
    pub(super) fn line(
        &mut self,
        base: &gix::hash::oid,
        head: &gix::hash::oid,
    ) -> Result<Option<Vec<(gix::ObjectId, gix::ObjectId)>>, ReadError> {
        let mut line = Vec::new();
        let mut at = head.to_owned();
        loop {
            let links = self.commit(&at)?;
            line.push((at, links.tree));
            if at == base {
                line.reverse();
                return Ok(Some(line));
            }
            let [parent] = links.parents[..] else { return Ok(None) };
            at = parent;
        }
    }

    fn tree(&mut self, id: &gix::ObjectId) -> Result<Rc<[u8]>, ReadError> {
        if let Some(tree) = self.kept.get(id) {
            return Ok(Rc::clone(tree));
        }
        self.read(id, "tree")?;
        let tree: Rc<[u8]> = self.buffer.as_slice().into();
        if self.n_kept_bytes + tree.len() > KEPT_BYTES {
            self.kept.clear();
            self.n_kept_bytes = 0;
        }
        self.n_kept_bytes += tree.len();
        self.kept.insert(*id, Rc::clone(&tree));
        Ok(tree)
    }

    /// What two trees differ in, in byte order of path and without renames; `None` is the empty
    /// tree.
    pub(super) fn changes(
        &mut self,
        old: Option<&gix::ObjectId>,
        new: Option<&gix::ObjectId>,
    ) -> Result<Vec<FileChange>, ReadError> {
        let mut changes = Vec::new();
        self.compare(old, new, &mut Vec::new(), &mut changes)?;
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    fn side(&mut self, id: Option<&gix::ObjectId>) -> Result<Rc<[u8]>, ReadError> {
        id.map_or_else(|| Ok(Rc::from([])), |id| self.tree(id))
    }

    fn compare(
        &mut self,
        old: Option<&gix::ObjectId>,
        new: Option<&gix::ObjectId>,
        folder: &mut Vec<u8>,
        changes: &mut Vec<FileChange>,
    ) -> Result<(), ReadError> {
        if old == new {
            return Ok(());
        }
        let (old_tree, new_tree) = (self.side(old)?, self.side(new)?);
        let n_raw = self.objects.hash_kind().len_in_bytes();
        let mut olds = Entries { rest: &old_tree, n_raw };
        let mut news = Entries { rest: &new_tree, n_raw };
        let bad = |id: Option<&gix::ObjectId>| {
            let nothing = self.objects.hash_kind().null();
            corrupt(id.unwrap_or(&nothing), &"its entries are cut off")
        };
        loop {
            olds.skip_same(&mut news);
            let old_entry = olds.peek().ok_or_else(|| bad(old))?;
            let new_entry = news.peek().ok_or_else(|| bad(new))?;
            let (old_entry, new_entry) = match (old_entry, new_entry) {
                (None, None) => return Ok(()),
                (Some(a), Some(b)) => match a.order(&b) {
                    std::cmp::Ordering::Less => (Some(a), None),
                    std::cmp::Ordering::Greater => (None, Some(b)),
                    std::cmp::Ordering::Equal => (Some(a), Some(b)),
                },
                one => one,
            };
            if let Some(entry) = &old_entry {
                olds.rest = entry.rest;
            }
            if let Some(entry) = &new_entry {
                news.rest = entry.rest;
            }
            let Some(name) = old_entry.as_ref().or(new_entry.as_ref()).map(|entry| entry.name)
            else {
                return Ok(());
            };
            let n_folder = folder.len();
            folder.extend_from_slice(name);
            let is_folder =
                |entry: &Option<Entry<'_>>| entry.as_ref().is_some_and(Entry::is_folder);
            if is_folder(&old_entry) || is_folder(&new_entry) {
                folder.push(b'/');
                let id = |entry: &Option<Entry<'_>>| entry.as_ref().map(Entry::id);
                self.compare(id(&old_entry).as_ref(), id(&new_entry).as_ref(), folder, changes)?;
            } else {
                let version = |entry: Option<Entry<'_>>| {
                    entry.map(|entry| Version { mode: entry.mode, oid: object_id(&entry.id()) })
                };
                let (old, new) = (version(old_entry), version(new_entry));
                if old != new {
                    let path = RepoPath::from(folder.as_slice());
                    changes.push(FileChange { path, renamed_from: None, old, new });
                }
            }
            folder.truncate(n_folder);
        }
    }
}

impl Drop for Trees<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.objects.give_back(handle);
        }
    }
}

fn corrupt(id: &gix::hash::oid, what: &dyn ToString) -> ReadError {
    ReadError::Corrupt { id: id.to_hex().to_string(), what: what.to_string() }
}

/// The name of an object in our own words.
pub(super) fn object_id(id: &gix::hash::oid) -> ObjectId {
    ObjectId::parse(&id.to_hex().to_string()).expect("names of objects are hex")
}

/// The name of a commit in our own words.
pub(super) fn commit_id(id: &gix::hash::oid) -> CommitId {
    CommitId::parse(&id.to_hex().to_string()).expect("names of objects are hex")
}

/// The raw entries of a tree that are still to be looked at.
struct Entries<'a> {
    rest: &'a [u8],
    n_raw: usize,
}

struct Entry<'a> {
    name: &'a [u8],
    /// As git takes it: of permissions only whether the owner may execute.
    mode: u32,
    raw: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Bytes of the first entry; 0 at the end.
    fn n_first(&self) -> Option<usize> {
        if self.rest.is_empty() {
            return Some(0);
        }
        let n = memchr::memchr(0, self.rest)? + 1 + self.n_raw;
        (n <= self.rest.len()).then_some(n)
    }

    /// Passes over equal entries at the beginning of both.
    fn skip_same(&mut self, other: &mut Self) {
        while let Some(n @ 1..) = self.n_first()
            && other.rest.starts_with(&self.rest[..n])
        {
            self.rest = &self.rest[n..];
            other.rest = &other.rest[n..];
        }
    }

    /// The first entry, `Some(None)` at the end; `None` where the tree is damaged.
    #[expect(clippy::option_option, reason = "an end is not damage")]
    fn peek(&self) -> Option<Option<Entry<'a>>> {
        let n = self.n_first()?;
        if n == 0 {
            return Some(None);
        }
        let (head, raw) = self.rest[..n].split_at(n - self.n_raw);
        let space = memchr::memchr(b' ', head)?;
        let mode = parse_octal(&head[..space])?;
        let name = &head[space + 1..head.len() - 1];
        let rest = &self.rest[n..];
        Some(Some(Entry { name, mode: canonical_mode(mode), raw, rest }))
    }
}

impl Entry<'_> {
    fn is_folder(&self) -> bool {
        self.mode == FOLDER
    }

    fn id(&self) -> gix::ObjectId {
        gix::ObjectId::from_bytes_or_panic(self.raw)
    }

    /// The order of entries in a tree: a folder stands as if its name ended with a slash.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let n = self.name.len().min(other.name.len());
        let next = |entry: &Self| match entry.name.get(n) {
            Some(byte) => *byte,
            None if entry.is_folder() => b'/',
            None => 0,
        };
        self.name[..n].cmp(&other.name[..n]).then_with(|| next(self).cmp(&next(other)))
    }
}

/// Git knows five modes, and takes all others for one of them.
fn canonical_mode(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => EXECUTABLE,
        0o100_000 => 0o100_644,
        FOLDER => FOLDER,
        SYMLINK => SYMLINK,
        _ => SUBMODULE,
    }
}
