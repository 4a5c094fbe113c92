//! `codeboost plan`: everything about plans.

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Result;

mod check;
mod diff;
pub(in crate::commands) mod input;
pub(in crate::commands) mod report;

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check a plan file against a base, without any stored state
    ///
    /// Prints every failure and warning with its place, the rule and what would mend it. Exits
    /// with 1 when there are failures; warnings alone exit with 0.
    ///
    /// Example: codeboost plan check plan.yaml --repo . --base main
    Check(check::CheckArgs),
    /// Show what changed between two plans, and which approvals that costs
    ///
    /// Example: codeboost plan diff old.yaml new.yaml
    Diff(diff::DiffArgs),
}

pub(crate) fn run(context: &Context, args: &PlanArgs) -> Result {
    match &args.what {
        What::Check(args) => check::run(context, args),
        What::Diff(args) => diff::run(context, args),
    }
}
