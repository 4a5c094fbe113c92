//! A slow second opinion on who removed a line, on histories of any shape.
//!
//! Every line of the base is followed through every commit, parent by parent. A commit removed it
//! when each of its parents has the line and the commit has not. Where branches meet, three rules
//! say more:
//!
//! - A parent that never had the line, because its branch began before the base got it, has no say.
//! - A parent that lost it hands down who removed it there; then the merge only took that over.
//! - A parent that has the line although the one who removed it is among its ancestors brought it
//!   back. A merge that drops it after that removed it itself.
//!
//! Lines are matched by a longest common subsequence of whole files, renames are git's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::support::TestEnv;
use crate::support::histories::{Content, History, Tree, reaches};

/// Path and line, from 0.
type Place = (Vec<u8>, usize);

/// By line of the base: the commits that removed it, the first in topological order first. Lines
/// that no commit removed are not in it.
pub(crate) type Removals = HashMap<Place, Vec<usize>>;

/// By commit and parent: new path to old path.
type Renames = HashMap<(usize, usize), BTreeMap<Vec<u8>, Vec<u8>>>;

pub(crate) fn removals(env: &TestEnv, history: &History, range: &BTreeSet<usize>) -> Removals {
    let renames = renames(env, history, range);
    let base = &history.commits[history.base].tree;
    let all: Vec<Place> = base
        .keys()
        .flat_map(|path| (0..text(base, path).len()).map(|line| (path.clone(), line)))
        .collect();
    // By commit: where each line of the base stands in it.
    let mut states: HashMap<usize, HashMap<Place, Place>> = HashMap::new();
    states.insert(history.base, all.iter().map(|place| (place.clone(), place.clone())).collect());
    // By commit: the lines that it lacks, and who removed them.
    let mut lost: HashMap<usize, HashMap<&Place, BTreeSet<usize>>> = HashMap::new();
    for n in range.iter().copied() {
        let commit = &history.commits[n];
        let mut state: HashMap<Place, Place> = HashMap::new();
        let mut having: HashMap<&Place, Vec<usize>> = HashMap::new();
        for (p, parent) in commit.parents.iter().enumerate() {
            let parent_tree = &history.commits[*parent].tree;
            if !states.contains_key(parent) {
                let stays = follow(base, parent_tree, &BTreeMap::new());
                let stays =
                    all.iter().filter_map(|place| Some((place.clone(), stays.get(place)?.clone())));
                states.insert(*parent, stays.collect());
            }
            let step = follow(parent_tree, &commit.tree, &renames[&(n, p)]);
            let parent_state = &states[parent];
            for place in &all {
                let Some(before) = parent_state.get(place) else { continue };
                having.entry(place).or_default().push(*parent);
                if let Some(now) = step.get(before) {
                    state.entry(place.clone()).or_insert_with(|| now.clone());
                }
            }
        }
        let mut gone: HashMap<&Place, BTreeSet<usize>> = HashMap::new();
        for place in all.iter().filter(|place| !state.contains_key(*place)) {
            let of_parents =
                commit.parents.iter().filter_map(|parent| lost.get(parent)?.get(place));
            let mut removers: BTreeSet<usize> = of_parents.flatten().copied().collect();
            if let Some(having) = having.get(place) {
                let is_undone =
                    |n: &usize| having.iter().any(|parent| reaches(history, *parent, *n));
                removers.retain(|remover| !is_undone(remover));
                if removers.is_empty() {
                    removers.insert(n);
                }
            }
            if !removers.is_empty() {
                gone.insert(place, removers);
            }
        }
        lost.insert(n, gone);
        states.insert(n, state);
    }
    let gone = lost.remove(&history.head).unwrap_or_default().into_iter();
    gone.map(|(place, removers)| (place.clone(), removers.into_iter().collect())).collect()
}

fn text<'a>(tree: &'a Tree, path: &[u8]) -> &'a [Vec<u8>] {
    match tree.get(path).map(|file| &file.content) {
        Some(Content::Text(lines)) => lines,
        _ => &[],
    }
}

/// Where each line of `old` stands in `new`.
fn follow(old: &Tree, new: &Tree, renames: &BTreeMap<Vec<u8>, Vec<u8>>) -> HashMap<Place, Place> {
    let mut places = HashMap::new();
    for path in new.keys() {
        let from = renames.get(path).unwrap_or(path);
        if from == path && renames.values().any(|taken| taken == path) {
            continue;
        }
        for (i, j) in common(text(old, from), text(new, path)) {
            places.insert((from.clone(), i), (path.clone(), j));
        }
    }
    places
}

/// A longest common subsequence.
fn common(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let mut best = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i][j] = if old[i] == new[j] {
                best[i + 1][j + 1] + 1
            } else {
                best[i + 1][j].max(best[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

fn renames(env: &TestEnv, history: &History, range: &BTreeSet<usize>) -> Renames {
    use std::io::Write as _;
    let mut asked = Vec::new();
    let mut pairs = Vec::new();
    for n in range {
        let commit = &history.commits[*n];
        for (p, parent) in commit.parents.iter().enumerate() {
            let _ = writeln!(asked, "{} {}", commit.id, history.commits[*parent].id);
            pairs.push((*n, p));
        }
    }
    let mut command = env.command("git", "repo");
    command.args(["diff-tree", "--stdin", "--always", "-r", "-z", "--raw", "-M50%", "-l1000"]);
    command.args(["--no-rename-empty", "--diff-filter=R"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&asked).unwrap());
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(out.status.success());
    let mut fields = out.stdout.split(|b| *b == 0);
    let mut renames: Renames = pairs.iter().map(|pair| (*pair, BTreeMap::new())).collect();
    let mut at = None;
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            let (old, new) = (fields.next().unwrap(), fields.next().unwrap());
            let at: usize = at.unwrap();
            renames.get_mut(&pairs[at]).unwrap().insert(new.to_vec(), old.to_vec());
        } else if !field.is_empty() {
            at = Some(at.map_or(0, |at: usize| at + 1));
        }
    }
    renames
}
