//! The exit codes, here and nowhere else.

use std::process::ExitCode;

/// How a command ended that did not fail.
///
/// The order is that of precedence, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub enum Outcome {
    /// Done, with warnings at most, or nothing to do.
    Done,
    /// Waits for a person or for required checks.
    Waits,
    /// Not allowed yet: blockers, a moved base or head, some decisions refused, a held task.
    NotAllowed,
    /// Failed in a way that was reported as a result, such as a plan with failures.
    Failed,
}

/// A failure that was reported as an error.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage of the command line.
pub(crate) const USAGE: u8 = 2;
/// Not allowed yet, where that has to be an error.
pub(crate) const NOT_ALLOWED: u8 = 3;

impl Outcome {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => FAILED,
            Self::NotAllowed => NOT_ALLOWED,
            Self::Waits => 4,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome.code())
    }
}
