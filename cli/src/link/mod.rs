//! Which item owns which changed line: history, ledger and plan in, `link.json` out.
//!
//! Plain data in, plain data out; contents come through [`history::Blobs`], and
//! what only git can tell through [`history::LineDiffs`]. Data moves down this
//! table:
//!
//! | module | does |
//! |---|---|
//! | [`history`] | the types of what is read |
//! | `lineage` | which files have to do with each other; each such set is replayed by itself |
//! | `diff` | line diffs, the final one exactly as git makes it |
//! | `replay` | commit by commit: who made each line, what it was made from, what became of it |
//! | `pair` | which old line of a rewritten block a new line was made from |
//! | `touch` | who touched a line |
//! | `realign` | lines on which the final diff and the replay disagree |
//! | `place` | row and scope |
//! | `segment`, `context`, `hidden` | splits a file into segments and tags them |
//! | `moves` | blocks that moved |
//! | [`kept`] | names what a lineage is linked from, and encodes what that came to |
//! | [`verify`] | puts segments back together and compares |
//! | [`assemble`] | all of it, in parallel |
//!
//! What always holds: every line of the final diff is in exactly one segment, every segment has a
//! commit of the range, and the result does not depend on the order in which threads finish.

pub mod assemble;
mod context;
mod diff;
mod hidden;
pub mod history;
pub mod kept;
mod lineage;
mod lines;
mod moves;
mod pair;
pub mod place;
mod reach;
mod realign;
mod replay;
mod segment;
mod sets;
#[cfg(test)]
mod tests;
mod touch;
pub mod verify;
