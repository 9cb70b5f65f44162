-- alert_counts: how many causes are open (alerts that are no improvement, by their kind and group)
-- and alerts; and what the database is called.
SELECT (SELECT count(*) FROM (SELECT DISTINCT a.kind, r.revision_id,
    iif(r.revision_id IS NULL, r.id, b.revision_id)
  FROM alert a CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id
  WHERE a.state IN ('new', 'acknowledged') AND a.kind <> 'improvement'
    AND (:device IS NULL OR a.device = :device) AND (:case IS NULL
      OR a.track_id IN (SELECT o.id FROM track o WHERE o.case_id = :case)))) AS causes,
  (SELECT count(*) FROM alert WHERE state = 'new') AS new,
  (SELECT count(*) FROM alert WHERE state = 'acknowledged') AS acknowledged,
  (SELECT value FROM meta WHERE key = 'identity') AS identity
