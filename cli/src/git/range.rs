//! Reading the history of a range and its final diff.
//!
//! Where the commits stand in one line they are read from the objects, and so are the files that
//! each changed. Git is asked, in a private repository that borrows the objects ([`borrow`]), for
//! the order of any other history, for the renames of comparisons that have candidates, and for the
//! line diffs that only git can tell.
//!
//! [`borrow`]: crate::git::borrow

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::link::FileStatus;
use rayon::prelude::*;

use crate::context::Context;
use crate::git::borrow::{BorrowError, Borrowed};
use crate::git::read::{Objects, ReadError, parse_name, parse_octal};
use crate::git::run::{Git, GitError};
use crate::git::trees::{Trees, commit_id};
use crate::link::history::{
    At, BlobError, BlobReader, Blobs, Block, Commit, FileChange, FinalDiff, FinalFile, History,
    LineDiffs, Outside, Parent, Sides, Version,
};

/// Renames are sought among at most this many files of one side.
pub const RENAME_LIMIT: u32 = 1000;
/// Files are the same file from this similarity on, in percent.
pub const RENAME_PERCENT: u32 = 50;

/// So many comparisons of trees are made in one go.
const PAIRS_AT_ONCE: usize = 128;

/// The objects of a repository, and git on them.
pub struct Source<'a> {
    context: &'a Context,
    objects: &'a Objects,
    borrowed: Mutex<Option<Arc<Borrowed<'a>>>>,
}

impl<'a> Source<'a> {
    /// Nothing is read yet, and git is only started when it is needed.
    #[must_use]
    pub fn new(context: &'a Context, objects: &'a Objects) -> Self {
        Self { context, objects, borrowed: Mutex::default() }
    }

    fn borrowed(&self) -> Result<Arc<Borrowed<'a>>, BorrowError> {
        let mut borrowed = self.borrowed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(borrowed) = &*borrowed {
            return Ok(Arc::clone(borrowed));
        }
        let (folder, format) = (self.objects.folder(), self.objects.format());
        let made = Arc::new(Borrowed::new(self.context, folder, format)?);
        *borrowed = Some(Arc::clone(&made));
        Ok(made)
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Git<'_>) -> Result<T, GitError>,
    ) -> Result<T, ReadError> {
        let borrowed = self.borrowed()?;
        question(borrowed.git()).map_err(|error| self.objects.explain(error))
    }
}

impl Blobs for Source<'_> {
    fn reader(&self) -> Box<dyn BlobReader + '_> {
        self.objects.reader()
    }
}

impl LineDiffs for Source<'_> {
    fn blocks(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<Block>, BlobError> {
        self.ask(|git| read_blocks(git, old, new)).map_err(|error| BlobError(Box::new(error)))
    }
}

/// Reads the history of `base..head`, and which files differ in the end.
///
/// `max_commits`: the range may have no more commits than that.
///
/// # Errors
/// [`ReadError`] when the base is not an ancestor of the head, when there are more commits than
/// allowed, or when an object that is needed is missing.
pub fn history(
    source: &Source<'_>,
    base: &CommitId,
    head: &CommitId,
    max_commits: Option<usize>,
) -> Result<History, ReadError> {
    let (base_id, head_id) = (parse_name(base.as_str())?, parse_name(head.as_str())?);
    let mut trees = Trees::new(source.objects);
    let mut known = HashMap::from([(base_id, trees.commit(&base_id)?.tree)]);
    let head_tree = trees.commit(&head_id)?.tree;
    let mut history = History {
        base: base.clone(),
        head: head.clone(),
        commits: Vec::new(),
        outside: Vec::new(),
        diff: FinalDiff::default(),
    };
    if base == head {
        return Ok(history);
    }
    let range: Vec<Ranged> = match trees.line(&base_id, &head_id)? {
        Some(line) => {
            known.extend(line.iter().copied());
            let with_parent = |pair: &[(gix::ObjectId, _)]| (pair[1].0, vec![pair[0].0]);
            line.windows(2).map(with_parent).collect()
        }
        None => source.ask(|git| read_range(git, base, head))?,
    };
    if !range.iter().any(|(_, parents)| parents.contains(&base_id)) {
        return Err(ReadError::NotAncestor { base: base.clone(), head: head.clone() });
    }
    if let Some(max_commits) = max_commits.filter(|max| range.len() > *max) {
        return Err(ReadError::TooManyCommits { commits: range.len(), max_commits });
    }

    let places: HashMap<gix::ObjectId, u32> =
        range.iter().zip(0..).map(|((id, _), place)| (*id, place)).collect();
    let mut outside: Vec<gix::ObjectId> = Vec::new();
    let mut outside_places: HashMap<gix::ObjectId, u32> = HashMap::new();
    let mut pairs = vec![(head_id, Some(base_id))];
    let mut sides = Sides::default();
    let mut kept: Vec<(gix::ObjectId, Vec<At>)> = Vec::with_capacity(range.len());
    for (id, parents) in &range {
        let at = |parent: &gix::ObjectId| {
            if *parent == base_id {
                return At::Base;
            }
            if let Some(place) = places.get(parent) {
                return At::Commit(*place);
            }
            At::Outside(*outside_places.entry(*parent).or_insert_with(|| {
                outside.push(*parent);
                outside.len() as u32 - 1
            }))
        };
        let mut ats: Vec<At> = parents.iter().map(at).collect();
        let mut is_side = sides.of_commit(&ats).into_iter();
        let mut is_side_too = is_side.clone();
        ats.retain(|_| is_side.next() == Some(true));
        let mine = parents.iter().filter(|_| is_side_too.next() == Some(true));
        pairs.extend(mine.map(|parent| (*id, Some(*parent))));
        if parents.is_empty() {
            pairs.push((*id, None));
            ats.push(At::Nothing);
        }
        kept.push((*id, ats));
    }
    pairs.extend(outside.iter().map(|id| (*id, Some(base_id))));
    known.insert(head_id, head_tree);
    for id in pairs.iter().flat_map(|(id, parent)| [Some(id), parent.as_ref()]).flatten() {
        if !known.contains_key(id) {
            known.insert(*id, trees.commit(id)?.tree);
        }
    }
    drop(trees);
    let (diff, mut steps) = compare(source, &pairs, &known)?;
    history.diff = diff;
    for (id, ats) in kept {
        let mut next = || steps.next().expect("each pair is compared");
        let parents = ats.into_iter().map(|at| Parent { at, changes: next() }).collect();
        history.commits.push(Commit { id: commit_id(&id), parents });
    }
    let outside = outside.iter().zip(steps);
    history.outside = outside.map(|(id, changes)| Outside { id: commit_id(id), changes }).collect();
    Ok(history)
}

/// A commit and its parents.
type Ranged = (gix::ObjectId, Vec<gix::ObjectId>);
/// A commit and what it is compared with; `None` is nothing.
type Pair = (gix::ObjectId, Option<gix::ObjectId>);

/// Compares the trees of all pairs. The first one is the final diff.
fn compare(
    source: &Source<'_>,
    pairs: &[Pair],
    trees_of: &HashMap<gix::ObjectId, gix::ObjectId>,
) -> Result<(FinalDiff, std::vec::IntoIter<Vec<FileChange>>), ReadError> {
    let compare_some = |pairs: &[Pair]| {
        let mut trees = Trees::new(source.objects);
        let mut compare = |(id, parent): &Pair| {
            let old = parent.as_ref().map(|parent| &trees_of[parent]);
            trees.changes(old, Some(&trees_of[id]))
        };
        pairs.iter().map(&mut compare).collect::<Result<Vec<_>, _>>()
    };
    let some: Result<Vec<_>, ReadError> =
        pairs.par_chunks(PAIRS_AT_ONCE).map(compare_some).collect();
    let mut changes: Vec<Vec<FileChange>> = some?.into_iter().flatten().collect();

    let count = |changes: &[FileChange]| {
        let added = changes.iter().filter(|change| change.old.is_none()).count();
        (added, changes.iter().filter(|change| change.new.is_none()).count())
    };
    let (added, deleted) = count(&changes[0]);
    let may_skip = added.saturating_mul(deleted) > (RENAME_LIMIT as usize).pow(2);
    let mut diff = FinalDiff::default();
    let mut asked: Vec<usize> = Vec::new();
    for (n, changes) in changes.iter().enumerate() {
        let (added, deleted) = count(changes);
        if added > 0 && deleted > 0 && !(n == 0 && may_skip) {
            asked.push(n);
        }
    }
    if asked.first() != Some(&0) {
        let changes = std::mem::take(&mut changes[0]);
        diff.files = changes.into_iter().map(|change| final_file(change, None)).collect();
    }
    if !asked.is_empty() {
        let answer = source.ask(|git| ask_renames(git, asked.iter().map(|n| &pairs[*n])))?;
        let mut raw = RawDiffs { rest: &answer };
        for n in asked {
            let found = raw.next(&pairs[n].0.to_hex().to_string())?;
            if n == 0 {
                let files = found.into_iter().map(|(change, score)| final_file(change, score));
                diff.files = files.collect();
            } else {
                changes[n] = found.into_iter().map(|(change, _)| change).collect();
            }
        }
        if !raw.rest.is_empty() {
            return Err(unexpected("diff-tree", raw.rest).into());
        }
    }
    if may_skip {
        let (head, base) = &pairs[0];
        let base = base.expect("the final diff has two sides");
        diff = source.ask(|git| read_diff(git, &commit_id(&base), &commit_id(head)))?;
    }
    let mut changes = changes.into_iter();
    changes.next();
    Ok((diff, changes))
}

fn final_file(change: FileChange, similarity: Option<u32>) -> FinalFile {
    const KIND: u32 = 0o170_000;
    let status = match (&change.old, &change.new) {
        (None, _) => FileStatus::Added,
        (_, None) => FileStatus::Deleted,
        _ if change.renamed_from.is_some() => FileStatus::Renamed,
        (Some(old), Some(new)) if old.mode & KIND != new.mode & KIND => FileStatus::Type,
        (Some(_), Some(_)) => FileStatus::Modified,
    };
    let similarity = similarity.filter(|_| status == FileStatus::Renamed);
    FinalFile { change, status, similarity, blocks: None }
}

fn ask_renames<'a>(
    git: &Git<'_>,
    pairs: impl Iterator<Item = &'a Pair>,
) -> Result<Vec<u8>, GitError> {
    let mut wanted = String::new();
    for (id, parent) in pairs {
        let _ = match parent {
            Some(parent) => writeln!(wanted, "{id} {parent}"),
            None => writeln!(wanted, "{id}"),
        };
    }
    let limit = format!("-l{RENAME_LIMIT}");
    let args = ["diff-tree", "--stdin", "--root", "--always", "-r", "-z", "--raw", "--no-abbrev"];
    let args = args.into_iter().chain(RENAMES).chain([limit.as_str()]);
    git.output_with(args, Some(wanted.as_bytes()))
}

/// The final diff of two commits alone as git makes it, with the contract's settings.
///
/// # Errors
/// [`ReadError`] when an object that is needed is missing.
pub fn final_diff(
    source: &Source<'_>,
    base: &CommitId,
    head: &CommitId,
) -> Result<FinalDiff, ReadError> {
    source.ask(|git| read_diff(git, base, head))
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

fn read_range(git: &Git<'_>, base: &CommitId, head: &CommitId) -> Result<Vec<Ranged>, GitError> {
    let not_base = format!("^{base}");
    let args = ["rev-list", "--topo-order", "--reverse", "--parents", head.as_str(), &not_base];
    let answer = git.output(args)?;
    let parse = |line: &[u8]| {
        let mut ids = line.split(|b| *b == b' ').map(gix::ObjectId::from_hex);
        let bad = || unexpected("rev-list", line);
        let id = ids.next().ok_or_else(bad)?.map_err(|_| bad())?;
        let parents = ids.collect::<Result<_, _>>().map_err(|_| bad())?;
        Ok((id, parents))
    };
    answer.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(parse).collect()
}

fn unexpected(command: &str, answer: &[u8]) -> GitError {
    GitError::Answer {
        command: command.to_owned(),
        answer: String::from_utf8_lossy(answer).chars().take(200).collect(),
    }
}

/// How lines are compared.
const LINES: [&str; 6] = [
    "--unified=0",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
];
const RENAMES: [&str; 2] = ["--find-renames=50%", "--no-rename-empty"];

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

    /// The changes of the commit that is next, each with its similarity where it is a rename.
    fn next(&mut self, id: &str) -> Result<Vec<(FileChange, Option<u32>)>, GitError> {
        let header = self.field()?;
        if header != id.as_bytes() {
            return Err(unexpected("diff-tree", header));
        }
        let mut changes = Vec::new();
        while self.rest.first() == Some(&b':') {
            let record = Record::parse(self.field()?)?;
            let first = RepoPath::from(self.field()?);
            let second = record.has_two_paths().then(|| self.field()).transpose()?;
            changes.push((record.change(first, second.map(RepoPath::from)), record.score));
        }
        changes.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
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
        .args(["diff-tree", "-r", "--raw", "--patch", "--full-index"])
        .args(LINES)
        .args(["--ignore-submodules=none", "--submodule=short", "--no-relative"])
        .args(["--src-prefix=a/", "--dst-prefix=b/"])
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
            let file = at.and_then(|at| files.get_mut(at));
            let file = file.ok_or_else(|| unexpected("diff-tree", &line))?;
            let block = parse_hunk(input, &line)?;
            if file.change.has_lines() {
                file.blocks.get_or_insert_default().push(block);
            }
        }
    }
    if at.map_or(0, |at| at + 1) != files.len() {
        return Err(unexpected("diff-tree", b"the patch of a file is missing"));
    }
    files.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    Ok(FinalDiff { renames_skipped: false, files })
}

/// Reads a hunk to its end; `header` is its first line.
fn parse_hunk(input: &mut impl BufRead, header: &[u8]) -> Result<Block, GitError> {
    let block = parse_hunk_header(header).ok_or_else(|| unexpected("diff", header))?;
    for n in 0..block.old_lines + block.new_lines {
        if !skip_line(input, if n < block.old_lines { b'-' } else { b'+' })? {
            return Err(unexpected("diff", b"a hunk is cut off"));
        }
        if input.fill_buf().map_err(GitError::Start)?.first() == Some(&b'\\') {
            skip_line(input, b'\\')?;
        }
    }
    Ok(block)
}

/// The changed lines between two blobs that are no binary content.
fn read_blocks(git: &Git<'_>, old: &ObjectId, new: &ObjectId) -> Result<Vec<Block>, GitError> {
    let args = ["diff"].into_iter().chain(LINES).chain([old.as_str(), new.as_str(), "--"]);
    let answer = git.output(args)?;
    let mut input = answer.as_slice();
    let mut line = Vec::new();
    let mut blocks = Vec::new();
    while next_line(&mut input, &mut line)? {
        if line.starts_with(b"@@ ") {
            blocks.push(parse_hunk(&mut input, &line)?);
        }
    }
    Ok(blocks)
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
        blocks: Some(Vec::new()),
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
        assert_eq!(diff.files[0].blocks.as_ref().unwrap().len(), 2);
        assert_eq!(diff.files[0].blocks.as_ref().unwrap()[1].old_start, 8);
    }
}
