//! `codeboost review`: the review of a task for terminals and programs.

use clap::Args;
use codeboost_schema::ids::ItemId;

use crate::bundle::text::{self, Part};
use crate::commands::open;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::output::Style;
use crate::review::sources::Reading;
use crate::review::{read, seen_code};

/// Arguments of `review`.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The task's issue; may be left out when one task is open
    #[arg(value_name = "ISSUE")]
    first: Option<String>,
    /// An item such as P1, or ambiguous, unplanned or accepted: with all its code
    #[arg(value_name = "ROW")]
    second: Option<String>,
}

pub(crate) fn run(context: &Context, args: &ReviewArgs) -> Result {
    let (issue, row) = match (&args.first, &args.second) {
        (Some(first), second) => match (first.parse::<u64>(), second) {
            (Ok(issue), second) => (Some(issue), second.as_deref()),
            (Err(_), None) => (None, Some(first.as_str())),
            (Err(_), Some(_)) => return Err(Error::usage(format!("{first:?} is no issue"))),
        },
        (None, _) => (None, None),
    };
    let part = match row {
        None => Part::Overview,
        Some("ambiguous") => Part::Ambiguous,
        Some("unplanned") => Part::Unplanned,
        Some("accepted") => Part::Accepted,
        Some(item) => Part::Item(ItemId::parse(item).map_err(|error| {
            Error::usage(error.to_string()).hint("or ambiguous, unplanned, accepted")
        })?),
    };
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(issue))?;
    let task = read::follow(&repository, &store, task)?;
    let reading = Reading::of(&repository, &store, &task)?;
    if context.out.is_json() {
        let loaded = reading.loaded()?;
        context.out.json(&text::report(&loaded.review, &loaded.explained));
        return Ok(Outcome::Done);
    }
    if let Part::Item(item) = &part
        && reading.sources().plan.item(item).is_none()
    {
        return Err(Error::failed(format!("the plan of #{} has no item {item}", task.issue))
            .hint(format!("codeboost review {} lists them", task.issue)));
    }
    let out = &context.out;
    let painted = out.paint(Style::Strong, "painted");
    let lines: Vec<String> = reading.known("review", &(row, painted), |loaded| {
        let review = &loaded.review;
        let mut lines = text::lines(review, &loaded.explained, &part, out);
        if let Part::Item(item) = &part {
            let code = &seen_code(review, item)[..12];
            let command = format!("codeboost approve {} {item} --seen {code}", task.issue);
            lines.extend([String::new(), out.paint(Style::Muted, &command)]);
        }
        lines
    })?;
    for line in lines {
        out.line(line);
    }
    Ok(Outcome::Done)
}
