-- views.sql: what people ask a history for. The views are made anew with each upgrade.

-- Each verified time, and each of another tool (contract foreign-TOOL), oldest first where you say ORDER BY time_ms.
CREATE VIEW trend AS
SELECT t.case_id, t.device, e.provider, e.role, e.contract,
  datetime(e.time_ms / 1000, 'unixepoch') AS time, e.time_ms, e.branch, v.commit_id, r.subject,
  r.author, r.uuid AS run, e.verdict, e.p50_ns, e.p50_lo_ns, e.p50_hi_ns, e.p10_ns, e.p90_ns,
  e.baseline_p50_ns, e.ratio, e.tflops, e.gbps, e.control_ns, e.rel_err, e.sm_clock_mhz,
  e.registers, e.shared_bytes, e.spill_bytes, e.kernel
FROM result e JOIN track t ON t.id = e.track_id JOIN run r ON r.id = e.run_id
  LEFT JOIN revision v ON v.id = r.revision_id
WHERE e.p50_ns IS NOT NULL;

-- The newest result of each case on each device model and branch: of the latest commit, by its place
-- in the history, and of that the last run. linked: the commit's parent is known, else its time is
-- its place.
CREATE VIEW newest AS
SELECT t.case_id, t.op, t.dtype, t.device, t.kind, e.branch,
  datetime(e.time_ms / 1000, 'unixepoch') AS time, e.time_ms, v.commit_id,
  EXISTS (SELECT 1 FROM revision p WHERE p.commit_id = v.parent) AS linked, r.subject, r.author,
  r.uuid AS run, e.verdict, e.reason, e.provider, e.contract, e.p50_ns, e.baseline_p50_ns, e.ratio,
  e.ratio_lo, e.ratio_hi, e.mde, e.threshold, e.peer, e.peer_ratio, e.tflops, e.gbps, e.ceiling,
  e.rel_err, e.control_ns
FROM (SELECT DISTINCT track_id, branch FROM result WHERE arm = 0) n
  JOIN result e ON e.track_id = n.track_id AND e.arm = 0 AND e.run_id =
    (SELECT o.run_id FROM result o WHERE o.track_id = n.track_id AND o.branch = n.branch
       AND o.arm = 0 ORDER BY o.place_ms DESC, o.time_ms DESC, o.run_id DESC LIMIT 1)
  JOIN track t ON t.id = e.track_id JOIN run r ON r.id = e.run_id
  LEFT JOIN revision v ON v.id = r.revision_id;

-- The lowest verified time of each library, of all branches.
CREATE VIEW leader AS
SELECT t.case_id, t.device, e.provider, e.role, e.contract, e.p50_ns, e.tflops, e.gbps,
  datetime(e.time_ms / 1000, 'unixepoch') AS time, e.time_ms, e.branch, v.commit_id, r.subject,
  r.author, r.uuid AS run, e.kernel
FROM (SELECT track_id, provider, contract, min(p50_ns) AS p50_ns FROM result
    WHERE p50_ns IS NOT NULL GROUP BY track_id, provider, contract) l
  JOIN result e ON e.track_id = l.track_id AND e.provider = l.provider
    AND e.contract = l.contract AND e.p50_ns = l.p50_ns
  JOIN track t ON t.id = e.track_id JOIN run r ON r.id = e.run_id
  LEFT JOIN revision v ON v.id = r.revision_id;

-- Runs that were compared with a newer baseline than all before them.
CREATE VIEW baseline_change AS
SELECT t.case_id, t.device, datetime(e.time_ms / 1000, 'unixepoch') AS time, e.time_ms, e.branch,
  r.uuid AS run, e.baseline_change AS kind, e.baseline_from_ns AS from_ns,
  e.baseline_stored_ns AS to_ns, e.baseline_commit AS commit_id, e.run_id, e.track_id
FROM result e JOIN track t ON t.id = e.track_id JOIN run r ON r.id = e.run_id
WHERE e.baseline_change IS NOT NULL;
