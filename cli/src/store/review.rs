//! Decisions, approvals, choices, acknowledgements, questions and change requests of a task.
//!
//! Every one of them is first a decision, appended and never changed. What follows from it stands
//! in a table of its own, whose rows only ever end.

use std::collections::BTreeMap;

use codeboost_schema::bytes::{RepoBytes, as_base64};
use codeboost_schema::canonical;
use codeboost_schema::decisions::{Action, Decision};
use codeboost_schema::ids::{CommitId, Digest, Fingerprint, ItemId, SegmentKey, Uuid};
use rusqlite::{OptionalExtension as _, Row};
use serde::Serialize;
use serde_json::{Value, json};

use crate::approval::choice::Choice;
use crate::approval::fingerprint::Snapshot;
use crate::approval::policy::Reviewer;
use crate::store::tx::{parsed, parsed_opt, to_sql, unreadable};
use crate::store::{Event, ReadTx, StoreError, WriteTx};
use crate::task::{Actor, TaskId};

/// On what, by whom and from which file a decision is recorded.
#[derive(Debug, Clone)]
pub struct Occasion {
    /// The task.
    pub task: TaskId,
    /// Revision of the plan.
    pub revision: u64,
    /// The base of the review.
    pub base: CommitId,
    /// The head of the review.
    pub head: CommitId,
    /// Who decided, as far as that is proven.
    pub reviewer: Reviewer,
    /// The decisions file, in the evidence; `None` from the terminal.
    pub file: Option<Digest>,
    /// Its detached signature, in the evidence.
    pub signature: Option<Digest>,
}

impl Occasion {
    /// Who decided, for the log.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match &self.reviewer {
            Reviewer::Terminal(_) => Actor::Person,
            Reviewer::Signed { name, .. } => Actor::Reviewer(name.clone()),
        }
    }
}

/// Who decided and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// The decision's id.
    pub decision: Uuid,
    /// Who, as far as that is proven.
    pub reviewer: Reviewer,
    /// RFC 3339 UTC.
    pub at: String,
    /// Revision of the plan.
    pub revision: u64,
    /// The head of the review.
    pub head: CommitId,
}

/// A recorded decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    /// Who and when.
    pub made: Made,
    /// Its type.
    pub kind: String,
    /// Digest of what it says besides its id.
    pub content: Digest,
    /// The decision without its id.
    pub decision: Value,
    /// The decisions file, in the evidence.
    pub file: Option<Digest>,
    /// Its signature, in the evidence.
    pub signature: Option<Digest>,
}

/// A recorded approval that was not withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRow {
    /// Who and when.
    pub made: Made,
    /// The item.
    pub item: ItemId,
    /// Whether it confirms that no change is needed.
    pub no_change: bool,
    /// What was approved.
    pub fingerprint: Fingerprint,
    /// The digest under which the snapshot is stored.
    pub snapshot: Digest,
    /// The fingerprints of all that the item depended on.
    pub dependencies: BTreeMap<ItemId, Fingerprint>,
}

/// What a new approval stores.
#[derive(Debug, Clone)]
pub struct NewApproval<'a> {
    /// Whether it confirms that no change is needed.
    pub no_change: bool,
    /// What is approved, assigned segments included.
    pub snapshot: &'a Snapshot,
    /// The fingerprint of that.
    pub fingerprint: &'a Fingerprint,
    /// The fingerprints of all that the item depends on.
    pub dependencies: &'a BTreeMap<ItemId, Fingerprint>,
    /// Segment key and tag of each acknowledgement that it relies on.
    pub acknowledged: &'a [(SegmentKey, String)],
}

/// A choice that was not ended. Whether it is in force is for `approval::choice` to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChoiceRow {
    /// Who and when.
    pub made: Made,
    /// The segment.
    pub key: SegmentKey,
    /// What was chosen.
    pub choice: Choice,
}

/// A recorded acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcknowledgementRow {
    /// Who and when.
    pub made: Made,
    /// The segment.
    pub key: SegmentKey,
    /// The tag's word.
    pub tag: String,
}

/// What a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoteKind {
    /// To be answered.
    Question,
    /// To be sent with the next revision.
    Request,
}

/// Where a note stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoteState {
    /// A question without an answer, a request that was not sent.
    Open,
    /// No longer wanted.
    Withdrawn,
    /// Sent with a rejection.
    Sent,
    /// Answered.
    Answered,
}

impl NoteState {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Open, "open"),
        (Self::Withdrawn, "withdrawn"),
        (Self::Sent, "sent"),
        (Self::Answered, "answered"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("open", |(_, word)| word)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text)| *text == word).map(|(state, _)| *state)
    }
}

/// A question or a change request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteRow {
    /// Who and when; its decision's id is the note's.
    pub made: Made,
    /// What it is.
    pub kind: NoteKind,
    /// The item it is about.
    pub item: ItemId,
    /// The segment it is about.
    pub key: Option<SegmentKey>,
    /// First and last line within the segment's text; from 1, inclusive.
    pub lines: Option<(u64, u64)>,
    /// The text.
    pub text: String,
    /// The lines that it is about, as they stood.
    #[serde(serialize_with = "as_base64")]
    pub context: Option<RepoBytes>,
    /// Where it stands.
    pub state: NoteState,
    /// The answer to a question.
    pub answer: Option<String>,
}

/// Something that a decision asks codeboost to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrandRow {
    /// Who and when.
    pub made: Made,
    /// `ask`, `reject` or `merge`.
    pub kind: String,
}

const MADE: &str =
    "d.id, d.signed, d.reviewer, d.recorded_at, d.revision, d.head_commit_id, d.signer_key";
/// Number of columns of [`MADE`].
const N_MADE: usize = 7;

fn uuid_of(text: &str) -> Option<Uuid> {
    Uuid::parse(text).ok()
}

fn digest(text: &str) -> Option<Digest> {
    Digest::parse(text).ok()
}

fn item_id(text: &str) -> Option<ItemId> {
    ItemId::parse(text).ok()
}

fn commit(text: &str) -> Option<CommitId> {
    CommitId::parse(text).ok()
}

/// What a decision keeps of its reviewer: whether signed, the name, the key.
fn columns(reviewer: &Reviewer) -> (bool, &str, Option<&str>) {
    match reviewer {
        Reviewer::Terminal(name) => (false, name, None),
        Reviewer::Signed { name, key } => (true, name, key.as_deref()),
    }
}

/// The reviewer of a decision, from its columns.
pub(super) fn reviewer(signed: bool, name: String, key: Option<String>) -> Reviewer {
    if signed { Reviewer::Signed { name, key } } else { Reviewer::Terminal(name) }
}

fn made(row: &Row<'_>) -> rusqlite::Result<Made> {
    Ok(Made {
        decision: parsed(row, 0, uuid_of)?,
        reviewer: reviewer(row.get(1)?, row.get(2)?, row.get(6)?),
        at: row.get(3)?,
        revision: row.get::<_, i64>(4)?.unsigned_abs(),
        head: parsed(row, 5, commit)?,
    })
}

impl ReadTx<'_> {
    fn rows<T>(
        &self,
        sql: &str,
        task: TaskId,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut query = self.sql().prepare(sql)?;
        let rows = query.query_map([task.to_string()], |row| read(row))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The digest of what a recorded decision says; `None` when that id was never recorded.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn decision_content(&self, id: &Uuid) -> Result<Option<Digest>, StoreError> {
        let sql = "SELECT content FROM decisions WHERE id = ?1";
        Ok(self.sql().query_row(sql, [id.as_str()], |row| parsed(row, 0, digest)).optional()?)
    }

    /// Every decision of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn decisions(&self, task: TaskId) -> Result<Vec<DecisionRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, d.kind, d.content, d.decision, d.file, d.signature
             FROM decisions d WHERE d.task = ?1 ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| {
            let decision: String = row.get(N_MADE + 2)?;
            Ok(DecisionRow {
                made: made(row)?,
                kind: row.get(N_MADE)?,
                content: parsed(row, N_MADE + 1, digest)?,
                decision: serde_json::from_str(&decision)
                    .map_err(|_| unreadable(N_MADE + 2, &decision))?,
                file: parsed_opt(row, N_MADE + 3, digest)?,
                signature: parsed_opt(row, N_MADE + 4, digest)?,
            })
        })
    }

    /// The approvals of a task that were not withdrawn, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn approvals(&self, task: TaskId) -> Result<Vec<ApprovalRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, a.item, a.no_change, a.fingerprint, a.snapshot, a.dependencies
             FROM approvals a JOIN decisions d ON d.id = a.decision
             WHERE a.task = ?1 AND a.withdrawn_by IS NULL ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| {
            let dependencies: String = row.get(N_MADE + 4)?;
            Ok(ApprovalRow {
                made: made(row)?,
                item: parsed(row, N_MADE, item_id)?,
                no_change: row.get(N_MADE + 1)?,
                fingerprint: parsed(row, N_MADE + 2, digest)?,
                snapshot: parsed(row, N_MADE + 3, digest)?,
                dependencies: serde_json::from_str(&dependencies)
                    .map_err(|_| unreadable(N_MADE + 4, &dependencies))?,
            })
        })
    }

    /// The snapshot that is stored under that digest.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is missing, altered or unreadable.
    pub fn snapshot(&self, name: &Digest) -> Result<Snapshot, StoreError> {
        let sql = "SELECT snapshot FROM snapshots WHERE digest = ?1";
        let bytes: Option<Vec<u8>> =
            self.sql().query_row(sql, [name.as_str()], |row| row.get(0)).optional()?;
        let bytes = bytes.ok_or_else(|| StoreError::Damaged(format!("no snapshot {name}")))?;
        if Digest::of(&bytes) != *name {
            return Err(StoreError::Damaged(format!("the snapshot {name} was altered")));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Damaged(format!("the snapshot {name}: {error}")))
    }

    /// The choices of a task that were not ended, oldest first; one per segment key.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn choices(&self, task: TaskId) -> Result<Vec<ChoiceRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, c.segment_key, c.item FROM choices c JOIN decisions d ON d.id = c.decision
             WHERE c.task = ?1 AND c.ended IS NULL ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| {
            Ok(ChoiceRow {
                made: made(row)?,
                key: parsed(row, N_MADE, digest)?,
                choice: parsed_opt(row, N_MADE + 1, item_id)?
                    .map_or(Choice::Accepted, Choice::Assigned),
            })
        })
    }

    /// The acknowledgements of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn acknowledgements(&self, task: TaskId) -> Result<Vec<AcknowledgementRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, a.segment_key, a.tag
             FROM acknowledgements a JOIN decisions d ON d.id = a.decision
             WHERE a.task = ?1 ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| {
            Ok(AcknowledgementRow {
                made: made(row)?,
                key: parsed(row, N_MADE, digest)?,
                tag: row.get(N_MADE + 1)?,
            })
        })
    }

    /// The questions and change requests of a task, oldest first, withdrawn ones included.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn notes(&self, task: TaskId) -> Result<Vec<NoteRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, n.kind, n.item, n.segment_key, n.first_line, n.last_line, n.text,
                    n.context, n.state, n.answer
             FROM notes n JOIN decisions d ON d.id = n.decision WHERE n.task = ?1 ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| {
            let kind: String = row.get(N_MADE)?;
            let line = |n: usize| {
                Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(n)?.map(i64::unsigned_abs))
            };
            Ok(NoteRow {
                made: made(row)?,
                kind: if kind == "question" { NoteKind::Question } else { NoteKind::Request },
                item: parsed(row, N_MADE + 1, item_id)?,
                key: parsed_opt(row, N_MADE + 2, digest)?,
                lines: line(N_MADE + 3)?.zip(line(N_MADE + 4)?),
                text: row.get(N_MADE + 5)?,
                context: row.get::<_, Option<Vec<u8>>>(N_MADE + 6)?.map(RepoBytes::from),
                state: parsed(row, N_MADE + 7, NoteState::parse)?,
                answer: row.get(N_MADE + 8)?,
            })
        })
    }

    /// What a task's decisions ask for and nobody carried out yet, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn open_errands(&self, task: TaskId) -> Result<Vec<ErrandRow>, StoreError> {
        let sql = format!(
            "SELECT {MADE}, e.kind FROM errands e JOIN decisions d ON d.id = e.decision
             WHERE e.task = ?1 AND e.state = 'open' ORDER BY d.seq"
        );
        self.rows(&sql, task, |row| Ok(ErrandRow { made: made(row)?, kind: row.get(N_MADE)? }))
    }

    /// The newest record that a page of the task is made from: its place in the log, and when it
    /// was made (RFC 3339 UTC). That a stage was made is no such record.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn newest_record(&self, task: TaskId) -> Result<Option<(i64, String)>, StoreError> {
        let sql = "SELECT seq, at FROM events WHERE task = ?1 AND kind <> 'stage'
             ORDER BY seq DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        Ok(self.sql().query_row(sql, [task.to_string()], read).optional()?)
    }
}

impl WriteTx<'_> {
    /// Records that a decision was made. Whatever follows from it is recorded by the other
    /// methods, in the same transaction. `words`: for the log, as in `approved P1`.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written; an id that was recorded before is one.
    pub fn record_decision(
        &self,
        on: &Occasion,
        decision: &Decision,
        words: &str,
    ) -> Result<(), StoreError> {
        let content = serde_json::to_value(&decision.action)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        let (signed, name, key) = columns(&on.reviewer);
        self.sql().execute(
            "INSERT INTO decisions (id, task, kind, content, decision, signed, reviewer, signer_key,
                 file, signature, revision, base_commit_id, head_commit_id, recorded_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            (
                decision.id.as_str(),
                on.task.to_string(),
                decision.action.word(),
                decision.content.as_str(),
                content.to_string(),
                signed,
                name,
                key,
                on.file.as_ref().map(Digest::as_str),
                on.signature.as_ref().map(Digest::as_str),
                to_sql(on.revision)?,
                on.base.as_str(),
                on.head.as_str(),
                self.now(),
            ),
        )?;
        self.log(&Event {
            task: Some(on.task),
            kind: "decision",
            actor: on.actor(),
            detail: json!({"id": decision.id, "decision": content, "file": on.file}),
            words,
        })
    }

    /// Records what an `approve` or `confirm_no_change` covers.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_approval(
        &self,
        on: &Occasion,
        decision: &Uuid,
        new: &NewApproval<'_>,
    ) -> Result<(), StoreError> {
        let bytes = canonical::to_bytes(new.snapshot);
        let name = Digest::of(&bytes);
        self.sql().execute(
            "INSERT OR IGNORE INTO snapshots (digest, snapshot) VALUES (?1, ?2)",
            (name.as_str(), bytes),
        )?;
        self.sql().execute(
            "INSERT INTO approvals (decision, task, item, no_change, fingerprint, snapshot,
                 dependencies, acknowledged) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                decision.as_str(),
                on.task.to_string(),
                new.snapshot.binding.item.as_str(),
                new.no_change,
                new.fingerprint.as_str(),
                name.as_str(),
                json!(new.dependencies).to_string(),
                json!(new.acknowledged).to_string(),
            ),
        )?;
        Ok(())
    }

    /// Ends all approvals of an item by the decision's reviewer. Returns how many there were.
    ///
    /// All that is not signed counts as of one reviewer.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn withdraw_approvals(
        &self,
        on: &Occasion,
        decision: &Uuid,
        item: &ItemId,
    ) -> Result<usize, StoreError> {
        let (signed, name, key) = columns(&on.reviewer);
        Ok(self.sql().execute(
            "UPDATE approvals SET withdrawn_by = ?1
             WHERE task = ?2 AND item = ?3 AND withdrawn_by IS NULL
               AND decision IN (SELECT id FROM decisions
                                WHERE signed = ?4
                                  AND (signed = 0 OR reviewer = ?5 OR signer_key = ?6))",
            (decision.as_str(), on.task.to_string(), item.as_str(), signed, name, key),
        )?)
    }

    /// Records a choice; an earlier one about the same segment ends.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_choice(
        &self,
        on: &Occasion,
        decision: &Uuid,
        key: &SegmentKey,
        choice: &Choice,
    ) -> Result<(), StoreError> {
        self.end_choice(on.task, key, "another choice")?;
        let item = match choice {
            Choice::Assigned(item) => Some(item.as_str()),
            Choice::Accepted => None,
        };
        self.sql().execute(
            "INSERT INTO choices (decision, task, segment_key, item) VALUES (?1, ?2, ?3, ?4)",
            (decision.as_str(), on.task.to_string(), key.as_str(), item),
        )?;
        Ok(())
    }

    /// Ends the choice about a segment. Returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_choice(
        &self,
        task: TaskId,
        key: &SegmentKey,
        why: &str,
    ) -> Result<bool, StoreError> {
        let rows = self.sql().execute(
            "UPDATE choices SET ended = ?1 WHERE task = ?2 AND segment_key = ?3 AND ended IS NULL",
            (why, task.to_string(), key.as_str()),
        )?;
        Ok(rows > 0)
    }

    /// Ends all assignments to items that a new revision no longer has, for good: they don't come
    /// back when a later revision has an item of that id again. Call it in the transaction that
    /// makes the revision current. Returns how many ended.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_assignments_to_removed_items<'a>(
        &self,
        task: TaskId,
        revision: u64,
        items: impl IntoIterator<Item = &'a ItemId>,
    ) -> Result<usize, StoreError> {
        let items: Vec<_> = items.into_iter().map(ItemId::as_str).collect();
        Ok(self.sql().execute(
            "UPDATE choices SET ended = ?1 WHERE task = ?2 AND ended IS NULL AND item IS NOT NULL
             AND item NOT IN (SELECT value FROM json_each(?3))",
            (format!("r{revision} removed the item"), task.to_string(), json!(items).to_string()),
        )?)
    }

    /// Records that a tag of a segment was acknowledged.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_acknowledgement(
        &self,
        on: &Occasion,
        decision: &Uuid,
        key: &SegmentKey,
        tag: &str,
    ) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO acknowledgements (decision, task, segment_key, tag) VALUES (?1, ?2, ?3, ?4)",
            (decision.as_str(), on.task.to_string(), key.as_str(), tag),
        )?;
        Ok(())
    }

    /// Records a question or a change request, with the lines that it is about.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_note(
        &self,
        on: &Occasion,
        decision: &Decision,
        context: Option<&RepoBytes>,
    ) -> Result<(), StoreError> {
        let (kind, item, key, from, to, text) = match &decision.action {
            Action::Ask { item, key, from, to, text, .. } => {
                ("question", item, key, from, to, text)
            }
            Action::RequestChange { item, key, from, to, text, .. } => {
                ("request", item, key, from, to, text)
            }
            _ => return Err(StoreError::Damaged("a note that is none".into())),
        };
        self.sql().execute(
            "INSERT INTO notes (decision, task, kind, item, segment_key, first_line, last_line, text,
                 context, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open')",
            (
                decision.id.as_str(),
                on.task.to_string(),
                kind,
                item.as_str(),
                key.as_ref().map(Digest::as_str),
                from.map(to_sql).transpose()?,
                to.map(to_sql).transpose()?,
                text,
                context.map(RepoBytes::as_bytes),
            ),
        )?;
        Ok(())
    }

    /// Moves an open note to another state. Returns whether it was open.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn set_note_state(&self, note: &Uuid, state: NoteState) -> Result<bool, StoreError> {
        let rows = self.sql().execute(
            "UPDATE notes SET state = ?1 WHERE decision = ?2 AND state = 'open'",
            (state.word(), note.as_str()),
        )?;
        Ok(rows > 0)
    }

    /// Records the answer to an open question. Returns whether it was open.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn answer_note(
        &self,
        task: TaskId,
        note: &Uuid,
        answer: &str,
        by: Actor,
    ) -> Result<bool, StoreError> {
        let rows = self.sql().execute(
            "UPDATE notes SET state = 'answered', answer = ?1, answered_at = ?2
             WHERE decision = ?3 AND task = ?4 AND kind = 'question' AND state = 'open'",
            (answer, self.now(), note.as_str(), task.to_string()),
        )?;
        if rows > 0 {
            self.log(&Event {
                task: Some(task),
                kind: "answer",
                actor: by,
                detail: json!({"question": note}),
                words: "answered a question",
            })?;
        }
        Ok(rows > 0)
    }

    /// Records that a decision asks codeboost to do something: `ask`, `reject` or `merge`.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn put_errand(&self, on: &Occasion, decision: &Uuid, kind: &str) -> Result<(), StoreError> {
        self.sql().execute(
            "INSERT INTO errands (decision, task, kind, state) VALUES (?1, ?2, ?3, 'open')",
            (decision.as_str(), on.task.to_string(), kind),
        )?;
        Ok(())
    }

    /// Ends the open errands of a task that are of one kind: `done`, or dropped.
    ///
    /// `outcome`: what became of them, for people.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be written.
    pub fn end_errands(
        &self,
        task: TaskId,
        kind: &str,
        done: bool,
        outcome: &str,
    ) -> Result<(), StoreError> {
        let state = if done { "done" } else { "dropped" };
        self.sql().execute(
            "UPDATE errands SET state = ?1, outcome = ?2
             WHERE task = ?3 AND kind = ?4 AND state = 'open'",
            (state, outcome, task.to_string(), kind),
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::choice::{Choices, place};
    use crate::approval::freshness::Now;
    use crate::approval::samples::{binding, item, sample, uuid};
    use crate::store::TaskRow;
    use crate::store::testing::World;

    fn occasion(task: &TaskRow, reviewer: Reviewer) -> Occasion {
        Occasion {
            task: task.id,
            revision: 1,
            base: task.base_commit_id.clone(),
            head: task.head_commit_id.clone(),
            reviewer,
            file: None,
            signature: None,
        }
    }

    fn signed(name: &str, key: &str) -> Reviewer {
        Reviewer::Signed { name: name.into(), key: Some(key.into()) }
    }

    fn me() -> Reviewer {
        Reviewer::Terminal("me".into())
    }

    fn decision(n: u32, action: Action) -> Decision {
        Decision::new(uuid(n), action)
    }

    #[test]
    fn an_approval_is_read_back_until_its_own_reviewer_withdraws_it() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        let sample = sample();
        let placed = place(&sample.link, &sample.plan, &Choices::new());
        let now = Now::take(&sample.link, &placed, &sample.plan, binding);
        let (id, dependencies) = (item("P2"), now.dependencies_of(&item("P2")));
        let approve = |n: u32, reviewer: Reviewer| {
            let on = occasion(&task, reviewer);
            let approve = decision(n, Action::Approve { item: id.clone() });
            store
                .write(|tx| {
                    tx.record_decision(&on, &approve, "approved P2")?;
                    let new = NewApproval {
                        no_change: false,
                        snapshot: &now.snapshots[&id],
                        fingerprint: &now.fingerprints[&id],
                        dependencies: &dependencies,
                        acknowledged: &[(Digest::of(b"key"), "eol".into())],
                    };
                    tx.put_approval(&on, &approve.id, &new)
                })
                .expect("recorded");
        };
        approve(1, me());
        approve(2, signed("a", "a"));
        approve(3, signed("b", "b"));
        let rows = store.read(|tx| tx.approvals(task.id)).expect("rows");
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].dependencies, dependencies);
        assert_eq!(rows[0].fingerprint, now.fingerprints[&id]);
        let snapshot = store.read(|tx| tx.snapshot(&rows[0].snapshot)).expect("a snapshot");
        assert_eq!(snapshot, now.snapshots[&id]);

        let withdraw = decision(4, Action::Withdraw { item: id.clone() });
        // Under another name by now.
        let on = occasion(&task, signed("renamed", "a"));
        let n = store.write(|tx| {
            tx.record_decision(&on, &withdraw, "withdrew the approval of P2")?;
            tx.withdraw_approvals(&on, &withdraw.id, &id)
        });
        assert_eq!(n.expect("recorded"), 1);
        let rows = store.read(|tx| tx.approvals(task.id)).expect("rows");
        let left: Vec<_> = rows.iter().map(|row| row.made.reviewer.name().to_owned()).collect();
        assert_eq!(left, ["me", "b"]);
        let all = store.read(|tx| tx.decisions(task.id)).expect("rows");
        assert_eq!(all.len(), 4);
        assert_eq!(all[3].content, withdraw.content);
    }

    #[test]
    fn an_id_is_recorded_once_and_never_changes() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        let on = occasion(&task, me());
        let merge = decision(1, Action::Merge {});
        let record = || store.write(|tx| tx.record_decision(&on, &merge, "asked to merge"));
        record().expect("recorded");
        record().expect_err("recorded before");
        let content = store.read(|tx| tx.decision_content(&merge.id)).expect("read");
        assert_eq!(content, Some(merge.content.clone()));
        store
            .write(|tx| {
                tx.sql().execute("UPDATE decisions SET kind = 'approve'", [])?;
                Ok::<_, StoreError>(())
            })
            .expect_err("decisions never change");
    }

    #[test]
    fn a_choice_ends_with_another_one_or_with_its_item() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        let on = occasion(&task, me());
        let keys = [Digest::of(b"one"), Digest::of(b"two"), Digest::of(b"three")];
        let choose = |n: u32, key: &SegmentKey, choice: Choice| {
            let accept = decision(n, Action::Accept { segment: 0, key: key.clone() });
            store
                .write(|tx| {
                    tx.record_decision(&on, &accept, "chose")?;
                    tx.put_choice(&on, &accept.id, key, &choice)
                })
                .expect("recorded");
        };
        choose(1, &keys[0], Choice::Accepted);
        choose(2, &keys[0], Choice::Assigned(item("P1")));
        choose(3, &keys[1], Choice::Assigned(item("P2")));
        choose(4, &keys[2], Choice::Accepted);
        let read = || {
            let rows = store.read(|tx| tx.choices(task.id)).expect("rows");
            rows.into_iter().map(|row| (row.key, row.choice)).collect::<Vec<_>>()
        };
        assert_eq!(
            read(),
            [
                (keys[0].clone(), Choice::Assigned(item("P1"))),
                (keys[1].clone(), Choice::Assigned(item("P2"))),
                (keys[2].clone(), Choice::Accepted),
            ]
        );
        let ended =
            store.write(|tx| tx.end_assignments_to_removed_items(task.id, 2, [&item("P2")]));
        assert_eq!(ended.expect("recorded"), 1);
        // The item coming back doesn't bring the assignment back.
        let ended =
            store.write(|tx| tx.end_assignments_to_removed_items(task.id, 3, [&item("P1")]));
        assert_eq!(ended.expect("recorded"), 1);
        assert_eq!(read(), [(keys[2].clone(), Choice::Accepted)]);
        let ended = store.write(|tx| tx.end_choice(task.id, &keys[2], "unresolved"));
        assert!(ended.expect("recorded"));
        assert!(read().is_empty());
    }

    #[test]
    fn notes_and_errands_end_once() {
        let world = World::new();
        let store = world.store();
        let task = world.add_task(&store, 412);
        let on = occasion(&task, me());
        let request = decision(
            1,
            Action::RequestChange {
                item: item("P1"),
                segment: Some(3),
                key: Some(Digest::of(b"one")),
                from: Some(1),
                to: Some(2),
                text: "Change it.".into(),
            },
        );
        let merge = decision(2, Action::Merge {});
        store
            .write(|tx| {
                tx.record_decision(&on, &request, "requested a change of P1")?;
                tx.put_note(&on, &request, Some(&"a\nb\n".into()))?;
                tx.record_decision(&on, &merge, "asked to merge")?;
                tx.put_errand(&on, &merge.id, "merge")
            })
            .map_err(|error: StoreError| error)
            .expect("recorded");
        let notes = store.read(|tx| tx.notes(task.id)).expect("rows");
        assert_eq!(notes[0].lines, Some((1, 2)));
        assert_eq!(notes[0].context, Some("a\nb\n".into()));
        let withdraw = || store.write(|tx| tx.set_note_state(&request.id, NoteState::Withdrawn));
        assert!(withdraw().expect("recorded"));
        assert!(!withdraw().expect("recorded"));
        let open = || store.read(|tx| tx.open_errands(task.id)).expect("rows");
        assert_eq!(open()[0].kind, "merge");
        store.write(|tx| tx.end_errands(task.id, "reject", true, "r2")).expect("recorded");
        assert_eq!(open().len(), 1, "another kind");
        store.write(|tx| tx.end_errands(task.id, "merge", true, "merged")).expect("recorded");
        assert!(open().is_empty());
        assert_eq!(
            store.read(|tx| tx.newest_record(task.id)).expect("read").map(|(_, at)| at).as_deref(),
            Some("2026-11-30T12:00:00Z")
        );
    }
}
