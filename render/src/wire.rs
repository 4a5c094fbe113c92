//! What the page's script reads: the index, and one block per row.
//!
//! Repository bytes are text in the form of [`crate::text`]. The script's types in
//! `assets/js/types.js` mirror these.

use codeboost_schema::ids::{CommitId, Digest, ItemId, ObjectId};
use codeboost_schema::link::{FileStatus, Op, RowSummary, Scope, SideKind, Tag};
use codeboost_schema::plan::Item;
use serde::Serialize;
use serde_json::Value;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The index: everything but code.
#[derive(Serialize)]
pub(crate) struct Index<'a> {
    pub(crate) version: u32,
    pub(crate) generator: &'a str,
    pub(crate) rendered_at: &'a str,
    pub(crate) repository: &'a str,
    /// `local` or `github`.
    pub(crate) forge: &'static str,
    pub(crate) issue: Issue<'a>,
    pub(crate) revision: u64,
    pub(crate) summary: &'a str,
    pub(crate) questions: &'a [String],
    pub(crate) base: &'a CommitId,
    pub(crate) head: &'a CommitId,
    pub(crate) renames_skipped: bool,
    /// The plan's items with what is recorded about them.
    pub(crate) items: Vec<ItemEntry<'a>>,
    /// Every item in plan order, then `ambiguous`, then `unplanned`.
    pub(crate) rows: &'a [RowSummary],
    pub(crate) files: Vec<FileEntry>,
    /// Number of segments.
    pub(crate) n_segments: u32,
    pub(crate) choices: Vec<Value>,
    pub(crate) acknowledgements: Vec<(u32, &'a str)>,
    pub(crate) notes: Vec<Value>,
    pub(crate) problems: Vec<Value>,
    pub(crate) findings: Vec<Value>,
    pub(crate) blockers: Vec<Value>,
    pub(crate) task: Option<Value>,
    pub(crate) merge_steps: Vec<Value>,
    pub(crate) reviewers: &'a [String],
    pub(crate) read_only: Option<&'a str>,
    pub(crate) notices: Vec<String>,
    /// The row of each segment: place in `rows` and how many in a row, alternating.
    pub(crate) segment_rows: Vec<u32>,
    /// Segments by the tags of theirs that must be acknowledged.
    pub(crate) must_acknowledge: Grouped<Vec<&'static str>>,
    /// Segments of the ambiguous row by their owners.
    pub(crate) ambiguous_owners: Grouped<&'a [ItemId]>,
    /// Commits that segments name.
    pub(crate) commits: Vec<CommitEntry<'a>>,
    /// The parts of each row, in order; see [`Place`].
    pub(crate) parts: Vec<Vec<Place>>,
    /// The largest line number on each row.
    pub(crate) most: Vec<u64>,
}

/// Segments by what they share: their ids, each as the distance from the one before.
pub(crate) type Grouped<T> = Vec<(T, Vec<u32>)>;

/// Where a part of a row begins, and how much it shows: first segment of its first hunk, lines of
/// that segment that stand before the part, lines, heads of files and hunks, and lines of files
/// that are folded at first. Parts of all rows are cut at the same places of a hunk.
pub(crate) type Place = (u32, u64, u64, u64, u64);

#[derive(Serialize)]
pub(crate) struct Issue<'a> {
    pub(crate) number: u64,
    pub(crate) title: &'a str,
    pub(crate) body: Option<Value>,
    pub(crate) author: Option<&'a str>,
    pub(crate) pull_request: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct ItemEntry<'a> {
    #[serde(flatten)]
    pub(crate) plan: &'a Item,
    /// `None` when nothing is recorded about the item.
    pub(crate) fingerprint: Option<&'a Digest>,
    /// `unreviewed`, `approved` or `stale`.
    pub(crate) approval: &'static str,
    pub(crate) reasons: Vec<Reason<'a>>,
    /// Files in the difference to what was approved; `None` when nothing was. There is a block for
    /// them unless it is 0, as where only a dependency changed.
    pub(crate) since: Option<usize>,
    pub(crate) approved_by: &'a [String],
    pub(crate) tests: Value,
    pub(crate) ai_review: Value,
}

#[derive(Serialize)]
pub(crate) struct Reason<'a> {
    pub(crate) reason: &'a str,
    pub(crate) words: &'a str,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct FileEntry {
    pub(crate) path: String,
    /// Only where it differs from `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old_path: Option<String>,
    pub(crate) status: FileStatus,
    /// Segments of this and all earlier files.
    pub(crate) end: u32,
    /// Whether all segments carry the tag `generated`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) generated: bool,
    /// Whether a block with the unchanged lines is there.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) whole: bool,
}

#[derive(Serialize)]
pub(crate) struct CommitEntry<'a> {
    /// The beginning of its id, longer than what is shown.
    pub(crate) id: &'a str,
    pub(crate) subject: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) item: Option<&'a ItemId>,
    pub(crate) was: Option<&'a ItemId>,
    pub(crate) adopted_by: Option<&'a str>,
}

/// What one part of a row shows. Lists that are named after hunks or lines run through the whole
/// part, so that what is alike stands together.
#[derive(Serialize)]
pub(crate) struct Block<'a> {
    pub(crate) files: Vec<BlockFile>,
    /// Per hunk: how far below the end of the one before it begins at head; the first of each file
    /// counts from line 1.
    pub(crate) gaps: Vec<i64>,
    /// Per hunk: by how much more it is further at base than at head.
    pub(crate) shifts: Vec<i64>,
    /// Per hunk: segments between the last one of the hunk before and its first.
    pub(crate) skips: Vec<u32>,
    /// Per hunk, joined by `|`: its lines in order, each run a sign (`=`, `-`, `+`) and a count; 1
    /// is left out. Each `-` or `+` is one segment.
    pub(crate) steps: String,
    /// Hunks whose first or last segment is cut: place among the hunks, lines of the first that
    /// stand before, lines of the last that stand after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cuts: Vec<(usize, u64, u64)>,
    /// Hunks of which not all lines are here: place among the hunks, then first line and count of
    /// what is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) here: Vec<(usize, Vec<(usize, usize)>)>,
    /// Hunks, each as the distance from the one before, whose first change stands in another
    /// function than that of the hunk before in this file.
    pub(crate) context_hunks: Vec<usize>,
    /// The functions around these.
    pub(crate) contexts: Vec<String>,
    /// Lines that are here, counted through the part, that end without LF.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unended: Vec<usize>,
    /// Lines with changed words, each as the distance from the one before.
    pub(crate) word_lines: Vec<usize>,
    /// The changed words of these lines, joined by LF.
    pub(crate) words: String,
    /// What segments of this row say beyond their lines; the first says nothing.
    pub(crate) said: Vec<Segment<'a>>,
    /// What each segment of this row that is here says: place in `said` and how many in a row,
    /// alternating.
    pub(crate) says: Vec<usize>,
    /// Segments of which there are several: place among them, copy and copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) copies: Vec<(usize, u64, u64)>,
    /// The lines of all hunks that are here, in order, without terminators, joined by LF.
    pub(crate) text: String,
    /// Token runs of these lines, joined by LF; absent when no line has any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) runs: String,
}

/// A file of a part.
#[derive(Serialize)]
pub(crate) struct BlockFile {
    /// Place in the index.
    pub(crate) file: u32,
    /// Number of hunks.
    pub(crate) n: usize,
    /// Percent, for renamed files.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) similarity: Option<u32>,
    /// Both sides, for the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Side>,
    /// The file segment, if it is on this row.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) card: Option<u32>,
    /// What changed, for the card.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) change: Option<String>,
    /// Every line of both sides ends in CRLF, which is then not shown on each.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) crlf: bool,
    /// Why lines around the changes are missing.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) left_out: Option<String>,
    /// The line at head after the row's last hunk of this file in an earlier part.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) from: Option<u64>,
    /// Whether a later part goes on with this file.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) more: bool,
}

#[derive(Serialize)]
pub(crate) struct Side {
    pub(crate) mode: String,
    pub(crate) kind: SideKind,
    pub(crate) oid: ObjectId,
    pub(crate) size: Option<u64>,
    pub(crate) lines: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) binary: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) target: Option<String>,
    /// Place among the images.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) image: Option<usize>,
    /// Why a binary side has no image.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) no_image: Option<&'static str>,
}

/// What a segment says beyond its lines.
#[derive(Serialize, Default, PartialEq, Eq, Hash, Clone)]
pub(crate) struct Segment<'a> {
    /// Places in the index.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) commits: Vec<usize>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) owners: &'a [ItemId],
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) foreign: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) scope: Option<Scope>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) scope_owner: &'a [ItemId],
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) shared_file: &'a [ItemId],
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) tags: &'a [Tag],
    /// Whether its owners may be more than those that made it.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) coarse: bool,
}

/// The difference between what was approved of an item and what is there now.
#[derive(Serialize)]
pub(crate) struct Since {
    pub(crate) path: String,
    pub(crate) meta: Option<(String, String)>,
    /// One character a line: `=`, `-` or `+`.
    pub(crate) statuses: String,
    /// One character a line: `-` or `+`.
    pub(crate) ops: String,
    /// Place of a line and the function around it, where it changes.
    pub(crate) contexts: Vec<(usize, String)>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unended: Vec<usize>,
}

/// The unchanged lines of a file, for reading more than the hunks show.
#[derive(Serialize)]
pub(crate) struct Whole {
    /// Lines at head that stand in no hunk: first line number, count, and the first
    /// one's number at base.
    pub(crate) ranges: Vec<(u64, u64, u64)>,
    pub(crate) text: String,
}

/// Lets [`Op`] be written as the character it is.
pub(crate) fn op_char(op: Op) -> char {
    match op {
        Op::Remove => '-',
        Op::Add => '+',
    }
}
