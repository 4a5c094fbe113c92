//! Which changes of a plan will probably belong to several items, before anything is made.
//!
//! A forecast warns and never blocks. It looks at declarations only, so it can say where items
//! meet, not whether they touch the same lines there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use codeboost_schema::plan::{DeclaredFile, FileKind, Item, Plan};

use super::problem::{Code, Problem};
use super::v1::parse::short;
use super::v1::projected::{PathIdentity, PathKey};

const RULE: &str = "a change that two items touch is Ambiguous until a person assigns it (7)";

/// A declaration of a path.
struct Declared<'a> {
    item: usize,
    pointer: String,
    file: &'a DeclaredFile,
    path: &'a str,
}

/// The likely ambiguities of a plan, in its order.
#[must_use]
pub fn forecast(plan: &Plan, identity: PathIdentity) -> Vec<Problem> {
    let needs = needs(plan);
    let mut by_path: BTreeMap<PathKey, Vec<Declared<'_>>> = BTreeMap::new();
    for (nth, item) in plan.items.iter().enumerate() {
        for (n, file) in item.files.iter().enumerate() {
            for (field, path) in
                [("path", Some(&*file.path)), ("renamed_from", file.renamed_from.as_deref())]
            {
                let Some(path) = path else { continue };
                let pointer = format!("/items/{nth}/files/{n}/{field}");
                let declared = Declared { item: nth, pointer, file, path };
                by_path.entry(identity.key(path.as_bytes())).or_default().push(declared);
            }
        }
    }
    let mut problems: Vec<_> =
        by_path.values().filter_map(|declared| meeting(plan, &needs, declared)).collect();
    problems.extend(mentions(plan, &needs, identity));
    problems.sort_by(|a, b| order(&a.pointer).cmp(&order(&b.pointer)));
    problems
}

/// For each item those it depends on, directly or not.
fn needs(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<BTreeSet<usize>> = Vec::with_capacity(plan.items.len());
    for item in &plan.items {
        let mut mine = BTreeSet::new();
        for id in &item.depends_on {
            let at = plan.items[..all.len()].iter().position(|other| other.id == *id);
            if let Some(at) = at {
                mine.insert(at);
                mine.extend(&all[at]);
            }
        }
        all.push(mine);
    }
    all
}

/// Several items that declare one path.
fn meeting(plan: &Plan, needs: &[BTreeSet<usize>], declared: &[Declared<'_>]) -> Option<Problem> {
    let items: BTreeSet<usize> = declared.iter().map(|d| d.item).collect();
    if items.len() < 2 {
        return None;
    }
    let last = declared.last()?;
    let path = short(last.path);
    let ids = |of: &BTreeSet<usize>| -> String {
        let ids: Vec<_> = of.iter().map(|nth| plan.items[*nth].id.as_str()).collect();
        match &ids[..] {
            [others @ .., last] if !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            _ => ids.concat(),
        }
    };
    let id = |nth: usize| &plan.items[nth].id;
    let problem = |message, mend| {
        Some(Problem::new(Code::LikelyAmbiguous, &last.pointer, message, RULE, mend))
    };
    if let Some(rename) = declared.iter().find(|d| d.file.kind == FileKind::Rename) {
        let from = rename.file.renamed_from.as_deref().unwrap_or_default();
        let others: BTreeSet<_> = items.iter().copied().filter(|n| *n != rename.item).collect();
        // A rename that comes first leaves every line to the items that build on it.
        if others.iter().all(|nth| needs[*nth].contains(&rename.item)) {
            return None;
        }
        let message = format!(
            "{} renames {} to {}, and {} changes it too",
            id(rename.item),
            short(from),
            short(&rename.file.path),
            ids(&others),
        );
        let mend = format!(
            "let an item of its own rename it first, with no other change; {} then depends on that \
             and uses {}",
            ids(&others),
            short(&rename.file.path),
        );
        return problem(message, mend);
    }
    let first = *items.first()?;
    let is_ordered = items
        .iter()
        .skip(1)
        .all(|nth| items.range(..*nth).all(|before| needs[*nth].contains(before)));
    let made = declared.iter().find(|d| d.file.kind == FileKind::Add);
    let message = if is_ordered {
        format!("{} declare {path}; lines that they share will have several owners", ids(&items))
    } else {
        format!(
            "{} declare {path}, and nothing says which of them builds on the other",
            ids(&items)
        )
    };
    let mend = match made {
        Some(made) => {
            format!("let {} write {path} whole, and remove it from the others", id(made.item))
        }
        None if items.len() == 2 => format!(
            "move all changes of {path} into {}, or put what both need into an item of its own \
             on which {} depend",
            id(first),
            ids(&items),
        ),
        None => format!("put the changes of {path} into one item on which {} depend", ids(&items)),
    };
    problem(message, mend)
}

/// An item whose text names a path that another makes, without depending on it.
fn mentions(plan: &Plan, needs: &[BTreeSet<usize>], identity: PathIdentity) -> Vec<Problem> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (nth, item) in plan.items.iter().enumerate() {
        for file in &item.files {
            // A name without a folder says too little to be sure that the path is meant.
            if matches!(file.kind, FileKind::Add | FileKind::Rename) && file.path.contains('/') {
                makers.entry(&file.path).or_insert(nth);
            }
        }
    }
    let mut problems = Vec::new();
    for (nth, item) in plan.items.iter().enumerate() {
        let declared: BTreeSet<_> = item
            .files
            .iter()
            .flat_map(DeclaredFile::paths)
            .map(|path| identity.key(path.as_bytes()))
            .collect();
        let mut told = BTreeSet::new();
        for (pointer, text) in texts(item) {
            for path in path_words(text) {
                let Some(&maker) = makers.get(path) else { continue };
                let is_known = nth == maker
                    || needs[nth].contains(&maker)
                    || declared.contains(&identity.key(path.as_bytes()));
                if is_known || !told.insert(path) {
                    continue;
                }
                let (id, by) = (&item.id, &plan.items[maker].id);
                let mend = if nth > maker {
                    format!("add {by} to depends_on of {id}, or let {id} do without it")
                } else {
                    format!("move {by} before {id} and let {id} depend on it")
                };
                problems.push(Problem::new(
                    Code::LikelyAmbiguous,
                    format!("/items/{nth}/{pointer}"),
                    format!(
                        "{id} speaks of {}, which {by} makes, and does not depend on {by}",
                        short(path)
                    ),
                    "items whose order matters depend on each other (7)",
                    mend,
                ));
            }
        }
    }
    problems
}

/// The texts of an item, with their pointers inside it.
fn texts(item: &Item) -> impl Iterator<Item = (String, &str)> {
    let files = item.files.iter().enumerate();
    let checks = item.acceptance.iter().enumerate();
    std::iter::once(("intent".to_owned(), item.intent.as_str()))
        .chain(files.map(|(n, file)| (format!("files/{n}/change"), file.change.as_str())))
        .chain(checks.map(|(n, check)| (format!("acceptance/{n}/text"), check.text.as_str())))
}

/// The words of a text that may be paths with a folder.
fn path_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "/_-.@+".contains(c)))
        .map(|word| word.trim_end_matches('.').trim_start_matches("./"))
        .filter(|word| word.contains('/'))
}

/// By item, then by the text: `/items/2` before `/items/10`.
fn order(pointer: &str) -> (usize, &str) {
    let nth = pointer.split('/').nth(2).and_then(|nth| nth.parse().ok()).unwrap_or(0);
    (nth, pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(items: &[(&str, &[(&str, FileKind, Option<&str>)], &[&str], &str)]) -> Plan {
        let id = |text: &str| codeboost_schema::ids::ItemId::parse(text).expect("an id");
        let items = items.iter().map(|(name, files, needs, change)| Item {
            id: id(name),
            title: "t".into(),
            intent: "i".into(),
            files: files
                .iter()
                .map(|(path, kind, from)| DeclaredFile {
                    path: (*path).into(),
                    kind: *kind,
                    renamed_from: from.map(Into::into),
                    change: (*change).into(),
                })
                .collect(),
            acceptance: Vec::new(),
            depends_on: needs.iter().map(|need| id(need)).collect(),
        });
        Plan {
            schema_version: 1,
            issue: 1,
            revision: 1,
            summary: "s".into(),
            items: items.collect(),
            questions: Vec::new(),
        }
    }

    fn check(plan: &Plan, expected: &[(&str, &str)]) {
        let found = forecast(plan, PathIdentity::EXACT);
        let found: Vec<_> =
            found.iter().map(|p| (p.pointer.as_str(), p.message.as_str())).collect();
        assert_eq!(found, expected);
    }

    use FileKind::{Add, Edit, Rename};

    #[test]
    fn items_that_share_no_file_are_quiet() {
        check(
            &plan(&[
                ("P1", &[("src/a.rs", Edit, None)], &[], "x"),
                ("P2", &[("src/b.rs", Edit, None)], &[], "x"),
            ]),
            &[],
        );
    }

    #[test]
    fn two_items_that_declare_one_file_are_told() {
        let files: &[_] = &[("src/a.rs", Edit, None)];
        check(
            &plan(&[("P1", files, &[], "x"), ("P2", files, &[], "x")]),
            &[(
                "/items/1/files/0/path",
                "P1 and P2 declare \"src/a.rs\", and nothing says which of them builds on the other",
            )],
        );
        check(
            &plan(&[("P1", files, &[], "x"), ("P2", files, &["P1"], "x")]),
            &[(
                "/items/1/files/0/path",
                "P1 and P2 declare \"src/a.rs\"; lines that they share will have several owners",
            )],
        );
    }

    #[test]
    fn a_file_that_another_item_renames_is_told() {
        check(
            &plan(&[
                ("P1", &[("src/a.rs", Edit, None)], &[], "x"),
                ("P2", &[("src/b.rs", Rename, Some("src/a.rs"))], &["P1"], "x"),
            ]),
            &[(
                "/items/1/files/0/renamed_from",
                "P2 renames \"src/a.rs\" to \"src/b.rs\", and P1 changes it too",
            )],
        );
    }

    #[test]
    fn a_rename_that_others_build_on_is_quiet() {
        check(
            &plan(&[
                ("P1", &[("src/b.rs", Rename, Some("src/a.rs"))], &[], "x"),
                ("P2", &[("src/b.rs", Edit, None)], &["P1"], "x"),
            ]),
            &[],
        );
    }

    #[test]
    fn a_path_that_is_spoken_of_needs_the_dependency() {
        let made: &[_] = &[("src/new.rs", Add, None)];
        let other: &[_] = &[("src/b.rs", Edit, None)];
        let told = [(
            "/items/1/files/0/change",
            "P2 speaks of \"src/new.rs\", which P1 makes, and does not depend on P1",
        )];
        check(&plan(&[("P1", made, &[], "x"), ("P2", other, &[], "use src/new.rs")]), &told);
        check(&plan(&[("P1", made, &[], "x"), ("P2", other, &["P1"], "use src/new.rs")]), &[]);
        check(&plan(&[("P1", made, &[], "x"), ("P2", other, &[], "use lib/src/new.rs")]), &[]);
    }
}
