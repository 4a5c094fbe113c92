//! Setting a repository up, its keys, its back-up.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;

use crate::support::TestEnv;

fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.write("repo/package.json", r#"{"scripts": {"test": "x", "lint": "y", "deploy": "z"}}"#);
    env.write("repo/Makefile", "check:\n\ttrue\ninstall:\n\ttrue\n");
    env.write("repo/Cargo.toml", "[package]\n");
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env
}

#[test]
fn init_makes_the_state_once_and_proposes_commands_without_allowing_any() {
    let env = repo();
    let status = env.git("repo", ["status", "--porcelain"]);
    assert_snapshot!(env.redact(&env.run_in("repo", ["init"]).to_string()));
    assert_eq!(env.git("repo", ["status", "--porcelain"]), status, "the checkout is untouched");
    let again = env.run_in("repo", ["init", "--format", "json"]);
    let text = env.redact(&again.to_string());
    let key = text.lines().find(|line| line.contains("public_key")).unwrap().to_owned();
    assert_snapshot!(text.replace(&key, "  [PUBLIC KEY]"));
    assert_snapshot!(env.run_in("repo", ["log"]));
}

#[test]
fn commands_are_allowed_and_disallowed_only_by_name() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    let init = |args: &[&str]| {
        let done = env.run_in("repo", [&["init"], args].concat());
        env.redact(&done.to_string())
    };
    assert_snapshot!(init(&["--allow", "cargo test", "--allow", "npm run 'a b'"]));
    assert_snapshot!(init(&["--disallow", "cargo test"]));
    assert_snapshot!(init(&["--allow", "cargo test | tee x"]));
    assert_snapshot!(env.run_in("repo", ["log"]));
}

#[test]
fn init_works_in_a_bare_repository_and_before_the_first_commit() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "--bare", "bare.git"]);
    assert_snapshot!(env.redact(&env.run_in("bare.git", ["init"]).to_string()));
    assert!(env.path("bare.git/codeboost/state.db").exists());
}

#[test]
fn outside_a_repository_and_before_init_the_next_step_is_told() {
    let env = repo();
    assert_snapshot!(env.redact(&env.run(["init"]).to_string()));
    assert_snapshot!(env.run_in("repo", ["task", "list"]));
    assert_snapshot!(env.run_in("repo", ["task", "list", "--format", "json"]));
}

#[test]
fn inherited_git_variables_and_configuration_change_nothing() {
    let mut env = repo();
    env.git(".", ["init", "-q", "other"]);
    let other = env.path("other/.git");
    env.set("GIT_DIR", other.to_str().unwrap());
    env.set("GIT_COMMON_DIR", other.to_str().unwrap());
    let done = env.run_in("repo", ["init"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(env.path("repo/.git/codeboost/state.db").exists());
    assert!(!env.path("other/.git/codeboost").exists());
}

#[test]
fn a_wrong_configuration_is_told_with_its_place() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    env.write("repo/.git/codeboost/config.yaml", "merge:\n  method: rebase\n");
    assert_snapshot!(env.redact(&env.run_in("repo", ["key", "show"]).to_string()));
    let path = env.path("repo/.git/codeboost/config.yaml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_snapshot!(env.redact(&env.run_in("repo", ["key", "show"]).to_string()));
}

#[test]
fn an_exported_identity_makes_another_clone_the_same_repository() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    let done = env.run_in("repo", ["key", "export", "../ci.json", "--name", "ci"]);
    let key = done.stdout.split("public_key: '").nth(1).unwrap().split('\'').next().unwrap();
    assert_snapshot!(env.redact(&done.to_string()).replace(key, "[PUBLIC KEY]"));
    let mode = std::fs::metadata(env.path("ci.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_snapshot!(env.run_in("repo", ["key", "export", "../ci.json"]));

    env.git(".", ["clone", "-q", "repo", "clone"]);
    let done = env.run_in("clone", ["init", "--identity", "../ci.json"]);
    assert_eq!(done.code, 0, "{done}");
    let show = |folder| env.run_in(folder, ["key", "show", "--format", "json"]).stdout;
    assert!(show("clone").contains(key));
    let repository = |text: String| text.lines().nth(1).unwrap().to_owned();
    assert_eq!(repository(show("clone")), repository(show("repo")));

    // Both give the same task the same names.
    for folder in ["repo", "clone"] {
        assert_eq!(env.run_in(folder, ["task", "add", "5", "--base", "HEAD"]).code, 0);
    }
    let id = |folder| {
        let list = env.run_in(folder, ["task", "list", "--format", "json"]).stdout;
        list.lines().find(|line| line.contains("\"id\"")).unwrap().to_owned()
    };
    assert_eq!(id("repo"), id("clone"));

    // The place that made it has an identity and a key of its own.
    let done = env.run_in("repo", ["init", "--identity", "../ci.json"]);
    assert_snapshot!(done);
    env.write("broken.json", "{\"schema_version\": 1}");
    let done = env.run_in("clone", ["init", "--identity", "../broken.json"]);
    assert_snapshot!(done);
}

#[test]
fn the_state_is_exported_whole_and_can_be_put_back() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    assert_eq!(env.run_in("repo", ["task", "add", "5", "--base", "main"]).code, 0);
    assert_snapshot!(env.run_in("repo", ["state", "export", "../copy.db"]));
    assert_snapshot!(env.run_in("repo", ["state", "export", "../copy.db"]));
    let before = env.run_in("repo", ["log", "--format", "json"]).stdout;
    assert_eq!(env.run_in("repo", ["task", "cancel", "5"]).code, 0);
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(env.path(format!("repo/.git/codeboost/state.db{suffix}")));
    }
    std::fs::copy(env.path("copy.db"), env.path("repo/.git/codeboost/state.db")).unwrap();
    assert_eq!(env.run_in("repo", ["log", "--format", "json"]).stdout, before);
}

#[test]
fn a_tracked_or_linked_outputs_folder_is_refused() {
    let env = repo();
    assert_eq!(env.run_in("repo", ["init"]).code, 0);
    for issue in ["5", "6"] {
        assert_eq!(env.run_in("repo", ["task", "add", issue, "--base", "main"]).code, 0);
        assert_eq!(env.run_in("repo", ["task", "cancel", issue]).code, 0);
    }
    env.write("elsewhere/kept", "");
    std::os::unix::fs::symlink(env.path("elsewhere"), env.path("repo/.codeboost")).unwrap();
    assert_snapshot!(env.redact(&env.run_in("repo", ["task", "remove", "5"]).to_string()));
    std::fs::remove_file(env.path("repo/.codeboost")).unwrap();
    env.write("repo/.codeboost/x", "");
    env.git("repo", ["add", "-f", ".codeboost/x"]);
    assert_snapshot!(env.redact(&env.run_in("repo", ["task", "remove", "6"]).to_string()));
    let list = env.run_in("repo", ["task", "list"]).stdout;
    assert_eq!(list.lines().count(), 2, "neither was removed: {list}");
}
