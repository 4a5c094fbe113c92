//! Decisions: from a file or the terminal into the record.

pub mod compare;
pub mod signature;
