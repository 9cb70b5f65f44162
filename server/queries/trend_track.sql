-- trend_track: a :case on a :device, and the threshold of its newest result.
SELECT t.id AS track, (SELECT e.threshold FROM result e WHERE e.track_id = t.id AND e.arm = 0
  ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1) AS threshold
FROM track t WHERE t.case_id = :case AND t.device = :device
