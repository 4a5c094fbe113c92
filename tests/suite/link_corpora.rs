//! `codeboost link` on real histories, held against git's own diff.
//!
//! `CODEBOOST_CORPORA` names a folder of corpora: in each a `repo.bundle`, and for each range X
//! `X.json` with base and head, `X.plan.json` and `X.ledger.json`. Without it these tests say
//! loudly that they were left out.

#![expect(clippy::print_stdout, reason = "figures for who runs them by hand")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::TestEnv;
use crate::support::diffs::{self, bytes};

/// The ranges of every corpus: folder and name.
pub(crate) fn ranges() -> Vec<(PathBuf, String)> {
    let Ok(folder) = std::env::var("CODEBOOST_CORPORA") else {
        println!("LEFT OUT: CODEBOOST_CORPORA names no folder of corpora");
        return Vec::new();
    };
    let mut found = Vec::new();
    for corpus in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if !corpus.join("repo.bundle").exists() {
            continue;
        }
        for file in std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if let Some(range) = name.strip_suffix(".json").filter(|range| !range.contains('.')) {
                found.push((corpus.clone(), range.to_owned()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "CODEBOOST_CORPORA holds no corpus");
    found
}

/// A range of a corpus, linked and proven.
pub(crate) struct Corpus {
    pub(crate) env: TestEnv,
    pub(crate) base: String,
    pub(crate) head: String,
    pub(crate) link: Value,
}

impl Corpus {
    pub(crate) fn link(folder: &Path, range: &str) -> Self {
        let env = TestEnv::new();
        let bundle = folder.join("repo.bundle");
        env.git(".", ["clone", "-q", "--bare", bundle.to_str().unwrap(), "repo"]);
        let read = |ending: &str| std::fs::read(folder.join(format!("{range}{ending}"))).unwrap();
        let ends: Value = serde_json::from_slice(&read(".json")).unwrap();
        let end = |name: &str| ends[name].as_str().unwrap().to_owned();
        let (base, head) = (end("base"), end("head"));
        env.write("plan.json", read(".plan.json"));
        env.write("ledger.json", read(".ledger.json"));
        let args = ["--plan", "plan.json", "--ledger", "ledger.json", "-o", "link.json"];
        let range = ["link", "--repo", "repo", "--base", &base, "--head", &head];
        let done = env.run(range.iter().chain(&args));
        assert_eq!(done.code, 0, "{done}");
        let proven = env.run(range.iter().chain(&args).chain(&["--verify"]));
        assert_eq!(proven.code, 0, "{proven}");
        let link = serde_json::from_slice(&std::fs::read(env.path("link.json")).unwrap()).unwrap();
        Self { env, base, head, link }
    }
}

#[test]
fn corpora_have_the_lines_that_git_has() {
    for (folder, range) in ranges() {
        let corpus = Corpus::link(&folder, &range);
        let ends = [corpus.base.as_str(), corpus.head.as_str()];
        let difference = diffs::difference(&corpus.env, "repo", ends, &corpus.link);
        assert_eq!(difference, None, "{} {range}", folder.display());
        let n_files = corpus.link["files"].as_array().unwrap().len();
        let n_lines: u64 = corpus.link["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["added"].as_u64().unwrap() + row["removed"].as_u64().unwrap())
            .sum();
        println!("{} {range}: {n_files} files and {n_lines} lines as git", folder.display());
    }
}

/// Blame compares by Myers' diff and we by histogram, so that of several equal lines another one
/// can be the new one: of the lines that blame gives to the range at most one in fifty. A line that
/// blame holds to be the base's is one that the final diff shows as added all the same: it carries
/// the tag `realigned`, or else counts as such a line too.
#[test]
fn corpora_agree_with_blame() {
    for (folder, range) in ranges() {
        let corpus = Corpus::link(&folder, &range);
        let files = corpus.link["files"].as_array().unwrap();
        let mut added: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
        for segment in corpus.link["segments"].as_array().unwrap() {
            if segment["op"] == "+" {
                added.entry(segment["file"].as_u64().unwrap()).or_default().push(segment);
            }
        }
        let (mut n_lines, mut n_agree, mut n_base, mut n_other) = (0, 0, 0, 0);
        for (file, segments) in added {
            use std::os::unix::ffi::OsStrExt as _;
            let path = bytes(&files[file as usize], "path").unwrap();
            let mut command = corpus.env.command("git", "repo");
            command.args(["blame", "-s", "-l"]).arg(format!("{}..{}", corpus.base, corpus.head));
            command.arg("--").arg(std::ffi::OsStr::from_bytes(&path));
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            let blamed = diffs::lines(&out.stdout);
            for segment in segments {
                let start = segment["new_start"].as_u64().unwrap() as usize - 1;
                let n = segment["lines"].as_u64().unwrap() as usize;
                let commits = segment["commits"].as_array().unwrap();
                let tags = segment["tags"].as_array().unwrap();
                let has_tag = tags.iter().any(|tag| tag["tag"] == "realigned");
                for line in &blamed[start..start + n] {
                    let id = String::from_utf8_lossy(&line[..40]);
                    n_lines += 1;
                    if commits.iter().any(|named| named.as_str() == Some(&id)) {
                        n_agree += 1;
                    } else if id.starts_with('^') && has_tag {
                        n_base += 1;
                    } else {
                        n_other += 1;
                    }
                }
            }
        }
        println!(
            "{} {range}: of {n_lines} added lines blame agrees on {n_agree}, holds {n_base} \
             realigned ones to be the base's, and {n_other} to be another commit's",
            folder.display()
        );
        assert!(n_other * 50 <= n_lines && n_base * 25 <= n_lines);
    }
}
