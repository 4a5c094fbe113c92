//! Line diffs of one step: histogram with the indent heuristic, as the final diff.

use imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, Token};

use crate::link::history::Block;
use crate::link::lines::Interner;

/// Width that the indent heuristic gives a tab.
const TAB_COLUMNS: u8 = 8;

/// Reused from step to step.
#[derive(Default)]
pub(crate) struct Differ {
    diff: Diff,
    old: Vec<Token>,
    new: Vec<Token>,
}

impl Differ {
    /// The changed blocks between two texts, given as line numbers of `lines`.
    pub(crate) fn blocks(&mut self, lines: &Interner, old: &[u32], new: &[u32]) -> Vec<Block> {
        let whole = |n_old: usize, n_new: usize| Block {
            old_start: 0,
            old_lines: n_old as u32,
            new_start: 0,
            new_lines: n_new as u32,
        };
        if old.is_empty() || new.is_empty() {
            let same = old.is_empty() && new.is_empty();
            return if same { Vec::new() } else { vec![whole(old.len(), new.len())] };
        }
        if old == new {
            return Vec::new();
        }
        self.old.clear();
        self.old.extend(old.iter().map(|number| Token(*number)));
        self.new.clear();
        self.new.extend(new.iter().map(|number| Token(*number)));
        self.diff.compute_with(Algorithm::Histogram, &self.old, &self.new, lines.len());
        self.diff.postprocess_with(
            &self.old,
            &self.new,
            IndentHeuristic::new(|token: Token| {
                IndentLevel::for_ascii_line(lines.line(token.0).iter().copied(), TAB_COLUMNS)
            }),
        );
        let blocks = self.diff.hunks().map(|hunk| Block {
            old_start: hunk.before.start,
            old_lines: hunk.before.len() as u32,
            new_start: hunk.after.start,
            new_lines: hunk.after.len() as u32,
        });
        blocks.collect()
    }
}
