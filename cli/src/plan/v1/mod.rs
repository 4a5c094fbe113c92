//! Version 1 of the plan format, as `schema/versions/1/semantics.md` fixes it.
//!
//! | module | section |
//! |---|---|
//! | [`parse`], with [`json`], [`yaml`] and [`number`] | 1, from bytes to a value |
//! | [`shape`] | 2, violations of the schema in words |
//! | [`tokenize`] | 3, commands |
//! | [`projected`] | 4 and 5.6, paths and the state after each item |
//! | [`check`] | 3 to 7, whether the plan makes sense |
//! | [`suggest`] | 8, suggested edits |

pub mod check;
pub mod json;
pub mod number;
pub mod parse;
pub mod projected;
pub mod shape;
pub mod suggest;
pub mod tokenize;
pub mod yaml;
