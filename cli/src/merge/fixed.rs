//! The already-fixed check: what is asked, and what a person has gone on with.

use std::path::PathBuf;

use codeboost_schema::canonical;
use codeboost_schema::ids::CommitId;

use crate::forge::{AlreadyFixed, FixQuestion, Forge};
use crate::store::{Store, StoreError, TaskRow};

/// Asks the forge whether something other than the task has fixed its issue.
///
/// `base`: the base as it is now, its commits being here. What is found is recorded; what a person
/// has gone on with before is left out of the answer.
///
/// # Errors
/// [`StoreError`] when the state can't be read or written. What the forge can't tell is an answer.
pub fn check(
    store: &Store<'_>,
    forge: &dyn Forge,
    task: &TaskRow,
    base: &CommitId,
) -> Result<AlreadyFixed, StoreError> {
    let (since, ours, others, issue) = store.read(|tx| -> Result<_, StoreError> {
        Ok((
            tx.first_base(task)?,
            tx.own_commits(task.id)?,
            tx.other_work(task)?,
            tx.issue(task.issue)?,
        ))
    })?;
    let file = issue.and_then(|issue| issue.file).map(|path| {
        use std::os::unix::ffi::OsStrExt as _;
        PathBuf::from(std::ffi::OsStr::from_bytes(path.as_bytes()))
    });
    let answer = forge.already_fixed(&FixQuestion {
        issue: task.issue,
        issue_file: file.as_deref(),
        since: &since,
        base,
        ours: &ours,
        others: &others,
    });
    let AlreadyFixed::Found(mut findings) = answer else { return Ok(answer) };
    let named: Vec<_> =
        findings.iter().map(|finding| (canonical::digest(finding), finding.to_string())).collect();
    let continued = store.write(|tx| -> Result<_, StoreError> {
        tx.record_findings(task.id, &named)?;
        tx.continued_findings(task.id)
    })?;
    let mut named = named.into_iter();
    findings.retain(|_| named.next().is_none_or(|(digest, _)| !continued.contains(&digest)));
    Ok(if findings.is_empty() { AlreadyFixed::No } else { AlreadyFixed::Found(findings) })
}
