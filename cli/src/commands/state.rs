//! `codeboost state`: a back-up of the only master copy.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;

/// Arguments of `state`.
#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Copy the whole state to one SQLite file, consistent also while others write
    ///
    /// To restore it, put it back as state.db in the folder that codeboost doctor names. The
    /// signing key and the evidence are files of their own in that folder.
    ///
    /// Example: codeboost state export ~/backup/codeboost.db
    Export {
        /// The file to write; it must not exist
        file: PathBuf,
    },
}

pub(crate) fn run(context: &Context, args: &StateArgs) -> Result {
    let What::Export { file } = &args.what;
    let (_, store) = open(context)?;
    let path = context.path(file);
    if path.symlink_metadata().is_ok() {
        return Err(Error::failed(format!("{} exists", file.display()))
            .hint("name a file that does not exist yet"));
    }
    store.export(&path)?;
    if context.out.is_json() {
        context.out.json(&json!({"file": file.display().to_string()}));
    } else {
        context.out.line(format!("Wrote {}", file.display()));
    }
    Ok(Outcome::Done)
}
