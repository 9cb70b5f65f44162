-- calibrations: limit 50 200
SELECT r.uuid AS run, -- text: the run of `gate calibrate`
  r.time_ms, -- integer key1: when it began
  r.id, -- integer key2 hidden: tells runs of one moment apart
  r.device, -- text: the device model
  nullif(r.host, '') AS host, -- text null: where it ran
  nullif(r.gpu, '') AS gpu, -- text null: uuid of the GPU
  nullif(r.machine, '') AS machine, -- text null: the GPU, or else the host
  v.commit_id AS "commit", -- text null: that was measured
  nullif(r.subject, '') AS subject, -- text null: first line of the commit's message
  nullif(r.author, '') AS author, -- text null: of the commit
  r.contract, -- text: the rules of measuring
  r.calibration ->> 'threshold' AS threshold, -- number null: of a regression
  r.calibration ->> 'processes' AS processes, -- integer: of each case
  r.calibration -> 'cases' AS cases -- json Calibrated: what each case could tell
FROM run r LEFT JOIN revision v ON v.id = r.revision_id
WHERE r.calibration IS NOT NULL AND (:device IS NULL OR r.device = :device)
  AND (:machine IS NULL OR r.machine = :machine OR r.host = :machine)
  AND (:after1 IS NULL OR (r.time_ms, r.id) < (:after1, :after2))
ORDER BY r.time_ms DESC, r.id DESC LIMIT :limit
