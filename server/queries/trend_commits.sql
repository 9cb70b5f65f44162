-- trend_commits: the points of a :track in the order of commits, as trend_points.sql has them; those
-- outside of a repository come first.
SELECT e.provider, e.contract, e.time_ms, e.run_id, e.arm, e.p50_ns, iif(e.paired, e.ratio, NULL),
  e.baseline_ms, e.branch IS :split, iif(r.revision_id IS NULL, -1, e.place_ms) AS place,
  coalesce(r.revision_id, 0) AS revision
FROM result e NOT INDEXED CROSS JOIN run r ON r.id = e.run_id
WHERE e.track_id = :track AND e.p50_ns IS NOT NULL
  AND e.time_ms BETWEEN coalesce(:from, 0) AND coalesce(:to, 9007199254740991)
  AND (:provider IS NULL OR e.provider = :provider)
  AND (:contract IS NULL OR e.contract = :contract) AND (:branch IS NULL OR e.branch = :branch)
  AND (:from_place IS NULL OR (place, revision) >= (:from_place, :from_revision))
  AND (:to_place IS NULL OR (place, revision) <= (:to_place, :to_revision))
ORDER BY place, revision
