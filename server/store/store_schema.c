/*
 * store_schema.c: see store_schema.h.
 *
 * run       one row a run, with what the list of runs shows
 * document  the run document as it came; apart, so that a list of runs does not page through it
 * track     a case on a device model: what a trend is drawn of
 * result    the verdict of one track in one run, timed or not
 * series    a track, a provider and a contract: numbers of one series may be compared, others not
 * point     one verified timing, clustered by series and time: a trend is one range of the table
 * identity  tells two histories apart whose newest runs are the same
 *
 * Times are ms since 1970 UTC in *_ms and nanoseconds in *_ns. NULL is "not known". The CHECKs are
 * a second line of defence: a document that breaks one is refused whole. 9e999 is infinity.
 */
#include "store_schema.h"

/* clang-format off */

#define TIME_RANGE "BETWEEN 0 AND 9007199254740991" /* integers that a double holds */
#define VERDICTS \
    "('pass', 'regression', 'improvement', 'wrong', 'no-verdict', 'environment')"

static const char version_1[] =
    "CREATE TABLE identity ("
    "  only INTEGER PRIMARY KEY CHECK (only = 1),"
    "  value TEXT NOT NULL"
    ") STRICT;"
    "INSERT INTO identity (only, value) VALUES (1, lower(hex(randomblob(16))));"

    "CREATE TABLE device ("
    "  id INTEGER PRIMARY KEY,"
    "  model TEXT NOT NULL UNIQUE,"
    "  n_runs INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE run ("
    "  id INTEGER PRIMARY KEY,"
    "  uuid TEXT NOT NULL UNIQUE CHECK (length(uuid) = 36),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  commit_id TEXT NOT NULL,"
    "  branch TEXT NOT NULL,"
    "  subject TEXT NOT NULL,"
    "  dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)),"
    "  suite TEXT NOT NULL,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  device_name TEXT NOT NULL,"
    "  contract TEXT NOT NULL,"
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
    "CREATE INDEX run_by_device ON run (device_id, time_ms);"

    "CREATE TABLE document ("
    "  run_id INTEGER PRIMARY KEY REFERENCES run (id),"
    "  text TEXT NOT NULL"
    ") STRICT;"

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
    "  UNIQUE (case_id, device_id)"
    ") STRICT;"
    "CREATE INDEX track_by_device ON track (device_id);"

    "CREATE TABLE result ("
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  verdict TEXT NOT NULL CHECK (verdict IN " VERDICTS "),"
    "  reason TEXT NOT NULL,"
    "  p50_ns REAL CHECK (p50_ns > 0 AND p50_ns < 9e999),"
    "  p50_lo_ns REAL CHECK (p50_lo_ns > 0 AND p50_lo_ns < 9e999),"
    "  p50_hi_ns REAL CHECK (p50_hi_ns > 0 AND p50_hi_ns < 9e999),"
    "  tflops REAL CHECK (tflops >= 0 AND tflops < 9e999),"
    "  ceiling REAL CHECK (ceiling >= 0 AND ceiling < 9e999),"
    "  best_p50_ns REAL CHECK (best_p50_ns > 0 AND best_p50_ns < 9e999),"
    "  ratio REAL CHECK (ratio > 0 AND ratio < 9e999),"
    "  ratio_lo REAL CHECK (ratio_lo > 0 AND ratio_lo < 9e999),"
    "  ratio_hi REAL CHECK (ratio_hi > 0 AND ratio_hi < 9e999),"
    "  mde REAL CHECK (mde > 0 AND mde < 9e999),"
    "  peer TEXT NOT NULL,"
    "  peer_ratio REAL CHECK (peer_ratio > 0 AND peer_ratio < 9e999),"
    "  PRIMARY KEY (track_id, time_ms, run_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE series ("
    "  id INTEGER PRIMARY KEY,"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  provider TEXT NOT NULL,"
    "  contract TEXT NOT NULL,"
    "  UNIQUE (track_id, provider, contract)"
    ") STRICT;"

    "CREATE TABLE point ("
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  arm INTEGER NOT NULL," /* its place in the document; one provider may have two arms */
    "  role TEXT NOT NULL CHECK (role IN ('candidate', 'provider')),"
    "  kernel TEXT NOT NULL,"
    "  p50_ns REAL NOT NULL CHECK (p50_ns > 0 AND p50_ns < 9e999),"
    "  p50_lo_ns REAL NOT NULL CHECK (p50_lo_ns > 0 AND p50_lo_ns < 9e999),"
    "  p50_hi_ns REAL NOT NULL CHECK (p50_hi_ns > 0 AND p50_hi_ns < 9e999),"
    "  p90_ns REAL NOT NULL CHECK (p90_ns > 0 AND p90_ns < 9e999),"
    "  tflops REAL NOT NULL CHECK (tflops >= 0 AND tflops < 9e999),"
    "  gbps REAL NOT NULL CHECK (gbps >= 0 AND gbps < 9e999),"
    "  PRIMARY KEY (series_id, time_ms, run_id, arm)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX point_by_p50 ON point (series_id, p50_ns);";

/* clang-format on */

const char *const store_migrations[STORE_SCHEMA_VERSION] = {
    version_1,          store_schema_history,  store_schema_tokens, store_schema_alerts,
    store_schema_wrong, store_schema_branches, store_schema_errors,
};
