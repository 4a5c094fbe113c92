//! Git: reading histories from the object store, and running git itself.
//!
//! [`run`] starts git, isolated from every configuration and environment that could change a
//! result. [`repository`] finds the folders of a repository. `read` fills `link::History` from the object store.

pub mod repository;
pub mod run;
