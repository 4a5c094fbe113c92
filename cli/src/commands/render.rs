//! `codeboost render`: the page of a task, or of a link and a plan alone.

use std::path::{Path, PathBuf};

use clap::Args;
use codeboost_render::{Budget, Options, prepare};
use codeboost_schema::canonical;
use codeboost_schema::form::Form;
use codeboost_schema::ids::Digest;
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::Link;
use serde::Serialize;

use crate::bundle::cache::HighlightCache;
use crate::bundle::{GENERATOR, Surroundings, page_of_files, page_of_task};
use crate::commands::plan::input::{Input, SyntaxArgs};
use crate::commands::plan::render::{self as plan_page, RenderArgs as RenderPlanArgs};
use crate::commands::plan::report::Report;
use crate::commands::{open, site};
use crate::config::{Config, PageLimits};
use crate::context::{Context, time_text};
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::range::{self, Source};
use crate::git::read::Objects;
use crate::git::repository::Repository;
use crate::link::verify::{verify_diff, verify_link};
use crate::output::{counted, plain_line};
use crate::review::form::sign;
use crate::review::read::{self, Loaded, ReviewError};
use crate::review::sources::Reading;
use crate::review::uuid;
use crate::stage;
use crate::store::{FormKey, Store};

/// Arguments of `render`.
#[derive(Debug, Args)]
pub struct RenderArgs {
    /// The task's issue, or a link.json; may be left out when one task is open
    #[arg(value_name = "ISSUE|LINK")]
    what: Option<String>,
    /// The repository, with a link.json [default: the one here]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The plan that the link.json was made with
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
    /// Who made each commit, for the words about commits
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Where to write the page; for a task its own folder below .codeboost
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the pages around the reviews too: issues, plans, queue, reviews, lessons, settings
    #[arg(long, conflicts_with_all = ["what", "repo", "plan", "ledger", "output"])]
    site: bool,
    /// KiB of unchanged lines that the page may carry for reading whole files; 0 for none
    /// [default: page.whole_files of the configuration, 2048]
    #[arg(long, value_name = "KIB")]
    whole_files: Option<u64>,
    /// MiB of source that is read for highlighting; 0 for none [default: page.highlight of the
    /// configuration, 24]
    #[arg(long, value_name = "MIB")]
    highlight: Option<u64>,
    #[command(flatten)]
    syntax: SyntaxArgs,
}

impl RenderArgs {
    fn limits(&self, usual: PageLimits) -> PageLimits {
        PageLimits {
            whole_files: self.whole_files.unwrap_or(usual.whole_files),
            highlight: self.highlight.unwrap_or(usual.highlight),
        }
    }
}

fn options(limits: PageLimits) -> Options {
    Options {
        highlight: Budget { max_bytes: limits.highlight.saturating_mul(1 << 20) },
        whole_files_max_bytes: limits.whole_files.saturating_mul(1 << 10),
        ..Options::default()
    }
}

pub(crate) fn run(context: &Context, args: &RenderArgs) -> Result {
    if args.site {
        return site::run(context);
    }
    match &args.what {
        Some(what) if what.parse::<u64>().is_err() => of_files(context, args, what),
        what => {
            if args.plan.is_some() || args.repo.is_some() || args.ledger.is_some() {
                return Err(Error::usage("--plan, --repo and --ledger go with a link.json")
                    .hint("codeboost render link.json --plan plan.yaml -o review.html"));
            }
            of_task(context, args, what.as_ref().and_then(|what| what.parse().ok()))
        }
    }
}

#[derive(Serialize)]
struct Rendered<'a> {
    path: String,
    digest: &'a Digest,
    wrote: bool,
    read_only: Option<&'a str>,
}

pub(super) fn tell(
    context: &Context,
    path: &Path,
    digest: &Digest,
    wrote: bool,
    read_only: Option<&str>,
) {
    let path = path.display().to_string();
    if context.out.is_json() {
        context.out.json(&Rendered { path, digest, wrote, read_only });
        return;
    }
    context.out.line(format!("{path}\n{digest}"));
    if !wrote {
        context.out.note("Nothing changed since it was made.");
    }
    if let Some(why) = read_only {
        context.out.warn(format!("nothing can be decided with this page: {}", plain_line(why)));
    }
}

fn of_task(context: &Context, args: &RenderArgs, issue: Option<u64>) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    let task = read::follow(&repository, &store, task)?;
    let reading = match Reading::of(&repository, &store, &task) {
        // Before there are changes to review there is a plan to review.
        Err(ReviewError::NoPlan { newest: Some(_), .. }) => {
            let issue = Some(task.issue);
            return plan_page::run(context, &RenderPlanArgs { issue, output: args.output.clone() });
        }
        reading => reading?,
    };
    let output = args.output.as_ref().map(|path| context.path(path));
    let limits = args.limits(reading.sources().beside.config.page);
    let page = make(context, &repository, &store, &reading, limits, output)?;
    tell(context, &page.path, &page.digest, page.wrote, page.read_only.as_deref());
    Ok(Outcome::Done)
}

/// The page of a task.
pub(crate) struct Page {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Digest of its bytes.
    pub(crate) digest: Digest,
    /// Whether it was written anew.
    pub(crate) wrote: bool,
    /// Why nothing can be decided with it.
    pub(crate) read_only: Option<String>,
}

/// Brings the page of a task up to date; `output` is another place than its own, `limits` may be
/// others than the configuration's.
pub(crate) fn make(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    reading: &Reading<'_>,
    limits: PageLimits,
    output: Option<PathBuf>,
) -> Result<Page> {
    let task = &reading.sources().task;
    let key = store.key()?;
    let read_only = match &key {
        _ if task.state.is_closed() => Some(format!("the task is {}", task.state)),
        None => Some("this repository has no signing key".to_owned()),
        Some(_) => None,
    };
    // With another place for the output nothing is known about what stands there.
    let own_place = output.is_none();
    let path = match output {
        Some(path) => path,
        None => repository.task_folder(task.issue)?.join("review.html"),
    };
    let source_date = context.source_date_epoch().map(time_text);
    let inputs = inputs_digest(reading, limits, key.as_ref(), source_date.as_deref(), repository);
    let old = stage::digest(&path);
    if own_place
        && let Some(old) = &old
        && store.read(|tx| tx.stage_is_current(task.id, STAGE, &inputs, Some(old)))?
    {
        return Ok(Page { path, digest: old.clone(), wrote: false, read_only });
    }
    let surroundings = surroundings(repository, reading, source_date, read_only.clone());
    let html = draw(repository, store, reading.loaded()?, limits, key.as_ref(), surroundings)?;
    let digest = Digest::of(html.as_bytes());
    let wrote = stage::write_if_changed(&path, html.as_bytes())?;
    if own_place {
        store.write(|tx| tx.put_stage(task, STAGE, &inputs, &digest))?;
    }
    Ok(Page { path, digest, wrote, read_only })
}

const STAGE: &str = "render";

/// Digest of everything that a task's page is made from.
fn inputs_digest(
    reading: &Reading<'_>,
    limits: PageLimits,
    key: Option<&FormKey>,
    source_date: Option<&str>,
    repository: &Repository<'_>,
) -> Digest {
    let beside = &reading.sources().beside;
    let config = Config { page: limits, ..beside.config.clone() };
    canonical::digest(&serde_json::json!({
        "generator": GENERATOR,
        "review": reading.made_from(),
        "repository": name_of(repository),
        "body": beside.body,
        "config": config,
        "key": key.map(FormKey::public_text),
        "newest": beside.newest_record,
        "source_date": source_date,
    }))
}

/// Name of a repository for people: that of the folder that holds it.
pub(super) fn name_of(repository: &Repository<'_>) -> String {
    let common = repository.common_dir();
    let folder = if common.file_name().is_some_and(|name| name == ".git") {
        common.parent().unwrap_or(common)
    } else {
        common
    };
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.strip_suffix(".git").map_or(name.clone(), str::to_owned)
}

fn surroundings<'r>(
    repository: &Repository<'_>,
    reading: &'r Reading<'_>,
    source_date: Option<String>,
    read_only: Option<String>,
) -> Surroundings<'r> {
    let sources = reading.sources();
    let beside = &sources.beside;
    let rendered_at = source_date
        .or_else(|| beside.newest_record.as_ref().map(|(_, at)| at.clone()))
        .unwrap_or_else(|| sources.task.added_at.clone());
    Surroundings {
        repository: name_of(repository),
        forge: beside.config.forge,
        body: beside.body.clone(),
        author: None,
        ledger: &sources.ledger,
        merge_runs: &beside.merge_runs,
        read_only,
        rendered_at,
    }
}

fn draw(
    repository: &Repository<'_>,
    store: &Store<'_>,
    loaded: &Loaded,
    limits: PageLimits,
    key: Option<&FormKey>,
    surroundings: Surroundings<'_>,
) -> Result<String> {
    let objects = Objects::open(store.git())?;
    let page = page_of_task(&loaded.review, &loaded.explained, &surroundings, &objects)?;
    let cache = HighlightCache::open(&repository.state_folder());
    let prepared = prepare(&page, &options(limits), &cache);
    cache.keep();
    let form = key.filter(|_| surroundings.read_only.is_none()).map(|key| {
        sign(&form_of(loaded, key, &prepared.data_digest, surroundings.rendered_at), key)
    });
    Ok(prepared.finish(form))
}

fn form_of(loaded: &Loaded, key: &FormKey, data_digest: &Digest, rendered_at: String) -> Form {
    let review = &loaded.review;
    let inputs = &review.inputs;
    let task = &inputs.task;
    Form {
        schema_version: 1,
        data_digest: data_digest.clone(),
        repository: inputs.repository.clone(),
        task: Some(uuid(&task.id)),
        plan: Some(uuid(&task.plan_id)),
        issue: Some(task.issue),
        revision: Some(inputs.plan.revision),
        base: Some(inputs.link.base.clone()),
        head: Some(inputs.link.head.clone()),
        items: Some(review.form_items()),
        segments: Some(review.form_segments()),
        threads: None,
        rendered_at,
        public_key: key.public_text(),
    }
}

fn of_files(context: &Context, args: &RenderArgs, link: &str) -> Result {
    let plan = args.plan.as_ref().ok_or_else(|| {
        Error::usage("a link.json is rendered with the plan that it was made with")
            .hint(format!("codeboost render {link} --plan plan.yaml -o review.html"))
    })?;
    let repository = match &args.repo {
        Some(folder) => Repository::open_at(context, &context.path(folder))?,
        None => Repository::open(context)?,
    };
    let text = stage::read(&context.path(link), stage::MAX_OUTPUT)?;
    let again =
        "link again: codeboost link --base A --head B --plan plan.yaml --ledger ledger.json";
    let parsed: Link = serde_json::from_slice(&text).map_err(|error| {
        Error::from_error(&error).context(format!("{link} is no link.json")).hint(again)
    })?;
    let input = Input::read(context, plan, &args.syntax)?;
    let plan = match input.plan() {
        Ok(read) => read.plan,
        Err(unreadable) => {
            let (source, problems) = (&unreadable.source, unreadable.problems.as_slice());
            Report { name: &input.name, source, plan: None, problems }.print(context);
            return Ok(Outcome::Failed);
        }
    };
    if plan.digest() != parsed.plan.digest {
        return Err(Error::failed(format!(
            "{link} was made with another plan: r{} of #{}, {}",
            parsed.plan.revision, parsed.plan.issue, parsed.plan.digest
        ))
        .hint(again));
    }
    let ledger = match &args.ledger {
        None => Ledger::default(),
        Some(path) => Ledger::parse(&stage::read(&context.path(path), stage::MAX_OUTPUT)?)
            .map_err(|error| {
                Error::from_error(&error).context(format!("can't read {}", path.display()))
            })?,
    };
    let git_objects = Objects::open(repository.git())?;
    let diff = range::final_diff(&Source::new(context, &git_objects), &parsed.base, &parsed.head)?;
    verify_link(&parsed, &git_objects).and_then(|()| verify_diff(&parsed, &diff)).map_err(
        |error| {
            Error::from_error(&error)
                .context(format!("{link} is not the difference of its base and head"))
                .hint(again)
        },
    )?;
    let why = "It was made from files alone: there is no task that decisions could belong to.";
    let page = page_of_files(
        &parsed,
        &plan,
        &ledger,
        &git_objects,
        why.to_owned(),
        context.source_date_epoch(),
    )?;
    let limits = args.limits(repository.config()?.page);
    let cache = HighlightCache::open(&repository.state_folder());
    let html = prepare(&page, &options(limits), &cache).finish(None);
    cache.keep();
    let digest = Digest::of(html.as_bytes());
    let path = context.path(args.output.clone().unwrap_or_else(|| "review.html".into()));
    let wrote = stage::write_again(&path, |out| out.write_all(html.as_bytes()))?;
    context.out.detail(format!(
        "{} proven against the commits",
        counted(parsed.segments.len() as u64, "segment")
    ));
    tell(context, &path, &digest, wrote, Some(why));
    Ok(Outcome::Done)
}
