//! Version 1 of the plan format, as `schema/versions/1/semantics.md` fixes it.
//!
//! | module | section |
//! |---|---|
//! | [`parse`], with [`json`], [`yaml`] and [`number`] | 1, from bytes to a value |
//! | [`shape`] | 2, violations of the schema in words |
//! | [`tokenize`] | 3, commands |

pub mod json;
pub mod number;
pub mod parse;
pub mod shape;
pub mod tokenize;
pub mod yaml;
