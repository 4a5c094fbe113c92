//! Asking a vendor's tool about a project that it may only read, and the record of every invocation.
//!
//! Nothing that it does or says changes the project: it sees a checkout of one commit in a container
//! of its own, and its answer is held against a schema before anybody looks at it.

use codeboost_schema::ids::{CommitId, Digest, ItemId, Uuid};
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::asked::Command;
use crate::agent::invoke::{self, Ask, Failure, Invoked};
use crate::agent::vendor::Phase;
use crate::execute::contained::Contained;
use crate::execute::item::{ItemError, Site};
use crate::execute::workspace;
use crate::git::read::Objects;
use crate::process::crash_point;
use crate::sandbox::image;
use crate::sandbox::place::{self, Owner, Place, Project};
use crate::stage::FileError;
use crate::store::{Event, Lease};
use crate::task::Actor;

/// What an invocation is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// What for.
    pub phase: Phase,
    /// One item, if it is about one.
    pub item: Option<&'a ItemId>,
    /// The revision of the plan that it was told of.
    pub revision: Option<u64>,
    /// The comments of people that it was told of.
    pub comments: &'a [Uuid],
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What it is about.
    pub about: About<'a>,
    /// The commit that is looked at.
    pub commit_id: &'a CommitId,
    /// The whole prompt.
    pub prompt: &'a str,
    /// The JSON Schema of the answer.
    pub schema: &'a str,
    /// The approved commands that it may ask for.
    pub commands: &'a [Command],
}

/// Asks, and reads the answer with `read`, which says what is wrong with it.
///
/// The lease is the proof that nothing else runs for the task. No answer is a value.
///
/// # Errors
/// [`ItemError`] when the container can't be what it has to be, or this process is told to end.
pub fn consult<T: Serialize>(
    site: Site<'_>,
    lease: &Lease,
    agent: &Contained<'_>,
    question: &Question<'_>,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<(Result<T, Failure>, Invoked), ItemError> {
    let host = agent.host;
    let owner = Owner {
        repository: site.store.read(|tx| tx.repository_id())?.to_string(),
        task: lease.task().to_string(),
    };
    let pool = workspace::pool_folder(site.repository);
    place::clear(host.context, host.engine, &pool, &owner)?;
    let objects = Objects::open(site.repository.git())?;
    let scratch = tempfile::Builder::new()
        .prefix("codeboost-consult-")
        .tempdir()
        .map_err(|error| FileError::new("make a folder in", &std::env::temp_dir(), error))?;
    let folder = scratch.path().join("project");
    let clone = workspace::make(site.repository, &objects, question.commit_id, &folder)?;
    let submodules = workspace::submodules(&clone.tree)?;
    let project = Project { checkout: &clone.folder, submodules: &submodules };
    let sandbox = &host.config.sandbox;
    let place = Place::make(host.context, sandbox, &pool, &owner, agent.image_id, project)?;
    let ask = Ask {
        vendor: agent.vendor,
        signed_in: agent.signed_in,
        phase: question.about.phase,
        prompt: question.prompt,
        schema: question.schema,
        commands: question.commands,
    };
    let invoked = invoke::invoke(host, &place, &ask);
    let released = place.release();
    let invoked = invoked?;
    released?;
    crash_point(host.context, "agent-consulted");
    let answer = invoked
        .answered
        .clone()
        .and_then(|answered| read(&answered.answer).map_err(Failure::Malformed));
    record(site, lease, agent, question.about, question.prompt, &invoked, &answer)?;
    Ok((answer, invoked))
}

/// Writes to the log what was asked and what came of it.
///
/// # Errors
/// [`ItemError`] when it can't be written.
pub fn record<T: Serialize>(
    site: Site<'_>,
    lease: &Lease,
    agent: &Contained<'_>,
    about: About<'_>,
    prompt: &str,
    invoked: &Invoked,
    read: &Result<T, Failure>,
) -> Result<(), ItemError> {
    let output = site.store.put_evidence(&invoked.output)?;
    let report = match read {
        Ok(report) => Some(site.store.put_evidence(json!(report).to_string().as_bytes())?),
        Err(_) => None,
    };
    let (usage, cost_usd) = match &invoked.answered {
        Ok(answered) => (answered.usage.clone(), answered.cost_usd),
        Err(_) => (json!(null), None),
    };
    let asked: Vec<_> = invoked
        .asked
        .iter()
        .take(200)
        .map(|asked| json!({"tool": asked.tool, "what": asked.what, "failed": asked.is_error}))
        .collect();
    let name = agent.vendor.name();
    let detail = json!({
        "agent": name,
        "version": image::version(name),
        "image": agent.image_id,
        "engine": agent.host.engine.kind().name(),
        "engine_version": agent.host.engine.version(),
        "phase": about.phase.word(),
        "item": about.item,
        "revision": about.revision,
        "prompt": Digest::of(prompt.as_bytes()),
        "lessons": [],
        "comments": about.comments,
        "result": read.as_ref().map_or_else(Failure::word, |_| "answered"),
        "report": report,
        "output": output,
        "usage": usage,
        "cost_usd": cost_usd,
        "asked": asked,
        "n_requests": invoked.traffic.n_sent,
        "n_requests_refused": invoked.traffic.n_refused,
        "requests_refused": invoked.traffic.refused,
        "start_millis": u64::try_from(invoked.start_time.as_millis()).unwrap_or(u64::MAX),
        "whole_millis": u64::try_from(invoked.whole_time.as_millis()).unwrap_or(u64::MAX),
    });
    let what = match (about.phase, about.item) {
        (Phase::Execute, Some(item)) => item.to_string(),
        (phase, Some(item)) => format!("{} about {item}", phase.word()),
        (phase, None) => phase.word().to_owned(),
    };
    let words = match read {
        Ok(_) => format!("{name} worked on {what}"),
        Err(failure) => format!("{name} gave no answer for {what}: {failure}"),
    };
    site.store.write(|tx| {
        tx.log(&Event {
            task: Some(lease.task()),
            kind: "agent",
            actor: Actor::Agent(name.to_owned()),
            detail,
            words: &words,
        })
    })?;
    Ok(())
}
