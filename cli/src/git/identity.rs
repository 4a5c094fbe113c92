//! In whose name codeboost makes commits: the person's, as git knows them.

use jiff::Timestamp;

use crate::context::Context;
use crate::git::run::{Git, GitError};

/// A name and an address for commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Neither the environment nor git's configuration names the person.
    #[error("git does not know your {0}")]
    Missing(&'static str),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Identity {
    /// The person at the terminal: `GIT_COMMITTER_NAME` and `GIT_COMMITTER_EMAIL`, else the
    /// person's own and the repository's configuration.
    ///
    /// # Errors
    /// [`IdentityError::Missing`] when a part is set nowhere: nothing is guessed from the machine.
    pub fn of_person(context: &Context, git: &Git<'_>) -> Result<Self, IdentityError> {
        let git = git.with_person();
        let part = |variable: &str, keys: [&str; 2], what| {
            if let Some(text) = context.var(variable).and_then(|text| text.to_str()) {
                return Ok(clean(text));
            }
            for key in keys {
                let done = git.finish(["config", "--get", key], None)?;
                let text = clean(&String::from_utf8_lossy(&done.stdout));
                if done.code == Some(0) && !text.is_empty() {
                    return Ok(text);
                }
            }
            Err(IdentityError::Missing(what))
        };
        Ok(Self {
            name: part("GIT_COMMITTER_NAME", ["committer.name", "user.name"], "name")?,
            email: part("GIT_COMMITTER_EMAIL", ["committer.email", "user.email"], "email")?,
        })
    }

    /// codeboost, where nobody else is named: an address that reaches nobody.
    #[must_use]
    pub fn of_codeboost() -> Self {
        Self { name: "codeboost".to_owned(), email: "codeboost@localhost.invalid".to_owned() }
    }

    /// `git`, making commits as this person at that time, as author and committer.
    #[must_use]
    pub fn on<'a>(&self, git: &Git<'a>, time: Timestamp) -> Git<'a> {
        let date = format!("@{} +0000", time.as_second());
        git.with_env("GIT_AUTHOR_NAME", &*self.name)
            .with_env("GIT_AUTHOR_EMAIL", &*self.email)
            .with_env("GIT_AUTHOR_DATE", &*date)
            .with_env("GIT_COMMITTER_NAME", &*self.name)
            .with_env("GIT_COMMITTER_EMAIL", &*self.email)
            .with_env("GIT_COMMITTER_DATE", date)
            .with_config("i18n.commitEncoding=UTF-8")
    }
}

/// One line without what git would drop from an identity anyway.
fn clean(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect()
}
