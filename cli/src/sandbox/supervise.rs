//! Running one container to its end, or to ours.
//!
//! ```text
//! make ── compare ── attach ── start ── read … ─┬─ it ends by itself ──────────┐
//!   refused: removed, nothing was started       │                              ├─ wait, look, remove
//!                                               └─ cap, deadline, told to end: ┘
//!                                                  read on and drop; TERM, then KILL, then remove
//! ```
//!
//! What was asked for is compared with what the engine made before anything starts. While a
//! container is stopped its output is read on and thrown away: Docker's answer to a stop waits for
//! whoever reads. What this process holds of the output is bounded by the caps.

use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, KillContainerOptionsBuilder, StartContainerOptions,
    WaitContainerOptions,
};
use futures_util::StreamExt as _;

use crate::sandbox::engine::{ANSWER_TIME, Engine};
use crate::sandbox::error::SandboxError;
use crate::sandbox::profile::{Profile, SELF_TEST_FAILED};

/// Most that a container may write and how long it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// How long it may run.
    pub deadline: Duration,
    /// Most bytes of standard output.
    pub max_stdout_bytes: usize,
    /// Most bytes of standard error.
    pub max_stderr_bytes: usize,
    /// Most bytes of both.
    pub max_both_bytes: usize,
}

impl Caps {
    /// The most that any run gets, with this deadline.
    #[must_use]
    pub fn until(deadline: Duration) -> Self {
        Self {
            deadline,
            max_stdout_bytes: 16 << 20,
            max_stderr_bytes: 4 << 20,
            max_both_bytes: 20 << 20,
        }
    }
}

/// Why a container was stopped by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Somebody told us to end.
    Cancelled,
    /// Its time was over.
    Deadline,
    /// It wrote more than it may.
    OutputLimit,
    /// Its output could not be read any more.
    CaptureFailed,
}

impl Stopped {
    /// The reason in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Cancelled => "it was told to end",
            Self::Deadline => "its time was over",
            Self::OutputLimit => "it wrote more than it may",
            Self::CaptureFailed => "its output could not be read",
        }
    }
}

/// A container that came to its end.
#[derive(Debug)]
pub struct Ended {
    /// What its program ended with; `None` when that is not known.
    pub code: Option<i64>,
    /// Why it was stopped by us.
    pub stopped: Option<Stopped>,
    /// Standard output, within the cap.
    pub stdout: Vec<u8>,
    /// Standard error, within the cap.
    pub stderr: Vec<u8>,
    /// Whether the kernel probably ended it for want of memory.
    pub out_of_memory: bool,
    /// From the request to the start of the program.
    pub start_time: Duration,
    /// From the request to the removal.
    pub whole_time: Duration,
}

/// How long a program has after the polite signal.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the last signal may take to have an effect before the container is removed by force.
const FORCE_AFTER: Duration = Duration::from_millis(4000);
/// How long a stop may take in all.
const STOP_TIME: Duration = Duration::from_secs(30);
/// How often, and how far apart, a removal is tried.
const REMOVALS: (u32, Duration) = (30, Duration::from_secs(1));

/// Runs a container to its end and removes it. `is_cancelled`: asked again and again whether to stop it.
///
/// # Errors
/// [`SandboxError`] when it could not be made as it was asked for, when a control was missing
/// inside, or when it could not be removed. What the program itself came to is a value.
pub fn run(
    engine: &Engine,
    profile: &Profile,
    caps: Caps,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Ended, SandboxError> {
    let request = profile.request(engine.kind());
    run_request(engine, profile, request, &Check::Compare, caps, is_cancelled)
}

/// Whether the container is compared with what was asked for before it starts.
enum Check {
    Compare,
    #[cfg(test)]
    Skip,
}

/// Runs another request than the profile's, without comparing: to see what the self-test says.
#[cfg(test)]
pub(in crate::sandbox) fn run_unchecked(
    engine: &Engine,
    profile: &Profile,
    request: ContainerCreateBody,
) -> Result<Ended, SandboxError> {
    let caps = Caps::until(Duration::from_secs(60));
    run_request(engine, profile, request, &Check::Skip, caps, &|| false)
}

/// Runs another request than the profile's, compared as always.
#[cfg(test)]
pub(in crate::sandbox) fn run_compared(
    engine: &Engine,
    profile: &Profile,
    request: ContainerCreateBody,
) -> Result<Ended, SandboxError> {
    let caps = Caps::until(Duration::from_secs(60));
    run_request(engine, profile, request, &Check::Compare, caps, &|| false)
}

fn run_request(
    engine: &Engine,
    profile: &Profile,
    request: ContainerCreateBody,
    check: &Check,
    caps: Caps,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Ended, SandboxError> {
    engine.runtime.block_on(async {
        let begun = Instant::now();
        let id = engine.create(&profile.name, request).await?;
        let made = match check {
            Check::Compare => compare(engine, profile, &id).await,
            #[cfg(test)]
            Check::Skip => Ok(()),
        };
        let ended = match made {
            Ok(()) => run_made(engine, caps, is_cancelled, &id, begun).await,
            Err(error) => Err(error),
        };
        remove(engine, profile, &id).await?;
        let mut ended = ended?;
        ended.whole_time = begun.elapsed();
        match self_test_faults(&ended) {
            Some(faults) => Err(SandboxError::SelfTest { faults }),
            None => Ok(ended),
        }
    })
}

/// What the self-test said, when that is why the container ended.
fn self_test_faults(ended: &Ended) -> Option<Vec<String>> {
    if ended.code != Some(SELF_TEST_FAILED) || ended.stopped.is_some() || !ended.stdout.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(&ended.stderr);
    let faults: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("codeboost self-test: "))
        .map(crate::output::plain_line)
        .collect();
    (!faults.is_empty()).then_some(faults)
}

async fn remove(engine: &Engine, profile: &Profile, id: &str) -> Result<(), SandboxError> {
    let (times, pause) = REMOVALS;
    let mut words = String::new();
    for attempt in 0..times {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
        }
        match engine.removed(id, ANSWER_TIME).await {
            Ok(()) => return Ok(()),
            Err(error) => words = error.to_string(),
        }
    }
    let name = engine.kind().name();
    let what = vec![format!("the {name} container {} ({id:.12}): {words}", profile.name)];
    Err(SandboxError::Unreleased { what })
}

async fn compare(engine: &Engine, profile: &Profile, id: &str) -> Result<(), SandboxError> {
    let differences = profile.differences(engine.kind(), &engine.inspect(id).await?);
    if differences.is_empty() { Ok(()) } else { Err(SandboxError::Differs { differences }) }
}

async fn run_made(
    engine: &Engine,
    caps: Caps,
    is_cancelled: &dyn Fn() -> bool,
    id: &str,
    begun: Instant,
) -> Result<Ended, SandboxError> {
    let options =
        AttachContainerOptionsBuilder::default().stdout(true).stderr(true).stream(true).build();
    let attach = engine.docker.attach_container(id, Some(options));
    let mut output = engine.ask("attach to the container", ANSWER_TIME, attach).await?.output;
    let start = engine.docker.start_container(id, None::<StartContainerOptions>);
    engine.ask("start the container", ANSWER_TIME, start).await?;
    let start_time = begun.elapsed();

    let mut kept = Kept { caps, stdout: Vec::new(), stderr: Vec::new() };
    let until = tokio::time::Instant::now() + caps.deadline;
    let mut look = tokio::time::interval(Duration::from_millis(50));
    let stopped = loop {
        tokio::select! {
            frame = output.next() => match frame {
                None => break None,
                Some(Ok(frame)) => if !kept.take(frame) { break Some(Stopped::OutputLimit) },
                Some(Err(_)) => break Some(Stopped::CaptureFailed),
            },
            () = tokio::time::sleep_until(until) => break Some(Stopped::Deadline),
            _ = look.tick() => if is_cancelled() {
                break Some(Stopped::Cancelled);
            },
        }
    };
    if stopped.is_some() {
        let drain = async { while output.next().await.is_some() {} };
        let ladder = stop(engine, id);
        // Read on while it is stopped, but never wait for the reading itself.
        let _ = tokio::time::timeout(STOP_TIME, async {
            tokio::select! {
                () = async { drain.await; std::future::pending::<()>().await } => {}
                () = ladder => {}
            }
        })
        .await;
    }
    let code = exit_code(engine, id, until, stopped).await;
    let (code, stopped) = match code {
        Ok(code) => (code, stopped),
        Err(reason) => {
            stop(engine, id).await;
            (None, Some(reason))
        }
    };
    let state = match engine.inspect(id).await {
        Ok(found) => found.state.unwrap_or_default(),
        // Removed by force.
        Err(_) => bollard::models::ContainerState::default(),
    };
    let code = code.or(state.exit_code.filter(|_| state.running == Some(false)));
    Ok(Ended {
        code,
        stopped,
        // Podman never says so of itself.
        out_of_memory: state.oom_killed == Some(true) || (code == Some(137) && stopped.is_none()),
        stdout: kept.stdout,
        stderr: kept.stderr,
        start_time,
        whole_time: begun.elapsed(),
    })
}

/// Waits for the end of a container whose output has ended.
async fn exit_code(
    engine: &Engine,
    id: &str,
    until: tokio::time::Instant,
    stopped: Option<Stopped>,
) -> Result<Option<i64>, Stopped> {
    let mut wait = engine.docker.wait_container(id, None::<WaitContainerOptions>);
    // A program may close its output long before it ends.
    let until = if stopped.is_some() { tokio::time::Instant::now() + STOP_TIME } else { until };
    match tokio::time::timeout_at(until, wait.next()).await {
        Ok(Some(Ok(ended))) => Ok(Some(ended.status_code)),
        // The client makes an error of every code but 0.
        Ok(Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. }))) => {
            Ok(Some(code))
        }
        Ok(Some(Err(_)) | None) => Ok(None),
        Err(_) if stopped.is_some() => Ok(None),
        Err(_) => Err(Stopped::Deadline),
    }
}

/// Ends a running container: asks, insists, removes.
async fn stop(engine: &Engine, id: &str) {
    let begun = Instant::now();
    let signal = |name: &'static str| async move {
        let options = KillContainerOptionsBuilder::default().signal(name).build();
        let asked = engine.docker.kill_container(id, Some(options));
        // It may have ended by itself meanwhile; whether it did is looked at below.
        let _ = engine.ask("end the container", FORCE_AFTER, asked).await;
    };
    let is_running = || async {
        let found = engine.inspect(id).await.ok().and_then(|found| found.state);
        found.is_some_and(|state| state.running == Some(true))
    };
    signal("TERM").await;
    while begun.elapsed() < GRACE {
        if !is_running().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    signal("KILL").await;
    while begun.elapsed() < FORCE_AFTER {
        if !is_running().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let _ = engine.removed(id, FORCE_AFTER).await;
}

struct Kept {
    caps: Caps,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Kept {
    /// Keeps a piece of output; false when it is more than may be.
    fn take(&mut self, frame: LogOutput) -> bool {
        let room = self.caps.max_both_bytes - self.stdout.len() - self.stderr.len();
        let (stream, max_bytes, message) = match frame {
            LogOutput::StdErr { message } => {
                (&mut self.stderr, self.caps.max_stderr_bytes, message)
            }
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                (&mut self.stdout, self.caps.max_stdout_bytes, message)
            }
            LogOutput::StdIn { .. } => return true,
        };
        let room = room.min(max_bytes - stream.len());
        stream.extend_from_slice(&message[..message.len().min(room)]);
        message.len() <= room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_the_caps_allow() {
        let caps = Caps {
            deadline: Duration::from_secs(1),
            max_stdout_bytes: 5,
            max_stderr_bytes: 4,
            max_both_bytes: 7,
        };
        let mut kept = Kept { caps, stdout: Vec::new(), stderr: Vec::new() };
        let out = |text: &'static str| LogOutput::StdOut { message: text.into() };
        let err = |text: &'static str| LogOutput::StdErr { message: text.into() };
        assert!(kept.take(out("12345")));
        assert!(!kept.take(out("6")));
        assert!(kept.take(err("ab")));
        assert!(!kept.take(err("cd")), "both together");
        assert_eq!((&kept.stdout[..], &kept.stderr[..]), (&b"12345"[..], &b"ab"[..]));
    }

    #[test]
    fn only_an_end_without_output_is_one_of_the_self_test() {
        let ended = |code, stdout: &str| Ended {
            code: Some(code),
            stopped: None,
            stdout: stdout.into(),
            stderr: b"codeboost self-test: root: it is not read-only\nother\n".to_vec(),
            out_of_memory: false,
            start_time: Duration::ZERO,
            whole_time: Duration::ZERO,
        };
        assert_eq!(self_test_faults(&ended(78, "")).expect("faults").len(), 1);
        assert!(self_test_faults(&ended(78, "x")).is_none());
        assert!(self_test_faults(&ended(1, "")).is_none());
    }
}
