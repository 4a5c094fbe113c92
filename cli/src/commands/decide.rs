//! The decisions of a page, from the terminal: `approve`, `assign`, `accept`, `acknowledge`,
//! `withdraw`, `unresolve`, `request`, `ask`.

use std::io::Read as _;

use clap::Args;
use codeboost_schema::decisions::Action;
use codeboost_schema::ids::{ItemId, SegmentKey, Uuid};

use crate::apply::{self, Applied};
use crate::bundle::text::{self, Part};
use crate::commands::apply::{outcome, tell};
use crate::commands::open;
use crate::commands::plan::confirm;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::review::read::{self, Loaded};
use crate::review::{is_pending, seen_code};
use crate::store::{Store, TaskRow};

/// Arguments of `approve`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct ApproveArgs {
    /// The task's issue; may be left out when one task is open
    issue: Option<u64>,
    /// The item
    #[arg(value_parser = parse_item)]
    item: ItemId,
    /// The code that ended the text of `codeboost review ISSUE ITEM`: you say that you read it
    #[arg(long, value_name = "CODE")]
    seen: Option<String>,
    /// Confirm that the item needs no change, and has none
    #[arg(long)]
    no_change: bool,
}

/// Arguments of `withdraw`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct WithdrawArgs {
    /// The task's issue; may be left out when one task is open
    issue: Option<u64>,
    /// The item whose approval you withdraw, or the id of a pending change request
    #[arg(value_name = "ITEM|REQUEST")]
    what: String,
}

/// Arguments of `assign`.
#[derive(Debug, Args)]
pub struct AssignArgs {
    /// The task's issue, then changes as `codeboost review` names them, such as 12.3f9a2b7c
    #[arg(required = true, value_name = "[ISSUE] CHANGE")]
    changes: Vec<String>,
    /// The item that gets them
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    to: ItemId,
}

/// Arguments of `accept` and `unresolve`.
#[derive(Debug, Args)]
pub struct ChangesArgs {
    /// The task's issue, then changes as `codeboost review` names them, such as 12.3f9a2b7c
    #[arg(required = true, value_name = "[ISSUE] CHANGE")]
    changes: Vec<String>,
}

/// Arguments of `acknowledge`.
#[derive(Debug, Args)]
pub struct AcknowledgeArgs {
    /// The task's issue, then changes as `codeboost review` names them, such as 12.3f9a2b7c
    #[arg(required = true, value_name = "[ISSUE] CHANGE")]
    changes: Vec<String>,
    /// What you saw and accept, such as out-of-scope
    #[arg(long, value_name = "WORD")]
    tag: String,
}

/// Arguments of `request`, and of the question in `ask`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct NoteArgs {
    /// The task's issue; may be left out when one task is open
    pub(super) issue: Option<u64>,
    /// The item
    #[arg(value_parser = parse_item)]
    pub(super) item: ItemId,
    /// The text; - reads it from standard input
    #[arg(long, value_name = "TEXT")]
    pub(super) text: String,
    /// The change it is about, as `codeboost review` names it
    #[arg(long, value_name = "CHANGE")]
    pub(super) change: Option<String>,
    /// First and last line within the change, from 1
    #[arg(long, value_name = "FROM-TO", requires = "change", value_parser = parse_lines)]
    pub(super) lines: Option<(u64, u64)>,
}

pub(super) fn parse_item(text: &str) -> std::result::Result<ItemId, String> {
    ItemId::parse(text).map_err(|error| error.to_string())
}

pub(super) fn parse_lines(text: &str) -> std::result::Result<(u64, u64), String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) => Ok((from, to)),
        _ => Err("expected lines such as 3-7".into()),
    }
}

/// A task, brought up to its branches, and its review.
struct Desk<'a> {
    repository: Repository<'a>,
    store: Store<'a>,
    task: TaskRow,
    loaded: Loaded,
}

impl<'a> Desk<'a> {
    fn open(context: &'a Context, issue: Option<u64>) -> Result<Self> {
        let (repository, store) = open(context)?;
        let task = store.read(|tx| tx.select_any_task(issue))?;
        let task = read::follow(&repository, &store, task)?;
        let loaded = read::read(&repository, &store, &task)?;
        Ok(Self { repository, store, task, loaded })
    }

    fn decide(
        &self,
        context: &Context,
        actions: Vec<Action>,
        seen: Option<&ItemId>,
    ) -> Result<(Applied, Outcome)> {
        let applied =
            apply::apply_actions(&self.repository, &self.store, &self.task, actions, seen)?;
        tell(context, &applied);
        let outcome = outcome(&applied.answers);
        Ok((applied, outcome))
    }

    /// The segments that these names stand for.
    fn changes(&self, names: &[String]) -> Result<Vec<(u32, SegmentKey)>> {
        names.iter().map(|name| self.change(name)).collect()
    }

    fn change(&self, name: &str) -> Result<(u32, SegmentKey)> {
        let issue = self.task.issue;
        let usage = || {
            Error::usage(format!("{name:?} names no change"))
                .hint(format!("codeboost review {issue} ITEM (or ambiguous, unplanned) names them, such as 12.3f9a2b7c"))
        };
        let (id, key) = name.split_once('.').ok_or_else(usage)?;
        let id: u32 = id.parse().map_err(|_| usage())?;
        if key.len() < 8 {
            return Err(usage());
        }
        let segments = &self.loaded.review.inputs.link.segments;
        match segments.get(id as usize) {
            Some(segment) if segment.key.hex().starts_with(key) => Ok((id, segment.key.clone())),
            _ => Err(Error::not_allowed(format!("the change {name} is no longer there"))
                .hint(format!("look at what is: codeboost review {issue}"))),
        }
    }
}

/// Splits `[ISSUE] CHANGE…`.
fn split_issue(words: &[String]) -> Result<(Option<u64>, &[String])> {
    match words.split_first() {
        Some((first, rest)) if !first.contains('.') => {
            let issue = first.parse().map_err(|_| {
                Error::usage(format!("{first:?} is neither an issue nor a change"))
                    .hint("codeboost review names changes, such as 12.3f9a2b7c")
            })?;
            if rest.is_empty() {
                return Err(Error::usage("no change is named"));
            }
            Ok((Some(issue), rest))
        }
        _ => Ok((None, words)),
    }
}

pub(crate) fn approve(context: &Context, args: &ApproveArgs) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let review = &desk.loaded.review;
    let item = &args.item;
    let issue = desk.task.issue;
    if review.item(item).is_none() {
        return Err(Error::failed(format!("the plan of #{issue} has no item {item}"))
            .hint(format!("codeboost review {issue} lists them")));
    }
    let current = seen_code(review, item);
    if let Some(seen) = &args.seen {
        if seen.len() < 12 || !current.starts_with(seen.as_str()) {
            return Err(Error::not_allowed(format!(
                "the text of {item} does not end with the code {seen}: it changed since, or the code is mistyped"
            ))
            .hint(format!("read it again: codeboost review {issue} {item}")));
        }
    } else {
        if context.out.is_json() || !confirm::can_ask() {
            return Err(Error::usage("an approval needs the code of the text that you read")
                .hint(format!("codeboost review {issue} {item} ends with it; give it as --seen")));
        }
        for line in
            text::lines(review, &desk.loaded.explained, &Part::Item(item.clone()), &context.out)
        {
            context.out.line(line);
        }
        if confirm::ask(&format!("Approve {item} as it is printed above?")) != Some(true) {
            context.out.note("Nothing was recorded.");
            return Ok(Outcome::Done);
        }
    }
    let action = if args.no_change {
        Action::ConfirmNoChange { item: item.clone() }
    } else {
        Action::Approve { item: item.clone() }
    };
    Ok(desk.decide(context, vec![action], Some(item))?.1)
}

pub(crate) fn withdraw(context: &Context, args: &WithdrawArgs) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let action = match ItemId::parse(&args.what) {
        Ok(item) => Action::Withdraw { item },
        Err(_) => {
            let request = Uuid::parse(&args.what).map_err(|_| {
                let pending = desk.loaded.review.inputs.notes.iter().filter(|n| is_pending(n));
                let error = Error::usage("neither an item nor a change request");
                pending.fold(error, |error, note| {
                    error.hint(format!("pending for {}: {}", note.item, note.made.decision))
                })
            })?;
            Action::WithdrawRequest { request }
        }
    };
    Ok(desk.decide(context, vec![action], None)?.1)
}

pub(crate) fn assign(context: &Context, args: &AssignArgs) -> Result {
    on_changes(context, &args.changes, |segment, key| Action::Assign {
        segment,
        key,
        item: args.to.clone(),
    })
}

pub(crate) fn accept(context: &Context, args: &ChangesArgs) -> Result {
    on_changes(context, &args.changes, |segment, key| Action::Accept { segment, key })
}

pub(crate) fn unresolve(context: &Context, args: &ChangesArgs) -> Result {
    on_changes(context, &args.changes, |segment, key| Action::Unresolve { segment, key })
}

pub(crate) fn acknowledge(context: &Context, args: &AcknowledgeArgs) -> Result {
    on_changes(context, &args.changes, |segment, key| Action::Acknowledge {
        segment,
        key,
        tag: args.tag.clone(),
    })
}

fn on_changes(
    context: &Context,
    words: &[String],
    action: impl Fn(u32, SegmentKey) -> Action,
) -> Result {
    let (issue, names) = split_issue(words)?;
    let desk = Desk::open(context, issue)?;
    let changes = desk.changes(names)?;
    let actions = changes.into_iter().map(|(segment, key)| action(segment, key)).collect();
    Ok(desk.decide(context, actions, None)?.1)
}

pub(crate) fn request(context: &Context, args: &NoteArgs) -> Result {
    note(context, args, |item, at, lines, text| {
        let (segment, key) = at.unzip();
        let (from, to) = lines.unzip();
        Action::RequestChange { item, segment, key, from, to, text }
    })
}

pub(crate) fn ask(context: &Context, args: &NoteArgs) -> Result {
    note(context, args, |item, at, lines, text| {
        let (segment, key) = at.unzip();
        let (from, to) = lines.unzip();
        Action::Ask { item, segment, key, from, to, text }
    })
}

fn note(
    context: &Context,
    args: &NoteArgs,
    action: impl Fn(ItemId, Option<(u32, SegmentKey)>, Option<(u64, u64)>, String) -> Action,
) -> Result {
    let desk = Desk::open(context, args.issue)?;
    let text = if args.text == "-" {
        let mut text = String::new();
        std::io::stdin()
            .take(1 << 20)
            .read_to_string(&mut text)
            .map_err(|error| Error::from_error(&error).context("can't read the text"))?;
        text.trim_end().to_owned()
    } else {
        args.text.clone()
    };
    if text.trim().is_empty() {
        return Err(Error::usage("the text is empty"));
    }
    let at = args.change.as_ref().map(|name| desk.change(name)).transpose()?;
    let action = action(args.item.clone(), at, args.lines, text);
    Ok(desk.decide(context, vec![action], None)?.1)
}
