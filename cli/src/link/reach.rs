//! Which commits of a range are ancestors of which.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::link::history::{At, History};

/// Answers questions about ancestors; shared by all threads.
pub(crate) struct Reach<'a> {
    history: &'a History,
    is_linear: bool,
    has_base: Vec<bool>,
    /// By commit: all that it reaches, itself included, as bits.
    known: Mutex<HashMap<u32, Arc<Vec<u64>>>>,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let mut is_linear = true;
        let mut has_base: Vec<bool> = Vec::with_capacity(history.commits.len());
        for (commit, n) in history.commits.iter().zip(0u32..) {
            let before = n.checked_sub(1).map_or(At::Base, At::Commit);
            is_linear &= commit.parents.len() == 1 && commit.parents[0].at == before;
            let reaches = |at: At| match at {
                At::Base => true,
                At::Commit(parent) => has_base[parent as usize],
                At::Outside(_) | At::Nothing => false,
            };
            let reaches = commit.parents.iter().any(|parent| reaches(parent.at));
            has_base.push(reaches);
        }
        Self { history, is_linear, has_base, known: Mutex::default() }
    }

    /// Whether each commit has the one before it as its only parent.
    pub(crate) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// Whether the base is an ancestor of a commit.
    pub(crate) fn has_base(&self, commit: u32) -> bool {
        self.has_base[commit as usize]
    }

    /// Whether the base is a parent of a commit, or an ancestor of that parent.
    pub(crate) fn parent_has_base(&self, commit: u32, parent: u32) -> bool {
        match self.history.commits[commit as usize].parents[parent as usize].at {
            At::Base => true,
            At::Commit(parent) => self.has_base(parent),
            At::Outside(_) | At::Nothing => false,
        }
    }

    /// Whether `ancestor` is `commit` or one of its ancestors.
    pub(crate) fn reaches(&self, commit: u32, ancestor: u32) -> bool {
        if ancestor >= commit {
            return ancestor == commit;
        }
        if self.is_linear {
            return true;
        }
        let bits = self.bits(commit);
        bits[ancestor as usize / 64] >> (ancestor % 64) & 1 == 1
    }

    /// Whether `ancestor` is that parent of `commit` or one of its ancestors.
    pub(crate) fn parent_reaches(&self, commit: u32, parent: u32, ancestor: u32) -> bool {
        match self.history.commits[commit as usize].parents[parent as usize].at {
            At::Commit(parent) => self.reaches(parent, ancestor),
            At::Base | At::Outside(_) | At::Nothing => false,
        }
    }

    fn bits(&self, commit: u32) -> Arc<Vec<u64>> {
        if let Some(bits) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&commit) {
            return Arc::clone(bits);
        }
        let mut bits = vec![0u64; commit as usize / 64 + 1];
        bits[commit as usize / 64] |= 1 << (commit % 64);
        // Parents stand before their children.
        for n in (0..=commit).rev() {
            if bits[n as usize / 64] >> (n % 64) & 1 == 0 {
                continue;
            }
            for parent in &self.history.commits[n as usize].parents {
                if let At::Commit(parent) = parent.at {
                    bits[parent as usize / 64] |= 1 << (parent % 64);
                }
            }
        }
        let bits = Arc::new(bits);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(commit, Arc::clone(&bits));
        bits
    }
}
