//! `codeboost link` on random histories, with git and the histories themselves as oracles.
//!
//! `CODEBOOST_HISTORIES` sets how many; `CODEBOOST_FIRST_SEED` where to begin.

#![expect(clippy::print_stdout, reason = "figures for who runs them by hand")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::TestEnv;
use crate::support::diffs::{self, bytes, lines};
use crate::support::histories::{self, Content, File, History, Shape, Tree, reaches};
use crate::support::oracle;

pub(crate) fn n_histories(default: usize) -> usize {
    std::env::var("CODEBOOST_HISTORIES").map_or(default, |n| n.parse().unwrap())
}

pub(crate) fn first_seed() -> u64 {
    std::env::var("CODEBOOST_FIRST_SEED").map_or(0, |n| n.parse().unwrap())
}

fn is_binary(text: &[u8]) -> bool {
    text.iter().take(8000).any(|b| *b == 0)
}

struct Checked<'a> {
    env: &'a TestEnv,
    history: &'a History,
    link: Value,
    faults: Vec<String>,
}

/// What was compared with blame, and how it came out.
#[derive(Default, Debug)]
struct Blame {
    /// Added lines in all.
    lines: usize,
    /// Blame's commit is among the segment's.
    agree: usize,
    /// Blame holds the line to be the base's, which git's own final diff shows as added: the
    /// history kept the line, but the final diff pairs files or repeated lines otherwise. Tagged
    /// `realigned`, or content that a step of the history replaced and Myers' diff does not.
    base: usize,
    /// Blame names another commit of the range. Blame compares by Myers' diff, we by histogram:
    /// which of several equal lines is the new one is then another one.
    repeated: usize,
}

/// What was compared about removed lines, and how it came out.
#[derive(Default, Debug)]
struct Removed {
    /// Removed lines in all.
    lines: usize,
    /// Who removed the line, by the second opinion, is among the segment's commits.
    agree: usize,
    /// Of several commits that removed it on different branches the segment names another one: the
    /// one whose lines the head has.
    several: usize,
    /// The second opinion holds the line to be alive, or to have gone with others, and the segment
    /// carries the tag `realigned`: git's final diff pairs the lines otherwise than the steps.
    realigned: usize,
    /// Another one is named. An equal line stands elsewhere in the file of some commit, or lines
    /// moved: which of them went is then a matter of alignment. Blame's is Myers', the oracle's a
    /// longest common subsequence, ours histogram's.
    repeated: usize,
}

impl Removed {
    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.agree += other.agree;
        self.several += other.several;
        self.realigned += other.realigned;
        self.repeated += other.repeated;
    }

    /// Of the lines that both hold to be gone at most one in twenty-five may be another's.
    #[track_caller]
    fn is_close(&self) {
        println!("{self:?}");
        assert!(self.lines > 500, "{self:?}");
        assert!(self.repeated * 25 <= self.lines - self.realigned, "{self:?}");
    }
}

/// Everything that was compared and counted.
#[derive(Default)]
struct Counts {
    blame: Blame,
    removed: Removed,
}

impl Blame {
    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.agree += other.agree;
        self.base += other.base;
        self.repeated += other.repeated;
    }

    /// Of the lines that blame gives to the range at most one in fifty may be another's.
    #[track_caller]
    fn is_close(&self) {
        println!("{self:?}");
        assert!(self.lines > 500, "{self:?}");
        assert!(self.repeated * 50 <= self.lines - self.base, "{self:?}");
    }
}

impl Checked<'_> {
    fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(format!("seed {}: {}", self.history.seed, what.into()));
    }

    fn tree(&self, commit: usize) -> &Tree {
        &self.history.commits[commit].tree
    }

    /// Each file's old lines minus `-` plus `+` are its new lines, and no file is forgotten.
    fn rebuild(&mut self) {
        let files = self.link["files"].as_array().unwrap().clone();
        let segments = self.link["segments"].as_array().unwrap().clone();
        let old_tree = self.tree(self.history.base).clone();
        let mut tree = old_tree.clone();
        let new_tree = self.tree(self.history.head).clone();
        for file in &files {
            if let Some(old) = bytes(file, "old_path") {
                tree.remove(&old);
            }
        }
        for (n, file) in files.iter().enumerate() {
            let path = bytes(file, "path").unwrap();
            let mine: Vec<&Value> =
                segments.iter().filter(|segment| segment["file"] == json!(n)).collect();
            let old = bytes(file, "old_path").and_then(|path| old_tree.get(&path).cloned());
            let new = new_tree.get(&path).cloned().filter(|_| !file["new"].is_null());
            let text = |file: &Option<File>| match file {
                Some(File { content: Content::Text(lines), .. }) => lines.concat(),
                _ => Vec::new(),
            };
            let is_opaque = |file: &Option<File>| {
                file.as_ref().and_then(File::bytes).is_some_and(|bytes| is_binary(&bytes))
            };
            if let Some(new) = &new {
                tree.insert(path.clone(), new.clone());
            }
            let texts: Vec<&&Value> =
                mine.iter().filter(|segment| segment["kind"] == "text").collect();
            if is_opaque(&old) || is_opaque(&new) {
                if !texts.is_empty() {
                    self.fault(format!("{path:?}: binary with text"));
                }
                continue;
            }
            let old_text = text(&old);
            let mut rebuilt: Vec<Option<Vec<u8>>> =
                lines(&old_text).iter().map(|line| Some(line.to_vec())).collect();
            let mut added: Vec<(usize, Vec<u8>)> = Vec::new();
            for segment in texts {
                let text = bytes(segment, "text").unwrap();
                let lines = lines(&text);
                if segment["lines"] != json!(lines.len()) {
                    self.fault(format!("{path:?}: wrong number of lines"));
                }
                if segment["op"] == "-" {
                    let start = segment["old_start"].as_u64().unwrap() as usize - 1;
                    for (k, line) in lines.iter().enumerate() {
                        if rebuilt.get(start + k).cloned().flatten().as_deref() != Some(*line) {
                            self.fault(format!("{path:?}: no such old line"));
                            return;
                        }
                        rebuilt[start + k] = None;
                    }
                } else {
                    let start = segment["new_start"].as_u64().unwrap() as usize - 1;
                    added.extend(lines.iter().enumerate().map(|(k, l)| (start + k, l.to_vec())));
                }
            }
            let mut kept = rebuilt.into_iter().flatten();
            let mut out = Vec::new();
            let mut n_line = 0;
            let mut added = added.into_iter().peekable();
            loop {
                match added.next_if(|(at, _)| *at == n_line) {
                    Some((_, line)) => out.extend(line),
                    None => match kept.next() {
                        Some(line) => out.extend(line),
                        None => break,
                    },
                }
                n_line += 1;
            }
            if added.next().is_some() || out != text(&new) {
                self.fault(format!("{path:?}: the segments are not the new file"));
            }
        }
        if tree != new_tree {
            self.fault("a file is forgotten");
        }
    }

    /// The same files, removed and added lines as git's diff.
    fn same_as_diff(&mut self) {
        let ends = [self.history.base, self.history.head].map(|n| &*self.history.commits[n].id);
        if let Some(difference) = diffs::difference(self.env, "repo", ends, &self.link) {
            self.fault(difference);
        }
    }

    /// Rows, owners and sums follow from the commits and the ledger.
    fn rows(&mut self) {
        let order: HashMap<&str, usize> = self
            .history
            .commits
            .iter()
            .enumerate()
            .map(|(n, commit)| (commit.id.as_str(), n))
            .collect();
        let is_owned = self.range().iter().all(|n| self.history.commits[*n].item.is_some());
        let mut faults = Vec::new();
        let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for segment in self.link["segments"].as_array().unwrap() {
            let commits: Vec<usize> = segment["commits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| order[id.as_str().unwrap()])
                .collect();
            if commits.is_empty() {
                faults.push("a segment without a commit".to_owned());
            }
            let mut owners = BTreeSet::new();
            let mut is_foreign = false;
            for n in &commits {
                match self.history.commits[*n].item {
                    Some(item) => {
                        owners.insert(format!("P{item}"));
                    }
                    None => is_foreign = true,
                }
                if !reaches(self.history, self.history.head, *n)
                    || reaches(self.history, self.history.base, *n)
                {
                    faults.push(format!("commit {n} is not of the range"));
                }
            }
            for (n, later) in commits.iter().zip(commits.iter().skip(1)) {
                if reaches(self.history, *n, *later) {
                    faults.push("commits are not topological".to_owned());
                }
            }
            let row = match (is_foreign, owners.len()) {
                (true, _) => "unplanned".to_owned(),
                (false, 1) => owners.iter().next().unwrap().clone(),
                (false, _) => "ambiguous".to_owned(),
            };
            if segment["row"] != json!(row)
                || segment["owners"] != json!(owners)
                || segment["foreign"] != json!(is_foreign)
            {
                faults.push(format!("row {row} expected: {segment}"));
            }
            if is_owned && row == "unplanned" {
                faults.push("unplanned in a fully owned history".to_owned());
            }
            let sum = sums.entry(row).or_default();
            sum.0 += 1;
            match segment["op"].as_str() {
                Some("+") => sum.1 += segment["lines"].as_u64().unwrap(),
                Some("-") => sum.2 += segment["lines"].as_u64().unwrap(),
                _ => {}
            }
        }
        for row in self.link["rows"].as_array().unwrap() {
            let sum = sums.get(row["row"].as_str().unwrap()).copied().unwrap_or_default();
            let told = |key: &str| row[key].as_u64().unwrap();
            if (told("changes"), told("added"), told("removed")) != sum {
                faults.push(format!("wrong sums: {row}"));
            }
        }
        for fault in faults {
            self.fault(fault);
        }
    }

    /// Compares the commits of added lines with `git blame`.
    fn blame(&mut self, counts: &mut Blame) {
        let base = &self.history.commits[self.history.base].id;
        let head = &self.history.commits[self.history.head].id;
        let files = self.link["files"].as_array().unwrap().clone();
        let segments = self.link["segments"].as_array().unwrap().clone();
        for (n, file) in files.iter().enumerate() {
            let mine: Vec<&Value> = segments
                .iter()
                .filter(|s| s["file"] == json!(n) && s["kind"] == "text" && s["op"] == "+")
                .collect();
            if mine.is_empty() {
                continue;
            }
            use std::os::unix::ffi::OsStrExt as _;
            let path = bytes(file, "path").unwrap();
            let mut command = self.env.command("git", "repo");
            command.args(["blame", "-s", "-l", "--root"]);
            command.arg(format!("{base}..{head}")).arg("--");
            command.arg(std::ffi::OsStr::from_bytes(&path));
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            let blamed: Vec<String> = lines(&out.stdout)
                .iter()
                .map(|line| String::from_utf8_lossy(&line[..40]).into_owned())
                .collect();
            for segment in mine {
                let start = segment["new_start"].as_u64().unwrap() as usize - 1;
                let n = segment["lines"].as_u64().unwrap() as usize;
                let commits = segment["commits"].as_array().unwrap();
                for blame in &blamed[start..start + n] {
                    counts.lines += 1;
                    if commits.iter().any(|id| id.as_str().unwrap() == blame) {
                        counts.agree += 1;
                    } else if blame.starts_with('^') {
                        counts.base += 1;
                    } else {
                        counts.repeated += 1;
                    }
                }
            }
        }
    }
}

impl Checked<'_> {
    fn range(&self) -> BTreeSet<usize> {
        let history = self.history;
        let is_in =
            |n: &usize| reaches(history, history.head, *n) && !reaches(history, history.base, *n);
        (0..history.commits.len()).filter(is_in).collect()
    }

    /// Compares the commits of removed lines with `git blame --reverse` on linear histories, and
    /// with a slow oracle on others.
    fn removed(&mut self, is_linear: bool, counts: &mut Removed) {
        let range = self.range();
        let removals = match is_linear {
            true => self.reverse_blame(),
            false => oracle::removals(self.env, self.history, &range),
        };
        let files = self.link["files"].as_array().unwrap().clone();
        for segment in self.link["segments"].as_array().unwrap().clone() {
            if segment["kind"] != "text" || segment["op"] != "-" {
                continue;
            }
            let file = &files[segment["file"].as_u64().unwrap() as usize];
            let path = bytes(file, "old_path").unwrap();
            let start = segment["old_start"].as_u64().unwrap() as usize - 1;
            let n = segment["lines"].as_u64().unwrap() as usize;
            let has_tag =
                segment["tags"].as_array().unwrap().iter().any(|tag| tag["tag"] == "realigned");
            let named: BTreeSet<&str> = segment["commits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_str().unwrap())
                .collect();
            for line in start..start + n {
                counts.lines += 1;
                let removers = removals.get(&(path.clone(), line));
                let is_named = |n: &usize| named.contains(self.history.commits[*n].id.as_str());
                match removers.map(Vec::as_slice) {
                    Some([first, ..]) if is_named(first) => counts.agree += 1,
                    Some([_, more @ ..]) if more.iter().any(is_named) => counts.several += 1,
                    _ if has_tag => counts.realigned += 1,
                    _ => counts.repeated += 1,
                }
            }
        }
    }

    /// By line of the base: the commit after the last one that has the line.
    fn reverse_blame(&self) -> oracle::Removals {
        use std::os::unix::ffi::OsStrExt as _;
        let commits = &self.history.commits;
        let ends = format!("{}..{}", commits[self.history.base].id, commits[self.history.head].id);
        let mut removals = oracle::Removals::new();
        for (path, file) in self.tree(self.history.base) {
            let Content::Text(text) = &file.content else { continue };
            if text.is_empty() {
                continue;
            }
            let mut command = self.env.command("git", "repo");
            command.args(["blame", "-s", "-l", "--reverse", &ends, "--"]);
            command.arg(std::ffi::OsStr::from_bytes(path));
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            for (n, line) in lines(&out.stdout).iter().enumerate() {
                let id = String::from_utf8_lossy(line);
                let id = id.trim_start_matches('^').split(' ').next().unwrap();
                let last = commits.iter().position(|commit| commit.id.starts_with(id)).unwrap();
                if last < self.history.head {
                    removals.insert((path.clone(), n), vec![last + 1]);
                }
            }
        }
        removals
    }
}

/// Links the histories of so many seeds and checks each.
fn check(shape: Shape, default: usize, with_blame: bool) -> Counts {
    let env = TestEnv::new();
    let seeds = first_seed()..first_seed() + n_histories(default) as u64;
    let mut all: Vec<History> = seeds.map(|seed| histories::history(seed, shape)).collect();
    histories::write(&env, "repo", &mut all);
    let plan = crate::link::plan(&[
        ("P1", &["a.rs", "b.py", "c"]),
        ("P2", &["c", "d/e.rs"]),
        ("P3", &["d/g/h.md"]),
    ]);
    env.write("plan.json", plan.to_string());
    let mut commits = serde_json::Map::new();
    for commit in all.iter().flat_map(|history| &history.commits) {
        if let Some(item) = commit.item {
            commits
                .insert(commit.id.clone(), json!({"item": format!("P{item}"), "origin": "runner"}));
        }
    }
    let ledger_of = |history: &History| {
        let mine = history
            .commits
            .iter()
            .filter_map(|commit| Some((commit.id.clone(), commits.get(&commit.id)?.clone())));
        json!({"schema_version": 1, "commits": mine.collect::<serde_json::Map<_, _>>()})
    };
    let next = AtomicUsize::new(0);
    let result: Mutex<(Vec<String>, Counts)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(history) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ledger = format!("ledger-{}.json", history.seed);
                    env.write(&ledger, ledger_of(history).to_string());
                    let (base, head) =
                        (&history.commits[history.base], &history.commits[history.head]);
                    // Memory that grows with the number of commits would not fit.
                    let mut command = env.command("bash", ".");
                    command.args(["-c", "ulimit -v 1500000 && exec \"$@\"", "-"]);
                    command.args([env!("CARGO_BIN_EXE_codeboost"), "link", "--repo", "repo"]);
                    command.args(["--base", &base.id, "--head", &head.id]);
                    command.args(["--plan", "plan.json", "--ledger", &ledger, "-o", "-"]);
                    let done = env.finish(&mut command);
                    let mut counts = Counts::default();
                    let faults = if done.code == 0 {
                        let link = serde_json::from_str(&done.stdout).unwrap();
                        let mut checked = Checked { env: &env, history, link, faults: Vec::new() };
                        checked.rebuild();
                        checked.same_as_diff();
                        checked.rows();
                        if with_blame {
                            checked.blame(&mut counts.blame);
                            checked.removed(!shape.has_branches, &mut counts.removed);
                        }
                        checked.faults
                    } else {
                        vec![format!("seed {}: {done}", history.seed)]
                    };
                    let mut result = result.lock().unwrap();
                    result.0.extend(faults);
                    result.1.blame.add(&counts.blame);
                    result.1.removed.add(&counts.removed);
                }
            });
        }
    });
    let (mut faults, counts) = result.into_inner().unwrap();
    faults.sort();
    let n_faults = faults.len();
    faults.truncate(10);
    assert!(faults.is_empty(), "{n_faults} faults, such as\n{}", faults.join("\n"));
    counts
}

#[test]
fn linear_histories_come_out_whole_and_owned() {
    let shape = Shape { min_commits: 1, max_commits: 14, has_branches: false, foreign: 15 };
    let counts = check(shape, 250, true);
    counts.blame.is_close();
    counts.removed.is_close();
}

#[test]
fn nothing_of_a_fully_owned_history_is_unplanned() {
    let shape = Shape { min_commits: 1, max_commits: 20, has_branches: false, foreign: 0 };
    check(shape, 100, false);
    let shape = Shape { min_commits: 1, max_commits: 30, has_branches: true, foreign: 0 };
    check(shape, 100, false);
}

#[test]
fn histories_with_merges_come_out_whole_and_owned() {
    let shape = Shape { min_commits: 1, max_commits: 24, has_branches: true, foreign: 15 };
    let counts = check(shape, 150, true);
    counts.blame.is_close();
    counts.removed.is_close();
}

/// `CODEBOOST_COMMITS` sets how long they are.
#[test]
fn long_histories_come_out_whole_in_bounded_memory() {
    let n = std::env::var("CODEBOOST_COMMITS").map_or(150, |n| n.parse().unwrap());
    let shape = Shape { min_commits: n, max_commits: n, has_branches: true, foreign: 10 };
    check(shape, 6, false);
    let shape = Shape { has_branches: false, ..shape };
    check(shape, 2, false);
}
