-- put_run.sql: the row of a run, without what its cases say. ?23 is what verification of each case
-- covered, an array of ["op", checks, ...]; kept is, for each op, a sum or the most of one case. ?24
-- is the document of a calibration, without its cases; kept is what it could tell.
INSERT INTO run (uuid, time_ms, revision_id, branch, subject, author, dirty, suite, device,
  device_name, host, gpu, machine, contract, epoch, verdict, exit_code, n_cases, n_pass,
  n_regression, n_improvement, n_wrong, n_no_verdict, n_environment, n_vendor, control_drift,
  place_ms, change, job, covered, calibration)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 0, 0, 0, 0,
  0, 0, 0, ?19, ?20, ?21, ?22,
  (SELECT nullif(json_group_array(json(o)), '[]') FROM (
    SELECT json_object('op', c.value ->> 0, 'runs', 1, 'cases', count(*),
      'checks', sum(c.value ->> 1), 'shapes', sum(c.value ->> 2), 'layouts', sum(c.value ->> 3),
      'launches', sum(c.value ->> 4), 'skipped', sum(c.value ->> 5), 'values', max(c.value ->> 6),
      'pairs', max(c.value ->> 7), 'pairs_of', max(c.value ->> 8)) AS o
    FROM json_each(?23) c GROUP BY c.value ->> 0 ORDER BY min(c.key))),
  iif(?24 IS NULL, NULL, (SELECT json_object('threshold', ?24 ->> '$.policy.threshold',
      'processes', ?24 ->> '$.calibration.processes', 'cases', json_group_array(json_object(
        'id', c.value ->> 'id', 'mde', c.value ->> 'mde',
        'resolved', json(iif(c.value ->> 'resolved', 'true', 'false')),
        'injected', json((SELECT json_group_array(json_object('share', i.value ->> 'share',
            'decisions', i.value ->> 'decisions', 'red', i.value ->> 'red',
            'pass', i.value ->> 'pass', 'no_verdict', i.value ->> 'no_verdict'))
          FROM json_each(c.value, '$.injected') i)))))
    FROM json_each(?24, '$.calibration.cases') c)))
