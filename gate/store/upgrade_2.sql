-- upgrade_2.sql: fills the tables of schema.sql from those of version 1, then drops these. It makes
-- the tables of today, whatever their version: a column that is added to schema.sql later must have
-- a default, or a value here.
--
-- Version 1 kept some figures of the newest result of a branch alone (mde, ceiling, peer, reason);
-- older results do not get them. The stored baseline is known where it changed, and of the newest.
INSERT INTO meta (key, value)
SELECT 'identity', value FROM identity
UNION ALL SELECT 'copy', copy FROM identity
UNION ALL SELECT 'n_writes', n_writes FROM identity
UNION ALL SELECT 'watch_run', run_id FROM watch
UNION ALL SELECT 'watch_track', track_id FROM watch
UNION ALL SELECT 'webhook ' || target, event_id FROM webhook;

INSERT INTO revision (id, commit_id, parent, merge_base, first_ms, place_ms)
SELECT id, commit_id, parent, '', first_ms, -1 FROM old_revision;

INSERT INTO run (id, uuid, time_ms, revision_id, branch, subject, author, dirty, suite, device,
  device_name, host, gpu, machine, contract, epoch, verdict, exit_code, n_cases, n_pass,
  n_regression, n_improvement, n_wrong, n_no_verdict, n_environment, control_ns, control_drift,
  vendor_ratio, n_vendor, covered, calibration)
SELECT r.id, r.uuid, r.time_ms, r.revision_id, r.branch, r.subject, r.author, r.dirty, r.suite,
  d.model, r.device_name, r.host, coalesce(m.gpu, ''), coalesce(m.name, ''), r.contract, r.epoch,
  r.verdict, r.exit_code, r.n_cases, r.n_pass, r.n_regression, r.n_improvement, r.n_wrong,
  r.n_no_verdict, r.n_environment, r.control_ns, r.control_drift, r.vendor_ratio, r.n_vendor,
  -- all that was covered so far stands at the last run that added to it
  (SELECT json_group_array(json_object('op', v.op, 'runs', v.runs, 'cases', v.cases,
     'checks', v.checks, 'shapes', v.shapes, 'layouts', v.layouts, 'launches', v.launches,
     'skipped', v.skipped, 'values', v.most_values, 'pairs', v.most_pairs,
     'pairs_of', v.pairs_of)) FROM coverage v
   WHERE v.run_id = r.id AND v.device_id = r.device_id HAVING count(*) > 0),
  (SELECT json_object('threshold', b.threshold, 'processes', b.processes, 'cases', json((
     SELECT json_group_array(json_object('id', k.name, 'mde', k.mde,
       'resolved', json(iif(k.resolved, 'true', 'false')), 'injected', json((
         SELECT json_group_array(json_object('share', i.share, 'decisions', i.decisions,
           'red', i.red, 'pass', i.pass, 'no_verdict', i.no_verdict))
         FROM (SELECT * FROM injected j WHERE j.run_id = k.run_id AND j.place = k.place
           ORDER BY j.step) i))))
     FROM (SELECT * FROM calibrated l WHERE l.run_id = b.run_id ORDER BY l.place) k)))
   FROM calibration b WHERE b.run_id = r.id)
FROM old_run r CROSS JOIN device d ON d.id = r.device_id
  LEFT JOIN machine m ON m.id = r.machine_id;

INSERT INTO track (id, case_id, op, dtype, device, kind, n_runs)
SELECT t.id, c.name, c.op, c.dtype, d.model,
  iif(EXISTS (SELECT 1 FROM series s CROSS JOIN point p ON p.series_id = s.id
      WHERE s.track_id = t.id AND p.ratio > 0), 'paired', 'unpaired'),
  t.n_runs
FROM old_track t CROSS JOIN test_case c ON c.id = t.case_id
  CROSS JOIN device d ON d.id = t.device_id;

INSERT INTO result (track_id, time_ms, run_id, arm, branch, contract, provider, role, verdict,
  p50_ns, p50_lo_ns, p50_hi_ns, ratio, ratio_lo, ratio_hi, paired, threshold, mde, tflops, gbps,
  ceiling, p10_ns, p90_ns, control_ns, rel_err, vendor_error, peer, peer_ratio, sm_clock_mhz,
  registers, shared_bytes, spill_bytes, baseline_p50_ns, baseline_ms, baseline_commit,
  baseline_stored_ns, baseline_change, baseline_from_ns, kernel, reason)
SELECT e.track_id, r.time_ms, r.id, 0, r.branch, r.contract, coalesce(s.provider, ''), 'candidate',
  CASE e.verdict WHEN 0 THEN 'pass' WHEN 1 THEN 'regression' WHEN 2 THEN 'improvement'
    WHEN 3 THEN 'wrong' WHEN 4 THEN 'no-verdict' ELSE 'environment' END,
  coalesce(n.p50_ns, p.p50_ps / 1e3), coalesce(n.p50_lo_ns, p.p50_lo_ps / 1e3),
  coalesce(n.p50_hi_ns, p.p50_hi_ps / 1e3), e.ratio, e.ratio_lo, e.ratio_hi,
  p.ratio IS NOT NULL, e.threshold, n.mde, nullif(s.flops / p.p50_ps, 0),
  nullif(s.bytes / p.p50_ps * 1e3, 0), n.ceiling, p.p10_ps / 1e3, p.p90_ps / 1e3,
  coalesce(n.control_ns, p.control_ps / 1e3), coalesce(p.rel_err, n.rel_err), p.vendor_ppm / 1e6,
  coalesce(n.peer, ''), n.peer_ratio, p.sm_clock_khz / 1e3, p.registers, p.shared_bytes,
  p.spill_bytes, coalesce(n.baseline_p50_ns, p.baseline_p50_ps / 1e3),
  coalesce(b.stored_ms, p.baseline_ms), coalesce(b.commit_id, g.commit_id, w.commit_id, ''),
  coalesce(b.p50_ns, g.to_ns), g.kind, g.from_ns, coalesce(k.name, ''),
  coalesce(n.reason, e.evidence, '')
FROM old_result e CROSS JOIN old_run r ON r.id = e.run_id
  LEFT JOIN series s ON s.id = e.series_id
  LEFT JOIN point p ON p.series_id = e.series_id AND p.time_ms = r.time_ms AND p.run_id = r.id
    AND p.arm = e.arm
  LEFT JOIN kernel k ON k.id = p.kernel_id
  LEFT JOIN newest_result n ON n.track_id = e.track_id AND n.branch = r.branch AND n.run_id = r.id
  LEFT JOIN baseline b ON b.track_id = e.track_id AND b.run_id = r.id
  LEFT JOIN (SELECT track_id, run_id, kind, from_ns, to_ns, commit_id FROM baseline_log
    GROUP BY track_id, run_id HAVING id = max(id)) g
    ON g.track_id = e.track_id AND g.run_id = r.id
  LEFT JOIN old_revision w ON w.id = p.baseline_revision_id;

INSERT INTO result (track_id, time_ms, run_id, arm, branch, contract, provider, role, verdict,
  p50_ns, p50_lo_ns, p50_hi_ns, paired, tflops, gbps, p10_ns, p90_ns, control_ns, rel_err,
  vendor_error, peer, sm_clock_mhz, registers, shared_bytes, spill_bytes, baseline_commit, kernel,
  reason)
SELECT s.track_id, p.time_ms, p.run_id, p.arm + 1, r.branch, s.contract, s.provider,
  iif(p.role = 0, 'candidate', 'provider'),
  CASE p.verdict WHEN 0 THEN 'pass' WHEN 1 THEN 'regression' WHEN 2 THEN 'improvement'
    WHEN 3 THEN 'wrong' WHEN 4 THEN 'no-verdict' ELSE 'environment' END,
  p.p50_ps / 1e3, p.p50_lo_ps / 1e3, p.p50_hi_ps / 1e3, 0, nullif(s.flops / p.p50_ps, 0),
  nullif(s.bytes / p.p50_ps * 1e3, 0), p.p10_ps / 1e3, p.p90_ps / 1e3, p.control_ps / 1e3,
  p.rel_err, p.vendor_ppm / 1e6, '', p.sm_clock_khz / 1e3, p.registers, p.shared_bytes,
  p.spill_bytes, '', k.name, ''
FROM series s CROSS JOIN point p ON p.series_id = s.id CROSS JOIN old_run r ON r.id = p.run_id
  CROSS JOIN kernel k ON k.id = p.kernel_id
WHERE NOT EXISTS (SELECT 1 FROM old_result e WHERE e.run_id = p.run_id AND e.track_id = s.track_id
  AND e.series_id = p.series_id AND e.arm = p.arm);

INSERT INTO alert (id, track_id, device, provider, contract, kind, state, time_ms, run_id,
  before_run_id, before_value, after_value, change, reason, who, updated_ms, closed_ms, end_run_id,
  by_vendor, confirmed, assignee)
SELECT a.id, a.track_id, d.model, coalesce(s.provider, ''), coalesce(s.contract, ''), a.kind,
  a.state, a.time_ms, a.run_id, a.before_run_id, a.before_value, a.after_value, a.change, a.reason,
  a.who, a.updated_ms, a.closed_ms, a.end_run_id, a.by_vendor, a.confirmed, a.assignee
FROM old_alert a CROSS JOIN device d ON d.id = a.device_id LEFT JOIN series s ON s.id = a.series_id;

DROP TABLE alert_count;
DROP TABLE old_alert;
DROP TABLE webhook;
DROP TABLE watch;
DROP TABLE wrong;
DROP TABLE coverage;
DROP TABLE injected;
DROP TABLE calibrated;
DROP TABLE calibration;
DROP TABLE baseline_log;
DROP TABLE baseline;
DROP TABLE epoch;
DROP TABLE leader;
DROP TABLE newest_result;
DROP TABLE point;
DROP TABLE old_result;
DROP TABLE series;
DROP TABLE kernel;
DROP TABLE old_track;
DROP TABLE test_case;
DROP TABLE old_run;
DROP TABLE old_revision;
DROP TABLE machine;
DROP TABLE device;
DROP TABLE identity;
