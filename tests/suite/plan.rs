//! Plans: checked against a base, compared with each other.

use insta::assert_snapshot;

use crate::support::TestEnv;

const EXAMPLE: &str = include_str!("../../schema/examples/plan-412-r3.yaml");
const EXAMPLE_JSON: &str = include_str!("../../schema/examples/plan-412-r3.json");

/// A repository `repo` that the example plan fits, with the plan beside it.
fn repo() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    for path in [
        "src/retry/client.go",
        "src/retry/client_test.go",
        "src/client/retry_settings.go",
        "src/client/client.go",
        "docs/old-retry-notes.md",
    ] {
        env.write(format!("repo/{path}"), "text\n");
    }
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "first"]);
    env.write("plan.yaml", EXAMPLE);
    env.write("plan.json", EXAMPLE_JSON);
    env
}

/// The example with one text replaced by another.
fn changed(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "the example has no {from:?}");
    EXAMPLE.replacen(from, to, 1)
}

fn check(env: &TestEnv, more: &[&str]) -> crate::support::Done {
    let args = ["plan", "check", "plan.yaml", "--repo", "repo", "--base", "main"];
    env.run(args.iter().chain(more))
}

#[test]
fn the_example_passes_with_warnings_in_both_syntaxes() {
    let env = repo();
    assert_snapshot!(check(&env, &[]));
    let yaml = check(&env, &["--format", "json"]);
    let json = env.run([
        "plan",
        "check",
        "plan.json",
        "--repo",
        "repo",
        "--base",
        "main",
        "--format",
        "json",
    ]);
    let digest = |done: &crate::support::Done| {
        let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        value["digest"].clone()
    };
    assert_eq!(digest(&yaml), digest(&json));
}

#[test]
fn allowed_commands_do_not_warn() {
    let env = repo();
    let done = check(
        &env,
        &[
            "--allow-command",
            "go test ./src/retry/... -run TestRetryKeepsKey",
            "--allow-command",
            "go 'vet' ./...",
            "--allow-command",
            "go test ./src/retry/... -run \"TestMetrics|TestSettings\"",
            "--issue",
            "412",
        ],
    );
    assert_eq!(done.code, 0, "{done}");
    assert!(!done.stdout.contains("command-not-allowed"), "{done}");
    let done = check(&env, &["--allow-command", "a && b"]);
    assert_snapshot!(done);
}

#[test]
fn every_failure_of_the_meaning_is_told_with_its_place_in_one_run() {
    let env = repo();
    let plan = changed("path: src/retry/client.go", "path: src/retry/Client.go")
        .replacen("id: P2", "id: P1", 1)
        .replacen("kind: add", "kind: edit", 1)
        .replacen("go vet ./...", "go vet ./... && rm -rf /", 1)
        .replacen("depends_on: [P1, P2]", "depends_on: [P1, P4]", 1);
    env.write("plan.yaml", plan);
    assert_snapshot!(check(&env, &["--issue", "7"]));
}

#[test]
fn a_missing_dependency_names_who_is_needed() {
    let env = repo();
    env.write("plan.yaml", changed("depends_on: [P1, P2]", "depends_on: [P1]"));
    let done = check(&env, &[]);
    assert_eq!(done.code, 1, "{done}");
    assert_snapshot!(done.stdout.split("\n\n").find(|part| part.contains("[dependency]")).unwrap());
}

#[test]
fn every_violation_of_the_schema_is_told_with_its_place() {
    let env = repo();
    let plan = changed("summary:", "summry:")
        .replacen("id: P1", "id: P0", 1)
        .replacen("kind: edit", "kind: change", 1)
        .replacen("path: src/client/client.go", "path: /src/client/client.go", 1)
        .replacen("title: Count attempts", "title: 12", 1)
        .replacen("depends_on: []", "dependsOn: []", 1);
    env.write("plan.yaml", plan);
    assert_snapshot!(check(&env, &[]));
}

#[test]
fn an_unreadable_plan_shows_what_is_refused() {
    let env = repo();
    let plan = changed("schema_version: 1", "schema_version: 0x1")
        .replacen("title: Count attempts", "title: ~", 1)
        .replacen("id: P2", "id: &two P2", 1)
        .replacen("questions:", "issue: 412\nquestions:", 1);
    env.write("plan.yaml", plan);
    assert_snapshot!(check(&env, &[]));
    env.write("plan.yaml", changed("summary: Send", "summary: Note: send"));
    assert_snapshot!(check(&env, &[]));
    env.write("plan.yaml", "schema_version: 2\n");
    assert_snapshot!(check(&env, &["--format", "json"]));
}

#[test]
fn a_long_line_is_shown_around_the_place_that_is_meant() {
    let env = repo();
    let plan: serde_json::Value = serde_json::from_str(EXAMPLE_JSON).unwrap();
    let line = plan.to_string().replace("\"kind\":\"add\"", "\"kind\":\"edit\"");
    let args = ["plan", "check", "plan.json", "--repo", "repo", "--base", "main"];
    env.write("plan.json", line);
    let done = env.run(args);
    assert_snapshot!(done.stdout.split("\n\n").find(|part| part.contains("[missing")).unwrap());
}

#[test]
fn text_from_a_plan_can_not_steer_the_terminal() {
    let env = repo();
    let plan = changed("path: src/retry/client.go", "path: \"src/\\e[31m\\u202Eog.tneilc\"");
    env.write("plan.yaml", plan);
    let done = check(&env, &[]);
    assert_eq!(done.code, 1, "{done}");
    assert!(!done.stdout.contains(['\u{1b}', '\u{202e}']), "{done}");
}

#[test]
fn standard_input_is_read_in_either_syntax() {
    let env = repo();
    for text in [EXAMPLE, EXAMPLE_JSON] {
        let mut command =
            env.codeboost(".", ["plan", "check", "-", "--repo", "repo", "--base", "main"]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        command.stdin(std::fs::File::open(file.path()).unwrap());
        let done = env.finish(&mut command);
        assert_eq!(done.code, 0, "{done}");
        assert!(done.stdout.contains("standard input: "), "{done}");
    }
}

#[test]
fn what_is_missing_is_told_with_the_next_step() {
    let env = repo();
    let run = |args: &[&str]| env.redact(&env.run(args).to_string());
    assert_snapshot!(run(&["plan", "check", "plan.yaml", "--repo", "repo", "--base", "nowhere"]));
    assert_snapshot!(run(&["plan", "check", "none.yaml", "--repo", "repo", "--base", "main"]));
    assert_snapshot!(run(&["plan", "check", "plan.yaml", "--base", "main"]));
}

#[test]
fn links_and_submodules_of_the_base_are_known() {
    let env = repo();
    std::os::unix::fs::symlink("src/retry/client.go", env.path("repo/link")).unwrap();
    let commit = env.git("repo", ["rev-parse", "HEAD"]);
    let entry = format!("160000,{commit},vendor/lib");
    env.git("repo", ["update-index", "--add", "--cacheinfo", &entry]);
    env.git("repo", ["add", "link"]);
    env.git("repo", ["commit", "-q", "-m", "link and submodule"]);
    let plan = changed("path: src/retry/client_test.go", "path: link").replacen(
        "path: src/client/client.go",
        "path: vendor/lib",
        1,
    );
    env.write("plan.yaml", plan);
    let done = check(&env, &["--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let codes: Vec<_> = value["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "failure")
        .map(|problem| (problem["code"].as_str().unwrap(), problem["pointer"].as_str().unwrap()))
        .collect();
    assert_eq!(
        codes[..2],
        [("symlink-target", "/items/0/files/1/path"), ("gitlink", "/items/1/files/1/path"),]
    );
}

#[test]
fn a_check_leaves_no_trace() {
    let env = repo();
    let listing = |folder: &str| {
        let mut names: Vec<_> = std::fs::read_dir(env.path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = (listing("repo"), listing("repo/.git"));
    assert_eq!(check(&env, &[]).code, 0);
    assert_eq!((listing("repo"), listing("repo/.git")), before);
}

#[test]
fn a_bare_repository_works() {
    let env = repo();
    env.git(".", ["clone", "-q", "--bare", "repo", "bare.git"]);
    let done = env.run(["plan", "check", "plan.yaml", "--repo", "bare.git", "--base", "main"]);
    assert_eq!(done.code, 0, "{done}");
}

#[test]
fn a_comparison_names_every_change_and_what_it_costs() {
    let env = repo();
    let plan = changed("kind: edit\n", "kind: add\n")
        .replacen("title: Move the retry settings into their own file", "title: Move settings", 1)
        .replacen("go vet ./...", "go vet ./src/...", 1)
        .replacen("questions:\n", "questions:\n  - Which limit is right?\n", 1);
    env.write("new.yaml", plan);
    assert_snapshot!(env.run(["plan", "diff", "plan.json", "new.yaml"]));
    assert_snapshot!(env.run(["plan", "diff", "plan.yaml", "new.yaml", "--format", "json"]));
    let same = env.run(["plan", "diff", "plan.yaml", "plan.json"]);
    assert_snapshot!(same);
    env.write("new.yaml", "a: b\n");
    assert_eq!(env.run(["plan", "diff", "plan.yaml", "new.yaml"]).code, 1);
}

#[test]
fn a_text_that_is_cut_by_a_comment_is_told() {
    let env = repo();
    env.write("plan.yaml", changed("title: Count attempts", "title: Count attempts, see #412"));
    let done = check(&env, &[]);
    assert_eq!(done.code, 0, "{done}");
    assert_snapshot!(done.stdout.split("\n\n").find(|part| part.contains("[cut-text]")).unwrap());
}

#[test]
fn what_may_have_been_meant_as_text_is_told_and_other_comments_are_not() {
    let env = repo();
    env.write("plan.yaml", changed("title: Count attempts", "title: Count attempts # and more"));
    assert!(check(&env, &[]).stdout.contains("[cut-text]"));
    env.write("plan.yaml", changed("kind: edit", "kind: edit # or add"));
    assert!(!check(&env, &[]).stdout.contains("[cut-text]"));
}

/// What people write who see the format for the first time.
const FIRST_PLAN: &str = "\
schema_version: 1
issue: 12
revision: 1
summary: Count lines, no argument # so newlines count
items:
  - id: 1
    title: Count
    intent: null
    files:
      - src/a.py
    acceptance:
      - cmd: pytest -k x
      - pytest
    depends_on: P1
questions: []
";

#[test]
fn the_mistakes_of_a_first_plan_are_told_with_what_to_write() {
    let env = repo();
    env.write("plan.yaml", FIRST_PLAN);
    assert_snapshot!(check(&env, &[]));
    env.write("plan.yaml", FIRST_PLAN.replace("issue: 12", "issue: #12"));
    assert_snapshot!(check(&env, &[]));
}

#[test]
fn the_plan_of_the_guide_has_no_failures() {
    let guide = include_str!("../../schema/plan-guide.md");
    let plan = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let env = repo();
    env.write("repo/src/greet.py", "text\n");
    env.git("repo", ["add", "."]);
    env.git("repo", ["commit", "-q", "-m", "greet"]);
    env.write("plan.yaml", plan);
    let done = check(&env, &["--issue", "7", "--allow-command", "python3 -m unittest"]);
    assert_snapshot!(done);
}

#[test]
fn every_unsafe_path_fails_in_both_syntaxes() {
    let env = repo();
    for path in [
        "../a",
        "a/../b",
        "a//b",
        "./a",
        "C:/a",
        "/a",
        "a\\b",
        ".git/config",
        "a\u{0}b",
        "a\u{9f}b",
        "a/",
        "",
    ] {
        let mut plan: serde_json::Value = serde_json::from_str(EXAMPLE_JSON).unwrap();
        plan["items"][0]["files"][0]["path"] = serde_json::json!(path);
        // JSON without tabs after colons is YAML of the subset.
        for name in ["unsafe.json", "unsafe.yaml"] {
            env.write(name, plan.to_string());
            let done = env.run(["plan", "check", name, "--repo", "repo", "--base", "main"]);
            assert_eq!(done.code, 1, "{path:?} in {name}: {done}");
            assert!(done.stdout.contains("failure["), "{path:?} in {name}: {done}");
        }
    }
}

#[test]
fn what_has_to_hold_is_shown_by_tests_that_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let list = ["plan", "agent"]
        .map(|name| {
            std::fs::read_to_string(root.join(format!("tests/{name}-scenarios.md"))).unwrap()
        })
        .concat();
    let mut sources = String::new();
    for folder in ["cli/src", "schema/src", "tests/suite"] {
        sources.extend(crate::tidy::sources(folder).into_iter().map(|(_, text)| text));
    }
    let mut fixtures = String::new();
    for file in ["inputs", "plans", "commands"] {
        let path = root.join(format!("schema/versions/1/fixtures/{file}.json"));
        let value: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let all = value.as_object().unwrap().values().filter_map(|one| one.as_array()).flatten();
        for name in all.filter_map(|one| one["name"].as_str()) {
            fixtures.push_str(&format!("\n{name}\n"));
        }
    }
    let mut missing = Vec::new();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    for row in rows.filter(|row| !row.starts_with("what holds | ")) {
        let (_, shown) = row.rsplit_once(" | ").unwrap();
        let (names, fixture_names) = shown.split_once("fixture: ").unwrap_or((shown, ""));
        let names: Vec<_> = names.split('`').skip(1).step_by(2).collect();
        let wanted: Vec<_> =
            fixture_names.split(", fixture: ").filter(|name| !name.is_empty()).collect();
        if names.is_empty() && wanted.is_empty() && !shown.starts_with("none: ") {
            missing.push(format!("nothing in {row}"));
        }
        for name in names {
            if !sources.contains(&format!("fn {name}(")) {
                missing.push(name.to_owned());
            }
        }
        for name in wanted {
            if !fixtures.contains(&format!("\n{name}\n")) {
                missing.push(name.to_owned());
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
