-- branches: limit 200 1000
WITH RECURSIVE name(branch) AS (SELECT min(branch) FROM run UNION ALL
  SELECT (SELECT min(r.branch) FROM run r WHERE r.branch > n.branch) FROM name n
  WHERE n.branch IS NOT NULL)
SELECT nullif(n.branch, '') AS branch, -- text null: as runs name it
  n.branch = :main_branch AS main, -- boolean: it is the main branch of the server
  r.uuid AS "newest.run", -- text: the newest run of its latest commit
  r.time_ms AS "newest.time_ms" -- integer: of that run
FROM name n CROSS JOIN run r ON r.id = (SELECT o.id FROM run o WHERE o.branch = n.branch
  ORDER BY o.place_ms DESC, o.time_ms DESC, o.uuid DESC LIMIT 1)
ORDER BY r.time_ms DESC, n.branch LIMIT :limit;

SELECT :main_branch AS main_branch, -- text: the main branch of the server
  :commit_url AS commit_url -- text null: of a commit on the forge, with %s for its hash
