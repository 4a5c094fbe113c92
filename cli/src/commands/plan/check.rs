//! `codeboost plan check`: a plan file against a base, on files and objects alone.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::input::{Input, SyntaxArgs};
use super::report::Report;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::checkout::Surroundings;
use crate::git::repository::Repository;
use crate::output::plain_line;
use crate::plan::problem::{Problem, locate};
use crate::plan::read::ReadPlan;
use crate::plan::v1::tokenize::tokenize;

/// Arguments of `plan check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The plan, in JSON or YAML; - reads standard input
    file: String,
    /// The repository that the plan is for [default: the one here]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The commit that the work starts from: a branch, a tag or an id
    #[arg(long, value_name = "REV")]
    base: String,
    /// The issue that the plan has to be for [default: whatever the plan says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    issue: Option<u64>,
    /// A command that counts as allowed, spelled as in a plan; may be repeated
    #[arg(long = "allow-command", value_name = "COMMAND")]
    allow: Vec<String>,
    #[command(flatten)]
    syntax: SyntaxArgs,
}

pub(super) fn run(context: &Context, args: &CheckArgs) -> Result {
    let allowed = parse_commands(&args.allow)?;
    let repository = match &args.repo {
        Some(folder) => Repository::open_at(context, &context.path(folder))?,
        None => Repository::open(context)?,
    };
    let base = repository.git().resolve(&args.base)?.ok_or_else(|| {
        Error::failed(format!("the base {} names no commit", plain_line(&args.base)))
            .hint("name a branch, a tag or a commit id; git log --oneline lists commits")
    })?;
    let input = Input::read(context, &args.file, &args.syntax)?;
    let report = |source, plan, problems: &[Problem]| {
        let report = Report { name: &input.name, source, plan, problems };
        report.print(context);
        if report.n_failures() > 0 { Outcome::Failed } else { Outcome::Done }
    };
    let ReadPlan { plan, document, .. } = match input.plan() {
        Ok(read) => read,
        Err(unreadable) => return Ok(report(&unreadable.source, None, &unreadable.problems)),
    };
    let mut problems = Surroundings::read(&repository, &base)?.judge(&plan, args.issue, &allowed);
    problems.extend(document.warnings.iter().cloned());
    locate(&mut problems, &document);
    Ok(report(&document.source, Some(&plan), &problems))
}

/// The commands of a repeated option as argument lists.
pub(super) fn parse_commands(commands: &[String]) -> Result<BTreeSet<Vec<String>>> {
    let parse = |command: &String| {
        tokenize(command).map_err(|error| {
            Error::usage(format!("{}: {}", plain_line(command), error.kind)).hint(error.kind.mend())
        })
    };
    commands.iter().map(parse).collect()
}
