//! `codeboost issues`: which open issues come first, why, and whose words are trusted.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::commands::open;
use crate::config::{Config, ForgeKind};
use crate::context::{Context, time_text};
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::forge::gh::issues::WholeIssue;
use crate::forge::gh::{Gh, GhError, Slug};
use crate::git::repository::Repository;
use crate::github::issues::{Collaborators, Person, Rank, Snapshot, Trust, heard, ranked, trust};
use crate::output::{Style, counted, plain, plain_line};
use crate::store::{Store, StoreError};

/// Arguments of `issues`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct IssuesArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Show what was read last, and ask nobody
    #[arg(long)]
    offline: bool,
    /// So many are listed
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one issue as an agent would get it: its text, and the comments that are heard
    ///
    /// Example: codeboost issues show 412
    Show {
        /// Its number
        issue: u64,
    },
    /// Trust the words of an issue and its comments, as its author wrote it
    ///
    /// It holds for this issue of this author. Issues of people who may push are trusted anyway.
    ///
    /// Example: codeboost issues trust 412
    Trust {
        /// Its number
        issue: u64,
        /// Take the trust back
        #[arg(long)]
        revoke: bool,
    },
}

/// One issue in its place.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) author: Option<String>,
    pub(crate) opened_at: String,
    pub(crate) labels: Vec<String>,
    #[serde(flatten)]
    pub(crate) rank: Rank,
    #[serde(flatten)]
    pub(crate) trust: Trust,
}

/// How good the list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Freshness {
    /// The newest read succeeded.
    Fresh,
    /// The newest read failed; an older one is shown.
    Stale,
    /// Nothing was ever read.
    Unavailable,
}

/// The ranked issues, as they were read last.
#[derive(Serialize)]
pub(crate) struct Listing {
    pub(crate) repository: String,
    pub(crate) state: Freshness,
    pub(crate) taken_at: Option<String>,
    /// Why it is not fresh.
    pub(crate) why: Option<String>,
    pub(crate) issues: Vec<Row>,
}

/// The repository on GitHub that the configuration means.
pub(crate) fn slug(repository: &Repository<'_>, config: &Config) -> Result<Slug> {
    let hint = "set github: OWNER/NAME in the configuration";
    if let Some(name) = &config.github {
        return Slug::parse(name)
            .ok_or_else(|| Error::failed(format!("{name:?} names no repository")).hint(hint));
    }
    let remote = config.remote.as_deref().unwrap_or("origin");
    // As it is configured: rewritten addresses say where git goes, not what is meant.
    let key = format!("remote.{remote}.url");
    let git = repository.git().with_person();
    let found = git.finish(["config", "--get", &key], None)?;
    let url = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let url = if found.code == Some(0) { url } else { remote.to_owned() };
    Slug::of_url(&url).ok_or_else(|| {
        Error::failed(format!("the remote {remote} names no repository on GitHub")).hint(hint)
    })
}

/// The door to GitHub, where that is the forge.
pub(crate) fn open_gh<'a>(
    context: &'a Context,
    repository: &Repository<'a>,
    config: &Config,
) -> Result<Gh<'a>> {
    match config.forge {
        ForgeKind::Github => {}
        ForgeKind::Local => {
            return Err(Error::failed("the issues of this repository are files or numbers")
                .hint("set forge: github in the configuration to rank those of GitHub"));
        }
    }
    let deadline = Duration::from_secs(config.remote_timeout);
    Ok(Gh::new(context, slug(repository, config)?, deadline))
}

pub(crate) fn run(context: &Context, args: &IssuesArgs) -> Result {
    let (repository, store) = open(context)?;
    let config = repository.config()?;
    let gh = open_gh(context, &repository, &config)?;
    match args.action {
        Some(Action::Show { issue }) => return show(context, &store, &gh, issue),
        Some(Action::Trust { issue, revoke: false }) => return give(context, &store, &gh, issue),
        Some(Action::Trust { issue, revoke: true }) => {
            let name = gh.slug().to_string();
            let was = store.write(|tx| -> std::result::Result<_, StoreError> {
                tx.distrust_issue(&name, issue)
            })?;
            let words = if was { "no longer trusted" } else { "was not trusted" };
            told(context, json!({"issue": issue, "trusted": false}), format!("#{issue} {words}"));
            return Ok(Outcome::Done);
        }
        None => {}
    }
    if !args.offline {
        take(&store, &gh)?;
    }
    let listing = listing(&store, gh.slug(), context.now())?;
    let outcome =
        if listing.state == Freshness::Unavailable { Outcome::Failed } else { Outcome::Done };
    if context.out.is_json() {
        context.out.json(&listing);
        return Ok(outcome);
    }
    tell(context, &listing, args.limit);
    Ok(outcome)
}

/// Reads the issues of GitHub and keeps them; or keeps why they can't be read.
fn take(store: &Store<'_>, gh: &Gh<'_>) -> Result<()> {
    let read = gh.repository().and_then(|_| gh.open_issues());
    let name = gh.slug().to_string();
    let kept = match &read {
        Ok(issues) => {
            let collaborators = gh.who_may_push();
            let snapshot = Snapshot { issues: issues.clone(), collaborators };
            Ok(json!(snapshot).to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    store.write(|tx| -> std::result::Result<_, StoreError> {
        tx.put_issues_read(&name, kept.as_deref().map_err(String::as_str))
    })?;
    match read {
        // What a person has to mend first is not hidden behind old issues.
        Err(error @ (GhError::Missing | GhError::NotSignedIn)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The issues as they were read last, ranked.
pub(crate) fn listing(store: &Store<'_>, slug: &Slug, now: Timestamp) -> Result<Listing> {
    let name = slug.to_string();
    let (read, trusted) = store.read(|tx| -> std::result::Result<_, StoreError> {
        Ok((tx.issues_read(&name)?, tx.trusted_issues(&name)?))
    })?;
    let mut listing = Listing {
        repository: name,
        state: Freshness::Unavailable,
        taken_at: None,
        why: Some("they were never read: codeboost issues".to_owned()),
        issues: Vec::new(),
    };
    if let Some((taken_at, text)) = read.snapshot {
        let snapshot: Snapshot = serde_json::from_str(&text)
            .map_err(|error| StoreError::Damaged(format!("unreadable issues: {error}")))?;
        listing.taken_at = Some(taken_at);
        listing.state = Freshness::Fresh;
        listing.why = None;
        listing.issues = rows(&snapshot, &trusted, now);
    }
    if let Some((_, why)) = read.failed {
        if listing.taken_at.is_some() {
            listing.state = Freshness::Stale;
        }
        listing.why = Some(why);
    }
    Ok(listing)
}

fn rows(snapshot: &Snapshot, trusted: &BTreeMap<u64, Person>, now: Timestamp) -> Vec<Row> {
    let all = ranked(&snapshot.issues, now).into_iter();
    all.map(|(rank, issue)| Row {
        number: issue.number,
        title: issue.title.clone(),
        author: issue.author.as_ref().map(|author| author.login.clone()),
        opened_at: time_text(issue.opened_at),
        labels: issue.labels.clone(),
        rank,
        trust: trust(
            issue.author.as_ref(),
            &snapshot.collaborators,
            trusted.get(&issue.number).map(|author| author.id),
        ),
    })
    .collect()
}

fn tell(context: &Context, listing: &Listing, limit: usize) {
    let out = &context.out;
    let (icon, style, word) = match listing.state {
        Freshness::Fresh => ("✓", Style::Success, "Current"),
        Freshness::Stale => ("!", Style::Warning, "Stale"),
        Freshness::Unavailable => ("✕", Style::Error, "Unavailable"),
    };
    let taken = listing.taken_at.as_ref().map_or(String::new(), |at| format!(", read {at}"));
    out.line(format!(
        "{} {}: {}{taken}",
        out.paint(style, &format!("{icon} {word}")),
        listing.repository,
        counted(listing.issues.len() as u64, "open issue"),
    ));
    if let Some(why) = &listing.why {
        out.warn(plain_line(why));
    }
    for row in listing.issues.iter().take(limit) {
        let trust = if row.trust.is_given() {
            out.paint(Style::Success, row.trust.word())
        } else {
            out.paint(Style::Warning, row.trust.word())
        };
        out.line(format!(
            "{:>4}  #{:<6} {}  ({trust})",
            row.rank.score,
            row.number,
            plain_line(&row.title)
        ));
        for reason in &row.rank.reasons {
            out.line(format!("        {reason}"));
        }
        if row.rank.reasons.is_empty() {
            out.line("        No priority signals.");
        }
        if let Trust::Untrusted { why } | Trust::Unknown { why } = &row.trust {
            out.line(format!("        {}: {}", row.trust.word(), plain_line(why)));
        }
    }
    if listing.issues.len() > limit {
        out.line(format!("and {} more: --limit N", listing.issues.len() - limit));
    }
}

fn told(context: &Context, json: serde_json::Value, line: String) {
    if context.out.is_json() {
        context.out.json(&json);
    } else {
        context.out.line(line);
    }
}

fn give(context: &Context, store: &Store<'_>, gh: &Gh<'_>, number: u64) -> Result {
    let whole = gh.whole_issue(number)?;
    let Some(author) = &whole.issue.author else {
        return Err(Error::failed(format!("the account that wrote #{number} is gone"))
            .hint("take what it says into an issue of your own"));
    };
    let name = gh.slug().to_string();
    let is_new = store.write(|tx| -> std::result::Result<_, StoreError> {
        tx.trust_issue(&name, number, author)
    })?;
    let words = if is_new { "is trusted now" } else { "was trusted already" };
    told(
        context,
        json!({"issue": number, "trusted": true, "author": author}),
        format!("#{number} of {} {words}, with its comments", plain_line(&author.login)),
    );
    Ok(Outcome::Done)
}

/// Whether the words of an issue may be followed, as things are now.
pub(crate) fn trust_of(store: &Store<'_>, gh: &Gh<'_>, whole: &WholeIssue) -> Result<Trust> {
    judged(store, gh, whole, &gh.who_may_push())
}

fn judged(
    store: &Store<'_>,
    gh: &Gh<'_>,
    whole: &WholeIssue,
    collaborators: &Collaborators,
) -> Result<Trust> {
    let name = gh.slug().to_string();
    let trusted = store.read(|tx| tx.trusted_issues(&name))?;
    let explicit = trusted.get(&whole.issue.number).map(|author| author.id);
    Ok(trust(whole.issue.author.as_ref(), collaborators, explicit))
}

fn show(context: &Context, store: &Store<'_>, gh: &Gh<'_>, number: u64) -> Result {
    let whole = gh.whole_issue(number)?;
    let collaborators = gh.who_may_push();
    let trust = judged(store, gh, &whole, &collaborators)?;
    let heard = heard(&whole.comments, &collaborators, &trust);
    let n_left = whole.comments.len() - heard.len();
    let out = &context.out;
    if out.is_json() {
        out.json(&json!({
            "issue": whole.issue,
            "body": whole.body,
            "is_open": whole.is_open,
            "trust": trust,
            "comments": heard,
            "comments_left_out": n_left,
        }));
        return Ok(Outcome::Done);
    }
    let state = if whole.is_open { "open" } else { "closed" };
    out.line(format!("#{number} {} ({state}, {})", plain_line(&whole.issue.title), trust.word()));
    if let Trust::Untrusted { why } | Trust::Unknown { why } = &trust {
        out.line(format!("{}: {}", trust.word(), plain_line(why)));
    }
    out.line("");
    out.line(plain(&whole.body));
    for comment in heard {
        let who = comment.author.as_ref().map_or("somebody", |author| author.login.as_str());
        let at = time_text(comment.written_at);
        out.line(format!("\n{} wrote at {at}:\n{}", plain_line(who), plain(&comment.body)));
    }
    if n_left > 0 {
        out.line(format!(
            "\n{} of people who are not trusted left out",
            counted(n_left as u64, "comment")
        ));
    }
    Ok(Outcome::Done)
}
