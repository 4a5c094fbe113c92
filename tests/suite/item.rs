//! Items from begin to end: what is committed, what is refused, and that nothing in a workspace is
//! ever run or trusted.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Done, TestEnv};

const PLAN: &str = "\
schema_version: 1
issue: 412
revision: 1
summary: Keep keys.
items:
  - id: P1
    title: 'Keep the key, see #7'
    intent: A repeat must be told from a new one.
    files:
      - {path: src/a.txt, kind: edit, renamed_from: null, change: Say two.}
      - {path: src/new.txt, kind: add, renamed_from: null, change: New.}
    acceptance:
      - {type: cmd, text: sh check.sh}
      - {type: check, text: It is kept.}
    depends_on: []
  - id: P2
    title: Rename b
    intent: It was named badly.
    files:
      - {path: src/c.txt, kind: rename, renamed_from: src/b.txt, change: Another name.}
    acceptance:
      - {type: cmd, text: sh check.sh}
    depends_on: [P1]
questions: []
";

/// A repository `repo` with an approved plan for task 412 on a branch that codeboost made.
pub(crate) fn repo() -> TestEnv {
    repo_with(&[])
}

fn repo_with(files: &[(&str, &str)]) -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/src/a.txt", "one\n");
    env.write("repo/src/b.txt", "b\n");
    env.write("repo/check.sh", "grep -q two src/a.txt\n");
    env.write("repo/.gitignore", "/target/\n");
    for (path, content) in files {
        env.write(Path::new("repo").join(path), content);
    }
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env.write("plan.yaml", PLAN);
    ok(&env, ["init", "-q"]);
    ok(&env, ["task", "add", "412", "--base", "main", "--title", "Lost keys"]);
    approve(&env, "../plan.yaml");
    env
}

/// Imports a plan and approves it with all its commands.
pub(crate) fn approve(env: &TestEnv, plan: &str) {
    ok(env, ["plan", "import", "412", plan]);
    ok(env, ["plan", "approve", "412", "--yes"]);
}

pub(crate) fn ok<const N: usize>(env: &TestEnv, args: [&str; N]) -> Done {
    let done = env.run_in("repo", args);
    assert_eq!(done.code, 0, "{args:?}: {done}");
    done
}

/// Begins an item and returns its workspace.
fn begin(env: &TestEnv, item: &str) -> PathBuf {
    let done = ok(env, ["item", "begin", "412", item, "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    PathBuf::from(value["workspace"].as_str().unwrap())
}

fn end(env: &TestEnv) -> Done {
    env.run_in("repo", ["item", "end"])
}

const HEAD: &str = "refs/heads/codeboost/issue-412-lost-keys";

/// The redactor, and the folder of this repository's workspaces.
fn redact(env: &TestEnv, text: &str) -> String {
    let folder = std::fs::read_dir(env.path("home/.local/share/codeboost/workspaces"))
        .ok()
        .and_then(|mut entries| entries.next())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let text = env.redact(text);
    folder.map_or(text.clone(), |folder| text.replace(&folder, "[REPO]"))
}

/// The commits of the task's branch, oldest first: subject and files.
fn history(env: &TestEnv) -> String {
    let range = format!("main..{HEAD}");
    env.git("repo", ["log", "--reverse", "--name-status", "--format=%s", &range])
}

/// Every ref, the index and the work tree of the person.
fn everything(env: &TestEnv) -> String {
    env.git("repo", ["for-each-ref"])
        + env.git("repo", ["status", "--porcelain=v2", "--branch"]).as_str()
}

fn state(env: &TestEnv) -> String {
    let done = ok(env, ["status", "412", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    let text = value.to_string();
    // Wherever it stands in the report.
    let key = "\"state\":\"";
    let at = text.find(key).unwrap_or_else(|| panic!("{text}")) + key.len();
    text[at..].split('"').next().unwrap().to_owned()
}

fn put(folder: &Path, path: &str, content: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn two_items_become_two_commits_on_the_tasks_branch() {
    let env = repo();
    let before = env.git("repo", ["status", "--porcelain=v2", "--branch"]);
    let begun = env.run_in("repo", ["item", "begin", "412", "P1"]);
    assert_snapshot!(redact(&env, &begun.to_string()));
    let workspaces = env.path("home/.local/share/codeboost/workspaces");
    let mine = std::fs::read_dir(workspaces).unwrap().next().unwrap().unwrap().path();
    let folder = mine.join("412-P1");
    let prompt = std::fs::read_to_string(mine.join("412-P1.prompt.md")).unwrap();
    assert!(prompt.contains("\"title\": \"Keep the key, see #7\""), "{prompt}");
    assert!(prompt.contains("\n       sh check.sh\n"), "{prompt}");

    put(&folder, "src/a.txt", "two\n");
    put(&folder, "src/new.txt", "new\n");
    put(&folder, "target/build", "x");
    let ended = end(&env);
    assert_snapshot!(redact(&env, &ended.to_string()));
    assert!(folder.exists(), "left-out files would be lost");
    assert_snapshot!(redact(&env, &ok(&env, ["item", "list"]).to_string()));

    let folder = begin(&env, "P2");
    std::fs::rename(folder.join("src/b.txt"), folder.join("src/c.txt")).unwrap();
    let ended = end(&env);
    assert_snapshot!(redact(&env, &ended.to_string()));
    assert!(!folder.exists(), "nothing is lost by removing it");
    assert_snapshot!(history(&env));
    let message = env.git("repo", ["log", "-1", "--format=%B%an%n%cn", &format!("{HEAD}~1")]);
    assert_snapshot!(message);
    assert_eq!(env.git("repo", ["show", &format!("{HEAD}:src/a.txt")]), "two");
    assert_eq!(state(&env), "in review");
    assert_eq!(env.git("repo", ["status", "--porcelain=v2", "--branch"]), before);
    let ledger = ok(&env, ["ledger", "show", "412", "--format", "json"]).stdout;
    let ledger: Value = serde_json::from_str(&ledger).unwrap();
    let text = ledger.to_string();
    assert_eq!(text.matches("\"runner\"").count(), 2, "{text}");
    env.git("repo", ["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn an_item_begins_only_when_everything_it_needs_is_there() {
    let env = repo();
    let before = everything(&env);
    let refuse = |args: &[&str]| {
        let done = env.run_in("repo", args);
        assert_eq!(everything(&env), before, "{args:?}");
        redact(&env, &done.to_string())
    };
    assert_snapshot!("begin_dependency", refuse(&["item", "begin", "412", "P2"]));
    assert_snapshot!("begin_no_item", refuse(&["item", "begin", "412", "P9"]));
    assert_snapshot!("begin_bad_item", refuse(&["item", "begin", "412", "p1"]));
    assert_snapshot!("begin_at_existing", refuse(&["item", "begin", "412", "P1", "--at", "src"]));
    assert_snapshot!("begin_in_git", refuse(&["item", "begin", "412", "P1", "--at", ".git/x"]));
    assert_snapshot!("end_not_begun", refuse(&["item", "end"]));
    assert_snapshot!("abandon_not_begun", refuse(&["item", "abandon"]));
    let folder = begin(&env, "P1");
    assert_snapshot!("begin_twice", refuse(&["item", "begin", "412", "P1"]));
    assert_snapshot!("begin_other", refuse(&["item", "begin", "412", "P2"]));
    assert_snapshot!("end_other", refuse(&["item", "end", "412", "P2"]));
    assert_snapshot!("begin_again", refuse(&["item", "begin", "412", "P1", "--again"]));
    assert!(folder.exists(), "the old one is kept aside");
    assert_snapshot!("abandon", refuse(&["item", "abandon"]));
    assert_eq!(state(&env), "queued");
}

#[test]
fn a_plan_has_to_be_approved_first() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/src/a.txt", "one\n");
    env.write("repo/src/b.txt", "b\n");
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env.write("plan.yaml", PLAN);
    ok(&env, ["init", "-q"]);
    ok(&env, ["task", "add", "412", "--base", "main"]);
    let begin = || env.run_in("repo", ["item", "begin", "412", "P1"]).to_string();
    assert_snapshot!("begin_no_plan", begin());
    ok(&env, ["plan", "import", "412", "../plan.yaml"]);
    assert_snapshot!("begin_not_approved", begin());
}

#[test]
fn a_branch_that_moved_or_is_checked_out_is_not_moved() {
    let env = repo();
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    let branch = HEAD.strip_prefix("refs/heads/").unwrap();
    env.git("repo", ["checkout", "-q", branch]);
    let before = everything(&env);
    assert_snapshot!("end_checked_out", redact(&env, &end(&env).to_string()));
    assert_eq!(everything(&env), before);
    env.git("repo", ["checkout", "-q", "main"]);
    env.git("repo", ["worktree", "add", "-q", "../other", branch]);
    assert_eq!(end(&env).code, 3, "also in a linked work tree");
    env.git("repo", ["worktree", "remove", "../other"]);
    let tree = env.git("repo", ["rev-parse", "main^{tree}"]);
    let moved = env.git("repo", ["commit-tree", &tree, "-p", HEAD, "-m", "by hand"]);
    env.git("repo", ["update-ref", HEAD, &moved]);
    let before = everything(&env);
    assert_snapshot!("end_moved", redact(&env, &end(&env).to_string()));
    assert_eq!(everything(&env), before);
    let folder = {
        let args = ["item", "begin", "412", "P1", "--again", "--format", "json"];
        let value: Value = serde_json::from_str(&ok(&env, args).stdout).unwrap();
        PathBuf::from(value["workspace"].as_str().unwrap())
    };
    put(&folder, "src/a.txt", "two\n");
    assert_eq!(end(&env).code, 0);
    assert_eq!(env.git("repo", ["rev-parse", &format!("{HEAD}^")]), moved);
}

#[test]
fn an_item_without_changes_is_planned_but_unchanged() {
    let env = repo();
    let before = everything(&env);
    begin(&env, "P1");
    assert_snapshot!(redact(&env, &end(&env).to_string()));
    assert_eq!(everything(&env), before);
    assert_snapshot!(ok(&env, ["item", "list"]).to_string());
    begin(&env, "P2");
    assert_eq!(end(&env).code, 0);
    assert_eq!(state(&env), "in review");
}

#[test]
fn commits_made_in_the_workspace_are_undone_and_made_again_as_one() {
    let env = repo();
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    env.git(&folder, ["commit", "-q", "-am", "mine\n\nPlan-Item: P2"]);
    put(&folder, "src/new.txt", "new\n");
    env.git(&folder, ["add", "-A"]);
    env.git(&folder, ["commit", "-q", "-m", "more"]);
    assert_snapshot!(redact(&env, &end(&env).to_string()));
    assert_snapshot!(history(&env), @r"
    P1: Keep the key, see ＃7

    M	src/a.txt
    A	src/new.txt
    ");
    assert!(folder.exists(), "the commits would be lost");
}

#[test]
fn a_change_out_of_scope_is_committed_and_pauses_the_task() {
    let env = repo();
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    put(&folder, "src/b.txt", "changed\n");
    let done = end(&env);
    assert_snapshot!(redact(&env, &done.to_string()));
    assert_eq!(done.code, 4);
    assert_eq!(state(&env), "needs amendment");
    assert_snapshot!(history(&env), @r"
    P1: Keep the key, see ＃7

    M	src/a.txt
    M	src/b.txt
    ");
    let refused = env.run_in("repo", ["item", "begin", "412", "P2"]);
    assert_snapshot!(redact(&env, &refused.to_string()));
    // A revision that says nothing of the file does not help; one that declares it does.
    env.write("plan2.yaml", PLAN.replace("Keep keys.", "Keep all keys."));
    approve(&env, "../plan2.yaml");
    assert_eq!(env.run_in("repo", ["item", "begin", "412", "P2"]).code, 3);
    let declared = "      - {path: src/b.txt, kind: edit, renamed_from: null, change: Say changed.}\n    acceptance";
    env.write("plan3.yaml", PLAN.replacen("    acceptance", declared, 1));
    approve(&env, "../plan3.yaml");
    begin(&env, "P2");
    let log = ok(&env, ["log", "412"]).stdout;
    assert!(log.contains("out of scope"), "the evidence stays: {log}");
}

#[test]
fn a_paused_task_goes_on_when_asked_and_when_the_change_is_undone() {
    let env = repo();
    assert_snapshot!("go_on_not_paused", env.run_in("repo", ["item", "go-on"]).to_string());
    let folder = begin(&env, "P1");
    put(&folder, "src/b.txt", "changed\n");
    assert_eq!(end(&env).code, 4);
    assert_snapshot!("go_on", ok(&env, ["item", "go-on"]).to_string());
    let folder = begin(&env, "P1");
    put(&folder, "src/b.txt", "b\n");
    let done = end(&env);
    assert_eq!(done.code, 4, "putting it back is not declared either: {done}");
    // What is back as it was needs no declaration.
    begin(&env, "P2");
}

#[test]
fn a_change_out_of_scope_may_be_left_to_the_review_at_once() {
    let env = repo();
    let folder = begin(&env, "P1");
    put(&folder, "src/b.txt", "changed\n");
    let done = env.run_in("repo", ["item", "end", "--go-on"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.contains("out of scope  src/b.txt"), "{done}");
    begin(&env, "P2");
}

#[test]
fn what_is_not_safe_is_refused_with_a_list_and_can_be_mended() {
    let env = repo_with(&[("sub/x", "x")]);
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    symlink("/etc/passwd", folder.join("src/new.txt")).unwrap();
    put(&folder, "nested/.git/config", "[core]\n\tfsmonitor = false\n");
    put(&folder, "sub/.GIT/hooks/pre-commit", "x");
    put(&folder, "line\nfeed", "x");
    std::fs::hard_link(env.path("repo/check.sh"), folder.join("hard")).unwrap();
    let mut command = env.command("mkfifo", ".");
    assert_eq!(env.finish(command.arg(folder.join("pipe"))).code, 0);
    let before = everything(&env);
    let done = end(&env);
    assert_snapshot!(redact(&env, &done.to_string()));
    assert_eq!(done.code, 1);
    assert_eq!(everything(&env), before);
    assert_eq!(state(&env), "needs human");
    let json = env.run_in("repo", ["item", "end", "--format", "json"]);
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(value["result"], "refused");
    assert_eq!(value["violations"].as_array().unwrap().len(), 7, "{value}");
    for path in ["src/new.txt", "nested", "sub/.GIT", "line\nfeed", "hard", "pipe"] {
        let path = folder.join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    let done = end(&env);
    assert_eq!(done.code, 0, "{done}");
    assert_snapshot!(history(&env), @r"
    P1: Keep the key, see ＃7

    M	src/a.txt
    ");
}

/// A program that leaves a mark when it is run.
fn trap(env: &TestEnv, name: &str) -> String {
    let path = env.path(format!("traps/{name}"));
    let script = format!("#!/bin/sh\necho {name} >> {}\ncat\n", env.path("sprung").display());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Everything that git can be told to run, planted in the `.git` of a workspace.
fn plant(env: &TestEnv, folder: &Path) {
    let git = folder.join(".git");
    let mut config = String::from("[core]\n\trepositoryformatversion = 1\n\tbare = false\n");
    let mut set = |section: &str, key: &str, value: &str| {
        config.push_str(&format!("[{section}]\n\t{key} = {value}\n"));
    };
    for key in ["fsmonitor", "sshCommand", "editor", "pager", "askPass", "gitProxy"] {
        set("core", key, &trap(env, key));
    }
    set("core", "alternateRefsCommand", &trap(env, "alternateRefsCommand"));
    set("core", "hooksPath", env.path("traps/hooks").to_str().unwrap());
    set("core", "worktree", env.path("elsewhere").to_str().unwrap());
    set("core", "attributesFile", env.path("traps/attributes").to_str().unwrap());
    set("core", "sparseCheckout", "true");
    set("core", "ignoreCase", "true");
    set("core", "autocrlf", "true");
    set("core", "fileMode", "false");
    set("core", "symlinks", "false");
    set("credential", "helper", &format!("!{}", trap(env, "credential")));
    set("diff", "external", &trap(env, "diff-external"));
    set("diff \"evil\"", "textconv", &trap(env, "textconv"));
    set("diff \"evil\"", "command", &trap(env, "diff-command"));
    set("merge \"evil\"", "driver", &trap(env, "merge-driver"));
    for key in ["clean", "smudge", "process"] {
        set("filter \"evil\"", key, &trap(env, &format!("filter-{key}")));
    }
    set("filter \"evil\"", "required", "true");
    set("gpg", "program", &trap(env, "gpg"));
    set("commit", "gpgSign", "true");
    set("sequence", "editor", &trap(env, "sequence-editor"));
    set("interactive", "diffFilter", &trap(env, "diff-filter"));
    set("uploadpack", "packObjectsHook", &trap(env, "pack-objects-hook"));
    for name in ["status", "diff", "add", "commit", "hash-object", "rev-parse"] {
        set("alias", name, &format!("!{}", trap(env, &format!("alias-{name}"))));
        set("pager", name, &trap(env, &format!("pager-{name}")));
    }
    set("remote \"origin\"", "url", &format!("ext::{}", trap(env, "remote")));
    set("remote \"origin\"", "promisor", "true");
    set("extensions", "partialClone", "origin");
    set("protocol \"ext\"", "allow", "always");
    set("submodule \"x\"", "update", &format!("!{}", trap(env, "submodule")));
    set("trace2", "eventTarget", env.path("sprung").to_str().unwrap());
    set("credential \"https://example.invalid\"", "helper", &trap(env, "credential-of-url"));
    set("gpg", "format", "ssh");
    set("gpg \"ssh\"", "program", &trap(env, "gpg-ssh"));
    set("gpg \"ssh\"", "defaultKeyCommand", &trap(env, "gpg-key-command"));
    set("remote \"origin\"", "uploadpack", &trap(env, "uploadpack"));
    set("remote \"origin\"", "receivepack", &trap(env, "receivepack"));
    set("remote \"origin\"", "vcs", &trap(env, "vcs"));
    set("trailer \"item\"", "cmd", &trap(env, "trailer-cmd"));
    set("trailer \"item\"", "command", &trap(env, "trailer-command"));
    set("difftool \"evil\"", "cmd", &trap(env, "difftool"));
    set("mergetool \"evil\"", "cmd", &trap(env, "mergetool"));
    set("tar \"evil\"", "command", &trap(env, "tar"));
    set("browser \"evil\"", "cmd", &trap(env, "browser"));
    set("hook \"evil\"", "event", "pre-commit");
    set("hook \"evil\"", "command", &trap(env, "hook-command"));
    set("extensions", "worktreeConfig", "true");
    let all = env.path("traps/included-if").display().to_string();
    set("includeIf \"gitdir:/**\"", "path", &all);
    set("includeIf \"onbranch:**\"", "path", &all);
    set("include", "path", env.path("traps/included").to_str().unwrap());
    std::fs::write(git.join("config"), config).unwrap();
    let included = format!("[core]\n\tfsmonitor = {}\n", trap(env, "included-fsmonitor"));
    std::fs::write(env.path("traps/included"), included).unwrap();
    for (path, name) in [
        (env.path("traps/included-if"), "included-if-fsmonitor"),
        (git.join("config.worktree"), "worktree-fsmonitor"),
    ] {
        std::fs::write(path, format!("[core]\n\tfsmonitor = {}\n", trap(env, name))).unwrap();
    }
    std::fs::write(env.path("traps/attributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "post-rewrite",
        "update",
        "pre-receive",
        "post-receive",
        "post-update",
        "push-to-checkout",
        "proc-receive",
        "applypatch-msg",
        "pre-applypatch",
        "sendemail-validate",
    ] {
        for place in [git.join("hooks"), env.path("traps/hooks")] {
            std::fs::create_dir_all(&place).unwrap();
            std::fs::copy(trap(env, &format!("hook-{hook}")), place.join(hook)).unwrap();
        }
    }
    put(&git, "info/attributes", "* filter=evil diff=evil merge=evil text=auto\n");
    put(&git, "info/sparse-checkout", "/nothing\n");
    put(&git, "info/exclude", "*\n");
    put(&git, "info/grafts", "0000000000000000000000000000000000000000\n");
    put(&git, "objects/info/alternates", "/nonexistent\n");
    put(&git, "refs/replace/ce013625030ba8dba906f756967f9e9ca394464a", "junk\n");
    put(&git, "commondir", "/nonexistent\n");
    put(&git, "shallow", "junk\n");
    put(&git, "index", "junk");
    put(&git, "HEAD", "ref: refs/heads/../../../../etc/passwd\n");
}

#[test]
fn nothing_that_is_planted_in_a_workspace_is_ever_run() {
    let attributes = "* filter=evil diff=evil merge=evil text=auto eol=crlf ident\n";
    for how in ["planted", "gitdir-file", "gitdir-link", "gone"] {
        let env = repo_with(&[(".gitattributes", attributes), ("mode.sh", "exit 0\n")]);
        let folder = begin(&env, "P1");
        put(&folder, "src/a.txt", "two\n");
        put(&folder, "src/new.txt", "$Id$\r\nnew\n");
        let git = folder.join(".git");
        plant(&env, &folder);
        match how {
            "gitdir-file" => {
                std::fs::rename(&git, env.path("moved-git")).unwrap();
                put(&folder, ".git", &format!("gitdir: {}\n", env.path("moved-git").display()));
            }
            "gitdir-link" => {
                std::fs::rename(&git, env.path("moved-git")).unwrap();
                symlink(env.path("moved-git"), &git).unwrap();
            }
            "gone" => std::fs::remove_dir_all(&git).unwrap(),
            _ => {}
        }
        let done = end(&env);
        assert_eq!(done.code, 0, "{how}: {done}");
        let sprung = std::fs::read_to_string(env.path("sprung")).unwrap_or_default();
        assert_eq!(sprung, "", "{how}");
        assert_eq!(
            env.git("repo", ["diff-tree", "-r", "--no-renames", "--name-status", "main", HEAD]),
            "M\tsrc/a.txt\nA\tsrc/new.txt",
            "{how}"
        );
        let blob = env.git("repo", ["cat-file", "blob", &format!("{HEAD}:src/new.txt")]);
        assert_eq!(blob, "$Id$\r\nnew", "{how}: the exact bytes");
        env.git("repo", ["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn nothing_that_is_planted_is_run_by_whatever_else_looks_at_a_workspace() {
    let env = repo();
    let plant_all = |folder: &Path| {
        put(folder, "src/a.txt", "two\n");
        put(folder, "src/b.txt", "stray\n");
        plant(&env, folder);
    };
    plant_all(&begin(&env, "P1"));
    for args in [&["status"][..], &["item", "list"], &["doctor"], &["log", "412"]] {
        let done = env.run_in("repo", args);
        assert!([0, 1].contains(&done.code), "{args:?}: {done}");
    }
    ok(&env, ["item", "begin", "412", "P1", "--again"]);
    ok(&env, ["item", "abandon"]);
    plant_all(&begin(&env, "P1"));
    assert_eq!(end(&env).code, 4, "out of scope");
    for args in [&["item", "go-on"][..], &["review", "412"], &["render", "412"], &["run", "412"]] {
        let done = env.run_in("repo", args);
        assert_eq!(done.code, 0, "{args:?}: {done}");
    }
    ok(&env, ["task", "cancel", "412"]);
    env.run_in("repo", ["task", "remove", "412"]);
    assert_eq!(std::fs::read_to_string(env.path("sprung")).unwrap_or_default(), "");
}

#[test]
fn each_thing_that_is_not_content_is_refused_by_its_name() {
    type Plant = fn(&TestEnv, &Path);
    let cases: &[(&str, Plant)] = &[
        ("a link out of the repository", |_, at| {
            symlink("../../x", at.join("src/new.txt")).unwrap();
        }),
        ("a link into .git", |_, at| symlink("../.git/config", at.join("src/new.txt")).unwrap()),
        ("a link to the root", |_, at| symlink("..", at.join("src/new.txt")).unwrap()),
        ("a link that goes nowhere", |_, at| symlink("nowhere", at.join("src/new.txt")).unwrap()),
        ("a link where a file was", |_, at| {
            std::fs::remove_file(at.join("src/a.txt")).unwrap();
            symlink("b.txt", at.join("src/a.txt")).unwrap();
        }),
        ("a folder that became a link", |env, at| {
            std::fs::rename(at.join("src"), env.path("moved")).unwrap();
            symlink(env.path("moved"), at.join("src")).unwrap();
        }),
        ("a link that is not declared, pointed elsewhere", |_, at| {
            std::fs::remove_file(at.join("link")).unwrap();
            symlink("src/b.txt", at.join("link")).unwrap();
        }),
        ("a link that is not declared, gone", |_, at| {
            std::fs::remove_file(at.join("link")).unwrap();
        }),
        ("a link that is not declared, now a file", |_, at| {
            std::fs::remove_file(at.join("link")).unwrap();
            put(at, "link", "src/a.txt");
        }),
        ("a repository inside", |env, at| {
            env.git(at, ["init", "-q", "inner"]);
            put(at, "inner/x", "x");
        }),
        ("another spelling of .git", |_, at| put(at, ".Git/config", "x")),
        ("a short name of .git", |_, at| put(at, "git~1/config", "x")),
        ("an unseen character in .git", |_, at| put(at, ".g\u{200c}it/config", "x")),
        ("a stream of .git", |_, at| put(at, ".git::$INDEX_ALLOCATION/config", "x")),
        ("a file of the person's checkout under another name", |env, at| {
            std::fs::hard_link(env.path("repo/src/a.txt"), at.join("src/new.txt")).unwrap();
        }),
        ("a pipe", |env, at| {
            let mut command = env.command("mkfifo", ".");
            assert_eq!(env.finish(command.arg(at.join("src/new.txt"))).code, 0);
        }),
        ("a socket", |_, at| {
            drop(std::os::unix::net::UnixListener::bind(at.join("src/new.txt")).unwrap());
        }),
        ("a submodule with content", |_, at| put(at, "module/x", "x")),
        ("a submodule that became a file", |_, at| {
            std::fs::remove_dir(at.join("module")).unwrap();
            put(at, "module", "x");
        }),
    ];
    let env = repo();
    symlink("src/a.txt", env.path("repo/link")).unwrap();
    env.git("repo", ["add", "-A"]);
    let id = "1".repeat(40);
    env.git("repo", ["update-index", "--add", "--cacheinfo", "160000", &id, "module"]);
    env.git("repo", ["commit", "-q", "-m", "link and module"]);
    env.git("repo", ["update-ref", HEAD, "main"]);
    let before = everything(&env);
    let mut told = String::new();
    for (name, plant) in cases {
        let args = ["item", "begin", "412", "P1", "--again", "--format", "json"];
        let value: Value = serde_json::from_str(&ok(&env, args).stdout).unwrap();
        let folder = PathBuf::from(value["workspace"].as_str().unwrap());
        let _ = std::fs::create_dir(folder.join("module"));
        put(&folder, "src/a.txt", "two\n");
        plant(&env, &folder);
        let done = env.run_in("repo", ["item", "end", "--format", "json"]);
        assert_eq!(everything(&env), before, "{name}");
        let report: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        let violations: Vec<_> = report["violations"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one["words"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(done.code, 1, "{name}: {done}");
        assert!(!violations.is_empty(), "{name}: {done}");
        told += &format!("{name}: {}\n", violations.join("; "));
        ok(&env, ["item", "abandon"]);
    }
    assert_snapshot!(redact(&env, &told));
}

#[test]
fn the_traps_do_spring_where_git_is_run_in_the_workspace() {
    let env = repo_with(&[(".gitattributes", "* filter=evil\n")]);
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    let filter = trap(&env, "filter-clean");
    env.git(&folder, ["config", "filter.evil.clean", &filter]);
    env.git(&folder, ["config", "core.fsmonitor", &trap(&env, "fsmonitor")]);
    std::fs::remove_file(folder.join(".git/info/attributes")).unwrap();
    env.git(&folder, ["status", "--short"]);
    let sprung = std::fs::read_to_string(env.path("sprung")).unwrap_or_default();
    assert!(sprung.contains("fsmonitor") && sprung.contains("filter-clean"), "{sprung:?}");
}

#[test]
fn settings_of_the_repository_and_the_person_change_nothing() {
    let env = repo_with(&[(".gitattributes", "*.txt filter=mine text=auto eol=crlf\n")]);
    for (key, value) in [
        ("filter.mine.clean", trap(&env, "clean")),
        ("filter.mine.smudge", trap(&env, "smudge")),
        ("filter.mine.required", "true".to_owned()),
        ("core.autocrlf", "true".to_owned()),
        ("core.fsmonitor", trap(&env, "fsmonitor")),
        ("core.hooksPath", env.path("traps/hooks").to_str().unwrap().to_owned()),
        ("commit.gpgSign", "true".to_owned()),
        ("gpg.program", trap(&env, "gpg")),
        ("init.templateDir", env.path("traps/template").to_str().unwrap().to_owned()),
        ("core.sparseCheckout", "true".to_owned()),
        ("user.name", "The Project".to_owned()),
        ("user.email", "project@example.invalid".to_owned()),
    ] {
        env.git("repo", ["config", key, &value]);
        env.write("home/.gitconfig", "[user]\n\tname = Me\n[alias]\n\tstatus = !false\n");
    }
    for hook in ["post-checkout", "reference-transaction", "pre-commit", "post-index-change"] {
        std::fs::create_dir_all(env.path("traps/hooks")).unwrap();
        std::fs::create_dir_all(env.path("traps/template/hooks")).unwrap();
        let name = format!("hook-{hook}");
        std::fs::copy(trap(&env, &name), env.path("traps/hooks").join(hook)).unwrap();
        std::fs::copy(trap(&env, &name), env.path("traps/template/hooks").join(hook)).unwrap();
    }
    let folder = begin(&env, "P1");
    assert_eq!(std::fs::read_to_string(folder.join("src/a.txt")).unwrap(), "one\n");
    put(&folder, "src/a.txt", "two\n");
    let done = end(&env);
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(std::fs::read_to_string(env.path("sprung")).unwrap_or_default(), "");
    let author = env.git("repo", ["log", "-1", "--format=%an <%ae> %cn", HEAD]);
    assert_eq!(author, "The Project <project@example.invalid> The Project");
}

#[test]
fn names_of_any_form_that_the_repository_has_are_kept() {
    use std::os::unix::ffi::OsStrExt as _;
    let env = repo_with(&[(":(glob)**", "x"), ("with space ", "x"), ("-n", "x"), ("A.txt", "x")]);
    let raw = std::ffi::OsStr::from_bytes(b"raw\xff\n");
    std::fs::write(env.path("repo").join(raw), "x").unwrap();
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "odd"]);
    env.git("repo", ["update-ref", HEAD, "main"]);
    let folder = begin(&env, "P1");
    for name in [":(glob)**", "with space ", "-n"] {
        put(&folder, name, "y");
    }
    std::fs::write(folder.join(raw), "y").unwrap();
    std::fs::rename(folder.join("A.txt"), folder.join("a.txt")).unwrap();
    let done = end(&env);
    assert_eq!(done.code, 4, "{done}");
    assert_snapshot!(redact(&env, &done.stdout));
    assert_snapshot!(
        env.git("repo", ["diff-tree", "-r", "--no-renames", "--name-status", "main", HEAD])
    );
}

#[test]
fn killed_between_any_two_steps_it_goes_on_and_does_nothing_twice() {
    let mut env = repo();
    let log = env.path("points");
    env.set("CODEBOOST_CRASH_LOG", log.to_str().unwrap());
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    assert_eq!(end(&env).code, 0);
    let points: Vec<_> = std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect();
    assert!(points.len() >= 7, "{points:?}");
    for point in &points {
        let mut env = repo();
        let kill = |env: &mut TestEnv, args: &[&str]| {
            env.set("CODEBOOST_CRASH_AT", point);
            let done = env.run_in("repo", args);
            env.set("CODEBOOST_CRASH_AT", "");
            done.code
        };
        let folder = if point.starts_with("begin") {
            assert_eq!(kill(&mut env, &["item", "begin", "412", "P1"]), -1, "{point}");
            begin(&env, "P1")
        } else {
            begin(&env, "P1")
        };
        put(&folder, "src/a.txt", "two\n");
        if point.starts_with("end") {
            assert_eq!(kill(&mut env, &["item", "end", "412", "P1"]), -1, "{point}");
            let done = env.run_in("repo", ["item", "end", "412", "P1"]);
            // After the last step there is nothing left to end.
            let expected = if point == "end-done" { 3 } else { 0 };
            assert_eq!(done.code, expected, "{point}: {done}");
        } else {
            assert_eq!(end(&env).code, 0, "{point}");
        }
        assert_eq!(history(&env), "P1: Keep the key, see ＃7\n\nM\tsrc/a.txt", "{point}");
        let ledger = ok(&env, ["ledger", "show", "412", "--format", "json"]).stdout;
        let head = env.git("repo", ["rev-parse", HEAD]);
        assert!(ledger.contains(&head), "{point}: {ledger}");
        assert_eq!(state(&env), "queued", "{point}");
        let list = ok(&env, ["item", "list", "412"]).stdout;
        assert!(list.starts_with("P1  done"), "{point}: {list}");
        env.git("repo", ["fsck", "--strict", "--no-dangling"]);
        let rubbish = std::fs::read_dir(folder.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect::<Vec<_>>();
        assert_eq!(rubbish, Vec::<String>::new(), "{point}");
    }
}

#[test]
fn a_recorded_commit_that_can_not_land_any_more_is_taken_back() {
    let mut env = repo();
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    env.set("CODEBOOST_CRASH_AT", "end-recorded");
    assert_eq!(end(&env).code, -1);
    env.set("CODEBOOST_CRASH_AT", "");
    let tree = env.git("repo", ["rev-parse", "main^{tree}"]);
    let moved = env.git("repo", ["commit-tree", &tree, "-p", "main", "-m", "by hand"]);
    env.git("repo", ["update-ref", HEAD, &moved]);
    assert_eq!(end(&env).code, 3, "the branch moved");
    assert_eq!(env.git("repo", ["rev-parse", HEAD]), moved);
    assert!(folder.exists());
    ok(&env, ["item", "abandon"]);
}

#[test]
fn a_workspace_lies_where_it_is_asked_for() {
    let env = repo();
    let args = ["item", "begin", "412", "P1", "--at", "../mine", "--format", "json"];
    let value: Value = serde_json::from_str(&ok(&env, args).stdout).unwrap();
    assert_eq!(value["workspace"], env.path("mine").to_str().unwrap());
    assert!(env.path("mine.prompt.md").is_file());
    put(&env.path("mine"), "src/a.txt", "two\n");
    ok(&env, ["item", "end", "--workspace", "keep"]);
    assert!(env.path("mine").is_dir());
}

#[test]
fn a_repository_with_sha_256_works_the_same() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "--object-format=sha256", "repo"]);
    env.write("repo/src/a.txt", "one\n");
    env.write("repo/src/b.txt", "b\n");
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env.write("plan.yaml", PLAN);
    ok(&env, ["init", "-q"]);
    ok(&env, ["task", "add", "412", "--base", "main", "--title", "Lost keys"]);
    approve(&env, "../plan.yaml");
    let folder = begin(&env, "P1");
    put(&folder, "src/a.txt", "two\n");
    assert_eq!(end(&env).code, 0);
    assert_eq!(env.git("repo", ["show", &format!("{HEAD}:src/a.txt")]), "two");
}

#[test]
fn work_of_a_bare_repository_and_of_a_linked_work_tree_lands_too() {
    let env = repo();
    env.git("repo", ["worktree", "add", "-q", "--detach", "../linked", "main"]);
    let done = env.run_in("linked", ["item", "begin", "412", "P1", "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    put(Path::new(value["workspace"].as_str().unwrap()), "src/a.txt", "two\n");
    let done = env.run_in("linked", ["item", "end"]);
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(env.git("repo", ["show", &format!("{HEAD}:src/a.txt")]), "two");
}
