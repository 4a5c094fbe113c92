//! The plan of one issue at one revision: `plan.yaml` or `plan.json`, format version 1.
//!
//! These types hold a plan that was already read strictly and validated; reading is the work of
//! `plan` in the command line package, because it needs places in the source text.

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::ids::{Digest, ItemId};

/// A whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always 1.
    pub schema_version: u32,
    /// Number of the issue, 1 or more.
    pub issue: u64,
    /// Revision, 1 or more; set by codeboost on import.
    pub revision: u64,
    /// What the plan does; 1 to 600 characters.
    pub summary: String,
    /// 1 to 30 items, in the order they run.
    pub items: Vec<Item>,
    /// Up to 10 open questions for the reviewer.
    pub questions: Vec<String>,
}

impl Plan {
    /// Digest of the parsed plan in canonical form: equal for YAML and JSON of one plan.
    #[must_use]
    pub fn digest(&self) -> Digest {
        canonical::digest(self)
    }

    /// The item of that id.
    #[must_use]
    pub fn item(&self, id: &ItemId) -> Option<&Item> {
        self.items.iter().find(|item| item.id == *id)
    }
}

/// One change with an id of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// `P1` to `P999`, unique in the plan.
    pub id: ItemId,
    /// 1 to 120 characters.
    pub title: String,
    /// Why the item exists; 1 to 600 characters.
    pub intent: String,
    /// Every file that the item adds, edits, renames or deletes; 1 to 40.
    pub files: Vec<DeclaredFile>,
    /// How to check the item; 1 to 10.
    pub acceptance: Vec<Check>,
    /// Earlier items that must be done first.
    pub depends_on: Vec<ItemId>,
}

/// A file that an item may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFile {
    /// From the root of the repository; for a rename the new path.
    pub path: String,
    /// What happens to the file.
    pub kind: FileKind,
    /// The old path of a rename, else null.
    pub renamed_from: Option<String>,
    /// What changes in the file, in words; 1 to 1,200 characters.
    pub change: String,
}

impl DeclaredFile {
    /// The declared paths: `path`, and `renamed_from` where it is set.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.renamed_from.as_deref())
    }
}

/// What happens to a declared file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// The file exists and changes.
    Edit,
    /// The file is new.
    Add,
    /// The file goes away.
    Delete,
    /// The file moves from `renamed_from` to `path`.
    Rename,
}

/// One entry of an item's acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Who checks it.
    #[serde(rename = "type")]
    pub kind: CheckKind,
    /// The command, or the statement; 1 to 400 characters.
    pub text: String,
}

/// Who checks an acceptance entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// codeboost runs the command; it passes with exit code 0.
    Cmd,
    /// A statement that a reviewer judges.
    Check,
}
