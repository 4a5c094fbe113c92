//! What is kept of GitHub: issues as they were read, whom people trust, pull requests, waits.

use std::collections::BTreeMap;

use codeboost_schema::ids::CommitId;
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::json;

use crate::github::issues::Person;
use crate::store::tx::parsed;
use crate::store::{Event, ReadTx, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// What is known of a repository's issues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssuesRead {
    /// When they were read, and the snapshot as JSON.
    pub snapshot: Option<(String, String)>,
    /// When the newest read failed, and why; `None` when it did not.
    pub failed: Option<(String, String)>,
}

/// Where a pull request stands between being recorded and being known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpeningState {
    /// About to be asked for, or asked for without a clear answer.
    Opening,
    /// Known by its number.
    Opened,
    /// Given up.
    Abandoned,
}

impl OpeningState {
    fn word(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Opened => "opened",
            Self::Abandoned => "abandoned",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Opening, Self::Opened, Self::Abandoned].into_iter().find(|s| s.word() == word)
    }
}

/// A pull request that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpeningRow {
    /// What its description names.
    pub id: String,
    /// Where it stands.
    pub state: OpeningState,
    /// Its number, once it is known.
    pub number: Option<u64>,
    /// Whether it was asked for as a draft.
    pub draft: bool,
    /// The part of the description that was written last.
    #[serde(skip)]
    pub part: Option<String>,
    /// RFC 3339 UTC.
    pub recorded_at: String,
}

impl OpeningRow {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            state: parsed(row, 1, OpeningState::parse)?,
            number: row.get::<_, Option<i64>>(2)?.map(i64::unsigned_abs),
            draft: row.get(3)?,
            part: row.get(4)?,
            recorded_at: row.get(5)?,
        })
    }
}

const OPENING: &str = "SELECT id, state, number, draft, part, recorded_at FROM openings";

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl ReadTx<'_> {
    /// What is known of the issues of a repository.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn issues_read(&self, repository: &str) -> Result<IssuesRead, StoreError> {
        let row = self
            .sql()
            .query_row(
                "SELECT taken_at, snapshot, failed_at, why FROM issue_reads WHERE repository = ?1",
                [repository.to_lowercase()],
                |row| {
                    let snapshot = row.get::<_, Option<String>>(0)?.zip(row.get(1)?);
                    let failed = row.get::<_, Option<String>>(2)?.zip(row.get(3)?);
                    Ok(IssuesRead { snapshot, failed })
                },
            )
            .optional()?;
        Ok(row.unwrap_or_default())
    }

    /// The issues that people trust, each with the author whom they trust.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn trusted_issues(&self, repository: &str) -> Result<BTreeMap<u64, Person>, StoreError> {
        let mut query = self
            .sql()
            .prepare("SELECT issue, author, login FROM issue_trust WHERE repository = ?1")?;
        let rows = query.query_map([repository.to_lowercase()], |row| {
            let (issue, id): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((issue.unsigned_abs(), Person { id: id.unsigned_abs(), login: row.get(2)? }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The pull request of a task that was not given up.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn opening(&self, task: TaskId) -> Result<Option<OpeningRow>, StoreError> {
        let sql = format!("{OPENING} WHERE task = ?1 AND state <> 'abandoned'");
        Ok(self.sql().query_row(&sql, [task.to_string()], OpeningRow::of).optional()?)
    }

    /// Every opening of a task, oldest first; those given up too.
    ///
    /// # Errors
    /// [`StoreError`] when they can't be read.
    pub fn openings(&self, task: TaskId) -> Result<Vec<OpeningRow>, StoreError> {
        let mut query = self
            .sql()
            .prepare(&format!("{OPENING} WHERE task = ?1 ORDER BY recorded_at, rowid"))?;
        let rows = query.query_map([task.to_string()], OpeningRow::of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Since when the required checks of a head are awaited.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn checks_awaited_since(
        &self,
        task: TaskId,
        head: &CommitId,
    ) -> Result<Option<Timestamp>, StoreError> {
        let row = self
            .sql()
            .query_row(
                "SELECT since FROM check_waits WHERE task = ?1 AND head_commit_id = ?2",
                (task.to_string(), head.as_str()),
                |row| parsed(row, 0, |text| text.parse().ok()),
            )
            .optional()?;
        Ok(row)
    }
}

impl WriteTx<'_> {
    /// Keeps what was read of a repository's issues, as JSON; or why it could not be.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_issues_read(
        &self,
        repository: &str,
        read: Result<&str, &str>,
    ) -> Result<(), StoreError> {
        let repository = repository.to_lowercase();
        match read {
            Ok(snapshot) => self.sql().execute(
                "INSERT INTO issue_reads (repository, taken_at, snapshot) VALUES (?1, ?2, ?3)
                 ON CONFLICT (repository) DO UPDATE SET taken_at = excluded.taken_at,
                     snapshot = excluded.snapshot, failed_at = NULL, why = NULL",
                (repository, self.now(), snapshot),
            )?,
            Err(why) => self.sql().execute(
                "INSERT INTO issue_reads (repository, failed_at, why) VALUES (?1, ?2, ?3)
                 ON CONFLICT (repository) DO UPDATE SET failed_at = excluded.failed_at,
                     why = excluded.why",
                (repository, self.now(), why),
            )?,
        };
        Ok(())
    }

    /// Trusts an issue of an author. Returns whether that is new.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn trust_issue(
        &self,
        repository: &str,
        issue: u64,
        author: &Person,
    ) -> Result<bool, StoreError> {
        if self.trusted_issues(repository)?.get(&issue).is_some_and(|have| have.id == author.id) {
            return Ok(false);
        }
        self.sql().execute(
            "INSERT OR REPLACE INTO issue_trust (repository, issue, author, login, given_at, given_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                repository.to_lowercase(),
                number(issue),
                number(author.id),
                &author.login,
                self.now(),
                self.actor_text(&Actor::Person),
            ),
        )?;
        self.log(&Event {
            task: None,
            kind: "issue-trusted",
            actor: Actor::Person,
            detail: json!({"repository": repository, "issue": issue, "author": author}),
            words: &format!("trusted issue #{issue} of {}", author.login),
        })?;
        Ok(true)
    }

    /// Takes the trust in an issue back. Returns whether it was trusted.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn distrust_issue(&self, repository: &str, issue: u64) -> Result<bool, StoreError> {
        let rows = self.sql().execute(
            "DELETE FROM issue_trust WHERE repository = ?1 AND issue = ?2",
            (repository.to_lowercase(), number(issue)),
        )?;
        if rows > 0 {
            self.log(&Event {
                task: None,
                kind: "issue-distrusted",
                actor: Actor::Person,
                detail: json!({"repository": repository, "issue": issue}),
                words: &format!("no longer trusts issue #{issue}"),
            })?;
        }
        Ok(rows > 0)
    }

    /// Records a pull request that is about to be asked for.
    ///
    /// # Errors
    /// [`StoreError`] when the task has one, or it can't be written.
    pub fn record_opening(
        &self,
        task: TaskId,
        id: &str,
        repository: &str,
        (base, head): (&str, &str),
        draft: bool,
    ) -> Result<OpeningRow, StoreError> {
        self.sql().execute(
            "INSERT INTO openings (id, task, repository, base, head, state, draft, recorded_at,
                 changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, 'opening', ?6, ?7, ?7)",
            (id, task.to_string(), repository.to_lowercase(), base, head, draft, self.now()),
        )?;
        self.log(&Event {
            task: Some(task),
            kind: "pull-request",
            actor: Actor::Person,
            detail: json!({"opening": id, "base": base, "head": head, "draft": draft}),
            words: &format!("asks {repository} for a pull request of {head} onto {base}"),
        })?;
        self.opening(task)?
            .ok_or_else(|| StoreError::Damaged("a recorded opening is missing".into()))
    }

    /// Records that a pull request is there, by its number.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_opened(
        &self,
        task: TaskId,
        opening: &OpeningRow,
        pull: u64,
        draft: bool,
        part: Option<&str>,
    ) -> Result<(), StoreError> {
        // One that was given up and shows itself after all takes the place of a later one.
        self.sql().execute(
            "UPDATE openings SET state = 'abandoned', number = NULL, changed_at = ?3
             WHERE task = ?1 AND id <> ?2 AND state <> 'abandoned'",
            (task.to_string(), &opening.id, self.now()),
        )?;
        self.sql().execute(
            "UPDATE openings SET state = 'opened', number = ?2, draft = ?3,
                 part = COALESCE(?4, part), changed_at = ?5 WHERE id = ?1",
            (&opening.id, number(pull), draft, part, self.now()),
        )?;
        if opening.number == Some(pull) {
            return Ok(());
        }
        self.log(&Event {
            task: Some(task),
            kind: "pull-request",
            actor: Actor::Codeboost,
            detail: json!({"opening": opening.id, "number": pull, "draft": draft}),
            words: &format!("the pull request is #{pull}{}", if draft { ", a draft" } else { "" }),
        })
    }

    /// Gives a pull request up that never showed itself, or that people closed.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn abandon_opening(
        &self,
        task: TaskId,
        opening: &OpeningRow,
        why: &str,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE openings SET state = 'abandoned', number = NULL, changed_at = ?2 WHERE id = ?1",
            (&opening.id, self.now()),
        )?;
        self.log(&Event {
            task: Some(task),
            kind: "pull-request",
            actor: Actor::Codeboost,
            detail: json!({"opening": opening.id, "number": opening.number}),
            words: &format!("gave the pull request up: {why}"),
        })
    }

    /// Keeps what people wrote into our part of a description, before it is written over.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn keep_edited_part(&self, task: TaskId, pull: u64, text: &str) -> Result<(), StoreError> {
        self.log(&Event {
            task: Some(task),
            kind: "description-edited",
            actor: Actor::Codeboost,
            detail: json!({"number": pull, "text": text}),
            words: &format!("kept what people wrote between the markers of pull request #{pull}"),
        })
    }

    /// Notes that the required checks of a head are awaited from now on, unless they are already.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn await_checks(&self, task: TaskId, head: &CommitId) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT OR IGNORE INTO check_waits (task, head_commit_id, since) VALUES (?1, ?2, ?3)",
            (task.to_string(), head.as_str(), self.now()),
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::World;

    #[test]
    fn issues_are_kept_when_they_can_no_longer_be_read() {
        let world = World::new();
        let store = world.store();
        let put = |read| {
            store
                .write(|tx| tx.put_issues_read("Acme/W", read))
                .map_err(|e: StoreError| e)
                .expect("written");
        };
        let get = || store.read(|tx| tx.issues_read("acme/w")).expect("readable");
        assert_eq!(get(), IssuesRead::default());
        put(Err("no network"));
        assert!(get().snapshot.is_none() && get().failed.is_some());
        put(Ok("[1]"));
        assert_eq!(get().snapshot.map(|(_, text)| text).as_deref(), Some("[1]"));
        assert_eq!(get().failed, None);
        put(Err("no network"));
        assert!(get().snapshot.is_some() && get().failed.is_some());
    }

    #[test]
    fn trust_is_of_one_issue_and_one_author() {
        let world = World::new();
        let store = world.store();
        let (ann, bob) =
            (Person { id: 1, login: "ann".into() }, Person { id: 2, login: "b".into() });
        let trust = |who: &Person| -> bool {
            store
                .write(|tx| tx.trust_issue("a/w", 7, who))
                .map_err(|e: StoreError| e)
                .expect("written")
        };
        assert!(trust(&ann) && !trust(&ann) && trust(&bob));
        let all = store.read(|tx| tx.trusted_issues("A/W")).expect("readable");
        assert_eq!(all, BTreeMap::from([(7, bob)]));
        assert!(store.read(|tx| tx.trusted_issues("a/other")).expect("readable").is_empty());
        let gone = store.write(|tx| tx.distrust_issue("a/w", 7)).map_err(|e: StoreError| e);
        assert!(gone.expect("written"));
    }

    #[test]
    fn of_a_task_one_pull_request_counts_and_one_given_up_may_come_back() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 12).id;
        let record = |id: &str| -> Result<OpeningRow, StoreError> {
            store.write(|tx| tx.record_opening(task, id, "a/w", ("main", "topic"), false))
        };
        let first = record("one").expect("recorded");
        assert!(record("two").is_err(), "one is under way");
        store
            .write(|tx| tx.abandon_opening(task, &first, "never seen"))
            .map_err(|e: StoreError| e)
            .expect("written");
        let second = record("two").expect("recorded");
        store
            .write(|tx| {
                tx.put_opened(task, &second, 5, false, Some("text"))?;
                tx.put_opened(task, &first, 4, true, None)
            })
            .map_err(|e: StoreError| e)
            .expect("written");
        let now = store.read(|tx| tx.opening(task)).expect("readable").expect("one");
        assert_eq!((now.id.as_str(), now.number, now.draft), ("one", Some(4), true));
        let states: Vec<_> = store
            .read(|tx| tx.openings(task))
            .expect("readable")
            .into_iter()
            .map(|row| row.state)
            .collect();
        assert_eq!(states, [OpeningState::Opened, OpeningState::Abandoned]);
    }
}
