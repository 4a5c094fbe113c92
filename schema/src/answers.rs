//! What `apply --format json` answers. Only codeboost writes it.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bytes::{self, RepoBytes};
use crate::ids::Uuid;

/// The JSON Schema.
pub const SCHEMA: &str = include_str!("../answers.schema.json");

/// The report of one `apply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// Always 1.
    pub schema_version: u32,
    /// What was recorded now, in the order it was applied.
    pub applied: Vec<Named>,
    /// What was recorded before.
    pub already: Vec<Named>,
    /// What was not recorded, in the file's order.
    pub refused: Vec<Refused>,
    /// What to do next, for people.
    pub next: String,
}

/// One decision that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its id.
    pub id: Uuid,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// One decision that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its id.
    pub id: Uuid,
    /// Its type.
    pub kind: String,
    /// Why, as a word.
    pub reason: Refusal,
    /// For `stale`: which of the things that must still be equal is not.
    pub cause: Option<String>,
    /// Why, for people.
    pub what: String,
    /// Bytes that the decision was made on.
    pub before: Option<RepoBytes>,
    /// Bytes of now.
    pub after: Option<RepoBytes>,
}

/// Why a decision is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Something it was made on is no longer equal.
    Stale,
    /// Not all of it was drawn in full.
    NotShown,
    /// A tag has not been acknowledged.
    NotAcknowledged,
    /// Another decision of the file says the opposite.
    Contradiction,
    /// Its id was recorded with other content.
    IdReused,
    /// Who applies it may not decide this.
    NotAuthorized,
    /// Something else has to happen first.
    Blocked,
    /// The plan has no such item.
    UnknownItem,
    /// The link has no such segment.
    UnknownSegment,
    /// There is no such thread.
    UnknownThread,
    /// There is no such plan text.
    UnknownSnapshot,
    /// There is no such change request.
    UnknownRequest,
    /// There is no such problem.
    UnknownProblem,
    /// There is no such finding.
    UnknownFinding,
    /// The plan has no such question.
    UnknownQuestion,
    /// There is no such suggestion.
    UnknownSuggestion,
    /// The lines lie outside the segment or the text.
    InvalidAnchor,
    /// What it is about is in a state in which this can't be decided.
    WrongState,
    /// A text is too long.
    TooLong,
    /// There is no change request to send.
    NothingToSend,
}

impl Refusal {
    /// The word of the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::NotShown => "not-shown",
            Self::NotAcknowledged => "not-acknowledged",
            Self::Contradiction => "contradiction",
            Self::IdReused => "id-reused",
            Self::NotAuthorized => "not-authorized",
            Self::Blocked => "blocked",
            Self::UnknownItem => "unknown-item",
            Self::UnknownSegment => "unknown-segment",
            Self::UnknownThread => "unknown-thread",
            Self::UnknownSnapshot => "unknown-snapshot",
            Self::UnknownRequest => "unknown-request",
            Self::UnknownProblem => "unknown-problem",
            Self::UnknownFinding => "unknown-finding",
            Self::UnknownQuestion => "unknown-question",
            Self::UnknownSuggestion => "unknown-suggestion",
            Self::InvalidAnchor => "invalid-anchor",
            Self::WrongState => "wrong-state",
            Self::TooLong => "too-long",
            Self::NothingToSend => "nothing-to-send",
        }
    }
}

impl Serialize for Refused {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Refused", 7)?;
        out.serialize_field("id", &self.id)?;
        out.serialize_field("type", &self.kind)?;
        out.serialize_field("reason", &self.reason)?;
        out.serialize_field("cause", &self.cause)?;
        out.serialize_field("what", &self.what)?;
        bytes::put_opt(&mut out, "before", "before_b64", self.before.as_ref())?;
        bytes::put_opt(&mut out, "after", "after_b64", self.after.as_ref())?;
        out.end()
    }
}

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        #[derive(Deserialize)]
        struct Wire {
            id: Uuid,
            #[serde(rename = "type")]
            kind: String,
            reason: Refusal,
            cause: Option<String>,
            what: String,
            before: Option<String>,
            before_b64: Option<String>,
            after: Option<String>,
            after_b64: Option<String>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            id: wire.id,
            kind: wire.kind,
            reason: wire.reason,
            cause: wire.cause,
            what: wire.what,
            before: bytes::take(wire.before, wire.before_b64).map_err(D::Error::custom)?,
            after: bytes::take(wire.after, wire.after_b64).map_err(D::Error::custom)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::registry;

    #[test]
    fn the_example_is_valid_and_survives_reading_and_writing() {
        let text = include_str!("../examples/answers.json");
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(registry::violations(SCHEMA, &value), []);
        let answers: Answers = serde_json::from_str(text).expect("answers");
        assert_eq!(serde_json::to_value(&answers).expect("JSON"), value);
    }

    #[test]
    fn bytes_that_are_no_text_are_written_as_base64() {
        let refused = Refused {
            id: Uuid::parse("00000000-0000-4000-8000-000000000001").expect("a UUID"),
            kind: "approve".into(),
            reason: Refusal::Stale,
            cause: Some("code".into()),
            what: "changed".into(),
            before: Some(RepoBytes::from(&b"\xff"[..])),
            after: None,
        };
        let value = serde_json::to_value(&refused).expect("JSON");
        assert_eq!(value["before_b64"], "/w==");
        assert!(value.get("before").is_none());
        assert_eq!(serde_json::from_value::<Refused>(value).expect("read"), refused);
        assert_eq!(
            serde_json::to_value(Refusal::NothingToSend).expect("JSON"),
            Refusal::NothingToSend.as_str()
        );
    }
}
