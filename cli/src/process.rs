//! Starting other programs: always with a named folder and an explicit environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// What tells this build of the program and the git that it runs from others, for naming what they
/// made: of both files how long they are and when they were written. `None` when that can't be told.
#[must_use]
pub fn stamp(context: &Context) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let git = std::env::split_paths(&search_path(context))
        .filter_map(|folder| std::fs::metadata(folder.join("git")).ok())
        .find(|meta| meta.is_file())?;
    let program = std::env::current_exe().and_then(std::fs::metadata).ok()?;
    let of = |meta: &std::fs::Metadata| {
        format!("{} {}.{:09}", meta.len(), meta.mtime(), meta.mtime_nsec())
    };
    Some(format!("{} {}", of(&program), of(&git)))
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
pub fn run(command: Command, stdin: Option<&[u8]>, limits: Limits) -> io::Result<Ended> {
    let has_group = !(io::stdin().is_terminal() || io::stderr().is_terminal());
    run_with(command, stdin, limits, has_group, None)
}

/// As [`run`], always in a process group of its own, for a program that asks nobody anything.
///
/// When this process is told to end (Ctrl+C, `kill`), the program is ended first, and the error is
/// [`io::ErrorKind::Interrupted`].
///
/// # Errors
/// When it can't be started or waited for, or when this process is told to end.
pub fn run_in_group(
    command: Command,
    stdin: Option<&[u8]>,
    limits: Limits,
    ending: &Ending,
) -> io::Result<Ended> {
    run_with(command, stdin, limits, true, Some(ending))
}

fn run_with(
    mut command: Command,
    stdin: Option<&[u8]>,
    limits: Limits,
    has_group: bool,
    ending: Option<&Ending>,
) -> io::Result<Ended> {
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
    let until = after(started, limits.deadline);
    let mut status = None;
    let is_told = || ending.is_some_and(Ending::is_told);
    while status.is_none() && Instant::now() < until && !is_told() {
        let soon = Instant::now() + Duration::from_millis(50);
        let next = if ending.is_some() { soon.min(until) } else { until };
        status = wait_until(&mut child, next)?;
    }
    let (status, timed_out) = match status {
        Some(status) => (status, false),
        None => (end(&mut child, has_group)?, true),
    };
    let (stdout, stdout_cut) = gather(stdout);
    let (stderr, stderr_cut) = gather(stderr);
    if timed_out && is_told() {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "told to end"));
    }
    Ok(Ended { code: status.code(), timed_out, stdout, stderr, cut: stdout_cut || stderr_cut })
}

/// What a program left that ran apart.
#[derive(Debug)]
pub struct EndedApart {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// Both output streams as they came, bounded: the beginning and the end.
    pub output: Vec<u8>,
}

/// Runs `command` to its end in a process group of its own, with nothing on its standard input,
/// and ends whatever it started and left behind.
///
/// For programs that ask nobody anything. When this process is told to end (Ctrl+C, `kill`), the
/// program is ended first, and the error is [`io::ErrorKind::Interrupted`].
///
/// # Errors
/// When it can't be started or waited for, or when this process is told to end.
pub fn run_apart(mut command: Command, limits: Limits) -> io::Result<EndedApart> {
    let (reader, writer) = io::pipe()?;
    command.process_group(0).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let ending = Ending::watch()?;
    let until = after(Instant::now(), limits.deadline);
    let mut child = command.spawn()?;
    // The writing ends in this process go, so that the stream ends with the programs.
    drop(command);
    let output = collect_ends(reader, limits.max_output_bytes);
    let mut code = None;
    let mut timed_out = false;
    while code.is_none() {
        let soon = Instant::now() + Duration::from_millis(50);
        code = wait_until(&mut child, soon.min(until))?.map(|status| status.code());
        timed_out = code.is_none() && Instant::now() >= until;
        if timed_out || ending.is_told() {
            break;
        }
    }
    // Also after a good end: a program must not leave others running.
    let status = end_group(&mut child)?;
    if ending.is_told() {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "told to end"));
    }
    let code = code.unwrap_or(status.code());
    Ok(EndedApart { code, timed_out, output: gather_ends(&output) })
}

/// Notices when this process is told to end (Ctrl+C, `kill`, a closed terminal), instead of ending
/// at once, so that what it began can be taken back first.
pub struct Ending {
    signal: Arc<AtomicUsize>,
    hooks: Vec<signal_hook::SigId>,
}

impl Ending {
    /// Watches from now on, until it is dropped.
    ///
    /// # Errors
    /// When signals can't be caught.
    pub fn watch() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut this = Self { signal: Arc::default(), hooks: Vec::new() };
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let flag = Arc::clone(&this.signal);
            let value = usize::try_from(signal).unwrap_or_default();
            this.hooks.push(signal_hook::flag::register_usize(signal, flag, value)?);
        }
        Ok(this)
    }

    /// Whether this process was told to end.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Ends this process by the signal that told it to, if one did.
    pub fn end_if_told(self) {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        drop(self);
        if signal != 0 {
            // Where it fails the caller goes on to its own end.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            signal_hook::low_level::unregister(hook);
        }
    }
}

/// Ends all that is left of a child's process group.
fn end_group(child: &mut Child) -> io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let is_empty = || pid.is_none_or(|pid| rustix::process::test_kill_process_group(pid).is_err());
    if let Some(status) = child.try_wait()?
        && is_empty()
    {
        return Ok(status);
    }
    end(child, true)
}

/// The beginning and the end of a stream.
struct Ends {
    first: Vec<u8>,
    last: std::collections::VecDeque<u8>,
    n_dropped: u64,
}

struct EndsStream {
    kept: Arc<Mutex<Ends>>,
    ended: mpsc::Receiver<()>,
}

fn collect_ends(mut pipe: impl Read + Send + 'static, max_bytes: usize) -> EndsStream {
    let (ending, ended) = mpsc::channel();
    let empty = Ends { first: Vec::new(), last: std::collections::VecDeque::new(), n_dropped: 0 };
    let kept = Arc::new(Mutex::new(empty));
    let filled = Arc::clone(&kept);
    // A quarter for the beginning: what matters most stands at the end.
    let max_first = max_bytes / 4;
    let max_last = max_bytes - max_first;
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = pipe.read(&mut buffer) {
            let Ok(mut kept) = filled.lock() else { break };
            let n_first = n.min(max_first - kept.first.len());
            kept.first.extend_from_slice(&buffer[..n_first]);
            kept.last.extend(&buffer[n_first..n]);
            let n_over = kept.last.len().saturating_sub(max_last);
            kept.last.drain(..n_over);
            kept.n_dropped += n_over as u64;
        }
        let _ = ending.send(());
    });
    EndsStream { kept, ended }
}

fn gather_ends(stream: &EndsStream) -> Vec<u8> {
    let is_whole = stream.ended.recv_timeout(DRAIN).is_ok();
    let Ok(kept) = stream.kept.lock() else { return Vec::new() };
    let mut output = kept.first.clone();
    if kept.n_dropped > 0 {
        output.extend_from_slice(format!("\n[{} bytes left out]\n", kept.n_dropped).as_bytes());
    }
    output.extend(&kept.last);
    if !is_whole {
        output.extend_from_slice(b"\n[something that was started still holds the output]\n");
    }
    output
}

/// That long after `start`; where no clock tells that time, so far away that it never comes.
fn after(start: Instant, time: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    start.checked_add(time).unwrap_or_else(|| start + CENTURY)
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

/// The variable that names the point at which a test ends this process, or says how many-th it is.
const CRASH_AT: &str = "CODEBOOST_CRASH_AT";
/// The variable that names a file to which the points that were passed are appended.
const CRASH_LOG: &str = "CODEBOOST_CRASH_LOG";

/// A place between two steps at which tests end this process as `kill -9` would.
///
/// Does nothing in a build without debug assertions. In one with them it ends the process when
/// `CODEBOOST_CRASH_AT` is `name`, or the number of this point among those that were passed, from
/// 1; and it appends `name` to the file in `CODEBOOST_CRASH_LOG`, so that a test can find every
/// point by itself.
pub fn crash_point(context: &Context, name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    if let Some(path) = context.var(CRASH_LOG)
        && let Ok(mut log) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(log, "{name}");
    }
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let nth = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if context.var(CRASH_AT).is_some_and(|at| at == name || *at == *nth.to_string()) {
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

    fn apart(script: &str, millis: u64, max_output_bytes: usize) -> EndedApart {
        let mut command = command(&context(), "sh", Path::new("/"));
        command.args(["-c", script]);
        run_apart(command, Limits { deadline: Duration::from_millis(millis), max_output_bytes })
            .expect("sh starts")
    }

    #[test]
    fn a_program_apart_leaves_one_stream_with_its_beginning_and_its_end() {
        let ended = apart("echo out; echo err >&2; exit 3", 20_000, 1000);
        assert_eq!((ended.code, ended.timed_out), (Some(3), false));
        assert_eq!(ended.output, b"out\nerr\n");
        let ended = apart("echo begin; head -c 100000 /dev/zero; echo end", 20_000, 100);
        let text = String::from_utf8_lossy(&ended.output).into_owned();
        assert!(text.starts_with("begin\n") && text.ends_with("end\n"), "{text:?}");
        assert!(text.contains("bytes left out") && text.len() < 200, "{text:?}");
    }

    #[test]
    fn a_program_apart_takes_all_that_it_started_with_it() {
        for (script, millis, timed_out) in [
            ("sleep 60 & echo $!", 20_000, false),
            ("sleep 60 & echo $!; wait", 300, true),
            ("trap '' TERM; sleep 60 & echo $!; exit 0", 20_000, false),
        ] {
            let ended = apart(script, millis, 100);
            assert_eq!(ended.timed_out, timed_out, "{script}");
            let child = String::from_utf8(ended.output).expect("a number");
            let is_gone = || {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
                stat.is_err() || stat.is_ok_and(|text| text.contains(") Z "))
            };
            // The last signal was sent, but takes its moment.
            let until = Instant::now() + Duration::from_secs(5);
            while !is_gone() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(is_gone(), "{script}");
        }
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
