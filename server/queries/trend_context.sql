-- trend_context: what stands beside the points of a case: one row of JSON texts. With :branch only
-- what runs of that branch brought.
WITH RECURSIVE name(epoch) AS (
  SELECT min(epoch) FROM run WHERE device = :device AND epoch > '' UNION ALL
  SELECT (SELECT min(r.epoch) FROM run r WHERE r.device = :device AND r.epoch > n.epoch)
  FROM name n WHERE n.epoch IS NOT NULL),
span(epoch, first_ms, last_ms) AS (
  SELECT epoch, (SELECT min(r.time_ms) FROM run r WHERE r.device = :device AND r.epoch = n.epoch),
    (SELECT max(r.time_ms) FROM run r WHERE r.device = :device AND r.epoch = n.epoch)
  FROM name n WHERE n.epoch IS NOT NULL),
-- What lies apart from all others is one stretch, of which the first run is enough.
mixed(epoch, to_ms) AS (SELECT epoch, iif(
    max(last_ms) OVER (ORDER BY first_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
      >= first_ms OR lead(first_ms) OVER (ORDER BY first_ms) <= last_ms, last_ms, first_ms)
  FROM span),
step(time_ms, id, epoch, before) AS (
  SELECT r.time_ms, r.id, r.epoch, lag(r.epoch) OVER (ORDER BY r.time_ms, r.id)
  FROM mixed m CROSS JOIN run r ON r.device = :device AND r.epoch = m.epoch
    AND r.time_ms <= m.to_ms),
track_of(id) AS (SELECT id FROM track WHERE case_id = :case AND device = :device),
-- Changes of level by the alerts, but for those that later runs did not bear out; and the returns.
change AS (
  SELECT id, time_ms, run_id, before_run_id, before_value AS before_ns, after_value AS after_ns,
    change
  FROM alert WHERE track_id = (SELECT id FROM track_of) AND kind IN ('regression', 'improvement')
    AND NOT (state = 'fixed' AND who = 'gate-server' AND end_run_id IS NULL)
  UNION ALL
  SELECT 0, r.time_ms, r.id, NULL, a.after_value, a.before_value, 1 / (1 + a.change) - 1
  FROM alert a CROSS JOIN run r ON r.id = a.end_run_id
  WHERE a.track_id = (SELECT id FROM track_of) AND a.kind IN ('regression', 'improvement')),
event AS (
  SELECT * FROM (SELECT g.time_ms, g.run_id,
      iif(g.baseline_change = 'raised', 'accepted', 'baseline') AS kind,
      iif(g.baseline_change = 'first', 'first baseline', printf('%sbaseline %.2f %% %s%s',
        iif(g.baseline_change = 'raised', 'accepted: ', ''),
        coalesce(abs(100 * (g.baseline_stored_ns / g.baseline_from_ns - 1)), 0),
        iif(g.baseline_stored_ns > g.baseline_from_ns, 'slower', 'faster'),
        iif(g.baseline_change = 'epoch', ', in another epoch', ''))) AS text,
      nullif(g.baseline_commit, '') AS commit_id, nullif(w.subject, '') AS subject,
      nullif(w.author, '') AS author
    FROM result g INDEXED BY result_baseline_of_track
      LEFT JOIN run w ON w.id = (SELECT n.id FROM run n WHERE n.revision_id =
        (SELECT o.id FROM revision o WHERE o.commit_id = g.baseline_commit)
        ORDER BY n.time_ms LIMIT 1)
    WHERE g.track_id = (SELECT id FROM track_of) AND g.baseline_change IS NOT NULL
      AND (:branch IS NULL OR g.branch = :branch)
    ORDER BY g.run_id DESC LIMIT 200)
  UNION ALL
  SELECT * FROM (SELECT w.time_ms, w.run_id, 'wrong', coalesce(nullif(substr(w.reason, 1, 255), ''),
      'the result was wrong, and so never timed'), v.commit_id, nullif(r.subject, ''),
      nullif(r.author, '')
    FROM result w INDEXED BY result_wrong CROSS JOIN run r ON r.id = w.run_id
      LEFT JOIN revision v ON v.id = r.revision_id
    WHERE w.track_id = (SELECT id FROM track_of) AND w.verdict = 'wrong' AND w.arm = 0
      AND (:branch IS NULL OR w.branch = :branch)
    ORDER BY w.place_ms DESC, w.time_ms DESC, w.run_id DESC LIMIT 100))
SELECT
  (SELECT json_group_array(json_object('from_ms', e.time_ms, 'epoch', e.epoch)) FROM
    (SELECT * FROM step WHERE before IS NOT epoch ORDER BY time_ms, id) e) AS epochs,
  (SELECT json_group_array(json_object('id', c.id, 'time_ms', c.time_ms, 'run', r.uuid,
      'commit', v.commit_id, 'subject', nullif(r.subject, ''), 'author', nullif(r.author, ''),
      'parent', nullif(v.parent, ''), 'before_commit', w.commit_id,
      'before_subject', nullif(b.subject, ''), 'before_author', nullif(b.author, ''),
      'before_ns', nullif(c.before_ns, 0), 'after_ns', nullif(c.after_ns, 0), 'change', c.change,
      'kind', iif(c.change > 0, 'regression', 'improvement')))
    FROM (SELECT * FROM change ORDER BY time_ms, id) c CROSS JOIN run r ON r.id = c.run_id
      LEFT JOIN revision v ON v.id = r.revision_id LEFT JOIN run b ON b.id = c.before_run_id
      LEFT JOIN revision w ON w.id = b.revision_id
    WHERE :branch IS NULL OR r.branch = :branch) AS change_points,
  (SELECT json_group_array(json_object('time_ms', e.time_ms, 'kind', e.kind, 'text', e.text,
      'commit', e.commit_id, 'subject', e.subject, 'author', e.author, 'run', r.uuid))
    FROM (SELECT * FROM event ORDER BY time_ms, kind) e CROSS JOIN run r ON r.id = e.run_id)
    AS events,
  (SELECT json_object('p50_ns', e.baseline_stored_ns, 'commit', nullif(e.baseline_commit, ''),
      'time_ms', e.baseline_ms)
    FROM track_of t CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.run_id = coalesce(
      (SELECT n.run_id FROM result n INDEXED BY result_by_branch WHERE n.track_id = t.id
         AND n.branch = :main_branch AND n.arm = 0 AND n.baseline_ms IS NOT NULL
       ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1),
      (SELECT n.run_id FROM result n WHERE n.track_id = t.id AND n.arm = 0
         AND n.baseline_ms IS NOT NULL ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1)))
    AS baseline
