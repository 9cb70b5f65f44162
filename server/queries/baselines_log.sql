-- log: limit 200 1000
SELECT g.run_id, -- integer key1 hidden: place in the log
  g.track_id, -- integer key2 hidden: the same
  t.case_id AS "case", -- text: the case
  t.device, -- text: the device model
  g.time_ms, -- integer: of the first run that was compared with the new baseline
  r.uuid AS run, -- text: that run
  g.baseline_from_ns AS from_ns, -- number null: p50 of the baseline before
  g.baseline_stored_ns AS to_ns, -- number: p50 of the new one
  nullif(g.baseline_commit, '') AS "commit", -- text null: of the new one
  nullif(w.subject, '') AS subject, -- text null: first line of that commit's message
  nullif(w.author, '') AS author, -- text null: of that commit
  g.baseline_change AS kind -- text: first, lowered, raised (by an accept) or epoch
FROM (
  SELECT * FROM (SELECT * FROM result INDEXED BY result_baseline WHERE :case IS NULL
    AND baseline_change IS NOT NULL AND (:after1 IS NULL OR (run_id, track_id) < (:after1, :after2))
    AND (:device IS NULL OR track_id IN (SELECT id FROM track WHERE device = :device))
    ORDER BY run_id DESC, track_id DESC LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT * FROM result INDEXED BY result_baseline_of_track
    WHERE :case IS NOT NULL AND baseline_change IS NOT NULL
    AND track_id IN (SELECT id FROM track WHERE case_id = :case
      AND (:device IS NULL OR device = :device)))
  ) g
  CROSS JOIN track t ON t.id = g.track_id CROSS JOIN run r ON r.id = g.run_id
  LEFT JOIN run w ON w.id = (SELECT n.id FROM run n WHERE n.revision_id =
    (SELECT o.id FROM revision o WHERE o.commit_id = g.baseline_commit) ORDER BY n.time_ms LIMIT 1)
WHERE :after1 IS NULL OR (g.run_id, g.track_id) < (:after1, :after2)
ORDER BY g.run_id DESC, g.track_id DESC LIMIT :limit
