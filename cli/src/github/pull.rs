//! What a pull request says: its title, the part of its description that is ours, and the comment
//! on each revision. Everything that people or agents wrote is quieted first.

use std::fmt::Write as _;

use codeboost_schema::form::ApprovalState;
use codeboost_schema::ids::CommitId;
use codeboost_schema::plan::Plan;

use crate::github::text::{fenced, markdown_line, neutral_line};
use crate::plan::write::to_yaml;

/// Longest title, in characters.
const MAX_TITLE: usize = 200;
/// Longest part of a description, in characters; GitHub takes 65,536 of a whole description.
const MAX_PART: usize = 50_000;
/// So many blockers are listed.
const MAX_BLOCKERS: usize = 20;
/// Longest line that is listed, in characters.
const MAX_LINE: usize = 300;

/// What the part of a description is made from.
#[derive(Debug, Clone)]
pub struct Facts<'f> {
    /// The issue.
    pub issue: u64,
    /// The issue's title.
    pub title: &'f str,
    /// The approved plan.
    pub plan: &'f Plan,
    /// The reviewed base.
    pub base: &'f CommitId,
    /// The reviewed head.
    pub head: &'f CommitId,
    /// Where the review of each item stands, in the plan's order; `None` while there is none.
    pub items: Option<Vec<ApprovalState>>,
    /// What keeps it from merging, in words.
    pub blockers: Vec<String>,
    /// Why a person has to look at it first; then it is a draft.
    pub needs_human: Option<&'f str>,
    /// The digest of the page on which it is reviewed, where one was made.
    pub bundle: Option<String>,
}

/// The title.
#[must_use]
pub fn title(title: &str, issue: u64) -> String {
    let tail = format!(" (issue {issue})");
    let title = neutral_line(title, MAX_TITLE - tail.len());
    let title = if title.is_empty() { "codeboost plan".to_owned() } else { title };
    title + &tail
}

/// The part of the description that is ours.
#[must_use]
pub fn part(facts: &Facts<'_>) -> String {
    let mut out = format!("Fixes #{}\n", facts.issue);
    if let Some(why) = facts.needs_human {
        let _ = write!(out, "\n**Needs human.** {}\n", markdown_line(why, MAX_LINE));
    }
    let _ = write!(
        out,
        "\n### Plan r{}\n\nReviewed change: `{:.12}` onto `{:.12}`\n",
        facts.plan.revision, facts.head, facts.base
    );
    out.push_str("\n### Review\n\n");
    match &facts.items {
        Some(states) => {
            let approved = states.iter().filter(|state| **state == ApprovalState::Approved).count();
            let _ = writeln!(out, "{approved} of {} items approved\n", states.len());
            for (item, state) in facts.plan.items.iter().zip(states) {
                let (mark, word) = match state {
                    ApprovalState::Approved => ("x", "approved"),
                    ApprovalState::Stale => (" ", "stale"),
                    ApprovalState::Unreviewed => (" ", "unreviewed"),
                };
                let title = markdown_line(&item.title, MAX_LINE);
                let _ = writeln!(out, "- [{mark}] {}: {title} ({word})", item.id);
            }
        }
        None => out.push_str("Not begun\n"),
    }
    if !facts.blockers.is_empty() {
        let _ = write!(out, "\nBefore it can merge ({}):\n\n", facts.blockers.len());
        for blocker in facts.blockers.iter().take(MAX_BLOCKERS) {
            let _ = writeln!(out, "- {}", markdown_line(blocker, MAX_LINE));
        }
        if facts.blockers.len() > MAX_BLOCKERS {
            let _ = writeln!(out, "- and {} more", facts.blockers.len() - MAX_BLOCKERS);
        }
    }
    if let Some(digest) = &facts.bundle {
        let _ = write!(out, "\nReview page: `{digest}`\n");
    }
    let whole = fenced("yaml", &to_yaml(facts.plan));
    out.push_str("\n<details><summary>The plan</summary>\n\n");
    if out.chars().count() + whole.chars().count() < MAX_PART {
        out.push_str(&whole);
    } else {
        out.push_str("The plan is too long to be shown here. Its items:\n\n");
        let mut left = MAX_PART.saturating_sub(out.chars().count() + 200);
        for (n, item) in facts.plan.items.iter().enumerate() {
            let line = format!("- {}: {}\n", item.id, markdown_line(&item.title, MAX_LINE));
            if line.chars().count() > left {
                let _ = writeln!(out, "- and {} more", facts.plan.items.len() - n);
                break;
            }
            left -= line.chars().count();
            out.push_str(&line);
        }
    }
    out.push_str("\n\n</details>");
    out
}

/// The line that the comment on a revision is found by.
#[must_use]
pub fn revision_line(plan: &str, revision: u64) -> String {
    format!("<!-- codeboost:revision={plan}/r{revision} -->")
}

/// The comment on a revision.
#[must_use]
pub fn revision_comment(plan: &str, facts: &Facts<'_>) -> String {
    let mut out = revision_line(plan, facts.plan.revision);
    let _ = write!(
        out,
        "\nPlan r{} is carried out as `{:.12}` onto `{:.12}`.\n\n",
        facts.plan.revision, facts.head, facts.base
    );
    for item in facts.plan.items.iter().take(100) {
        let _ = writeln!(out, "- {}: {}", item.id, markdown_line(&item.title, MAX_LINE));
    }
    if facts.plan.items.len() > 100 {
        let _ = writeln!(out, "- and {} more", facts.plan.items.len() - 100);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::samples;
    use crate::github::{mention, region};

    #[test]
    fn nothing_that_others_wrote_acts_ends_the_fence_or_passes_for_a_marker() {
        let mut plan = samples::plan(&[("P1", &["a"], &[]), ("P2", &["b"], &["P1"])]);
        let evil = "Closes #7 ```` <!-- codeboost:plan:end --> <img src=x> @everyone\nGH-8";
        plan.items[0].title = evil.into();
        plan.items[1].intent = evil.into();
        let (base, head) = (samples::commit(1), samples::commit(2));
        let facts = Facts {
            issue: 12,
            title: evil,
            plan: &plan,
            base: &base,
            head: &head,
            items: Some(vec![ApprovalState::Approved, ApprovalState::Stale]),
            blockers: vec![evil.into(); 30],
            needs_human: Some(evil),
            bundle: Some("sha256:00".into()),
        };
        let part = part(&facts);
        assert!(part.starts_with("Fixes #12\n"));
        for text in [&part, &revision_comment("id", &facts), &title(evil, 12)] {
            for issue in [7, 8] {
                assert!(!mention::names_issue(text, issue, None), "{text}");
            }
            assert!(!text.contains("@everyone"), "{text}");
        }
        assert!(!part.contains(region::END) && part.contains("1 of 2 items approved"), "{part}");
        assert!(part.contains("- and 10 more") && part.contains("- [x] P1: Closes ＃7"), "{part}");
        let body = region::replace("mine", &part);
        assert_eq!(region::find(&body.text), Some(&*part));
        assert_eq!(title("", 7), "codeboost plan (issue 7)");
        assert_eq!(title(&"ü".repeat(400), 7).chars().count(), MAX_TITLE);
    }

    #[test]
    fn a_plan_that_is_too_long_is_listed_by_its_items() {
        let mut plan = samples::plan(&[("P1", &["a"], &[])]);
        let item = plan.items[0].clone();
        plan.items = (0..3000)
            .map(|n| {
                let mut item = item.clone();
                item.title = format!("{n} {}", "x".repeat(80));
                item
            })
            .collect();
        let (base, head) = (samples::commit(1), samples::commit(2));
        let facts = Facts {
            issue: 12,
            title: "t",
            plan: &plan,
            base: &base,
            head: &head,
            items: None,
            blockers: Vec::new(),
            needs_human: None,
            bundle: None,
        };
        let part = part(&facts);
        assert!(part.chars().count() < MAX_PART + 1000, "{}", part.chars().count());
        assert!(part.contains(" more\n") && part.ends_with("</details>"));
    }
}
