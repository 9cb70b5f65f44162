-- put_result.sql: a result. ?39 is how the baseline of a case was made, NULL where it has none or
-- where this is no row of a case; ?40 is the epoch of the run.
--
-- A baseline changed where it is newer than all that were logged: a run from a branch that is
-- behind brings an old one, which is no change. Only the newest run of a track may log one. Only an
-- accept raises a baseline. A slower one that none made, or the first one of its store, does not
-- follow from what was logged: a runner without the stored baselines began anew.
WITH logged AS (
  SELECT e.baseline_ms, e.baseline_stored_ns AS ns, r.epoch, r.contract
  FROM result e INDEXED BY result_baseline_of_track CROSS JOIN run r ON r.id = e.run_id
  WHERE e.track_id = ?1 AND e.baseline_change IS NOT NULL ORDER BY e.run_id DESC LIMIT 1),
change AS (
  SELECT CASE WHEN l.contract IS NOT ?6 OR ?39 = 'accept-new' THEN 'first'
      WHEN l.epoch <> ?40 THEN 'epoch' WHEN ?38 < l.ns THEN 'lowered'
      WHEN ?39 = 'accept' THEN 'raised' ELSE 'first' END AS kind, l.ns
  FROM (SELECT 1) LEFT JOIN logged l
  WHERE ?39 IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM result n WHERE n.track_id = ?1 AND n.time_ms > ?2)
    AND (l.contract IS NOT ?6 OR (?36 > coalesce(l.baseline_ms, 0) AND ?38 <> l.ns)))
INSERT INTO result (track_id, time_ms, run_id, place_ms, branch, contract, verdict, control_ns, arm,
  role, provider, kernel, p50_ns, p50_lo_ns, p50_hi_ns, p10_ns, p90_ns, tflops, gbps, ceiling,
  sm_clock_mhz, registers, shared_bytes, spill_bytes, rel_err, vendor_error, threshold, ratio,
  ratio_lo, ratio_hi, paired, mde, peer, peer_ratio, baseline_p50_ns, baseline_ms, baseline_commit,
  baseline_stored_ns, baseline_change, baseline_from_ns, reason, peer_lo, peer_hi)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
  ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, coalesce(?31, 0), ?32, coalesce(?33, ''), ?34,
  ?35, ?36, coalesce(?37, ''), ?38, (SELECT kind FROM change),
  (SELECT ns FROM change WHERE kind <> 'first'), coalesce(?41, ''), ?42, ?43)
