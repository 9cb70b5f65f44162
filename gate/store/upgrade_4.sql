-- upgrade_4.sql: runs of version 3 do not say of which merge request they are.
ALTER TABLE run ADD COLUMN change TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN job TEXT NOT NULL DEFAULT '';
CREATE INDEX run_by_change ON run (change, time_ms, uuid) WHERE change <> '';
