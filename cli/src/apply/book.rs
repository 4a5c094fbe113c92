//! What becomes of each decision of one file, whatever it is about.
//!
//! Ids that were recorded before, contradictions and the order of application are the same for a
//! page of changes and for a page of a plan.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::answers::{Named, Refusal, Refused};
use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::decisions::{Action, Decision};
use codeboost_schema::ids::{Digest, ItemId, SegmentKey, Uuid};

use crate::apply::compare::Effect;
use crate::approval::choice::Choice;
use crate::approval::policy::{Policy, Reviewer};

/// What becomes of each decision.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What is to be recorded, in the order of application.
    pub steps: Vec<Step>,
    /// What was recorded before, in the file's order.
    pub already: Vec<Named>,
    /// What is refused, in the file's order.
    pub refused: Vec<Refused>,
}

/// One decision that is to be recorded.
#[derive(Debug, Clone)]
pub struct Step {
    /// The decision.
    pub decision: Decision,
    /// What follows from it.
    pub effect: Effect,
    /// For the log: `approved P1`.
    pub words: String,
}

/// A decision as reports name it.
#[must_use]
pub fn named(decision: &Decision) -> Named {
    Named { id: decision.id.clone(), kind: decision.action.word().to_owned() }
}

/// The decisions of one file, and what was found out about each.
#[derive(Debug)]
pub(super) struct Book<'a> {
    decisions: &'a [Decision],
    refused: BTreeMap<usize, Refused>,
    already: BTreeSet<usize>,
    accepted: Vec<Step>,
}

impl<'a> Book<'a> {
    /// Answers ids that were recorded before, and refuses what contradicts.
    ///
    /// `recorded`: the content of each decision that was recorded before, by id.
    pub(super) fn open(decisions: &'a [Decision], recorded: &BTreeMap<Uuid, Digest>) -> Self {
        let mut book = Self {
            decisions,
            refused: BTreeMap::new(),
            already: BTreeSet::new(),
            accepted: Vec::new(),
        };
        book.recorded_before(recorded);
        book.contradictions();
        book
    }

    /// The places of the decisions, in the order of application.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.decisions.len()).collect();
        order.sort_by_key(|n| step_of(&self.decisions[*n].action));
        order
    }

    /// Takes a decision.
    pub(super) fn accept(&mut self, n: usize, effect: Effect, words: String) {
        self.accepted.push(Step { decision: self.decisions[n].clone(), effect, words });
    }

    /// The outcome.
    pub(super) fn close(mut self) -> Judgement {
        let order = self.decisions.iter().enumerate();
        Judgement {
            already: order
                .clone()
                .filter(|(n, _)| self.already.contains(n))
                .map(|(_, decision)| named(decision))
                .collect(),
            refused: order.filter_map(|(n, _)| self.refused.remove(&n)).collect(),
            steps: self.accepted,
        }
    }

    pub(super) fn refuse(&mut self, n: usize, why: Why) {
        let decision = &self.decisions[n];
        self.refused.insert(
            n,
            Refused {
                id: decision.id.clone(),
                kind: decision.action.word().to_owned(),
                reason: why.reason,
                cause: why.cause,
                what: why.what,
                before: why.before,
                after: why.after,
            },
        );
    }

    pub(super) fn is_open(&self, n: usize) -> bool {
        !self.refused.contains_key(&n) && !self.already.contains(&n)
    }

    /// Answers ids that were recorded before, and ids that stand twice in the file.
    fn recorded_before(&mut self, recorded: &BTreeMap<Uuid, Digest>) {
        let mut first: BTreeMap<&Uuid, usize> = BTreeMap::new();
        for (n, decision) in self.decisions.iter().enumerate() {
            let reused = |id: &Uuid| {
                Why::new(Refusal::IdReused, format!("the id {id} stands for another decision"))
            };
            if let Some(content) = recorded.get(&decision.id) {
                if *content == decision.content {
                    self.already.insert(n);
                } else {
                    self.refuse(n, reused(&decision.id));
                }
            } else if let Some(other) = first.insert(&decision.id, n) {
                if self.decisions[other].content == decision.content {
                    self.already.insert(n);
                    first.insert(&decision.id, other);
                } else {
                    self.refuse(n, reused(&decision.id));
                    if self.is_open(other) {
                        self.refuse(other, reused(&decision.id));
                    }
                }
            }
        }
    }

    /// Refuses both of each pair that says the opposite.
    fn contradictions(&mut self) {
        let mut pairs = Pairs::default();
        for (n, decision) in self.decisions.iter().enumerate() {
            if self.is_open(n) {
                pairs.add(n, &decision.action);
            }
        }
        for (n, other) in pairs.found() {
            let other = &self.decisions[other];
            let what = format!("contradicts {} {} in the same file", other.action.word(), other.id);
            self.refuse(n, Why::new(Refusal::Contradiction, what));
        }
    }
}

/// Why one decision is refused, before it gets its id.
#[derive(Debug)]
pub(super) struct Why {
    pub(super) reason: Refusal,
    pub(super) cause: Option<String>,
    pub(super) what: String,
    pub(super) before: Option<RepoBytes>,
    pub(super) after: Option<RepoBytes>,
}

impl Why {
    pub(super) fn new(reason: Refusal, what: impl Into<String>) -> Self {
        Self { reason, cause: None, what: what.into(), before: None, after: None }
    }

    pub(super) fn stale(cause: &str, what: impl Into<String>) -> Self {
        Self { cause: Some(cause.to_owned()), ..Self::new(Refusal::Stale, what) }
    }

    pub(super) fn bytes(self, before: Option<RepoBytes>, after: Option<RepoBytes>) -> Self {
        Self { before, after, ..self }
    }
}

/// The steps of one file, in the order of application.
pub(super) fn step_of(action: &Action) -> u8 {
    match action {
        Action::Withdraw { .. } | Action::Unresolve { .. } => 0,
        Action::Acknowledge { .. } => 1,
        Action::Assign { .. } | Action::Accept { .. } => 2,
        Action::Approve { .. } | Action::ConfirmNoChange { .. } => 3,
        Action::RequestChange { .. }
        | Action::WithdrawRequest { .. }
        | Action::Ask { .. }
        | Action::Problem { .. }
        | Action::Finding { .. } => 4,
        Action::PlanComment { .. }
        | Action::PlanReply { .. }
        | Action::PlanResolve { .. }
        | Action::PlanReopen { .. } => 5,
        Action::AnswerQuestion { .. } => 6,
        Action::DismissSuggestion { .. } => 7,
        Action::ApplySuggestion { .. } => 8,
        Action::PlanApprove { .. } => 9,
        Action::Queue { .. } | Action::TrustIssue { .. } | Action::Lesson { .. } => 10,
        Action::ResolveState { .. } => 11,
        Action::Reject { .. } => 12,
        Action::Merge {} => 13,
    }
}

/// Finds decisions that say the opposite of each other.
#[derive(Default)]
struct Pairs<'d> {
    merges: Vec<usize>,
    against_merge: Vec<usize>,
    approvals: Vec<(&'d ItemId, usize)>,
    withdrawals: Vec<(&'d ItemId, usize)>,
    suggestions: Vec<usize>,
    plan_approvals: Vec<usize>,
    choices: BTreeMap<&'d SegmentKey, Vec<(Option<Choice>, usize)>>,
}

impl<'d> Pairs<'d> {
    fn add(&mut self, n: usize, action: &'d Action) {
        match action {
            Action::Merge {} => self.merges.push(n),
            Action::RequestChange { .. } | Action::Reject { .. } => self.against_merge.push(n),
            Action::ResolveState { action, .. } if action == "cancel" => self.against_merge.push(n),
            Action::Approve { item } | Action::ConfirmNoChange { item } => {
                self.approvals.push((item, n));
            }
            Action::Withdraw { item } => self.withdrawals.push((item, n)),
            Action::ApplySuggestion { .. } => self.suggestions.push(n),
            Action::PlanApprove { .. } => self.plan_approvals.push(n),
            _ => {}
        }
        if let Some((key, choice)) = choice_of(action) {
            self.choices.entry(key).or_default().push((choice, n));
        }
    }

    /// Each decision that has an opposite, with the first one that says it.
    fn found(self) -> BTreeMap<usize, usize> {
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        let mut pair = |a: usize, b: usize| {
            found.entry(a).or_insert(b);
            found.entry(b).or_insert(a);
        };
        let sides =
            [(&self.merges, &self.against_merge), (&self.suggestions, &self.plan_approvals)];
        for (a, b) in sides {
            if let (Some(first_a), Some(first_b)) = (a.first(), b.first()) {
                a.iter().for_each(|n| pair(*n, *first_b));
                b.iter().for_each(|n| pair(*n, *first_a));
            }
        }
        for (item, n) in &self.approvals {
            for (other, m) in &self.withdrawals {
                if item == other {
                    pair(*n, *m);
                }
            }
        }
        for choices in self.choices.into_values() {
            for (choice, n) in &choices {
                if let Some((_, m)) = choices.iter().find(|(other, _)| other != choice) {
                    pair(*n, *m);
                }
            }
        }
        found
    }
}

/// The choice that a decision makes: `None` inside for taking it back.
fn choice_of(action: &Action) -> Option<(&SegmentKey, Option<Choice>)> {
    match action {
        Action::Assign { key, item, .. } => Some((key, Some(Choice::Assigned(item.clone())))),
        Action::Accept { key, .. } => Some((key, Some(Choice::Accepted))),
        Action::Unresolve { key, .. } => Some((key, None)),
        _ => None,
    }
}

pub(super) fn too_long(text: &str, max: usize) -> Why {
    let n = text.chars().count();
    Why::new(Refusal::TooLong, format!("{n} characters, more than the {max} allowed"))
}

/// Requires that this reviewer may decide this.
pub(super) fn authorized(policy: &Policy, reviewer: &Reviewer, action: &Action) -> Result<(), Why> {
    // Words alone decide nothing.
    let is_talk = matches!(
        action,
        Action::Ask { .. } | Action::PlanComment { .. } | Action::PlanReply { .. }
    );
    if is_talk || policy.counts(reviewer) {
        return Ok(());
    }
    let what = match reviewer {
        Reviewer::Terminal(_) => format!("needs a signature: {}", policy.words().join("; ")),
        Reviewer::Signed { name, .. } => format!("{name} is not one of the reviewers that count"),
    };
    Err(Why::new(Refusal::NotAuthorized, what))
}
