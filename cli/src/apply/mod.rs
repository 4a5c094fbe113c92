//! Decisions: from a file or the terminal into the record.
//!
//! | module | does |
//! |---|---|
//! | [`mod@read`] | the file: regular, bounded, not through links |
//! | [`signature`] | the detached SSH signature and the allowed signers |
//! | [`book`] | what holds for the decisions of any file: ids, contradictions, order |
//! | [`compare`] | which decisions can be recorded, and why the others can't |
//! | [`desk`] | the same for decisions about a plan |
//! | [`mod@record`] | all that can be, in one transaction |
//! | [`mod@verify`] | the same questions about an archived bundle, offline |
//!
//! | point | killed there |
//! |---|---|
//! | before the transaction | nothing is recorded; evidence without a record is harmless |
//! | after it | everything is; the same file again is answered `already` |
//! | before an errand is carried out | the errand is open: this file again carries it out |

pub mod book;
pub mod compare;
pub mod desk;
pub mod read;
pub mod record;
pub mod signature;
pub mod verify;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use codeboost_schema::answers::{Answers, Named, Refusal, Refused};
use codeboost_schema::decisions::{Action, Decision, Decisions, DecisionsError};
use codeboost_schema::form::Form;
use codeboost_schema::ids::{Digest, ItemId, Uuid};
use codeboost_schema::plan::Plan;

use crate::apply::book::{Judgement, named};
use crate::apply::compare::{Page, Question, ShownSegments, belongs_to, judge, needs_page};
use crate::apply::desk::{Problems, judge_plan};
use crate::apply::record::{Recorded, record};
use crate::apply::signature::{AllowedSigners, SignatureError, SignersError};
use crate::approval::policy::Reviewer;
use crate::config;
use crate::context::time_text;
use crate::git::checkout::Surroundings;
use crate::git::repository::Repository;
use crate::plan::problem::Problem;
use crate::process::crash_point;
use crate::review::form::{FormRefusal, verify};
use crate::review::plan::PlanState;
use crate::review::read::{Loaded, ReviewError, follow, keys, old_page, read, task_of};
use crate::review::{Review, uuid};
use crate::stage::{self, FileError};
use crate::store::{Lease, Occasion, Store, StoreError, TaskRow};

/// Why a whole file is refused, or can't be applied. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no decisions file.
    #[error("{name} is no decisions file that can be applied")]
    Malformed {
        /// How the file was named.
        name: String,
        /// What is wrong.
        source: DecisionsError,
    },
    /// The form is not accepted.
    #[error("{name} carries a form that is not accepted")]
    Form {
        /// How the file was named.
        name: String,
        /// Why.
        source: FormRefusal,
    },
    /// The form is for something else.
    #[error("{name} belongs to another {what}")]
    Elsewhere {
        /// How the file was named.
        name: String,
        /// `repository`, `task` or `plan`.
        what: &'static str,
    },
    /// The detached signature is not accepted.
    #[error("the signature of {name} is not accepted")]
    Signature {
        /// How the file was named.
        name: String,
        /// Why.
        source: SignatureError,
    },
    /// The allowed signers can't be read.
    #[error("can't read the allowed signers in {place}")]
    Signers {
        /// Where they stand.
        place: String,
        /// What is wrong.
        source: SignersError,
    },
    /// The configuration names allowed signers that are not there.
    #[error("there are no allowed signers in {0}")]
    NoSigners(String),
    /// The review can't be read.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// The state can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Other processes keep changing the state.
    #[error("other processes keep changing the state")]
    Busy,
}

/// What became of a file, or of decisions from the terminal.
#[derive(Debug)]
pub struct Applied {
    /// The report.
    pub answers: Answers,
    /// The task; `None` when the form is of a page without one.
    pub task: Option<TaskRow>,
    /// Who decided, as far as that is proven.
    pub reviewer: Reviewer,
    /// The review as it stands now.
    pub review: Option<Review>,
    /// Sentences that the person must see.
    pub notices: Vec<String>,
    /// What was recorded now, in words.
    pub words: Vec<String>,
    /// Whether one of the decisions asks to merge, was recorded, and is not carried out yet.
    pub asks_to_merge: bool,
}

/// A decisions file as it was read.
#[derive(Debug, Clone, Copy)]
pub struct FileInput<'a> {
    /// How messages name it.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The bytes of its detached signature, if there is one.
    pub signature: Option<&'a [u8]>,
}

/// So often a file is judged anew when other processes change the state meanwhile.
const MAX_TRIES: usize = 5;

/// Applies a decisions file.
///
/// # Errors
/// [`ApplyError`] when the file is refused as a whole or the state can't be read or written; then
/// nothing is recorded.
pub fn apply_file(
    repository: &Repository<'_>,
    store: &Store<'_>,
    file: FileInput<'_>,
) -> Result<Applied, ApplyError> {
    let name = || file.name.to_owned();
    let decisions = Decisions::parse(file.bytes)
        .map_err(|source| ApplyError::Malformed { name: name(), source })?;
    let config = repository.config().map_err(ReviewError::from)?;
    let keys = keys(store, &config)?;
    let form = verify(&decisions.form, &keys)
        .map_err(|source| ApplyError::Form { name: name(), source })?;
    let elsewhere = |what| ApplyError::Elsewhere { name: name(), what };
    let here = store.read(|tx| tx.repository_id())?;
    if form.repository != uuid(&here) {
        return Err(elsewhere("repository"));
    }
    let Some(task) = task_of(store, &form)? else {
        if form.task.is_some() {
            return Err(elsewhere("task"));
        }
        return without_task(store, &decisions);
    };
    let task = follow(repository, store, task)?;
    let mut notices = Vec::new();
    let reviewer = reviewer(repository, store, &config, &task, file, &mut notices)?;
    let rows = ShownSegments::Rows(&decisions.shown);
    let asked = Asked {
        form: Some(&form),
        decisions: &decisions.decisions,
        shown: rows,
        reviewer: &reviewer,
        file: Some(file),
    };
    belongs_to(&form, &uuid(&here), &task).map_err(elsewhere)?;
    if form.head.is_none() {
        let mut applied = decide_plan(repository, store, &task, &asked)?;
        applied.notices = notices;
        return Ok(applied);
    }
    let (mut applied, loaded) = decide(repository, store, &task, &asked)?;
    if loaded.review.inputs.policy.needs_signature() && file.signature.is_none() {
        notices.push(loaded.review.inputs.policy.words().join("; "));
    }
    applied.notices = notices;
    Ok(applied)
}

/// Decisions from the terminal, made on the review as it stands.
///
/// `seen`: the item whose whole text was printed, if any.
///
/// # Errors
/// As [`apply_file`].
pub fn apply_actions(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    actions: Vec<Action>,
    seen: Option<&ItemId>,
) -> Result<Applied, ApplyError> {
    let decisions = decisions_of(actions);
    let reviewer = Reviewer::Terminal(store.person().to_owned());
    let asked = Asked {
        form: None,
        decisions: &decisions,
        shown: seen.map_or(ShownSegments::Nothing, ShownSegments::Item),
        reviewer: &reviewer,
        file: None,
    };
    Ok(decide(repository, store, task, &asked)?.0)
}

/// Decisions about a task's plan from the terminal, made on the plan as it stands.
///
/// # Errors
/// As [`apply_file`].
pub fn apply_plan_actions(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    actions: Vec<Action>,
) -> Result<Applied, ApplyError> {
    let decisions = decisions_of(actions);
    let reviewer = Reviewer::Terminal(store.person().to_owned());
    let asked = Asked {
        form: None,
        decisions: &decisions,
        shown: ShownSegments::Nothing,
        reviewer: &reviewer,
        file: None,
    };
    decide_plan(repository, store, task, &asked)
}

fn decisions_of(actions: Vec<Action>) -> Vec<Decision> {
    let id = || uuid(&uuid::Uuid::new_v4().hyphenated());
    actions.into_iter().map(|action| Decision::new(id(), action)).collect()
}

/// What is to be decided.
struct Asked<'a> {
    form: Option<&'a Form>,
    decisions: &'a [Decision],
    shown: ShownSegments<'a>,
    reviewer: &'a Reviewer,
    file: Option<FileInput<'a>>,
}

/// Reads, judges and records, again when another process came between.
fn decide(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    asked: &Asked<'_>,
) -> Result<(Applied, Loaded), ApplyError> {
    for _ in 0..MAX_TRIES {
        let loaded = read(repository, store, task)?;
        let plan = PlanState::read(repository, store, task)?;
        let (_lease, plan) = with_lease(store, plan, asked)?;
        let surroundings = OnceCell::new();
        let problems = |of: &Plan| problems_at(repository, &surroundings, &plan, of);
        let problems: &Problems<'_> = &problems;
        let recorded = recorded_contents(store, asked.decisions)?;
        let page = match asked.form {
            // Also when only the items differ: what of them did is a reason to tell.
            Some(form)
                if needs_page(form, &loaded.review)
                    || !form.offers(&loaded.review.now.fingerprints) =>
            {
                old_page(repository, store, form, &loaded.review)?
            }
            _ => None,
        };
        let page = page.map(|page| Page { link: page.link, placed: page.placed, now: page.now });
        let now = time_text(store.context().now());
        let (mut judgement, after) = judge(&Question {
            review: &loaded.review,
            form: asked.form,
            page: page.as_ref(),
            decisions: asked.decisions,
            shown: asked.shown,
            reviewer: asked.reviewer,
            recorded: &recorded,
            now: &now,
            plan: &plan,
            problems,
        });
        let review = Some(&after);
        if record_all(store, loaded.generation, task, asked, &judgement, review)? == Recorded::Moved
        {
            continue;
        }
        let open = store.read(|tx| tx.open_errands(task.id))?;
        let mut asks_to_merge = open.iter().any(|errand| {
            errand.kind == "merge"
                && asked.decisions.iter().any(|one| one.id == errand.made.decision)
        });
        // It was recorded on another pair, whatever has been approved on this one since.
        if asks_to_merge && let Some(why) = asked.form.and_then(|form| other_pair(form, &after)) {
            asks_to_merge = false;
            let is_merge = |named: &Named| named.kind == "merge";
            if let Some(at) = judgement.already.iter().position(is_merge) {
                let Named { id, kind } = judgement.already.remove(at);
                judgement.refused.push(Refused {
                    id,
                    kind,
                    reason: Refusal::Stale,
                    cause: Some(why.to_owned()),
                    what: format!("the {why} is not the one that it was asked for"),
                    before: None,
                    after: None,
                });
            }
        }
        let words = judgement.steps.iter().map(|step| step.words.clone()).collect();
        let answers = answers(judgement, &after, asked.form.is_some());
        let applied = Applied {
            answers,
            task: Some(task.clone()),
            reviewer: asked.reviewer.clone(),
            review: Some(after),
            notices: Vec::new(),
            words,
            asks_to_merge,
        };
        return Ok((applied, loaded));
    }
    Err(ApplyError::Busy)
}

/// What of the pair that a form was made for is another one now.
fn other_pair(form: &Form, now: &Review) -> Option<&'static str> {
    let link = &now.inputs.link;
    if form.head.as_ref() != Some(&link.head) {
        Some("head")
    } else if form.base.as_ref() != Some(&link.base) {
        Some("base")
    } else if form.revision != Some(now.inputs.plan.revision) {
        Some("plan")
    } else {
        None
    }
}

fn recorded_contents(
    store: &Store<'_>,
    decisions: &[Decision],
) -> Result<BTreeMap<Uuid, Digest>, StoreError> {
    store.read(|tx| {
        let mut found = BTreeMap::new();
        for decision in decisions {
            if let Some(content) = tx.decision_content(&decision.id)? {
                found.insert(decision.id.clone(), content);
            }
        }
        Ok(found)
    })
}

/// Records what was judged on the state of that generation, if there is anything.
fn record_all(
    store: &Store<'_>,
    generation: i64,
    task: &TaskRow,
    asked: &Asked<'_>,
    judgement: &Judgement,
    after: Option<&Review>,
) -> Result<Recorded, StoreError> {
    if judgement.steps.is_empty() {
        return Ok(Recorded::All);
    }
    let keep = |bytes: &[u8]| store.put_evidence(bytes);
    let revision = match after {
        Some(review) => review.inputs.plan.revision,
        None => store.read(|tx| tx.newest_plan(task.id))?.map_or(0, |row| row.plan.revision),
    };
    let on = Occasion {
        task: task.id,
        revision,
        base: task.base_commit_id.clone(),
        head: task.head_commit_id.clone(),
        reviewer: asked.reviewer.clone(),
        file: asked.file.map(|file| keep(file.bytes)).transpose()?,
        signature: asked.file.and_then(|file| file.signature).map(keep).transpose()?,
    };
    crash_point(store.context(), "apply: before recording");
    let recorded = record(store, generation, &on, &judgement.steps, after)?;
    if recorded == Recorded::All {
        crash_point(store.context(), "apply: recorded");
    }
    Ok(recorded)
}

/// The same for decisions of a page that shows a plan alone.
fn decide_plan(
    repository: &Repository<'_>,
    store: &Store<'_>,
    task: &TaskRow,
    asked: &Asked<'_>,
) -> Result<Applied, ApplyError> {
    for _ in 0..MAX_TRIES {
        let plan = PlanState::read(repository, store, task)?;
        let (_lease, plan) = with_lease(store, plan, asked)?;
        let recorded = recorded_contents(store, asked.decisions)?;
        let now = time_text(store.context().now());
        let surroundings = OnceCell::new();
        let problems = |of: &Plan| problems_at(repository, &surroundings, &plan, of);
        let who = (asked.reviewer, now.as_str());
        let judgement = judge_plan(&plan, &problems, asked.form, asked.decisions, &recorded, who);
        if record_all(store, plan.generation, task, asked, &judgement, None)? == Recorded::Moved {
            continue;
        }
        let words = judgement.steps.iter().map(|step| step.words.clone()).collect();
        return Ok(Applied {
            answers: plan_answers(judgement, task.issue),
            task: Some(task.clone()),
            reviewer: asked.reviewer.clone(),
            review: None,
            notices: Vec::new(),
            words,
            asks_to_merge: false,
        });
    }
    Err(ApplyError::Busy)
}

/// Takes the lease on the task while its plan is approved; who else holds it goes into the state.
fn with_lease(
    store: &Store<'_>,
    mut plan: PlanState,
    asked: &Asked<'_>,
) -> Result<(Option<Lease>, PlanState), StoreError> {
    let approves = |one: &Decision| matches!(one.action, Action::PlanApprove { .. });
    if !asked.decisions.iter().any(approves) {
        return Ok((None, plan));
    }
    match store.lease(&plan.task, "apply")? {
        Ok(lease) => Ok((Some(lease), plan)),
        Err(held) => {
            let by = held.by.map_or(String::new(), |by| format!(" ({by})"));
            plan.held = Some(format!("another run holds the task{by}; apply again when it ended"));
            Ok((None, plan))
        }
    }
}

/// Every problem of a plan at the task's base, which is read once.
fn problems_at(
    repository: &Repository<'_>,
    surroundings: &OnceCell<Result<Surroundings, String>>,
    state: &PlanState,
    plan: &Plan,
) -> Result<Vec<Problem>, String> {
    let read = || {
        Surroundings::read(repository, &state.task.base_commit_id)
            .map_err(|error| format!("the base can't be read: {error}"))
    };
    let surroundings = surroundings.get_or_init(read).as_ref().map_err(Clone::clone)?;
    Ok(surroundings.judge(plan, Some(state.task.issue), &state.allowed))
}

/// Who decided: whoever signed the file, else the person at the terminal.
fn reviewer(
    repository: &Repository<'_>,
    store: &Store<'_>,
    config: &config::Config,
    task: &TaskRow,
    file: FileInput<'_>,
    notices: &mut Vec<String>,
) -> Result<Reviewer, ApplyError> {
    let terminal = || Reviewer::Terminal(store.person().to_owned());
    let Some(signature) = file.signature else { return Ok(terminal()) };
    let Some(signers) = allowed_signers(repository, config, task)? else {
        notices.push(
            "The signature is kept and was not checked: the configuration names no allowed_signers."
                .into(),
        );
        return Ok(terminal());
    };
    let named = |name: &str| config.reviewers.names.iter().any(|known| known == name);
    signers
        .verify(file.bytes, signature, named, store.context().now())
        .map(|by| Reviewer::Signed { name: by.name, key: Some(by.key) })
        .map_err(|source| ApplyError::Signature { name: file.name.to_owned(), source })
}

/// The allowed signers that the local configuration names; `None` when it names none.
///
/// Never read from the change under review: a file in the repository is that of the base's branch.
fn allowed_signers(
    repository: &Repository<'_>,
    config: &config::Config,
    task: &TaskRow,
) -> Result<Option<AllowedSigners>, ApplyError> {
    let (place, bytes) = match &config.allowed_signers {
        None => return Ok(None),
        Some(config::AllowedSigners::File(path)) => {
            let bytes = stage::read(path, stage::MAX_SETTINGS).map_err(|error: FileError| {
                if error.kind() == std::io::ErrorKind::NotFound {
                    ApplyError::NoSigners(path.display().to_string())
                } else {
                    ApplyError::File(error)
                }
            })?;
            (path.display().to_string(), bytes)
        }
        Some(config::AllowedSigners::Base(path)) => {
            let git = repository.git();
            let tip = git.resolve(&task.base_ref).map_err(ReviewError::from)?;
            let tip = tip.unwrap_or_else(|| task.base_commit_id.clone());
            let place = format!("{path} of {tip:.12}");
            let bytes = git.file_at(&tip, path).map_err(ReviewError::from)?;
            (place.clone(), bytes.ok_or(ApplyError::NoSigners(place))?)
        }
    };
    AllowedSigners::parse(&bytes).map(Some).map_err(|source| ApplyError::Signers { place, source })
}

/// The answer to a page without a task: nothing of it can be recorded yet.
fn without_task(store: &Store<'_>, decisions: &Decisions) -> Result<Applied, ApplyError> {
    let refuse = |decision: &Decision| {
        let of_page = matches!(
            decision.action,
            Action::Queue { .. } | Action::TrustIssue { .. } | Action::Lesson { .. }
        );
        Refused {
            id: decision.id.clone(),
            kind: decision.action.word().to_owned(),
            reason: if of_page { Refusal::Blocked } else { Refusal::WrongState },
            cause: None,
            what: if of_page {
                "this codeboost has no such page; use the command for it".to_owned()
            } else {
                "the page belongs to no task".to_owned()
            },
            before: None,
            after: None,
        }
    };
    let recorded = recorded_contents(store, &decisions.decisions)?;
    let (already, refused): (Vec<_>, Vec<_>) = decisions
        .decisions
        .iter()
        .partition(|decision| recorded.get(&decision.id) == Some(&decision.content));
    Ok(Applied {
        answers: Answers {
            schema_version: 1,
            applied: Vec::new(),
            already: already.into_iter().map(named).collect(),
            refused: refused.into_iter().map(refuse).collect(),
            next: "codeboost status".to_owned(),
        },
        task: None,
        reviewer: Reviewer::Terminal(store.person().to_owned()),
        review: None,
        notices: Vec::new(),
        words: Vec::new(),
        asks_to_merge: false,
    })
}

fn answers(judgement: Judgement, after: &Review, on_page: bool) -> Answers {
    let issue = after.inputs.task.issue;
    let rejected = judgement.steps.iter().any(|step| step.decision.action.word() == "reject");
    let next = if rejected {
        format!("make the next revision: codeboost plan edit {issue}")
    } else if let Some(worst) = judgement.refused.iter().map(|refused| refused.reason).min() {
        way_on(worst, issue, on_page)
    } else if after.blockers.is_empty() {
        format!("nothing blocks the merge: codeboost merge {issue}")
    } else {
        format!("{} left: codeboost review {issue}", blockers(after.blockers.len()))
    };
    Answers {
        schema_version: 1,
        applied: judgement.steps.iter().map(|step| named(&step.decision)).collect(),
        already: judgement.already,
        refused: judgement.refused,
        next,
    }
}

/// What to do about refused decisions, the first of the reasons leading.
fn way_on(worst: Refusal, issue: u64, on_page: bool) -> String {
    match worst {
        Refusal::Stale => format!("look at what changed: codeboost render {issue}"),
        Refusal::NotAuthorized => {
            "sign the file: ssh-keygen -Y sign -n codeboost-decisions -f KEY FILE".to_owned()
        }
        Refusal::NotAcknowledged => {
            format!("acknowledge each mark that codeboost review {issue} ITEM shows, then again")
        }
        Refusal::Blocked => format!("see what is left: codeboost review {issue}"),
        _ if !on_page => format!("look at what is there: codeboost review {issue} ITEM"),
        _ => format!("decide it on a new page: codeboost render {issue}"),
    }
}

fn plan_answers(judgement: Judgement, issue: u64) -> Answers {
    let did = |word: &str| judgement.steps.iter().any(|step| step.decision.action.word() == word);
    let next = if !judgement.refused.is_empty() {
        format!("look at the plan as it is now: codeboost plan render {issue}")
    } else if did("plan_approve") {
        format!("carry the plan out: codeboost execute {issue}, or codeboost item begin {issue}")
    } else {
        format!("codeboost plan threads {issue}, or codeboost plan approve {issue}")
    };
    Answers {
        schema_version: 1,
        applied: judgement.steps.iter().map(|step| named(&step.decision)).collect(),
        already: judgement.already,
        refused: judgement.refused,
        next,
    }
}

fn blockers(n: usize) -> String {
    crate::output::counted(n as u64, "blocker")
}
