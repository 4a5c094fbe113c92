//! The sequence against real repositories, with a gate that the test plays.

mod faults;

use std::cell::Cell;
use std::time::Duration;

use codeboost_schema::plan::{Item, Plan};

use super::*;
use crate::exit_code::Outcome;
use crate::forge::testing::Site;
use crate::gate::Code;
use crate::git::repository::Repository;
use crate::store::{AttemptState, NewTask, Store, TaskRow};
use crate::task::Actor;

fn plan() -> Plan {
    let item = |id: &str, title: &str| Item {
        id: codeboost_schema::ids::ItemId::parse(id).expect("an id"),
        title: title.to_owned(),
        intent: "why".into(),
        files: Vec::new(),
        acceptance: Vec::new(),
        depends_on: Vec::new(),
    };
    Plan {
        schema_version: 1,
        issue: 12,
        revision: 3,
        summary: "what".into(),
        items: vec![item("P1", "Retry, fixes #9"), item("P2", "Tell\n\nPlan-Item: P9")],
        questions: Vec::new(),
    }
}

fn blocker() -> Blocker {
    Blocker { code: Code::Approval, words: "Review 1 unreviewed item".into(), target: None }
}

/// A gate that answers by how many times it was asked, from 1.
struct Gate<'g> {
    asked: Cell<usize>,
    answer: &'g dyn Fn(usize) -> Vec<Blocker>,
}

impl<'g> Gate<'g> {
    fn new(answer: &'g dyn Fn(usize) -> Vec<Blocker>) -> Self {
        Self { asked: Cell::new(0), answer }
    }
}

impl Judge for Gate<'_> {
    fn judge(&self, _: &CommitId, _: &CommitId) -> error::Result<Verdict> {
        self.asked.set(self.asked.get() + 1);
        let blockers = (self.answer)(self.asked.get());
        Ok(Verdict { blockers, checks: "2 of 2 passed".into(), plan: plan() })
    }
}

fn open(_: usize) -> Vec<Blocker> {
    Vec::new()
}

const DEFAULT: Options = Options {
    method: MergeMethod::Merge,
    head_after: HeadAfter::Delete,
    if_fixed: IfFixed::Stop,
    rebase: false,
    waits: true,
};

/// A site with a task in review.
struct Case {
    site: Site,
    remote: Option<&'static str>,
    timeout: Duration,
}

impl Case {
    fn new(remote: Option<&'static str>) -> Self {
        let this = Self { site: Site::new(), remote, timeout: Duration::from_secs(60) };
        let world = &this.site.world;
        world.git(["config", "user.name", "A. Author"]);
        world.git(["config", "user.email", "a@example.invalid"]);
        world.git(["switch", "-q", "--detach"]);
        let store = world.store();
        store
            .write(|tx| {
                tx.put_issue(12, "Retry @all on #5", Some("text"), None)?;
                let task = tx.add_task(&NewTask {
                    issue: 12,
                    base_ref: "refs/heads/main",
                    base_commit_id: &this.site.base,
                    head_ref: "refs/heads/topic",
                    head_commit_id: &this.site.head,
                    made_head: false,
                })?;
                tx.set_task_state(&task, TaskState::InReview, "linked", Actor::Codeboost)
            })
            .map_err(|error: StoreError| error)
            .expect("a task");
        this
    }

    fn task(&self) -> TaskRow {
        let store = self.site.world.store();
        store.read(|tx| tx.select_any_task(Some(12))).expect("a task")
    }

    fn run_with(&self, options: Options, judge: &dyn Judge) -> (Ending, Vec<StepReport>) {
        let repository = self.site.world.repository();
        let (store, _) = Store::create(&repository, None).expect("a state");
        self.run_on(&repository, &store, options, judge)
    }

    fn try_run(&self, options: Options) -> Result<Ending, MergeError> {
        let repository = self.site.world.repository();
        let (store, _) = Store::create(&repository, None).expect("a state");
        let lease = store.lease(&self.task(), "merge").expect("a lock").expect("free");
        let forge = self.site.forge_within(&repository, self.remote, self.timeout);
        let gate = Gate::new(&open);
        Sequence::new(&store, &lease, &forge, &gate, options, &mut |_| {}).run()
    }

    fn run_on(
        &self,
        repository: &Repository<'_>,
        store: &Store<'_>,
        options: Options,
        judge: &dyn Judge,
    ) -> (Ending, Vec<StepReport>) {
        let lease = store.lease(&self.task(), "merge").expect("a lock").expect("free");
        let forge = self.site.forge_within(repository, self.remote, self.timeout);
        let mut steps = Vec::new();
        let mut report = |step: &StepReport| steps.push(step.clone());
        let sequence = Sequence::new(store, &lease, &forge, judge, options, &mut report);
        let ending = sequence.run().expect("nothing unreadable");
        (ending, steps)
    }

    fn run(&self) -> (Ending, Vec<StepReport>) {
        self.run_with(DEFAULT, &Gate::new(&open))
    }

    fn attempts(&self) -> Vec<(AttemptState, CommitId)> {
        let store = self.site.world.store();
        let attempts = store.read(|tx| tx.merge_attempts(self.task().id)).expect("readable");
        attempts.into_iter().map(|attempt| (attempt.state, attempt.commit)).collect()
    }

    fn place(&self) -> std::path::PathBuf {
        match self.remote {
            Some(_) => self.site.remote(),
            None => self.site.world.root().to_owned(),
        }
    }

    fn base_there(&self) -> String {
        self.site.at(&self.place(), "refs/heads/main")
    }

    fn head_there(&self) -> String {
        self.site.at(&self.place(), "refs/heads/topic")
    }

    /// What has to hold after a merge: the base is the one commit, made from the reviewed pair.
    fn assert_merged(&self, ending: &Ending) {
        let Ending::Merged { commit, base, head, .. } = ending else { panic!("{ending:?}") };
        assert_eq!((base, head), (&self.site.base, &self.site.head));
        assert_eq!(self.base_there(), commit.as_str());
        let parents = self.site.world.git(["log", "-1", "--format=%P", commit.as_str()]);
        assert_eq!(parents, format!("{base} {head}"));
        assert_eq!(self.task().state, TaskState::Merged);
        let merged = self.attempts();
        let merged = merged.iter().filter(|(state, _)| *state == AttemptState::Merged);
        assert_eq!(merged.count(), 1);
        assert_eq!(ending.outcome(), Outcome::Done);
    }

    fn assert_untouched(&self, state: TaskState) {
        assert_eq!(self.base_there(), self.site.base.as_str());
        assert_eq!(self.task().state, state);
    }
}

#[test]
fn every_step_is_taken_and_recorded_and_the_reviewed_pair_lands() {
    for remote in [Some("origin"), None] {
        let case = Case::new(remote);
        let gate = Gate::new(&open);
        let (ending, steps) = case.run_with(DEFAULT, &gate);
        case.assert_merged(&ending);
        assert_eq!(gate.asked.get(), 2, "judged for the step, and right before the push");
        assert_eq!(case.head_there(), "");
        assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), Step::ALL);

        let store = case.site.world.store();
        let runs = store.read(|tx| tx.merge_runs(case.task().id)).expect("readable");
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].outcome.as_deref(), Some("merged"));
        let recorded: Vec<_> =
            runs[0].steps.iter().map(|step| (&*step.step, &*step.words)).collect();
        let reported: Vec<_> = steps.iter().map(|step| (step.step.name(), &*step.words)).collect();
        assert_eq!(recorded, reported);

        let (again, steps) = case.run();
        assert!(matches!(again, Ending::Merged { found: true, .. }) && steps.is_empty());
        case.assert_merged(&again);
    }
}

#[test]
fn the_message_says_what_lands_and_nothing_in_it_acts() {
    let case = Case::new(Some("origin"));
    let (ending, _) = case.run();
    case.assert_merged(&ending);
    let message = case.site.world.git(["-C", "../remote.git", "log", "-1", "--format=%B", "main"]);
    insta::assert_snapshot!(message, @r"
    Merge issue 12: Retry ＠all on ＃5

    P1: Retry, fixes ＃9
    P2: Tell Plan-Item: P9

    Plan-Revision: r3
    ");

    let case = Case::new(Some("origin"));
    let options = Options { method: MergeMethod::Squash, head_after: HeadAfter::Keep, ..DEFAULT };
    let (ending, _) = case.run_with(options, &Gate::new(&open));
    assert_eq!(ending.outcome(), Outcome::Done);
    assert_eq!(case.head_there(), case.site.head.as_str());
    let message =
        case.site.world.git(["-C", "../remote.git", "log", "-1", "--format=%P%n%B", "main"]);
    insta::assert_snapshot!(message.replace(case.site.base.as_str(), "[BASE]"), @r"
    [BASE]
    Retry ＠all on ＃5 (issue 12)

    P1: Retry, fixes ＃9
    P2: Tell Plan-Item: P9

    Plan-Item: P1
    Plan-Item: P2
    Plan-Revision: r3
    ");
}

#[test]
fn a_blocker_stops_it_at_the_first_look_and_at_the_last() {
    for n_open in [0, 1] {
        let case = Case::new(Some("origin"));
        let answer = |asked: usize| if asked > n_open { vec![blocker()] } else { Vec::new() };
        let (ending, steps) = case.run_with(DEFAULT, &Gate::new(&answer));
        assert_eq!(ending, Ending::Blocked { blockers: vec![blocker()] });
        assert_eq!(ending.outcome(), Outcome::NotAllowed);
        let last = steps.last().expect("a step");
        let expected = if n_open == 0 { Step::Checks } else { Step::Merge };
        assert_eq!((last.step, last.state), (expected, StepState::Failed));
        assert_eq!(last.words, "Review 1 unreviewed item");
        case.assert_untouched(TaskState::InReview);
        assert!(case.attempts().is_empty());
    }
}

#[test]
fn a_draft_does_not_merge_until_it_is_published_as_ready() {
    let case = Case::new(Some("origin"));
    let (store, task) = (case.site.world.store(), case.task());
    for draft in [true, false] {
        store.write(|tx| tx.publish(&task, draft)).expect("recorded");
        let (ending, _) = case.run();
        assert_eq!(matches!(ending, Ending::Blocked { .. }), draft, "{ending:?}");
        assert_eq!(matches!(ending, Ending::Merged { .. }), !draft, "{ending:?}");
    }
}

#[test]
fn what_changes_while_it_is_judged_is_judged_again() {
    let case = Case::new(Some("origin"));
    let repository = case.site.world.repository();
    let (store, _) = Store::create(&repository, None).expect("a state");
    let theirs = case.site.world.store();
    // Another process records something during the last look, and only then is there a blocker.
    let answer = |asked: usize| {
        if asked == 2 {
            theirs.write(|tx| tx.put_issue(99, "x", None, None)).expect("written");
        }
        if asked > 2 { vec![blocker()] } else { Vec::new() }
    };
    let (ending, _) = case.run_on(&repository, &store, DEFAULT, &Gate::new(&answer));
    assert_eq!(ending, Ending::Blocked { blockers: vec![blocker()] });
    case.assert_untouched(TaskState::InReview);
}

#[test]
fn a_moved_head_goes_back_to_review() {
    // On the remote, by somebody else; and here, by the person.
    for there in [true, false] {
        let case = Case::new(Some("origin"));
        let world = &case.site.world;
        world.git(["switch", "-q", "--detach", "topic"]);
        world.git(["commit", "-q", "--allow-empty", "-m", "more"]);
        let found = world.commit_id("HEAD");
        if there {
            world.git(["push", "-q", "origin", "HEAD:topic"]);
        } else {
            world.git(["branch", "-q", "-f", "topic", "HEAD"]);
        }
        let (ending, steps) = case.run();
        let expected = case.site.head.clone();
        assert_eq!(ending, Ending::HeadMoved { expected, found: Some(found) });
        assert_eq!(ending.outcome(), Outcome::NotAllowed);
        assert_eq!(steps.len(), 1);
        case.assert_untouched(TaskState::InReview);
    }
}

#[test]
fn a_head_whose_branch_is_gone_is_not_landed() {
    let case = Case::new(Some("origin"));
    case.site.world.git(["push", "-q", "origin", ":topic"]);
    case.site.world.git(["branch", "-q", "-D", "topic"]);
    let (ending, _) = case.run();
    let expected = case.site.head.clone();
    assert_eq!(ending, Ending::HeadMoved { expected, found: None });
    case.assert_untouched(TaskState::InReview);
}

#[test]
fn a_moved_base_is_refused() {
    for remote in [Some("origin"), None] {
        let case = Case::new(remote);
        let world = &case.site.world;
        world.git(["switch", "-q", "--detach", "main"]);
        world.git(["commit", "-q", "--allow-empty", "-m", "more"]);
        let found = world.commit_id("HEAD");
        match remote {
            Some(_) => world.git(["push", "-q", "origin", "HEAD:main"]),
            None => world.git(["branch", "-q", "-f", "main", "HEAD"]),
        };
        let (ending, _) = case.run();
        let expected = case.site.base.clone();
        assert!(
            matches!(&ending, Ending::BaseMoved { expected: a, found: b, .. }
                if *a == expected && *b == found),
            "{ending:?}"
        );
        assert_eq!(ending.outcome(), Outcome::NotAllowed);
        assert_eq!(case.base_there(), found.as_str());
        assert_eq!(case.task().state, TaskState::InReview);
    }
}

#[test]
fn a_ref_that_moves_inside_the_servers_window_lands_nothing_and_the_next_run_says_why() {
    for (moved, to) in [("main", "refs/heads/topic"), ("topic", "refs/heads/main")] {
        let case = Case::new(Some("origin"));
        case.site.hook_that_moves(moved, to);
        let (ending, steps) = case.run();
        match (moved, &ending) {
            ("main", Ending::BaseMoved { .. }) | ("topic", Ending::HeadMoved { .. }) => {}
            _ => panic!("{moved}: {ending:?}"),
        }
        assert_eq!(steps.last().expect("a step").step, Step::Merge);
        assert_eq!(case.task().state, TaskState::InReview);
        let attempts = case.attempts();
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].0, AttemptState::Failed);
        assert_ne!(case.base_there(), attempts[0].1.as_str());

        // Put back as it was, it lands.
        std::fs::remove_file(case.site.remote().join("hooks/pre-receive")).expect("removed");
        for (name, id) in [("main", &case.site.base), ("topic", &case.site.head)] {
            let spec = format!("+{id}:refs/heads/{name}");
            case.site.world.git(["push", "-q", "origin", &spec]);
        }
        let (ending, _) = case.run();
        case.assert_merged(&ending);
    }
}

#[test]
fn a_refusal_is_shown_word_for_word_and_can_be_tried_again() {
    let case = Case::new(Some("origin"));
    case.site.hook("update", "echo 'Frozen until Monday' >&2; exit 1");
    let (ending, _) = case.run();
    let Ending::Refused { words } = &ending else { panic!("{ending:?}") };
    assert!(words.contains("remote: Frozen until Monday"), "{words}");
    assert_eq!(ending.outcome(), Outcome::NotAllowed);
    case.assert_untouched(TaskState::MergeBlocked);
    assert!(case.task().reason.contains("Frozen until Monday"));

    case.site.hook("update", "exit 0");
    let (ending, _) = case.run();
    case.assert_merged(&ending);
}

#[test]
fn an_unclear_answer_stays_open_until_git_tells() {
    let mut case = Case::new(Some("origin"));
    case.timeout = Duration::from_secs(2);
    case.site.hook("pre-receive", "sleep 100");
    let (ending, _) = case.run();
    assert!(matches!(&ending, Ending::Unclear { .. }), "{ending:?}");
    assert_eq!(ending.outcome(), Outcome::Failed);
    case.assert_untouched(TaskState::Merging);
    assert_eq!(case.attempts()[0].0, AttemptState::Submitting);

    case.site.hook("pre-receive", "exit 0");
    case.timeout = Duration::from_secs(60);
    let (ending, _) = case.run();
    case.assert_merged(&ending);
    assert_eq!(case.attempts()[0].0, AttemptState::Failed);
}

#[test]
fn a_push_that_lands_after_it_was_given_up_is_found() {
    // Before the next run, or with more on top of it.
    for more in [false, true] {
        let case = Case::new(Some("origin"));
        case.site.hook("update", "exit 1");
        let (ending, _) = case.run();
        assert!(matches!(ending, Ending::Refused { .. }), "{ending:?}");
        let (_, commit) = case.attempts().remove(0);
        case.site.hook("update", "exit 0");
        let world = &case.site.world;
        world.git(["switch", "-q", "--detach", commit.as_str()]);
        if more {
            world.git(["commit", "-q", "--allow-empty", "-m", "more"]);
        }
        world.git(["push", "-q", "origin", "HEAD:main", ":topic"]);
        let blocked = |_| vec![blocker()];
        let (ending, steps) = case.run_with(DEFAULT, &Gate::new(&blocked));
        assert!(matches!(&ending, Ending::Merged { found: true, .. }), "{ending:?}");
        assert_eq!(steps.len(), 1);
        assert_eq!(case.task().state, TaskState::Merged);
        assert_eq!(case.attempts(), [(AttemptState::Merged, commit)]);
    }
}

#[test]
fn a_head_that_lags_on_the_remote_is_brought_up_to_the_reviewed_one() {
    let case = Case::new(Some("origin"));
    let base = format!("+{}:refs/heads/topic", case.site.base);
    case.site.world.git(["push", "-q", "origin", &base]);
    let (ending, steps) = case.run();
    case.assert_merged(&ending);
    let push = &steps[Step::Push.nth() - 1];
    assert_eq!(push.state, StepState::Done);
    assert_eq!(case.head_there(), "");
}

#[test]
fn a_head_that_the_remote_does_not_have_lands_with_the_base_guarded() {
    let case = Case::new(Some("origin"));
    case.site.world.git(["push", "-q", "origin", ":topic"]);
    let (ending, steps) = case.run();
    case.assert_merged(&ending);
    assert!(matches!(&ending, Ending::Merged { guard, .. } if guard == "pinned-base"));
    let words = &steps.last().expect("a step").words;
    assert!(words.contains("lease on the base alone"), "{words}");
}

#[test]
fn a_checked_out_base_is_refused_with_the_way_out() {
    let case = Case::new(None);
    case.site.world.git(["switch", "-q", "main"]);
    let (ending, _) = case.run();
    let Ending::NotAllowed { why, hint } = &ending else { panic!("{ending:?}") };
    assert!(why.starts_with("main is checked out in ") && hint.contains("--detach"), "{why}");
    assert_eq!(ending.outcome(), Outcome::NotAllowed);
    case.assert_untouched(TaskState::MergeBlocked);

    case.site.world.git(["switch", "-q", "topic"]);
    let (ending, _) = case.run();
    case.assert_merged(&ending);
    assert_eq!(case.head_there(), case.site.head.as_str(), "it is checked out, so it stays");
}

#[test]
fn what_may_be_fixed_already_waits_for_a_person() {
    let case = Case::new(None);
    let world = &case.site.world;
    world.git(["switch", "-q", "topic"]);
    world.git(["rebase", "-q", "--onto", "main", "main"]);
    world.git(["switch", "-q", "--detach", "main"]);
    world.git(["commit", "-q", "--allow-empty", "-m", "fixes #12 by hand"]);
    let found = world.commit_id("HEAD");
    world.git(["branch", "-q", "-f", "main", "HEAD"]);
    world.git(["rebase", "-q", "--onto", "main", case.site.base.as_str(), "topic"]);
    world.git(["switch", "-q", "--detach"]);
    let (base, head) = (world.commit_id("main"), world.commit_id("topic"));
    let store = world.store();
    let task = case.task();
    store
        .write(|tx| tx.set_task_commits(&task, &base, &head, Actor::Person))
        .map_err(|error: StoreError| error)
        .expect("rebased");

    let (ending, _) = case.run();
    let finding = Finding::Commit { commit: found, subject: "fixes #12 by hand".into() };
    assert_eq!(ending, Ending::PossiblyFixed { findings: vec![finding] });
    assert_eq!(ending.outcome(), Outcome::Waits);
    assert_eq!(case.task().state, TaskState::PossiblyFixed);

    let (ending, _) = case.run();
    assert!(matches!(ending, Ending::WrongState { state: TaskState::PossiblyFixed, .. }));
    assert_eq!(ending.outcome(), Outcome::Waits);

    let options = Options { if_fixed: IfFixed::GoOn, ..DEFAULT };
    let (ending, _) = case.run_with(options, &Gate::new(&open));
    assert!(matches!(ending, Ending::Merged { .. }), "{ending:?}");
}

#[test]
fn a_task_that_is_not_in_review_does_not_merge() {
    let case = Case::new(Some("origin"));
    let (store, task) = (case.site.world.store(), case.task());
    store
        .write(|tx| tx.set_task_state(&task, TaskState::NeedsHuman, "look", Actor::Codeboost))
        .map_err(|error: StoreError| error)
        .expect("a legal step");
    let (ending, steps) = case.run();
    let state = TaskState::NeedsHuman;
    assert_eq!(ending, Ending::WrongState { state, reason: "look".into() });
    assert_eq!(ending.outcome(), Outcome::Waits);
    assert!(steps.is_empty());
    case.assert_untouched(TaskState::NeedsHuman);
}
