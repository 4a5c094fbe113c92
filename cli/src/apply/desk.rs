//! Which decisions about a plan can be recorded: threads, answers, suggested edits, approval.
//!
//! Every decision is compared with the state before the file, revision first. Approving then
//! counts the threads that the same file resolves and the questions that it answers.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::answers::Refusal;
use codeboost_schema::decisions::{Action, Decision, MAX_TEXT_CHARS};
use codeboost_schema::form::Form;
use codeboost_schema::ids::{Digest, Uuid};
use codeboost_schema::plan::Plan;

use crate::apply::book::{Book, Judgement, Why, authorized, too_long};
use crate::apply::compare::Effect;
use crate::approval::policy::Reviewer;
use crate::output::{counted, plain_line};
use crate::plan::judge::{commands, version_of};
use crate::plan::problem::Problem;
use crate::plan::text;
use crate::plan::threads::{Refused, Threads, by};
use crate::plan::v1::suggest::try_edit;
use crate::plan::v1::tokenize::spell;
use crate::review::plan::PlanState;
use crate::store::{PlanRow, SuggestionRow, SuggestionState, TaskRow};

/// Every problem of a plan, or why they can't be known.
pub type Problems<'a> = dyn Fn(&Plan) -> Result<Vec<Problem>, String> + 'a;

/// What follows from a decision about a plan.
#[derive(Debug, Clone)]
pub enum PlanEffect {
    /// The decision is a record of a thread on this text, which is kept.
    Thread(String),
    /// A question is answered.
    Answer {
        /// The revision that asks.
        revision: u64,
        /// The question.
        question: String,
        /// The answer.
        answer: String,
    },
    /// A suggested edit is dropped.
    Dismiss(Box<SuggestionRow>),
    /// A suggested edit makes the next revision.
    Apply(Box<SuggestionRow>, Box<Plan>),
    /// The newest revision is approved.
    Approve {
        /// The task, with the base that the plan was checked against.
        task: Box<TaskRow>,
        /// The revision.
        revision: u64,
        /// The commands that are allowed with it and were not before.
        allow: Vec<Vec<String>>,
    },
}

/// Whether a decision is about a plan.
#[must_use]
pub fn is_about_plan(action: &Action) -> bool {
    matches!(
        action,
        Action::PlanComment { .. }
            | Action::PlanReply { .. }
            | Action::PlanResolve { .. }
            | Action::PlanReopen { .. }
            | Action::PlanApprove { .. }
            | Action::AnswerQuestion { .. }
            | Action::ApplySuggestion { .. }
            | Action::DismissSuggestion { .. }
    )
}

/// Judges the decisions of one file about a plan, one after the other.
pub(super) struct Desk<'a> {
    before: &'a PlanState,
    form: Option<&'a Form>,
    problems: &'a Problems<'a>,
    now: &'a str,
    by: String,
    threads: Threads,
    /// Questions that the file answered.
    answered: BTreeSet<String>,
    /// Suggestions that the file decided on.
    decided: BTreeSet<Uuid>,
    /// The revision that the file made.
    made: Option<u64>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        before: &'a PlanState,
        problems: &'a Problems<'a>,
        form: Option<&'a Form>,
        reviewer: &Reviewer,
        now: &'a str,
    ) -> Self {
        Self {
            before,
            form,
            problems,
            now,
            by: by(reviewer),
            threads: before.threads.clone(),
            answered: BTreeSet::new(),
            decided: BTreeSet::new(),
            made: None,
        }
    }

    /// What follows from a decision, and its words for the log. What is taken counts for the next.
    pub(super) fn take(&mut self, action: &Action) -> Result<(PlanEffect, String), Why> {
        match action {
            Action::PlanComment { snapshot, .. }
            | Action::PlanReply { snapshot, .. }
            | Action::PlanResolve { snapshot, .. }
            | Action::PlanReopen { snapshot, .. } => self.thread(action, snapshot),
            Action::AnswerQuestion { question, text } => self.answer(*question, text),
            Action::DismissSuggestion { suggestion } => {
                let row = self.open_suggestion(suggestion)?;
                let words = format!("dismissed a suggestion for plan r{}", row.revision);
                self.decided.insert(suggestion.clone());
                Ok((PlanEffect::Dismiss(Box::new(row)), words))
            }
            Action::ApplySuggestion { suggestion } => self.apply(suggestion),
            Action::PlanApprove {
                revision,
                argv,
                confirm_open_threads,
                confirm_open_questions,
            } => self.approve(*revision, argv, *confirm_open_threads, *confirm_open_questions),
            _ => Err(Why::new(Refusal::WrongState, "this is no decision about a plan")),
        }
    }

    fn newest(&self) -> Result<&'a PlanRow, Why> {
        self.before.rows.last().ok_or_else(|| {
            let issue = self.before.task.issue;
            Why::new(Refusal::WrongState, format!("task #{issue} has no plan"))
        })
    }

    /// Requires that `then` is the newest revision still.
    fn same_revision(&self, then: u64) -> Result<&'a PlanRow, Why> {
        let newest = self.newest()?;
        let now = self.made.unwrap_or(newest.plan.revision);
        if now == then {
            return Ok(newest);
        }
        let what = format!("the plan is at r{now}, this was decided on r{then}");
        Err(Why::stale("revision", what)
            .bytes(Some(then.to_string().into()), Some(now.to_string().into())))
    }

    /// The newest revision, which has to be that of the page.
    fn of_page(&self) -> Result<&'a PlanRow, Why> {
        let newest = self.newest()?;
        let then = self.form.and_then(|form| form.revision).unwrap_or(newest.plan.revision);
        self.same_revision(then)
    }

    fn thread(&mut self, action: &Action, snapshot: &Digest) -> Result<(PlanEffect, String), Why> {
        let text = self.before.texts.get(snapshot);
        if let (Some(text), Action::PlanComment { .. }) = (text, action)
            && text.text.len() > text::MAX_BYTES
        {
            let n = text.text.len();
            let what =
                format!("a plan text of {n} bytes takes no comments: {} at most", text::MAX_BYTES);
            return Err(Why::new(Refusal::TooLong, what));
        }
        let lines_of = |digest: &Digest| {
            self.before.texts.get(digest).map(|text| text::count_lines(&text.text))
        };
        self.threads.follow(action, self.now, &self.by, lines_of).map_err(|refused| {
            let reason = match &refused {
                Refused::Snapshot(_) => Refusal::UnknownSnapshot,
                Refused::Thread(_) => Refusal::UnknownThread,
                Refused::Taken(_) => Refusal::IdReused,
                Refused::Lines { .. } => Refusal::InvalidAnchor,
                Refused::TooLong { .. } => Refusal::TooLong,
                Refused::Empty => Refusal::NothingToSend,
                Refused::Kind => Refusal::WrongState,
            };
            Why::new(reason, refused.to_string())
        })?;
        let words = match action {
            Action::PlanComment { lines, .. } => {
                format!("commented on {} of the plan's text", lines_words(*lines))
            }
            Action::PlanReply { .. } => "replied in a thread of the plan".to_owned(),
            Action::PlanResolve { .. } => "resolved a thread of the plan".to_owned(),
            _ => "reopened a thread of the plan".to_owned(),
        };
        let text = text.map(|text| text.text.clone()).unwrap_or_default();
        Ok((PlanEffect::Thread(text), words))
    }

    fn answer(&mut self, n: u64, text: &str) -> Result<(PlanEffect, String), Why> {
        let plan = &self.of_page()?.plan;
        let at = usize::try_from(n).ok().and_then(|n| n.checked_sub(1));
        let question = at.and_then(|at| plan.questions.get(at)).ok_or_else(|| {
            let has = counted(plan.questions.len() as u64, "question");
            let what = format!("there is no question {n}: r{} has {has}", plan.revision);
            Why::new(Refusal::UnknownQuestion, what)
        })?;
        if text.chars().count() > MAX_TEXT_CHARS {
            return Err(too_long(text, MAX_TEXT_CHARS));
        }
        if text.trim().is_empty() {
            return Err(Why::new(Refusal::NothingToSend, "the answer says nothing"));
        }
        self.answered.insert(question.clone());
        let effect = PlanEffect::Answer {
            revision: plan.revision,
            question: question.clone(),
            answer: text.to_owned(),
        };
        Ok((effect, format!("answered question {n} of plan r{}", plan.revision)))
    }

    /// A suggestion that can still be decided on.
    fn open_suggestion(&self, id: &Uuid) -> Result<SuggestionRow, Why> {
        let found = self.before.suggestions.iter().find(|row| row.id == *id);
        let row = found.ok_or_else(|| {
            Why::new(Refusal::UnknownSuggestion, format!("this plan has no suggestion {id}"))
        })?;
        match row.state {
            SuggestionState::Open if !self.decided.contains(id) => {
                self.same_revision(row.revision)?;
                Ok(row.clone())
            }
            SuggestionState::Stale => {
                self.same_revision(row.revision)?;
                Err(Why::stale("revision", "the plan changed since it was suggested"))
            }
            SuggestionState::Applied => {
                Err(Why::new(Refusal::WrongState, "this suggestion was applied before"))
            }
            SuggestionState::Open | SuggestionState::Dismissed => {
                Err(Why::new(Refusal::WrongState, "this suggestion was dismissed before"))
            }
        }
    }

    fn apply(&mut self, id: &Uuid) -> Result<(PlanEffect, String), Why> {
        let row = self.open_suggestion(id)?;
        let plan = &self.newest()?.plan;
        let blocked = |problems: &[Problem]| {
            let words: Vec<_> = problems.iter().map(|one| one.message.as_str()).collect();
            Why::new(Refusal::Blocked, plain_line(&words.join("; ")))
        };
        let version = version_of(plan).map_err(|problem| blocked(&[*problem]))?;
        // Asked once before, so that what can't be known is not taken for a plan without problems.
        (self.problems)(plan).map_err(|why| Why::new(Refusal::Blocked, why))?;
        let judge = |plan: &Plan| (self.problems)(plan).unwrap_or_default();
        let made = try_edit(plan, &row.edit, version, judge).map_err(|found| blocked(&found))?;
        self.made = Some(plan.revision + 1);
        self.decided.insert(id.clone());
        let words = format!("applied a suggestion to plan r{}", plan.revision);
        Ok((PlanEffect::Apply(Box::new(row), Box::new(made)), words))
    }

    fn approve(
        &self,
        revision: u64,
        argv: &[Vec<String>],
        with_open_threads: bool,
        with_open_questions: bool,
    ) -> Result<(PlanEffect, String), Why> {
        self.of_page()?;
        let row = self.same_revision(revision)?;
        if row.approval.is_some() {
            return Err(Why::new(Refusal::WrongState, format!("r{revision} is approved already")));
        }
        if let Some(held) = &self.before.held {
            return Err(Why::new(Refusal::Blocked, held));
        }
        let known = commands(&row.plan);
        if let Some(other) = argv.iter().find(|argv| !known.contains(argv)) {
            let words = spell(other).unwrap_or_else(|| format!("{other:?}"));
            let what = format!("the plan has no command {}", plain_line(&words));
            return Err(Why::new(Refusal::WrongState, what));
        }
        let problems = (self.problems)(&row.plan).map_err(|why| Why::new(Refusal::Blocked, why))?;
        let failures: Vec<_> =
            problems.iter().filter(|one| one.is_failure()).map(|one| &*one.message).collect();
        if !failures.is_empty() {
            let n = counted(failures.len() as u64, "failure");
            let what = plain_line(&format!("the plan has {n}: {}", failures.join("; ")));
            return Err(Why::new(Refusal::Blocked, what));
        }
        let n_threads = self.threads.n_open();
        if n_threads > 0 && !with_open_threads {
            let n = counted(n_threads, "open thread");
            return Err(Why::new(Refusal::Blocked, format!("{n}, and nobody confirmed that")));
        }
        let is_open = |question: &&String| {
            !self.answered.contains(*question)
                && self.before.answers.iter().all(|answer| answer.question != **question)
        };
        let n_questions = row.plan.questions.iter().filter(is_open).count() as u64;
        if n_questions > 0 && !with_open_questions {
            let n = counted(n_questions, "open question");
            return Err(Why::new(Refusal::Blocked, format!("{n}, and nobody confirmed that")));
        }
        let mut allow: Vec<Vec<String>> = Vec::new();
        for command in argv {
            if !self.before.allowed.contains(command) && !allow.contains(command) {
                allow.push(command.clone());
            }
        }
        let effect =
            PlanEffect::Approve { task: Box::new(self.before.task.clone()), revision, allow };
        Ok((effect, format!("approved plan r{revision}")))
    }
}

/// Judges the decisions of one page of a plan, which shows no changes.
pub(super) fn judge_plan<'a>(
    plan: &'a PlanState,
    problems: &'a Problems<'a>,
    form: Option<&'a Form>,
    decisions: &'a [Decision],
    recorded: &BTreeMap<Uuid, Digest>,
    (reviewer, now): (&Reviewer, &'a str),
) -> Judgement {
    let mut book = Book::open(decisions, recorded);
    let mut desk = Desk::new(plan, problems, form, reviewer, now);
    for n in book.order() {
        if !book.is_open(n) {
            continue;
        }
        let action = &decisions[n].action;
        let taken = if plan.task.state.is_closed() {
            Err(Why::new(Refusal::WrongState, format!("the task is {}", plan.task.state)))
        } else if !is_about_plan(action) {
            Err(Why::new(Refusal::WrongState, "the page shows a plan and no changes"))
        // At the terminal a person decides on their own plan.
        } else if form.is_some() {
            authorized(&plan.policy, reviewer, action).and_then(|()| desk.take(action))
        } else {
            desk.take(action)
        };
        match taken {
            Ok((effect, words)) => book.accept(n, Effect::Plan(effect), words),
            Err(why) => book.refuse(n, why),
        }
    }
    book.close()
}

/// Lines for people: `line 3`, `lines 3 to 5`.
#[must_use]
pub fn lines_words((first, last): (u64, u64)) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") }
}
