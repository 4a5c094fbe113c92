//! The ledger: who made which commit, append-only.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::ledger::{Entry, Ledger};
use serde::Serialize;
use serde_json::json;

use crate::ledger::{self, LedgerError, Rewrite};
use crate::store::tx::{parsed, parsed_opt, to_sql};
use crate::store::{Event, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, TaskId};

/// One entry as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerRow {
    /// The commit.
    pub commit_id: CommitId,
    /// The entry as it is now: an item that a later revision removed stands in `was`.
    pub entry: Entry,
    /// The plan's revision when it was recorded; `None` before the first.
    pub revision: Option<u64>,
    /// The revision that removed its item.
    pub retired_by: Option<u64>,
    /// RFC 3339 UTC.
    pub recorded_at: String,
    /// Who vouched, or made the commit.
    pub recorded_by: String,
}

impl LedgerRow {
    /// The entry as it was recorded, before a revision removed its item.
    fn recorded(&self) -> Entry {
        let mut entry = self.entry.clone();
        if let Some(item) = entry.was.take() {
            entry.item = Some(item);
        }
        entry
    }
}

impl ReadTx<'_> {
    /// The ledger of a task, as in `ledger.json`.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn ledger(&self, task: TaskId) -> Result<Ledger, StoreError> {
        let rows = self.ledger_rows(task)?;
        let commits = rows.into_iter().map(|row| (row.commit_id, row.entry)).collect();
        Ok(Ledger { schema_version: 1, commits })
    }

    /// The entries of a task in the order in which they were recorded.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn ledger_rows(&self, task: TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        let mut query = self.sql().prepare_cached(
            "SELECT ledger.commit_id, item, origin, from_commit_id, ledger.revision,
                    ledger_retired.revision, recorded_at, recorded_by
             FROM ledger LEFT JOIN ledger_retired USING (task, commit_id)
             WHERE ledger.task = ?1 ORDER BY ledger.rowid",
        )?;
        let commit_id = |text: &str| CommitId::parse(text).ok();
        let rows = query.query_map([task.to_string()], |row| {
            let item = parsed_opt(row, 1, |text| ItemId::parse(text).ok())?;
            let retired_by: Option<i64> = row.get(5)?;
            let (item, was) = if retired_by.is_some() { (None, item) } else { (item, None) };
            Ok(LedgerRow {
                commit_id: parsed(row, 0, commit_id)?,
                entry: Entry {
                    item,
                    origin: parsed(row, 2, ledger::parse_origin)?,
                    from: parsed_opt(row, 3, commit_id)?,
                    was,
                },
                revision: row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
                retired_by: retired_by.map(i64::unsigned_abs),
                recorded_at: row.get(6)?,
                recorded_by: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl WriteTx<'_> {
    /// Records who made commits. What is recorded already in the same way is nothing new.
    ///
    /// The items have to be of the approved plan or, before the first approval, of the newest.
    /// Keep the commits first ([`crate::store::Store::keep_commits`]). Returns the commits that are
    /// new.
    ///
    /// # Errors
    /// [`StoreError::Ledger`] when one has another entry, or the plan no such item, and
    /// [`StoreError::NoPlan`]; then nothing may be recorded, so let the transaction fail.
    pub fn record_commits(
        &self,
        task: &TaskRow,
        entries: &[(CommitId, Entry)],
        actor: Actor,
    ) -> Result<Vec<CommitId>, StoreError> {
        let known = recorded(&self.ledger_rows(task.id)?);
        let new = ledger::additions(&known, entries)?;
        let plan = match self.approved_plan(task.id)? {
            Some(row) => Some(row),
            None => self.newest_plan(task.id)?,
        };
        for item in new.iter().filter_map(|(_, entry)| entry.item.as_ref()) {
            let plan = plan.as_ref().ok_or(StoreError::NoPlan(task.issue))?;
            if plan.plan.item(item).is_none() {
                return Err(LedgerError::NoItem(item.clone()).into());
            }
        }
        let revision = plan.map(|row| row.plan.revision);
        self.insert(task, &new, revision, actor)?;
        Ok(new.into_iter().map(|(commit, _)| commit).collect())
    }

    /// Records what commits became in a rebase: each new one as its source, also in that a later
    /// revision removed its item. Returns the new commits with their entries.
    ///
    /// # Errors
    /// [`StoreError::Ledger`] when the pairs are not one to one, or a new commit has another entry.
    pub fn map_commits(
        &self,
        task: &TaskRow,
        pairs: &[(CommitId, CommitId, Rewrite)],
        actor: Actor,
    ) -> Result<Vec<(CommitId, Entry)>, StoreError> {
        let rows = self.ledger_rows(task.id)?;
        let known = recorded(&rows);
        let new = ledger::additions(&known, &ledger::mapped(&known, pairs)?)?;
        let mut sources: BTreeMap<CommitId, (Option<u64>, Option<u64>)> =
            rows.into_iter().map(|row| (row.commit_id, (row.revision, row.retired_by))).collect();
        for (commit, entry) in &new {
            let source = entry.from.as_ref().and_then(|from| sources.get(from)).copied();
            let (revision, retired_by) = source.unwrap_or_default();
            self.insert(task, &[(commit.clone(), entry.clone())], revision, actor.clone())?;
            if let Some(revision) = retired_by {
                self.retire(task.id, commit, revision)?;
            }
            sources.insert(commit.clone(), (revision, retired_by));
        }
        let ledger = self.ledger(task.id)?;
        Ok(new
            .into_iter()
            .filter_map(|(commit, _)| ledger.commits.get_key_value(&commit))
            .map(|(commit, entry)| (commit.clone(), entry.clone()))
            .collect())
    }

    /// Marks the entries whose item is not in `kept`: revision `revision` removed it. To be called
    /// in the transaction that makes the revision the current one.
    ///
    /// The mark stays when a later revision has an item of the same name again: that is another
    /// item.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn retire_items(
        &self,
        task: &TaskRow,
        kept: &BTreeSet<ItemId>,
        revision: u64,
    ) -> Result<(), StoreError> {
        let mut retired: BTreeMap<ItemId, Vec<CommitId>> = BTreeMap::new();
        for row in self.ledger_rows(task.id)? {
            if let Some(item) = row.entry.item
                && !kept.contains(&item)
            {
                self.retire(task.id, &row.commit_id, revision)?;
                retired.entry(item).or_default().push(row.commit_id);
            }
        }
        for (item, commits) in retired {
            self.log(&Event {
                task: Some(task.id),
                kind: "ledger-retired",
                actor: Actor::Codeboost,
                detail: json!({"item": item, "revision": revision, "commits": commits}),
                words: &format!("r{revision} removed {item}; its commits are nobody's now"),
            })?;
        }
        Ok(())
    }

    fn retire(&self, task: TaskId, commit: &CommitId, revision: u64) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO ledger_retired (task, commit_id, revision) VALUES (?1, ?2, ?3)",
            (task.to_string(), commit.as_str(), to_sql(revision)?),
        )?;
        Ok(())
    }

    fn insert(
        &self,
        task: &TaskRow,
        new: &[(CommitId, Entry)],
        revision: Option<u64>,
        actor: Actor,
    ) -> Result<(), StoreError> {
        let mut statement = self.sql().prepare_cached(
            "INSERT INTO ledger
                 (task, commit_id, item, origin, from_commit_id, revision, recorded_at, recorded_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        for (commit, entry) in new {
            statement.execute((
                task.id.to_string(),
                commit.as_str(),
                entry.item.as_ref().map(ItemId::as_str),
                ledger::origin_word(entry.origin),
                entry.from.as_ref().map(CommitId::as_str),
                revision.map(to_sql).transpose()?,
                self.now(),
                self.actor_text(&actor),
            ))?;
        }
        for (commit, entry) in new {
            self.log(&Event {
                task: Some(task.id),
                kind: "ledger",
                actor: actor.clone(),
                detail: json!({"commit": commit, "entry": entry, "revision": revision}),
                words: &format!("recorded {commit:.12} as {}", ledger::words(entry)),
            })?;
        }
        Ok(())
    }
}

fn recorded(rows: &[LedgerRow]) -> BTreeMap<CommitId, Entry> {
    rows.iter().map(|row| (row.commit_id.clone(), row.recorded())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::World;
    use codeboost_schema::ledger::Origin;

    fn commit(n: u8) -> CommitId {
        CommitId::parse(&format!("{n:040x}")).expect("an id")
    }

    fn entry(item: Option<&str>, origin: Origin) -> Entry {
        Entry::new(item.map(|item| ItemId::parse(item).expect("an item")), origin)
    }

    #[test]
    fn a_late_collision_leaves_nothing_of_the_batch() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 1);
        world.approve_plan(&store, &task, &["P1", "P2"]);
        let record = |entries: &[(CommitId, Entry)]| {
            store.write(|tx| tx.record_commits(&task, entries, Actor::Codeboost))
        };
        let first = [(commit(1), entry(Some("P1"), Origin::Runner))];
        assert_eq!(record(&first).expect("recorded"), [commit(1)]);
        assert_eq!(record(&first).expect("a replay"), []);
        let events = store.read(|tx| tx.events(Some(task.id))).expect("events").len();
        let batch = [
            (commit(2), entry(Some("P1"), Origin::Runner)),
            (commit(1), entry(Some("P2"), Origin::Runner)),
        ];
        let error = record(&batch).expect_err("a collision");
        assert!(matches!(error, StoreError::Ledger(LedgerError::Differs { .. })), "{error}");
        let ledger = store.read(|tx| tx.ledger(task.id)).expect("a ledger");
        assert_eq!(ledger.commits.len(), 1);
        assert_eq!(store.read(|tx| tx.events(Some(task.id))).expect("events").len(), events);
    }

    #[test]
    fn an_item_that_a_revision_removed_stays_removed_through_rebases_and_when_its_name_returns() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 1);
        world.approve_plan(&store, &task, &["P1", "P3"]);
        let first = [
            (commit(1), entry(Some("P1"), Origin::Runner)),
            (commit(3), entry(Some("P3"), Origin::Adopted)),
        ];
        let record = |entries: &[(CommitId, Entry)]| {
            store.write(|tx| tx.record_commits(&task, entries, Actor::Person))
        };
        record(&first).expect("recorded");
        world.approve_plan(&store, &task, &["P1"]);
        let error = record(&[(commit(4), entry(Some("P3"), Origin::Adopted))]).expect_err("no P3");
        assert!(matches!(error, StoreError::Ledger(LedgerError::NoItem(_))), "{error}");
        // What the first entry recorded is still no conflict.
        assert_eq!(record(&first).expect("a replay"), []);
        world.approve_plan(&store, &task, &["P1", "P3"]);
        let pairs = [
            (commit(1), commit(11), Rewrite::Plain),
            (commit(3), commit(13), Rewrite::Plain),
            (commit(13), commit(23), Rewrite::Plain),
        ];
        let new =
            store.write(|tx| tx.map_commits(&task, &pairs, Actor::Person)).expect("one to one");
        let was: Vec<_> = new.iter().map(|(_, entry)| entry.was.is_some()).collect();
        assert_eq!(was, [false, true, true]);
        let ledger = store.read(|tx| tx.ledger(task.id)).expect("a ledger");
        let text = serde_json::to_value(&ledger.commits[&commit(13)]).expect("JSON");
        assert_eq!(
            text,
            json!({"item": null, "origin": "rebased", "from": commit(3), "was": "P3"})
        );
        // A new item of the old name has commits of its own.
        let later = [(commit(4), entry(Some("P3"), Origin::Runner))];
        record(&later).expect("recorded");
        let ledger = store.read(|tx| tx.ledger(task.id)).expect("a ledger");
        assert_eq!(ledger.commits[&commit(4)], later[0].1);
    }

    #[test]
    fn without_a_plan_nothing_can_be_anybodys() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 1);
        let first = [(commit(1), entry(Some("P1"), Origin::Adopted))];
        let error =
            store.write(|tx| tx.record_commits(&task, &first, Actor::Person)).expect_err("no plan");
        assert!(matches!(error, StoreError::NoPlan(1)), "{error}");
    }

    #[test]
    fn entries_can_not_be_changed_behind_the_rules() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 1);
        let first = [(commit(1), entry(None, Origin::Foreign))];
        store.write(|tx| tx.record_commits(&task, &first, Actor::Person)).expect("recorded");
        for sql in ["UPDATE ledger SET item = 'P2'", "DELETE FROM ledger"] {
            let refused = store.write(|tx| Ok::<_, StoreError>(tx.sql().execute(sql, []).is_err()));
            assert!(refused.expect("a transaction"), "{sql}");
        }
    }
}
