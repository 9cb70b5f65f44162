-- base: the newest run on :device of the nearest ancestor of the run :run that was measured there;
-- with :branch, on that branch: then its merge base is asked first.
WITH RECURSIVE step(commit_id, parent, n) AS (
  SELECT v.commit_id, iif(:branch IS NOT NULL AND v.merge_base <> '', v.merge_base, v.parent), 0
  FROM run r JOIN revision v ON v.id = r.revision_id WHERE r.uuid = :run
  UNION ALL
  SELECT v.commit_id, v.parent, s.n + 1 FROM step s CROSS JOIN revision v ON v.commit_id = s.parent
  WHERE s.n < 1000)
SELECT r.uuid AS uuid FROM step s CROSS JOIN revision v ON v.commit_id = s.commit_id
  CROSS JOIN run r ON r.revision_id = v.id
WHERE s.n > 0 AND r.device = :device AND (:branch IS NULL OR r.branch = :branch)
ORDER BY s.n, r.time_ms DESC, r.uuid DESC LIMIT 1
