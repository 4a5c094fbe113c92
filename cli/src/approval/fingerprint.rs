//! What an approval of an item covers: its snapshot, and the digest of that.
//!
//! | covered | why |
//! |---|---|
//! | repository, task, plan, item id | an approval never moves to another piece of work |
//! | title, intent, declared files, acceptance, dependencies | what the item promised |
//! | per file: path and old path | where the item's changes are |
//! | per file: the item's lines, operation by operation, in order | what it does |
//! | per line: its function context | the same line elsewhere may mean something else |
//! | change, modes, kinds of a file change; object ids where content is the change | changes without lines |
//! | segments that were assigned to the item | they became part of it |
//!
//! | not covered | why |
//! |---|---|
//! | line numbers, hunks, segment ids | lines that only move stay approved |
//! | commits, authors, ledger origins | a clean rebase keeps approvals |
//! | how CR LF ends a line | a flip is a tag that has to be acknowledged instead |
//! | unchanged lines, and what other items changed beside it | other approvals cover that |
//! | whether removed and added lines stand in one block or several | another item's change between them decides it |
//!
//! The last row is why removed lines come before added lines per file: inside a change block git
//! prints all removals first, so a neighbour that joins two blocks reorders them in a diff
//! without changing a line of this item.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeboost_schema::bytes::{Canonical, RepoBytes, RepoPath};
use codeboost_schema::canonical;
use codeboost_schema::ids::{Fingerprint, ItemId, Uuid};
use codeboost_schema::link::{Body, Link, Op, file_meta};
use codeboost_schema::plan::{Check, DeclaredFile, Item, Plan};
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::approval::choice::Placed;

/// The piece of work that an approval belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The repository, by the id that its state gave it.
    pub repository: Uuid,
    /// The task.
    pub task: Uuid,
    /// The plan, the same for all its revisions.
    pub plan: Uuid,
    /// The item.
    pub item: ItemId,
}

/// What an item promises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its title.
    pub title: String,
    /// Why it exists.
    pub intent: String,
    /// Its declared files.
    pub files: Vec<DeclaredFile>,
    /// How to check it.
    pub acceptance: Vec<Check>,
    /// Earlier items that must be done first.
    pub depends_on: Vec<ItemId>,
}

impl From<&Item> for Definition {
    fn from(item: &Item) -> Self {
        Self {
            title: item.title.clone(),
            intent: item.intent.clone(),
            files: item.files.clone(),
            acceptance: item.acceptance.clone(),
            depends_on: item.depends_on.clone(),
        }
    }
}

/// Everything that an approval of one item covers, as it is stored with the approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The piece of work.
    pub binding: Binding,
    /// What the item promises.
    pub definition: Definition,
    /// Its changes, in byte order of path.
    pub files: Vec<SnapshotFile>,
}

/// What an item changes in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    /// The path at head; at base for a deleted file.
    #[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    pub path: RepoPath,
    /// The path at base.
    #[serde(serialize_with = "write_opt_bytes", deserialize_with = "read_opt_bytes")]
    pub old_path: Option<RepoPath>,
    /// Changed lines in the order in which git prints them.
    pub runs: Vec<Run>,
    /// What changed besides lines, where that is the item's.
    pub meta: Option<Value>,
    /// Whether `meta` is the item's because a person assigned it.
    pub meta_assigned: bool,
}

/// Consecutive lines of one operation and one context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Added or removed.
    pub op: Op,
    /// The line that names the function around them.
    #[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    pub context: RepoBytes,
    /// Whether a person assigned them to the item.
    pub assigned: bool,
    /// The lines with their terminators, CR LF read as LF.
    #[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    pub text: RepoBytes,
}

impl Run {
    /// The lines, each with its terminator.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.text.as_bytes().split_inclusive(|b| *b == b'\n')
    }
}

impl Snapshot {
    /// Takes the snapshot of one item.
    ///
    /// `placed`: one entry per segment of `link`, from [`crate::approval::choice::place`].
    #[must_use]
    pub fn take(link: &Link, placed: &[Placed], item: &Item, binding: Binding) -> Self {
        let mut files: BTreeMap<u32, SnapshotFile> = BTreeMap::new();
        for (segment, placed) in link.segments.iter().zip(placed) {
            if placed.item() != Some(&item.id) {
                continue;
            }
            let entry = &link.files[segment.file as usize];
            let file = files.entry(segment.file).or_insert_with(|| SnapshotFile {
                path: entry.path.clone(),
                old_path: entry.old_path.clone(),
                runs: Vec::new(),
                meta: None,
                meta_assigned: false,
            });
            match &segment.body {
                Body::File(change) => {
                    file.meta = Some(file_meta(*change, entry));
                    file.meta_assigned = placed.assigned;
                }
                Body::Text(text) => file.runs.push(Run {
                    op: text.op,
                    context: without_cr(&text.context),
                    assigned: placed.assigned,
                    text: cr_lf_as_lf(&text.text),
                }),
            }
        }
        Self { binding, definition: item.into(), files: files.into_values().collect() }
    }

    /// The fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        canonical::digest(&self.covered())
    }

    /// The bytes whose digest the fingerprint is.
    #[must_use]
    pub fn canonical_bytes(&self) -> Vec<u8> {
        canonical::to_bytes(&self.covered())
    }

    fn covered(&self) -> Covered<'_> {
        Covered {
            binding: &self.binding,
            definition: &self.definition,
            files: self.files.iter().map(CoveredFile::from).collect(),
        }
    }

    /// Whether the item changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The same snapshot without what people assigned to the item.
    #[must_use]
    pub fn without_assigned(&self) -> Self {
        let files = self.files.iter().filter_map(|file| {
            let file = SnapshotFile {
                runs: file.runs.iter().filter(|run| !run.assigned).cloned().collect(),
                meta: file.meta.clone().filter(|_| !file.meta_assigned),
                meta_assigned: false,
                ..file.clone()
            };
            (!file.runs.is_empty() || file.meta.is_some()).then_some(file)
        });
        Self { files: files.collect(), ..self.clone() }
    }
}

impl SnapshotFile {
    /// The lines as the fingerprint covers them: removed ones, then added ones.
    pub fn covered_lines(&self) -> impl Iterator<Item = (Op, &RepoBytes, &[u8])> {
        let of = |op: Op| {
            self.runs
                .iter()
                .filter(move |run| run.op == op)
                .flat_map(move |run| run.lines().map(move |line| (op, &run.context, line)))
        };
        of(Op::Remove).chain(of(Op::Add))
    }
}

/// The snapshots of all items of the plan, in its order.
#[must_use]
pub fn snapshots(
    link: &Link,
    placed: &[Placed],
    plan: &Plan,
    binding: impl Fn(&ItemId) -> Binding,
) -> Vec<Snapshot> {
    plan.items.iter().map(|item| Snapshot::take(link, placed, item, binding(&item.id))).collect()
}

#[derive(Serialize)]
struct Covered<'a> {
    binding: &'a Binding,
    definition: &'a Definition,
    files: Vec<CoveredFile<'a>>,
}

#[derive(Serialize)]
struct CoveredFile<'a> {
    path: Canonical<'a>,
    old_path: Option<Canonical<'a>>,
    lines: CoveredLines<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Value>,
}

impl<'a> From<&'a SnapshotFile> for CoveredFile<'a> {
    fn from(file: &'a SnapshotFile) -> Self {
        Self {
            path: Canonical(&file.path),
            old_path: file.old_path.as_ref().map(Canonical),
            lines: CoveredLines(file),
            meta: file.meta.as_ref(),
        }
    }
}

struct CoveredLines<'a>(&'a SnapshotFile);

impl Serialize for CoveredLines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for (op, context, line) in self.0.covered_lines() {
            seq.serialize_element(&(op.as_str(), Canonical(context), STANDARD.encode(line)))?;
        }
        seq.end()
    }
}

fn cr_lf_as_lf(text: &RepoBytes) -> RepoBytes {
    let bytes = text.as_bytes();
    if !bytes.windows(2).any(|pair| pair == b"\r\n") {
        return text.clone();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => {
                out.extend_from_slice(line);
                out.push(b'\n');
            }
            None => out.extend_from_slice(line),
        }
    }
    out.into()
}

/// A context is a line without its terminator, and of CR LF a CR may be left of that.
fn without_cr(context: &RepoBytes) -> RepoBytes {
    match context.as_bytes().strip_suffix(b"\r") {
        Some(line) => line.into(),
        None => context.clone(),
    }
}

fn write_bytes<S: Serializer>(bytes: &RepoBytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&bytes.canonical())
}

fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RepoBytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map(RepoBytes::from).map_err(serde::de::Error::custom)
}

fn write_opt_bytes<S: Serializer>(
    bytes: &Option<RepoBytes>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    bytes.as_ref().map(RepoBytes::canonical).serialize(serializer)
}

fn read_opt_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RepoBytes>, D::Error> {
    Option::<String>::deserialize(deserializer)?
        .map(|text| STANDARD.decode(text).map(RepoBytes::from).map_err(serde::de::Error::custom))
        .transpose()
}
