//! The whole of linking: lineages side by side, then what needs all of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use codeboost_schema::ids::{Digest, ItemId};
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::{
    Attributed, Body, DiffSettings, InScope, Link, PlanRef, Row, RowSummary, Scope, Segment, Side,
};
use codeboost_schema::plan::Plan;
use hashbrown::HashMap;
use rayon::prelude::*;

use crate::config::Glob;
use crate::link::history::{BlobError, History, LineDiffs};
use crate::link::kept::{Kept, decode, encode, made_from};
use crate::link::lineage::{Lineage, lineages};
use crate::link::lines::Lines;
use crate::link::moves;
use crate::link::place::{Places, UnknownItem};
use crate::link::reach::Reach;
use crate::link::realign::Aligner;
use crate::link::replay::{Replay, Stop};
use crate::link::segment::{Linked, Splitter};
use crate::link::touch::Touches;
use crate::link::verify::{self, VerifyError};

/// Least similarity of a rename, in percent.
const RENAME_PERCENT: u32 = 50;
/// Most candidates for inexact renames on one side.
const RENAME_LIMIT: u32 = 1000;

/// What may be given besides history, plan and ledger.
#[derive(Default)]
pub struct Options<'a> {
    /// Patterns of generated files, from the base's `codeboost.yaml`.
    pub generated: &'a [Glob],
    /// The final diff may have no more changed lines than that.
    pub max_lines: Option<u64>,
    /// Results of earlier links, taken again where nothing that they follow from has changed.
    pub kept: Option<&'a dyn Kept>,
    /// Asked now and then: whether to give up.
    pub is_over: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Told now and then: files done, files in all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// Why a range can't be linked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The ledger does not fit the plan.
    #[error(transparent)]
    UnknownItem(#[from] UnknownItem),
    /// A content can't be read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The final diff has more changed lines than allowed.
    #[error("the range changes {lines} lines, more than the {max_lines} allowed")]
    TooManyLines {
        /// How many there are.
        lines: u64,
        /// How many are allowed.
        max_lines: u64,
    },
    /// The caller's time is over.
    #[error("linking took longer than allowed")]
    Over,
    /// The result is not what it should be: a fault of codeboost, found by itself.
    #[error("the result does not prove right")]
    Wrong(#[source] VerifyError),
}

/// Links a history.
///
/// The result is proven before it is returned: its segments put together are the contents at base
/// and head.
///
/// # Errors
/// [`LinkError`] when the ledger names an item that the plan lacks, when a content can't be read,
/// when a budget is exceeded, or when the result does not prove right.
pub fn link(
    history: &History,
    plan: &Plan,
    ledger: &Ledger,
    source: &dyn LineDiffs,
    options: &Options<'_>,
) -> Result<Link, LinkError> {
    let places = Places::new(history, plan, ledger)?;
    if let Some(max_lines) = options.max_lines {
        let blocks = history.diff.files.iter().flat_map(|file| &file.blocks).flatten();
        let lines = blocks.map(|b| u64::from(b.old_lines) + u64::from(b.new_lines)).sum();
        if lines > max_lines {
            return Err(LinkError::TooManyLines { lines, max_lines });
        }
    }
    let reach = Reach::new(history);
    let lineages = lineages(history);
    let n_files = history.diff.files.len() as u64;
    let n_done = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let done: Vec<Result<Vec<(u32, Linked)>, LinkError>> = lineages
        .par_iter()
        .map(|lineage| {
            let ask = || {
                let now =
                    is_over.load(Ordering::Relaxed) || options.is_over.is_some_and(|ask| ask());
                is_over.fetch_or(now, Ordering::Relaxed);
                now
            };
            if ask() {
                return Err(LinkError::Over);
            }
            let link = || {
                let generated = options.generated;
                link_lineage(history, lineage, &reach, &places, generated, source, &ask)
            };
            let linked = match options.kept {
                Some(kept) => {
                    let course = lineage.course(history, reach.is_linear());
                    let is_generated = |path: &[u8]| is_generated(options.generated, path);
                    let made_from = made_from(history, lineage, &course, &places, is_generated);
                    with_kept(kept, made_from, history, lineage, link)?
                }
                None => link()?,
            };
            let now = n_done.fetch_add(linked.len() as u64, Ordering::Relaxed);
            if let Some(progress) = options.progress {
                progress(now + linked.len() as u64, n_files);
            }
            Ok(linked)
        })
        .collect();
    let mut by_file: Vec<Option<Linked>> = history.diff.files.iter().map(|_| None).collect();
    for linked in done {
        for (n, linked) in linked? {
            by_file[n as usize] = Some(linked);
        }
    }
    let mut files = Vec::with_capacity(by_file.len());
    let n_segments = by_file.iter().flatten().map(|linked| linked.segments.len()).sum();
    let mut segments = Vec::with_capacity(n_segments);
    for (linked, file) in by_file.into_iter().flatten().zip(0..) {
        files.push(linked.entry);
        for mut segment in linked.segments {
            segment.id = segments.len() as u32;
            segment.file = file;
            segments.push(segment);
        }
    }
    moves::tag(&mut segments);
    let rows = summaries(plan, &segments);
    Ok(Link {
        schema_version: 1,
        base: history.base.clone(),
        head: history.head.clone(),
        plan: PlanRef { issue: plan.issue, revision: plan.revision, digest: plan.digest() },
        diff: DiffSettings {
            algorithm: "histogram".to_owned(),
            renames: RENAME_PERCENT,
            rename_limit: RENAME_LIMIT,
            renames_skipped: history.diff.renames_skipped,
        },
        rows,
        files,
        segments,
    })
}

/// The result of earlier, or that of `link`, which is kept.
fn with_kept(
    kept: &dyn Kept,
    made_from: Digest,
    history: &History,
    lineage: &Lineage,
    link: impl FnOnce() -> Result<Vec<(u32, Linked)>, LinkError>,
) -> Result<Vec<(u32, Linked)>, LinkError> {
    if let Some(linked) = kept.get(&made_from).and_then(|bytes| decode(bytes, history, lineage)) {
        return Ok(lineage.finals.iter().copied().zip(linked).collect());
    }
    let linked = link()?;
    if let Some(bytes) = encode(linked.iter().map(|(_, linked)| linked)) {
        kept.put(made_from, bytes);
    }
    Ok(linked)
}

fn is_generated(globs: &[Glob], path: &[u8]) -> bool {
    globs.iter().any(|glob| glob.matches(path))
}

fn link_lineage(
    history: &History,
    lineage: &Lineage,
    reach: &Reach<'_>,
    places: &Places<'_>,
    generated: &[Glob],
    source: &dyn LineDiffs,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<(u32, Linked)>, LinkError> {
    let mut replay = Replay::new(history, lineage, reach, source);
    let head = replay.run(is_over).map_err(|stop| match stop {
        Stop::Blob(error) => error.into(),
        Stop::Over => LinkError::Over,
    })?;
    let touches = Touches::new(replay, head);
    let aligner = Aligner::new(history, &lineage.finals, touches);
    let mut splitter = Splitter {
        history,
        places,
        generated: &|path| is_generated(generated, path),
        aligner,
        judged: HashMap::new(),
    };
    let mut done = Vec::with_capacity(lineage.finals.len());
    for n in &lineage.finals {
        let (linked, sides) = splitter.split(*n)?;
        prove(&linked, &sides)?;
        done.push((*n, linked));
    }
    Ok(done)
}

fn prove(linked: &Linked, [old, new]: &[Option<Lines>; 2]) -> Result<(), LinkError> {
    let is_binary = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.binary);
    if is_binary(&linked.entry.old) || is_binary(&linked.entry.new) {
        return Ok(());
    }
    let segments: Vec<&Segment> = linked.segments.iter().collect();
    verify::check_file(&linked.entry, &segments, old.as_ref(), new.as_ref())
        .map_err(LinkError::Wrong)
}

fn summaries(plan: &Plan, segments: &[Segment]) -> Vec<RowSummary> {
    let mut rows: Vec<Row> = plan.items.iter().map(|item| Row::Item(item.id.clone())).collect();
    rows.extend([Row::Ambiguous, Row::Unplanned]);
    let mut ambiguous: BTreeSet<&ItemId> = BTreeSet::new();
    let mut out: BTreeSet<&ItemId> = BTreeSet::new();
    for segment in segments {
        match &segment.row {
            Row::Ambiguous => ambiguous.extend(&segment.owners),
            Row::Item(item) if segment.scope == Scope::Out => {
                out.insert(item);
            }
            Row::Item(_) | Row::Unplanned => {}
        }
    }
    verify::sums(&rows, segments)
        .into_iter()
        .map(|(row, changes, added, removed)| {
            let (attributed, in_scope) = match &row {
                Row::Item(item) => (
                    Some(match (ambiguous.contains(item), changes) {
                        (true, _) => Attributed::Ambiguous,
                        (false, 0) => Attributed::None,
                        (false, _) => Attributed::Ok,
                    }),
                    Some(match (out.contains(item), changes) {
                        (_, 0) => InScope::None,
                        (true, _) => InScope::Out,
                        (false, _) => InScope::Ok,
                    }),
                ),
                Row::Ambiguous | Row::Unplanned => (None, None),
            };
            RowSummary { row, changes, added, removed, attributed, in_scope }
        })
        .collect()
}

/// Number of text lines in a link, for budgets and progress.
#[must_use]
pub fn n_lines(link: &Link) -> u64 {
    link.segments
        .iter()
        .map(|segment| match &segment.body {
            Body::Text(text) => text.lines,
            Body::File(_) => 0,
        })
        .sum()
}
