-- What people decided about the changes of a task, and what follows from it.

-- Append-only: every decision that was ever recorded, so that its id is answered for ever.
CREATE TABLE decisions (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    task          TEXT NOT NULL REFERENCES tasks (id),
    kind          TEXT NOT NULL,
    -- Digest of what it says besides its id.
    content       TEXT NOT NULL,
    decision      TEXT NOT NULL CHECK (json_valid (decision)),
    -- Whether a signature proves who decided.
    signed        INTEGER NOT NULL CHECK (signed IN (0, 1)),
    reviewer      TEXT NOT NULL,
    -- Digests in the evidence: the decisions file and its signature; null from the terminal.
    file          TEXT,
    signature     TEXT,
    revision      INTEGER NOT NULL,
    base_commit_id TEXT NOT NULL,
    head_commit_id TEXT NOT NULL,
    recorded_at   TEXT NOT NULL,
    CHECK (signature IS NULL OR file IS NOT NULL)
) STRICT;

CREATE INDEX decisions_by_task ON decisions (task, seq);

CREATE TRIGGER decisions_never_change BEFORE UPDATE ON decisions
BEGIN
    SELECT RAISE (ABORT, 'decisions never change');
END;

CREATE TRIGGER decisions_never_go BEFORE DELETE ON decisions
BEGIN
    SELECT RAISE (ABORT, 'decisions never go away');
END;

-- What approvals cover, named by the digest of the stored bytes.
CREATE TABLE snapshots (
    digest   TEXT PRIMARY KEY,
    snapshot BLOB NOT NULL
) STRICT;

CREATE TABLE approvals (
    decision     TEXT PRIMARY KEY REFERENCES decisions (id),
    task         TEXT NOT NULL REFERENCES tasks (id),
    item         TEXT NOT NULL,
    -- 1: confirmed that no change is needed.
    no_change    INTEGER NOT NULL CHECK (no_change IN (0, 1)),
    fingerprint  TEXT NOT NULL,
    snapshot     TEXT NOT NULL REFERENCES snapshots (digest),
    -- Fingerprint of each item that it depended on.
    dependencies TEXT NOT NULL CHECK (json_valid (dependencies)),
    -- Segment key and tag of each acknowledgement that it relied on.
    acknowledged TEXT NOT NULL CHECK (json_valid (acknowledged)),
    withdrawn_by TEXT REFERENCES decisions (id)
) STRICT;

CREATE INDEX approvals_by_task ON approvals (task, item);

CREATE TABLE choices (
    decision    TEXT PRIMARY KEY REFERENCES decisions (id),
    task        TEXT NOT NULL REFERENCES tasks (id),
    segment_key TEXT NOT NULL,
    -- Null: accepted as it is.
    item        TEXT,
    -- Why it is no longer in force, for people; null while it is.
    ended       TEXT
) STRICT;

CREATE UNIQUE INDEX choices_one_in_force ON choices (task, segment_key) WHERE ended IS NULL;

CREATE TABLE acknowledgements (
    decision    TEXT PRIMARY KEY REFERENCES decisions (id),
    task        TEXT NOT NULL REFERENCES tasks (id),
    segment_key TEXT NOT NULL,
    tag         TEXT NOT NULL
) STRICT;

CREATE INDEX acknowledgements_by_task ON acknowledgements (task, segment_key, tag);

-- Questions and change requests.
CREATE TABLE notes (
    decision    TEXT PRIMARY KEY REFERENCES decisions (id),
    task        TEXT NOT NULL REFERENCES tasks (id),
    kind        TEXT NOT NULL CHECK (kind IN ('question', 'request')),
    item        TEXT NOT NULL,
    segment_key TEXT,
    first_line  INTEGER,
    last_line   INTEGER,
    text        TEXT NOT NULL,
    -- The lines that it is about, as they stood.
    context     BLOB,
    -- open, withdrawn, sent; a question is open until it is answered.
    state       TEXT NOT NULL CHECK (state IN ('open', 'withdrawn', 'sent', 'answered')),
    answer      TEXT,
    answered_at TEXT,
    CHECK ((first_line IS NULL) = (last_line IS NULL)),
    CHECK (first_line IS NULL OR segment_key IS NOT NULL)
) STRICT;

CREATE INDEX notes_by_task ON notes (task);

-- What decisions ask codeboost to do: carried out once, by whichever process gets to it.
CREATE TABLE errands (
    decision TEXT PRIMARY KEY REFERENCES decisions (id),
    task     TEXT NOT NULL REFERENCES tasks (id),
    kind     TEXT NOT NULL CHECK (kind IN ('ask', 'reject', 'merge')),
    state    TEXT NOT NULL CHECK (state IN ('open', 'done', 'dropped')),
    -- What became of it, for people.
    outcome  TEXT
) STRICT;

CREATE INDEX errands_open ON errands (task) WHERE state = 'open';
