//! Suggested edits: what each operation needs and does. Source: `semantics.md`, section 8.
//!
//! Edits are alternatives, each tried by itself on a copy. Nothing given in is ever changed.

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{Item, Plan};
use codeboost_schema::plan_edit::{Edit, Field, Op, PlanEdit};
use codeboost_schema::registry::Version;

use super::parse::short;
use super::shape;
use crate::plan::problem::{Code, Problem};

/// Every problem of an answer: each edit tried by itself on `plan`.
///
/// `judge`: every problem of a plan that has the right shape.
#[must_use]
pub fn check_answer(
    answer: &PlanEdit,
    plan: &Plan,
    version: &Version,
    judge: impl Fn(&Plan) -> Vec<Problem>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if answer.base_revision != plan.revision {
        problems.push(Problem::new(
            Code::StaleRevision,
            "/base_revision",
            format!(
                "the edits are for r{}, and the plan is at r{}",
                answer.base_revision, plan.revision
            ),
            "edits are for the revision that they were asked for (8.1)",
            "ask again with the plan as it is now",
        ));
        return problems;
    }
    for (nth, edit) in answer.edits.iter().enumerate() {
        if let Err(found) = try_edit(plan, edit, version, &judge) {
            problems.extend(found.into_iter().map(|problem| inside(nth, problem)));
        }
    }
    problems
}

/// A problem of one edit, or of the plan that it makes, as one of the answer.
fn inside(nth: usize, mut problem: Problem) -> Problem {
    let pointer = format!("/edits/{nth}");
    if is_of_edit(problem.code) {
        problem.pointer = format!("{pointer}{}", problem.pointer);
    } else {
        problem.message = format!("the plan that it makes: {}", problem.message);
        problem.pointer = pointer;
    }
    problem
}

fn is_of_edit(code: Code) -> bool {
    matches!(
        code,
        Code::EditPayload | Code::EditItem | Code::EditFile | Code::EditCheck | Code::EditIndex
    )
}

/// Tries an edit: what it makes, of the right shape and without failures.
///
/// The new plan still has the old revision.
///
/// # Errors
/// The failures, of the edit (with pointers into it) or of the plan that it makes.
pub fn try_edit(
    plan: &Plan,
    edit: &Edit,
    version: &Version,
    judge: impl Fn(&Plan) -> Vec<Problem>,
) -> Result<Plan, Vec<Problem>> {
    let payload = check_payload(edit);
    if !payload.is_empty() {
        return Err(payload);
    }
    let made = apply(plan, edit).map_err(|problem| vec![*problem])?;
    match require_fine(&made, version, judge) {
        Ok(()) => Ok(made),
        Err(mut problems) => {
            for problem in &mut problems {
                if edit.op == Op::SetField && problem.code == Code::Schema {
                    problem.code = Code::EditCheck;
                    problem.pointer = "/value".into();
                }
            }
            Err(problems)
        }
    }
}

/// Holds a plan that was made from another one to its shape, and to what it means.
///
/// # Errors
/// The failures; of its meaning only when its shape is right.
pub fn require_fine(
    made: &Plan,
    version: &Version,
    judge: impl Fn(&Plan) -> Vec<Problem>,
) -> Result<(), Vec<Problem>> {
    let value = serde_json::to_value(made).map_err(|error| {
        vec![Problem::new(Code::Schema, "", error.to_string(), "a plan is JSON (2.2)", "")]
    })?;
    let violations = version.plan_violations(&value);
    if !violations.is_empty() {
        return Err(shape::problems(&value, violations));
    }
    let failures: Vec<_> = judge(made).into_iter().filter(Problem::is_failure).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Whether exactly the fields are there that the operation uses.
fn check_payload(edit: &Edit) -> Vec<Problem> {
    let uses: &[&str] = match edit.op {
        Op::AddItem => &["new_item"],
        Op::RemoveItem => &[],
        Op::SetField => &["field", "value"],
        Op::AddFile | Op::UpdateFile => &["file"],
        Op::RemoveFile => &["value"],
        Op::AddCheck => &["check"],
        Op::RemoveCheck => &["check_index"],
        Op::SetDepends => &["depends_on"],
    };
    let fields = [
        ("field", edit.field.is_some()),
        ("value", edit.value.is_some()),
        ("file", edit.file.is_some()),
        ("check", edit.check.is_some()),
        ("check_index", edit.check_index.is_some()),
        ("depends_on", edit.depends_on.is_some()),
        ("new_item", edit.new_item.is_some()),
    ];
    let mut problems = Vec::new();
    for (field, is_there) in fields {
        let message = match (uses.contains(&field), is_there) {
            (true, false) => format!("{} needs {field}", word(edit.op)),
            (false, true) => format!("{} does not use {field}", word(edit.op)),
            (true, true) | (false, false) => continue,
        };
        problems.push(Problem::new(
            Code::EditPayload,
            format!("/{field}"),
            message,
            "an edit has exactly the fields that its op uses (8.2)",
            if is_there { "make it null" } else { "give it a value" },
        ));
    }
    problems
}

fn word(op: Op) -> &'static str {
    match op {
        Op::AddItem => "add_item",
        Op::RemoveItem => "remove_item",
        Op::SetField => "set_field",
        Op::AddFile => "add_file",
        Op::UpdateFile => "update_file",
        Op::RemoveFile => "remove_file",
        Op::AddCheck => "add_check",
        Op::RemoveCheck => "remove_check",
        Op::SetDepends => "set_depends",
    }
}

/// What the edit makes of a copy of the plan.
fn apply(plan: &Plan, edit: &Edit) -> Result<Plan, Box<Problem>> {
    let mut made = plan.clone();
    if edit.op == Op::AddItem {
        let new = edit.new_item.clone().ok_or_else(|| missing("new_item"))?;
        if new.id != edit.item {
            return refuse(
                Code::EditItem,
                "/item",
                format!("the edit is of {}, and its new item is {}", edit.item, new.id),
                "item equals the id of the new item (8.2)",
                format!("write {} for both", new.id),
            );
        }
        if made.item(&new.id).is_some() {
            return refuse(
                Code::EditItem,
                "/item",
                format!("there is an item {} already", new.id),
                "the id of a new item is new (8.2)",
                "choose a free id",
            );
        }
        made.items.push(new);
        return Ok(made);
    }
    let Some(at) = made.items.iter().position(|item| item.id == edit.item) else {
        return Err(no_item(&edit.item));
    };
    if edit.op == Op::RemoveItem {
        made.items.remove(at);
        return Ok(made);
    }
    change_item(&mut made.items[at], edit)?;
    Ok(made)
}

fn change_item(item: &mut Item, edit: &Edit) -> Result<(), Box<Problem>> {
    match edit.op {
        Op::AddItem | Op::RemoveItem => {}
        Op::SetField => {
            let value = edit.value.clone().ok_or_else(|| missing("value"))?;
            match edit.field.ok_or_else(|| missing("field"))? {
                Field::Title => item.title = value,
                Field::Intent => item.intent = value,
            }
        }
        Op::AddFile => {
            let file = edit.file.clone().ok_or_else(|| missing("file"))?;
            if item.files.iter().any(|other| other.path == file.path) {
                return refuse(
                    Code::EditFile,
                    "/file/path",
                    format!("{} declares {} already", item.id, short(&file.path)),
                    "add_file is for a path that the item does not declare (8.2)",
                    "use update_file",
                );
            }
            item.files.push(file);
        }
        Op::UpdateFile => {
            let file = edit.file.clone().ok_or_else(|| missing("file"))?;
            let found = item.files.iter().position(|other| other.path == file.path);
            let at = found.ok_or_else(|| no_file(&item.id, &file.path, "/file/path"))?;
            item.files[at] = file;
        }
        Op::RemoveFile => {
            let path = edit.value.as_deref().ok_or_else(|| missing("value"))?;
            let found = item.files.iter().position(|file| file.path == path);
            item.files.remove(found.ok_or_else(|| no_file(&item.id, path, "/value"))?);
        }
        Op::AddCheck => {
            item.acceptance.push(edit.check.clone().ok_or_else(|| missing("check"))?);
        }
        Op::RemoveCheck => {
            let index = edit.check_index.ok_or_else(|| missing("check_index"))?;
            let n = item.acceptance.len();
            let at = usize::try_from(index).ok().filter(|at| *at < n).ok_or_else(|| {
                Box::new(Problem::new(
                    Code::EditIndex,
                    "/check_index",
                    format!("{} has {n} acceptance entries, and none at {index}", item.id),
                    "check_index counts from 0 and is in range (8.2)",
                    format!("use 0 to {}", n.saturating_sub(1)),
                ))
            })?;
            item.acceptance.remove(at);
        }
        Op::SetDepends => {
            item.depends_on = edit.depends_on.clone().ok_or_else(|| missing("depends_on"))?;
        }
    }
    Ok(())
}

fn missing(field: &str) -> Box<Problem> {
    Box::new(Problem::new(
        Code::EditPayload,
        format!("/{field}"),
        format!("{field} is null"),
        "an edit has exactly the fields that its op uses (8.2)",
        "give it a value",
    ))
}

fn no_item(id: &ItemId) -> Box<Problem> {
    Box::new(Problem::new(
        Code::EditItem,
        "/item",
        format!("there is no item {id}"),
        "an edit is of an item of the plan (8.2)",
        "name an item of the plan",
    ))
}

fn no_file(id: &ItemId, path: &str, pointer: &str) -> Box<Problem> {
    Box::new(Problem::new(
        Code::EditFile,
        pointer,
        format!("{id} does not declare {}", short(path)),
        "update_file and remove_file name a declared path exactly (8.2)",
        "use a path as the plan spells it; to change a path import a whole plan",
    ))
}

fn refuse<T>(
    code: Code,
    pointer: &str,
    message: String,
    rule: &str,
    mend: impl Into<String>,
) -> Result<T, Box<Problem>> {
    Err(Box::new(Problem::new(code, pointer, message, rule, mend)))
}

#[cfg(test)]
mod tests {
    use codeboost_schema::registry::Registry;
    use serde_json::{Value, json};

    use super::*;

    fn plan() -> Plan {
        let text = include_str!("../../../../schema/examples/plan-412-r3.json");
        serde_json::from_str(text).unwrap()
    }

    /// An edit with these fields; the others are null.
    fn edit(fields: &Value) -> Edit {
        let mut edit = json!({
            "op": null, "item": "P1", "summary": "s", "reason": "r", "field": null, "value": null,
            "file": null, "check": null, "check_index": null, "depends_on": null, "new_item": null,
        });
        for (key, value) in fields.as_object().unwrap() {
            edit[key] = value.clone();
        }
        serde_json::from_value(edit).unwrap()
    }

    fn run(fields: &Value) -> Result<Plan, Vec<(String, String)>> {
        let before = plan();
        let made = try_edit(&before, &edit(fields), Registry::get().current(), |_| Vec::new());
        assert_eq!(before, plan(), "what is given in stays as it is");
        made.map_err(|problems| {
            problems.into_iter().map(|p| (p.code.to_string(), p.pointer)).collect()
        })
    }

    fn refused(fields: &Value, code: &str, pointer: &str) {
        let expected = vec![(code.to_owned(), pointer.to_owned())];
        assert_eq!(run(fields), Err(expected), "{fields}");
    }

    fn file(path: &str) -> Value {
        json!({"path": path, "kind": "edit", "renamed_from": null, "change": "c"})
    }

    fn item(id: &str) -> Value {
        json!({"id": id, "title": "t", "intent": "i", "files": [file("x")],
               "acceptance": [{"type": "check", "text": "c"}], "depends_on": []})
    }

    #[test]
    fn every_operation_does_what_the_table_says() {
        let done = |fields: Value| run(&fields).unwrap_or_else(|e| panic!("{fields}: {e:?}"));
        let made = done(json!({"op": "add_item", "item": "P9", "new_item": item("P9")}));
        assert_eq!(made.items.last().unwrap().id.as_str(), "P9");
        assert_eq!(done(json!({"op": "remove_item", "item": "P3"})).items.len(), 2);
        let made = done(json!({"op": "set_field", "field": "title", "value": "new"}));
        assert_eq!(made.items[0].title, "new");
        let made = done(json!({"op": "set_field", "field": "intent", "value": "new"}));
        assert_eq!(made.items[0].intent, "new");
        let made = done(json!({"op": "add_file", "file": file("new")}));
        assert_eq!(made.items[0].files[2].path, "new");
        let made = done(json!({"op": "update_file", "file": file("src/retry/client_test.go")}));
        assert_eq!(made.items[0].files[1].change, "c");
        let made = done(json!({"op": "remove_file", "value": "src/retry/client.go"}));
        assert_eq!(made.items[0].files[0].path, "src/retry/client_test.go");
        let made = done(json!({"op": "add_check", "check": {"type": "cmd", "text": "make"}}));
        assert_eq!(made.items[0].acceptance.len(), 3);
        let made = done(json!({"op": "remove_check", "check_index": 0}));
        assert_eq!(
            made.items[0].acceptance[0].text,
            "A request that is not retried has a key too."
        );
        let made = done(json!({"op": "set_depends", "item": "P3", "depends_on": ["P2"]}));
        assert_eq!(made.items[2].depends_on.len(), 1);
        assert_eq!(made.revision, 3);
    }

    #[test]
    fn payloads_are_exactly_those_of_the_operation() {
        let payloads = [
            ("field", json!("title")),
            ("value", json!("src/retry/client.go")),
            ("file", file("src/retry/client.go")),
            ("check", json!({"type": "check", "text": "c"})),
            ("check_index", json!(0)),
            ("depends_on", json!([])),
            ("new_item", item("P1")),
        ];
        let ops: [(&str, &[&str]); 9] = [
            ("add_item", &["new_item"]),
            ("remove_item", &[]),
            ("set_field", &["field", "value"]),
            ("add_file", &["file"]),
            ("update_file", &["file"]),
            ("remove_file", &["value"]),
            ("add_check", &["check"]),
            ("remove_check", &["check_index"]),
            ("set_depends", &["depends_on"]),
        ];
        for (op, uses) in ops {
            for (flipped, _) in &payloads {
                let mut fields = json!({"op": op});
                for (field, value) in &payloads {
                    if uses.contains(field) != (field == flipped) {
                        fields[field] = value.clone();
                    }
                }
                refused(&fields, "edit-payload", &format!("/{flipped}"));
            }
        }
    }

    #[test]
    fn what_an_edit_names_has_to_be_there_or_new() {
        refused(&json!({"op": "remove_item", "item": "P8"}), "edit-item", "/item");
        refused(
            &json!({"op": "add_item", "item": "P8", "new_item": item("P9")}),
            "edit-item",
            "/item",
        );
        refused(
            &json!({"op": "add_item", "item": "P1", "new_item": item("P1")}),
            "edit-item",
            "/item",
        );
        refused(
            &json!({"op": "add_file", "file": file("src/retry/client.go")}),
            "edit-file",
            "/file/path",
        );
        refused(
            &json!({"op": "update_file", "file": file("src/Retry/client.go")}),
            "edit-file",
            "/file/path",
        );
        refused(&json!({"op": "remove_file", "value": "x"}), "edit-file", "/value");
        refused(&json!({"op": "remove_check", "check_index": 2}), "edit-index", "/check_index");
        let title = "x".repeat(121);
        refused(
            &json!({"op": "set_field", "field": "title", "value": title}),
            "edit-check",
            "/value",
        );
        refused(
            &json!({"op": "set_field", "field": "intent", "value": ""}),
            "edit-check",
            "/value",
        );
    }

    #[test]
    fn the_last_file_check_or_item_stays() {
        let mut small = plan();
        small.items.truncate(1);
        small.items[0].files.truncate(1);
        small.items[0].acceptance.truncate(1);
        let version = Registry::get().current();
        for fields in [
            json!({"op": "remove_file", "value": "src/retry/client.go"}),
            json!({"op": "remove_check", "check_index": 0}),
            json!({"op": "remove_item"}),
        ] {
            let found = try_edit(&small, &edit(&fields), version, |_| Vec::new());
            assert_eq!(found.unwrap_err()[0].code, Code::Schema, "{fields}");
        }
    }

    #[test]
    fn one_bad_edit_refuses_the_answer_and_names_its_place() {
        let text = include_str!("../../../../schema/examples/plan-edit-412-r3.json");
        let mut answer: PlanEdit = serde_json::from_str(text).unwrap();
        let version = Registry::get().current();
        let fails = |made: &Plan| match made.items.len() {
            4 => vec![Problem::new(Code::ExistingFile, "/items/3/files/0/path", "m", "r", "x")],
            _ => Vec::new(),
        };
        assert_eq!(check_answer(&answer, &plan(), version, |_| Vec::new()), []);
        let found = check_answer(&answer, &plan(), version, fails);
        assert_eq!((found[0].code, found[0].pointer.as_str()), (Code::ExistingFile, "/edits/1"));
        answer.base_revision = 2;
        let found = check_answer(&answer, &plan(), version, fails);
        assert_eq!(found[0].code, Code::StaleRevision);
    }
}
