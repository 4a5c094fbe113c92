//! The approval form that a bundle carries, and that a decisions file gives back.
//!
//! A bundle embeds the exact canonical bytes of a [`Form`] and an Ed25519 signature over
//! [`SIGNED_PREFIX`] and these bytes. Whoever checks it verifies the bytes as they are and never
//! serializes anew. Form schema: `form.schema.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::ids::{CommitId, Digest, Fingerprint, ItemId, SegmentKey, Uuid};
use crate::strict::{self, StrictError};

/// The JSON Schema.
pub const SCHEMA: &str = include_str!("../form.schema.json");

/// What stands before the payload in the bytes that are signed.
pub const SIGNED_PREFIX: &[u8] = b"codeboost-form-v1\0";

/// A payload may have this many bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// What one page offered for decision. Every key is always there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Always 1.
    pub schema_version: u32,
    /// Digest of the page's data.
    pub data_digest: Digest,
    /// The repository, by the id that its state gave it.
    pub repository: Uuid,
    /// The task; null on a page without one, and then all that follows up to `threads` is null.
    #[serde(deserialize_with = "nullable")]
    pub task: Option<Uuid>,
    /// The plan of the task, the same for all its revisions.
    #[serde(deserialize_with = "nullable")]
    pub plan: Option<Uuid>,
    /// Number of the issue.
    #[serde(deserialize_with = "nullable")]
    pub issue: Option<u64>,
    /// Revision of the plan.
    #[serde(deserialize_with = "nullable")]
    pub revision: Option<u64>,
    /// The commit that the changes start from.
    #[serde(deserialize_with = "nullable")]
    pub base: Option<CommitId>,
    /// The commit that the changes end at; null for a plan without a branch.
    #[serde(deserialize_with = "nullable")]
    pub head: Option<CommitId>,
    /// Every item of the plan as it stood when the page was made; empty without a branch.
    #[serde(deserialize_with = "nullable")]
    pub items: Option<BTreeMap<ItemId, FormItem>>,
    /// The segments of the page; null without a branch.
    #[serde(deserialize_with = "nullable")]
    pub segments: Option<FormSegments>,
    /// The plan text that comments are anchored to.
    #[serde(deserialize_with = "nullable")]
    pub threads: Option<FormThreads>,
    /// RFC 3339 UTC: `SOURCE_DATE_EPOCH`, else the time of the newest recorded input.
    pub rendered_at: String,
    /// The key that signed, as standard base64 of its 32 bytes.
    pub public_key: String,
}

/// One item as a form offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormItem {
    /// Its fingerprint when the page was made, recorded choices included.
    pub fingerprint: Fingerprint,
    /// Its recorded approval when the page was made.
    pub state: ApprovalState,
}

/// State of the approval of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Never approved, or withdrawn.
    Unreviewed,
    /// Approved, and still true.
    Approved,
    /// Approved once, and no longer true.
    Stale,
}

impl ApprovalState {
    /// The word of the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreviewed => "unreviewed",
            Self::Approved => "approved",
            Self::Stale => "stale",
        }
    }
}

/// The segments that a page showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormSegments {
    /// How many.
    pub count: u64,
    /// Digest of the list of their keys in id order.
    pub digest: Digest,
}

impl FormSegments {
    /// Counts and digests `keys`, which stand in id order.
    #[must_use]
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a SegmentKey>) -> Self {
        let keys: Vec<_> = keys.into_iter().collect();
        Self { count: keys.len() as u64, digest: canonical::digest(&keys) }
    }
}

/// The plan text that a page showed for comments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormThreads {
    /// Digest of the text.
    pub snapshot: Digest,
}

/// Why a payload is no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is not strict JSON.
    #[error("the form's payload is not strict JSON")]
    Syntax(#[source] StrictError),
    /// It is of a version that this codeboost doesn't know.
    #[error("the form has schema_version {0}, and this codeboost knows 1")]
    Version(Value),
    /// A key is missing, unknown, or of another type.
    #[error("the form's payload is malformed: {0}")]
    Shape(String),
}

impl Form {
    /// Whether these are the fingerprints of the items that it offers.
    #[must_use]
    pub fn offers(&self, fingerprints: &BTreeMap<ItemId, Fingerprint>) -> bool {
        self.items.as_ref().is_some_and(|items| {
            items.iter().map(|(id, item)| (id, &item.fingerprint)).eq(fingerprints)
        })
    }

    /// The canonical bytes, to be signed and embedded.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical::to_bytes(self)
    }

    /// Reads a payload. Its signature is checked elsewhere, over the bytes as they are.
    ///
    /// # Errors
    /// [`FormError`] on anything but one strict JSON object with exactly the keys of a form.
    pub fn parse(payload: &[u8]) -> Result<Self, FormError> {
        let value = strict::parse(payload, MAX_BYTES).map_err(FormError::Syntax)?;
        match value.get("schema_version") {
            Some(version) if *version == 1 => {}
            Some(version) => return Err(FormError::Version(version.clone())),
            None => return Err(FormError::Shape("schema_version is missing".into())),
        }
        let form: Self =
            serde_json::from_value(value).map_err(|error| FormError::Shape(error.to_string()))?;
        form.check_nulls()?;
        Ok(form)
    }

    fn check_nulls(&self) -> Result<(), FormError> {
        let of_task = [
            self.plan.is_some(),
            self.issue.is_some(),
            self.revision.is_some(),
            self.base.is_some(),
            self.items.is_some(),
        ];
        let consistent = match (&self.task, &self.head) {
            (None, head) => {
                let rest = [head.is_some(), self.segments.is_some(), self.threads.is_some()];
                !of_task.contains(&true) && !rest.contains(&true)
            }
            (Some(_), Some(_)) => !of_task.contains(&false) && self.segments.is_some(),
            (Some(_), None) => {
                !of_task.contains(&false)
                    && self.segments.is_none()
                    && self.items.as_ref().is_some_and(BTreeMap::is_empty)
            }
        };
        if consistent {
            Ok(())
        } else {
            Err(FormError::Shape("the keys from task to threads don't fit together".into()))
        }
    }
}

/// Reads a key that must be there and may be null.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    const EXAMPLE: &str = include_str!("../examples/form.json");

    fn example() -> Value {
        serde_json::from_str(EXAMPLE).expect("JSON")
    }

    fn refuse(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> FormError {
        let mut value = example();
        change(value.as_object_mut().expect("an object"));
        Form::parse(value.to_string().as_bytes()).expect_err("no form")
    }

    #[test]
    fn the_example_is_valid_and_survives_reading_and_writing() {
        assert_eq!(registry::violations(SCHEMA, &example()), []);
        let form = Form::parse(EXAMPLE.as_bytes()).expect("a form");
        assert_eq!(Form::parse(&form.to_bytes()).as_ref(), Ok(&form));
        let written: Value = serde_json::from_slice(&form.to_bytes()).expect("JSON");
        assert_eq!(written, example());
    }

    #[test]
    fn every_key_is_required_and_no_other_is_known() {
        let keys: Vec<String> = example().as_object().expect("an object").keys().cloned().collect();
        for key in keys {
            refuse(|form| {
                form.remove(&key);
            });
        }
        refuse(|form| {
            form.insert("more".into(), Value::Null);
        });
        assert!(matches!(
            refuse(|form| {
                form.insert("schema_version".into(), 2.into());
            }),
            FormError::Version(_)
        ));
    }

    #[test]
    fn a_form_has_all_of_a_task_or_nothing_of_it() {
        refuse(|form| {
            form.insert("task".into(), Value::Null);
        });
        refuse(|form| {
            form.insert("head".into(), Value::Null);
        });
        let mut value = example();
        for key in ["task", "plan", "issue", "revision", "base", "head", "items", "segments"] {
            value[key] = Value::Null;
        }
        value["threads"] = Value::Null;
        Form::parse(value.to_string().as_bytes()).expect("a form of a page without a task");
        let mut value = example();
        value["head"] = Value::Null;
        value["segments"] = Value::Null;
        value["items"] = serde_json::json!({});
        Form::parse(value.to_string().as_bytes()).expect("a form of a plan without a branch");
    }
}
