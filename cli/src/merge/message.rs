//! The message of the commit that lands.

use std::fmt::Write as _;

use codeboost_schema::plan::Plan;

use crate::config::MergeMethod;
use crate::github::text::neutral_line;

/// Longest first line, in characters.
const MAX_SUBJECT: usize = 100;
/// Longest line of an item, in characters.
const MAX_ITEM: usize = 140;

/// Writes the message: what lands, item by item, with the trailers of the plan.
///
/// Text of people and agents is neutralized and kept to one line, so that nothing in it closes an
/// issue, notifies anyone or passes for a trailer. A merge commit's items have their own commits
/// with their own trailers; a squash commit lists them.
pub(super) fn message(method: MergeMethod, issue: u64, title: &str, plan: &Plan) -> String {
    let subject = match method {
        MergeMethod::Merge => format!("Merge issue {issue}: {title}"),
        MergeMethod::Squash => format!("{title} (issue {issue})"),
    };
    let mut out = match method {
        MergeMethod::Merge => neutral_line(&subject, MAX_SUBJECT),
        // The number stays, whatever is cut.
        MergeMethod::Squash => {
            let tail = format!(" (issue {issue})");
            neutral_line(title, MAX_SUBJECT - tail.len()) + tail.as_str()
        }
    };
    out.push_str("\n\n");
    for item in &plan.items {
        let _ =
            writeln!(out, "{}", neutral_line(&format!("{}: {}", item.id, item.title), MAX_ITEM));
    }
    out.push('\n');
    if method == MergeMethod::Squash {
        for item in &plan.items {
            let _ = writeln!(out, "Plan-Item: {}", item.id);
        }
    }
    let _ = writeln!(out, "Plan-Revision: r{}", plan.revision);
    out
}
