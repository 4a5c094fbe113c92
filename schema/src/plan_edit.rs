//! Suggested edits to one revision of a plan: the answer of a plan assistant, format version 1.
//!
//! These types hold what satisfies `plan-edit.schema.json`. Whether an edit's fields fit its
//! operation, and whether its result is a valid plan, is judged by `plan` in the command line
//! package.

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::plan::{Check, DeclaredFile, Item};

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEdit {
    /// Always 1.
    pub schema_version: u32,
    /// The revision that the edits were made for.
    pub base_revision: u64,
    /// The answer in words; up to 4,000 characters.
    pub reply: String,
    /// Up to 10 edits, alternatives to each other.
    pub edits: Vec<Edit>,
}

/// One suggested edit. Fields that its operation doesn't use are null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// What it does.
    pub op: Op,
    /// The item that it changes; for `add_item` the new one.
    pub item: ItemId,
    /// What it does, in words; 1 to 160 characters.
    pub summary: String,
    /// Why; 1 to 400 characters.
    pub reason: String,
    /// For `set_field`.
    pub field: Option<Field>,
    /// For `set_field` the text, for `remove_file` the path; up to 1,200 characters.
    pub value: Option<String>,
    /// For `add_file` and `update_file`.
    pub file: Option<DeclaredFile>,
    /// For `add_check`.
    pub check: Option<Check>,
    /// For `remove_check`; counts from 0.
    pub check_index: Option<u64>,
    /// For `set_depends`.
    pub depends_on: Option<Vec<ItemId>>,
    /// For `add_item`.
    pub new_item: Option<Item>,
}

/// What a suggested edit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Appends `new_item`.
    AddItem,
    /// Removes the item.
    RemoveItem,
    /// Replaces `field` by `value`.
    SetField,
    /// Appends `file` to the item's files.
    AddFile,
    /// Replaces the file with the path of `file`.
    UpdateFile,
    /// Removes the file with the path `value`.
    RemoveFile,
    /// Appends `check` to the item's acceptance.
    AddCheck,
    /// Removes the acceptance entry `check_index`.
    RemoveCheck,
    /// Replaces the item's dependencies by `depends_on`.
    SetDepends,
}

/// The texts of an item that `set_field` can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The title.
    Title,
    /// The intent.
    Intent,
}
