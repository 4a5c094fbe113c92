-- Workspaces of items, what became of them, and runs of `cmd` checks.

CREATE TABLE workspaces (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    task            TEXT NOT NULL REFERENCES tasks (id),
    item            TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    -- Where it lies: absolute, as bytes.
    folder          BLOB NOT NULL,
    -- The task's head when it was made.
    start_commit_id TEXT NOT NULL,
    -- Null until it is known: whether its file system keeps the right to execute.
    execute_bit     INTEGER CHECK (execute_bit IN (0, 1)),
    -- Who works in it: 'person', or an agent's name.
    worker          TEXT NOT NULL,
    -- What the worker goes by, as a digest; for replay of the patch.
    source          TEXT,
    state           TEXT NOT NULL
        CHECK (state IN ('making', 'open', 'committing', 'committed', 'unchanged', 'abandoned')),
    -- The commit that was made of it, from 'committing' on.
    commit_id       TEXT,
    -- The changed paths that the item did not declare: base64 of each, as JSON.
    out_of_scope    TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (out_of_scope)),
    -- What the last audit refused, one line each, as JSON; empty after a good one.
    violations      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (violations)),
    begun_at        TEXT NOT NULL,
    begun_by        TEXT NOT NULL,
    changed_at      TEXT NOT NULL,
    CHECK (commit_id IS NOT NULL OR state NOT IN ('committing', 'committed'))
) STRICT;

CREATE INDEX workspaces_by_task ON workspaces (task, id);

-- The head moves when an item ends, so of one task only one item is worked on.
CREATE UNIQUE INDEX workspaces_one_at_a_time ON workspaces (task)
    WHERE state IN ('making', 'open', 'committing');

CREATE TRIGGER workspaces_never_go BEFORE DELETE ON workspaces
BEGIN
    SELECT RAISE (ABORT, 'workspaces never go away');
END;

CREATE TRIGGER workspaces_end_once BEFORE UPDATE ON workspaces
    WHEN OLD.state IN ('committed', 'unchanged', 'abandoned')
BEGIN
    SELECT RAISE (ABORT, 'a workspace ends once');
END;

-- Append-only: each run of one `cmd` check.
CREATE TABLE check_runs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT NOT NULL REFERENCES tasks (id),
    item       TEXT NOT NULL,
    commit_id  TEXT NOT NULL,
    -- The argument list in JSON, and its digest.
    argv       TEXT NOT NULL CHECK (json_valid (argv)),
    argv_digest TEXT NOT NULL,
    place      TEXT NOT NULL CHECK (place IN ('sandbox', 'host', 'ci')),
    result     TEXT NOT NULL CHECK (result IN ('passed', 'failed', 'timed-out', 'not-started')),
    -- Null when it was ended by a signal or never started.
    exit_code  INTEGER,
    -- Digest of what it wrote, in the evidence.
    output     TEXT NOT NULL,
    millis     INTEGER NOT NULL,
    ran_at     TEXT NOT NULL,
    ran_by     TEXT NOT NULL
) STRICT;

CREATE INDEX check_runs_by_task ON check_runs (task, id);

CREATE TRIGGER check_runs_never_change BEFORE UPDATE ON check_runs
BEGIN
    SELECT RAISE (ABORT, 'runs of checks never change');
END;

CREATE TRIGGER check_runs_never_go BEFORE DELETE ON check_runs
BEGIN
    SELECT RAISE (ABORT, 'runs of checks never go away');
END;
