//! Every change of `base..head`, each in exactly one row: `link.json`.
//!
//! Rebuild law: the old file's lines, minus the `-` segments, plus the `+` segments at their
//! `new_start`, are the new file, byte for byte.

use std::fmt;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::bytes::{self, BytesError, RepoBytes, RepoPath};
use crate::canonical;
use crate::ids::{CommitId, Digest, ItemId, ObjectId, SegmentKey};

/// The whole of `link.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Always 1.
    pub schema_version: u32,
    /// The commit that the changes start from; an ancestor of `head`.
    pub base: CommitId,
    /// The commit that the changes end at.
    pub head: CommitId,
    /// The plan that rows and scope come from.
    pub plan: PlanRef,
    /// How the final diff was made.
    pub diff: DiffSettings,
    /// Every item in plan order, then `ambiguous`, then `unplanned`.
    pub rows: Vec<RowSummary>,
    /// In byte order of `path`.
    pub files: Vec<FileEntry>,
    /// By file; `file` kind first, then by place. Ids count from 0.
    pub segments: Vec<Segment>,
}

/// Which plan a link was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRef {
    /// Number of the issue.
    pub issue: u64,
    /// Revision of the plan.
    pub revision: u64,
    /// Digest of the parsed plan.
    pub digest: Digest,
}

/// How the final diff was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffSettings {
    /// Always `histogram`.
    pub algorithm: String,
    /// Least similarity of a rename, in percent.
    pub renames: u32,
    /// Most candidates for inexact renames on one side.
    pub rename_limit: u32,
    /// Whether there were more candidates than the limit, so that inexact renames were not sought.
    pub renames_skipped: bool,
}

/// Where a segment is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// The row of one item.
    Item(ItemId),
    /// Several items made or touched it.
    Ambiguous,
    /// Somebody made or touched it who is no item of the plan.
    Unplanned,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Item(item) => item.as_str(),
            Self::Ambiguous => "ambiguous",
            Self::Unplanned => "unplanned",
        })
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "ambiguous" => Ok(Self::Ambiguous),
            "unplanned" => Ok(Self::Unplanned),
            item => ItemId::parse(item).map(Self::Item).map_err(D::Error::custom),
        }
    }
}

/// Sums of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSummary {
    /// Which row.
    pub row: Row,
    /// Number of segments.
    pub changes: u64,
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
    /// Only on the row of an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<Attributed>,
    /// Only on the row of an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_scope: Option<InScope>,
}

/// Whether all that an item made is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attributed {
    /// Yes.
    Ok,
    /// It owns part of an ambiguous segment.
    Ambiguous,
    /// It has no changes.
    None,
}

/// Whether all that an item made lies in its declared files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InScope {
    /// Yes.
    Ok,
    /// Some lies elsewhere.
    Out,
    /// It has no changes.
    None,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The path at head; at base for a deleted file.
    pub path: RepoPath,
    /// `None` for an added file; equals `path` for a deleted or modified one.
    pub old_path: Option<RepoPath>,
    /// What happened to it.
    pub status: FileStatus,
    /// Percent, for renamed files.
    pub similarity: Option<u32>,
    /// The side at base.
    pub old: Option<Side>,
    /// The side at head.
    pub new: Option<Side>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileStatus {
    /// Absent at base.
    Added,
    /// Absent at head.
    Deleted,
    /// Same path, same type.
    Modified,
    /// Another path.
    Renamed,
    /// Same path, another type.
    Type,
}

/// One side of a changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Git's mode, six octal digits.
    pub mode: String,
    /// What stands there.
    pub kind: SideKind,
    /// The blob, or for a submodule the commit it points to.
    pub oid: ObjectId,
    /// Bytes; `None` for a submodule.
    pub size: Option<u64>,
    /// Lines, where the last may lack a terminator; 0 for binary content and submodules.
    pub lines: u64,
    /// Whether there is a NUL in the first 8,000 bytes.
    pub binary: bool,
    /// Target of a symbolic link.
    pub target: Option<RepoBytes>,
}

/// What stands on one side of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideKind {
    /// A regular file.
    Blob,
    /// A symbolic link.
    Symlink,
    /// A pointer to a commit of another repository.
    Submodule,
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out =
            serializer.serialize_struct("Side", 6 + usize::from(self.target.is_some()))?;
        out.serialize_field("mode", &self.mode)?;
        out.serialize_field("kind", &self.kind)?;
        out.serialize_field("oid", &self.oid)?;
        out.serialize_field("size", &self.size)?;
        out.serialize_field("lines", &self.lines)?;
        out.serialize_field("binary", &self.binary)?;
        if let Some(target) = &self.target {
            bytes::put(&mut out, "target", "target_b64", target)?;
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for Side {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            mode: String,
            kind: SideKind,
            oid: ObjectId,
            size: Option<u64>,
            lines: u64,
            binary: bool,
            target: Option<String>,
            target_b64: Option<String>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            mode: wire.mode,
            kind: wire.kind,
            oid: wire.oid,
            size: wire.size,
            lines: wire.lines,
            binary: wire.binary,
            target: bytes::take(wire.target, wire.target_b64).map_err(D::Error::custom)?,
        })
    }
}

impl Serialize for FileEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("FileEntry", 6)?;
        bytes::put(&mut out, "path", "path_b64", &self.path)?;
        bytes::put_opt(&mut out, "old_path", "old_path_b64", self.old_path.as_ref())?;
        out.serialize_field("status", &self.status)?;
        out.serialize_field("similarity", &self.similarity)?;
        out.serialize_field("old", &self.old)?;
        out.serialize_field("new", &self.new)?;
        out.end()
    }
}

impl<'de> Deserialize<'de> for FileEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            path: Option<String>,
            path_b64: Option<String>,
            old_path: Option<String>,
            old_path_b64: Option<String>,
            status: FileStatus,
            similarity: Option<u32>,
            old: Option<Side>,
            new: Option<Side>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            path: required(wire.path, wire.path_b64).map_err(D::Error::custom)?,
            old_path: bytes::take(wire.old_path, wire.old_path_b64).map_err(D::Error::custom)?,
            status: wire.status,
            similarity: wire.similarity,
            old: wire.old,
            new: wire.new,
        })
    }
}

fn required(plain: Option<String>, b64: Option<String>) -> Result<RepoBytes, BytesError> {
    bytes::take(plain, b64)?.ok_or(BytesError::Missing)
}

/// A run of changed lines, or one change of a file that has no lines, with one set of owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Place in [`Link::segments`].
    pub id: u32,
    /// Place in [`Link::files`].
    pub file: u32,
    /// Where it is shown.
    pub row: Row,
    /// The items that made or touched it, sorted by number.
    pub owners: Vec<ItemId>,
    /// Whether a commit without an item made or touched it.
    pub foreign: bool,
    /// Whether it lies in the declared files of its item.
    pub scope: Scope,
    /// The items that declare the file, for scope `out`.
    pub scope_owner: Vec<ItemId>,
    /// The other items that declare the file, for scope `in`.
    pub shared_file: Vec<ItemId>,
    /// All commits that made or touched it; parents first.
    pub commits: Vec<CommitId>,
    /// What must be known about it.
    pub tags: Vec<Tag>,
    /// Its name by content and copy number.
    pub key: SegmentKey,
    /// Whether a rewritten block that was too large to pair line by line is among the reasons for
    /// its owners: it may name more than it has. Written only where it holds.
    pub coarse: bool,
    /// Lines, or a change without lines.
    pub body: Body,
}

/// What a segment holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Changed lines.
    Text(Text),
    /// A change of path, mode, type or binary content. Its owners are all who changed any of these;
    /// where content is covered (binary, a link, a submodule, an empty file) also who changed it as
    /// text.
    File(Change),
}

/// Changed lines of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Added or removed.
    pub op: Op,
    /// First line in the file of its side; counts from 1. The old file for `-`, the new for `+`.
    pub start: u64,
    /// Number of lines.
    pub lines: u64,
    /// Each line with its terminator.
    pub text: RepoBytes,
    /// The line that names the function around it; at most 80 bytes, maybe empty.
    pub context: RepoBytes,
    /// Counts from 0 within the file.
    pub hunk: u32,
    /// Other rows with segments in that hunk.
    pub shares_hunk_with: Vec<Row>,
}

/// Added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Op {
    /// The lines stand at base only.
    #[serde(rename = "-")]
    Remove,
    /// The lines stand at head only.
    #[serde(rename = "+")]
    Add,
}

impl Op {
    /// `-` or `+`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "-",
            Self::Add => "+",
        }
    }
}

/// Whether a segment lies in declared files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// In a file that its item declares.
    In,
    /// In a file that its item does not declare.
    Out,
    /// On the ambiguous row.
    Ambiguous,
    /// On the unplanned row.
    Unplanned,
}

/// What changed about a file besides its lines. Written as names joined by `+`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Change {
    /// Content differs and a side is binary.
    pub binary: bool,
    /// Modes differ, or an executable file came or went.
    pub mode: bool,
    /// An empty file came or went.
    pub empty: bool,
    /// The path differs.
    pub rename: bool,
    /// A side is a symbolic link, and target or type differs.
    pub symlink: bool,
    /// A side is a submodule, and commit or type differs.
    pub submodule: bool,
}

impl Change {
    fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.binary, "binary"),
            (self.mode, "mode"),
            (self.empty, "empty"),
            (self.rename, "rename"),
            (self.symlink, "symlink"),
            (self.submodule, "submodule"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether object ids are part of what the change means.
    #[must_use]
    pub fn covers_content(self) -> bool {
        self.binary || self.symlink || self.submodule
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, name) in self.names().enumerate() {
            if n > 0 {
                f.write_str("+")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut change = Self::default();
        for name in text.split('+') {
            let flag = match name {
                "binary" => &mut change.binary,
                "mode" => &mut change.mode,
                "empty" => &mut change.empty,
                "rename" => &mut change.rename,
                "symlink" => &mut change.symlink,
                "submodule" => &mut change.submodule,
                _ => return Err(D::Error::custom(format!("unknown kind of change {name:?}"))),
            };
            *flag = true;
        }
        if change.to_string() == text {
            Ok(change)
        } else {
            Err(D::Error::custom(format!("kinds of change out of order: {text:?}")))
        }
    }
}

/// Something about a segment that must be known, shown and in part acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "tag", rename_all = "kebab-case")]
pub enum Tag {
    /// Bidirectional controls.
    Bidi,
    /// Characters that can't be seen.
    Invisible,
    /// Letters that look like others inside an identifier.
    Confusable,
    /// A line ending flipped.
    Eol,
    /// The last line gained or lost its terminator.
    FinalNewline,
    /// A byte-order mark came or went.
    Bom,
    /// The executable bit came or went.
    Executable,
    /// A link points elsewhere.
    SymlinkTarget,
    /// A submodule points elsewhere.
    Submodule,
    /// The item does not declare this file.
    OutOfScope,
    /// Lines that stand byte-equal on the other side.
    Moved {
        /// First line in this segment, lines, other segment, first line there; lines count from 1.
        runs: Vec<[u64; 4]>,
    },
    /// A person vouched for the commit.
    Adopted,
    /// An agent resolved a conflict here.
    ConflictAgent,
    /// The base declares the file generated.
    Generated,
    /// Owned by the rule for lines on which two diffs disagree.
    Realigned,
}

impl Tag {
    /// The tag's word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bidi => "bidi",
            Self::Invisible => "invisible",
            Self::Confusable => "confusable",
            Self::Eol => "eol",
            Self::FinalNewline => "final-newline",
            Self::Bom => "bom",
            Self::Executable => "executable",
            Self::SymlinkTarget => "symlink-target",
            Self::Submodule => "submodule",
            Self::OutOfScope => "out-of-scope",
            Self::Moved { .. } => "moved",
            Self::Adopted => "adopted",
            Self::ConflictAgent => "conflict-agent",
            Self::Generated => "generated",
            Self::Realigned => "realigned",
        }
    }

    /// Its place in the list of all tags, in which the tags of a segment are ordered.
    #[must_use]
    pub fn place(&self) -> u8 {
        match self {
            Self::Bidi => 0,
            Self::Invisible => 1,
            Self::Confusable => 2,
            Self::Eol => 3,
            Self::FinalNewline => 4,
            Self::Bom => 5,
            Self::Executable => 6,
            Self::SymlinkTarget => 7,
            Self::Submodule => 8,
            Self::OutOfScope => 9,
            Self::Moved { .. } => 10,
            Self::Adopted => 11,
            Self::ConflictAgent => 12,
            Self::Generated => 13,
            Self::Realigned => 14,
        }
    }

    /// Whether the tag must be acknowledged before its segment can be approved or accepted.
    #[must_use]
    pub fn must_be_acknowledged(&self) -> bool {
        match self {
            Self::Bidi
            | Self::Invisible
            | Self::Confusable
            | Self::Eol
            | Self::FinalNewline
            | Self::Bom
            | Self::Executable
            | Self::SymlinkTarget
            | Self::Submodule
            | Self::OutOfScope => true,
            Self::Moved { .. }
            | Self::Adopted
            | Self::ConflictAgent
            | Self::Generated
            | Self::Realigned => false,
        }
    }
}

/// What an approval and a key cover of a `file` segment, in canonical form (paths apart).
///
/// Object ids are in it only where the change is about content.
#[must_use]
pub fn file_meta(change: Change, file: &FileEntry) -> Value {
    let side = |side: &Option<Side>| match side {
        None => Value::Null,
        Some(side) if change.covers_content() => {
            json!({"mode": side.mode, "kind": side.kind, "oid": side.oid})
        }
        Some(side) => json!({"mode": side.mode, "kind": side.kind}),
    };
    json!({"change": change, "old": side(&file.old), "new": side(&file.new)})
}

/// The key of a segment.
///
/// `copy` counts from 1 in file order among the `copies` segments that are equal in path, old
/// path, kind, operation and content.
#[must_use]
pub fn segment_key(file: &FileEntry, body: &Body, copy: u64, copies: u64) -> SegmentKey {
    use std::fmt::Write as _;
    // In canonical form by hand: there is one for each segment, and base64 needs no escapes.
    let mut key = String::from("{\"content\":");
    let quote = |key: &mut String, bytes: &RepoBytes| {
        key.push('"');
        bytes.push_canonical(key);
        key.push('"');
    };
    let (kind, op) = match body {
        Body::Text(text) => {
            quote(&mut key, &text.text);
            let op = match text.op {
                Op::Add => "\"+\"",
                Op::Remove => "\"-\"",
            };
            ("text", op)
        }
        Body::File(change) => {
            key.push_str(&String::from_utf8_lossy(&canonical::to_bytes(&file_meta(*change, file))));
            ("file", "null")
        }
    };
    let _ = write!(key, ",\"copies\":{copies},\"copy\":{copy},\"kind\":\"{kind}\",\"old_path\":");
    match &file.old_path {
        Some(path) => quote(&mut key, path),
        None => key.push_str("null"),
    }
    let _ = write!(key, ",\"op\":{op},\"path\":");
    quote(&mut key, &file.path);
    key.push('}');
    Digest::of(key.as_bytes())
}

impl Serialize for Segment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = match self.body {
            Body::Text(_) => 20,
            Body::File(_) => 13,
        };
        let fields = fields + usize::from(self.coarse);
        let mut out = serializer.serialize_struct("Segment", fields)?;
        out.serialize_field("id", &self.id)?;
        out.serialize_field("file", &self.file)?;
        match &self.body {
            Body::Text(text) => {
                out.serialize_field("kind", "text")?;
                out.serialize_field("op", &text.op)?;
            }
            Body::File(change) => {
                out.serialize_field("kind", "file")?;
                out.serialize_field("change", change)?;
            }
        }
        out.serialize_field("row", &self.row)?;
        out.serialize_field("owners", &self.owners)?;
        out.serialize_field("foreign", &self.foreign)?;
        out.serialize_field("scope", &self.scope)?;
        out.serialize_field("scope_owner", &self.scope_owner)?;
        out.serialize_field("shared_file", &self.shared_file)?;
        if let Body::Text(text) = &self.body {
            let start = Some(text.start);
            let (old_start, new_start) = match text.op {
                Op::Remove => (start, None),
                Op::Add => (None, start),
            };
            out.serialize_field("old_start", &old_start)?;
            out.serialize_field("new_start", &new_start)?;
            out.serialize_field("lines", &text.lines)?;
            bytes::put(&mut out, "text", "text_b64", &text.text)?;
            bytes::put(&mut out, "context", "context_b64", &text.context)?;
            out.serialize_field("hunk", &text.hunk)?;
            out.serialize_field("shares_hunk_with", &text.shares_hunk_with)?;
        }
        out.serialize_field("commits", &self.commits)?;
        out.serialize_field("tags", &self.tags)?;
        out.serialize_field("key", &self.key)?;
        if self.coarse {
            out.serialize_field("coarse", &true)?;
        }
        out.end()
    }
}

#[derive(Deserialize)]
struct SegmentWire {
    id: u32,
    file: u32,
    kind: String,
    op: Option<Op>,
    change: Option<Change>,
    row: Row,
    owners: Vec<ItemId>,
    foreign: bool,
    scope: Scope,
    scope_owner: Vec<ItemId>,
    shared_file: Vec<ItemId>,
    old_start: Option<u64>,
    new_start: Option<u64>,
    lines: Option<u64>,
    text: Option<String>,
    text_b64: Option<String>,
    context: Option<String>,
    context_b64: Option<String>,
    hunk: Option<u32>,
    shares_hunk_with: Option<Vec<Row>>,
    commits: Vec<CommitId>,
    tags: Vec<Tag>,
    key: SegmentKey,
    #[serde(default)]
    coarse: bool,
}

impl<'de> Deserialize<'de> for Segment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = SegmentWire::deserialize(deserializer)?;
        let missing = |name: &'static str| D::Error::missing_field(name);
        let body = match wire.kind.as_str() {
            "file" => Body::File(wire.change.ok_or_else(|| missing("change"))?),
            "text" => {
                let op = wire.op.ok_or_else(|| missing("op"))?;
                let start = match op {
                    Op::Remove => wire.old_start.ok_or_else(|| missing("old_start"))?,
                    Op::Add => wire.new_start.ok_or_else(|| missing("new_start"))?,
                };
                Body::Text(Text {
                    op,
                    start,
                    lines: wire.lines.ok_or_else(|| missing("lines"))?,
                    text: required(wire.text, wire.text_b64).map_err(D::Error::custom)?,
                    context: required(wire.context, wire.context_b64).map_err(D::Error::custom)?,
                    hunk: wire.hunk.ok_or_else(|| missing("hunk"))?,
                    shares_hunk_with: wire
                        .shares_hunk_with
                        .ok_or_else(|| missing("shares_hunk_with"))?,
                })
            }
            other => {
                return Err(D::Error::unknown_variant(other, &["text", "file"]));
            }
        };
        Ok(Self {
            id: wire.id,
            file: wire.file,
            row: wire.row,
            owners: wire.owners,
            foreign: wire.foreign,
            scope: wire.scope,
            scope_owner: wire.scope_owner,
            shared_file: wire.shared_file,
            commits: wire.commits,
            tags: wire.tags,
            key: wire.key,
            coarse: wire.coarse,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_canonical_form() {
        let side = Side {
            mode: "100644".to_owned(),
            kind: SideKind::Blob,
            oid: ObjectId::parse(&"1".repeat(40)).unwrap(),
            size: Some(2),
            lines: 1,
            binary: false,
            target: None,
        };
        let file = FileEntry {
            path: b"a\"\xff".as_slice().into(),
            old_path: Some(b"b".as_slice().into()),
            status: FileStatus::Renamed,
            similarity: Some(50),
            old: Some(side.clone()),
            new: Some(side),
        };
        let text = Body::Text(Text {
            op: Op::Remove,
            start: 1,
            lines: 1,
            text: b"x\n".as_slice().into(),
            context: b"".as_slice().into(),
            hunk: 0,
            shares_hunk_with: Vec::new(),
        });
        let change = Change { rename: true, ..Change::default() };
        let meta = file_meta(change, &file);
        for (body, kind, op, content) in [
            (text, "text", json!("-"), json!("eAo=")),
            (Body::File(change), "file", Value::Null, meta),
        ] {
            for file in [file.clone(), FileEntry { old_path: None, ..file.clone() }] {
                let wanted = canonical::digest(&json!({
                    "path": file.path.canonical(),
                    "old_path": file.old_path.as_ref().map(RepoBytes::canonical),
                    "kind": kind, "op": op, "content": content, "copy": 2, "copies": 3,
                }));
                assert_eq!(segment_key(&file, &body, 2, 3), wanted);
            }
        }
    }
}
