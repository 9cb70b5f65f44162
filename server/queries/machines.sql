-- machines:
-- The control kernel never changes, so machines of one model take the same time for it. The level of
-- a machine is the median of the logarithms of that, over its newest 20 runs; that of a model the
-- median of its machines. Spreads are median distances from a median, as standard deviations.
WITH machine AS MATERIALIZED (
  SELECT n.*, r.host, r.gpu, r.time_ms, r.id FROM (SELECT device, machine, count(*) AS runs FROM run
      WHERE machine <> '' AND contract NOT GLOB 'foreign-*' AND (:device IS NULL OR device = :device) GROUP BY machine, device) n
    CROSS JOIN run r ON r.id = (SELECT o.id FROM run o WHERE o.machine = n.machine
      AND o.device = n.device AND o.contract NOT GLOB 'foreign-*' ORDER BY o.time_ms DESC, o.uuid DESC LIMIT 1)
  ORDER BY r.time_ms DESC, r.id DESC LIMIT 200),
recent AS MATERIALIZED (
  SELECT m.device, m.machine, r.n_cases, r.n_no_verdict, r.n_environment, r.control_drift AS drift,
    ln(r.control_ns) AS level
  FROM machine m CROSS JOIN run r ON r.id IN (SELECT o.id FROM run o WHERE o.machine = m.machine
    AND o.device = m.device AND o.contract NOT GLOB 'foreign-*'
    ORDER BY o.time_ms DESC, o.uuid DESC LIMIT 20)),
drift AS MATERIALIZED (SELECT device, machine, avg(drift) AS middle FROM (SELECT *,
    row_number() OVER (PARTITION BY device, machine ORDER BY drift) AS k,
    count(*) OVER (PARTITION BY device, machine) AS n FROM recent WHERE drift IS NOT NULL)
  WHERE k IN ((n + 1) / 2, (n + 2) / 2) GROUP BY device, machine),
level AS MATERIALIZED (SELECT device, machine, n, avg(level) AS middle FROM (SELECT *,
    row_number() OVER (PARTITION BY device, machine ORDER BY level) AS k,
    count(*) OVER (PARTITION BY device, machine) AS n FROM recent WHERE level IS NOT NULL)
  WHERE k IN ((n + 1) / 2, (n + 2) / 2) GROUP BY device, machine),
scatter AS MATERIALIZED (SELECT device, machine, 1.4826 * avg(distance) AS deviation FROM (SELECT *,
    row_number() OVER (PARTITION BY device, machine ORDER BY distance) AS k,
    count(*) OVER (PARTITION BY device, machine) AS n
    FROM (SELECT r.device, r.machine, abs(r.level - l.middle) AS distance FROM recent r
      JOIN level l USING (device, machine) WHERE r.level IS NOT NULL AND l.n >= 3))
  WHERE k IN ((n + 1) / 2, (n + 2) / 2) GROUP BY device, machine),
-- Three machines with three runs each make a level of their model.
model AS MATERIALIZED (SELECT device, avg(middle) AS middle FROM (SELECT *,
    row_number() OVER (PARTITION BY device ORDER BY middle) AS k,
    count(*) OVER (PARTITION BY device) AS machines FROM level WHERE n >= 3)
  WHERE machines >= 3 AND k IN ((machines + 1) / 2, (machines + 2) / 2) GROUP BY device),
-- The deviation between machines, but not less than that within one, or than 0.1 %.
spread AS MATERIALIZED (SELECT device, max(max(between_them), max(within), 0.001) AS spread FROM (
    SELECT device, 1.4826 * avg(distance) AS between_them, 0 AS within FROM (SELECT *,
        row_number() OVER (PARTITION BY device ORDER BY distance) AS k,
        count(*) OVER (PARTITION BY device) AS n
      FROM (SELECT l.device, abs(l.middle - m.middle) AS distance FROM level l
        JOIN model m USING (device) WHERE l.n >= 3))
    WHERE k IN ((n + 1) / 2, (n + 2) / 2) GROUP BY device
    UNION ALL
    SELECT device, 0, avg(deviation) FROM (SELECT *,
        row_number() OVER (PARTITION BY device ORDER BY deviation) AS k,
        count(*) OVER (PARTITION BY device) AS n FROM scatter)
    WHERE k IN ((n + 1) / 2, (n + 2) / 2) GROUP BY device)
  WHERE device IN (SELECT device FROM model) GROUP BY device)
SELECT m.device, -- text: the device model
  m.machine, -- text: the GPU's uuid; of a CPU, or where no GPU is known, the host
  nullif(m.host, '') AS host, -- text null: of the newest run
  nullif(m.gpu, '') AS gpu, -- text null: uuid of the GPU
  m.runs, -- integer: all of them
  m.time_ms, -- integer: of the newest run
  n.cases, -- integer: of the newest 20 runs, as all that follows
  n.no_verdict / CAST(n.cases AS REAL)
    AS no_verdict_rate, -- number null: share of the cases without a verdict
  n.environment / CAST(n.cases AS REAL)
    AS environment_rate, -- number null: share of the cases that the environment failed
  d.middle AS control_drift, -- number null: median of how far the control moved in a run
  exp(l.middle) AS control_ns, -- number null: median of the control kernel's time
  exp(l.middle - o.middle) - 1
    AS off, -- number null: of the level of its model; null: too few machines, or runs
  iif(o.middle IS NULL, NULL, s.spread)
    AS spread, -- number null: of the machines of the model; the same
  coalesce(abs(l.middle - o.middle) > 3 * s.spread, 0)
    AS is_off, -- boolean: by more than three spreads
  c.uuid AS calibration, -- text null: the newest run of `gate calibrate`
  c.time_ms AS calibrated_ms, -- integer null: when that was
  c.calibration ->> 'threshold' AS threshold, -- number null: of a regression
  (SELECT max(k.value ->> 'mde') FROM json_each(c.calibration, '$.cases') k)
    AS mde, -- number null: the smallest slowdown that it could detect in each case
  coalesce(json_array_length(c.calibration, '$.cases'), 0) AS calibrated, -- integer: cases
  (SELECT coalesce(sum(k.value ->> 'resolved'), 0) FROM json_each(c.calibration, '$.cases') k)
    AS resolved -- integer: cases in which it told the threshold from none
FROM machine m
  JOIN (SELECT device, machine, sum(n_cases) AS cases, sum(n_no_verdict) AS no_verdict,
    sum(n_environment) AS environment FROM recent GROUP BY device, machine) n
    ON n.device = m.device AND n.machine = m.machine
  LEFT JOIN drift d ON d.device = m.device AND d.machine = m.machine
  LEFT JOIN level l ON l.device = m.device AND l.machine = m.machine
  LEFT JOIN model o ON o.device = m.device AND l.n >= 3
  LEFT JOIN spread s ON s.device = m.device
  LEFT JOIN run c ON c.id = (SELECT k.id FROM run k WHERE k.machine = m.machine
    AND k.device = m.device AND k.calibration IS NOT NULL ORDER BY k.time_ms DESC, k.id DESC LIMIT 1)
ORDER BY m.time_ms DESC, m.id DESC
