//! A repository with a branch to land and a bare remote beside it, for unit tests.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codeboost_schema::ids::CommitId;

use crate::config::{HeadAfter, MergeMethod};
use crate::forge::Landing;
use crate::forge::local::{Local, LocalOptions};
use crate::git::identity::Identity;
use crate::git::merge::{self, Made, Recipe};
use crate::git::repository::Repository;
use crate::store::testing::World;

/// A repository on `topic` (one commit above `main`), both pushed to a bare remote beside it.
pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) base: CommitId,
    pub(crate) head: CommitId,
}

impl Site {
    pub(crate) fn new() -> Self {
        let world = World::new();
        world.git(["switch", "-q", "-c", "topic"]);
        world.git(["commit", "-q", "--allow-empty", "-m", "work"]);
        world.git(["init", "-q", "--bare", "../remote.git"]);
        world.git(["remote", "add", "origin", "../remote.git"]);
        world.git(["push", "-q", "origin", "main", "topic"]);
        let (base, head) = (world.commit_id("main"), world.commit_id("topic"));
        Self { world, base, head }
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.world.root().parent().expect("a folder").join("remote.git")
    }

    /// What a ref names in a repository; empty when it is not there.
    pub(crate) fn at(&self, folder: &Path, name: &str) -> String {
        let folder = folder.to_str().expect("a plain path");
        self.world.git(["-C", folder, "for-each-ref", "--format=%(objectname)", name])
    }

    pub(crate) fn forge<'w>(&self, repository: &Repository<'w>, remote: Option<&str>) -> Local<'w> {
        self.forge_within(repository, remote, Duration::from_secs(60))
    }

    pub(crate) fn forge_within<'w>(
        &self,
        repository: &Repository<'w>,
        remote: Option<&str>,
        timeout: Duration,
    ) -> Local<'w> {
        let options = LocalOptions {
            remote,
            base_ref: "refs/heads/main",
            head_ref: "refs/heads/topic",
            timeout,
        };
        Local::open(repository, options).expect("a forge")
    }

    pub(crate) fn merge(&self, method: MergeMethod) -> CommitId {
        let identity = Identity { name: "A".into(), email: "a@example.invalid".into() };
        let made = merge::make(
            self.world.repository().git(),
            &Recipe {
                base: &self.base,
                head: &self.head,
                method,
                message: "Land\n",
                identity: &identity,
                time: self.world.context.now(),
            },
        );
        match made.expect("git works") {
            Made::Commit(commit) => commit,
            Made::Conflict(files) => panic!("{files:?}"),
        }
    }

    pub(crate) fn landing<'l>(
        &'l self,
        commit: &'l CommitId,
        head_after: HeadAfter,
    ) -> Landing<'l> {
        Landing {
            base: &self.base,
            head: &self.head,
            commit,
            head_after,
            head_is_there: true,
            method: MergeMethod::Merge,
            message: "Land\n",
        }
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.remote().join("hooks").join(name);
        crate::stage::write(&path, format!("#!/bin/sh\n{script}\n").as_bytes()).expect("a hook");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("a program");
    }

    /// A hook that moves a ref while the push waits for it, as another person's push would.
    pub(crate) fn hook_that_moves(&self, name: &str, to: &str) {
        let script = format!(
            "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
             git update-ref refs/heads/{name} {to}"
        );
        self.hook("pre-receive", &script);
    }
}
