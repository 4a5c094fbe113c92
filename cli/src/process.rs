//! Starting other programs: always with a named folder and an explicit environment.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use crate::context::Context;

/// A command with no environment but `PATH`, in `folder`.
///
/// The caller adds what the program needs, and nothing else gets in.
#[expect(clippy::disallowed_methods, reason = "the one place that makes commands")]
#[must_use]
pub fn command(context: &Context, program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear();
    command.env("PATH", search_path(context));
    command
}

/// The person's `PATH` without relative entries, so that a folder under review can't supply a
/// program.
fn search_path(context: &Context) -> OsString {
    let path = context.var("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let absolute = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(absolute).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}
