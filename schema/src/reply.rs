//! What an agent answers to a question. Unauthenticated text: it is shown, and decides nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::registry;

/// The JSON Schema, in the part of the language that the vendors' own checks know.
pub const SCHEMA: &str = include_str!("../reply.schema.json");

/// Longest answer, in characters.
pub const MAX_TEXT: usize = 20_000;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Markdown.
    pub reply: String,
}

impl Reply {
    /// Reads an answer, whatever the vendor's tool claims to have checked.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(value: &Value) -> Result<Self, String> {
        if let Some(violation) = registry::violations(SCHEMA, value).first() {
            return Err(format!("{}: {}", violation.pointer, violation.what));
        }
        let reply: Self =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        match reply.reply.chars().count() {
            0 => Err("an empty answer".into()),
            n if n > MAX_TEXT => Err("longer than an answer may be".into()),
            _ => Ok(reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_text_and_nothing_else() {
        assert!(Reply::read(&json!({"reply": "Because."})).is_ok());
        for bad in [
            json!({}),
            json!("Because."),
            json!({"reply": ""}),
            json!({"reply": null}),
            json!({"reply": "x", "more": 1}),
            json!({"reply": "x".repeat(MAX_TEXT + 1)}),
        ] {
            assert!(Reply::read(&bad).is_err(), "{bad}");
        }
    }
}
