//! One file per command word: its arguments, and the few lines that call the stage.

use std::time::Duration;

use codeboost_schema::plan::Plan;

use crate::args::Command;
use crate::config::{Config, ForgeKind};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::forge::Forge;
use crate::forge::gh::hub::GitHub;
use crate::forge::local::{Local, LocalOptions};
use crate::git::repository::Repository;
use crate::github::mention::IssueHome;
use crate::github::region;
use crate::store::{OpeningState, Store, StoreError, TaskRow};

mod amend;
pub mod apply;
pub mod ask;
pub mod check;
mod contained;
pub mod decide;
pub mod demo;
pub mod doctor;
pub mod execute;
mod fixed;
pub mod generate;
pub mod init;
pub mod issues;
pub mod item;
pub mod key;
pub mod ledger;
pub mod link;
pub mod log;
pub mod merge;
mod next;
pub mod plan;
pub mod publish;
pub mod render;
pub mod review;
mod rounds;
pub mod run;
mod site;
pub mod state;
pub mod status;
pub mod task;
pub mod verify;

pub(crate) fn dispatch(context: &Context, command: &Command) -> Result {
    match command {
        Command::Accept(args) => decide::accept(context, args),
        Command::Acknowledge(args) => decide::acknowledge(context, args),
        Command::Apply(args) => apply::run(context, args),
        Command::Approve(args) => decide::approve(context, args),
        Command::Ask(args) => ask::run(context, args),
        Command::Assign(args) => decide::assign(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Demo(args) => demo::run(context, args),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Execute(args) => execute::run(context, args),
        Command::Generate(args) => generate::run(context, args),
        Command::Init(args) => init::run(context, args),
        Command::Issues(args) => issues::run(context, args),
        Command::Item(args) => item::run(context, args),
        Command::Key(args) => key::run(context, args),
        Command::Ledger(args) => ledger::run(context, args),
        Command::Link(args) => link::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Merge(args) => merge::run(context, args),
        Command::Plan(args) => plan::run(context, args),
        Command::Publish(args) => publish::run(context, args),
        Command::Render(args) => render::run(context, args),
        Command::Request(args) => decide::request(context, args),
        Command::Review(args) => review::run(context, args),
        Command::Run(args) => run::run(context, args),
        Command::State(args) => state::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Task(args) => task::run(context, args),
        Command::Unresolve(args) => decide::unresolve(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Withdraw(args) => decide::withdraw(context, args),
    }
}

/// Opens the forge that the configuration names, for the branches of a task.
pub(crate) fn open_forge<'a>(
    repository: &Repository<'a>,
    store: &Store<'_>,
    config: &Config,
    task: &TaskRow,
) -> Result<Box<dyn Forge + 'a>> {
    Ok(match config.forge {
        ForgeKind::Local => Box::new(open_local(repository, config, task)?),
        ForgeKind::Github => Box::new(open_github(repository, store, config, task)?),
    })
}

fn open_local<'a>(
    repository: &Repository<'a>,
    config: &Config,
    task: &TaskRow,
) -> Result<Local<'a>> {
    let options = LocalOptions {
        remote: config.remote.as_deref(),
        base_ref: &task.base_ref,
        head_ref: &task.head_ref,
        timeout: Duration::from_secs(config.remote_timeout),
    };
    Ok(Local::open(repository, options)?)
}

/// Opens GitHub for the branches of a task.
pub(crate) fn open_github<'a>(
    repository: &Repository<'a>,
    store: &Store<'_>,
    config: &Config,
    task: &TaskRow,
) -> Result<GitHub<'a>> {
    let context = repository.context();
    let gh = issues::open_gh(context, repository, config)?;
    // Without one that is named, GitHub is where the usual remote is.
    let config = Config {
        remote: config.remote.clone().or_else(|| Some("origin".to_owned())),
        ..config.clone()
    };
    let home = IssueHome::of_url(&format!("https://github.com/{}", gh.slug()));
    let git = open_local(repository, &config, task)?.with_home(home);
    let mut openings = store.read(|tx| tx.openings(task.id))?;
    // One whose answer was lost is ours too: it must not pass for somebody else's fix.
    if let (Some(row), Some(head), Some(base)) = (
        openings.iter_mut().find(|row| row.state == OpeningState::Opening),
        git.head().strip_prefix("refs/heads/"),
        git.base().strip_prefix("refs/heads/"),
    ) {
        let pulls = gh.pulls_of(head, base)?;
        let ours = pulls.iter().find(|pull| region::opening(&pull.body) == Some(row.id.as_str()));
        if let Some(pull) = ours {
            store.write(|tx| -> std::result::Result<_, StoreError> {
                tx.put_opened(task.id, row, pull.number, pull.is_draft, None)
            })?;
            row.number = Some(pull.number);
        }
    }
    let mut own: Vec<_> = openings.iter().filter_map(|row| row.number).collect();
    own.dedup();
    Ok(GitHub::new(context, gh, git, own))
}

/// Opens the repository that the command was started in, and its state.
pub(crate) fn open(context: &Context) -> Result<(Repository<'_>, Store<'_>)> {
    let repository = Repository::open(context)?;
    let store = Store::open(&repository)?;
    Ok((repository, store))
}

/// The approved revision of a task's plan.
pub(crate) fn approved_plan(store: &Store<'_>, task: &TaskRow) -> Result<Plan> {
    if let Some(row) = store.read(|tx| tx.approved_plan(task.id))? {
        return Ok(row.plan);
    }
    let issue = task.issue;
    let error =
        Error::not_allowed(format!("no revision of the plan for issue #{issue} is approved"));
    Err(match store.read(|tx| tx.newest_plan(task.id))? {
        Some(_) => error.hint(format!("look at it and approve it: codeboost plan approve {issue}")),
        None => error.hint(format!("import one: codeboost plan import {issue} FILE")),
    })
}
