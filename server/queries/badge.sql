-- badge: the newest run of the main branch on :device or, with :case, its newest result of that.
SELECT * FROM (SELECT verdict, NULL AS p50_ns FROM run
  WHERE :case IS NULL AND device = :device AND branch = :main_branch
  ORDER BY place_ms DESC, time_ms DESC, uuid DESC LIMIT 1)
UNION ALL
SELECT * FROM (SELECT e.verdict, e.p50_ns
  FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.branch = :main_branch AND e.arm = 0
  WHERE t.device = :device AND t.case_id = :case
  ORDER BY e.place_ms DESC, e.time_ms DESC, e.run_id DESC LIMIT 1)
