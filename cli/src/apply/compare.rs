//! Which decisions can be recorded: a rule, decided before anything is written.
//!
//! Every decision is compared with the state before the file. Approve and merge then count what
//! the same file acknowledges and chooses. The order of application is the contract's, whatever
//! the order in the file.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use codeboost_schema::answers::Refusal;
use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::decisions::{Action, Decision, MAX_TEXT_CHARS, Shown};
use codeboost_schema::form::Form;
use codeboost_schema::ids::{Digest, ItemId, SegmentKey, Uuid};
use codeboost_schema::link::{Body, Link, Row, Segment, Tag};

use crate::apply::book::{Book, Judgement, Why, authorized, step_of, too_long};
use crate::apply::desk::{Desk, PlanEffect, Problems};
use crate::approval::choice::{Choice, OUT_OF_SCOPE, OtherCopies, Placed};
use crate::approval::freshness::{Approved, Now, Reason, Word, reasons};
use crate::approval::policy::Reviewer;
use crate::gate::Blocker;
use crate::output::{counted, plain_line};
use crate::review::plan::PlanState;
use crate::review::{Review, choice_words, form_segments, is_pending, segments_of, uuid};
use crate::store::{
    AcknowledgementRow, ApprovalRow, ChoiceRow, Made, NoteKind, NoteRow, NoteState, ProblemState,
    TaskRow,
};

/// What decisions are compared with.
pub struct Question<'a> {
    /// The state before the file.
    pub review: &'a Review,
    /// The form that the decisions were made on; `None` at the terminal, where they are made on
    /// the state itself.
    pub form: Option<&'a Form>,
    /// What the page showed, when that is not what is there now; see [`needs_page`].
    pub page: Option<&'a Page>,
    /// The decisions.
    pub decisions: &'a [Decision],
    /// Which segments were drawn in full.
    pub shown: ShownSegments<'a>,
    /// Who decided, as far as that is proven.
    pub reviewer: &'a Reviewer,
    /// Content of each decision that was recorded before, by id.
    pub recorded: &'a BTreeMap<Uuid, Digest>,
    /// The time, as it will be recorded.
    pub now: &'a str,
    /// The plan, for the decisions about it.
    pub plan: &'a PlanState,
    /// What is wrong with a plan.
    pub problems: &'a Problems<'a>,
}

/// What a page showed that was made from another state.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its link.
    pub link: Link,
    /// Where its segments stood.
    pub placed: Vec<Placed>,
    /// What an approval of its items would have covered.
    pub now: Now,
}

/// Which segments were drawn in full.
#[derive(Debug, Clone, Copy)]
pub enum ShownSegments<'a> {
    /// As the decisions file says, by the row on which a segment stands in the page's link.
    Rows(&'a BTreeMap<Row, Shown>),
    /// All of one item, which the terminal printed.
    Item(&'a ItemId),
    /// None.
    Nothing,
}

/// What follows from a decision.
#[derive(Debug, Clone)]
pub enum Effect {
    /// The reviewer's approvals of the item end.
    Withdraw(ItemId),
    /// The choice about the segment ends.
    Unresolve(SegmentKey),
    /// The tag of the segment is acknowledged.
    Acknowledge(SegmentKey, String),
    /// A choice about the segment.
    Choose(SegmentKey, Choice),
    /// An approval; what it covers is in [`Approval`].
    Approve(Box<Approval>),
    /// A question or a change request, with the lines that it is about.
    Note(Option<RepoBytes>),
    /// An open change request is withdrawn.
    WithdrawRequest(Uuid),
    /// The pending change requests are sent, to be met by the next revision.
    Reject(Vec<Uuid>),
    /// The problem is taken as it is.
    AcceptProblem(Uuid),
    /// Something about the plan.
    Plan(PlanEffect),
    /// The merge is to be carried out.
    Merge,
}

/// What an approval covers.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Which item.
    pub item: ItemId,
    /// Whether it confirms that no change is needed.
    pub no_change: bool,
    /// The acknowledgements that it relies on.
    pub acknowledged: Vec<(SegmentKey, String)>,
}

/// Whether the page's segments differ from those of now, so that [`Question::page`] is needed.
#[must_use]
pub fn needs_page(form: &Form, review: &Review) -> bool {
    form.segments.as_ref() != Some(&review.form_segments())
}

/// Judges all decisions of one file.
///
/// Returns what can be recorded, and the review as it will stand then.
#[must_use]
pub fn judge(question: &Question<'_>) -> (Judgement, Review) {
    let by_key = |link: &Link| -> HashMap<SegmentKey, u32> {
        link.segments.iter().map(|segment| (segment.key.clone(), segment.id)).collect()
    };
    let mut judge = Judge {
        question,
        by_key: by_key(&question.review.inputs.link),
        page_by_key: question.page.map(|page| by_key(&page.link)).unwrap_or_default(),
        other_copies: OnceCell::new(),
        book: Book::open(question.decisions, question.recorded),
        desk: Desk::new(
            question.plan,
            question.problems,
            question.form,
            question.reviewer,
            question.now,
        ),
    };
    let after = judge.apply();
    (judge.book.close(), after)
}

struct Judge<'q, 'a> {
    question: &'q Question<'a>,
    by_key: HashMap<SegmentKey, u32>,
    page_by_key: HashMap<SegmentKey, u32>,
    other_copies: OnceCell<OtherCopies>,
    book: Book<'a>,
    desk: Desk<'a>,
}

impl Judge<'_, '_> {
    /// Judges what is left, step by step, and returns the review as it stands afterwards.
    fn apply(&mut self) -> Review {
        let question = self.question;
        // Judged anew once per step whose outcome later steps count.
        let mut after = question.review.clone();
        let mut judged = 0;
        for n in self.book.order() {
            if !self.book.is_open(n) {
                continue;
            }
            let decision = &question.decisions[n];
            let step = step_of(&decision.action);
            if judged < step && matches!(step, 3 | 12 | 13) {
                after = Review::judge(after.inputs);
                judged = step;
            }
            let effect = self.authorized(decision).and_then(|()| self.effect(decision, &after));
            match effect {
                Ok((effect, words)) => {
                    self.follow(decision, &effect, &mut after);
                    self.book.accept(n, effect, words);
                }
                Err(why) => self.book.refuse(n, why),
            }
        }
        Review::judge(after.inputs)
    }

    fn authorized(&self, decision: &Decision) -> Result<(), Why> {
        authorized(&self.question.review.inputs.policy, self.question.reviewer, &decision.action)
    }

    fn effect(&mut self, decision: &Decision, after: &Review) -> Result<(Effect, String), Why> {
        let task = &self.question.review.inputs.task;
        if task.state.is_closed() {
            let what = format!("the task is {}", task.state);
            return Err(Why::new(Refusal::WrongState, what));
        }
        if self.question.form.is_some_and(|form| form.task.is_none()) {
            return Err(Why::new(Refusal::WrongState, "the page belongs to no task"));
        }
        match &decision.action {
            Action::Withdraw { item } => {
                Ok((Effect::Withdraw(item.clone()), format!("withdrew the approval of {item}")))
            }
            Action::Unresolve { key, .. } => {
                let segment = self.segment(key)?;
                if !self.question.review.choices.contains_key(key) {
                    return Err(Why::new(
                        Refusal::WrongState,
                        "nothing was chosen about this change",
                    ));
                }
                let words = format!("took back the choice about {}", self.name(segment));
                Ok((Effect::Unresolve(key.clone()), words))
            }
            Action::Acknowledge { key, tag, .. } => self.acknowledge(key, tag),
            Action::Assign { key, item, .. } => {
                self.item(item)?;
                self.choose(key, Choice::Assigned(item.clone()))
            }
            Action::Accept { key, .. } => {
                let chosen = self.choose(key, Choice::Accepted)?;
                let segment = self.segment(key)?;
                let known = after.acknowledged.get(key);
                let own = segment.tags.iter().filter(|tag| tag.must_be_acknowledged());
                match own.map(Tag::name).find(|tag| !known.is_some_and(|k| k.contains(*tag))) {
                    Some(tag) => Err(self.not_acknowledged(tag, segment, None)),
                    None => Ok(chosen),
                }
            }
            Action::Approve { item } => self.approve(item, false, after),
            Action::ConfirmNoChange { item } => self.approve(item, true, after),
            Action::RequestChange { item, text, .. } | Action::Ask { item, text, .. } => {
                self.note(&decision.action, item, text)
            }
            Action::WithdrawRequest { request } => self.withdraw_request(request),
            Action::Problem { problem, .. } => self.problem(problem),
            Action::Finding { finding, .. } => Err(Why::new(
                Refusal::UnknownFinding,
                format!("no finding {finding} is recorded for this task"),
            )),
            Action::Reject { summary } => self.reject(summary, after),
            Action::Merge {} => self.merge(after),
            Action::ResolveState { state, .. } => {
                let found = task.state.word();
                Err(if found == state {
                    Why::new(Refusal::Blocked, "this state has no answer from a page")
                } else {
                    Why::new(Refusal::WrongState, format!("the task is {found}, not {state}"))
                })
            }
            Action::PlanComment { .. }
            | Action::PlanReply { .. }
            | Action::PlanResolve { .. }
            | Action::PlanReopen { .. }
            | Action::PlanApprove { .. }
            | Action::AnswerQuestion { .. }
            | Action::ApplySuggestion { .. }
            | Action::DismissSuggestion { .. } => {
                let (effect, words) = self.desk.take(&decision.action)?;
                Ok((Effect::Plan(effect), words))
            }
            Action::TrustIssue { .. } | Action::Queue { .. } | Action::Lesson { .. } => {
                Err(Why::new(
                    Refusal::Blocked,
                    "a page of changes can't decide this; use the codeboost command for it",
                ))
            }
        }
    }

    fn problem(&self, id: &Uuid) -> Result<(Effect, String), Why> {
        let problems = &self.question.review.inputs.rounds.problems;
        let Some(found) = problems.iter().find(|problem| problem.id == *id) else {
            return Err(Why::new(
                Refusal::UnknownProblem,
                format!("no problem {id} is recorded for this task"),
            ));
        };
        if found.state != ProblemState::Open {
            let words = format!("the problem of {} is {}", found.item, found.state.word());
            return Err(Why::new(Refusal::WrongState, words));
        }
        Ok((Effect::AcceptProblem(id.clone()), format!("accepted a problem of {}", found.item)))
    }

    /// Puts what follows from a decision into the review that later steps count.
    fn follow(&self, decision: &Decision, effect: &Effect, after: &mut Review) {
        let inputs = &mut after.inputs;
        let made = Made {
            decision: decision.id.clone(),
            reviewer: self.question.reviewer.clone(),
            at: self.question.now.to_owned(),
            revision: inputs.plan.revision,
            head: inputs.link.head.clone(),
        };
        match effect {
            Effect::Withdraw(item) => {
                let me = self.question.reviewer;
                let is_mine = |row: &ApprovalRow| row.made.reviewer.may_be(me);
                inputs.approvals.retain(|row| row.item != *item || !is_mine(row));
            }
            Effect::AcceptProblem(id) => {
                for problem in &mut inputs.rounds.problems {
                    if problem.id == *id {
                        problem.state = ProblemState::Accepted;
                    }
                }
            }
            Effect::Unresolve(key) => inputs.choices.retain(|row| row.key != *key),
            Effect::Acknowledge(key, tag) => {
                after.acknowledged.entry(key.clone()).or_default().insert(tag.clone());
                inputs.acknowledgements.push(AcknowledgementRow {
                    made,
                    key: key.clone(),
                    tag: tag.clone(),
                });
            }
            Effect::Choose(key, choice) => {
                inputs.choices.retain(|row| row.key != *key);
                inputs.choices.push(ChoiceRow { made, key: key.clone(), choice: choice.clone() });
            }
            Effect::Approve(approval) => {
                if let Some(fingerprint) = after.now.fingerprints.get(&approval.item) {
                    inputs.approvals.push(ApprovalRow {
                        made,
                        item: approval.item.clone(),
                        no_change: approval.no_change,
                        fingerprint: fingerprint.clone(),
                        // Never looked at: what is fresh needs no explanation.
                        snapshot: fingerprint.clone(),
                        dependencies: after.now.dependencies_of(&approval.item),
                    });
                }
            }
            Effect::Note(context) => {
                let (kind, item, key, lines, text) = match &decision.action {
                    Action::RequestChange { item, key, from, to, text, .. } => {
                        (NoteKind::Request, item, key, from.zip(*to), text)
                    }
                    Action::Ask { item, key, from, to, text, .. } => {
                        (NoteKind::Question, item, key, from.zip(*to), text)
                    }
                    _ => return,
                };
                inputs.notes.push(NoteRow {
                    made,
                    kind,
                    item: item.clone(),
                    key: key.clone(),
                    lines,
                    text: text.clone(),
                    context: context.clone(),
                    state: NoteState::Open,
                    answer: None,
                });
            }
            Effect::WithdrawRequest(request) => {
                for note in &mut inputs.notes {
                    if note.made.decision == *request {
                        note.state = NoteState::Withdrawn;
                    }
                }
            }
            Effect::Reject(requests) => {
                for note in &mut inputs.notes {
                    if requests.contains(&note.made.decision) {
                        note.state = NoteState::Sent;
                    }
                }
                inputs.rejections.push(made);
            }
            Effect::Plan(_) | Effect::Merge => {}
        }
    }

    fn item(&self, item: &ItemId) -> Result<(), Why> {
        match self.question.review.item(item) {
            Some(_) => Ok(()),
            None => Err(Why::new(
                Refusal::UnknownItem,
                format!(
                    "the plan has no item {item} at r{}",
                    self.question.review.inputs.plan.revision
                ),
            )),
        }
    }

    /// The segment of that key as it stands now.
    fn segment(&self, key: &SegmentKey) -> Result<&Segment, Why> {
        let link = &self.question.review.inputs.link;
        if let Some(id) = self.by_key.get(key) {
            return Ok(&link.segments[*id as usize]);
        }
        let before = self.page_segment(key);
        let other_copies = self.other_copies.get_or_init(|| OtherCopies::of(link));
        if let Some((then, now)) = other_copies.find(key) {
            let what = format!("{} of this change in its file now, {then} then", copies(now));
            return Err(Why::stale("copies", what)
                .bytes(Some(then.to_string().into()), Some(now.to_string().into())));
        }
        match before {
            Some(segment) => {
                Err(Why::stale("code", "this change is no longer there as it was shown")
                    .bytes(Some(content(segment)), None))
            }
            None if self
                .question
                .form
                .is_some_and(|form| needs_page(form, self.question.review)) =>
            {
                Err(Why::stale("code", "this change is no longer there as it was shown"))
            }
            None => Err(Why::new(Refusal::UnknownSegment, "no change has this key")),
        }
    }

    /// The segment of that key on a page that showed another state.
    fn page_segment(&self, key: &SegmentKey) -> Option<&Segment> {
        let id = self.page_by_key.get(key)?;
        self.question.page?.link.segments.get(*id as usize)
    }

    fn name(&self, segment: &Segment) -> String {
        segment_name(&self.question.review.inputs.link, segment)
    }

    fn choose(&self, key: &SegmentKey, choice: Choice) -> Result<(Effect, String), Why> {
        let segment = self.segment(key)?;
        if let Row::Item(item) = &segment.row {
            let what = format!("this change is {item}'s own: nothing to choose");
            return Err(Why::new(Refusal::WrongState, what));
        }
        let words = format!("{}: {}", self.name(segment), choice_words(&choice));
        Ok((Effect::Choose(key.clone(), choice), words))
    }

    fn acknowledge(&self, key: &SegmentKey, tag: &str) -> Result<(Effect, String), Why> {
        let segment = self.segment(key)?;
        let review = self.question.review;
        let mut tags = review.placed[segment.id as usize].tags_to_acknowledge(segment);
        // Assigning in the same file can add this one.
        if segment.row == Row::Ambiguous || segment.row == Row::Unplanned {
            tags.push(OUT_OF_SCOPE);
        }
        if !tags.contains(&tag) {
            let what = format!("this change has nothing to acknowledge as {}", plain_line(tag));
            return Err(Why::new(Refusal::WrongState, what));
        }
        let words = format!("acknowledged {tag}: {}", self.name(segment));
        Ok((Effect::Acknowledge(key.clone(), tag.to_owned()), words))
    }

    /// Requires that all tags of these segments were acknowledged, this file's own ones counted.
    fn all_acknowledged(
        &self,
        segments: impl IntoIterator<Item = u32>,
        after: &Review,
        item: &ItemId,
    ) -> Result<Vec<(SegmentKey, String)>, Why> {
        let link = &after.inputs.link;
        let mut relied = Vec::new();
        for id in segments {
            let segment = &link.segments[id as usize];
            let missing = after.unacknowledged(id);
            if let Some(tag) = missing.first() {
                return Err(self.not_acknowledged(tag, segment, Some(item)));
            }
            let tags = after.placed[id as usize].tags_to_acknowledge(segment);
            relied.extend(tags.into_iter().map(|tag| (segment.key.clone(), tag.to_owned())));
        }
        Ok(relied)
    }

    fn not_acknowledged(&self, tag: &str, segment: &Segment, item: Option<&ItemId>) -> Why {
        let of = item.map_or(String::new(), |item| format!(" of {item}"));
        let what = format!("{tag}{of} was not acknowledged: {}", self.name(segment));
        Why::new(Refusal::NotAcknowledged, what).bytes(None, Some(content(segment)))
    }

    fn approve(
        &self,
        item: &ItemId,
        no_change: bool,
        after: &Review,
    ) -> Result<(Effect, String), Why> {
        self.item(item)?;
        self.equal_fingerprints(item)?;
        let segments = after.segments_of(item);
        if let Some(ambiguous) = after.now.ambiguous.get(item) {
            let what = format!(
                "{item} owns part of {}: assign or accept first",
                counted(ambiguous.len() as u64, "ambiguous change")
            );
            let mut why = Why::new(Refusal::Blocked, what);
            why.cause = Some(Word::Ambiguous.as_str().to_owned());
            return Err(why);
        }
        if segments.is_empty() != no_change {
            let what = if no_change {
                format!("{item} has changes: approve it instead")
            } else {
                format!("{item} has no changes: confirm that none is needed instead")
            };
            return Err(Why::new(Refusal::WrongState, what));
        }
        self.all_shown(item, after)?;
        let acknowledged = self.all_acknowledged(segments, after, item)?;
        let approval = Approval { item: item.clone(), no_change, acknowledged };
        let words = if no_change {
            format!("confirmed that {item} needs no change")
        } else {
            format!("approved {item}")
        };
        Ok((Effect::Approve(Box::new(approval)), words))
    }

    /// Requires that the form's fingerprints of the item and of all that it depends on are the
    /// current ones.
    fn equal_fingerprints(&self, item: &ItemId) -> Result<(), Why> {
        let Some(form) = self.question.form else { return Ok(()) };
        let now = &self.question.review.now;
        let offered = |id: &ItemId| {
            form.items.as_ref().and_then(|items| items.get(id)).map(|item| &item.fingerprint)
        };
        let Some(fingerprint) = offered(item) else {
            let what = format!("the page did not have {item}");
            return Err(Why::stale("definition", what));
        };
        let then = Approved {
            item: item.clone(),
            fingerprint: fingerprint.clone(),
            dependencies: now
                .dependencies_of(item)
                .into_keys()
                .filter_map(|id| Some((id.clone(), offered(&id)?.clone())))
                .collect(),
            queue_replaced: None,
        };
        let same = now.fingerprints.get(item) == Some(fingerprint);
        if same && then.dependencies == now.dependencies_of(item) {
            return Ok(());
        }
        // What the page showed is known when it can be made again with the same fingerprint.
        let page = self.question.page.and_then(|page| page.now.snapshots.get(item));
        let known = page.filter(|snapshot| snapshot.fingerprint() == *fingerprint);
        let current = now.snapshots.get(item).filter(|_| same);
        let found: Vec<Reason> = known.or(current).map_or_else(Vec::new, |snapshot| {
            reasons(&then, snapshot, now, &self.question.review.inputs.link)
                .into_iter()
                .filter(|reason| reason.word != Word::Ambiguous)
                .collect()
        });
        Err(match found.first() {
            Some(first) => {
                let words: Vec<_> = found.iter().map(|r| plain_line(&r.to_string())).collect();
                Why::stale(first.word.as_str(), format!("{item}: {}", words.join("; ")))
                    .bytes(first.before.clone(), first.after.clone())
            }
            None => {
                let revision = form.revision == Some(self.question.review.inputs.plan.revision);
                let cause = if revision { Word::Code } else { Word::Definition };
                Why::stale(cause.as_str(), format!("{item} changed since the page was made")).bytes(
                    Some(fingerprint.as_str().into()),
                    now.fingerprints.get(item).map(|digest| digest.as_str().into()),
                )
            }
        })
    }

    /// Requires that each of the page's segments of the item was drawn in full, and each segment
    /// that the file assigns to it.
    fn all_shown(&self, item: &ItemId, after: &Review) -> Result<(), Why> {
        let review = self.question.review;
        let (link, placed) = match (self.question.form, self.question.page) {
            (Some(_), Some(page)) => (&page.link, &page.placed),
            (Some(form), None) if needs_page(form, review) => {
                let moved = form.head.as_ref() != Some(&review.inputs.link.head);
                let cause = if moved { "head" } else { "base" };
                return Err(Why::stale(cause, "what the page showed can't be made again"));
            }
            _ => (&review.inputs.link, &review.placed),
        };
        let mut wanted: BTreeSet<u32> = segments_of(link, placed, item).into_iter().collect();
        let assigned = after.placed.iter().zip(&after.inputs.link.segments);
        for (_, segment) in assigned.filter(|(p, _)| p.assigned && p.item() == Some(item)) {
            if let Some(on_page) = link.segments.iter().find(|s| s.key == segment.key) {
                wanted.insert(on_page.id);
            }
        }
        let missing: Vec<_> = wanted
            .into_iter()
            .map(|id| &link.segments[id as usize])
            .filter(|segment| !self.was_shown(segment))
            .collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let what = format!(
            "{} of {item} {} not shown in full, the first: {}",
            counted(missing.len() as u64, "change"),
            if missing.len() == 1 { "was" } else { "were" },
            segment_name(link, first)
        );
        Err(Why::new(Refusal::NotShown, what).bytes(None, Some(content(first))))
    }

    fn was_shown(&self, segment: &Segment) -> bool {
        match self.question.shown {
            ShownSegments::Rows(rows) => {
                rows.get(&segment.row).is_some_and(|shown| shown.contains(segment.id))
            }
            ShownSegments::Item(item) => {
                self.question.review.placed[segment.id as usize].item() == Some(item)
            }
            ShownSegments::Nothing => false,
        }
    }

    fn note(&self, action: &Action, item: &ItemId, text: &str) -> Result<(Effect, String), Why> {
        self.item(item)?;
        if text.trim().is_empty() {
            return Err(Why::new(Refusal::NothingToSend, "the text is empty"));
        }
        if text.chars().count() > MAX_TEXT_CHARS {
            return Err(too_long(text, MAX_TEXT_CHARS));
        }
        let (words, lines) = match action {
            Action::RequestChange { from, to, .. } => {
                self.same_revision()?;
                (format!("requested a change of {item}"), from.zip(*to))
            }
            Action::Ask { from, to, .. } => (format!("asked about {item}"), from.zip(*to)),
            _ => return Err(Why::new(Refusal::WrongState, "no note")),
        };
        let Some((_, key)) = action.segment() else { return Ok((Effect::Note(None), words)) };
        let review = self.question.review;
        let id = self.by_key.get(key).map(|id| *id as usize);
        let segment = id
            .map(|id| &review.inputs.link.segments[id])
            .or_else(|| self.page_segment(key))
            .ok_or_else(|| Why::new(Refusal::UnknownSegment, "no change has this key"))?;
        let owned = match &segment.row {
            Row::Item(row) => row == item,
            Row::Ambiguous => segment.owners.contains(item),
            Row::Unplanned => true,
        };
        let assigned = id.is_some_and(|id| review.placed[id].item() == Some(item));
        if !owned && !assigned {
            let what = format!("this change does not belong to {item}");
            return Err(Why::new(Refusal::InvalidAnchor, what));
        }
        let context = match (&segment.body, lines) {
            (Body::Text(text), Some((from, to))) => {
                let count = text.text.as_bytes().split_inclusive(|b| *b == b'\n').count() as u64;
                if from == 0 || from > to || to > count {
                    let what = format!("lines {from} to {to} of a change with {count}");
                    return Err(Why::new(Refusal::InvalidAnchor, what));
                }
                text.text
                    .as_bytes()
                    .split_inclusive(|b| *b == b'\n')
                    .skip(usize::try_from(from - 1).unwrap_or(usize::MAX))
                    .take(usize::try_from(to - from + 1).unwrap_or(usize::MAX))
                    .collect::<Vec<_>>()
                    .concat()
                    .into()
            }
            (Body::File(_), Some(_)) => {
                return Err(Why::new(Refusal::InvalidAnchor, "a file change has no lines"));
            }
            (_, None) => content(segment),
        };
        Ok((Effect::Note(Some(context)), words))
    }

    fn withdraw_request(&self, request: &Uuid) -> Result<(Effect, String), Why> {
        let notes = &self.question.review.inputs.notes;
        let note = notes
            .iter()
            .find(|note| note.made.decision == *request && note.kind == NoteKind::Request)
            .ok_or_else(|| {
                Why::new(Refusal::UnknownRequest, format!("there is no change request {request}"))
            })?;
        if !is_pending(note) {
            return Err(Why::new(Refusal::WrongState, "this change request is no longer pending"));
        }
        let words = format!("withdrew a change request for {}", note.item);
        Ok((Effect::WithdrawRequest(request.clone()), words))
    }

    fn same_revision(&self) -> Result<(), Why> {
        let now = self.question.review.inputs.plan.revision;
        match self.question.form.and_then(|form| form.revision) {
            Some(then) if then != now => Err(Why::stale(
                "revision",
                format!("the plan is at r{now}, the page was at r{then}"),
            )
            .bytes(Some(then.to_string().into()), Some(now.to_string().into()))),
            _ => Ok(()),
        }
    }

    fn same_commit(&self, name: &str) -> Result<(), Why> {
        let Some(form) = self.question.form else { return Ok(()) };
        let link = &self.question.review.inputs.link;
        let (then, now) = match name {
            "head" => (form.head.as_ref(), &link.head),
            _ => (form.base.as_ref(), &link.base),
        };
        if then == Some(now) {
            return Ok(());
        }
        let before = then.map_or("nothing", |id| id.as_str());
        let what = format!("the {name} is {now:.12}, the page was made for {before:.12}");
        Err(Why::stale(name, what).bytes(Some(before.into()), Some(now.as_str().into())))
    }

    fn reject(&self, summary: &str, after: &Review) -> Result<(Effect, String), Why> {
        if summary.chars().count() > MAX_TEXT_CHARS {
            return Err(too_long(summary, MAX_TEXT_CHARS));
        }
        self.same_revision()?;
        self.same_commit("head")?;
        let pending: Vec<_> = after
            .inputs
            .notes
            .iter()
            .filter(|note| is_pending(note))
            .map(|note| note.made.decision.clone())
            .collect();
        if pending.is_empty() {
            return Err(Why::new(Refusal::NothingToSend, "no change request is pending"));
        }
        let words = format!("sent {}", counted(pending.len() as u64, "change request"));
        Ok((Effect::Reject(pending), words))
    }

    fn merge(&self, after: &Review) -> Result<(Effect, String), Why> {
        self.same_commit("base")?;
        self.same_commit("head")?;
        self.same_revision()?;
        for item in &self.question.review.inputs.plan.items {
            self.equal_fingerprints(&item.id)?;
        }
        if !after.blockers.is_empty() {
            return Err(Why::new(Refusal::Blocked, blocker_words(&after.blockers)));
        }
        Ok((Effect::Merge, "asked to merge".to_owned()))
    }
}

fn copies(n: u64) -> String {
    if n == 1 { "1 copy".to_owned() } else { format!("{n} copies") }
}

fn content(segment: &Segment) -> RepoBytes {
    match &segment.body {
        Body::Text(text) => text.text.clone(),
        Body::File(change) => change.to_string().into(),
    }
}

/// A segment for people: `a.rs, +2 lines at 118`.
#[must_use]
pub fn segment_name(link: &Link, segment: &Segment) -> String {
    let path = link.files.get(segment.file as usize).map(|file| file.path.lossy().into_owned());
    let path = plain_line(&path.unwrap_or_default());
    match &segment.body {
        Body::Text(text) => {
            let lines = if text.lines == 1 { "line" } else { "lines" };
            format!("{path}, {}{} {lines} at {}", text.op.as_str(), text.lines, text.start)
        }
        Body::File(change) => format!("{path}, {change}"),
    }
}

/// Blockers in one line.
#[must_use]
pub fn blocker_words(blockers: &[Blocker]) -> String {
    let words: Vec<_> = blockers.iter().map(|blocker| blocker.words.as_str()).collect();
    format!("{}: {}", counted(blockers.len() as u64, "blocker"), words.join("; "))
}

/// Whether a form belongs to this task: repository, task and plan, where it names them.
///
/// # Errors
/// The name of what is another one.
pub fn belongs_to(form: &Form, repository: &Uuid, task: &TaskRow) -> Result<(), &'static str> {
    if form.repository != *repository {
        Err("repository")
    } else if form.task.as_ref().is_some_and(|id| *id != uuid(&task.id)) {
        Err("task")
    } else if form.plan.as_ref().is_some_and(|id| *id != uuid(&task.plan_id)) {
        Err("plan")
    } else {
        Ok(())
    }
}

/// The page that a form was made for, if `link` is its link.
#[must_use]
pub fn is_page_of(form: &Form, link: &Link) -> bool {
    form.segments.as_ref() == Some(&form_segments(link))
        && form.base.as_ref() == Some(&link.base)
        && form.head.as_ref() == Some(&link.head)
}

#[cfg(test)]
mod tests {
    use codeboost_schema::form::ApprovalState;

    use super::*;
    use crate::approval::samples::{self, Sample, item, sample};
    use crate::gate::Tip;
    use crate::review::samples as reviews;
    use crate::task::TaskState;

    /// A page, what is there now, and what was decided on the page.
    struct Case {
        page: Review,
        review: Review,
        decisions: Vec<Decision>,
        shown: BTreeMap<Row, Shown>,
        reviewer: Reviewer,
        recorded: BTreeMap<Uuid, Digest>,
    }

    impl Case {
        /// A page that shows all of what is there.
        fn new(sample: &Sample) -> Self {
            let review = reviews::review(sample);
            let rows = review.inputs.link.segments.iter().map(|segment| segment.row.clone());
            Self {
                page: review.clone(),
                shown: rows.map(|row| (row, Shown::All)).collect(),
                review,
                decisions: Vec::new(),
                reviewer: Reviewer::Terminal("me".into()),
                recorded: BTreeMap::new(),
            }
        }

        fn decide(&mut self, action: Action) -> Uuid {
            let id = samples::uuid(1000 + u32::try_from(self.decisions.len()).expect("few"));
            self.decisions.push(Decision::new(id.clone(), action));
            id
        }

        fn approve(&mut self, id: &str) {
            self.decide(Action::Approve { item: item(id) });
        }

        /// The segment of the page with that id and key.
        fn at(&self, id: u32) -> (u32, SegmentKey) {
            (id, self.page.inputs.link.segments[id as usize].key.clone())
        }

        fn accept(&mut self, id: u32) {
            let (segment, key) = self.at(id);
            self.decide(Action::Accept { segment, key });
        }

        fn assign(&mut self, id: u32, to: &str) {
            let (segment, key) = self.at(id);
            self.decide(Action::Assign { segment, key, item: item(to) });
        }

        fn acknowledge(&mut self, id: u32, tag: &str) {
            let (segment, key) = self.at(id);
            self.decide(Action::Acknowledge { segment, key, tag: tag.into() });
        }

        fn judge(&self) -> (Judgement, Review) {
            let form = reviews::form(&self.page);
            let page = Page {
                link: self.page.inputs.link.clone(),
                placed: self.page.placed.clone(),
                now: self.page.now.clone(),
            };
            judge(&Question {
                review: &self.review,
                form: Some(&form),
                page: needs_page(&form, &self.review).then_some(&page),
                decisions: &self.decisions,
                shown: ShownSegments::Rows(&self.shown),
                reviewer: &self.reviewer,
                recorded: &self.recorded,
                now: "2026-11-30T13:00:00Z",
                plan: &reviews::plan_state(&self.review),
                problems: &|_| Ok(Vec::new()),
            })
        }

        /// One line per decision: what becomes of it.
        fn check(&self, expected: &[&str]) -> Review {
            let (judgement, after) = self.judge();
            let mut lines: Vec<String> =
                judgement.steps.iter().map(|step| step.words.clone()).collect();
            lines.extend(judgement.already.iter().map(|named| format!("already {}", named.kind)));
            lines.extend(judgement.refused.iter().map(|r| {
                let cause = r.cause.as_ref().map_or(String::new(), |cause| format!("/{cause}"));
                format!("refused {}: {}{cause}: {}", r.kind, r.reason.as_str(), r.what)
            }));
            assert_eq!(lines, expected);
            let states =
                |review: &Review| review.items.iter().map(|item| item.state).collect::<Vec<_>>();
            if judgement.steps.is_empty() {
                assert_eq!(states(&after), states(&self.review));
            }
            after
        }

        /// Decides all that the sample needs: ids as in [`sample`].
        fn decide_all(&mut self) {
            self.acknowledge(6, "out-of-scope");
            self.accept(2);
            self.accept(4);
            for id in ["P1", "P2"] {
                self.approve(id);
            }
            self.decide(Action::ConfirmNoChange { item: item("P3") });
        }
    }

    const ALL: [&str; 6] = [
        "acknowledged out-of-scope: b.rs, +1 line at 30",
        "a.rs, +1 line at 9: accepted as it is",
        "b.rs, +1 line at 4: accepted as it is",
        "approved P1",
        "approved P2",
        "confirmed that P3 needs no change",
    ];

    fn text_of(review: &mut Review, segment: usize, text: &str) {
        if let Body::Text(body) = &mut review.inputs.link.segments[segment].body {
            body.text = text.into();
        }
        samples::renumber(&mut review.inputs.link);
        *review = Review::judge(review.inputs.clone());
    }

    #[test]
    fn one_file_can_decide_everything_and_ask_to_merge() {
        let mut case = Case::new(&sample());
        // The file's own order does not matter.
        case.decide(Action::Merge {});
        case.decide_all();
        let mut expected = ALL.to_vec();
        expected.push("asked to merge");
        let after = case.check(&expected);
        assert_eq!(after.blockers, []);
        assert!(after.items.iter().all(|item| item.state == ApprovalState::Approved));
        assert_ne!(case.review.blockers, []);
    }

    #[test]
    fn the_same_file_twice_is_answered_already_even_after_a_withdraw() {
        let mut case = Case::new(&sample());
        case.decide_all();
        case.recorded = case.decisions.iter().map(|d| (d.id.clone(), d.content.clone())).collect();
        case.check(&[
            "already acknowledge",
            "already accept",
            "already accept",
            "already approve",
            "already approve",
            "already confirm_no_change",
        ]);
        // Recorded with other content, also by an earlier file.
        case.recorded.insert(case.decisions[3].id.clone(), Digest::of(b"other"));
        let (judgement, _) = case.judge();
        assert_eq!(judgement.refused[0].reason, Refusal::IdReused);
        assert_eq!(judgement.already.len(), 5);
    }

    #[test]
    fn one_id_for_two_decisions_refuses_both_and_for_one_twice_counts_once() {
        let mut case = Case::new(&sample());
        case.approve("P2");
        case.decisions.push(case.decisions[0].clone());
        case.check(&["approved P2", "already approve"]);
        case.decisions[1] =
            Decision::new(case.decisions[0].id.clone(), Action::Withdraw { item: item("P1") });
        case.check(&[
            "refused approve: id-reused: the id 00000000-0000-4000-8000-000000001000 stands for another decision",
            "refused withdraw: id-reused: the id 00000000-0000-4000-8000-000000001000 stands for another decision",
        ]);
    }

    #[test]
    fn a_stale_approval_alone_is_refused_with_what_changed() {
        let mut case = Case::new(&sample());
        case.decide_all();
        text_of(&mut case.review, 5, "    TWO();\n");
        let after = case.check(&[
            ALL[0],
            ALL[1],
            ALL[2],
            ALL[3],
            ALL[5],
            "refused approve: stale/code: P2: Code changed in b.rs",
        ]);
        assert_eq!(after.item(&item("P2")).expect("there").state, ApprovalState::Unreviewed);
        let (judgement, _) = case.judge();
        assert_eq!(judgement.refused[0].before, Some("+    two();\n".into()));
        assert_eq!(judgement.refused[0].after, Some("+    TWO();\n".into()));
    }

    #[test]
    fn a_changed_dependency_refuses_its_dependents_for_that_reason() {
        let mut case = Case::new(&sample());
        case.approve("P2");
        text_of(&mut case.review, 1, "    other();\n");
        case.check(&["refused approve: stale/dependency: P2: Depends on P1, which changed"]);
    }

    #[test]
    fn another_definition_is_stale_and_a_removed_item_is_unknown() {
        let mut case = Case::new(&sample());
        case.approve("P2");
        case.review.inputs.plan.items[1].intent.push('!');
        case.review.inputs.plan.revision = 2;
        case.review = Review::judge(case.review.inputs);
        // The page's segments are those of now, so its snapshot is not at hand: the cause is told
        // without bytes of the text.
        case.check(&["refused approve: stale/definition: P2 changed since the page was made"]);
        case.review.inputs.plan.items.remove(1);
        case.review = Review::judge(case.review.inputs);
        case.check(&["refused approve: unknown-item: the plan has no item P2 at r2"]);
    }

    #[test]
    fn approvals_on_lines_that_only_moved_are_taken() {
        let mut case = Case::new(&sample());
        case.decide_all();
        for segment in &mut case.review.inputs.link.segments {
            if let Body::Text(text) = &mut segment.body {
                text.start += 40;
            }
        }
        case.review.inputs.link.head = samples::commit(77);
        case.review = Review::judge(case.review.inputs);
        let (judgement, _) = case.judge();
        assert!(judgement.refused.is_empty(), "{:?}", judgement.refused);
    }

    #[test]
    fn what_was_not_shown_can_t_be_approved() {
        let mut case = Case::new(&sample());
        case.acknowledge(6, "out-of-scope");
        case.accept(4);
        case.approve("P1");
        case.shown.insert(Row::Item(item("P1")), Shown::Segments([0, 6].into()));
        case.check(&[
            ALL[0],
            ALL[2],
            "refused approve: not-shown: 1 change of P1 was not shown in full, the first: a.rs, +2 lines at 3",
        ]);
        case.shown.insert(Row::Item(item("P1")), Shown::Segments([0, 1, 6].into()));
        case.check(&[ALL[0], ALL[2], "approved P1"]);
        case.shown.remove(&Row::Item(item("P1")));
        let (judgement, _) = case.judge();
        assert_eq!(judgement.refused[0].reason, Refusal::NotShown);
    }

    #[test]
    fn a_segment_that_the_same_file_assigns_must_have_been_shown_on_its_own_row() {
        let mut case = Case::new(&sample());
        case.acknowledge(6, "out-of-scope");
        case.accept(4);
        case.assign(2, "P1");
        case.approve("P1");
        let after =
            case.check(&[ALL[0], ALL[2], "a.rs, +1 line at 9: assigned to P1", "approved P1"]);
        assert_eq!(after.item(&item("P1")).expect("there").state, ApprovalState::Approved);
        case.shown.remove(&Row::Unplanned);
        case.check(&[
            ALL[0],
            ALL[2],
            "a.rs, +1 line at 9: assigned to P1",
            "refused approve: not-shown: 1 change of P1 was not shown in full, the first: a.rs, +1 line at 9",
        ]);
    }

    #[test]
    fn assigning_makes_an_earlier_approval_stale() {
        let mut case = Case::new(&sample());
        case.decide_all();
        let (_, after) = case.judge();
        let mut next = Case { page: after.clone(), review: after, ..Case::new(&sample()) };
        next.decisions.clear();
        next.assign(2, "P1");
        let after = next.check(&["a.rs, +1 line at 9: assigned to P1"]);
        assert_eq!(after.item(&item("P1")).expect("there").state, ApprovalState::Stale);
        // Its dependent too, until it is approved itself.
        assert_eq!(after.item(&item("P2")).expect("there").state, ApprovalState::Stale);
    }

    #[test]
    fn tags_must_be_acknowledged_before_approving_and_accepting() {
        let mut case = Case::new(&sample());
        case.accept(4);
        case.approve("P1");
        case.check(&[
            ALL[2],
            "refused approve: not-acknowledged: out-of-scope of P1 was not acknowledged: b.rs, +1 line at 30",
        ]);
        // An assignment can add the tag.
        let mut case = Case::new(&sample());
        case.accept(4);
        case.assign(2, "P2");
        case.approve("P2");
        case.check(&[
            ALL[2],
            "a.rs, +1 line at 9: assigned to P2",
            "refused approve: not-acknowledged: out-of-scope of P2 was not acknowledged: a.rs, +1 line at 9",
        ]);
        case.acknowledge(2, "out-of-scope");
        let (judgement, _) = case.judge();
        assert!(judgement.refused.is_empty(), "{:?}", judgement.refused);

        let mut case = Case::new(&sample());
        case.review.inputs.link.segments[2].tags.push(Tag::Bidi);
        case.review = Review::judge(case.review.inputs);
        case.page = case.review.clone();
        case.accept(2);
        case.check(&[
            "refused accept: not-acknowledged: bidi was not acknowledged: a.rs, +1 line at 9",
        ]);
        case.acknowledge(2, "eol");
        case.acknowledge(2, "bidi");
        case.check(&[
            "acknowledged bidi: a.rs, +1 line at 9",
            ALL[1],
            "refused acknowledge: wrong-state: this change has nothing to acknowledge as eol",
        ]);
    }

    #[test]
    fn an_item_with_an_undecided_ambiguous_part_can_t_be_approved() {
        let mut case = Case::new(&sample());
        case.acknowledge(6, "out-of-scope");
        case.approve("P1");
        case.decide(Action::ConfirmNoChange { item: item("P3") });
        case.check(&[
            ALL[0],
            "refused approve: blocked/ambiguous: P1 owns part of 1 ambiguous change: assign or accept first",
            "refused confirm_no_change: blocked/ambiguous: P3 owns part of 1 ambiguous change: assign or accept first",
        ]);
    }

    #[test]
    fn no_change_is_confirmed_and_changes_are_approved_never_the_other_way() {
        let mut case = Case::new(&sample());
        case.accept(4);
        case.approve("P3");
        case.decide(Action::ConfirmNoChange { item: item("P2") });
        case.check(&[
            ALL[2],
            "refused approve: wrong-state: P3 has no changes: confirm that none is needed instead",
            "refused confirm_no_change: wrong-state: P2 has changes: approve it instead",
        ]);
    }

    #[test]
    fn contradicting_decisions_are_both_refused_and_named() {
        let mut case = Case::new(&sample());
        case.approve("P2");
        case.decide(Action::Withdraw { item: item("P2") });
        case.accept(2);
        case.assign(2, "P1");
        case.assign(4, "P1");
        case.assign(4, "P1");
        case.decide(Action::Merge {});
        case.decide(Action::Reject { summary: "Again.".into() });
        case.decide(Action::RequestChange {
            item: item("P1"),
            segment: None,
            key: None,
            from: None,
            to: None,
            text: "Change.".into(),
        });
        let with = |n: u32, word: &str| {
            format!("contradicts {word} 00000000-0000-4000-8000-00000000{n} in the same file")
        };
        let expected = [
            "b.rs, +1 line at 4: assigned to P1".to_owned(),
            "b.rs, +1 line at 4: assigned to P1".to_owned(),
            format!("refused approve: contradiction: {}", with(1001, "withdraw")),
            format!("refused withdraw: contradiction: {}", with(1000, "approve")),
            format!("refused accept: contradiction: {}", with(1003, "assign")),
            format!("refused assign: contradiction: {}", with(1002, "accept")),
            format!("refused merge: contradiction: {}", with(1007, "reject")),
            format!("refused reject: contradiction: {}", with(1006, "merge")),
            format!("refused request_change: contradiction: {}", with(1006, "merge")),
        ];
        case.check(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn a_merge_needs_the_page_s_base_head_and_fingerprints_and_no_blocker() {
        let mut ready = Case::new(&sample());
        ready.decide_all();
        let (_, after) = ready.judge();
        let mut case = Case { page: after.clone(), review: after, ..Case::new(&sample()) };
        case.decide(Action::Merge {});
        case.check(&["asked to merge"]);

        let with = |change: &dyn Fn(&mut Review), expected: &str| {
            let mut case = Case {
                page: case.page.clone(),
                review: case.review.clone(),
                decisions: case.decisions.clone(),
                ..Case::new(&sample())
            };
            change(&mut case.review);
            case.review = Review::judge(case.review.inputs.clone());
            case.check(&[expected]);
        };
        with(
            &|review| review.inputs.link.head = samples::commit(9),
            "refused merge: stale/head: the head is 000000000000, the page was made for 000000000000",
        );
        with(
            &|review| review.inputs.link.base = samples::commit(9),
            "refused merge: stale/base: the base is 000000000000, the page was made for 000000000000",
        );
        with(
            &|review| review.inputs.plan.revision = 2,
            "refused merge: stale/revision: the plan is at r2, the page was at r1",
        );
        with(
            &|review| {
                review.inputs.approvals.pop();
            },
            "refused merge: blocked: 1 blocker: Review 1 unreviewed item",
        );
        with(
            &|review| review.inputs.head = Tip::Unknown("no answer".into()),
            "refused merge: blocked: 1 blocker: The head is unknown: no answer",
        );
        with(
            &|review| review.inputs.task.state = TaskState::Merged,
            "refused merge: wrong-state: the task is merged",
        );
    }

    #[test]
    fn choices_hold_on_to_content_and_number_of_copies() {
        let mut case = Case::new(&samples::two_equal_strays());
        case.accept(0);
        case.review.inputs.link.segments.remove(1);
        samples::renumber(&mut case.review.inputs.link);
        case.review = Review::judge(case.review.inputs);
        case.check(&[
            "refused accept: stale/copies: 1 copy of this change in its file now, 2 then",
        ]);
        let mut case = Case::new(&sample());
        case.accept(2);
        case.assign(0, "P2");
        text_of(&mut case.review, 2, "    else();\n");
        case.check(&[
            "refused accept: stale/code: this change is no longer there as it was shown",
            "refused assign: wrong-state: this change is P1's own: nothing to choose",
        ]);
        let (judgement, _) = case.judge();
        assert_eq!(judgement.refused[0].before, Some("    sneaked();\n".into()));
        let mut case = Case::new(&sample());
        let key = Digest::of(b"no segment");
        case.decide(Action::Accept { segment: 0, key: key.clone() });
        case.decide(Action::Unresolve { segment: 2, key: case.at(2).1 });
        case.check(&[
            "refused accept: unknown-segment: no change has this key",
            "refused unresolve: wrong-state: nothing was chosen about this change",
        ]);
    }

    fn request(text: &str, at: Option<(u32, SegmentKey)>, lines: Option<(u64, u64)>) -> Action {
        Action::RequestChange {
            item: item("P1"),
            segment: at.as_ref().map(|(segment, _)| *segment),
            key: at.map(|(_, key)| key),
            from: lines.map(|(from, _)| from),
            to: lines.map(|(_, to)| to),
            text: text.into(),
        }
    }

    #[test]
    fn a_change_request_keeps_the_lines_it_is_about_and_blocks_until_it_is_sent() {
        let mut case = Case::new(&sample());
        let at = case.at(1);
        let id = case.decide(request("Do less.", Some(at.clone()), Some((2, 2))));
        let after = case.check(&["requested a change of P1"]);
        assert_eq!(after.inputs.notes[0].context, Some("    more();\n".into()));
        assert!(after.blockers.iter().any(|b| b.words == "Send 1 pending change request"));

        let mut next = Case { page: after.clone(), review: after, ..Case::new(&sample()) };
        next.decide(Action::WithdrawRequest { request: id });
        next.decide(Action::WithdrawRequest { request: samples::uuid(9) });
        let after = next.check(&[
            "withdrew a change request for P1",
            "refused withdraw_request: unknown-request: there is no change request 00000000-0000-4000-8000-000000000009",
        ]);
        next.review = after;
        next.check(&[
            "refused withdraw_request: wrong-state: this change request is no longer pending",
            "refused withdraw_request: unknown-request: there is no change request 00000000-0000-4000-8000-000000000009",
        ]);

        let mut case = Case::new(&sample());
        case.decide(request("a", Some(at.clone()), Some((2, 3))));
        case.decide(request("b", Some(at.clone()), Some((0, 1))));
        case.decide(request("c", Some(case.at(5)), None));
        case.decide(request(&"é".repeat(4001), None, None));
        case.decide(request(&"é".repeat(4000), None, None));
        case.decide(Action::Reject { summary: "All of it.".into() });
        case.check(&[
            "requested a change of P1",
            "sent 1 change request",
            "refused request_change: invalid-anchor: lines 2 to 3 of a change with 2",
            "refused request_change: invalid-anchor: lines 0 to 1 of a change with 2",
            "refused request_change: invalid-anchor: this change does not belong to P1",
            "refused request_change: too-long: 4001 characters, more than the 4000 allowed",
        ]);
        let mut case = Case::new(&sample());
        case.decide(Action::Ask {
            item: item("P1"),
            segment: None,
            key: None,
            from: None,
            to: None,
            text: " \n\u{3000}".into(),
        });
        case.check(&["refused ask: nothing-to-send: the text is empty"]);
        let mut case = Case::new(&sample());
        case.decide(Action::Reject { summary: "Nothing.".into() });
        case.check(&["refused reject: nothing-to-send: no change request is pending"]);
    }

    #[test]
    fn decisions_that_need_a_signature_don_t_count_without() {
        let mut case = Case::new(&sample());
        case.review.inputs.policy.required = 2;
        case.approve("P2");
        case.check(&[
            "refused approve: not-authorized: needs a signature: 2 reviewers must approve each item; decisions count only with an SSH signature",
        ]);
        case.reviewer = Reviewer::Signed { name: "a".into(), key: None };
        let after = case.check(&["approved P2"]);
        assert_eq!(after.item(&item("P2")).expect("there").state, ApprovalState::Unreviewed);
        case.review.inputs.policy.named = ["b".to_owned()].into();
        case.check(&["refused approve: not-authorized: a is not one of the reviewers that count"]);
    }

    #[test]
    fn what_has_no_handling_yet_or_is_not_there_is_refused_and_says_so() {
        let mut case = Case::new(&sample());
        let text: Vec<serde_json::Value> = serde_json::from_str::<serde_json::Value>(include_str!(
            "../../../schema/examples/decisions.json"
        ))
        .expect("JSON")["decisions"]
            .as_array()
            .expect("a list")
            .clone();
        for mut value in text {
            let kind = value["type"].as_str().expect("a type").to_owned();
            let known = [
                "plan_", "answer", "apply_", "dismiss", "trust", "queue", "lesson", "problem",
                "finding", "resolve",
            ];
            if known.iter().any(|start| kind.starts_with(start)) {
                value.as_object_mut().expect("an object").remove("id");
                case.decide(serde_json::from_value(value).expect("a decision"));
            }
        }
        let (judgement, _) = case.judge();
        assert!(judgement.steps.is_empty());
        assert_eq!(judgement.refused.len(), case.decisions.len());
        for refused in &judgement.refused {
            assert!(
                matches!(
                    refused.reason,
                    Refusal::Blocked
                        | Refusal::WrongState
                        | Refusal::Contradiction
                        | Refusal::UnknownProblem
                        | Refusal::UnknownFinding
                        | Refusal::UnknownSnapshot
                        | Refusal::UnknownQuestion
                        | Refusal::UnknownSuggestion
                        | Refusal::Stale
                ),
                "{refused:?}"
            );
        }
    }
}
