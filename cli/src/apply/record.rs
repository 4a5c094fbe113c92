//! Writes down what was judged: all of it in one transaction, or nothing.

use crate::apply::compare::{Effect, Step};
use crate::review::Review;
use crate::store::{NewApproval, NoteState, Occasion, Store, StoreError, WriteTx};

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
/// approvals store what it holds.
///
/// # Errors
/// [`StoreError`] when the state can't be written; then nothing is.
pub fn record(
    store: &Store<'_>,
    generation: i64,
    on: &Occasion,
    steps: &[Step],
    after: &Review,
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

fn follow(tx: &WriteTx<'_>, on: &Occasion, step: &Step, after: &Review) -> Result<(), StoreError> {
    let id = &step.decision.id;
    match &step.effect {
        Effect::Withdraw(item) => tx.withdraw_approvals(on, id, item).map(drop),
        Effect::Unresolve(key) => tx.end_choice(on.task, key, "taken back").map(drop),
        Effect::Acknowledge(key, tag) => tx.put_acknowledgement(on, id, key, tag),
        Effect::Choose(key, choice) => tx.put_choice(on, id, key, choice),
        Effect::Approve(approval) => {
            let item = &approval.item;
            let (Some(snapshot), Some(fingerprint)) =
                (after.now.snapshots.get(item), after.now.fingerprints.get(item))
            else {
                return Err(StoreError::Damaged(format!("{item} was judged and is not there")));
            };
            tx.put_approval(
                on,
                id,
                &NewApproval {
                    no_change: approval.no_change,
                    snapshot,
                    fingerprint,
                    dependencies: &after.now.dependencies_of(item),
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
        Effect::Merge => tx.put_errand(on, id, "merge"),
    }
}
