//! The steps themselves.

use std::time::Duration;

use codeboost_schema::ids::CommitId;
use jiff::{SignedDuration, Timestamp};

use crate::config::HeadAfter;
use crate::forge::{
    AlreadyFixed, CheckState, Forge, ForgeError, Guard, Landed, Landing, Mark, Sent, Tips,
};
use crate::gate::{Blocker, Code};
use crate::git::identity::Identity;
use crate::git::merge::{self, Made, Recipe};
use crate::git::refs::Reported;
use crate::git::run::Git;
use crate::merge::fixed;
use crate::merge::message::message;
use crate::merge::rebase::{self, Rebased};
use crate::merge::{Ending, IfFixed, Judge, MergeError, Options, Step, StepReport, Verdict};
use crate::output::counted;
use crate::process::crash_point;
use crate::store::{
    AttemptState, Lease, MergeAttemptRow, NewAttempt, REBASE_CONFLICT, StepState, Store,
    StoreError, TaskRow,
};
use crate::task::{Actor, TaskState};

/// How often the last look is repeated when other processes change the state meanwhile.
const MAX_LOOKS: usize = 5;

/// How long required checks are awaited, from the first look at them on.
const CHECKS_TIME: SignedDuration = SignedDuration::from_mins(30);
/// How long a merge queue is followed by one run.
const QUEUE_TIME: SignedDuration = SignedDuration::from_mins(30);
/// The first pause between two looks at something that takes its time, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// How often a forge that took a landing is asked whether it shows it.
const LOOKS_AFTER: usize = 5;

/// One run of the sequence for one task.
pub struct Sequence<'s, 'a> {
    store: &'s Store<'a>,
    lease: &'s Lease,
    forge: &'s dyn Forge,
    judge: &'s dyn Judge,
    options: Options,
    report: &'s mut dyn FnMut(&StepReport),
}

/// How a step goes on.
enum Flow<T> {
    /// It did something.
    Done(T, String),
    /// There was nothing to do.
    Skipped(T, String),
    /// The run ends here.
    Stop(Box<Ending>),
}

/// What is to be landed: the pair that was reviewed, as the forge has it.
#[derive(Debug, Clone)]
struct Pair {
    base: CommitId,
    head: CommitId,
    /// Where the forge's head lags behind the reviewed one, or is what a rebase made it of.
    lags_at: Option<CommitId>,
    /// Where the base is now, if that is somewhere else.
    moved_base: Option<CommitId>,
    /// Whether the forge has the head's branch.
    head_is_there: bool,
}

impl<'s, 'a> Sequence<'s, 'a> {
    /// A run for the task that `lease` holds. `report` is called as each step ends.
    pub fn new(
        store: &'s Store<'a>,
        lease: &'s Lease,
        forge: &'s dyn Forge,
        judge: &'s dyn Judge,
        options: Options,
        report: &'s mut dyn FnMut(&StepReport),
    ) -> Self {
        Self { store, lease, forge, judge, options, report }
    }

    /// Runs the steps until the task has merged or something stops it.
    ///
    /// 1. ends what an earlier run left: recorded as interrupted, its attempt settled by git;
    /// 2. takes the steps in order, each recorded before and after;
    /// 3. records how it ended, and moves the task on.
    ///
    /// # Errors
    /// [`MergeError`] when something can't be read or written. The run is recorded as failed; an
    /// attempt whose outcome is not known stays open for the next run.
    pub fn run(mut self) -> Result<Ending, MergeError> {
        let mut task = self.task()?;
        if matches!(task.state, TaskState::InReview | TaskState::MergeBlocked)
            || self.waits_for_rebase(&task)?
        {
            rebase::finish(self.store, self.lease)?;
            task = self.task()?;
        }
        match task.state {
            TaskState::Merged => return self.already_merged(&task),
            TaskState::NeedsHuman if self.waits_for_rebase(&task)? => {
                let words = "tries again to bring its head onto the base";
                self.store.write(|tx| -> Result<_, StoreError> {
                    tx.set_task_state(&task, TaskState::InReview, words, Actor::Person)
                })?;
            }
            TaskState::InReview | TaskState::MergeBlocked | TaskState::Merging => {}
            TaskState::PossiblyFixed if self.options.if_fixed == IfFixed::GoOn => {
                self.go_on(&task)?;
            }
            state => return Ok(Ending::WrongState { state, reason: task.reason }),
        }
        let run = self.store.write(|tx| -> Result<_, StoreError> {
            tx.begin_merge_run(self.lease, self.options.method, self.options.head_after)
        })?;
        self.crash_point("run recorded");
        let ending = self.steps(run);
        match &ending {
            Ok(ending) => self.conclude(run, ending)?,
            Err(error) => self.store.write(|tx| -> Result<_, StoreError> {
                tx.end_merge_run(self.lease, run, "error", &error.to_string())
            })?,
        }
        self.crash_point("run ended");
        ending
    }

    fn steps(&mut self, run: i64) -> Result<Ending, MergeError> {
        macro_rules! go {
            ($step:expr, $words:expr, $do:expr) => {
                match self.step(run, $step, &$words, $do)? {
                    Ok(value) => value,
                    Err(ending) => return Ok(*ending),
                }
            };
        }
        let place = self.forge.place();
        let pair =
            go!(Step::Fetch, format!("reading base and head of {place}"), |this| this.fetch(run));
        let pair = go!(Step::Rebase, "comparing with the base", |this| this.rebase(pair));
        go!(Step::Push, push_words(&pair, &place), |this| this.push(&pair));
        go!(Step::Checks, "judging what is to merge", |this| this.check(&pair));
        go!(Step::RequiredChecks, "reading the rules of the base", |this| this
            .required_checks(&pair));
        go!(Step::AlreadyFixed, "looking for other fixes", |this| this.already_fixed(&pair));
        let ending = go!(Step::Merge, format!("landing on {place}"), |this| this.land(run, &pair));
        Ok(ending)
    }

    /// Records a step, takes it, and records what came of it.
    fn step<T>(
        &mut self,
        run: i64,
        step: Step,
        words: &str,
        take: impl FnOnce(&mut Self) -> Result<Flow<T>, MergeError>,
    ) -> Result<Result<T, Box<Ending>>, MergeError> {
        self.store.write(|tx| -> Result<_, StoreError> {
            tx.begin_merge_step(run, step.nth(), step.name(), words)
        })?;
        self.crash_point(&format!("before {}", step.name()));
        let started = self.now();
        let flow = take(self);
        let millis = u64::try_from(self.now().duration_since(started).as_millis()).unwrap_or(0);
        let (state, words) = match &flow {
            Ok(Flow::Done(_, words)) => (StepState::Done, words.clone()),
            Ok(Flow::Skipped(_, words)) => (StepState::Skipped, words.clone()),
            Ok(Flow::Stop(ending)) if matches!(**ending, Ending::Merged { .. }) => {
                (StepState::Done, ending.reason())
            }
            Ok(Flow::Stop(ending)) => (StepState::Failed, ending.reason()),
            Err(error) => (StepState::Failed, error.to_string()),
        };
        self.store.write(|tx| -> Result<_, StoreError> {
            tx.end_merge_step(run, step.nth(), state, &words, millis)
        })?;
        (self.report)(&StepReport { step, state, words, millis });
        self.crash_point(&format!("after {}", step.name()));
        Ok(match flow? {
            Flow::Done(value, _) | Flow::Skipped(value, _) => Ok(value),
            Flow::Stop(ending) => Err(ending),
        })
    }

    fn fetch(&mut self, run: i64) -> Result<Flow<Pair>, MergeError> {
        let tips = self.forge.fetch(&self.fetch_refs())?;
        self.crash_point("fetched");
        if let Some(ending) = self.settle_earlier(run, &tips)? {
            return Ok(Flow::Stop(Box::new(ending)));
        }
        let task = self.task()?;
        match self.compare(&task, &tips)? {
            Err(ending) => Ok(Flow::Stop(Box::new(ending))),
            Ok(pair) => {
                let words = format!("base {:.12}, head {:.12}", pair.base, pair.head);
                Ok(Flow::Done(pair, words))
            }
        }
    }

    /// Finds out what became of the attempts of earlier runs.
    ///
    /// All of them are looked for, not only open ones: a push may land after everybody gave it up.
    fn settle_earlier(&self, run: i64, tips: &Tips) -> Result<Option<Ending>, MergeError> {
        let task = self.task()?;
        let attempts = self.store.read(|tx| tx.merge_attempts(task.id))?;
        if let Some(ending) = self.settle_by_forge(run, &task, &attempts)? {
            return Ok(Some(ending));
        }
        for attempt in attempts.iter().filter(|attempt| !is_by_forge(attempt)) {
            if self.contains(&tips.base, &attempt.commit)? {
                self.finish(attempt, &attempt.commit);
                let reason = format!("landed as {:.12}, found by a later run", attempt.commit);
                let (state, to) = (AttemptState::Merged, TaskState::Merged);
                self.store.write(|tx| -> Result<_, StoreError> {
                    tx.settle_attempt(&task, attempt.id, state, &reason, to)?;
                    tx.end_merge_run(self.lease, run, "merged", &reason)
                })?;
                self.crash_point("settled as merged");
                self.forget_fetched();
                return Ok(Some(found(attempt)));
            }
        }
        let attempts = self.store.read(|tx| tx.merge_attempts(task.id))?;
        for attempt in attempts.iter().filter(|attempt| attempt.state.is_open()) {
            let task = self.task()?;
            let reason = "an earlier run was ended before it landed";
            let (state, to) = (AttemptState::Failed, TaskState::InReview);
            self.store.write(|tx| -> Result<_, StoreError> {
                tx.settle_attempt(&task, attempt.id, state, reason, to)
            })?;
            self.crash_point("settled as failed");
        }
        Ok(None)
    }

    /// Asks the forge what became of the newest attempt that it carries out itself.
    fn settle_by_forge(
        &self,
        run: i64,
        task: &TaskRow,
        attempts: &[MergeAttemptRow],
    ) -> Result<Option<Ending>, MergeError> {
        let Some(attempt) = attempts.iter().rfind(|attempt| is_by_forge(attempt)) else {
            return Ok(None);
        };
        let mark = Mark { pull: attempt.pull, seen: attempt.seen.clone() };
        let guard = Guard::parse(&attempt.guard).unwrap_or(Guard::StrictChecks);
        let sent = Sent { head: &attempt.head, guard, mark: &mark };
        let ending = match self.follow(run, task, attempt.id, &sent)? {
            Some(Landed::Merged(commit)) => {
                if attempt.state == AttemptState::Merged {
                    return Ok(None);
                }
                let task = self.task()?;
                let reason = format!("landed as {commit:.12}, found by a later run");
                self.finish(attempt, &commit);
                self.store.write(|tx| -> Result<_, StoreError> {
                    tx.put_landed(attempt.id, &commit)?;
                    let (state, to) = (AttemptState::Merged, TaskState::Merged);
                    tx.settle_attempt(&task, attempt.id, state, &reason, to)?;
                    tx.end_merge_run(self.lease, run, "merged", &reason)
                })?;
                self.crash_point("settled as merged");
                self.forget_fetched();
                let attempt = MergeAttemptRow { landed: Some(commit), ..attempt.clone() };
                return Ok(Some(found(&attempt)));
            }
            Some(Landed::Queued(words)) => Ending::Queued { words },
            Some(Landed::Gone(words)) if attempt.state.is_open() => {
                let task = self.task()?;
                let state = match guard {
                    Guard::MergeQueue => AttemptState::Removed,
                    _ => AttemptState::Failed,
                };
                let to = TaskState::MergeBlocked;
                self.store.write(|tx| -> Result<_, StoreError> {
                    tx.settle_attempt(&task, attempt.id, state, &words, to)
                })?;
                self.crash_point("settled as removed");
                Ending::Refused { words }
            }
            Some(Landed::Gone(_) | Landed::NotYet) | None => return Ok(None),
        };
        Ok(Some(ending))
    }

    /// What became of a landing that the forge carries out; as long as it is queued it is followed,
    /// where the run may wait.
    fn follow(
        &self,
        run: i64,
        task: &TaskRow,
        attempt: i64,
        sent: &Sent<'_>,
    ) -> Result<Option<Landed>, MergeError> {
        let context = self.store.context();
        let began = self.now();
        let mut pause = PAUSES.0;
        let mut said = String::new();
        loop {
            let landed = self.forge.landed(sent)?;
            let Some(Landed::Queued(words)) = &landed else { return Ok(landed) };
            if *words != said {
                self.store.write(|tx| -> Result<_, StoreError> {
                    let task = self.task_in(tx, task)?;
                    let state = AttemptState::Queued;
                    tx.settle_attempt(&task, attempt, state, words, task.state)?;
                    tx.note_merge_step(run, words)
                })?;
                context.out.note(words);
                said.clone_from(words);
                self.crash_point("queued");
            }
            if !self.options.waits || self.now().duration_since(began) >= QUEUE_TIME {
                return Ok(landed);
            }
            context.pause(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn task_in(
        &self,
        tx: &crate::store::WriteTx<'_>,
        task: &TaskRow,
    ) -> Result<TaskRow, StoreError> {
        tx.task(task.id)?
            .ok_or_else(|| StoreError::Damaged("the task of a lease is missing".into()))
    }

    /// Does what is left to do on the forge once something landed. Where that fails it landed all
    /// the same.
    fn finish(&self, attempt: &MergeAttemptRow, commit: &CommitId) -> Option<String> {
        let guard = Guard::parse(&attempt.guard)?;
        self.finish_landing((&attempt.head, self.options.head_after), guard, commit)
    }

    fn finish_landing(
        &self,
        landing: (&CommitId, HeadAfter),
        guard: Guard,
        commit: &CommitId,
    ) -> Option<String> {
        match self.forge.finish(landing, guard, commit) {
            Ok(words) => words,
            Err(error) => Some(format!("what is left to do there failed: {error}")),
        }
    }

    /// The pair that was reviewed, if that is what the forge and this repository have.
    fn compare(&self, task: &TaskRow, tips: &Tips) -> Result<Result<Pair, Ending>, MergeError> {
        let (base, head) = (&task.base_commit_id, &task.head_commit_id);
        let moved =
            |found: Option<CommitId>| Ok(Err(Ending::HeadMoved { expected: head.clone(), found }));
        // What the review reads is the branch here.
        let here = self.git().resolve(&task.head_ref)?;
        if self.forge.is_elsewhere() && task.head_ref.starts_with("refs/heads/") {
            match &here {
                Some(here) if here != head => return moved(Some(here.clone())),
                None if tips.head.is_none() => return moved(None),
                _ => {}
            }
        }
        let mut lags_at = None;
        match &tips.head {
            Some(there) if there == head => {}
            // A commit that is not known here is somebody else's.
            Some(there)
                if self.git().resolve(there.as_str())?.is_some()
                    && (self.contains(head, there)? || self.was_rebased(there, head)?) =>
            {
                lags_at = Some(there.clone());
            }
            Some(there) => return moved(Some(there.clone())),
            None if here.as_ref() == Some(head) => {}
            None => return moved(None),
        }
        Ok(Ok(Pair {
            base: base.clone(),
            moved_base: (tips.base != *base).then(|| tips.base.clone()),
            head: head.clone(),
            lags_at,
            head_is_there: tips.head.is_some(),
        }))
    }

    /// Brings the head onto a base that moved.
    fn rebase(&mut self, pair: Pair) -> Result<Flow<Pair>, MergeError> {
        let Some(found) = pair.moved_base.clone() else {
            return Ok(Flow::Skipped(pair, "the base has not moved".to_owned()));
        };
        let there = pair.lags_at.clone().unwrap_or_else(|| pair.head.clone());
        let there = Some(there).filter(|_| pair.head_is_there);
        let expected = pair.base.clone();
        let stop = |ending| Ok(Flow::Stop(Box::new(ending)));
        if !self.options.rebase {
            return stop(Ending::BaseMoved { expected, found, head_there: there, stays: None });
        }
        match rebase::rebase(self.store, self.lease, &found)? {
            Rebased::Done { task, n_commits } => {
                let commits = counted(n_commits as u64, "commit");
                let words = format!(
                    "{commits} replayed onto {found:.12}: {:.12} → {:.12}",
                    pair.head, task.head_commit_id
                );
                let pair = Pair {
                    base: task.base_commit_id,
                    head: task.head_commit_id,
                    lags_at: there.filter(|_| self.forge.is_elsewhere()),
                    moved_base: None,
                    head_is_there: pair.head_is_there,
                };
                Ok(Flow::Done(pair, words))
            }
            Rebased::Conflict(stopped) => stop(stopped.into_ending(found, there)),
            Rebased::NotPossible(obstacle) => {
                let stays = Some(obstacle);
                stop(Ending::BaseMoved { expected, found, head_there: there, stays })
            }
        }
    }

    fn push(&mut self, pair: &Pair) -> Result<Flow<()>, MergeError> {
        let place = self.forge.place();
        let Some(old) = &pair.lags_at else {
            let words = if !self.forge.is_elsewhere() {
                "the base is a branch of this repository: nothing is pushed".to_owned()
            } else if pair.head_is_there {
                format!("the head is on {place} as reviewed")
            } else {
                format!("{place} does not have the head's branch; it stays here")
            };
            return Ok(Flow::Skipped((), words));
        };
        let reported = self.forge.push_head(old, &pair.head)?;
        self.crash_point("head sent");
        let tips = self.forge.read()?;
        if tips.head.as_ref() == Some(&pair.head) {
            return Ok(Flow::Done((), format!("{old:.12} → {:.12}", pair.head)));
        }
        Ok(Flow::Stop(Box::new(match reported {
            _ if tips.head.as_ref() != Some(old) => {
                Ending::HeadMoved { expected: pair.head.clone(), found: tips.head }
            }
            Reported::Refused(words) | Reported::Unclear(words) => Ending::Refused { words },
            Reported::Accepted => {
                Ending::Refused { words: format!("{place} took the head and does not show it") }
            }
        })))
    }

    fn check(&mut self, pair: &Pair) -> Result<Flow<()>, MergeError> {
        let verdict = self.verdict(pair)?;
        if verdict.blockers.is_empty() {
            return Ok(Flow::Done((), verdict.checks));
        }
        Ok(Flow::Stop(Box::new(Ending::Blocked { blockers: verdict.blockers })))
    }

    fn required_checks(&mut self, pair: &Pair) -> Result<Flow<()>, MergeError> {
        let task = self.lease.task();
        let context = self.store.context();
        let mut pause = PAUSES.0;
        let mut said = Vec::new();
        loop {
            let checks = match self.forge.required_checks(&pair.head) {
                Ok(required) => required.checks,
                Err(ForgeError::Gh(error)) => {
                    let why = error.to_string();
                    return Ok(Flow::Stop(Box::new(Ending::RulesUnknown { why })));
                }
                Err(error) => return Err(error.into()),
            };
            if checks.is_empty() {
                return Ok(Flow::Skipped((), "none are required".to_owned()));
            }
            let named = |wanted: CheckState| -> Vec<String> {
                let found = checks.iter().filter(|check| check.state == wanted);
                found.map(|check| check.name.clone()).collect()
            };
            let (failed, pending) = (named(CheckState::Failed), named(CheckState::Pending));
            if !failed.is_empty() {
                return Ok(Flow::Stop(Box::new(Ending::ChecksFailed { checks: failed })));
            }
            if pending.is_empty() {
                return Ok(Flow::Done((), format!("{} of {} passed", checks.len(), checks.len())));
            }
            let since = self.store.write(|tx| -> Result<_, StoreError> {
                tx.await_checks(task, &pair.head)?;
                tx.checks_awaited_since(task, &pair.head)
            })?;
            let waited =
                since.map_or(SignedDuration::ZERO, |since| self.now().duration_since(since));
            if waited >= CHECKS_TIME {
                let minutes = u64::try_from(waited.as_mins()).unwrap_or(0);
                let late = Ending::ChecksLate { checks: pending, minutes };
                return Ok(Flow::Stop(Box::new(late)));
            }
            if !self.options.waits {
                return Ok(Flow::Stop(Box::new(Ending::Waits { checks: pending })));
            }
            if pending != said {
                context.out.note(format!("waiting for required checks: {}", pending.join(", ")));
                said = pending;
            }
            context.pause(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn already_fixed(&mut self, pair: &Pair) -> Result<Flow<()>, MergeError> {
        let task = self.task()?;
        if self.options.if_fixed == IfFixed::GoOn {
            // Looked at first, so that what the person goes on with is what is recorded.
            fixed::check(self.store, self.forge, &task, &pair.base)?;
            self.store.write(|tx| -> Result<_, StoreError> {
                tx.continue_findings(task.id, &Actor::Person)
            })?;
        }
        Ok(match fixed::check(self.store, self.forge, &task, &pair.base)? {
            AlreadyFixed::No => Flow::Done((), "nothing found".to_owned()),
            AlreadyFixed::Unknown(why) => Flow::Stop(Box::new(Ending::FixedUnknown { why })),
            AlreadyFixed::Found(findings) => {
                Flow::Stop(Box::new(Ending::PossiblyFixed { findings }))
            }
        })
    }

    /// Makes the commit, looks once more at everything, records the attempt, sends it, reads back.
    fn land(&mut self, run: i64, pair: &Pair) -> Result<Flow<Ending>, MergeError> {
        let stop = |ending| Ok(Flow::Stop(Box::new(ending)));
        let (head_after, stays) = self.forge.head_after(self.options.head_after)?;
        for _ in 0..MAX_LOOKS {
            let generation = self.store.generation()?;
            let task = self.task()?;
            let verdict = self.verdict(pair)?;
            if !verdict.blockers.is_empty() {
                return stop(Ending::Blocked { blockers: verdict.blockers });
            }
            let text = message(self.options.method, task.issue, &task.title, &verdict.plan);
            let commit = match self.make(pair, &text)? {
                Made::Commit(commit) => commit,
                Made::Conflict(files) => return stop(Ending::Conflict { files }),
            };
            self.store.keep_commits(task.id, [&commit, &pair.base, &pair.head])?;
            let landing = Landing {
                base: &pair.base,
                head: &pair.head,
                commit: &commit,
                head_after,
                head_is_there: pair.head_is_there,
                method: self.options.method,
                message: &text,
            };
            let guard = match self.forge.guard(&landing) {
                Ok(guard) => guard,
                Err(ForgeError::Gh(error)) => {
                    return stop(Ending::RulesUnknown { why: error.to_string() });
                }
                Err(ForgeError::NotAllowed { what, hint }) => {
                    return stop(Ending::NotAllowed { why: what, hint });
                }
                Err(error) => return Err(error.into()),
            };
            // The last thing read before the attempt: what is there now.
            match self.compare(&task, &self.forge.read()?)? {
                Err(ending) => return stop(ending),
                Ok(Pair { moved_base: Some(found), .. }) => {
                    let expected = pair.base.clone();
                    let head_there = Some(pair.head.clone()).filter(|_| pair.head_is_there);
                    return stop(Ending::BaseMoved { expected, found, head_there, stays: None });
                }
                Ok(again) if again.lags_at.is_some() => {
                    return stop(Ending::HeadMoved {
                        expected: pair.head.clone(),
                        found: again.lags_at,
                    });
                }
                Ok(again) if again.head_is_there != pair.head_is_there => {
                    return stop(Ending::HeadMoved { expected: pair.head.clone(), found: None });
                }
                Ok(_) => {}
            }
            let mark = match self.forge.mark(guard) {
                Ok(mark) => mark,
                Err(ForgeError::Gh(error)) => {
                    return stop(Ending::RulesUnknown { why: error.to_string() });
                }
                Err(error) => return Err(error.into()),
            };
            self.crash_point("commit made");
            let place = self.forge.place();
            let recorded = self.store.write(|tx| -> Result<_, StoreError> {
                // Nothing that was judged may have changed since.
                if tx.generation()? != generation {
                    return Ok(None);
                }
                let new = NewAttempt {
                    run,
                    base: &pair.base,
                    head: &pair.head,
                    // Where the forge makes the commit, ours only showed that it can be made.
                    commit: if guard.is_by_forge() { &pair.head } else { &commit },
                    guard: guard.word(),
                    place: &place,
                    pull: mark.pull,
                    seen: mark.seen.as_deref(),
                };
                tx.record_attempt(&task, &new).map(Some)
            })?;
            let Some((attempt, task)) = recorded else { continue };
            self.crash_point("attempt recorded");
            let reported = self.forge.land(&landing, guard)?;
            self.crash_point("sent");
            let flow = self.settle(run, &task, attempt, &landing, guard, &mark, reported)?;
            return Ok(match (flow, stays) {
                (Flow::Done(ending, words), Some(why)) => {
                    Flow::Done(ending, format!("{words}; {why}"))
                }
                (flow, _) => flow,
            });
        }
        Err(MergeError::Restless)
    }

    fn make(&self, pair: &Pair, message: &str) -> Result<Made, MergeError> {
        let context = self.store.context();
        let recipe = Recipe {
            base: &pair.base,
            head: &pair.head,
            method: self.options.method,
            message,
            identity: &Identity::of_person(context, self.git())?,
            time: context.now(),
        };
        Ok(merge::make(self.git(), &recipe)?)
    }

    /// Reads what a push came to, and records it.
    #[expect(clippy::too_many_arguments, reason = "all that a landing was begun with")]
    fn settle(
        &mut self,
        run: i64,
        task: &TaskRow,
        attempt: i64,
        landing: &Landing<'_>,
        guard: Guard,
        mark: &Mark,
        reported: Reported,
    ) -> Result<Flow<Ending>, MergeError> {
        let truth = if guard.is_by_forge() {
            let sent = Sent { head: landing.head, guard, mark };
            self.truth_by_forge(run, task, attempt, landing, &sent, reported)
        } else {
            self.truth(landing, guard, reported)
        };
        let ending = match truth {
            Ok(ending) => ending,
            Err(error) => Ending::Unclear { words: error.to_string() },
        };
        let mut reason = ending.reason();
        let (state, to) = match &ending {
            Ending::Merged { .. } => (AttemptState::Merged, TaskState::Merged),
            Ending::Refused { .. } => (AttemptState::Failed, TaskState::MergeBlocked),
            // The attempt stays open: it may land yet.
            Ending::Unclear { .. } | Ending::Queued { .. } => {
                return Ok(Flow::Stop(Box::new(ending)));
            }
            _ => (AttemptState::Failed, TaskState::InReview),
        };
        self.crash_point("read back");
        if let Ending::Merged { commit, .. } = &ending {
            let left = self.finish_landing((landing.head, landing.head_after), guard, commit);
            if let Some(words) = left {
                reason = format!("{reason}; {words}");
            }
        }
        let task = &self.task()?;
        self.store.write(|tx| -> Result<_, StoreError> {
            if let (Ending::Merged { commit, .. }, true) = (&ending, guard.is_by_forge()) {
                tx.put_landed(attempt, commit)?;
            }
            tx.settle_attempt(task, attempt, state, &reason, to)?;
            if state == AttemptState::Merged {
                tx.end_merge_run(self.lease, run, ending.word(), &reason)?;
            }
            Ok(())
        })?;
        self.crash_point("settled");
        if state != AttemptState::Merged {
            return Ok(Flow::Stop(Box::new(ending)));
        }
        self.forget_fetched();
        let words = format!("{reason}, by {}", guard.words());
        Ok(Flow::Done(ending, words))
    }

    /// What a landing came to that the forge carries out: what it shows, not what it answered.
    fn truth_by_forge(
        &self,
        run: i64,
        task: &TaskRow,
        attempt: i64,
        landing: &Landing<'_>,
        sent: &Sent<'_>,
        reported: Reported,
    ) -> Result<Ending, MergeError> {
        for look in 1.. {
            match self.follow(run, task, attempt, sent)? {
                Some(Landed::Merged(commit)) => {
                    let tips = self.forge.fetch(&self.fetch_refs())?;
                    // The branch may be shown a moment later than the pull request.
                    if !self.contains(&tips.base, &commit)? && look < LOOKS_AFTER {
                        self.store.context().pause(PAUSES.0);
                        continue;
                    }
                    return Ok(Ending::Merged {
                        commit,
                        base: landing.base.clone(),
                        head: landing.head.clone(),
                        guard: sent.guard.word().to_owned(),
                        head_after: None,
                        found: false,
                    });
                }
                Some(Landed::Queued(words)) => return Ok(Ending::Queued { words }),
                Some(Landed::Gone(words)) => return Ok(Ending::Refused { words }),
                Some(Landed::NotYet) | None => {}
            }
            let tips = self.forge.read()?;
            if tips.base != *landing.base {
                return Ok(Ending::BaseMoved {
                    expected: landing.base.clone(),
                    found: tips.base,
                    head_there: tips.head,
                    stays: None,
                });
            }
            if tips.head.as_ref() != Some(landing.head) {
                return Ok(Ending::HeadMoved { expected: landing.head.clone(), found: tips.head });
            }
            match &reported {
                Reported::Refused(words) => return Ok(Ending::Refused { words: words.clone() }),
                Reported::Unclear(words) if look == LOOKS_AFTER => {
                    return Ok(Ending::Unclear { words: words.clone() });
                }
                Reported::Accepted if look == LOOKS_AFTER => {
                    let words = format!("{} took it and does not show it", self.forge.place());
                    return Ok(Ending::Unclear { words });
                }
                Reported::Unclear(_) | Reported::Accepted => {
                    self.store.context().pause(PAUSES.0);
                }
            }
        }
        unreachable!("the last look ends the loop")
    }

    /// What a push came to, read from the refs.
    fn truth(
        &self,
        landing: &Landing<'_>,
        guard: Guard,
        reported: Reported,
    ) -> Result<Ending, MergeError> {
        let tips = self.forge.fetch(&self.fetch_refs())?;
        if self.contains(&tips.base, landing.commit)? {
            return Ok(Ending::Merged {
                commit: landing.commit.clone(),
                base: landing.base.clone(),
                head: landing.head.clone(),
                guard: guard.word().to_owned(),
                head_after: landing.head_is_there.then_some(landing.head_after),
                found: false,
            });
        }
        // A base or head that moved on keeps this push out for good.
        if tips.base != *landing.base {
            return Ok(Ending::BaseMoved {
                expected: landing.base.clone(),
                found: tips.base,
                head_there: tips.head,
                stays: None,
            });
        }
        if guard.covers_head() && tips.head.as_ref() != Some(landing.head) {
            return Ok(Ending::HeadMoved { expected: landing.head.clone(), found: tips.head });
        }
        Ok(match reported {
            Reported::Refused(words) => Ending::Refused { words },
            Reported::Unclear(words) => Ending::Unclear { words },
            Reported::Accepted => Ending::Unclear {
                words: format!("{} took it and does not show it", self.forge.place()),
            },
        })
    }

    /// Records how the run ended and moves the task to where that leaves it.
    fn conclude(&self, run: i64, ending: &Ending) -> Result<(), MergeError> {
        let task = self.task()?;
        let to = match ending {
            Ending::Merged { .. }
            | Ending::Unclear { .. }
            | Ending::Waits { .. }
            | Ending::Queued { .. }
            | Ending::WrongState { .. } => task.state,
            Ending::PossiblyFixed { .. } => TaskState::PossiblyFixed,
            Ending::RebaseConflict { .. } => TaskState::NeedsHuman,
            Ending::FixedUnknown { .. }
            | Ending::NotAllowed { .. }
            | Ending::Refused { .. }
            | Ending::ChecksLate { .. }
            | Ending::RulesUnknown { .. }
            | Ending::ChecksFailed { .. } => TaskState::MergeBlocked,
            Ending::Blocked { .. }
            | Ending::BaseMoved { .. }
            | Ending::HeadMoved { .. }
            | Ending::Conflict { .. } => TaskState::InReview,
        };
        let reason = ending.reason();
        self.store.write(|tx| -> Result<_, StoreError> {
            tx.end_merge_run(self.lease, run, ending.word(), &reason)?;
            if to != task.state {
                tx.set_task_state(&task, to, &reason, Actor::Codeboost)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn already_merged(&self, task: &TaskRow) -> Result<Ending, MergeError> {
        let attempts = self.store.read(|tx| tx.merge_attempts(task.id))?;
        Ok(match attempts.iter().find(|attempt| attempt.state == AttemptState::Merged) {
            Some(attempt) => found(attempt),
            None => Ending::WrongState { state: task.state, reason: task.reason.clone() },
        })
    }

    /// The person looked at what may have fixed the issue, and goes on.
    fn go_on(&self, task: &TaskRow) -> Result<(), MergeError> {
        self.store.write(|tx| -> Result<_, StoreError> {
            tx.continue_findings(task.id, &Actor::Person)?;
            let words = "the person went on with it";
            tx.set_task_state(task, TaskState::InReview, words, Actor::Person)
        })?;
        Ok(())
    }

    fn verdict(&self, pair: &Pair) -> Result<Verdict, MergeError> {
        let mut verdict = self.judge.judge(&pair.base, &pair.head).map_err(MergeError::Judge)?;
        let task = self.lease.task();
        let published = self.store.read(|tx| tx.publication(task))?;
        if published.is_some_and(|published| published.draft) {
            let words = "Publish it as ready: it is a draft".to_owned();
            verdict.blockers.push(Blocker { code: Code::Rules, words, target: None });
        }
        Ok(verdict)
    }

    /// Whether `commit` is `tip` or one of its ancestors.
    fn contains(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, MergeError> {
        Ok(tip == commit || self.git().is_ancestor(commit, tip)?)
    }

    /// Whether `there` is a head that our own rebases turned into `head`.
    fn was_rebased(&self, there: &CommitId, head: &CommitId) -> Result<bool, StoreError> {
        self.store.read(|tx| tx.was_rebased_to(self.lease.task(), there, head))
    }

    /// Whether a conflict with a moved base is all that a person has to look at.
    fn waits_for_rebase(&self, task: &TaskRow) -> Result<bool, StoreError> {
        if task.state != TaskState::NeedsHuman {
            return Ok(false);
        }
        let runs = self.store.read(|tx| tx.merge_runs(task.id))?;
        let last = runs.last().and_then(|run| run.outcome.as_deref());
        Ok(last == Some(REBASE_CONFLICT))
    }

    fn fetch_refs(&self) -> String {
        format!("refs/codeboost/fetch/{}", self.lease.task())
    }

    /// Takes the private refs of a task away that has merged; they only keep what the base keeps.
    fn forget_fetched(&self) {
        let below = self.fetch_refs();
        let input = format!("delete {below}/base\ndelete {below}/head\n");
        let _ = self.git().output_with(["update-ref", "--stdin"], Some(input.as_bytes()));
    }

    fn task(&self) -> Result<TaskRow, StoreError> {
        let id = self.lease.task();
        let task = self.store.read(|tx| tx.task(id))?;
        task.ok_or_else(|| StoreError::Damaged("the task of a lease is missing".into()))
    }

    fn git(&self) -> &Git<'a> {
        self.store.git()
    }

    fn now(&self) -> Timestamp {
        self.store.context().now()
    }

    fn crash_point(&self, name: &str) {
        crash_point(self.store.context(), &format!("merge: {name}"));
    }
}

fn push_words(pair: &Pair, place: &str) -> String {
    match &pair.lags_at {
        Some(old) => format!("bringing the head on {place} from {old:.12} to {:.12}", pair.head),
        None => "comparing heads".to_owned(),
    }
}

fn is_by_forge(attempt: &MergeAttemptRow) -> bool {
    Guard::parse(&attempt.guard).is_some_and(Guard::is_by_forge)
}

fn found(attempt: &MergeAttemptRow) -> Ending {
    Ending::Merged {
        commit: attempt.landed.as_ref().unwrap_or(&attempt.commit).clone(),
        base: attempt.base.clone(),
        head: attempt.head.clone(),
        guard: attempt.guard.clone(),
        head_after: None,
        found: true,
    }
}
