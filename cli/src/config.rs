//! What people configure: the local configuration, which grants permissions, and the committed
//! `codeboost.yaml`, which describes the project and grants nothing.
//!
//! | file | who writes it | read from |
//! |---|---|---|
//! | `<git common dir>/codeboost/config.yaml` | the person, for this repository | disk |
//! | `$XDG_CONFIG_HOME/codeboost/config.yaml` | the person, for all their repositories | disk |
//! | `codeboost.yaml` | the project | the base commit, never a branch under review |
//!
//! Setting by setting the repository's file wins over the user's. An unknown key, a repeated key
//! and a value of the wrong kind are errors that name file, line and column.

mod agents;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

pub use self::agents::{Agent, Agents, Sandbox};
use crate::context::Context;
use crate::stage::{self, FileError};

/// A configuration file may have this many bytes.
const MAX_BYTES: usize = 1 << 20;
/// The longest time for one answer of a remote, in seconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60;
/// The most reviewers that an item may need.
const MAX_REVIEWERS: u32 = 1000;

/// The local configuration, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Where issues, pull requests and the merge live.
    pub forge: ForgeKind,
    /// The git remote to fetch from and push to; `None`: the base is a branch of this repository.
    pub remote: Option<String>,
    /// How many seconds the remote may take for one answer, its hooks included; 1 or more.
    pub remote_timeout: u64,
    /// The repository on GitHub, `owner/name`; `None`: the one that the remote's address names.
    pub github: Option<String>,
    /// Who may approve, and how many have to.
    pub reviewers: Reviewers,
    /// Where the keys of reviewers stand.
    pub allowed_signers: Option<AllowedSigners>,
    /// Keys besides this repository's own whose forms are accepted.
    pub keys: Vec<AcceptedKey>,
    /// How a merge is made.
    pub merge: Merge,
    /// Where a `cmd` check must have run for its result to count.
    pub cmd_evidence: BTreeSet<EvidenceSource>,
    /// How much a page may carry.
    pub page: PageLimits,
    /// The containers in which agents run.
    pub sandbox: Sandbox,
    /// The agents of vendors.
    pub agents: Agents,
}

/// How much a page may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PageLimits {
    /// KiB of unchanged lines, so that whole files can be read in the page; 0 for none.
    pub whole_files: u64,
    /// MiB of source that is read for highlighting; 0 for none.
    pub highlight: u64,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { whole_files: 2048, highlight: 24 }
    }
}

/// Where issues, pull requests and the merge live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForgeKind {
    /// Any git remote, or none.
    #[default]
    Local,
    /// GitHub, through `gh`.
    Github,
}

/// Who may approve, and how many have to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reviewers {
    /// So many different reviewers have to approve each item; 1 or more.
    pub required: u32,
    /// The names, as in the allowed signers; empty: anyone at the terminal.
    pub names: Vec<String>,
    /// Whether decisions count only with a signature. Always so when names are given or more than
    /// one reviewer is required.
    pub signatures: bool,
}

/// Where the keys of reviewers stand: a file in the form of `ssh-keygen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowedSigners {
    /// A file on disk.
    File(PathBuf),
    /// A file of the protected base, by its path in the repository.
    Base(String),
}

/// A key besides this repository's own whose forms are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedKey {
    /// For people, such as `ci`.
    pub name: String,
    /// Base64 of the 32 bytes of an Ed25519 public key.
    pub public_key: String,
}

/// How a merge is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Merge {
    /// What lands on the base.
    pub method: MergeMethod,
    /// What becomes of the head's branch.
    pub head: HeadAfter,
}

/// What lands on the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeMethod {
    /// A merge commit with base and head as its parents.
    #[default]
    Merge,
    /// One commit with the base as its parent.
    Squash,
}

/// What becomes of the head's branch after the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeadAfter {
    /// It is deleted in the same push.
    #[default]
    Delete,
    /// It moves to the merge commit in the same push.
    Move,
    /// It stays; then only the base is guarded.
    Keep,
}

/// Where a command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceSource {
    /// In the container.
    Sandbox,
    /// On the host, when a person ran `check run --here`.
    Host,
    /// In CI.
    Ci,
}

/// What a project says about itself in `codeboost.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectConfig {
    /// Files that a program made: their segments count as shown when their card was opened.
    pub generated: Vec<Glob>,
    /// Files that hold tests.
    pub test_paths: Vec<Glob>,
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is too large, or not UTF-8.
    #[error("{file} is {what}")]
    Form {
        /// Which file.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// Others can change the file.
    #[error("{} can be changed by others (mode {mode:04o})", path.display())]
    Writable {
        /// The path.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// What stands in the file is wrong.
    #[error("{file}{}: {what}", place(.at))]
    Content {
        /// Which file.
        file: String,
        /// Line and column, both from 1, where known.
        at: Option<(usize, usize)>,
        /// What is wrong, as a lower-case fragment.
        what: String,
    },
}

fn place(at: &Option<(usize, usize)>) -> String {
    at.map_or(String::new(), |(line, column)| format!(", line {line}, column {column}"))
}

/// One file of the local configuration: what it says, without defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    forge: Option<ForgeKind>,
    remote: Option<String>,
    remote_timeout: Option<u64>,
    github: Option<String>,
    reviewers: ReviewersPart,
    allowed_signers: Option<AllowedSignersPart>,
    keys: Option<Vec<AcceptedKey>>,
    merge: MergePart,
    cmd_evidence: Option<BTreeSet<EvidenceSource>>,
    page: PagePart,
    sandbox: agents::SandboxPart,
    agents: agents::AgentsPart,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PagePart {
    whole_files: Option<u64>,
    highlight: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReviewersPart {
    required: Option<u32>,
    names: Option<Vec<String>>,
    signatures: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowedSignersPart {
    file: Option<PathBuf>,
    base: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MergePart {
    method: Option<MergeMethod>,
    head: Option<HeadAfter>,
}

impl MergeMethod {
    /// The word in configuration, state and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
        }
    }

    /// The method of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Merge, Self::Squash].into_iter().find(|method| method.word() == word)
    }
}

impl HeadAfter {
    /// The word in configuration, state and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Keep => "keep",
        }
    }

    /// The value of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Delete, Self::Move, Self::Keep].into_iter().find(|after| after.word() == word)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::of(Part::default(), Part::default())
    }
}

impl Config {
    /// Whether a task with this base merges in another repository than this one.
    #[must_use]
    pub fn merges_elsewhere(&self, base_ref: &str) -> bool {
        self.forge == ForgeKind::Github
            || self.remote.is_some()
            || base_ref.starts_with("refs/remotes/")
    }

    /// Reads the local configuration. `state_folder`: `<git common dir>/codeboost`. A file that is
    /// not there says nothing.
    ///
    /// # Errors
    /// [`ConfigError`] naming file and place.
    pub fn read(context: &Context, state_folder: &Path) -> Result<Self, ConfigError> {
        let [repository, user] = Self::paths(context, state_folder);
        let user = user.map_or(Ok(Part::default()), |path| read_part(&path))?;
        let repository = repository.map_or(Ok(Part::default()), |path| read_part(&path))?;
        Ok(Self::of(repository, user))
    }

    /// Reads what holds outside of any repository.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn of_user(context: &Context) -> Result<Self, ConfigError> {
        let [_, user] = Self::paths(context, Path::new(""));
        let user = user.map_or(Ok(Part::default()), |path| read_part(&path))?;
        Ok(Self::of(Part::default(), user))
    }

    /// The paths of the two files, whether they exist or not: the repository's, then the user's.
    #[must_use]
    pub fn paths(context: &Context, state_folder: &Path) -> [Option<PathBuf>; 2] {
        let home = context.var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|at| at.is_absolute());
        let home = home.or_else(|| context.var("HOME").map(|home| Path::new(home).join(".config")));
        [
            Some(state_folder.join("config.yaml")),
            home.map(|home| home.join("codeboost/config.yaml")),
        ]
    }

    fn of(mine: Part, user: Part) -> Self {
        let required = mine.reviewers.required.or(user.reviewers.required).unwrap_or(1);
        let names = mine.reviewers.names.or(user.reviewers.names).unwrap_or_default();
        let signatures = mine.reviewers.signatures.or(user.reviewers.signatures).unwrap_or(false);
        let signers = mine.allowed_signers.or(user.allowed_signers);
        Self {
            forge: mine.forge.or(user.forge).unwrap_or_default(),
            remote: mine.remote.or(user.remote),
            remote_timeout: mine.remote_timeout.or(user.remote_timeout).unwrap_or(120),
            github: mine.github.or(user.github),
            reviewers: Reviewers {
                signatures: signatures || required > 1 || !names.is_empty(),
                required,
                names,
            },
            allowed_signers: signers.and_then(|signers| {
                signers.file.map(AllowedSigners::File).or(signers.base.map(AllowedSigners::Base))
            }),
            keys: mine.keys.or(user.keys).unwrap_or_default(),
            merge: Merge {
                method: mine.merge.method.or(user.merge.method).unwrap_or_default(),
                head: mine.merge.head.or(user.merge.head).unwrap_or_default(),
            },
            cmd_evidence: mine
                .cmd_evidence
                .or(user.cmd_evidence)
                .unwrap_or_else(|| [EvidenceSource::Sandbox, EvidenceSource::Host].into()),
            page: {
                let usual = PageLimits::default();
                let whole_files = mine.page.whole_files.or(user.page.whole_files);
                let highlight = mine.page.highlight.or(user.page.highlight);
                PageLimits {
                    whole_files: whole_files.unwrap_or(usual.whole_files),
                    highlight: highlight.unwrap_or(usual.highlight),
                }
            },
            sandbox: mine.sandbox.over(user.sandbox),
            agents: mine.agents.over(user.agents),
        }
    }
}

impl ProjectConfig {
    /// Reads the text of `codeboost.yaml`. `file`: how messages name it.
    ///
    /// # Errors
    /// [`ConfigError`] naming file and place.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ConfigError> {
        parse(file, bytes)
    }
}

fn read_part(path: &Path) -> Result<Part, ConfigError> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Part::default()),
        Err(source) => return Err(FileError::new("look at", path, source).into()),
    };
    // What grants permissions is nobody else's to write.
    let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777;
    if mode & 0o022 != 0 {
        return Err(ConfigError::Writable { path: path.to_owned(), mode });
    }
    let file = path.display().to_string();
    let part: Part = parse(&file, &stage::read_start(path, MAX_BYTES + 1)?)?;
    check(&part).map_err(|what| ConfigError::Content { file, at: None, what })?;
    Ok(part)
}

fn check(part: &Part) -> Result<(), String> {
    if part.remote_timeout.is_some_and(|seconds| !(1..=MAX_TIMEOUT).contains(&seconds)) {
        return Err(format!("remote_timeout: from 1 to {MAX_TIMEOUT} seconds"));
    }
    if part
        .github
        .as_ref()
        .is_some_and(|name| name.split('/').filter(|s| !s.is_empty()).count() != 2)
    {
        return Err("github: not OWNER/NAME".into());
    }
    if part.reviewers.required.is_some_and(|n| !(1..=MAX_REVIEWERS).contains(&n)) {
        return Err(format!("reviewers.required: from 1 to {MAX_REVIEWERS}"));
    }
    for (n, key) in part.keys.iter().flatten().enumerate() {
        if STANDARD.decode(&key.public_key).map_or(0, |bytes| bytes.len()) != 32 {
            return Err(format!("keys[{n}].public_key: not base64 of 32 bytes"));
        }
    }
    if part.cmd_evidence.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err("cmd_evidence: at least one of sandbox, host, ci".into());
    }
    part.sandbox.check()?;
    part.agents.check()?;
    match &part.allowed_signers {
        Some(
            AllowedSignersPart { file: None, base: None }
            | AllowedSignersPart { file: Some(_), base: Some(_) },
        ) => Err("allowed_signers: exactly one of file, base".into()),
        Some(AllowedSignersPart { file: Some(file), .. }) if !file.is_absolute() => {
            Err("allowed_signers.file: not an absolute path".into())
        }
        _ => Ok(()),
    }
}

fn parse<T: Default + for<'de> Deserialize<'de>>(
    file: &str,
    bytes: &[u8],
) -> Result<T, ConfigError> {
    let form = |what| ConfigError::Form { file: file.to_owned(), what };
    if bytes.len() > MAX_BYTES {
        return Err(form("larger than 1 MiB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| form("not UTF-8"))?;
    let read: Result<Option<T>, _> = serde_yaml_ng::from_str(text);
    read.map(Option::unwrap_or_default).map_err(|error| {
        let what = error.to_string();
        ConfigError::Content {
            file: file.to_owned(),
            at: error.location().map(|at| (at.line(), at.column())),
            // The place has a field of its own.
            what: what.rfind(" at line ").map_or(what.clone(), |at| what[..at].to_owned()),
        }
    })
}

/// A pattern for paths in a repository.
///
/// `?` is one byte and `*` any bytes, both within one name; `**` as a whole name is any number of
/// folders. A pattern without a slash matches a name at any depth; one that ends in a slash, or
/// that names a folder, matches all below it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob {
    names: Vec<String>,
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        let body = pattern.strip_suffix('/').unwrap_or(&pattern);
        let mut names: Vec<_> = body.split('/').map(str::to_owned).collect();
        if names.iter().any(|name| matches!(name.as_str(), "" | "." | "..")) {
            return Err(format!("{pattern:?} is not a path from the root of the repository"));
        }
        if names.len() == 1 && !pattern.ends_with('/') && names[0] != "**" {
            names.insert(0, "**".to_owned());
        }
        Ok(Self { names })
    }
}

impl Glob {
    /// Whether `path` matches.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let path: Vec<_> = path.split(|byte| *byte == b'/').collect();
        match_path(&self.names, &path)
    }
}

fn match_path(names: &[String], path: &[&[u8]]) -> bool {
    match (names.split_first(), path.split_first()) {
        // All below a folder that matches.
        (None, _) => true,
        (Some((name, [])), _) if name == "**" => !path.is_empty(),
        (Some((name, rest)), _) if name == "**" => {
            (0..path.len()).any(|n| match_path(rest, &path[n..]))
        }
        (Some(_), None) => false,
        (Some((name, rest)), Some((first, below))) => {
            match_name(name.as_bytes(), first) && match_path(rest, below)
        }
    }
}

fn match_name(pattern: &[u8], name: &[u8]) -> bool {
    // Goes back only to the last star, so the time is bounded by the product of the lengths.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Result<Part, String> {
        let part: Part =
            parse("config.yaml", text.as_bytes()).map_err(|error| error.to_string())?;
        check(&part).map(|()| part)
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        for text in ["", "# nothing\n", "reviewers: {}\n"] {
            let config = Config::of(part(text).expect("valid"), Part::default());
            assert_eq!(config, Config::default(), "{text:?}");
        }
        let config = Config::default();
        assert_eq!((config.reviewers.required, config.reviewers.signatures), (1, false));
    }

    #[test]
    fn the_repository_wins_setting_by_setting() {
        let user = part("remote: mine\nmerge: {method: squash, head: keep}\n").expect("valid");
        let here = part("merge: {head: move}\nreviewers: {required: 2}\n").expect("valid");
        let config = Config::of(here, user);
        assert_eq!(config.remote.as_deref(), Some("mine"));
        assert_eq!(config.merge, Merge { method: MergeMethod::Squash, head: HeadAfter::Move });
        assert!(config.reviewers.signatures, "two reviewers need signatures");
        let user = part("page: {whole_files: 0, highlight: 8}\n").expect("valid");
        let page = Config::of(part("page: {highlight: 0}\n").expect("valid"), user).page;
        assert_eq!(page, PageLimits { whole_files: 0, highlight: 0 });
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let key = "A".repeat(44);
        for (text, expected) in [
            ("reviewer: 1\n", "config.yaml, line 1, column 1: unknown field `reviewer`"),
            ("merge:\n  methode: squash\n", "line 2, column 3: merge: unknown field `methode`"),
            ("merge: {method: rebase}\n", "unknown variant `rebase`, expected `merge` or `squash`"),
            ("remote: a\nremote: b\n", "duplicate"),
            ("cmd_evidence: []\n", "cmd_evidence: at least one"),
            ("remote_timeout: 0\n", "remote_timeout: from 1 to 86400 seconds"),
            ("remote_timeout: 86401\n", "remote_timeout: from 1 to 86400 seconds"),
            ("remote_timeout: 18446744073709551615\n", "remote_timeout: from 1 to 86400 seconds"),
            ("reviewers: {required: 0}\n", "reviewers.required: from 1 to 1000"),
            ("reviewers: {required: 4294967295}\n", "reviewers.required: from 1 to 1000"),
            (&format!("keys: [{{name: ci, public_key: {key}}}]\n"), "keys[0].public_key"),
            ("allowed_signers: {}\n", "exactly one of file, base"),
            ("allowed_signers: {file: a}\n", "not an absolute path"),
            ("sandbox: {memory_mib: 1}\n", "sandbox.memory_mib: from 256"),
            ("sandbox: {engine: docker.sock}\n", "sandbox.engine: not an absolute path"),
            ("agents: {claude: {url: \"ftp://x\"}}\n", "agents.claude.url"),
            ("agents: {claud: {}}\n", "unknown field `claud`"),
            ("[\n", "line"),
        ] {
            let error = part(text).expect_err(text);
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_project_describes_itself_and_grants_nothing() {
        let project = ProjectConfig::parse(
            "codeboost.yaml",
            b"generated: ['*.pb.rs', gen/]\ntest_paths: ['**/tests/**']\n",
        );
        let project = project.expect("valid");
        assert!(project.generated[1].matches(b"gen/a/b.rs"));
        for grant in ["remote: x", "keys: []", "allowed_commands: []"] {
            assert!(ProjectConfig::parse("codeboost.yaml", grant.as_bytes()).is_err(), "{grant}");
        }
        assert!(ProjectConfig::parse("codeboost.yaml", b"generated: [../x]").is_err());
    }

    #[test]
    fn globs_match_whole_paths() {
        let check = |pattern: &str, yes: &[&str], no: &[&str]| {
            let glob = Glob::try_from(pattern.to_owned()).expect("a pattern");
            for path in yes {
                assert!(glob.matches(path.as_bytes()), "{pattern} {path}");
            }
            for path in no {
                assert!(!glob.matches(path.as_bytes()), "{pattern} {path}");
            }
        };
        check("*.lock", &["a.lock", "x/y/a.lock", ".lock"], &["a.locks", "a.lock2/b"]);
        check("src/*.rs", &["src/a.rs"], &["src/a/b.rs", "x/src/a.rs"]);
        check("gen/", &["gen/a", "gen/a/b"], &["x/gen/a", "general"]);
        check("gen/out", &["gen/out", "gen/out/a"], &["gen/outer"]);
        check("**/tests/**", &["tests/a", "x/tests/a/b"], &["tests", "x/test/a"]);
        check("a/**/z", &["a/z", "a/b/z", "a/b/c/z"], &["a/b", "b/z"]);
        check("a?c", &["abc", "x/abc"], &["ac", "abbc"]);
        check("*a*a*a*b", &["aaab", "xaxaxab"], &["aaaaaaaaaaaaaaaaaaaaaaac"]);
    }
}
