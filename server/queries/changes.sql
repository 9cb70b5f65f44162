-- changes: limit 20 200
SELECT r.change, -- text: number of the merge request
  nullif(r.branch, '') AS branch, -- text null: that its newest run named
  v.commit_id AS "commit", -- text null: of its newest push that was measured
  nullif(r.subject, '') AS subject, -- text null: first line of that commit's message
  nullif(r.author, '') AS author, -- text null: of that commit
  r.time_ms, -- integer key1: of its newest run
  r.uuid AS run, -- text key2: its newest run
  (SELECT sum(n_regression + n_wrong) FROM run s WHERE s.change = r.change
    AND s.revision_id IS r.revision_id) AS red -- integer: red cases of that push, of all devices
FROM run r LEFT JOIN revision v ON v.id = r.revision_id
WHERE r.change <> '' AND r.contract NOT GLOB 'foreign-*' AND r.branch <> :main_branch
  AND r.time_ms > (SELECT max(time_ms) FROM run) - 14 * 86400000
  AND NOT EXISTS (SELECT 1 FROM run s WHERE s.change = r.change
    AND s.contract NOT GLOB 'foreign-*'
    AND (s.time_ms, s.uuid) > (r.time_ms, r.uuid))
  AND NOT EXISTS (SELECT 1 FROM run m WHERE m.branch = :main_branch
    AND m.revision_id = r.revision_id)
  AND (:after1 IS NULL OR (r.time_ms, r.uuid) < (:after1, :after2))
ORDER BY r.time_ms DESC, r.uuid DESC LIMIT :limit
