-- placed.sql: runs and results of an older file go where their commits are.
UPDATE run SET place_ms =
  coalesce((SELECT v.place_ms FROM revision v WHERE v.id = run.revision_id), time_ms);
UPDATE result SET place_ms =
  coalesce((SELECT r.place_ms FROM run r WHERE r.id = result.run_id), time_ms);
