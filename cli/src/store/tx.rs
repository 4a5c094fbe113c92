//! Transactions, and the small steps that every subject's file needs.

use std::ops::Deref;

use rusqlite::types::Type;
use rusqlite::{Connection, Row};

use crate::store::StoreError;
use crate::task::{Actor, RepositoryId};

/// A look at one consistent moment of the state.
#[derive(Debug)]
pub struct ReadTx<'c> {
    connection: &'c Connection,
}

/// A change of the state under way. It can do all that a [`ReadTx`] can.
#[derive(Debug)]
pub struct WriteTx<'c> {
    read: ReadTx<'c>,
    now: String,
    person: String,
}

impl<'c> ReadTx<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// For the SQL of this room's files.
    pub(in crate::store) fn sql(&self) -> &'c Connection {
        self.connection
    }

    /// The repository's name in forms.
    ///
    /// # Errors
    /// [`StoreError`] when the state can't be read.
    pub fn repository_id(&self) -> Result<RepositoryId, StoreError> {
        Ok(self.connection.query_row("SELECT id FROM repository", [], |row| {
            parsed(row, 0, RepositoryId::parse)
        })?)
    }
}

impl<'c> WriteTx<'c> {
    pub(super) fn new(connection: &'c Connection, now: String, person: String) -> Self {
        Self { read: ReadTx::new(connection), now, person }
    }

    /// The time of this transaction: RFC 3339 UTC, whole seconds.
    #[must_use]
    pub fn now(&self) -> &str {
        &self.now
    }

    /// How an actor is written in the record.
    #[must_use]
    pub fn actor_text(&self, actor: &Actor) -> String {
        match actor {
            Actor::Person => self.person.clone(),
            Actor::Reviewer(name) => format!("reviewer {name}"),
            Actor::Agent(name) => format!("agent {name}"),
            Actor::Codeboost => "codeboost".to_owned(),
        }
    }
}

impl<'c> Deref for WriteTx<'c> {
    type Target = ReadTx<'c>;

    fn deref(&self) -> &ReadTx<'c> {
        &self.read
    }
}

/// A text column as the value that `parse` reads from it.
pub(super) fn parsed<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| unreadable(column, &text))
}

/// A text column that may be null as the value that `parse` reads from it.
pub(super) fn parsed_opt<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(&text).ok_or_else(|| unreadable(column, &text))).transpose()
}

/// The error for a stored text that can't be what it should be.
pub(super) fn unreadable(column: usize, text: &str) -> rusqlite::Error {
    let what = format!("unreadable value {:?}", text.chars().take(80).collect::<String>());
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

/// A count, number or revision as SQLite holds it.
pub(super) fn to_sql(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::Damaged(format!("the number {number} is too large")))
}
