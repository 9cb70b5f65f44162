/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_schema.c: the tables of the history, schema version 1, and how a new file gets them.
 *
 * identity      tells two histories apart whose newest runs are the same
 * machine       a GPU by its uuid, or else a host, with its newest run
 * revision      a commit; first_ms, of its first run, is its place in the order of commits
 * run           one row a run, with what the list of runs shows
 * document      the run document as it came, deflated; apart, so that lists do not page through it
 * track         a case on a device model: what a trend is drawn of
 * series        a track, a provider and a contract: numbers of one series may be compared
 * result        which tracks a run has; clustered by run, so that a run adds to the end
 * point         one verified timing, clustered by series and time: a trend is a range of the table
 * wrong         the results that are wrong: they are never timed and have no point
 * newest_result the newest result of a track on each branch
 * leader        the lowest point of a series on each branch
 * epoch         from when on a device model had another driver, runtime or power limit
 * baseline      what the newest run of a track was compared with; baseline_log: how that changed
 * calibration   with calibrated and injected: what a machine could tell, by `gate calibrate`
 * coverage      what the verification of candidates has covered over all runs, by op
 * token         who may write
 * watch         the newest row of `result` that change detection has seen, by its key
 * alert         what somebody has to know: a confirmed verdict, a change of level, a jump of the
 *               error; alert_count: how many there are of them
 * alert_event   each step in the life of an alert
 * webhook       the newest event that was delivered to a target, named by the hash of its address
 *
 * Times are ms since 1970 UTC in *_ms and nanoseconds in *_ns. NULL is "not known". The CHECKs are
 * a second line of defence: a document that breaks one is refused whole. 9e999 is infinity.
 *
 * There are many points, so their columns are short: times are whole picoseconds (*_ps), errors
 * over the vendor's are millionths (*_ppm), texts are numbers (a kernel's id, a verdict's place in
 * enum verdict), and what is constant in a series stands there: TFLOP/s is flops / p50_ps.
 * The values of an alert are ns, of an error alert relative errors or, by_vendor, those over the
 * vendor's.
 */
#include "gate/store/store_private.h"

#include <string.h>

/* clang-format off */

#define TIME_RANGE "BETWEEN 0 AND 9007199254740991" /* integers that a double holds */
#define VERDICTS \
    "('pass', 'regression', 'improvement', 'wrong', 'no-verdict', 'environment')"
#define STATES "('new', 'acknowledged', 'accepted', 'fixed', 'ignored')"
#define POSITIVE(column) column " REAL CHECK (" column " > 0 AND " column " < 9e999)"
#define NOT_NEGATIVE(column) column " REAL CHECK (" column " >= 0 AND " column " < 9e999)"

static const char schema[] =
    "CREATE TABLE identity ("
    "  only INTEGER PRIMARY KEY CHECK (only = 1),"
    "  value TEXT NOT NULL,"
    "  n_writes INTEGER NOT NULL DEFAULT 0,"
    "  copy TEXT NOT NULL DEFAULT ''" /* another in each copy */
    ") STRICT;"
    "INSERT INTO identity (only, value) VALUES (1, lower(hex(randomblob(16))));"

    "CREATE TABLE device ("
    "  id INTEGER PRIMARY KEY,"
    "  model TEXT NOT NULL UNIQUE,"
    "  n_runs INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE machine ("
    "  id INTEGER PRIMARY KEY,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  name TEXT NOT NULL CHECK (name <> ''),"
    "  host TEXT NOT NULL," /* of its newest run */
    "  gpu TEXT NOT NULL,"
    "  n_runs INTEGER NOT NULL,"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  UNIQUE (device_id, name)"
    ") STRICT;"
    "CREATE INDEX machine_by_time ON machine (time_ms, id);"

    "CREATE TABLE revision ("
    "  id INTEGER PRIMARY KEY,"
    "  commit_id TEXT NOT NULL UNIQUE CHECK (length(commit_id) = 40),"
    "  parent TEXT NOT NULL,"
    "  branch TEXT NOT NULL," /* of its first run */
    "  first_ms INTEGER NOT NULL CHECK (first_ms " TIME_RANGE ")"
    ") STRICT;"

    "CREATE TABLE run ("
    "  id INTEGER PRIMARY KEY,"
    "  uuid TEXT NOT NULL UNIQUE CHECK (length(uuid) = 36),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  revision_id INTEGER REFERENCES revision (id)," /* NULL: outside of a repository */
    "  branch TEXT NOT NULL,"
    "  subject TEXT NOT NULL,"
    "  author TEXT NOT NULL,"
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
    "  n_environment INTEGER NOT NULL,"
    "  host TEXT NOT NULL,"
    "  machine_id INTEGER REFERENCES machine (id)," /* NULL: neither GPU nor host is known */
    "  " POSITIVE("control_ns") "," /* geometric mean over the cases */
    "  " NOT_NEGATIVE("control_drift") ","
    "  " POSITIVE("vendor_ratio") "," /* over the best vendor: the same, of n_vendor cases */
    "  n_vendor INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX run_by_time ON run (time_ms, uuid);"
    "CREATE INDEX run_by_device ON run (device_id, time_ms, uuid);"
    "CREATE INDEX run_by_device_branch ON run (device_id, branch, time_ms, uuid);"
    "CREATE INDEX run_by_branch ON run (branch, time_ms, uuid);"
    "CREATE INDEX run_by_verdict ON run (verdict, time_ms, uuid);"
    "CREATE INDEX run_by_revision ON run (revision_id, time_ms, uuid);"
    "CREATE INDEX run_by_machine ON run (machine_id, time_ms, uuid);"

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
    "  branch TEXT NOT NULL,"
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
    "  evidence TEXT," /* the reason of a regression or a wrong result, else NULL */
    "  " POSITIVE("threshold") ","
    "  " POSITIVE("ratio") "," /* as in newest_result */
    "  " POSITIVE("ratio_lo") ","
    "  " POSITIVE("ratio_hi") ","
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
    /* what each trend reads comes first: a row is decoded up to its last column that is read */
    "  p50_ps INTEGER NOT NULL CHECK (p50_ps > 0),"
    "  p50_lo_ps INTEGER NOT NULL CHECK (p50_lo_ps > 0),"
    "  p50_hi_ps INTEGER NOT NULL CHECK (p50_hi_ps > 0),"
    "  role INTEGER NOT NULL CHECK (role IN (0, 1))," /* candidate, provider */
    "  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 5)," /* the case's */
    "  kernel_id INTEGER NOT NULL REFERENCES kernel (id),"
    "  p10_ps INTEGER CHECK (p10_ps > 0)," /* not known of older documents */
    "  p90_ps INTEGER NOT NULL CHECK (p90_ps > 0),"
    "  control_ps INTEGER CHECK (control_ps > 0),"
    "  baseline_p50_ps INTEGER CHECK (baseline_p50_ps > 0)," /* of the candidate's baseline */
    "  sm_clock_khz INTEGER CHECK (sm_clock_khz > 0),"
    "  registers INTEGER CHECK (registers >= 0),"
    "  shared_bytes INTEGER CHECK (shared_bytes >= 0),"
    "  spill_bytes INTEGER CHECK (spill_bytes >= 0),"
    "  " NOT_NEGATIVE("rel_err") ","
    "  vendor_ppm INTEGER CHECK (vendor_ppm >= 0),"
    "  " POSITIVE("ratio") "," /* of the candidate over its baseline, from pairs */
    "  baseline_ms INTEGER," /* when that became the baseline */
    "  baseline_revision_id INTEGER," /* of which commit, if that is known here */
    "  PRIMARY KEY (series_id, time_ms, run_id, arm)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE newest_result ("
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  branch TEXT NOT NULL,"
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
    "  " POSITIVE("baseline_p50_ns") ","
    "  " POSITIVE("ratio") ","
    "  " POSITIVE("ratio_lo") ","
    "  " POSITIVE("ratio_hi") ","
    "  " POSITIVE("mde") ","
    "  peer TEXT NOT NULL,"
    "  " POSITIVE("peer_ratio") ","
    "  " POSITIVE("control_ns") ","
    "  " NOT_NEGATIVE("rel_err") ","
    "  PRIMARY KEY (track_id, branch)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE leader ("
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  branch TEXT NOT NULL,"
    "  p50_ps INTEGER NOT NULL CHECK (p50_ps > 0),"
    "  time_ms INTEGER NOT NULL,"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  arm INTEGER NOT NULL,"
    "  PRIMARY KEY (series_id, branch)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE epoch ("
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  from_ms INTEGER NOT NULL CHECK (from_ms " TIME_RANGE "),"
    "  epoch TEXT NOT NULL CHECK (epoch <> ''),"
    "  PRIMARY KEY (device_id, from_ms)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE baseline ("
    "  track_id INTEGER PRIMARY KEY REFERENCES track (id),"
    "  time_ms INTEGER NOT NULL,"
    "  run_id INTEGER NOT NULL REFERENCES run (id)," /* the run that was compared with it */
    "  p50_ns REAL NOT NULL CHECK (p50_ns > 0 AND p50_ns < 9e999),"
    "  commit_id TEXT NOT NULL,"
    "  stored_ms INTEGER NOT NULL CHECK (stored_ms " TIME_RANGE ")," /* when it was stored */
    /* of the newest entry of baseline_log */
    "  logged_ms INTEGER NOT NULL,"
    "  logged_ns REAL NOT NULL,"
    "  logged_run_id INTEGER NOT NULL REFERENCES run (id)"
    ") STRICT;"

    "CREATE TABLE baseline_log ("
    "  id INTEGER PRIMARY KEY,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  run_id INTEGER NOT NULL REFERENCES run (id)," /* the first that was compared with it */
    "  from_ns REAL,"
    "  to_ns REAL NOT NULL,"
    "  commit_id TEXT NOT NULL,"
    "  kind TEXT NOT NULL CHECK (kind IN ('first', 'lowered', 'raised', 'epoch'))"
    ") STRICT;"
    "CREATE INDEX baseline_log_by_device ON baseline_log (device_id, id);"
    "CREATE INDEX baseline_log_by_track ON baseline_log (track_id, id);"

    "CREATE TABLE calibration ("
    "  run_id INTEGER PRIMARY KEY REFERENCES run (id),"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  machine_id INTEGER REFERENCES machine (id),"
    "  time_ms INTEGER NOT NULL,"
    "  " POSITIVE("threshold") ","
    "  processes INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX calibration_by_time ON calibration (time_ms, run_id);"
    "CREATE INDEX calibration_by_device ON calibration (device_id, time_ms, run_id);"
    "CREATE INDEX calibration_by_machine ON calibration (machine_id, time_ms, run_id);"

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
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE coverage ("
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  op TEXT NOT NULL,"
    "  run_id INTEGER NOT NULL," /* the last that added to it */
    "  runs INTEGER NOT NULL,"
    "  cases INTEGER NOT NULL,"
    "  checks INTEGER NOT NULL,"
    "  shapes INTEGER NOT NULL,"
    "  layouts INTEGER NOT NULL,"
    "  launches INTEGER NOT NULL,"
    "  skipped INTEGER NOT NULL,"
    "  most_values INTEGER NOT NULL,"
    "  most_pairs INTEGER NOT NULL,"
    "  pairs_of INTEGER NOT NULL,"
    "  PRIMARY KEY (device_id, op)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE token ("
    "  id TEXT PRIMARY KEY CHECK (length(id) = 12),"
    "  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),"
    "  scopes INTEGER NOT NULL CHECK (scopes BETWEEN 1 AND 15)," /* bits of enum token_scope */
    "  digest BLOB NOT NULL CHECK (length(digest) = 32)," /* SHA-256 of the secret */
    "  created_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER,"
    "  last_used_ms INTEGER,"
    "  revoked_ms INTEGER"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE wrong ("
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  reason TEXT NOT NULL,"
    "  PRIMARY KEY (track_id, time_ms, run_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE watch ("
    "  only INTEGER PRIMARY KEY CHECK (only = 1),"
    "  run_id INTEGER NOT NULL,"
    "  track_id INTEGER NOT NULL"
    ") STRICT;"
    "INSERT INTO watch (only, run_id, track_id) VALUES (1, 0, 0);"

    "CREATE TABLE alert ("
    "  id INTEGER PRIMARY KEY,"
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  series_id INTEGER REFERENCES series (id)," /* NULL: wrong, and never timed */
    "  kind TEXT NOT NULL CHECK (kind IN ('regression', 'improvement', 'error', 'wrong')),"
    "  state TEXT NOT NULL CHECK (state IN " STATES "),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  before_run_id INTEGER REFERENCES run (id)," /* the last one before it that was good */
    "  before_value REAL NOT NULL CHECK (before_value >= 0 AND before_value < 9e999),"
    "  after_value REAL NOT NULL CHECK (after_value >= 0 AND after_value < 9e999),"
    "  change REAL NOT NULL CHECK (change >= -1 AND change < 9e999)," /* 0.02 is +2 % */
    "  reason TEXT NOT NULL," /* of its last step, as are who and updated_ms */
    "  who TEXT NOT NULL,"
    "  updated_ms INTEGER NOT NULL CHECK (updated_ms " TIME_RANGE "),"
    "  closed_ms INTEGER CHECK (closed_ms " TIME_RANGE "),"
    "  end_run_id INTEGER REFERENCES run (id)," /* the first of those where the level returned */
    "  by_vendor INTEGER NOT NULL CHECK (by_vendor IN (0, 1)),"
    "  confirmed INTEGER NOT NULL CHECK (confirmed IN (0, 1))," /* by the verdict of the run */
    "  assignee TEXT NOT NULL DEFAULT ''"
    ") STRICT;"
    "CREATE INDEX alert_open ON alert (track_id, id) WHERE state IN ('new', 'acknowledged');"
    "CREATE INDEX alert_by_state ON alert (state, id);"
    "CREATE INDEX alert_by_kind ON alert (kind, id);"
    "CREATE INDEX alert_by_kind_state ON alert (kind, state, id);"
    "CREATE INDEX alert_by_device ON alert (device_id, id);"
    "CREATE INDEX alert_by_track ON alert (track_id, id);"
    "CREATE INDEX alert_by_series ON alert (series_id, id);"
    "CREATE INDEX alert_by_run ON alert (run_id, id);"

    "CREATE TABLE alert_count ("
    "  device_id INTEGER NOT NULL REFERENCES device (id),"
    "  kind TEXT NOT NULL,"
    "  state TEXT NOT NULL,"
    "  n INTEGER NOT NULL,"
    "  PRIMARY KEY (device_id, kind, state)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE alert_event ("
    "  id INTEGER PRIMARY KEY,"
    "  alert_id INTEGER NOT NULL REFERENCES alert (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  who TEXT NOT NULL,"
    "  from_state TEXT CHECK (from_state IN " STATES ")," /* NULL: it came up */
    "  to_state TEXT NOT NULL CHECK (to_state IN " STATES "),"
    "  reason TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX alert_event_by_alert ON alert_event (alert_id, id);"

    "CREATE TABLE webhook ("
    "  target TEXT PRIMARY KEY,"
    "  event_id INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "PRAGMA application_id = 0x4b474831;"
    "PRAGMA user_version = 1;";

/* clang-format on */

_Static_assert(STORE_APPLICATION_ID == 0x4b474831 && STORE_SCHEMA_VERSION == 1,
               "the schema stamps a file with both");

/* Runs a pragma of the journal's mode: is it WAL then? SQLite answers with the old mode, and no
 * error, where the file system cannot do it. */
static int ask_for_wal(struct store *s, const char *pragma, bool *wal)
{
    sqlite3_stmt *stmt = NULL;
    *wal = false;
    int rc = sqlite3_prepare_v2(s->db, pragma, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        const unsigned char *mode = sqlite3_column_text(stmt, 0);
        *wal = mode && sqlite3_stricmp((const char *)mode, "wal") == 0;
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static enum gate_status use_wal(struct store *s, struct gate_error *err)
{
    bool wal;
    int rc = ask_for_wal(s, "PRAGMA journal_mode = WAL", &wal);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "write to", err);
    if (!wal)
        return gate_fail(err, GATE_IO,
                         "cannot keep '%s' in WAL mode: put it on a local file system", s->path);
    return GATE_OK;
}

bool store_uses_wal(struct store *s)
{
    bool wal;
    return ask_for_wal(s, "PRAGMA journal_mode", &wal) == SQLITE_OK && wal;
}

/* Is this one of the statements of the schema? `sql` is as SQLite keeps it, without the ';'. */
static bool is_ours(const char *sql)
{
    size_t len = strlen(sql);
    const char *at = schema;
    while (len > 0 && (at = strstr(at, sql)) != NULL && at[len] != ';')
        at++;
    return len > 0 && at;
}

static int count_creates(void)
{
    int n = 0;
    for (const char *at = schema; (at = strstr(at, "CREATE ")) != NULL; at++)
        n++;
    return n;
}

enum gate_status store_check_tables(struct store *s, struct gate_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int n_ours = 0, n_all = count_creates();
    int rc = sqlite3_prepare_v2(s->db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", -1,
                                &stmt, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(stmt, 0);
        n_ours += sql && is_ours(sql);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return store_fail(s, rc, "open", err);
    if (n_ours == n_all)
        return GATE_OK;
    return gate_fail(err, GATE_IO,
                     "'%s' has %d of the %d tables and indexes that this program makes; the others "
                     "are missing or different, so another build wrote it: use that build, or "
                     "start a new file and bring the runs over with `gate export` of that build "
                     "and `gate import`",
                     s->path, n_ours, n_all);
}

/* In a transaction: another process may have made the tables since the file was looked at. */
static enum gate_status make_tables(struct store *s, struct gate_error *err)
{
    int64_t version = 0;
    int rc = store_pragma(s->db, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    if (version != 0)
        return store_identify(s, err);
    return store_execute(s, schema, "create the tables of", err);
}

/*
 * The first transaction runs in rollback mode and WAL comes after it, so that the main file of
 * every store of ours bears its application_id from the start.
 */
enum gate_status store_create(struct store *s, struct gate_error *err)
{
    enum gate_status status = store_execute(s, "BEGIN IMMEDIATE", "write to", err);
    if (status)
        return status;
    status = make_tables(s, err);
    if (!status)
        status = store_execute(s, "COMMIT", "write to", err);
    if (status) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return status;
    }
    return use_wal(s, err);
}
