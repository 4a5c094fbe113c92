//! Where each segment stands, with the choices that people made about it.
//!
//! A choice names its segment by key: path, content, copy number and number of copies. It is in
//! force exactly while a segment with that key stands on the Ambiguous or Unplanned row. When the
//! content changes, or the copy number, or how many copies there are, no segment has that key any
//! more, and the choice has lapsed by itself.

use std::collections::{BTreeMap, HashMap};

use codeboost_schema::ids::{ItemId, SegmentKey};
use codeboost_schema::link::{FileEntry, Link, Row, Scope, Segment, Tag, segment_key};
use codeboost_schema::plan::Plan;
use serde::Serialize;

/// What a person chose for one ambiguous or unplanned segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Choice {
    /// It belongs to this item.
    Assigned(ItemId),
    /// It is right as it is.
    Accepted,
}

/// The choices of a task, by the key of their segment.
pub type Choices = BTreeMap<SegmentKey, Choice>;

/// Where a segment stands once choices are counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On the row of an item.
    Item(ItemId),
    /// Several items made or touched it, and nobody chose.
    Ambiguous,
    /// Somebody made or touched it who is no item, and nobody chose.
    Unplanned,
    /// A person accepted it as it is.
    Accepted,
}

/// One segment with the choice about it counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where it stands.
    pub place: Place,
    /// Whether it stands there because a person assigned it.
    pub assigned: bool,
    /// For an assigned segment judged at its final paths against its new item; otherwise as in
    /// the link.
    pub scope: Scope,
    /// The items that declare the file, for scope `out`.
    pub scope_owner: Vec<ItemId>,
}

impl Placed {
    /// The item on whose row it stands.
    #[must_use]
    pub fn item(&self) -> Option<&ItemId> {
        match &self.place {
            Place::Item(item) => Some(item),
            Place::Ambiguous | Place::Unplanned | Place::Accepted => None,
        }
    }

    /// The words of all tags of `segment` that must be acknowledged, `out-of-scope` by assignment
    /// included.
    #[must_use]
    pub fn tags_to_acknowledge(&self, segment: &Segment) -> Vec<&'static str> {
        let mut tags: Vec<_> =
            segment.tags.iter().filter(|tag| tag.must_be_acknowledged()).map(Tag::name).collect();
        if self.assigned && self.scope == Scope::Out && !tags.contains(&OUT_OF_SCOPE) {
            tags.push(OUT_OF_SCOPE);
        }
        tags
    }
}

/// The tag that an assignment can add.
pub const OUT_OF_SCOPE: &str = "out-of-scope";

/// Places every segment of `link`, in its order.
///
/// An assignment to an item that the plan doesn't have is not in force.
#[must_use]
pub fn place(link: &Link, plan: &Plan, choices: &Choices) -> Vec<Placed> {
    link.segments
        .iter()
        .map(|segment| {
            let as_linked = |place| Placed {
                place,
                assigned: false,
                scope: segment.scope,
                scope_owner: segment.scope_owner.clone(),
            };
            let undecided = match &segment.row {
                Row::Item(item) => return as_linked(Place::Item(item.clone())),
                Row::Ambiguous => Place::Ambiguous,
                Row::Unplanned => Place::Unplanned,
            };
            match choices.get(&segment.key) {
                Some(Choice::Accepted) => as_linked(Place::Accepted),
                Some(Choice::Assigned(item)) if plan.item(item).is_some() => {
                    let file = &link.files[segment.file as usize];
                    let (scope, scope_owner) = scope(plan, item, file);
                    Placed { place: Place::Item(item.clone()), assigned: true, scope, scope_owner }
                }
                Some(Choice::Assigned(_)) | None => as_linked(undecided),
            }
        })
        .collect()
}

/// Scope of a file's final paths against the declared files of `item`: both paths of a rename.
fn scope(plan: &Plan, item: &ItemId, file: &FileEntry) -> (Scope, Vec<ItemId>) {
    let paths = || std::iter::once(&file.path).chain(&file.old_path);
    let declares = |item: &codeboost_schema::plan::Item, path: &[u8]| {
        item.files.iter().flat_map(|file| file.paths()).any(|declared| declared.as_bytes() == path)
    };
    let inside = plan.item(item).is_some_and(|item| paths().all(|p| declares(item, p.as_bytes())));
    if inside {
        return (Scope::In, Vec::new());
    }
    let owners = plan
        .items
        .iter()
        .filter(|other| other.id != *item && paths().any(|p| declares(other, p.as_bytes())))
        .map(|other| other.id.clone())
        .collect();
    (Scope::Out, owners)
}

/// The keys that the contents of a link would have in other numbers of copies.
///
/// For the words of a refusal, never for matching.
#[derive(Debug)]
pub struct OtherCopies {
    then_and_now: HashMap<SegmentKey, (u64, u64)>,
}

/// So many copies of one content are tried.
const MAX_COPIES: u64 = 4;

impl OtherCopies {
    /// Takes the keys of all contents of `link`.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        let key = |segment: &Segment, copy, copies| {
            segment_key(&link.files[segment.file as usize], &segment.body, copy, copies)
        };
        let mut contents: BTreeMap<SegmentKey, (&Segment, u64)> = BTreeMap::new();
        for segment in &link.segments {
            contents.entry(key(segment, 0, 0)).or_insert((segment, 0)).1 += 1;
        }
        let mut then_and_now = HashMap::new();
        for (segment, now) in contents.into_values() {
            for then in (1..=MAX_COPIES.max(now + 1)).filter(|then| *then != now) {
                if then > MAX_COPIES && then.abs_diff(now) > 1 {
                    continue;
                }
                for copy in 1..=then {
                    then_and_now.insert(key(segment, copy, then), (then, now));
                }
            }
        }
        Self { then_and_now }
    }

    /// How many copies there were and are, if `key` names a content of the link in another number
    /// of copies.
    #[must_use]
    pub fn find(&self, key: &SegmentKey) -> Option<(u64, u64)> {
        self.then_and_now.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::samples::{self, item, sample};

    #[test]
    fn only_ambiguous_and_unplanned_segments_move() {
        let sample = sample();
        let mut choices = Choices::new();
        for segment in &sample.link.segments {
            choices.insert(segment.key.clone(), Choice::Accepted);
        }
        for (segment, placed) in
            sample.link.segments.iter().zip(place(&sample.link, &sample.plan, &choices))
        {
            match &segment.row {
                Row::Item(item) => assert_eq!(placed.place, Place::Item(item.clone())),
                Row::Ambiguous | Row::Unplanned => assert_eq!(placed.place, Place::Accepted),
            }
        }
    }

    #[test]
    fn an_assigned_segment_is_judged_at_its_final_paths() {
        let sample = sample();
        let stray = samples::segment_of(&sample.link, &Row::Unplanned);
        for (to, expected, owner) in [("P1", Scope::In, vec![]), ("P2", Scope::Out, vec!["P1"])] {
            let choices = Choices::from([(stray.key.clone(), Choice::Assigned(item(to)))]);
            let placed = &place(&sample.link, &sample.plan, &choices)[stray.id as usize];
            assert_eq!(placed.item(), Some(&item(to)));
            assert!(placed.assigned);
            assert_eq!(placed.scope, expected);
            assert_eq!(placed.scope_owner, owner.into_iter().map(item).collect::<Vec<_>>());
            let tags = placed.tags_to_acknowledge(stray);
            assert_eq!(tags.contains(&OUT_OF_SCOPE), expected == Scope::Out);
        }
    }

    #[test]
    fn an_assignment_to_an_item_that_is_gone_is_not_in_force() {
        let sample = sample();
        let stray = samples::segment_of(&sample.link, &Row::Unplanned);
        let choices = Choices::from([(stray.key.clone(), Choice::Assigned(item("P9")))]);
        let placed = &place(&sample.link, &sample.plan, &choices)[stray.id as usize];
        assert_eq!(placed.place, Place::Unplanned);
    }

    #[test]
    fn a_choice_about_one_copy_leaves_the_other_and_lapses_with_the_number_of_copies() {
        let two = samples::two_equal_strays();
        let choices = Choices::from([(two.link.segments[0].key.clone(), Choice::Accepted)]);
        let places: Vec<_> =
            place(&two.link, &two.plan, &choices).into_iter().map(|placed| placed.place).collect();
        assert_eq!(places, [Place::Accepted, Place::Unplanned]);

        let mut one = two.clone();
        one.link.segments.remove(0);
        samples::renumber(&mut one.link);
        assert_eq!(place(&one.link, &one.plan, &choices)[0].place, Place::Unplanned);
        assert_eq!(OtherCopies::of(&one.link).find(&two.link.segments[0].key), Some((2, 1)));
        assert_eq!(OtherCopies::of(&two.link).find(&one.link.segments[0].key), Some((1, 2)));
        assert_eq!(OtherCopies::of(&two.link).find(&two.link.segments[0].key), None);
    }
}
