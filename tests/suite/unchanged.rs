//! Stages whose inputs are what they were: they say the same again without reading any content, and
//! whatever of their inputs changes is noticed.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::apply::road;
use crate::support::Done;
use crate::support::road::{Road, on};

const STAGES: [&[&str]; 9] = [
    &["run", "412"],
    &["link", "412"],
    &["link", "412", "--format", "json"],
    &["render", "412"],
    &["review", "412"],
    &["review", "412", "P1"],
    &["review", "412", "unplanned"],
    &["status"],
    &["status", "--format", "json"],
];

/// A content of the head is not there while this lives: nothing can be linked.
struct Hidden(PathBuf);

impl Hidden {
    fn one(road: &Road) -> Self {
        let id = road.env.git("repo", ["rev-parse", "topic:a.rs"]);
        let (folder, name) = id.trim().split_at(2);
        let object = road.env.path(format!("repo/.git/objects/{folder}/{name}"));
        std::fs::rename(&object, object.with_extension("away")).unwrap();
        Self(object)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        std::fs::rename(self.0.with_extension("away"), &self.0).unwrap();
    }
}

fn all(road: &Road) -> Vec<Done> {
    STAGES.iter().map(|args| road.run(args)).collect()
}

#[track_caller]
fn are_same(left: &[Done], right: &[Done]) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!((left.code, &left.stdout), (right.code, &right.stdout), "{left}{right}");
    }
}

#[test]
fn what_is_unchanged_reads_no_content() {
    let road = road();
    let first = all(&road);
    assert!(first.iter().all(|done| done.code == 0), "{first:?}");
    let warm = all(&road);
    {
        let _hidden = Hidden::one(&road);
        are_same(&all(&road), &warm);
    }
    // Another program that made it, or nothing kept: made again, and the same.
    std::fs::remove_dir_all(road.env.path("repo/.git/codeboost/cache")).unwrap();
    {
        let _hidden = Hidden::one(&road);
        assert_eq!(road.run(&["review", "412"]).code, 1);
    }
    are_same(&all(&road), &warm);
}

#[test]
fn damaged_and_foreign_entries_count_for_nothing() {
    let road = road();
    all(&road);
    let warm = all(&road);
    let folder = road.env.path("repo/.git/codeboost/cache/known");
    let files = || -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|one| one.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let entries: Vec<_> = files().into_iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(entries.len() > 5, "{}", entries.len());
    let spoils: [&dyn Fn(usize) -> Vec<u8>; 4] = [
        &|n| entries[n][..entries[n].len() / 2].to_vec(),
        &|_| Vec::new(),
        &|n| entries[(n + 1) % entries.len()].clone(),
        &|n| String::from_utf8_lossy(&entries[n]).replace("P1", "P2").into_bytes(),
    ];
    for spoil in spoils {
        for (n, path) in files().into_iter().enumerate().take(entries.len()) {
            std::fs::write(path, spoil(n)).unwrap();
        }
        are_same(&all(&road), &warm);
    }
}

#[test]
fn every_input_that_changes_is_noticed() {
    let mut road = road();
    let page = road.page();
    let look = |road: &Road| -> Value {
        let status = road.ok(&["status", "412", "--format", "json"]).stdout;
        serde_json::from_str::<Value>(&status).unwrap()["tasks"][0]["review"].clone()
    };
    let mut before = look(&road);
    let mut changed = |road: &Road, what: &str| {
        let now = look(road);
        assert_ne!(now, before, "{what} is not noticed");
        before = now;
    };
    let sneaked = page.segment("sneaked");
    road.decide(|_| vec![on(&sneaked, json!({"type": "assign", "item": "P1"}))]);
    changed(&road, "a choice");
    let stray = page.segment("stray");
    road.decide(|_| vec![on(&stray, json!({"type": "acknowledge", "tag": "out-of-scope"}))]);
    changed(&road, "an acknowledgement");
    road.approve(&["P1"]);
    changed(&road, "an approval");
    road.env.write("repo/.git/codeboost/config.yaml", "reviewers:\n  required: 2\n");
    changed(&road, "the policy");
    std::fs::remove_file(road.env.path("repo/.git/codeboost/config.yaml")).unwrap();
    road.commit("more", &[("more.rs", Some("more();\n"))]);
    changed(&road, "the head");
    let head = road.env.git("repo", ["rev-parse", "topic"]);
    road.record(head.trim(), "P2");
    changed(&road, "the ledger");
    road.revise(|plan| plan["items"][1]["title"] = json!("Another title"));
    changed(&road, "the plan");
}
