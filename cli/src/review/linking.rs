//! Links a range of a repository: reads its history, and shows how far it is.
//!
//! Being told to end is noticed, so that nothing made on the way stays behind; the process then
//! ends by the signal that told it to.

use std::io;
use std::time::{Duration, Instant};

use codeboost_schema::ids::CommitId;
use codeboost_schema::ledger::Ledger;
use codeboost_schema::link::Link;
use codeboost_schema::plan::Plan;

use crate::git::range::{self, Source};
use crate::git::read::{Objects, ReadError};
use crate::git::repository::{Repository, RepositoryError};
use crate::link::assemble::{self, LinkError, Options};
use crate::link::kept::Kept;
use crate::output::Progress;
use crate::process::{self, Ending};
use crate::store::KeptLinks;

/// What a person allows a link to cost; by default everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    /// Changed lines of the final diff.
    pub max_lines: Option<u64>,
    /// Commits of the range.
    pub max_commits: Option<usize>,
    /// Time from the beginning on.
    pub deadline: Option<Duration>,
}

/// Why a range can't be linked.
#[derive(Debug, thiserror::Error)]
pub enum LinkingError {
    /// An object can't be read, or the range is none.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The project's settings at the base can't be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The history can't be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Signals can't be caught.
    #[error("can't watch for being told to end")]
    Watch(#[source] io::Error),
}

/// Links `base..head` with a plan and a ledger.
///
/// # Errors
/// [`LinkingError`] when something that is needed can't be read, or the budget does not suffice.
pub fn link_range(
    repository: &Repository<'_>,
    objects: &Objects,
    (base, head): (&CommitId, &CommitId),
    plan: &Plan,
    ledger: &Ledger,
    budget: Budget,
) -> Result<Link, LinkingError> {
    let begun = Instant::now();
    let ending = Ending::watch().map_err(LinkingError::Watch)?;
    let is_over =
        || ending.is_told() || budget.deadline.is_some_and(|deadline| begun.elapsed() > deadline);
    let link = || {
        let context = repository.context();
        let source = Source::new(context, objects);
        let mut history = range::history(&source, base, head, budget.max_commits)?;
        if budget.max_lines.is_some() {
            // How many lines there are is known before anything is replayed.
            history.diff = range::final_diff(&source, base, head)?;
        }
        let project = repository.project_config_in(objects, base)?;
        let n_files = history.diff.files.len() as u64;
        let progress = Progress::new(&context.out, "linking", n_files, "files", begun);
        // Another program, or another git, may come to another result.
        let kept = process::stamp(context)
            .and_then(|stamp| KeptLinks::open(&repository.state_folder(), &stamp, base));
        let options = Options {
            kept: kept.as_ref().map(|kept| kept as &dyn Kept),
            generated: &project.generated,
            max_lines: budget.max_lines,
            is_over: Some(&is_over),
            progress: Some(&|done, _all| progress.tell(done)),
        };
        let linked = assemble::link(&history, plan, ledger, &source, &options);
        progress.end();
        let linked = linked?;
        if let Some(kept) = kept {
            kept.keep();
        }
        Ok(linked)
    };
    let linked = link();
    // Whatever was made on the way is gone by now.
    ending.end_if_told();
    linked
}
