//! Whose approvals count, and how many an item needs.
//!
//! One unnamed reviewer is the person at the terminal, and needs no signature. More than one, or
//! named ones, are told apart by the keys that signed: what anybody types as a name never counts.

use std::collections::BTreeSet;

use codeboost_schema::form::ApprovalState;
use serde::{Deserialize, Serialize};

/// Who must approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How many reviewers must approve each item; 1 or more.
    pub required: u32,
    /// Those whose approval counts; empty for anybody.
    pub named: BTreeSet<String>,
    /// Whether decisions count only with a signature, also of one unnamed reviewer.
    pub signatures: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { required: 1, named: BTreeSet::new(), signatures: false }
    }
}

/// Who decided, as far as that is proven.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reviewer {
    /// Whoever uses this repository's state; the name is for people.
    Terminal(String),
    /// The holder of a key that the allowed signers name.
    Signed(String),
}

impl Reviewer {
    /// The name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Terminal(name) | Self::Signed(name) => name,
        }
    }
}

impl Policy {
    /// Whether decisions count only with a signature.
    #[must_use]
    pub fn needs_signature(&self) -> bool {
        self.signatures || self.required > 1 || !self.named.is_empty()
    }

    /// Whether what this reviewer decides counts.
    #[must_use]
    pub fn counts(&self, reviewer: &Reviewer) -> bool {
        match reviewer {
            Reviewer::Terminal(_) => !self.needs_signature(),
            Reviewer::Signed(name) => self.named.is_empty() || self.named.contains(name),
        }
    }

    /// The key by which two decisions are known to be of one reviewer.
    ///
    /// All unsigned ones are of the one person at the terminal.
    #[must_use]
    pub fn identity<'a>(&self, reviewer: &'a Reviewer) -> Option<&'a str> {
        match reviewer {
            Reviewer::Terminal(_) => None,
            Reviewer::Signed(name) => Some(name),
        }
    }

    /// The state of an item, from the newest approval of each reviewer and whether it is fresh.
    #[must_use]
    pub fn state<'a>(
        &self,
        approvals: impl IntoIterator<Item = (&'a Reviewer, bool)>,
    ) -> ApprovalState {
        let mut fresh = BTreeSet::new();
        let mut stale = false;
        for (reviewer, is_fresh) in approvals {
            if !self.counts(reviewer) {
                continue;
            }
            if is_fresh {
                fresh.insert(self.identity(reviewer));
            } else {
                stale = true;
            }
        }
        if fresh.len() as u64 >= u64::from(self.required.max(1)) {
            ApprovalState::Approved
        } else if stale {
            ApprovalState::Stale
        } else {
            ApprovalState::Unreviewed
        }
    }

    /// What is asked for, for people; empty for the one person at the terminal.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.required > 1 {
            words.push(format!("{} reviewers must approve each item", self.required));
        }
        if !self.named.is_empty() {
            let names: Vec<_> = self.named.iter().map(String::as_str).collect();
            words.push(format!("only these approvals count: {}", names.join(", ")));
        }
        if self.needs_signature() {
            words.push("decisions count only with an SSH signature".into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(name: &str) -> Reviewer {
        Reviewer::Signed(name.into())
    }

    fn check(policy: &Policy, approvals: &[(Reviewer, bool)], expected: ApprovalState) {
        let state = policy.state(approvals.iter().map(|(who, fresh)| (who, *fresh)));
        assert_eq!(state, expected, "{policy:?} {approvals:?}");
    }

    #[test]
    fn one_reviewer_is_whoever_is_at_the_terminal() {
        let one = Policy::default();
        let me = Reviewer::Terminal("me".into());
        check(&one, &[], ApprovalState::Unreviewed);
        check(&one, &[(me.clone(), true)], ApprovalState::Approved);
        check(&one, &[(me, false)], ApprovalState::Stale);
        check(&one, &[(signed("a"), true)], ApprovalState::Approved);
    }

    #[test]
    fn two_reviewers_are_two_keys() {
        let two = Policy { required: 2, ..Policy::default() };
        let me = Reviewer::Terminal("me".into());
        check(&two, &[(me.clone(), true), (signed("a"), true)], ApprovalState::Unreviewed);
        check(&two, &[(signed("a"), true), (signed("a"), true)], ApprovalState::Unreviewed);
        check(&two, &[(signed("a"), true), (signed("b"), false)], ApprovalState::Stale);
        check(&two, &[(signed("a"), true), (signed("b"), true)], ApprovalState::Approved);
    }

    #[test]
    fn named_reviewers_are_the_only_ones() {
        let named = Policy { named: BTreeSet::from(["a".to_owned()]), ..Policy::default() };
        check(&named, &[(Reviewer::Terminal("a".into()), true)], ApprovalState::Unreviewed);
        check(&named, &[(signed("b"), true)], ApprovalState::Unreviewed);
        check(&named, &[(signed("a"), true)], ApprovalState::Approved);
    }
}
