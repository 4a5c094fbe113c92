//! Changes of what is run: manifests of dependencies, build files, settings of tests and of CI, and
//! the files that approved commands name.
//!
//! A person approved commands, not what a change makes of them. Before codeboost runs them, each such
//! file that differs from the base is approved by its content; another content is another approval.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::{CommitId, ObjectId};
use codeboost_schema::plan::Plan;
use serde_json::json;

use crate::execute::audit;
use crate::execute::check::{PlannedCheck, planned};
use crate::execute::item::{ItemError, Site, done_items, head, read_task, set_state};
use crate::git::read::Objects;
use crate::git::tree;
use crate::store::{Event, Lease, StoreError, TaskRow};
use crate::task::{Actor, TaskState};

/// The kind of the events that hold approvals.
const APPROVED: &str = "scripts-approved";

/// Names of files, wherever they lie, that say what is installed, built or run.
const NAMES: &[&str] = &[
    // Dependencies.
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    ".npmrc",
    ".yarnrc.yml",
    "bun.lock",
    "bun.lockb",
    "deno.json",
    "deno.lock",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.mod",
    "go.sum",
    "go.work",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "Pipfile",
    "Pipfile.lock",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Gemfile",
    "Gemfile.lock",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradle.properties",
    "mix.exs",
    "mix.lock",
    "pubspec.yaml",
    "pubspec.lock",
    "Package.swift",
    "Package.resolved",
    // Builds and tasks.
    "Makefile",
    "makefile",
    "GNUmakefile",
    "CMakeLists.txt",
    "meson.build",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "Rakefile",
    "BUILD",
    "BUILD.bazel",
    "WORKSPACE",
    "MODULE.bazel",
    "Dockerfile",
    "Containerfile",
    "codeboost.yaml",
    // Tests and CI.
    "tox.ini",
    "noxfile.py",
    "pytest.ini",
    "conftest.py",
    ".mocharc.json",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
];
/// Beginnings of names of files with settings of tests, before an ending such as `.ts`.
const STEMS: &[&str] = &[
    "jest.config.",
    "vitest.config.",
    "vite.config.",
    "playwright.config.",
    "karma.conf.",
    "cypress.config.",
    "requirements-",
    "requirements_",
    ".mocharc.",
];
/// Folders whose every file counts.
const FOLDERS: &[&str] =
    &[".github/workflows/", ".circleci/", ".cargo/", ".husky/", "gradle/wrapper/"];

/// A file that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Where.
    pub path: RepoPath,
    /// What it holds now; `None`: it is gone.
    pub object_id: Option<ObjectId>,
}

impl Changed {
    /// The path, quoted where it has to be.
    #[must_use]
    pub fn words(&self) -> String {
        let gone = if self.object_id.is_none() { " (deleted)" } else { "" };
        format!("{}{gone}", audit::quote(self.path.as_bytes()))
    }
}

/// Whether a file says what is run, by its place alone.
fn is_script(path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else { return false };
    let name = path.rsplit('/').next().unwrap_or(path);
    NAMES.contains(&name)
        || STEMS.iter().any(|stem| name.starts_with(stem))
        || name.ends_with(".mk")
        || FOLDERS
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}

/// The files that these commands name.
fn named(checks: &[PlannedCheck]) -> BTreeSet<Vec<u8>> {
    let words = checks.iter().flat_map(|check| check.argv.iter());
    words.map(|word| word.strip_prefix("./").unwrap_or(word).as_bytes().to_vec()).collect()
}

/// What is run and differs between two commits and that nobody approved as it is, by path.
///
/// # Errors
/// [`ItemError`] when the trees or the state can't be read.
pub fn unapproved(
    site: Site<'_>,
    task: &TaskRow,
    plan: &Plan,
    head_commit_id: &CommitId,
) -> Result<Vec<Changed>, ItemError> {
    let objects = Objects::open(site.repository.git())?;
    let before = tree::read_tree(&objects, &task.base_commit_id)?;
    let after = tree::read_tree(&objects, head_commit_id)?;
    let named = named(&planned(plan, &[]));
    let approved = approved(site, task)?;
    let paths: BTreeSet<&RepoPath> = before.keys().chain(after.keys()).collect();
    Ok(paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .filter(|path| is_script(path.as_bytes()) || named.contains(path.as_bytes()))
        .map(|path| Changed {
            path: path.clone(),
            object_id: after.get(path).map(|leaf| leaf.object_id.clone()),
        })
        .filter(|changed| {
            !approved
                .get(&changed.path.canonical())
                .is_some_and(|known| known.contains(&content(changed)))
        })
        .collect())
}

fn content(changed: &Changed) -> String {
    changed.object_id.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string)
}

/// What was approved for a task: contents by path.
fn approved(
    site: Site<'_>,
    task: &TaskRow,
) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
    let events = site.store.read(|tx| tx.events(Some(task.id)))?;
    let mut approved: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == APPROVED) {
        for file in event.detail["files"].as_array().into_iter().flatten() {
            let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
            approved.entry(text("path_b64")).or_default().insert(text("content"));
        }
    }
    Ok(approved)
}

/// Stops a task whose head changes what is run: it waits in *needs approval*.
///
/// # Errors
/// [`ItemError::Scripts`] names the files.
pub fn require_approved(
    site: Site<'_>,
    task: &TaskRow,
    plan: &Plan,
    head_commit_id: &CommitId,
) -> Result<(), ItemError> {
    let changed = unapproved(site, task, plan, head_commit_id)?;
    if changed.is_empty() {
        return Ok(());
    }
    let paths: Vec<String> = changed.iter().map(Changed::words).collect();
    let reason = format!("this task changed what is run: {}", paths.join(", "));
    if task.state.may_become(TaskState::NeedsApproval) || task.state.may_become(TaskState::Running)
    {
        site.store.write(|tx| set_state(tx, task, TaskState::NeedsApproval, &reason))?;
    }
    Err(ItemError::Scripts { issue: task.issue, paths })
}

/// Approves what a task's head changes of what is run, as `changed` has it. The task goes back to
/// its place.
///
/// # Errors
/// [`ItemError::ChangedSince`] when the head has another content by now; nothing is approved then.
pub fn approve(
    site: Site<'_>,
    lease: &Lease,
    plan: &Plan,
    changed: &[Changed],
) -> Result<TaskRow, ItemError> {
    let task = read_task(site.store, lease)?;
    let now = unapproved(site, &task, plan, &head(site, &task)?)?;
    if let Some(other) = now.iter().find(|one| !changed.contains(one)) {
        return Err(ItemError::ChangedSince(other.words()));
    }
    let done = done_items(site, &task)?;
    let is_whole = plan.items.iter().all(|item| done.contains_key(&item.id));
    Ok(site.store.write(|tx| {
        let files: Vec<_> = changed
            .iter()
            .map(|one| json!({"path_b64": one.path.canonical(), "content": content(one)}))
            .collect();
        let words: Vec<String> = changed.iter().map(Changed::words).collect();
        tx.log(&Event {
            task: Some(task.id),
            kind: APPROVED,
            actor: Actor::Person,
            detail: json!({"files": files}),
            words: &format!("approved the change of {}", words.join(", ")),
        })?;
        if task.state != TaskState::NeedsApproval {
            return Ok::<_, StoreError>(task.clone());
        }
        let state = if is_whole { TaskState::InReview } else { TaskState::Queued };
        tx.set_task_state(&task, state, "what is run was approved", Actor::Person)
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_say_what_is_run_are_known_by_their_place() {
        for path in [
            "package.json",
            "web/package-lock.json",
            "Makefile",
            "rules.mk",
            "a/Cargo.toml",
            ".github/workflows/ci.yml",
            "crates/x/.cargo/config.toml",
            "jest.config.ts",
            "requirements-dev.txt",
            "tests/conftest.py",
            "build.rs",
        ] {
            assert!(is_script(path.as_bytes()), "{path}");
        }
        for path in [
            "src/main.rs",
            "package.json.md",
            "docs/Makefile.txt",
            "github/workflows/x",
            "src/build.rs.in",
            "jest.rs",
            "xpackage.json",
        ] {
            assert!(!is_script(path.as_bytes()), "{path}");
        }
        assert!(!is_script(b"\xff/x"));
    }
}
