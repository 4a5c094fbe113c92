//! `codeboost execute` with a vendor's tool in a container.

use clap::Args;
use codeboost_schema::ids::ItemId;
use codeboost_schema::report::Report;
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::invoke::{Failure, Host, Invoked};
use crate::agent::vendor::{SignedIn, Vendor};
use crate::commands::approved_plan;
use crate::commands::doctor::build_image;
use crate::commands::item::{ended_json, ended_outcome, tell_ended, tell_next};
use crate::config::Config;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::consult::{self, Question};
use crate::execute::contained::{self, Carried, Contained, Progress};
use crate::execute::item::{Ended, OutOfScope, Site};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::output::{counted, plain, plain_line};
use crate::sandbox::engine::Engine;
use crate::sandbox::image;
use crate::store::{Lease, Store, TaskRow};

/// What is carried out, and by whom.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) repository: &'a Repository<'a>,
    pub(crate) store: &'a Store<'a>,
    pub(crate) task: &'a TaskRow,
    pub(crate) vendor: Vendor,
}

pub(crate) fn run(
    context: &Context,
    work: Work<'_>,
    builds_image: bool,
    out_of_scope: OutOfScope,
) -> Result {
    let Work { repository, store, task, vendor } = work;
    let plan = approved_plan(store, task)?;
    let hired = Hired::new(context, repository, vendor, builds_image)?;
    let lease = match store.lease(task, "execute")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository, store };
    let agent = hired.contained(context);
    let engine = &hired.engine;
    let mut last = None;
    let mut ends = Vec::new();
    let carried =
        contained::run(site, &lease, &plan, &agent, out_of_scope, |progress| match progress {
            Progress::Cleared(what) => {
                context.out.note(format!("removed what an earlier run left: {what}"));
            }
            Progress::Begun(item, _) => context.out.note(format!(
                "{}: {} works on it in {} …",
                item.id,
                vendor.name(),
                engine.kind().name()
            )),
            Progress::Invoked(invoked) => tell_invoked(context, vendor, invoked),
            Progress::Reported(report) => tell_report(context, vendor, report),
            Progress::Ended(ended) => {
                if context.out.is_json() {
                    ends.push(ended_json(&ended));
                } else {
                    tell_ended(context, &ended);
                }
                last = Some(*ended);
            }
        })?;
    Ok(tell_carried(context, work, &carried, ends, last))
}

/// Who does it, for commands that only agents carry out.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Who is asked: `claude` or `codex`, in a container
    #[arg(long, value_name = "NAME", value_parser = parse_vendor)]
    pub(crate) agent: Option<Vendor>,
    /// First build the image that they run in, unless it is there
    #[arg(long, requires = "agent")]
    build_image: bool,
}

fn parse_vendor(name: &str) -> std::result::Result<Vendor, String> {
    Vendor::parse(name).ok_or_else(|| "expected claude or codex".to_owned())
}

impl AgentArgs {
    /// The one that is named; none is the default. `example`: the command without it.
    pub(crate) fn hire(
        &self,
        context: &Context,
        repository: &Repository<'_>,
        example: &str,
    ) -> Result<Hired> {
        let vendor = self.agent.ok_or_else(|| {
            Error::usage("no agent is named, and none is the default")
                .hint(format!("name one: {example} --agent claude, or codex"))
        })?;
        Hired::new(context, repository, vendor, self.build_image)
    }
}

/// A vendor's tool with all that it takes to start it.
pub(crate) struct Hired {
    pub(crate) vendor: Vendor,
    config: Config,
    engine: Engine,
    image_id: String,
    signed_in: SignedIn,
}

impl Hired {
    fn new(
        context: &Context,
        repository: &Repository<'_>,
        vendor: Vendor,
        builds_image: bool,
    ) -> Result<Self> {
        let config = repository.config()?;
        let signed_in = SignedIn::find(context, vendor).ok_or_else(|| no_sign_in(vendor))?;
        let engine = Engine::connect(context, config.sandbox.engine.as_deref())?;
        if builds_image {
            build_image(context, &engine)?;
        }
        let image_id = image::require(&engine)?;
        Ok(Self { vendor, config, engine, image_id, signed_in })
    }

    fn contained<'a>(&'a self, context: &'a Context) -> Contained<'a> {
        Contained {
            host: Host { context, config: &self.config, engine: &self.engine },
            image_id: &self.image_id,
            vendor: self.vendor,
            signed_in: &self.signed_in,
        }
    }

    /// Asks a question; says why there is no answer.
    pub(crate) fn ask<T: Serialize>(
        &self,
        context: &Context,
        site: Site<'_>,
        lease: &Lease,
        question: &Question<'_>,
        read: impl FnOnce(&Value) -> std::result::Result<T, String>,
    ) -> Result<std::result::Result<T, Failure>> {
        let name = self.vendor.name();
        context.out.note(format!("{name} looks at it in {} …", self.engine.kind().name()));
        let agent = self.contained(context);
        let (answer, invoked) = consult::consult(site, lease, &agent, question, read)?;
        tell_invoked(context, self.vendor, &invoked);
        Ok(answer)
    }
}

/// Says that there is no answer, and the next step. `again`: the whole command.
pub(crate) fn tell_no_answer(context: &Context, vendor: Vendor, failure: &Failure, again: &str) {
    if context.out.is_json() {
        context.out.json(&json!({
            "failure": {"kind": failure.word(), "words": failure.to_string()},
        }));
        return;
    }
    context.out.line(format!("{} gave no answer: {failure}", vendor.name()));
    context.out.note(next_after(failure, again));
}

fn next_after(failure: &Failure, again: &str) -> String {
    match failure {
        Failure::NoSignIn | Failure::SignInRefused(_) => {
            format!("Next: sign in anew, then {again}")
        }
        Failure::Overloaded(_) | Failure::Unreachable(_) => format!("Next: later, {again}"),
        Failure::Refused(_) | Failure::Malformed(_) | Failure::CutOff(_) => {
            format!("Next: see what it wrote with codeboost log, then {again}")
        }
    }
}

fn no_sign_in(vendor: Vendor) -> Error {
    let names: Vec<String> = vendor
        .sign_ins()
        .iter()
        .map(|sign_in| format!("{} ({})", sign_in.variable, sign_in.what))
        .collect();
    let error = Error::not_allowed(format!("there is no sign-in for {}", vendor.name()))
        .hint(format!("set one of {}; it stays on this machine", names.join(", ")));
    match vendor {
        Vendor::Claude => error.hint("claude setup-token makes one for a subscription"),
        Vendor::Codex => error.hint(
            "a subscription's auth.json is not used: the tool would have to renew it inside of \
             the container",
        ),
    }
}

fn tell_invoked(context: &Context, vendor: Vendor, invoked: &Invoked) {
    let out = &context.out;
    let seconds = invoked.whole_time.as_secs();
    out.detail(format!(
        "{} ended after {seconds} s with {} to its vendor and {} for something",
        vendor.name(),
        counted(invoked.traffic.n_sent, "request"),
        counted(invoked.asked.len() as u64, "request"),
    ));
    for asked in &invoked.asked {
        let failed = if asked.is_error { " (failed)" } else { "" };
        out.detail(format!("it asked for {} {}{failed}", asked.tool, asked.what));
    }
    if invoked.traffic.n_refused > 0 {
        let what = invoked.traffic.refused.join(", ");
        out.warn(format!("requests that are not its vendor's were refused: {what}"));
    }
}

/// What an agent says of itself is shown as what it is.
fn tell_report(context: &Context, vendor: Vendor, report: &Report) {
    for text in [&report.summary, &report.not_done] {
        for line in plain(text.trim()).lines().take(20) {
            context.out.note(format!("  {} says: {}", vendor.name(), plain_line(line)));
        }
    }
}

fn tell_carried(
    context: &Context,
    work: Work<'_>,
    carried: &Carried,
    ends: Vec<Value>,
    last: Option<Ended>,
) -> Outcome {
    let issue = work.task.issue;
    let out = &context.out;
    if out.is_json() {
        let (result, item) = match carried {
            Carried::Whole => ("whole", None),
            Carried::Paused => ("paused", None),
            Carried::Refused(_) => ("refused", None),
            Carried::NeedsAmendment(item, _) => ("needs-amendment", Some(item)),
            Carried::Failed(item, _) => ("failed", Some(item)),
        };
        let failure = match carried {
            Carried::Failed(_, failure) => {
                json!({"kind": failure.word(), "words": failure.to_string()})
            }
            _ => Value::Null,
        };
        let proposal = match carried {
            Carried::NeedsAmendment(_, report) => json!(report.proposal),
            _ => Value::Null,
        };
        out.json(&json!({
            "issue": issue, "items": ends, "result": result, "item": item, "failure": failure,
            "proposal": proposal,
        }));
    } else {
        match carried {
            Carried::Failed(item, failure) => tell_failure(context, work, item, failure),
            Carried::NeedsAmendment(item, report) => tell_proposal(context, issue, item, report),
            Carried::Refused(folder) => {
                out.line(format!("What was refused is kept in {}", folder.display()));
                out.note(format!("Next: look at it, then codeboost execute {issue} tries again"));
            }
            Carried::Whole | Carried::Paused => match &last {
                Some(ended) => tell_next(context, ended),
                None => out.line("Nothing to do: every item has its result."),
            },
        }
    }
    match (carried, &last) {
        (Carried::Failed(..) | Carried::NeedsAmendment(..), _) => Outcome::Waits,
        (Carried::Refused(_) | Carried::Paused, Some(ended)) => ended_outcome(ended),
        _ => Outcome::Done,
    }
}

fn tell_failure(context: &Context, work: Work<'_>, item: &ItemId, failure: &Failure) {
    let out = &context.out;
    let issue = work.task.issue;
    let name = work.vendor.name();
    out.line(format!("{name} gave no answer for {item}: {failure}"));
    out.line("Nothing of it was committed.");
    let again = format!("codeboost execute {issue} --agent {name}");
    out.note(next_after(failure, &again));
}

fn tell_proposal(context: &Context, issue: u64, item: &ItemId, report: &Report) {
    let out = &context.out;
    out.line(format!("{item} can't be carried out as the plan says; nothing was kept."));
    if let Some(proposal) = &report.proposal {
        out.line(format!("  reason: {}", plain_line(&proposal.reason)));
        for file in &proposal.files {
            out.line(format!(
                "  needs {} ({}): {}",
                plain_line(&file.path),
                serde_json::to_value(file.kind)
                    .ok()
                    .and_then(|kind| kind.as_str().map(str::to_owned))
                    .unwrap_or_default(),
                plain_line(&file.reason)
            ));
        }
        out.line(format!("  proposed text: {}", plain_line(&proposal.item_text)));
    }
    out.note(format!(
        "Next: codeboost plan amend {issue} makes that the next revision; or plan edit {issue}"
    ));
}
