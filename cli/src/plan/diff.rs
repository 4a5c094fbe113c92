//! What changed from one plan to another, item by item, and which approvals that costs.

use std::collections::BTreeMap;

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Check, DeclaredFile, Item, Plan};
use serde::Serialize;

/// What changed between two plans. Items are matched by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanDiff {
    /// The summaries, when they differ.
    pub summary: Option<Texts>,
    /// Questions that only the new plan asks.
    pub new_questions: Vec<String>,
    /// Questions that only the old plan asks.
    pub gone_questions: Vec<String>,
    /// The order of the items that both have, when it differs.
    pub order: Option<Lists>,
    /// The items of the new plan in its order, then those that are gone.
    pub items: Vec<ItemDiff>,
}

/// A text before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Texts {
    /// In the old plan.
    pub before: String,
    /// In the new plan.
    pub after: String,
}

/// A list of ids before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lists {
    /// In the old plan.
    pub before: Vec<ItemId>,
    /// In the new plan.
    pub after: Vec<ItemId>,
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ItemDiff {
    /// Its id.
    pub id: ItemId,
    /// Its title; the old one for an item that is gone.
    pub title: String,
    /// Whether it is new, gone, changed or the same.
    pub status: Status,
    /// What changed in it.
    pub changes: Vec<Change>,
    /// What becomes of an approval of it.
    pub approval: Approval,
}

/// Whether an item is new, gone, changed or the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Only the new plan has it.
    New,
    /// Only the old plan has it.
    Gone,
    /// Its definition differs.
    Changed,
    /// Its definition is the same.
    Same,
}

/// What becomes of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "becomes", rename_all = "kebab-case")]
pub enum Approval {
    /// There was none.
    None,
    /// It stays.
    Kept,
    /// The definition that it covers is another.
    Definition,
    /// Items that it depends on changed.
    Dependency {
        /// Which.
        items: Vec<ItemId>,
    },
    /// Its item is gone.
    Gone,
}

impl Approval {
    /// Whether an approval would be lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            Self::None | Self::Kept => false,
            Self::Definition | Self::Dependency { .. } | Self::Gone => true,
        }
    }
}

/// One change inside an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// Another title.
    Title(Texts),
    /// Another intent.
    Intent(Texts),
    /// A file more.
    FileAdded {
        /// The declaration.
        file: DeclaredFile,
    },
    /// A file less.
    FileRemoved {
        /// The declaration.
        file: DeclaredFile,
    },
    /// The declaration of a path differs.
    FileChanged {
        /// The old declaration.
        before: DeclaredFile,
        /// The new declaration.
        after: DeclaredFile,
    },
    /// An acceptance entry more.
    CheckAdded {
        /// The entry.
        check: Check,
    },
    /// An acceptance entry less.
    CheckRemoved {
        /// The entry.
        check: Check,
    },
    /// The same files in another order.
    FileOrder,
    /// The same acceptance entries in another order.
    CheckOrder,
    /// Other dependencies.
    DependsOn(Lists),
}

/// Compares two plans.
#[must_use]
pub fn diff(before: &Plan, after: &Plan) -> PlanDiff {
    let mut items: Vec<ItemDiff> = after
        .items
        .iter()
        .map(|item| match before.item(&item.id) {
            None => ItemDiff::whole(item, Status::New, Approval::None),
            Some(old) => ItemDiff::of(old, item),
        })
        .collect();
    spread(after, &mut items);
    let gone = before.items.iter().filter(|item| after.item(&item.id).is_none());
    items.extend(gone.map(|item| ItemDiff::whole(item, Status::Gone, Approval::Gone)));
    let missing = |from: &[String], in_: &[String]| -> Vec<String> {
        from.iter().filter(|text| !in_.contains(text)).cloned().collect()
    };
    PlanDiff {
        summary: texts(&before.summary, &after.summary),
        new_questions: missing(&after.questions, &before.questions),
        gone_questions: missing(&before.questions, &after.questions),
        order: order(before, after),
        items,
    }
}

impl PlanDiff {
    /// Whether both plans say the same, apart from issue and revision.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.is_none()
            && self.new_questions.is_empty()
            && self.gone_questions.is_empty()
            && self.order.is_none()
            && self.items.iter().all(|item| item.status == Status::Same)
    }
}

impl ItemDiff {
    fn whole(item: &Item, status: Status, approval: Approval) -> Self {
        Self {
            id: item.id.clone(),
            title: item.title.clone(),
            status,
            changes: Vec::new(),
            approval,
        }
    }

    fn of(before: &Item, after: &Item) -> Self {
        let changes = changes(before, after);
        let (status, approval) = if before == after {
            (Status::Same, Approval::Kept)
        } else {
            (Status::Changed, Approval::Definition)
        };
        Self { changes, ..Self::whole(after, status, approval) }
    }
}

/// An approval falls with those of the items that it depends on, directly or not.
fn spread(plan: &Plan, items: &mut [ItemDiff]) {
    let mut lost: BTreeMap<&ItemId, Vec<ItemId>> = BTreeMap::new();
    for (item, diff) in plan.items.iter().zip(items) {
        let mut causes = Vec::new();
        for dependency in &item.depends_on {
            for cause in lost.get(dependency).into_iter().flatten() {
                if !causes.contains(cause) {
                    causes.push(cause.clone());
                }
            }
        }
        causes.sort();
        let mut mine = causes.clone();
        match diff.status {
            Status::New | Status::Changed => mine.push(item.id.clone()),
            Status::Same if !causes.is_empty() => {
                diff.approval = Approval::Dependency { items: causes };
            }
            Status::Same | Status::Gone => {}
        }
        lost.insert(&item.id, mine);
    }
}

fn texts(before: &str, after: &str) -> Option<Texts> {
    (before != after).then(|| Texts { before: before.to_owned(), after: after.to_owned() })
}

fn order(before: &Plan, after: &Plan) -> Option<Lists> {
    let shared = |of: &Plan, other: &Plan| -> Vec<ItemId> {
        of.items.iter().map(|i| &i.id).filter(|id| other.item(id).is_some()).cloned().collect()
    };
    let (before, after) = (shared(before, after), shared(after, before));
    (before != after).then_some(Lists { before, after })
}

fn changes(before: &Item, after: &Item) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(texts(&before.title, &after.title).map(Change::Title));
    changes.extend(texts(&before.intent, &after.intent).map(Change::Intent));
    let n_before_files = changes.len();
    let find = |files: &[DeclaredFile], path: &str| files.iter().find(|f| f.path == path).cloned();
    for file in &before.files {
        match find(&after.files, &file.path) {
            None => changes.push(Change::FileRemoved { file: file.clone() }),
            Some(after) if after != *file => {
                changes.push(Change::FileChanged { before: file.clone(), after });
            }
            Some(_) => {}
        }
    }
    for file in &after.files {
        if find(&before.files, &file.path).is_none() {
            changes.push(Change::FileAdded { file: file.clone() });
        }
    }
    if changes.len() == n_before_files && before.files != after.files {
        changes.push(Change::FileOrder);
    }
    let n_before_checks = changes.len();
    let mut left: Vec<&Check> = after.acceptance.iter().collect();
    for check in &before.acceptance {
        match left.iter().position(|other| *other == check) {
            Some(at) => drop(left.remove(at)),
            None => changes.push(Change::CheckRemoved { check: check.clone() }),
        }
    }
    changes.extend(left.into_iter().map(|check| Change::CheckAdded { check: check.clone() }));
    if changes.len() == n_before_checks && before.acceptance != after.acceptance {
        changes.push(Change::CheckOrder);
    }
    if before.depends_on != after.depends_on {
        changes.push(Change::DependsOn(Lists {
            before: before.depends_on.clone(),
            after: after.depends_on.clone(),
        }));
    }
    changes
}

#[cfg(test)]
mod tests {
    use codeboost_schema::plan::{CheckKind, FileKind};

    use super::*;

    fn example() -> Plan {
        let text = include_str!("../../../schema/examples/plan-412-r3.json");
        serde_json::from_str(text).expect("a plan")
    }

    fn check(change: impl FnOnce(&mut Plan), expected: &[(&str, Status, Approval)]) -> PlanDiff {
        let before = example();
        let mut after = before.clone();
        change(&mut after);
        let found = diff(&before, &after);
        let items: Vec<_> = found
            .items
            .iter()
            .map(|item| (item.id.as_str(), item.status, item.approval.clone()))
            .collect();
        assert_eq!(items, expected);
        found
    }

    fn id(text: &str) -> ItemId {
        ItemId::parse(text).expect("an id")
    }

    #[test]
    fn equal_plans_cost_nothing() {
        let same = |id| (id, Status::Same, Approval::Kept);
        let found = check(|plan| plan.revision = 4, &[same("P1"), same("P2"), same("P3")]);
        assert!(found.is_empty());
    }

    #[test]
    fn a_changed_item_costs_its_approval_and_those_of_its_dependents() {
        let found = check(
            |plan| {
                plan.items[0].files[1].kind = FileKind::Add;
                plan.items[0].acceptance.swap(0, 1);
            },
            &[
                ("P1", Status::Changed, Approval::Definition),
                ("P2", Status::Same, Approval::Kept),
                ("P3", Status::Same, Approval::Dependency { items: vec![id("P1")] }),
            ],
        );
        assert!(matches!(
            &found.items[0].changes[..],
            [Change::FileChanged { .. }, Change::CheckOrder]
        ));
    }

    #[test]
    fn new_and_gone_items_are_told() {
        let found = check(
            |plan| {
                let mut item = plan.items.remove(1);
                item.id = id("P7");
                item.title = "Something new".into();
                plan.items.insert(0, item);
                plan.items[2].depends_on = vec![id("P1"), id("P7")];
                plan.items[2].acceptance.push(Check { kind: CheckKind::Check, text: "new".into() });
                plan.questions.push("another?".into());
            },
            &[
                ("P7", Status::New, Approval::None),
                ("P1", Status::Same, Approval::Kept),
                ("P3", Status::Changed, Approval::Definition),
                ("P2", Status::Gone, Approval::Gone),
            ],
        );
        assert_eq!(found.new_questions, ["another?"]);
        assert!(matches!(
            &found.items[2].changes[..],
            [Change::CheckAdded { .. }, Change::DependsOn(_)]
        ));
    }

    #[test]
    fn another_order_is_told_and_costs_nothing() {
        let same = |id| (id, Status::Same, Approval::Kept);
        let found = check(|plan| plan.items.swap(0, 1), &[same("P2"), same("P1"), same("P3")]);
        assert_eq!(found.order.expect("an order").after, [id("P2"), id("P1"), id("P3")]);
    }
}
