//! Issues: which come first and why, whose words are trusted.
//!
//! | signal | points |
//! |---|---|
//! | label `P0`, `P1`, `P2`, `P3` (the highest one) | 100, 75, 50, 25 |
//! | label `security` | 40 |
//! | label `bug` | 20 |
//! | positive reactions | 1 each, at most 20 |
//! | comments | 1 each, at most 10 |
//! | age | 1 per 30 days, at most 12 |
//!
//! Title, text, other labels and trust never count: nobody can write an issue to the top.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An open issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number.
    pub number: u64,
    /// Its title, as written.
    pub title: String,
    /// Who wrote it; `None` when the account is gone.
    pub author: Option<Person>,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// How many reactions say yes: thumbs up, heart, hooray, rocket.
    pub reactions: u64,
    /// How many comments it has.
    pub comments: u64,
    /// When it was opened.
    #[serde(with = "crate::github::time")]
    pub opened_at: Timestamp,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Person {
    /// Never changes, whatever the name becomes.
    pub id: u64,
    /// The name, which can change hands.
    pub login: String,
}

/// An issue's place among the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// The sum of the points.
    pub score: u64,
    /// Where they come from, for people, in the order of the table: `75 points: P1 priority label`.
    pub reasons: Vec<String>,
}

const DAYS_PER_POINT: i64 = 30;

/// The points of an issue at a moment.
#[must_use]
pub fn rank(issue: &Issue, now: Timestamp) -> Rank {
    let mut rank = Rank { score: 0, reasons: Vec::new() };
    let mut add = |points: u64, why: String| {
        if points > 0 {
            let plural = if points == 1 { "" } else { "s" };
            rank.score += points;
            rank.reasons.push(format!("{points} point{plural}: {why}"));
        }
    };
    let has = |name: &str| issue.labels.iter().any(|label| label.eq_ignore_ascii_case(name));
    for (label, points) in [("P0", 100), ("P1", 75), ("P2", 50), ("P3", 25)] {
        if has(label) {
            add(points, format!("{label} priority label"));
            break;
        }
    }
    for (label, points) in [("security", 40), ("bug", 20)] {
        if has(label) {
            add(points, format!("{label} label"));
        }
    }
    let capped = |n: u64, cap: u64| if n > cap { format!(" (cap {cap})") } else { String::new() };
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let reactions = issue.reactions;
    add(
        reactions.min(20),
        format!("{}{}", count(reactions, "positive reaction"), capped(reactions, 20)),
    );
    add(
        issue.comments.min(10),
        format!("{}{}", count(issue.comments, "comment"), capped(issue.comments, 10)),
    );
    let days = now.duration_since(issue.opened_at).as_secs() / (24 * 60 * 60);
    let months = u64::try_from(days / DAYS_PER_POINT).unwrap_or(0);
    let days = u64::try_from(days).unwrap_or(0);
    add(months.min(12), format!("{} old{}", count(days, "day"), capped(months, 12)));
    rank
}

/// All issues with their rank: most points first, then the oldest, then the lowest number.
///
/// The order in which they come in makes no difference.
#[must_use]
pub fn ranked(issues: &[Issue], now: Timestamp) -> Vec<(Rank, &Issue)> {
    let mut all: Vec<_> = issues.iter().map(|issue| (rank(issue, now), issue)).collect();
    all.sort_by_key(|(rank, issue)| (Reverse(rank.score), issue.opened_at, issue.number));
    all
}

/// What was read of a repository's issues at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Every open issue, by number.
    pub issues: Vec<Issue>,
    /// Who could push, by account id; or why that could not be told.
    pub collaborators: Collaborators,
}

/// Whether the words of an issue may be followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "trust", rename_all = "kebab-case")]
pub enum Trust {
    /// Its author may push to the repository.
    Collaborator,
    /// A person said so, for this issue of this author.
    Explicit,
    /// Neither.
    Untrusted {
        /// Why, for people.
        why: String,
    },
    /// Who may push can't be told.
    Unknown {
        /// Why, for people.
        why: String,
    },
}

impl Trust {
    /// Whether it is trusted. Unknown is not.
    #[must_use]
    pub fn is_given(&self) -> bool {
        matches!(self, Self::Collaborator | Self::Explicit)
    }

    /// One word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Collaborator => "collaborator",
            Self::Explicit => "trusted",
            Self::Untrusted { .. } => "untrusted",
            Self::Unknown { .. } => "unknown",
        }
    }
}

/// Who may push, by account id; or why that can't be told.
pub type Collaborators = Result<BTreeSet<u64>, String>;

/// Whether an issue's words may be followed.
///
/// `explicit`: the author whom a person trusted for this issue, by account id. A name that changed
/// hands, and a transferred issue with another author, is not what they trusted.
#[must_use]
pub fn trust(
    author: Option<&Person>,
    collaborators: &Collaborators,
    explicit: Option<u64>,
) -> Trust {
    let Some(author) = author else {
        return Trust::Untrusted { why: "its author's account is gone".into() };
    };
    match (collaborators, explicit) {
        (Ok(all), _) if all.contains(&author.id) => Trust::Collaborator,
        (_, Some(id)) if id == author.id => Trust::Explicit,
        (_, Some(_)) => {
            Trust::Untrusted { why: format!("trusted with another author than {}", author.login) }
        }
        (Ok(_), None) => Trust::Untrusted { why: format!("{} can't push here", author.login) },
        (Err(why), None) => Trust::Unknown { why: why.clone() },
    }
}

/// A comment of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// Its id.
    pub id: u64,
    /// Who wrote it; `None` when the account is gone.
    pub author: Option<Person>,
    /// Its Markdown.
    pub body: String,
    /// When it was written.
    #[serde(with = "crate::github::time")]
    pub written_at: Timestamp,
}

/// The comments whose words may be followed, in their order.
///
/// Those of people who may push; all of them once a person trusted the issue; none while it can't
/// be told who may push.
#[must_use]
pub fn heard<'c>(
    comments: &'c [Comment],
    collaborators: &Collaborators,
    issue: &Trust,
) -> Vec<&'c Comment> {
    let may_push = |comment: &Comment| match (&comment.author, collaborators) {
        (Some(author), Ok(all)) => all.contains(&author.id),
        _ => false,
    };
    comments.iter().filter(|comment| *issue == Trust::Explicit || may_push(comment)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().expect("a time")
    }

    fn person(id: u64) -> Person {
        Person { id, login: format!("user{id}") }
    }

    fn issue(number: u64, labels: &[&str]) -> Issue {
        Issue {
            number,
            title: "P0 security bug".into(),
            author: Some(person(1)),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            reactions: 0,
            comments: 0,
            opened_at: now(),
        }
    }

    fn score(issue: &Issue) -> u64 {
        rank(issue, now()).score
    }

    #[test]
    fn each_signal_has_its_points_and_says_so() {
        for (labels, points) in [
            (&[][..], 0),
            (&["p0"], 100),
            (&["P3", "p1"], 75),
            (&["P2"], 50),
            (&["P3"], 25),
            (&["Security"], 40),
            (&["BUG", "enhancement"], 20),
            (&["P4", "priority: P0", "security-ish"], 0),
            (&["P0", "security", "bug", "bug"], 160),
        ] {
            assert_eq!(score(&issue(1, labels)), points, "{labels:?}");
        }
        let mut busy = issue(1, &["P1"]);
        (busy.reactions, busy.comments) = (27, 1);
        busy.opened_at = "2024-01-01T00:00:00Z".parse().expect("a time");
        let rank = rank(&busy, now());
        assert_eq!(rank.score, 75 + 20 + 1 + 12);
        assert_eq!(
            rank.reasons,
            [
                "75 points: P1 priority label",
                "20 points: 27 positive reactions (cap 20)",
                "1 point: 1 comment",
                "12 points: 1064 days old (cap 12)",
            ]
        );
        let mut young = issue(1, &[]);
        young.opened_at = "2026-10-31T12:00:01Z".parse().expect("a time");
        assert_eq!(score(&young), 0, "29 days and some");
        young.opened_at = "2027-01-01T00:00:00Z".parse().expect("a time");
        assert_eq!(score(&young), 0, "a clock that is ahead");
    }

    #[test]
    fn of_equal_points_the_oldest_and_then_the_lowest_number_is_first() {
        let mut all =
            vec![issue(3, &["bug"]), issue(2, &["bug"]), issue(9, &["P0"]), issue(1, &[])];
        all[0].opened_at = "2026-11-29T12:00:00Z".parse().expect("a time");
        let order: Vec<_> = ranked(&all, now()).iter().map(|(_, issue)| issue.number).collect();
        assert_eq!(order, [9, 3, 2, 1]);
    }

    #[test]
    fn trust_is_for_who_may_push_or_for_one_issue_of_one_author() {
        let (known, unknown) = (Ok(BTreeSet::from([1])), Err("403".to_owned()));
        let author = person(2);
        let of =
            |collaborators: &Collaborators, explicit| trust(Some(&author), collaborators, explicit);
        assert_eq!(trust(Some(&person(1)), &known, None), Trust::Collaborator);
        assert_eq!(of(&known, Some(2)), Trust::Explicit);
        assert_eq!(of(&unknown, Some(2)), Trust::Explicit);
        assert!(matches!(of(&known, Some(3)), Trust::Untrusted { .. }));
        assert!(matches!(of(&known, None), Trust::Untrusted { .. }));
        assert!(matches!(of(&unknown, None), Trust::Unknown { .. }));
        assert!(matches!(trust(None, &known, Some(2)), Trust::Untrusted { .. }));
        assert!(!of(&unknown, None).is_given());
    }

    #[test]
    fn comments_are_heard_of_who_may_push_and_of_all_once_trusted() {
        let comment = |id, author: Option<u64>| Comment {
            id,
            author: author.map(person),
            body: "words".into(),
            written_at: now(),
        };
        let all = [comment(1, Some(1)), comment(2, Some(2)), comment(3, None)];
        let ids = |collaborators: &Collaborators, trust: &Trust| -> Vec<u64> {
            heard(&all, collaborators, trust).iter().map(|comment| comment.id).collect()
        };
        let (known, unknown) = (Ok(BTreeSet::from([1])), Err("403".to_owned()));
        let not = Trust::Untrusted { why: String::new() };
        assert_eq!(ids(&known, &Trust::Collaborator), [1]);
        assert_eq!(ids(&known, &not), [1]);
        assert_eq!(ids(&known, &Trust::Explicit), [1, 2, 3]);
        assert!(ids(&unknown, &not).is_empty());
    }

    proptest! {
        #[test]
        fn the_order_is_of_the_issues_and_not_of_how_they_came(
            facts in proptest::collection::vec((0u64..30, 0u64..15, 0i64..900, 0usize..6), 1..60),
            seed in any::<u64>(),
        ) {
            let labels = [&[][..], &["P0"], &["P1", "bug"], &["security"], &["P3"], &["other"]];
            let all: Vec<_> = facts.iter().enumerate().map(|(n, (reactions, comments, days, at))| Issue {
                reactions: *reactions,
                comments: *comments,
                opened_at: now() - jiff::SignedDuration::from_hours(days * 24),
                ..issue(n as u64 + 1, labels[*at])
            }).collect();
            let mut other = all.clone();
            other.sort_by_key(|issue| issue.number.wrapping_mul(seed | 1));
            let numbers = |all: &[Issue]| -> Vec<u64> {
                ranked(all, now()).iter().map(|(_, issue)| issue.number).collect()
            };
            prop_assert_eq!(numbers(&all), numbers(&other));
            let ranks = ranked(&all, now());
            prop_assert!(ranks.windows(2).all(|two| two[0].0.score >= two[1].0.score));
        }
    }
}
