//! `codeboost generate`: completions and man pages from the one description of the commands.

use clap::{Args, CommandFactory as _, Subcommand};
use clap_complete::Shell;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::stage;

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print completions for a shell
    ///
    /// Example: codeboost generate completions bash > ~/.local/share/bash-completion/completions/codeboost
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write one man page per command into a folder
    ///
    /// Example: codeboost generate man ~/.local/share/man/man1
    Man {
        /// The folder, made if it is missing
        folder: std::path::PathBuf,
    },
}

pub(crate) fn run(context: &Context, args: &GenerateArgs) -> Result {
    match &args.what {
        What::Completions { shell } => {
            let mut command = crate::args::Args::command();
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "codeboost", &mut text);
            context.out.raw(&text);
        }
        What::Man { folder } => {
            let mut command = crate::args::Args::command();
            command.build();
            let n_pages = write_pages(&context.path(folder), &command, "codeboost")?;
            context.out.line(format!("{n_pages} man pages in {}", folder.display()));
        }
    }
    Ok(Outcome::Done)
}

fn write_pages(folder: &std::path::Path, command: &clap::Command, name: &str) -> Result<usize> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name).bin_name(name))
        .render(&mut text)
        .map_err(|error| Error::from_error(&error))?;
    stage::write(&folder.join(format!("{name}.1")), &text)
        .map_err(|error| Error::from_error(&error))?;
    let mut n_pages = 1;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        n_pages += write_pages(folder, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    Ok(n_pages)
}
