//! Who made each commit: `ledger.json`. The only proof of ownership there is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{CommitId, ItemId};

/// The ledger of one task. A commit that is not in it is foreign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Always 1.
    pub schema_version: u32,
    /// One entry per commit that codeboost knows of.
    pub commits: BTreeMap<CommitId, Entry>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { schema_version: 1, commits: BTreeMap::new() }
    }
}

/// Who made one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Full")]
pub struct Entry {
    /// The item that the commit was made for; `None` for nobody.
    pub item: Option<ItemId>,
    /// How codeboost knows.
    pub origin: Origin,
    /// The source commit, for `rebased` and `conflict-agent`.
    pub from: Option<CommitId>,
    /// The item that a later revision removed; then `item` is `None`.
    pub was: Option<ItemId>,
}

impl Entry {
    /// An entry without source and without a removed item.
    #[must_use]
    pub fn new(item: Option<ItemId>, origin: Origin) -> Self {
        Self { item, origin, from: None, was: None }
    }
}

/// How codeboost knows who made a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// codeboost made the commit.
    Runner,
    /// A person vouched for it.
    Adopted,
    /// A rebase rewrote it from another commit.
    Rebased,
    /// An agent resolved a conflict while a rebase rewrote it.
    ConflictAgent,
    /// Somebody else made it.
    Foreign,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Wire {
    Short(Option<ItemId>),
    Full(Full),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    item: Option<ItemId>,
    origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<ItemId>,
}

impl From<Wire> for Entry {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Short(Some(item)) => Self::new(Some(item), Origin::Adopted),
            Wire::Short(None) => Self::new(None, Origin::Foreign),
            Wire::Full(full) => {
                Self { item: full.item, origin: full.origin, from: full.from, was: full.was }
            }
        }
    }
}

impl From<Entry> for Full {
    fn from(entry: Entry) -> Self {
        Self { item: entry.item, origin: entry.origin, from: entry.from, was: entry.was }
    }
}
