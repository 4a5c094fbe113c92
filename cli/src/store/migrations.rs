//! The versions of the database, each a step from the one before.
//!
//! A step that was released never changes. Add a file and one line here. The version of a
//! database is the number of its last step, kept in `user_version`.

use rusqlite::Connection;

use crate::store::StoreError;

/// One step.
struct Migration {
    number: i64,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    // Repository, issues, tasks, events, ledger, allowed commands, stages.
    Migration { number: 1, sql: include_str!("migrations/0001_core.sql") },
    // Decisions, approvals, choices, acknowledgements, notes, errands.
    Migration { number: 3, sql: include_str!("migrations/0003_review.sql") },
    // Merges, publications, findings of the already-fixed check.
    Migration { number: 4, sql: include_str!("migrations/0004_merge.sql") },
    // Workspaces of items, runs of `cmd` checks.
    Migration { number: 5, sql: include_str!("migrations/0005_workspaces.sql") },
];

/// The newest version that is known.
pub(super) fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |step| step.number)
}

/// The version of a database; 0 for an empty one.
pub(super) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Refuses a version that is not known.
pub(super) fn check_version(found: i64) -> Result<(), StoreError> {
    let known = newest();
    if found > known { Err(StoreError::NewerVersion { found, known }) } else { Ok(()) }
}

/// Takes the steps that are missing. To be called inside a write transaction.
pub(super) fn apply(connection: &Connection) -> Result<(), StoreError> {
    let found = version(connection)?;
    check_version(found)?;
    for step in MIGRATIONS.iter().filter(|step| step.number > found) {
        connection.execute_batch(step.sql)?;
        connection.pragma_update(None, "user_version", step.number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_are_those_of_the_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/migrations");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder of migrations")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        assert_eq!(files.len(), MIGRATIONS.len(), "a file that is not listed");
        for (file, step) in files.iter().zip(MIGRATIONS) {
            let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
            assert!(name.starts_with(&format!("{:04}_", step.number)), "{name}");
            assert_eq!(std::fs::read_to_string(file).expect("a text"), step.sql, "{name}");
        }
        assert!(MIGRATIONS.is_sorted_by(|a, b| a.number < b.number));
    }

    #[test]
    fn every_table_is_strict() {
        let connection = Connection::open_in_memory().expect("a database");
        apply(&connection).expect("all steps");
        let mut query = connection
            .prepare(
                "SELECT name FROM pragma_table_list
                 WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' AND NOT strict",
            )
            .expect("a query");
        let loose: Vec<String> = query
            .query_map([], |row| row.get(0))
            .expect("rows")
            .collect::<Result<_, _>>()
            .expect("names");
        assert_eq!(loose, Vec::<String>::new());
    }
}
