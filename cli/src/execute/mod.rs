//! Carrying out an approved plan: a workspace, what was done in it, and the commit made of it.
//!
//! | module | does |
//! |---|---|
//! | [`amend`] | what a wrong plan waits for, and the ways on |
//! | [`check`] | runs the approved commands on this machine |
//! | [`consult`] | asks a vendor's tool about a project that it may only read |
//! | [`contained`] | carries out a plan with a vendor's tool in containers |
//! | [`item`] | one item from its beginning to its end |
//! | [`replay`] | carries out a plan from recorded patches |
//! | [`scripts`] | changes of what is run, which a person approves |
//! | [`workspace`] | makes standalone clones |
//! | [`manifest`] | reads what lies in a workspace, trusting nothing there |
//! | [`audit`] | judges it: safety first, then scope |
//! | [`commit`] | makes the commit, in our own repository |

pub mod amend;
pub mod audit;
pub mod check;
pub mod commit;
pub mod consult;
pub mod contained;
pub mod item;
pub mod manifest;
pub mod replay;
pub mod scripts;
pub mod workspace;

#[cfg(test)]
mod tests;
