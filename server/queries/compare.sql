-- cases:
-- The cases of the runs :a and :b, side by side. What says most is from pairs: with one baseline, or
-- with the other run's library, or with baselines of which one became the other (link); then times
-- over their control; bare times move by percents between runs.
WITH side AS MATERIALIZED (
  SELECT r.uuid, r.device, r.contract, r.revision_id, t.case_id, e.track_id, e.provider,
    iif(t.kind = 'foreign', t.kind, e.verdict) AS verdict,
    e.p50_ns, e.p50_lo_ns, e.p50_hi_ns, e.ratio, e.ratio_lo, e.ratio_hi,
    coalesce(e.threshold, 0) AS threshold, iif(e.p50_ns IS NULL, NULL, e.control_ns) AS control_ns,
    iif(e.p50_ns IS NULL, NULL, e.rel_err) AS rel_err, e.baseline_ms, v.id AS baseline_id,
    e.ratio > 0 AND e.ratio_lo > 0 AND e.ratio_hi > 0 AS is_paired
  FROM run r CROSS JOIN result e INDEXED BY result_by_run ON e.run_id = r.id AND e.arm = 0
    CROSS JOIN track t ON t.id = e.track_id
    LEFT JOIN revision v ON v.commit_id = e.baseline_commit
  WHERE r.uuid IN (:a, :b)),
comparable AS MATERIALIZED (
  SELECT a.case_id, a.track_id, b.p50_ns / a.p50_ns AS ratio,
    iif(max(a.threshold, b.threshold) > 0, max(a.threshold, b.threshold), 0.02) AS threshold,
    b.p50_ns / b.control_ns / (a.p50_ns / a.control_ns) AS control,
    b.p50_lo_ns / b.control_ns / (a.p50_hi_ns / a.control_ns) AS control_lo,
    b.p50_hi_ns / b.control_ns / (a.p50_lo_ns / a.control_ns) AS control_hi,
    a.ratio AS a_ratio, a.ratio_lo AS a_lo, a.ratio_hi AS a_hi,
    b.ratio AS b_ratio, b.ratio_lo AS b_lo, b.ratio_hi AS b_hi,
    CASE WHEN a.is_paired AND b.is_paired AND a.baseline_ms = b.baseline_ms THEN 'one baseline'
      WHEN b.is_paired AND b.baseline_id = a.revision_id THEN 'a is it'
      WHEN a.is_paired AND a.baseline_id = b.revision_id THEN 'b is it'
      WHEN a.is_paired AND b.is_paired AND a.provider = b.provider THEN 'link' END AS way,
    a.provider, b.baseline_ms > a.baseline_ms AS is_newer,
    min(a.baseline_ms, b.baseline_ms) AS from_ms, max(a.baseline_ms, b.baseline_ms) AS to_ms,
    iif(b.baseline_ms > a.baseline_ms, b.baseline_id, a.baseline_id) AS to_id
  FROM side a JOIN side b ON b.case_id = a.case_id AND b.device = a.device
    AND b.contract = a.contract
  WHERE a.uuid = :a AND b.uuid = :b AND a.p50_ns IS NOT NULL AND b.p50_ns IS NOT NULL),
-- What the newer baseline took over the older one, as the run measured it that became it.
link AS (
  SELECT c.*, iif(c.way = 'link', (
    SELECT r.id FROM run r
      CROSS JOIN result e ON e.run_id = r.id AND e.track_id = c.track_id AND e.arm = 0
    WHERE r.revision_id = c.to_id AND r.time_ms <= c.to_ms AND e.baseline_ms = c.from_ms
      AND e.provider = c.provider AND e.p50_ns IS NOT NULL
      AND e.ratio > 0 AND e.ratio_lo > 0 AND e.ratio_hi > 0
    ORDER BY r.time_ms DESC LIMIT 1), NULL) AS run_id
  FROM comparable c),
linked AS (
  SELECT c.*, iif(c.is_newer, l.ratio, 1 / l.ratio) AS link,
    iif(c.is_newer, l.ratio_lo, 1 / l.ratio_hi) AS link_lo,
    iif(c.is_newer, l.ratio_hi, 1 / l.ratio_lo) AS link_hi
  FROM link c LEFT JOIN result l ON l.run_id = c.run_id AND l.track_id = c.track_id AND l.arm = 0),
changed AS (
  SELECT l.*, CASE way WHEN 'one baseline' THEN b_ratio / a_ratio WHEN 'a is it' THEN b_ratio
      WHEN 'b is it' THEN 1 / a_ratio ELSE b_ratio * link / a_ratio END AS paired,
    CASE way WHEN 'one baseline' THEN b_lo / a_hi WHEN 'a is it' THEN b_lo
      WHEN 'b is it' THEN 1 / a_hi ELSE b_lo * link_lo / a_hi END AS paired_lo,
    CASE way WHEN 'one baseline' THEN b_hi / a_lo WHEN 'a is it' THEN b_hi
      WHEN 'b is it' THEN 1 / a_lo ELSE b_hi * link_hi / a_lo END AS paired_hi
  FROM linked l),
judged AS MATERIALIZED (
  SELECT c.*, coalesce(paired, control) AS judged, iif(paired IS NULL, control_lo, paired_lo) AS lo,
    iif(paired IS NULL, control_hi, paired_hi) AS hi FROM changed c)
SELECT n.case_id AS id, -- text: the case
  a.uuid AS "a.run", -- text hidden whole: null where it does not have the case
  a.p50_ns AS "a.p50_ns", -- number null: of the candidate in the run `a`
  a.p50_lo_ns AS "a.p50_lo_ns", -- number null: confidence interval of it
  a.p50_hi_ns AS "a.p50_hi_ns", -- number null: the same
  a.ratio AS "a.over_baseline", -- number null: of the run, from pairs
  a.verdict AS "a.verdict", -- verdict: of the case
  a.rel_err AS "a.rel_err", -- number null: relative error of the verification
  a.contract AS "a.contract", -- text: the rules of measuring
  b.uuid AS "b.run", -- text hidden whole: null where it does not have the case
  b.p50_ns AS "b.p50_ns", -- number null: the same of the run `b`
  b.p50_lo_ns AS "b.p50_lo_ns", -- number null: the same
  b.p50_hi_ns AS "b.p50_hi_ns", -- number null: the same
  b.ratio AS "b.over_baseline", -- number null: the same
  b.verdict AS "b.verdict", -- verdict: the same
  b.rel_err AS "b.rel_err", -- number null: the same
  b.contract AS "b.contract", -- text: the same
  c.ratio, -- number null: b over a
  c.control AS ratio_control, -- number null: the same, each over its control
  c.paired, -- number null: the same, from pairs: of one baseline, or linked ones
  c.paired_lo, -- number null: confidence interval of it
  c.paired_hi, -- number null: the same
  c.threshold, -- number null: the larger one of the runs
  -- The rule of a verdict: beyond the threshold, with an interval beyond the half of it.
  CASE WHEN c.judged IS NULL THEN 'none'
    WHEN c.judged BETWEEN 1 / (1 + c.threshold) AND 1 + c.threshold THEN 'same'
    WHEN c.lo > 1 + c.threshold / 2 THEN 'slower' WHEN c.hi < 1 / (1 + c.threshold / 2) THEN 'faster'
    ELSE 'unclear' END AS judged, -- text: slower, faster, same or unclear; none: by nothing
  c.case_id IS NOT NULL AS comparable, -- boolean: the two say something of each other
  CASE WHEN c.case_id IS NOT NULL THEN ''
    WHEN b.uuid IS NULL THEN 'only a has the case' WHEN a.uuid IS NULL THEN 'only b has the case'
    WHEN a.device <> b.device THEN printf('measured on %s and %s', a.device, b.device)
    WHEN a.contract <> b.contract
      THEN printf('measured by the contracts %s and %s', a.contract, b.contract)
    ELSE iif(a.p50_ns IS NULL, 'a', 'b') || ' has no verified time' END AS why -- text: why not
FROM (SELECT DISTINCT case_id FROM side) n
  LEFT JOIN side a ON a.uuid = :a AND a.case_id = n.case_id
  LEFT JOIN side b ON b.uuid = :b AND b.case_id = n.case_id
  LEFT JOIN judged c ON c.case_id = n.case_id
ORDER BY n.case_id
