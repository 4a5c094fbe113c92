//! Who made each commit: `ledger.json`. The only proof of ownership there is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{CommitId, ItemId};
use crate::strict::{self, StrictError};

/// The JSON Schema of the file.
pub const SCHEMA: &str = include_str!("../ledger.schema.json");

/// A ledger may have this many bytes: some hundred thousand commits.
pub const MAX_BYTES: usize = 64 << 20;

/// The ledger of one task. A commit that is not in it is foreign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Always 1.
    pub schema_version: u32,
    /// One entry per commit that codeboost knows of.
    pub commits: BTreeMap<CommitId, Entry>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { schema_version: 1, commits: BTreeMap::new() }
    }
}

/// Why a ledger can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It is no JSON, repeats a key, or is too large.
    #[error(transparent)]
    Syntax(#[from] StrictError),
    /// Values are not what they must be: all of them, in the order of the file's keys.
    #[error("{}", list(.0))]
    Faults(Vec<Fault>),
}

/// One thing in a ledger that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer to the value.
    pub pointer: String,
    /// What is wrong, as a lower-case fragment.
    pub what: String,
}

fn list(faults: &[Fault]) -> String {
    const SHOWN: usize = 5;
    let mut lines: Vec<String> = faults
        .iter()
        .take(SHOWN)
        .map(|Fault { pointer, what }| {
            let pointer = if pointer.is_empty() { "/" } else { pointer };
            format!("{pointer}: {what}")
        })
        .collect();
    if faults.len() > SHOWN {
        lines.push(format!("and {} more", faults.len() - SHOWN));
    }
    lines.join("; ")
}

impl Ledger {
    /// Reads a ledger that somebody may have written by hand.
    ///
    /// # Errors
    /// [`LedgerError`] on anything that the contract does not allow: an unknown or repeated key, an
    /// abbreviated id, an entry whose fields don't belong together.
    pub fn parse(input: &[u8]) -> Result<Self, LedgerError> {
        let value = strict::parse(input, MAX_BYTES)?;
        let mut faults = Faults::default();
        let ledger = faults.ledger(&value);
        match ledger {
            Some(ledger) if faults.0.is_empty() => Ok(ledger),
            _ => Err(LedgerError::Faults(faults.0)),
        }
    }
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add<T>(&mut self, pointer: &str, what: impl Into<String>) -> Option<T> {
        self.0.push(Fault { pointer: pointer.to_owned(), what: what.into() });
        None
    }

    fn object<'v>(
        &mut self,
        pointer: &str,
        value: &'v Value,
        keys: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Value::Object(object) = value else {
            return self.add(pointer, "expected an object");
        };
        for key in object.keys().filter(|key| !keys.contains(&key.as_str())) {
            self.add::<()>(pointer, format!("unknown key {key:?}"));
        }
        Some(object)
    }

    fn ledger(&mut self, value: &Value) -> Option<Ledger> {
        let object = self.object("", value, &["schema_version", "commits"])?;
        match object.get("schema_version") {
            Some(version) if version.as_u64() == Some(1) => {}
            Some(_) => self.add("/schema_version", "expected 1")?,
            None => self.add("", "schema_version is missing")?,
        }
        let Some(commits) = object.get("commits") else {
            return self.add("", "commits is missing");
        };
        let Value::Object(commits) = commits else {
            return self.add("/commits", "expected an object");
        };
        let mut ledger = Ledger::default();
        for (name, value) in commits {
            let pointer = format!("/commits/{}", name.replace('~', "~0").replace('/', "~1"));
            let commit = match CommitId::parse(name) {
                Ok(commit) => Some(commit),
                Err(error) => self.add(&pointer, error.to_string()),
            };
            let entry = self.entry(&pointer, value);
            if let (Some(commit), Some(entry)) = (commit, entry) {
                ledger.commits.insert(commit, entry);
            }
        }
        Some(ledger)
    }

    fn entry(&mut self, pointer: &str, value: &Value) -> Option<Entry> {
        match value {
            Value::Null => return Some(Entry::new(None, Origin::Foreign)),
            Value::String(_) => {
                let item = self.id(pointer, value, ItemId::parse)?;
                return Some(Entry::new(Some(item), Origin::Adopted));
            }
            Value::Object(_) => {}
            _ => return self.add(pointer, "expected an item, null or an object"),
        }
        let object = self.object(pointer, value, &["item", "origin", "from", "was"])?;
        let at = |key: &str| format!("{pointer}/{key}");
        let n_faults = self.0.len();
        let item = match object.get("item") {
            None => self.add(pointer, "item is missing; write null for nobody"),
            Some(Value::Null) => None,
            Some(item) => self.id(&at("item"), item, ItemId::parse),
        };
        let origin = match object.get("origin") {
            None => self.add(pointer, "origin is missing"),
            Some(origin) => match serde_json::from_value::<Origin>(origin.clone()) {
                Ok(origin) => Some(origin),
                Err(_) => self.add(
                    &at("origin"),
                    "expected runner, adopted, rebased, conflict-agent or foreign",
                ),
            },
        };
        let from = object.get("from").and_then(|v| self.id(&at("from"), v, CommitId::parse));
        let was = object.get("was").and_then(|v| self.id(&at("was"), v, ItemId::parse));
        if self.0.len() > n_faults {
            return None;
        }
        let entry = Entry { item, origin: origin?, from, was };
        if let Some(what) = entry.fault() {
            return self.add(pointer, what);
        }
        Some(entry)
    }

    fn id<T>(
        &mut self,
        pointer: &str,
        value: &Value,
        parse: impl Fn(&str) -> Result<T, crate::ids::IdError>,
    ) -> Option<T> {
        let Value::String(text) = value else { return self.add(pointer, "expected a string") };
        match parse(text) {
            Ok(id) => Some(id),
            Err(error) => self.add(pointer, error.to_string()),
        }
    }
}

/// Who made one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Full")]
pub struct Entry {
    /// The item that the commit was made for; `None` for nobody.
    pub item: Option<ItemId>,
    /// How codeboost knows.
    pub origin: Origin,
    /// The source commit, for `rebased` and `conflict-agent`.
    pub from: Option<CommitId>,
    /// The item that a later revision removed; then `item` is `None`.
    pub was: Option<ItemId>,
}

impl Entry {
    /// An entry without source and without a removed item.
    #[must_use]
    pub fn new(item: Option<ItemId>, origin: Origin) -> Self {
        Self { item, origin, from: None, was: None }
    }

    /// Why the fields don't belong together, if they don't.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_rewritten = match self.origin {
            Origin::Rebased | Origin::ConflictAgent => true,
            Origin::Runner | Origin::Adopted | Origin::Foreign => false,
        };
        if is_rewritten && self.from.is_none() {
            return Some("a rewritten commit needs from, the commit it was made from");
        }
        if !is_rewritten && self.from.is_some() {
            return Some("from belongs to rebased and conflict-agent only");
        }
        if self.item.is_some() && self.was.is_some() {
            return Some("was belongs to an entry without an item");
        }
        match self.origin {
            Origin::Runner | Origin::Adopted if self.item.is_none() && self.was.is_none() => {
                Some("item may be null only with was, the item that a later revision removed")
            }
            Origin::Foreign if self.item.is_some() || self.was.is_some() => {
                Some("a foreign commit has no item")
            }
            _ => None,
        }
    }
}

/// How codeboost knows who made a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// codeboost made the commit.
    Runner,
    /// A person vouched for it.
    Adopted,
    /// A rebase rewrote it from another commit.
    Rebased,
    /// An agent resolved a conflict while a rebase rewrote it.
    ConflictAgent,
    /// Somebody else made it.
    Foreign,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Wire {
    Short(Option<ItemId>),
    Full(Full),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    item: Option<ItemId>,
    origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<ItemId>,
}

impl From<Wire> for Entry {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Short(Some(item)) => Self::new(Some(item), Origin::Adopted),
            Wire::Short(None) => Self::new(None, Origin::Foreign),
            Wire::Full(full) => {
                Self { item: full.item, origin: full.origin, from: full.from, was: full.was }
            }
        }
    }
}

impl From<Entry> for Full {
    fn from(entry: Entry) -> Self {
        Self { item: entry.item, origin: entry.origin, from: entry.from, was: entry.was }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn parse(entry: &str) -> Result<Entry, String> {
        let text = format!(r#"{{"schema_version": 1, "commits": {{"{A}": {entry}}}}}"#);
        let ledger = Ledger::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(ledger.commits.into_values().next().expect("one entry"))
    }

    #[test]
    fn every_form_of_an_entry_is_read() {
        let item = |text: &str| Some(ItemId::parse(text).expect("an item"));
        assert_eq!(parse("null"), Ok(Entry::new(None, Origin::Foreign)));
        assert_eq!(parse(r#""P7""#), Ok(Entry::new(item("P7"), Origin::Adopted)));
        assert_eq!(
            parse(r#"{"item": "P1", "origin": "runner"}"#),
            Ok(Entry::new(item("P1"), Origin::Runner))
        );
        let removed = parse(r#"{"item": null, "origin": "runner", "was": "P3"}"#);
        assert_eq!(removed.map(|entry| entry.was), Ok(item("P3")));
        let from = CommitId::parse(B).expect("an id");
        for origin in ["rebased", "conflict-agent"] {
            let entry = parse(&format!(r#"{{"item": null, "origin": "{origin}", "from": "{B}"}}"#));
            assert_eq!(entry.map(|entry| entry.from), Ok(Some(from.clone())), "{origin}");
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused_with_its_place() {
        let check = |entry: &str, expected: &str| {
            let found = parse(entry).expect_err(entry);
            let at = format!("/commits/{A}");
            assert_eq!(found.replace(&at, "@"), expected, "{entry}");
        };
        check("1", "@: expected an item, null or an object");
        check(r#""P0""#, r#"@: expected an item id such as P1, found "P0""#);
        check(r#"{"item": "P1"}"#, "@: origin is missing");
        check(
            r#"{"item": "P1", "origin": "mine", "extra": 1}"#,
            r#"@: unknown key "extra"; @/origin: expected runner, adopted, rebased, conflict-agent or foreign"#,
        );
        check(
            r#"{"item": null, "origin": "runner"}"#,
            "@: item may be null only with was, the item that a later revision removed",
        );
        check(
            r#"{"item": "P1", "origin": "rebased"}"#,
            "@: a rewritten commit needs from, the commit it was made from",
        );
        check(
            r#"{"item": "P1", "origin": "rebased", "from": "1234567"}"#,
            r#"@/from: expected a full lower-case commit id, found "1234567""#,
        );
        check(r#"{"item": "P1", "origin": "foreign"}"#, "@: a foreign commit has no item");
        check(
            &format!(r#"{{"item": "P1", "origin": "runner", "from": "{B}"}}"#),
            "@: from belongs to rebased and conflict-agent only",
        );
    }

    #[test]
    fn the_file_itself_is_strict() {
        let refused = |text: &str| Ledger::parse(text.as_bytes()).expect_err(text).to_string();
        assert_eq!(refused("{}"), "/: schema_version is missing");
        assert_eq!(
            refused(r#"{"schema_version": 2, "commits": {}}"#),
            "/schema_version: expected 1"
        );
        assert_eq!(
            refused(r#"{"schema_version": 1, "commits": {"abc": null}}"#),
            r#"/commits/abc: expected a full lower-case commit id, found "abc""#
        );
        let twice = format!(r#"{{"schema_version": 1, "commits": {{"{A}": null, "{A}": null}}}}"#);
        assert!(refused(&twice).contains("occurs twice"));
    }

    #[test]
    fn a_written_ledger_is_read_back_and_fits_its_schema() {
        let example = include_str!("../examples/ledger.json");
        let ledger = Ledger::parse(example.as_bytes()).expect("the example");
        let written = serde_json::to_string(&ledger).expect("it serializes");
        assert_eq!(Ledger::parse(written.as_bytes()), Ok(ledger));
        for text in [example, &written] {
            let value = serde_json::from_str(text).expect("JSON");
            assert_eq!(crate::registry::violations(SCHEMA, &value), []);
        }
    }

    #[test]
    fn the_schema_refuses_what_the_reader_refuses() {
        for entry in [
            "1",
            r#""P0""#,
            r#"{"item": "P1"}"#,
            r#"{"item": "P1", "origin": "mine"}"#,
            r#"{"item": null, "origin": "runner"}"#,
            r#"{"item": "P1", "origin": "rebased"}"#,
            r#"{"item": "P1", "origin": "foreign"}"#,
            r#"{"item": "P1", "origin": "runner", "was": "P2"}"#,
        ] {
            let text = format!(r#"{{"schema_version": 1, "commits": {{"{A}": {entry}}}}}"#);
            let value = serde_json::from_str(&text).expect("JSON");
            assert!(!crate::registry::violations(SCHEMA, &value).is_empty(), "{entry}");
        }
    }
}
