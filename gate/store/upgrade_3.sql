-- upgrade_3.sql: orders the runs of version 2 by their commits. The parents of those that were
-- measured are known, and no times of commits.
DROP VIEW trend;
DROP VIEW newest;
DROP VIEW leader;
DROP VIEW baseline_change;
ALTER TABLE revision RENAME TO old_revision;
CREATE TABLE revision (
  id INTEGER PRIMARY KEY,
  commit_id TEXT NOT NULL UNIQUE CHECK (length(commit_id) = 40),
  parent TEXT NOT NULL,
  merge_base TEXT NOT NULL,
  time_ms INTEGER CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  first_ms INTEGER CHECK (first_ms BETWEEN 0 AND 9007199254740991),
  place_ms INTEGER NOT NULL
) STRICT;
INSERT INTO revision (id, commit_id, parent, merge_base, first_ms, place_ms)
SELECT id, commit_id, parent, '', first_ms, -1 FROM old_revision;
DROP TABLE old_revision;
CREATE INDEX revision_by_parent ON revision (parent) WHERE parent <> '';
CREATE INDEX revision_without_place ON revision (id) WHERE place_ms = -1;

ALTER TABLE run ADD COLUMN place_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_newest ON run (device, branch, place_ms, time_ms, uuid);
CREATE INDEX run_newest_of_branch ON run (branch, place_ms, time_ms, uuid);

ALTER TABLE result ADD COLUMN place_ms INTEGER NOT NULL DEFAULT 0;
DROP INDEX result_by_branch;
CREATE INDEX result_by_branch ON result (track_id, branch, place_ms, time_ms, run_id)
  WHERE arm = 0;
DROP INDEX result_wrong;
CREATE INDEX result_wrong ON result (track_id, place_ms, time_ms, run_id)
  WHERE verdict = 'wrong' AND arm = 0;
