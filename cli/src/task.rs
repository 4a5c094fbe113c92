//! One issue's journey: its names, its states and the only legal transitions.
//!
//! | from | to |
//! |---|---|
//! | `queued` | `running`, `in review`, `needs human`, `needs approval`, `possibly already fixed`, `cancelled` |
//! | `running` | `queued`, `in review`, `needs human`, `needs amendment`, `needs approval`, `possibly already fixed`, `cancelled` |
//! | `in review` | `queued`, `running`, `needs human`, `possibly already fixed`, `merging`, `approved, merge blocked`, `merged`, `cancelled` |
//! | `needs human` | `queued`, `running`, `in review`, `cancelled` |
//! | `needs amendment` | `queued`, `running`, `in review`, `cancelled` |
//! | `needs approval` | `queued`, `running`, `in review`, `cancelled` |
//! | `possibly already fixed` | `queued`, `running`, `in review`, `cancelled` |
//! | `merging` | `in review`, `needs human`, `possibly already fixed`, `approved, merge blocked`, `merged` |
//! | `approved, merge blocked` | `queued`, `running`, `in review`, `needs human`, `possibly already fixed`, `merging`, `merged`, `cancelled` |
//! | `merged`, `cancelled` | closed; nothing |
//!
//! A merge that has begun can't be cancelled: whether it happened has to be found out first. The
//! step from a review straight to `merged` is for a merge that is found to have happened already.
//! The store writes each transition with its reason and who caused it, and refuses all others.

use std::fmt;

use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new random one.
            #[must_use]
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// Reads the hyphenated lower-case form.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let id = Uuid::try_parse(text).ok()?;
                (id.hyphenated().to_string() == text).then_some(Self(id))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text)
                    .ok_or_else(|| serde::de::Error::custom("expected a lower-case uuid"))
            }
        }
    };
}

uuid_id!(
    /// A repository as codeboost knows it: made by `init`, shared by all its worktrees.
    RepositoryId
);
uuid_id!(
    /// A task.
    TaskId
);
uuid_id!(
    /// The plan of a task, through all its revisions.
    PlanId
);

/// Derives the names of the `nth` task (from 1) of an issue in a repository.
///
/// Two copies of one repository identity, such as a person's and that of CI, give the same task
/// the same names, so that a form made by one is accepted by the other.
#[must_use]
pub fn derive_ids(repository: RepositoryId, issue: u64, nth: u64) -> (TaskId, PlanId) {
    let derive = |kind: &str| {
        use sha2::Digest as _;
        let text = format!("codeboost-{kind}-v1\0{repository}\0{issue}\0{nth}");
        let digest = sha2::Sha256::digest(text.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    };
    (TaskId(derive("task")), PlanId(derive("plan")))
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Waits for its turn.
    Queued,
    /// An agent or a person carries out its plan.
    Running,
    /// Ready to be reviewed.
    InReview,
    /// Stopped for a cause that a person has to look at.
    NeedsHuman,
    /// The plan is wrong and a revision has to be approved.
    NeedsAmendment,
    /// A change of dependencies or scripts has to be approved.
    NeedsApproval,
    /// Something else seems to have fixed the issue.
    PossiblyFixed,
    /// A merge attempt is under way.
    Merging,
    /// Reviewed and asked to merge, but something outside keeps it from merging.
    MergeBlocked,
    /// Landed.
    Merged,
    /// Given up.
    Cancelled,
}

use TaskState::{
    Cancelled, InReview, MergeBlocked, Merged, Merging, NeedsAmendment, NeedsApproval, NeedsHuman,
    PossiblyFixed, Queued, Running,
};

impl TaskState {
    /// Every state, in the order of a task's life.
    pub const ALL: [Self; 11] = [
        Queued,
        Running,
        InReview,
        NeedsHuman,
        NeedsAmendment,
        NeedsApproval,
        PossiblyFixed,
        Merging,
        MergeBlocked,
        Merged,
        Cancelled,
    ];

    /// The contract's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Queued => "queued",
            Running => "running",
            InReview => "in review",
            NeedsHuman => "needs human",
            NeedsAmendment => "needs amendment",
            NeedsApproval => "needs approval",
            PossiblyFixed => "possibly already fixed",
            Merging => "merging",
            MergeBlocked => "approved, merge blocked",
            Merged => "merged",
            Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether the task is over for good.
    #[must_use]
    pub fn is_closed(self) -> bool {
        matches!(self, Merged | Cancelled)
    }

    /// Whether only a person can move the task on.
    #[must_use]
    pub fn waits_for_person(self) -> bool {
        matches!(self, NeedsHuman | NeedsAmendment | NeedsApproval | PossiblyFixed)
    }

    /// The states that may follow.
    #[must_use]
    pub fn next(self) -> &'static [Self] {
        match self {
            Queued => &[Running, InReview, NeedsHuman, NeedsApproval, PossiblyFixed, Cancelled],
            Running => &[
                Queued,
                InReview,
                NeedsHuman,
                NeedsAmendment,
                NeedsApproval,
                PossiblyFixed,
                Cancelled,
            ],
            InReview => &[
                Queued,
                Running,
                NeedsHuman,
                PossiblyFixed,
                Merging,
                MergeBlocked,
                Merged,
                Cancelled,
            ],
            NeedsHuman | NeedsAmendment | NeedsApproval | PossiblyFixed => {
                &[Queued, Running, InReview, Cancelled]
            }
            Merging => &[InReview, NeedsHuman, PossiblyFixed, MergeBlocked, Merged],
            MergeBlocked => {
                &[Queued, Running, InReview, NeedsHuman, PossiblyFixed, Merging, Merged, Cancelled]
            }
            Merged | Cancelled => &[],
        }
    }

    /// Whether `to` may follow.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        self.next().contains(&to)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl serde::Serialize for TaskState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// The name of the branch that codeboost makes for an issue: `codeboost/issue-412-retry-on-5xx`.
#[must_use]
pub fn branch_name(issue: u64, title: &str) -> String {
    let mut name = format!("codeboost/issue-{issue}");
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut n_chars = 0;
    for word in words {
        n_chars += word.len() + 1;
        if n_chars > 41 {
            break;
        }
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
    }
    name
}

/// Who caused a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The person at the terminal.
    Person,
    /// A reviewer, by the name under which their signature was checked.
    Reviewer(String),
    /// An agent, by its name.
    Agent(String),
    /// codeboost itself, following a rule.
    Codeboost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_contract_and_read_back() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::parse(state.word()), Some(state));
        }
        assert_eq!(TaskState::parse("In Review"), None);
    }

    #[test]
    fn the_table_above_lists_exactly_the_legal_transitions() {
        let source = include_str!("task.rs");
        for state in TaskState::ALL {
            let row = source
                .lines()
                .filter_map(|line| line.strip_prefix("//! | `"))
                .find(|line| line.split('|').next().is_some_and(|cell| cell.contains(state.word())))
                .expect("a row for each state");
            let words: Vec<_> = row
                .split('|')
                .nth(1)
                .expect("a second cell")
                .split('`')
                .skip(1)
                .step_by(2)
                .map(|word| TaskState::parse(word).expect("a state's word"))
                .collect();
            assert_eq!(words, state.next(), "{state}");
        }
    }

    #[test]
    fn closed_states_are_left_by_nothing_and_a_merge_is_not_cancelled() {
        for state in TaskState::ALL {
            assert_eq!(state.is_closed(), state.next().is_empty(), "{state}");
            assert!(!state.may_become(state), "{state}");
        }
        assert!(!Merging.may_become(Cancelled));
    }

    #[test]
    fn branches_are_named_by_number_and_whole_words_of_the_title() {
        assert_eq!(branch_name(412, "Retry on 5xx!"), "codeboost/issue-412-retry-on-5xx");
        assert_eq!(branch_name(1, "émoji 🎉 only…"), "codeboost/issue-1-moji-only");
        assert_eq!(branch_name(1, "../../x.lock"), "codeboost/issue-1-x-lock");
        assert_eq!(branch_name(1, "🎉"), "codeboost/issue-1");
        let long = branch_name(1, "word ".repeat(30).as_str());
        assert_eq!(long, format!("codeboost/issue-1{}", "-word".repeat(8)));
        assert_eq!(branch_name(1, &"x".repeat(99)), "codeboost/issue-1");
    }

    #[test]
    fn ids_are_lower_case_and_derived_ids_are_fixed() {
        let text = "0191d2f0-0000-4000-8000-00000000000a";
        assert_eq!(RepositoryId::parse(text).map(|id| id.to_string()).as_deref(), Some(text));
        assert_eq!(RepositoryId::parse(&text.to_uppercase()), None);
        assert_eq!(RepositoryId::parse(&text.replace('-', "")), None);
        let repository = RepositoryId::parse(text).expect("a uuid");
        let (task, plan) = derive_ids(repository, 412, 1);
        assert_eq!(derive_ids(repository, 412, 1), (task, plan));
        assert_ne!(task.to_string(), plan.to_string());
        assert_ne!(derive_ids(repository, 412, 2).0, task);
        assert_ne!(derive_ids(repository, 41, 21).0, task);
    }
}
