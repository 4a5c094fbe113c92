//! Which files have to do with each other.
//!
//! Files are one lineage when a rename, in any commit of the range or in the final diff, leads
//! from one to the other. Each lineage is replayed by itself; one without a file in the final diff
//! needs no replay at all.

use std::collections::{HashMap, HashSet};

use codeboost_schema::bytes::RepoPath;

use crate::link::history::{At, FileChange, History};

/// A set of paths, and the changes of the range to them.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    /// The files of the final diff in it, as places in `FinalDiff::files`.
    pub(crate) finals: Vec<u32>,
    /// Changes, in the order of commits and their parents.
    pub(crate) steps: Vec<Step>,
    /// Changes of commits outside the range against the base: commit and change.
    pub(crate) outside: Vec<(u32, u32)>,
}

/// One change of one commit against one parent, as places in the history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) commit: u32,
    pub(crate) parent: u32,
    pub(crate) change: u32,
}

/// A commit that a lineage is replayed at: it changes something in it, or joins different states.
#[derive(Debug)]
pub(crate) struct Turn<'l> {
    /// Place in `History::commits`.
    pub(crate) commit: u32,
    /// What it changes.
    pub(crate) steps: &'l [Step],
    /// Where the state of each parent was made.
    pub(crate) parents: Vec<At>,
}

/// The way that a lineage goes through a history.
#[derive(Debug)]
pub(crate) struct Course<'l> {
    /// Parents first.
    pub(crate) turns: Vec<Turn<'l>>,
    /// Where the state of the head was made.
    pub(crate) head: At,
}

impl Lineage {
    /// `is_linear`: whether each commit has the one before it as its only parent.
    pub(crate) fn course(&self, history: &History, is_linear: bool) -> Course<'_> {
        if is_linear {
            let mut head = At::Base;
            let mut turns = Vec::new();
            for steps in self.steps.chunk_by(|a, b| a.commit == b.commit) {
                let commit = steps[0].commit;
                turns.push(Turn { commit, steps, parents: vec![head] });
                head = At::Commit(commit);
            }
            return Course { turns, head };
        }
        // Which commit has the state of each: itself where it is a turn, else its first parent's.
        let mut stands_for: Vec<At> = Vec::with_capacity(history.commits.len());
        let has_outside: HashSet<u32> = self.outside.iter().map(|(o, _)| *o).collect();
        let mut turns = Vec::new();
        let mut rest = self.steps.as_slice();
        for (commit, n) in history.commits.iter().zip(0u32..) {
            let (steps, after) = rest.split_at(rest.partition_point(|step| step.commit == n));
            rest = after;
            let state_of = |at: At| match at {
                At::Commit(n) => stands_for[n as usize],
                At::Outside(n) if !has_outside.contains(&n) => At::Base,
                at => at,
            };
            let parents: Vec<At> =
                commit.parents.iter().map(|parent| state_of(parent.at)).collect();
            if steps.is_empty() && parents.iter().all(|state| *state == parents[0]) {
                stands_for.push(parents[0]);
                continue;
            }
            stands_for.push(At::Commit(n));
            turns.push(Turn { commit: n, steps, parents });
        }
        Course { turns, head: stands_for.last().copied().unwrap_or(At::Base) }
    }
}

/// The lineages that have a file in the final diff, ordered by the first of these.
pub(crate) fn lineages(history: &History) -> Vec<Lineage> {
    let mut sets = Sets::default();
    // Paths of the final diff come first, so that the lineage of each is numbered in its order.
    for file in &history.diff.files {
        sets.join_sides(&file.change);
    }
    for commit in &history.commits {
        for change in commit.parents.iter().flat_map(|parent| &parent.changes) {
            sets.join_sides(change);
        }
    }
    for change in history.outside.iter().flat_map(|outside| &outside.changes) {
        sets.join_sides(change);
    }

    let mut lineages: Vec<Lineage> = Vec::new();
    let mut by_root: HashMap<u32, usize> = HashMap::new();
    for (n, file) in history.diff.files.iter().enumerate() {
        let root = sets.root_of(&file.change.path);
        let at = *by_root.entry(root).or_insert_with(|| {
            lineages.push(Lineage::default());
            lineages.len() - 1
        });
        lineages[at].finals.push(n as u32);
    }
    for (commit, c) in history.commits.iter().zip(0..) {
        for (parent, p) in commit.parents.iter().zip(0..) {
            for (change, n) in parent.changes.iter().zip(0..) {
                if let Some(at) = by_root.get(&sets.root_of(&change.path)) {
                    lineages[*at].steps.push(Step { commit: c, parent: p, change: n });
                }
            }
        }
    }
    for (outside, o) in history.outside.iter().zip(0..) {
        for (change, n) in outside.changes.iter().zip(0..) {
            if let Some(at) = by_root.get(&sets.root_of(&change.path)) {
                lineages[*at].outside.push((o, n));
            }
        }
    }
    lineages
}

/// Disjoint sets of paths.
#[derive(Default)]
struct Sets<'a> {
    places: HashMap<&'a RepoPath, u32>,
    above: Vec<u32>,
}

impl<'a> Sets<'a> {
    fn place(&mut self, path: &'a RepoPath) -> u32 {
        let next = self.above.len() as u32;
        let place = *self.places.entry(path).or_insert(next);
        if place == next {
            self.above.push(next);
        }
        place
    }

    fn join_sides(&mut self, change: &'a FileChange) {
        let path = self.place(&change.path);
        if let Some(old) = &change.renamed_from {
            let old = self.place(old);
            self.join(path, old);
        }
    }

    fn root(&mut self, mut place: u32) -> u32 {
        while self.above[place as usize] != place {
            let next = self.above[self.above[place as usize] as usize];
            self.above[place as usize] = next;
            place = next;
        }
        place
    }

    fn root_of(&mut self, path: &RepoPath) -> u32 {
        let place = self.places[path];
        self.root(place)
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.above[a.max(b) as usize] = a.min(b);
    }
}
