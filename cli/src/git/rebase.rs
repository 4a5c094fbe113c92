//! Replaying the commits of a range onto another commit: never on a branch, only as objects.
//!
//! Run in a private repository (see [`crate::git::borrow`]), so that no attribute, merge driver,
//! hook or signature setting of anybody has a say. Nothing is checked out: names that a file system
//! can't hold don't matter. Each old commit gives exactly one new commit, an empty one too.

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use jiff::Timestamp;

use crate::git::identity::Identity;
use crate::git::merge::merged_tree;
use crate::git::run::{Git, GitError, parse_id, parse_object_id, unexpected};

/// What is replayed, and onto what.
#[derive(Debug)]
pub struct Recipe<'r> {
    /// The commit that the old ones are made on.
    pub base: &'r CommitId,
    /// The last of the old commits.
    pub head: &'r CommitId,
    /// What the new ones are made on.
    pub onto: &'r CommitId,
    /// Committer of the new ones; authors stay.
    pub committer: &'r Identity,
    /// The committer's date.
    pub time: Timestamp,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// All of them: old and new, parents first. The new ones are kept by nothing yet.
    Commits(Vec<(CommitId, CommitId)>),
    /// One of them changes the same places as what lies between base and target.
    Conflict(Conflict),
    /// The range holds a commit with several parents: the first one.
    Merge(CommitId),
}

/// The commit that could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Which.
    pub commit: CommitId,
    /// Its author's name and address, as text.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// The files, in byte order.
    pub files: Vec<RepoPath>,
}

/// Replays `base..head` onto another commit.
///
/// Of a commit its author, the author's date, its encoding and its message stay, byte for byte; a
/// signature does not, since it would be wrong.
///
/// # Errors
/// [`GitError`] when git fails, or the range does not begin at its base.
pub fn replay(git: &Git<'_>, recipe: &Recipe<'_>) -> Result<Replayed, GitError> {
    let range = format!("{}..{}", recipe.base, recipe.head);
    let answer = git.output(["rev-list", "--topo-order", "--reverse", "--parents", &range])?;
    let answer = String::from_utf8_lossy(&answer);
    let mut commits = Vec::new();
    for line in answer.lines() {
        let mut ids = line.split(' ').map(CommitId::parse);
        let bad = || unexpected("rev-list", line.as_bytes());
        let old = ids.next().and_then(Result::ok).ok_or_else(bad)?;
        let parents: Vec<_> = ids.collect::<Result<_, _>>().map_err(|_| bad())?;
        if parents.len() > 1 {
            return Ok(Replayed::Merge(old));
        }
        commits.push((old, parents));
    }
    let mut pairs: Vec<(CommitId, CommitId)> = Vec::new();
    for (old, parents) in commits {
        let (old_parent, new_parent) = match pairs.last() {
            Some((old, new)) => (old, new),
            None => (recipe.base, recipe.onto),
        };
        if parents.first() != Some(old_parent) {
            return Err(unexpected("rev-list", old.as_str().as_bytes()));
        }
        let tree = match moved_tree(git, old_parent, &old, new_parent)? {
            Ok(tree) => tree,
            Err(files) => return Ok(Replayed::Conflict(conflict(git, old, files)?)),
        };
        let new = rewrite(git, &old, &tree, new_parent, recipe)?;
        pairs.push((old, new));
    }
    Ok(Replayed::Commits(pairs))
}

/// The content of `commit`, as if it had been made on `new_parent`.
fn moved_tree(
    git: &Git<'_>,
    old_parent: &CommitId,
    commit: &CommitId,
    new_parent: &CommitId,
) -> Result<Result<ObjectId, Vec<RepoPath>>, GitError> {
    let trees = [old_parent, new_parent, commit].map(|id| format!("{id}^{{tree}}"));
    let answer = git.output(["rev-parse"].into_iter().chain(trees.iter().map(String::as_str)))?;
    let lines = answer.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let ids: Vec<_> =
        lines.map(|line| parse_object_id(line, "rev-parse")).collect::<Result<_, _>>()?;
    if ids.len() != trees.len() {
        return Err(unexpected("rev-parse", &answer));
    }
    if ids[0] == ids[1] {
        return Ok(Ok(ids[2].clone()));
    }
    // Git takes the common ancestor of two commits as the origin of both: this one makes the old
    // parent that ancestor, whatever the real histories are.
    let side = Identity::of_codeboost().on(git, Timestamp::UNIX_EPOCH).output([
        "commit-tree",
        "-m",
        "side",
        "-p",
        old_parent.as_str(),
        ids[1].as_str(),
    ])?;
    let side = parse_id(&side, "commit-tree", CommitId::parse)?;
    merged_tree(git, &side, commit)
}

/// The same commit with another tree, parent and committer.
fn rewrite(
    git: &Git<'_>,
    old: &CommitId,
    tree: &ObjectId,
    parent: &CommitId,
    recipe: &Recipe<'_>,
) -> Result<CommitId, GitError> {
    let raw = git.output(["cat-file", "commit", old.as_str()])?;
    let (headers, message) = split(&raw).ok_or_else(|| unexpected("cat-file", &raw))?;
    let mut new = format!("tree {tree}\nparent {parent}\n").into_bytes();
    let mut put = |line: &[u8]| {
        new.extend_from_slice(line);
        new.push(b'\n');
    };
    let header = |name: &[u8]| headers.split(|b| *b == b'\n').find(|line| line.starts_with(name));
    put(header(b"author ").ok_or_else(|| unexpected("cat-file", &raw))?);
    let Identity { name, email } = recipe.committer;
    put(format!("committer {name} <{email}> {} +0000", recipe.time.as_second()).as_bytes());
    if let Some(encoding) = header(b"encoding ") {
        put(encoding);
    }
    put(b"");
    new.extend_from_slice(message);
    let answer = git.output_with(["hash-object", "-t", "commit", "-w", "--stdin"], Some(&new))?;
    parse_id(&answer, "hash-object", CommitId::parse)
}

/// Headers and message of a commit object.
fn split(raw: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = raw.windows(2).position(|pair| pair == b"\n\n")?;
    Some((&raw[..end], &raw[end + 2..]))
}

fn conflict(git: &Git<'_>, commit: CommitId, files: Vec<RepoPath>) -> Result<Conflict, GitError> {
    let args = ["show", "--no-patch", "--encoding=UTF-8", "--format=%an <%ae>%n%s"];
    let answer = git.output(args.into_iter().chain([commit.as_str()]))?;
    let answer = String::from_utf8_lossy(&answer);
    let (author, subject) = answer.trim_end().split_once('\n').unwrap_or((answer.trim_end(), ""));
    Ok(Conflict { commit, author: author.to_owned(), subject: subject.to_owned(), files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::borrow::Borrowed;
    use crate::git::read::Objects;
    use crate::store::testing::World;

    fn replayed(world: &World, head: &str) -> Replayed {
        let repository = world.repository();
        let objects = Objects::open(repository.git()).expect("objects");
        let borrowed = Borrowed::new(&world.context, objects.folder(), objects.format());
        let [base, head, onto] = ["start", head, "main"].map(|name| world.commit_id(name));
        let committer = Identity { name: "A. Person".into(), email: "p@example.invalid".into() };
        let recipe = Recipe {
            base: &base,
            head: &head,
            onto: &onto,
            committer: &committer,
            time: world.context.now(),
        };
        replay(borrowed.expect("a repository").git(), &recipe).expect("git works")
    }

    /// Writes files and commits them.
    fn commit(world: &World, message: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            crate::stage::write(&world.root().join(path), text.as_bytes()).expect("a file");
        }
        world.git(["add", "-A"]);
        world.git(["commit", "-q", "--allow-empty", "-m", message]);
    }

    #[test]
    fn each_commit_is_what_git_makes_of_it_whatever_the_repository_is_set_to() {
        let world = World::new();
        let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        commit(&world, "start", &[("a", lines), ("b", "b\n"), ("gone ", "x\n")]);
        world.git(["branch", "-q", "start"]);
        commit(&world, "theirs", &[("a", &lines.replace('9', "nine")), ("new/a", "n\n")]);
        world.git(["switch", "-q", "-c", "topic", "start"]);
        commit(&world, "one\n\nPlan-Item: P1", &[("a", &lines.replace('1', "one"))]);
        commit(&world, "nothing", &[]);
        world.git(["mv", "a", "moved"]);
        commit(&world, "moved", &[("con ", "\u{e9}\n")]);
        world.git([
            "-c",
            "i18n.commitEncoding=ISO-8859-1",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "\u{e9}",
        ]);
        world.git(["rm", "-q", "gone "]);
        commit(&world, "the same as theirs", &[("moved", &lines.replace('1', "one"))]);

        // A driver that would ruin each file, and replaced objects, have no say.
        world.git(["config", "merge.ruin.driver", "echo ruined > %A"]);
        world.git(["config", "user.signingKey", "none"]);
        world.git(["config", "commit.gpgSign", "true"]);
        crate::stage::write(&world.root().join(".git/info/attributes"), b"* merge=ruin\n")
            .expect("a file");
        let Replayed::Commits(pairs) = replayed(&world, "topic") else { panic!("it conflicts") };
        assert_eq!(pairs.len(), 5, "one for one, also an empty one");
        assert_eq!(pairs.last().map(|(old, _)| old.clone()), Some(world.commit_id("topic")));

        world.git(["config", "commit.gpgSign", "false"]);
        std::fs::remove_file(world.root().join(".git/info/attributes")).expect("gone");
        world.git(["rebase", "-q", "--empty=keep", "--onto", "main", "start", "topic"]);
        let format = "--format=%T %an <%ae> %ad %B";
        let log = |head: &str| world.git(["log", format, &format!("main..{head}")]);
        let (_, new) = pairs.last().expect("a commit");
        assert_eq!(log(new.as_str()), log("topic"));
        let raw = |id: &str| world.git(["cat-file", "commit", id]);
        let encoded = raw(pairs[3].1.as_str());
        assert!(encoded.contains("\nencoding ISO-8859-1\n"), "{encoded}");
        assert!(!raw(new.as_str()).contains("gpgsig"));
    }

    #[test]
    fn a_conflict_names_the_commit_and_the_files_and_a_merge_is_left_alone() {
        let world = World::new();
        commit(&world, "start", &[("a", "1\n"), ("b", "1\n")]);
        world.git(["branch", "-q", "start"]);
        commit(&world, "theirs", &[("a", "2\n"), ("b", "2\n")]);
        world.git(["switch", "-q", "-c", "topic", "start"]);
        commit(&world, "fine", &[("c", "c\n")]);
        commit(&world, "both \u{1f980}\n\nmore", &[("a", "3\n"), ("b", "3\n")]);
        let Replayed::Conflict(conflict) = replayed(&world, "topic") else { panic!("none") };
        assert_eq!(conflict.commit, world.commit_id("topic"));
        assert_eq!(conflict.author, "T. Est <test@example.invalid>");
        assert_eq!(conflict.subject, "both \u{1f980}");
        assert_eq!(conflict.files, [RepoPath::from(&b"a"[..]), RepoPath::from(&b"b"[..])]);
        world.git(["switch", "-q", "-c", "side", "start"]);
        commit(&world, "side", &[("d", "d\n")]);
        world.git(["switch", "-q", "topic"]);
        world.git(["merge", "-q", "--no-ff", "-m", "merge", "side"]);
        assert_eq!(replayed(&world, "topic"), Replayed::Merge(world.commit_id("topic")));
    }
}
