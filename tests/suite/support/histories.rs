//! Random histories, written through one `git fast-import`.
//!
//! What a history holds follows from its seed alone. Lines come from a small pool, so that equal
//! lines are everywhere; files are edited, moved about in, renamed, deleted and made again; modes,
//! line endings, final newlines, binary content, links and submodules come and go. With branches,
//! side branches and the base itself are merged in, cleanly, with a choice of sides, or with edits
//! that no parent has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::TestEnv;

/// A small generator with a fixed sequence.
#[derive(Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines with their terminators.
    Text(Vec<Vec<u8>>),
    Binary(Vec<u8>),
    Link(Vec<u8>),
    Submodule(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) content: Content,
    pub(crate) is_executable: bool,
}

impl File {
    fn text(lines: Vec<Vec<u8>>) -> Self {
        Self { content: Content::Text(lines), is_executable: false }
    }

    /// The bytes of a regular file.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match &self.content {
            Content::Text(lines) => Some(lines.concat()),
            Content::Binary(bytes) => Some(bytes.clone()),
            Content::Link(_) | Content::Submodule(_) => None,
        }
    }
}

pub(crate) type Tree = BTreeMap<Vec<u8>, File>;

pub(crate) struct Commit {
    pub(crate) parents: Vec<usize>,
    pub(crate) tree: Tree,
    /// `None`: foreign.
    pub(crate) item: Option<u8>,
    /// Filled by [`write`].
    pub(crate) id: String,
}

/// A history: commits with parents first.
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) commits: Vec<Commit>,
    pub(crate) base: usize,
    pub(crate) head: usize,
}

/// What kind of histories are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) min_commits: usize,
    pub(crate) max_commits: usize,
    pub(crate) has_branches: bool,
    /// Percent of commits that belong to nobody.
    pub(crate) foreign: usize,
}

const POOL: &[&str] = &[
    "}\n",
    "\n",
    "    }\n",
    "    x += 1;\n",
    "    return x;\n",
    "fn one() {\n",
    "fn two() {\n",
    "    if x > 1 {\n",
    "    } else {\n",
    "a\n",
    "b\n",
];

fn line(rng: &mut Rng) -> Vec<u8> {
    if rng.chance(45) {
        rng.pick(POOL).as_bytes().to_vec()
    } else {
        let words = ["let", "call", "value", "item", "count", "first", "last"];
        let mut text = String::from("    ");
        for _ in 0..1 + rng.below(3) {
            let _ = write!(text, "{} ", rng.pick(&words));
        }
        let _ = writeln!(text, "= {};", rng.below(1000));
        text.into_bytes()
    }
}

fn lines(rng: &mut Rng, n: usize) -> Vec<Vec<u8>> {
    (0..n).map(|_| line(rng)).collect()
}

/// Puts back what must hold: only the last line may lack a terminator.
fn end_lines(lines: &mut [Vec<u8>]) {
    let n = lines.len();
    for (at, line) in lines.iter_mut().enumerate() {
        if at + 1 < n && line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
    }
}

fn edit_lines(rng: &mut Rng, text: &mut Vec<Vec<u8>>) {
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(text.len() + 1);
        let n = (1 + rng.below(4)).min(text.len() - at);
        match rng.below(12) {
            0..=2 => {
                let count = 1 + rng.below(5);
                let more = lines(rng, count);
                text.splice(at..at, more);
            }
            3..=4 => {
                text.drain(at..at + n);
            }
            5..=6 => {
                // A small change inside each line.
                for line in &mut text[at..at + n] {
                    let place = rng.below(line.len());
                    line.insert(place, b'~');
                }
            }
            7 => {
                let count = rng.below(5);
                let more = lines(rng, count);
                text.splice(at..at + n, more);
            }
            8 => {
                // Move.
                let cut: Vec<_> = text.drain(at..at + n).collect();
                let to = rng.below(text.len() + 1);
                text.splice(to..to, cut);
            }
            9 => {
                // Copy.
                let copy = text[at..at + n].to_vec();
                let to = rng.below(text.len() + 1);
                text.splice(to..to, copy);
            }
            10 => {
                for line in &mut text[at..at + n] {
                    if line.ends_with(b"\r\n") {
                        line.remove(line.len() - 2);
                    } else if line.ends_with(b"\n") {
                        line.insert(line.len() - 1, b'\r');
                    }
                }
            }
            _ => {
                if let Some(last) = text.last_mut() {
                    if last.ends_with(b"\n") && last.len() > 1 {
                        last.pop();
                    } else {
                        last.push(b'\n');
                    }
                }
            }
        }
        end_lines(text);
    }
}

fn new_path(rng: &mut Rng, tree: &Tree) -> Vec<u8> {
    const NAMES: &[&[u8]] = &[
        b"a.rs",
        b"b.py",
        b"c",
        b"d/e.rs",
        b"d/f.txt",
        b"d/g/h.md",
        b"sp ace.c",
        b"qu\"ote.js",
        b"t\tab.go",
        b"A.rs",
        b"\xc3\xa4.txt",
        b"\xff\xfe.bin",
        b":(top)x",
        b"*.rs",
        b"i/j",
    ];
    for _ in 0..20 {
        let path = rng.pick(NAMES).to_vec();
        let clashes = tree.keys().any(|other| {
            let below = |a: &[u8], b: &[u8]| a.starts_with(b) && a.get(b.len()) == Some(&b'/');
            *other == path || below(other, &path) || below(&path, other)
        });
        if !clashes {
            return path;
        }
    }
    format!("n{}.txt", rng.below(1_000_000)).into_bytes()
}

fn change(rng: &mut Rng, tree: &mut Tree) {
    let paths: Vec<Vec<u8>> = tree.keys().cloned().collect();
    if paths.is_empty() || rng.chance(6) {
        let path = new_path(rng, tree);
        let n = rng.below(12);
        let file = File::text(lines(rng, n));
        tree.insert(path, file);
        return;
    }
    let path = rng.pick(&paths).clone();
    let mut file = tree[&path].clone();
    match rng.below(40) {
        0..=1 => {
            tree.remove(&path);
            return;
        }
        2..=4 => {
            tree.remove(&path);
            let to = new_path(rng, tree);
            if let (Content::Text(text), true) = (&mut file.content, rng.chance(40)) {
                edit_lines(rng, text);
            }
            tree.insert(to, file);
            return;
        }
        5 => {
            // Two files change places.
            let other = rng.pick(&paths).clone();
            let theirs = tree[&other].clone();
            tree.insert(path, theirs);
            tree.insert(other, file);
            return;
        }
        6 => file.is_executable = !file.is_executable && file.bytes().is_some(),
        7 => {
            let n = 1 + rng.below(40);
            let mut bytes: Vec<u8> = (0..n).map(|_| rng.below(256) as u8).collect();
            bytes.push(0);
            file.content = Content::Binary(bytes);
        }
        8 => file.content = Content::Text(Vec::new()),
        9 => {
            file.content = Content::Link(format!("to{}", rng.below(3)).into_bytes());
            file.is_executable = false;
        }
        10 => {
            file.content = Content::Submodule(rng.below(1000) as u64);
            file.is_executable = false;
        }
        11 => {
            let n = rng.below(15);
            file.content = Content::Text(lines(rng, n));
        }
        12 => {
            if let Content::Text(text) = &mut file.content
                && let Some(first) = text.first_mut()
            {
                match first.strip_prefix(b"\xef\xbb\xbf") {
                    Some(rest) => *first = rest.to_vec(),
                    None => {
                        first.splice(0..0, *b"\xef\xbb\xbf");
                    }
                }
            }
        }
        _ => match &mut file.content {
            Content::Text(text) => edit_lines(rng, text),
            Content::Binary(bytes) => bytes.push(7),
            Content::Link(target) => target.push(b'x'),
            Content::Submodule(n) => *n += 1,
        },
    }
    tree.insert(path, file);
}

fn merge(rng: &mut Rng, parents: &[&Tree], ancestor: &Tree) -> Tree {
    let mut paths: Vec<&Vec<u8>> = parents.iter().flat_map(|tree| tree.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut merged = Tree::new();
    for path in paths {
        let old = ancestor.get(path);
        let changed: Vec<Option<&File>> =
            parents.iter().map(|tree| tree.get(path)).filter(|file| *file != old).collect();
        let chosen = match changed.as_slice() {
            [] => old.cloned(),
            [one] => one.cloned(),
            [one, rest @ ..] => {
                let mut mixed = one.cloned();
                for other in rest {
                    mixed = match (mixed, other) {
                        (
                            Some(File { content: Content::Text(a), is_executable }),
                            Some(File { content: Content::Text(b), .. }),
                        ) => Some(File { content: Content::Text(mix(rng, &a, b)), is_executable }),
                        (a, b) => {
                            if rng.chance(50) {
                                a
                            } else {
                                b.cloned()
                            }
                        }
                    };
                }
                mixed
            }
        };
        if let Some(file) = chosen {
            let clashes = merged.keys().any(|other: &Vec<u8>| {
                path.starts_with(other) && path.get(other.len()) == Some(&b'/')
            });
            if !clashes {
                merged.insert(path.clone(), file);
            }
        }
    }
    if rng.chance(30) {
        change(rng, &mut merged);
    }
    merged
}

/// Takes stretches from both sides.
fn mix(rng: &mut Rng, a: &[Vec<u8>], b: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let cut = rng.below(a.len() + 1);
    let mut mixed = a[..cut].to_vec();
    mixed.extend_from_slice(&b[cut.min(b.len())..]);
    end_lines(&mut mixed);
    mixed
}

/// Makes the history of a seed.
pub(crate) fn history(seed: u64, shape: Shape) -> History {
    let rng = &mut Rng::new(seed);
    let mut tree = Tree::new();
    for _ in 0..1 + rng.below(4) {
        let path = new_path(rng, &tree);
        let n = rng.below(25);
        let file = File::text(lines(rng, n));
        tree.insert(path, file);
    }
    let mut commits: Vec<Commit> = Vec::new();
    let mut add = |parents: Vec<usize>, tree: Tree, item: Option<u8>| {
        commits.push(Commit { parents, tree, item, id: String::new() });
        commits.len() - 1
    };
    let item = |rng: &mut Rng| (!rng.chance(shape.foreign)).then(|| 1 + rng.below(3) as u8);
    let n = shape.min_commits + rng.below(1 + shape.max_commits - shape.min_commits);
    let first = add(Vec::new(), tree.clone(), None);
    if !shape.has_branches {
        let mut at = first;
        for _ in 0..n {
            for _ in 0..1 + rng.below(2) {
                if !rng.chance(4) {
                    change(rng, &mut tree);
                }
            }
            at = add(vec![at], tree.clone(), item(rng));
        }
        return History { seed, commits, base: first, head: at };
    }
    // Two lines of work from the first commit: the base branch, and the task with side branches.
    let mut base = first;
    let mut tips = vec![first];
    for _ in 0..n {
        let kind = rng.below(10);
        if kind == 0 {
            // The base moves on.
            let mut tree = commits[base].tree.clone();
            change(rng, &mut tree);
            commits.push(Commit { parents: vec![base], tree, item: None, id: String::new() });
            base = commits.len() - 1;
            continue;
        }
        let at = rng.below(tips.len());
        if kind <= 2 && tips.len() < 4 {
            tips.push(tips[at]);
            continue;
        }
        let mut parents = vec![tips[at]];
        if kind <= 4 {
            // A merge of one or two other branches, or of the base.
            let others: Vec<usize> = tips.iter().copied().chain([base]).collect();
            for _ in 0..1 + usize::from(rng.chance(15)) {
                let other = *rng.pick(&others);
                if !parents.contains(&other) {
                    parents.push(other);
                }
            }
        }
        let tree = if parents.len() > 1 {
            let sides: Vec<&Tree> = parents.iter().map(|n| &commits[*n].tree).collect();
            merge(rng, &sides, &commits[first].tree)
        } else {
            let mut tree = commits[tips[at]].tree.clone();
            change(rng, &mut tree);
            tree
        };
        commits.push(Commit { parents, tree, item: item(rng), id: String::new() });
        tips[at] = commits.len() - 1;
    }
    // Everything comes together, and the base is part of it.
    let mut head = tips[0];
    for other in tips[1..].iter().copied().chain([base]) {
        if reaches_in(&commits, head, other) {
            continue;
        }
        if reaches_in(&commits, other, head) && other != base {
            head = other;
            continue;
        }
        let tree = merge(rng, &[&commits[head].tree, &commits[other].tree], &commits[first].tree);
        let item = item(rng);
        commits.push(Commit { parents: vec![head, other], tree, item, id: String::new() });
        head = commits.len() - 1;
    }
    History { seed, commits, base, head }
}

/// Whether one commit is another or one of its ancestors.
pub(crate) fn reaches(history: &History, from: usize, to: usize) -> bool {
    reaches_in(&history.commits, from, to)
}

fn reaches_in(commits: &[Commit], from: usize, to: usize) -> bool {
    let mut todo = vec![from];
    let mut seen = vec![false; commits.len()];
    while let Some(at) = todo.pop() {
        if at == to {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            todo.extend(commits[at].parents.iter().filter(|parent| **parent >= to));
        }
    }
    false
}

/// Writes histories into a new bare repository; their commits get their ids.
pub(crate) fn write(env: &TestEnv, repo: &str, histories: &mut [History]) {
    env.git(".", ["init", "-q", "--bare", repo]);
    let mut stream = Vec::new();
    let mut mark = 0;
    for history in &*histories {
        let first = mark + 1;
        for commit in &history.commits {
            mark += 1;
            let message = format!("step {mark}\n");
            let _ = write!(
                stream,
                "commit refs/heads/h{}\nmark :{mark}\ncommitter C <c@example.invalid> {} +0000\n\
                 data {}\n{message}",
                history.seed,
                1_600_000_000 + mark * 60,
                message.len()
            );
            for (n, parent) in commit.parents.iter().enumerate() {
                let word = if n == 0 { "from" } else { "merge" };
                let _ = writeln!(stream, "{word} :{}", first + parent);
            }
            if commit.parents.is_empty() {
                let _ = writeln!(stream, "deleteall");
            }
            let _ = writeln!(stream, "deleteall");
            for (path, file) in &commit.tree {
                write_file(&mut stream, path, file);
            }
            stream.push(b'\n');
        }
        let _ = writeln!(
            stream,
            "reset refs/heads/h{}\nfrom :{}\n",
            history.seed,
            first + history.head
        );
        let _ =
            writeln!(stream, "reset refs/tags/b{}\nfrom :{}\n", history.seed, first + history.base);
    }
    let mut command = env.command("git", repo);
    command
        .args(["fast-import", "--quiet", "--date-format=raw", "--export-marks=marks"])
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(child.wait().unwrap().success());
    let marks = std::fs::read_to_string(env.path(repo).join("marks")).unwrap();
    let ids: BTreeMap<usize, &str> = marks
        .lines()
        .map(|line| {
            let (mark, id) = line.strip_prefix(':').unwrap().split_once(' ').unwrap();
            (mark.parse().unwrap(), id)
        })
        .collect();
    let mut mark = 0;
    for commit in histories.iter_mut().flat_map(|history| &mut history.commits) {
        mark += 1;
        commit.id = ids[&mark].to_owned();
    }
}

fn write_file(stream: &mut Vec<u8>, path: &[u8], file: &File) {
    let mode = match &file.content {
        Content::Link(_) => "120000",
        Content::Submodule(_) => "160000",
        _ if file.is_executable => "100755",
        _ => "100644",
    };
    let mut quoted = Vec::from(*b"\"");
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            0..=31 | 127..=255 => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    let bytes = match &file.content {
        Content::Submodule(n) => {
            let _ = write!(stream, "M {mode} {:040x} ", n + 1);
            stream.extend(&quoted);
            stream.push(b'\n');
            return;
        }
        Content::Link(target) => target.clone(),
        _ => file.bytes().unwrap(),
    };
    let _ = write!(stream, "M {mode} inline ");
    stream.extend(&quoted);
    let _ = write!(stream, "\ndata {}\n", bytes.len());
    stream.extend(&bytes);
    stream.push(b'\n');
}
