-- coverage:
-- Runs that covered the same are read once.
WITH part(device, n, v) AS (
  SELECT r.device, r.n, c.value FROM (SELECT device, covered, count(*) AS n FROM run
    WHERE covered IS NOT NULL AND (:device IS NULL OR device = :device) GROUP BY 1, 2) r
  CROSS JOIN json_each(r.covered) c)
SELECT p.device, -- text: the device model
  p.v ->> 'op' AS op, -- text: the op of the cases
  sum(p.n * (p.v ->> 'runs')) AS runs, -- integer: that verified cases of the op
  sum(p.n * (p.v ->> 'cases')) AS cases, -- integer: verified, over all runs
  min(9007199254740991, sum(p.n * (p.v ->> 'checks'))) AS checks, -- integer: comparisons of a result
  min(9007199254740991, sum(p.n * (p.v ->> 'shapes'))) AS shapes, -- integer: checks of other shapes
  min(9007199254740991, sum(p.n * (p.v ->> 'layouts'))) AS layouts, -- integer: checks of other layouts
  min(9007199254740991, sum(p.n * (p.v ->> 'launches'))) AS launches, -- integer: launches compared
  min(9007199254740991, sum(p.n * (p.v ->> 'skipped'))) AS skipped, -- integer: checks left out
  max(p.v ->> 'values') AS "values", -- integer: most classes of values in a case
  max(p.v ->> 'pairs') AS pairs, -- integer: most pairs of layouts in a case
  max(p.v ->> 'pairs_of') AS pairs_of -- integer: that there are
FROM part p GROUP BY 1, 2 ORDER BY 1, 2
