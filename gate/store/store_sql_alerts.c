/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql_alerts.c: the statements of alerts, of what the watch reads, and of who is told. */
#include "gate/store/store_sql.h"

#include <stddef.h>

#include "gate/store/store_alert.h"

#define ALERT_TABLES(by)                                                                           \
    "FROM alert a " by " LEFT JOIN series s ON s.id = a.series_id "                                \
    "CROSS JOIN track t ON t.id = a.track_id CROSS JOIN test_case c ON c.id = t.case_id "          \
    "CROSS JOIN device d ON d.id = t.device_id CROSS JOIN run r ON r.id = a.run_id "               \
    "LEFT JOIN revision v ON v.id = r.revision_id "                                                \
    "LEFT JOIN run b ON b.id = a.before_run_id LEFT JOIN revision w ON w.id = b.revision_id "      \
    "LEFT JOIN result e ON a.confirmed = 1 AND e.run_id = a.run_id AND e.track_id = a.track_id "
#define ALERT_COLUMNS                                                                              \
    "a.id, c.name, d.model, coalesce(s.provider, ''), r.contract, a.kind, a.state, a.time_ms, "    \
    "r.uuid, "                                                                                     \
    "coalesce(v.commit_id, ''), coalesce(w.commit_id, ''), a.change, a.before_value, "             \
    "a.after_value, a.reason, a.who, a.updated_ms, coalesce(a.closed_ms, 0), a.by_vendor,"         \
    " a.confirmed, coalesce(e.evidence, ''), a.assignee, r.subject, r.author,"                     \
    " coalesce(b.subject, ''), coalesce(b.author, ''), coalesce(v.parent, '') "
/* clang-format off */
/* ?2 to ?5: state, device, case, kind or NULL */
#define IS_ASKED(a) \
    "(?2 IS NULL OR " a ".state = ?2)" \
    " AND (?3 IS NULL OR " a ".device_id = (SELECT id FROM device WHERE model = ?3))" \
    " AND (?4 IS NULL OR " a ".track_id IN (SELECT o.id FROM track o WHERE o.case_id =" \
    "  (SELECT p.id FROM test_case p WHERE p.name = ?4)))" \
    " AND (?5 IS NULL OR " a ".kind = ?5) "
/* Of the group of `a`, which is of run `r` and its before_run `b`. */
#define NEWER_OF_GROUP \
    "SELECT 1 FROM alert x INDEXED BY alert_by_run LEFT JOIN run y ON y.id = x.before_run_id " \
    "WHERE x.run_id IN (SELECT g.id FROM run g WHERE g.revision_id = r.revision_id" \
    "  UNION ALL SELECT r.id)" \
    " AND (r.revision_id IS NULL OR y.revision_id IS b.revision_id) AND x.id > a.id" \
    " AND " IS_ASKED("x")
/* ?1: ids below, ?6: limit, ?7: 1: of each group only the newest that is asked for */
#define ALERTS(first) \
    "SELECT " ALERT_COLUMNS ALERT_TABLES("") "WHERE " first " a.id < ?1 AND " IS_ASKED("a") \
    "AND (?7 = 0 OR NOT EXISTS (" NEWER_OF_GROUP ")) ORDER BY a.id DESC LIMIT ?6"
/* clang-format on */
#define ALERT_ROW_COLUMNS                                                                          \
    "a.id, a.kind, a.state, a.time_ms, a.run_id, coalesce(a.before_run_id, 0), a.before_value,"    \
    " a.after_value, a.by_vendor, a.confirmed, coalesce(a.end_run_id, 0), r.epoch, a.who,"         \
    " coalesce((SELECT max(v.time_ms) FROM alert_event v WHERE v.alert_id = a.id"                  \
    "  AND v.to_state = 'new' AND v.from_state <> 'new' AND v.who <> '" ALERT_SERVER "'), 0) "     \
    "FROM alert a CROSS JOIN run r ON r.id = a.run_id "
const char *const store_sql_alerts[STORE_SQL_COUNT] = {
    [SQL_ALERTS] = ALERTS(""),
    [SQL_ALERTS_OF_STATE] = ALERTS("a.state = ?2 AND"),
    [SQL_ALERTS_OF_KIND] = ALERTS("a.kind = ?5 AND"),
    [SQL_ALERTS_OF_KIND_STATE] = ALERTS("a.kind = ?5 AND a.state = ?2 AND"),
    [SQL_ALERTS_OF_DEVICE] = ALERTS("a.device_id = (SELECT id FROM device WHERE model = ?3) AND"),
    [SQL_ALERTS_OF_CASE] = ALERTS("a.track_id IN (SELECT o.id FROM track o WHERE o.case_id ="
                                  "  (SELECT p.id FROM test_case p WHERE p.name = ?4)) AND"),
    /* ?1: device, ?2: kind or NULL */
    [SQL_ALERT_COUNTS] = "SELECT state, sum(n) FROM alert_count WHERE (?1 IS NULL OR"
                         " device_id = (SELECT id FROM device WHERE model = ?1))"
                         " AND (?2 IS NULL OR kind = ?2) GROUP BY state",
    /* ?3: case */
    [SQL_ALERT_COUNTS_OF_CASE] =
        "SELECT a.state, count(*) FROM test_case c CROSS JOIN track t ON t.case_id = c.id "
        "CROSS JOIN device d ON d.id = t.device_id CROSS JOIN alert a ON a.track_id = t.id "
        "WHERE (?1 IS NULL OR d.model = ?1) AND (?2 IS NULL OR a.kind = ?2) AND c.name = ?3 "
        "GROUP BY a.state",
    [SQL_ALERT] = "SELECT " ALERT_COLUMNS ALERT_TABLES("") "WHERE a.id = ?1",
    /* ?1: the newest of a group, ?6: limit */
    [SQL_ALERT_GROUP] = "SELECT " ALERT_COLUMNS ALERT_TABLES(
        "INDEXED BY alert_by_run") "CROSS JOIN alert l ON l.id = ?1 CROSS JOIN run m ON m.id = "
                                   "l.run_id "
                                   "LEFT JOIN run k ON k.id = l.before_run_id "
                                   "WHERE a.run_id IN (SELECT g.id FROM alert h CROSS JOIN run n "
                                   "ON n.id = h.run_id"
                                   "  CROSS JOIN run g ON g.revision_id = n.revision_id WHERE h.id "
                                   "= ?1"
                                   "  UNION ALL SELECT run_id FROM alert WHERE id = ?1)"
                                   " AND (m.revision_id IS NULL OR b.revision_id IS k.revision_id)"
                                   " AND a.id <= ?1 AND " IS_ASKED(
                                       "a") "ORDER BY a.id DESC LIMIT ?6",
    [SQL_ALERT_LOG] =
        "SELECT id, alert_id, time_ms, who, coalesce(from_state, ''), to_state, reason "
        "FROM alert_event WHERE alert_id = ?1 ORDER BY id",
    /* ?1: event, ?2: limit */
    [SQL_ALERT_EVENTS] = "SELECT id, alert_id, time_ms, who, coalesce(from_state, ''), to_state,"
                         " reason FROM alert_event WHERE id > ?1 ORDER BY id LIMIT ?2",
    /* ?1: event, ?2: limit; the groups that have opened and closed alerts since then */
    [SQL_ALERT_GROUPS_MOVED] =
        "WITH moved AS ("
        "SELECT max(a.id) AS alert_id, max(r.id) AS run_id, r.revision_id AS at,"
        " b.revision_id AS before, sum(v.to_state IN ('new', 'acknowledged')"
        "  AND coalesce(v.from_state, '') NOT IN ('new', 'acknowledged')) AS n_opened,"
        " sum(coalesce(v.from_state, '') IN ('new', 'acknowledged')"
        "  AND v.to_state NOT IN ('new', 'acknowledged')) AS n_closed "
        "FROM alert_event v CROSS JOIN alert a ON a.id = v.alert_id "
        "CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id "
        "WHERE v.id > ?1 "
        "GROUP BY r.revision_id, coalesce(b.revision_id, 0), iif(r.revision_id IS NULL, r.id, 0) "
        "HAVING n_opened + n_closed > 0 ORDER BY min(v.id) LIMIT ?2) "
        "SELECT m.alert_id, m.n_opened, m.n_closed,"
        " (SELECT count(*) FROM alert x INDEXED BY alert_by_run "
        "  LEFT JOIN run y ON y.id = x.before_run_id WHERE x.run_id IN"
        "  (SELECT g.id FROM run g WHERE g.revision_id = m.at UNION ALL SELECT m.run_id)"
        "  AND (m.at IS NULL OR y.revision_id IS m.before)"
        "  AND x.state IN ('new', 'acknowledged')) "
        "FROM moved m",
    /* ?1: track; the starts of alerts, and the ends of those whose level returned, of which the
       last run before them is not stored */
    [SQL_CHANGE_POINTS] =
        "WITH change AS ("
        "SELECT id, time_ms AS ms, run_id AS at, before_value AS old, after_value AS new, change,"
        " before_run_id AS before "
        "FROM alert WHERE track_id = ?1 AND kind IN ('regression', 'improvement')"
        " AND NOT (state = 'fixed' AND who = '" ALERT_SERVER "' AND end_run_id IS NULL) "
        "UNION ALL SELECT 0, r.time_ms, r.id, a.after_value, a.before_value, 1 / (1 + a.change) - "
        "1, NULL "
        "FROM alert a CROSS JOIN run r ON r.id = a.end_run_id "
        "WHERE a.track_id = ?1 AND a.kind IN ('regression', 'improvement')) "
        "SELECT c.id, c.ms, r.uuid, coalesce(v.commit_id, ''), c.old, c.new, c.change, r.branch,"
        " r.subject, r.author, coalesce(v.parent, ''), coalesce(w.commit_id, ''),"
        " coalesce(b.subject, ''), coalesce(b.author, '') "
        "FROM change c CROSS JOIN run r ON r.id = c.at LEFT JOIN revision v ON v.id = "
        "r.revision_id LEFT JOIN run b ON b.id = c.before "
        "LEFT JOIN revision w ON w.id = b.revision_id "
        "ORDER BY c.ms, c.id",
    /* ?1: track, ?2: limit */
    [SQL_WRONG_RESULTS] =
        "SELECT w.time_ms, r.uuid, coalesce(v.commit_id, ''), w.reason, r.branch, r.subject,"
        " r.author FROM wrong w "
        "CROSS JOIN run r ON r.id = w.run_id LEFT JOIN revision v ON v.id = r.revision_id "
        "WHERE w.track_id = ?1 ORDER BY w.time_ms DESC, w.run_id DESC LIMIT ?2",
    [SQL_PUT_WRONG] =
        "INSERT INTO wrong (track_id, time_ms, run_id, reason) VALUES (?1, ?2, ?3, ?4)",
    [SQL_WEBHOOK_MARK] = "SELECT event_id FROM webhook WHERE target = ?1",
    [SQL_NEWEST_EVENT] = "SELECT coalesce(max(id), 0) FROM alert_event",

    [SQL_WATCH_MARK] = "SELECT run_id, track_id FROM watch WHERE only = 1",
    /* ?1 ?2: run and track of the last one; a row of `result` is a run's, of one track */
    /* the series of a wrong result is the candidate's last one on the branch */
    [SQL_WATCH_NEXT] =
        "SELECT e.run_id, e.track_id, coalesce(e.series_id, (SELECT n.series_id"
        "  FROM newest_result n WHERE n.track_id = e.track_id AND n.branch = r.branch), 0),"
        " r.epoch, r.branch "
        "FROM result e CROSS JOIN run r ON r.id = e.run_id "
        "WHERE (e.run_id, e.track_id) > (?1, ?2) ORDER BY e.run_id, e.track_id LIMIT 1",
    [SQL_PUT_WATCH_MARK] = "UPDATE watch SET run_id = ?1, track_id = ?2 WHERE only = 1",
    /* ?1: series, ?2: newest run, ?3: limit, of all runs, ?4: track, ?5: regression's number;
     * role 0 is the candidate */
    [SQL_WATCH_POINTS] =
        "SELECT p.time_ms, p.run_id, r.epoch, r.branch, r.revision_id, p.verdict, p.p50_ps,"
        " p.control_ps, p.baseline_p50_ps, p.ratio, p.baseline_ms, p.baseline_revision_id, "
        "p.rel_err, p.vendor_ppm, CASE WHEN p.verdict = ?5 THEN (SELECT e.ratio FROM result e"
        "  WHERE e.run_id = p.run_id AND e.track_id = ?4) END "
        "FROM point p CROSS JOIN run r ON r.id = p.run_id "
        "WHERE p.series_id = ?1 AND p.run_id <= ?2 AND p.role = 0 "
        "ORDER BY p.time_ms DESC, p.run_id DESC, p.arm DESC LIMIT ?3",
    /* ?1: track, ?2: newest run, ?3 ?4: time and run of the first, ?5: limit */
    [SQL_WATCH_WRONG] =
        "SELECT w.time_ms, w.run_id, r.epoch, r.branch FROM wrong w "
        "CROSS JOIN run r ON r.id = w.run_id "
        "WHERE w.track_id = ?1 AND w.run_id <= ?2 AND (w.time_ms, w.run_id) >= (?3, ?4) "
        "ORDER BY w.time_ms DESC, w.run_id DESC LIMIT ?5",
    /* ?1: track, ?2: a run before it or 0, ?3: the run up to which, ?4: the least baseline, ?5: a
     * time before it */
    [SQL_RAISED_BASELINE] =
        "SELECT g.to_ns FROM baseline_log g CROSS JOIN run r ON r.id = g.run_id "
        "WHERE g.track_id = ?1 AND g.kind = 'raised'"
        " AND r.time_ms > max(?5, coalesce((SELECT b.time_ms FROM run b WHERE b.id = ?2), -1))"
        " AND r.time_ms <= (SELECT i.time_ms FROM run i WHERE i.id = ?3)"
        " AND g.to_ns >= ?4 ORDER BY g.id LIMIT 1",
    [SQL_PUT_ALERT] =
        "INSERT INTO alert (device_id, track_id, series_id, kind, state, time_ms, run_id,"
        " before_run_id, before_value, after_value, change, reason, who, updated_ms, by_vendor,"
        " confirmed) "
        "SELECT device_id, id, nullif(?2, 0), ?3, 'new', ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, '',"
        " ?10, ?11, ?12, ?13 FROM track WHERE id = ?1",
    /* ?1: alert; in its state, which it has and will not have, or has now */
    [SQL_UNCOUNT_ALERT] = "UPDATE alert_count SET n = n - 1 WHERE (device_id, kind, state) ="
                          " (SELECT device_id, kind, state FROM alert WHERE id = ?1)",
    [SQL_COUNT_ALERT] = "INSERT INTO alert_count (device_id, kind, state, n) "
                        "SELECT device_id, kind, state, 1 FROM alert WHERE id = ?1 "
                        "ON CONFLICT DO UPDATE SET n = n + 1",
    [SQL_ASSIGN_ALERT] = "UPDATE alert SET assignee = ?2, updated_ms = ?3 WHERE id = ?1",
    [SQL_PUT_ALERT_EVENT] =
        "INSERT INTO alert_event (alert_id, time_ms, who, from_state, to_state, reason) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    /* ?7: when it was closed, or NULL; ?8: the run at which the level returned, or 0 */
    [SQL_STEP_ALERT] = "UPDATE alert SET state = ?3, who = ?4, reason = ?5, updated_ms = ?6,"
                       " closed_ms = ?7, end_run_id = nullif(?8, 0) WHERE id = ?1 AND state = ?2",
    [SQL_MOVE_ALERT] = "UPDATE alert SET time_ms = ?2, run_id = ?3, before_run_id = nullif(?4, 0),"
                       " before_value = ?5, after_value = ?6, change = ?7, confirmed = ?8,"
                       " end_run_id = nullif(?9, 0) WHERE id = ?1",
    /* ?1: track, ?2: series, ?3: limit; the newest */
    [SQL_TRACK_ALERTS] = "SELECT " ALERT_ROW_COLUMNS "WHERE a.track_id = ?1"
                         " AND (a.series_id = ?2 OR a.kind = 'wrong') ORDER BY a.id DESC LIMIT ?3",
    [SQL_PUT_WEBHOOK_MARK] = "INSERT INTO webhook (target, event_id) VALUES (?1, ?2) "
                             "ON CONFLICT (target) DO UPDATE SET event_id = excluded.event_id",
};
