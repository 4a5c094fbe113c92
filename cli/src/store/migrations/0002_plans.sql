-- Plans, who approved them, answers to their questions, and suggested edits.

-- Append-only: every revision of every task's plan.
CREATE TABLE plan_revisions (
    task     TEXT NOT NULL REFERENCES tasks (id),
    revision INTEGER NOT NULL CHECK (revision > 0),
    -- The plan in canonical JSON, with this revision's number.
    plan     TEXT NOT NULL CHECK (json_valid (plan)),
    digest   TEXT NOT NULL,
    origin   TEXT NOT NULL
        CHECK (origin IN ('import', 'edit', 'suggestion', 'draft', 'amendment', 'feedback')),
    made_at  TEXT NOT NULL,
    made_by  TEXT NOT NULL,
    PRIMARY KEY (task, revision)
) STRICT;

CREATE TRIGGER plan_revisions_never_change BEFORE UPDATE ON plan_revisions
BEGIN
    SELECT RAISE (ABORT, 'revisions of a plan never change');
END;

CREATE TRIGGER plan_revisions_never_go BEFORE DELETE ON plan_revisions
BEGIN
    SELECT RAISE (ABORT, 'revisions of a plan never go away');
END;

-- Append-only: revisions that a person approved.
CREATE TABLE plan_approvals (
    task           TEXT NOT NULL,
    revision       INTEGER NOT NULL,
    -- The base that the plan was checked against.
    base_commit_id TEXT NOT NULL,
    -- The argument lists that were allowed with it.
    allowed        TEXT NOT NULL CHECK (json_valid (allowed)),
    -- How many questions were open, known to the person.
    open_questions INTEGER NOT NULL,
    approved_at    TEXT NOT NULL,
    approved_by    TEXT NOT NULL,
    PRIMARY KEY (task, revision),
    FOREIGN KEY (task, revision) REFERENCES plan_revisions (task, revision)
) STRICT;

CREATE TRIGGER plan_approvals_never_change BEFORE UPDATE ON plan_approvals
BEGIN
    SELECT RAISE (ABORT, 'approvals of a plan never change');
END;

CREATE TRIGGER plan_approvals_never_go BEFORE DELETE ON plan_approvals
BEGIN
    SELECT RAISE (ABORT, 'approvals of a plan never go away');
END;

-- Append-only: the newest answer to a question counts.
CREATE TABLE plan_answers (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    task        TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    question    TEXT NOT NULL,
    answer      TEXT NOT NULL,
    answered_at TEXT NOT NULL,
    answered_by TEXT NOT NULL,
    FOREIGN KEY (task, revision) REFERENCES plan_revisions (task, revision)
) STRICT;

CREATE INDEX plan_answers_by_task ON plan_answers (task, seq);

-- What an assistant was asked, bound before it was asked.
CREATE TABLE suggestion_requests (
    id             TEXT PRIMARY KEY,
    task           TEXT NOT NULL,
    plan_id        TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    state          TEXT NOT NULL CHECK (
        state IN ('pending', 'ready', 'consumed', 'failed', 'cancelled', 'invalidated')),
    -- The answer in words; null before it came.
    reply          TEXT,
    -- Why it failed or ended, for people.
    reason         TEXT,
    made_at        TEXT NOT NULL,
    changed_at     TEXT NOT NULL,
    FOREIGN KEY (task, revision) REFERENCES plan_revisions (task, revision)
) STRICT;

CREATE INDEX suggestion_requests_by_task ON suggestion_requests (task, state);

CREATE TABLE suggestions (
    id         TEXT PRIMARY KEY,
    request    TEXT NOT NULL REFERENCES suggestion_requests (id),
    -- Its place in the answer, from 1.
    nth        INTEGER NOT NULL CHECK (nth > 0),
    edit       TEXT NOT NULL CHECK (json_valid (edit)),
    state      TEXT NOT NULL CHECK (state IN ('open', 'applied', 'dismissed', 'stale')),
    -- The revision that applying it made.
    made       INTEGER,
    changed_at TEXT NOT NULL,
    UNIQUE (request, nth),
    CHECK ((made IS NOT NULL) = (state = 'applied'))
) STRICT;
