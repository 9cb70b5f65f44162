-- base: the newest run on :device of the nearest ancestor of the run :run that was measured there;
-- with :branch, on that branch: then its merge base is asked first. Where none is known, the newest
-- run of the main branch before it. A run of another tool is based on one of that tool, and no other
-- run is.
WITH RECURSIVE asked AS (SELECT r.*, iif(r.contract GLOB 'foreign-*', r.contract, '') AS tool
  FROM run r WHERE r.uuid = :run),
step(commit_id, parent, n) AS (
  SELECT v.commit_id, iif(:branch IS NOT NULL AND v.merge_base <> '', v.merge_base, v.parent), 0
  FROM asked a JOIN revision v ON v.id = a.revision_id
  UNION ALL
  SELECT v.commit_id, v.parent, s.n + 1 FROM step s CROSS JOIN revision v ON v.commit_id = s.parent
  WHERE s.n < 1000)
SELECT uuid, by_time FROM (
  SELECT * FROM (SELECT r.uuid, 0 AS by_time FROM asked a CROSS JOIN step s
      CROSS JOIN revision v ON v.commit_id = s.commit_id CROSS JOIN run r ON r.revision_id = v.id
    WHERE s.n > 0 AND r.device = :device AND (:branch IS NULL OR r.branch = :branch)
      AND iif(r.contract GLOB 'foreign-*', r.contract, '') = a.tool
    ORDER BY s.n, r.time_ms DESC, r.uuid DESC LIMIT 1)
  UNION ALL
  SELECT * FROM (SELECT r.uuid, 1 FROM asked a CROSS JOIN run r ON r.device = :device
      AND r.branch = :main_branch AND r.time_ms < a.time_ms
      AND iif(r.contract GLOB 'foreign-*', r.contract, '') = a.tool
    ORDER BY r.time_ms DESC, r.uuid DESC LIMIT 1))
ORDER BY by_time LIMIT 1
