//! One file per command word: its arguments, and the few lines that call the stage.

use crate::args::Command;
use crate::context::Context;
use crate::error::Result;

pub mod generate;

pub(crate) fn dispatch(context: &Context, command: &Command) -> Result {
    match command {
        Command::Generate(args) => generate::run(context, args),
    }
}
