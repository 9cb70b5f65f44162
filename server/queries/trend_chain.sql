-- trend_chain: what links the baselines of a :track: of each series the first point of each baseline,
-- then those of the commits that became one. Of all points, so that a level is the same whatever
-- range is asked for.
WITH point AS MATERIALIZED (
  SELECT e.provider, e.contract, e.time_ms, e.ratio, e.baseline_ms, e.baseline_commit
  FROM result e INDEXED BY result_by_branch
  WHERE e.track_id = :track AND e.arm = 0 AND e.paired AND e.p50_ns IS NOT NULL AND e.ratio > 0)
SELECT p.provider, p.contract, 0 AS is_tie, min(p.time_ms) AS time_ms, p.ratio, p.baseline_ms,
  (SELECT v.id FROM revision v WHERE v.commit_id = p.baseline_commit) AS baseline_revision,
  NULL AS revision, 0 AS run_id
FROM point p GROUP BY p.provider, p.contract, p.baseline_ms
UNION ALL
SELECT p.provider, p.contract, 1, e.time_ms, e.ratio, e.baseline_ms, NULL, r.revision_id, r.id
FROM (SELECT DISTINCT provider, contract, baseline_commit FROM point) p
  CROSS JOIN revision v ON v.commit_id = p.baseline_commit
  CROSS JOIN run r ON r.revision_id = v.id
  CROSS JOIN result e ON e.run_id = r.id AND e.track_id = :track AND e.arm = 0
    AND e.provider = p.provider AND e.contract = p.contract AND e.paired
    AND e.p50_ns IS NOT NULL AND e.ratio > 0
ORDER BY 1, 2, 3, 4, 9
