-- alert_groups: the groups that the steps behind the event :after opened or closed alerts of.
WITH moved AS (
  SELECT max(a.id) AS alert_id, max(r.id) AS run_id, r.revision_id AS at, b.revision_id AS before,
    sum(v.to_state IN ('new', 'acknowledged')
      AND coalesce(v.from_state, '') NOT IN ('new', 'acknowledged')) AS n_opened,
    sum(coalesce(v.from_state, '') IN ('new', 'acknowledged')
      AND v.to_state NOT IN ('new', 'acknowledged')) AS n_closed
  FROM alert_event v CROSS JOIN alert a ON a.id = v.alert_id
    CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id
  WHERE v.id > CAST(:after AS INTEGER)
  GROUP BY r.revision_id, coalesce(b.revision_id, 0), iif(r.revision_id IS NULL, r.id, 0)
  HAVING n_opened + n_closed > 0 ORDER BY min(v.id) LIMIT 11)
SELECT m.alert_id, m.n_opened, m.n_closed,
  (SELECT count(*) FROM alert x INDEXED BY alert_by_run LEFT JOIN run y ON y.id = x.before_run_id
   WHERE x.run_id IN (SELECT g.id FROM run g WHERE g.revision_id = m.at UNION ALL SELECT m.run_id)
     AND (m.at IS NULL OR y.revision_id IS m.before) AND x.state IN ('new', 'acknowledged'))
    AS n_open
FROM moved m
