-- trend_row:
-- A point of a case, or the newest of a bucket with what the parameters say of all of its points.
SELECT e.time_ms, -- integer: of the run
  :n AS n, -- integer: points in the bucket; 1: a point of its own
  :p50_ns AS p50_ns, -- number: of a bucket the median
  :min_ns AS min_ns, -- number: the lowest of the bucket
  :max_ns AS max_ns, -- number: the highest of the bucket
  e.p50_lo_ns, -- number null: confidence interval of p50
  e.p50_hi_ns, -- number null: the same
  e.p10_ns, -- number null: of the samples
  e.p90_ns, -- number null: the same
  e.control_ns, -- number null: of the control kernel
  e.baseline_p50_ns, -- number null: of the baseline in the same run
  e.rel_err, -- number null: relative error of the verification
  e.vendor_error AS vendor_ratio, -- number null: that error over the vendor's on the same inputs
  e.sm_clock_mhz, -- number null: median of the run
  e.registers, -- integer null: of a thread
  e.shared_bytes, -- integer null: of a block
  e.spill_bytes, -- integer null: of a thread
  e.tflops * e.p50_ns / :p50_ns AS tflops, -- number null: at p50
  e.gbps * e.p50_ns / :p50_ns AS gbps, -- number null: the same
  iif(e.paired, e.ratio, NULL) AS ratio, -- number null extra: over the baseline, from pairs
  :chain AS chain, -- number null extra: ratio to the newest baseline of its part of the chain
  :chain_part AS chain_part, -- integer null extra: 0 is linked to the newest baseline
  :main AS main, -- boolean extra: of the main branch? A bucket has a row of that and one of others
  r.uuid AS run, -- text: the run
  v.commit_id AS "commit", -- text null: of the run
  nullif(r.subject, '') AS subject, -- text null extra: of the commit
  nullif(r.author, '') AS author, -- text null extra: of the commit
  nullif(e.branch, '') AS branch, -- text null: of the run
  iif(e.contract GLOB 'foreign-*', 'foreign', e.verdict) AS verdict, -- verdict: of the case
  nullif(e.kernel, '') AS kernel, -- text null: that was timed
  e.role -- what it makes its series
FROM result e CROSS JOIN run r ON r.id = e.run_id LEFT JOIN revision v ON v.id = r.revision_id
WHERE e.track_id = :track AND e.time_ms = :time AND e.run_id = :run AND e.arm = :arm
