//! The `codeboost` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    codeboost::run(std::env::args_os())
}
