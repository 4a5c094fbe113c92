//! Who touched a line, worked out from a finished replay.
//!
//! Pairs are made only for the blocks on which an answer depends: where an old line was itself
//! made in the range, or where a new line was rewritten or removed later.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use codeboost_schema::bytes::RepoPath;
use hashbrown::HashMap;

use crate::link::pair::{self, Pairs};
use crate::link::replay::{Body, Entity, FileState, NONE, Replay};
use crate::link::sets::{EMPTY, SetId};

/// Who touched a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Touched {
    /// Nodes of the replay.
    pub(crate) nodes: SetId,
    /// Whether a block that was too large to pair is among the reasons.
    pub(crate) is_coarse: bool,
}

pub(crate) const NOBODY: Touched = Touched { nodes: EMPTY, is_coarse: false };

/// A place in a file of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadPlace {
    /// Place in [`Touches::files`].
    pub(crate) file: u32,
    /// Counts from 0.
    pub(crate) line: u32,
}

/// Answers questions about lines.
pub(crate) struct Touches<'a> {
    pub(crate) replay: Replay<'a>,
    /// The files of the head, by path.
    pub(crate) files: Vec<(RepoPath, Rc<FileState>)>,
    /// By entity: where it stands at the head.
    alive: Vec<Option<HeadPlace>>,
    /// By entity, where it is known.
    made: Vec<Option<Touched>>,
    gone: Vec<Option<Touched>>,
    pairs: HashMap<u32, Rc<Pairs>>,
    /// By block, where it is known: whether it can matter what became of its new lines.
    matters: HashMap<u32, bool>,
    /// Of blocks that are too large to pair: everyone who made an old line of it.
    all_made: HashMap<u32, Touched>,
    /// Of such blocks: everyone who ended a new line of it.
    all_gone: HashMap<u32, Touched>,
}

/// Where `entity` is in a list in which runs of entities are consecutive.
fn place_in(list: &[Entity], entity: Entity) -> usize {
    let guess = list.first().and_then(|first| entity.checked_sub(*first)).map(|n| n as usize);
    guess
        .filter(|guess| list.get(*guess) == Some(&entity))
        .or_else(|| list.iter().position(|other| *other == entity))
        .expect("a block lists what it made and what it ended")
}

impl<'a> Touches<'a> {
    pub(crate) fn new(replay: Replay<'a>, head: BTreeMap<RepoPath, Rc<FileState>>) -> Self {
        let files: Vec<_> = head.into_iter().collect();
        let n_entities = replay.n_entities();
        let mut alive = vec![None; n_entities];
        for ((_, state), file) in files.iter().zip(0..) {
            for (entity, line) in state.body.entities().iter().zip(0..) {
                alive[*entity as usize] = Some(HeadPlace { file, line });
            }
        }
        Self {
            replay,
            files,
            alive,
            made: vec![None; n_entities],
            gone: vec![None; n_entities],
            pairs: HashMap::new(),
            matters: HashMap::new(),
            all_made: HashMap::new(),
            all_gone: HashMap::new(),
        }
    }

    pub(crate) fn file_at(&self, path: &RepoPath) -> Option<u32> {
        self.files.binary_search_by(|(other, _)| other.cmp(path)).ok().map(|n| n as u32)
    }

    pub(crate) fn entity_at(&self, place: HeadPlace) -> Entity {
        self.files[place.file as usize].1.body.entities()[place.line as usize]
    }

    /// Where an entity stands at the head.
    pub(crate) fn place_of(&self, entity: Entity) -> Option<HeadPlace> {
        self.alive[entity as usize]
    }

    pub(crate) fn union(&mut self, a: Touched, b: Touched) -> Touched {
        Touched {
            nodes: self.replay.sets.union(a.nodes, b.nodes),
            is_coarse: a.is_coarse || b.is_coarse,
        }
    }

    fn pairs(&mut self, block: u32) -> Rc<Pairs> {
        if let Some(pairs) = self.pairs.get(&block) {
            return Rc::clone(pairs);
        }
        let side = |entities: &[Entity]| -> Vec<&[u8]> {
            entities.iter().map(|entity| self.replay.line(*entity)).collect()
        };
        let olds = side(self.replay.olds(block));
        let news = side(self.replay.news(block));
        let pairs = Rc::new(pair::similar_lines(&olds, &news));
        self.pairs.insert(block, Rc::clone(&pairs));
        pairs
    }

    /// Who made and touched a line that the range made; nobody for other lines.
    pub(crate) fn made(&mut self, entity: Entity) -> Touched {
        if let Some(made) = self.made[entity as usize] {
            return made;
        }
        if let Some(block) = self.replay.only_maker_of(entity)
            && !self.replay.change_at(block).has_made_olds
        {
            let nodes = self.replay.sets.one(self.replay.change_at(block).node);
            let touched = Touched { nodes, is_coarse: false };
            self.made[entity as usize] = Some(touched);
            return touched;
        }
        // Old lines have smaller numbers, so this ends; a list instead of recursion, because a
        // line may have been rewritten thousands of times.
        let mut todo = vec![entity];
        while let Some(at) = todo.last().copied() {
            if self.made[at as usize].is_some() {
                todo.pop();
                continue;
            }
            let mut missing = Vec::new();
            let mut touched = NOBODY;
            for block in self.replay.makers(at).collect::<Vec<_>>() {
                let node = self.replay.change_at(block).node;
                touched.nodes = self.replay.sets.with(touched.nodes, node);
                if !self.replay.change_at(block).has_made_olds {
                    continue;
                }
                if let Some(all) = self.all_made.get(&block).copied() {
                    touched = self.union(touched, all);
                    continue;
                }
                let pairs = self.pairs(block);
                let new = place_in(self.replay.news(block), at) as u32;
                let n_olds = self.replay.olds(block).len() as u32;
                let is_all = *pairs == Pairs::All;
                let mut before = Touched { nodes: EMPTY, is_coarse: is_all && n_olds > 1 };
                let n_missing = missing.len();
                for old in pairs.olds_of(new, n_olds) {
                    let old = self.replay.olds(block)[old as usize];
                    match self.made[old as usize] {
                        Some(made) => before = self.union(before, made),
                        None => missing.push(old),
                    }
                }
                if is_all && missing.len() == n_missing {
                    self.all_made.insert(block, before);
                }
                touched = self.union(touched, before);
            }
            if missing.is_empty() {
                self.made[at as usize] = Some(touched);
                todo.pop();
            } else {
                todo.append(&mut missing);
            }
        }
        self.made[entity as usize].unwrap_or(NOBODY)
    }

    /// Who removed a line that the head lacks, and who later rewrote or removed what was made of
    /// it. Nobody for a line that is alive.
    pub(crate) fn gone(&mut self, entity: Entity) -> Touched {
        if let Some(gone) = self.gone[entity as usize] {
            return gone;
        }
        if self.alive[entity as usize].is_none()
            && let Some(block) = self.replay.only_end_of(entity)
            && self.replay.change_at(block).node != NONE
            && !self.matters(block)
        {
            let nodes = self.replay.sets.one(self.replay.change_at(block).node);
            let touched = Touched { nodes, is_coarse: false };
            self.gone[entity as usize] = Some(touched);
            return touched;
        }
        let mut todo = vec![entity];
        let mut begun: HashSet<Entity> = HashSet::new();
        while let Some(at) = todo.last().copied() {
            if self.gone[at as usize].is_some() {
                todo.pop();
                continue;
            }
            let first_visit = begun.insert(at);
            let mut missing = Vec::new();
            let mut touched = NOBODY;
            if self.alive[at as usize].is_none()
                && let Some(block) = self.end_that_counts(at)
            {
                let change = self.replay.change_at(block);
                let (node, is_merge) = (change.node, change.is_merge);
                if node != NONE {
                    touched.nodes = self.replay.sets.with(touched.nodes, node);
                }
                if let Some(all) = self.all_gone.get(&block).copied() {
                    touched = self.union(touched, all);
                } else {
                    let (successors, is_all) = self.successors(at, block);
                    let is_coarse = is_all && successors.len() > 1;
                    let mut after = Touched { nodes: EMPTY, is_coarse };
                    for new in successors {
                        if is_merge && node != NONE {
                            let made = self.made(new);
                            after = self.union(after, made);
                        }
                        match self.gone[new as usize] {
                            Some(gone) => after = self.union(after, gone),
                            // A line that was already begun leads back here; it adds nothing.
                            None if first_visit && !begun.contains(&new) => missing.push(new),
                            None => {}
                        }
                    }
                    if is_all && missing.is_empty() {
                        self.all_gone.insert(block, after);
                    }
                    touched = self.union(touched, after);
                }
            }
            if missing.is_empty() {
                self.gone[at as usize] = Some(touched);
                todo.pop();
            } else {
                todo.append(&mut missing);
            }
        }
        self.gone[entity as usize].unwrap_or(NOBODY)
    }

    /// Whether what became of the new lines of a block can tell more about its old ones.
    fn matters(&mut self, block: u32) -> bool {
        if let Some(matters) = self.matters.get(&block) {
            return *matters;
        }
        let news = self.replay.news(block);
        let is_merge = self.replay.change_at(block).is_merge;
        let matters = is_merge || news.iter().any(|new| self.replay.has_end(*new));
        self.matters.insert(block, matters);
        matters
    }

    /// The new lines paired with an old one, where what became of them can matter, and whether the
    /// block is too large to pair.
    fn successors(&mut self, old: Entity, block: u32) -> (Vec<Entity>, bool) {
        if !self.matters(block) {
            return (Vec::new(), false);
        }
        let news = self.replay.news(block);
        if self.replay.change_at(block).node == NONE {
            return (news.to_vec(), false);
        }
        let pairs = self.pairs(block);
        let place = place_in(self.replay.olds(block), old) as u32;
        let news = self.replay.news(block);
        let range = pairs.news_of(place, news.len() as u32);
        (range.map(|new| news[new as usize]).collect(), *pairs == Pairs::All)
    }

    /// Of several removals on different branches the one whose new lines the head has, else the
    /// first.
    fn end_that_counts(&mut self, entity: Entity) -> Option<u32> {
        let ends = self.replay.last_ends_of(entity);
        if ends.len() < 2 {
            return ends.first().copied();
        }
        let rank = |this: &mut Self, block: u32| {
            let node = this.replay.change_at(block).node;
            let (successors, _) = this.successors(entity, block);
            let alive = successors.iter().any(|new| this.alive[*new as usize].is_some());
            match (alive, node == NONE) {
                (true, false) => 0,
                (true, true) => 1,
                (false, false) => 2,
                (false, true) => 3,
            }
        };
        let mut ranked: Vec<(u8, u32)> = Vec::with_capacity(ends.len());
        for block in ends {
            ranked.push((rank(self, block), block));
        }
        ranked.into_iter().min_by_key(|(rank, _)| *rank).map(|(_, block)| block)
    }

    /// The text of a head file.
    pub(crate) fn body(&self, file: u32) -> &Body {
        &self.files[file as usize].1.body
    }
}
