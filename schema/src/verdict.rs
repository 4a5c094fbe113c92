//! What an agent says that judged a change. Unauthenticated text: the problems that it files wait for
//! a person, and what it calls fixed is shown as its word.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ItemId, Uuid};
use crate::registry;

/// The JSON Schema, in the part of the language that the vendors' own checks know.
pub const SCHEMA: &str = include_str!("../verdict.schema.json");

/// Most problems of one round.
pub const MAX_PROBLEMS: usize = 50;
/// Longest text, in characters.
pub const MAX_TEXT: usize = 4000;

/// The result of one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// How it was judged.
    pub summary: String,
    /// What is wrong.
    pub problems: Vec<Filed>,
    /// Open problems that are there no more.
    pub fixed: Vec<Uuid>,
}

/// A problem of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filed {
    /// The item.
    pub item: ItemId,
    /// What is wrong.
    pub text: String,
}

impl Verdict {
    /// Reads a verdict, whatever the vendor's tool claims to have checked.
    ///
    /// `items`: those of the plan; `open`: the problems that it may call fixed.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(value: &Value, items: &[ItemId], open: &[Uuid]) -> Result<Self, String> {
        if let Some(violation) = registry::violations(SCHEMA, value).first() {
            return Err(format!("{}: {}", violation.pointer, violation.what));
        }
        let verdict: Self =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let texts = verdict.problems.iter().map(|problem| &problem.text);
        if verdict.problems.len() > MAX_PROBLEMS
            || texts.chain([&verdict.summary]).any(|text| text.chars().count() > MAX_TEXT)
        {
            return Err("longer than a verdict may be".into());
        }
        for problem in &verdict.problems {
            if !items.contains(&problem.item) {
                return Err(format!("the plan has no item {}", problem.item));
            }
            if problem.text.trim().is_empty() {
                return Err(format!("a problem of {} says nothing", problem.item));
            }
        }
        match verdict.fixed.iter().find(|id| !open.contains(id)) {
            Some(id) => Err(format!("no problem {id} is open")),
            None => Ok(verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_speaks_of_items_and_problems_that_are_there() {
        let items = [ItemId::parse("P1").expect("an id")];
        let open = [Uuid::parse("0191d2f0-0000-4000-8000-00000000000a").expect("a uuid")];
        let read = |value: Value| Verdict::read(&value, &items, &open);
        let fine =
            json!({"summary": "x", "problems": [{"item": "P1", "text": "t"}], "fixed": [open[0]]});
        assert!(read(fine.clone()).is_ok());
        let with = |key: &str, value: Value| {
            let mut other = fine.clone();
            other[key] = value;
            other
        };
        for bad in [
            json!({}),
            with("more", json!(1)),
            with("problems", json!([{"item": "P2", "text": "t"}])),
            with("problems", json!([{"item": "P1", "text": " "}])),
            with("problems", json!([{"item": "P1", "text": "x".repeat(MAX_TEXT + 1)}])),
            with("fixed", json!(["0191d2f0-0000-4000-8000-00000000000b"])),
            with("fixed", json!(["x"])),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
