//! Making and opening the state, and its transactions.

use std::cell::{OnceCell, RefCell};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::context::Context;
use crate::git::repository::Repository;
use crate::git::run::Git;
use crate::process;
use crate::stage::FileError;
use crate::store::lease::{self, Waited};
use crate::store::{ReadTx, StoreError, WriteTx, migrations};
use crate::task::RepositoryId;

/// Marks the database as ours: `cdbs`.
const APPLICATION_ID: i32 = 0x6364_6273;

/// How long a process waits for another one's write transaction.
const WRITE_WAIT: Duration = Duration::from_secs(30);

/// The state of one repository.
///
/// Opening takes no lock. [`Store::read`] sees one consistent moment. [`Store::write`] waits its
/// turn, then records all or nothing.
#[derive(Debug)]
pub struct Store<'a> {
    context: &'a Context,
    git: Git<'a>,
    folder: PathBuf,
    connection: RefCell<Connection>,
    person: OnceCell<String>,
}

impl<'a> Store<'a> {
    /// Opens the state, bringing an older version up to date.
    ///
    /// # Errors
    /// [`StoreError::NotSetUp`] before `init`; other variants when the state is a link, open to
    /// others, from a newer version or damaged.
    pub fn open(repository: &Repository<'a>) -> Result<Self, StoreError> {
        Self::open_if_there(repository)?.ok_or(StoreError::NotSetUp)
    }

    /// As [`Self::open`], with `None` before `init`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_if_there(repository: &Repository<'a>) -> Result<Option<Self>, StoreError> {
        let folder = repository.state_folder();
        let file = folder.join("state.db");
        if !check_folder(&folder)? || !check_file(&file)? {
            return Ok(None);
        }
        let store = Self::connect(repository, folder)?;
        let version = migrations::version(&store.connection.borrow())?;
        if version == 0 {
            // Left by an `init` that was killed before it recorded anything.
            return Ok(None);
        }
        store.check_application(&file)?;
        migrations::check_version(version)?;
        if version < migrations::newest() {
            store.transact(migrations::apply)?;
        }
        Ok(Some(store))
    }

    /// Makes the state of a repository, or opens the one that is there.
    ///
    /// `identity`: the repository's name in forms; a new one when `None`. Returns the state and
    /// whether it was made.
    ///
    /// # Errors
    /// [`StoreError`] when a part can't be made or what is there can't be used.
    pub fn create(
        repository: &Repository<'a>,
        identity: Option<RepositoryId>,
    ) -> Result<(Self, bool), StoreError> {
        let folder = repository.state_folder();
        let file = folder.join("state.db");
        if !check_folder(&folder)? {
            make_folder(&folder)?;
        }
        if !check_file(&file)? {
            let made =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
            match made {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(FileError::new("make", &file, error).into());
                }
                _ => {}
            }
        }
        for name in ["locks", "evidence"] {
            let part = folder.join(name);
            if !check_folder(&part)? {
                make_folder(&part)?;
            }
        }
        let store = Self::connect(repository, folder)?;
        if migrations::version(&store.connection.borrow())? > 0 {
            store.check_application(&file)?;
        }
        let id = identity.unwrap_or_else(RepositoryId::random);
        let now = store.context.now_text();
        let made = store.transact(|connection| {
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            migrations::apply(connection)?;
            let rows = connection.execute(
                "INSERT OR IGNORE INTO repository (only_row, id, created_at) VALUES (1, ?1, ?2)",
                (id.to_string(), now),
            )?;
            Ok::<_, StoreError>(rows == 1)
        })?;
        Ok((store, made))
    }

    fn connect(repository: &Repository<'a>, folder: PathBuf) -> Result<Self, StoreError> {
        let file = folder.join("state.db");
        for suffix in ["-wal", "-shm", "-journal"] {
            check_file(&folder.join(format!("state.db{suffix}")))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&file, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
            .map_err(|error| not_a_database(error, &file))?;
        if mode != "wal" {
            return Err(StoreError::Damaged(format!(
                "its file system does not allow write-ahead logging (journal mode {mode})"
            )));
        }
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(Self {
            context: repository.context(),
            git: repository.git().clone(),
            folder,
            connection: RefCell::new(connection),
            person: OnceCell::new(),
        })
    }

    fn check_application(&self, file: &Path) -> Result<(), StoreError> {
        let id: i32 =
            self.connection
                .borrow()
                .pragma_query_value(None, "application_id", |row| row.get(0))?;
        if id == APPLICATION_ID { Ok(()) } else { Err(StoreError::Foreign(file.to_owned())) }
    }

    /// The state's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The context that it was opened in.
    #[must_use]
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Git on the repository.
    #[must_use]
    pub fn git(&self) -> &Git<'a> {
        &self.git
    }

    /// The person at the terminal, as git knows them: `Name <email>`, for the record only.
    #[must_use]
    pub fn person(&self) -> &str {
        self.person.get_or_init(|| {
            let git = self.git.with_person();
            let setting = |key: &str| {
                let done = git.finish(["config", "--get", key], None).ok()?;
                let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
                (done.code == Some(0) && !text.is_empty()).then_some(text)
            };
            match (setting("user.name"), setting("user.email")) {
                (Some(name), Some(email)) => format!("{name} <{email}>"),
                (Some(name), None) => name,
                (None, Some(email)) => format!("<{email}>"),
                (None, None) => self.context.var("USER").map_or_else(
                    || "unknown".to_owned(),
                    |name| name.to_string_lossy().into_owned(),
                ),
            }
        })
    }

    /// Looks at one consistent moment of the state.
    ///
    /// # Errors
    /// What `look` answers, or [`StoreError`] when the state can't be read.
    pub fn read<T, E: From<StoreError>>(
        &self,
        look: impl FnOnce(&ReadTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut connection = self.connection.borrow_mut();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Deferred)
            .map_err(StoreError::from)?;
        look(&ReadTx::new(&tx))
    }

    /// Changes the state: all that `change` did is recorded, or nothing when it fails.
    ///
    /// Keep it short: other processes wait. The person at the terminal is the default actor.
    ///
    /// # Errors
    /// What `change` answers, or [`StoreError`] when the state can't be written.
    pub fn write<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&WriteTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Asking git who the person is takes time that no lock should be held for.
        let person = self.person().to_owned();
        let now = self.context.now_text();
        self.transact(|connection| change(&WriteTx::new(connection, now, person)))
    }

    fn transact<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let _turn = match lease::wait(&self.folder.join("locks/write.lock"), WRITE_WAIT)? {
            Waited::Got(file) => file,
            Waited::TimedOut => return Err(StoreError::Busy(WRITE_WAIT.as_secs()).into()),
        };
        let mut connection = self.connection.borrow_mut();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(StoreError::from)?;
        let value = change(&tx)?;
        process::crash_point(self.context, "store-before-commit");
        tx.commit().map_err(StoreError::from)?;
        process::crash_point(self.context, "store-after-commit");
        Ok(value)
    }

    /// Copies the whole database to `file`, which must not exist: one consistent moment.
    ///
    /// # Errors
    /// [`StoreError`] when it exists or can't be written.
    pub fn export(&self, file: &Path) -> Result<(), StoreError> {
        let text = file.to_str().ok_or_else(|| StoreError::WrongKind {
            path: file.to_owned(),
            expected: "a file with a UTF-8 name",
        })?;
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        made.map_err(|source| FileError::new("make", file, source))?;
        // Into the empty file, which already has its permissions.
        let copied = self.connection.borrow().execute("VACUUM INTO ?1", [text]);
        if let Err(error) = copied {
            let _ = std::fs::remove_file(file);
            return Err(error.into());
        }
        let synced = std::fs::File::open(file).and_then(|file| file.sync_all());
        synced.map_err(|source| FileError::new("write", file, source).into())
    }

    /// What is wrong with the database, in SQLite's words; empty when it is whole.
    ///
    /// # Errors
    /// [`StoreError`] when it can't be read.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.connection.borrow();
        let mut found = Vec::new();
        let mut query = connection.prepare("PRAGMA integrity_check(20)")?;
        let lines = query.query_map([], |row| row.get::<_, String>(0))?;
        for line in lines {
            let line = line?;
            if line != "ok" {
                found.push(line);
            }
        }
        let mut query = connection.prepare("PRAGMA foreign_key_check")?;
        let lines = query.query_map([], |row| row.get::<_, String>(0))?;
        for table in lines {
            found.push(format!("a row of {} names another row that is not there", table?));
        }
        Ok(found)
    }
}

fn not_a_database(error: rusqlite::Error, file: &Path) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign(file.to_owned()),
        _ => error.into(),
    }
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(folder);
    match made {
        Ok(()) => Ok(()),
        // Made by another process meanwhile.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            check_folder(folder).map(drop)
        }
        Err(source) => Err(FileError::new("make", folder, source).into()),
    }
}

/// Whether the folder is there; refuses a link, another kind of file and one open to others.
fn check_folder(folder: &Path) -> Result<bool, StoreError> {
    check(folder, "a folder", std::fs::Metadata::is_dir)
}

/// Whether the file is there; refuses a link, another kind of file and one open to others.
pub(super) fn check_file(file: &Path) -> Result<bool, StoreError> {
    check(file, "a file", |meta| meta.is_file() && meta.nlink() == 1)
}

fn check(
    path: &Path,
    expected: &'static str,
    is_right: impl Fn(&std::fs::Metadata) -> bool,
) -> Result<bool, StoreError> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(FileError::new("look at", path, source).into()),
    };
    if !is_right(&meta) {
        return Err(StoreError::WrongKind { path: path.to_owned(), expected });
    }
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
        return Err(StoreError::Open { path: path.to_owned(), mode, wanted });
    }
    Ok(true)
}
