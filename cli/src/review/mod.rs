//! The review of a task as it stands now: read from the state and from git, judged by the rules.
//!
//! Several stages need it, and stages don't use each other: `bundle` shows it, `apply` compares
//! decisions with it, `merge` asks its gate. Nothing here changes anything.

pub mod form;
