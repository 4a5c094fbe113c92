//! Git: reading histories from the object store, and running git itself.
//!
//! [`run`] starts git, isolated from every configuration and environment that could change a
//! result. [`repository`] finds the folders of a repository. [`read`] reads objects and fills
//! `link::history::History`. [`borrow`] is a private repository on somebody's objects. [`merge`] makes
//! the commit that lands, [`rebase`] replays commits onto another one, [`refs`] changes refs here and elsewhere, all or none.

pub mod borrow;
pub mod checkout;
pub mod hash;
pub mod identity;
pub mod ignore;
pub mod merge;
pub mod range;
pub mod read;
pub mod rebase;
pub mod refs;
pub mod repository;
pub mod run;
pub mod tree;
mod trees;
