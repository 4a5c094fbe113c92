-- Rebases that codeboost made. Recorded before the head's branch moves: whether it did is read from
-- the branch.

CREATE TABLE rebases (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    task        TEXT NOT NULL REFERENCES tasks (id),
    old_base_id TEXT NOT NULL,
    old_head_id TEXT NOT NULL,
    new_base_id TEXT NOT NULL,
    new_head_id TEXT NOT NULL,
    recorded_at TEXT NOT NULL
) STRICT;

CREATE INDEX rebases_by_task ON rebases (task, id);

CREATE TRIGGER rebases_never_change BEFORE UPDATE ON rebases
BEGIN
    SELECT RAISE (ABORT, 'rebases never change');
END;

CREATE TRIGGER rebases_never_go BEFORE DELETE ON rebases
BEGIN
    SELECT RAISE (ABORT, 'rebases never go away');
END;
