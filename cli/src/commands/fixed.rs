//! The already-fixed check, for commands that don't begin while it finds something.

use codeboost_schema::ids::CommitId;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::forge::{AlreadyFixed, Forge};
use crate::git::repository::Repository;
use crate::merge::fixed;
use crate::output::{plain, plain_line};
use crate::store::{Store, StoreError, TaskRow};
use crate::task::{Actor, TaskState};

/// What is about to happen with a task.
#[derive(Clone, Copy)]
pub(super) struct Fixed<'a> {
    pub(super) repository: &'a Repository<'a>,
    pub(super) store: &'a Store<'a>,
    pub(super) task: &'a TaskRow,
    /// What is not done then: `published`.
    pub(super) act: &'static str,
}

impl Fixed<'_> {
    /// Looks on the base as it is now, with the task's lease held.
    pub(super) fn stops_now(&self, context: &Context, goes_on: bool) -> Result<Option<Outcome>> {
        let config = self.repository.config()?;
        let forge = super::open_forge(self.repository, self.store, &config, self.task)?;
        let tips = forge.fetch(&format!("refs/codeboost/fetch/{}", self.task.id))?;
        self.stops(context, &*forge, &tips.base, goes_on)
    }

    /// How the command ends, when something may have fixed the issue or that is unknown.
    ///
    /// `goes_on`: a person has looked at all that is found.
    pub(super) fn stops(
        &self,
        context: &Context,
        forge: &dyn Forge,
        base: &CommitId,
        goes_on: bool,
    ) -> Result<Option<Outcome>> {
        let Self { store, task, act, .. } = *self;
        let mut found = fixed::check(store, forge, task, base)?;
        if goes_on {
            store.write(|tx| -> std::result::Result<_, StoreError> {
                tx.continue_findings(task.id, &Actor::Person)
            })?;
            found = fixed::check(store, forge, task, base)?;
        }
        match found {
            AlreadyFixed::No => Ok(None),
            AlreadyFixed::Unknown(why) => {
                context.out.warn(format!(
                    "not {act}: whether issue #{} is already fixed can't be told: {}",
                    task.issue,
                    plain(&why)
                ));
                Ok(Some(Outcome::NotAllowed))
            }
            AlreadyFixed::Found(findings) => {
                let words: Vec<_> = findings.iter().map(ToString::to_string).collect();
                if task.state.may_become(TaskState::PossiblyFixed) {
                    let reason = words.join("\n");
                    store.write(|tx| -> std::result::Result<_, StoreError> {
                        tx.set_task_state(task, TaskState::PossiblyFixed, &reason, Actor::Codeboost)
                    })?;
                }
                if context.out.is_json() {
                    context.out.json(&json!({act.replace(' ', "_"): null, "findings": findings}));
                }
                context.out.warn(format!("not {act}: issue #{} is possibly fixed:", task.issue));
                for words in words {
                    context.out.warn(format!("  {}", plain_line(&words)));
                }
                Ok(Some(Outcome::Waits))
            }
        }
    }
}
