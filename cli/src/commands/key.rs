//! `codeboost key`: the key that signs forms.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::commands::init::Identity;
use crate::commands::open;
use crate::config::AcceptedKey;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::store::{Event, FormKey, StoreError, write_secret};
use crate::task::{Actor, RepositoryId};

/// Arguments of `key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show the public key that signs forms here, and the other keys that are accepted
    ///
    /// Example: codeboost key show
    Show,
    /// Make a key for another place, such as CI, and write it with this repository's identity
    ///
    /// The file is a secret. Its forms count here once the key is in the local configuration,
    /// as printed.
    ///
    /// Example: codeboost key export ci-identity.json --name ci
    Export {
        /// The file to write; it must not exist
        file: PathBuf,
        /// The key's name, for people
        #[arg(long, default_value = "ci")]
        name: String,
    },
}

#[derive(Serialize)]
struct Report<'a> {
    repository: RepositoryId,
    public_key: Option<String>,
    accepted_keys: &'a [AcceptedKey],
}

pub(crate) fn run(context: &Context, args: &KeyArgs) -> Result {
    let (repository, store) = open(context)?;
    let id = store.read(|tx| tx.repository_id())?;
    let config = repository.config()?;
    match &args.what {
        What::Show => {
            let key = store.key()?;
            let public_key = key.as_ref().map(FormKey::public_text);
            if context.out.is_json() {
                context.out.json(&Report {
                    repository: id,
                    public_key,
                    accepted_keys: &config.keys,
                });
                return Ok(Outcome::Done);
            }
            context.out.line(format!("Repository  {id}"));
            context.out.line(format!("Signs with  {}", public_key.as_deref().unwrap_or("no key")));
            for key in &config.keys {
                context.out.line(format!("Accepts     {} ({})", key.public_key, key.name));
            }
        }
        What::Export { file, name } => {
            if name.is_empty() || name.chars().any(|c| c.is_control() || "'\"{}".contains(c)) {
                return Err(Error::usage(format!("{name:?} can't be the name of a key")));
            }
            let key = FormKey::generate(name)?;
            let identity =
                Identity { schema_version: 1, repository: id, private_key: key.secret_text() };
            let mut text = serde_json::to_string_pretty(&identity)
                .map_err(|error| Error::from_error(&error))?;
            text.push('\n');
            if !write_secret(&context.path(file), text.as_bytes())? {
                return Err(Error::failed(format!("{} exists", file.display()))
                    .hint("name a file that does not exist yet"));
            }
            store
                .write(|tx| {
                    tx.log(&Event {
                        task: None,
                        kind: "key-exported",
                        actor: Actor::Person,
                        detail: json!({"name": name, "public_key": key.public_text()}),
                        words: &format!("made the key {name} for another place"),
                    })
                })
                .map_err(|error: StoreError| error)?;
            let accepted = AcceptedKey { name: name.clone(), public_key: key.public_text() };
            if context.out.is_json() {
                context.out.json(&json!({"file": file.display().to_string(), "key": accepted}));
                return Ok(Outcome::Done);
            }
            context.out.line(format!("Wrote {}. It is a secret.", file.display()));
            context.out.line("");
            context.out.line(format!(
                "To accept its forms here, add to {}:",
                repository.state_folder().join("config.yaml").display()
            ));
            context.out.line("  keys:");
            context.out.line(format!("    - name: '{name}'"));
            context.out.line(format!("      public_key: '{}'", accepted.public_key));
            context.out.line("");
            context.out.line("There: codeboost init --identity FILE");
        }
    }
    Ok(Outcome::Done)
}
