//! Carrying out an approved plan: a workspace, what was done in it, and the commit made of it.
//!
//! | module | does |
//! |---|---|
//! | [`manifest`] | reads what lies in a workspace, trusting nothing there |
//! | [`audit`] | judges it: safety first, then scope |

pub mod audit;
pub mod manifest;
