//! `codeboost link` on real repositories.

use serde_json::{Value, json};

use crate::support::TestEnv;

/// A repository in `repo`, with a branch that starts at the base.
pub(crate) struct Repo<'a> {
    env: &'a TestEnv,
    ledger: serde_json::Map<String, Value>,
    base: String,
}

impl<'a> Repo<'a> {
    /// Makes the base commit from these files.
    pub(crate) fn new(env: &'a TestEnv, files: &[(&str, &str)]) -> Self {
        env.git(".", ["init", "-q", "repo"]);
        let mut this = Self { env, ledger: serde_json::Map::new(), base: String::new() };
        this.write(files);
        this.base = this.commit_all();
        this
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.env.write(format!("repo/{path}"), text);
        }
    }

    fn commit_all(&self) -> String {
        self.env.git("repo", ["add", "-A"]);
        self.env.git("repo", ["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.env.git("repo", ["rev-parse", "HEAD"])
    }

    /// Writes files and commits everything for an item, or for nobody.
    pub(crate) fn commit(&mut self, item: Option<&str>, files: &[(&str, &str)]) -> String {
        self.write(files);
        let id = self.commit_all();
        self.ledger.insert(id.clone(), json!(item));
        id
    }

    /// Links with a plan in which each item declares these paths.
    pub(crate) fn link(&self, declared: &[(&str, &[&str])]) -> Value {
        self.prepare(declared);
        let done = self.run(&[]);
        assert_eq!(done.code, 0, "{done}");
        let text = std::fs::read_to_string(self.env.path("link.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn prepare(&self, declared: &[(&str, &[&str])]) {
        let ledger = json!({"schema_version": 1, "commits": self.ledger});
        self.env.write("ledger.json", ledger.to_string());
        self.env.write("plan.json", plan(declared).to_string());
    }

    pub(crate) fn run(&self, more: &[&str]) -> crate::support::Done {
        let args = ["link", "--repo", "repo", "--base", &self.base, "--head", "HEAD"];
        let files = ["--plan", "plan.json", "--ledger", "ledger.json"];
        self.env.run(args.iter().chain(&files).chain(more))
    }
}

/// A plan in which each item declares these paths.
pub(crate) fn plan(declared: &[(&str, &[&str])]) -> Value {
    let items: Vec<Value> = declared
        .iter()
        .map(|(id, paths)| {
            let files: Vec<Value> = paths
                .iter()
                .map(|path| {
                    json!({"path": path, "kind": "edit", "renamed_from": null, "change": "It."})
                })
                .collect();
            json!({
                "id": id, "title": "An item", "intent": "To see it linked.", "files": files,
                "acceptance": [{"type": "check", "text": "It is linked."}], "depends_on": [],
            })
        })
        .collect();
    json!({
        "schema_version": 1, "issue": 1, "revision": 1, "summary": "A plan.",
        "items": items, "questions": [],
    })
}

/// Each segment in one line: row, kind and place, text or change, scope, tags.
pub(crate) fn segments(link: &Value) -> Vec<String> {
    let files = link["files"].as_array().unwrap();
    link["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| {
            let path = files[segment["file"].as_u64().unwrap() as usize]["path"].as_str();
            let what = match segment["kind"].as_str().unwrap() {
                "file" => segment["change"].as_str().unwrap().to_owned(),
                _ => {
                    let start = segment["old_start"].as_u64().or(segment["new_start"].as_u64());
                    let text = segment["text"].as_str().unwrap_or("(bytes)");
                    format!("{}{} {text:?}", segment["op"].as_str().unwrap(), start.unwrap())
                }
            };
            let tags = segment["tags"].as_array().unwrap().iter();
            let tags: Vec<&str> = tags.map(|tag| tag["tag"].as_str().unwrap()).collect();
            let mut line = format!(
                "{} {} {what} {}",
                segment["row"].as_str().unwrap(),
                path.unwrap_or("(bytes)"),
                segment["scope"].as_str().unwrap(),
            );
            for tag in tags {
                line.push_str(" #");
                line.push_str(tag);
            }
            line
        })
        .collect()
}

/// Each changed line by itself, with who touched it: `P1 P2 +3 text`.
pub(crate) fn lines_with_owners(link: &Value) -> String {
    let mut out = String::new();
    for segment in link["segments"].as_array().unwrap() {
        let Some(op) = segment["op"].as_str() else { continue };
        let owners = segment["owners"].as_array().unwrap().iter();
        let mut owners: Vec<&str> = owners.map(|owner| owner.as_str().unwrap()).collect();
        if segment["foreign"] == json!(true) {
            owners.push("nobody");
        }
        let start = segment["old_start"].as_u64().or(segment["new_start"].as_u64()).unwrap();
        let text = segment["text"].as_str().unwrap();
        for (line, n) in text.split_inclusive('\n').zip(start..) {
            let line = line.trim_end_matches('\n');
            out.push_str(&format!("{} {op}{n} {line}\n", owners.join(" ")));
        }
    }
    out
}

/// Compares the segments with lines of the form that [`segments`] gives.
#[track_caller]
pub(crate) fn shows(link: &Value, expected: &str) {
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found = segments(link);
    assert_eq!(found, expected, "\n{}\n", found.join("\n"));
}

#[test]
fn a_shared_hunk_splits_by_owner() {
    let env = TestEnv::new();
    let mut repo = Repo::new(&env, &[("a.rs", "one\ntwo\nthree\nfour\n")]);
    repo.commit(Some("P1"), &[("a.rs", "ONE!!!\ntwo\nthree\nfour\n")]);
    repo.commit(Some("P2"), &[("a.rs", "ONE!!!\nTWO???\nthree\nfour\n")]);
    repo.commit(None, &[("a.rs", "ONE!!!\nTWO???\nthree\nnew\nfour\n")]);
    let link = repo.link(&[("P1", &["a.rs"]), ("P2", &["b.rs"])]);
    shows(
        &link,
        r#"
        P1 a.rs -1 "one\n" in #adopted
        P2 a.rs -2 "two\n" out #out-of-scope #adopted
        P1 a.rs +1 "ONE!!!\n" in #adopted
        P2 a.rs +2 "TWO???\n" out #out-of-scope #adopted
        unplanned a.rs +4 "new\n" unplanned
        "#,
    );
    assert_eq!(link["segments"][0]["shares_hunk_with"], json!(["P2", "unplanned"]));
    assert_eq!(
        link["rows"],
        json!([
            {"row": "P1", "changes": 2, "added": 1, "removed": 1, "attributed": "ok", "in_scope": "ok"},
            {"row": "P2", "changes": 2, "added": 1, "removed": 1, "attributed": "ok", "in_scope": "out"},
            {"row": "ambiguous", "changes": 0, "added": 0, "removed": 0},
            {"row": "unplanned", "changes": 1, "added": 1, "removed": 0},
        ])
    );
}

#[test]
fn an_unchanged_result_is_told_and_proves_right_again() {
    let env = TestEnv::new();
    let mut repo = Repo::new(&env, &[("a.rs", "one\n")]);
    repo.commit(Some("P1"), &[("a.rs", "two\n"), ("b.rs", "")]);
    repo.prepare(&[("P1", &["a.rs"])]);
    assert!(repo.run(&[]).stdout.ends_with("link.json is written\n"));
    assert!(repo.run(&[]).stdout.ends_with("link.json is unchanged\n"));
    let done = repo.run(&["--verify"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.ends_with("link.json proves right: 3 segments in 2 files\n"), "{done}");
    let text = std::fs::read_to_string(env.path("link.json")).unwrap();
    env.write("link.json", text.replace("two\\n", "twö\\n"));
    let done = repo.run(&["--verify"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("caused by: a.rs: "), "{done}");
}
