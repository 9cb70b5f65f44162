/*
 * store_schema_history.c: see store_schema.h. Version 2: what trends and the wall read of a run.
 *
 * Everything but identity is made anew from the documents (store_refill.c); the script puts those
 * of version 1 aside as old_document.
 *
 * revision    a commit; first_ms, of its first run, is its place in the order of commits
 * run         one row a run, with what the list of runs shows
 * document    the run document as it came, deflated; apart, so that lists do not page through it
 * track       a case on a device model: what a trend is drawn of, with its newest result, so that
 *             the wall of cases is read from one table
 * result      which tracks a run has; clustered by run, so that a run adds to the end
 * series      a track, a provider and a contract: numbers of one series may be compared, others not
 * point       one verified timing, clustered by series and time: a trend is one range of the table
 * leader      the lowest point of each series
 * epoch       from when on a device model had another driver, runtime or power limit
 * best        what the newest run of a track was held against; best_log: how that changed
 * calibration, calibrated, injected: what a machine could tell, as `gate calibrate` measured it
 *
 * There are many points, so their columns are short: times are whole picoseconds (*_ps), texts are
 * numbers (a kernel's id, a verdict's place in store_verdicts), and what is constant in a series
 * stands there: TFLOP/s is flops / p50_ps.
 */
#include "store_schema.h"

/* clang-format off */

#define TIME_RANGE "BETWEEN 0 AND 9007199254740991" /* integers that a double holds */
#define VERDICTS \
    "('pass', 'regression', 'improvement', 'wrong', 'no-verdict', 'environment')"
#define POSITIVE(column) column " REAL CHECK (" column " > 0 AND " column " < 9e999)"
#define NOT_NEGATIVE(column) column " REAL CHECK (" column " >= 0 AND " column " < 9e999)"

const char store_schema_history[] =
    "ALTER TABLE identity ADD COLUMN n_writes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE identity ADD COLUMN copy TEXT NOT NULL DEFAULT '';" /* another in each copy */
    "ALTER TABLE document RENAME TO old_document;"
    "DROP TABLE point;"
    "DROP TABLE series;"
    "DROP TABLE result;"
    "DROP TABLE track;"
    "DROP TABLE test_case;"
    "DROP TABLE run;"
    "DROP TABLE device;"

    "CREATE TABLE device ("
    "  id INTEGER PRIMARY KEY,"
    "  model TEXT NOT NULL UNIQUE,"
    "  n_runs INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE revision ("
    "  id INTEGER PRIMARY KEY,"
    "  commit_id TEXT NOT NULL UNIQUE CHECK (length(commit_id) = 40),"
    "  parent TEXT NOT NULL,"
    "  branch TEXT NOT NULL," /* of its first run */
    "  first_ms INTEGER NOT NULL CHECK (first_ms " TIME_RANGE ")"
    ") STRICT;"
    "CREATE INDEX revision_by_time ON revision (first_ms, id);"

    "CREATE TABLE run ("
    "  id INTEGER PRIMARY KEY,"
    "  uuid TEXT NOT NULL UNIQUE CHECK (length(uuid) = 36),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  revision_id INTEGER REFERENCES revision (id)," /* NULL: outside of a repository */
    "  branch TEXT NOT NULL,"
    "  subject TEXT NOT NULL,"
    "  dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)),"
    "  suite TEXT NOT NULL,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  device_name TEXT NOT NULL,"
    "  contract TEXT NOT NULL,"
    "  epoch TEXT NOT NULL,"
    "  verdict TEXT NOT NULL CHECK (verdict IN " VERDICTS "),"
    "  exit_code INTEGER NOT NULL,"
    "  n_cases INTEGER NOT NULL,"
    "  n_pass INTEGER NOT NULL,"
    "  n_regression INTEGER NOT NULL,"
    "  n_improvement INTEGER NOT NULL,"
    "  n_wrong INTEGER NOT NULL,"
    "  n_no_verdict INTEGER NOT NULL,"
    "  n_environment INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX run_by_time ON run (time_ms, uuid);"
    "CREATE INDEX run_by_device ON run (device_id, time_ms, uuid);"
    "CREATE INDEX run_by_branch ON run (branch, time_ms, uuid);"
    "CREATE INDEX run_by_verdict ON run (verdict, time_ms, uuid);"
    "CREATE INDEX run_by_revision ON run (revision_id, time_ms, uuid);"

    "CREATE TABLE document ("
    "  run_id INTEGER PRIMARY KEY REFERENCES run (id),"
    "  packed BLOB NOT NULL," /* zlib */
    "  n_bytes INTEGER NOT NULL CHECK (n_bytes >= 0)," /* unpacked */
    "  sha256 BLOB NOT NULL CHECK (length(sha256) = 32)," /* of the bytes as they came */
    "  has_samples INTEGER NOT NULL CHECK (has_samples IN (0, 1)),"
    "  thinned_ms INTEGER CHECK (thinned_ms " TIME_RANGE ")" /* when samples were dropped */
    ") STRICT;"
    "CREATE INDEX document_with_samples ON document (run_id) WHERE has_samples = 1;"

    "CREATE TABLE test_case ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  op TEXT NOT NULL,"
    "  dtype TEXT NOT NULL"
    ") STRICT;"

    "CREATE TABLE track ("
    "  id INTEGER PRIMARY KEY,"
    "  case_id INTEGER NOT NULL REFERENCES test_case (id),"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  n_runs INTEGER NOT NULL,"
    /* of its newest run: the one with the highest (time_ms, run_id) */
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 5),"
    "  reason TEXT NOT NULL,"
    "  series_id INTEGER REFERENCES series (id)," /* the candidate's newest that counts */
    "  " POSITIVE("threshold") ","
    "  " POSITIVE("p50_ns") ","
    "  " POSITIVE("p50_lo_ns") ","
    "  " POSITIVE("p50_hi_ns") ","
    "  " POSITIVE("tflops") ","
    "  " POSITIVE("gbps") ","
    "  " POSITIVE("ceiling") ","
    "  " POSITIVE("best_p50_ns") ","
    "  " POSITIVE("ratio") ","
    "  " POSITIVE("ratio_lo") ","
    "  " POSITIVE("ratio_hi") ","
    "  " POSITIVE("mde") ","
    "  peer TEXT NOT NULL,"
    "  " POSITIVE("peer_ratio") ","
    "  " POSITIVE("control_ns") ","
    "  " NOT_NEGATIVE("rel_err") ","
    /* of its newest point, whoever's it is */
    "  point_ms INTEGER,"
    "  point_contract TEXT,"
    "  UNIQUE (case_id, device_id)"
    ") STRICT;"
    "CREATE INDEX track_by_device ON track (device_id);"

    "CREATE TABLE series ("
    "  id INTEGER PRIMARY KEY,"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  provider TEXT NOT NULL,"
    "  contract TEXT NOT NULL,"
    "  " NOT_NEGATIVE("flops") "," /* of one launch; 0: not known */
    "  " NOT_NEGATIVE("bytes") "," /* the same, compulsory ones */
    "  UNIQUE (track_id, provider, contract)"
    ") STRICT;"

    "CREATE TABLE result ("
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 5),"
    "  series_id INTEGER REFERENCES series (id)," /* with arm: the candidate's point, if any */
    "  arm INTEGER,"
    "  PRIMARY KEY (run_id, track_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE kernel ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE"
    ") STRICT;"

    "CREATE TABLE point ("
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  arm INTEGER NOT NULL," /* its place in the document; one provider may have two arms */
    "  role INTEGER NOT NULL CHECK (role IN (0, 1))," /* candidate, provider */
    "  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 5)," /* the case's */
    "  kernel_id INTEGER NOT NULL REFERENCES kernel (id),"
    "  p50_ps INTEGER NOT NULL CHECK (p50_ps > 0),"
    "  p50_lo_ps INTEGER NOT NULL CHECK (p50_lo_ps > 0),"
    "  p50_hi_ps INTEGER NOT NULL CHECK (p50_hi_ps > 0),"
    "  p10_ps INTEGER CHECK (p10_ps > 0)," /* not known of older documents */
    "  p90_ps INTEGER NOT NULL CHECK (p90_ps > 0),"
    "  control_ps INTEGER CHECK (control_ps > 0),"
    "  best_p50_ps INTEGER CHECK (best_p50_ps > 0)," /* of the candidate's best */
    "  sm_clock_khz INTEGER CHECK (sm_clock_khz > 0),"
    "  registers INTEGER CHECK (registers >= 0),"
    "  shared_bytes INTEGER CHECK (shared_bytes >= 0),"
    "  spill_bytes INTEGER CHECK (spill_bytes >= 0),"
    "  " NOT_NEGATIVE("rel_err") ","
    "  PRIMARY KEY (series_id, time_ms, run_id, arm)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE leader ("
    "  series_id INTEGER PRIMARY KEY REFERENCES series (id),"
    "  p50_ps INTEGER NOT NULL CHECK (p50_ps > 0),"
    "  time_ms INTEGER NOT NULL,"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  arm INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE epoch ("
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  from_ms INTEGER NOT NULL CHECK (from_ms " TIME_RANGE "),"
    "  epoch TEXT NOT NULL CHECK (epoch <> ''),"
    "  PRIMARY KEY (device_id, from_ms)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE best ("
    "  track_id INTEGER PRIMARY KEY REFERENCES track (id),"
    "  time_ms INTEGER NOT NULL,"
    "  run_id INTEGER NOT NULL REFERENCES run (id)," /* the run that was held against it */
    "  p50_ns REAL NOT NULL CHECK (p50_ns > 0 AND p50_ns < 9e999),"
    "  commit_id TEXT NOT NULL,"
    "  stored_ms INTEGER NOT NULL CHECK (stored_ms " TIME_RANGE ")," /* when it became the best */
    /* of the newest entry of best_log */
    "  logged_ms INTEGER NOT NULL,"
    "  logged_ns REAL NOT NULL,"
    "  logged_run_id INTEGER NOT NULL REFERENCES run (id)"
    ") STRICT;"

    "CREATE TABLE best_log ("
    "  id INTEGER PRIMARY KEY,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  run_id INTEGER NOT NULL REFERENCES run (id)," /* the first that was held against it */
    "  from_ns REAL,"
    "  to_ns REAL NOT NULL,"
    "  commit_id TEXT NOT NULL,"
    "  kind TEXT NOT NULL CHECK (kind IN ('first', 'lowered', 'raised', 'epoch'))"
    ") STRICT;"
    "CREATE INDEX best_log_by_device ON best_log (device_id, id);"
    "CREATE INDEX best_log_by_track ON best_log (track_id, id);"

    "CREATE TABLE calibration ("
    "  run_id INTEGER PRIMARY KEY REFERENCES run (id),"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  time_ms INTEGER NOT NULL,"
    "  " POSITIVE("threshold") ","
    "  processes INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX calibration_by_time ON calibration (time_ms, run_id);"
    "CREATE INDEX calibration_by_device ON calibration (device_id, time_ms, run_id);"

    "CREATE TABLE calibrated ("
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  place INTEGER NOT NULL,"
    "  name TEXT NOT NULL," /* of the case */
    "  " NOT_NEGATIVE("mde") ","
    "  resolved INTEGER NOT NULL CHECK (resolved IN (0, 1)),"
    "  PRIMARY KEY (run_id, place)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE injected ("
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  place INTEGER NOT NULL," /* of its row in calibrated */
    "  step INTEGER NOT NULL,"
    "  " NOT_NEGATIVE("share") ","
    "  decisions INTEGER NOT NULL,"
    "  red INTEGER NOT NULL,"
    "  pass INTEGER NOT NULL,"
    "  no_verdict INTEGER NOT NULL,"
    "  PRIMARY KEY (run_id, place, step)"
    ") STRICT, WITHOUT ROWID;";

const char store_schema_old_documents[] = "SELECT text FROM old_document ORDER BY run_id";
const char store_schema_no_old_documents[] = "DROP TABLE old_document";

/* clang-format on */
