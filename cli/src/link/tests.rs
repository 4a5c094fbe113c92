//! What linking costs, in counts that do not depend on the machine.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::FileStatus;

use crate::approval::samples;
use crate::link::assemble::{self, Options};
use crate::link::history::{
    At, BlobError, BlobReader, Blobs, Block, Commit, FileChange, FinalDiff, FinalFile, History,
    LineDiffs, Parent, Version,
};

/// Contents in memory, which counts what is read of them.
#[derive(Default)]
struct Counting {
    contents: HashMap<ObjectId, Arc<Vec<u8>>>,
    n_reads: AtomicUsize,
    n_bytes: AtomicUsize,
    n_asked: AtomicUsize,
}

impl Counting {
    fn put(&mut self, text: String) -> Version {
        let oid = ObjectId::parse(&format!("{:040x}", self.contents.len())).unwrap();
        self.contents.insert(oid.clone(), Arc::new(text.into_bytes()));
        Version { mode: 0o100_644, oid }
    }

    /// Contents read, and how often git was asked for a diff.
    fn counts(&self) -> (usize, usize) {
        (self.n_reads.load(Ordering::Relaxed), self.n_asked.load(Ordering::Relaxed))
    }
}

struct Reader<'a>(&'a Counting);

impl BlobReader for Reader<'_> {
    fn blob(&mut self, oid: &ObjectId) -> Result<Arc<Vec<u8>>, BlobError> {
        let content = Arc::clone(&self.0.contents[oid]);
        self.0.n_reads.fetch_add(1, Ordering::Relaxed);
        self.0.n_bytes.fetch_add(content.len(), Ordering::Relaxed);
        Ok(content)
    }
}

impl Blobs for Counting {
    fn reader(&self) -> Box<dyn BlobReader + '_> {
        Box::new(Reader(self))
    }
}

impl LineDiffs for Counting {
    fn blocks(&self, _old: &ObjectId, _new: &ObjectId) -> Result<Vec<Block>, BlobError> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        Ok(vec![Block { old_start: 0, old_lines: 1, new_start: 0, new_lines: 1 }])
    }
}

fn commit(n: u32) -> CommitId {
    CommitId::parse(&format!("{n:040x}")).unwrap()
}

fn change(path: &str, old: &Version, new: &Version) -> FileChange {
    FileChange {
        path: path.into(),
        renamed_from: None,
        old: Some(old.clone()),
        new: Some(new.clone()),
    }
}

/// A line of commits, each with its changes, and a final diff of these files.
fn link(source: &Counting, steps: Vec<Vec<FileChange>>, finals: Vec<FileChange>) {
    let commits = steps.into_iter().zip(0..).map(|(changes, n): (_, u32)| {
        let at = n.checked_sub(1).map_or(At::Base, At::Commit);
        Commit { id: commit(n + 1), parents: vec![Parent { at, changes }] }
    });
    let commits: Vec<Commit> = commits.collect();
    let files = finals.into_iter().map(|change| FinalFile {
        change,
        status: FileStatus::Modified,
        similarity: None,
        blocks: None,
    });
    let history = History {
        base: commit(0),
        head: commit(commits.len() as u32),
        diff: FinalDiff { renames_skipped: false, files: files.collect() },
        commits,
        outside: Vec::new(),
    };
    let plan = samples::plan(&[("P1", &["a"], &[])]);
    let ledger: Ledger =
        serde_json::from_value(serde_json::json!({"schema_version": 1, "commits": {}})).unwrap();
    assemble::link(&history, &plan, &ledger, source, &Options::default()).unwrap();
}

fn text(n_lines: usize, seed: usize) -> String {
    (0..n_lines).map(|n| format!("line {n} of {}\n", if n % 7 == 3 { seed } else { 0 })).collect()
}

#[test]
fn each_content_of_a_changed_file_is_read_once_and_no_other() {
    let mut source = Counting::default();
    let versions: Vec<Version> = (0..101).map(|n| source.put(text(60, n))).collect();
    let calm: Vec<Version> = (0..101).map(|n| source.put(text(60, n % 100))).collect();
    let steps = (0..100).map(|n| {
        let other = change("back again", &calm[n], &calm[n + 1]);
        vec![change("a", &versions[n], &versions[n + 1]), other]
    });
    link(&source, steps.collect(), vec![change("a", &versions[0], &versions[100])]);
    assert_eq!(source.counts(), (101, 0));
    let wanted: usize = (0..101).map(|n| text(60, n).len()).sum();
    assert_eq!(source.n_bytes.load(Ordering::Relaxed), wanted);
}

#[test]
fn one_commit_to_many_files_reads_two_contents_of_each() {
    let mut source = Counting::default();
    let changes: Vec<FileChange> = (0..300)
        .map(|n| {
            let (old, new) = (source.put(text(40, n)), source.put(text(40, n + 1)));
            change(&format!("f{n}"), &old, &new)
        })
        .collect();
    let mut sorted = changes;
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    link(&source, vec![sorted.clone()], sorted);
    assert_eq!(source.counts(), (600, 0));
}

#[test]
fn git_is_asked_once_for_what_the_histogram_can_not_tell() {
    let mut source = Counting::default();
    let old = source.put(format!("a\n{}", "\n".repeat(99)));
    let new = source.put(format!("b\n{}", "\n".repeat(99)));
    let only = change("a", &old, &new);
    link(&source, vec![vec![only.clone()]], vec![only]);
    assert_eq!(source.counts(), (2, 1));
}
