-- upgrade_6.sql: version 5 kept elsewhere what waits to be sent.
CREATE TABLE outbox (
  server TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('run', 'library')),
  id TEXT NOT NULL,
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'refused')),
  reason TEXT NOT NULL,
  PRIMARY KEY (server, kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_waiting ON outbox (server, time_ms) WHERE state = 'waiting';
