//! Row and scope: who made a segment, and whether it lies in files that its maker declared.
//!
//! | made by | row | scope |
//! |---|---|---|
//! | a commit without an item, with or without others | unplanned | unplanned |
//! | commits of several items | ambiguous | ambiguous |
//! | commits of one item | the item's | in, or out when a path is not declared |
//!
//! Source: contracts, "link.json", row and scope; the table of the design.

use std::collections::{BTreeSet, HashMap};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::ledger::{Ledger, Origin};
use codeboost_schema::link::{Row, Scope};
use codeboost_schema::plan::Plan;

use crate::ledger;
use crate::link::history::History;
use crate::link::kept::Writer;
use crate::link::replay::Node;

/// What the ledger says about one commit of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Maker {
    /// Place in the plan; `None` for nobody.
    item: Option<u32>,
    is_adopted: bool,
    is_conflict_agent: bool,
}

/// Judges segments.
pub(crate) struct Places<'a> {
    items: Vec<&'a ItemId>,
    declared: HashMap<&'a [u8], Vec<u32>>,
    makers: Vec<Maker>,
}

/// Everything about a segment that follows from who made it where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) row: Row,
    pub(crate) owners: Vec<ItemId>,
    pub(crate) is_foreign: bool,
    pub(crate) scope: Scope,
    pub(crate) scope_owner: BTreeSet<ItemId>,
    pub(crate) shared_file: BTreeSet<ItemId>,
    pub(crate) is_adopted: bool,
    pub(crate) is_conflict_agent: bool,
}

impl Place {
    /// Whether two neighbours belong to one segment.
    pub(crate) fn joins(&self, other: &Self) -> bool {
        self.row == other.row
            && self.owners == other.owners
            && self.is_foreign == other.is_foreign
            && self.scope == other.scope
            && self.is_adopted == other.is_adopted
            && self.is_conflict_agent == other.is_conflict_agent
    }
}

/// A ledger that does not fit the plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ledger gives commit {commit} to {item}, which the plan does not have")]
pub struct UnknownItem {
    /// The commit.
    pub commit: CommitId,
    /// The item.
    pub item: ItemId,
}

impl<'a> Places<'a> {
    pub(crate) fn new(
        history: &History,
        plan: &'a Plan,
        given: &Ledger,
    ) -> Result<Self, UnknownItem> {
        let mut places = HashMap::new();
        let mut declared: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for (item, n) in plan.items.iter().zip(0..) {
            places.insert(&item.id, n);
            for path in item.files.iter().flat_map(|file| file.paths()) {
                let items = declared.entry(path.as_bytes()).or_default();
                if !items.contains(&n) {
                    items.push(n);
                }
            }
        }
        let mut makers = Vec::with_capacity(history.commits.len());
        for commit in &history.commits {
            let entry = given.commits.get(&commit.id);
            let item = match entry.and_then(|entry| entry.item.as_ref()) {
                Some(item) => Some(*places.get(item).ok_or_else(|| UnknownItem {
                    commit: commit.id.clone(),
                    item: item.clone(),
                })?),
                None => None,
            };
            makers.push(Maker {
                item,
                is_adopted: ledger::descends_from(given, &commit.id, Origin::Adopted),
                is_conflict_agent: entry.is_some_and(|e| e.origin == Origin::ConflictAgent),
            });
        }
        Ok(Self { items: plan.items.iter().map(|item| &item.id).collect(), declared, makers })
    }

    /// Judges what these nodes made in a file that ends at `paths`.
    pub(crate) fn judge(&self, nodes: &[&Node], paths: &[&RepoPath]) -> Place {
        let makers = nodes.iter().map(|node| &self.makers[node.commit as usize]);
        let mut owners: Vec<u32> = makers.clone().filter_map(|maker| maker.item).collect();
        owners.sort_unstable();
        owners.dedup();
        let is_foreign = makers.clone().any(|maker| maker.item.is_none());
        let mut place = Place {
            row: Row::Unplanned,
            owners: owners.iter().map(|n| self.items[*n as usize].clone()).collect(),
            is_foreign,
            scope: Scope::Unplanned,
            scope_owner: BTreeSet::new(),
            shared_file: BTreeSet::new(),
            is_adopted: makers.clone().any(|maker| maker.is_adopted),
            is_conflict_agent: makers.clone().any(|maker| maker.is_conflict_agent),
        };
        place.owners.sort();
        match owners.as_slice() {
            [item] if !is_foreign => {
                place.row = Row::Item(self.items[*item as usize].clone());
                let judged = nodes.iter().flat_map(|node| &node.paths);
                let is_declared = |path: &RepoPath| self.declaring(path).contains(item);
                let is_in = judged.clone().all(is_declared);
                place.scope = if is_in { Scope::In } else { Scope::Out };
                let others = judged
                    .chain(paths.iter().copied())
                    .flat_map(|path| self.declaring(path))
                    .filter(|other| *other != item)
                    .map(|other| self.items[*other as usize].clone());
                if is_in {
                    place.shared_file = others.collect();
                } else {
                    place.scope_owner = others.collect();
                }
            }
            [_, _, ..] if !is_foreign => {
                place.row = Row::Ambiguous;
                place.scope = Scope::Ambiguous;
            }
            _ => {}
        }
        place
    }

    /// Writes all that a judgement may take from a commit.
    pub(crate) fn write_maker(&self, commit: u32, out: &mut Writer) {
        let Maker { item, is_adopted, is_conflict_agent } = self.makers[commit as usize];
        out.bytes(item.map_or(b"", |n| self.items[n as usize].as_str().as_bytes()));
        out.flag(is_adopted);
        out.flag(is_conflict_agent);
    }

    /// Writes all that a judgement may take from a path.
    pub(crate) fn write_declaring(&self, path: &RepoPath, out: &mut Writer) {
        let items = self.declaring(path);
        out.number(items.len());
        for item in items {
            out.bytes(self.items[*item as usize].as_str().as_bytes());
        }
    }

    fn declaring(&self, path: &RepoPath) -> &[u32] {
        self.declared.get(path.as_bytes()).map_or(&[], Vec::as_slice)
    }
}
