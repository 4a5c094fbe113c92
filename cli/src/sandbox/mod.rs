//! Containers in which agents and the commands of a project run, and what they may reach.
//!
//! | module | does |
//! |---|---|
//! | [`channel`] | by which an agent asks for commands and the like |
//! | [`engine`] | speaks with Docker or Podman over its socket |
//! | [`image`] | the image with the vendors' tools: which one it has to be, and how it is made |
//! | [`place`] | what is made for one run, and what is found again of a killed one |
//! | [`profile`] | everything a container may do; compares that with what the engine made |
//! | [`proxy`] | the way to the vendor, on which the sign-in is added |
//! | [`storage`] | the file system that a container writes to, as large as it may become |
//! | [`supervise`] | runs a container to its end, or to ours |
//!
//! There is no way to run anything on this machine instead: what can't be enforced is refused.

pub mod channel;
pub mod engine;
pub mod error;
pub mod image;
pub mod place;
pub mod profile;
pub mod proxy;
pub mod storage;
pub mod supervise;

#[cfg(test)]
mod tests;

pub use error::SandboxError;
