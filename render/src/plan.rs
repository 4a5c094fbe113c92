//! The page of a plan: a document that reads without a script, with its data for the script that
//! takes comments, answers and the approval.

use codeboost_schema::canonical;
use codeboost_schema::ids::{Digest, Uuid};
use codeboost_schema::plan::{CheckKind, FileKind, Plan};
use minijinja::{Value, context};
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::graph;
use crate::page::{Part, Prepared, Skin, digest};
use crate::{script, text};

/// What the page of one plan shows.
#[derive(Debug, Clone)]
pub struct PlanPage {
    /// Name of the repository, for people.
    pub repository: String,
    /// Title of the issue; empty when unknown.
    pub title: String,
    /// The newest revision.
    pub plan: Plan,
    /// How it stands, for people: `draft`, `approved by …`.
    pub standing: String,
    /// Whether it is approved.
    pub approved: bool,
    /// Digest of the text that threads refer to.
    pub snapshot: Digest,
    /// Whether the text is too large for comments.
    pub too_large: bool,
    /// The parts of the plan in that text: a JSON pointer, first and last line.
    pub blocks: Vec<(String, (u64, u64))>,
    /// The newest answer to each question, by its place.
    pub answers: Vec<Option<PlanAnswer>>,
    /// Every command of the plan, each once.
    pub commands: Vec<PlanCommand>,
    /// Failures and warnings, in the order of the plan.
    pub problems: Vec<PlanProblem>,
    /// Review threads, in the order in which they were opened.
    pub threads: Vec<PlanThread>,
    /// Suggested edits that are open, or were until the plan changed.
    pub suggestions: Vec<PlanSuggestion>,
    /// Why nothing can be decided with this page.
    pub read_only: Option<String>,
    /// What a reader must know, such as records that could not be read.
    pub notices: Vec<String>,
    /// RFC 3339 UTC.
    pub rendered_at: String,
    /// Name and version of the program.
    pub generator: String,
}

/// An answer to a question.
#[derive(Debug, Clone, Serialize)]
pub struct PlanAnswer {
    /// The answer.
    pub text: String,
    /// Who and when.
    pub by: String,
}

/// A command of the plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlanCommand {
    /// Its arguments.
    pub argv: Vec<String>,
    /// As the plan spells it.
    pub words: String,
    /// Whether it may run already.
    pub allowed: bool,
}

/// A failure or a warning.
#[derive(Debug, Clone, Serialize)]
pub struct PlanProblem {
    /// JSON pointer into the plan.
    pub pointer: String,
    /// Whether it keeps the plan from being approved.
    pub failure: bool,
    /// What is wrong.
    pub message: String,
    /// What would mend it.
    pub mend: String,
}

/// A review thread.
#[derive(Debug, Clone, Serialize)]
pub struct PlanThread {
    /// Its id.
    pub thread: Uuid,
    /// The text that it is about.
    pub snapshot: Digest,
    /// Where that text comes from: `r2`.
    pub revision: String,
    /// First and last line.
    pub lines: (u64, u64),
    /// What was selected.
    pub quote: Option<String>,
    /// The lines that it is about, for threads of earlier revisions.
    pub context: Option<String>,
    /// Comment and replies, oldest first.
    pub said: Vec<PlanAnswer>,
    /// Whether it is done.
    pub resolved: bool,
}

/// A suggested edit.
#[derive(Debug, Clone, Serialize)]
pub struct PlanSuggestion {
    /// Its id.
    pub id: Uuid,
    /// What it does.
    pub summary: String,
    /// Why.
    pub reason: String,
    /// The item that it is about.
    pub item: String,
    /// Whether it can still be decided on.
    pub open: bool,
    /// The plan's text with it; `None` when it is stale.
    pub after: Option<String>,
    /// The plan's text as it is.
    pub before: String,
}

#[derive(Serialize)]
struct Index<'a> {
    version: u32,
    page: &'static str,
    issue: u64,
    revision: u64,
    approved: bool,
    snapshot: &'a Digest,
    too_large: bool,
    blocks: &'a [(String, (u64, u64))],
    questions: &'a [String],
    answers: &'a [Option<PlanAnswer>],
    commands: &'a [PlanCommand],
    failures: usize,
    threads: &'a [PlanThread],
    suggestions: Vec<(&'a Uuid, bool)>,
    read_only: Option<&'a str>,
    /// Of all that the document shows besides.
    document: Digest,
}

/// Draws everything of a plan's page but the form.
///
/// The same page gives the same bytes.
#[must_use]
pub fn prepare_plan(page: &PlanPage, fonts: bool) -> Prepared {
    let plan = &page.plan;
    let drawn = Drawn { page };
    let document = drawn.document();
    let failures = page.problems.iter().filter(|one| one.failure).count();
    let index = Index {
        version: 1,
        page: "plan",
        issue: plan.issue,
        revision: plan.revision,
        approved: page.approved,
        snapshot: &page.snapshot,
        too_large: page.too_large,
        blocks: &page.blocks,
        questions: &plan.questions,
        answers: &page.answers,
        commands: &page.commands,
        failures,
        threads: &page.threads,
        suggestions: page.suggestions.iter().map(|one| (&one.id, one.open)).collect(),
        read_only: page.read_only.as_deref(),
        document: canonical::digest(&serde_json::json!({
            "repository": page.repository,
            "title": page.title,
            "plan": plan,
            "standing": page.standing,
            "problems": page.problems,
            "suggestions": page.suggestions,
            "notices": page.notices,
        })),
    };
    let parts =
        vec![Part { id: "index".to_owned(), kind: "application/json", text: script::json(&index) }];
    let name = if page.title.is_empty() { &plan.summary } else { &page.title };
    Prepared {
        data_digest: digest(parts.iter().map(|part| (part.id.as_str(), part.text.as_str()))),
        parts,
        plain: document,
        title: format!("#{} {} · plan r{}", plan.issue, text::shown(name), plan.revision),
        fonts,
        skin: Skin::Plan,
    }
}

struct Drawn<'a> {
    page: &'a PlanPage,
}

impl Drawn<'_> {
    fn document(&self) -> Value {
        let page = self.page;
        let plan = &page.plan;
        let questions: Vec<Value> = plan
            .questions
            .iter()
            .enumerate()
            .map(|(n, question)| {
                context! {
                    n => n + 1,
                    text => question.as_str(),
                    block => self.block(&format!("/questions/{n}")),
                    answer => page.answers.get(n).and_then(Option::as_ref).map(|answer| {
                        context! { text => answer.text.as_str(), by => answer.by.as_str() }
                    }),
                }
            })
            .collect();
        context! {
            repository => page.repository.as_str(),
            issue => plan.issue,
            title => page.title.as_str(),
            revision => plan.revision,
            standing => page.standing.as_str(),
            summary => self.part("/summary", &plan.summary),
            graph => graph::svg(plan).map(Value::from_safe_string),
            questions => questions,
            items => (0..plan.items.len()).map(|n| self.item(n)).collect::<Vec<_>>(),
            n_files => plan.items.iter().map(|item| item.files.len()).sum::<usize>(),
            problems => self.problems(""),
            n_failures => page.problems.iter().filter(|one| one.failure).count(),
            n_warnings => page.problems.iter().filter(|one| !one.failure).count(),
            suggestions => page.suggestions.iter().map(suggestion).collect::<Vec<_>>(),
            read_only => page.read_only.as_deref(),
            notices => page.notices.clone(),
            rendered_at => page.rendered_at.as_str(),
            generator => page.generator.as_str(),
        }
    }

    fn block(&self, pointer: &str) -> Value {
        let found = self.page.blocks.iter().find(|(name, _)| name == pointer);
        Value::from(found.map_or(String::new(), |(_, (first, last))| format!("{first}-{last}")))
    }

    fn part(&self, pointer: &str, text: &str) -> Value {
        context! { text => text, block => self.block(pointer), problems => self.problems(pointer) }
    }

    /// The problems of exactly this part; those that no part has stand under "".
    fn problems(&self, part: &str) -> Vec<Value> {
        let of = |pointer: &str| -> String {
            let found = self.page.blocks.iter().map(|(name, _)| name.as_str()).find(|name| {
                pointer == *name || pointer.strip_prefix(name).is_some_and(|r| r.starts_with('/'))
            });
            found.unwrap_or_default().to_owned()
        };
        self.page
            .problems
            .iter()
            .filter(|problem| of(&problem.pointer) == part)
            .map(|problem| {
                context! {
                    failure => problem.failure,
                    message => problem.message.as_str(),
                    mend => problem.mend.as_str(),
                }
            })
            .collect()
    }

    fn item(&self, n: usize) -> Value {
        let item = &self.page.plan.items[n];
        let at = format!("/items/{n}");
        let files = item.files.iter().enumerate().map(|(k, file)| {
            let pointer = format!("{at}/files/{k}");
            context! {
                kind => match file.kind {
                    FileKind::Edit => "edit",
                    FileKind::Add => "add",
                    FileKind::Delete => "delete",
                    FileKind::Rename => "rename",
                },
                path => file.path.as_str(),
                renamed_from => file.renamed_from.as_deref(),
                change => file.change.as_str(),
                block => self.block(&pointer),
                problems => self.problems(&pointer),
            }
        });
        let checks = item.acceptance.iter().enumerate().map(|(k, check)| {
            let pointer = format!("{at}/acceptance/{k}");
            context! {
                cmd => check.kind == CheckKind::Cmd,
                text => check.text.as_str(),
                block => self.block(&pointer),
                problems => self.problems(&pointer),
            }
        });
        context! {
            id => item.id.as_str(),
            title => self.part(&format!("{at}/title"), &item.title),
            intent => self.part(&format!("{at}/intent"), &item.intent),
            files => files.collect::<Vec<_>>(),
            checks => checks.collect::<Vec<_>>(),
            depends_on => item.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(),
            depends_block => self.block(&format!("{at}/depends_on")),
            problems => self.problems(&at),
        }
    }
}

fn suggestion(one: &PlanSuggestion) -> Value {
    let lines = one.after.as_ref().map(|after| diff(&one.before, after)).unwrap_or_default();
    context! {
        id => one.id.as_str(),
        summary => one.summary.as_str(),
        reason => one.reason.as_str(),
        item => one.item.as_str(),
        open => one.open,
        lines => lines,
    }
}

/// Changed lines with one line around them.
fn diff(before: &str, after: &str) -> Vec<Value> {
    let diff = TextDiff::from_lines(before, after);
    let mut out = Vec::new();
    for (n, group) in diff.grouped_ops(1).iter().enumerate() {
        if n > 0 {
            out.push(context! { op => "…", text => "" });
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let op = match change.tag() {
                ChangeTag::Equal => " ",
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
            };
            out.push(context! { op => op, text => change.value().trim_end_matches('\n') });
        }
    }
    out
}
