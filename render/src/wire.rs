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
}

/// The parts of the index that grow with the number of segments; a packed block of their own.
#[derive(Serialize)]
pub(crate) struct Details<'a> {
    /// The row of each segment: place in `rows` and how many in a row, alternating.
    pub(crate) segment_rows: Vec<u32>,
    /// Segments with tags that must be acknowledged, and these tags.
    pub(crate) must_acknowledge: Vec<(u32, Vec<&'static str>)>,
    /// Owners of each segment of the ambiguous row.
    pub(crate) ambiguous_owners: Vec<(u32, &'a [ItemId])>,
    /// Commits that segments name.
    pub(crate) commits: Vec<CommitEntry<'a>>,
}

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
    /// Whether a block with the difference to what was approved is there.
    pub(crate) since: bool,
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
    pub(crate) id: &'a CommitId,
    pub(crate) subject: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) authored_at: Option<&'a str>,
    pub(crate) item: Option<&'a ItemId>,
    pub(crate) origin: Option<Value>,
    pub(crate) was: Option<&'a ItemId>,
    pub(crate) adopted_by: Option<&'a str>,
}

/// What one row shows.
#[derive(Serialize)]
pub(crate) struct Block<'a> {
    pub(crate) files: Vec<BlockFile>,
    /// Only segments of this row that say more than their lines do.
    pub(crate) segments: Vec<Segment<'a>>,
    /// The lines of all hunks that are here, in order, without terminators, joined by LF.
    pub(crate) text: String,
    /// Token runs of these lines, joined by LF; absent when no line has any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) runs: String,
}

#[derive(Serialize)]
pub(crate) struct BlockFile {
    /// Place in the index.
    pub(crate) file: u32,
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
    pub(crate) hunks: Vec<Hunk>,
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

/// One hunk, with the lines of all its owners.
#[derive(Serialize)]
pub(crate) struct Hunk {
    /// Number within the file.
    pub(crate) hunk: u32,
    /// Line number at base of its first line, or of the line that would stand there.
    pub(crate) old: u64,
    /// The same at head.
    pub(crate) new: u64,
    /// One character a line: blank, `-` or `+`.
    pub(crate) kinds: String,
    /// Id of the first segment; the others follow in order.
    pub(crate) first: u32,
    /// Lines of each segment.
    pub(crate) counts: Vec<u64>,
    /// Place of a line in the hunk and the function around the change block that begins there,
    /// only where it differs from the one before in this file.
    pub(crate) contexts: Vec<(usize, String)>,
    /// First line and number of lines that are here; absent when all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) here: Option<Vec<(usize, usize)>>,
    /// Its lines that are here, for the block.
    #[serde(skip)]
    pub(crate) text: String,
    /// Lines (places in the hunk) that end without LF.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unended: Vec<usize>,
    /// Token runs of these lines, as many.
    #[serde(skip)]
    pub(crate) runs: String,
    /// Place in the hunk and changed words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<(usize, String)>,
}

/// What a segment says beyond its lines.
#[derive(Serialize, Default, PartialEq)]
pub(crate) struct Segment<'a> {
    pub(crate) id: u32,
    /// Places in the index; absent when equal to those of the segment before on this row.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) commits: Option<Vec<usize>>,
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
    /// Copy and copies, where there are several.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) copy: Option<(u64, u64)>,
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
