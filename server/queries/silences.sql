-- silences: limit 100 1000
-- What was measured regularly, and is no longer: a device model or its cases on the main branch, or
-- another branch. A device is silent when 10 runs of the main branch came since its last one, and five
-- times as many as it usually left out. A case is silent when the newest 10 runs of its device that
-- are of its suite did not time it: it is missing, or nobody measures it; one that had a baseline
-- and is in no run any more was retired, since else the gate would call it missing. A branch is one
-- of no merge request that had 20 runs in two weeks or more, and then none for ten times as long as
-- usual while 10 others came.
WITH RECURSIVE model(name) AS (SELECT min(device) FROM run UNION ALL
  SELECT (SELECT min(r.device) FROM run r WHERE r.device > m.name) FROM model m
  WHERE m.name IS NOT NULL),
last AS MATERIALIZED (
  SELECT m.name AS device, r.id, r.time_ms, r.suite FROM model m CROSS JOIN run r ON r.id =
    (SELECT n.id FROM run n WHERE n.device = m.name AND n.branch = :main_branch
     ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1)),
device AS MATERIALIZED (
  SELECT l.*, (SELECT count(*) FROM run n WHERE n.branch = :main_branch AND n.time_ms > l.time_ms)
      AS runs,
    (SELECT n.time_ms FROM run n WHERE n.device = l.device AND n.branch = :main_branch
     ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1 OFFSET 5) AS before_ms
  FROM last l),
silent_device AS (
  SELECT 'device' AS kind, d.device, NULL AS case_id, :main_branch AS branch, d.id AS run_id, d.runs
  FROM device d WHERE d.before_ms IS NOT NULL AND d.runs >= 10 AND d.runs >= (SELECT count(*)
    FROM run n WHERE n.branch = :main_branch AND n.time_ms > d.before_ms AND n.time_ms < d.time_ms
      AND n.device <> d.device)),
silent_case AS (
  SELECT 'case', t.device, t.case_id, :main_branch, e.run_id, (SELECT count(*) FROM run n
      WHERE n.device = t.device AND n.branch = :main_branch AND n.time_ms > e.time_ms
        AND n.suite = r.suite) AS runs
  FROM track t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.run_id =
      (SELECT n.run_id FROM result n INDEXED BY result_by_branch WHERE n.track_id = t.id
        AND n.branch = :main_branch AND n.arm = 0 AND n.p50_ns IS NOT NULL
       ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1)
    CROSS JOIN run r ON r.id = e.run_id
  WHERE e.time_ms < (SELECT n.time_ms FROM run n WHERE n.device = t.device
      AND n.branch = :main_branch ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1 OFFSET 9)
    AND (SELECT count(*) FROM (SELECT 1 FROM result n INDEXED BY result_by_branch
      WHERE n.track_id = t.id AND n.branch = :main_branch AND n.arm = 0 AND n.p50_ns IS NOT NULL
      LIMIT 5)) = 5
    AND (e.baseline_ms IS NULL AND NOT EXISTS (SELECT 1 FROM result n
        INDEXED BY result_by_branch WHERE n.track_id = t.id AND n.branch = :main_branch
        AND n.arm = 0 AND n.time_ms > e.time_ms)
      OR EXISTS (SELECT 1 FROM result n INDEXED BY result_by_branch WHERE n.track_id = t.id
        AND n.branch = :main_branch AND n.arm = 0 AND n.time_ms > e.time_ms
        AND n.reason LIKE 'missing:%'))),
branch AS MATERIALIZED (
  SELECT branch, count(*) AS n, min(time_ms) AS from_ms, max(time_ms) AS to_ms FROM run
  WHERE branch <> :main_branch AND branch <> '' GROUP BY branch HAVING n >= 20 AND max(change) = ''
    AND to_ms - from_ms >= 14 * 86400000),
silent_branch AS (
  SELECT 'branch', NULL, NULL, b.branch, (SELECT r.id FROM run r WHERE r.branch = b.branch
      ORDER BY r.time_ms DESC, r.uuid DESC LIMIT 1),
    (SELECT count(*) FROM run n WHERE n.time_ms > b.to_ms) AS runs
  FROM branch b WHERE (SELECT max(time_ms) FROM run) - b.to_ms > 10 * (b.to_ms - b.from_ms) / b.n),
silence AS (SELECT * FROM silent_device UNION ALL
  SELECT * FROM silent_case WHERE device NOT IN (SELECT device FROM silent_device) AND runs >= 10
  UNION ALL SELECT * FROM silent_branch WHERE runs >= 10)
SELECT s.kind, -- text: device, case or branch
  s.device, -- text null: the device model; null of a branch
  s.case_id AS "case", -- text null: of a case
  s.branch, -- text: whose runs tell it no more
  v.commit_id AS "commit", -- text null: of the last run that did
  r.uuid AS run, -- text key2: that run
  r.time_ms, -- integer key1: when it began
  s.runs, -- integer: that came since, which would have told it
  printf('No data of %s since %s, %d runs', CASE s.kind
      WHEN 'case' THEN s.case_id || ' on ' || s.device WHEN 'device' THEN s.device
      ELSE 'branch ' || s.branch END,
    coalesce('commit ' || substr(v.commit_id, 1, 12), 'run ' || r.uuid), s.runs)
    AS text, -- text: the same in a sentence
  coalesce(s.case_id, '') AS place -- text key3 hidden: among those of one run
FROM silence s CROSS JOIN run r ON r.id = s.run_id LEFT JOIN revision v ON v.id = r.revision_id
WHERE (:device IS NULL OR s.device = :device)
  AND (:after1 IS NULL OR
    (r.time_ms, r.uuid, coalesce(s.case_id, '')) < (:after1, :after2, :after3))
ORDER BY r.time_ms DESC, r.uuid DESC, coalesce(s.case_id, '') DESC LIMIT :limit
