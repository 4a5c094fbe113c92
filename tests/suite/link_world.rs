//! What must not change a link: the world around the repository, budgets that are not set, and
//! other programs that work on the same objects.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::link_kinds::{build, link};
use crate::support::TestEnv;
use crate::support::histories::{self, Shape};
use crate::support::road;

/// Builds the repository of a script of `kinds`.
fn kind(env: &TestEnv, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories/kinds");
    build(env, &folder.join(format!("{name}.sh")));
}

#[test]
fn the_same_bytes_come_out_in_another_world() {
    for name in ["merge-evil", "rename-lost", "hiding-attributes", "names-of-any-bytes"] {
        let mut env = TestEnv::new();
        kind(&env, name);
        let calm = link(&env, &["-o", "-"]);
        assert_eq!(calm.code, 0, "{calm}");
        assert_eq!(link(&env, &["-o", "-"]).stdout, calm.stdout, "{name}");

        // Another home with a hostile configuration, attributes of the person's and a locale.
        env.write("home2/.gitattributes", "* -diff binary\n");
        env.write(
            "home2/.gitconfig",
            "[diff]\n\tnoprefix = true\n\texternal = false\n\talgorithm = patience\n\
             \trenames = false\n\tinterHunkContext = 40\n\tcontext = 9\n\tmnemonicPrefix = true\n\
             \tindentHeuristic = false\n\tsubmodule = log\n\torderFile = /nonexistent\n\
             \twordRegex = .\n\tsuppressBlankEmpty = true\n\
             [diff \"x\"]\n\ttextconv = false\n\tbinary = true\n\
             [core]\n\tquotePath = true\n\tattributesFile = ~/.gitattributes\n\
             \tbigFileThreshold = 1\n\thooksPath = /nonexistent\n\tfsmonitor = false\n\
             [color]\n\tui = always\n[alias]\n\tdiff-tree = status\n\trev-list = status\n\
             [log]\n\tshowSignature = true\n",
        );
        let home = env.path("home2");
        env.set("HOME", home.to_str().unwrap());
        env.set("XDG_CONFIG_HOME", home.to_str().unwrap());
        env.set("LC_ALL", "tr_TR.UTF-8");
        env.set("LANGUAGE", "de");
        env.set("TZ", "Asia/Kathmandu");
        env.set("RAYON_NUM_THREADS", "1");
        for (name, value) in [
            ("GIT_DIR", "/nonexistent"),
            ("GIT_WORK_TREE", "/nonexistent"),
            ("GIT_INDEX_FILE", "/nonexistent"),
            ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
            ("GIT_EXTERNAL_DIFF", "false"),
            ("GIT_DIFF_OPTS", "--unified=9"),
            ("GIT_PAGER", "false"),
            ("GIT_CONFIG_PARAMETERS", "'diff.noprefix=true'"),
            ("GIT_ATTR_SOURCE", "HEAD"),
            ("GIT_GRAFT_FILE", "/nonexistent"),
            ("GIT_NOGLOB_PATHSPECS", "1"),
            ("GIT_TRACE", "1"),
        ] {
            env.set(name, value);
        }
        let hostile = link(&env, &["-o", "-"]);
        assert_eq!(hostile.code, 0, "{name}: {hostile}");
        assert_eq!(hostile.stdout, calm.stdout, "{name}");

        // Another working directory, below the work tree, where diffs could be relative.
        std::fs::create_dir_all(env.path("repo/below/it")).unwrap();
        let up = "../../..";
        let (plan, ledger) = (format!("{up}/plan.json"), format!("{up}/ledger.json"));
        let args =
            ["link", "--base", "base", "--head", "work", "--plan", &plan, "--ledger", &ledger];
        let below = env.run_in("repo/below/it", args.iter().chain(&["-o", "-"]));
        assert_eq!(below.code, 0, "{name}: {below}");
        assert_eq!(below.stdout, calm.stdout, "{name}");
    }
}

#[test]
fn each_budget_trips_with_its_own_words_and_writes_nothing() {
    let env = TestEnv::new();
    kind(&env, "merge-octopus");
    for (budget, words) in [
        (["--max-lines", "1"], "lines, more than the 1 allowed"),
        (["--max-commits", "2"], "the range has 4 commits, more than the 2 allowed"),
        (["--deadline", "0"], "took longer than allowed"),
    ] {
        let done = link(&env, &[&budget[..], &["-o", "out.json"]].concat());
        assert_eq!(done.code, 1, "{done}");
        assert!(done.stderr.contains(words), "{done}");
        assert!(!env.path("out.json").exists());
    }
    let enough = ["--max-lines", "100", "--max-commits", "4", "--deadline", "600", "-o", "-"];
    assert_eq!(link(&env, &enough).stdout, link(&env, &["-o", "-"]).stdout);
}

#[test]
fn beyond_the_rename_limit_only_exact_renames_are_paired_and_that_is_said() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "-b", "work", "repo"]);
    let text = |n: usize| format!("the {n}th file\nwith a line\nand another\n").repeat(3);
    for n in 0..1002 {
        env.write(format!("repo/old/{n}"), text(n));
    }
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "base"]);
    env.git("repo", ["tag", "base"]);
    env.git("repo", ["rm", "-r", "-q", "old"]);
    env.write("repo/new/renamed-0", text(0));
    for n in 1..1002 {
        // Names are others, or git would pair the files by them.
        env.write(format!("repo/new/other-{n}"), text(n) + "more\n");
    }
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "renamed"]);
    env.write("plan.json", crate::link::plan(&[("P1", &["new/1"])]).to_string());
    env.write("ledger.json", json!({"schema_version": 1, "commits": {}}).to_string());
    let done = link(&env, &["-o", "out.json"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("similar ones were not paired"), "{done}");
    let link: Value =
        serde_json::from_str(&std::fs::read_to_string(env.path("out.json")).unwrap()).unwrap();
    assert_eq!(link["diff"]["renames_skipped"], json!(true));
    let files = link["files"].as_array().unwrap();
    let renamed: Vec<&Value> = files.iter().filter(|file| file["status"] == "renamed").collect();
    assert_eq!(renamed.len(), 1);
    assert_eq!(renamed[0]["old_path"], "old/0");
    assert_eq!(files.len(), 1 + 2 * 1001);
}

#[test]
fn an_object_that_is_gone_or_damaged_is_named() {
    for (damage, words) in [(None, "is missing in"), (Some(&b"garbage"[..]), "")] {
        let env = TestEnv::new();
        kind(&env, "deletions");
        let id = env.git("repo", ["rev-parse", "base:a.txt"]);
        let object = env.path(format!("repo/.git/objects/{}/{}", &id[..2], &id[2..]));
        std::fs::remove_file(&object).unwrap();
        if let Some(bytes) = damage {
            std::fs::write(&object, bytes).unwrap();
        }
        let done = link(&env, &["-o", "out.json"]);
        assert_eq!(done.code, 1, "{done}");
        assert!(done.stderr.contains(words) && done.stderr.contains(&id), "{done}");
        assert!(!env.path("out.json").exists());
    }
}

#[test]
fn another_program_may_pack_fetch_and_collect_meanwhile() {
    let env = TestEnv::new();
    let shape = Shape { min_commits: 1, max_commits: 60, has_branches: true, foreign: 20 };
    let mut history = [histories::history(5, shape)];
    histories::write(&env, "repo", &mut history);
    let [history] = history;
    env.write("plan.json", crate::link::plan(&[("P1", &["a.rs"])]).to_string());
    env.write("ledger.json", json!({"schema_version": 1, "commits": {}}).to_string());
    let mut more = [histories::history(6, shape)];
    histories::write(&env, "other", &mut more);
    let ends = [history.base, history.head].map(|n| history.commits[n].id.as_str());
    let run = || {
        env.run([
            "link",
            "--repo",
            "repo",
            "--base",
            ends[0],
            "--head",
            ends[1],
            "--plan",
            "plan.json",
            "--ledger",
            "ledger.json",
            "-o",
            "-",
        ])
    };
    let calm = run();
    assert_eq!(calm.code, 0, "{calm}");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !is_done.load(Ordering::Relaxed) {
                n += 1;
                // Packs come and go; objects turn loose and are packed again.
                env.git("repo", ["repack", "-a", "-d", "-f", "-q"]);
                let fetched = format!("+refs/heads/h6:refs/heads/more{n}");
                env.git("repo", ["fetch", "-q", "../other", &fetched]);
                env.git("repo", ["update-ref", "-d", &format!("refs/heads/more{n}")]);
                env.git("repo", ["-c", "gc.cruftPacks=false", "repack", "-A", "-d", "-q"]);
                env.git("repo", ["gc", "--prune=now", "-q"]);
            }
        });
        let mut n_right = 0;
        for _ in 0..25 {
            let done = run();
            if done.code == 0 {
                assert_eq!(done.stdout, calm.stdout);
                n_right += 1;
            } else {
                assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done}");
                assert!(done.stderr.contains("error"), "{done}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(n_right > 12, "only {n_right} of 25 runs came to their end");
    });
}

/// Tells a command to end, sooner and later, and looks at what it left: nothing in the folder for
/// temporary files, and `output` only where it came to its own end. Returns how often it was ended.
#[track_caller]
fn told_to_end(env: &mut TestEnv, folder: &str, args: &[&str], output: &str) -> usize {
    let tmp = env.path("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    env.set("TMPDIR", tmp.to_str().unwrap());
    let output = env.path(output);
    let mut n_told = 0;
    for signal in ["-INT", "-TERM"] {
        for wait in [5, 10, 20, 30, 50, 80, 120, 200] {
            let mut command = env.codeboost(folder, args);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(wait));
            let told = Command::new("kill").args([signal, &child.id().to_string()]).output();
            assert!(told.is_ok());
            let status = child.wait().unwrap();
            let left: Vec<_> = std::fs::read_dir(&tmp).unwrap().flatten().collect();
            assert!(left.is_empty(), "after {wait} ms: {left:?}");
            if status.code().is_none() {
                n_told += 1;
                assert!(!output.exists(), "after {wait} ms");
            } else {
                assert_eq!(status.code(), Some(0));
                std::fs::remove_file(&output).unwrap();
            }
        }
    }
    n_told
}

/// A repository with 400 commits, and a plan and a ledger beside it.
fn long_history(env: &TestEnv) -> [String; 2] {
    let shape = Shape { min_commits: 400, max_commits: 400, has_branches: true, foreign: 20 };
    let mut history = [histories::history(9, shape)];
    histories::write(env, "repo", &mut history);
    let [history] = history;
    env.write("plan.json", crate::link::plan(&[("P1", &["a.rs"])]).to_string());
    env.write("ledger.json", json!({"schema_version": 1, "commits": {}}).to_string());
    [history.base, history.head].map(|n| history.commits[n].id.clone())
}

#[test]
fn told_to_end_it_leaves_nothing_behind() {
    let mut env = TestEnv::new();
    let [base, head] = long_history(&env);
    let files = ["--plan", "plan.json", "--ledger", "ledger.json", "-o", "out/link.json"];
    let range = ["link", "--repo", "repo", "--base", &base, "--head", &head];
    let n_told = told_to_end(&mut env, ".", &[&range[..], &files].concat(), "out/link.json");
    assert!(n_told > 1, "{n_told} runs were ended");
    let left: Vec<_> = std::fs::read_dir(env.path("out")).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn told_to_end_the_link_of_a_task_leaves_nothing_behind() {
    let mut env = TestEnv::new();
    let [base, head] = long_history(&env);
    env.write("plan.json", road::plan(&[("P1", &["+added.rs"], &[])]).to_string());
    env.git("repo", ["branch", "landing", &base]);
    env.git("repo", ["branch", "topic", &head]);
    for args in [
        &["init"][..],
        &["task", "add", "412", "--title", "Long", "--base", "landing", "--head", "topic"],
        &["plan", "import", "412", "../plan.json"],
        &["plan", "approve", "412", "--yes"],
        &["link", "412"],
    ] {
        let done = env.run_in("repo", args);
        assert_eq!(done.code, 0, "{done}");
    }
    let outputs = if env.path("repo/.git").exists() { ".codeboost" } else { "codeboost-outputs" };
    let output = format!("repo/{outputs}/tasks/412/link.json");
    std::fs::remove_file(env.path(&output)).unwrap();
    let n_told = told_to_end(&mut env, "repo", &["link", "412"], &output);
    assert!(n_told > 1, "{n_told} runs were ended");
}
