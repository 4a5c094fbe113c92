//! What is there now against what was approved, line by line.

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::link::Op;
use imara_diff::{Algorithm, Diff, InternedInput, Interner};
use serde_json::Value;

use crate::approval::fingerprint::{Snapshot, SnapshotFile};

/// One file of an item's change, compared with what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinceFile {
    /// The path now, or then if the item no longer changes the file.
    pub path: RepoPath,
    /// The item's changed lines then and now, in order.
    pub lines: Vec<SinceLine>,
    /// What changed about the file besides lines, then and now, where that differs.
    pub meta: Option<(Option<Value>, Option<Value>)>,
    /// Path and old path then and now, where these differ.
    pub paths: Option<(Paths, Paths)>,
}

/// Path and old path of a changed file.
pub type Paths = (RepoPath, Option<RepoPath>);

/// One changed line of an item, compared with what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinceLine {
    /// Whether it was approved, is there now, or both.
    pub status: Status,
    /// The line's own operation.
    pub op: Op,
    /// The line with its terminator.
    pub text: RepoBytes,
    /// The line that names the function around it.
    pub context: RepoBytes,
}

/// On which side of a comparison a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Approved, and there now.
    Both,
    /// Approved, and gone.
    Then,
    /// New since the approval.
    Now,
}

impl Status {
    /// `=`, `-` or `+`.
    #[must_use]
    pub fn as_char(self) -> char {
        match self {
            Self::Both => '=',
            Self::Then => '-',
            Self::Now => '+',
        }
    }
}

/// Compares two snapshots of one item; files without a difference are left out.
///
/// Files are paired by path and old path, then by old path, then by path.
#[must_use]
pub fn compare(then: &Snapshot, now: &Snapshot) -> Vec<SinceFile> {
    pair(&then.files, &now.files)
        .into_iter()
        .filter_map(|(then, now)| compare_file(then, now))
        .collect()
}

/// Pairs the files of two snapshots, in the order of `now`, those that are gone last.
pub(crate) fn pair<'a>(
    then: &'a [SnapshotFile],
    now: &'a [SnapshotFile],
) -> Vec<(Option<&'a SnapshotFile>, Option<&'a SnapshotFile>)> {
    type Same = fn(&SnapshotFile, &SnapshotFile) -> bool;
    let rules: [Same; 3] = [
        |a, b| a.path == b.path && a.old_path == b.old_path,
        |a, b| a.old_path.is_some() && a.old_path == b.old_path,
        |a, b| a.path == b.path,
    ];
    let mut partner: Vec<Option<usize>> = vec![None; now.len()];
    let mut used = vec![false; then.len()];
    for same in rules {
        for (n, file) in now.iter().enumerate() {
            if partner[n].is_none()
                && let Some(m) = (0..then.len()).find(|m| !used[*m] && same(&then[*m], file))
            {
                partner[n] = Some(m);
                used[m] = true;
            }
        }
    }
    let paired = now.iter().zip(&partner).map(|(file, m)| (m.map(|m| &then[m]), Some(file)));
    let gone =
        then.iter().zip(&used).filter(|(_, used)| !**used).map(|(file, _)| (Some(file), None));
    paired.chain(gone).collect()
}

type Line<'a> = (Op, &'a RepoBytes, &'a [u8]);

fn lines(file: Option<&SnapshotFile>) -> Vec<Line<'_>> {
    file.iter()
        .flat_map(|file| &file.runs)
        .flat_map(|run| run.lines().map(|line| (run.op, &run.context, line)))
        .collect()
}

fn compare_file(then: Option<&SnapshotFile>, now: Option<&SnapshotFile>) -> Option<SinceFile> {
    let path = now.or(then)?.path.clone();
    let metas = (then.and_then(|f| f.meta.clone()), now.and_then(|f| f.meta.clone()));
    let meta = (metas.0 != metas.1).then_some(metas);
    let paths_of = |file: &SnapshotFile| (file.path.clone(), file.old_path.clone());
    let paths = then.zip(now).map(|(a, b)| (paths_of(a), paths_of(b))).filter(|(a, b)| a != b);

    let equal = then.zip(now).is_some_and(|(a, b)| a.covered_lines().eq(b.covered_lines()));
    let lines = if equal { Vec::new() } else { compare_lines(&lines(then), &lines(now)) };
    (meta.is_some() || paths.is_some() || !lines.is_empty()).then_some(SinceFile {
        path,
        lines,
        meta,
        paths,
    })
}

fn compare_lines(then: &[Line<'_>], now: &[Line<'_>]) -> Vec<SinceLine> {
    let mut interner = Interner::new(then.len() + now.len());
    let before = then.iter().map(|line| interner.intern(*line)).collect();
    let after = now.iter().map(|line| interner.intern(*line)).collect();
    let input = InternedInput { before, after, interner };
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let mut out = Vec::with_capacity(then.len().max(now.len()));
    let mut push = |status, (op, context, text): Line<'_>| {
        out.push(SinceLine { status, op, text: text.into(), context: context.clone() });
    };
    let mut at = 0;
    for hunk in diff.hunks() {
        for line in &now[at..hunk.after.start as usize] {
            push(Status::Both, *line);
        }
        for line in &then[hunk.before.start as usize..hunk.before.end as usize] {
            push(Status::Then, *line);
        }
        for line in &now[hunk.after.start as usize..hunk.after.end as usize] {
            push(Status::Now, *line);
        }
        at = hunk.after.end as usize;
    }
    for line in &now[at..] {
        push(Status::Both, *line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::choice::{Choices, place};
    use crate::approval::samples::{self, Sample, binding, item, sample};

    fn snapshot(sample: &Sample, id: &str) -> Snapshot {
        let placed = place(&sample.link, &sample.plan, &Choices::new());
        let id = item(id);
        Snapshot::take(&sample.link, &placed, sample.plan.item(&id).expect("there"), binding(&id))
    }

    /// The comparison as text: status, operation, line.
    fn check(then: &Sample, now: &Sample, id: &str, expected: &str) {
        let mut text = String::new();
        for file in compare(&snapshot(then, id), &snapshot(now, id)) {
            text.push_str(&format!("{}\n", file.path.lossy()));
            if let Some((then, now)) = file.meta {
                text.push_str(&format!("meta {} {}\n", then.is_some(), now.is_some()));
            }
            if let Some((then, now)) = file.paths {
                text.push_str(&format!("{then:?} {now:?}\n"));
            }
            for line in file.lines {
                text.push_str(&format!(
                    "{}{} {}",
                    line.status.as_char(),
                    line.op.as_str(),
                    line.text.lossy()
                ));
            }
        }
        assert_eq!(text, expected);
    }

    #[test]
    fn equal_snapshots_have_no_difference() {
        check(&sample(), &sample(), "P1", "");
    }

    #[test]
    fn lines_are_compared_in_reading_order() {
        let mut now = sample();
        now.link.segments[1] =
            samples::text("P1", &["P1"], 0, Op::Add, 3, "fn f() {", "    new();\n    other();\n");
        check(
            &sample(),
            &now,
            "P1",
            "a.rs\n=-     old();\n=+     new();\n-+     more();\n++     other();\n",
        );
    }

    #[test]
    fn files_that_came_went_or_were_renamed_are_told() {
        let mut now = sample();
        now.link.files[0] = samples::file("z.rs", Some("a.rs"));
        now.link.segments.remove(6);
        samples::renumber(&mut now.link);
        check(
            &sample(),
            &now,
            "P1",
            "z.rs\n(\"a.rs\", Some(\"a.rs\")) (\"z.rs\", Some(\"a.rs\"))\nb.rs\n-+     stray();\n",
        );
        let mut now = sample();
        now.link.segments.remove(3);
        samples::renumber(&mut now.link);
        check(&sample(), &now, "P2", "b.rs\nmeta true false\n");
    }
}
