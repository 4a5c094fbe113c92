-- Merges: runs of the sequence with their steps, attempts to land a commit, what is published, and
-- which findings of the already-fixed check a person has looked at.

CREATE TABLE merge_runs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT NOT NULL REFERENCES tasks (id),
    method     TEXT NOT NULL CHECK (method IN ('merge', 'squash')),
    -- What is to become of the head's branch.
    head_after TEXT NOT NULL CHECK (head_after IN ('delete', 'move', 'keep')),
    started_at TEXT NOT NULL,
    -- Null while it runs, and after a kill until the next run finds it.
    ended_at   TEXT,
    -- One word per way to end; null with ended_at.
    outcome    TEXT,
    reason     TEXT,
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX merge_runs_by_task ON merge_runs (task, id);

CREATE TABLE merge_steps (
    run     INTEGER NOT NULL REFERENCES merge_runs (id),
    -- From 1, in the order of the sequence.
    nth     INTEGER NOT NULL,
    step    TEXT NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('running', 'done', 'skipped', 'failed')),
    -- For people: what is about to be done, then what came of it.
    words   TEXT NOT NULL,
    started_at TEXT NOT NULL,
    -- Null while it runs.
    millis  INTEGER,
    PRIMARY KEY (run, nth)
) STRICT;

CREATE TABLE merge_attempts (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    task           TEXT NOT NULL REFERENCES tasks (id),
    run            INTEGER NOT NULL REFERENCES merge_runs (id),
    -- What was validated, and what was made from it.
    base_commit_id TEXT NOT NULL,
    head_commit_id TEXT NOT NULL,
    commit_id      TEXT NOT NULL,
    -- What guards it, and where it lands, in words.
    guard          TEXT NOT NULL,
    place          TEXT NOT NULL,
    state          TEXT NOT NULL
        CHECK (state IN ('submitting', 'queued', 'removed', 'failed', 'merged')),
    reason         TEXT NOT NULL,
    recorded_at    TEXT NOT NULL,
    changed_at     TEXT NOT NULL
) STRICT;

-- Of one task at most one attempt is under way, and at most one has merged.
CREATE UNIQUE INDEX merge_attempts_one_open ON merge_attempts (task)
    WHERE state IN ('submitting', 'queued');
CREATE UNIQUE INDEX merge_attempts_one_merged ON merge_attempts (task) WHERE state = 'merged';

CREATE TRIGGER merge_attempts_never_go BEFORE DELETE ON merge_attempts
BEGIN
    SELECT RAISE (ABORT, 'merge attempts never go away');
END;

CREATE TRIGGER merge_attempts_keep_what_was_tried BEFORE UPDATE OF
    task, run, base_commit_id, head_commit_id, commit_id, guard, place, recorded_at
    ON merge_attempts
BEGIN
    SELECT RAISE (ABORT, 'what was tried never changes');
END;

-- The pull request of the local forge: a record.
CREATE TABLE publications (
    task           TEXT PRIMARY KEY REFERENCES tasks (id),
    draft          INTEGER NOT NULL CHECK (draft IN (0, 1)),
    base_commit_id TEXT NOT NULL,
    head_commit_id TEXT NOT NULL,
    published_at   TEXT NOT NULL,
    changed_at     TEXT NOT NULL
) STRICT;

-- What the already-fixed check found, each by its digest, and whether a person chose to go on.
CREATE TABLE fixed_findings (
    task         TEXT NOT NULL REFERENCES tasks (id),
    finding      TEXT NOT NULL,
    words        TEXT NOT NULL,
    found_at     TEXT NOT NULL,
    continued_at TEXT,
    continued_by TEXT,
    PRIMARY KEY (task, finding),
    CHECK ((continued_at IS NULL) = (continued_by IS NULL))
) STRICT;
