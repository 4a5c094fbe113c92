//! The JSON Schemas of all contracts, and checks of values against them.
//!
//! A plan's version selects its schemas through `versions.json`. The registry, the schemas and
//! their paths are compiled in: nothing that comes from an input is ever part of a path.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde::Deserialize;
use serde_json::Value;

/// One thing that a schema forbids.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// JSON Pointer to the value; for a missing or unexpected key to the object around it.
    pub pointer: String,
    /// What is wrong, in the validator's words, without the value.
    pub what: String,
    /// Which rule is broken, as data.
    pub broken: Broken,
}

/// A broken rule of a schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Broken {
    /// The object lacks this key.
    Missing(String),
    /// The object has these keys, which its schema doesn't know.
    Unexpected(Vec<String>),
    /// The value has another type than one of these.
    Type(Vec<String>),
    /// The value is none of these.
    Enum(Vec<Value>),
    /// The string does not match this pattern.
    Pattern(String),
    /// The string has fewer code points than this.
    MinLength(u64),
    /// The string has more code points than this.
    MaxLength(u64),
    /// The list has fewer entries than this.
    MinItems(u64),
    /// The list has more entries than this.
    MaxItems(u64),
    /// The number is less than this.
    Minimum(Value),
    /// The number is more than this.
    Maximum(Value),
    /// Any other rule, by its keyword.
    Other(String),
}

/// Checks `value` against `schema` and returns its violations, in document order, at most 200.
///
/// `schema` is the text of one of the schemas of this package.
///
/// # Panics
/// If `schema` is not a valid schema; a test compiles each schema of this package.
#[must_use]
pub fn violations(schema: &str, value: &Value) -> Vec<Violation> {
    check(&validator(schema), value)
}

/// Which implementation of the semantics a version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticsKey {
    /// `plan::v1` of the command line package.
    V1,
}

/// A registered version of the plan format.
#[derive(Debug)]
pub struct Version {
    /// The number.
    pub number: u32,
    /// Text of the plan schema.
    pub plan_schema: &'static str,
    /// Text of the schema of suggested edits.
    pub edit_schema: &'static str,
    /// The normative text of everything that the schemas cannot say.
    pub semantics: &'static str,
    /// Which implementation checks the meaning.
    pub key: SemanticsKey,
    plan_validator: OnceLock<Validator>,
    edit_validator: OnceLock<Validator>,
}

impl Version {
    /// Every violation of the plan schema, in document order.
    #[must_use]
    pub fn plan_violations(&self, value: &Value) -> Vec<Violation> {
        check(self.plan_validator.get_or_init(|| validator(self.plan_schema)), value)
    }

    /// Every violation of the schema of suggested edits, in document order.
    #[must_use]
    pub fn edit_violations(&self, value: &Value) -> Vec<Violation> {
        check(self.edit_validator.get_or_init(|| validator(self.edit_schema)), value)
    }
}

/// All versions of the plan format, by number.
#[derive(Debug)]
pub struct Registry {
    current: u32,
    versions: BTreeMap<u32, Version>,
}

/// The files that `versions.json` may name, with their texts.
const FILES: &[(&str, &str)] = &[
    ("versions/1/plan.schema.json", include_str!("../versions/1/plan.schema.json")),
    ("versions/1/plan-edit.schema.json", include_str!("../versions/1/plan-edit.schema.json")),
    ("versions/1/semantics.md", include_str!("../versions/1/semantics.md")),
];

/// The plan schema of the current version, as agent command lines and editors get it.
pub const PLAN_SCHEMA: &str = include_str!("../plan.schema.json");
/// The schema of suggested edits of the current version, as agent command lines get it.
pub const PLAN_EDIT_SCHEMA: &str = include_str!("../plan-edit.schema.json");

/// A schema as the vendors' tools take it: they know neither the name of its language nor ours.
///
/// # Panics
/// When `schema` is no JSON; those of this package are.
#[must_use]
pub fn schema_for_tools(schema: &str) -> String {
    let mut schema: Value = serde_json::from_str(schema).expect("our own schema is JSON");
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("$id");
    }
    schema.to_string()
}

impl Registry {
    /// The registry of this build.
    ///
    /// # Panics
    /// Never: a test reads every entry.
    #[must_use]
    pub fn get() -> &'static Self {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(|| {
            Self::read(include_str!("../versions.json")).expect("the embedded registry is whole")
        })
    }

    /// The version that new plans have.
    ///
    /// # Panics
    /// Never: reading the registry proves that its current version is there.
    #[must_use]
    pub fn current(&self) -> &Version {
        &self.versions[&self.current]
    }

    /// The version of that number, when it is registered and this build implements it.
    #[must_use]
    pub fn version(&self, number: u64) -> Option<&Version> {
        self.versions.get(&u32::try_from(number).ok()?)
    }

    /// All registered numbers, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.versions.keys().copied()
    }

    fn read(text: &str) -> Option<Self> {
        let entries: Entries = serde_json::from_str(text).ok()?;
        let mut versions = BTreeMap::new();
        for (name, entry) in entries.versions {
            let number: u32 = name.parse().ok()?;
            if number.to_string() != name {
                return None;
            }
            let file =
                |path: &str| FILES.iter().find_map(|(name, text)| (*name == path).then_some(*text));
            let key = match entry.validator.as_str() {
                "v1" => SemanticsKey::V1,
                // A version without an implementation is as good as not registered.
                _ => continue,
            };
            let version = Version {
                number,
                plan_schema: file(&entry.plan)?,
                edit_schema: file(&entry.edit)?,
                semantics: file(&entry.semantics)?,
                key,
                plan_validator: OnceLock::new(),
                edit_validator: OnceLock::new(),
            };
            versions.insert(number, version);
        }
        versions
            .contains_key(&entries.current)
            .then_some(Self { current: entries.current, versions })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    current: u32,
    versions: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    plan: String,
    edit: String,
    semantics: String,
    validator: String,
}

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("schemas of this package are JSON");
    jsonschema::draft202012::options().build(&schema).expect("schemas of this package compile")
}

/// As many violations are told; more would not be read.
const MAX_VIOLATIONS: usize = 200;

fn check(validator: &Validator, value: &Value) -> Vec<Violation> {
    validator
        .iter_errors(value)
        .take(MAX_VIOLATIONS)
        .map(|error| Violation {
            pointer: error.instance_path().to_string(),
            what: error.masked().to_string(),
            broken: broken(error.kind()),
        })
        .collect()
}

fn broken(kind: &ValidationErrorKind) -> Broken {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Required { property } => {
            Broken::Missing(property.as_str().unwrap_or_default().to_owned())
        }
        Kind::AdditionalProperties { unexpected } => Broken::Unexpected(unexpected.clone()),
        Kind::Type { kind: TypeKind::Single(one) } => Broken::Type(vec![one.to_string()]),
        Kind::Type { kind: TypeKind::Multiple(set) } => {
            Broken::Type(set.iter().map(|one| one.to_string()).collect())
        }
        Kind::Enum { options } => Broken::Enum(options.as_array().cloned().unwrap_or_default()),
        Kind::Pattern { pattern } => Broken::Pattern(pattern.clone()),
        Kind::MinLength { limit } => Broken::MinLength(*limit),
        Kind::MaxLength { limit } => Broken::MaxLength(*limit),
        Kind::MinItems { limit } => Broken::MinItems(*limit),
        Kind::MaxItems { limit } => Broken::MaxItems(*limit),
        Kind::Minimum { limit } => Broken::Minimum(limit.clone()),
        Kind::Maximum { limit } => Broken::Maximum(limit.clone()),
        other => Broken::Other(other.keyword().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::plan::Plan;
    use crate::plan_edit::PlanEdit;

    const PLAN: &str = include_str!("../examples/plan-412-r3.json");
    const EDIT: &str = include_str!("../examples/plan-edit-412-r3.json");

    fn value(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn plan_with(change: impl FnOnce(&mut Value)) -> Vec<Violation> {
        let mut plan = value(PLAN);
        change(&mut plan);
        Registry::get().current().plan_violations(&plan)
    }

    #[test]
    fn unversioned_copies_equal_the_current_snapshots() {
        let current = Registry::get().current();
        assert_eq!(PLAN_SCHEMA, current.plan_schema);
        assert_eq!(PLAN_EDIT_SCHEMA, current.edit_schema);
    }

    #[test]
    fn definitions_of_item_file_and_check_are_equal_in_both_schemas() {
        for version in Registry::get().versions.values() {
            let (plan, edit) = (value(version.plan_schema), value(version.edit_schema));
            for name in ["item", "file", "check"] {
                assert!(plan["$defs"][name].is_object());
                assert_eq!(plan["$defs"][name], edit["$defs"][name], "{name}");
            }
        }
    }

    #[test]
    fn every_object_of_a_schema_is_strict() {
        fn walk(schema: &Value, place: &str) {
            if let Some(object) = schema.as_object() {
                if object.get("type") == Some(&json!("object")) {
                    assert_eq!(object["additionalProperties"], json!(false), "{place}");
                    let keys: Vec<_> =
                        object["properties"].as_object().expect("properties").keys().collect();
                    let required: Vec<_> = object["required"]
                        .as_array()
                        .expect("required")
                        .iter()
                        .map(|key| key.as_str().expect("a key"))
                        .collect();
                    let sorted: BTreeSet<_> = required.iter().copied().collect();
                    assert_eq!(sorted, keys.into_iter().map(String::as_str).collect(), "{place}");
                    assert_eq!(sorted.len(), required.len(), "{place}");
                }
                for (key, child) in object {
                    walk(child, &format!("{place}/{key}"));
                }
            }
            for (n, child) in schema.as_array().into_iter().flatten().enumerate() {
                walk(child, &format!("{place}/{n}"));
            }
        }
        for version in Registry::get().versions.values() {
            walk(&value(version.plan_schema), "plan");
            walk(&value(version.edit_schema), "edit");
        }
    }

    #[test]
    fn schemas_have_an_id_of_their_version_and_name_no_dialect() {
        let entries: Entries =
            serde_json::from_str(include_str!("../versions.json")).expect("JSON");
        let mut ids = BTreeSet::new();
        for (number, entry) in &entries.versions {
            for path in [&entry.plan, &entry.edit] {
                assert!(path.starts_with(&format!("versions/{number}/")), "{path}");
                let text = FILES.iter().find(|(name, _)| name == path).expect("embedded").1;
                let schema = value(text);
                let id = schema["$id"].as_str().expect("an id").to_owned();
                assert_eq!(id, format!("https://github.com/codeabovelab/codeboost/schema/{path}"));
                assert!(schema.get("$schema").is_none(), "{path}");
                assert!(ids.insert(id), "{path} repeats an id");
            }
        }
    }

    #[test]
    fn the_registry_answers_for_its_versions_only() {
        let registry = Registry::get();
        assert_eq!(registry.numbers().collect::<Vec<_>>(), [1]);
        assert_eq!(registry.version(1).expect("version 1").key, SemanticsKey::V1);
        assert!(registry.version(0).is_none());
        assert!(registry.version(2).is_none());
        assert!(registry.version(u64::from(u32::MAX) + 2).is_none());
    }

    #[test]
    fn a_version_without_an_implementation_is_unsupported() {
        let text = r#"{"current": 1, "versions": {
            "1": {"plan": "versions/1/plan.schema.json", "edit": "versions/1/plan-edit.schema.json",
                  "semantics": "versions/1/semantics.md", "validator": "v1"},
            "2": {"plan": "versions/2/plan.schema.json", "edit": "versions/2/plan-edit.schema.json",
                  "semantics": "versions/2/semantics.md", "validator": "v2"}}}"#;
        assert!(Registry::read(text).expect("a registry").version(2).is_none());
        assert!(Registry::read(&text.replace("\"current\": 1", "\"current\": 2")).is_none());
    }

    #[test]
    fn examples_are_valid_and_survive_reading_and_writing() {
        let current = Registry::get().current();
        assert_eq!(current.plan_violations(&value(PLAN)), []);
        let plan: Plan = serde_json::from_str(PLAN).expect("a plan");
        assert_eq!(serde_json::to_value(&plan).expect("JSON"), value(PLAN));

        assert_eq!(current.edit_violations(&value(EDIT)), []);
        let edit: PlanEdit = serde_json::from_str(EDIT).expect("edits");
        assert_eq!(serde_json::to_value(&edit).expect("JSON"), value(EDIT));
    }

    #[test]
    fn every_broken_rule_is_told_as_data() {
        let check = |change: fn(&mut Value), pointer: &str, expected: Broken| {
            let found = plan_with(change);
            let found: Vec<_> = found.iter().map(|v| (v.pointer.as_str(), &v.broken)).collect();
            assert_eq!(found, [(pointer, &expected)]);
        };
        check(
            |p| p["items"][0]["acceptance"] = json!([]),
            "/items/0/acceptance",
            Broken::MinItems(1),
        );
        check(|p| p["items"][0]["files"] = json!([]), "/items/0/files", Broken::MinItems(1));
        check(|p| p["x"] = json!(1), "", Broken::Unexpected(vec!["x".into()]));
        check(
            |p| p["items"][0]["id"] = json!("P0"),
            "/items/0/id",
            Broken::Pattern("^P[1-9][0-9]{0,2}$".into()),
        );
        check(
            |p| p["items"][0]["files"][0]["path"] = json!("/etc/passwd"),
            "/items/0/files/0/path",
            Broken::Pattern("^[^/\\\\][^\\\\]*$".into()),
        );
        check(
            |p| p["items"][0]["files"][0]["kind"] = json!("move"),
            "/items/0/files/0/kind",
            Broken::Enum(vec![json!("edit"), json!("add"), json!("delete"), json!("rename")]),
        );
        check(|p| p["schema_version"] = json!(2), "/schema_version", Broken::Enum(vec![json!(1)]));
        check(
            |p| {
                p.as_object_mut().expect("a plan").remove("summary");
            },
            "",
            Broken::Missing("summary".into()),
        );
        check(|p| p["issue"] = json!(0), "/issue", Broken::Minimum(json!(1)));
        check(|p| p["summary"] = json!(""), "/summary", Broken::MinLength(1));
        check(|p| p["summary"] = json!("ü".repeat(601)), "/summary", Broken::MaxLength(600));
        check(|p| p["issue"] = json!("412"), "/issue", Broken::Type(vec!["integer".into()]));
        check(|p| p["questions"] = json!(vec!["?"; 11]), "/questions", Broken::MaxItems(10));
        assert!(plan_with(|p| p["summary"] = json!("ü".repeat(600))).is_empty());
    }
}
