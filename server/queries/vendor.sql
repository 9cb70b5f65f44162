-- vendor: limit 2000 5000
SELECT t.case_id AS "case", -- text key1: the case
  t.op, -- text: what it computes
  t.device, -- text key2: the device model
  e.time_ms, -- integer key3: of the run
  r.uuid AS run, -- text key4: that timed both in pairs
  v.commit_id AS "commit", -- text null: that was measured
  e.peer, -- text: the library that is hardest to beat
  e.peer_ratio AS ratio -- number: candidate over that library, from pairs
FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.branch = :main_branch
    AND e.peer_ratio > 0 AND e.verdict <> 'wrong'
  CROSS JOIN run r ON r.id = e.run_id LEFT JOIN revision v ON v.id = r.revision_id
WHERE (:device IS NULL OR t.device = :device) AND (:case IS NULL OR t.case_id = :case)
  AND (:op IS NULL OR t.op = :op)
  AND (:after1 IS NULL OR (t.case_id, t.device, e.time_ms, r.uuid) >
    (:after1, :after2, :after3, :after4))
ORDER BY t.case_id, t.device, e.time_ms, r.uuid LIMIT :limit
