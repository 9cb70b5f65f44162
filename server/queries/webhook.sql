-- webhook: what a target was told of, and what there is to tell.
SELECT coalesce((SELECT value FROM meta WHERE key = 'webhook ' || :target), -1) AS event_id,
  (SELECT value FROM meta WHERE key = 'silences ' || :target) AS silences,
  (SELECT coalesce(max(id), 0) FROM alert_event) AS newest_event,
  (SELECT coalesce(max(id), 0) FROM run) AS newest_run
