-- runs: limit 50 500
SELECT r.uuid, -- text key2: the run's name
  r.time_ms, -- integer key1: when it began
  v.commit_id AS "commit", -- text null: that was measured
  nullif(v.parent, '') AS parent, -- text null: the first parent of the commit
  nullif(r.branch, '') AS branch, -- text null: that the run named
  nullif(r.subject, '') AS subject, -- text null: first line of the commit's message
  nullif(r.author, '') AS author, -- text null: of the commit, a name
  r.dirty, -- boolean: measured with changes that the commit does not have
  r.suite, -- text: the cases that were asked for
  r.device, -- text: the device model
  r.device_name, -- text: as the driver names it
  r.contract, -- text: the rules of measuring; times of two contracts are not compared
  nullif(r.epoch, '') AS epoch, -- text null: driver, runtime and power limit
  iif(r.contract GLOB 'foreign-*', 'foreign', r.verdict)
    AS verdict, -- verdict: of the whole run; foreign: another tool measured it, nothing was judged
  r.exit_code, -- integer: of `gate run`
  r.n_cases AS cases, -- integer: in the run
  r.n_pass AS "verdicts.pass", -- integer: cases with this verdict
  r.n_regression AS "verdicts.regression", -- integer: the same
  r.n_improvement AS "verdicts.improvement", -- integer: the same
  r.n_wrong AS "verdicts.wrong", -- integer: the same
  iif(r.contract GLOB 'foreign-*', 0, r.n_no_verdict)
    AS "verdicts.no-verdict", -- integer: the same
  r.n_environment AS "verdicts.environment", -- integer: the same
  iif(r.contract GLOB 'foreign-*', r.n_cases, 0)
    AS "verdicts.foreign", -- integer: cases of another tool, which have no verdict
  nullif(r.host, '') AS host, -- text null: where it ran
  nullif(r.gpu, '') AS gpu, -- text null: uuid of the GPU
  nullif(r.machine, '') AS machine, -- text null: the GPU, or else the host
  r.control_ns, -- number null: the control kernel's time, geometric mean over the cases
  r.control_drift, -- number null: how far the control moved between processes
  r.vendor_ratio, -- number null: time over the best vendor's, geometric mean over vendor_cases
  r.n_vendor AS vendor_cases -- integer: cases that have a vendor beside them
FROM (
  -- Of one run, whose :uuid no address has; else only the first of these whose filter is given has rows: it has the index that leaves the fewest
  -- runs to look at.
  SELECT * FROM run WHERE :uuid IS NOT NULL AND uuid = :uuid
  UNION ALL
  SELECT * FROM run WHERE :commit IS NOT NULL AND revision_id =
    (SELECT CASE count(*) WHEN 1 THEN min(id) END FROM revision
     WHERE commit_id >= :commit AND commit_id < :commit || '~' AND first_ms IS NOT NULL)
  UNION ALL
  SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NOT NULL
    AND (machine = :machine OR host = :machine)
  UNION ALL
  SELECT * FROM (SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NULL
    AND :device IS NOT NULL AND :branch IS NOT NULL AND device = :device AND branch = :branch
    AND (:verdict IS NULL OR iif(contract GLOB 'foreign-*', 'foreign', verdict) = :verdict)
    AND (:after1 IS NULL OR (time_ms, uuid) < (:after1, :after2))
    ORDER BY time_ms DESC, uuid DESC LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NULL
    AND :device IS NULL AND :branch IS NOT NULL AND branch = :branch
    AND (:verdict IS NULL OR iif(contract GLOB 'foreign-*', 'foreign', verdict) = :verdict)
    AND (:after1 IS NULL OR (time_ms, uuid) < (:after1, :after2))
    ORDER BY time_ms DESC, uuid DESC LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NULL
    AND :device IS NOT NULL AND :branch IS NULL AND device = :device
    AND (:verdict IS NULL OR iif(contract GLOB 'foreign-*', 'foreign', verdict) = :verdict)
    AND (:after1 IS NULL OR (time_ms, uuid) < (:after1, :after2))
    ORDER BY time_ms DESC, uuid DESC LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NULL
    AND :device IS NULL AND :branch IS NULL AND :verdict IS NOT NULL
    AND verdict = iif(:verdict = 'foreign', 'no-verdict', :verdict)
    AND (contract GLOB 'foreign-*') = (:verdict = 'foreign')
    AND (:after1 IS NULL OR (time_ms, uuid) < (:after1, :after2))
    ORDER BY time_ms DESC, uuid DESC LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT * FROM run WHERE :uuid IS NULL AND :commit IS NULL AND :machine IS NULL
    AND :device IS NULL AND :branch IS NULL AND :verdict IS NULL
    AND (:after1 IS NULL OR (time_ms, uuid) < (:after1, :after2))
    ORDER BY time_ms DESC, uuid DESC LIMIT :limit)
) r LEFT JOIN revision v ON v.id = r.revision_id
WHERE (:device IS NULL OR r.device = :device) AND (:branch IS NULL OR r.branch = :branch)
  AND (:verdict IS NULL OR iif(r.contract GLOB 'foreign-*', 'foreign', r.verdict) = :verdict)
  AND (:machine IS NULL OR r.machine = :machine OR r.host = :machine)
  AND (:after1 IS NULL OR (r.time_ms, r.uuid) < (:after1, :after2))
ORDER BY r.time_ms DESC, r.uuid DESC LIMIT :limit
