//! The final diff of many pairs of texts, with git as the oracle.
//!
//! Texts with blank lines, lines that are repeated, indentation, and no final newline: where several
//! diffs are right, ours must be the one that git shows. `CODEBOOST_PAIRS` sets how many.

use serde_json::json;

use crate::link::plan;
use crate::support::TestEnv;
use crate::support::diffs;
use crate::support::histories::Rng;

fn line(rng: &mut Rng) -> String {
    let indent = if rng.chance(3) { 210 } else { [0, 2, 4, 8][rng.below(4)] };
    let indent = " ".repeat(indent);
    match rng.below(100) {
        0..18 => "\n".into(),
        18..32 => format!("{indent}}}\n"),
        32..38 => {
            let tabs = "\t".repeat(rng.below(3));
            format!("{tabs}{}", ["\n", "\r\n", "\x0c\n", "x\n", " \n"][rng.below(5)])
        }
        _ => {
            let letter = char::from(b'a' + rng.below(10) as u8).to_string();
            format!("{indent}{}\n", letter.repeat(1 + rng.below(2)))
        }
    }
}

fn text(rng: &mut Rng) -> Vec<String> {
    let most = [3, 8, 20, 60, 150, 400][rng.below(6)];
    let n = rng.below(most + 1);
    let mut lines: Vec<String> = (0..n).map(|_| line(rng)).collect();
    if rng.chance(30) {
        for one in &mut lines {
            if rng.chance(50) {
                *one = format!("line {} of something that is long enough\n", rng.below(2 * n));
            }
        }
    }
    // A long common end, which git leaves out of the search.
    if rng.chance(20) {
        for _ in 0..rng.below(200) {
            let width = rng.below(30);
            let plain = format!("    end {:width$}\n", rng.below(40));
            lines.push(if rng.chance(80) { plain } else { line(rng) });
        }
    }
    lines
}

fn changed(rng: &mut Rng, old: &[String]) -> Vec<String> {
    let mut lines = old.to_vec();
    for _ in 0..[1, 1, 2, 3, 6, 12, 30][rng.below(7)] {
        let at = rng.below(lines.len() + 1);
        let from = rng.below(lines.len().max(1)).min(lines.len());
        let to = (from + 1 + rng.below(11)).min(lines.len());
        match rng.below(100) {
            0..30 => {
                let more: Vec<String> = (0..1 + rng.below(5)).map(|_| line(rng)).collect();
                lines.splice(at..at, more);
            }
            30..55 => drop(lines.drain(from..to)),
            55..70 => {
                let copy = lines[from..to].to_vec();
                lines.splice(at..at, copy);
            }
            70..85 => {
                let moved: Vec<String> = lines.drain(from..to).collect();
                let at = rng.below(lines.len() + 1);
                lines.splice(at..at, moved);
            }
            _ => {
                if let Some(one) = lines.get_mut(from) {
                    *one = line(rng);
                }
            }
        }
    }
    lines
}

/// Links one commit that turns the old texts into the new ones, and compares with git.
fn check(pairs: &[(String, String)]) {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "-b", "main", "repo"]);
    env.git("repo", ["config", "core.autocrlf", "false"]);
    let mut ends = Vec::new();
    for new in [false, true] {
        for (n, pair) in pairs.iter().enumerate() {
            env.write(format!("repo/f{n}.c"), if new { &pair.1 } else { &pair.0 });
        }
        env.git("repo", ["add", "-A"]);
        env.git("repo", ["commit", "-q", "--allow-empty", "-m", "texts"]);
        ends.push(env.git("repo", ["rev-parse", "HEAD"]).trim().to_owned());
    }
    env.write("plan.json", plan(&[("P1", &["f0.c"])]).to_string());
    let commits = json!({&ends[1]: {"item": "P1", "origin": "runner"}});
    env.write("ledger.json", json!({"schema_version": 1, "commits": commits}).to_string());
    let link = |more: &[&str]| {
        let range = ["link", "--repo", "repo", "--base", &ends[0], "--head", &ends[1]];
        let files = ["--plan", "plan.json", "--ledger", "ledger.json"];
        let done = env.run(range.iter().chain(&files).chain(more));
        assert_eq!(done.code, 0, "{done}");
        done
    };
    let answer = serde_json::from_str(&link(&["-o", "-"]).stdout).unwrap();
    assert_eq!(diffs::difference(&env, "repo", [&ends[0], &ends[1]], &answer), None);
    link(&["-o", "link.json"]);
    link(&["-o", "link.json", "--verify"]);
}

#[test]
fn of_several_right_diffs_it_is_gits() {
    let n = std::env::var("CODEBOOST_PAIRS").map_or(800, |n| n.parse().unwrap());
    let mut rng = Rng::new(7);
    let mut pairs = Vec::new();
    for _ in 0..n {
        let old = text(&mut rng);
        let new = if rng.chance(5) { text(&mut rng) } else { changed(&mut rng, &old) };
        let mut end = |lines: Vec<String>| {
            let text = lines.concat();
            if rng.chance(10) { text.trim_end_matches('\n').to_owned() } else { text }
        };
        pairs.push((end(old), end(new)));
    }
    check(&pairs);
}

#[test]
fn where_lines_are_repeated_too_often_git_is_asked() {
    let many = |line: &str, n: usize| line.repeat(n);
    let mut pairs = Vec::new();
    for n in [64, 65, 66, 200, 20_000] {
        pairs.push((many("\n", n), format!("x\n{}{}", many("\n", n - 10), many("}\n", n / 2))));
        pairs.push((many("}\n", n), format!("{}y\n", many("\n}\n", n / 2))));
        let mixed = |a: &str, b: &str| (0..n).map(|k| if k % 3 == 0 { a } else { b }).collect();
        pairs.push((mixed("a\n", "b\n"), mixed("b\n", "a\n")));
    }
    check(&pairs);
}
