//! One invocation of a vendor's tool: in a container, with the way to its vendor, the channel, and
//! the prompt on its standard input.
//!
//! What it says is checked by whoever asked. What went wrong is told apart by [`Failure`]: whether
//! a person has to sign in, to wait, or to look.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::agent::asked::{Asked, Change, Command, Desk};
use crate::agent::vendor::{self, Phase, Rights, SignedIn, Vendor};
use crate::agent::{claude, codex};
use crate::config::Config;
use crate::context::Context;
use crate::process::Ending;
use crate::sandbox::SandboxError;
use crate::sandbox::channel::{Answer, Channel, Over};
use crate::sandbox::engine::Engine;
use crate::sandbox::place::{Place, Start};
use crate::sandbox::profile::{Access, OWN, Relay};
use crate::sandbox::proxy::{Proxy, Traffic};
use crate::sandbox::supervise::{self, Caps, Ended};

/// The port of the container's own loopback that leads to the vendor.
pub const PORT: u16 = 8787;
/// Most bytes of a command's output that go to the agent, a quarter of them the beginning.
const MAX_COMMAND_BYTES: usize = 48 * 1024;

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Its structured answer, not yet checked.
    pub answer: Value,
    /// What it says it used; the vendor's own form.
    pub usage: Value,
    /// What it says it cost, in US dollars.
    pub cost_usd: Option<f64>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The tool found no sign-in.
    #[error("it is not signed in")]
    NoSignIn,
    /// The vendor does not accept the sign-in.
    #[error("the vendor does not accept the sign-in: {0}")]
    SignInRefused(String),
    /// The vendor can't answer now.
    #[error("the vendor is overloaded: {0}")]
    Overloaded(String),
    /// The vendor refuses this.
    #[error("the vendor refused: {0}")]
    Refused(String),
    /// The vendor can't be reached.
    #[error("the vendor can't be reached: {0}")]
    Unreachable(String),
    /// What it wrote is no answer.
    #[error("its answer can't be read: {0}")]
    Malformed(String),
    /// It was ended before it had answered.
    #[error("it was cut off: {0}")]
    CutOff(String),
}

impl Failure {
    /// By an HTTP status of the vendor's interface. `words`: what came with it.
    pub(super) fn of_status(status: Option<u64>, words: &str) -> Self {
        let words: String = crate::output::plain_line(words).chars().take(300).collect();
        match status {
            Some(401 | 403) => Self::SignInRefused(words),
            Some(429 | 500..) => Self::Overloaded(words),
            _ => Self::Refused(words),
        }
    }

    /// The word for it, for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoSignIn => "no-sign-in",
            Self::SignInRefused(_) => "sign-in-refused",
            Self::Overloaded(_) => "overloaded",
            Self::Refused(_) => "refused",
            Self::Unreachable(_) => "unreachable",
            Self::Malformed(_) => "malformed",
            Self::CutOff(_) => "cut-off",
        }
    }
}

/// Where invocations happen.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// The world.
    pub context: &'a Context,
    /// What is configured.
    pub config: &'a Config,
    /// The engine.
    pub engine: &'a Engine,
}

/// What is asked of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Whose tool.
    pub vendor: Vendor,
    /// The sign-in.
    pub signed_in: &'a SignedIn,
    /// What for.
    pub phase: Phase,
    /// The whole prompt.
    pub prompt: &'a str,
    /// The JSON Schema of the answer.
    pub schema: &'a str,
    /// The approved commands that it may ask for, in their order.
    pub commands: &'a [Command],
}

/// What an invocation came to.
#[derive(Debug)]
pub struct Invoked {
    /// What it answered, or why not.
    pub answered: Result<Answered, Failure>,
    /// What it asked for on the channel.
    pub asked: Vec<Asked>,
    /// What came by on the way to its vendor.
    pub traffic: Traffic,
    /// The end of what it wrote, without secrets.
    pub output: Vec<u8>,
    /// From the request to the start of the tool.
    pub start_time: Duration,
    /// From the request to the removal of its container.
    pub whole_time: Duration,
}

/// Starts a tool in a place and waits for its answer.
///
/// # Errors
/// [`SandboxError`] when nothing was or could be run as it has to be, or when this process was told
/// to end. A tool that failed is a value.
pub fn invoke(host: Host<'_>, place: &Place<'_>, ask: &Ask<'_>) -> Result<Invoked, SandboxError> {
    let Host { context, config, engine } = host;
    let rights = Rights::of(ask.vendor, ask.phase);
    let inside = place.first()?;
    let input = inside.put("prompt", ask.prompt.as_bytes())?;
    let schema = inside.put("schema.json", ask.schema.as_bytes())?;
    let proxy = Proxy::start(
        engine,
        &inside.socket("vendor.sock")?,
        ask.signed_in.upstream(ask.vendor, &config.agents),
    )?;
    let channel = Channel::open(&inside.socket("channel.sock")?)?;
    let channel_inside = format!("{OWN}/channel.sock");
    let sign_in = ask.signed_in.sign_in;
    let (argv, env) = match ask.vendor {
        Vendor::Claude => {
            let model = config.agents.claude.model.as_deref();
            (claude::argv(&rights, ask.schema, model, &channel_inside), claude::env(sign_in))
        }
        Vendor::Codex => {
            let model = config.agents.codex.model.as_deref();
            (codex::argv(sign_in, &schema, model, &channel_inside), codex::env(sign_in))
        }
    };
    let work = if ask.phase.may_edit() { Access::Writable } else { Access::ReadOnly };
    let start = Start {
        argv,
        env,
        work,
        relays: vec![Relay { port: PORT, socket: format!("{OWN}/vendor.sock") }],
        input: Some(input),
    };
    let profile = place.profile(&inside, &start)?;
    let caps = Caps::until(Duration::from_secs(config.sandbox.deadline));
    let ending = Ending::watch().map_err(SandboxError::Runtime)?;
    let is_over = AtomicBool::new(false);
    // One after the other: they share their folders.
    let turn = Mutex::new(());
    let run = |argv: &[String], change: Change| {
        let _turn = turn.lock();
        let work = if change == Change::Never { Access::ReadOnly } else { work };
        beside(engine, place, argv, work, caps, &|| is_over.load(Ordering::Relaxed))
    };
    let desk = Desk {
        rights,
        commands: ask.commands,
        work: &place.work(),
        run: &run,
        asked: Mutex::default(),
    };
    let ended = std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| channel.serve(&desk, &is_over));
        supervise::run(engine, &profile, caps, &|| ending.is_told())
    })?;
    if ending.is_told() {
        return Err(SandboxError::Interrupted);
    }
    let traffic = proxy.traffic();
    let answered = answered(ask.vendor, &ended, &traffic);
    Ok(Invoked {
        answered,
        asked: desk.asked.into_inner().unwrap_or_default(),
        traffic,
        output: output(context, &ended),
        start_time: ended.start_time,
        whole_time: ended.whole_time,
    })
}

/// What of a tool's output is kept for whoever has to find out what went wrong.
fn output(context: &Context, ended: &Ended) -> Vec<u8> {
    const MAX_STREAM: usize = 128 * 1024;
    let end = |bytes: &[u8]| bytes[bytes.len().saturating_sub(MAX_STREAM)..].to_vec();
    let mut text = end(&ended.stderr);
    text.extend_from_slice(b"\n---\n");
    text.extend(end(&ended.stdout));
    vendor::redact(context, &text)
}

fn answered(vendor: Vendor, ended: &Ended, traffic: &Traffic) -> Result<Answered, Failure> {
    if let Some(stopped) = ended.stopped {
        return Err(Failure::CutOff(stopped.words().to_owned()));
    }
    if ended.out_of_memory {
        return Err(Failure::CutOff("it needed more memory than it may".into()));
    }
    let read = match vendor {
        Vendor::Claude => claude::read(&ended.stdout),
        Vendor::Codex => codex::read(&ended.stdout),
    };
    match (read, &traffic.unreachable) {
        (Ok(answered), _) if ended.code == Some(0) => Ok(answered),
        (Ok(_), _) => {
            let code = ended.code.map_or("nothing".to_owned(), |code| code.to_string());
            Err(Failure::Malformed(format!("it answered and then ended with {code}")))
        }
        (Err(Failure::Overloaded(_) | Failure::Refused(_) | Failure::CutOff(_)), Some(words)) => {
            Err(Failure::Unreachable(words.clone()))
        }
        (Err(Failure::Malformed(words)), _) if ended.code != Some(0) => {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.lines().last().unwrap_or_default();
            let said: String = crate::output::plain_line(said).chars().take(200).collect();
            Err(Failure::Malformed(format!("{words}; it said: {said}")))
        }
        (Err(failure), _) => Err(failure),
    }
}

/// Runs a program in a container beside the agent's.
fn beside(
    engine: &Engine,
    place: &Place<'_>,
    argv: &[String],
    work: Access,
    caps: Caps,
    is_over: &dyn Fn() -> bool,
) -> Result<Answer, String> {
    let ended = run_beside(engine, place, argv, work, caps, is_over)
        .map_err(|error| format!("codeboost could not run it: {error}"))?;
    let mut text = match (ended.stopped, ended.code) {
        (Some(stopped), _) => format!("stopped: {}\n", stopped.words()),
        (None, Some(code)) => format!("exit code {code}\n"),
        (None, None) => "ended by a signal\n".to_owned(),
    };
    for (name, bytes) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        if !bytes.is_empty() {
            text.push_str(&format!("--- {name} ---\n{}\n", ends(bytes)));
        }
    }
    let is_error = ended.stopped.is_some() || ended.code != Some(0);
    Ok(Answer { text, is_error })
}

/// Runs a program of the project in a container with empty folders of its own.
///
/// # Errors
/// [`SandboxError`] when it could not be run as it has to be.
pub fn run_beside(
    engine: &Engine,
    place: &Place<'_>,
    argv: &[String],
    work: Access,
    caps: Caps,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Ended, SandboxError> {
    let inside = place.further()?;
    let env = [("CI", "1"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("LANG", "C.UTF-8")];
    let mut argv = argv.to_vec();
    // A name with a slash is meant from the project's root.
    if let Some(program) = argv.first_mut()
        && program.contains('/')
        && !program.starts_with('/')
    {
        *program = Path::new("/work").join(&*program).to_string_lossy().into_owned();
    }
    let start = Start {
        argv,
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        work,
        relays: Vec::new(),
        input: None,
    };
    supervise::run(engine, &place.profile(&inside, &start)?, caps, is_cancelled)
}

/// What a command wrote: both streams, each with its beginning and its end.
#[must_use]
pub fn both_streams(ended: &Ended) -> Vec<u8> {
    let streams = [&ended.stdout, &ended.stderr].into_iter().filter(|stream| !stream.is_empty());
    streams.map(|stream| ends(stream)).collect::<String>().into_bytes()
}

/// The beginning and the end of what a command wrote.
fn ends(bytes: &[u8]) -> String {
    if bytes.len() <= MAX_COMMAND_BYTES {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let n_first = MAX_COMMAND_BYTES / 4;
    let n_last = MAX_COMMAND_BYTES - n_first;
    format!(
        "{}\n[{} bytes left out]\n{}",
        String::from_utf8_lossy(&bytes[..n_first]),
        bytes.len() - MAX_COMMAND_BYTES,
        String::from_utf8_lossy(&bytes[bytes.len() - n_last..])
    )
}
