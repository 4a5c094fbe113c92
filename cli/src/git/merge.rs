//! Making the commit that lands: never on a branch, only as an object.

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use jiff::Timestamp;

use crate::config::MergeMethod;
use crate::git::identity::Identity;
use crate::git::run::{Git, GitError, parse_id, parse_object_id};

/// What a landing commit is made from.
#[derive(Debug)]
pub struct Recipe<'r> {
    /// First parent.
    pub base: &'r CommitId,
    /// What lands; the second parent of a merge commit.
    pub head: &'r CommitId,
    /// How.
    pub method: MergeMethod,
    /// The whole message, neutralized already.
    pub message: &'r str,
    /// Author and committer.
    pub identity: &'r Identity,
    /// Author's and committer's date.
    pub time: Timestamp,
}

/// What came of making it.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// The commit, kept by nothing yet.
    Commit(CommitId),
    /// Base and head change the same places: the files, in byte order.
    Conflict(Vec<RepoPath>),
}

/// Makes the commit that lands `head` on `base`.
///
/// Where the base is an ancestor of the head the content is that of the head; elsewhere it is git's
/// own merge of both. No branch, index or work tree is touched, and no hook runs.
///
/// # Errors
/// [`GitError`] when git fails or the made commit does not have the wanted parents.
pub fn make(git: &Git<'_>, recipe: &Recipe<'_>) -> Result<Made, GitError> {
    let tree = if git.is_ancestor(recipe.base, recipe.head)? {
        let tree = format!("{}^{{tree}}", recipe.head);
        parse_object_id(
            &git.output(["rev-parse", "--verify", "--end-of-options", &tree])?,
            "rev-parse",
        )?
    } else {
        match merged_tree(git, recipe.base, recipe.head)? {
            Ok(tree) => tree,
            Err(files) => return Ok(Made::Conflict(files)),
        }
    };
    let parents = match recipe.method {
        MergeMethod::Merge => vec![recipe.base, recipe.head],
        MergeMethod::Squash => vec![recipe.base],
    };
    let mut args = vec!["commit-tree", "-F", "-"];
    for parent in &parents {
        args.extend(["-p", parent.as_str()]);
    }
    args.push(tree.as_str());
    let git = recipe.identity.on(git, recipe.time);
    let answer = git.output_with(&args, Some(recipe.message.as_bytes()))?;
    let commit = parse_id(&answer, "commit-tree", CommitId::parse)?;
    check_parents(&git, &commit, &parents)?;
    Ok(Made::Commit(commit))
}

/// Git drops a parent that is named twice, so it is asked what it made.
fn check_parents(git: &Git<'_>, commit: &CommitId, wanted: &[&CommitId]) -> Result<(), GitError> {
    let answer = git.output(["rev-list", "--no-walk", "--parents", "-n1", commit.as_str()])?;
    let answer = String::from_utf8_lossy(&answer);
    let found: Vec<_> = answer.trim_end().split(' ').skip(1).collect();
    if found == wanted.iter().map(|id| id.as_str()).collect::<Vec<_>>() {
        Ok(())
    } else {
        Err(GitError::Answer { command: "commit-tree".into(), answer: answer.into_owned() })
    }
}

/// The content that git's own merge of two commits has, or the files that both change.
pub(super) fn merged_tree(
    git: &Git<'_>,
    base: &CommitId,
    head: &CommitId,
) -> Result<Result<ObjectId, Vec<RepoPath>>, GitError> {
    let args = [
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--no-messages",
        "-z",
        base.as_str(),
        head.as_str(),
    ];
    let done = git.finish(args, None)?;
    let mut parts = done.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    match done.code {
        Some(0) => parse_object_id(parts.next().unwrap_or_default(), "merge-tree").map(Ok),
        Some(1) => {
            let mut files: Vec<_> = parts.skip(1).map(RepoPath::from).collect();
            files.dedup();
            Ok(Err(files))
        }
        code => Err(GitError::Failed {
            args: args.map(str::to_owned).to_vec(),
            status: code.map_or("killed by a signal".into(), |code| format!("exit code {code}")),
            stderr: done.stderr,
        }),
    }
}
