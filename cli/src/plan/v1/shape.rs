//! Violations of the schema in words that teach. Source: `semantics.md`, section 2.

use codeboost_schema::registry::{Broken, Violation};
use serde_json::Value;

use super::parse::short;
use crate::plan::problem::{Code, Problem};
use crate::plan::source::At;

/// The violations of a plan as problems.
#[must_use]
pub fn problems(plan: &Value, violations: Vec<Violation>) -> Vec<Problem> {
    to_problems(Code::Schema, plan, violations)
}

/// The violations of an answer with edits as problems.
#[must_use]
pub fn edit_problems(answer: &Value, violations: Vec<Violation>) -> Vec<Problem> {
    to_problems(Code::EditSchema, answer, violations)
}

fn to_problems(code: Code, root: &Value, violations: Vec<Violation>) -> Vec<Problem> {
    violations.into_iter().flat_map(|violation| explain(code, root, &violation)).collect()
}

fn explain(code: Code, root: &Value, violation: &Violation) -> Vec<Problem> {
    let Violation { pointer, what, broken } = violation;
    let value = root.pointer(pointer).unwrap_or(&Value::Null);
    let thing = Thing::at(pointer, code == Code::EditSchema);
    let one = |message: String, rule: String, mend: String| {
        vec![Problem::new(code, pointer.clone(), message, rule, mend)]
    };
    match broken {
        Broken::Missing(key) => one(
            format!("{} has no \"{key}\"", thing.name()),
            "every field is always there (2.2)".into(),
            match thing.empty(key) {
                Some(empty) => format!("add \"{key}\"; if there is nothing to say: {key}: {empty}"),
                None => format!("add \"{key}\""),
            },
        ),
        Broken::Unexpected(keys) => keys
            .iter()
            .take(20)
            .map(|key| {
                let part = key.replace('~', "~0").replace('/', "~1");
                let mend = match thing.nearest(key) {
                    None if matches!(key.as_str(), "cmd" | "check") && thing.fields() == CHECK => {
                        format!("write it as two fields, type: {key} and text: …")
                    }
                    Some(field) => format!("did you mean \"{field}\"?"),
                    None => format!("remove it; the fields are {}", thing.fields().join(", ")),
                };
                let mut problem = Problem::new(
                    code,
                    format!("{pointer}/{part}"),
                    format!("{} has no field {}", thing.name(), short(key)),
                    "there are no other fields than those of the format (2.2)",
                    mend,
                );
                problem.at = At::Key;
                problem
            })
            .collect(),
        Broken::Type(types) => one(
            format!("{} is {}", thing.name(), kind(value)),
            format!(
                "{} is {} (2.2)",
                thing.name(),
                types.iter().map(|t| type_name(t)).collect::<Vec<_>>().join(" or ")
            ),
            match (types.iter().any(|t| t == "string"), value) {
                _ if thing.example(value).is_some() => {
                    format!("write {}", thing.example(value).unwrap_or_default())
                }
                (true, Value::Null) => "write a text; null is none".into(),
                (true, Value::Number(_) | Value::Bool(_)) => {
                    "put it in quotes if it is text".into()
                }
                (false, Value::String(text)) if text.parse::<f64>().is_ok() => {
                    "remove the quotes".into()
                }
                _ => format!(
                    "write {}",
                    types.iter().map(|t| type_name(t)).collect::<Vec<_>>().join(" or ")
                ),
            },
        ),
        Broken::Enum(options) => {
            let options: Vec<_> = options.iter().map(ToString::to_string).collect();
            one(
                format!("{} is {}", thing.name(), shown(value)),
                format!("{} is one of {} (2.2)", thing.name(), options.join(", ")),
                format!("write one of {}", options.join(", ")),
            )
        }
        Broken::Pattern(_) if thing.last() == "path" => one(
            format!("{} is no path from the root of the repository", shown(value)),
            "a path begins with no slash and has no backslash (2.2, 4.1)".into(),
            "write it from the root of the repository, with forward slashes".into(),
        ),
        Broken::Pattern(pattern) if pattern.starts_with("^P[1-9]") => one(
            format!("{} is no item id", shown(value)),
            "an item id is P and a number from 1 to 999 (2.2)".into(),
            "write P1, P2 and so on".into(),
        ),
        Broken::Pattern(pattern) => one(
            format!("{} has another form", shown(value)),
            format!("{} matches {pattern} (2.2)", thing.name()),
            "write it in that form".into(),
        ),
        Broken::MinLength(min) => one(
            format!("{} is empty", thing.name()),
            format!("{} has at least {min} characters (2.2)", thing.name()),
            "say it in a few words".into(),
        ),
        Broken::MaxLength(max) => one(
            format!(
                "{} has {} characters",
                thing.name(),
                value.as_str().map_or(0, |text| text.chars().count())
            ),
            format!("{} has at most {max} characters (2.2)", thing.name()),
            "shorten it".into(),
        ),
        Broken::MinItems(min) => one(
            format!("{} is empty", thing.name()),
            format!("{} has at least {min} (2.2)", thing.name()),
            match thing.last() {
                "acceptance" => "say how to check the item: a cmd, or a check".into(),
                "files" => "declare each file that the item touches".into(),
                _ => "add one".into(),
            },
        ),
        Broken::MaxItems(max) => one(
            format!("{} has {}", thing.name(), value.as_array().map_or(0, Vec::len)),
            format!("{} has at most {max} (2.2)", thing.name()),
            match thing.last() {
                "files" => "split the item into several".into(),
                "items" => "split the issue into several".into(),
                _ => "remove some".into(),
            },
        ),
        Broken::Minimum(min) => one(
            format!("{} is {}", thing.name(), shown(value)),
            format!("{} is {min} or more (2.2)", thing.name()),
            format!("write a number from {min}"),
        ),
        Broken::Maximum(max) => one(
            format!("{} is {}", thing.name(), shown(value)),
            format!("{} is {max} or less (2.2)", thing.name()),
            format!("write a number up to {max}"),
        ),
        Broken::Other(_) => one(
            format!("{}: {what}", thing.name()),
            "the value satisfies the schema (2.2)".into(),
            "compare it with the examples in schema/examples".into(),
        ),
    }
}

/// The value in question, by its place in a plan or an answer.
struct Thing<'a> {
    parts: Vec<&'a str>,
    is_answer: bool,
}

const PLAN: &[&str] = &["schema_version", "issue", "revision", "summary", "items", "questions"];
const ANSWER: &[&str] = &["schema_version", "base_revision", "reply", "edits"];
const ITEM: &[&str] = &["id", "title", "intent", "files", "acceptance", "depends_on"];
const FILE: &[&str] = &["path", "kind", "renamed_from", "change"];
const CHECK: &[&str] = &["type", "text"];
const EDIT: &[&str] = &[
    "op",
    "item",
    "summary",
    "reason",
    "field",
    "value",
    "file",
    "check",
    "check_index",
    "depends_on",
    "new_item",
];

impl<'a> Thing<'a> {
    fn at(pointer: &'a str, is_answer: bool) -> Self {
        Self { parts: pointer.split('/').skip(1).collect(), is_answer }
    }

    fn last(&self) -> &str {
        self.parts.last().copied().unwrap_or_default()
    }

    fn name(&self) -> String {
        let [.., list, last] = self.parts[..] else {
            return match self.parts.first() {
                None if self.is_answer => "the answer".into(),
                None => "the plan".into(),
                Some(field) => format!("\"{field}\""),
            };
        };
        let Ok(n) = last.parse::<usize>() else {
            return format!("\"{last}\"");
        };
        let one = match list {
            "items" => "item",
            "files" => "file",
            "acceptance" => "acceptance entry",
            "depends_on" => "dependency",
            "questions" => "question",
            "edits" => "edit",
            _ => "entry",
        };
        format!("{one} {}", n + 1)
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.parts[..] {
            [.., "items", _] | [.., "new_item"] => ITEM,
            [.., "files", _] | [.., "file"] => FILE,
            [.., "acceptance", _] | [.., "check"] => CHECK,
            [.., "edits", _] => EDIT,
            _ if self.is_answer => ANSWER,
            _ => PLAN,
        }
    }

    /// What a field holds that has nothing to say.
    fn empty(&self, key: &str) -> Option<&'static str> {
        match key {
            "depends_on" | "questions" | "edits" => Some("[]"),
            "renamed_from" => Some("null"),
            _ if self.fields() == EDIT && !matches!(key, "op" | "item" | "summary" | "reason") => {
                Some("null")
            }
            _ => None,
        }
    }

    /// What stands here in a plan that is right, in YAML, for values that are often written wrong.
    fn example(&self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) if !text.contains('\n') => text.as_str(),
            Value::String(_) => "…",
            _ => "",
        };
        match self.parts[..] {
            [.., "files", _] if value.is_string() => Some(format!(
                "path: {text}, with kind: edit, renamed_from: null and change: … below it"
            )),
            [.., "acceptance", _] if value.is_string() => {
                Some(format!("type: check, with text: {text} below it"))
            }
            [.., "depends_on"] if value.is_string() => Some(format!("[{text}]")),
            [.., "depends_on"] if value.is_null() => Some("[]".to_owned()),
            [.., "id"] | [.., "depends_on", _] => match value {
                Value::Number(number) => Some(format!("P{number}")),
                _ => None,
            },
            _ => None,
        }
    }

    /// The field whose name is so near that it was probably meant.
    fn nearest(&self, key: &str) -> Option<&'static str> {
        let fold = |text: &str| text.replace(['-', ' '], "_").to_lowercase();
        let key = fold(key);
        self.fields()
            .iter()
            .copied()
            .map(|field| (distance(&key, field), field))
            .filter(|(distance, field)| *distance * 3 <= field.len())
            .min()
            .map(|(_, field)| field)
    }
}

/// How many characters differ, by insertion, removal or replacement; far apart for long texts.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 {
        return usize::MAX / 3;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = n + 1;
        for (m, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[m + 1];
            row[m + 1] = replaced.min(row[m] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn type_name(name: &str) -> &str {
    match name {
        "string" => "text",
        "integer" => "a whole number",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", short(text)),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => short(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => kind(value),
    }
}
