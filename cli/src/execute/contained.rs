//! Carrying out a plan with a vendor's tool in a container, item by item, on the same road as any
//! other work: begin, change, end.
//!
//! ```text
//! clear what a killed run left
//! for each item whose dependencies are done, in plan order
//!   begin ── place ── invoke ─┬─ no answer ────────────> given up; task `needs human`
//!                             ├─ the plan is wrong ─────> given up; task `needs amendment`
//!                             └─ done ── end ─┬─ refused ──> given up; content kept; `needs human`
//!                                             ├─ out of scope ──> committed; `needs amendment`
//!                                             └─ committed, or unchanged ──> the next item
//! ```
//!
//! The tool works on a copy of the workspace in a storage of a fixed size; the workspace itself
//! holds the metadata that it may read. What comes back is read from the storage like any other
//! work, trusting nothing. Each invocation is in the log of the task, with what it was given as a
//! digest and what it wrote as evidence.

use std::path::{Path, PathBuf};

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Item, Plan};
use codeboost_schema::registry::schema_for_tools;
use codeboost_schema::report::{self, Report};

use crate::agent::asked::Command;
use crate::agent::invoke::{self, Ask, Failure, Host, Invoked};
use crate::agent::prompt::Reader;
use crate::agent::vendor::{Phase, SignedIn, Vendor};
use crate::execute::amend;
use crate::execute::consult::{self, About};
use crate::execute::item::{
    self, BeginOptions, Begun, EndOptions, Ended, ItemError, OutOfScope, Site, What,
};
use crate::execute::workspace;
use crate::git::read::Objects;
use crate::git::tree;
use crate::plan::v1::tokenize::tokenize;
use crate::process::crash_point;
use crate::sandbox::place::{self, Owner, Place, Project};
use crate::stage;
use crate::store::{Lease, Worker, WorkspaceState};
use crate::task::{Actor, TaskState};

/// A vendor's tool, ready to be started.
#[derive(Debug, Clone, Copy)]
pub struct Contained<'a> {
    /// Where it runs.
    pub host: Host<'a>,
    /// The id of the image.
    pub image_id: &'a str,
    /// Whose tool.
    pub vendor: Vendor,
    /// The sign-in.
    pub signed_in: &'a SignedIn,
}

/// What happens meanwhile, for whoever shows it.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Something that a killed run had left was removed.
    Cleared(String),
    /// An item has begun.
    Begun(&'a Item, &'a Begun),
    /// The tool has come to its end.
    Invoked(&'a Invoked),
    /// What it says of its work; nobody vouches for it.
    Reported(&'a Report),
    /// An item came to an end.
    Ended(Box<Ended>),
}

/// How a run ended.
#[derive(Debug)]
pub enum Carried {
    /// Every item of the plan has its result.
    Whole,
    /// The task waits: the last item changed files that it does not declare.
    Paused,
    /// The audit refused the last item; what was refused is kept in this folder.
    Refused(PathBuf),
    /// The tool says that the plan is wrong.
    NeedsAmendment(ItemId, Box<Report>),
    /// The tool gave no answer.
    Failed(ItemId, Failure),
}

/// Carries out the items that have no result yet.
///
/// # Errors
/// [`ItemError`] when an item can't begin or end, or when the container can't be what it has to be;
/// the item is given up then.
pub fn run(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    agent: &Contained<'_>,
    out_of_scope: OutOfScope,
    mut tell: impl FnMut(Progress<'_>),
) -> Result<Carried, ItemError> {
    let task = item::read_task(site.store, lease)?;
    let owner = Owner {
        repository: site.store.read(|tx| tx.repository_id())?.to_string(),
        task: task.id.to_string(),
    };
    let pool = workspace::pool_folder(site.repository);
    for removed in place::clear(agent.host.context, agent.host.engine, &pool, &owner)? {
        tell(Progress::Cleared(removed));
    }
    item::settle(site, lease, plan)?;
    give_up_own(site, lease, plan, agent.vendor)?;
    let mut to_mend = item::open_problems(site.store, task.id)?;
    loop {
        let task = item::read_task(site.store, lease)?;
        let done = item::done_items(site, &task)?;
        let is_left = |item: &&Item| !done.contains_key(&item.id) || to_mend.contains_key(&item.id);
        let mut left = plan.items.iter().filter(is_left).peekable();
        let Some(first) = left.peek().copied() else { return Ok(Carried::Whole) };
        // Where none is ready the first one says what it lacks.
        let is_ready = |item: &&Item| item.depends_on.iter().all(|id| done.contains_key(id));
        let next = left.find(is_ready).unwrap_or(first);
        let phase = match to_mend.remove(&next.id) {
            Some(_) if done.contains_key(&next.id) => Phase::Fix,
            _ => Phase::Execute,
        };
        let one = One { site, lease, plan, agent, owner: &owner, item: next, phase, out_of_scope };
        if let Some(stop) = one.carry_out(&mut tell)? {
            return Ok(stop);
        }
    }
}

/// Gives up a workspace of this agent that a killed run left open: what was worked on lay in the
/// storage, which is gone.
fn give_up_own(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    vendor: Vendor,
) -> Result<(), ItemError> {
    let rows = site.store.read(|tx| tx.workspaces(lease.task()))?;
    let is_own = |worker: &Worker| *worker == Worker::Agent(vendor.name().to_owned());
    if let Some(row) = rows.iter().find(|row| !row.state.is_over() && is_own(&row.worker)) {
        item::abandon(site, lease, Some(plan), None)?;
        remove_workspace(&row.folder);
    }
    Ok(())
}

/// Removes a workspace that nobody worked in.
fn remove_workspace(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    let _ = std::fs::remove_file(workspace::prompt_file(folder));
}

#[derive(Clone, Copy)]
struct One<'a> {
    site: Site<'a>,
    lease: &'a Lease,
    plan: &'a Plan,
    agent: &'a Contained<'a>,
    owner: &'a Owner,
    item: &'a Item,
    phase: Phase,
    out_of_scope: OutOfScope,
}

impl One<'_> {
    /// Carries out one item; says why to stop, if there is a reason.
    fn carry_out(&self, tell: &mut impl FnMut(Progress<'_>)) -> Result<Option<Carried>, ItemError> {
        let Self { site, lease, plan, agent, .. } = *self;
        let options = BeginOptions {
            worker: Worker::Agent(agent.vendor.name().to_owned()),
            out_of_scope: self.out_of_scope,
            reader: Reader::Contained,
            ..BeginOptions::default()
        };
        let begun = item::begin(site, lease, plan, &self.item.id, &options)?;
        tell(Progress::Begun(self.item, &begun));
        match self.in_place(&begun, tell) {
            Ok(stop) => Ok(stop),
            Err(error) => {
                // Only a workspace that is still open is given up; a commit that is on its way is
                // finished by the next run.
                let task = item::read_task(site.store, lease)?;
                let current = site.store.read(|tx| tx.current_workspace(task.id))?;
                if current.is_some_and(|row| {
                    row.id == begun.workspace.id && row.state == WorkspaceState::Open
                }) {
                    let reason = format!("{} could not be carried out: {error}", self.item.id);
                    item::give_up(site, lease, &begun.workspace, TaskState::Queued, &reason)?;
                    remove_workspace(&begun.workspace.folder);
                }
                Err(error)
            }
        }
    }

    fn in_place(
        &self,
        begun: &Begun,
        tell: &mut impl FnMut(Progress<'_>),
    ) -> Result<Option<Carried>, ItemError> {
        let Self { site, agent, .. } = *self;
        let objects = Objects::open(site.repository.git())?;
        let tree = tree::read_tree(&objects, &begun.workspace.start_commit_id)?;
        let submodules = workspace::submodules(&tree)?;
        let project = Project { checkout: &begun.workspace.folder, submodules: &submodules };
        let place = Place::make(
            agent.host.context,
            &agent.host.config.sandbox,
            &workspace::pool_folder(site.repository),
            self.owner,
            agent.image_id,
            project,
        )?;
        let context = agent.host.context;
        crash_point(context, "agent-placed");
        let done = self.work(begun, &place, tell);
        let released = place.release();
        let stop = done?;
        released?;
        Ok(stop)
    }

    fn work(
        &self,
        begun: &Begun,
        place: &Place<'_>,
        tell: &mut impl FnMut(Progress<'_>),
    ) -> Result<Option<Carried>, ItemError> {
        let Self { site, lease, plan, agent, .. } = *self;
        let id = &self.item.id;
        let prompt = stage::read(&begun.prompt, stage::MAX_OUTPUT)?;
        let prompt = String::from_utf8_lossy(&prompt).into_owned();
        let commands: Vec<Command> = begun
            .commands
            .iter()
            .filter_map(|text| Some(Command { text: text.clone(), argv: tokenize(text).ok()? }))
            .collect();
        let ask = Ask {
            vendor: agent.vendor,
            signed_in: agent.signed_in,
            phase: self.phase,
            prompt: &prompt,
            schema: &schema_for_tools(report::SCHEMA),
            commands: &commands,
        };
        let invoked = invoke::invoke(agent.host, place, &ask)?;
        crash_point(agent.host.context, "agent-invoked");
        let read = invoked
            .answered
            .clone()
            .and_then(|answered| Report::read(&answered.answer).map_err(Failure::Malformed));
        let about = About {
            phase: self.phase,
            item: Some(id),
            revision: Some(plan.revision),
            comments: &[],
        };
        consult::record(site, lease, agent, about, &prompt, &invoked, &read)?;
        tell(Progress::Invoked(&invoked));
        let row = &begun.workspace;
        let report = match read {
            Ok(report) => report,
            Err(failure) => {
                let reason = format!("{} gave no answer for {id}: {failure}", agent.vendor.name());
                item::give_up(site, lease, row, TaskState::NeedsHuman, &reason)?;
                remove_workspace(&row.folder);
                return Ok(Some(Carried::Failed(id.clone(), failure)));
            }
        };
        tell(Progress::Reported(&report));
        if let Some(proposal) = &report.proposal {
            amend::propose(
                site,
                lease,
                row,
                proposal,
                Actor::Agent(agent.vendor.name().to_owned()),
            )?;
            remove_workspace(&row.folder);
            return Ok(Some(Carried::NeedsAmendment(id.clone(), Box::new(report))));
        }
        let files = place.work();
        let options = EndOptions {
            out_of_scope: self.out_of_scope,
            files: Some(&files),
            ..EndOptions::default()
        };
        let mut ended = item::end(site, lease, plan, Some(id), options)?;
        let stop = match &ended.what {
            What::Refused(_) => {
                let reason = format!("what was done for {id} is not safe to commit");
                item::give_up(site, lease, row, TaskState::NeedsHuman, &reason)?;
                remove_workspace(&row.folder);
                ended.kept = None;
                Some(Carried::Refused(workspace::rejected_folder(&row.folder)))
            }
            What::Committed { .. } | What::Unchanged if ended.task.state.waits_for_person() => {
                Some(Carried::Paused)
            }
            What::Committed { .. } | What::Unchanged => None,
        };
        tell(Progress::Ended(Box::new(ended)));
        Ok(stop)
    }
}
