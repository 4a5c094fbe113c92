//! Making the commit of an item, in codeboost's own repository, from the audited changes.
//!
//! Everything is run in a private repository that borrows the source's objects: no configuration,
//! attributes, hooks or sparse patterns of anybody have a say, and the workspace is not touched.
//! The contents come from the spool, whose ids were computed while they were read. The tree that
//! git makes is compared with the audited changes before a commit is made of it.
//!
//! No ref is moved here: a commit that nobody records is only an object.

use std::fmt::Write as _;

use codeboost_schema::ids::{CommitId, ItemId, ObjectId};
use codeboost_schema::plan::Item;
use jiff::Timestamp;

use crate::context::Context;
use crate::execute::manifest::Spool;
use crate::git::borrow::{BorrowError, Borrowed};
use crate::git::identity::Identity;
use crate::git::read::Objects;
use crate::git::run::{self, Git, GitError};
use crate::git::tree::{self, TreeChange};
use crate::output;

/// What a commit is made of.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// Its whole message.
    pub message: &'a str,
    /// Name and address of author and committer.
    pub identity: (&'a str, &'a str),
    /// The commit that it is made on.
    pub parent: &'a CommitId,
    /// What differs from the parent, audited.
    pub changes: &'a [TreeChange],
    /// When, for author and committer.
    pub time: Timestamp,
}

/// Why no commit was made.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The private repository could not be made.
    #[error(transparent)]
    Borrow(#[from] BorrowError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A content got another id than the one that was audited.
    #[error("the content {expected} was stored as {found}")]
    Content {
        /// The id that was audited.
        expected: ObjectId,
        /// The id that git gave.
        found: String,
    },
    /// The tree that git made is not the one that was audited.
    #[error("the tree that git made differs from what was audited at {path}")]
    Tree {
        /// The first path, quoted.
        path: String,
    },
}

/// Makes the commit and returns its id. The same input gives the same id.
///
/// # Errors
/// [`CommitError`]; nothing but unnamed objects is left then.
pub fn make(
    context: &Context,
    objects: &Objects,
    spool: &Spool,
    new: &NewCommit<'_>,
) -> Result<CommitId, CommitError> {
    let borrowed = Borrowed::new(context, objects.folder(), objects.format())?;
    let git = borrowed.git();
    store_contents(git, spool)?;
    let parent_id = ObjectId::parse(new.parent.as_str()).expect("a commit id is an object id");
    let tree_id = write_tree(git, &parent_id, new.changes)?;
    check_tree(git, &parent_id, &tree_id, new.changes)?;
    let (name, email) = new.identity;
    let date = format!("{} +0000", new.time.as_second());
    let git = git
        .with_env("GIT_AUTHOR_NAME", name)
        .with_env("GIT_AUTHOR_EMAIL", email)
        .with_env("GIT_AUTHOR_DATE", &*date)
        .with_env("GIT_COMMITTER_NAME", name)
        .with_env("GIT_COMMITTER_EMAIL", email)
        .with_env("GIT_COMMITTER_DATE", date)
        .with_config("i18n.commitEncoding=UTF-8");
    let args = ["commit-tree", tree_id.as_str(), "-p", new.parent.as_str(), "-F", "-"];
    let answer = git.output_with(args, Some(new.message.as_bytes()))?;
    Ok(run::parse_id(&answer, "commit-tree", CommitId::parse)?)
}

/// The message of an item's commit: its title on one line, and two trailers.
///
/// Nothing in it acts: no reference closes an issue, nobody is mentioned, no hidden character
/// reorders what is read. The trailers are labels; the ledger is the proof.
#[must_use]
pub fn message(item: &Item, revision: u64) -> String {
    let title = neutral_title(&item.title);
    format!("{id}: {title}\n\nPlan-Item: {id}\nPlan-Revision: r{revision}\n", id = item.id)
}

/// The message of a commit that puts back what an item changed beside its files.
#[must_use]
pub fn undo_message(item: &ItemId, revision: u64) -> String {
    format!(
        "{item}: undo what it does not declare\n\nPlan-Item: {item}\nPlan-Revision: r{revision}\n"
    )
}

fn neutral_title(title: &str) -> String {
    let visible: String = title
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| output::plain(c.encode_utf8(&mut [0; 4])) == c.to_string())
        .collect();
    crate::github::text::neutral_line(&visible, 200)
}

/// Writes the contents that are new as blobs.
fn store_contents(git: &Git<'_>, spool: &Spool) -> Result<(), CommitError> {
    if spool.contents().is_empty() {
        return Ok(());
    }
    let mut names = String::new();
    for path in spool.contents().values() {
        // Only the last part: a folder's name may hold a line feed, ours are numbers.
        let _ = writeln!(names, "{}", path.file_name().unwrap_or_default().display());
    }
    let args = ["hash-object", "-w", "-t", "blob", "--no-filters", "--stdin-paths"];
    let answer = git.in_folder(spool.folder()).output_with(args, Some(names.as_bytes()))?;
    let answer = String::from_utf8_lossy(&answer);
    let mut found = answer.lines();
    for expected in spool.contents().keys() {
        let found = found.next().unwrap_or_default();
        if found != expected.as_str() {
            return Err(CommitError::Content {
                expected: expected.clone(),
                found: found.to_owned(),
            });
        }
    }
    Ok(())
}

/// Writes the parent's tree with these changes.
fn write_tree(
    git: &Git<'_>,
    parent_id: &ObjectId,
    changes: &[TreeChange],
) -> Result<ObjectId, CommitError> {
    git.output(["read-tree", parent_id.as_str()])?;
    let mut input = Vec::new();
    let zero = "0".repeat(parent_id.as_str().len());
    // What goes away goes first, so that a file can take the place of a folder.
    for change in changes.iter().filter(|change| change.after.is_none()) {
        input.extend_from_slice(format!("0 {zero}\t").as_bytes());
        input.extend_from_slice(change.path.as_bytes());
        input.push(0);
    }
    for change in changes {
        let Some(leaf) = &change.after else { continue };
        let facts = format!("{} {}\t", leaf.mode.digits(), leaf.object_id);
        input.extend_from_slice(facts.as_bytes());
        input.extend_from_slice(change.path.as_bytes());
        input.push(0);
    }
    git.output_with(["update-index", "-z", "--index-info"], Some(&input))?;
    Ok(run::parse_object_id(&git.output(["write-tree"])?, "write-tree")?)
}

/// Compares the tree that git made with what was audited.
fn check_tree(
    git: &Git<'_>,
    parent_id: &ObjectId,
    tree_id: &ObjectId,
    changes: &[TreeChange],
) -> Result<(), CommitError> {
    let found = tree::diff_trees(git, parent_id, tree_id)?;
    if found == changes {
        return Ok(());
    }
    let differs = found.iter().find(|change| !changes.contains(change));
    let differs = differs.or_else(|| changes.iter().find(|change| !found.contains(change)));
    let path = differs.map(|change| crate::execute::audit::quote(change.path.as_bytes()));
    Err(CommitError::Tree { path: path.unwrap_or_default() })
}

/// In whose name: the repository's own configuration, where it names somebody completely, else
/// codeboost. The person's global configuration does not count: it is codeboost that commits.
///
/// # Errors
/// [`GitError`] when git can't be started.
pub fn identity(source: &Git<'_>) -> Result<(String, String), GitError> {
    let setting = |key: &str| -> Result<Option<String>, GitError> {
        let done = source.finish(["config", "--local", "--get", key], None)?;
        let text = String::from_utf8_lossy(&done.stdout);
        let text: String =
            text.trim().chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
        Ok((done.code == Some(0) && !text.is_empty()).then_some(text))
    };
    Ok(match (setting("user.name")?, setting("user.email")?) {
        (Some(name), Some(email)) => (name, email),
        _ => {
            let Identity { name, email } = Identity::of_codeboost();
            (name, email)
        }
    })
}
