-- alert_log: the steps of an alert, as a JSON text.
SELECT json_group_array(json_object('time_ms', time_ms, 'who', who, 'from', from_state,
  'to', to_state, 'reason', reason)) AS log
FROM (SELECT * FROM alert_event WHERE alert_id IN (SELECT value FROM json_each(:ids)) ORDER BY id)
