//! Refs that keep commits from git's garbage collection: `refs/codeboost/keep/<task>/<commit>`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use codeboost_schema::ids::CommitId;

use crate::store::{Store, StoreError};
use crate::task::TaskId;

impl Store<'_> {
    /// Keeps these commits, and with them all their ancestors, for as long as the task is known.
    ///
    /// Do it before they are recorded: a ref without a record is harmless.
    ///
    /// # Errors
    /// [`StoreError::Git`] when one is not in the repository or the refs can't be written.
    pub fn keep_commits<'c>(
        &self,
        task: TaskId,
        commits: impl IntoIterator<Item = &'c CommitId>,
    ) -> Result<(), StoreError> {
        let wanted: BTreeSet<&CommitId> = commits.into_iter().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut names = String::new();
        for id in &wanted {
            let _ = writeln!(names, "{id}");
        }
        let args = ["rev-list", "--no-walk=unsorted", "--parents", "--stdin"];
        let answer = self.git().output_with(args, Some(names.as_bytes()))?;
        let answer = String::from_utf8_lossy(&answer);
        // A parent of another one needs no ref of its own.
        let parents: BTreeSet<&str> =
            answer.lines().flat_map(|line| line.split(' ').skip(1)).collect();
        let mut input = String::new();
        for id in wanted.iter().filter(|id| !parents.contains(id.as_str())) {
            let _ = writeln!(input, "update refs/codeboost/keep/{task}/{id} {id}");
        }
        self.git().output_with(["update-ref", "--stdin"], Some(input.as_bytes()))?;
        Ok(())
    }

    /// The commits that are kept for each task, by the name in the ref.
    ///
    /// # Errors
    /// [`StoreError::Git`] when the refs can't be read.
    pub fn kept_commits(&self) -> Result<BTreeMap<String, Vec<CommitId>>, StoreError> {
        let args = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/codeboost/keep/"];
        let answer = self.git().output(args)?;
        let mut kept: BTreeMap<String, Vec<CommitId>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&answer).lines() {
            let Some((name, id)) = line.split_once(' ') else { continue };
            let task = name.split('/').nth(3).unwrap_or_default().to_owned();
            if let Ok(id) = CommitId::parse(id) {
                kept.entry(task).or_default().push(id);
            }
        }
        Ok(kept)
    }
}
