//! Suggested edits of plans: requests, their answers, and the one that is taken.
//!
//! A request is bound to task, plan, format version and revision before anything is asked. Its
//! answer is stored under that alone. Taking an edit makes the next revision, uses the edit up,
//! and makes all others of that plan stale, in one transaction.
//!
//! | request | becomes |
//! |---|---|
//! | `pending` | `ready`, `failed`, `cancelled`, `invalidated` |
//! | `ready` | `consumed`, `invalidated` |
//! | any other | nothing |

use codeboost_schema::ids::Uuid;
use codeboost_schema::plan::Plan;
use codeboost_schema::plan_edit::Edit;
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::json;

use crate::store::plans::{PlanOrigin, PlanRow};
use crate::store::tx::{parsed, to_sql, unreadable};
use crate::store::{Event, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, PlanId, TaskId};

/// Most characters of a stored reason.
const MAX_REASON: usize = 4000;

/// A request for suggested edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestRow {
    /// Its name.
    pub id: Uuid,
    /// The task that it is bound to.
    pub task: TaskId,
    /// The plan that it is bound to.
    pub plan: PlanId,
    /// The format version of the plan.
    pub schema_version: u32,
    /// The revision that it is bound to.
    pub revision: u64,
    /// Where it stands.
    pub state: RequestState,
    /// The answer in words.
    pub reply: Option<String>,
    /// Why it ended, for people.
    pub reason: Option<String>,
    /// RFC 3339 UTC.
    pub made_at: String,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// Not answered yet.
    Pending,
    /// Its edits can be taken.
    Ready,
    /// One of its edits was taken.
    Consumed,
    /// It got no usable answer.
    Failed,
    /// A person stopped it.
    Cancelled,
    /// The plan changed.
    Invalidated,
}

impl RequestState {
    const ALL: [Self; 6] = [
        Self::Pending,
        Self::Ready,
        Self::Consumed,
        Self::Failed,
        Self::Cancelled,
        Self::Invalidated,
    ];

    /// Its fixed word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Consumed => "consumed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Invalidated => "invalidated",
        }
    }
}

/// A suggested edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuggestionRow {
    /// Its name.
    pub id: Uuid,
    /// The request that it answers.
    pub request: Uuid,
    /// The task that it is bound to.
    pub task: TaskId,
    /// The revision that it is bound to.
    pub revision: u64,
    /// Its place in the answer, from 1.
    pub nth: u64,
    /// What it does.
    pub edit: Edit,
    /// Where it stands.
    pub state: SuggestionState,
    /// The revision that it made.
    pub made: Option<u64>,
}

/// Where a suggested edit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuggestionState {
    /// It can be taken.
    Open,
    /// It was taken.
    Applied,
    /// A person dropped it.
    Dismissed,
    /// The plan changed.
    Stale,
}

impl SuggestionState {
    const ALL: [Self; 4] = [Self::Open, Self::Applied, Self::Dismissed, Self::Stale];

    /// Its fixed word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Applied => "applied",
            Self::Dismissed => "dismissed",
            Self::Stale => "stale",
        }
    }
}

/// What became of taking an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken<E> {
    /// It made this revision.
    Made(Box<PlanRow>),
    /// It can't be taken in the state that it is in; nothing changed.
    NotOpen(SuggestionState),
    /// Tried again, it was refused; nothing changed.
    Refused(E),
}

const SUGGESTION: &str = "suggestions.id, request, task, revision, nth, edit, suggestions.state,
     made FROM suggestions JOIN suggestion_requests AS requests ON requests.id = request";

fn uuid(row: &Row<'_>, column: usize) -> rusqlite::Result<Uuid> {
    parsed(row, column, |text| Uuid::parse(text).ok())
}

fn suggestion_row(row: &Row<'_>) -> rusqlite::Result<SuggestionRow> {
    let edit: String = row.get(5)?;
    Ok(SuggestionRow {
        id: uuid(row, 0)?,
        request: uuid(row, 1)?,
        task: parsed(row, 2, TaskId::parse)?,
        revision: row.get::<_, i64>(3)?.unsigned_abs(),
        nth: row.get::<_, i64>(4)?.unsigned_abs(),
        edit: serde_json::from_str(&edit).map_err(|_| unreadable(5, &edit))?,
        state: parsed(row, 6, |text| {
            SuggestionState::ALL.into_iter().find(|state| state.word() == text)
        })?,
        made: row.get::<_, Option<i64>>(7)?.map(i64::unsigned_abs),
    })
}

fn request_row(row: &Row<'_>) -> rusqlite::Result<RequestRow> {
    Ok(RequestRow {
        id: uuid(row, 0)?,
        task: parsed(row, 1, TaskId::parse)?,
        plan: parsed(row, 2, PlanId::parse)?,
        schema_version: row.get(3)?,
        revision: row.get::<_, i64>(4)?.unsigned_abs(),
        state: parsed(row, 5, |text| {
            RequestState::ALL.into_iter().find(|state| state.word() == text)
        })?,
        reply: row.get(6)?,
        reason: row.get(7)?,
        made_at: row.get(8)?,
    })
}

impl ReadTx<'_> {
    /// The requests for a task's plan, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn suggestion_requests(&self, task: TaskId) -> Result<Vec<RequestRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT id, task, plan_id, schema_version, revision, state, reply, reason, made_at
             FROM suggestion_requests WHERE task = ?1 ORDER BY rowid",
        )?;
        let rows = query.query_map([task.to_string()], request_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The suggested edits of a task's plan, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn suggestions(&self, task: TaskId) -> Result<Vec<SuggestionRow>, StoreError> {
        let sql = format!("SELECT {SUGGESTION} WHERE task = ?1 ORDER BY requests.rowid, nth");
        let mut query = self.sql().prepare(&sql)?;
        let rows = query.query_map([task.to_string()], suggestion_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The suggested edits whose name begins with this text; at most two.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn find_suggestions(&self, start: &str) -> Result<Vec<SuggestionRow>, StoreError> {
        let sql = format!("SELECT {SUGGESTION} WHERE substr(suggestions.id, 1, ?2) = ?1 LIMIT 2");
        let mut query = self.sql().prepare(&sql)?;
        let rows = query.query_map((start, to_sql(start.len() as u64)?), suggestion_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A suggested edit.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn suggestion(&self, id: &Uuid) -> Result<Option<SuggestionRow>, StoreError> {
        let sql = format!("SELECT {SUGGESTION} WHERE suggestions.id = ?1");
        Ok(self.sql().query_row(&sql, [id.as_str()], suggestion_row).optional()?)
    }

    /// The state of a request.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn suggestion_request(&self, id: &Uuid) -> Result<Option<RequestRow>, StoreError> {
        let sql =
            "SELECT id, task, plan_id, schema_version, revision, state, reply, reason, made_at
             FROM suggestion_requests WHERE id = ?1";
        Ok(self.sql().query_row(sql, [id.as_str()], request_row).optional()?)
    }
}

impl WriteTx<'_> {
    /// Makes a request for edits of the newest revision of a task's plan.
    ///
    /// # Errors
    /// [`StoreError::NoPlan`] when the task has none.
    pub fn new_suggestion_request(&self, task: &TaskRow) -> Result<RequestRow, StoreError> {
        let plan = self.newest_plan(task.id)?.ok_or(StoreError::NoPlan(task.issue))?.plan;
        let id = random_id();
        self.sql().execute(
            "INSERT INTO suggestion_requests
                 (id, task, plan_id, schema_version, revision, state, made_at, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6)",
            (
                id.as_str(),
                task.id.to_string(),
                task.plan_id.to_string(),
                plan.schema_version,
                to_sql(plan.revision)?,
                self.now(),
            ),
        )?;
        self.suggestion_request(&id)?
            .ok_or_else(|| StoreError::Damaged("an added request is missing".into()))
    }

    /// Stores the answer of a pending request, and its edits, which were all found fine.
    ///
    /// Returns the edits; `None` when the request is not pending any more, which keeps a late
    /// answer away from whatever is there now.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_suggestions(
        &self,
        request: &Uuid,
        reply: &str,
        edits: &[Edit],
        actor: Actor,
    ) -> Result<Option<Vec<SuggestionRow>>, StoreError> {
        if !self.end_request(request, RequestState::Pending, RequestState::Ready, None)? {
            return Ok(None);
        }
        self.sql().execute(
            "UPDATE suggestion_requests SET reply = ?1 WHERE id = ?2",
            (reply, request.as_str()),
        )?;
        let mut rows = Vec::new();
        for (nth, edit) in (1..).zip(edits) {
            let id = random_id();
            self.sql().execute(
                "INSERT INTO suggestions (id, request, nth, edit, state, changed_at)
                 VALUES (?1, ?2, ?3, ?4, 'open', ?5)",
                (id.as_str(), request.as_str(), nth, json!(edit).to_string(), self.now()),
            )?;
            rows.extend(self.suggestion(&id)?);
        }
        let Some(row) = self.suggestion_request(request)? else {
            return Err(StoreError::Damaged("an answered request is missing".into()));
        };
        self.log(&Event {
            task: Some(row.task),
            kind: "plan-suggestions",
            actor,
            detail: json!({"request": request, "revision": row.revision, "edits": edits.len()}),
            words: &format!("{} suggested edits of plan r{}", edits.len(), row.revision),
        })?;
        Ok(Some(rows))
    }

    /// Ends a pending request without an answer. Returns whether it was pending.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_suggestion_request(
        &self,
        request: &Uuid,
        to: RequestState,
        reason: &str,
    ) -> Result<bool, StoreError> {
        self.end_request(request, RequestState::Pending, to, Some(reason))
    }

    fn end_request(
        &self,
        request: &Uuid,
        from: RequestState,
        to: RequestState,
        reason: Option<&str>,
    ) -> Result<bool, StoreError> {
        let reason = reason.map(|text| text.chars().take(MAX_REASON).collect::<String>());
        let rows = self.sql().execute(
            "UPDATE suggestion_requests SET state = ?1, reason = ?2, changed_at = ?3
             WHERE id = ?4 AND state = ?5",
            (to.word(), reason, self.now(), request.as_str(), from.word()),
        )?;
        Ok(rows > 0)
    }

    /// Takes a suggested edit: makes the next revision, or changes nothing.
    ///
    /// `edit`: tries the edit again on the plan as it is now.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn take_suggestion<E>(
        &self,
        task: &TaskRow,
        suggestion: &SuggestionRow,
        actor: Actor,
        edit: impl FnOnce(&Plan, &Edit) -> Result<Plan, E>,
    ) -> Result<Taken<E>, StoreError> {
        let now = self.suggestion(&suggestion.id)?;
        let Some(now) = now.filter(|now| now.task == task.id) else {
            return Err(StoreError::NoSuggestion(suggestion.id.to_string()));
        };
        if now.state != SuggestionState::Open {
            return Ok(Taken::NotOpen(now.state));
        }
        let Some(newest) = self.newest_plan(task.id)?.filter(|p| p.plan.revision == now.revision)
        else {
            return Ok(Taken::NotOpen(SuggestionState::Stale));
        };
        let made = match edit(&newest.plan, &now.edit) {
            Ok(made) => made,
            Err(refusal) => return Ok(Taken::Refused(refusal)),
        };
        // Used up first, so that the new revision makes only the others stale.
        self.end_request(&now.request, RequestState::Ready, RequestState::Consumed, None)?;
        self.sql().execute(
            "UPDATE suggestions SET state = 'applied', made = ?1, changed_at = ?2 WHERE id = ?3",
            (to_sql(now.revision + 1)?, self.now(), now.id.as_str()),
        )?;
        let row = self.add_plan(task, now.revision, &made, PlanOrigin::Suggestion, &actor)?;
        self.log(&Event {
            task: Some(task.id),
            kind: "plan-suggestion-applied",
            actor,
            detail: json!({"suggestion": now.id, "revision": row.plan.revision}),
            words: &format!("applied a suggestion to plan r{}", now.revision),
        })?;
        Ok(Taken::Made(Box::new(row)))
    }

    /// Drops a suggested edit. Returns whether it was open. The plan stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn dismiss_suggestion(
        &self,
        suggestion: &SuggestionRow,
        actor: Actor,
    ) -> Result<bool, StoreError> {
        let rows = self.sql().execute(
            "UPDATE suggestions SET state = 'dismissed', changed_at = ?1
             WHERE id = ?2 AND state = 'open'",
            (self.now(), suggestion.id.as_str()),
        )?;
        if rows > 0 {
            self.log(&Event {
                task: Some(suggestion.task),
                kind: "plan-suggestion-dismissed",
                actor,
                detail: json!({"suggestion": suggestion.id, "revision": suggestion.revision}),
                words: &format!("dismissed a suggestion for plan r{}", suggestion.revision),
            })?;
        }
        Ok(rows > 0)
    }

    /// Makes every open edit and request of a plan stale: it has a new revision.
    pub(in crate::store) fn end_suggestions(
        &self,
        task: TaskId,
        revision: u64,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE suggestions SET state = 'stale', changed_at = ?1
             WHERE state = 'open'
             AND request IN (SELECT id FROM suggestion_requests WHERE task = ?2)",
            (self.now(), task.to_string()),
        )?;
        self.sql().execute(
            "UPDATE suggestion_requests SET state = 'invalidated', reason = ?1, changed_at = ?2
             WHERE task = ?3 AND state IN ('pending', 'ready')",
            (format!("the plan is at r{revision}"), self.now(), task.to_string()),
        )?;
        Ok(())
    }
}

/// A new name.
pub(super) fn random_id() -> Uuid {
    let text = uuid::Uuid::new_v4().hyphenated().to_string();
    Uuid::parse(&text).expect("the hyphenated form is that of a Uuid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::World;
    use crate::store::{NewPlanApproval, Store};

    fn plan() -> Plan {
        let text = include_str!("../../../schema/examples/plan-412-r3.json");
        serde_json::from_str(text).expect("a plan")
    }

    fn edits() -> Vec<Edit> {
        let text = include_str!("../../../schema/examples/plan-edit-412-r3.json");
        let answer: codeboost_schema::plan_edit::PlanEdit =
            serde_json::from_str(text).expect("edits");
        answer.edits
    }

    fn add(store: &Store<'_>, task: &TaskRow, after: u64) -> Result<PlanRow, StoreError> {
        let mut plan = plan();
        plan.summary = format!("after {after}");
        store.write(|tx| tx.add_plan(task, after, &plan, PlanOrigin::Import, &Actor::Person))
    }

    fn request(store: &Store<'_>, task: &TaskRow) -> RequestRow {
        store.write(|tx| tx.new_suggestion_request(task)).expect("a request")
    }

    fn answer(store: &Store<'_>, request: &RequestRow) -> Option<Vec<SuggestionRow>> {
        let actor = Actor::Agent("a".into());
        store
            .write(|tx| tx.put_suggestions(&request.id, "reply", &edits(), actor))
            .expect("written")
    }

    fn take(
        store: &Store<'_>,
        task: &TaskRow,
        row: &SuggestionRow,
    ) -> Result<Taken<()>, StoreError> {
        store.write(|tx| {
            tx.take_suggestion(task, row, Actor::Person, |plan, edit| {
                let mut made = plan.clone();
                made.summary.clone_from(&edit.summary);
                Ok::<_, ()>(made)
            })
        })
    }

    #[test]
    fn a_revision_is_added_only_after_the_newest() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        assert_eq!(add(&store, &task, 0).expect("r1").plan.revision, 1);
        assert!(matches!(add(&store, &task, 0), Err(StoreError::PlanMoved { found: 1, .. })));
        assert_eq!(add(&store, &task, 1).expect("r2").plan.revision, 2);
        let rows = store.read(|tx| tx.plans(task.id)).expect("rows");
        assert_eq!(rows.iter().map(|row| row.plan.revision).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(rows[0].plan.summary, "after 0");
    }

    #[test]
    fn only_the_newest_revision_is_approved_and_once() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        add(&store, &task, 0).expect("r1");
        add(&store, &task, 1).expect("r2");
        let approve = |revision, base: &codeboost_schema::ids::CommitId| {
            let allow = [vec!["make".to_owned()]];
            let approval = NewPlanApproval { revision, base, allow: &allow, actor: Actor::Person };
            store.write(|tx| tx.approve_plan(&task, &approval))
        };
        let base = &task.base_commit_id;
        assert!(matches!(approve(1, base), Err(StoreError::PlanMoved { found: 2, .. })));
        let other = codeboost_schema::ids::CommitId::parse(&"1".repeat(40)).expect("an id");
        assert!(matches!(approve(2, &other), Err(StoreError::TaskMoved(412))));
        assert_eq!(store.read(|tx| tx.approved_plan(task.id)).expect("read"), None);
        assert_eq!(
            store.read(|tx| tx.allowed_commands()).expect("read"),
            Vec::<Vec<String>>::new()
        );
        let first = approve(2, base).expect("approved");
        assert_eq!(approve(2, base).expect("approved"), first);
        add(&store, &task, 2).expect("r3");
        let approved = store.read(|tx| tx.approved_plan(task.id)).expect("read").expect("a plan");
        assert_eq!((approved.plan.revision, approved.approval.is_some()), (2, true));
        let newest = store.read(|tx| tx.newest_plan(task.id)).expect("read").expect("a plan");
        assert_eq!((newest.plan.revision, newest.approval), (3, None));
    }

    #[test]
    fn an_answer_that_comes_late_is_kept_away() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        add(&store, &task, 0).expect("r1");
        let late = request(&store, &task);
        add(&store, &task, 1).expect("r2");
        assert_eq!(answer(&store, &late), None);
        let cancelled = request(&store, &task);
        let end = |to, why: &str| {
            store.write(|tx| tx.end_suggestion_request(&cancelled.id, to, why)).expect("written")
        };
        assert!(end(RequestState::Cancelled, &"x".repeat(5000)));
        assert!(!end(RequestState::Failed, "later"));
        assert_eq!(answer(&store, &cancelled), None);
        let rows = store.read(|tx| tx.suggestion_requests(task.id)).expect("rows");
        assert_eq!(
            rows.iter().map(|row| row.state).collect::<Vec<_>>(),
            [RequestState::Invalidated, RequestState::Cancelled]
        );
        assert_eq!(rows[1].reason.as_ref().map(String::len), Some(4000));
        assert!(store.read(|tx| tx.suggestions(task.id)).expect("rows").is_empty());
        let fine = request(&store, &task);
        assert_eq!(answer(&store, &fine).expect("edits").len(), 2);
        assert_eq!(answer(&store, &fine), None, "an answer is stored once");
    }

    #[test]
    fn an_edit_is_taken_once_and_only_for_its_own_plan() {
        let world = World::new();
        let store = world.store();
        let (task, other) = (world.add_task(&store, 412), world.add_task(&store, 413));
        add(&store, &task, 0).expect("r1");
        add(&store, &other, 0).expect("r1");
        let rows = answer(&store, &request(&store, &task)).expect("edits");
        assert!(matches!(take(&store, &other, &rows[0]), Err(StoreError::NoSuggestion(_))));
        let refused = store.write(|tx| {
            tx.take_suggestion(&task, &rows[0], Actor::Person, |_, _| Err::<Plan, _>("no"))
        });
        assert_eq!(refused.map_err(|e: StoreError| e).expect("an answer"), Taken::Refused("no"));
        let Taken::Made(made) = take(&store, &task, &rows[0]).expect("an answer") else {
            panic!("not taken");
        };
        assert_eq!(made.plan.revision, 2);
        for (row, state) in rows.iter().zip([SuggestionState::Applied, SuggestionState::Stale]) {
            let again = take(&store, &task, row).expect("an answer");
            assert_eq!(again, Taken::NotOpen(state));
            let dismissed = store.write(|tx| tx.dismiss_suggestion(row, Actor::Person));
            assert!(!dismissed.expect("written"));
        }
        let state = store.read(|tx| tx.suggestion_request(&rows[0].request)).expect("read");
        assert_eq!(state.map(|row| row.state), Some(RequestState::Consumed));
        let untouched = store.read(|tx| tx.plans(other.id)).expect("rows");
        assert_eq!(untouched.len(), 1);
    }
}
