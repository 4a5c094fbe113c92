//! Standalone clones: the workspace of an item, and the fresh checkout in which checks run.
//!
//! A clone has its own object store with the whole history of its commit, made from a pack: no
//! hard links, no alternates, no remote, no hooks, no template. Its files are the exact bytes of
//! the commit: no line-ending conversion, no filter, no keyword expansion, also when git is run in
//! it later (`.git/info/attributes` switches them off). So what is read back needs no conversion.
//!
//! After it is made it belongs to whoever works in it. Nothing here trusts it again.
//!
//! **Where.** A workspace lies outside of the repository, by default in
//! `$XDG_DATA_HOME/codeboost/workspaces/<repository>-<name>/<issue>-<item>`. Below the repository's
//! own folder the tools of a project would find its outer copy: package managers, linters and test
//! runners look for their files in all folders above. And many tools leave out everything below a
//! folder named `.git`.

use std::path::{Path, PathBuf};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ItemId};

use crate::context::Context;
use crate::execute::audit::quote;
use crate::execute::manifest::{self, Options, Spool};
use crate::git::borrow::ObjectFormat;
use crate::git::read::{Objects, ReadError};
use crate::git::repository::Repository;
use crate::git::run::{Git, GitError};
use crate::git::tree::{self, Mode, Tree, TreeChange};
use crate::sandbox::SandboxError;
use crate::stage::{self, FileError};
use crate::task::RepositoryId;

/// The branch that a workspace stands on.
pub const BRANCH: &str = "codeboost-item";

/// Switches off every conversion, whatever the commit's own `.gitattributes` say.
const ATTRIBUTES: &[u8] = b"# The files here are the exact bytes of the commit.\n\
    * -text !eol -ident -filter !working-tree-encoding\n";

/// A clone that was made.
#[derive(Debug)]
pub struct Clone {
    /// Where it lies, absolute.
    pub folder: PathBuf,
    /// Whether its file system keeps the right to execute.
    pub trusts_execute_bit: bool,
    /// The tree of its commit.
    pub tree: Tree,
}

/// Why there is no clone.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// Something is there already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The folder lies in another clone of ours or in the repository's own folder.
    #[error("{} lies inside {}", folder.display(), inside.display())]
    Inside {
        /// The folder that was wanted.
        folder: PathBuf,
        /// What it lies in.
        inside: PathBuf,
    },
    /// What was checked out is not the commit's tree.
    #[error("this file system can't hold the files of {commit_id} as they are: {}", paths.join(", "))]
    Unfaithful {
        /// The commit.
        commit_id: CommitId,
        /// Some of the paths, quoted.
        paths: Vec<String>,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An object can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Where the workspace of an item lies by default: the first of `<issue>-<item>`,
/// `<issue>-<item>-2` and so on that is free.
#[must_use]
pub fn default_folder(
    repository: &Repository<'_>,
    repository_id: RepositoryId,
    issue: u64,
    item: &ItemId,
) -> PathBuf {
    let home = workspaces_folder(repository, repository_id);
    let name = format!("{issue}-{item}");
    let numbered = (2..).map(|n| home.join(format!("{name}-{n}")));
    std::iter::once(home.join(&name))
        .chain(numbered)
        .find(|folder| !is_taken(folder))
        .expect("the numbers don't end")
}

fn is_taken(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok() || prompt_file(folder).symlink_metadata().is_ok()
}

/// The folder of the person's data.
fn data_folder(context: &Context) -> Option<PathBuf> {
    let data = context.var("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    data.or_else(|| {
        let home = context.var("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        home.map(|home| home.join(".local/share"))
    })
}

/// The folder in which the storages of all agents lie.
#[must_use]
pub fn pool_folder(repository: &Repository<'_>) -> PathBuf {
    match data_folder(repository.context()) {
        Some(data) => data.join("codeboost/sandbox"),
        None => repository.state_folder().join("sandbox"),
    }
}

/// The folder in which the workspaces of a repository lie.
fn workspaces_folder(repository: &Repository<'_>, repository_id: RepositoryId) -> PathBuf {
    // Without a home, as under some services, there is only the repository itself.
    let Some(data) = data_folder(repository.context()) else {
        return repository.state_folder().join("workspaces");
    };
    let shown = repository.work_tree().unwrap_or(repository.common_dir());
    let name = shown.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    let name = name.trim_matches(['.', '-']).to_owned();
    let id = repository_id.to_string();
    let id = id.split('-').next().unwrap_or_default().to_owned();
    data.join("codeboost/workspaces").join(format!("{name}-{id}").trim_start_matches('-'))
}

/// The prompt file of a workspace: beside it, so that it is no part of what is read back.
#[must_use]
pub fn prompt_file(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".prompt.md");
    folder.with_file_name(name)
}

/// The paths of the submodules in a tree, as they are masked in containers.
///
/// # Errors
/// [`SandboxError::NotEnforced`] when a path has signs that engines take for something else.
pub fn submodules(tree: &Tree) -> Result<Vec<String>, SandboxError> {
    let paths = tree.iter().filter(|(_, leaf)| leaf.mode == Mode::Gitlink).map(|(path, _)| path);
    let mask = |path: &RepoPath| {
        let text = std::str::from_utf8(path.as_bytes()).ok();
        let plain = text.filter(|text| !text.contains([':', ',', '"', '\n', ' ', '\t', '\\']));
        plain.map(str::to_owned).ok_or_else(|| {
            let path = quote(path.as_bytes());
            SandboxError::NotEnforced(format!("the submodule {path} can't be masked"))
        })
    };
    paths.map(mask).collect()
}

/// The folder beside a workspace in which rejected content is kept.
#[must_use]
pub fn rejected_folder(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".rejected");
    folder.with_file_name(name)
}

/// Keeps what was changed and may not be committed, for a person to look at: regular files only,
/// under numbers, with a list that says which path each was. At most 64 MiB.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn keep_rejected(
    folder: &Path,
    changes: &[TreeChange],
    spool: &Spool,
) -> Result<PathBuf, FileError> {
    const MAX_BYTES: u64 = 64 << 20;
    let kept = rejected_folder(folder);
    stage::make_folder(&kept)?;
    let mut list = String::new();
    let mut n_bytes = 0;
    for (n, change) in changes.iter().enumerate() {
        let content = change.after.as_ref().and_then(|leaf| spool.contents().get(&leaf.object_id));
        let path = quote(change.path.as_bytes());
        let Some(content) = content else {
            list.push_str(&format!("-  {path}\n"));
            continue;
        };
        let meta = content.metadata().map_err(|error| FileError::new("look at", content, error))?;
        n_bytes += meta.len();
        if n_bytes > MAX_BYTES {
            list.push_str(&format!("-  {path} and what follows: too large\n"));
            break;
        }
        let target = kept.join(n.to_string());
        std::fs::copy(content, &target).map_err(|error| FileError::new("write", &target, error))?;
        list.push_str(&format!("{n}  {path}\n"));
    }
    stage::write(&kept.join("list.txt"), list.as_bytes())?;
    Ok(kept)
}

/// Where `folder` really lies; its parents are made.
///
/// # Errors
/// [`CloneError::Exists`] when it is there, [`CloneError::Inside`] when it would lie in the
/// repository's own folder.
pub fn resolve(repository: &Repository<'_>, folder: &Path) -> Result<PathBuf, CloneError> {
    if folder.symlink_metadata().is_ok() {
        return Err(CloneError::Exists(folder.to_owned()));
    }
    let parent = folder.parent().unwrap_or(Path::new("/"));
    let inside = repository.common_dir();
    // Looked at first, so that nothing is made in there.
    let nearest = parent.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if nearest.is_some_and(|nearest| nearest.starts_with(inside))
        && !folder.starts_with(repository.state_folder().join("workspaces"))
    {
        return Err(CloneError::Inside { folder: folder.to_owned(), inside: inside.to_owned() });
    }
    stage::make_folder(parent)?;
    let parent = parent.canonicalize().map_err(|error| FileError::new("resolve", parent, error))?;
    Ok(parent.join(folder.file_name().unwrap_or_default()))
}

/// Makes a clone of `commit_id` in `folder`, which must not exist.
///
/// It is made under another name beside it and renamed, so that a killed process leaves no half
/// clone under that name. The checkout is compared with the commit's tree.
///
/// # Errors
/// [`CloneError`]; nothing is left then.
pub fn make(
    repository: &Repository<'_>,
    objects: &Objects,
    commit_id: &CommitId,
    folder: &Path,
) -> Result<Clone, CloneError> {
    let folder = resolve(repository, folder)?;
    let parent = folder.parent().unwrap_or(Path::new("/"));
    let draft = tempfile::Builder::new()
        .prefix(&draft_prefix(&folder))
        .tempdir_in(parent)
        .map_err(|error| FileError::new("make a folder in", parent, error))?;
    // A temporary folder is its owner's alone; a workspace is a folder like any other.
    let work = draft.path().join("work");
    stage::make_folder(&work)?;
    let git = init(repository, objects.format(), &work)?;
    copy_history(repository, &git, commit_id)?;
    git.output(["update-ref", &format!("refs/heads/{BRANCH}"), commit_id.as_str()])?;
    git.output(["symbolic-ref", "HEAD", &format!("refs/heads/{BRANCH}")])?;
    let tree = tree::read_tree(objects, commit_id)?;
    check_out(&git, &work, commit_id)?;
    let answer = git.output(["config", "--type=bool", "--get", "core.fileMode"])?;
    let trusts_execute_bit = answer.trim_ascii() == b"true";
    check_faithful(&work, objects.format(), &tree, commit_id, trusts_execute_bit)?;
    // A rename onto an empty folder would succeed; that nothing is there was asked above, and the
    // task's lease keeps others of us away.
    std::fs::rename(&work, &folder).map_err(|error| FileError::new("make", &folder, error))?;
    Ok(Clone { folder, trusts_execute_bit, tree })
}

fn draft_prefix(folder: &Path) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".making-");
    prefix.push(folder.file_name().unwrap_or_default());
    prefix.push("-");
    prefix
}

/// Removes what a killed [`make`] left beside `folder`.
pub fn remove_drafts(folder: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(entries) = folder.parent().and_then(|parent| std::fs::read_dir(parent).ok()) else {
        return;
    };
    let prefix = draft_prefix(folder);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.as_bytes().strip_prefix(prefix.as_bytes());
        // A longer rest belongs to a folder whose name begins like ours.
        if random.is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric))
        {
            // What can't be removed is only rubbish.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The person's own ignore rules, weakest first: their `core.excludesFile`, then the repository's
/// `info/exclude`. The same that git shows them in `git status`.
///
/// # Errors
/// [`FileError`] when one of the files is there but can't be read.
pub fn own_ignore_rules(repository: &Repository<'_>) -> Result<Vec<Vec<u8>>, FileError> {
    let mut rules = Vec::new();
    let files = [excludes_file(repository), Some(repository.common_dir().join("info/exclude"))];
    for file in files.into_iter().flatten() {
        match stage::read(&file, stage::MAX_SETTINGS) {
            Ok(bytes) => rules.push(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rules)
}

fn excludes_file(repository: &Repository<'_>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let context = repository.context();
    let git = repository.git().with_person();
    let done = git.finish(["config", "--type=path", "--get", "core.excludesFile"], None).ok()?;
    if done.code == Some(0) {
        let path = Path::new(std::ffi::OsStr::from_bytes(done.stdout.trim_ascii_end()));
        return path.is_absolute().then(|| path.to_owned());
    }
    let config = context.var("XDG_CONFIG_HOME").map(PathBuf::from);
    let config =
        config.or_else(|| context.var("HOME").map(|home| Path::new(home).join(".config")))?;
    config.is_absolute().then(|| config.join("git/ignore"))
}

/// What the `.git` of a workspace says of itself, read without running git there. Nothing depends
/// on it but words, and whether the folder is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// Whether the branch that is checked out names another commit than the one it was made with.
    pub has_commits: bool,
    /// Whether something is there that would be lost with the folder: other branches, a stash,
    /// refs that can't be read from here.
    pub has_more: bool,
}

/// Looks into the `.git` of a workspace that was made of `commit_id`.
#[must_use]
pub fn look_inside(folder: &Path, commit_id: &CommitId) -> Inside {
    let git_dir = folder.join(".git");
    let read = |path: &str| {
        let file = git_dir.join(path);
        let meta = file.symlink_metadata().ok()?;
        if !meta.is_file() || meta.len() > 4096 {
            return None;
        }
        Some(String::from_utf8_lossy(&stage::read(&file, 4096).ok()?).trim().to_owned())
    };
    let ours = format!("refs/heads/{BRANCH}");
    let is_ours = |text: Option<String>| text.is_some_and(|text| text == commit_id.as_str());
    let has_commits = match read("HEAD") {
        Some(head) if head == format!("ref: {ours}") => !is_ours(read(&ours)),
        head => !is_ours(head),
    };
    let others = walkdir::WalkDir::new(git_dir.join("refs"))
        .into_iter()
        .flatten()
        .any(|entry| !entry.file_type().is_dir() && entry.path() != git_dir.join(&ours));
    let packed = ["packed-refs", "reftable"];
    let has_more =
        others || packed.iter().any(|name| git_dir.join(name).symlink_metadata().is_ok());
    Inside { has_commits, has_more }
}

fn init<'a>(
    repository: &Repository<'a>,
    format: ObjectFormat,
    work: &Path,
) -> Result<Git<'a>, CloneError> {
    let context: &'a Context = repository.context();
    let git = Git::at(context, work.join(".git")).in_folder(work);
    let format = match format {
        ObjectFormat::Sha1 => "--object-format=sha1",
        ObjectFormat::Sha256 => "--object-format=sha256",
    };
    git.output(["init", "--quiet", "--template=", format])?;
    let info = work.join(".git/info");
    stage::make_folder(&info)?;
    stage::write_scratch(&info.join("attributes"), ATTRIBUTES)?;
    Ok(git)
}

/// Copies a commit with all its history.
fn copy_history(
    repository: &Repository<'_>,
    git: &Git<'_>,
    commit_id: &CommitId,
) -> Result<(), CloneError> {
    let shallow = repository.common_dir().join("shallow");
    if shallow.exists() {
        // Where the repository's own history is cut, the copy's is cut at the same commits.
        stage::write_scratch(
            &git.git_dir().join("shallow"),
            &stage::read(&shallow, stage::MAX_OUTPUT)?,
        )?;
    }
    let wanted = format!("{commit_id}\n");
    let source = repository.git().with_config("pack.packSizeLimit=0");
    source.pipe(
        &["pack-objects", "--revs", "--stdout", "--quiet"],
        wanted.as_bytes(),
        git,
        &["index-pack", "--stdin"],
    )?;
    Ok(())
}

fn check_out(git: &Git<'_>, work: &Path, commit_id: &CommitId) -> Result<(), CloneError> {
    let mut git = git.with_env("GIT_WORK_TREE", work.as_os_str());
    for setting in ["core.autocrlf=false", "core.sparseCheckout=false", "submodule.recurse=false"] {
        git = git.with_config(setting);
    }
    git.output(["read-tree", "--reset", "-u", commit_id.as_str()])?;
    Ok(())
}

/// Compares what was checked out with the commit's tree.
fn check_faithful(
    work: &Path,
    format: ObjectFormat,
    tree: &Tree,
    commit_id: &CommitId,
    trusts_execute_bit: bool,
) -> Result<(), CloneError> {
    let options = Options {
        before: tree,
        rules_before: &std::collections::BTreeMap::new(),
        own_rules: Vec::new(),
        declared: std::collections::BTreeSet::new(),
        format,
        trusts_execute_bit,
    };
    let mut spool = Spool::new(work.parent().unwrap_or(work))?;
    let found = manifest::read(work, &options, &mut spool)?;
    let mut paths: Vec<String> =
        found.oddities.iter().map(|(path, _)| quote(path.as_bytes())).collect();
    let differs = |path| tree.get(path) != found.leaves.get(path);
    let all = tree.keys().chain(found.leaves.keys());
    paths.extend(all.filter(|path| differs(path)).map(|path| quote(path.as_bytes())));
    if paths.is_empty() {
        return Ok(());
    }
    paths.sort();
    paths.dedup();
    let n_more = paths.len().saturating_sub(5);
    paths.truncate(5);
    if n_more > 0 {
        paths.push(format!("{n_more} more"));
    }
    Err(CloneError::Unfaithful { commit_id: commit_id.clone(), paths })
}
