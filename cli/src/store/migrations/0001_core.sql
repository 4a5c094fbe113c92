-- Who this repository is, its tasks, what happened, and who made which commit.

CREATE TABLE repository (
    only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
    id         TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE issues (
    number   INTEGER PRIMARY KEY CHECK (number > 0),
    title    TEXT NOT NULL,
    -- Null when only the number is known.
    body     TEXT,
    -- The path that the text was read from, absolute, as bytes.
    file     BLOB,
    taken_at TEXT NOT NULL
) STRICT;

CREATE TABLE tasks (
    id             TEXT PRIMARY KEY,
    plan_id        TEXT NOT NULL UNIQUE,
    issue          INTEGER NOT NULL REFERENCES issues (number),
    -- The how manieth task of this issue, from 1.
    nth            INTEGER NOT NULL CHECK (nth > 0),
    -- Full names, such as refs/heads/main.
    base_ref       TEXT NOT NULL,
    base_commit_id TEXT NOT NULL,
    head_ref       TEXT NOT NULL,
    head_commit_id TEXT NOT NULL,
    -- Whether codeboost made the head's branch.
    made_head      INTEGER NOT NULL CHECK (made_head IN (0, 1)),
    state          TEXT NOT NULL,
    reason         TEXT NOT NULL,
    -- Grows by one with each change of this row.
    version        INTEGER NOT NULL DEFAULT 1,
    added_at       TEXT NOT NULL,
    changed_at     TEXT NOT NULL,
    removed_at     TEXT,
    UNIQUE (issue, nth)
) STRICT;

CREATE UNIQUE INDEX tasks_one_open_per_issue ON tasks (issue)
    WHERE state NOT IN ('merged', 'cancelled');

-- Append-only: what happened, for people and for programs.
CREATE TABLE events (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    at     TEXT NOT NULL,
    -- Null for what concerns the whole repository.
    task   TEXT REFERENCES tasks (id),
    kind   TEXT NOT NULL,
    actor  TEXT NOT NULL,
    detail TEXT NOT NULL CHECK (json_valid (detail)),
    words  TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_task ON events (task, seq);

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN
    SELECT RAISE (ABORT, 'events never change');
END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN
    SELECT RAISE (ABORT, 'events never go away');
END;

-- Append-only: the only proof of who made a commit.
CREATE TABLE ledger (
    task           TEXT NOT NULL REFERENCES tasks (id),
    commit_id      TEXT NOT NULL,
    item           TEXT,
    origin         TEXT NOT NULL
        CHECK (origin IN ('runner', 'adopted', 'rebased', 'conflict-agent', 'foreign')),
    from_commit_id TEXT,
    -- The plan's revision at that time; null before the first.
    revision       INTEGER,
    recorded_at    TEXT NOT NULL,
    recorded_by    TEXT NOT NULL,
    PRIMARY KEY (task, commit_id),
    CHECK ((from_commit_id IS NOT NULL) = (origin IN ('rebased', 'conflict-agent'))),
    CHECK (origin <> 'foreign' OR item IS NULL)
) STRICT;

CREATE TRIGGER ledger_never_changes BEFORE UPDATE ON ledger
BEGIN
    SELECT RAISE (ABORT, 'ledger entries never change');
END;

CREATE TRIGGER ledger_never_goes BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE (ABORT, 'ledger entries never go away');
END;

-- Entries whose item a later revision removed; for good, also when the name comes back.
CREATE TABLE ledger_retired (
    task      TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    -- The revision that removed the item.
    revision  INTEGER NOT NULL,
    PRIMARY KEY (task, commit_id),
    FOREIGN KEY (task, commit_id) REFERENCES ledger (task, commit_id)
) STRICT;

-- The commands that checks may run, each as its exact argument list in JSON.
CREATE TABLE allowed_commands (
    argv       TEXT PRIMARY KEY CHECK (json_valid (argv)),
    allowed_at TEXT NOT NULL,
    allowed_by TEXT NOT NULL
) STRICT;

-- What each stage was last made from.
CREATE TABLE stages (
    task    TEXT NOT NULL REFERENCES tasks (id),
    stage   TEXT NOT NULL,
    inputs  TEXT NOT NULL,
    outputs TEXT NOT NULL,
    at      TEXT NOT NULL,
    PRIMARY KEY (task, stage)
) STRICT;
