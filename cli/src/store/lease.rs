//! Locks of the operating system: gone with the process that held them, however it ended.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error;
use crate::exit_code::Outcome;
use crate::stage::FileError;
use crate::store::open::check_file;
use crate::store::{Store, StoreError, TaskRow};
use crate::task::TaskId;

/// Proof that this process alone works on a task, until it is dropped.
///
/// What must not run twice at once asks for one.
#[derive(Debug)]
pub struct Lease {
    task: TaskId,
    _file: File,
}

impl Lease {
    /// The task that it is for.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }
}

/// Another run holds the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The task's issue.
    pub issue: u64,
    /// Who holds it, as they wrote it: `merge, process 4711, since 2026-11-30T12:00:00Z`.
    pub by: Option<String>,
}

impl Held {
    /// Says so on stderr and gives the outcome of a command that could not go on.
    pub fn tell(&self, context: &crate::context::Context) -> Outcome {
        let by = self.by.as_deref().map_or(String::new(), |by| format!(" ({by})"));
        context.out.warn(format!("another run holds the task for issue #{}{by}", self.issue));
        Outcome::NotAllowed
    }

    /// The same as an error with that exit code, for where a value can't be returned.
    #[must_use]
    pub fn into_error(self) -> error::Error {
        let by = self.by.as_deref().map_or(String::new(), |by| format!(" ({by})"));
        error::Error::not_allowed(format!(
            "another run holds the task for issue #{}{by}",
            self.issue
        ))
        .hint("wait for it to end, then run this again")
    }
}

impl Store<'_> {
    /// Takes the lease on a task without waiting. `what`: the command, for the message to others.
    ///
    /// # Errors
    /// [`StoreError`] when the lock's file can't be used; a lease that another run holds is a
    /// value, not an error.
    pub fn lease(&self, task: &TaskRow, what: &str) -> Result<Result<Lease, Held>, StoreError> {
        let path = self.folder().join(format!("locks/task-{}.lock", task.id));
        let mut file = open(&path)?;
        match file.try_lock() {
            Ok(()) => {
                let text = format!(
                    "{what}, process {}, since {}\n",
                    std::process::id(),
                    self.context().now_text()
                );
                // Only for people: a failed note takes nothing away from the lock.
                let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
                Ok(Ok(Lease { task: task.id, _file: file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.seek(SeekFrom::Start(0));
                let _ = file.take(200).read_to_string(&mut text);
                let by = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                Ok(Err(Held { issue: task.issue, by }))
            }
            Err(TryLockError::Error(source)) => Err(FileError::new("lock", &path, source).into()),
        }
    }
}

/// What waiting for a lock came to.
pub(super) enum Waited {
    /// The lock, held until the file is dropped.
    Got(File),
    /// Others had it all the time.
    TimedOut,
}

/// Waits for an exclusive lock on `path`.
pub(super) fn wait(path: &Path, longest: Duration) -> Result<Waited, StoreError> {
    let file = open(path)?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Waited::Got(file)),
            Err(TryLockError::WouldBlock) if start.elapsed() >= longest => {
                return Ok(Waited::TimedOut);
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            Err(TryLockError::Error(source)) => {
                return Err(FileError::new("lock", path, source).into());
            }
        }
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    check_file(path)?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| FileError::new("open", path, source).into())
}
