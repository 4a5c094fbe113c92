//! All commands and the flags that every command has.

use clap::{Parser, Subcommand};

use crate::commands;
use crate::output::{ColorChoice, Format};

/// Review and land AI-made changes that you can trust.
#[derive(Debug, Parser)]
#[command(name = "codeboost", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Form of the results on stdout: text or json
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        value_name = "FORMAT",
        help_heading = "Everywhere"
    )]
    pub format: Format,

    /// Say less: results and warnings only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Everywhere")]
    pub quiet: bool,

    /// Say more about what happens
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub verbose: bool,

    /// When to colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        value_name = "WHEN",
        help_heading = "Everywhere"
    )]
    pub color: ColorChoice,
}

/// One variant per command word; each has its file in `commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is there, what is missing, and which feature needs it
    ///
    /// Changes nothing. Exit code 1 when something that every command needs is missing or broken.
    ///
    /// Example: codeboost doctor
    Doctor(commands::doctor::DoctorArgs),
    /// Write shell completions or man pages
    Generate(commands::generate::GenerateArgs),
    /// Set codeboost up in this repository
    ///
    /// Makes the state in the git common directory, which all worktrees share, and the key that
    /// signs approval forms. Run again it changes nothing.
    ///
    /// Example: codeboost init
    Init(commands::init::InitArgs),
    /// Show or export the keys that sign approval forms
    Key(commands::key::KeyArgs),
    /// State and show who made which commit
    Ledger(commands::ledger::LedgerArgs),
    /// Link every change of a range to the item that made it
    ///
    /// Follows each commit of base..head and writes link.json: every added and removed line, and
    /// every change of a file, in exactly one row. The ledger alone says who made a commit. The
    /// result is proven before it is written: put together again it is the difference of base and
    /// head.
    ///
    /// Example: codeboost link --base main --head feature --plan plan.yaml --ledger ledger.json
    Link(commands::link::LinkArgs),
    /// Show what happened, oldest first
    ///
    /// Example: codeboost log 412
    Log(commands::log::LogArgs),
    /// Check, compare and decide on plans
    Plan(commands::plan::PlanArgs),
    /// Publish a task: on the local forge a record, ready or as a draft
    ///
    /// The issue is first looked at once more: what seems to be fixed already is not published.
    ///
    /// Example: codeboost publish 412 --draft
    Publish(commands::publish::PublishArgs),
    /// Back up the state
    State(commands::state::StateArgs),
    /// Show where each open task stands, and why
    ///
    /// Example: codeboost status 412
    Status(commands::status::StatusArgs),
    /// Add, list, cancel and remove tasks
    Task(commands::task::TaskArgs),
}
