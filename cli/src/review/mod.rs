//! The review of a task as it stands now: read from the state and from git, judged by the rules.
//!
//! Several stages need it, and stages don't use each other: `bundle` shows it, `apply` compares
//! decisions with it, `merge` asks its gate. Nothing here changes anything.
//!
//! | module | does |
//! |---|---|
//! | [`form`] | signs and checks approval forms |
//! | [`linking`] | links a range, with a progress bar |
//! | [`plan`] | the plan of a task with its threads, answers and suggestions |
//! | [`read`] | reads a review, whole |
//! | [`sources`] | what a review is made from, and what was made of the same before |
//!
//! [`Review::judge`] is a rule: everything comes in with [`Inputs`].

pub mod form;
pub mod linking;
pub mod plan;
pub mod read;
#[cfg(test)]
pub(crate) mod samples;
pub mod sources;

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::form::{ApprovalState, FormItem, FormSegments};
use codeboost_schema::ids::{Digest, ItemId, SegmentKey, Uuid};
use codeboost_schema::link::Link;
use codeboost_schema::plan::Plan;

use crate::approval::choice::{Choice, Choices, Place, Placed, place};
use crate::approval::fingerprint::{Binding, Snapshot};
use crate::approval::freshness::{Approved, Now, Reason, reasons};
use crate::approval::policy::{Policy, Reviewer, newest_of_each};
use crate::approval::since::{self, SinceFile};
use crate::config::EvidenceSource;
use crate::gate::{self, Blocker, CheckResult, Facts, ItemFacts, Tests, Tip};
use crate::store::{
    AcknowledgementRow, ApprovalRow, ChoiceRow, Made, NoteKind, NoteRow, NoteState, Rounds, TaskRow,
};

/// All that a review is judged from.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The repository.
    pub repository: Uuid,
    /// The task.
    pub task: TaskRow,
    /// The plan at the revision under review.
    pub plan: Plan,
    /// The changes of the task's base and head, linked with that plan.
    pub link: Link,
    /// Approvals that were not withdrawn, oldest first.
    pub approvals: Vec<ApprovalRow>,
    /// Choices that were not ended.
    pub choices: Vec<ChoiceRow>,
    /// Acknowledgements.
    pub acknowledgements: Vec<AcknowledgementRow>,
    /// Questions and change requests, oldest first.
    pub notes: Vec<NoteRow>,
    /// Rejections that sent change requests, oldest first.
    pub rejections: Vec<Made>,
    /// Review rounds and their problems.
    pub rounds: Rounds,
    /// Evidence of checks, oldest first.
    pub checks: Vec<CheckResult>,
    /// Where evidence counts.
    pub cmd_evidence: BTreeSet<EvidenceSource>,
    /// Whose decisions count.
    pub policy: Policy,
    /// Whether the base's branch still names the linked base.
    pub base: Tip,
    /// Whether the head's branch still names the linked head.
    pub head: Tip,
}

/// A judged review.
#[derive(Debug, Clone)]
pub struct Review {
    /// What it was judged from.
    pub inputs: Inputs,
    /// The choices in force.
    pub choices: Choices,
    /// Where each segment of the link stands.
    pub placed: Vec<Placed>,
    /// What an approval of each item would cover.
    pub now: Now,
    /// Every item of the plan, in its order.
    pub items: Vec<ItemState>,
    /// The tags that were acknowledged, by segment key.
    pub acknowledged: BTreeMap<SegmentKey, BTreeSet<String>>,
    /// All that forbids the merge.
    pub blockers: Vec<Blocker>,
}

/// Where one item stands.
#[derive(Debug, Clone)]
pub struct ItemState {
    /// Which item.
    pub item: ItemId,
    /// Its approval.
    pub state: ApprovalState,
    /// The newest approval of each reviewer that counts, and whether it is fresh.
    pub approvals: Vec<(ApprovalRow, bool)>,
    /// Its `cmd` checks.
    pub tests: Tests,
}

/// Why an item is stale.
#[derive(Debug, Clone)]
pub struct Explained {
    /// At least one.
    pub reasons: Vec<Reason>,
    /// What is there now against what was approved.
    pub since: Vec<SinceFile>,
}

impl Review {
    /// Judges.
    #[must_use]
    pub fn judge(inputs: Inputs) -> Self {
        let Inputs { link, plan, policy, .. } = &inputs;
        let choices: Choices = inputs
            .choices
            .iter()
            .filter(|row| policy.counts(&row.made.reviewer))
            .map(|row| (row.key.clone(), row.choice.clone()))
            .collect();
        let placed = place(link, plan, &choices);
        let now = Now::take(link, &placed, plan, |item| binding_of(&inputs, item));
        let mut acknowledged: BTreeMap<SegmentKey, BTreeSet<String>> = BTreeMap::new();
        for row in &inputs.acknowledgements {
            if policy.counts(&row.made.reviewer) {
                acknowledged.entry(row.key.clone()).or_default().insert(row.tag.clone());
            }
        }
        let items: Vec<_> = plan.items.iter().map(|item| judge_item(&inputs, &now, item)).collect();
        let mut this =
            Self { choices, placed, now, items, acknowledged, blockers: Vec::new(), inputs };
        this.blockers = gate::blockers(&this.facts());
        this
    }

    /// How many problems of an item are open.
    #[must_use]
    pub fn open_problems(&self, item: &ItemId) -> u32 {
        let open = self.inputs.rounds.open().filter(|problem| problem.item == *item);
        u32::try_from(open.count()).unwrap_or(u32::MAX)
    }

    fn facts(&self) -> Facts {
        let Inputs { task, link, notes, .. } = &self.inputs;
        let undecided = |place: &Place| {
            let here = self.placed.iter().zip(&link.segments);
            here.filter(|(p, _)| p.place == *place).map(|(_, segment)| segment.id).collect()
        };
        let pending = |item: &ItemId| {
            let open = notes.iter().filter(|note| is_pending(note) && note.item == *item);
            u32::try_from(open.count()).unwrap_or(u32::MAX)
        };
        Facts {
            task: (task.state, task.reason.clone()),
            base: self.inputs.base.clone(),
            head: self.inputs.head.clone(),
            items: self
                .items
                .iter()
                .map(|state| ItemFacts {
                    item: state.item.clone(),
                    approval: state.state,
                    tests: state.tests.clone(),
                    open_problems: self.open_problems(&state.item),
                    pending_requests: pending(&state.item),
                })
                .collect(),
            is_rejected: self
                .inputs
                .rejections
                .iter()
                .any(|made| made.revision >= self.inputs.plan.revision),
            ambiguous: undecided(&Place::Ambiguous),
            unplanned: undecided(&Place::Unplanned),
            unacknowledged: self
                .placed
                .iter()
                .zip(&link.segments)
                .filter(|(placed, _)| matches!(placed.place, Place::Item(_) | Place::Accepted))
                .flat_map(|(_, segment)| {
                    let missing = self.unacknowledged(segment.id);
                    missing.into_iter().map(move |tag| (segment.id, tag.to_owned()))
                })
                .collect(),
        }
    }

    /// The tags of a segment that must be acknowledged and were not.
    #[must_use]
    pub fn unacknowledged(&self, segment: u32) -> Vec<&'static str> {
        let n = segment as usize;
        let (Some(segment), Some(placed)) = (self.inputs.link.segments.get(n), self.placed.get(n))
        else {
            return Vec::new();
        };
        let known = self.acknowledged.get(&segment.key);
        let mut tags = placed.tags_to_acknowledge(segment);
        tags.retain(|tag| known.is_none_or(|known| !known.contains(*tag)));
        tags
    }

    /// The piece of work of an item.
    #[must_use]
    pub fn binding(&self, item: &ItemId) -> Binding {
        binding_of(&self.inputs, item)
    }

    /// The state of an item; `None` when the plan has no such item.
    #[must_use]
    pub fn item(&self, item: &ItemId) -> Option<&ItemState> {
        self.items.iter().find(|state| state.item == *item)
    }

    /// The segments that stand on an item's row, assigned ones included, by id.
    #[must_use]
    pub fn segments_of(&self, item: &ItemId) -> Vec<u32> {
        segments_of(&self.inputs.link, &self.placed, item)
    }

    /// Why each stale item is stale, from its newest stale approval.
    ///
    /// `snapshot`: reads a stored snapshot by the digest of its bytes.
    ///
    /// # Errors
    /// Whatever `snapshot` answers.
    pub fn explain<E>(
        &self,
        snapshot: impl Fn(&Digest) -> Result<Snapshot, E>,
    ) -> Result<BTreeMap<ItemId, Explained>, E> {
        let mut explained = BTreeMap::new();
        for state in self.items.iter().filter(|item| item.state == ApprovalState::Stale) {
            let stale = state.approvals.iter().filter(|(_, fresh)| !fresh).map(|(row, _)| row);
            let Some(row) = stale.max_by_key(|row| &row.made.at) else { continue };
            let then = snapshot(&row.snapshot)?;
            let since = self.now.snapshots.get(&state.item);
            explained.insert(
                state.item.clone(),
                Explained {
                    reasons: reasons(&approved(row), &then, &self.now, &self.inputs.link),
                    since: since.map_or_else(Vec::new, |now| since::compare(&then, now)),
                },
            );
        }
        Ok(explained)
    }

    /// The items as a form offers them.
    #[must_use]
    pub fn form_items(&self) -> BTreeMap<ItemId, FormItem> {
        self.items
            .iter()
            .filter_map(|state| {
                let fingerprint = self.now.fingerprints.get(&state.item)?.clone();
                Some((state.item.clone(), FormItem { fingerprint, state: state.state }))
            })
            .collect()
    }

    /// The segments as a form names them.
    #[must_use]
    pub fn form_segments(&self) -> FormSegments {
        form_segments(&self.inputs.link)
    }
}

/// The segments of a link as a form names them.
#[must_use]
pub fn form_segments(link: &Link) -> FormSegments {
    FormSegments::of(link.segments.iter().map(|segment| &segment.key))
}

/// The segments that stand on an item's row, by id.
#[must_use]
pub fn segments_of(link: &Link, placed: &[Placed], item: &ItemId) -> Vec<u32> {
    let here = link.segments.iter().zip(placed);
    here.filter(|(_, p)| p.item() == Some(item)).map(|(segment, _)| segment.id).collect()
}

/// The code that ends the text of an item: whoever gives it says to have read that text.
#[must_use]
pub fn seen_code(review: &Review, item: &ItemId) -> String {
    let fingerprint = review.now.fingerprints.get(item);
    fingerprint.map_or_else(String::new, |fingerprint| fingerprint.hex().to_owned())
}

/// Whether a note is a change request that waits to be sent.
#[must_use]
pub fn is_pending(note: &NoteRow) -> bool {
    note.kind == NoteKind::Request && note.state == NoteState::Open
}

/// An approval as the rules compare it.
#[must_use]
pub fn approved(row: &ApprovalRow) -> Approved {
    Approved {
        item: row.item.clone(),
        fingerprint: row.fingerprint.clone(),
        dependencies: row.dependencies.clone(),
        queue_replaced: None,
    }
}

/// The piece of work of an item.
#[must_use]
pub fn binding_of(inputs: &Inputs, item: &ItemId) -> Binding {
    Binding {
        repository: inputs.repository.clone(),
        task: uuid(&inputs.task.id),
        plan: uuid(&inputs.task.plan_id),
        item: item.clone(),
    }
}

/// A name of ours as contracts write it.
///
/// # Panics
/// Never: such names are written as lower-case UUIDs.
#[must_use]
pub fn uuid(name: &impl std::fmt::Display) -> Uuid {
    Uuid::parse(&name.to_string()).expect("names of tasks and plans are lower-case UUIDs")
}

fn judge_item(inputs: &Inputs, now: &Now, item: &codeboost_schema::plan::Item) -> ItemState {
    let policy = &inputs.policy;
    let counted = |row: &&ApprovalRow| row.item == item.id && policy.counts(&row.made.reviewer);
    let counted = inputs.approvals.iter().filter(counted).collect();
    let newest = newest_of_each(counted, |row: &&ApprovalRow| &row.made.reviewer);
    let approvals: Vec<(ApprovalRow, bool)> =
        newest.into_iter().map(|row| (row.clone(), approved(row).is_fresh(now))).collect();
    let state = policy.state(approvals.iter().map(|(row, fresh)| (&row.made.reviewer, *fresh)));
    let counted = |source| inputs.cmd_evidence.contains(&source);
    ItemState {
        item: item.id.clone(),
        state,
        approvals,
        tests: gate::tests(item, &inputs.checks, &inputs.link.head, counted),
    }
}

/// Who and when, for people: `A. Person <a@example.org>, 2026-11-30 12:00 UTC`.
#[must_use]
pub fn by(reviewer: &Reviewer, at: &str) -> String {
    let time = at.get(..16).unwrap_or(at).replace('T', " ");
    match reviewer {
        Reviewer::Terminal(name) => format!("{name}, {time} UTC"),
        Reviewer::Signed { name, .. } => format!("{name} (signed), {time} UTC"),
    }
}

/// A choice in words: `assigned to P2`, `accepted as it is`.
#[must_use]
pub fn choice_words(choice: &Choice) -> String {
    match choice {
        Choice::Assigned(item) => format!("assigned to {item}"),
        Choice::Accepted => "accepted as it is".to_owned(),
    }
}
