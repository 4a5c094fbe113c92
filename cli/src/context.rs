//! What a command may ask of the world around it: folder, environment, clock, output.
//!
//! The only place that reads the process's environment and the clock. Everything else gets them
//! from here, so that a result depends on nothing it was not given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::output::Output;

/// The world as one command sees it.
#[derive(Debug)]
pub struct Context {
    cwd: PathBuf,
    env: BTreeMap<OsString, OsString>,
    fixed_now: Option<Timestamp>,
    /// How far pauses have moved the fixed clock, in milliseconds.
    paused: AtomicU64,
    /// Where results and messages go.
    pub out: Output,
}

/// The variable that fixes the clock, for tests: RFC 3339.
const NOW: &str = "CODEBOOST_NOW";

impl Context {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub(crate) fn environment() -> BTreeMap<OsString, OsString> {
        std::env::vars_os().collect()
    }

    pub(crate) fn new(cwd: PathBuf, env: BTreeMap<OsString, OsString>, out: Output) -> Self {
        let fixed_now = env
            .get(OsStr::new(NOW))
            .and_then(|text| text.to_str())
            .and_then(|text| text.parse().ok());
        Self { cwd, env, fixed_now, paused: AtomicU64::new(0), out }
    }

    /// The folder that the command was started in.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// `path`, taken from the folder that the command was started in.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.cwd.join(path)
    }

    /// A variable of the environment; an empty one counts as absent.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The whole environment, for the rare program that must get the person's own.
    #[must_use]
    pub fn vars(&self) -> &BTreeMap<OsString, OsString> {
        &self.env
    }

    /// Now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let Some(fixed) = self.fixed_now else { return Timestamp::now() };
        let paused = self.paused.load(Ordering::Relaxed);
        let paused = SignedDuration::from_millis(i64::try_from(paused).unwrap_or(i64::MAX));
        fixed.checked_add(paused).unwrap_or(fixed)
    }

    /// Waits. A fixed clock goes on by that time at once instead.
    pub fn pause(&self, time: Duration) {
        if self.fixed_now.is_none() {
            std::thread::sleep(time);
        }
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.paused.fetch_add(millis, Ordering::Relaxed);
    }

    /// Now, as RFC 3339 in UTC with whole seconds: `2026-11-30T12:00:00Z`.
    #[must_use]
    pub fn now_text(&self) -> String {
        time_text(self.now())
    }

    /// The time that `SOURCE_DATE_EPOCH` fixes for outputs, if it is set and a number.
    #[must_use]
    pub fn source_date_epoch(&self) -> Option<Timestamp> {
        let seconds = self.var("SOURCE_DATE_EPOCH")?.to_str()?.parse().ok()?;
        Timestamp::from_second(seconds).ok()
    }
}

/// `time` as RFC 3339 in UTC with whole seconds.
#[must_use]
pub fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
