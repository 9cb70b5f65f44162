-- upgrade_5.sql: results of version 4 do not say how sure their ratio to the best library is.
ALTER TABLE result ADD COLUMN peer_lo REAL CHECK (peer_lo > 0 AND peer_lo < 9e999);
ALTER TABLE result ADD COLUMN peer_hi REAL CHECK (peer_hi > 0 AND peer_hi < 9e999);
