//! `codeboost check review` and `check problems`: an agent judges a change, and what it found.

use clap::Args;
use codeboost_schema::decisions::{Action, ProblemState as Judged};
use codeboost_schema::ids::{ItemId, Uuid};
use codeboost_schema::registry::schema_for_tools;
use codeboost_schema::verdict::{self, Verdict};
use serde_json::json;

use crate::agent::asked::Command;
use crate::agent::prompt;
use crate::agent::vendor::Phase;
use crate::apply;
use crate::commands::apply::{outcome, tell};
use crate::commands::contained::{AgentArgs, tell_no_answer};
use crate::commands::{approved_plan, open};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::execute::check;
use crate::execute::consult::{About, Question};
use crate::execute::item::{self, Site};
use crate::exit_code::Outcome;
use crate::output::{counted, plain, plain_line};
use crate::review::read;
use crate::review::sources::{policy_of_repository, rounds};
use crate::store::{ProblemState, RoundRow, Rounds, StoreError};
use crate::task::{Actor, TaskState};

/// Most rounds for one revision of a plan.
const MAX_ROUNDS: usize = 3;

/// Arguments of `check review`.
#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Review it yourself now, whatever problems are open after the last round
    #[arg(long, conflicts_with = "agent")]
    anyway: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

/// Arguments of `check problems`.
#[derive(Debug, Args)]
pub(super) struct ProblemsArgs {
    /// Issue of the task; may be left out while one task is open
    issue: Option<u64>,
    /// Take this problem as it is: its name, or the first 8 or more characters of it
    #[arg(long, value_name = "PROBLEM", requires = "text")]
    accept: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", requires = "accept")]
    text: Option<String>,
}

pub(super) fn review(context: &Context, args: &ReviewArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_task(args.issue))?;
    let task = read::follow(&repository, &store, task)?;
    let issue = task.issue;
    let plan = approved_plan(&store, &task)?;
    let lease = match store.lease(&task, "check review")? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.tell(context)),
    };
    if args.anyway {
        if task.state != TaskState::NeedsHuman {
            let (issue, state) = (task.issue, task.state);
            return Err(item::ItemError::NotPaused { issue, state }.into());
        }
        let reason = "a person reviews it with the problems that are open";
        let task = store.write(|tx| -> std::result::Result<_, StoreError> {
            tx.set_task_state(&task, TaskState::InReview, reason, Actor::Person)
        })?;
        context.out.line(format!("#{issue} is {}: {}", task.state, task.reason));
        return Ok(Outcome::Done);
    }
    if task.state != TaskState::InReview {
        return Err(Error::not_allowed(format!("#{issue} is {}: {}", task.state, task.reason))
            .hint("a change is judged once every item is carried out"));
    }
    let policy = policy_of_repository(&repository)?;
    let before = store.read(|tx| rounds(tx, &task, &policy))?;
    let n = before.rounds.iter().filter(|round| round.revision == plan.revision).count();
    if n >= MAX_ROUNDS {
        return Err(Error::not_allowed(format!("r{} had its {MAX_ROUNDS} rounds", plan.revision))
            .hint(format!("see what is open: codeboost check problems {issue}")));
    }
    let again = format!("codeboost check review {issue}");
    let hired = args.agent.hire(context, &repository, &again)?;
    let site = Site { repository: &repository, store: &store };
    let head_commit_id = item::head(site, &task)?;
    let done = item::done_items(site, &task)?;
    let allowed = store.read(|tx| tx.allowed_commands())?;
    let commands: Vec<Command> = check::planned(&plan, &[])
        .into_iter()
        .filter(|check| allowed.contains(&check.argv))
        .map(|check| Command { text: check.text, argv: check.argv })
        .collect();
    let texts: Vec<String> = commands.iter().map(|command| command.text.clone()).collect();
    let open: Vec<(Uuid, ItemId, String)> =
        before.open().map(|one| (one.id.clone(), one.item.clone(), one.text.clone())).collect();
    let text = store.read(|tx| tx.issue(issue))?;
    let prompt = prompt::review(&prompt::Review {
        issue: prompt::Issue {
            number: issue,
            title: &task.title,
            body: text.as_ref().and_then(|issue| issue.body.as_deref()),
        },
        base: task.base_commit_id.as_str(),
        plan: &plan,
        item_commits: &done,
        open: &open,
        commands: &texts,
    });
    let question = Question {
        about: About {
            phase: Phase::Review,
            item: None,
            revision: Some(plan.revision),
            comments: &[],
        },
        commit_id: &head_commit_id,
        prompt: &prompt,
        schema: &schema_for_tools(verdict::SCHEMA),
        commands: &commands,
    };
    let items: Vec<ItemId> = plan.items.iter().map(|item| item.id.clone()).collect();
    let ids: Vec<Uuid> = open.iter().map(|(id, ..)| id.clone()).collect();
    let answer =
        hired.ask(context, site, &lease, &question, |value| Verdict::read(value, &items, &ids))?;
    let name = hired.vendor.name();
    let verdict = match answer {
        Ok(verdict) => verdict,
        Err(failure) => {
            tell_no_answer(context, hired.vendor, &failure, &format!("{again} --agent {name}"));
            return Ok(Outcome::Failed);
        }
    };
    let after = store.write(|tx| -> std::result::Result<Rounds, StoreError> {
        let round = RoundRow { revision: plan.revision, head_commit_id: head_commit_id.clone() };
        tx.add_round(task.id, &round, &verdict, Actor::Agent(name.to_owned()))?;
        let after = rounds(tx, &task, &policy)?;
        let n_open = after.open().count() as u64;
        if n_open > 0 && n + 1 == MAX_ROUNDS {
            let reason = format!(
                "review rounds stopped after {MAX_ROUNDS}; {} open",
                counted(n_open, "problem")
            );
            tx.set_task_state(&task, TaskState::NeedsHuman, &reason, Actor::Codeboost)?;
        }
        Ok(after)
    })?;
    for line in plain(verdict.summary.trim()).lines().take(20) {
        context.out.note(format!("  {name} says: {}", plain_line(line)));
    }
    tell_problems(context, issue, &after);
    let n_open = after.open().count();
    context.out.note(match n_open {
        0 => format!("Next: codeboost run {issue}"),
        _ if n + 1 == MAX_ROUNDS => format!(
            "The rounds are over. Next: codeboost check review {issue} --anyway, or codeboost \
             check problems {issue} --accept PROBLEM --text WHY"
        ),
        _ => format!(
            "Next: codeboost execute {issue} --agent {name}, or item begin, mends them; then {again} \
             --agent {name}"
        ),
    });
    Ok(if n_open == 0 { Outcome::Done } else { Outcome::Waits })
}

pub(super) fn problems(context: &Context, args: &ProblemsArgs) -> Result {
    let (repository, store) = open(context)?;
    let task = store.read(|tx| tx.select_any_task(args.issue))?;
    let policy = policy_of_repository(&repository)?;
    let found = store.read(|tx| rounds(tx, &task, &policy))?;
    let (Some(name), Some(text)) = (&args.accept, &args.text) else {
        tell_problems(context, task.issue, &found);
        return Ok(Outcome::Done);
    };
    if name.len() < 8 {
        return Err(Error::usage("a problem is named by 8 characters or more"));
    }
    let mut named = found.problems.iter().filter(|one| one.id.as_str().starts_with(name.as_str()));
    let (Some(one), None) = (named.next(), named.next()) else {
        return Err(Error::failed(format!("no one problem begins with {}", plain_line(name)))
            .hint(format!("codeboost check problems {} lists them", task.issue)));
    };
    let action =
        Action::Problem { problem: one.id.clone(), state: Judged::Accepted, text: text.clone() };
    let applied = apply::apply_actions(&repository, &store, &task, vec![action], None)?;
    tell(context, &applied);
    Ok(outcome(&applied.answers))
}

fn tell_problems(context: &Context, issue: u64, found: &Rounds) {
    let out = &context.out;
    if out.is_json() {
        let problems: Vec<_> = found
            .problems
            .iter()
            .map(|one| {
                json!({
                    "problem": one.id, "item": one.item, "state": one.state, "text": one.text,
                    "source": one.source,
                })
            })
            .collect();
        out.json(&json!({"issue": issue, "rounds": found.rounds.len(), "problems": problems}));
        return;
    }
    if found.rounds.is_empty() {
        out.line("No review round was run.");
    } else if found.problems.is_empty() {
        out.line("No problems.");
    }
    for one in &found.problems {
        let mark = if one.state == ProblemState::Open { "✗" } else { "–" };
        let name = &one.id.as_str()[..8];
        out.line(format!("{mark} {name}  {}  {} ({})", one.item, one.state.word(), one.source));
        for line in plain(one.text.trim()).lines() {
            out.line(format!("    {}", plain_line(line)));
        }
    }
}
