//! Starting other programs: always with a named folder and an explicit environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::context::Context;

/// A command with no environment but `PATH`, in `folder`.
///
/// The caller adds what the program needs, and nothing else gets in.
#[expect(clippy::disallowed_methods, reason = "the one place that makes commands")]
#[must_use]
pub fn command(context: &Context, program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear();
    command.env("PATH", search_path(context));
    command
}

/// The person's `PATH` without relative entries, so that a folder under review can't supply a
/// program.
fn search_path(context: &Context) -> OsString {
    let path = context.var("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let absolute = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(absolute).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

/// What a program may use before it is ended.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it may run.
    pub deadline: Duration,
    /// How many bytes of each output stream are kept; the rest is read and dropped.
    pub max_output_bytes: usize,
}

/// What a program left that ran within [`Limits`].
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// Standard output, cut to the limit.
    pub stdout: Vec<u8>,
    /// Standard error, cut to the limit.
    pub stderr: Vec<u8>,
    /// Whether one of the streams was cut.
    pub cut: bool,
}

/// How long a program has between the polite signal and the last one.
const GRACE: Duration = Duration::from_secs(5);
/// How long output is awaited after the end, when something else still holds the stream.
const DRAIN: Duration = Duration::from_secs(1);

/// Runs `command` to its end, or ends it with all that it started when its time is over.
///
/// Where this process has no terminal, the program gets a process group of its own, so that
/// everything it started ends with it. At a terminal it stays in the foreground group: Ctrl+C
/// reaches it, and it may ask for a passphrase; then only the program itself is ended.
///
/// # Errors
/// When it can't be started or waited for.
pub fn run(mut command: Command, stdin: Option<&[u8]>, limits: Limits) -> io::Result<Ended> {
    let has_group = !(io::stdin().is_terminal() || io::stderr().is_terminal());
    if has_group {
        command.process_group(0);
    }
    command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn()?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        let bytes = bytes.to_vec();
        // A program that stops reading says why by its exit code.
        std::thread::spawn(move || pipe.write_all(&bytes));
    }
    let stdout = child.stdout.take().map(|pipe| collect(pipe, limits.max_output_bytes));
    let stderr = child.stderr.take().map(|pipe| collect(pipe, limits.max_output_bytes));
    let status = wait_until(&mut child, started + limits.deadline)?;
    let (status, timed_out) = match status {
        Some(status) => (status, false),
        None => (end(&mut child, has_group)?, true),
    };
    let (stdout, stdout_cut) = gather(stdout);
    let (stderr, stderr_cut) = gather(stderr);
    Ok(Ended { code: status.code(), timed_out, stdout, stderr, cut: stdout_cut || stderr_cut })
}

fn wait_until(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a running child: asks first, then insists.
fn end(child: &mut Child, has_group: bool) -> io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| {
        // The child is not waited for yet, so its id is still its own.
        let Some(pid) = pid else { return };
        let _ = if has_group {
            rustix::process::kill_process_group(pid, signal)
        } else {
            rustix::process::kill_process(pid, signal)
        };
    };
    signal(Signal::TERM);
    // Group members that ignore the polite signal outlive the leader: watch the group, not it.
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        let leader_left = wait_until(child, Instant::now())?.is_some();
        let group_left = !has_group
            || pid.is_none_or(|pid| rustix::process::test_kill_process_group(pid).is_err());
        if leader_left && group_left {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if has_group || child.try_wait()?.is_none() {
        signal(Signal::KILL);
    }
    child.wait()
}

/// What was read of a stream so far, and whether more came than was kept.
type Kept = (Vec<u8>, bool);

struct Stream {
    kept: Arc<Mutex<Kept>>,
    ended: mpsc::Receiver<()>,
}

fn collect(mut pipe: impl Read + Send + 'static, max_bytes: usize) -> Stream {
    let (ending, ended) = mpsc::channel();
    let kept = Arc::new(Mutex::new((Vec::new(), false)));
    let filled = Arc::clone(&kept);
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = pipe.read(&mut buffer) {
            let Ok(mut kept) = filled.lock() else { break };
            let room = max_bytes - kept.0.len();
            kept.1 |= n > room;
            kept.0.extend_from_slice(&buffer[..n.min(room)]);
        }
        let _ = ending.send(());
    });
    Stream { kept, ended }
}

fn gather(stream: Option<Stream>) -> Kept {
    let Some(stream) = stream else { return Kept::default() };
    // No end within the time means that something which outlived the program holds the stream.
    let whole = stream.ended.recv_timeout(DRAIN).is_ok();
    let mut kept =
        stream.kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    kept.1 |= !whole;
    kept
}

/// The variable that names the point at which a test ends this process.
const CRASH_AT: &str = "CODEBOOST_CRASH_AT";
/// The variable that names a file to which the points that were passed are appended.
const CRASH_LOG: &str = "CODEBOOST_CRASH_LOG";

/// A place between two steps at which tests end this process as `kill -9` would.
///
/// Does nothing in a build without debug assertions. In one with them it ends the process when
/// `CODEBOOST_CRASH_AT` is `name`, and appends `name` to the file in `CODEBOOST_CRASH_LOG`, so that
/// a test can find every point by itself.
pub fn crash_point(context: &Context, name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    if let Some(path) = context.var(CRASH_LOG)
        && let Ok(mut log) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(log, "{name}");
    }
    if context.var(CRASH_AT).is_some_and(|at| at == name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::output::{ColorChoice, Format, Output};

    fn context() -> Context {
        let out = Output::new(Format::Text, 0, ColorChoice::Never, true);
        Context::new("/".into(), BTreeMap::new(), out)
    }

    fn shell(script: &str, stdin: Option<&[u8]>, millis: u64, max_output_bytes: usize) -> Ended {
        let mut command = command(&context(), "sh", Path::new("/"));
        command.args(["-c", script]);
        run(command, stdin, Limits { deadline: Duration::from_millis(millis), max_output_bytes })
            .expect("sh starts")
    }

    #[test]
    fn a_program_that_ends_in_time_leaves_its_streams_and_its_code() {
        let ended = shell("cat; echo words >&2; exit 3", Some(b"given"), 20_000, 100);
        assert_eq!((ended.code, ended.timed_out, ended.cut), (Some(3), false, false));
        assert_eq!((&ended.stdout[..], &ended.stderr[..]), (&b"given"[..], &b"words\n"[..]));
    }

    #[test]
    fn output_above_the_limit_is_dropped_and_said_to_be_cut() {
        let ended = shell("yes | head -c 100000; exit 0", None, 20_000, 10);
        assert_eq!((ended.code, ended.cut, ended.stdout.len()), (Some(0), true, 10));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
        if io::stdin().is_terminal() || io::stderr().is_terminal() {
            return; // The group is this one's own only without a terminal.
        }
        let started = Instant::now();
        let ended = shell("sleep 60 & echo $!; wait", None, 300, 100);
        assert!(ended.timed_out && ended.code.is_none());
        assert!(started.elapsed() < Duration::from_secs(20));
        let child = String::from_utf8(ended.stdout).expect("a number");
        let child = Pid::from_raw(child.trim().parse().expect("a number")).expect("not 0");
        // Gone, or waiting to be collected by whoever adopted it.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero()));
        assert!(stat.is_err() || stat.is_ok_and(|text| text.contains(") Z ")));
    }
}
