//! Review rounds and the problems that they filed, replayed from the log: append-only like it.

use codeboost_schema::decisions::Action;
use codeboost_schema::ids::{CommitId, ItemId, Uuid};
use codeboost_schema::verdict::Verdict;
use serde::Serialize;
use serde_json::json;

use crate::store::events::Event;
use crate::store::suggestions::random_id;
use crate::store::{DecisionRow, EventRow, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// The kind of the events that hold rounds.
const ROUND: &str = "review-round";

/// Where a problem stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemState {
    /// It keeps the task from merging.
    Open,
    /// A later round says that it is there no more.
    Fixed,
    /// A person takes it as it is.
    Accepted,
}

impl ProblemState {
    /// The contract's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Fixed => "fixed",
            Self::Accepted => "accepted",
        }
    }
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProblemRow {
    /// Its id.
    pub id: Uuid,
    /// The item that it is filed on.
    pub item: ItemId,
    /// What is wrong; untrusted.
    pub text: String,
    /// Where it came from, for people.
    pub source: String,
    /// Where it stands.
    pub state: ProblemState,
}

/// A review round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoundRow {
    /// The revision of the plan that it judged by.
    pub revision: u64,
    /// The head that it looked at.
    pub head_commit_id: CommitId,
}

/// All rounds of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rounds {
    /// Oldest first.
    pub rounds: Vec<RoundRow>,
    /// In the order in which they were filed.
    pub problems: Vec<ProblemRow>,
}

impl Rounds {
    /// Replays the events of a task and the decisions about its problems.
    ///
    /// `counts`: whether a decision counts by the policy.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a round can't be read: its problems would be lost.
    pub fn replay(
        events: &[EventRow],
        decisions: &[DecisionRow],
        counts: impl Fn(&DecisionRow) -> bool,
    ) -> Result<Self, StoreError> {
        let damaged = || StoreError::Damaged("a review round can't be read".into());
        let mut this = Self::default();
        for event in events.iter().filter(|event| event.kind == ROUND) {
            let detail = &event.detail;
            let text = |key: &str| detail[key].as_str().ok_or_else(damaged);
            let round = RoundRow {
                revision: detail["revision"].as_u64().ok_or_else(damaged)?,
                head_commit_id: CommitId::parse(text("head")?).map_err(|_| damaged())?,
            };
            let verdict: Verdict =
                serde_json::from_value(detail["verdict"].clone()).map_err(|_| damaged())?;
            let ids: Vec<Uuid> =
                serde_json::from_value(detail["ids"].clone()).map_err(|_| damaged())?;
            if ids.len() != verdict.problems.len() {
                return Err(damaged());
            }
            for problem in &mut this.problems {
                if verdict.fixed.contains(&problem.id) {
                    problem.state = ProblemState::Fixed;
                }
            }
            this.rounds.push(round);
            let source = format!("round {}, {}", this.rounds.len(), event.actor);
            this.problems.extend(ids.into_iter().zip(verdict.problems).map(|(id, filed)| {
                ProblemRow {
                    id,
                    item: filed.item,
                    text: filed.text,
                    source: source.clone(),
                    state: ProblemState::Open,
                }
            }));
        }
        for row in decisions.iter().filter(|row| row.kind == "problem" && counts(row)) {
            let Ok(Action::Problem { problem, .. }) = serde_json::from_value(row.decision.clone())
            else {
                return Err(StoreError::Damaged("a decision about a problem can't be read".into()));
            };
            let open = |one: &&mut ProblemRow| one.id == problem && one.state == ProblemState::Open;
            if let Some(one) = this.problems.iter_mut().find(open) {
                one.state = ProblemState::Accepted;
            }
        }
        Ok(this)
    }

    /// The open problems.
    pub fn open(&self) -> impl Iterator<Item = &ProblemRow> {
        self.problems.iter().filter(|problem| problem.state == ProblemState::Open)
    }
}

impl WriteTx<'_> {
    /// Records a round with what it filed.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn add_round(
        &self,
        task: TaskId,
        round: &RoundRow,
        verdict: &Verdict,
        by: Actor,
    ) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = verdict.problems.iter().map(|_| random_id()).collect();
        let words = format!(
            "a review found {} and {} fixed",
            crate::output::counted(verdict.problems.len() as u64, "problem"),
            verdict.fixed.len()
        );
        self.log(&Event {
            task: Some(task),
            kind: ROUND,
            actor: by,
            detail: json!({
                "revision": round.revision, "head": round.head_commit_id, "ids": ids,
                "verdict": verdict,
            }),
            words: &words,
        })
    }
}
