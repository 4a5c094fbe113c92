//! The JSON Schemas of all contracts, and checks of values against them.

use jsonschema::Validator;
use serde_json::Value;

/// One thing that a schema forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer to the value.
    pub pointer: String,
    /// What is wrong, in the validator's words.
    pub what: String,
}

/// Checks `value` against `schema` and returns every violation, in document order.
///
/// `schema` is the text of one of the schemas of this package.
///
/// # Panics
/// If `schema` is not a valid schema; a test compiles each schema of this package.
#[must_use]
pub fn violations(schema: &str, value: &Value) -> Vec<Violation> {
    validator(schema)
        .iter_errors(value)
        .map(|error| Violation {
            pointer: error.instance_path().to_string(),
            what: error.to_string(),
        })
        .collect()
}

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("schemas of this package are JSON");
    jsonschema::draft202012::options().build(&schema).expect("schemas of this package compile")
}
