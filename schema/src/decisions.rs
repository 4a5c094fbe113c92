//! What a reader decided in a page: `decisions.json`.
//!
//! The file is strict: an unknown key, a duplicate key or an unknown type refuses it as a whole.
//! Whether a decision can be recorded is the work of `apply` in the command line package; only
//! what the schema fixes is checked here. Limits on texts are no part of it, because a text that
//! is too long refuses its decision alone.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::canonical;
use crate::ids::{Digest, ItemId, SegmentKey, Uuid};
use crate::link::Row;
use crate::strict::{self, StrictError};

/// The JSON Schema.
pub const SCHEMA: &str = include_str!("../decisions.schema.json");

/// A file may have this many bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Texts of change requests, questions and comments may have this many Unicode scalar values.
pub const MAX_TEXT_CHARS: usize = 4000;

/// Quotes of plan comments may have this many Unicode scalar values.
pub const MAX_QUOTE_CHARS: usize = 500;

/// A whole decisions file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    /// The form of the page, as the page got it.
    pub form: SignedForm,
    /// RFC 3339, by the reader's clock.
    pub saved_at: String,
    /// Whom the reader says to be. It never counts for anything.
    pub reviewer: Option<String>,
    /// The segments that were drawn in full, by the row they stand on in the link.
    pub shown: BTreeMap<Row, Shown>,
    /// In the file's order.
    pub decisions: Vec<Decision>,
}

/// The exact bytes of a form and the signature over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedForm {
    /// Canonical JSON.
    pub payload: Vec<u8>,
    /// Ed25519 signature.
    pub signature: Vec<u8>,
}

/// Which segments of one row were drawn in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// All of them.
    All,
    /// These, by id.
    Segments(BTreeSet<u32>),
}

impl Shown {
    /// Whether the segment of that id was drawn in full.
    #[must_use]
    pub fn contains(&self, segment: u32) -> bool {
        match self {
            Self::All => true,
            Self::Segments(ids) => ids.contains(&segment),
        }
    }
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Made when it was drafted; the same decision keeps it for ever.
    pub id: Uuid,
    /// What it decides.
    pub action: Action,
    /// Digest of all that it says besides its id. A segment that is named by its key counts by
    /// the key alone, because its number differs from page to page.
    pub content: Digest,
}

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident $word:literal
        { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        /// What one decision decides.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type", deny_unknown_fields)]
        pub enum Action {
            $(
                $(#[$doc])*
                #[serde(rename = $word)]
                $name { $($(#[$field_doc])* $field: $type),* },
            )*
        }

        impl Action {
            /// The word under `type`.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $word,)*
                }
            }

            /// All words, in the order of the contract's table.
            pub const WORDS: &'static [&'static str] = &[$($word),*];
        }
    };
}

actions! {
    /// The item is right as it stands.
    Approve "approve" {
        /// Which item.
        item: ItemId,
    }
    /// The item needs no change, and has none.
    ConfirmNoChange "confirm_no_change" {
        /// Which item.
        item: ItemId,
    }
    /// The reviewer's approval of the item no longer stands.
    Withdraw "withdraw" {
        /// Which item.
        item: ItemId,
    }
    /// An ambiguous or unplanned segment belongs to an item.
    Assign "assign" {
        /// Its id in the page's link.
        segment: u32,
        /// Its key.
        key: SegmentKey,
        /// The item that gets it.
        item: ItemId,
    }
    /// An ambiguous or unplanned segment is right as it is.
    Accept "accept" {
        /// Its id in the page's link.
        segment: u32,
        /// Its key.
        key: SegmentKey,
    }
    /// The choice about a segment no longer stands.
    Unresolve "unresolve" {
        /// Its id in the page's link.
        segment: u32,
        /// Its key.
        key: SegmentKey,
    }
    /// The reviewer saw what a tag says.
    Acknowledge "acknowledge" {
        /// Its id in the page's link.
        segment: u32,
        /// Its key.
        key: SegmentKey,
        /// The tag's word.
        tag: String,
    }
    /// The item has to change with the next revision.
    RequestChange "request_change" {
        /// Which item.
        item: ItemId,
        /// The segment it is about.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        segment: Option<u32>,
        /// Its key; with a segment always there.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        key: Option<SegmentKey>,
        /// First line within the segment's text; counts from 1.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
        /// Last line within the segment's text, inclusive.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
        /// What has to change.
        text: String,
    }
    /// A change request no longer stands.
    WithdrawRequest "withdraw_request" {
        /// The id of the decision that made the request.
        request: Uuid,
    }
    /// A question about an item; answered by a reading agent, it changes nothing.
    Ask "ask" {
        /// Which item.
        item: ItemId,
        /// The segment it is about.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        segment: Option<u32>,
        /// Its key; with a segment always there.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        key: Option<SegmentKey>,
        /// First line within the segment's text; counts from 1.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
        /// Last line within the segment's text, inclusive.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
        /// The question.
        text: String,
    }
    /// A problem is judged.
    Problem "problem" {
        /// Which problem.
        problem: Uuid,
        /// The only state that a person gives.
        state: ProblemState,
        /// Why.
        text: String,
    }
    /// A finding is judged.
    Finding "finding" {
        /// Which finding.
        finding: Uuid,
        /// The state that it gets.
        state: FindingState,
        /// Why.
        text: String,
    }
    /// The open change requests go into the next revision.
    Reject "reject" {
        /// What the next revision is about.
        summary: String,
    }
    /// The changes are merged, once nothing forbids it.
    Merge "merge" {}
    /// A state that waits for a person gets its answer.
    ResolveState "resolve_state" {
        /// The state that the task waits in.
        state: String,
        /// The word of the action.
        action: String,
        /// The cause of the wait, as the page named it.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        /// Guidance, where the action takes any.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    }
    /// A new thread on lines of the plan's text.
    PlanComment "plan_comment" {
        /// The plan text.
        snapshot: Digest,
        /// First and last line; counts from 1, inclusive.
        lines: (u64, u64),
        /// The selected text.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        quote: Option<String>,
        /// The thread that it opens; made when it is drafted.
        thread: Uuid,
        /// The comment.
        body: String,
    }
    /// An answer in a thread.
    PlanReply "plan_reply" {
        /// The plan text.
        snapshot: Digest,
        /// Which thread.
        thread: Uuid,
        /// The reply.
        body: String,
    }
    /// A thread is done.
    PlanResolve "plan_resolve" {
        /// The plan text.
        snapshot: Digest,
        /// Which thread.
        thread: Uuid,
    }
    /// A thread is open again.
    PlanReopen "plan_reopen" {
        /// The plan text.
        snapshot: Digest,
        /// Which thread.
        thread: Uuid,
    }
    /// The plan is approved as it stands.
    PlanApprove "plan_approve" {
        /// Which revision.
        revision: u64,
        /// The exact commands that are allowed with it.
        argv: Vec<Vec<String>>,
        /// Open threads are known.
        #[serde(default)]
        confirm_open_threads: bool,
        /// Open questions are known.
        #[serde(default)]
        confirm_open_questions: bool,
    }
    /// A question of the plan gets its answer.
    AnswerQuestion "answer_question" {
        /// Place in the plan's list of questions; counts from 1.
        question: u64,
        /// The answer.
        text: String,
    }
    /// A suggested edit of the plan is taken.
    ApplySuggestion "apply_suggestion" {
        /// Which suggestion.
        suggestion: Uuid,
    }
    /// A suggested edit of the plan is dropped.
    DismissSuggestion "dismiss_suggestion" {
        /// Which suggestion.
        suggestion: Uuid,
    }
    /// An issue may be worked on.
    TrustIssue "trust_issue" {
        /// Number of the issue.
        issue: u64,
        /// The author it was shown with.
        author: String,
        /// The version of its row.
        version: u64,
    }
    /// A change of the queue.
    Queue "queue_change" {
        /// Which row.
        row: String,
        /// The version of the row.
        version: u64,
        /// The word of the change.
        action: String,
    }
    /// A judgement of a lesson.
    Lesson "lesson_change" {
        /// Which lesson.
        lesson: Uuid,
        /// The version of its row.
        version: u64,
        /// The word of the change.
        action: String,
        /// Its new text, where the change has one.
        #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    }
}

impl Action {
    /// The segment that the decision names, with its key.
    #[must_use]
    pub fn segment(&self) -> Option<(u32, &SegmentKey)> {
        match self {
            Self::Assign { segment, key, .. }
            | Self::Accept { segment, key }
            | Self::Unresolve { segment, key }
            | Self::Acknowledge { segment, key, .. } => Some((*segment, key)),
            Self::RequestChange { segment, key, .. } | Self::Ask { segment, key, .. } => {
                segment.zip(key.as_ref())
            }
            _ => None,
        }
    }

    /// The item that the decision names.
    #[must_use]
    pub fn item(&self) -> Option<&ItemId> {
        match self {
            Self::Approve { item }
            | Self::ConfirmNoChange { item }
            | Self::Withdraw { item }
            | Self::Assign { item, .. }
            | Self::RequestChange { item, .. }
            | Self::Ask { item, .. } => Some(item),
            _ => None,
        }
    }
}

/// The state that a person may give a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemState {
    /// Known, and no reason against merging.
    Accepted,
}

/// The states that a person may give a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// True, and taken as it is.
    Accepted,
    /// Not true.
    Rejected,
    /// For later.
    Deferred,
}

/// Why a file is no decisions file. Nothing of it is looked at further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecisionsError {
    /// It is not strict JSON, or too large.
    #[error("not strict JSON")]
    Syntax(#[source] StrictError),
    /// It is of a version that this codeboost doesn't know.
    #[error("schema_version is {0}, and this codeboost knows 1")]
    Version(Value),
    /// A key is missing, unknown, or of another type.
    #[error("{place}: {what}")]
    Shape {
        /// Where, such as `decisions[3]`.
        place: String,
        /// What is wrong there.
        what: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    form: Value,
    saved_at: String,
    #[serde(deserialize_with = "nullable")]
    reviewer: Option<String>,
    shown: Map<String, Value>,
    decisions: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireForm {
    payload_b64: String,
    signature: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireShown {
    Word(String),
    Segments(BTreeSet<u32>),
}

impl Decisions {
    /// Reads a whole file.
    ///
    /// # Errors
    /// [`DecisionsError`] on anything but one strict decisions file of version 1.
    pub fn parse(input: &[u8]) -> Result<Self, DecisionsError> {
        let value = strict::parse(input, MAX_BYTES).map_err(DecisionsError::Syntax)?;
        match value.get("schema_version") {
            Some(version) if *version == 1 => {}
            Some(version) => return Err(DecisionsError::Version(version.clone())),
            None => return Err(shape("the file", "schema_version is missing")),
        }
        let file: File = serde_json::from_value(value).map_err(|error| shape("the file", error))?;
        let form: WireForm =
            serde_json::from_value(file.form).map_err(|error| shape("form", error))?;
        let form = SignedForm {
            payload: STANDARD
                .decode(form.payload_b64)
                .map_err(|_| shape("form.payload_b64", "not standard base64"))?,
            signature: STANDARD
                .decode(form.signature)
                .map_err(|_| shape("form.signature", "not standard base64"))?,
        };
        if !is_time(&file.saved_at) {
            return Err(shape("saved_at", "not a time such as 2026-11-30T12:30:00Z"));
        }
        let mut shown = BTreeMap::new();
        for (row, ids) in file.shown {
            let place = format!("shown.{row}");
            let row = parse_row(&row).ok_or_else(|| shape(&place, "no row of a link"))?;
            let ids = match serde_json::from_value(ids) {
                Ok(WireShown::Word(word)) if word == "all" => Shown::All,
                Ok(WireShown::Segments(ids)) => Shown::Segments(ids),
                Ok(WireShown::Word(_)) | Err(_) => {
                    return Err(shape(&place, "neither \"all\" nor a list of segment ids"));
                }
            };
            shown.insert(row, ids);
        }
        let mut decisions = Vec::with_capacity(file.decisions.len());
        for (n, value) in file.decisions.into_iter().enumerate() {
            decisions.push(Decision::parse(value, &format!("decisions[{n}]"))?);
        }
        Ok(Self { form, saved_at: file.saved_at, reviewer: file.reviewer, shown, decisions })
    }

    /// Whether the segment, which stands on `row` in the link, was drawn in full.
    #[must_use]
    pub fn was_shown(&self, row: &Row, segment: u32) -> bool {
        self.shown.get(row).is_some_and(|shown| shown.contains(segment))
    }
}

impl Decision {
    /// A decision with its content digest.
    #[must_use]
    pub fn new(id: Uuid, action: Action) -> Self {
        let content = action.content();
        Self { id, action, content }
    }

    fn parse(value: Value, place: &str) -> Result<Self, DecisionsError> {
        let Value::Object(mut object) = value else {
            return Err(shape(place, "not an object"));
        };
        let id = match object.remove("id") {
            Some(Value::String(id)) => Uuid::parse(&id).map_err(|error| shape(place, error))?,
            Some(_) => return Err(shape(place, "id is not a string")),
            None => return Err(shape(place, "id is missing")),
        };
        let action: Action =
            serde_json::from_value(Value::Object(object)).map_err(|error| shape(place, error))?;
        action.check().map_err(|what| shape(place, what))?;
        Ok(Self::new(id, action))
    }
}

impl Action {
    fn content(&self) -> Digest {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if self.segment().is_some()
            && let Some(object) = value.as_object_mut()
        {
            object.remove("segment");
        }
        canonical::digest(&value)
    }

    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::RequestChange { segment, key, from, to, .. }
            | Self::Ask { segment, key, from, to, .. } => {
                if segment.is_some() != key.is_some() {
                    return Err("segment and key stand together or not at all");
                }
                if from.is_some() != to.is_some() {
                    return Err("from and to stand together or not at all");
                }
                if from.is_some() && segment.is_none() {
                    return Err("from and to need a segment");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn shape(place: &str, what: impl ToString) -> DecisionsError {
    DecisionsError::Shape { place: place.to_owned(), what: what.to_string() }
}

fn parse_row(text: &str) -> Option<Row> {
    match text {
        "ambiguous" => Some(Row::Ambiguous),
        "unplanned" => Some(Row::Unplanned),
        item => ItemId::parse(item).ok().map(Row::Item),
    }
}

/// Whether `text` has the form of an RFC 3339 time. Its meaning never counts.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let at = |n: usize, b: u8| bytes.get(n) == Some(&b);
    digits(0..4)
        && at(4, b'-')
        && digits(5..7)
        && at(7, b'-')
        && digits(8..10)
        && at(10, b'T')
        && digits(11..13)
        && at(13, b':')
        && digits(14..16)
        && at(16, b':')
        && digits(17..19)
        && text.len() <= 40
}

/// Reads a key that may be absent and is never null.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a key that must be there and may be null.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    const EXAMPLE: &str = include_str!("../examples/decisions.json");

    fn example() -> Value {
        serde_json::from_str(EXAMPLE).expect("JSON")
    }

    /// Whether our reader takes a file with exactly this decision; the schema must agree.
    fn check(decision: Value) -> Result<Decision, String> {
        let mut file = example();
        file["decisions"] = json!([decision]);
        let read = Decisions::parse(file.to_string().as_bytes());
        let violations = registry::violations(SCHEMA, &file);
        assert_eq!(read.is_ok(), violations.is_empty(), "{read:?}\n{violations:?}\n{file:#}");
        read.map(|mut file| file.decisions.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_has_every_type_and_is_valid() {
        assert_eq!(registry::violations(SCHEMA, &example()), []);
        let file = Decisions::parse(EXAMPLE.as_bytes()).expect("decisions");
        let mut found: Vec<_> = file.decisions.iter().map(|d| d.action.word()).collect();
        let mut all = Action::WORDS.to_vec();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all);
        crate::form::Form::parse(&file.form.payload).expect("the example's form");
        assert!(file.was_shown(&Row::Item(ItemId::parse("P1").expect("an item")), 99));
        assert!(!file.was_shown(&Row::Unplanned, 3));
        assert!(!file.was_shown(&Row::Ambiguous, 3));
    }

    #[test]
    fn the_schema_and_the_reader_refuse_the_same() {
        for decision in example()["decisions"].as_array().expect("a list") {
            check(decision.clone()).expect("valid");
            let object = decision.as_object().expect("an object");
            let mut more = decision.clone();
            more["more"] = json!(1);
            check(more).expect_err("an unknown key");
            for value in [Value::Null, json!(1)] {
                for key in ["segment", "key", "from"] {
                    let mut more = decision.clone();
                    more[key] = value.clone();
                    // Some keys are optional; that both agree is what counts.
                    let _ = check(more);
                }
            }
            for key in object.keys() {
                let mut less = decision.clone();
                less.as_object_mut().expect("an object").remove(key);
                let _ = check(less);
                let mut other = decision.clone();
                other[key] = json!({"a": [1]});
                check(other).expect_err("another type");
            }
        }
        for wrong in [
            json!("approve"),
            json!({"id": "x", "type": "approve", "item": "P1"}),
            json!({"id": "00000000-0000-4000-8000-00000000000A", "type": "merge"}),
            json!({"id": "00000000-0000-4000-8000-000000000001", "type": "burn"}),
            json!({"id": "00000000-0000-4000-8000-000000000001", "type": "approve", "item": "P0"}),
        ] {
            check(wrong).expect_err("malformed");
        }
    }

    #[test]
    fn a_text_of_any_length_is_for_apply_to_judge() {
        let id = "00000000-0000-4000-8000-000000000001";
        check(json!({"id": id, "type": "ask", "item": "P1", "text": "é".repeat(4001)}))
            .expect("well-formed");
    }

    #[test]
    fn the_envelope_is_strict() {
        let refuse = |change: &dyn Fn(&mut Value)| {
            let mut file = example();
            change(&mut file);
            assert_ne!(registry::violations(SCHEMA, &file), []);
            Decisions::parse(file.to_string().as_bytes()).expect_err("no decisions")
        };
        for key in ["schema_version", "form", "saved_at", "reviewer", "shown", "decisions"] {
            refuse(&|file| {
                file.as_object_mut().expect("an object").remove(key);
            });
        }
        refuse(&|file| file["more"] = json!(1));
        refuse(&|file| file["form"]["more"] = json!(1));
        refuse(&|file| file["form"]["signature"] = json!("!"));
        refuse(&|file| file["shown"]["P0"] = json!("all"));
        refuse(&|file| file["shown"]["P1"] = json!("some"));
        refuse(&|file| file["saved_at"] = json!("now"));
        let version = refuse(&|file| file["schema_version"] = json!(2));
        assert_eq!(version.to_string(), "schema_version is 2, and this codeboost knows 1");
    }

    #[test]
    fn a_repeated_key_refuses_the_file() {
        let text = EXAMPLE.replacen("\"saved_at\"", "\"reviewer\": null, \"saved_at\"", 1);
        let error = Decisions::parse(text.as_bytes()).expect_err("a duplicate");
        assert!(matches!(error, DecisionsError::Syntax(_)), "{error}");
        let large = [EXAMPLE.as_bytes(), &b" ".repeat(MAX_BYTES)].concat();
        let error = Decisions::parse(&large).expect_err("too large");
        assert!(matches!(error, DecisionsError::Syntax(StrictError::TooLarge { .. })), "{error}");
    }

    #[test]
    fn one_decision_keeps_its_content_digest_from_page_to_page() {
        let id = "00000000-0000-4000-8000-000000000001";
        let key = Digest::of(b"a segment");
        let accept = |n: u32| json!({"id": id, "type": "accept", "segment": n, "key": key});
        let first = check(accept(3)).expect("valid");
        assert_eq!(first.content, check(accept(4)).expect("valid").content);
        let other = json!({"id": id, "type": "unresolve", "segment": 3, "key": key});
        assert_ne!(first.content, check(other).expect("valid").content);
    }
}
