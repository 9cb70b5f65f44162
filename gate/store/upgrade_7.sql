-- upgrade_7.sql: the index by which detection reads has all that it reads, red results have one of
-- their own, and no list of alerts uses these.
DROP INDEX result_by_branch;
CREATE INDEX result_by_branch ON result (track_id, branch, place_ms, time_ms, run_id, provider,
  contract, verdict, p50_ns, control_ns, baseline_p50_ns, paired, ratio, baseline_ms,
  baseline_commit, rel_err, vendor_error) WHERE arm = 0;
CREATE INDEX result_red ON result (track_id, branch, place_ms, time_ms, run_id)
  WHERE arm = 0 AND verdict IN ('regression', 'wrong');
DROP INDEX alert_by_kind_state;
DROP INDEX alert_by_kind;
DROP INDEX alert_by_device;
DROP INDEX alert_counts;
