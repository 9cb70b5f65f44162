-- pushes: limit 200 1000
SELECT r.uuid, -- text key2: the run's name
  r.time_ms, -- integer key1: when it began
  r.change, -- text: number of the merge request
  nullif(r.job, '') AS job, -- text null: address of the CI job
  nullif(r.branch, '') AS branch, -- text null: that the run named
  v.commit_id AS "commit", -- text null: that was measured
  nullif(r.subject, '') AS subject, -- text null: first line of the commit's message
  nullif(r.author, '') AS author, -- text null: of the commit
  r.device, -- text: the device model
  r.device_name, -- text: as the driver names it
  r.verdict -- verdict: of the whole run
FROM run r LEFT JOIN revision v ON v.id = r.revision_id
WHERE r.change <> '' AND r.contract NOT GLOB 'foreign-*' AND (:change IS NULL OR r.change = :change)
  AND (:after1 IS NULL OR (r.time_ms, r.uuid) < (:after1, :after2))
ORDER BY r.time_ms DESC, r.uuid DESC LIMIT :limit
