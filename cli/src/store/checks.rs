//! Runs of `cmd` checks.

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::{CommitId, Digest, ItemId};
use rusqlite::Row;
use serde::Serialize;
use serde_json::json;

use crate::config::EvidenceSource;
use crate::gate::CheckResult;
use crate::store::tx::{parsed, to_sql, unreadable};
use crate::store::{Event, ReadTx, Store, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// One run of one `cmd` check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckRun {
    /// The item whose check it is.
    pub item: ItemId,
    /// The commit that it ran on.
    pub commit_id: CommitId,
    /// The argument list.
    pub argv: Vec<String>,
    /// Its digest, see `gate::argv_digest`.
    pub argv_digest: Digest,
    /// Where it ran.
    pub place: EvidenceSource,
    /// How it ended.
    pub result: CheckEnd,
    /// Exit code; `None` when a signal ended it or it never started.
    pub exit_code: Option<i32>,
    /// Digest of what it wrote, in the evidence.
    pub output: Digest,
    /// How long it ran.
    pub millis: u64,
    /// RFC 3339 UTC.
    pub ran_at: String,
    /// Who had it run, for people.
    pub ran_by: String,
}

/// How a run of a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckEnd {
    /// With exit code 0.
    Passed,
    /// With another one, or by a signal.
    Failed,
    /// Its time was over.
    TimedOut,
    /// The program could not be started.
    NotStarted,
}

impl CheckEnd {
    const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::TimedOut, Self::NotStarted];

    /// The word in the state.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::NotStarted => "not-started",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.word() == word)
    }
}

impl Serialize for CheckEnd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

fn place_word(place: EvidenceSource) -> &'static str {
    match place {
        EvidenceSource::Sandbox => "sandbox",
        EvidenceSource::Host => "host",
        EvidenceSource::Ci => "ci",
    }
}

fn parse_place(word: &str) -> Option<EvidenceSource> {
    [EvidenceSource::Sandbox, EvidenceSource::Host, EvidenceSource::Ci]
        .into_iter()
        .find(|place| place_word(*place) == word)
}

fn check_run(row: &Row<'_>) -> rusqlite::Result<CheckRun> {
    let argv: String = row.get(2)?;
    Ok(CheckRun {
        item: parsed(row, 0, |text| ItemId::parse(text).ok())?,
        commit_id: parsed(row, 1, |text| CommitId::parse(text).ok())?,
        argv: serde_json::from_str(&argv).map_err(|_| unreadable(2, &argv))?,
        argv_digest: parsed(row, 3, |text| Digest::parse(text).ok())?,
        place: parsed(row, 4, parse_place)?,
        result: parsed(row, 5, CheckEnd::parse)?,
        exit_code: row.get(6)?,
        output: parsed(row, 7, |text| Digest::parse(text).ok())?,
        millis: row.get::<_, i64>(8)?.unsigned_abs(),
        ran_at: row.get(9)?,
        ran_by: row.get(10)?,
    })
}

impl ReadTx<'_> {
    /// Every run of a check of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn check_runs(&self, task: TaskId) -> Result<Vec<CheckRun>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT item, commit_id, argv, argv_digest, place, result, exit_code, output, millis,
                 ran_at, ran_by
             FROM check_runs WHERE task = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([task.to_string()], check_run)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Store<'_> {
    /// Every run of a check of a task as the gate looks at it, oldest first, with what it wrote.
    ///
    /// # Errors
    /// [`StoreError`] when a row or its output can't be read: unknown is never "not run".
    pub fn check_results(&self, task: TaskId) -> Result<Vec<CheckResult>, StoreError> {
        let runs = self.read(|tx| tx.check_runs(task))?;
        let result = |run: CheckRun| {
            Ok(CheckResult {
                output: RepoBytes::from(self.evidence(&run.output)?),
                passed: run.result == CheckEnd::Passed,
                item: run.item,
                argv: run.argv_digest,
                head: run.commit_id,
                source: run.place,
                by: (run.place == EvidenceSource::Host).then_some(run.ran_by),
            })
        };
        runs.into_iter().map(result).collect()
    }
}

impl WriteTx<'_> {
    /// Records runs of checks. Their output must be in the evidence already.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn add_check_runs(&self, task: TaskId, runs: &[CheckRun]) -> Result<(), StoreError> {
        for run in runs {
            self.sql().execute(
                "INSERT INTO check_runs (task, item, commit_id, argv, argv_digest, place, result,
                     exit_code, output, millis, ran_at, ran_by)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                (
                    task.to_string(),
                    run.item.as_str(),
                    run.commit_id.as_str(),
                    json!(run.argv).to_string(),
                    run.argv_digest.as_str(),
                    place_word(run.place),
                    run.result.word(),
                    run.exit_code,
                    run.output.as_str(),
                    to_sql(run.millis)?,
                    &run.ran_at,
                    &run.ran_by,
                ),
            )?;
            self.log(&Event {
                task: Some(task),
                kind: "check-run",
                actor: Actor::Person,
                detail: json!({
                    "item": run.item, "commit": run.commit_id, "argv": run.argv,
                    "place": run.place, "result": run.result, "exit_code": run.exit_code,
                }),
                words: &format!(
                    "check of {} {} on {}: {}",
                    run.item,
                    run.result.word(),
                    place_word(run.place),
                    json!(run.argv)
                ),
            })?;
        }
        Ok(())
    }
}
