//! What a command may ask of the world around it: folder, environment, clock, output.
//!
//! The only place that reads the process's environment and the clock. Everything else gets them
//! from here, so that a result depends on nothing it was not given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::output::Output;

/// The world as one command sees it.
#[derive(Debug)]
pub struct Context {
    cwd: PathBuf,
    env: BTreeMap<OsString, OsString>,
    fixed_now: Option<Timestamp>,
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
        Self { cwd, env, fixed_now, out }
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
        self.fixed_now.unwrap_or_else(Timestamp::now)
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
