//! GitHub, through `gh`, which holds the sign-in: the only door.
//!
//! `gh api` alone is used, with fixed REST paths and the GraphQL documents of this folder, JSON on
//! standard input, one call per request and page. It works the same in old and new versions, which
//! the other commands of `gh` don't.
//!
//! | answer | becomes |
//! |---|---|
//! | 2xx of the expected form, of this repository | the value |
//! | 4xx with a message | [`GhError::Refused`]: nothing was changed |
//! | anything else: no answer, half of one, 5xx, not JSON, GraphQL errors, another repository | [`GhError::Unknown`] |
//!
//! Only reads are tried again. A change whose answer is unknown may have happened: whoever asked for
//! it reads back.

pub mod base;
pub mod hub;
pub mod issues;
pub mod links;
pub mod pulls;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::process::{self, Ended, Ending, Limits};

/// One answer may have this many bytes.
const MAX_BYTES: usize = 16 << 20;
/// The longest wait that GitHub may ask for, in all, before this is given up.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
/// A wait that GitHub asks for without saying how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// How often a read is tried.
const TRIES: usize = 3;
/// Records a page.
const PER_PAGE: usize = 100;

/// What `gh` gets of the environment: its sign-in, its configuration, the way to the network.
const ENVIRONMENT: [&str; 25] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_CONFIG_DIR",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_HOST",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "LANG",
    "LC_ALL",
    "TMPDIR",
];

/// Why something of GitHub can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GhError {
    /// `gh` is not there.
    #[error("gh is not installed")]
    Missing,
    /// `gh` has no sign-in for this host.
    #[error("gh is not signed in")]
    NotSignedIn,
    /// GitHub refused; nothing was changed.
    #[error("GitHub refused ({status}): {words}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// In its own words.
        words: String,
    },
    /// There is no answer that could be relied on. A change may have been made.
    #[error("GitHub's answer is unknown: {0}")]
    Unknown(String),
}

impl GhError {
    /// Whether it is a refusal with this status.
    #[must_use]
    pub fn is_refused(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// Owner and name of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug {
    /// The owner.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl Slug {
    /// Reads `owner/name`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, name) = text.split_once('/')?;
        let is_plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        (is_plain(owner) && is_plain(name))
            .then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Reads it from the address of a remote.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?.1,
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?.1,
        };
        let path = path.trim_matches('/');
        Self::parse(path.strip_suffix(".git").unwrap_or(path))
    }

    /// Whether a repository's full name is this one. GitHub does not tell upper and lower case.
    #[must_use]
    pub fn is(&self, full_name: &str) -> bool {
        self.to_string().eq_ignore_ascii_case(full_name)
    }
}

impl std::fmt::Display for Slug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// The repository, as this account sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryFacts {
    /// `owner/name`.
    pub full_name: String,
    /// The default branch.
    pub default_branch: String,
    /// What the account may do.
    pub permissions: Permissions,
    /// Whether merge commits are allowed. Absent when the account may not write.
    #[serde(default)]
    pub allow_merge_commit: bool,
    /// Whether squashing is allowed.
    #[serde(default)]
    pub allow_squash_merge: bool,
}

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Permissions {
    /// Everything.
    pub admin: bool,
    /// Push.
    pub push: bool,
}

/// The door, for one repository.
#[derive(Debug)]
pub struct Gh<'a> {
    context: &'a Context,
    slug: Slug,
    deadline: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
}

/// A whole answer.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl<'a> Gh<'a> {
    /// The door to a repository. `deadline`: how long one answer may take.
    #[must_use]
    pub fn new(context: &'a Context, slug: Slug, deadline: Duration) -> Self {
        Self { context, slug, deadline }
    }

    /// The repository.
    #[must_use]
    pub fn slug(&self) -> &Slug {
        &self.slug
    }

    /// The repository as GitHub has it, which must be the one that was asked for.
    ///
    /// # Errors
    /// [`GhError`]; also when it was renamed or moved.
    pub fn repository(&self) -> Result<RepositoryFacts, GhError> {
        let facts: RepositoryFacts = self.read("")?;
        self.same(&facts.full_name)?;
        Ok(facts)
    }

    /// Says whether something belongs to this repository.
    pub(crate) fn same(&self, full_name: &str) -> Result<(), GhError> {
        if self.slug.is(full_name) {
            return Ok(());
        }
        Err(GhError::unknown(format!("asked about {}, told about {full_name}", self.slug)))
    }

    /// Reads `repos/OWNER/NAME` + `path`.
    ///
    /// # Errors
    /// [`GhError`].
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, GhError> {
        let answer = self.request(Kind::Read, "GET", &self.path(path), None)?;
        typed(&answer.body)
    }

    /// Changes something, once. Nothing is tried again except what GitHub put off.
    ///
    /// # Errors
    /// [`GhError::Refused`]: nothing was changed. [`GhError::Unknown`]: it may have been.
    pub fn change<T: DeserializeOwned>(
        &self,
        method: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<T, GhError> {
        let answer = self.request(Kind::Change, method, &self.path(path), Some(body))?;
        typed(&answer.body)
    }

    /// Reads all pages of a list.
    ///
    /// # Errors
    /// [`GhError`] of any page: part of a list is no list. Also when there are more pages.
    pub(crate) fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        max_pages: usize,
    ) -> Result<Vec<T>, GhError> {
        self.paged(path, max_pages, |list: Vec<T>| list)
    }

    /// Reads all pages of a list that each answer holds.
    pub(crate) fn paged<A: DeserializeOwned, T>(
        &self,
        path: &str,
        max_pages: usize,
        list: impl Fn(A) -> Vec<T>,
    ) -> Result<Vec<T>, GhError> {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        for page in 1..=max_pages {
            let answer: A = self.read(&format!("{path}{join}per_page={PER_PAGE}&page={page}"))?;
            let part = list(answer);
            let is_last = part.len() < PER_PAGE;
            all.extend(part);
            if is_last {
                return Ok(all);
            }
        }
        Err(GhError::unknown(format!("more than {} records", max_pages * PER_PAGE)))
    }

    /// Asks with a document of this folder. Its `$owner` and `$name` are filled in.
    ///
    /// # Errors
    /// [`GhError`]; any error that GitHub names makes the whole answer unknown, or a refusal when it
    /// is a change and GitHub says that it was not made.
    pub fn ask<T: DeserializeOwned>(
        &self,
        document: &'static str,
        variables: Value,
    ) -> Result<T, GhError> {
        let is_change = document.trim_start().starts_with("mutation");
        let mut variables = variables;
        if let (Value::Object(fields), false) = (&mut variables, is_change) {
            fields.insert("owner".into(), json!(self.slug.owner));
            fields.insert("name".into(), json!(self.slug.name));
        }
        let body = json!({"query": document, "variables": variables});
        let kind = if is_change { Kind::Change } else { Kind::Read };
        let answer = self.request(kind, "POST", "graphql", Some(&body))?;
        #[derive(Deserialize)]
        struct Data<T> {
            data: T,
        }
        typed::<Data<T>>(&answer.body).map(|answer| answer.data)
    }

    fn path(&self, path: &str) -> String {
        format!("repos/{}{path}", self.slug)
    }

    fn request(
        &self,
        kind: Kind,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, GhError> {
        let mut waited = Duration::ZERO;
        let mut tries = 1;
        loop {
            let answer = self.once(method, path, body);
            let put_off = match &answer {
                Ok(answer) => put_off(answer, self.context.now().as_second()),
                Err(_) => None,
            };
            if let Some(wait) = put_off {
                if waited + wait > MAX_WAIT {
                    return Err(GhError::unknown(format!(
                        "its rate limit is used up for another {} seconds",
                        wait.as_secs()
                    )));
                }
                let seconds = wait.as_secs();
                self.context.out.warn(format!(
                    "GitHub's rate limit is used up: waiting {seconds} seconds before going on"
                ));
                self.context.pause(wait);
                waited += wait;
                continue;
            }
            let judged = answer.and_then(judge);
            let may_pass = matches!(judged, Err(GhError::Unknown(_)));
            if !may_pass || kind == Kind::Change || tries == TRIES {
                return judged;
            }
            self.context.pause(Duration::from_secs(tries as u64));
            tries += 1;
        }
    }

    /// One call of `gh`.
    fn once(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, GhError> {
        let mut command = process::command(self.context, "gh", std::path::Path::new("/"));
        for name in ENVIRONMENT {
            if let Some(value) = self.context.var(name) {
                command.env(name, value);
            }
        }
        command.envs([
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
            ("GH_NO_EXTENSION_UPDATE_NOTIFIER", "1"),
            ("GH_SPINNER_DISABLED", "1"),
            ("GH_PAGER", "cat"),
            ("NO_COLOR", "1"),
        ]);
        command.args(["api", "--include", "--method", method, path]);
        let body = body.map(Value::to_string);
        if body.is_some() {
            command.args(["--input", "-"]);
        }
        let limits = Limits { deadline: self.deadline, max_output_bytes: MAX_BYTES };
        let ending = Ending::watch().map_err(|error| GhError::unknown(error.to_string()))?;
        process::crash_point(self.context, &format!("gh: before {method}"));
        let ended =
            process::run_in_group(command, body.as_deref().map(str::as_bytes), limits, &ending);
        process::crash_point(self.context, &format!("gh: after {method}"));
        match ended {
            Ok(ended) => read_answer(&ended, self.deadline),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(GhError::Missing),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                // What is about to happen was recorded before: the next run finds out.
                ending.end_if_told();
                Err(GhError::unknown("it was interrupted"))
            }
            Err(error) => Err(GhError::unknown(format!("gh can't be run: {error}"))),
        }
    }
}

/// Takes an answer out of what `gh` wrote: status line, headers, an empty line, the body.
fn read_answer(ended: &Ended, deadline: Duration) -> Result<Answer, GhError> {
    let words = String::from_utf8_lossy(&ended.stderr);
    let words: String = words.trim().chars().take(500).collect();
    if ended.timed_out {
        return Err(GhError::unknown(format!("no answer within {} seconds", deadline.as_secs())));
    }
    if ended.code == Some(4) {
        return Err(GhError::NotSignedIn);
    }
    if ended.cut {
        return Err(GhError::unknown("the answer is too large, or was not ended"));
    }
    let nothing = || {
        let words = if words.is_empty() { "gh said nothing".to_owned() } else { words.clone() };
        GhError::unknown(words)
    };
    let answer = split(&ended.stdout).ok_or_else(nothing)?;
    // An answer that broke off: gh fails although the status says otherwise.
    let has_errors = || {
        let body: Result<Value, _> = serde_json::from_slice(&answer.body);
        body.is_ok_and(|body| body.get("errors").is_some())
    };
    if ended.code != Some(0) && answer.status < 400 && !has_errors() {
        return Err(nothing());
    }
    Ok(answer)
}

fn split(stdout: &[u8]) -> Option<Answer> {
    let mut rest = stdout;
    let mut line = || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = String::from_utf8_lossy(&rest[..end]).trim_end().to_owned();
        rest = &rest[end + 1..];
        Some(line)
    };
    let first = line()?;
    let status = first.strip_prefix("HTTP/")?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(Answer { status, headers, body: rest.to_vec() })
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    fn words(&self) -> String {
        #[derive(Deserialize)]
        struct Body {
            message: String,
            #[serde(default)]
            errors: Vec<Value>,
        }
        let Ok(body) = serde_json::from_slice::<Body>(&self.body) else {
            return "without words".to_owned();
        };
        let mut words = body.message.trim().to_owned();
        for error in &body.errors {
            let more = match (error.get("message"), error.get("field"), error) {
                (Some(Value::String(message)), _, _) => message.clone(),
                (_, Some(Value::String(field)), _) => format!("{field} is not valid"),
                (_, _, Value::String(message)) => message.clone(),
                _ => continue,
            };
            words = format!("{words}: {more}");
        }
        words.chars().take(2000).collect()
    }
}

/// How long GitHub wants to be left alone before the same request, which it did not carry out.
fn put_off(answer: &Answer, now: i64) -> Option<Duration> {
    let words = || answer.words().to_lowercase();
    let number = |name| answer.header(name).and_then(|value| value.parse::<i64>().ok());
    let is_limit = match answer.status {
        429 => true,
        403 => {
            number("retry-after").is_some()
                || number("x-ratelimit-remaining") == Some(0)
                || words().contains("rate limit")
        }
        200 => graphql_errors(&answer.body).iter().any(|error| error.kind == "RATE_LIMITED"),
        _ => false,
    };
    if !is_limit {
        return None;
    }
    let seconds = match (number("retry-after"), number("x-ratelimit-reset")) {
        (Some(seconds), _) => seconds,
        (None, Some(at)) if number("x-ratelimit-remaining") == Some(0) => at - now + 1,
        _ => return Some(USUAL_WAIT),
    };
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0).max(1)))
}

#[derive(Deserialize)]
struct GraphqlError {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

fn graphql_errors(body: &[u8]) -> Vec<GraphqlError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        errors: Vec<GraphqlError>,
    }
    serde_json::from_slice::<Body>(body).map_or(Vec::new(), |body| body.errors)
}

/// What an answer comes to: itself, a refusal, or nothing that can be relied on.
fn judge(answer: Answer) -> Result<Answer, GhError> {
    match answer.status {
        200..=299 => {}
        400..=499 => {
            return Err(GhError::Refused { status: answer.status, words: answer.words() });
        }
        status => return Err(GhError::unknown(format!("status {status}: {}", answer.words()))),
    }
    let errors = graphql_errors(&answer.body);
    let Some(first) = errors.first() else { return Ok(answer) };
    let words: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
    let words = words.join("; ");
    // Only what GitHub certainly did not carry out is a refusal.
    let status = match first.kind.as_str() {
        "NOT_FOUND" => 404,
        "FORBIDDEN" => 403,
        "UNPROCESSABLE" => 422,
        _ => return Err(GhError::unknown(words)),
    };
    Err(GhError::Refused { status, words })
}

fn typed<T: DeserializeOwned>(body: &[u8]) -> Result<T, GhError> {
    let body = if body.is_empty() { b"null" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| GhError::unknown(format!("an answer of another form: {error}")))
}

/// One part of a path, so that nothing in it acts.
pub fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
