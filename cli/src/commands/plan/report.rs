//! Problems of a plan as people and programs read them.

use codeboost_schema::ids::Digest;
use codeboost_schema::plan::Plan;
use serde::Serialize;

use crate::context::Context;
use crate::output::{Style, counted, plain_line};
use crate::plan::problem::{Problem, Severity};
use crate::plan::source::{Place, Source};

/// A plan, or what should be one, with its problems.
#[derive(Debug)]
pub(in crate::commands) struct Report<'a> {
    /// What the input is called.
    pub(in crate::commands) name: &'a str,
    /// Its text.
    pub(in crate::commands) source: &'a Source,
    /// The plan, when it could be read.
    pub(in crate::commands) plan: Option<&'a Plan>,
    /// By place.
    pub(in crate::commands) problems: &'a [Problem],
}

#[derive(Serialize)]
struct Json<'a> {
    file: &'a str,
    issue: Option<u64>,
    revision: Option<u64>,
    digest: Option<Digest>,
    failures: usize,
    warnings: usize,
    problems: &'a [Problem],
}

impl Report<'_> {
    pub(in crate::commands) fn n_failures(&self) -> usize {
        self.problems.iter().filter(|problem| problem.is_failure()).count()
    }

    /// Prints it as the result of the command.
    pub(in crate::commands) fn print(&self, context: &Context) {
        let failures = self.n_failures();
        let warnings = self.problems.len() - failures;
        if context.out.is_json() {
            context.out.json(&Json {
                file: self.name,
                issue: self.plan.map(|plan| plan.issue),
                revision: self.plan.map(|plan| plan.revision),
                digest: self.plan.map(Plan::digest),
                failures,
                warnings,
                problems: self.problems,
            });
            return;
        }
        for problem in self.problems {
            self.print_problem(context, problem);
        }
        context.out.line(self.summary(failures, warnings));
    }

    fn summary(&self, failures: usize, warnings: usize) -> String {
        let mut parts = Vec::new();
        if failures > 0 {
            parts.push(counted(failures as u64, "failure"));
        }
        if warnings > 0 {
            parts.push(counted(warnings as u64, "warning"));
        }
        let name = plain_line(self.name);
        let Some(plan) = self.plan else {
            return format!("{name}: {}; no plan could be read from it", parts.join(", "));
        };
        let n_files: usize = plan.items.iter().map(|item| item.files.len()).sum();
        let found = if parts.is_empty() { "no problems".into() } else { parts.join(", ") };
        format!(
            "{name}: {found}; plan for issue #{}, {}, {}",
            plan.issue,
            counted(plan.items.len() as u64, "item"),
            counted(n_files as u64, "file"),
        )
    }

    fn print_problem(&self, context: &Context, problem: &Problem) {
        let out = &context.out;
        let (label, style) = match problem.severity {
            Severity::Failure => ("failure", Style::Error),
            Severity::Warning => ("warning", Style::Warning),
        };
        let label = out.paint(style, &format!("{label}[{}]:", problem.code));
        out.line(format!("{label} {}", plain_line(&problem.message)));
        let name = plain_line(self.name);
        let of = self.thing(problem).map_or(String::new(), |thing| format!("  ({thing})"));
        match problem.place {
            Some(place) => {
                let arrow = out.paint(Style::Muted, "-->");
                out.line(format!("  {arrow} {name}:{}:{}{of}", place.line, place.column));
                self.print_excerpt(context, place, style);
            }
            None => out.line(format!("  {} {name}{of}", out.paint(Style::Muted, "-->"))),
        }
        out.line(format!("   {} {}", out.paint(Style::Muted, "rule:"), plain_line(&problem.rule)));
        out.line(format!("   {} {}", out.paint(Style::Accent, "mend:"), plain_line(&problem.mend)));
        out.line("");
    }

    /// The item and file of a pointer, for people.
    fn thing(&self, problem: &Problem) -> Option<String> {
        let mut parts = problem.pointer.split('/').skip(1);
        let (Some("items"), Some(nth)) = (parts.next(), parts.next()) else {
            return None;
        };
        let nth: usize = nth.parse().ok()?;
        let item = match self.plan.and_then(|plan| plan.items.get(nth)) {
            Some(item) => item.id.to_string(),
            None => format!("item {}", nth + 1),
        };
        let (list, nth) = (parts.next(), parts.next().and_then(|nth| nth.parse::<usize>().ok()));
        Some(match (list, nth) {
            (Some("files"), Some(nth)) => format!("{item}, file {}", nth + 1),
            (Some("acceptance"), Some(nth)) => format!("{item}, acceptance {}", nth + 1),
            _ => item,
        })
    }

    fn print_excerpt(&self, context: &Context, place: Place, style: Style) {
        /// So many characters are shown before and after what is meant.
        const BEFORE: usize = 50;
        const AFTER: usize = 60;
        let line = self.source.line(place.line);
        if line.trim().is_empty() {
            return;
        }
        let start = place.column - 1;
        let skipped = start.saturating_sub(BEFORE);
        let take = |from: usize, to: usize| -> String {
            plain_line(&line.chars().skip(from).take(to.saturating_sub(from)).collect::<String>())
        };
        let end = (start + place.width).min(start + AFTER);
        let before = take(skipped, start);
        let meant = take(start, end);
        let after = take(end, start + AFTER.max(place.width.min(AFTER)));
        let more = line.chars().nth(start + AFTER).is_some();
        let head = if skipped > 0 { "…" } else { "" };
        let tail = if more { "…" } else { "" };
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let bar = context.out.paint(Style::Muted, "|");
        context.out.line(format!(" {gutter} {bar}"));
        context.out.line(format!(" {number} {bar} {head}{before}{meant}{after}{tail}"));
        let blank = " ".repeat((head.chars().count()) + before.chars().count());
        let carets = "^".repeat(meant.chars().count().max(1));
        let carets = context.out.paint(style, &carets);
        context.out.line(format!(" {gutter} {bar} {blank}{carets}"));
    }
}
