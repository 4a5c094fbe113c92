//! The one place that turns errors into what people see.
//!
//! Rooms define their own errors, as lower-case fragments that name the thing. Here each gets its
//! causes and its hint: the next command or step.

use std::error::Error as StdError;

use serde::Serialize;

use crate::exit_code;
use crate::output::{Output, Style};

/// An error on its way to a person.
#[derive(Debug)]
pub struct Error {
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    code: u8,
}

/// What a command returns: how it ended, or an error.
pub type Result<T = crate::exit_code::Outcome> = std::result::Result<T, Error>;

impl Error {
    /// A failure of the operation: exit code 1.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            code: exit_code::FAILED,
        }
    }

    /// Wrong usage: exit code 2.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: exit_code::USAGE, ..Self::failed(message) }
    }

    /// A failure with the whole chain of `error` as message and causes: exit code 1.
    #[must_use]
    pub fn from_error(error: &(dyn StdError + 'static)) -> Self {
        let mut this = Self::failed(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            this.causes.push(cause.to_string());
            source = cause.source();
        }
        this
    }

    /// Puts `message` before this error, which becomes its first cause.
    #[must_use]
    pub fn context(mut self, message: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, message.into());
        self.causes.insert(0, cause);
        self
    }

    /// Adds the next step, shown as a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The message without causes and hints.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn print(&self, out: &Output) {
        if out.is_json() {
            out.json(&ErrorReport {
                error: ErrorBody {
                    message: &self.message,
                    causes: &self.causes,
                    hints: &self.hints,
                    exit_code: self.code,
                },
            });
        }
        out.error_line("error:", Style::Error, &self.message);
        for cause in &self.causes {
            out.error_line("caused by:", Style::Muted, cause);
        }
        for hint in &self.hints {
            out.error_line("hint:", Style::Accent, hint);
        }
    }
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    causes: &'a [String],
    hints: &'a [String],
    exit_code: u8,
}
