//! Plans of tasks: every revision, who approved which, and answers to questions.
//!
//! Revisions are appended and never change. A new revision is added on the one that it was made
//! from: when another came between, nothing is added.

use codeboost_schema::canonical;
use codeboost_schema::ids::{CommitId, Digest};
use codeboost_schema::plan::Plan;
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::json;

use crate::store::tx::{parsed, to_sql, unreadable};
use crate::store::{Event, ReadTx, StoreError, TaskRow, WriteTx};
use crate::task::{Actor, TaskId};

/// One revision of a task's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanRow {
    /// The plan; its revision is that of this row.
    pub plan: Plan,
    /// Digest of the plan.
    pub digest: Digest,
    /// How it came about.
    pub origin: PlanOrigin,
    /// RFC 3339 UTC.
    pub made_at: String,
    /// Who made it, for the record.
    pub made_by: String,
    /// Who approved it, if anybody did.
    pub approval: Option<PlanApproval>,
}

/// How a revision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanOrigin {
    /// A file was imported.
    Import,
    /// A person edited the one before.
    Edit,
    /// A suggested edit was applied.
    Suggestion,
    /// An agent drafted it.
    Draft,
    /// An agent proposed it when it found the plan wrong.
    Amendment,
    /// Only feedback was added.
    Feedback,
}

impl PlanOrigin {
    const ALL: [Self; 6] =
        [Self::Import, Self::Edit, Self::Suggestion, Self::Draft, Self::Amendment, Self::Feedback];

    /// Its fixed word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Edit => "edit",
            Self::Suggestion => "suggestion",
            Self::Draft => "draft",
            Self::Amendment => "amendment",
            Self::Feedback => "feedback",
        }
    }
}

/// A person's approval of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanApproval {
    /// The base that the plan was checked against.
    pub base: CommitId,
    /// The commands that were allowed with it.
    pub allowed: Vec<Vec<String>>,
    /// How many questions were open, known to the person.
    pub open_questions: u64,
    /// RFC 3339 UTC.
    pub approved_at: String,
    /// Who, for the record.
    pub approved_by: String,
}

/// What approving a revision records.
#[derive(Debug, Clone)]
pub struct NewPlanApproval<'a> {
    /// The revision; it has to be the newest.
    pub revision: u64,
    /// The base that the plan was checked against; it has to be the task's still.
    pub base: &'a CommitId,
    /// The commands that are allowed with it.
    pub allow: &'a [Vec<String>],
    /// Who approves.
    pub actor: Actor,
}

/// The newest answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerRow {
    /// The question, as the plan asks it.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// The revision that it was given on.
    pub revision: u64,
    /// RFC 3339 UTC.
    pub answered_at: String,
    /// Who, for the record.
    pub answered_by: String,
}

const COLUMNS: &str = "revisions.task, revisions.revision, plan, digest, origin, made_at, made_by,
     base_commit_id, allowed, open_questions, approved_at, approved_by
     FROM plan_revisions AS revisions LEFT JOIN plan_approvals AS approvals
     ON approvals.task = revisions.task AND approvals.revision = revisions.revision";

fn plan_row(row: &Row<'_>) -> rusqlite::Result<PlanRow> {
    let text: String = row.get(2)?;
    let plan: Plan = serde_json::from_str(&text).map_err(|_| unreadable(2, &text))?;
    let digest = parsed(row, 3, |text| Digest::parse(text).ok())?;
    if plan.digest() != digest || plan.revision != row.get::<_, i64>(1)?.unsigned_abs() {
        return Err(unreadable(2, &text));
    }
    let approval = match row.get::<_, Option<String>>(10)? {
        None => None,
        Some(approved_at) => {
            let allowed: String = row.get(8)?;
            Some(PlanApproval {
                base: parsed(row, 7, |text| CommitId::parse(text).ok())?,
                allowed: serde_json::from_str(&allowed).map_err(|_| unreadable(8, &allowed))?,
                open_questions: row.get::<_, i64>(9)?.unsigned_abs(),
                approved_at,
                approved_by: row.get(11)?,
            })
        }
    };
    Ok(PlanRow {
        plan,
        digest,
        origin: parsed(row, 4, |text| {
            PlanOrigin::ALL.into_iter().find(|origin| origin.word() == text)
        })?,
        made_at: row.get(5)?,
        made_by: row.get(6)?,
        approval,
    })
}

impl ReadTx<'_> {
    /// Every revision of a task's plan, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn plans(&self, task: TaskId) -> Result<Vec<PlanRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE revisions.task = ?1 ORDER BY revisions.revision");
        let mut query = self.sql().prepare(&sql)?;
        let rows = query.query_map([task.to_string()], plan_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One revision of a task's plan.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn plan(&self, task: TaskId, revision: u64) -> Result<Option<PlanRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE revisions.task = ?1 AND revisions.revision = ?2");
        let row = self
            .sql()
            .query_row(&sql, (task.to_string(), to_sql(revision)?), plan_row)
            .optional()?;
        Ok(row)
    }

    /// The newest revision of a task's plan, approved or not; `None` before the first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn newest_plan(&self, task: TaskId) -> Result<Option<PlanRow>, StoreError> {
        self.last_plan(task, "")
    }

    /// The newest approved revision of a task's plan: the one that work and review follow.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn approved_plan(&self, task: TaskId) -> Result<Option<PlanRow>, StoreError> {
        self.last_plan(task, "AND approved_at IS NOT NULL")
    }

    fn last_plan(&self, task: TaskId, which: &str) -> Result<Option<PlanRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} WHERE revisions.task = ?1 {which}
             ORDER BY revisions.revision DESC LIMIT 1"
        );
        Ok(self.sql().query_row(&sql, [task.to_string()], plan_row).optional()?)
    }

    /// The newest answer to each question that was ever answered, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn plan_answers(&self, task: TaskId) -> Result<Vec<AnswerRow>, StoreError> {
        let mut query = self.sql().prepare(
            "SELECT question, answer, revision, answered_at, answered_by FROM plan_answers
             WHERE seq IN (SELECT max(seq) FROM plan_answers WHERE task = ?1 GROUP BY question)
             ORDER BY seq",
        )?;
        let rows = query.query_map([task.to_string()], |row| {
            Ok(AnswerRow {
                question: row.get(0)?,
                answer: row.get(1)?,
                revision: row.get::<_, i64>(2)?.unsigned_abs(),
                answered_at: row.get(3)?,
                answered_by: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The questions of a plan that nobody answered, with their places from 1.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn open_questions<'p>(
        &self,
        task: TaskId,
        plan: &'p Plan,
    ) -> Result<Vec<(u64, &'p str)>, StoreError> {
        let answers = self.plan_answers(task)?;
        let is_open = |question: &str| answers.iter().all(|answer| answer.question != question);
        let all = (1..).zip(plan.questions.iter().map(String::as_str));
        Ok(all.filter(|(_, question)| is_open(question)).collect())
    }
}

impl WriteTx<'_> {
    /// Adds a revision after the newest one, whose number `after` has to be (0 before the first).
    /// The plan's own revision is replaced by the next number.
    ///
    /// Every open suggestion and every request for some, all made for the revision before, become
    /// stale in the same transaction.
    ///
    /// # Errors
    /// [`StoreError::PlanMoved`] when `after` is not the newest revision.
    pub fn add_plan(
        &self,
        task: &TaskRow,
        after: u64,
        plan: &Plan,
        origin: PlanOrigin,
        actor: &Actor,
    ) -> Result<PlanRow, StoreError> {
        let newest = self.newest_plan(task.id)?.map_or(0, |row| row.plan.revision);
        if newest != after {
            return Err(StoreError::PlanMoved {
                issue: task.issue,
                expected: after,
                found: newest,
            });
        }
        let plan = Plan { revision: newest + 1, ..plan.clone() };
        let text = String::from_utf8(canonical::to_bytes(&plan))
            .map_err(|_| StoreError::Damaged("a plan is not text".into()))?;
        self.sql().execute(
            "INSERT INTO plan_revisions (task, revision, plan, digest, origin, made_at, made_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                task.id.to_string(),
                to_sql(plan.revision)?,
                text,
                plan.digest().as_str(),
                origin.word(),
                self.now(),
                self.actor_text(actor),
            ),
        )?;
        self.end_suggestions(task.id, plan.revision)?;
        self.log(&Event {
            task: Some(task.id),
            kind: "plan-revision",
            actor: actor.clone(),
            detail: json!({
                "revision": plan.revision, "digest": plan.digest(), "origin": origin.word(),
            }),
            words: &match origin {
                PlanOrigin::Import => format!("imported plan r{}", plan.revision),
                PlanOrigin::Edit => format!("edited the plan to r{}", plan.revision),
                PlanOrigin::Suggestion => format!("a suggestion made plan r{}", plan.revision),
                PlanOrigin::Draft => format!("a draft made plan r{}", plan.revision),
                PlanOrigin::Amendment => format!("an amendment made plan r{}", plan.revision),
                PlanOrigin::Feedback => format!("feedback made plan r{}", plan.revision),
            },
        })?;
        self.plan(task.id, plan.revision)?
            .ok_or_else(|| StoreError::Damaged("an added revision is missing".into()))
    }

    /// Records that a person approved the newest revision, and allows commands with it.
    ///
    /// Assignments to items that it no longer has end, and commits made for them become nobody's. A
    /// revision that is approved already stays
    /// as it is.
    ///
    /// # Errors
    /// [`StoreError::PlanMoved`] when the revision is not the newest, [`StoreError::TaskMoved`]
    /// when the task's base is another by now.
    pub fn approve_plan(
        &self,
        task: &TaskRow,
        approval: &NewPlanApproval<'_>,
    ) -> Result<PlanRow, StoreError> {
        let newest = self.newest_plan(task.id)?;
        let Some(row) = newest.filter(|row| row.plan.revision == approval.revision) else {
            let found = self.newest_plan(task.id)?.map_or(0, |row| row.plan.revision);
            let expected = approval.revision;
            return Err(StoreError::PlanMoved { issue: task.issue, expected, found });
        };
        if row.approval.is_some() {
            return Ok(row);
        }
        let now = self.task(task.id)?;
        if now.is_none_or(|now| now.base_commit_id != *approval.base) {
            return Err(StoreError::TaskMoved(task.issue));
        }
        let open = self.open_questions(task.id, &row.plan)?.len();
        for argv in approval.allow {
            self.allow_command(argv, approval.actor.clone(), Some(task.id))?;
        }
        self.sql().execute(
            "INSERT INTO plan_approvals (task, revision, base_commit_id, allowed, open_questions,
                 approved_at, approved_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                task.id.to_string(),
                to_sql(approval.revision)?,
                approval.base.as_str(),
                json!(approval.allow).to_string(),
                to_sql(open as u64)?,
                self.now(),
                self.actor_text(&approval.actor),
            ),
        )?;
        let items = row.plan.items.iter().map(|item| &item.id);
        self.end_assignments_to_removed_items(task.id, approval.revision, items)?;
        let outcome = format!("r{} was approved", approval.revision);
        self.end_errands(task.id, "reject", true, &outcome)?;
        let kept = row.plan.items.iter().map(|item| item.id.clone()).collect();
        self.retire_items(task, &kept, approval.revision)?;
        self.log(&Event {
            task: Some(task.id),
            kind: "plan-approved",
            actor: approval.actor.clone(),
            detail: json!({
                "revision": approval.revision, "digest": row.digest, "base": approval.base,
                "allowed": approval.allow, "open_questions": open,
            }),
            words: &format!("approved plan r{}", approval.revision),
        })?;
        self.plan(task.id, approval.revision)?
            .ok_or_else(|| StoreError::Damaged("an approved revision is missing".into()))
    }

    /// Records an answer to a question of a revision.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn answer_question(
        &self,
        task: TaskId,
        revision: u64,
        question: &str,
        answer: &str,
        actor: Actor,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO plan_answers (task, revision, question, answer, answered_at, answered_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                task.to_string(),
                to_sql(revision)?,
                question,
                answer,
                self.now(),
                self.actor_text(&actor),
            ),
        )?;
        self.log(&Event {
            task: Some(task),
            kind: "plan-answer",
            actor,
            detail: json!({"revision": revision, "question": question, "answer": answer}),
            words: &format!("answered a question of plan r{revision}"),
        })
    }
}
