-- devices:
WITH RECURSIVE model(name) AS (SELECT min(device) FROM run UNION ALL
  SELECT (SELECT min(r.device) FROM run r WHERE r.device > m.name) FROM model m
  WHERE m.name IS NOT NULL)
SELECT m.name AS model, -- text: the device model
  (SELECT count(*) FROM run n WHERE n.device = m.name) AS runs, -- integer: of any branch
  r.uuid AS "newest.uuid", -- text: the run's name
  r.time_ms AS "newest.time_ms", -- integer: when it began
  v.commit_id AS "newest.commit", -- text null: that was measured
  nullif(v.parent, '') AS "newest.parent", -- text null: the first parent of the commit
  nullif(r.branch, '') AS "newest.branch", -- text null: that the run named
  nullif(r.subject, '') AS "newest.subject", -- text null: first line of the commit's message
  nullif(r.author, '') AS "newest.author", -- text null: of the commit, a name
  r.dirty AS "newest.dirty", -- boolean: measured with changes that the commit does not have
  r.suite AS "newest.suite", -- text: the cases that were asked for
  r.device AS "newest.device", -- text: the device model
  r.device_name AS "newest.device_name", -- text: as the driver names it
  r.contract
    AS "newest.contract", -- text: the rules of measuring; times of two contracts are not compared
  nullif(r.epoch, '') AS "newest.epoch", -- text null: driver, runtime and power limit
  iif(r.contract GLOB 'foreign-*', 'foreign', r.verdict)
    AS "newest.verdict", -- verdict: of the whole run; foreign: another tool measured it
  r.exit_code AS "newest.exit_code", -- integer: of `gate run`
  r.n_cases AS "newest.cases", -- integer: in the run
  r.n_pass AS "newest.verdicts.pass", -- integer: cases with this verdict
  r.n_regression AS "newest.verdicts.regression", -- integer: the same
  r.n_improvement AS "newest.verdicts.improvement", -- integer: the same
  r.n_wrong AS "newest.verdicts.wrong", -- integer: the same
  iif(r.contract GLOB 'foreign-*', 0, r.n_no_verdict)
    AS "newest.verdicts.no-verdict", -- integer: the same
  r.n_environment AS "newest.verdicts.environment", -- integer: the same
  iif(r.contract GLOB 'foreign-*', r.n_cases, 0)
    AS "newest.verdicts.foreign", -- integer: cases of another tool, which have no verdict
  nullif(r.host, '') AS "newest.host", -- text null: where it ran
  nullif(r.gpu, '') AS "newest.gpu", -- text null: uuid of the GPU
  nullif(r.machine, '') AS "newest.machine", -- text null: the GPU, or else the host
  r.control_ns
    AS "newest.control_ns", -- number null: the control kernel's time, geometric mean over the cases
  r.control_drift
    AS "newest.control_drift", -- number null: how far the control moved between processes
  r.vendor_ratio
    AS "newest.vendor_ratio", -- number null: time over the best vendor's, mean of vendor_cases
  r.n_vendor AS "newest.vendor_cases", -- integer: cases that have a vendor beside them
  (WITH RECURSIVE name(epoch) AS (
     SELECT min(epoch) FROM run WHERE device = m.name AND epoch > '' UNION ALL
     SELECT (SELECT min(r.epoch) FROM run r WHERE r.device = m.name AND r.epoch > n.epoch)
     FROM name n WHERE n.epoch IS NOT NULL),
   span(epoch, first_ms, last_ms) AS (
     SELECT epoch, (SELECT min(r.time_ms) FROM run r WHERE r.device = m.name AND r.epoch = n.epoch),
       (SELECT max(r.time_ms) FROM run r WHERE r.device = m.name AND r.epoch = n.epoch)
     FROM name n WHERE n.epoch IS NOT NULL),
   -- What lies apart from all others is one stretch, of which the first run is enough.
   mixed(epoch, to_ms) AS (SELECT epoch, iif(
       max(last_ms) OVER (ORDER BY first_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
         >= first_ms OR lead(first_ms) OVER (ORDER BY first_ms) <= last_ms, last_ms, first_ms)
     FROM span),
   step(time_ms, id, epoch, before) AS (
     SELECT r.time_ms, r.id, r.epoch, lag(r.epoch) OVER (ORDER BY r.time_ms, r.id)
     FROM mixed x CROSS JOIN run r ON r.device = m.name AND r.epoch = x.epoch
       AND r.time_ms <= x.to_ms)
    SELECT json_group_array(json_object('from_ms', time_ms, 'epoch', epoch)) FROM
      (SELECT * FROM step WHERE before IS NOT epoch ORDER BY time_ms, id)
  ) AS epochs -- json Epochs: from when on it had which driver, runtime and power limit
-- The gate's newest run, and only where it has none that of another tool.
FROM model m CROSS JOIN run r ON r.id = iif(:branch IS NULL,
  coalesce((SELECT n.id FROM run n WHERE n.device = m.name AND n.contract NOT GLOB 'foreign-*'
    ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1),
   (SELECT n.id FROM run n WHERE n.device = m.name ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1)),
  coalesce((SELECT n.id FROM run n WHERE n.device = m.name AND n.branch = :branch
    AND n.contract NOT GLOB 'foreign-*'
    ORDER BY n.place_ms DESC, n.time_ms DESC, n.uuid DESC LIMIT 1),
   (SELECT n.id FROM run n WHERE n.device = m.name AND n.branch = :branch
    ORDER BY n.place_ms DESC, n.time_ms DESC, n.uuid DESC LIMIT 1)))
  LEFT JOIN revision v ON v.id = r.revision_id
ORDER BY r.time_ms DESC, m.name
