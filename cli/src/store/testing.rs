//! A repository with state, for the unit tests of this room and of those that use it.

use std::collections::BTreeMap;
use std::path::Path;

use codeboost_schema::ids::CommitId;

use crate::context::Context;
use crate::git::repository::Repository;
use crate::output::{ColorChoice, Format, Output};
use crate::process;
use crate::store::{NewPlanApproval, NewTask, PlanOrigin, Store, TaskRow};
use crate::task::Actor;

/// A temporary folder and the world as seen from it.
pub(crate) struct World {
    pub(crate) context: Context,
    _folder: tempfile::TempDir,
}

impl World {
    /// A repository with one commit on `main`, at a fixed time.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut env = BTreeMap::from([
            ("CODEBOOST_NOW".into(), "2026-11-30T12:00:00Z".into()),
            ("HOME".into(), folder.path().into()),
        ]);
        if let Some(path) = Context::environment().remove(std::ffi::OsStr::new("PATH")) {
            env.insert("PATH".into(), path);
        }
        let out = Output::new(Format::Text, -1, ColorChoice::Never, true);
        let context = Context::new(folder.path().join("repo"), env, out);
        std::fs::create_dir(context.cwd()).expect("a folder");
        let this = Self { context, _folder: folder };
        this.git(["init", "-q", "-b", "main"]);
        this.git(["commit", "-q", "--allow-empty", "-m", "first"]);
        this
    }

    /// The folder of the repository.
    pub(crate) fn root(&self) -> &Path {
        self.context.cwd()
    }

    /// Runs git, which must succeed, and returns its trimmed output.
    pub(crate) fn git<const N: usize>(&self, args: [&str; N]) -> String {
        let mut command = process::command(&self.context, "git", self.root());
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "T. Est")
                .env(format!("GIT_{role}_EMAIL"), "test@example.invalid")
                .env(format!("GIT_{role}_DATE"), "2026-11-01T10:00:00Z");
        }
        let done = command.args(args).output().expect("git starts");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    /// The commit that a revision names.
    pub(crate) fn commit_id(&self, revision: &str) -> CommitId {
        CommitId::parse(&self.git(["rev-parse", revision])).expect("a commit")
    }

    /// The repository, opened.
    pub(crate) fn repository(&self) -> Repository<'_> {
        Repository::open(&self.context).expect("a repository")
    }

    /// Its state, made if it is missing.
    pub(crate) fn store(&self) -> Store<'_> {
        Store::create(&self.repository(), None).expect("a state").0
    }

    /// A new task for that issue, from `main` to `main`.
    pub(crate) fn add_task(&self, store: &Store<'_>, issue: u64) -> TaskRow {
        let id = self.commit_id("main");
        store
            .write(|tx| {
                tx.put_issue(issue, "An issue", Some("text"), None)?;
                tx.add_task(&NewTask {
                    issue,
                    base_ref: "refs/heads/main",
                    base_commit_id: &id,
                    head_ref: "refs/heads/topic",
                    head_commit_id: &id,
                    made_head: false,
                })
            })
            .map_err(|error: crate::store::StoreError| error)
            .expect("a task")
    }

    /// Adds a revision with these items to the plan of a task and approves it.
    pub(crate) fn approve_plan(&self, store: &Store<'_>, task: &TaskRow, items: &[&str]) -> u64 {
        let items: Vec<_> = items
            .iter()
            .map(|id| {
                serde_json::json!({
                    "id": id, "title": "T", "intent": "I",
                    "files": [{
                        "path": format!("{id}.txt"), "kind": "edit", "renamed_from": null,
                        "change": "C",
                    }],
                    "acceptance": [{"type": "check", "text": "A"}],
                    "depends_on": [],
                })
            })
            .collect();
        let plan = serde_json::json!({
            "schema_version": 1, "issue": task.issue, "revision": 1, "summary": "S",
            "items": items, "questions": [],
        });
        let plan = serde_json::from_value(plan).expect("a plan");
        store
            .write(|tx| {
                let after = tx.newest_plan(task.id)?.map_or(0, |row| row.plan.revision);
                let row = tx.add_plan(task, after, &plan, PlanOrigin::Import, &Actor::Person)?;
                let approval = NewPlanApproval {
                    revision: row.plan.revision,
                    base: &task.base_commit_id,
                    allow: &[],
                    actor: Actor::Person,
                };
                tx.approve_plan(task, &approval)
            })
            .map_err(|error: crate::store::StoreError| error)
            .expect("an approved plan")
            .plan
            .revision
    }
}
