//! Reading objects and histories, from the object store alone.
//!
//! Objects come through gix's object database, opened on the folder of objects: no configuration,
//! no refs, no replace refs, no grafts. [`range`] reads histories with it.
//!
//! [`range`]: crate::git::range

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};

use crate::git::borrow::{BorrowError, ObjectFormat};
use crate::git::run::{Git, GitError};
use crate::link::history::{BlobError, BlobReader, Blobs};

/// Bytes of unpacked objects that one reader keeps, as bases of deltas.
const PACK_CACHE_BYTES: usize = 24 << 20;

/// A larger buffer for unpacking is given back at once.
const MAX_BUFFER_BYTES: usize = 4 << 20;

pub(super) type Handle = gix::odb::HandleArc;

/// The objects of one repository.
pub struct Objects {
    store: Arc<gix::odb::Store>,
    folder: PathBuf,
    format: ObjectFormat,
    absence: Absence,
    idle: Mutex<Vec<Handle>>,
}

/// Why objects may be missing without the repository being damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The history was cut: a shallow clone.
    Shallow,
    /// Contents were left out: a partial clone.
    Partial,
    /// There is no known reason.
    Damage,
}

/// What can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An object is not there.
    #[error("object {id} is missing in {}", folder.display())]
    Missing {
        /// Its name.
        id: String,
        /// The folder of objects.
        folder: PathBuf,
        /// What the repository says about missing objects.
        absence: Absence,
    },
    /// An object is there but can't be decoded.
    #[error("object {id} can't be read: {what}")]
    Corrupt {
        /// Its name.
        id: String,
        /// What is wrong with it.
        what: String,
    },
    /// An object is of another kind than what it is used as.
    #[error("object {id} is a {found}, not a {expected}")]
    Kind {
        /// Its name.
        id: String,
        /// What was wanted.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The base of the range does not lie in the history of its head.
    #[error("base {base} is not an ancestor of head {head}")]
    NotAncestor {
        /// The base.
        base: CommitId,
        /// The head.
        head: CommitId,
    },
    /// The range has more commits than allowed.
    #[error("the range has {commits} commits, more than the {max_commits} allowed")]
    TooManyCommits {
        /// How many there are.
        commits: usize,
        /// How many are allowed.
        max_commits: usize,
    },
    /// The private repository can't be made.
    #[error(transparent)]
    Borrow(#[from] BorrowError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The folder of objects can't be opened.
    #[error("can't open the objects in {}", folder.display())]
    Open {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A commit as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitText {
    /// Its tree.
    pub tree: ObjectId,
    /// In order.
    pub parents: Vec<CommitId>,
    /// Name of the author.
    pub author_name: Vec<u8>,
    /// Address of the author.
    pub author_email: Vec<u8>,
    /// Seconds since 1970 of the author's date.
    pub author_seconds: i64,
    /// Seconds since 1970 of the committer's date.
    pub committer_seconds: i64,
    /// The whole message.
    pub message: Vec<u8>,
}

impl CommitText {
    /// The first line of the message.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        self.message.split(|b| *b == b'\n').next().unwrap_or_default()
    }
}

/// What a tree has at a path: mode and object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Git's mode; `0o040000` for a folder.
    pub mode: u32,
    /// The blob, the tree, or for a submodule the commit it points to.
    pub oid: ObjectId,
}

impl TreeEntry {
    /// Whether it is a regular file, executable or not.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

pub(super) const FOLDER: u32 = 0o040_000;

impl Objects {
    /// Opens the objects of a repository. Linked worktrees and bare repositories are fine.
    ///
    /// # Errors
    /// [`ReadError`] when git can't be asked or the folder can't be opened.
    pub fn open(git: &Git<'_>) -> Result<Self, ReadError> {
        let common = git.common_dir()?;
        let format = if git.is_sha256()? { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
        let folder = common.join("objects");
        let absence = if common.join("shallow").exists() {
            Absence::Shallow
        } else if has_promisor(&folder) {
            Absence::Partial
        } else {
            Absence::Damage
        };
        Self::open_folder(folder, format, absence)
    }

    fn open_folder(
        folder: PathBuf,
        format: ObjectFormat,
        absence: Absence,
    ) -> Result<Self, ReadError> {
        let kind = hash_kind(format);
        let options = gix::odb::store::init::Options {
            current_dir: Some(folder.clone()),
            ..Default::default()
        };
        let store =
            gix::odb::Store::at_opts(folder.clone(), kind, &mut std::iter::empty(), options)
                .map_err(|source| ReadError::Open { folder: folder.clone(), source })?;
        Ok(Self { store: Arc::new(store), folder, format, absence, idle: Mutex::default() })
    }

    /// The folder of objects.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the repository names its objects.
    #[must_use]
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    pub(super) fn hash_kind(&self) -> gix::hash::Kind {
        hash_kind(self.format)
    }

    /// The content of a blob.
    ///
    /// # Errors
    /// [`ReadError`] when it is missing, can't be read, or is no blob.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, ReadError> {
        self.read(id.as_str(), "blob")
    }

    /// A commit as it is written.
    ///
    /// # Errors
    /// [`ReadError`] when it is missing, can't be read, or is no commit.
    pub fn commit(&self, id: &CommitId) -> Result<CommitText, ReadError> {
        let bytes = self.read(id.as_str(), "commit")?;
        parse_commit(id, self.format, &bytes)
    }

    /// What the tree of a commit has at `path`; `None` when there is nothing.
    ///
    /// # Errors
    /// [`ReadError`] when an object on the way can't be read.
    pub fn entry(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<TreeEntry>, ReadError> {
        let mut at = TreeEntry { mode: FOLDER, oid: self.commit(commit)?.tree };
        for part in path.as_bytes().split(|b| *b == b'/') {
            if at.mode != FOLDER {
                return Ok(None);
            }
            let found = self.tree(&at.oid)?.into_iter().find(|(name, _)| name == part);
            match found {
                Some((_, entry)) => at = entry,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Every file, link and submodule in the tree of a commit, in byte order of path.
    ///
    /// # Errors
    /// [`ReadError`] when a tree can't be read.
    pub fn files(&self, commit: &CommitId) -> Result<Vec<(RepoPath, TreeEntry)>, ReadError> {
        let mut found = Vec::new();
        let mut todo = vec![(Vec::new(), self.commit(commit)?.tree)];
        while let Some((folder, tree)) = todo.pop() {
            for (name, entry) in self.tree(&tree)? {
                let path = [folder.as_slice(), &name].concat();
                if entry.mode == FOLDER {
                    todo.push(([path.as_slice(), b"/"].concat(), entry.oid));
                } else {
                    found.push((RepoPath::from(path), entry));
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// The entries of one tree, in its order.
    ///
    /// # Errors
    /// [`ReadError`] when it is missing, can't be read, or is no tree.
    pub fn tree(&self, id: &ObjectId) -> Result<Vec<(Vec<u8>, TreeEntry)>, ReadError> {
        let bytes = self.read(id.as_str(), "tree")?;
        let corrupt = || ReadError::Corrupt {
            id: id.as_str().to_owned(),
            what: "its entries are cut off".to_owned(),
        };
        let n_raw = self.hash_kind().len_in_bytes();
        let mut entries = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let space = rest.iter().position(|b| *b == b' ').ok_or_else(corrupt)?;
            let mode = parse_octal(&rest[..space]).ok_or_else(corrupt)?;
            rest = &rest[space + 1..];
            let end = rest.iter().position(|b| *b == 0).ok_or_else(corrupt)?;
            let name = rest[..end].to_vec();
            let raw = rest.get(end + 1..end + 1 + n_raw).ok_or_else(corrupt)?;
            let oid = ObjectId::parse(&hex(raw)).map_err(|_| corrupt())?;
            entries.push((name, TreeEntry { mode, oid }));
            rest = &rest[end + 1 + n_raw..];
        }
        Ok(entries)
    }

    fn read(&self, id: &str, expected: &'static str) -> Result<Vec<u8>, ReadError> {
        let handle = self.handle();
        let mut buffer = Vec::new();
        let result = self.read_into(&handle, id, expected, &mut buffer);
        self.give_back(handle);
        result.map(|()| buffer)
    }

    fn read_into(
        &self,
        handle: &Handle,
        id: &str,
        expected: &'static str,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let oid = parse_name(id)?;
        self.read_id_into(handle, &oid, expected, buffer)
    }

    pub(super) fn read_id_into(
        &self,
        handle: &Handle,
        id: &gix::hash::oid,
        expected: &'static str,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        use gix::objs::Find as _;
        let name = || id.to_hex().to_string();
        match handle.try_find(id, buffer) {
            Ok(Some(object)) => {
                let found = object.kind.to_string();
                if found == expected {
                    Ok(())
                } else {
                    Err(ReadError::Kind { id: name(), expected, found })
                }
            }
            Ok(None) => Err(self.missing(&name())),
            Err(error) => Err(ReadError::Corrupt { id: name(), what: error.to_string() }),
        }
    }

    pub(super) fn missing(&self, id: &str) -> ReadError {
        ReadError::Missing { id: id.to_owned(), folder: self.folder.clone(), absence: self.absence }
    }

    pub(super) fn handle(&self) -> Handle {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            gix::odb::Cache::from(self.store.to_handle_arc()).with_pack_cache(|| {
                Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(PACK_CACHE_BYTES))
            })
        })
    }

    pub(super) fn give_back(&self, handle: Handle) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }
}

fn has_promisor(objects: &Path) -> bool {
    let Ok(packs) = std::fs::read_dir(objects.join("pack")) else { return false };
    packs.flatten().any(|pack| pack.path().extension().is_some_and(|ext| ext == "promisor"))
}

struct Reader<'a> {
    objects: &'a Objects,
    handle: Option<Handle>,
    /// Grows to the largest content and to what unpacking it takes.
    buffer: Vec<u8>,
}

impl Blobs for Objects {
    fn reader(&self) -> Box<dyn BlobReader + '_> {
        Box::new(Reader { objects: self, handle: Some(self.handle()), buffer: Vec::new() })
    }
}

impl BlobReader for Reader<'_> {
    fn blob(&mut self, oid: &ObjectId) -> Result<Arc<Vec<u8>>, BlobError> {
        let handle = self.handle.get_or_insert_with(|| self.objects.handle());
        self.objects
            .read_into(handle, oid.as_str(), "blob", &mut self.buffer)
            .map_err(|error| BlobError(Box::new(error)))?;
        // Unpacking leaves room for the deltas behind the content: that is not kept.
        let content = self.buffer.as_slice().to_vec();
        if self.buffer.capacity() > MAX_BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        Ok(Arc::new(content))
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.objects.give_back(handle);
        }
    }
}

fn hash_kind(format: ObjectFormat) -> gix::hash::Kind {
    match format {
        ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
        ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
    }
}

/// An id as gix names it.
pub(super) fn parse_name(id: &str) -> Result<gix::ObjectId, ReadError> {
    gix::ObjectId::from_hex(id.as_bytes())
        .map_err(|error| ReadError::Corrupt { id: id.to_owned(), what: error.to_string() })
}

pub(super) fn parse_octal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |mode, digit| match digit {
        b'0'..=b'7' => mode.checked_mul(8)?.checked_add(u32::from(digit - b'0')),
        _ => None,
    })
}

fn hex(raw: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    raw.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn parse_commit(
    id: &CommitId,
    format: ObjectFormat,
    bytes: &[u8],
) -> Result<CommitText, ReadError> {
    let corrupt = |what: String| ReadError::Corrupt { id: id.as_str().to_owned(), what };
    let kind = hash_kind(format);
    let commit = gix::objs::CommitRef::from_bytes(bytes, kind)
        .map_err(|error| corrupt(error.to_string()))?;
    let author = commit.author().map_err(|error| corrupt(error.to_string()))?;
    let committer = commit.committer().map_err(|error| corrupt(error.to_string()))?;
    let parse = |hex: &[u8]| {
        let text = String::from_utf8_lossy(hex);
        CommitId::parse(&text).map_err(|error| corrupt(error.to_string()))
    };
    let tree = String::from_utf8_lossy(commit.tree);
    Ok(CommitText {
        tree: ObjectId::parse(&tree).map_err(|error| corrupt(error.to_string()))?,
        parents: commit.parents.iter().map(|hex| parse(hex)).collect::<Result<_, _>>()?,
        author_name: author.name.to_vec(),
        author_email: author.email.to_vec(),
        author_seconds: author.seconds(),
        committer_seconds: committer.seconds(),
        message: commit.message.to_vec(),
    })
}
