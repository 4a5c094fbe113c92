//! Running the approved `cmd` entries of a plan: in a container, or on this machine, when a person
//! asks for that.
//!
//! Each command is run without a shell, exactly as its argument list stands in the plan, and only
//! when that very list is allowed. It runs in a fresh checkout of the task's head, never in the
//! person's own work tree. In a container it may write to its copy of the project, which is thrown
//! away afterwards; it has no network, no sign-in, and the environment of `agent::invoke`. On this
//! machine it gets this environment and nothing else:
//!
//! | variables | value |
//! |---|---|
//! | `PATH` | the person's, without relative entries |
//! | `HOME`, `USER`, `LOGNAME`, `LANG`, `LC_ALL`, `LC_CTYPE`, `TZ` | the person's |
//! | [`TOOLCHAINS`] | the person's, where they are set: where toolchains and their caches lie |
//! | `TMPDIR` | a folder that is removed afterwards |
//! | `CI`, `NO_COLOR` | `1` |
//! | `TERM` | `dumb` |
//! | what `--env` names | the person's |
//!
//! No token, no agent socket and no `GIT_*` gets in unless it is named. That keeps a command from
//! depending on the person's shell; it does not contain it: it runs with the person's rights.
//!
//! A command that changes tracked files spoils the checkout for the next one, which then gets a
//! fresh one. Results are recorded one by one, with what was written (bounded) as evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codeboost_schema::ids::{CommitId, ItemId};
use codeboost_schema::plan::{CheckKind, Plan};

use crate::agent::invoke::{self, Host};
use crate::agent::vendor;
use crate::config::EvidenceSource;
use crate::context::Context;
use crate::execute::item::{self, ItemError, Site};
use crate::execute::manifest::{self, Options, Spool};
use crate::execute::scripts;
use crate::execute::workspace::{self, Clone};
use crate::gate;
use crate::git::read::Objects;
use crate::plan::v1::tokenize::tokenize;
use crate::process::{self, Limits};
use crate::sandbox::SandboxError;
use crate::sandbox::place::{self, Owner, Place, Project};
use crate::sandbox::profile::Access;
use crate::sandbox::supervise::{Caps, Stopped};
use crate::stage::{self, FileError};
use crate::store::{CheckEnd, CheckRun, Lease, StoreError};

/// Where toolchains and their caches lie; passed on where they are set.
pub const TOOLCHAINS: [&str; 22] = [
    "CARGO_HOME",
    "DOTNET_ROOT",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VOLTA_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The person's variables that every command gets.
const PERSONAL: [&str; 7] = ["HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Most bytes that are kept of what a command writes.
const MAX_OUTPUT_BYTES: usize = 512 * 1024;

/// How checks are run.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions<'a> {
    /// The items whose checks run; empty: all of the plan.
    pub items: &'a [ItemId],
    /// How long each command may take.
    pub deadline: Duration,
    /// Where they run.
    pub surroundings: Surroundings<'a>,
}

/// Where checks run.
#[derive(Debug, Clone, Copy)]
pub enum Surroundings<'a> {
    /// On this machine, with the person's rights.
    Here {
        /// Names of more variables of the person that the commands get.
        env: &'a [OsString],
    },
    /// In containers.
    Contained {
        /// The engine, and what is configured.
        host: Host<'a>,
        /// The id of the image.
        image_id: &'a str,
    },
}

impl Surroundings<'_> {
    /// The place that results are recorded with.
    #[must_use]
    pub fn source(self) -> EvidenceSource {
        match self {
            Self::Here { .. } => EvidenceSource::Host,
            Self::Contained { .. } => EvidenceSource::Sandbox,
        }
    }
}

/// One command of a plan, with the items that ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCheck {
    /// The argument list.
    pub argv: Vec<String>,
    /// As the plan spells it.
    pub text: String,
    /// The items, in plan order.
    pub items: Vec<ItemId>,
}

/// What a run of checks came to.
#[derive(Debug)]
pub struct Report {
    /// The commit that they ran on.
    pub commit_id: CommitId,
    /// The commands that ran, in order, with one recorded run for each of their items.
    pub ran: Vec<(PlannedCheck, CheckRun)>,
    /// The commands that are not allowed, and did not run.
    pub not_allowed: Vec<PlannedCheck>,
}

/// What happens while checks run, for whoever shows it.
#[derive(Debug)]
pub enum Progress<'a> {
    /// This one starts.
    Starts(&'a PlannedCheck),
    /// It ended.
    Ended(&'a PlannedCheck, &'a CheckRun, &'a [u8]),
    /// It changed tracked files, so the next one gets a fresh checkout.
    Spoiled(&'a PlannedCheck),
}

/// The commands of some items of a plan, each once, in plan order.
#[must_use]
pub fn planned(plan: &Plan, items: &[ItemId]) -> Vec<PlannedCheck> {
    let mut planned: Vec<PlannedCheck> = Vec::new();
    for item in plan.items.iter().filter(|item| items.is_empty() || items.contains(&item.id)) {
        for check in item.acceptance.iter().filter(|check| check.kind == CheckKind::Cmd) {
            // An approved plan has only commands that can be read.
            let Ok(argv) = tokenize(&check.text) else { continue };
            match planned.iter_mut().find(|known| known.argv == argv) {
                Some(known) if known.items.contains(&item.id) => {}
                Some(known) => known.items.push(item.id.clone()),
                None => planned.push(PlannedCheck {
                    argv,
                    text: check.text.clone(),
                    items: vec![item.id.clone()],
                }),
            }
        }
    }
    planned
}

/// Runs the `cmd` entries of an approved plan and records what they came to.
///
/// # Errors
/// [`ItemError`] when the checkout can't be made, the state can't be written, or this process is
/// told to end. What ran before stays recorded.
pub fn run(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    options: CheckOptions<'_>,
    mut tell: impl FnMut(Progress<'_>),
) -> Result<Report, ItemError> {
    let Site { repository, store } = site;
    let context = repository.context();
    let task = item::read_task(store, lease)?;
    let allowed: BTreeSet<Vec<String>> =
        store.read(|tx| tx.allowed_commands())?.into_iter().collect();
    let (to_run, not_allowed): (Vec<_>, Vec<_>) =
        planned(plan, options.items).into_iter().partition(|check| allowed.contains(&check.argv));
    let commit_id = item::head(site, &task)?;
    if !to_run.is_empty() {
        scripts::require_approved(site, &task, plan, &commit_id)?;
    }
    let objects = Objects::open(repository.git())?;
    let mut report = Report { commit_id: commit_id.clone(), ran: Vec::new(), not_allowed };
    let owner = Owner {
        repository: store.read(|tx| tx.repository_id())?.to_string(),
        task: task.id.to_string(),
    };
    if let Surroundings::Contained { host, .. } = options.surroundings {
        place::clear(context, host.engine, &workspace::pool_folder(repository), &owner)?;
    }
    let mut checkout: Option<Checkout<'_>> = None;
    for check in to_run {
        tell(Progress::Starts(&check));
        let place = match checkout.take() {
            Some(place) => place,
            None => Checkout::make(site, &objects, &commit_id, &owner, options.surroundings)?,
        };
        let ran_at = context.now_text();
        let started = Instant::now();
        let ended = place.run(context, &check, options)?;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (result, exit_code, output) = match ended {
            Ok(ended) => {
                let result = match (ended.timed_out, ended.code) {
                    (true, _) => CheckEnd::TimedOut,
                    (false, Some(0)) => CheckEnd::Passed,
                    (false, _) => CheckEnd::Failed,
                };
                (result, ended.code, ended.output)
            }
            Err(words) => {
                (CheckEnd::NotStarted, None, format!("can't be started: {words}\n").into_bytes())
            }
        };
        let output_digest = store.put_evidence(&output)?;
        let runs: Vec<CheckRun> = check
            .items
            .iter()
            .map(|item| CheckRun {
                item: item.clone(),
                commit_id: commit_id.clone(),
                argv: check.argv.clone(),
                argv_digest: gate::argv_digest(&check.argv),
                place: options.surroundings.source(),
                result,
                exit_code,
                output: output_digest.clone(),
                millis,
                ran_at: ran_at.clone(),
                ran_by: store.person().to_owned(),
            })
            .collect();
        store.write(|tx| tx.add_check_runs(task.id, &runs))?;
        process::crash_point(context, "check-recorded");
        let Some(run) = runs.into_iter().next() else { continue };
        tell(Progress::Ended(&check, &run, &output));
        if place.is_unspoiled(&objects)? {
            checkout = Some(place);
        } else {
            tell(Progress::Spoiled(&check));
        }
        report.ran.push((check, run));
    }
    Ok(report)
}

/// A fresh checkout, removed when dropped.
struct Checkout<'a> {
    clone: Clone,
    temp: PathBuf,
    folder: tempfile::TempDir,
    /// For containers: the copy in which they work, and their engine.
    contained: Option<(Place<'a>, Host<'a>)>,
}

impl<'a> Checkout<'a> {
    fn make(
        site: Site<'a>,
        objects: &Objects,
        commit_id: &CommitId,
        owner: &Owner,
        surroundings: Surroundings<'a>,
    ) -> Result<Self, ItemError> {
        let folder = tempfile::Builder::new()
            .prefix("codeboost-check-")
            .tempdir()
            .map_err(|error| FileError::new("make a folder in", &std::env::temp_dir(), error))?;
        // Some tools tell projects apart by the name of their folder.
        let shown = site.repository.work_tree().and_then(Path::file_name);
        let name = shown.unwrap_or(OsStr::new("project"));
        let name = if name == "tmp" { OsStr::new("project") } else { name };
        let clone =
            workspace::make(site.repository, objects, commit_id, &folder.path().join(name))?;
        let temp = folder.path().join("tmp");
        stage::make_folder(&temp)?;
        let contained = match surroundings {
            Surroundings::Here { .. } => None,
            Surroundings::Contained { host, image_id } => {
                let submodules = workspace::submodules(&clone.tree)?;
                let project = Project { checkout: &clone.folder, submodules: &submodules };
                let pool = workspace::pool_folder(site.repository);
                let sandbox = &host.config.sandbox;
                let place = Place::make(host.context, sandbox, &pool, owner, image_id, project)?;
                Some((place, host))
            }
        };
        Ok(Self { clone, temp, folder, contained })
    }

    /// Whether every tracked file is as it was. New files don't count: checks build things.
    fn is_unspoiled(&self, objects: &Objects) -> Result<bool, FileError> {
        let options = Options {
            before: &self.clone.tree,
            rules_before: &BTreeMap::new(),
            own_rules: vec![b"*\n".to_vec()],
            declared: BTreeSet::new(),
            format: objects.format(),
            trusts_execute_bit: self.clone.trusts_execute_bit,
        };
        let mut spool = Spool::new(self.folder.path())?;
        let work = self.contained.as_ref().map(|(place, _)| place.work());
        let work = work.as_deref().unwrap_or(&self.clone.folder);
        let found = manifest::read(work, &options, &mut spool)?;
        Ok(found.leaves == self.clone.tree)
    }

    /// Runs a command. The inner error says why it could not be started.
    fn run(
        &self,
        context: &Context,
        check: &PlannedCheck,
        options: CheckOptions<'_>,
    ) -> Result<Result<process::EndedApart, String>, ItemError> {
        match (&self.contained, options.surroundings) {
            (Some((place, host)), _) => run_contained(place, *host, check, options.deadline),
            (None, Surroundings::Here { env }) => {
                match run_here(context, self, check, options.deadline, env) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                        Err(ItemError::Interrupted)
                    }
                    ended => Ok(ended.map_err(|error| error.to_string())),
                }
            }
            (None, Surroundings::Contained { .. }) => Ok(Err("there is no place for it".into())),
        }
    }
}

fn run_contained(
    place: &Place<'_>,
    host: Host<'_>,
    check: &PlannedCheck,
    deadline: Duration,
) -> Result<Result<process::EndedApart, String>, ItemError> {
    let ending = process::Ending::watch().map_err(SandboxError::Runtime)?;
    let caps = Caps::until(deadline);
    let is_told = || ending.is_told();
    let ended =
        invoke::run_beside(host.engine, place, &check.argv, Access::Writable, caps, &is_told)?;
    let mut output = vendor::redact(host.context, &invoke::both_streams(&ended));
    match ended.stopped {
        Some(Stopped::Cancelled) => return Err(ItemError::Interrupted),
        Some(stopped) => output.extend_from_slice(format!("[{}]\n", stopped.words()).as_bytes()),
        None => {}
    }
    Ok(Ok(process::EndedApart {
        // A command that was stopped never passed, whatever it ended with.
        code: if ended.stopped.is_some() {
            None
        } else {
            ended.code.and_then(|code| i32::try_from(code).ok())
        },
        timed_out: ended.stopped == Some(Stopped::Deadline),
        output,
    }))
}

fn run_here(
    context: &Context,
    place: &Checkout<'_>,
    check: &PlannedCheck,
    deadline: Duration,
    env: &[OsString],
) -> std::io::Result<process::EndedApart> {
    let folder = &place.clone.folder;
    let (program, args) = check.argv.split_first().expect("the tokenizer gives a program");
    // A name with a slash is meant from the project's root; what that means to the system depends.
    let program =
        if program.contains('/') { folder.join(program).into_os_string() } else { program.into() };
    let mut command = process::command(context, program, folder);
    command.args(args);
    let names = PERSONAL.iter().chain(&TOOLCHAINS).map(OsStr::new);
    for name in names.chain(env.iter().map(OsString::as_os_str)) {
        if let Some(value) = context.vars().get(name) {
            command.env(name, value);
        }
    }
    command.env("TMPDIR", &place.temp).env("TERM", "dumb").env("CI", "1").env("NO_COLOR", "1");
    process::run_apart(command, Limits { deadline, max_output_bytes: MAX_OUTPUT_BYTES })
}

/// What the checks of a task came to so far, item by item in plan order.
///
/// `counted`: the places whose results count.
///
/// # Errors
/// [`StoreError`] when the state can't be read.
pub fn standing(
    site: Site<'_>,
    task: &crate::store::TaskRow,
    plan: &Plan,
    head_commit_id: &CommitId,
    counted: &BTreeSet<EvidenceSource>,
) -> Result<Vec<(ItemId, gate::Tests)>, StoreError> {
    let results = site.store.check_results(task.id)?;
    Ok(plan
        .items
        .iter()
        .map(|item| {
            let tests =
                gate::tests(item, &results, head_commit_id, |place| counted.contains(&place));
            (item.id.clone(), tests)
        })
        .collect())
}
