//! Gathers what the page of a plan shows.

use codeboost_render::{
    PlanAnswer, PlanCommand, PlanPage, PlanProblem, PlanSuggestion, PlanThread,
};
use codeboost_schema::plan::Plan;

use crate::bundle::GENERATOR;
use crate::plan::judge::{commands, version_of};
use crate::plan::problem::{Code, Problem};
use crate::plan::text::PlanText;
use crate::plan::threads::Thread;
use crate::plan::v1::suggest::try_edit;
use crate::plan::v1::tokenize::spell;
use crate::review::plan::PlanState;
use crate::store::{PlanRow, SuggestionRow, SuggestionState};

/// The page of a task's newest revision, `row`.
///
/// `problems`: what is wrong with a plan at the task's base. `repository`: its name, for people.
#[must_use]
pub fn page_of_plan(
    state: &PlanState,
    row: &PlanRow,
    problems: impl Fn(&Plan) -> Vec<Problem>,
    repository: String,
    read_only: Option<String>,
    rendered_at: String,
) -> PlanPage {
    let plan = &row.plan;
    let text = PlanText::of(plan);
    let by = |by: &str, at: &str| format!("{by}, {}", day(at));
    PlanPage {
        repository,
        title: state.task.title.clone(),
        standing: standing(state, row),
        approved: row.approval.is_some(),
        snapshot: text.snapshot(),
        too_large: text.is_too_large(),
        answers: plan
            .questions
            .iter()
            .map(|question| {
                let found = state.answers.iter().find(|answer| answer.question == *question)?;
                let by = by(&found.answered_by, &found.answered_at);
                Some(PlanAnswer { text: found.answer.clone(), by })
            })
            .collect(),
        commands: commands(plan)
            .into_iter()
            .map(|argv| PlanCommand {
                words: spell(&argv).unwrap_or_else(|| format!("{argv:?}")),
                allowed: state.allowed.contains(&argv),
                argv,
            })
            .collect(),
        problems: problems(plan)
            .into_iter()
            // Questions stand at the top, and approving asks for each command.
            .filter(|problem| problem.code != Code::OpenQuestions)
            .map(|problem| PlanProblem {
                failure: problem.is_failure(),
                pointer: problem.pointer,
                message: problem.message,
                mend: problem.mend,
            })
            .collect(),
        threads: state.threads.threads.iter().map(|one| thread(state, one)).collect(),
        suggestions: state
            .suggestions
            .iter()
            .filter(|one| matches!(one.state, SuggestionState::Open | SuggestionState::Stale))
            .map(|one| suggestion(one, plan, &text.text, &problems))
            .collect(),
        blocks: text.blocks.into_iter().map(|block| (block.pointer, block.lines)).collect(),
        read_only,
        notices: match state.threads.skipped.len() {
            0 => Vec::new(),
            n => vec![format!(
                "{n} of the records of threads can't be read and {} left out: \
                 codeboost plan threads {} says why.",
                if n == 1 { "is" } else { "are" },
                state.task.issue
            )],
        },
        rendered_at,
        generator: GENERATOR.to_owned(),
        plan: plan.clone(),
    }
}

fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}

fn standing(state: &PlanState, row: &PlanRow) -> String {
    if let Some(approval) = &row.approval {
        return format!("approved by {}, {}", approval.approved_by, day(&approval.approved_at));
    }
    match state.rows.iter().rfind(|other| other.approval.is_some()) {
        Some(other) => format!("draft; r{} is approved", other.plan.revision),
        None => "draft".to_owned(),
    }
}

fn thread(state: &PlanState, thread: &Thread) -> PlanThread {
    let said = |by: &str, at: &str, text: &str| PlanAnswer {
        text: text.to_owned(),
        by: format!("{by}, {}", day(at)),
    };
    let first = said(&thread.by, &thread.at, &thread.body);
    let replies = thread.replies.iter().map(|one| said(&one.by, &one.at, &one.body));
    let (from, to) = thread.lines;
    let context = state.texts.get(&thread.snapshot).map(|text| {
        let skip = usize::try_from(from - 1).unwrap_or(usize::MAX);
        let take = usize::try_from(to - from + 1).unwrap_or(usize::MAX);
        text.text.lines().skip(skip).take(take).collect::<Vec<_>>().join("\n")
    });
    PlanThread {
        thread: thread.thread.clone(),
        snapshot: thread.snapshot.clone(),
        revision: state.name_of(&thread.snapshot),
        lines: thread.lines,
        quote: thread.quote.clone(),
        context,
        said: std::iter::once(first).chain(replies).collect(),
        resolved: thread.resolved,
    }
}

fn suggestion(
    row: &SuggestionRow,
    plan: &Plan,
    before: &str,
    problems: &impl Fn(&Plan) -> Vec<Problem>,
) -> PlanSuggestion {
    let open = row.state == SuggestionState::Open && row.revision == plan.revision;
    let made = || {
        let version = version_of(plan).ok()?;
        try_edit(plan, &row.edit, version, problems).ok()
    };
    let after = if open { made().map(|made| PlanText::of(&made).text) } else { None };
    PlanSuggestion {
        id: row.id.clone(),
        summary: row.edit.summary.clone(),
        reason: row.edit.reason.clone(),
        item: row.edit.item.to_string(),
        open: after.is_some(),
        after,
        before: before.to_owned(),
    }
}
