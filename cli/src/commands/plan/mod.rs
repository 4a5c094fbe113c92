//! `codeboost plan`: everything about plans.

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Result;

mod allowed;
mod amend;
mod answer;
mod approve;
mod check;
pub(crate) mod confirm;
mod diff;
mod draft;
mod edit;
mod import;
pub(in crate::commands) mod input;
pub(in crate::commands) mod render;
pub(in crate::commands) mod report;
mod show;
mod suggest;
mod threads;

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
    /// Import a plan as the next revision of a task's plan
    ///
    /// The plan has to be for the task's issue and free of failures, else nothing changes. Its
    /// revision is replaced by the next number.
    ///
    /// Example: codeboost plan import 412 plan.yaml
    Import(import::ImportArgs),
    /// Show a task's plan, its revisions, answers and suggestions
    ///
    /// Example: codeboost plan show 412 r2 --as yaml
    Show(show::ShowArgs),
    /// Write the page of a task's plan, to read, comment and approve it in a browser
    ///
    /// What is decided there comes back with codeboost apply.
    ///
    /// Example: codeboost plan render 412
    Render(render::RenderArgs),
    /// Show what changed between two plans, and which approvals that costs
    ///
    /// Takes two files, or two revisions of a task's plan.
    ///
    /// Example: codeboost plan diff 412 r2 r3
    Diff(diff::DiffArgs),
    /// Approve the newest revision of a task's plan
    ///
    /// Work and review follow the newest approved revision. Commands that nobody allowed yet are
    /// listed, and each is allowed by itself: by --allow-command, by --yes, or at the terminal. Open
    /// questions and open review threads are asked about too.
    ///
    /// Example: codeboost plan approve 412 --allow-command "cargo test"
    Approve(approve::ApproveArgs),
    /// Edit a task's plan in an editor, or decide on a suggested edit
    ///
    /// The text opens again, with its problems on top, until it has no failures. Leave it
    /// unchanged to give up.
    ///
    /// Example: codeboost plan edit 412
    Edit(edit::EditArgs),
    /// Let an agent write the plan of a task, or its next revision
    ///
    /// It reads the project at the task's base, in a container, and can change nothing. Its draft is
    /// held to the same rules as any plan, and counts once it is approved. Threads stay open until a
    /// person resolves them.
    ///
    /// Example: codeboost plan draft 412 --agent claude
    Draft(draft::DraftArgs),
    /// Make the next revision from what a paused task waits for
    ///
    /// Whoever carried out an item said what the plan should say instead, or changed files that it
    /// does not declare. The revision counts once it is approved.
    ///
    /// Example: codeboost plan amend 412
    Amend(amend::AmendArgs),
    /// Ask an assistant for edits of a task's plan, or take its answer from a file
    ///
    /// Each edit is tried by itself; when one fails the whole answer is refused.
    ///
    /// Example: codeboost plan suggest 412 --agent claude --text "Split P1 in two"
    ///
    /// Example: codeboost plan suggest 412 --reply answer.json
    Suggest(suggest::SuggestArgs),
    /// Answer a question of a task's plan
    ///
    /// The answer goes into the next draft.
    ///
    /// Example: codeboost plan answer 412 1 "Count them as given up."
    Answer(answer::AnswerArgs),
    /// List the review threads of a task's plan
    ///
    /// Open ones, those of earlier revisions too.
    ///
    /// Example: codeboost plan threads 412 --all
    Threads(threads::ThreadsArgs),
    /// Open a review thread on lines of a task's plan
    ///
    /// The thread stays bound to the text of the newest revision, which later ones don't change.
    ///
    /// Example: codeboost plan comment 412 --quote "the key" --text "Which key?"
    Comment(threads::CommentArgs),
    /// Reply in a review thread
    ///
    /// Example: codeboost plan reply 412 1f0c2d3e --text "The one of the header."
    Reply(threads::ReplyArgs),
    /// Say that a review thread is done
    ///
    /// Example: codeboost plan resolve 412 1f0c2d3e
    Resolve(threads::ThreadArgs),
    /// Open a resolved review thread again
    ///
    /// Example: codeboost plan reopen 412 1f0c2d3e
    Reopen(threads::ThreadArgs),
    /// List, add and remove the commands that checks may run
    ///
    /// Example: codeboost plan allowed list
    Allowed(allowed::AllowedArgs),
}

pub(crate) fn run(context: &Context, args: &PlanArgs) -> Result {
    match &args.what {
        What::Check(args) => check::run(context, args),
        What::Import(args) => import::run(context, args),
        What::Show(args) => show::run(context, args),
        What::Render(args) => render::run(context, args),
        What::Diff(args) => diff::run(context, args),
        What::Approve(args) => approve::run(context, args),
        What::Edit(args) => edit::run(context, args),
        What::Draft(args) => draft::run(context, args),
        What::Amend(args) => amend::run(context, args),
        What::Suggest(args) => suggest::run(context, args),
        What::Answer(args) => answer::run(context, args),
        What::Threads(args) => threads::list(context, args),
        What::Comment(args) => threads::comment(context, args),
        What::Reply(args) => threads::reply(context, args),
        What::Resolve(args) => threads::resolve(context, args, true),
        What::Reopen(args) => threads::resolve(context, args, false),
        What::Allowed(args) => allowed::run(context, args),
    }
}

/// A revision on the command line: `r3` or `3`.
fn parse_revision(text: &str) -> std::result::Result<u64, String> {
    let number = text.strip_prefix('r').unwrap_or(text).parse().ok();
    number.filter(|number| *number > 0).ok_or_else(|| "a revision is r1, r2 and so on".to_owned())
}
