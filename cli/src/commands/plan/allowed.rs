//! `codeboost plan allowed`: the commands that checks may run, each as its exact arguments.

use clap::{Args, Subcommand};
use serde_json::json;

use super::approve::words;
use super::check::parse_commands;
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::output::plain_line;
use crate::store::StoreError;
use crate::task::Actor;

/// Arguments of `plan allowed`.
#[derive(Debug, Args)]
pub(super) struct AllowedArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them
    ///
    /// Example: codeboost plan allowed list --format json
    List,
    /// Allow commands
    ///
    /// Example: codeboost plan allowed add "cargo test --workspace"
    Add {
        /// A command, spelled as in a plan
        #[arg(required = true)]
        commands: Vec<String>,
    },
    /// Take permissions back
    ///
    /// Example: codeboost plan allowed remove "cargo test --workspace"
    Remove {
        /// A command, spelled as in a plan
        #[arg(required = true)]
        commands: Vec<String>,
    },
}

pub(super) fn run(context: &Context, args: &AllowedArgs) -> Result {
    match &args.what {
        What::List => list(context),
        What::Add { commands } => {
            let commands = parse_commands(commands)?;
            let (_, store) = open(context)?;
            store
                .write(|tx| {
                    commands
                        .iter()
                        .try_for_each(|argv| tx.allow_command(argv, Actor::Person, None).map(drop))
                })
                .map_err(|error: StoreError| error)?;
            list(context)
        }
        What::Remove { commands } => {
            let commands = parse_commands(commands)?;
            let (_, store) = open(context)?;
            store.write(|tx| -> Result<()> {
                for argv in &commands {
                    if !tx.disallow_command(argv, Actor::Person)? {
                        let message = format!("{} is not allowed", plain_line(&words(argv)));
                        return Err(Error::failed(message)
                            .hint("codeboost plan allowed list shows what is"));
                    }
                }
                Ok(())
            })?;
            list(context)
        }
    }
}

fn list(context: &Context) -> Result {
    let (_, store) = open(context)?;
    let allowed = store.read(|tx| tx.allowed_commands())?;
    if context.out.is_json() {
        context.out.json(&json!({"allowed": allowed}));
        return Ok(Outcome::Done);
    }
    for argv in &allowed {
        context.out.line(plain_line(&words(argv)));
    }
    if allowed.is_empty() {
        context.out.note("No command is allowed. Approving a plan asks for those it uses.");
    }
    Ok(Outcome::Done)
}
