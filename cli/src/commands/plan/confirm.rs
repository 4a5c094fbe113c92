//! Asking the person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Asks a question that is answered with yes or no; `None` where nobody can be asked.
///
/// Only a clear yes counts as one.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !can_ask() {
        return None;
    }
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    let _ = write!(stderr, "{question} [y/N] ");
    let _ = stderr.flush();
    let mut line = String::new();
    stdin.lock().read_line(&mut line).ok()?;
    Some(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Whether somebody is there who can answer.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
