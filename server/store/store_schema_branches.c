/*
 * store_schema_branches.c: see store_schema.h. Version 6: the newest results of branches.
 *
 * A track has its newest result, of whatever branch: a merge request's stands in the way of the
 * main branch's. What it took the place of is kept here, the newest of each branch.
 *
 * branch_result  the newest result of a track on a branch, where the track's own is newer and of
 *                another one; it may be older than the track's own of the same branch
 *
 * branch_leader  the lowest point of each series on a branch
 *
 * Of older files the newest run of each device on each of the newest 64 branches is taken, by what
 * its points tell: how sure it was, the fastest provider and the verdict's reason are not known.
 * The leaders of main, master and of runs that name no branch are looked for, which reads all
 * points; of other branches those are known that lead all.
 */
#include "store_schema.h"

/* clang-format off */

#define TIME_RANGE "BETWEEN 0 AND 9007199254740991" /* integers that a double holds */
/* Of one branch: a point of the lowest p50 of each series, which are read in their order. */
#define LEADERS_OF(branch)                                                                         \
    "INSERT OR REPLACE INTO branch_leader (branch, series_id, p50_ps, time_ms, run_id, arm) "      \
    "SELECT " branch ", p.series_id, min(p.p50_ps), p.time_ms, p.run_id, p.arm "                   \
    "FROM point p CROSS JOIN run r ON r.id = p.run_id AND r.branch = " branch                      \
    " WHERE EXISTS (SELECT 1 FROM run WHERE branch = " branch ") GROUP BY p.series_id;"

#define POSITIVE(column) column " REAL CHECK (" column " > 0 AND " column " < 9e999)"
#define NOT_NEGATIVE(column) column " REAL CHECK (" column " >= 0 AND " column " < 9e999)"

const char store_schema_branches[] =
    "CREATE INDEX run_by_device_branch ON run (device_id, branch, time_ms, uuid);"

    "CREATE TABLE branch_result ("
    "  branch TEXT NOT NULL,"
    "  track_id INTEGER NOT NULL REFERENCES track (id),"
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
    "  PRIMARY KEY (branch, track_id)"
    ") STRICT, WITHOUT ROWID;"

    "INSERT INTO branch_result (branch, track_id, time_ms, run_id, verdict, reason, series_id,"
    "  threshold, p50_ns, p50_lo_ns, p50_hi_ns, tflops, gbps, ceiling, best_p50_ns, ratio, peer,"
    "  control_ns, rel_err) "
    "SELECT r.branch, e.track_id, r.time_ms, r.id, e.verdict, '',"
    "  coalesce(e.series_id, t.series_id), t.threshold, p.p50_ps / 1e3, p.p50_lo_ps / 1e3,"
    "  p.p50_hi_ps / 1e3, nullif(s.flops / p.p50_ps, 0), nullif(1e3 * s.bytes / p.p50_ps, 0),"
    "  t.ceiling * t.p50_ns / p.p50_ps * 1e3, p.best_p50_ps / 1e3, 1.0 * p.p50_ps / p.best_p50_ps,"
    "  '', p.control_ps / 1e3, p.rel_err "
    "FROM device d CROSS JOIN run r ON r.device_id = d.id"
    "  AND NOT EXISTS (SELECT 1 FROM run n WHERE n.device_id = d.id AND n.branch = r.branch"
    "    AND (n.time_ms, n.uuid) > (r.time_ms, r.uuid)) "
    "  AND r.branch IN (SELECT branch FROM run GROUP BY branch"
    "    ORDER BY max(time_ms) DESC LIMIT 64) "
    "CROSS JOIN result e ON e.run_id = r.id "
    "CROSS JOIN track t ON t.id = e.track_id AND t.run_id <> r.id "
    "CROSS JOIN run o ON o.id = t.run_id AND o.branch <> r.branch "
    "LEFT JOIN series s ON s.id = e.series_id "
    "LEFT JOIN point p ON p.series_id = e.series_id AND p.time_ms = r.time_ms"
    "  AND p.run_id = r.id AND p.arm = e.arm;"

    "CREATE TABLE branch_leader ("
    "  branch TEXT NOT NULL,"
    "  series_id INTEGER NOT NULL REFERENCES series (id),"
    "  p50_ps INTEGER NOT NULL CHECK (p50_ps > 0),"
    "  time_ms INTEGER NOT NULL,"
    "  run_id INTEGER NOT NULL REFERENCES run (id),"
    "  arm INTEGER NOT NULL,"
    "  PRIMARY KEY (branch, series_id)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO branch_leader (branch, series_id, p50_ps, time_ms, run_id, arm) "
    "SELECT r.branch, l.series_id, l.p50_ps, l.time_ms, l.run_id, l.arm "
    "FROM leader l CROSS JOIN run r ON r.id = l.run_id;"
    LEADERS_OF("'main'")
    LEADERS_OF("'master'")
    LEADERS_OF("''");

/* clang-format on */
