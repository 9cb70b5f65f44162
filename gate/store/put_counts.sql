-- put_counts.sql: what the cases of a run say of it together. Means are geometric.
UPDATE run SET (n_pass, n_regression, n_improvement, n_wrong, n_no_verdict, n_environment,
  control_ns, vendor_ratio, n_vendor) = (
  SELECT sum(verdict = 'pass'), sum(verdict = 'regression'), sum(verdict = 'improvement'),
    sum(verdict = 'wrong'), sum(verdict = 'no-verdict'), sum(verdict = 'environment'),
    exp(avg(ln(control_ns))), exp(avg(ln(peer_ratio))), count(peer_ratio)
  FROM result WHERE run_id = ?1 AND arm = 0)
WHERE id = ?1 AND n_cases > 0
