//! `codeboost check`: runs the approved `cmd` entries of a plan, and says what they came to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::CheckKind;
use serde_json::{Value, json};

use crate::agent::invoke::Host;
use crate::commands::item::parse_item;
use crate::commands::plan::confirm;
use crate::commands::{approved_plan, open, rounds};
use crate::config::{Config, EvidenceSource};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::check::{self, CheckOptions, PlannedCheck, Progress, Report, Surroundings};
use crate::execute::item::{self, Site};
use crate::execute::scripts;
use crate::exit_code::Outcome;
use crate::gate::Tests;
use crate::output::{Style, columns, counted, plain, plain_line};
use crate::sandbox::SandboxError;
use crate::sandbox::engine::Engine;
use crate::sandbox::image;
use crate::store::{CheckEnd, CheckRun};
use crate::task::TaskState;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(subcommand)]
    what: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Run the approved commands of the plan's items on the task's head
    ///
    /// They run in a container without network, in a fresh checkout that is removed afterwards,
    /// without a shell, each exactly as the plan lists it. Every result is recorded with its output.
    ///
    /// With --here they run on this machine with your rights. They get PATH without
    /// relative folders, HOME, USER, LOGNAME, LANG, LC_ALL, LC_CTYPE, TZ, the folders of toolchains
    /// (such as CARGO_HOME and GOPATH), a TMPDIR of their own, CI=1, NO_COLOR=1, TERM=dumb, and what
    /// --env names.
    ///
    /// Example: codeboost check run 412
    Run(RunArgs),
    /// Approve what a task changed of what is run: dependencies, build files, scripts, test settings
    ///
    /// Commands are approved with a plan, not what a change makes of them. Until each such file is
    /// approved as it is now, nothing of the task is run. Shows how they changed, and asks.
    ///
    /// Example: codeboost check approve 412
    Approve {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
        /// You have looked at them: approve them without being asked
        #[arg(long)]
        yes: bool,
    },
    /// Let an agent judge a change by its plan: one round, of three at most
    ///
    /// It reads the project with the change, in a container, can run the plan's approved commands,
    /// and changes nothing. Each problem that it files keeps the task from merging until a later
    /// round says that it is fixed, or a person accepts it.
    ///
    /// Example: codeboost check review 412 --agent claude
    Review(rounds::ReviewArgs),
    /// List the problems that reviews filed, or accept one
    ///
    /// Example: codeboost check problems 412
    Problems(rounds::ProblemsArgs),
    /// List the commands of the plan's items with what they came to on the task's head
    ///
    /// Example: codeboost check list 412
    List {
        /// Issue of the task; may be left out while one task is open
        issue: Option<u64>,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Run them on this machine, not in a container
    #[arg(long)]
    here: bool,
    /// Run only those of this item; may be given several times
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    item: Vec<ItemId>,
    /// End a command that takes longer than this
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1800,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    timeout: u64,
    /// Pass this variable of yours on; may be given several times
    #[arg(long, value_name = "NAME", requires = "here")]
    env: Vec<OsString>,
}

pub(crate) fn run(context: &Context, args: &CheckArgs) -> Result {
    match &args.what {
        Sub::Run(args) => run_checks(context, args),
        Sub::Approve { issue, yes } => approve(context, *issue, *yes),
        Sub::Review(args) => rounds::review(context, args),
        Sub::Problems(args) => rounds::problems(context, args),
        Sub::List { issue } => list(context, *issue),
    }
}

fn approve(context: &Context, issue: Option<u64>, yes: bool) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(issue))?;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "check approve")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let head_commit_id = item::head(site, &task)?;
    let changed = scripts::unapproved(site, &task, &plan, &head_commit_id)?;
    let out = &context.out;
    if changed.is_empty() && task.state != TaskState::NeedsApproval {
        out.line("Nothing of what is run was changed, or all of it is approved.");
        return Ok(Outcome::Done);
    }
    let words: Vec<String> = changed.iter().map(scripts::Changed::words).collect();
    if !yes {
        if out.is_json() || !confirm::can_ask() {
            return Err(Error::usage("an approval needs somebody to be asked, or --yes")
                .hint(format!("the files: {}", words.join(", "))));
        }
        for one in &changed {
            let range = format!("{}..{head_commit_id}", task.base_commit_id);
            let path = one.path.as_bytes();
            let args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", &range, "--"];
            let args = args.map(OsStr::new).into_iter().chain([OsStr::from_bytes(path)]);
            let git = repository.git().with_env("GIT_LITERAL_PATHSPECS", "1");
            let text = git.output(args).map_err(item::ItemError::from)?;
            for line in plain(&String::from_utf8_lossy(&text)).lines() {
                out.line(line);
            }
        }
        let question = format!("Approve {}?", counted(changed.len() as u64, "such file"));
        if confirm::ask(&question) != Some(true) {
            out.note("Nothing was approved.");
            return Ok(Outcome::Waits);
        }
    }
    let task = scripts::approve(site, &lease, &plan, &changed)?;
    if out.is_json() {
        out.json(&json!({"issue": task.issue, "approved": words, "task_state": task.state}));
    } else {
        for line in words {
            out.line(format!("approved {line}"));
        }
        out.note(format!("Next: codeboost check run {}", task.issue));
    }
    Ok(Outcome::Done)
}

fn run_checks(context: &Context, args: &RunArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let plan = approved_plan(&store, &task)?;
    for wanted in &args.item {
        item::find_item(&plan, wanted)?;
    }
    if check::planned(&plan, &args.item).is_empty() {
        context.out.line("No command to run: none is defined.");
        return Ok(Outcome::Done);
    }
    let lease = match store.lease(&task, "check run")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository: &repository, store: &store };
    let config = repository.config()?;
    let contained = if args.here { None } else { Some(contain(context, &config, task.issue)?) };
    let surroundings = match &contained {
        None => Surroundings::Here { env: &args.env },
        Some((engine, image_id)) => {
            Surroundings::Contained { host: Host { context, config: &config, engine }, image_id }
        }
    };
    let deadline = Duration::from_secs(args.timeout);
    let options = CheckOptions { items: &args.item, deadline, surroundings };
    let report = check::run(site, &lease, &plan, options, |progress| {
        tell_progress(context, &progress);
    })?;
    if !config.cmd_evidence.contains(&surroundings.source()) {
        let place = place_words(surroundings.source());
        context.out.warn(format!("by this repository's cmd_evidence, results {place} don't count"));
    }
    Ok(tell_report(context, task.issue, &report, surroundings.source()))
}

/// The engine and the image for running commands in containers.
fn contain(context: &Context, config: &Config, issue: u64) -> Result<(Engine, String)> {
    let here = || {
        format!("or run them on this machine with your rights: codeboost check run {issue} --here")
    };
    let hinted = |error: SandboxError| Error::from(error).hint(here());
    let engine = Engine::connect(context, config.sandbox.engine.as_deref()).map_err(hinted)?;
    let image_id = image::require(&engine).map_err(hinted)?;
    Ok((engine, image_id))
}

fn place_words(source: EvidenceSource) -> &'static str {
    match source {
        EvidenceSource::Host => "from this machine",
        EvidenceSource::Sandbox => "from containers",
        EvidenceSource::Ci => "from CI",
    }
}

fn tell_progress(context: &Context, progress: &Progress<'_>) {
    let out = &context.out;
    match progress {
        Progress::Starts(check) => {
            out.note(format!("{}: {} …", items(check), plain_line(&check.text)));
        }
        Progress::Ended(_, run, output) => {
            if run.result != CheckEnd::Passed {
                for line in last_lines(output) {
                    out.note(format!("  | {line}"));
                }
            }
        }
        Progress::Spoiled(check) => out.detail(format!(
            "{} changed tracked files; what comes next gets a fresh checkout",
            plain_line(&check.text)
        )),
    }
}

/// The end of what a command wrote, safe to show.
fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let text = plain(text.trim_end()).into_owned();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].iter().map(|line| (*line).to_owned()).collect()
}

fn items(check: &PlannedCheck) -> String {
    check.items.iter().map(ItemId::as_str).collect::<Vec<_>>().join(", ")
}

fn result_words(run: &CheckRun) -> String {
    match (run.result, run.exit_code) {
        (CheckEnd::Passed, _) => "passed".to_owned(),
        (CheckEnd::Failed, Some(code)) => format!("failed (exit code {code})"),
        (CheckEnd::Failed, None) => "failed (ended by a signal)".to_owned(),
        (CheckEnd::TimedOut, _) => "failed (took too long)".to_owned(),
        (CheckEnd::NotStarted, _) => "failed (can't be started)".to_owned(),
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

fn tell_report(context: &Context, issue: u64, report: &Report, source: EvidenceSource) -> Outcome {
    let n_failed = report.ran.iter().filter(|(_, run)| run.result != CheckEnd::Passed).count();
    let outcome = if n_failed > 0 {
        Outcome::Failed
    } else if report.not_allowed.is_empty() {
        Outcome::Done
    } else {
        Outcome::NotAllowed
    };
    let out = &context.out;
    if out.is_json() {
        let ran: Vec<Value> = report
            .ran
            .iter()
            .map(|(check, run)| {
                json!({
                    "items": check.items, "argv": check.argv, "result": run.result,
                    "exit_code": run.exit_code, "millis": run.millis, "output": run.output,
                })
            })
            .collect();
        let not_allowed: Vec<Value> = report
            .not_allowed
            .iter()
            .map(|check| json!({"items": check.items, "argv": check.argv}))
            .collect();
        out.json(&json!({
            "issue": issue, "head": report.commit_id, "place": source,
            "ran": ran, "not_allowed": not_allowed,
        }));
        return outcome;
    }
    let mut table = Vec::new();
    for (check, run) in &report.ran {
        table.push([items(check), result_words(run), seconds(run.millis), plain_line(&check.text)]);
    }
    for check in &report.not_allowed {
        table.push([
            items(check),
            "not allowed".to_owned(),
            String::new(),
            plain_line(&check.text),
        ]);
    }
    for line in columns(&table) {
        out.line(line);
    }
    let total = report.ran.len() as u64;
    let style = if n_failed > 0 { Style::Error } else { Style::Success };
    let words = format!("{} of {} passed", total - n_failed as u64, counted(total, "command"));
    let words = out.paint(style, &words);
    let place = if source == EvidenceSource::Host { "on this machine" } else { "in a container" };
    out.line(format!("{words} on {:.12}, {place}", report.commit_id));
    if !report.not_allowed.is_empty() {
        out.note(format!(
            "Next: codeboost plan approve {issue} allows the commands that are not allowed yet"
        ));
    }
    outcome
}

fn list(context: &Context, issue: Option<u64>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    let plan = approved_plan(&store, &task)?;
    let site = Site { repository: &repository, store: &store };
    let head_commit_id = item::head(site, &task)?;
    let counted_places = repository.config()?.cmd_evidence;
    let standing = check::standing(site, &task, &plan, &head_commit_id, &counted_places)?;
    if context.out.is_json() {
        let items: Vec<Value> = standing
            .iter()
            .map(|(item, tests)| json!({"item": item, "tests": tests_word(tests)}))
            .collect();
        let runs = store.read(|tx| tx.check_runs(task.id))?;
        context.out.json(&json!({
            "issue": task.issue, "head": head_commit_id, "items": items, "runs": runs,
        }));
        return Ok(Outcome::Done);
    }
    let mut table = Vec::new();
    for (item, (_, tests)) in plan.items.iter().zip(&standing) {
        let commands = item.acceptance.iter().filter(|check| check.kind == CheckKind::Cmd);
        let commands: Vec<_> = commands.map(|check| plain_line(&check.text)).collect();
        table.push([item.id.to_string(), tests_words(tests), commands.join("; ")]);
    }
    for line in columns(&table) {
        context.out.line(line);
    }
    Ok(Outcome::Done)
}

fn tests_word(tests: &Tests) -> &'static str {
    match tests {
        Tests::Passed { .. } => "passed",
        Tests::Failed { .. } => "failed",
        Tests::NotRun { .. } => "not run",
        Tests::OutOfDate { .. } => "out of date",
        Tests::NoneDefined => "none defined",
    }
}

fn tests_words(tests: &Tests) -> String {
    match tests {
        Tests::Passed { total, place } => {
            format!("passed ({total} of {total}; {})", plain_line(place))
        }
        Tests::Failed { failed, total, .. } => format!("failed ({failed} of {total})"),
        Tests::NotRun { .. } | Tests::OutOfDate { .. } | Tests::NoneDefined => {
            tests_word(tests).to_owned()
        }
    }
}
