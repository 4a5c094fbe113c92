//! Who made which commit: what may be recorded, and what a rebase makes of it.
//!
//! The ledger is the only proof of ownership. Trailers are labels: they count only once a person
//! has vouched for them. Entries never change: the same entry again is nothing new, another one
//! for the same commit is an error. A rewritten commit gets an entry of its own that names its
//! source, so that a chain of rewrites leads back to who made the change.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::ledger::{Entry, Ledger, Origin};

/// Why something can't be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The commit has another entry already.
    #[error("{commit:.12} is recorded as {known}, not {given}")]
    Differs {
        /// The commit.
        commit: CommitId,
        /// What is recorded, in words.
        known: String,
        /// What was to be recorded, in words.
        given: String,
    },
    /// One request gives a commit two entries.
    #[error("{commit:.12} is given twice: as {first} and as {second}")]
    Twice {
        /// The commit.
        commit: CommitId,
        /// In words.
        first: String,
        /// In words.
        second: String,
    },
    /// Two commits would become one.
    #[error("{first:.12} and {second:.12} can't both have become {new:.12}")]
    ManyToOne {
        /// A source.
        first: CommitId,
        /// Another source.
        second: CommitId,
        /// What both would have become.
        new: CommitId,
    },
    /// One commit would become two.
    #[error("{old:.12} can't have become both {first:.12} and {second:.12}")]
    OneToMany {
        /// The source.
        old: CommitId,
        /// What it would have become.
        first: CommitId,
        /// What it would have become as well.
        second: CommitId,
    },
    /// A commit would become itself.
    #[error("{0:.12} is its own source")]
    Itself(CommitId),
    /// Two ranges that are to be matched in order have different lengths.
    #[error("{n_old} old commits can't be matched in order with {n_new} new ones")]
    Lengths {
        /// Commits in the old range.
        n_old: usize,
        /// Commits in the new range.
        n_new: usize,
    },
    /// The plan has no such item.
    #[error("the plan has no item {0}")]
    NoItem(ItemId),
    /// The trailers of a commit name several items.
    #[error("the trailers of {commit:.12} name {}", list(.items))]
    SeveralItems {
        /// The commit.
        commit: CommitId,
        /// What they name.
        items: Vec<String>,
    },
    /// The trailer of a commit names no item.
    #[error("the trailer of {commit:.12} names {text:?}, which is no item")]
    BadTrailer {
        /// The commit.
        commit: CommitId,
        /// The trailer's value, cut to 80 characters.
        text: String,
    },
}

fn list(items: &[String]) -> String {
    items.join(" and ")
}

/// An entry in words: `P1 (adopted)`, `nobody's (foreign)`.
#[must_use]
pub fn words(entry: &Entry) -> String {
    let item = entry.item.as_ref().or(entry.was.as_ref());
    let item = item.map_or_else(|| "nobody's".to_owned(), ToString::to_string);
    let origin = origin_word(entry.origin);
    match &entry.from {
        Some(from) => format!("{item} ({origin} from {from:.12})"),
        None => format!("{item} ({origin})"),
    }
}

/// The contract's word for an origin.
#[must_use]
pub fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::Runner => "runner",
        Origin::Adopted => "adopted",
        Origin::Rebased => "rebased",
        Origin::ConflictAgent => "conflict-agent",
        Origin::Foreign => "foreign",
    }
}

/// The origin of that word.
#[must_use]
pub fn parse_origin(word: &str) -> Option<Origin> {
    [Origin::Runner, Origin::Adopted, Origin::Rebased, Origin::ConflictAgent, Origin::Foreign]
        .into_iter()
        .find(|origin| origin_word(*origin) == word)
}

/// What of `given` is new. `known` holds entries as they were recorded, before a revision removed
/// an item.
///
/// # Errors
/// [`LedgerError::Differs`] and [`LedgerError::Twice`].
pub fn additions(
    known: &BTreeMap<CommitId, Entry>,
    given: &[(CommitId, Entry)],
) -> Result<Vec<(CommitId, Entry)>, LedgerError> {
    let mut new: Vec<(CommitId, Entry)> = Vec::new();
    for (commit, entry) in given {
        if let Some(old) = known.get(commit) {
            if old != entry {
                return Err(LedgerError::Differs {
                    commit: commit.clone(),
                    known: words(old),
                    given: words(entry),
                });
            }
        } else if let Some((_, first)) = new.iter().find(|(other, _)| other == commit) {
            if first != entry {
                return Err(LedgerError::Twice {
                    commit: commit.clone(),
                    first: words(first),
                    second: words(entry),
                });
            }
        } else {
            new.push((commit.clone(), entry.clone()));
        }
    }
    Ok(new)
}

/// The entries of commits that a rebase made: each as its source.
///
/// `known` holds entries as they were recorded. `pairs`: old commit, new commit, and whether an
/// agent resolved a conflict on the way. A source that is unknown or foreign gives an entry without
/// an item.
///
/// # Errors
/// [`LedgerError::ManyToOne`], [`LedgerError::OneToMany`] and [`LedgerError::Itself`].
pub fn mapped(
    known: &BTreeMap<CommitId, Entry>,
    pairs: &[(CommitId, CommitId, Rewrite)],
) -> Result<Vec<(CommitId, Entry)>, LedgerError> {
    let mut by_old: BTreeMap<&CommitId, &CommitId> = BTreeMap::new();
    let mut by_new: BTreeMap<&CommitId, &CommitId> = BTreeMap::new();
    let mut entries: Vec<(CommitId, Entry)> = Vec::new();
    for (old, new, rewrite) in pairs {
        if old == new {
            return Err(LedgerError::Itself(old.clone()));
        }
        if let Some(first) = by_old.insert(old, new)
            && first != new
        {
            return Err(LedgerError::OneToMany {
                old: old.clone(),
                first: first.clone(),
                second: new.clone(),
            });
        }
        let recorded = known.get(new).and_then(|entry| entry.from.as_ref());
        if let Some(first) = by_new.insert(new, old).or(recorded)
            && first != old
        {
            return Err(LedgerError::ManyToOne {
                first: first.clone(),
                second: old.clone(),
                new: new.clone(),
            });
        }
        // A source may itself be new in this request, such as in a chain of two rebases.
        let source = known
            .get(old)
            .or_else(|| entries.iter().find(|(commit, _)| commit == old).map(|(_, entry)| entry));
        let item = source.and_then(|entry| entry.item.clone());
        let origin = match rewrite {
            Rewrite::Plain => Origin::Rebased,
            Rewrite::ConflictAgent => Origin::ConflictAgent,
        };
        let entry = Entry { item, origin, from: Some(old.clone()), was: None };
        entries.push((new.clone(), entry));
    }
    Ok(entries)
}

/// How a commit was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// By git, or by a person.
    Plain,
    /// An agent resolved a conflict.
    ConflictAgent,
}

/// Matches two lists of commits in their order.
///
/// # Errors
/// [`LedgerError::Lengths`] when they differ in length.
pub fn in_order(
    old: Vec<CommitId>,
    new: Vec<CommitId>,
) -> Result<Vec<(CommitId, CommitId)>, LedgerError> {
    if old.len() != new.len() {
        return Err(LedgerError::Lengths { n_old: old.len(), n_new: new.len() });
    }
    Ok(old.into_iter().zip(new).collect())
}

/// The item that the trailers of a commit name; `None` when they name none. `values`: of each
/// `Plan-Item` trailer.
///
/// # Errors
/// [`LedgerError::SeveralItems`] and [`LedgerError::BadTrailer`].
pub fn trailer_item<'v>(
    commit: &CommitId,
    values: impl IntoIterator<Item = &'v str>,
) -> Result<Option<ItemId>, LedgerError> {
    let mut items = BTreeSet::new();
    for value in values {
        let item = ItemId::parse(value.trim()).map_err(|_| LedgerError::BadTrailer {
            commit: commit.clone(),
            text: value.chars().take(80).collect(),
        })?;
        items.insert(item);
    }
    if items.len() > 1 {
        let items = items.iter().map(ToString::to_string).collect();
        return Err(LedgerError::SeveralItems { commit: commit.clone(), items });
    }
    Ok(items.pop_first())
}

/// Whether `commit`, or a commit that it was rewritten from, has this origin.
///
/// So a person's vouching stays visible through rebases.
#[must_use]
pub fn descends_from(ledger: &Ledger, commit: &CommitId, origin: Origin) -> bool {
    let mut seen = BTreeSet::new();
    let mut at = Some(commit);
    while let Some(commit) = at {
        if !seen.insert(commit) {
            return false;
        }
        let Some(entry) = ledger.commits.get(commit) else { return false };
        if entry.origin == origin {
            return true;
        }
        at = entry.from.as_ref();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(n: u8) -> CommitId {
        CommitId::parse(&format!("{n:040x}")).expect("an id")
    }

    fn item(text: &str) -> ItemId {
        ItemId::parse(text).expect("an item")
    }

    fn owned(text: &str, origin: Origin) -> Entry {
        Entry::new(Some(item(text)), origin)
    }

    fn foreign() -> Entry {
        Entry::new(None, Origin::Foreign)
    }

    #[test]
    fn the_same_again_is_nothing_new_and_another_entry_is_refused() {
        let known = BTreeMap::from([(commit(1), owned("P1", Origin::Runner))]);
        let again = [(commit(1), owned("P1", Origin::Runner)), (commit(2), foreign())];
        let new = additions(&known, &[&again[..], &again[1..]].concat()).expect("a replay");
        assert_eq!(new, again[1..]);
        for other in [owned("P2", Origin::Runner), owned("P1", Origin::Adopted), foreign()] {
            let error = additions(&known, &[(commit(1), other)]).expect_err("another entry");
            assert!(matches!(error, LedgerError::Differs { .. }), "{error}");
        }
        let twice = [(commit(3), foreign()), (commit(3), owned("P1", Origin::Adopted))];
        let error = additions(&known, &twice).expect_err("two entries");
        assert_eq!(
            error.to_string(),
            "000000000000 is given twice: as nobody's (foreign) and as P1 (adopted)"
        );
    }

    #[test]
    fn a_rebase_keeps_items_through_chains_and_gives_nobodys_commits_to_nobody() {
        let known =
            BTreeMap::from([(commit(1), owned("P1", Origin::Adopted)), (commit(2), foreign())]);
        let pair = |old, new| (commit(old), commit(new), Rewrite::Plain);
        let pairs = [pair(1, 11), pair(2, 12), pair(3, 13), pair(11, 21)];
        let new = mapped(&known, &pairs).expect("one to one");
        let items: Vec<_> = new.iter().map(|(_, entry)| entry.item.clone()).collect();
        assert_eq!(items, [Some(item("P1")), None, None, Some(item("P1"))]);
        assert!(new.iter().all(|(_, entry)| entry.origin == Origin::Rebased));

        let commits = known.into_iter().chain(new).collect();
        let ledger = Ledger { schema_version: 1, commits };
        assert!(descends_from(&ledger, &commit(21), Origin::Adopted));
        assert!(!descends_from(&ledger, &commit(12), Origin::Adopted));
        assert!(!descends_from(&ledger, &commit(99), Origin::Adopted));
    }

    #[test]
    fn an_agents_conflict_resolution_is_told_apart() {
        let known = BTreeMap::from([(commit(1), owned("P1", Origin::Runner))]);
        let pairs = [(commit(1), commit(2), Rewrite::ConflictAgent)];
        let new = mapped(&known, &pairs).expect("one to one");
        assert_eq!(new[0].1.origin, Origin::ConflictAgent);
        assert_eq!(new[0].1.item, Some(item("P1")));
    }

    #[test]
    fn what_is_not_one_to_one_is_refused() {
        let recorded = Entry { from: Some(commit(1)), ..owned("P1", Origin::Rebased) };
        let known = BTreeMap::from([(commit(11), recorded)]);
        let pair = |old, new| (commit(old), commit(new), Rewrite::Plain);
        let fails = |pairs: &[_]| mapped(&known, pairs).expect_err("not one to one");
        assert!(matches!(fails(&[pair(1, 20), pair(2, 20)]), LedgerError::ManyToOne { .. }));
        assert!(matches!(fails(&[pair(2, 11)]), LedgerError::ManyToOne { .. }));
        assert!(matches!(fails(&[pair(1, 20), pair(1, 21)]), LedgerError::OneToMany { .. }));
        assert!(matches!(fails(&[pair(1, 1)]), LedgerError::Itself(_)));
        let error = in_order(vec![commit(1)], vec![]).expect_err("two lengths");
        assert_eq!(error, LedgerError::Lengths { n_old: 1, n_new: 0 });
    }

    #[test]
    fn trailers_name_one_item_or_none() {
        let check = |values: &[&str]| trailer_item(&commit(1), values.iter().copied());
        assert_eq!(check(&[]), Ok(None));
        assert_eq!(check(&[" P2 ", "P2"]), Ok(Some(item("P2"))));
        assert!(matches!(check(&["P2", "P1"]), Err(LedgerError::SeveralItems { .. })));
        assert!(matches!(check(&["p2"]), Err(LedgerError::BadTrailer { .. })));
    }

    #[test]
    fn origins_have_the_words_of_the_contract() {
        for word in ["runner", "adopted", "rebased", "conflict-agent", "foreign"] {
            let origin = parse_origin(word).expect("an origin");
            assert_eq!(serde_json::to_value(origin).expect("a word"), word);
        }
        assert_eq!(parse_origin("owned"), None);
    }
}
