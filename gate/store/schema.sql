-- schema.sql: the tables of a history, version 7. views.sql has views for people.
--
-- *_ms are milliseconds since 1970 UTC, *_ns nanoseconds. A ratio is candidate over other. NULL is
-- "not known", and so is '' of a text. The CHECKs are a second line of defence: a document that
-- breaks one is refused whole. 9e999 is infinity. IF NOT EXISTS: upgrade_2.sql leaves these tables
-- as they are.

-- What the file says of itself: identity, copy (another in each copy), n_writes, the place where
-- detection goes on (watch_run, watch_track), what was delivered to a webhook ('webhook ' || URL,
-- 'silences ' || URL).
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- A commit that was measured, or that is a first parent of one. place_ms orders commits: it is the
-- commit's time, or else that of its first run, and above its parent's place (places.sql).
CREATE TABLE revision (
  id INTEGER PRIMARY KEY,
  commit_id TEXT NOT NULL UNIQUE CHECK (length(commit_id) = 40),
  parent TEXT NOT NULL, -- the first one
  merge_base TEXT NOT NULL, -- with the branch that it is to be merged into
  time_ms INTEGER CHECK (time_ms BETWEEN 0 AND 9007199254740991), -- when it was committed
  first_ms INTEGER CHECK (first_ms BETWEEN 0 AND 9007199254740991), -- of its first run
  place_ms INTEGER NOT NULL -- -1: not known yet
) STRICT;
CREATE INDEX revision_by_parent ON revision (parent) WHERE parent <> '';
CREATE INDEX revision_without_place ON revision (id) WHERE place_ms = -1;

-- One row a run, in the order in which they came. The figures at the end are of its cases together.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE CHECK (length(uuid) = 36),
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  place_ms INTEGER NOT NULL DEFAULT 0, -- of its commit; outside of a repository time_ms
  revision_id INTEGER REFERENCES revision (id), -- NULL: outside of a repository
  branch TEXT NOT NULL,
  change TEXT NOT NULL DEFAULT '', -- number of the merge request
  job TEXT NOT NULL DEFAULT '', -- address of the CI job
  subject TEXT NOT NULL,
  author TEXT NOT NULL,
  dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)), -- with changes that the commit does not have
  suite TEXT NOT NULL,
  device TEXT NOT NULL, -- its model
  device_name TEXT NOT NULL,
  host TEXT NOT NULL,
  gpu TEXT NOT NULL,     -- its uuid
  machine TEXT NOT NULL, -- the GPU, or else the host
  contract TEXT NOT NULL,
  epoch TEXT NOT NULL, -- driver, runtime, power limit
  verdict TEXT NOT NULL CHECK (verdict IN ('pass', 'regression', 'improvement', 'wrong',
    'no-verdict', 'environment')),
  exit_code INTEGER NOT NULL,
  n_cases INTEGER NOT NULL,
  n_pass INTEGER NOT NULL,
  n_regression INTEGER NOT NULL,
  n_improvement INTEGER NOT NULL,
  n_wrong INTEGER NOT NULL,
  n_no_verdict INTEGER NOT NULL,
  n_environment INTEGER NOT NULL,
  control_ns REAL CHECK (control_ns > 0 AND control_ns < 9e999), -- geometric mean
  control_drift REAL CHECK (control_drift >= 0 AND control_drift < 9e999),
  vendor_ratio REAL CHECK (vendor_ratio > 0 AND vendor_ratio < 9e999), -- over the best vendor
  n_vendor INTEGER NOT NULL, -- cases that have one
  covered TEXT,    -- by verification: a JSON array of sums, one for each op
  calibration TEXT -- of `gate calibrate`: a JSON object
) STRICT;
CREATE UNIQUE INDEX run_by_time ON run (time_ms, uuid);
CREATE INDEX run_by_device ON run (device, time_ms, uuid);
CREATE INDEX run_by_device_branch ON run (device, branch, time_ms, uuid);
CREATE INDEX run_by_device_epoch ON run (device, epoch, time_ms);
CREATE INDEX run_by_branch ON run (branch, time_ms, uuid);
CREATE INDEX run_newest ON run (device, branch, place_ms, time_ms, uuid);
CREATE INDEX run_newest_of_branch ON run (branch, place_ms, time_ms, uuid);
CREATE INDEX run_by_change ON run (change, time_ms, uuid) WHERE change <> '';
CREATE INDEX run_by_verdict ON run (verdict, time_ms, uuid);
CREATE INDEX run_by_revision ON run (revision_id, time_ms, uuid);
CREATE INDEX run_by_machine ON run (machine, time_ms, uuid);
CREATE INDEX run_by_host ON run (host, time_ms, uuid);
CREATE INDEX run_calibrated ON run (time_ms, id) WHERE calibration IS NOT NULL;

-- The run document as it came, deflated; apart, so that lists do not page through it.
CREATE TABLE IF NOT EXISTS document (
  run_id INTEGER PRIMARY KEY REFERENCES run (id),
  packed BLOB NOT NULL, -- zlib
  n_bytes INTEGER NOT NULL CHECK (n_bytes >= 0), -- unpacked
  sha256 BLOB NOT NULL CHECK (length(sha256) = 32), -- of the bytes as they came
  has_samples INTEGER NOT NULL CHECK (has_samples IN (0, 1)),
  thinned_ms INTEGER CHECK (thinned_ms BETWEEN 0 AND 9007199254740991) -- when they were dropped
) STRICT;
CREATE INDEX IF NOT EXISTS document_with_samples ON document (run_id) WHERE has_samples = 1;

-- A case on a device model. Its kind: results are pairs with a baseline in the same process; or
-- times alone; or another tool measured them.
CREATE TABLE track (
  id INTEGER PRIMARY KEY,
  case_id TEXT NOT NULL,
  op TEXT NOT NULL,
  dtype TEXT NOT NULL,
  device TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('paired', 'unpaired', 'foreign')),
  n_runs INTEGER NOT NULL,
  UNIQUE (case_id, device)
) STRICT;
CREATE INDEX track_by_device ON track (device, case_id);

-- What a run found of a track. Arm 0 is the case's own row: the candidate, whose times are NULL
-- where it was not timed or not right. The others are verified times of other libraries, and have
-- their place in the document plus 1 as arm. branch and contract are the run's, verdict, threshold
-- and control the case's.
CREATE TABLE result (
  track_id INTEGER NOT NULL REFERENCES track (id),
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  run_id INTEGER NOT NULL REFERENCES run (id),
  place_ms INTEGER NOT NULL DEFAULT 0, -- the run's
  arm INTEGER NOT NULL,
  branch TEXT NOT NULL,
  contract TEXT NOT NULL,
  provider TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('candidate', 'provider')),
  verdict TEXT NOT NULL CHECK (verdict IN ('pass', 'regression', 'improvement', 'wrong',
    'no-verdict', 'environment')),
  p50_ns REAL CHECK (p50_ns > 0 AND p50_ns < 9e999),
  p50_lo_ns REAL CHECK (p50_lo_ns > 0 AND p50_lo_ns < 9e999),
  p50_hi_ns REAL CHECK (p50_hi_ns > 0 AND p50_hi_ns < 9e999),
  ratio REAL CHECK (ratio > 0 AND ratio < 9e999), -- over the baseline
  ratio_lo REAL CHECK (ratio_lo > 0 AND ratio_lo < 9e999),
  ratio_hi REAL CHECK (ratio_hi > 0 AND ratio_hi < 9e999),
  paired INTEGER NOT NULL CHECK (paired IN (0, 1)), -- the ratio is of pairs in one process
  threshold REAL CHECK (threshold > 0 AND threshold < 9e999),
  mde REAL CHECK (mde > 0 AND mde < 9e999),
  tflops REAL CHECK (tflops > 0 AND tflops < 9e999),
  gbps REAL CHECK (gbps > 0 AND gbps < 9e999),
  ceiling REAL CHECK (ceiling > 0 AND ceiling < 9e999),
  p10_ns REAL CHECK (p10_ns > 0 AND p10_ns < 9e999),
  p90_ns REAL CHECK (p90_ns > 0 AND p90_ns < 9e999),
  control_ns REAL CHECK (control_ns > 0 AND control_ns < 9e999),
  rel_err REAL CHECK (rel_err >= 0 AND rel_err < 9e999),
  vendor_error REAL CHECK (vendor_error >= 0 AND vendor_error < 9e999), -- over the vendor's
  peer TEXT NOT NULL, -- the library that is hardest to beat
  peer_ratio REAL CHECK (peer_ratio > 0 AND peer_ratio < 9e999),
  peer_lo REAL CHECK (peer_lo > 0 AND peer_lo < 9e999), -- its interval, where it is from pairs
  peer_hi REAL CHECK (peer_hi > 0 AND peer_hi < 9e999),
  sm_clock_mhz REAL CHECK (sm_clock_mhz > 0 AND sm_clock_mhz < 9e999),
  registers INTEGER CHECK (registers >= 0),
  shared_bytes INTEGER CHECK (shared_bytes >= 0),
  spill_bytes INTEGER CHECK (spill_bytes >= 0),
  baseline_p50_ns REAL CHECK (baseline_p50_ns > 0 AND baseline_p50_ns < 9e999), -- in this run
  baseline_ms INTEGER CHECK (baseline_ms BETWEEN 0 AND 9007199254740991), -- when it became that
  baseline_commit TEXT NOT NULL,
  baseline_stored_ns REAL CHECK (baseline_stored_ns > 0 AND baseline_stored_ns < 9e999),
  -- The first run that was compared with a newer baseline than all before says how it changed.
  baseline_change TEXT CHECK (baseline_change IN ('first', 'lowered', 'raised', 'epoch')),
  baseline_from_ns REAL CHECK (baseline_from_ns > 0 AND baseline_from_ns < 9e999),
  kernel TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (track_id, time_ms, run_id, arm)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX result_by_run ON result (run_id, track_id, arm);
-- With all that detection reads of 150 results of each case, whenever a run comes.
CREATE INDEX result_by_branch ON result (track_id, branch, place_ms, time_ms, run_id, provider,
  contract, verdict, p50_ns, control_ns, baseline_p50_ns, paired, ratio, baseline_ms,
  baseline_commit, rel_err, vendor_error) WHERE arm = 0;
CREATE INDEX result_red ON result (track_id, branch, place_ms, time_ms, run_id)
  WHERE arm = 0 AND verdict IN ('regression', 'wrong');
CREATE INDEX result_lowest ON result (track_id, contract, provider, p50_ns, time_ms)
  WHERE p50_ns IS NOT NULL;
CREATE INDEX result_lowest_of_branch ON result (track_id, contract, branch, provider, p50_ns,
  time_ms) WHERE p50_ns IS NOT NULL;
CREATE INDEX result_wrong ON result (track_id, place_ms, time_ms, run_id)
  WHERE verdict = 'wrong' AND arm = 0;
CREATE INDEX result_baseline ON result (run_id, track_id) WHERE baseline_change IS NOT NULL;
CREATE INDEX result_baseline_of_track ON result (track_id, run_id)
  WHERE baseline_change IS NOT NULL;

-- Who may send and change.
CREATE TABLE IF NOT EXISTS token (
  id TEXT PRIMARY KEY CHECK (length(id) = 12),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  scopes INTEGER NOT NULL CHECK (scopes BETWEEN 1 AND 15), -- bits of enum token_scope
  digest BLOB NOT NULL CHECK (length(digest) = 32), -- SHA-256 of the secret
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  last_used_ms INTEGER,
  revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

-- What somebody has to know: a confirmed verdict, a change of level, a jump of the error. The
-- values are ns; of an error they are relative errors or, by_vendor, those over the vendor's.
CREATE TABLE alert (
  id INTEGER PRIMARY KEY,
  track_id INTEGER NOT NULL REFERENCES track (id),
  device TEXT NOT NULL,
  provider TEXT NOT NULL, -- '': wrong, and never timed
  contract TEXT NOT NULL, -- with provider: which times of the track
  kind TEXT NOT NULL CHECK (kind IN ('regression', 'improvement', 'error', 'wrong')),
  state TEXT NOT NULL CHECK (state IN ('new', 'acknowledged', 'accepted', 'fixed', 'ignored')),
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  run_id INTEGER NOT NULL REFERENCES run (id),
  before_run_id INTEGER REFERENCES run (id), -- the last one before it that was good
  before_value REAL NOT NULL CHECK (before_value >= 0 AND before_value < 9e999),
  after_value REAL NOT NULL CHECK (after_value >= 0 AND after_value < 9e999),
  change REAL NOT NULL CHECK (change >= -1 AND change < 9e999), -- 0.02 is +2 %
  reason TEXT NOT NULL, -- of its last step, as are who and updated_ms
  who TEXT NOT NULL,
  updated_ms INTEGER NOT NULL CHECK (updated_ms BETWEEN 0 AND 9007199254740991),
  closed_ms INTEGER CHECK (closed_ms BETWEEN 0 AND 9007199254740991),
  end_run_id INTEGER REFERENCES run (id), -- the first of those where the level returned
  by_vendor INTEGER NOT NULL CHECK (by_vendor IN (0, 1)),
  confirmed INTEGER NOT NULL CHECK (confirmed IN (0, 1)), -- by the verdict of the run
  assignee TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX alert_open ON alert (track_id, id) WHERE state IN ('new', 'acknowledged');
CREATE INDEX alert_by_state ON alert (state, id);
CREATE INDEX alert_by_track ON alert (track_id, id);
CREATE INDEX alert_by_run ON alert (run_id, id);

-- Each step in the life of an alert.
CREATE TABLE IF NOT EXISTS alert_event (
  id INTEGER PRIMARY KEY,
  alert_id INTEGER NOT NULL REFERENCES alert (id),
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),
  who TEXT NOT NULL,
  from_state TEXT CHECK (from_state IN ('new', 'acknowledged', 'accepted', 'fixed', 'ignored')),
  to_state TEXT NOT NULL
    CHECK (to_state IN ('new', 'acknowledged', 'accepted', 'fixed', 'ignored')),
  reason TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS alert_event_by_alert ON alert_event (alert_id, id);

-- What `gate push` is to send to a server, and what it has sent. A run is known by its uuid, a
-- library by its SHA-256.
CREATE TABLE outbox (
  server TEXT NOT NULL, -- its address
  kind TEXT NOT NULL CHECK (kind IN ('run', 'library')),
  id TEXT NOT NULL,
  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991), -- of the run
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'refused')),
  reason TEXT NOT NULL, -- why the server will never take it
  PRIMARY KEY (server, kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_waiting ON outbox (server, time_ms) WHERE state = 'waiting';
