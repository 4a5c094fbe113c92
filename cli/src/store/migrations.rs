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
    // Plans, their approvals and answers, suggested edits.
    Migration { number: 2, sql: include_str!("migrations/0002_plans.sql") },
    // Decisions, approvals, choices, acknowledgements, notes, errands.
    Migration { number: 3, sql: include_str!("migrations/0003_review.sql") },
    // Merges, publications, findings of the already-fixed check.
    Migration { number: 4, sql: include_str!("migrations/0004_merge.sql") },
    // Workspaces of items, runs of `cmd` checks.
    Migration { number: 5, sql: include_str!("migrations/0005_workspaces.sql") },
    // Which key signed a decision.
    Migration { number: 6, sql: include_str!("migrations/0006_signer_key.sql") },
    // Rebases.
    Migration { number: 7, sql: include_str!("migrations/0007_rebases.sql") },
    // What is read of GitHub, whom people trust, pull requests.
    Migration { number: 8, sql: include_str!("migrations/0008_github.sql") },
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
        let numbers: Vec<_> = MIGRATIONS.iter().map(|step| step.number).collect();
        assert_eq!(numbers, (1..=newest()).collect::<Vec<_>>(), "no step is left out");
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

    #[test]
    fn each_older_version_is_brought_up_to_date_with_its_data() {
        for step in MIGRATIONS {
            let connection = Connection::open_in_memory().expect("a database");
            connection.pragma_update(None, "foreign_keys", true).expect("a setting");
            for earlier in MIGRATIONS.iter().filter(|earlier| earlier.number <= step.number) {
                connection.execute_batch(earlier.sql).expect("a step");
            }
            connection.pragma_update(None, "user_version", step.number).expect("a version");
            connection
                .execute_batch(
                    "INSERT INTO repository VALUES (1, 'r', 't');
                     INSERT INTO issues VALUES (412, 'An issue', 'text', x'2f61', 't');
                     INSERT INTO tasks VALUES ('a', 'p', 412, 1, 'refs/heads/main', 'b',
                         'refs/heads/topic', 'h', 0, 'running', 'why', 3, 't', 't', NULL);
                     INSERT INTO events (at, task, kind, actor, detail, words)
                         VALUES ('t', 'a', 'k', 'who', '{}', 'what');
                     INSERT INTO ledger VALUES ('a', 'c', 'P1', 'adopted', NULL, 1, 't', 'who');",
                )
                .expect("rows");
            let rows = |table: &str| -> String {
                let sql = format!("SELECT json_group_array(json_array({})) FROM {table}", {
                    match table {
                        "tasks" => "id, plan_id, issue, nth, base_ref, head_ref, state, version",
                        "events" => "seq, at, task, kind, actor, detail, words",
                        _ => "task, commit_id, item, origin, revision, recorded_by",
                    }
                });
                connection.query_row(&sql, [], |row| row.get(0)).expect("rows")
            };
            let before = ["tasks", "events", "ledger"].map(rows);
            apply(&connection).expect("the missing steps");
            assert_eq!(version(&connection).expect("a version"), newest());
            assert_eq!(["tasks", "events", "ledger"].map(rows), before, "from {}", step.number);
            apply(&connection).expect("nothing to do");
            let faults: String = connection
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .expect("a check");
            assert_eq!(faults, "ok");
        }
    }
}
