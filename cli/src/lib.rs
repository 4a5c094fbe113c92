//! codeboost, the library behind the program.
//!
//! Modules in reading order. Rules take plain data and return plain data; edges are the only code
//! that touches the world; stages use both and never each other; commands call stages.

// Shared by all.
pub mod config;
pub mod context;
mod embedded;
pub mod error;
pub mod exit_code;
pub mod output;
pub mod process;
pub mod stage;

// Rules.
pub mod approval;
pub mod gate;
pub mod github;
pub mod ledger;
pub mod link;
pub mod plan;
pub mod task;

// Edges.
pub mod agent;
pub mod forge;
pub mod git;
pub mod sandbox;
pub mod store;

// What several stages need, made of rules and edges.
pub mod review;

// Stages.
pub mod apply;
pub mod bundle;
pub mod execute;
pub mod merge;

// Commands.
pub mod args;
pub mod commands;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::context::Context;
use crate::error::Error;
use crate::output::Output;

/// Runs the program with these arguments, the first being its name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // An argument may hold what acts on a terminal.
            let text = error.render().to_string();
            if let std::borrow::Cow::Owned(text) = output::plain(&text) {
                let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            } else {
                let _ = error.print();
            }
            return if error.use_stderr() {
                ExitCode::from(exit_code::USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let env = Context::environment();
    let no_color = env.get(std::ffi::OsStr::new("NO_COLOR")).is_some_and(|value| !value.is_empty());
    let verbosity = i8::from(args.verbose) - i8::from(args.quiet);
    let out = Output::new(args.format, verbosity, args.color, no_color);
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => {
            Error::from_error(&error).context("can't find the current folder").print(&out);
            return ExitCode::from(exit_code::FAILED);
        }
    };
    let context = Context::new(cwd, env, out);
    match commands::dispatch(&context, &args.command) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            error.print(&context.out);
            ExitCode::from(error.code())
        }
    }
}
