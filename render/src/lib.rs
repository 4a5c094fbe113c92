//! Draws codeboost's pages: a page model in, HTML out.
//!
//! This package reads no files and asks nothing of the world. What a page shows is in its
//! [`model`]; how it looks is in `templates/` and `assets/`, which are embedded at build time.

pub mod model;
