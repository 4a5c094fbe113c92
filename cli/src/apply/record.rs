//! Writes down what was judged: all of it in one transaction, or nothing.

use crate::apply::book::Step;
use crate::apply::compare::Effect;
use crate::apply::desk::PlanEffect;
use crate::review::Review;
use crate::store::{
    NewApproval, NewPlanApproval, NoteState, Occasion, Store, StoreError, Taken, WriteTx,
};

/// Whether everything was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Recorded {
    /// Yes.
    All,
    /// Another process changed the state since it was judged; nothing was recorded.
    Moved,
}

/// Records the steps.
///
/// `generation`: of the state that was judged. `after`: the review as it stands with these steps;
/// approvals store what it holds; `None` for a page of a plan.
///
/// # Errors
/// [`StoreError`] when the state can't be written; then nothing is.
pub fn record(
    store: &Store<'_>,
    generation: i64,
    on: &Occasion,
    steps: &[Step],
    after: Option<&Review>,
) -> Result<Recorded, StoreError> {
    store.write(|tx| {
        if tx.generation()? != generation {
            return Ok(Recorded::Moved);
        }
        for step in steps {
            tx.record_decision(on, &step.decision, &step.words)?;
            follow(tx, on, step, after)?;
        }
        Ok(Recorded::All)
    })
}

fn follow(
    tx: &WriteTx<'_>,
    on: &Occasion,
    step: &Step,
    after: Option<&Review>,
) -> Result<(), StoreError> {
    let id = &step.decision.id;
    match &step.effect {
        Effect::Withdraw(item) => tx.withdraw_approvals(on, id, item).map(drop),
        Effect::Unresolve(key) => tx.end_choice(on.task, key, "taken back").map(drop),
        Effect::Acknowledge(key, tag) => tx.put_acknowledgement(on, id, key, tag),
        Effect::Choose(key, choice) => tx.put_choice(on, id, key, choice),
        Effect::Approve(approval) => {
            let item = &approval.item;
            let now = after.map(|after| &after.now);
            let found = now.and_then(|now| {
                let dependencies = now.dependencies_of(item);
                Some((now.snapshots.get(item)?, now.fingerprints.get(item)?, dependencies))
            });
            let Some((snapshot, fingerprint, dependencies)) = found else {
                return Err(StoreError::Damaged(format!("{item} was judged and is not there")));
            };
            tx.put_approval(
                on,
                id,
                &NewApproval {
                    no_change: approval.no_change,
                    snapshot,
                    fingerprint,
                    dependencies: &dependencies,
                    acknowledged: &approval.acknowledged,
                },
            )
        }
        Effect::Note(context) => tx.put_note(on, &step.decision, context.as_ref()),
        Effect::WithdrawRequest(request) => {
            tx.set_note_state(request, NoteState::Withdrawn).map(drop)
        }
        Effect::Reject(requests) => {
            for request in requests {
                tx.set_note_state(request, NoteState::Sent)?;
            }
            tx.put_errand(on, id, "reject")
        }
        // The decision itself says it.
        Effect::AcceptProblem(_) => Ok(()),
        Effect::Plan(effect) => follow_plan(tx, on, effect),
        Effect::Merge => tx.put_errand(on, id, "merge"),
    }
}

fn follow_plan(tx: &WriteTx<'_>, on: &Occasion, effect: &PlanEffect) -> Result<(), StoreError> {
    match effect {
        PlanEffect::Thread(text) => tx.keep_plan_text(text),
        PlanEffect::Answer { revision, question, answer } => {
            tx.answer_question(on.task, *revision, question, answer, on.actor())
        }
        PlanEffect::Dismiss(row) => tx.dismiss_suggestion(row, on.actor()).map(drop),
        PlanEffect::Apply(row, made) => {
            let task = tx.task(on.task)?.ok_or(StoreError::NoOpenTask)?;
            let plan = made.as_ref().clone();
            match tx.take_suggestion(&task, row, on.actor(), |_, _| Ok::<_, ()>(plan))? {
                Taken::Made(_) => Ok(()),
                // Judged on this very state.
                Taken::NotOpen(_) | Taken::Refused(()) => {
                    Err(StoreError::Damaged(format!("suggestion {} was judged as open", row.id)))
                }
            }
        }
        PlanEffect::Approve { task, revision, allow } => {
            let base = &task.base_commit_id;
            let approval = NewPlanApproval { revision: *revision, base, allow, actor: on.actor() };
            tx.approve_plan(task, &approval).map(drop)
        }
    }
}
