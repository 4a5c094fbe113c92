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
    /// Accept ambiguous or unplanned changes as they are
    ///
    /// The choice holds while content, copy number and number of copies stay the same. Warnings
    /// on a change have to be acknowledged first.
    ///
    /// Example: codeboost accept 412 12.3f9a2b7c
    Accept(commands::decide::ChangesArgs),
    /// State that you saw a warning on changes
    ///
    /// Out-of-scope work, hidden characters, changed line endings, modes and links keep an item
    /// from being approved until each is acknowledged, one by one.
    ///
    /// Example: codeboost acknowledge 412 12.3f9a2b7c --tag out-of-scope
    Acknowledge(commands::decide::AcknowledgeArgs),
    /// Record the decisions that a page saved, and carry out what they ask for
    ///
    /// Each decision is compared with what is there now: one that was made on something else is
    /// refused, with what changed, and the rest goes on. All that is recorded is recorded at
    /// once. The same file again changes nothing. Exit code 3 when a decision was refused.
    ///
    /// A page's form proves that this repository's key, or one that the configuration names, made
    /// the page. A signature beside the file proves who decided. Neither proves that somebody
    /// read what the page showed.
    ///
    /// Example: codeboost apply codeboost-decisions.json
    Apply(commands::apply::ApplyArgs),
    /// Approve an item from the terminal
    ///
    /// At a terminal the item is printed whole, and then you are asked. Elsewhere, give the code
    /// that ended the text of `codeboost review ISSUE ITEM`: by that you say that you read it. An
    /// item that changed since has another code.
    ///
    /// Example: codeboost approve 412 P1 --seen 3f9a2b7c1d2e
    Approve(commands::decide::ApproveArgs),
    /// Ask a question about an item, and get an answer
    ///
    /// It is recorded with the lines it is about, and changes nothing. An agent that is named reads
    /// the project with the change, in a container, and answers every question that is open; the
    /// answers are in the next render.
    ///
    /// Example: codeboost ask 412 P1 --text 'Why three attempts?' --agent claude
    Ask(commands::ask::AskArgs),
    /// Assign ambiguous or unplanned changes to an item
    ///
    /// The item's approval becomes stale: it is approved again with these changes in it.
    ///
    /// Example: codeboost assign 412 12.3f9a2b7c --to P2
    Assign(commands::decide::AssignArgs),
    /// Run the approved commands of a plan, and say what they came to
    Check(commands::check::CheckArgs),
    /// Build a sample project and take it down the whole road, up to the page you review in
    ///
    /// Needs nothing but git: project, plan and the recorded work of an agent are built in. Prints
    /// the path of the page, and says what to do next.
    ///
    /// Example: codeboost demo
    Demo(commands::demo::DemoArgs),
    /// Say what is there, what is missing, and which feature needs it
    ///
    /// Changes nothing. Exit code 1 when something that every command needs is missing or broken.
    ///
    /// Example: codeboost doctor
    Doctor(commands::doctor::DoctorArgs),
    /// Carry out an approved plan, item by item
    ///
    /// Every item gets a fresh workspace; what is safe to commit becomes one commit on the task's
    /// branch. An agent has to be named; `replay` applies recorded patches.
    ///
    /// Example: codeboost execute 412 --agent replay --patches patches/
    Execute(commands::execute::ExecuteArgs),
    /// Write shell completions or man pages
    Generate(commands::generate::GenerateArgs),
    /// Set codeboost up in this repository
    ///
    /// Makes the state in the git common directory, which all worktrees share, and the key that
    /// signs approval forms. Run again it changes nothing.
    ///
    /// Example: codeboost init
    Init(commands::init::InitArgs),
    /// Rank the open issues of GitHub, and say whose words are trusted
    ///
    /// Points come from labels, reactions, comments and age, and each says why it is there. Where
    /// GitHub can't be asked, the issues that were read last are shown, and that they are old.
    ///
    /// Example: codeboost issues
    Issues(commands::issues::IssuesArgs),
    /// Carry out one item with whatever agent or tool you like
    Item(commands::item::ItemArgs),
    /// Show or export the keys that sign approval forms
    Key(commands::key::KeyArgs),
    /// State and show who made which commit
    Ledger(commands::ledger::LedgerArgs),
    /// Link every change of a task, or of a range, to the item that made it
    ///
    /// Follows each commit of base..head and writes link.json: every added and removed line, and
    /// every change of a file, in exactly one row. The ledger alone says who made a commit. The
    /// result is proven before it is written: put together again it is the difference of base and
    /// head.
    ///
    /// Example: codeboost link 412
    ///
    /// Example: codeboost link --base main --head feature --plan plan.yaml --ledger ledger.json
    Link(commands::link::LinkArgs),
    /// Show what happened, oldest first
    ///
    /// Example: codeboost log 412
    Log(commands::log::LogArgs),
    /// Land exactly what was reviewed
    ///
    /// Reads base and head, asks the gate, and lands the reviewed head on the reviewed base in one
    /// atomic step that a moved base or head stops. Killed at any moment, run again it first finds
    /// out what happened. There is no way around a blocker.
    ///
    /// Example: codeboost merge 412
    Merge(commands::merge::MergeArgs),
    /// Check, compare and decide on plans
    Plan(commands::plan::PlanArgs),
    /// Publish a task: on the local forge a record, ready or as a draft
    ///
    /// The issue is first looked at once more: what seems to be fixed already is not published.
    ///
    /// Example: codeboost publish 412 --draft
    Publish(commands::publish::PublishArgs),
    /// Write the page on which changes are reviewed, offline
    ///
    /// For a task, the page carries a signed form, so that decisions saved in it can be applied.
    /// From a link.json alone it is for reading. The digest that is printed lets others check that
    /// they have this page. Run again on the same records it does nothing.
    ///
    /// Example: codeboost render 412
    Render(commands::render::RenderArgs),
    /// Request a change of an item, for the next revision
    ///
    /// It keeps the merge from happening until it is sent or withdrawn.
    ///
    /// Example: codeboost request 412 P1 --text 'Retry only on 5xx' --change 7.91c2aa04 --lines 2-4
    Request(commands::decide::NoteArgs),
    /// Show the review of a task: items, changes, reasons, blockers
    ///
    /// With an item, or ambiguous, unplanned or accepted, all its code.
    ///
    /// Example: codeboost review 412 P1
    Review(commands::review::ReviewArgs),
    /// Bring what is out of date of a task up to date: link and page
    ///
    /// Makes again only what depends on a change, and says what the task waits for. Without an
    /// issue it does so for every open task; one that waits for a person does not stop the others.
    ///
    /// Example: codeboost run 412
    Run(commands::run::RunArgs),
    /// Back up the state
    State(commands::state::StateArgs),
    /// Show where each open task stands, and why
    ///
    /// Example: codeboost status 412
    Status(commands::status::StatusArgs),
    /// Add, list, cancel and remove tasks
    Task(commands::task::TaskArgs),
    /// Take back what was chosen about ambiguous or unplanned changes
    ///
    /// Example: codeboost unresolve 412 12.3f9a2b7c
    Unresolve(commands::decide::ChangesArgs),
    /// Say what an archived page and its decisions prove, offline
    ///
    /// Checks that the form was signed, that the page's data is what was signed, that the
    /// decisions were made on this page, and who signed them. Exit code 1 when anything was
    /// altered or can't be proven. It does not check the page's own program: compare the digest
    /// with the one that render printed.
    ///
    /// Example: codeboost verify review.html codeboost-decisions.json --signers allowed_signers
    Verify(commands::verify::VerifyArgs),
    /// Withdraw your approval of an item, or a pending change request
    ///
    /// Example: codeboost withdraw 412 P1
    Withdraw(commands::decide::WithdrawArgs),
}
