/*
 * store_schema_alerts.c: see store_schema.h. Version 4: where trends changed, and what was done.
 *
 * watch         the newest row of `result` that was watched, by its key
 * watched       where the last segment and level of a series in an epoch start (changepoint.h); no
 *               row: with the epoch
 * change_point  where the level of a series changed. A young one may move, and may stop to stand
 *               and stand again; one that is settled stays as it is
 * alert         what somebody has to know; of a change point, or of an error that jumped
 * alert_event   each step in the life of an alert
 * webhook       the newest event that was delivered to a target, named by the hash of its address
 *
 * Levels are times over the control's where by_control is set, else in ns. The values of an alert
 * are ns, of an error alert relative errors.
 */
#include "store_schema.h"

/* clang-format off */

#define TIME_RANGE "BETWEEN 0 AND 9007199254740991" /* integers that a double holds */
#define STATES "('new', 'acknowledged', 'accepted', 'fixed', 'ignored')"
#define POSITIVE(column) column " REAL NOT NULL CHECK (" column " > 0 AND " column " < 9e999)"

const char store_schema_alerts[] =
    "CREATE TABLE watch ("
    "  only INTEGER PRIMARY KEY CHECK (only = 1),"
    "  run_id INTEGER NOT NULL,"
    "  track_id INTEGER NOT NULL"
    ") STRICT;"
    "INSERT INTO watch (only, run_id, track_id) VALUES (1, 0, 0);"

    "CREATE TABLE watched ("
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  epoch TEXT NOT NULL,"
    "  segment_ms INTEGER NOT NULL,"
    "  segment_run_id INTEGER NOT NULL,"
    "  cut_ms INTEGER NOT NULL,"
    "  cut_run_id INTEGER NOT NULL,"
    "  PRIMARY KEY (series_id, epoch)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE change_point ("
    "  id INTEGER PRIMARY KEY,"
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE ")," /* of the new level's first run */
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  before_run_id INTEGER NOT NULL REFERENCES run (id)," /* the one before it */
    "  " POSITIVE("before_ns") ","
    "  " POSITIVE("after_ns") ","
    "  by_control INTEGER NOT NULL CHECK (by_control IN (0, 1)),"
    "  " POSITIVE("before_level") ","
    "  " POSITIVE("after_level") ","
    "  stands INTEGER NOT NULL CHECK (stands IN (0, 1)),"
    "  settled INTEGER NOT NULL CHECK (settled IN (0, 1)),"
    "  n_missed INTEGER NOT NULL" /* looks in a row that did not find it */
    ") STRICT;"
    "CREATE INDEX change_point_by_series ON change_point (series_id, time_ms);"
    "CREATE INDEX change_point_young ON change_point (series_id) WHERE settled = 0;"

    "CREATE TABLE alert ("
    "  id INTEGER PRIMARY KEY,"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  change_point_id INTEGER UNIQUE REFERENCES change_point (id)," /* NULL: of an error */
    "  kind TEXT NOT NULL CHECK (kind IN ('regression', 'improvement', 'error')),"
    "  state TEXT NOT NULL CHECK (state IN " STATES "),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms " TIME_RANGE "),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  before_run_id INTEGER NOT NULL REFERENCES run (id),"
    "  before_value REAL NOT NULL CHECK (before_value >= 0 AND before_value < 9e999),"
    "  after_value REAL NOT NULL CHECK (after_value >= 0 AND after_value < 9e999),"
    "  change REAL NOT NULL CHECK (change >= -1 AND change < 9e999)," /* 0.02 is +2 % */
    "  reason TEXT NOT NULL," /* of its last step, as are who and updated_ms */
    "  who TEXT NOT NULL,"
    "  updated_ms INTEGER NOT NULL CHECK (updated_ms " TIME_RANGE "),"
    "  closed_ms INTEGER CHECK (closed_ms " TIME_RANGE "),"
    "  closed_by INTEGER REFERENCES change_point (id)" /* the return of its level */
    ") STRICT;"
    "CREATE INDEX alert_open ON alert (track_id, id) WHERE state IN ('new', 'acknowledged');"
    "CREATE INDEX alert_by_state ON alert (state, id);"
    "CREATE INDEX alert_by_track ON alert (track_id, id);"
    "CREATE INDEX alert_by_series ON alert (series_id, id);"
    "CREATE INDEX alert_closed_by ON alert (closed_by) WHERE closed_by IS NOT NULL;"

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
    ") STRICT, WITHOUT ROWID;";

/* clang-format on */
