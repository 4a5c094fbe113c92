//! `codeboost demo`, and what can be done with the project that it leaves.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::TestEnv;

/// The demo in `sample/` of the folder; its project is `sample/tidepool`.
fn demo() -> TestEnv {
    let env = TestEnv::new();
    let done = env.run(["demo", "--folder", "sample"]);
    assert_eq!(done.code, 0, "{done}");
    env
}

fn json(env: &TestEnv, args: &[&str]) -> Value {
    let done = env.run_in("sample/tidepool", [args, &["--format", "json"]].concat());
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done}"))
}

#[test]
fn the_demo_shows_every_command_and_ends_with_the_path_of_a_page() {
    let env = TestEnv::new();
    let done = env.run(["demo", "--folder", "sample"]);
    assert_eq!(done.code, 0, "{done}");
    let page = env.path("sample/tidepool/.codeboost/tasks/412/review.html");
    assert_eq!(done.stdout, format!("{}\n", page.canonicalize().unwrap().display()));
    assert!(std::fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    // How long the sample's check took is nobody's business.
    let seconds = |word: &str| word.parse::<f32>().is_ok() && word.contains('.');
    let text = env.redact(&done.to_string());
    let text: Vec<_> = text
        .lines()
        .map(|line| {
            let words = line.split(' ').map(|word| if seconds(word) { "0.0" } else { word });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_snapshot!(text.join("\n"));
}

#[test]
fn the_demo_has_everything_that_a_review_is_about() {
    let env = demo();
    let link = std::fs::read(env.path("sample/tidepool/.codeboost/tasks/412/link.json")).unwrap();
    let link: Value = serde_json::from_slice(&link).unwrap();
    let segments = link["segments"].as_array().unwrap();
    let on = |row: &str| segments.iter().filter(|one| one["row"] == row).count();
    assert!(on("ambiguous") >= 1, "a line that two items touched");
    assert!(on("unplanned") >= 2, "the stranger's commit, for all its trailer says");
    assert!(on("P1") >= 1 && on("P2") >= 1 && on("P3") >= 1);
    let files = link["files"].as_array().unwrap();
    assert!(
        files
            .iter()
            .any(|file| file["old_path"] == "lib/log.sh" && file["path"] == "lib/report.sh")
    );
    assert!(files.iter().any(|file| file["path"] == "docs/tide.png"));
    let review = json(&env, &["review", "412"]);
    let segments = review["segments"].as_array().unwrap();
    let out: Vec<_> = segments.iter().filter(|one| one["scope"] == "out").collect();
    assert!(!out.is_empty() && out.iter().all(|one| one["path"] == "README.md"), "{out:?}");
    assert!(segments.iter().any(|one| one["change"] == "mode" && one["path"] == "bin/post.sh"));
    let log = env.git(
        "sample/tidepool",
        [
            "log",
            "-1",
            "--format=%an%n%b",
            "codeboost/issue-412-stations-store-a-measurement-twice-when",
        ],
    );
    assert_eq!(log, "A. Stranger\nPlan-Item: P1");
}

#[test]
fn the_demo_goes_nowhere_that_holds_something() {
    let env = TestEnv::new();
    env.write("sample/mine.txt", "mine");
    let done = env.run(["demo", "--folder", "sample"]);
    assert_snapshot!(env.redact(&done.to_string()));
    assert_eq!(std::fs::read_dir(env.path("sample")).unwrap().count(), 1);
}

#[test]
fn make_over_the_pure_stages_does_nothing_the_second_time() {
    let env = demo();
    let tidepool = env.path("sample/tidepool");
    let outputs = tidepool.join(".codeboost/tasks/412");
    for name in ["plan.yaml", "ledger.json"] {
        std::fs::copy(outputs.join(name), env.path(name)).unwrap();
    }
    let head = "codeboost/issue-412-stations-store-a-measurement-twice-when";
    let codeboost = env!("CARGO_BIN_EXE_codeboost");
    env.write(
        "Makefile",
        format!(
            "review.html: link.json plan.yaml\n\
             \t{codeboost} render link.json --repo sample/tidepool --plan plan.yaml -o $@\n\
             link.json: plan.yaml ledger.json\n\
             \t{codeboost} link --repo sample/tidepool --base main --head {head} \
             --plan plan.yaml --ledger ledger.json -o $@\n"
        ),
    );
    let make = || {
        let done = env.finish(&mut env.command("make", "."));
        assert_eq!(done.code, 0, "{done}");
        done.stdout
    };
    assert!(make().contains("codeboost link"));
    let first = std::fs::read(env.path("review.html")).unwrap();
    assert_eq!(
        std::fs::read(env.path("link.json")).unwrap(),
        std::fs::read(outputs.join("link.json")).unwrap()
    );
    assert_eq!(make(), "make: 'review.html' is up to date.\n");
    // An input that is only newer is looked at once.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let plan = std::fs::read(env.path("plan.yaml")).unwrap();
    env.write("plan.yaml", plan);
    assert!(make().contains("link.json is unchanged"));
    assert_eq!(make(), "make: 'review.html' is up to date.\n");
    assert_eq!(std::fs::read(env.path("review.html")).unwrap(), first);
}
