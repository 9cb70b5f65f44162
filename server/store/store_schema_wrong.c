/*
 * store_schema_wrong.c: see store_schema.h. Version 5: the results that are wrong. They are never
 * timed, so no point tells of them, and `result` is not in the order of tracks.
 */
#include "store_schema.h"

/* clang-format off */

const char store_schema_wrong[] =
    "CREATE TABLE wrong ("
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
    "  time_ms INTEGER NOT NULL CHECK (time_ms BETWEEN 0 AND 9007199254740991),"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  reason TEXT NOT NULL," /* "": not known of what is older than this table */
    "  PRIMARY KEY (track_id, time_ms, run_id)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO wrong SELECT e.track_id, r.time_ms, e.run_id,"
    "  CASE WHEN t.run_id = e.run_id THEN t.reason ELSE '' END "
    "FROM result e JOIN run r ON r.id = e.run_id JOIN track t ON t.id = e.track_id "
    "WHERE e.verdict = 3;";
