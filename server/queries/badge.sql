-- badge: the newest run of the main branch on :device or, with :case, its newest result of that. Runs
-- of other tools tell nothing of a device.
SELECT * FROM (SELECT verdict, NULL AS p50_ns FROM run
  WHERE :case IS NULL AND device = :device AND branch = :main_branch
    AND contract NOT GLOB 'foreign-*'
  ORDER BY place_ms DESC, time_ms DESC, uuid DESC LIMIT 1)
UNION ALL
SELECT * FROM (SELECT iif(t.kind = 'foreign', t.kind, e.verdict) AS verdict, e.p50_ns
  FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.branch = :main_branch AND e.arm = 0
  WHERE t.device = :device AND t.case_id = :case
  ORDER BY e.place_ms DESC, e.time_ms DESC, e.run_id DESC LIMIT 1)
