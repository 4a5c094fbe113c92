//! Draws codeboost's pages: a page model in, HTML out.
//!
//! This package reads no files and asks nothing of the world. What a page shows is in its
//! [`model`]; how it looks is in `templates/` and `assets/`, which are embedded at build time.
//!
//! | step | where |
//! |---|---|
//! | changed files become hunks, words are marked, code is highlighted | `hunks`, `words`, `highlight` |
//! | each row is cut into parts, each a block; the rest goes into the index | `rows`, `parts`, `index`, in the shapes of `wire` |
//! | both become data elements, whose digest is fixed | [`prepare`] |
//! | template, style, script, policy and form join them | [`Prepared::finish`] |
//!
//! In the page, `assets/js` reads the data back and draws what is looked at.

#![warn(missing_docs)]

pub mod model;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod site;

mod embedded;
mod graph;
mod highlight;
mod hunks;
mod images;
mod index;
mod markdown;
mod page;
mod parts;
mod plan;
mod rows;
mod script;
mod text;
mod wire;
mod words;

pub use highlight::Highlighted;
pub use page::{Budget, Options, PageError, PageParts, Prepared, prepare, read_page};
pub use plan::{
    PlanAnswer, PlanCommand, PlanPage, PlanProblem, PlanSuggestion, PlanThread, prepare_plan,
};
