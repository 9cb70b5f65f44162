-- accuracy: limit 50 500
-- Each timed case of the main branch, by how its error grew from what it was 30 days before its
-- newest result, or at first: most first. Both are of one contract, and of inputs that were drawn.
WITH newest AS (
  SELECT t.case_id, e.* FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0
    AND e.run_id = (SELECT n.run_id FROM result n INDEXED BY result_by_branch
      WHERE n.track_id = t.id AND n.branch = :main_branch AND n.arm = 0 AND n.rel_err IS NOT NULL
      ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1)
  WHERE (:device IS NULL OR t.device = :device) AND (:case IS NULL OR t.case_id = :case)
    AND (:op IS NULL OR t.op = :op)),
grown AS (
  SELECT n.*, b.run_id AS before_run_id, b.rel_err AS before_error,
    n.rel_err / max(b.rel_err, 1e-8) AS growth
  FROM newest n CROSS JOIN result b ON b.track_id = n.track_id AND b.arm = 0 AND b.run_id =
    coalesce((SELECT o.run_id FROM result o INDEXED BY result_by_branch
      WHERE o.track_id = n.track_id AND o.branch = :main_branch AND o.arm = 0
        AND o.rel_err IS NOT NULL AND o.provider = n.provider AND o.contract = n.contract
        AND o.time_ms <= n.time_ms - 30 * 86400000
      ORDER BY o.place_ms DESC, o.time_ms DESC, o.run_id DESC LIMIT 1),
     (SELECT o.run_id FROM result o INDEXED BY result_by_branch
      WHERE o.track_id = n.track_id AND o.branch = :main_branch AND o.arm = 0
        AND o.rel_err IS NOT NULL AND o.provider = n.provider AND o.contract = n.contract
        AND o.run_id <> n.run_id ORDER BY o.place_ms, o.time_ms, o.run_id LIMIT 1)))
SELECT g.growth, -- number key1: the error over the one before; below 1e-8 that counts as 1e-8
  g.track_id, -- integer key2 hidden: tells cases of one growth apart
  g.case_id AS "case", -- text: the case
  r.device, -- text: the device model
  g.time_ms, -- integer: of the newest run
  r.uuid AS run, -- text: that run
  v.commit_id AS "commit", -- text null: that was measured
  g.rel_err, -- number: its relative error
  b.time_ms AS before_ms, -- integer: of the run that it is compared with
  b.uuid AS before_run, -- text: that run
  w.commit_id AS before_commit, -- text null: that was measured
  g.before_error -- number: the relative error of that run
FROM grown g CROSS JOIN run r ON r.id = g.run_id CROSS JOIN run b ON b.id = g.before_run_id
  LEFT JOIN revision v ON v.id = r.revision_id LEFT JOIN revision w ON w.id = b.revision_id
WHERE :after1 IS NULL OR (g.growth, g.track_id) < (:after1, :after2)
ORDER BY g.growth DESC, g.track_id DESC LIMIT :limit
