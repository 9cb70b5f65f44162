-- baselines: limit 1000 5000
SELECT t.case_id AS "case", -- text key1: the case
  t.device, -- text key2: the device model
  r.contract, -- text: of the run that was compared
  g.baseline_stored_ns AS p50_ns, -- number: of the baseline
  nullif(g.baseline_commit, '') AS "commit", -- text null: that it is of
  nullif(w.subject, '') AS subject, -- text null: first line of that commit's message
  nullif(w.author, '') AS author, -- text null: of that commit
  g.baseline_ms AS time_ms, -- integer: when it became the baseline
  nullif(r.epoch, '') AS epoch, -- text null: of the run that was compared
  r.uuid AS run -- text: the newest run of the main branch, else of any, that was compared
FROM track t
  CROSS JOIN result g ON g.track_id = t.id AND g.arm = 0 AND g.run_id = coalesce(
    (SELECT e.run_id FROM result e INDEXED BY result_by_branch WHERE e.track_id = t.id
       AND e.branch = :main_branch AND e.arm = 0 AND e.baseline_ms IS NOT NULL
     ORDER BY e.place_ms DESC, e.time_ms DESC, e.run_id DESC LIMIT 1),
    (SELECT e.run_id FROM result e WHERE e.track_id = t.id AND e.arm = 0
       AND e.baseline_ms IS NOT NULL ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1))
  CROSS JOIN run r ON r.id = g.run_id
  LEFT JOIN run w ON w.id = (SELECT n.id FROM run n WHERE n.revision_id =
    (SELECT o.id FROM revision o WHERE o.commit_id = g.baseline_commit) ORDER BY n.time_ms LIMIT 1)
WHERE (:device IS NULL OR t.device = :device) AND t.case_id >= coalesce(:after1, '')
  AND (:after1 IS NULL OR (t.case_id, t.device) > (:after1, :after2))
ORDER BY t.case_id, t.device LIMIT :limit
