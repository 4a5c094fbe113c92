//! `codeboost execute` with a vendor's tool in a container.

use codeboost_schema::ids::ItemId;
use codeboost_schema::report::Report;
use serde_json::{Value, json};

use crate::agent::invoke::{Failure, Host, Invoked};
use crate::agent::vendor::{SignedIn, Vendor};
use crate::commands::approved_plan;
use crate::commands::doctor::build_image;
use crate::commands::item::{ended_json, ended_outcome, tell_ended, tell_next};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::contained::{self, Carried, Contained, Progress};
use crate::execute::item::{Ended, OutOfScope, Site};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::output::{counted, plain, plain_line};
use crate::sandbox::engine::Engine;
use crate::sandbox::image;
use crate::store::{Store, TaskRow};

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
    let config = repository.config()?;
    let signed_in = SignedIn::find(context, vendor).ok_or_else(|| no_sign_in(vendor))?;
    let engine = Engine::connect(context, config.sandbox.engine.as_deref())?;
    if builds_image {
        build_image(context, &engine)?;
    }
    let image_id = image::require(&engine)?;
    let lease = match store.lease(task, "execute")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    let site = Site { repository, store };
    let agent = Contained {
        host: Host { context, config: &config, engine: &engine },
        image_id: &image_id,
        vendor,
        signed_in: &signed_in,
    };
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
    out.note(match failure {
        Failure::NoSignIn | Failure::SignInRefused(_) => {
            format!("Next: sign in anew, then {again}")
        }
        Failure::Overloaded(_) | Failure::Unreachable(_) => format!("Next: later, {again}"),
        Failure::Refused(_) | Failure::Malformed(_) | Failure::CutOff(_) => {
            format!("Next: see what it wrote with codeboost log {issue}, then {again}")
        }
    });
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
