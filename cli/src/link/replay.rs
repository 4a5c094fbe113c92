//! Replays the commits of one lineage, parents first, and keeps for every line who made it, what
//! it was made from and what became of it.
//!
//! A line that stays, also across renames of its file, keeps its identity: an *entity*. Base lines
//! are entities; so is every line that a commit of the range made. Changed blocks are kept as
//! lists of old and new entities, and who touched an entity is worked out from them afterwards, for
//! the few entities that the final diff shows ([`touch`](crate::link::touch)).
//!
//! At a merge a line that a parent has is the entity of the first such parent; a line that none
//! has is the merge commit's. Lines of a commit outside the range that the base does not have
//! belong to nobody; where a merge brings such a line in beside the base, it is the merge commit's.
//!
//! Source: contracts, "Who touched a line".

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use codeboost_schema::bytes::RepoPath;
use codeboost_schema::ids::ObjectId;

use crate::link::diff::{Differ, Text};
use crate::link::history::{
    At, BlobError, BlobReader, Block, FileChange, History, LineDiffs, Version,
};
use crate::link::lineage::{Course, Lineage, Turn};
use crate::link::lines::{self, Interner};
use crate::link::pair;
use crate::link::reach::Reach;
use crate::link::sets::{EMPTY, SetId, Sets};

/// Number of an entity.
pub(crate) type Entity = u32;

/// No such thing.
pub(crate) const NONE: u32 = u32::MAX;
/// In place of a block: a line of the base.
const BASE: u32 = u32::MAX - 1;
/// In place of a block: a line of a commit outside the range that the base does not have.
const OUTSIDE: u32 = u32::MAX - 2;

/// A commit as the maker of changes in one file.
#[derive(Debug)]
pub(crate) struct Node {
    /// Place in `History::commits`.
    pub(crate) commit: u32,
    /// The path in this commit, and the ones it was renamed from by it.
    pub(crate) paths: Vec<RepoPath>,
}

/// Lines that were replaced by others in one commit. No two of them are equal, unless the block is
/// too large to pair.
#[derive(Debug)]
pub(crate) struct Change {
    /// Who did it; `NONE` where a merge found two entities to be one line.
    pub(crate) node: u32,
    commit: u32,
    olds: (u32, u32),
    news: (u32, u32),
    pub(crate) is_merge: bool,
    /// Whether any old line was made in the range.
    pub(crate) has_made_olds: bool,
}

/// A file in one commit.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) version: Version,
    pub(crate) body: Body,
    /// Who gave it its path, its mode and type, and its content where that is no text.
    path_events: SetId,
    mode_events: SetId,
    content_events: SetId,
    /// Who changed its content in any way, also from text to text.
    all_content_events: SetId,
    /// The base file that it came from.
    pub(crate) base_file: Option<u32>,
}

impl FileState {
    /// Who changed what its lines don't show.
    pub(crate) fn events(&self, sets: &mut Sets) -> SetId {
        let both = sets.union(self.path_events, self.mode_events);
        sets.union(both, self.content_events)
    }

    /// Who changed anything about it, for a change whose content no line shows: there what was
    /// once edited as text is part of the whole.
    pub(crate) fn whole_events(&self, sets: &mut Sets) -> SetId {
        let events = self.events(sets);
        sets.union(events, self.all_content_events)
    }

    pub(crate) fn path_events(&self) -> SetId {
        self.path_events
    }
}

/// What a file holds.
#[derive(Debug)]
pub(crate) enum Body {
    /// Lines: their numbers and their entities.
    Text { bytes: Arc<Vec<u8>>, numbers: Vec<u32>, entities: Vec<Entity> },
    /// Binary content of so many bytes, a link or a submodule.
    Other { n_bytes: Option<u64> },
}

impl Body {
    pub(crate) fn entities(&self) -> &[Entity] {
        match self {
            Self::Text { entities, .. } => entities,
            Self::Other { .. } => &[],
        }
    }
}

/// A file of the base.
#[derive(Debug)]
pub(crate) struct BaseFile {
    pub(crate) path: RepoPath,
    pub(crate) state: Rc<FileState>,
    /// Its first entity; the others follow.
    pub(crate) first: Entity,
    /// Who deleted it, and what else was done to it before.
    ends: Vec<FileEnd>,
    /// Merges that have it although an ancestor of theirs deleted it.
    brought_back: Vec<u32>,
}

/// How a file of the base was deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileEnd {
    /// Who deleted it.
    node: u32,
    /// As [`FileState::events`], with the one who deleted it.
    pub(crate) events: SetId,
    /// As [`FileState::whole_events`], with the one who deleted it.
    pub(crate) whole_events: SetId,
}

/// The files of a lineage in one commit. A path that is not listed is as at the root.
#[derive(Debug, Clone)]
struct Tree {
    root: Root,
    files: BTreeMap<RepoPath, Option<Rc<FileState>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Base,
    Nothing,
}

/// What one lineage went through.
pub(crate) struct Replay<'a> {
    history: &'a History,
    lineage: &'a Lineage,
    reach: &'a Reach<'a>,
    source: &'a dyn LineDiffs,
    reader: Box<dyn BlobReader + 'a>,
    differ: Differ,
    /// The final diff of files that have two texts, by their contents; used also where a step is
    /// just that. `None`: not known yet.
    final_blocks: HashMap<(ObjectId, ObjectId), Option<Rc<[Block]>>>,
    pub(crate) lines: Interner,
    pub(crate) sets: Sets,
    pub(crate) nodes: Vec<Node>,
    pub(crate) base_files: Vec<BaseFile>,
    base_places: HashMap<RepoPath, u32>,
    /// By entity: the block that made it, its number as a line, the last of its ends.
    made_in: Vec<u32>,
    number: Vec<u32>,
    end: Vec<u32>,
    /// Further blocks that made an entity, at merges.
    also_made_in: HashMap<Entity, Vec<u32>>,
    /// Ends of entities: the block, and the end before it.
    ends: Vec<(u32, u32)>,
    /// Merges that have an entity although an ancestor of theirs ended it.
    brought_back: HashMap<Entity, Vec<u32>>,
    changes: Vec<Change>,
    pool: Vec<Entity>,
}

/// Why a replay did not come to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A content can't be read.
    Blob(BlobError),
    /// The caller's time is over.
    Over,
}

impl From<BlobError> for Stop {
    fn from(error: BlobError) -> Self {
        Self::Blob(error)
    }
}

/// What a merge has to settle after all its files are known.
#[derive(Default)]
struct Pending {
    /// Old entity, its block, and the parent that has it.
    ends: Vec<(Entity, u32, usize)>,
    /// An entity of a later parent, and the one that the line is now.
    same: Vec<(Entity, Entity)>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        history: &'a History,
        lineage: &'a Lineage,
        reach: &'a Reach<'a>,
        source: &'a dyn LineDiffs,
    ) -> Self {
        let finals = lineage.finals.iter().map(|n| &history.diff.files[*n as usize]);
        let final_blocks = finals.filter_map(|file| {
            let (old, new) = (file.change.old.as_ref()?, file.change.new.as_ref()?);
            let blocks = file.blocks.as_deref().map(Rc::from);
            file.change.has_lines().then(|| ((old.oid.clone(), new.oid.clone()), blocks))
        });
        Self {
            history,
            lineage,
            reach,
            source,
            reader: source.reader(),
            differ: Differ::default(),
            final_blocks: final_blocks.collect(),
            lines: Interner::default(),
            sets: Sets::default(),
            nodes: Vec::new(),
            base_files: Vec::new(),
            base_places: HashMap::new(),
            made_in: Vec::new(),
            number: Vec::new(),
            end: Vec::new(),
            also_made_in: HashMap::new(),
            ends: Vec::new(),
            brought_back: HashMap::new(),
            changes: Vec::new(),
            pool: Vec::new(),
        }
    }

    /// Replays everything and returns the files of the head, by path.
    ///
    /// `is_over` is asked before each commit.
    pub(crate) fn run(
        &mut self,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<RepoPath, Rc<FileState>>, Stop> {
        let is_linear = self.reach.is_linear();
        let mut tree = if is_linear { self.run_line(is_over)? } else { self.run_graph(is_over)? };
        for n in &self.lineage.finals {
            let change = &self.history.diff.files[*n as usize].change;
            if let Some(old) = &change.old {
                self.base_file(change.old_path(), old)?;
            }
            if let Some(new) = &change.new {
                let state = self.lookup(&tree, &change.path, new)?;
                tree.files.insert(change.path.clone(), state);
            }
            self.set_final_blocks(change, &tree)?;
        }
        Ok(tree.files.into_iter().filter_map(|(path, state)| Some((path, state?))).collect())
    }

    fn run_line(&mut self, is_over: &dyn Fn() -> bool) -> Result<Tree, Stop> {
        let mut tree = Tree { root: Root::Base, files: BTreeMap::new() };
        for steps in self.lineage.steps.chunk_by(|a, b| a.commit == b.commit) {
            if is_over() {
                return Err(Stop::Over);
            }
            let commit = steps[0].commit;
            let parent = Rc::new(tree);
            tree =
                self.commit(commit, vec![parent], &[steps.iter().map(|s| s.change).collect()])?;
        }
        Ok(tree)
    }

    fn run_graph(&mut self, is_over: &dyn Fn() -> bool) -> Result<Tree, Stop> {
        let Course { turns, head } = self.lineage.course(self.history, false);
        let mut uses: HashMap<u32, u32> = HashMap::new();
        for at in turns.iter().flat_map(|turn| &turn.parents).chain([&head]) {
            if let At::Commit(n) = at {
                *uses.entry(*n).or_default() += 1;
            }
        }
        let mut kept: HashMap<u32, Rc<Tree>> = HashMap::new();
        for Turn { commit: n, steps, parents } in turns {
            if is_over() {
                return Err(Stop::Over);
            }
            let mut trees = Vec::with_capacity(parents.len());
            let mut changes = vec![Vec::new(); parents.len()];
            for step in steps {
                changes[step.parent as usize].push(step.change);
            }
            for state in parents {
                trees.push(self.take_tree(state, &mut kept, &mut uses)?);
            }
            let tree = self.commit(n, trees, &changes)?;
            if uses.get(&n).is_some_and(|uses| *uses > 0) {
                kept.insert(n, Rc::new(tree));
            }
        }
        let tree = self.take_tree(head, &mut kept, &mut uses)?;
        Ok(Rc::unwrap_or_clone(tree))
    }

    fn take_tree(
        &mut self,
        state: At,
        kept: &mut HashMap<u32, Rc<Tree>>,
        uses: &mut HashMap<u32, u32>,
    ) -> Result<Rc<Tree>, BlobError> {
        let empty = |root| Rc::new(Tree { root, files: BTreeMap::new() });
        match state {
            At::Base => Ok(empty(Root::Base)),
            At::Nothing => Ok(empty(Root::Nothing)),
            At::Outside(n) => self.outside_tree(n).map(Rc::new),
            At::Commit(n) => {
                let left = uses.entry(n).or_default();
                *left = left.saturating_sub(1);
                let tree = if *left == 0 { kept.remove(&n) } else { kept.get(&n).cloned() };
                Ok(tree.expect("a tree is kept until its last use"))
            }
        }
    }

    /// The files of a commit outside the range: lines that the base has too are the base's.
    fn outside_tree(&mut self, outside: u32) -> Result<Tree, BlobError> {
        let mut tree = Tree { root: Root::Base, files: BTreeMap::new() };
        let history = self.history;
        let mine: Vec<&FileChange> = self
            .lineage
            .outside
            .iter()
            .filter(|(o, _)| *o == outside)
            .map(|(o, n)| &history.outside[*o as usize].changes[*n as usize])
            .collect();
        for change in &mine {
            tree.files.insert(change.old_path().clone(), None);
        }
        for change in mine {
            let Some(version) = &change.new else { continue };
            let old = match &change.old {
                Some(old) => Some(self.base_file(change.old_path(), old)?),
                None => None,
            };
            let body = self.body_like(version, old.as_deref())?;
            let file = old.as_deref();
            let body = match (body, file.map(|old| &old.body)) {
                (Read::Other { n_bytes }, _) => Body::Other { n_bytes },
                (Read::Text { bytes, numbers }, old) => {
                    let mut entities = vec![NONE; numbers.len()];
                    if let Some(Body::Text { numbers: old_numbers, entities: old, .. }) = old {
                        let blocks = self.step_blocks(file, old_numbers, version, &numbers)?;
                        for_unchanged(&blocks, old.len(), |i, j| entities[j] = old[i]);
                    }
                    for (entity, number) in entities.iter_mut().zip(&numbers) {
                        if *entity == NONE {
                            *entity = self.new_entity(OUTSIDE, *number);
                        }
                    }
                    Body::Text { bytes, numbers, entities }
                }
            };
            let state = FileState {
                version: version.clone(),
                body,
                path_events: EMPTY,
                mode_events: EMPTY,
                content_events: EMPTY,
                all_content_events: EMPTY,
                base_file: old.and_then(|old| old.base_file),
            };
            tree.files.insert(change.path.clone(), Some(Rc::new(state)));
        }
        Ok(tree)
    }

    /// The content of what is no submodule.
    pub(crate) fn content(&mut self, version: &Version) -> Result<Arc<Vec<u8>>, BlobError> {
        self.reader.blob(&version.oid)
    }

    fn base_file(
        &mut self,
        path: &RepoPath,
        version: &Version,
    ) -> Result<Rc<FileState>, BlobError> {
        if let Some(place) = self.base_places.get(path) {
            return Ok(Rc::clone(&self.base_files[*place as usize].state));
        }
        let place = self.base_files.len() as u32;
        let first = self.made_in.len() as Entity;
        let body = match self.body_like(version, None)? {
            Read::Other { n_bytes } => Body::Other { n_bytes },
            Read::Text { bytes, numbers } => {
                let entities = numbers.iter().map(|n| self.new_entity(BASE, *n)).collect();
                Body::Text { bytes, numbers, entities }
            }
        };
        let state = Rc::new(FileState {
            version: version.clone(),
            body,
            path_events: EMPTY,
            mode_events: EMPTY,
            content_events: EMPTY,
            all_content_events: EMPTY,
            base_file: Some(place),
        });
        let file = BaseFile {
            path: path.clone(),
            state: Rc::clone(&state),
            first,
            ends: Vec::new(),
            brought_back: Vec::new(),
        };
        self.base_files.push(file);
        self.base_places.insert(path.clone(), place);
        Ok(state)
    }

    /// The file at `path`; `version` is what stands there if the path is as at the root.
    fn lookup(
        &mut self,
        tree: &Tree,
        path: &RepoPath,
        version: &Version,
    ) -> Result<Option<Rc<FileState>>, BlobError> {
        match (tree.files.get(path), tree.root) {
            (Some(state), _) => Ok(state.clone()),
            (None, Root::Nothing) => Ok(None),
            (None, Root::Base) => self.base_file(path, version).map(Some),
        }
    }

    /// Applies one commit. `changes`: for each parent the places of its changes here.
    fn commit(
        &mut self,
        commit: u32,
        parents: Vec<Rc<Tree>>,
        changes: &[Vec<u32>],
    ) -> Result<Tree, BlobError> {
        let of_parent = |p: usize| {
            let all = &self.history.commits[commit as usize].parents[p].changes;
            changes[p].iter().map(|n| &all[*n as usize]).collect::<Vec<&'a FileChange>>()
        };
        let changes: Vec<Vec<&'a FileChange>> = (0..parents.len()).map(of_parent).collect();
        if let [changes] = changes.as_slice() {
            let parent = parents.into_iter().next().expect("there is one");
            return self.single(commit, parent, changes);
        }
        self.merge(commit, &parents, &changes)
    }

    fn single(
        &mut self,
        commit: u32,
        parent: Rc<Tree>,
        changes: &[&'a FileChange],
    ) -> Result<Tree, BlobError> {
        let mut olds = Vec::with_capacity(changes.len());
        for change in changes {
            olds.push(match &change.old {
                Some(old) => self.lookup(&parent, change.old_path(), old)?,
                None => None,
            });
        }
        let mut tree = Rc::unwrap_or_clone(parent);
        for change in changes {
            if change.old.is_some() {
                tree.files.insert(change.old_path().clone(), None);
            }
        }
        for (change, old) in changes.iter().zip(olds) {
            let node = self.node(commit, &change.path, change.renamed_from.as_slice());
            let state = match &change.new {
                Some(version) => {
                    let body = self.step_body(node, version, old.as_deref())?;
                    let olds = old.as_deref().map(|old| (change.old_path(), old));
                    Some(Rc::new(self.state(node, &change.path, version, body, olds.as_slice())))
                }
                None => {
                    if let Some(old) = &old {
                        self.delete(node, old);
                    }
                    None
                }
            };
            tree.files.insert(change.path.clone(), state);
        }
        Ok(tree)
    }

    fn node(&mut self, commit: u32, path: &RepoPath, renamed_from: &[RepoPath]) -> u32 {
        let mut paths = vec![path.clone()];
        for old in renamed_from {
            if !paths.contains(old) {
                paths.push(old.clone());
            }
        }
        self.nodes.push(Node { commit, paths });
        self.nodes.len() as u32 - 1
    }

    /// The state of a file in a commit, made from what its parents have.
    fn state(
        &mut self,
        node: u32,
        path: &RepoPath,
        version: &Version,
        body: Body,
        olds: &[(&RepoPath, &FileState)],
    ) -> FileState {
        let mut events = |is_same: &dyn Fn(&RepoPath, &FileState) -> bool,
                          of: &dyn Fn(&FileState) -> SetId| {
            if let Some((_, old)) = olds.iter().find(|(path, old)| is_same(path, old)) {
                return of(old);
            }
            let all = olds.iter().map(|(_, old)| of(old));
            let all: Vec<SetId> = all.collect();
            let all = all.into_iter().fold(EMPTY, |all, set| self.sets.union(all, set));
            self.sets.with(all, node)
        };
        let is_text = matches!(body, Body::Text { .. });
        let path_events = events(&|old, _| old == path, &|old| old.path_events);
        let mode_events =
            events(&|_, old| old.version.mode == version.mode, &|old| old.mode_events);
        let content_events = events(
            &|_, old| {
                let was_text = matches!(old.body, Body::Text { .. });
                (is_text && was_text) || old.version.oid == version.oid
            },
            &|old| old.content_events,
        );
        let all_content_events =
            events(&|_, old| old.version.oid == version.oid, &|old| old.all_content_events);
        FileState {
            version: version.clone(),
            body,
            path_events,
            mode_events,
            all_content_events,
            content_events: if olds.is_empty() && is_text { EMPTY } else { content_events },
            base_file: olds.iter().find_map(|(_, old)| old.base_file),
        }
    }

    fn delete(&mut self, node: u32, old: &FileState) {
        let entities = old.body.entities();
        if !entities.is_empty() {
            let block = self.change(node, entities, &[], false);
            for entity in entities {
                self.add_end(*entity, block);
            }
        }
        self.end_file(node, old);
    }

    fn end_file(&mut self, node: u32, old: &FileState) {
        if let Some(place) = old.base_file {
            let events = old.events(&mut self.sets);
            let events = self.sets.with(events, node);
            let whole_events = old.whole_events(&mut self.sets);
            let whole_events = self.sets.with(whole_events, node);
            let end = FileEnd { node, events, whole_events };
            self.base_files[place as usize].ends.push(end);
        }
    }

    fn step_body(
        &mut self,
        node: u32,
        version: &Version,
        old: Option<&FileState>,
    ) -> Result<Body, BlobError> {
        let old_body = old.map(|old| &old.body);
        let (bytes, numbers) = match self.body_like(version, old)? {
            Read::Text { bytes, numbers } => (bytes, numbers),
            Read::Other { n_bytes } => {
                if let Some(Body::Text { entities, .. }) = old_body
                    && !entities.is_empty()
                {
                    let block = self.change(node, entities, &[], false);
                    for entity in entities {
                        self.add_end(*entity, block);
                    }
                }
                return Ok(Body::Other { n_bytes });
            }
        };
        let mut entities = Vec::with_capacity(numbers.len());
        let (old_numbers, old_entities) = match old_body {
            Some(Body::Text { numbers, entities, .. }) => (numbers.as_slice(), entities.as_slice()),
            Some(Body::Other { .. }) | None => (&[][..], &[][..]),
        };
        let new = Text { bytes: &bytes, numbers: &numbers };
        let known = match old {
            Some(old) => self.known_blocks(old, version, new)?,
            None => None,
        };
        let blocks = match known {
            Some(blocks) => blocks,
            None => self.step_blocks(old, old_numbers, version, &numbers)?.into(),
        };
        let mut old_at = 0;
        for block in &*blocks {
            entities.extend_from_slice(&old_entities[old_at..block.old_start as usize]);
            old_at = block.olds().end;
            self.rewrite(node, block, old_numbers, old_entities, &numbers, &mut entities);
        }
        entities.extend_from_slice(&old_entities[old_at..]);
        Ok(Body::Text { bytes, numbers, entities })
    }

    /// The changed blocks of a step, or of one side of a merge.
    fn step_blocks(
        &mut self,
        old: Option<&FileState>,
        old_numbers: &[u32],
        version: &Version,
        numbers: &[u32],
    ) -> Result<Vec<Block>, BlobError> {
        match (self.differ.step_blocks(&self.lines, old_numbers, numbers), old) {
            (Some(blocks), _) => Ok(blocks),
            (None, Some(old)) => self.source.blocks(&old.version.oid, &version.oid),
            (None, None) => unreachable!("lines that are repeated have an old text"),
        }
    }

    /// The blocks of a step that is just what the final diff of a file is: the two must agree.
    fn known_blocks(
        &mut self,
        old: &FileState,
        version: &Version,
        new: Text<'_>,
    ) -> Result<Option<Rc<[Block]>>, BlobError> {
        let pair = (old.version.oid.clone(), version.oid.clone());
        let Body::Text { bytes, numbers, .. } = &old.body else { return Ok(None) };
        let Some(known) = self.final_blocks.get(&pair) else { return Ok(None) };
        if numbers.is_empty() || new.numbers.is_empty() || pair.0 == pair.1 {
            return Ok(None);
        }
        if let Some(known) = known {
            return Ok(Some(Rc::clone(known)));
        }
        let old = Text { bytes, numbers };
        let blocks: Rc<[Block]> = match self.differ.final_blocks(&self.lines, old, new) {
            Some(blocks) => blocks.into(),
            None => self.source.blocks(&pair.0, &pair.1)?.into(),
        };
        self.final_blocks.insert(pair, Some(Rc::clone(&blocks)));
        Ok(Some(blocks))
    }

    /// Works out the final diff of a file with two texts.
    fn set_final_blocks(&mut self, change: &FileChange, tree: &Tree) -> Result<(), BlobError> {
        let Some(version) = &change.new else { return Ok(()) };
        let base = self.base_file_at(change.old_path()).map(|base| Rc::clone(&base.state));
        let head = tree.files.get(&change.path).cloned().flatten();
        if let (Some(old), Some(head)) = (base, head)
            && change.old.is_some()
            && let Body::Text { bytes, numbers, .. } = &head.body
        {
            self.known_blocks(&old, version, Text { bytes, numbers })?;
        }
        Ok(())
    }

    /// The final diff of a file, once everything is replayed.
    pub(crate) fn final_blocks(&self, change: &FileChange, head: Option<&Body>) -> Rc<[Block]> {
        if !change.has_lines() {
            return Rc::from([]);
        }
        let base = self.base_file_at(change.old_path()).map(|base| &base.state.body);
        let pair = match (&change.old, &change.new) {
            (Some(old), Some(new)) => Some((old.oid.clone(), new.oid.clone())),
            _ => None,
        };
        let known = pair.as_ref().and_then(|pair| self.final_blocks.get(pair)?.clone());
        if let Some(known) = known {
            return known;
        }
        // One side is empty, or there are no two texts.
        let n_lines = |side: &Option<Version>, body: Option<&Body>| match (side, body) {
            (Some(_), Some(Body::Text { numbers, .. })) => Some(numbers.len() as u32),
            (Some(_), _) => None,
            (None, _) => Some(0),
        };
        let is_same = pair.is_some_and(|(old, new)| old == new);
        match (n_lines(&change.old, base), n_lines(&change.new, head)) {
            (Some(old_lines), Some(new_lines)) if !is_same && old_lines + new_lines > 0 => {
                Rc::from([Block { old_start: 0, old_lines, new_start: 0, new_lines }])
            }
            _ => Rc::from([]),
        }
    }

    /// Replaces the old lines of a block by its new ones; equal ones stay what they are.
    fn rewrite(
        &mut self,
        node: u32,
        block: &Block,
        old_numbers: &[u32],
        old_entities: &[Entity],
        numbers: &[u32],
        entities: &mut Vec<Entity>,
    ) {
        let (old_numbers, olds) = (&old_numbers[block.olds()], &old_entities[block.olds()]);
        let new_numbers = &numbers[block.news()];
        let stay = pair::equal_lines(old_numbers, new_numbers).unwrap_or_default();
        let (mut i, mut j) = (0, 0);
        let past = (olds.len() as u32, new_numbers.len() as u32);
        for (old, new) in stay.into_iter().chain([past]) {
            let (old, new) = (old as usize, new as usize);
            if i < old || j < new {
                let from = entities.len();
                let next = self.changes.len() as u32;
                for number in &new_numbers[j..new] {
                    entities.push(self.new_entity(next, *number));
                }
                let place = self.change(node, &olds[i..old], &entities[from..], false);
                for entity in &olds[i..old] {
                    self.add_end(*entity, place);
                }
            }
            if old < olds.len() {
                entities.push(olds[old]);
            }
            (i, j) = (old + 1, new + 1);
        }
    }

    fn new_entity(&mut self, made_in: u32, number: u32) -> Entity {
        self.made_in.push(made_in);
        self.number.push(number);
        self.end.push(NONE);
        self.made_in.len() as Entity - 1
    }

    fn change(&mut self, node: u32, olds: &[Entity], news: &[Entity], is_merge: bool) -> u32 {
        let commit = self.nodes[node as usize].commit;
        self.change_in(commit, node, olds, news, is_merge)
    }

    fn change_in(
        &mut self,
        commit: u32,
        node: u32,
        olds: &[Entity],
        news: &[Entity],
        is_merge: bool,
    ) -> u32 {
        let mut keep = |entities: &[Entity]| {
            let from = self.pool.len() as u32;
            self.pool.extend_from_slice(entities);
            (from, entities.len() as u32)
        };
        let (olds_at, news_at) = (keep(olds), keep(news));
        let has_made_olds = olds.iter().any(|old| self.made_in[*old as usize] < OUTSIDE);
        let (olds, news) = (olds_at, news_at);
        self.changes.push(Change { node, commit, olds, news, is_merge, has_made_olds });
        self.changes.len() as u32 - 1
    }

    fn add_end(&mut self, entity: Entity, block: u32) {
        self.ends.push((block, self.end[entity as usize]));
        self.end[entity as usize] = self.ends.len() as u32 - 1;
    }

    /// What a content is, its lines numbered with the help of an old content that is like it.
    fn body_like(&mut self, version: &Version, old: Option<&FileState>) -> Result<Read, BlobError> {
        if !version.is_regular() {
            return Ok(Read::Other { n_bytes: None });
        }
        if let Some(FileState { version: old, body: Body::Text { bytes, numbers, .. }, .. }) = old
            && old.oid == version.oid
        {
            return Ok(Read::Text { bytes: Arc::clone(bytes), numbers: numbers.clone() });
        }
        let bytes = self.content(version)?;
        if lines::is_binary(&bytes) {
            return Ok(Read::Other { n_bytes: Some(bytes.len() as u64) });
        }
        let numbers = match old.map(|old| &old.body) {
            Some(Body::Text { bytes: old, numbers, .. }) => {
                self.lines.intern_like(old, numbers, &bytes)
            }
            Some(Body::Other { .. }) | None => self.lines.intern_all(&bytes),
        };
        Ok(Read::Text { bytes, numbers })
    }

    // Merges.

    fn merge(
        &mut self,
        commit: u32,
        parents: &[Rc<Tree>],
        changes: &[Vec<&'a FileChange>],
    ) -> Result<Tree, BlobError> {
        let mut tree = Tree::clone(&parents[0]);
        for change in &changes[0] {
            if change.old.is_some() {
                tree.files.insert(change.old_path().clone(), None);
            }
        }
        let by_path: Vec<HashMap<&RepoPath, &FileChange>> = changes
            .iter()
            .map(|changes| changes.iter().map(|change| (&change.path, *change)).collect())
            .collect();
        let mut paths: BTreeSet<&RepoPath> = BTreeSet::new();
        for (parent, changes) in parents.iter().zip(&by_path) {
            paths.extend(parent.files.keys());
            paths.extend(changes.keys());
        }
        let mut pending = Pending::default();
        let mut survivors: HashSet<u32> = HashSet::new();
        for path in paths {
            self.merge_path(commit, path, parents, &by_path, &mut tree, &mut pending)?;
            if let Some(Some(state)) = tree.files.get(path) {
                survivors.extend(state.base_file);
            }
        }
        self.settle_lines(commit, &tree, parents.len(), pending);
        self.settle_files(commit, parents, changes, &survivors)?;
        Ok(tree)
    }

    fn merge_path(
        &mut self,
        commit: u32,
        path: &RepoPath,
        parents: &[Rc<Tree>],
        changes: &[HashMap<&RepoPath, &'a FileChange>],
        tree: &mut Tree,
        pending: &mut Pending,
    ) -> Result<(), BlobError> {
        let own = changes[0].get(path);
        // What stands here now, and where its state comes from.
        let version = match own {
            Some(change) => change.new.clone(),
            None => match tree.files.get(path) {
                Some(state) => state.as_ref().map(|state| state.version.clone()),
                // As at the root of the first parent: what another parent changed it to.
                None => changes.iter().find_map(|c| c.get(path)).and_then(|c| c.new.clone()),
            },
        };
        let Some(version) = version else {
            tree.files.insert(path.clone(), None);
            return Ok(());
        };
        let mut olds: Vec<Option<(RepoPath, Rc<FileState>)>> = Vec::with_capacity(parents.len());
        let mut renamed_from = Vec::new();
        for (parent, changes) in parents.iter().zip(changes) {
            let (old_path, old) = match changes.get(path) {
                Some(change) => (change.old_path(), change.old.as_ref()),
                None => (path, Some(&version)),
            };
            let state = match old {
                Some(old) => self.lookup(parent, old_path, old)?,
                None => None,
            };
            if state.is_some() && old_path != path {
                renamed_from.push(old_path.clone());
            }
            olds.push(state.map(|state| (old_path.clone(), state)));
        }
        let fixed = match own {
            Some(_) => None,
            None => olds[0].as_ref().map(|(_, state)| Rc::clone(state)),
        };
        let same = |old: &Option<(RepoPath, Rc<FileState>)>| {
            old.as_ref()
                .is_some_and(|(_, old)| fixed.as_ref().is_some_and(|fixed| Rc::ptr_eq(old, fixed)))
        };
        if let Some(fixed) = &fixed
            && olds.iter().all(same)
        {
            tree.files.insert(path.clone(), Some(Rc::clone(fixed)));
            return Ok(());
        }
        let node = self.node(commit, path, &renamed_from);
        let state = match fixed {
            Some(fixed) => {
                self.merge_body(commit, node, &version, &olds, Some(&fixed), pending)?;
                fixed
            }
            None => {
                let body = self.merge_body(commit, node, &version, &olds, None, pending)?;
                let sides: Vec<(&RepoPath, &FileState)> = olds
                    .iter()
                    .flatten()
                    .filter(|(_, old)| !self.is_stray(commit, old))
                    .map(|(path, old)| (path, &**old))
                    .collect();
                let mut state = self.state(node, path, &version, body, &sides);
                // A stray has no say in who brought the file, but what the range edited in it stays.
                for (_, old) in olds.iter().flatten() {
                    if self.is_stray(commit, old) {
                        state.all_content_events =
                            self.sets.union(state.all_content_events, old.all_content_events);
                    }
                }
                Rc::new(state)
            }
        };
        tree.files.insert(path.clone(), Some(state));
        Ok(())
    }

    /// Whether a file comes from outside the range and the base does not have it.
    fn is_stray(&mut self, commit: u32, old: &FileState) -> bool {
        self.reach.has_base(commit)
            && old.base_file.is_none()
            && old.events(&mut self.sets) == EMPTY
    }

    /// The lines of a merged file; with `fixed`, only what the other parents' lines became.
    fn merge_body(
        &mut self,
        commit: u32,
        node: u32,
        version: &Version,
        olds: &[Option<(RepoPath, Rc<FileState>)>],
        fixed: Option<&Rc<FileState>>,
        pending: &mut Pending,
    ) -> Result<Body, BlobError> {
        let first = olds.iter().flatten().map(|(_, old)| &**old).next();
        let read = match fixed.map(|fixed| &fixed.body) {
            Some(Body::Text { bytes, numbers, .. }) => {
                Read::Text { bytes: Arc::clone(bytes), numbers: numbers.clone() }
            }
            Some(Body::Other { n_bytes }) => Read::Other { n_bytes: *n_bytes },
            None => self.body_like(version, first)?,
        };
        let (bytes, numbers) = match read {
            Read::Text { bytes, numbers } => (bytes, numbers),
            Read::Other { n_bytes } => {
                for (p, old) in olds.iter().enumerate() {
                    if let Some((_, old)) = old
                        && !old.body.entities().is_empty()
                    {
                        let block = self.change(node, old.body.entities(), &[], true);
                        let ends = old.body.entities().iter().map(|entity| (*entity, block, p));
                        pending.ends.extend(ends);
                    }
                }
                return Ok(Body::Other { n_bytes });
            }
        };
        let mut entities = match fixed.map(|fixed| &fixed.body) {
            Some(Body::Text { entities, .. }) => entities.clone(),
            _ => vec![NONE; numbers.len()],
        };
        struct Replaced {
            parent: usize,
            olds: Vec<Entity>,
            news: std::ops::Range<usize>,
        }
        let mut replaced: Vec<Replaced> = Vec::new();
        for (p, old) in olds.iter().enumerate() {
            let Some((_, old)) = old else { continue };
            if fixed.is_some_and(|fixed| Rc::ptr_eq(fixed, old)) {
                continue;
            }
            let Body::Text { numbers: old_numbers, entities: old_entities, .. } = &old.body else {
                continue;
            };
            let brings_base =
                self.reach.has_base(commit) && !self.reach.parent_has_base(commit, p as u32);
            let blocks = self.step_blocks(Some(old), old_numbers, version, &numbers)?;
            let mut keep = |entity: Entity, at: usize, entities: &mut [Entity]| {
                // A line that the base gave up and this merge takes back is the merge's own.
                let stray = brings_base && self.made_in[entity as usize] == OUTSIDE;
                if entities[at] == NONE {
                    if !stray {
                        entities[at] = entity;
                    }
                } else if entities[at] != entity {
                    pending.same.push((entity, entities[at]));
                }
            };
            for_unchanged(&blocks, old_entities.len(), |i, j| {
                keep(old_entities[i], j, &mut entities);
            });
            for block in &blocks {
                let olds = &old_entities[block.olds()];
                let stay = pair::equal_lines(&old_numbers[block.olds()], &numbers[block.news()])
                    .unwrap_or_default();
                let (mut i, mut j) = (0, 0);
                let past = (block.old_lines, block.new_lines);
                for (old, new) in stay.into_iter().chain([past]) {
                    let (old, new) = (old as usize, new as usize);
                    let start = block.new_start as usize;
                    if i < old || j < new {
                        replaced.push(Replaced {
                            parent: p,
                            olds: olds[i..old].to_vec(),
                            news: start + j..start + new,
                        });
                    }
                    if old < olds.len() {
                        keep(olds[old], start + new, &mut entities);
                    }
                    (i, j) = (old + 1, new + 1);
                }
            }
        }
        // Lines that no parent has; the first block that has them is named once it is known.
        let from = self.made_in.len() as Entity;
        for (entity, number) in entities.iter_mut().zip(&numbers) {
            if *entity == NONE {
                *entity = self.new_entity(NONE, *number);
            }
        }
        for Replaced { parent, olds, news } in replaced {
            let block = self.change(node, &olds, &entities[news.clone()], true);
            pending.ends.extend(olds.iter().map(|entity| (*entity, block, parent)));
            for entity in entities[news].iter().filter(|entity| **entity >= from) {
                if self.made_in[*entity as usize] == NONE {
                    self.made_in[*entity as usize] = block;
                } else {
                    self.also_made_in.entry(*entity).or_default().push(block);
                }
            }
        }
        // Lines that stand in no block of any parent: brought back beside the base.
        let alone: Vec<Entity> = (from..self.made_in.len() as Entity)
            .filter(|entity| self.made_in[*entity as usize] == NONE)
            .collect();
        if !alone.is_empty() {
            let block = self.change(node, &[], &alone, true);
            for entity in alone {
                self.made_in[entity as usize] = block;
            }
        }
        Ok(Body::Text { bytes, numbers, entities })
    }

    /// Decides which lines this merge removed.
    fn settle_lines(&mut self, commit: u32, tree: &Tree, n_parents: usize, pending: Pending) {
        let alive: HashSet<Entity> = tree
            .files
            .values()
            .flatten()
            .flat_map(|state| state.body.entities().iter().copied())
            .collect();
        let states = tree.files.values().flatten();
        for entity in states.flat_map(|state| state.body.entities()) {
            let back = self.brought_back.get(entity).map_or(&[][..], Vec::as_slice);
            let is_undone = self.ends_of(*entity).any(|block| {
                let ender = self.changes[block as usize].commit;
                self.reach.reaches(commit, ender) && !self.knows(back, ender)
            });
            if is_undone {
                self.brought_back.entry(*entity).or_default().push(commit);
            }
        }
        // Which parents have each line that is gone.
        let mut owners: HashMap<Entity, Vec<usize>> = HashMap::new();
        for (entity, _, parent) in &pending.ends {
            let parents = owners.entry(*entity).or_default();
            if !parents.contains(parent) {
                parents.push(*parent);
            }
        }
        for (entity, block, _) in pending.ends {
            if alive.contains(&entity) {
                continue;
            }
            if !self.was_ended_before(entity, commit, n_parents, &owners[&entity]) {
                self.add_end(entity, block);
            }
        }
        for (entity, now) in pending.same {
            if !alive.contains(&entity) {
                let block = self.change_in(commit, NONE, &[entity], &[now], true);
                self.add_end(entity, block);
            }
        }
    }

    /// Whether a parent that lacks a line removed it, so that this merge only took that over.
    ///
    /// Where a parent that has the line knows the removal too, it was brought back there, and a
    /// merge that drops it after that removes it itself.
    fn was_ended_before(
        &self,
        entity: Entity,
        commit: u32,
        n_parents: usize,
        having: &[usize],
    ) -> bool {
        self.ends_of(entity).any(|block| {
            let change = &self.changes[block as usize];
            change.node != NONE && self.is_handed_down(change.commit, commit, n_parents, having)
        })
    }

    /// Whether `ender` is among the ancestors of a parent that lacks something, and of none of the
    /// parents that are `having` it.
    fn is_handed_down(&self, ender: u32, commit: u32, n_parents: usize, having: &[usize]) -> bool {
        let knows = |parent: usize| self.reach.parent_reaches(commit, parent as u32, ender);
        let mut lacking = (0..n_parents).filter(|parent| !having.contains(parent));
        lacking.any(knows) && !having.iter().copied().any(knows)
    }

    /// Decides which files of the base this merge deleted.
    fn settle_files(
        &mut self,
        commit: u32,
        parents: &[Rc<Tree>],
        changes: &[Vec<&'a FileChange>],
        survivors: &HashSet<u32>,
    ) -> Result<(), BlobError> {
        let mut gone: BTreeMap<u32, (Vec<usize>, Rc<FileState>, RepoPath)> = BTreeMap::new();
        for (p, (parent, changes)) in parents.iter().zip(changes).enumerate() {
            for change in changes {
                let Some(old) = &change.old else { continue };
                let Some(state) = self.lookup(parent, change.old_path(), old)? else { continue };
                let Some(place) = state.base_file else { continue };
                if !survivors.contains(&place) {
                    let entry = gone
                        .entry(place)
                        .or_insert_with(|| (Vec::new(), state, change.old_path().clone()));
                    entry.0.push(p);
                }
            }
        }
        let mut survivors: Vec<u32> = survivors.iter().copied().collect();
        survivors.sort_unstable();
        for place in survivors {
            let file = &self.base_files[place as usize];
            let is_undone = file.ends.iter().any(|end| {
                let ender = self.nodes[end.node as usize].commit;
                self.reach.reaches(commit, ender) && !self.knows(&file.brought_back, ender)
            });
            if is_undone {
                self.base_files[place as usize].brought_back.push(commit);
            }
        }
        for (place, (having, state, path)) in gone {
            let ended = self.base_files[place as usize].ends.iter().any(|end| {
                let ender = self.nodes[end.node as usize].commit;
                self.is_handed_down(ender, commit, parents.len(), &having)
            });
            if !ended {
                let node = self.node(commit, &path, &[]);
                self.end_file(node, &state);
            }
        }
        Ok(())
    }

    // What became of it, for the questions asked afterwards.

    pub(crate) fn n_entities(&self) -> usize {
        self.made_in.len()
    }

    pub(crate) fn is_base(&self, entity: Entity) -> bool {
        self.made_in[entity as usize] == BASE
    }

    pub(crate) fn is_outside(&self, entity: Entity) -> bool {
        self.made_in[entity as usize] == OUTSIDE
    }

    /// The blocks that made an entity of the range.
    pub(crate) fn makers(&self, entity: Entity) -> impl Iterator<Item = u32> {
        let first = self.made_in[entity as usize];
        let more = self.also_made_in.get(&entity).map_or(&[][..], Vec::as_slice);
        [first].into_iter().filter(|block| *block < OUTSIDE).chain(more.iter().copied())
    }

    /// The block that made an entity of the range, where there is no other.
    pub(crate) fn only_maker_of(&self, entity: Entity) -> Option<u32> {
        let block = self.made_in[entity as usize];
        let is_only = self.also_made_in.is_empty() || !self.also_made_in.contains_key(&entity);
        (block < OUTSIDE && is_only).then_some(block)
    }

    /// The block that ended an entity, where there is no other.
    pub(crate) fn only_end_of(&self, entity: Entity) -> Option<u32> {
        let (block, before) = *self.ends.get(self.end[entity as usize] as usize)?;
        (before == NONE).then_some(block)
    }

    /// The blocks that ended an entity, the latest first.
    pub(crate) fn ends_of(&self, entity: Entity) -> impl Iterator<Item = u32> {
        let mut at = self.end[entity as usize];
        std::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let (block, before) = self.ends[at as usize];
            at = before;
            Some(block)
        })
    }

    /// The blocks that ended an entity and were not undone by a merge that brought it back, the
    /// first one first: more than one where branches ended it side by side.
    pub(crate) fn last_ends_of(&self, entity: Entity) -> Vec<u32> {
        let mut ends: Vec<u32> = self.ends_of(entity).collect();
        if ends.len() < 2 {
            return ends;
        }
        ends.reverse();
        if let Some(back) = self.brought_back.get(&entity) {
            ends.retain(|block| !self.knows(back, self.changes[*block as usize].commit));
        }
        ends
    }

    /// What was done to a base file that is gone.
    pub(crate) fn end_of_file(&self, file: &BaseFile) -> Option<FileEnd> {
        let commit = |node: u32| self.nodes[node as usize].commit;
        let mut ends = file.ends.iter();
        ends.find(|end| !self.knows(&file.brought_back, commit(end.node)))
            .or(file.ends.first())
            .copied()
    }

    /// Whether one of these commits is `commit` or has it among its ancestors.
    fn knows(&self, commits: &[u32], commit: u32) -> bool {
        commits.iter().any(|later| self.reach.reaches(*later, commit))
    }

    pub(crate) fn has_end(&self, entity: Entity) -> bool {
        self.end[entity as usize] != NONE
    }

    pub(crate) fn change_at(&self, block: u32) -> &Change {
        &self.changes[block as usize]
    }

    pub(crate) fn olds(&self, block: u32) -> &[Entity] {
        let (from, n) = self.changes[block as usize].olds;
        &self.pool[from as usize..(from + n) as usize]
    }

    pub(crate) fn news(&self, block: u32) -> &[Entity] {
        let (from, n) = self.changes[block as usize].news;
        &self.pool[from as usize..(from + n) as usize]
    }

    /// The entity's line, without terminator.
    pub(crate) fn line(&self, entity: Entity) -> &[u8] {
        lines::without_terminator(self.lines.line(self.number[entity as usize]))
    }

    /// The base file that a base line is in, and its place there.
    pub(crate) fn base_place(&self, entity: Entity) -> (u32, u32) {
        let file = self.base_files.partition_point(|file| file.first <= entity) - 1;
        // Empty and binary files have no entities: their first one is the next file's.
        (file as u32, entity - self.base_files[file].first)
    }

    pub(crate) fn base_file_at(&self, path: &RepoPath) -> Option<&BaseFile> {
        self.base_places.get(path).map(|place| &self.base_files[*place as usize])
    }
}

enum Read {
    Text { bytes: Arc<Vec<u8>>, numbers: Vec<u32> },
    Other { n_bytes: Option<u64> },
}

/// Calls `same` with the places of every unchanged line on both sides.
pub(crate) fn for_unchanged(blocks: &[Block], n_old: usize, mut same: impl FnMut(usize, usize)) {
    let (mut i, mut j) = (0, 0);
    for block in blocks {
        while i < block.old_start as usize {
            same(i, j);
            i += 1;
            j += 1;
        }
        i = block.olds().end;
        j = block.news().end;
    }
    while i < n_old {
        same(i, j);
        i += 1;
        j += 1;
    }
}
