//! Gives every line of the final diff its commits, also where the final diff and the replay align
//! repeated lines differently.
//!
//! When the final diff shows as added a line that the replay holds to be base line b: if the final
//! diff matches b with another new line, go on with that line; the first one that the range made
//! gives its touchers. If the chain ends at a base line that the final diff removes, all commits
//! that changed any line between the two places are taken. For a removed line likewise with the
//! sides exchanged. As long as both alignments pair each line at most once no chain is endless,
//! because its first line is unpaired in the final diff. Where merges left one base line in two
//! files of the head, a chain that comes back to a line ends there.
//!
//! Where nothing between the two places was changed, or they lie in different files, the commits
//! that gave the file its path are taken, else all that changed it: no line of the final diff is
//! without a commit.
//!
//! Source: contracts, "Who touched a line".

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use codeboost_schema::bytes::RepoPath;

use crate::link::history::{Block, FinalFile, History};
use crate::link::replay::{Body, Entity};
use crate::link::touch::{HeadPlace, NOBODY, Touched, Touches};

/// Who is shown as the maker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineOwner {
    pub(crate) touched: Touched,
    /// Whether the two alignments disagreed.
    pub(crate) is_realigned: bool,
}

/// The final diff beside the replay.
pub(crate) struct Aligner<'a> {
    pub(crate) touches: Touches<'a>,
    history: &'a History,
    by_old_path: HashMap<&'a RepoPath, u32>,
    by_new_path: HashMap<&'a RepoPath, u32>,
    /// The final diff of each file.
    blocks: HashMap<u32, Rc<[Block]>>,
    orders: HashMap<u32, Order>,
}

/// How the final diff treats a line.
enum Match<T> {
    With(T),
    Unpaired,
}

impl<'a> Aligner<'a> {
    pub(crate) fn new(history: &'a History, finals: &[u32], touches: Touches<'a>) -> Self {
        let mut by_old_path = HashMap::new();
        let mut by_new_path = HashMap::new();
        let mut blocks = HashMap::new();
        for n in finals {
            let change = &history.diff.files[*n as usize].change;
            let head = touches.file_at(&change.path).map(|head| touches.body(head));
            blocks.insert(*n, touches.replay.final_blocks(change, head));
            if change.old.is_some() {
                by_old_path.insert(change.old_path(), *n);
            }
            if change.new.is_some() {
                by_new_path.insert(&change.path, *n);
            }
        }
        Self { touches, history, by_old_path, by_new_path, blocks, orders: HashMap::new() }
    }

    fn file(&self, n: u32) -> &'a FinalFile {
        &self.history.diff.files[n as usize]
    }

    /// The changed lines of a file of the final diff.
    pub(crate) fn blocks(&self, n: u32) -> Rc<[Block]> {
        Rc::clone(&self.blocks[&n])
    }

    /// The owner of a line that the final diff adds.
    pub(crate) fn added(&mut self, place: HeadPlace) -> LineOwner {
        let mut at = place;
        let mut is_realigned = false;
        let mut seen: HashSet<Entity> = HashSet::new();
        loop {
            let entity = self.touches.entity_at(at);
            if !self.touches.replay.is_base(entity) {
                let touched = self.touches.made(entity);
                return self.or_anyone(touched, is_realigned, place);
            }
            is_realigned = true;
            match self.match_of_base(entity) {
                Match::With(next) if seen.insert(entity) => at = next,
                Match::With(_) | Match::Unpaired => return self.between(entity, place),
            }
        }
    }

    /// The owner of a base line that the final diff removes.
    pub(crate) fn removed(&mut self, entity: Entity) -> LineOwner {
        let mut at = entity;
        let mut is_realigned = false;
        let mut seen: HashSet<Entity> = HashSet::new();
        loop {
            let Some(place) = self.touches.place_of(at) else {
                let touched = self.touches.gone(at);
                let (file, _) = self.touches.replay.base_place(entity);
                if touched.nodes == NOBODY.nodes {
                    let path = self.touches.replay.base_files[file as usize].path.clone();
                    return self.anyone(&path);
                }
                return LineOwner { touched, is_realigned };
            };
            is_realigned = true;
            match self.match_of_head(place) {
                Match::With(next) if seen.insert(at) => at = next,
                Match::With(_) | Match::Unpaired => return self.between(entity, place),
            }
        }
    }

    fn match_of_base(&self, entity: Entity) -> Match<HeadPlace> {
        let (file, line) = self.touches.replay.base_place(entity);
        let path = &self.touches.replay.base_files[file as usize].path;
        let Some(n) = self.by_old_path.get(path) else {
            // A file that the final diff does not name is the same on both sides.
            return self.head_line(self.touches.file_at(path), Some(line));
        };
        let file = self.file(*n);
        self.head_line(self.touches.file_at(&file.change.path), self.old_to_new(*n, line))
    }

    fn head_line(&self, file: Option<u32>, line: Option<u32>) -> Match<HeadPlace> {
        match (file, line) {
            (Some(file), Some(line))
                if (line as usize) < self.touches.body(file).entities().len() =>
            {
                Match::With(HeadPlace { file, line })
            }
            _ => Match::Unpaired,
        }
    }

    fn match_of_head(&self, place: HeadPlace) -> Match<Entity> {
        let path = &self.touches.files[place.file as usize].0;
        let (path, line) = match self.by_new_path.get(path) {
            None => (path, Some(place.line)),
            Some(n) => {
                let file = self.file(*n);
                (file.change.old_path(), self.new_to_old(*n, place.line))
            }
        };
        match (line, self.touches.replay.base_file_at(path)) {
            (Some(line), Some(base)) if (line as usize) < base.state.body.entities().len() => {
                Match::With(base.first + line)
            }
            _ => Match::Unpaired,
        }
    }

    fn old_to_new(&self, n: u32, line: u32) -> Option<u32> {
        let blocks = &self.blocks[&n];
        if !is_text(self.file(n)) {
            return None;
        }
        let n = blocks.partition_point(|block| block.olds().end as u32 <= line);
        if blocks.get(n).is_some_and(|block| block.old_start <= line) {
            return None;
        }
        let before = n.checked_sub(1).map(|n| blocks[n]);
        let (old, new) = before.map_or((0, 0), |b| (b.olds().end as u32, b.news().end as u32));
        Some(line - old + new)
    }

    fn new_to_old(&self, n: u32, line: u32) -> Option<u32> {
        let blocks = &self.blocks[&n];
        if !is_text(self.file(n)) {
            return None;
        }
        let n = blocks.partition_point(|block| block.news().end as u32 <= line);
        if blocks.get(n).is_some_and(|block| block.new_start <= line) {
            return None;
        }
        let before = n.checked_sub(1).map(|n| blocks[n]);
        let (old, new) = before.map_or((0, 0), |b| (b.olds().end as u32, b.news().end as u32));
        Some(line - new + old)
    }

    /// A base line that the final diff removes, and the head line that the replay holds it to be.
    fn between(&mut self, entity: Entity, place: HeadPlace) -> LineOwner {
        let (base, old_line) = self.touches.replay.base_place(entity);
        let head_path = self.touches.files[place.file as usize].0.clone();
        let base_path = self.touches.replay.base_files[base as usize].path.clone();
        let same =
            self.by_new_path.get(&head_path).copied().filter(|n| {
                *self.file(*n).change.old_path() == base_path && is_text(self.file(*n))
            });
        let touched = match same {
            Some(n) => {
                let mut order = match self.orders.remove(&n) {
                    Some(order) => order,
                    None => self.order(n, base, place.file),
                };
                let blocks = self.blocks(n);
                let from = order_key(&blocks, Side::Old, old_line);
                let to = order_key(&blocks, Side::New, place.line);
                let mut touched = order.union(&mut self.touches, from.min(to), from.max(to));
                if touched.nodes == NOBODY.nodes {
                    touched = order.all(&mut self.touches);
                }
                self.orders.insert(n, order);
                touched
            }
            None => {
                let nodes = self.touches.files[place.file as usize].1.path_events();
                Touched { nodes, is_coarse: false }
            }
        };
        self.or_anyone(touched, true, place)
    }

    fn or_anyone(&mut self, touched: Touched, is_realigned: bool, place: HeadPlace) -> LineOwner {
        if touched.nodes != NOBODY.nodes {
            return LineOwner { touched, is_realigned };
        }
        let path = self.touches.files[place.file as usize].0.clone();
        self.anyone(&path)
    }

    /// Everyone who changed the file, else the lineage.
    pub(crate) fn anyone(&mut self, path: &RepoPath) -> LineOwner {
        let replay = &mut self.touches.replay;
        let all = 0..replay.nodes.len() as u32;
        let mine: Vec<u32> =
            all.clone().filter(|n| replay.nodes[*n as usize].paths.contains(path)).collect();
        let chosen = if mine.is_empty() { all.collect() } else { mine };
        let mut touched = NOBODY;
        for node in chosen {
            touched.nodes = replay.sets.with(touched.nodes, node);
        }
        LineOwner { touched, is_realigned: true }
    }

    /// All lines of a file that the range changed, by the replay, in the order of the final diff.
    fn order(&mut self, n: u32, base: u32, head: u32) -> Order {
        let blocks = self.blocks(n);
        let mut items = Vec::new();
        let base = &self.touches.replay.base_files[base as usize];
        let olds = base.first..base.first + base.state.body.entities().len() as u32;
        for (entity, line) in olds.zip(0..) {
            if self.touches.place_of(entity).is_none() {
                items.push((order_key(&blocks, Side::Old, line), self.touches.gone(entity)));
            }
        }
        let news = match self.touches.body(head) {
            Body::Text { entities, .. } => entities.clone(),
            Body::Other { .. } => Vec::new(),
        };
        for (entity, line) in news.into_iter().zip(0..) {
            if !self.touches.replay.is_base(entity) && !self.touches.replay.is_outside(entity) {
                items.push((order_key(&blocks, Side::New, line), self.touches.made(entity)));
            }
        }
        items.sort_by_key(|(key, _)| *key);
        Order::new(&mut self.touches, items)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Old,
    New,
}

/// Where a line stands when the final diff is read from top to bottom.
type Key = (u32, Side, u32);

fn order_key(blocks: &[Block], side: Side, line: u32) -> Key {
    let range = |n: usize| match side {
        Side::Old => blocks[n].olds(),
        Side::New => blocks[n].news(),
    };
    let line_idx = line as usize;
    let after = |n: usize| range(n).end <= line_idx;
    let mut low = 0;
    let mut high = blocks.len();
    while low < high {
        let middle = (low + high) / 2;
        if after(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // `low` is the first block that ends behind the line.
    if low < blocks.len() && range(low).contains(&line_idx) {
        return (2 * low as u32 + 1, side, line);
    }
    let gap = if low == 0 { 0 } else { range(low - 1).end };
    (2 * low as u32, Side::Old, (line_idx - gap) as u32)
}

/// Whether the blocks of a file say all about its lines.
fn is_text(file: &FinalFile) -> bool {
    let regular = |side: &Option<crate::link::history::Version>| {
        side.as_ref().is_some_and(crate::link::history::Version::is_regular)
    };
    regular(&file.change.old) && regular(&file.change.new)
}

/// Changed lines in order, with the unions of all their stretches at hand.
struct Order {
    keys: Vec<Key>,
    /// A tree of unions: leaves from `keys.len()` on, the parent of n at n / 2.
    unions: Vec<Touched>,
}

impl Order {
    fn new(touches: &mut Touches<'_>, items: Vec<(Key, Touched)>) -> Self {
        let n = items.len();
        let mut unions = vec![NOBODY; 2 * n];
        let keys = items.iter().map(|(key, _)| *key).collect();
        for (at, (_, touched)) in items.into_iter().enumerate() {
            unions[n + at] = touched;
        }
        for at in (1..n).rev() {
            unions[at] = touches.union(unions[2 * at], unions[2 * at + 1]);
        }
        Self { keys, unions }
    }

    fn all(&self, touches: &mut Touches<'_>) -> Touched {
        self.stretch(touches, 0, self.keys.len())
    }

    /// Everyone who changed a line between two places, both excluded.
    fn union(&mut self, touches: &mut Touches<'_>, from: Key, to: Key) -> Touched {
        let low = self.keys.partition_point(|key| *key <= from);
        let high = self.keys.partition_point(|key| *key < to);
        self.stretch(touches, low, high.max(low))
    }

    fn stretch(&self, touches: &mut Touches<'_>, low: usize, high: usize) -> Touched {
        let n = self.keys.len();
        let (mut low, mut high) = (low + n, high + n);
        let mut touched = NOBODY;
        while low < high {
            if low % 2 == 1 {
                touched = touches.union(touched, self.unions[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                touched = touches.union(touched, self.unions[high]);
            }
            low /= 2;
            high /= 2;
        }
        touched
    }
}
