-- alert_event: the first step of any alert behind the event :after, and as a JSON text.
SELECT id, alert_id, json_object('id', id, 'time_ms', time_ms, 'who', who, 'from', from_state,
  'to', to_state, 'reason', reason) AS event
FROM alert_event WHERE id > CAST(:after AS INTEGER) ORDER BY id LIMIT 1
