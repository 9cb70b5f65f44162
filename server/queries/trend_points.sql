-- trend_points: the points of a :track in a range of time. Where no range is asked for, indexes have
-- all that is read, in a fifth of the table's bytes. Only the case's own rows, of arm 0, have ratios;
-- with :split, the main branch, they are read.
SELECT provider, contract, time_ms, run_id, arm, p50_ns, NULL AS ratio, NULL AS baseline_ms,
  branch IS :split AS main
FROM result INDEXED BY result_lowest_of_branch
WHERE :from IS NULL AND :to IS NULL AND (:split IS NULL OR arm > 0)
  AND track_id = :track AND p50_ns IS NOT NULL AND (:provider IS NULL OR provider = :provider)
  AND (:contract IS NULL OR contract = :contract) AND (:branch IS NULL OR branch = :branch)
UNION ALL
SELECT provider, contract, time_ms, run_id, arm, p50_ns, iif(paired, ratio, NULL), baseline_ms,
  branch IS :split
FROM result INDEXED BY result_by_branch
WHERE :from IS NULL AND :to IS NULL AND :split IS NOT NULL AND arm = 0
  AND track_id = :track AND p50_ns IS NOT NULL AND (:provider IS NULL OR provider = :provider)
  AND (:contract IS NULL OR contract = :contract) AND (:branch IS NULL OR branch = :branch)
UNION ALL
SELECT provider, contract, time_ms, run_id, arm, p50_ns, iif(paired, ratio, NULL), baseline_ms,
  branch IS :split
FROM result NOT INDEXED
WHERE (:from IS NOT NULL OR :to IS NOT NULL)
  AND time_ms BETWEEN coalesce(:from, 0) AND coalesce(:to, 9007199254740991)
  AND track_id = :track AND p50_ns IS NOT NULL AND (:provider IS NULL OR provider = :provider)
  AND (:contract IS NULL OR contract = :contract) AND (:branch IS NULL OR branch = :branch)
