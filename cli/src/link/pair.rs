//! The pairing rule for rewritten blocks: which old line a new line was made from.
//!
//! First equal lines: their longest common subsequence. Then, between these, the order-preserving
//! pairing with the largest total similarity, of pairs with a similarity of 1/2 or more. Ties go
//! to the earlier old, then to the earlier new line.
//!
//! Similarity of two lines: twice the longest common subsequence of their bytes, without
//! terminators, over the sum of both lengths; two lines without any byte are equal. Sums are kept
//! in units of 2^-40, rounded to nearest.
//!
//! Source: contracts, "Who touched a line".

/// Larger tables of equal lines are not searched: such a block is too large to pair.
const MAX_EQUAL_CELLS: usize = 1 << 22;
/// More pairs of lines than this are not compared: such a block is too large to pair.
pub(crate) const MAX_PAIRS: usize = 1 << 18;
/// Larger products of the bytes of both sides are not compared: such a block is too large to pair.
pub(crate) const MAX_BYTE_PAIRS: usize = 1 << 32;

/// Which old line goes with which new line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// The block is too large: every old line goes with every new line.
    All,
    /// Old and new line, both ascending.
    Some(Vec<(u32, u32)>),
}

impl Pairs {
    /// The old lines, of `n_old`, that go with a new line.
    pub(crate) fn olds_of(&self, new: u32, n_old: u32) -> std::ops::Range<u32> {
        match self {
            Self::All => 0..n_old,
            Self::Some(pairs) => match pairs.binary_search_by_key(&new, |pair| pair.1) {
                Ok(at) => pairs[at].0..pairs[at].0 + 1,
                Err(_) => 0..0,
            },
        }
    }

    /// The new lines, of `n_new`, that go with an old line.
    pub(crate) fn news_of(&self, old: u32, n_new: u32) -> std::ops::Range<u32> {
        match self {
            Self::All => 0..n_new,
            Self::Some(pairs) => match pairs.binary_search_by_key(&old, |pair| pair.0) {
                Ok(at) => pairs[at].1..pairs[at].1 + 1,
                Err(_) => 0..0,
            },
        }
    }
}

/// Pairs equal lines, given as numbers. `None` when the block is too large.
pub(crate) fn equal_lines(old: &[u32], new: &[u32]) -> Option<Vec<(u32, u32)>> {
    // Lines that the other side lacks take no part; mostly that leaves nothing.
    let only_shared = |mine: &[u32], other: &[u32]| -> Vec<u32> {
        let mut sorted = other.to_vec();
        sorted.sort_unstable();
        let shared = |idx: &usize| sorted.binary_search(&mine[*idx]).is_ok();
        (0..mine.len()).filter(shared).map(|idx| idx as u32).collect()
    };
    let olds = only_shared(old, new);
    if olds.is_empty() {
        return Some(Vec::new());
    }
    let news = only_shared(new, old);
    let (n, m) = (olds.len(), news.len());
    if n.saturating_mul(m) > MAX_EQUAL_CELLS {
        return None;
    }
    // longest[i][j]: of olds[i..] and news[j..].
    let width = m + 1;
    let mut longest = vec![0u32; (n + 1) * width];
    let equal = |i: usize, j: usize| old[olds[i] as usize] == new[news[j] as usize];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            longest[i * width + j] = if equal(i, j) {
                1 + longest[(i + 1) * width + j + 1]
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let mut pairs = Vec::new();
    let mut j = 0;
    for i in 0..n {
        let best = longest[i * width + j];
        if best == 0 {
            break;
        }
        let partner = (j..m)
            .take_while(|k| longest[i * width + k] == best)
            .find(|k| equal(i, *k) && 1 + longest[(i + 1) * width + k + 1] == best);
        if let Some(k) = partner {
            pairs.push((olds[i], news[k]));
            j = k + 1;
        }
    }
    Some(pairs)
}

/// One in the unit of similarity.
const ONE: u128 = 1 << 40;

/// Pairs lines of which no two are equal by their similarity. Lines are without terminators.
pub(crate) fn similar_lines(old: &[&[u8]], new: &[&[u8]]) -> Pairs {
    let (n, m) = (old.len(), new.len());
    if n == 0 || m == 0 {
        return Pairs::Some(Vec::new());
    }
    let n_bytes = |side: &[&[u8]]| side.iter().map(|line| line.len()).sum::<usize>();
    if n.saturating_mul(m) > MAX_PAIRS || n_bytes(old).saturating_mul(n_bytes(new)) > MAX_BYTE_PAIRS
    {
        return Pairs::All;
    }
    // similarity[i][j], 0 where it is below 1/2; best[i][j]: total of old[i..] and new[j..].
    let mut similarity = vec![0u64; n * m];
    let mut masks = Masks::default();
    for (i, a) in old.iter().enumerate() {
        masks.set(a);
        for (j, b) in new.iter().enumerate() {
            similarity[i * m + j] = similar(&mut masks, a, b);
        }
        masks.clear(a);
    }
    let width = m + 1;
    let mut best = vec![0u64; (n + 1) * width];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let mut total = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let this = similarity[i * m + j];
            if this > 0 {
                total = total.max(this + best[(i + 1) * width + j + 1]);
            }
            best[i * width + j] = total;
        }
    }
    let mut pairs = Vec::new();
    let mut j = 0;
    for i in 0..n {
        let total = best[i * width + j];
        if total == 0 {
            break;
        }
        let partner = (j..m).take_while(|k| best[i * width + k] == total).find(|k| {
            let this = similarity[i * m + k];
            this > 0 && this + best[(i + 1) * width + k + 1] == total
        });
        if let Some(k) = partner {
            pairs.push((i as u32, k as u32));
            j = k + 1;
        }
    }
    Pairs::Some(pairs)
}

/// Similarity in units of 2^-40; 0 below 1/2.
fn similar(masks: &mut Masks, a: &[u8], b: &[u8]) -> u64 {
    let sum = a.len() + b.len();
    if sum == 0 {
        return ONE as u64;
    }
    // The shorter line bounds what both can have in common.
    if 4 * a.len().min(b.len()) < sum {
        return 0;
    }
    let common = masks.common_subsequence(a.len(), b);
    if 4 * common < sum {
        return 0;
    }
    let sum = sum as u128;
    ((2 * common as u128 * ONE + sum / 2) / sum) as u64
}

/// For each byte the places where a line has it, as bits.
#[derive(Default)]
struct Masks {
    n_words: usize,
    bits: Vec<u64>,
    row: Vec<u64>,
}

impl Masks {
    fn set(&mut self, line: &[u8]) {
        self.n_words = line.len().div_ceil(64);
        if self.bits.len() < 256 * self.n_words {
            self.bits.resize(256 * self.n_words, 0);
        }
        for (at, byte) in line.iter().enumerate() {
            self.bits[usize::from(*byte) * self.n_words + at / 64] |= 1 << (at % 64);
        }
    }

    fn clear(&mut self, line: &[u8]) {
        for byte in line {
            let from = usize::from(*byte) * self.n_words;
            self.bits[from..from + self.n_words].fill(0);
        }
    }

    /// Length of the longest common subsequence of the set line, of `len` bytes, and `other`.
    ///
    /// Bit-parallel: a zero in the row is a step of the subsequence.
    fn common_subsequence(&mut self, len: usize, other: &[u8]) -> usize {
        self.row.clear();
        self.row.resize(self.n_words, u64::MAX);
        for byte in other {
            let from = usize::from(*byte) * self.n_words;
            let mut carry = false;
            for (row, mask) in self.row.iter_mut().zip(&self.bits[from..from + self.n_words]) {
                let hit = *row & mask;
                let (sum, over) = row.overflowing_add(hit);
                let (sum, over_too) = sum.overflowing_add(u64::from(carry));
                carry = over || over_too;
                *row = sum | (*row & !mask);
            }
        }
        let ones: usize = self.row.iter().map(|word| word.count_ones() as usize).sum();
        // Bits past the end of the line stay ones.
        let past = self.n_words * 64 - len;
        len - (ones - past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow_common(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0usize; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    /// The best total of every order-preserving pairing, and the first pairing that reaches it.
    fn slow_pairs(old: &[&[u8]], new: &[&[u8]]) -> (u64, Vec<(u32, u32)>) {
        fn go(old: &[&[u8]], new: &[&[u8]], i: usize, j: usize) -> (u64, Vec<(u32, u32)>) {
            if i == old.len() {
                return (0, Vec::new());
            }
            let mut best: Option<(u64, Vec<(u32, u32)>)> = None;
            let mut offer = |candidate: (u64, Vec<(u32, u32)>)| {
                if best.as_ref().is_none_or(|best| candidate.0 > best.0) {
                    best = Some(candidate);
                }
            };
            for k in j..new.len() {
                let sum = old[i].len() + new[k].len();
                let common = slow_common(old[i], new[k]);
                if sum == 0 || 4 * common >= sum {
                    let this = if sum == 0 {
                        1 << 40
                    } else {
                        (((2 * common as u128) << 40) + sum as u128 / 2) as u64 / sum as u64
                    };
                    let (total, mut pairs) = go(old, new, i + 1, k + 1);
                    pairs.insert(0, (i as u32, k as u32));
                    offer((this + total, pairs));
                }
            }
            offer(go(old, new, i + 1, j));
            best.unwrap_or_default()
        }
        go(old, new, 0, 0)
    }

    proptest! {
        #[test]
        fn bit_parallel_subsequences_equal_the_plain_ones(
            a in proptest::collection::vec(0u8..4, 0..150),
            b in proptest::collection::vec(0u8..4, 0..150),
        ) {
            let mut masks = Masks::default();
            masks.set(&a);
            prop_assert_eq!(masks.common_subsequence(a.len(), &b), slow_common(&a, &b));
        }

        #[test]
        fn pairs_are_the_best_and_the_earliest(
            old in proptest::collection::vec("[abc]{0,4}", 0..5),
            new in proptest::collection::vec("[abc]{0,4}", 0..5),
        ) {
            let old: Vec<&[u8]> = old.iter().map(|line| line.as_bytes()).collect();
            let new: Vec<&[u8]> = new.iter().map(|line| line.as_bytes()).collect();
            let (_, wanted) = slow_pairs(&old, &new);
            prop_assert_eq!(similar_lines(&old, &new), Pairs::Some(wanted));
        }

        #[test]
        fn equal_lines_are_a_longest_common_subsequence(
            old in proptest::collection::vec(0u32..4, 0..10),
            new in proptest::collection::vec(0u32..4, 0..10),
        ) {
            let pairs = equal_lines(&old, &new).unwrap();
            let bytes = |side: &[u32]| side.iter().map(|n| *n as u8).collect::<Vec<_>>();
            prop_assert_eq!(pairs.len(), slow_common(&bytes(&old), &bytes(&new)));
            for pair in &pairs {
                prop_assert_eq!(old[pair.0 as usize], new[pair.1 as usize]);
            }
            for pair in pairs.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
            }
        }
    }

    #[test]
    fn ties_go_to_the_earlier_old_and_then_to_the_earlier_new_line() {
        assert_eq!(equal_lines(&[1, 1], &[1]), Some(vec![(0, 0)]));
        assert_eq!(equal_lines(&[1], &[1, 1]), Some(vec![(0, 0)]));
        assert_eq!(equal_lines(&[1, 2], &[2, 1]), Some(vec![(0, 1)]));
        assert_eq!(similar_lines(&[b"ab", b"ab"], &[b"abc"]), Pairs::Some(vec![(0, 0)]));
        assert_eq!(similar_lines(&[b"ab"], &[b"abc", b"abd"]), Pairs::Some(vec![(0, 0)]));
    }

    #[test]
    fn blocks_over_the_bound_are_all_paired_with_all() {
        let line: &[u8] = b"x";
        assert_eq!(similar_lines(&vec![line; 513], &vec![line; 512]), Pairs::All);
        assert!(matches!(similar_lines(&vec![line; 512], &vec![line; 512]), Pairs::Some(_)));
    }
}
