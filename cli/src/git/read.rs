//! Reading objects and histories, from the object store alone.
//!
//! Objects come through gix's object database, opened on the folder of objects: no configuration,
//! no refs, no replace refs, no grafts. Which commits and files a range has, and its final diff,
//! come from git, run in a private repository that borrows the objects ([`borrow`]).
//!
//! [`borrow`]: crate::git::borrow

use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::link::FileStatus;

use crate::context::Context;
use crate::git::borrow::{BorrowError, Borrowed, ObjectFormat};
use crate::git::run::{Git, GitError};
use crate::link::history::{
    At, BlobError, BlobReader, Blobs, Block, Commit, FileChange, FinalDiff, FinalFile, History,
    Outside, Parent, Sides, Version,
};

/// Bytes of unpacked objects that one reader keeps, as bases of deltas.
const PACK_CACHE_BYTES: usize = 24 << 20;

/// A larger buffer for unpacking is given back at once.
const MAX_BUFFER_BYTES: usize = 4 << 20;

/// Renames are sought among at most this many files of one side.
pub const RENAME_LIMIT: u32 = 1000;
/// Files are the same file from this similarity on, in percent.
pub const RENAME_PERCENT: u32 = 50;

type Handle = gix::odb::HandleArc;

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

const FOLDER: u32 = 0o040_000;

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
        let kind = match format {
            ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
            ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
        };
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
        let n_raw = match self.format {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        };
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
        use gix::objs::Find as _;
        let corrupt = |what: String| ReadError::Corrupt { id: id.to_owned(), what };
        let oid = gix::ObjectId::from_hex(id.as_bytes()).map_err(|e| corrupt(e.to_string()))?;
        match handle.try_find(&oid, buffer) {
            Ok(Some(object)) => {
                let found = object.kind.to_string();
                if found == expected {
                    Ok(())
                } else {
                    Err(ReadError::Kind { id: id.to_owned(), expected, found })
                }
            }
            Ok(None) => Err(self.missing(id)),
            Err(error) => Err(corrupt(error.to_string())),
        }
    }

    fn missing(&self, id: &str) -> ReadError {
        ReadError::Missing { id: id.to_owned(), folder: self.folder.clone(), absence: self.absence }
    }

    fn handle(&self) -> Handle {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            gix::odb::Cache::from(self.store.to_handle_arc()).with_pack_cache(|| {
                Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(PACK_CACHE_BYTES))
            })
        })
    }

    fn give_back(&self, handle: Handle) {
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

fn parse_octal(digits: &[u8]) -> Option<u32> {
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
    let kind = match format {
        ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
        ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
    };
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

/// Reads the history of `base..head` and its final diff.
///
/// `max_commits`: the range may have no more commits than that.
///
/// # Errors
/// [`ReadError`] when the base is not an ancestor of the head, when there are more commits than
/// allowed, or when an object that is needed is missing.
pub fn history(
    context: &Context,
    objects: &Objects,
    base: &CommitId,
    head: &CommitId,
    max_commits: Option<usize>,
) -> Result<History, ReadError> {
    objects.commit(base)?;
    objects.commit(head)?;
    if base == head {
        return Ok(History {
            base: base.clone(),
            head: head.clone(),
            commits: Vec::new(),
            outside: Vec::new(),
            diff: FinalDiff::default(),
        });
    }
    let borrowed = Borrowed::new(context, objects.folder(), objects.format())?;
    let git = borrowed.git();
    let range = read_range(git, base, head).map_err(|error| objects.explain(error))?;
    let is_parent = |(_, parents): &(CommitId, Vec<CommitId>)| parents.contains(base);
    if !range.iter().any(is_parent) {
        return Err(ReadError::NotAncestor { base: base.clone(), head: head.clone() });
    }
    if let Some(max_commits) = max_commits.filter(|max| range.len() > *max) {
        return Err(ReadError::TooManyCommits { commits: range.len(), max_commits });
    }
    // Two processes that read different things, side by side.
    let (steps, diff) = std::thread::scope(|scope| {
        let diff = scope.spawn(|| read_diff(git, base, head));
        let steps = read_steps(git, base, range);
        let diff = diff.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (steps, diff)
    });
    let (commits, outside) = steps.map_err(|error| objects.explain(error))?;
    let diff = diff.map_err(|error| objects.explain(error))?;
    Ok(History { base: base.clone(), head: head.clone(), commits, outside, diff })
}

/// The final diff of two commits alone, with the contract's settings.
///
/// # Errors
/// [`ReadError`] when an object that is needed is missing.
pub fn final_diff(
    context: &Context,
    objects: &Objects,
    base: &CommitId,
    head: &CommitId,
) -> Result<FinalDiff, ReadError> {
    let borrowed = Borrowed::new(context, objects.folder(), objects.format())?;
    read_diff(borrowed.git(), base, head).map_err(|error| objects.explain(error))
}

impl Objects {
    /// Turns git's failure into the missing object that caused it, where there is one.
    fn explain(&self, error: GitError) -> ReadError {
        use gix::objs::Exists as _;
        let GitError::Failed { stderr, .. } = &error else { return error.into() };
        let handle = self.handle();
        let missing = stderr
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|word| matches!(word.len(), 40 | 64))
            .find(|word| {
                gix::ObjectId::from_hex(word.as_bytes()).is_ok_and(|id| !handle.exists(&id))
            });
        let explained = missing.map(|id| self.missing(id));
        self.give_back(handle);
        explained.unwrap_or(ReadError::Git(error))
    }
}

type Range = Vec<(CommitId, Vec<CommitId>)>;

fn read_range(git: &Git<'_>, base: &CommitId, head: &CommitId) -> Result<Range, GitError> {
    let not_base = format!("^{base}");
    let args = ["rev-list", "--topo-order", "--reverse", "--parents", head.as_str(), &not_base];
    let answer = git.output(args)?;
    let text = String::from_utf8_lossy(&answer);
    text.lines()
        .map(|line| {
            let mut ids = line.split(' ').map(CommitId::parse);
            let bad = || unexpected("rev-list", line.as_bytes());
            let id = ids.next().ok_or_else(bad)?.map_err(|_| bad())?;
            let parents = ids.collect::<Result<_, _>>().map_err(|_| bad())?;
            Ok((id, parents))
        })
        .collect()
}

fn unexpected(command: &str, answer: &[u8]) -> GitError {
    GitError::Answer {
        command: command.to_owned(),
        answer: String::from_utf8_lossy(answer).chars().take(200).collect(),
    }
}

const RENAMES: [&str; 2] = ["--find-renames=50%", "--no-rename-empty"];

fn read_steps(
    git: &Git<'_>,
    base: &CommitId,
    range: Range,
) -> Result<(Vec<Commit>, Vec<Outside>), GitError> {
    use std::collections::HashMap;
    use std::fmt::Write as _;

    let places: HashMap<CommitId, u32> =
        range.iter().enumerate().map(|(n, (id, _))| (id.clone(), n as u32)).collect();
    let mut outside: Vec<CommitId> = Vec::new();
    let mut outside_places: HashMap<CommitId, u32> = HashMap::new();
    let mut wanted = String::new();
    let mut plan: Vec<(CommitId, Vec<At>)> = Vec::with_capacity(range.len());
    let mut sides = Sides::default();
    for (id, parents) in range {
        let mut ats = Vec::with_capacity(parents.len());
        for parent in &parents {
            ats.push(if parent == base {
                At::Base
            } else if let Some(place) = places.get(parent) {
                At::Commit(*place)
            } else {
                At::Outside(*outside_places.entry(parent.clone()).or_insert_with(|| {
                    outside.push(parent.clone());
                    outside.len() as u32 - 1
                }))
            });
        }
        let mut sides = sides.of_commit(&ats).into_iter();
        let mut kept = Vec::with_capacity(ats.len());
        for (at, parent) in ats.into_iter().zip(&parents) {
            if sides.next() == Some(true) {
                let _ = writeln!(wanted, "{id} {parent}");
                kept.push(at);
            }
        }
        if parents.is_empty() {
            let _ = writeln!(wanted, "{id}");
            kept.push(At::Nothing);
        }
        plan.push((id, kept));
    }
    for id in &outside {
        let _ = writeln!(wanted, "{id} {base}");
    }
    let limit = format!("-l{RENAME_LIMIT}");
    let args = ["diff-tree", "--stdin", "--root", "--always", "-r", "-z", "--raw", "--no-abbrev"];
    let args = args.into_iter().chain(RENAMES).chain([limit.as_str()]);
    let answer = git.output_with(args, Some(wanted.as_bytes()))?;
    let mut raw = RawDiffs { rest: &answer };
    let mut commits = Vec::with_capacity(plan.len());
    for (id, ats) in plan {
        let mut parents = Vec::with_capacity(ats.len());
        for at in ats {
            parents.push(Parent { at, changes: raw.next(&id)? });
        }
        commits.push(Commit { id, parents });
    }
    let outside = outside
        .into_iter()
        .map(|id| raw.next(&id).map(|changes| Outside { id, changes }))
        .collect::<Result<_, _>>()?;
    if !raw.rest.is_empty() {
        return Err(unexpected("diff-tree", raw.rest));
    }
    Ok((commits, outside))
}

/// The answer of `diff-tree --stdin -z --raw`: a commit id, then its records, all ended by NUL.
struct RawDiffs<'a> {
    rest: &'a [u8],
}

impl<'a> RawDiffs<'a> {
    fn field(&mut self) -> Result<&'a [u8], GitError> {
        let end = self.rest.iter().position(|b| *b == 0);
        let end = end.ok_or_else(|| unexpected("diff-tree", self.rest))?;
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(field)
    }

    fn next(&mut self, id: &CommitId) -> Result<Vec<FileChange>, GitError> {
        let header = self.field()?;
        if header != id.as_str().as_bytes() {
            return Err(unexpected("diff-tree", header));
        }
        let mut changes = Vec::new();
        while self.rest.first() == Some(&b':') {
            let record = Record::parse(self.field()?)?;
            let first = RepoPath::from(self.field()?);
            let second = record.has_two_paths().then(|| self.field()).transpose()?;
            changes.push(record.change(first, second.map(RepoPath::from)));
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }
}

/// `:<old mode> <new mode> <old id> <new id> <status and score>`.
struct Record {
    old: Option<Version>,
    new: Option<Version>,
    status: u8,
    score: Option<u32>,
}

impl Record {
    fn parse(field: &[u8]) -> Result<Self, GitError> {
        let bad = || unexpected("diff-tree", field);
        let text = std::str::from_utf8(field).map_err(|_| bad())?;
        let parts: Vec<&str> = text.strip_prefix(':').ok_or_else(bad)?.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, status] = parts[..] else { return Err(bad()) };
        let version = |mode: &str, id: &str| {
            let mode = parse_octal(mode.as_bytes()).ok_or_else(bad)?;
            if mode == 0 {
                return Ok(None);
            }
            let oid = ObjectId::parse(id).map_err(|_| bad())?;
            Ok(Some(Version { mode, oid }))
        };
        let (status, score) = status.split_at_checked(1).ok_or_else(bad)?;
        Ok(Self {
            old: version(old_mode, old_id)?,
            new: version(new_mode, new_id)?,
            status: status.as_bytes()[0],
            score: score.parse().ok(),
        })
    }

    fn has_two_paths(&self) -> bool {
        self.status == b'R'
    }

    fn change(&self, first: RepoPath, second: Option<RepoPath>) -> FileChange {
        let (path, renamed_from) = match second {
            Some(path) => (path, Some(first)),
            None => (first, None),
        };
        FileChange { path, renamed_from, old: self.old.clone(), new: self.new.clone() }
    }
}

fn read_diff(git: &Git<'_>, base: &CommitId, head: &CommitId) -> Result<FinalDiff, GitError> {
    let limit = format!("-l{RENAME_LIMIT}");
    let mut command = git.command();
    command
        .args(["diff-tree", "-r", "--raw", "--patch", "--full-index", "--unified=0"])
        .args(["--diff-algorithm=histogram", "--indent-heuristic", "--no-color"])
        .args(["--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--submodule=short"])
        .args(["--src-prefix=a/", "--dst-prefix=b/", "--no-relative"])
        .args(RENAMES)
        .args([limit.as_str(), base.as_str(), head.as_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitError::Start)?;
    let stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (parsed, complaint) = std::thread::scope(|scope| {
        let complaint = scope.spawn(move || {
            let mut text = Vec::new();
            if let Some(pipe) = stderr.as_mut() {
                let _ = pipe.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let parsed = stdout.map_or_else(
            || Err(unexpected("diff-tree", b"")),
            |pipe| parse_diff(&mut BufReader::with_capacity(1 << 16, pipe)),
        );
        (parsed, complaint.join().unwrap_or_default())
    });
    let status = child.wait().map_err(GitError::Start)?;
    if !status.success() {
        return Err(GitError::Failed {
            args: vec!["diff-tree".to_owned(), base.to_string(), head.to_string()],
            status: status.to_string(),
            stderr: complaint.chars().take(4000).collect(),
        });
    }
    let mut diff = parsed?;
    diff.renames_skipped = complaint.contains("exhaustive rename detection was skipped");
    Ok(diff)
}

/// Reads raw records, then the patch of each in the same order, of which only the places of hunks
/// are kept. Lines inside hunks are counted, so that no content and no path can pose as a header.
fn parse_diff(input: &mut impl BufRead) -> Result<FinalDiff, GitError> {
    let mut line = Vec::new();
    let mut files: Vec<FinalFile> = Vec::new();
    while next_line(input, &mut line)? && line.first() == Some(&b':') {
        files.push(parse_raw_line(&line)?);
    }
    let mut at: Option<usize> = None;
    let mut started = false;
    let mut extra_section = false;
    while started || next_line(input, &mut line)? {
        started = false;
        if line.starts_with(b"diff --git ") {
            // A change of type is printed as a deletion and an addition.
            if extra_section {
                extra_section = false;
                continue;
            }
            let next = at.map_or(0, |at| at + 1);
            let file = files.get(next).ok_or_else(|| unexpected("diff-tree", &line))?;
            extra_section = file.status == FileStatus::Type;
            at = Some(next);
        } else if line.starts_with(b"@@ ") {
            let block = parse_hunk_header(&line).ok_or_else(|| unexpected("diff-tree", &line))?;
            let file = at.and_then(|at| files.get_mut(at));
            let file = file.ok_or_else(|| unexpected("diff-tree", &line))?;
            let n_lines = block.old_lines + block.new_lines;
            if has_text(&file.change) {
                file.blocks.push(block);
            }
            for n in 0..n_lines {
                if !skip_line(input, if n < block.old_lines { b'-' } else { b'+' })? {
                    return Err(unexpected("diff-tree", b"a hunk is cut off"));
                }
                if input.fill_buf().map_err(GitError::Start)?.first() == Some(&b'\\') {
                    skip_line(input, b'\\')?;
                }
            }
        }
    }
    if at.map_or(0, |at| at + 1) != files.len() {
        return Err(unexpected("diff-tree", b"the patch of a file is missing"));
    }
    files.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    Ok(FinalDiff { renames_skipped: false, files })
}

fn has_text(change: &FileChange) -> bool {
    let is_text = |side: &Option<Version>| side.as_ref().is_none_or(Version::is_regular);
    is_text(&change.old) && is_text(&change.new)
}

fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, GitError> {
    line.clear();
    input.read_until(b'\n', line).map_err(GitError::Start)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        return Ok(!line.is_empty());
    }
    Ok(true)
}

/// Skips one line that must begin with `mark`.
fn skip_line(input: &mut impl BufRead, mark: u8) -> Result<bool, GitError> {
    if input.fill_buf().map_err(GitError::Start)?.first() != Some(&mark) {
        return Ok(false);
    }
    input.skip_until(b'\n').map_err(GitError::Start)?;
    Ok(true)
}

fn parse_raw_line(line: &[u8]) -> Result<FinalFile, GitError> {
    let bad = || unexpected("diff-tree", line);
    let mut fields = line.split(|b| *b == b'\t');
    let record = Record::parse(fields.next().ok_or_else(bad)?)?;
    let mut path = || fields.next().and_then(unquote).map(RepoPath::from).ok_or_else(bad);
    let first = path()?;
    let second = record.has_two_paths().then(path).transpose()?;
    let status = match record.status {
        b'A' => FileStatus::Added,
        b'D' => FileStatus::Deleted,
        b'M' => FileStatus::Modified,
        b'R' => FileStatus::Renamed,
        b'T' => FileStatus::Type,
        _ => return Err(bad()),
    };
    Ok(FinalFile {
        change: record.change(first, second),
        status,
        similarity: record.score.filter(|_| status == FileStatus::Renamed),
        blocks: Vec::new(),
    })
}

/// Undoes git's quoting of paths with special characters.
fn unquote(field: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = field.strip_prefix(b"\"") else { return Some(field.to_vec()) };
    let inner = inner.strip_suffix(b"\"")?;
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'"' => b'"',
            b'\\' => b'\\',
            high @ b'0'..=b'3' => {
                let digits = [high, rest.next()?, rest.next()?];
                u8::try_from(parse_octal(&digits)?).ok()?
            }
            _ => return None,
        });
    }
    Some(out)
}

/// `@@ -a,b +c,d @@`, where a missing count is 1.
fn parse_hunk_header(line: &[u8]) -> Option<Block> {
    let text = line.strip_prefix(b"@@ -")?;
    let end = text.windows(3).position(|w| w == b" @@")?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    let (old, new) = text.split_once(" +")?;
    let side = |text: &str| {
        let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
        let (start, lines): (u32, u32) = (start.parse().ok()?, lines.parse().ok()?);
        // Git names the line before an empty side, else its first line.
        Some((if lines == 0 { start } else { start.checked_sub(1)? }, lines))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (side(old)?, side(new)?);
    Some(Block { old_start, old_lines, new_start, new_lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunk_headers_are_read_to_places_that_count_from_0() {
        let block =
            |a, b, c, d| Some(Block { old_start: a, old_lines: b, new_start: c, new_lines: d });
        assert_eq!(parse_hunk_header(b"@@ -5 +6 @@ fn x"), block(4, 1, 5, 1));
        assert_eq!(parse_hunk_header(b"@@ -5,0 +6,2 @@"), block(5, 0, 5, 2));
        assert_eq!(parse_hunk_header(b"@@ -0,0 +1,2 @@ @@ -1 +1 @@"), block(0, 0, 0, 2));
        assert_eq!(parse_hunk_header(b"@@ -1,3 +0,0 @@"), block(0, 3, 0, 0));
        assert_eq!(parse_hunk_header(b"@@ nonsense @@"), None);
    }

    #[test]
    fn quoted_paths_are_unquoted() {
        assert_eq!(unquote(b"a b").unwrap(), b"a b");
        assert_eq!(unquote(br#""a\tb\"\\\n\001\377""#).unwrap(), b"a\tb\"\\\n\x01\xff");
        assert_eq!(unquote(br#""a\q""#), None);
        assert_eq!(unquote(br#""a"#), None);
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let patch = b":100644 100644 1111111111111111111111111111111111111111 \
            2222222222222222222222222222222222222222 M\tf\n\ndiff --git a/f b/f\nindex 1..2\n\
            @@ -1 +1,2 @@\n-diff --git a/f b/f\n\\ No newline at end of file\n+@@ -1 +1 @@\n\
            +\\ No newline\n@@ -9 +10 @@\n-a\n+b\n";
        let diff = parse_diff(&mut patch.as_slice()).unwrap();
        assert_eq!(diff.files.len(), 1);
        assert_eq!(diff.files[0].blocks.len(), 2);
        assert_eq!(diff.files[0].blocks[1].old_start, 8);
    }
}
