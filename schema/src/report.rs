//! What an agent says at the end of carrying out an item. Unauthenticated text: it decides nothing
//! but whether its work is looked at.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::FileKind;
use crate::registry;

/// The JSON Schema, in the part of the language that the vendors' own checks know.
pub const SCHEMA: &str = include_str!("../report.schema.json");

/// Longest text in a report, in characters.
pub const MAX_TEXT: usize = 20_000;
/// Most files in a proposal.
pub const MAX_FILES: usize = 200;

/// The report of one invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// How it ended.
    pub outcome: ReportOutcome,
    /// What was changed.
    pub summary: String,
    /// What could not be done; may be empty.
    pub not_done: String,
    /// What the plan should say instead; only when it needs an amendment.
    pub proposal: Option<Proposal>,
}

/// How an agent says that it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportOutcome {
    /// The item is carried out, or as far as it can be.
    Done,
    /// The plan is wrong; nothing is to be kept.
    NeedsAmendment,
}

/// What an agent proposes when the plan is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The files that the item needs and does not declare.
    pub files: Vec<ProposedFile>,
    /// Why.
    pub reason: String,
    /// What the item should say.
    pub item_text: String,
}

/// One file of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedFile {
    /// As the agent spells it.
    pub path: String,
    /// What would happen to it.
    pub kind: FileKind,
    /// Why.
    pub reason: String,
}

impl Report {
    /// Reads a report, whatever the vendor's tool claims to have checked.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(value: &Value) -> Result<Self, String> {
        if let Some(violation) = registry::violations(SCHEMA, value).first() {
            return Err(format!("{}: {}", violation.pointer, violation.what));
        }
        let report: Self =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let wants_proposal = report.outcome == ReportOutcome::NeedsAmendment;
        if wants_proposal != report.proposal.is_some() {
            return Err("a proposal belongs to needs-amendment, and to nothing else".into());
        }
        let proposal = report.proposal.as_ref();
        let files = proposal.map_or(&[][..], |proposal| &proposal.files);
        let texts = [&report.summary, &report.not_done]
            .into_iter()
            .chain(proposal.into_iter().flat_map(|own| [&own.reason, &own.item_text]))
            .chain(files.iter().flat_map(|file| [&file.path, &file.reason]));
        if files.len() > MAX_FILES || texts.into_iter().any(|text| text.chars().count() > MAX_TEXT)
        {
            return Err("longer than a report may be".into());
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read_and_a_proposal_belongs_to_an_amendment() {
        let mut value =
            json!({"outcome": "done", "summary": "x", "not_done": "", "proposal": null});
        assert!(Report::read(&value).is_ok());
        value["outcome"] = "needs-amendment".into();
        assert!(Report::read(&value).is_err());
        value["proposal"] = json!({"files": [{"path": "a", "kind": "edit", "reason": "r"}],
            "reason": "r", "item_text": "t"});
        let report = Report::read(&value).expect("a report");
        assert_eq!(serde_json::to_value(&report).expect("JSON"), value);
        value["outcome"] = "done".into();
        assert!(Report::read(&value).is_err());
    }

    #[test]
    fn whatever_else_is_no_report() {
        let good = json!({"outcome": "done", "summary": "x", "not_done": "", "proposal": null});
        let with = |key: &str, value: Value| {
            let mut other = good.clone();
            other[key] = value;
            other
        };
        for bad in [
            json!("not json"),
            json!([]),
            json!({}),
            with("outcome", json!("finished")),
            with("more", json!(1)),
            with("summary", json!(null)),
            with("summary", json!("x".repeat(MAX_TEXT + 1))),
            with("proposal", json!({})),
        ] {
            assert!(Report::read(&bad).is_err(), "{bad}");
        }
    }
}
