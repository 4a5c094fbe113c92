//! What a person said about the changes, and whether it is still true.
//!
//! Rules only: everything comes in as data (the link, the plan, what is recorded) and goes out as
//! data. Reading records is the store's work, showing them that of `bundle`, and adding to them
//! that of `apply`.
//!
//! | module | question |
//! |---|---|
//! | [`choice`] | on which row does each segment stand, choices included? |
//! | [`fingerprint`] | what exactly does an approval of an item cover? |
//! | [`freshness`] | is an approval still true, and if not, why? |
//! | [`since`] | what is there now against what was approved? |
//! | [`policy`] | whose approvals count, and how many are needed? |
//!
//! What always holds: a choice or an approval is compared by digest only, never by place or by
//! time; nothing here guesses; what can't be compared is not fresh.

pub mod choice;
pub mod fingerprint;
pub mod freshness;
pub mod policy;
pub mod since;

#[cfg(test)]
pub(crate) mod samples;
