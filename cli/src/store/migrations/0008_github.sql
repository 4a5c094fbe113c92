-- GitHub: what was read of it, whom people trust, pull requests, and how merges there stand.

-- The issues as they were read last, kept for when GitHub can't be asked.
CREATE TABLE issue_reads (
    -- owner/name, lower case.
    repository TEXT PRIMARY KEY,
    taken_at   TEXT,
    snapshot   TEXT CHECK (snapshot IS NULL OR json_valid (snapshot)),
    -- The newest read, when it failed; null after one that did not.
    failed_at  TEXT,
    why        TEXT,
    CHECK ((taken_at IS NULL) = (snapshot IS NULL)),
    CHECK ((failed_at IS NULL) = (why IS NULL))
) STRICT;

-- Issues whose words a person chose to follow, each of one author.
CREATE TABLE issue_trust (
    repository TEXT NOT NULL,
    issue      INTEGER NOT NULL,
    -- The account's id: a name can change hands.
    author     INTEGER NOT NULL,
    login      TEXT NOT NULL,
    given_at   TEXT NOT NULL,
    given_by   TEXT NOT NULL,
    PRIMARY KEY (repository, issue)
) STRICT;

-- Pull requests, each recorded before it is asked for.
CREATE TABLE openings (
    -- What the first line of its description names.
    id          TEXT PRIMARY KEY,
    task        TEXT NOT NULL REFERENCES tasks (id),
    repository  TEXT NOT NULL,
    -- Branches, without refs/heads/.
    base        TEXT NOT NULL,
    head        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('opening', 'opened', 'abandoned')),
    number      INTEGER,
    draft       INTEGER NOT NULL CHECK (draft IN (0, 1)),
    -- The part of the description that we wrote last; null before.
    part        TEXT,
    recorded_at TEXT NOT NULL,
    changed_at  TEXT NOT NULL,
    CHECK ((number IS NOT NULL) = (state = 'opened'))
) STRICT;

CREATE UNIQUE INDEX openings_one_of_a_task ON openings (task) WHERE state <> 'abandoned';

-- Since when the required checks of a head are awaited.
CREATE TABLE check_waits (
    task           TEXT NOT NULL REFERENCES tasks (id),
    head_commit_id TEXT NOT NULL,
    since          TEXT NOT NULL,
    PRIMARY KEY (task, head_commit_id)
) STRICT;

-- The pull request that an attempt is about, the last removal from the queue that was seen before
-- it, and the commit that GitHub made of it.
ALTER TABLE merge_attempts ADD COLUMN pull INTEGER;
ALTER TABLE merge_attempts ADD COLUMN seen TEXT;
ALTER TABLE merge_attempts ADD COLUMN landed_commit_id TEXT;
