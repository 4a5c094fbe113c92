//! The pages around the reviews: one shell, one file a page, no script.

use minijinja::{Value, context};
use serde::Serialize;

use crate::embedded::SITE_STYLES;
use crate::page::{environment, style};
use crate::script;

/// What the site shows.
#[derive(Debug, Clone, Serialize)]
pub struct Site {
    /// Name of the repository, for people.
    pub repository: String,
    /// The open issues of GitHub; `None` where the forge has no list of them.
    pub issues: Option<Issues>,
    /// The newest task of each issue, by issue.
    pub tasks: Vec<TaskRow>,
    /// What `doctor` found.
    pub checks: Vec<CheckRow>,
    /// Every setting, in order.
    pub settings: Vec<Setting>,
    /// RFC 3339 UTC; empty when nothing was recorded yet.
    pub rendered_at: String,
    /// Name and version of the program.
    pub generator: String,
}

/// Open issues, as they were read last.
#[derive(Debug, Clone, Serialize)]
pub struct Issues {
    /// `fresh`, `stale` or `unavailable`.
    pub state: &'static str,
    /// `owner/name`.
    pub repository: String,
    /// RFC 3339 UTC; `None` when they were never read.
    pub taken_at: Option<String>,
    /// Why they are not fresh.
    pub why: Option<String>,
    /// Which first.
    pub rows: Vec<IssueRow>,
    /// How many more there are.
    pub more: usize,
}

/// One open issue.
#[derive(Debug, Clone, Serialize)]
pub struct IssueRow {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its points.
    pub score: u64,
    /// Where they come from.
    pub reasons: Vec<String>,
    /// Whether its words may be followed.
    pub trusted: bool,
    /// One word for that.
    pub trust: String,
    /// Why not; `None` when they may.
    pub why_not: Option<String>,
}

/// One task.
#[derive(Debug, Clone, Serialize)]
pub struct TaskRow {
    /// Its issue.
    pub issue: u64,
    /// The issue's title.
    pub title: String,
    /// Where it stands, in words.
    pub state: String,
    /// Why it stands there.
    pub reason: String,
    /// Whether it waits for a person.
    pub waits: bool,
    /// Whether it is over.
    pub closed: bool,
    /// What forbids its merge; `None` while there is no review.
    pub blockers: Option<usize>,
    /// Its review, from the site's folder.
    pub review_link: Option<String>,
    /// Why there is no review.
    pub why_no_review: Option<String>,
    /// The page of its plan, from the site's folder.
    pub plan_link: Option<String>,
    /// The command that goes on.
    pub next: Option<String>,
    /// Revisions of its plan, oldest first.
    pub plans: Vec<PlanRow>,
}

/// One revision of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlanRow {
    /// Its number.
    pub revision: u64,
    /// How many items it has.
    pub items: usize,
    /// Who made it, and when.
    pub made: String,
    /// Whether it was approved.
    pub approved: bool,
    /// The first digits of its digest.
    pub digest: String,
}

/// One thing that `doctor` looked at.
#[derive(Debug, Clone, Serialize)]
pub struct CheckRow {
    /// What.
    pub name: String,
    /// `ok`, `missing`, `warning` or `broken`.
    pub state: &'static str,
    /// What was found.
    pub found: String,
    /// Which feature needs it.
    pub needed_for: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// One setting.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its dotted name.
    pub name: String,
    /// Its value.
    pub value: String,
}

const PAGES: [&str; 7] = ["Issues", "Plans", "Queue", "Review", "Lessons", "Learning", "Settings"];

/// The pages: file name and content, in the order of the menu.
///
/// The same site gives the same bytes.
///
/// # Panics
/// Never: the template is part of the program, and a test draws every page.
#[must_use]
pub fn pages(site: &Site) -> Vec<(String, String)> {
    let style = style(true, SITE_STYLES);
    let policy = format!(
        "default-src 'none'; style-src '{}'; font-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        script::hash(&style)
    );
    let revisions: Vec<(u64, usize)> =
        site.tasks.iter().map(|task| (task.issue, task.plans.len())).collect();
    let chart = chart(&revisions).map(Value::from_safe_string);
    let facts = value(&serde_json::to_value(site).expect("plain data serializes"));
    let environment = environment();
    let template = environment.get_template("site.html").expect("embedded templates parse");
    PAGES
        .iter()
        .map(|page| {
            let menu: Vec<(&str, String)> =
                PAGES.iter().map(|page| (*page, format!("{}.html", page.to_lowercase()))).collect();
            let html = template
                .render(context! {
                    title => format!("{page} · codeboost"),
                    policy => policy.clone(),
                    style => Value::from_safe_string(style.clone()),
                    fonts => true,
                    page => *page,
                    menu => menu,
                    chart => chart.clone(),
                    site => facts.clone(),
                })
                .expect("embedded templates render");
            (format!("{}.html", page.to_lowercase()), html)
        })
        .collect()
}

fn value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(is) => Value::from(*is),
        Json::Number(n) => Value::from(n.as_u64().unwrap_or_default()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(all) => Value::from(all.iter().map(value).collect::<Vec<_>>()),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(name, json)| (name.as_str(), value(json))))
        }
    }
}

/// Bars by task number, as an SVG element; `None` when there is nothing to draw. Of many tasks the
/// last forty are drawn. Nothing but numbers goes into it.
fn chart(values: &[(u64, usize)]) -> Option<String> {
    const HEIGHT: usize = 120;
    const STEP: usize = 28;
    const LEFT: usize = 28;
    let values = &values[values.len().saturating_sub(40)..];
    let most = values.iter().map(|(_, n)| *n).max().filter(|most| *most > 0)?;
    let width = LEFT + values.len() * STEP + 8;
    let mut out = format!(
        "<svg class=\"chart\" width=\"{width}\" height=\"{}\" role=\"img\" \
         aria-label=\"Plan revisions by task\">",
        HEIGHT + 36
    );
    for (value, y) in [(most, 12), (0, 12 + HEIGHT)] {
        out.push_str(&format!(
            "<path d=\"M{LEFT} {y}H{width}\"/><text x=\"{}\" y=\"{}\" class=\"axis\">{value}</text>",
            LEFT - 6,
            y + 4
        ));
    }
    for (n, (issue, value)) in values.iter().enumerate() {
        let (x, height) = (LEFT + 6 + n * STEP, value * HEIGHT / most);
        out.push_str(&format!(
            "<rect x=\"{x}\" y=\"{}\" width=\"16\" height=\"{height}\"><title>#{issue}: {value}</title></rect>\
             <text x=\"{}\" y=\"{}\">{issue}</text>",
            12 + HEIGHT - height,
            x + 8,
            HEIGHT + 28
        ));
    }
    out.push_str("</svg>");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(title: &str) -> Site {
        Site {
            issues: None,
            repository: title.to_owned(),
            tasks: vec![TaskRow {
                issue: 412,
                title: title.to_owned(),
                state: "in review".to_owned(),
                reason: title.to_owned(),
                waits: true,
                closed: false,
                blockers: Some(2),
                review_link: Some("../tasks/412/review.html".to_owned()),
                why_no_review: None,
                plan_link: None,
                next: Some("codeboost run 412".to_owned()),
                plans: Vec::new(),
            }],
            checks: Vec::new(),
            settings: vec![Setting { name: "remote".to_owned(), value: title.to_owned() }],
            rendered_at: "2026-11-30T12:00:00Z".to_owned(),
            generator: "codeboost 0".to_owned(),
        }
    }

    #[test]
    fn each_page_names_itself_and_links_the_others() {
        let all = pages(&site("Retries"));
        assert_eq!(all.len(), 7);
        for (name, html) in &all {
            assert_eq!(html.matches("aria-current=\"page\"").count(), 1, "{name}");
            assert_eq!(
                html.matches("href=\"plans.html\"").count(),
                usize::from(name != "plans.html")
            );
            assert!(!html.contains("<script"), "{name}");
        }
    }

    #[test]
    fn hostile_text_is_text() {
        for (name, html) in pages(&site("<img src=x onerror=alert(1)>\u{202e}\"'")) {
            assert!(!html.contains("<img"), "{name}");
            assert!(!html.contains('\u{202e}'), "{name}");
        }
    }

    #[test]
    fn bars_reach_as_high_as_their_values() {
        assert_eq!(chart(&[]), None);
        assert_eq!(chart(&[(1, 0)]), None);
        let drawn = chart(&[(1, 1), (2, 4)]).unwrap();
        assert!(
            drawn.contains("height=\"30\"><title>#1: 1")
                && drawn.contains("height=\"120\"><title>#2: 4")
        );
    }
}
