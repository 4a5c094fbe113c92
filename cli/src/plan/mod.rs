//! Plans: from bytes to a checked plan, and from one revision to the next.
//!
//! | module | does |
//! |---|---|
//! | [`amend`] | the next revision from what turned out to be missing in this one |
//! | [`read`] | bytes to a plan: parser, version, schema |
//! | [`diff`] | what changed between two plans, and which approvals that costs |
//! | [`forecast`] | which changes will probably have several owners |
//! | [`judge`] | every problem of a plan of any version |
//! | [`problem`] | what is wrong with a plan, with its place, rule and mend |
//! | [`source`] | the input's text and its syntax tree, for places |
//! | [`text`] | the one text of a revision that threads refer to |
//! | [`threads`] | review threads, replayed from their records |
//! | [`mod@write`] | a plan as YAML and JSON |
//! | [`v1`] | the semantics of version 1; a later version gets its own folder |
//!
//! Everything here is a rule: plain data in, plain data out. Trees of git, the file system's
//! notion of equal paths and the allowed commands are given by the caller.

pub mod amend;
pub mod diff;
pub mod forecast;
pub mod judge;
pub mod problem;
pub mod read;
pub mod source;
pub mod text;
pub mod threads;
pub mod v1;
pub mod write;
