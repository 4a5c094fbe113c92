//! Reading a plan from a file or from standard input.

use std::io::Read as _;

use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::error::Result;
use crate::plan::read::{ReadPlan, Unreadable, read};
use crate::plan::source::Source;
use crate::plan::v1::parse::{MAX_BYTES, Syntax};
use crate::stage::{self, FileError};

/// How a plan is spelled, where its name does not tell.
#[derive(Debug, Args)]
pub(in crate::commands) struct SyntaxArgs {
    /// How the plan is spelled [default: by the file's ending, else by its first character]
    #[arg(long, value_name = "SYNTAX")]
    syntax: Option<SyntaxName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SyntaxName {
    Json,
    Yaml,
}

/// The bytes of an input and what they are called in messages.
#[derive(Debug)]
pub(in crate::commands) struct Input {
    pub(in crate::commands) name: String,
    pub(in crate::commands) bytes: Vec<u8>,
    pub(in crate::commands) syntax: Syntax,
}

impl Input {
    /// Reads a file, or standard input for `-`; never more than just past the limit.
    pub(in crate::commands) fn read(
        context: &Context,
        file: &str,
        args: &SyntaxArgs,
    ) -> Result<Self> {
        let limit = MAX_BYTES + 1;
        let path = context.path(file);
        let bytes = if file == "-" {
            let mut bytes = Vec::new();
            let done = std::io::stdin().lock().take(limit as u64).read_to_end(&mut bytes);
            done.map_err(|source| FileError::new("read", &path, source))?;
            bytes
        } else {
            stage::read_start(&path, limit)?
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        let syntax = match args.syntax {
            Some(SyntaxName::Json) => Syntax::Json,
            Some(SyntaxName::Yaml) => Syntax::Yaml,
            None => Syntax::of(extension.filter(|_| file != "-"), &bytes),
        };
        let name = if file == "-" { "standard input".into() } else { file.to_owned() };
        Ok(Self { name, bytes, syntax })
    }

    /// Reads JSON from a file, or from standard input for `-`, whatever its name ends with.
    pub(in crate::commands) fn read_json(context: &Context, file: &str) -> Result<Self> {
        Self::read(context, file, &SyntaxArgs { syntax: Some(SyntaxName::Json) })
    }

    /// The text, as far as it is one.
    pub(super) fn source(&self) -> Source {
        Source::new(String::from_utf8_lossy(&self.bytes).into_owned())
    }

    /// The plan, or everything that keeps it from being one.
    pub(in crate::commands) fn plan(&self) -> std::result::Result<ReadPlan, Unreadable> {
        read(&self.bytes, self.syntax)
    }
}
