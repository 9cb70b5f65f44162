-- cases: limit 200 1000
WITH newest AS MATERIALIZED (
  SELECT t.id AS track_id, t.case_id, t.op, t.dtype, t.device, t.n_runs, e.run_id,
    iif(t.kind = 'foreign', t.kind, e.verdict) AS verdict,
    e.ratio, e.p50_ns, e.time_ms, e.peer_ratio, e.ceiling,
    EXISTS (SELECT 1 FROM alert a INDEXED BY alert_open WHERE a.track_id = t.id
      AND a.state IN ('new', 'acknowledged') AND a.kind = 'regression'
      AND coalesce(:branch, :main_branch) = :main_branch) AS is_slower
  FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.run_id =
    iif(:branch IS NULL,
      (SELECT n.run_id FROM result n WHERE n.track_id = t.id
       ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1),
      (SELECT n.run_id FROM result n INDEXED BY result_by_branch WHERE n.track_id = t.id
         AND n.branch = :branch AND n.arm = 0
       ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1))
  WHERE (:device IS NULL OR t.device = :device) AND (:op IS NULL OR t.op = :op)
    AND (:dtype IS NULL OR t.dtype = :dtype) AND (:case IS NULL OR t.case_id = :case)
    AND NOT EXISTS (SELECT 1 FROM json_each('["' || replace(:q, ' ', '","') || '"]') w
      WHERE instr(t.case_id, w.value) = 0 AND instr(t.device, w.value) = 0)),
-- Sorted by class, value and name; class 6 has no value and stays last whichever way.
sorted AS (
  SELECT n.*, iif(substr(:sort, 1, 1) = '-', -1, 1) AS way, CASE ltrim(:sort, '-')
      WHEN 'worst' THEN CASE n.verdict WHEN 'wrong' THEN 0 WHEN 'regression' THEN 1
        WHEN 'environment' THEN 2 WHEN 'no-verdict' THEN 3 ELSE iif(n.is_slower, 4, 5) END
      WHEN 'p50' THEN iif(n.p50_ns > 0, 0, 6) WHEN 'change' THEN iif(n.ratio > 0, 0, 6)
      WHEN 'vendor' THEN iif(n.peer_ratio > 0, 0, 6) WHEN 'ceiling' THEN iif(n.ceiling > 0, 0, 6)
      ELSE 0 END AS class,
    CASE ltrim(:sort, '-') WHEN 'worst' THEN -coalesce(n.ratio, 0.0)
      WHEN 'p50' THEN -coalesce(n.p50_ns, 0.0) WHEN 'time' THEN -n.time_ms
      WHEN 'change' THEN -coalesce(n.ratio, 0.0) WHEN 'vendor' THEN -coalesce(n.peer_ratio, 0.0)
      WHEN 'ceiling' THEN coalesce(n.ceiling, 0.0) ELSE 0.0 END AS value
  FROM newest n WHERE :verdict IS NULL OR n.verdict = :verdict),
page AS (
  SELECT *, row_number() OVER (ORDER BY s.class = 6, s.way * s.class, s.way * s.value,
      iif(s.way = 1 OR s.class = 6, s.case_id, ''), iif(s.way = 1 OR s.class = 6, s.device, ''),
      s.case_id DESC, s.device DESC) AS place
  FROM sorted s
  WHERE :after1 IS NULL OR iif(s.way = 1 OR s.class = 6 OR :after1 = 6,
    (s.class, s.value, s.case_id, s.device) > (:after1, :after2, :after3, :after4),
    s.class = 6 OR (s.class, s.value, s.case_id, s.device) < (:after1, :after2, :after3, :after4))
  ORDER BY place LIMIT :limit)
SELECT p.class, -- integer key1 hidden: of the order
  p.value, -- number key2 hidden: the same
  p.case_id AS id, -- text key3: the case
  p.op, -- text: what it computes
  p.dtype, -- text: of its tensors
  p.device, -- text key4: the device model
  p.n_runs AS runs, -- integer: that have the case on this device, of any branch
  e.time_ms, -- integer: of the newest run
  r.uuid AS run, -- text: the newest run
  v.commit_id AS "commit", -- text null: of that run
  nullif(r.branch, '') AS branch, -- text null: the same
  r.contract, -- text: the same
  p.verdict, -- verdict: the same; foreign: another tool measured it, and nothing was judged
  e.reason, -- text: why
  e.p50_ns, -- number null: of the candidate; null where it was not timed, or was wrong
  e.p50_lo_ns, -- number null: confidence interval of it
  e.p50_hi_ns, -- number null: the same
  e.baseline_p50_ns, -- number null: of the baseline, measured in the same run, or stored
  e.ratio, -- number null: candidate over baseline
  e.ratio_lo, -- number null: confidence interval of it
  e.ratio_hi, -- number null: the same
  e.mde, -- number null: the smallest slowdown that the run could prove
  e.tflops, -- number null: of the candidate
  e.ceiling, -- number null: share of what the device can reach
  nullif(e.peer, '') AS peer, -- text null: the library that is hardest to beat
  e.peer_ratio, -- number null: candidate over that library
  e.peer_lo, -- number null: confidence interval of it, where it is from pairs
  e.peer_hi, -- number null: the same
  e.gbps, -- number null: of the candidate
  e.control_ns, -- number null: of the control kernel
  nullif(e.rel_err, 0) AS rel_err, -- number null: relative error of the verification
  e.threshold, -- number null: of a regression
  e.ratio - 1 AS change, -- number null: 0.02 is 2 % slower than the baseline
  (SELECT a.id FROM alert a INDEXED BY alert_open WHERE a.track_id = p.track_id
    AND a.state IN ('new', 'acknowledged') AND (r.branch = :main_branch OR EXISTS (
      WITH RECURSIVE of_branch(id, parent, n) AS (
        SELECT v.id, v.parent, 0 UNION ALL
        SELECT w.id, w.parent, b.n + 1 FROM of_branch b JOIN revision w ON w.commit_id = b.parent
        WHERE b.n < 1000)
      SELECT 1 FROM run s JOIN of_branch b ON b.id = s.revision_id WHERE s.id = a.run_id))
    ORDER BY a.id DESC LIMIT 1
  ) AS alert, -- integer null: the newest open alert of the case whose commit the branch contains
  iif(:spark = '0', '[]',
    (SELECT json_group_array(CAST(printf('%.9g', coalesce(c.paired_ns, c.p50_ns)) AS REAL))
      FROM (SELECT * FROM (
      SELECT * FROM (SELECT iif(b.paired, b.ratio * b.baseline_stored_ns, NULL) AS paired_ns,
        b.p50_ns, 0 AS place_ms, b.time_ms, b.run_id FROM result b
        WHERE :branch IS NULL
        AND b.track_id = p.track_id AND b.arm = 0 AND b.p50_ns IS NOT NULL
        AND (b.provider, b.contract) = (SELECT n.provider, n.contract FROM result n
          WHERE n.track_id = p.track_id AND n.arm = 0 AND n.p50_ns IS NOT NULL
          ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1)
        ORDER BY b.time_ms DESC, b.run_id DESC LIMIT 24)
      UNION ALL
      SELECT * FROM (SELECT iif(b.paired, b.ratio * b.baseline_stored_ns, NULL), b.p50_ns,
        b.place_ms, b.time_ms, b.run_id
        FROM result b INDEXED BY result_by_branch WHERE :branch IS NOT NULL
        AND b.track_id = p.track_id AND b.branch = :branch AND b.arm = 0 AND b.p50_ns IS NOT NULL
        AND (b.provider, b.contract) = (SELECT n.provider, n.contract
          FROM result n INDEXED BY result_by_branch WHERE n.track_id = p.track_id
            AND n.branch = :branch AND n.arm = 0 AND n.p50_ns IS NOT NULL
          ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1)
        ORDER BY b.place_ms DESC, b.time_ms DESC, b.run_id DESC LIMIT 24))
      ORDER BY place_ms, time_ms, run_id) c)
  ) AS spark -- json Spark: the newest 24 times of the candidate by pairs, else p50; oldest first
FROM page p CROSS JOIN result e ON e.run_id = p.run_id AND e.track_id = p.track_id AND e.arm = 0
  CROSS JOIN run r ON r.id = e.run_id LEFT JOIN revision v ON v.id = r.revision_id
ORDER BY p.place;

SELECT coalesce(sum(:verdict IS NULL OR e.verdict = :verdict), 0) AS total, -- integer: cases
  coalesce(sum(e.verdict = 'pass'), 0) AS "counts.pass", -- integer: with this verdict
  coalesce(sum(e.verdict = 'regression'), 0) AS "counts.regression", -- integer: the same
  coalesce(sum(e.verdict = 'improvement'), 0) AS "counts.improvement", -- integer: the same
  coalesce(sum(e.verdict = 'wrong'), 0) AS "counts.wrong", -- integer: the same
  coalesce(sum(e.verdict = 'no-verdict'), 0) AS "counts.no-verdict", -- integer: the same
  coalesce(sum(e.verdict = 'environment'), 0) AS "counts.environment", -- integer: the same
  coalesce(sum(e.verdict = 'foreign'), 0) AS "counts.foreign", -- integer: of another tool
  coalesce(sum(e.peer_ratio > 0 AND (:verdict IS NULL OR e.verdict = :verdict)), 0)
    AS vendor_cases, -- integer: cases with another library beside them
  exp(avg(iif(:verdict IS NULL OR e.verdict = :verdict, ln(e.peer_ratio), NULL)))
    AS vendor_mean, -- number null: geometric mean of peer_ratio
  (SELECT json_group_array(DISTINCT op) FROM track) AS ops, -- json Words: of all cases
  (SELECT json_group_array(DISTINCT dtype) FROM track) AS dtypes -- json Words: the same
FROM (SELECT iif(t.kind = 'foreign', t.kind, e.verdict) AS verdict, e.peer_ratio
FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.run_id =
  iif(:branch IS NULL,
    (SELECT n.run_id FROM result n WHERE n.track_id = t.id
     ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1),
    (SELECT n.run_id FROM result n INDEXED BY result_by_branch WHERE n.track_id = t.id
       AND n.branch = :branch AND n.arm = 0
       ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1))
WHERE (:device IS NULL OR t.device = :device) AND (:op IS NULL OR t.op = :op)
  AND (:dtype IS NULL OR t.dtype = :dtype) AND (:case IS NULL OR t.case_id = :case)
  AND NOT EXISTS (SELECT 1 FROM json_each('["' || replace(:q, ' ', '","') || '"]') w
    WHERE instr(t.case_id, w.value) = 0 AND instr(t.device, w.value) = 0)) e
