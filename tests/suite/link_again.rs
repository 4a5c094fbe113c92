//! Linking a head that extends one that was linked before: what is taken again from the results
//! kept beside the state must not change a byte.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::link_random::{first_seed, n_histories};
use crate::support::TestEnv;
use crate::support::histories::{self, History, Rng, Shape, reaches};

const CACHE: &str = "with/codeboost/cache/known";

/// The same objects twice: `with` a state, beside which results are kept, and without.
struct Twice {
    env: TestEnv,
    base: String,
}

impl Twice {
    fn new(histories: &mut [History]) -> Self {
        let env = TestEnv::new();
        histories::write(&env, "without", histories);
        env.git(".", ["clone", "-q", "--mirror", "without", "with"]);
        std::fs::create_dir(env.path("with/codeboost")).unwrap();
        env.write(
            "plan.json",
            crate::link::plan(&[("P1", &["a.rs"]), ("P2", &["b.rs"])]).to_string(),
        );
        let base = histories[0].commits[histories[0].base].id.clone();
        Self { env, base }
    }

    fn link(&self, repo: &str, head: &str) -> String {
        let range = ["link", "--repo", repo, "--base", &self.base, "--head", head];
        let files = ["--plan", "plan.json", "--ledger", "ledger.json", "-o", "-"];
        let done = self.env.run_in(".", range.iter().chain(&files));
        assert_eq!(done.code, 0, "{done}");
        done.stdout
    }

    #[track_caller]
    fn is_same(&self, head: &str, what: &str) {
        let (with, without) = (self.link("with", head), self.link("without", head));
        assert!(with == without, "{what}: base {} head {head}: not the same link", self.base);
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.env.path(CACHE)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// The ledger of a history, where some entries are others than they will be later.
fn ledger(history: &History, rng: &mut Rng) -> Value {
    let mut commits = Map::new();
    for commit in &history.commits {
        let item = if rng.chance(5) { Some(1) } else { commit.item.map(|item| 1 + item % 2) };
        if let Some(item) = item {
            let entry = json!({"item": format!("P{item}"), "origin": "runner"});
            commits.insert(commit.id.clone(), entry);
        }
    }
    json!({"schema_version": 1, "commits": commits})
}

/// Links head after head of random histories, each with what the ones before left.
fn every_prefix(shape: Shape) {
    for seed in first_seed()..first_seed() + n_histories(8) as u64 {
        let mut history = [histories::history(seed, shape)];
        let twice = Twice::new(&mut history);
        let [history] = history;
        let rng = &mut Rng::new(seed);
        for (n, commit) in history.commits.iter().enumerate() {
            if n == history.base || !reaches(&history, n, history.base) {
                continue;
            }
            if rng.chance(30) {
                twice.env.write("ledger.json", ledger(&history, rng).to_string());
            } else if !twice.env.path("ledger.json").exists() {
                twice
                    .env
                    .write("ledger.json", json!({"schema_version": 1, "commits": {}}).to_string());
            }
            twice.is_same(&commit.id, &format!("seed {seed}, commit {n}"));
        }
        assert_eq!(twice.entries().len(), 1, "seed {seed}: one file for one base");
    }
}

#[test]
fn every_prefix_of_a_line_links_as_if_it_were_the_first() {
    every_prefix(Shape { min_commits: 8, max_commits: 16, has_branches: false, foreign: 15 });
}

#[test]
fn every_prefix_of_a_history_with_merges_links_as_if_it_were_the_first() {
    every_prefix(Shape { min_commits: 8, max_commits: 16, has_branches: true, foreign: 15 });
}

#[test]
fn results_that_are_damaged_cut_or_of_another_base_count_for_nothing() {
    let shape = Shape { min_commits: 20, max_commits: 20, has_branches: false, foreign: 15 };
    let mut history = [histories::history(4, shape)];
    let mut twice = Twice::new(&mut history);
    let [history] = history;
    twice.env.write("ledger.json", ledger(&history, &mut Rng::new(1)).to_string());
    let head = &history.commits[history.head].id;
    twice.is_same(head, "first");
    let kept = twice.entries().remove(0);
    let bytes = std::fs::read(&kept).unwrap();
    let step = bytes.len() / 23 + 1;
    for at in (0..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        std::fs::write(&kept, &changed).unwrap();
        twice.is_same(head, &format!("byte {at} is another"));
        std::fs::write(&kept, &bytes[..at]).unwrap();
        twice.is_same(head, &format!("cut at {at}"));
    }
    assert!(std::fs::read(&kept).unwrap().len() == bytes.len(), "what was damaged is made again");

    // The file of one base under the name of another.
    let is_between = |n: &usize| {
        ![history.base, history.head].contains(n)
            && reaches(&history, *n, history.base)
            && reaches(&history, history.head, *n)
    };
    let other = (0..history.commits.len()).find(is_between).unwrap();
    let old = std::mem::replace(&mut twice.base, history.commits[other].id.clone());
    twice.is_same(head, "another base");
    let paths = twice.entries();
    let (a, b) = (std::fs::read(&paths[0]).unwrap(), std::fs::read(&paths[1]).unwrap());
    std::fs::write(&paths[0], b).unwrap();
    std::fs::write(&paths[1], a).unwrap();
    twice.is_same(head, "exchanged");
    twice.base = old;
    twice.is_same(head, "the first base again");
}

#[test]
fn only_what_new_commits_touch_is_read_again() {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    let commit = |message: &str| {
        env.git("repo", ["add", "-A"]);
        env.git("repo", ["commit", "-q", "-m", message]);
        env.git("repo", ["rev-parse", "HEAD"])
    };
    let text = |n: usize, k: usize| format!("{}change {k}\n", format!("file {n}\n").repeat(20));
    for n in 0..40 {
        env.write(format!("repo/f{n}.rs"), text(n, 0));
    }
    let base = commit("base");
    for n in 0..40 {
        env.write(format!("repo/f{n}.rs"), text(n, 1));
    }
    let old = commit("old");
    env.write("repo/f3.rs", text(3, 2));
    let head = commit("new");
    std::fs::create_dir(env.path("repo/.git/codeboost")).unwrap();
    env.write("plan.json", crate::link::plan(&[("P1", &["f1.rs"])]).to_string());
    env.write("ledger.json", json!({"schema_version": 1, "commits": {}}).to_string());
    let link = |head: &str| {
        let range = ["link", "--repo", "repo", "--base", &base, "--head", head];
        let files = ["--plan", "plan.json", "--ledger", "ledger.json", "-o", "-"];
        env.run_in(".", range.iter().chain(&files))
    };
    let whole = link(&head);
    assert_eq!(whole.code, 0, "{whole}");
    std::fs::remove_dir_all(env.path("repo/.git/codeboost/cache")).unwrap();
    assert_eq!(link(&old).code, 0);

    // Only the contents of one file are there: nothing else is read.
    let blobs = |commit: &str| -> Vec<String> {
        let tree = env.git("repo", ["ls-tree", "-r", commit]);
        let others = tree.lines().filter(|line| !line.ends_with("\tf3.rs"));
        others.map(|line| line.split_whitespace().nth(2).unwrap().to_owned()).collect()
    };
    for id in blobs(&base).into_iter().chain(blobs(&head)) {
        let _ =
            std::fs::remove_file(env.path(format!("repo/.git/objects/{}/{}", &id[..2], &id[2..])));
    }
    let again = link(&head);
    assert!(again.code == 0 && again.stdout == whole.stdout, "{again}");

    // Without what was kept they are missed.
    std::fs::remove_dir_all(env.path("repo/.git/codeboost/cache")).unwrap();
    let missing = link(&head);
    assert_eq!(missing.code, 1, "{missing}");
    assert!(missing.stderr.contains("is missing"), "{missing}");
}
