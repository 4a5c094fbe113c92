//! Sets of small numbers, each kept once and named by a number of its own.

use std::rc::Rc;

use hashbrown::HashMap;

/// Name of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SetId(u32);

/// The set without members.
pub(crate) const EMPTY: SetId = SetId(0);

/// All sets that came up so far.
pub(crate) struct Sets {
    members: Vec<Rc<[u32]>>,
    names: HashMap<Rc<[u32]>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
    /// By member, where it is known: the set of it alone.
    ones: Vec<Option<SetId>>,
}

impl Default for Sets {
    fn default() -> Self {
        let empty: Rc<[u32]> = Rc::from([]);
        Self {
            members: vec![Rc::clone(&empty)],
            names: HashMap::from([(empty, EMPTY)]),
            unions: HashMap::new(),
            ones: Vec::new(),
        }
    }
}

impl Sets {
    /// The members, ascending.
    pub(crate) fn members(&self, set: SetId) -> &[u32] {
        &self.members[set.0 as usize]
    }

    fn name(&mut self, members: Vec<u32>) -> SetId {
        if let Some(set) = self.names.get(members.as_slice()) {
            return *set;
        }
        let members: Rc<[u32]> = members.into();
        let set = SetId(self.members.len() as u32);
        self.members.push(Rc::clone(&members));
        self.names.insert(members, set);
        set
    }

    /// The set of one member.
    pub(crate) fn one(&mut self, member: u32) -> SetId {
        let at = member as usize;
        if self.ones.len() <= at {
            self.ones.resize(at + 1, None);
        }
        if let Some(set) = self.ones[at] {
            return set;
        }
        let set = self.name(vec![member]);
        self.ones[at] = Some(set);
        set
    }

    /// The set with one more member.
    pub(crate) fn with(&mut self, set: SetId, member: u32) -> SetId {
        let one = self.one(member);
        self.union(set, one)
    }

    /// The union of two sets.
    pub(crate) fn union(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == EMPTY {
            return a;
        }
        if a == EMPTY {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(set) = self.unions.get(&key) {
            return *set;
        }
        let mut all = [self.members(a), self.members(b)].concat();
        all.sort_unstable();
        all.dedup();
        let set = self.name(all);
        self.unions.insert(key, set);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_one_name() {
        let mut sets = Sets::default();
        let a = sets.one(3);
        let b = sets.with(a, 1);
        let c = sets.one(1);
        assert_eq!(sets.with(c, 3), b);
        assert_eq!(sets.members(b), [1, 3]);
        assert_eq!(sets.union(b, a), b);
        assert_eq!(sets.union(EMPTY, a), a);
    }
}
