//! `codeboost render --site`: the pages around the reviews, in one shell.

use std::collections::BTreeMap;

use codeboost_render::site::{
    CheckRow, IssueRow, Issues, PlanRow, Setting, Site, TaskRow as SiteTask, pages,
};
use serde::Serialize;

use crate::commands::doctor::{self, State};
use crate::commands::issues::{self, Freshness};
use crate::commands::plan::render as plan_page;
use crate::commands::render::{self, name_of};
use crate::commands::{next, open};
use crate::config::ForgeKind;
use crate::context::{Context, time_text};
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::git::repository::Repository;
use crate::github::issues::Trust;
use crate::output::counted;
use crate::review::sources::Reading;
use crate::stage;
use crate::store::{Store, TaskRow};

#[derive(Serialize)]
struct Made {
    path: String,
    wrote: usize,
    pages: usize,
}

pub(super) fn run(context: &Context) -> Result {
    let (repository, store) = open(context)?;
    // Of several tasks of one issue the newest has the pages of its folder.
    let rows = store.read(|tx| tx.tasks())?;
    let rows: BTreeMap<u64, TaskRow> = rows.into_iter().map(|row| (row.issue, row)).collect();
    let folder = repository.site_folder()?;
    let mut tasks = Vec::new();
    let mut newest = String::new();
    for task in rows.values() {
        newest = newest.max(task.changed_at.clone());
        tasks.push(task_row(context, &repository, &store, task)?);
    }
    let site = Site {
        repository: name_of(&repository),
        issues: issues(context, &repository, &store)?,
        tasks,
        checks: doctor::checks(context)
            .into_iter()
            .map(|check| CheckRow {
                name: check.name.to_owned(),
                state: match check.state {
                    State::Ok => "ok",
                    State::Missing => "missing",
                    State::Warning => "warning",
                    State::Broken => "broken",
                },
                found: check.found,
                needed_for: check.needed_for.to_owned(),
                hint: check.hint,
            })
            .collect(),
        settings: settings(&serde_json::to_value(repository.config()?).unwrap_or_default()),
        rendered_at: context.source_date_epoch().map_or(newest, time_text),
        generator: crate::bundle::GENERATOR.to_owned(),
    };
    let mut wrote = 0;
    let all = pages(&site);
    for (name, html) in &all {
        wrote += usize::from(stage::write_if_changed(&folder.join(name), html.as_bytes())?);
    }
    let path = folder.join("review.html").display().to_string();
    if context.out.is_json() {
        context.out.json(&Made { path, wrote, pages: all.len() });
    } else {
        context.out.line(path);
        context.out.note(format!("{} of {} written", wrote, counted(all.len() as u64, "page")));
    }
    Ok(Outcome::Done)
}

/// So many issues are on the page.
const MAX_ISSUES: usize = 200;

/// The open issues as they were read last; nothing is asked of anybody for a page.
fn issues(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
) -> Result<Option<Issues>> {
    let config = repository.config()?;
    if config.forge != ForgeKind::Github {
        return Ok(None);
    }
    let slug = issues::slug(repository, &config)?;
    let now = context.source_date_epoch().unwrap_or_else(|| context.now());
    let listing = issues::listing(store, &slug, now)?;
    let more = listing.issues.len().saturating_sub(MAX_ISSUES);
    let rows = listing.issues.into_iter().take(MAX_ISSUES).map(|row| IssueRow {
        number: row.number,
        title: row.title,
        score: row.rank.score,
        reasons: row.rank.reasons,
        trusted: row.trust.is_given(),
        trust: row.trust.word().to_owned(),
        why_not: match row.trust {
            Trust::Untrusted { why } | Trust::Unknown { why } => Some(why),
            Trust::Collaborator | Trust::Explicit => None,
        },
    });
    Ok(Some(Issues {
        state: match listing.state {
            Freshness::Fresh => "fresh",
            Freshness::Stale => "stale",
            Freshness::Unavailable => "unavailable",
        },
        repository: listing.repository,
        taken_at: listing.taken_at,
        why: listing.why,
        rows: rows.collect(),
        more,
    }))
}

/// A task with its own pages brought up to date.
fn task_row(
    context: &Context,
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
) -> Result<SiteTask> {
    let plans = store.read(|tx| tx.plans(task.id))?;
    let mut plan_link = None;
    if !plans.is_empty() {
        plan_page::make(context, repository, store, task, None)?;
        plan_link = Some(format!("../tasks/{}/plan.html", task.issue));
    }
    let has_review = task.base_commit_id != task.head_commit_id
        && plans.iter().any(|plan| plan.approval.is_some());
    let mut review_link = None;
    let mut why_no_review = None;
    let mut n_blockers = None;
    if has_review {
        let made = Reading::of(repository, store, task)
            .map_err(crate::error::Error::from)
            .and_then(|reading| {
                let limits = reading.sources().beside.config.page;
                render::make(context, repository, store, &reading, limits, None)?;
                Ok(reading.blockers()?.len())
            });
        match made {
            Ok(n) => {
                n_blockers = Some(n);
                review_link = Some(format!("../tasks/{}/review.html", task.issue));
            }
            Err(error) => why_no_review = Some(error.chain()),
        }
    } else {
        why_no_review = Some(if plans.iter().any(|plan| plan.approval.is_some()) {
            "Its branch has no commit yet.".to_owned()
        } else {
            "No revision of its plan is approved yet.".to_owned()
        });
    }
    Ok(SiteTask {
        issue: task.issue,
        title: task.title.clone(),
        state: task.state.word().replace('_', " "),
        reason: task.reason.clone(),
        waits: task.state.waits_for_person(),
        closed: task.state.is_closed(),
        blockers: n_blockers,
        review_link,
        why_no_review,
        plan_link,
        next: next::next(repository, store, task, n_blockers)?,
        plans: plans
            .iter()
            .map(|row| PlanRow {
                revision: row.plan.revision,
                items: row.plan.items.len(),
                made: format!("{}, {}", row.made_by, row.made_at),
                approved: row.approval.is_some(),
                digest: row.digest.hex()[..12].to_owned(),
            })
            .collect(),
    })
}

/// Every setting by its dotted name.
fn settings(config: &serde_json::Value) -> Vec<Setting> {
    fn walk(name: &str, value: &serde_json::Value, out: &mut Vec<Setting>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (field, value) in fields {
                    let name =
                        if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                    walk(&name, value, out);
                }
            }
            value => {
                let list = value.as_array().map(|all| {
                    let words =
                        all.iter().map(|one| one.as_str().map_or(one.to_string(), str::to_owned));
                    words.collect::<Vec<_>>().join(", ")
                });
                let value = match (value.as_str(), list) {
                    (Some(text), _) => text.to_owned(),
                    (_, Some(list)) if !list.is_empty() => list,
                    _ if value.is_null() || value.is_array() => "–".to_owned(),
                    _ => value.to_string(),
                };
                out.push(Setting { name: name.to_owned(), value });
            }
        }
    }
    let mut out = Vec::new();
    walk("", config, &mut out);
    out
}
