//! Bytes to a plan: parse, choose the version, hold against its schema.
//!
//! What comes out has the right shape; whether it makes sense for a repository is for
//! [`super::v1`] to say.

use codeboost_schema::plan::Plan;
use codeboost_schema::plan_edit::PlanEdit;
use codeboost_schema::registry::{Registry, SemanticsKey, Version};
use serde_json::Value;

use super::problem::{Code, Problem, locate};
use super::source::{Document, Source};
use super::v1::parse::{self, Syntax};
use super::v1::shape;

/// A plan of the right shape, with its text.
#[derive(Debug, Clone)]
pub struct ReadPlan {
    /// The plan.
    pub plan: Plan,
    /// Which semantics it follows.
    pub semantics: SemanticsKey,
    /// The text and the places in it.
    pub document: Document,
}

/// Why there is no plan.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The text as far as it is one; empty when it is not.
    pub source: Source,
    /// Everything that is wrong, by place; at least one failure.
    pub problems: Vec<Problem>,
}

/// Reads a plan.
///
/// # Errors
/// [`Unreadable`] with everything that can be told: all that the syntax refuses, or else all that
/// the schema refuses.
pub fn read(bytes: &[u8], syntax: Syntax) -> Result<ReadPlan, Unreadable> {
    let document = parse::parse(bytes, syntax)
        .map_err(|(source, problems)| Unreadable { source, problems })?;
    let value = document.root.to_value();
    let unreadable = |mut problems: Vec<Problem>, document: Document| {
        locate(&mut problems, &document);
        Unreadable { source: document.source, problems }
    };
    let Some(version) = version(&value) else {
        let problem = no_version(&value);
        return Err(unreadable(vec![problem], document));
    };
    let violations = version.plan_violations(&value);
    if !violations.is_empty() {
        let problems = shape::problems(&value, violations);
        return Err(unreadable(problems, document));
    }
    match serde_json::from_value(value) {
        Ok(plan) => Ok(ReadPlan { plan, semantics: version.key, document }),
        Err(error) => {
            let problem = Problem::new(
                Code::Schema,
                "",
                error.to_string(),
                "the value satisfies the schema (2.2)",
                "compare it with the examples in schema/examples",
            );
            Err(unreadable(vec![problem], document))
        }
    }
}

/// Reads an assistant's answer with suggested edits: JSON alone, of the shape that `version` has.
///
/// # Errors
/// [`Unreadable`] with everything that can be told.
pub fn read_answer(bytes: &[u8], version: &Version) -> Result<(PlanEdit, Document), Unreadable> {
    let document = parse::parse(bytes, Syntax::Json)
        .map_err(|(source, problems)| Unreadable { source, problems })?;
    let value = document.root.to_value();
    let violations = version.edit_violations(&value);
    let mut problems = shape::edit_problems(&value, violations);
    if problems.is_empty() {
        match serde_json::from_value(value) {
            Ok(answer) => return Ok((answer, document)),
            Err(error) => problems.push(Problem::new(
                Code::EditSchema,
                "",
                error.to_string(),
                "an answer satisfies its schema (8.1)",
                "compare it with the examples in schema/examples",
            )),
        }
    }
    locate(&mut problems, &document);
    Err(Unreadable { source: document.source, problems })
}

fn version(value: &Value) -> Option<&'static Version> {
    Registry::get().version(value.get("schema_version")?.as_u64()?)
}

fn no_version(value: &Value) -> Problem {
    let known: Vec<_> = Registry::get().numbers().map(|number| number.to_string()).collect();
    let current = Registry::get().current().number;
    let rule = format!("schema_version is one of {} (2.1)", known.join(", "));
    let mend = format!("write schema_version: {current} and follow schema/plan-guide.md");
    match value {
        Value::Object(plan) => match plan.get("schema_version") {
            Some(found) => Problem::new(
                Code::Version,
                "/schema_version",
                format!(
                    "this build knows no plan format of version {}",
                    found.to_string().chars().take(40).collect::<String>()
                ),
                rule,
                mend,
            ),
            None => Problem::new(Code::Version, "", "the plan names no schema_version", rule, mend),
        },
        _ => Problem::new(
            Code::Version,
            "",
            "this is not a plan: the outermost value is no object",
            rule,
            mend,
        ),
    }
}
