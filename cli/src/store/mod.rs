//! What codeboost remembers: `<git common dir>/codeboost/`, the only master copy.
//!
//! | file | what |
//! |---|---|
//! | `state.db` | SQLite: tasks, plans, ledger, approvals, decisions, what happened |
//! | `signing-key` | the Ed25519 key that signs forms; its owner alone can read it |
//! | `evidence/` | outputs of checks and the like, named by their digest |
//! | `locks/` | OS locks; their content only tells who holds them |
//! | `cache/` | what was worked out before; may be removed at any time |
//! | `config.yaml` | written by the person, see `config` |
//!
//! Only this room knows SQL. What other rooms want to know or change is a method of [`ReadTx`] or
//! [`WriteTx`], in one file here per subject. A write transaction is short: nothing is awaited
//! inside, no program is started, no file is written. Every change of a task appends to the event
//! log in the same transaction. While an agent runs for hours only a [`Lease`] is held, never a
//! transaction.

mod allowed;
mod cache;
mod checks;
mod error;
mod events;
mod evidence;
mod github;
mod keep;
mod key;
mod lease;
mod ledger;
mod links;
mod merge;
mod migrations;
mod open;
mod plans;
mod rebases;
mod review;
mod rounds;
mod stages;
mod suggestions;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod threads;
mod tx;
mod workspaces;

pub use cache::Cache;
pub use checks::{CheckEnd, CheckRun};
pub use error::StoreError;
pub use events::{Event, EventRow};
pub use github::{IssuesRead, OpeningRow, OpeningState};
pub use key::{FormKey, verify_form_signature, write_secret};
pub use lease::{Held, Lease};
pub use ledger::LedgerRow;
pub use links::KeptLinks;
pub use merge::{
    AttemptState, MergeAttemptRow, MergeRunRow, MergeStepRow, NewAttempt, PublicationRow, StepState,
};
pub use open::Store;
pub use plans::{AnswerRow, NewPlanApproval, PlanApproval, PlanOrigin, PlanRow};
pub use rebases::{REBASE_CONFLICT, RebaseRow};
pub use review::{
    AcknowledgementRow, ApprovalRow, ChoiceRow, DecisionRow, ErrandRow, Made, NewApproval,
    NoteKind, NoteRow, NoteState, Occasion,
};
pub use rounds::{ProblemRow, ProblemState, RoundRow, Rounds};
pub use stages::StageRow;
pub use suggestions::{RequestRow, RequestState, SuggestionRow, SuggestionState, Taken};
pub use tasks::{IssueRow, NewTask, TaskRow, short_ref};
pub use tx::{ReadTx, WriteTx};
pub use workspaces::{NewWorkspace, Worker, WorkspaceRow, WorkspaceState};
