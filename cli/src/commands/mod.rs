//! One file per command word: its arguments, and the few lines that call the stage.

use crate::args::Command;
use crate::context::Context;
use crate::error::Result;
use crate::git::repository::Repository;
use crate::store::Store;

pub mod doctor;
pub mod generate;
pub mod init;
pub mod key;
pub mod ledger;
pub mod link;
pub mod log;
pub mod plan;
pub mod state;
pub mod status;
pub mod task;

pub(crate) fn dispatch(context: &Context, command: &Command) -> Result {
    match command {
        Command::Doctor(args) => doctor::run(context, args),
        Command::Generate(args) => generate::run(context, args),
        Command::Init(args) => init::run(context, args),
        Command::Key(args) => key::run(context, args),
        Command::Ledger(args) => ledger::run(context, args),
        Command::Link(args) => link::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Plan(args) => plan::run(context, args),
        Command::State(args) => state::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Task(args) => task::run(context, args),
    }
}

/// Opens the repository that the command was started in, and its state.
pub(crate) fn open(context: &Context) -> Result<(Repository<'_>, Store<'_>)> {
    let repository = Repository::open(context)?;
    let store = Store::open(&repository)?;
    Ok((repository, store))
}
