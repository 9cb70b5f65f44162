-- coverage:
SELECT r.device, -- text: the device model
  c.value ->> 'op' AS op, -- text: the op of the cases
  sum(c.value ->> 'runs') AS runs, -- integer: that verified cases of the op
  sum(c.value ->> 'cases') AS cases, -- integer: verified, over all runs
  min(9007199254740991, sum(c.value ->> 'checks')) AS checks, -- integer: comparisons of a result
  min(9007199254740991, sum(c.value ->> 'shapes')) AS shapes, -- integer: checks of other shapes
  min(9007199254740991, sum(c.value ->> 'layouts')) AS layouts, -- integer: checks of other layouts
  min(9007199254740991, sum(c.value ->> 'launches')) AS launches, -- integer: launches compared
  min(9007199254740991, sum(c.value ->> 'skipped')) AS skipped, -- integer: checks left out
  max(c.value ->> 'values') AS "values", -- integer: most classes of values in a case
  max(c.value ->> 'pairs') AS pairs, -- integer: most pairs of layouts in a case
  max(c.value ->> 'pairs_of') AS pairs_of -- integer: that there are
FROM run r CROSS JOIN json_each(r.covered) c
WHERE r.covered IS NOT NULL AND (:device IS NULL OR r.device = :device)
GROUP BY 1, 2 ORDER BY 1, 2
