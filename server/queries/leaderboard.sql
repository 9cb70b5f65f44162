-- leaders: limit 1000 5000
-- From one library of a case to the next, and to the lowest time of each, by an index: nothing
-- between is walked through.
WITH RECURSIVE asked(track_id, case_id, device, contract) AS (
 SELECT id, case_id, device, contract FROM (
  SELECT t.id, t.case_id, t.device, (SELECT e.contract FROM result e WHERE e.track_id = t.id
   AND e.p50_ns IS NOT NULL ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1) AS contract
  FROM track t WHERE t.kind <> 'foreign' AND (:device IS NULL OR t.device = :device) AND t.case_id >= coalesce(:after1, '')
   AND (:after1 IS NULL OR (t.case_id, t.device) >= (:after1, :after2)) ORDER BY t.case_id,
     t.device) n
 WHERE iif(:branch IS NULL, EXISTS (SELECT 1 FROM result b WHERE b.track_id = n.id
   AND b.contract = n.contract AND b.p50_ns IS NOT NULL),
  EXISTS (SELECT 1 FROM result b WHERE b.track_id = n.id AND b.contract = n.contract
   AND b.branch = :branch AND b.p50_ns IS NOT NULL))
 ORDER BY case_id, device LIMIT :limit + 1),
library(track_id, case_id, device, contract, provider) AS (
 SELECT a.track_id, a.case_id, a.device, a.contract, (SELECT min(e.provider) FROM result e
  WHERE e.track_id = a.track_id AND e.contract = a.contract AND e.p50_ns IS NOT NULL)
 FROM asked a UNION ALL
 SELECT l.track_id, l.case_id, l.device, l.contract, (SELECT min(e.provider) FROM result e
  WHERE e.track_id = l.track_id AND e.contract = l.contract AND e.p50_ns IS NOT NULL
   AND e.provider > l.provider)
 FROM library l WHERE l.provider IS NOT NULL),
lowest AS MATERIALIZED (SELECT *, iif(:branch IS NULL, (SELECT min(b.p50_ns) FROM result b
   WHERE b.track_id = l.track_id AND b.contract = l.contract AND b.provider = l.provider
    AND b.p50_ns IS NOT NULL),
  (SELECT min(b.p50_ns) FROM result b WHERE b.track_id = l.track_id AND b.contract = l.contract
    AND b.branch = :branch AND b.provider = l.provider AND b.p50_ns IS NOT NULL)) AS p50_ns,
 iif(:branch IS NULL, (SELECT w.run_id FROM result w WHERE w.track_id = l.track_id AND w.arm = 0
   ORDER BY w.time_ms DESC, w.run_id DESC LIMIT 1),
  (SELECT w.run_id FROM result w INDEXED BY result_by_branch WHERE w.track_id = l.track_id
   AND w.branch = :branch AND w.arm = 0
   ORDER BY w.place_ms DESC, w.time_ms DESC, w.run_id DESC LIMIT 1)) AS newest
 FROM library l WHERE l.provider IS NOT NULL)
SELECT l.case_id AS "case", -- text key1: the case
  l.device, -- text key2: the device model
  l.provider, -- text key4: whose kernel it is
  e.role, -- role: the library under test, or one beside it
  e.kernel, -- text: its name
  l.contract, -- text: the rules of measuring; the newest one of the case
  v.commit_id AS "commit", -- text null: of the run with the lowest time
  nullif(r.subject, '') AS subject, -- text null: first line of that commit's message
  nullif(r.author, '') AS author, -- text null: of that commit
  nullif(r.branch, '') AS branch, -- text null: of that run
  r.uuid AS run, -- text: the run with the lowest time
  e.time_ms, -- integer: of that run
  e.p50_ns, -- number key3: the lowest verified p50
  e.tflops, -- number null: at that time
  e.gbps, -- number null: the same
  m.uuid AS newest_run, -- text null: the newest run of the case, if it timed this provider
  n.p50_ns AS newest_p50_ns, -- number null: in that run
  e.role = 'candidate' AND coalesce((SELECT w.verdict = 'wrong' FROM result w
    WHERE w.run_id = l.newest AND w.track_id = l.track_id AND w.arm = 0), 0)
    AS wrong -- boolean: it is, in the newest run of the case; its times are of before
FROM lowest l
CROSS JOIN result e INDEXED BY result_by_run ON e.track_id = l.track_id
 AND (e.run_id, e.arm) = (SELECT b.run_id, b.arm FROM result b INDEXED BY result_lowest
  WHERE b.track_id = l.track_id AND b.contract = l.contract AND b.provider = l.provider
   AND b.p50_ns = l.p50_ns AND b.p50_ns IS NOT NULL AND (:branch IS NULL OR b.branch = :branch)
  ORDER BY b.time_ms, b.run_id, b.arm LIMIT 1)
CROSS JOIN run r ON r.id = e.run_id LEFT JOIN revision v ON v.id = r.revision_id
LEFT JOIN result n ON n.run_id = l.newest AND n.track_id = l.track_id AND n.arm =
 (SELECT o.arm FROM result o INDEXED BY result_by_run WHERE o.run_id = l.newest AND o.track_id =
   l.track_id
  AND o.provider = l.provider AND o.contract = l.contract AND o.p50_ns IS NOT NULL
  ORDER BY o.p50_ns LIMIT 1)
LEFT JOIN run m ON m.id = n.run_id
WHERE :after1 IS NULL OR (l.case_id, l.device, e.p50_ns, l.provider) > (:after1, :after2, :after3,
  :after4)
ORDER BY l.case_id, l.device, e.p50_ns, l.provider LIMIT :limit
