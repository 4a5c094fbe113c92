//! `codeboost verify`: what an archived bundle and its decisions prove, offline.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use crate::apply::read;
use crate::apply::signature::AllowedSigners;
use crate::apply::verify::{Archive, Report, verify};
use crate::config::AcceptedKey;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::output::{Style, plain_line};
use crate::review::read::{ReviewError, keys, old_page, read_at, task_of};
use crate::review::uuid;
use crate::stage;
use crate::store::Store;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The page
    bundle: PathBuf,
    /// The decisions that were made on it
    decisions: Option<PathBuf>,
    /// Their detached SSH signature [default: DECISIONS.sig, if there is one]
    signature: Option<PathBuf>,
    /// A key whose forms are believed, as `codeboost key show` prints it; may be repeated
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
    /// The keys of reviewers, in the form of ssh-keygen's allowed signers
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// The time at which the keys of reviewers must be valid [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// The digest that `render` printed, to be the page's
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Also prove the page's changes against this repository's objects and records
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &VerifyArgs) -> Result {
    let page = stage::read_unlinked(&context.path(&args.bundle), stage::MAX_OUTPUT)?;
    let decisions =
        args.decisions.as_ref().map(|path| read::decisions(&context.path(path))).transpose()?;
    let signature = match (&args.signature, &args.decisions) {
        (Some(path), _) => Some(read::signature(&context.path(path))?),
        (None, Some(decisions)) => {
            let mut beside = context.path(decisions).into_os_string();
            beside.push(".sig");
            let beside = PathBuf::from(beside);
            let is_there = std::fs::symlink_metadata(&beside).is_ok();
            is_there.then(|| read::signature(&beside)).transpose()?
        }
        (None, None) => None,
    };
    let signers = match &args.signers {
        None => None,
        Some(path) => {
            let bytes = stage::read(&context.path(path), stage::MAX_SETTINGS)?;
            let signers = AllowedSigners::parse(&bytes).map_err(|error| {
                Error::from_error(&error).context(format!("can't read {}", path.display()))
            })?;
            Some(signers)
        }
    };
    let mut accepted: Vec<AcceptedKey> = args
        .key
        .iter()
        .map(|key| AcceptedKey { name: "a named key".into(), public_key: key.clone() })
        .collect();
    let folder = args.repo.as_ref().map(|folder| context.path(folder));
    let repository = match &folder {
        Some(folder) => Some(Repository::open_at(context, folder)?),
        None => Repository::open(context).ok(),
    };
    let store = match &repository {
        Some(repository) => Store::open_if_there(repository)?,
        None => None,
    };
    if let (Some(repository), Some(store)) = (&repository, &store) {
        accepted.extend(keys(store, &repository.config()?)?);
    }
    let mut report = verify(&Archive {
        page: &page,
        decisions: decisions.as_deref(),
        signature: signature.as_deref(),
        keys: &accepted,
        signers: signers.as_ref(),
        at: args.at.unwrap_or_else(|| context.now()),
    });
    if let Some(digest) = &args.digest
        && *digest != report.digest.as_str()
    {
        report.faults.push(format!("the page is {}, not {digest}", report.digest));
    }
    if folder.is_some() {
        match (&repository, &store) {
            (Some(repository), Some(store)) => against_records(repository, store, &mut report)?,
            _ => report.faults.push("codeboost is not set up in that repository".to_owned()),
        }
    }
    tell(context, &report, args.digest.is_some());
    Ok(if report.faults.is_empty() { Outcome::Done } else { Outcome::Failed })
}

/// Makes the page's changes again from objects and records, and compares.
fn against_records(
    repository: &Repository<'_>,
    store: &Store<'_>,
    report: &mut Report,
) -> Result<()> {
    let Some(form) = report.form.clone() else { return Ok(()) };
    if form.repository != uuid(&store.read(|tx| tx.repository_id())?) {
        report.faults.push("the form is of another repository".to_owned());
        return Ok(());
    }
    let Some(task) = task_of(store, &form)? else {
        report.faults.push("that repository has no such task".to_owned());
        return Ok(());
    };
    let (Some(base), Some(head), Some(items)) = (&form.base, &form.head, &form.items) else {
        return Ok(());
    };
    let loaded = match read_at(repository, store, &task, base, head) {
        Ok(loaded) => loaded,
        Err(error @ (ReviewError::Read(_) | ReviewError::Git(_))) => {
            report.faults.push(format!("its commits can't be read: {error}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let Some(page) = old_page(repository, store, &form, &loaded.review)? else {
        report.faults.push("its changes are not those of its base and head".to_owned());
        return Ok(());
    };
    for (item, offered) in items {
        if page.now.fingerprints.get(item) != Some(&offered.fingerprint) {
            report.faults.push(format!("{item} is not what its base and head have"));
        }
    }
    Ok(())
}

fn tell(context: &Context, report: &Report, has_digest: bool) {
    let out = &context.out;
    if out.is_json() {
        out.json(report);
        return;
    }
    out.line(format!("page       {}", report.digest));
    if let Some(form) = &report.form {
        let number = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
        let id = |id: &Option<codeboost_schema::ids::CommitId>| {
            id.as_ref().map_or_else(|| "none".to_owned(), |id| format!("{id:.12}"))
        };
        out.line(format!(
            "review     #{} r{}, base {}, head {}",
            number(form.issue),
            number(form.revision),
            id(&form.base),
            id(&form.head)
        ));
        out.line(format!("made at    {}", plain_line(&form.rendered_at)));
        if let Some(name) = &report.signed_by {
            out.line(format!("signed by  {} ({})", plain_line(name), plain_line(&form.public_key)));
        }
    }
    if let Some(at) = &report.saved_at {
        let who = match (&report.reviewer, &report.reviewer_as_typed) {
            (Some(name), _) => format!("signed by {}", plain_line(name)),
            (None, Some(typed)) => format!("unsigned, by {typed} as typed"),
            (None, None) => "unsigned".to_owned(),
        };
        out.line(format!("decisions  {who}, saved {}", plain_line(at)));
        for words in &report.decisions {
            out.line(format!("           {words}"));
        }
    }
    for fault in &report.faults {
        out.line(format!("{} {}", out.paint(Style::Error, "✕"), plain_line(fault)));
    }
    if report.faults.is_empty() {
        let what = if has_digest {
            "nothing was altered"
        } else {
            "what is signed was not altered; of the rest only --digest can tell"
        };
        out.line(format!("{} {what}", out.paint(Style::Success, "✓")));
    }
}
