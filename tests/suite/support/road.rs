//! The road from a branch to a merge, as a person and a page walk it: for the tests of many
//! commands.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Done, TestEnv};

/// A repository with codeboost set up, a task for issue 412 from `main` to `topic`, and its plan.
pub(crate) struct Road {
    pub(crate) env: TestEnv,
    plan: Value,
    next_id: Cell<u64>,
}

/// What a page offers, as its script reads it.
#[derive(Clone)]
pub(crate) struct Page {
    /// The texts that it carries, unpacked.
    pub(crate) index: String,
    pub(crate) payload_b64: String,
    pub(crate) signature: String,
    pub(crate) form: Value,
    /// What `review --format json` said when it was rendered.
    pub(crate) review: Value,
}

/// One item of a plan: id, declared files, dependencies.
pub(crate) type ItemSpec<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

/// A file for a commit: path, and content or nothing to delete it.
pub(crate) type FileSpec<'a> = (&'a str, Option<&'a str>);

impl Road {
    /// A repository with these files at `main`, and a branch `topic` there, checked out.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let env = TestEnv::new();
        env.git(".", ["init", "-q", "repo"]);
        env.git("repo", ["config", "user.name", "A. Person"]);
        env.git("repo", ["config", "user.email", "person@example.invalid"]);
        env.write("repo/README", "The sample.\n");
        for (path, text) in files {
            env.write(format!("repo/{path}"), text);
        }
        env.git("repo", ["add", "-A"]);
        env.git("repo", ["commit", "-q", "-m", "base"]);
        env.git("repo", ["checkout", "-q", "-b", "topic"]);
        Self { env, plan: Value::Null, next_id: Cell::new(0) }
    }

    /// Commits these files on the branch that is checked out.
    pub(crate) fn commit(&self, message: &str, files: &[FileSpec<'_>]) -> String {
        for (path, text) in files {
            match text {
                Some(text) => self.env.write(format!("repo/{path}"), text),
                None => std::fs::remove_file(self.env.path(format!("repo/{path}"))).unwrap(),
            }
        }
        self.commit_all(message)
    }

    /// Commits whatever is in the work tree.
    pub(crate) fn commit_all(&self, message: &str) -> String {
        self.env.git("repo", ["add", "-A"]);
        self.env.git("repo", ["commit", "-q", "-m", message]);
        self.env.git("repo", ["rev-parse", "HEAD"])
    }

    /// Sets codeboost up, adds the task, and approves a plan with these items.
    pub(crate) fn start(&mut self, items: &[ItemSpec<'_>]) {
        self.ok(&["init", "-q"]);
        self.ok(&["task", "add", "412", "--base", "main", "--head", "topic", "-q"]);
        self.plan = plan(items);
        self.import();
    }

    /// Changes the plan, and imports and approves it as the next revision.
    pub(crate) fn revise(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.plan);
        self.import();
    }

    fn import(&self) {
        self.env.write("plan.json", self.plan.to_string());
        self.ok(&["plan", "import", "412", "../plan.json", "-q"]);
        self.ok(&["plan", "approve", "412", "--yes", "-q"]);
    }

    /// States that a commit was made for an item, or for `none`.
    pub(crate) fn record(&self, commit: &str, item: &str) {
        self.ok(&["ledger", "record", commit, "--item", item, "-q"]);
    }

    /// Commits for an item, and states so.
    pub(crate) fn work(&self, item: &str, files: &[FileSpec<'_>]) -> String {
        let commit = self.commit(&format!("work for {item}"), files);
        self.record(&commit, item);
        commit
    }

    /// Runs codeboost in the repository.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.env.run_in("repo", args)
    }

    /// Runs codeboost, which must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, 0, "codeboost {args:?}: {done}");
        done
    }

    /// The review as data.
    pub(crate) fn review(&self) -> Value {
        serde_json::from_str(&self.ok(&["review", "412", "--format", "json"]).stdout).unwrap()
    }

    /// Approval state of each item.
    pub(crate) fn states(&self) -> BTreeMap<String, String> {
        states(&self.review())
    }

    /// The words of all stale reasons of an item.
    pub(crate) fn reasons(&self, item: &str) -> Vec<String> {
        let review = self.review();
        let found = review["items"].as_array().unwrap().iter().find(|one| one["item"] == item);
        let reasons = found.unwrap()["reasons"].as_array().unwrap().clone();
        reasons.iter().map(|reason| reason["words"].as_str().unwrap().to_owned()).collect()
    }

    /// The words of all blockers.
    pub(crate) fn blockers(&self) -> Vec<String> {
        blockers(&self.review())
    }

    /// Renders the page and reads what it offers.
    pub(crate) fn page(&self) -> Page {
        let done = self.ok(&["render", "412", "--format", "json"]);
        let rendered: Value = serde_json::from_str(&done.stdout).unwrap();
        let html = std::fs::read_to_string(rendered["path"].as_str().unwrap()).unwrap();
        let form = html.split("<script id=\"form\" type=\"application/json\">").nth(1).unwrap();
        let form: Value = serde_json::from_str(form.split("</script>").next().unwrap()).unwrap();
        let payload_b64 = form["payload_b64"].as_str().unwrap().to_owned();
        let payload = STANDARD.decode(&payload_b64).unwrap();
        Page {
            payload_b64,
            signature: form["signature"].as_str().unwrap().to_owned(),
            form: serde_json::from_slice(&payload).unwrap(),
            review: self.review(),
            index: index(&html),
        }
    }

    /// A decision with an id of its own.
    pub(crate) fn decision(&self, mut fields: Value) -> Value {
        self.next_id.set(self.next_id.get() + 1);
        fields["id"] = json!(format!("00000000-0000-4000-8000-{:012}", self.next_id.get()));
        fields
    }

    /// A decisions file of that page, where everything was shown, in `decisions.json`.
    pub(crate) fn save(&self, page: &Page, decisions: &[Value]) {
        let file = self.file(page, decisions);
        self.env.write("decisions.json", file.to_string());
    }

    /// The content of a decisions file of that page, where everything was shown.
    pub(crate) fn file(&self, page: &Page, decisions: &[Value]) -> Value {
        let rows = page.review["segments"].as_array().unwrap().iter().map(|one| &one["row"]);
        let shown: serde_json::Map<_, _> =
            rows.map(|row| (row.as_str().unwrap().to_owned(), json!("all"))).collect();
        json!({
            "schema_version": 1,
            "form": {"payload_b64": page.payload_b64, "signature": page.signature},
            "saved_at": "2026-11-30T12:30:00Z",
            "reviewer": null,
            "shown": shown,
            "decisions": decisions,
        })
    }

    /// Applies `decisions.json`: the answers as one line per decision, and the run.
    pub(crate) fn apply(&self) -> (Vec<String>, Done) {
        self.apply_with(&[])
    }

    /// As [`Self::apply`], with more arguments.
    pub(crate) fn apply_with(&self, args: &[&str]) -> (Vec<String>, Done) {
        let done = self.run(&[&["apply", "../decisions.json", "--format", "json"], args].concat());
        let answers: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        let mut lines = Vec::new();
        for (key, word) in [("applied", "applied"), ("already", "already")] {
            for one in answers[key].as_array().into_iter().flatten() {
                lines.push(format!("{word} {}", one["type"].as_str().unwrap()));
            }
        }
        for one in answers["refused"].as_array().into_iter().flatten() {
            let cause = one["cause"].as_str().map(|cause| format!("/{cause}")).unwrap_or_default();
            lines.push(format!(
                "refused {} {}{cause}",
                one["type"].as_str().unwrap(),
                one["reason"].as_str().unwrap()
            ));
        }
        (lines, done)
    }

    /// Saves decisions on a fresh page and applies them; all must be recorded.
    pub(crate) fn decide(&self, decide: impl FnOnce(&Page) -> Vec<Value>) {
        let page = self.page();
        let decisions = decide(&page);
        let decisions: Vec<_> = decisions.into_iter().map(|one| self.decision(one)).collect();
        self.save(&page, &decisions);
        let (lines, done) = self.apply();
        assert_eq!(done.code, 0, "{done}");
        assert_eq!(lines.len(), decisions.len());
        assert!(lines.iter().all(|line| line.starts_with("applied ")), "{lines:?}");
    }

    /// Approves items on a fresh page.
    pub(crate) fn approve(&self, items: &[&str]) {
        self.decide(|_| {
            items.iter().map(|item| json!({"type": "approve", "item": item})).collect()
        });
    }

    /// Approves items on a fresh page, and acknowledges every warning on it.
    pub(crate) fn approve_with_warnings(&self, items: &[&str]) {
        self.decide(|page| {
            let acknowledge = page
                .warnings()
                .into_iter()
                .map(|(segment, tag)| on(&segment, json!({"type": "acknowledge", "tag": tag})));
            let approve = items.iter().map(|item| json!({"type": "approve", "item": item}));
            acknowledge.chain(approve).collect()
        });
    }

    /// `link` on files alone, with the ledger and the plan of the task as they are now.
    pub(crate) fn link(&self) -> Value {
        let ledger = self.ok(&["ledger", "show", "412", "--format", "json"]).stdout;
        self.env.write("ledger.json", ledger);
        let args = "link --base main --head topic --plan ../plan.json --ledger ../ledger.json";
        let args: Vec<_> = args.split(' ').chain(["-o", "../link.json", "-q"]).collect();
        self.ok(&args);
        let bytes = std::fs::read(self.env.path("link.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Keeps the repositories as they are now, for [`Self::again`].
    pub(crate) fn keep(&self) {
        self.copy("repo", "kept/repo");
        self.copy("remote.git", "kept/remote.git");
    }

    /// Puts the repositories back as they were when they were kept.
    pub(crate) fn again(&self) {
        self.copy("kept/repo", "repo");
        self.copy("kept/remote.git", "remote.git");
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.env.path(from), self.env.path(to));
        if from.exists() {
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let _ = std::fs::remove_dir_all(&to);
            let mut command = self.env.command("cp", ".");
            assert_eq!(self.env.finish(command.arg("-a").args([from, to])).code, 0);
        }
    }

    /// Runs codeboost once for every point at which it can be killed, each time on what was kept,
    /// killed there; then calls `check` with that point.
    pub(crate) fn killed_everywhere(&mut self, args: &[&str], check: impl Fn(&Self, &str)) {
        self.again();
        self.env.set("CODEBOOST_CRASH_LOG", self.env.path("points").to_str().unwrap());
        self.run(args);
        self.env.set("CODEBOOST_CRASH_LOG", "");
        let points = std::fs::read_to_string(self.env.path("points")).unwrap();
        for (n, name) in points.lines().enumerate() {
            self.again();
            self.env.set("CODEBOOST_CRASH_AT", &(n + 1).to_string());
            let done = self.run(args);
            self.env.set("CODEBOOST_CRASH_AT", "");
            assert_eq!(done.code, -1, "{name}: {done}");
            check(self, &format!("killed at point {} ({name})", n + 1));
        }
    }

    /// All that is remembered, as one value: what a refusal must leave alone.
    pub(crate) fn state(&self) -> Vec<u8> {
        let file = self.env.path("state-export.db");
        let _ = std::fs::remove_file(&file);
        self.ok(&["state", "export", file.to_str().unwrap(), "-q"]);
        let bytes = std::fs::read(&file).unwrap();
        let refs = self.env.git("repo", ["for-each-ref"]);
        [bytes, refs.into_bytes()].concat()
    }
}

impl Page {
    /// The segments that stand somewhere: an item, `ambiguous`, `unplanned`, `accepted`.
    pub(crate) fn segments(&self, place: &str) -> Vec<Value> {
        segments(&self.review, place)
    }

    /// Every warning that nobody has acknowledged: the segment, and the tag.
    pub(crate) fn warnings(&self) -> Vec<(Value, String)> {
        let mut found = Vec::new();
        for segment in self.review["segments"].as_array().unwrap() {
            for tag in segment["unacknowledged"].as_array().unwrap() {
                found.push((segment.clone(), tag.as_str().unwrap().to_owned()));
            }
        }
        found
    }

    /// The one segment with that text in it.
    pub(crate) fn segment(&self, text: &str) -> Value {
        let all = self.review["segments"].as_array().unwrap();
        let found: Vec<_> = all
            .iter()
            .filter(|one| one["text"].as_str().is_some_and(|found| found.contains(text)))
            .collect();
        assert_eq!(found.len(), 1, "{text:?} in {all:#?}");
        found[0].clone()
    }
}

/// A decision about a segment: `type`, and more fields.
pub(crate) fn on(segment: &Value, mut fields: Value) -> Value {
    fields["segment"] = segment["segment"].clone();
    fields["key"] = segment["key"].clone();
    fields
}

pub(crate) fn segments(review: &Value, place: &str) -> Vec<Value> {
    let all = review["segments"].as_array().unwrap().iter();
    all.filter(|one| one["place"] == place).cloned().collect()
}

pub(crate) fn states(review: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = review["items"].as_array().unwrap().iter();
    items.map(|one| (text(&one["item"]), text(&one["approval"]))).collect()
}

pub(crate) fn blockers(review: &Value) -> Vec<String> {
    let all = review["blockers"].as_array().unwrap().iter();
    all.map(|one| one["words"].as_str().unwrap().to_owned()).collect()
}

/// A plan whose items edit their files; a path that starts with `+` is added, with `-` deleted, and
/// `a>b` is renamed.
pub(crate) fn plan(items: &[ItemSpec<'_>]) -> Value {
    let file = |spec: &str| {
        let (kind, path, from) = if let Some(path) = spec.strip_prefix('+') {
            ("add", path, None)
        } else if let Some(path) = spec.strip_prefix('-') {
            ("delete", path, None)
        } else if let Some((from, to)) = spec.split_once('>') {
            ("rename", to, Some(from))
        } else {
            ("edit", spec, None)
        };
        json!({"path": path, "kind": kind, "renamed_from": from, "change": "Changes."})
    };
    let items: Vec<_> = items
        .iter()
        .map(|(id, files, depends_on)| {
            json!({
                "id": id,
                "title": format!("Title of {id}"),
                "intent": format!("Intent of {id}."),
                "files": files.iter().map(|spec| file(spec)).collect::<Vec<_>>(),
                "acceptance": [{"type": "check", "text": format!("{id} holds.")}],
                "depends_on": depends_on,
            })
        })
        .collect();
    json!({
        "schema_version": 1,
        "issue": 412,
        "revision": 1,
        "summary": "A sample.",
        "items": items,
        "questions": [],
    })
}

/// The texts of a page, which it carries packed.
fn index(html: &str) -> String {
    let packed = html.split(" id=\"index\"").nth(1).unwrap();
    let packed = packed.split_once('>').unwrap().1.split('<').next().unwrap();
    let packed = STANDARD.decode(packed.trim()).unwrap();
    let mut text = String::new();
    flate2::read::DeflateDecoder::new(&*packed).read_to_string(&mut text).unwrap();
    text
}
