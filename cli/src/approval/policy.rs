//! Whose approvals count, and how many an item needs.
//!
//! One unnamed reviewer is the person at the terminal, and needs no signature. More than one, or
//! named ones, are told apart by the keys that signed: what anybody types as a name never counts,
//! and a key that the allowed signers name anew stays the reviewer that it was.

use std::collections::BTreeSet;

use codeboost_schema::form::ApprovalState;
use serde::{Deserialize, Serialize};

/// Who must approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    Signed {
        /// The principal, as the allowed signers named it then.
        name: String,
        /// The fingerprint of the key, as `SHA256:…`; `None` in records from before it was kept.
        key: Option<String>,
    },
}

impl Reviewer {
    /// The name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Terminal(name) | Self::Signed { name, .. } => name,
        }
    }

    /// The key that signed, where one did and is known.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Terminal(_) => None,
            Self::Signed { key, .. } => key.as_deref(),
        }
    }

    /// Whether both may be one person: the same key under two names, or one name with two keys.
    ///
    /// All that is not signed is of the one person at the terminal.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Terminal(_), Self::Terminal(_)) => true,
            (Self::Signed { name: a, key: k }, Self::Signed { name: b, key: l }) => {
                a == b || k.is_some() && k == l
            }
            _ => false,
        }
    }
}

/// The newest of each reviewer, in the order given, which is from old to new.
///
/// A key goes by the name that it signed under last. So neither two names of one key nor two keys
/// of one name are two reviewers.
#[must_use]
pub fn newest_of_each<T>(all: Vec<T>, who: impl Fn(&T) -> &Reviewer) -> Vec<T> {
    let by_key = newest(all, |a, b| who(a).key().is_some() && who(a).key() == who(b).key());
    newest(by_key, |a, b| match (who(a), who(b)) {
        (Reviewer::Terminal(_), Reviewer::Terminal(_)) => true,
        (Reviewer::Signed { name: a, .. }, Reviewer::Signed { name: b, .. }) => a == b,
        _ => false,
    })
}

fn newest<T>(all: Vec<T>, are_of_one: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        kept.retain(|known| !are_of_one(known, &one));
        kept.push(one);
    }
    kept
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
            Reviewer::Signed { name, .. } => self.named.is_empty() || self.named.contains(name),
        }
    }

    /// The state of an item, from the newest approval of each reviewer and whether it is fresh.
    #[must_use]
    pub fn state<'a>(
        &self,
        approvals: impl IntoIterator<Item = (&'a Reviewer, bool)>,
    ) -> ApprovalState {
        let mut fresh = Vec::new();
        let mut stale = false;
        for (reviewer, is_fresh) in approvals {
            if !self.counts(reviewer) {
                continue;
            }
            if is_fresh {
                fresh.push(reviewer);
            } else {
                stale = true;
            }
        }
        if newest_of_each(fresh, |reviewer| reviewer).len() as u64
            >= u64::from(self.required.max(1))
        {
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
        by_key(name, name)
    }

    fn by_key(name: &str, key: &str) -> Reviewer {
        Reviewer::Signed { name: name.into(), key: Some(key.into()) }
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
    fn one_key_under_two_names_and_one_name_with_two_keys_are_one_reviewer() {
        let two = Policy { required: 2, ..Policy::default() };
        let three = Policy { required: 3, ..Policy::default() };
        let old = |name: &str| Reviewer::Signed { name: name.into(), key: None };
        let one = [(by_key("alice", "1"), true), (by_key("bob", "1"), true)];
        check(&two, &one, ApprovalState::Unreviewed);
        let one = [(by_key("alice", "1"), true), (by_key("alice", "2"), true)];
        check(&two, &one, ApprovalState::Unreviewed);
        // What a key was called once links nobody who has another key.
        let again = ["alice", "bob", "alice"].map(|name| (by_key(name, "1"), true));
        check(&two, &again, ApprovalState::Unreviewed);
        let other = [again.as_slice(), &[(by_key("bob", "2"), true)]].concat();
        check(&two, &other, ApprovalState::Approved);
        check(&three, &other, ApprovalState::Unreviewed);
        // Records from before keys were kept count by name.
        check(&two, &[(old("a"), true), (by_key("a", "1"), true)], ApprovalState::Unreviewed);
        check(&two, &[(old("a"), true), (old("b"), true)], ApprovalState::Approved);
        let mixed = [(old("a"), true), (old("b"), true), (by_key("c", "1"), true)];
        check(&three, &mixed, ApprovalState::Approved);
    }

    #[test]
    fn named_reviewers_are_the_only_ones() {
        let named = Policy { named: BTreeSet::from(["a".to_owned()]), ..Policy::default() };
        check(&named, &[(Reviewer::Terminal("a".into()), true)], ApprovalState::Unreviewed);
        check(&named, &[(signed("b"), true)], ApprovalState::Unreviewed);
        check(&named, &[(signed("a"), true)], ApprovalState::Approved);
    }
}
