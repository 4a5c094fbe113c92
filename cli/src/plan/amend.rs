//! Amendments: the next revision from what turned out to be missing in this one.

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, Item, Plan};

use crate::plan::problem::Problem;
use crate::plan::v1::suggest::require_fine;

/// What a file's entry says where only its change is known.
pub const OWN_ITEM_TEXT: &str = "As it was changed already.";

/// What one item has to say besides what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The item.
    pub item: ItemId,
    /// Files that it declares from now on; an entry of the same path is replaced.
    pub files: Vec<DeclaredFile>,
    /// Its intent from now on; `None`: as before.
    pub intent: Option<String>,
}

/// The plan with these items saying more. Items that it does not have are left out.
#[must_use]
pub fn declare(plan: &Plan, declared: &[Declared]) -> Plan {
    let mut plan = plan.clone();
    for more in declared {
        let Some(item) = plan.items.iter_mut().find(|item| item.id == more.item) else { continue };
        for file in &more.files {
            match item.files.iter_mut().find(|old| old.path == file.path) {
                Some(old) => *old = file.clone(),
                None => item.files.push(file.clone()),
            }
        }
        if let Some(intent) = &more.intent {
            item.intent.clone_from(intent);
        }
    }
    plan
}

/// The plan with an item of its own for the files of each of these; `None` when a free name is
/// missing. The new items follow the last one.
#[must_use]
pub fn split(plan: &Plan, declared: &[Declared]) -> Option<Plan> {
    let mut plan = plan.clone();
    for more in declared {
        let id = (1..=999_u32)
            .filter_map(|number| ItemId::parse(&format!("P{number}")).ok())
            .find(|id| plan.item(id).is_none())?;
        let title = plan.item(&more.item).map_or("", |item| item.title.as_str());
        let title: String = format!("Split off {}: {title}", more.item).chars().take(120).collect();
        plan.items.push(Item {
            id,
            title,
            intent: format!("What {} changed beside its own files.", more.item),
            files: more.files.clone(),
            acceptance: vec![Check {
                kind: CheckKind::Check,
                text: "The change is wanted, and does what its files say.".to_owned(),
            }],
            depends_on: vec![more.item.clone()],
        });
    }
    Some(plan)
}

/// Holds an amended plan to the checks of its version.
///
/// `judge`: every problem of a plan that has the right shape.
///
/// # Errors
/// The failures.
pub fn require(made: &Plan, judge: impl Fn(&Plan) -> Vec<Problem>) -> Result<(), Vec<Problem>> {
    let version = crate::plan::judge::version_of(made).map_err(|problem| vec![*problem])?;
    require_fine(made, version, judge)
}
