/* store_sql.c: see store_sql.h. The order of the columns is what store_query.c reads. */
#include "store_sql.h"

#define RUN_COLUMNS                                                                                \
    "r.uuid, r.time_ms, r.commit_id, r.branch, r.subject, r.dirty, r.suite, d.model, "             \
    "r.device_name, r.contract, r.verdict, r.exit_code, r.n_cases, r.n_pass, r.n_regression, "     \
    "r.n_improvement, r.n_wrong, r.n_no_verdict, r.n_environment"

#define TOKEN_COLUMNS "id, name, scopes, digest, created_ms, expires_ms, last_used_ms, revoked_ms"

const char *const store_sql[STORE_SQL_COUNT] = {
    [SQL_STATE] = "SELECT i.value, coalesce(r.id, 0), coalesce(r.uuid, '') "
                  "FROM identity i LEFT JOIN run r ON r.id = (SELECT max(id) FROM run)",

    /* ?1 ?2: the key before the first row, ?3: limit */
    [SQL_RUNS] = "SELECT " RUN_COLUMNS " "
                 "FROM run r JOIN device d ON d.id = r.device_id "
                 "WHERE (r.time_ms, r.uuid) < (?1, ?2) "
                 "ORDER BY r.time_ms DESC, r.uuid DESC LIMIT ?3",

    [SQL_DEVICES] = "SELECT " RUN_COLUMNS ", d.n_runs "
                    "FROM device d CROSS JOIN run r ON r.id = ("
                    "  SELECT n.id FROM run n WHERE n.device_id = d.id"
                    "  ORDER BY n.time_ms DESC, n.id DESC LIMIT 1) "
                    "ORDER BY r.time_ms DESC, d.model",

    /* ?1: device model or NULL */
    [SQL_CASES] = "SELECT c.name, c.op, c.dtype, d.model, t.n_runs, v.time_ms, r.uuid,"
                  " r.commit_id, v.verdict, v.p50_ns, v.best_p50_ns, v.tflops, v.ceiling,"
                  " r.contract, v.reason, v.p50_lo_ns, v.p50_hi_ns, v.ratio, v.ratio_lo,"
                  " v.ratio_hi, v.peer, v.peer_ratio, v.mde "
                  "FROM track t CROSS JOIN test_case c ON c.id = t.case_id "
                  "CROSS JOIN device d ON d.id = t.device_id "
                  "CROSS JOIN result v ON (v.track_id, v.time_ms, v.run_id) = ("
                  "  SELECT n.track_id, n.time_ms, n.run_id FROM result n"
                  "  WHERE n.track_id = t.id"
                  "  ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1) "
                  "CROSS JOIN run r ON r.id = v.run_id "
                  "WHERE ?1 IS NULL OR d.model = ?1 "
                  "ORDER BY c.name, d.model",

    /*
     * ?1: case, ?2: device model, ?3: provider or NULL, ?4: limit. Of each series no more than the
     * newest ?4 points are read, however long it is.
     */
    [SQL_TREND] = "SELECT p.time_ms, r.uuid, r.commit_id, s.provider, p.role, p.kernel,"
                  " s.contract, v.verdict, p.p50_ns, p.p50_lo_ns, p.p50_hi_ns, p.p90_ns,"
                  " p.tflops, p.gbps, v.best_p50_ns "
                  "FROM test_case c CROSS JOIN device d "
                  "CROSS JOIN track t ON t.case_id = c.id AND t.device_id = d.id "
                  "CROSS JOIN series s ON s.track_id = t.id "
                  "CROSS JOIN point p ON p.series_id = s.id AND p.time_ms >= coalesce(("
                  "  SELECT n.time_ms FROM point n WHERE n.series_id = s.id"
                  "  ORDER BY n.time_ms DESC LIMIT 1 OFFSET ?4), 0) "
                  "CROSS JOIN result v ON v.track_id = t.id AND v.time_ms = p.time_ms"
                  " AND v.run_id = p.run_id "
                  "CROSS JOIN run r ON r.id = p.run_id "
                  "WHERE c.name = ?1 AND d.model = ?2 AND (?3 IS NULL OR s.provider = ?3) "
                  "ORDER BY p.time_ms DESC, p.run_id DESC, p.arm LIMIT ?4",

    /*
     * ?1: device model or NULL. The contract of a track is that of its newest point; the subquery
     * of the point is the first entry of point_by_p50, whose rows end in the primary key.
     */
    [SQL_LEADERBOARD] = "SELECT c.name, d.model, s.provider, p.kernel, r.commit_id, r.uuid,"
                        " p.time_ms, p.p50_ns, p.tflops, p.gbps, s.contract, p.role "
                        "FROM track t CROSS JOIN test_case c ON c.id = t.case_id "
                        "CROSS JOIN device d ON d.id = t.device_id "
                        "CROSS JOIN series s ON s.track_id = t.id AND s.contract = ("
                        "  SELECT n.contract FROM series n WHERE n.track_id = t.id"
                        "  ORDER BY (SELECT max(q.time_ms) FROM point q WHERE q.series_id = n.id)"
                        "  DESC LIMIT 1) "
                        "CROSS JOIN point p"
                        " ON (p.series_id, p.time_ms, p.run_id, p.arm) = ("
                        "  SELECT q.series_id, q.time_ms, q.run_id, q.arm"
                        "  FROM point q INDEXED BY point_by_p50 WHERE q.series_id = s.id"
                        "  ORDER BY q.p50_ns, q.time_ms, q.run_id, q.arm LIMIT 1) "
                        "CROSS JOIN run r ON r.id = p.run_id "
                        "WHERE ?1 IS NULL OR d.model = ?1 "
                        "ORDER BY c.name, d.model, p.p50_ns, s.provider",

    /* ?1: a prefix of hex digits and hyphens, all of which sort before '~' */
    [SQL_FIND_RUN] = "SELECT id FROM run WHERE uuid >= ?1 AND uuid < ?1 || '~' LIMIT 2",
    [SQL_DOCUMENT] = "SELECT text FROM document WHERE run_id = ?1",
    [SQL_DOCUMENTS] = "SELECT t.text FROM run r CROSS JOIN document t ON t.run_id = r.id "
                      "ORDER BY r.time_ms, r.uuid",

    /* A deferred transaction that turns into a writer can fail at once, without the busy wait. */
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT write",
    [SQL_RELEASE] = "RELEASE write",
    [SQL_ROLLBACK_TO] = "ROLLBACK TO write",

    [SQL_RUN_EXISTS] = "SELECT 1 FROM run WHERE uuid = ?1",
    [SQL_PUT_DEVICE] = "INSERT INTO device (model, n_runs) VALUES (?1, 1) "
                       "ON CONFLICT (model) DO UPDATE SET n_runs = n_runs + 1 RETURNING id",
    [SQL_PUT_RUN] = "INSERT INTO run (uuid, time_ms, commit_id, branch, subject, dirty, suite,"
                    " device_id, device_name, contract, verdict, exit_code, n_cases, n_pass,"
                    " n_regression, n_improvement, n_wrong, n_no_verdict, n_environment) "
                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
                    " ?16, ?17, ?18, ?19)",
    [SQL_PUT_DOCUMENT] = "INSERT INTO document (run_id, text) VALUES (?1, ?2)",
    [SQL_PUT_CASE] = "INSERT INTO test_case (name, op, dtype) VALUES (?1, ?2, ?3) "
                     "ON CONFLICT (name) DO UPDATE SET op = excluded.op, dtype = excluded.dtype "
                     "RETURNING id",
    [SQL_PUT_TRACK] = "INSERT INTO track (case_id, device_id, n_runs) VALUES (?1, ?2, 1) "
                      "ON CONFLICT (case_id, device_id) DO UPDATE SET n_runs = n_runs + 1 "
                      "RETURNING id",
    [SQL_PUT_RESULT] = "INSERT INTO result (track_id, time_ms, run_id, verdict, reason, p50_ns,"
                       " p50_lo_ns, p50_hi_ns, tflops, ceiling, best_p50_ns, ratio, ratio_lo,"
                       " ratio_hi, mde, peer, peer_ratio) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
                       " ?16, ?17)",
    [SQL_PUT_SERIES] = "INSERT INTO series (track_id, provider, contract) VALUES (?1, ?2, ?3) "
                       "ON CONFLICT (track_id, provider, contract) "
                       "DO UPDATE SET provider = excluded.provider RETURNING id",
    [SQL_PUT_POINT] = "INSERT INTO point (series_id, time_ms, run_id, arm, role, kernel, p50_ns,"
                      " p50_lo_ns, p50_hi_ns, p90_ns, tflops, gbps) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",

    [SQL_FIND_TOKEN] = "SELECT " TOKEN_COLUMNS " FROM token WHERE id = ?1",
    [SQL_TOKENS] = "SELECT " TOKEN_COLUMNS " FROM token ORDER BY created_ms, id",
    [SQL_PUT_TOKEN] = "INSERT INTO token (id, name, scopes, digest, created_ms, expires_ms) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_REVOKE_TOKEN] = "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
    [SQL_TOUCH_TOKEN] = "UPDATE token SET last_used_ms = ?2 "
                        "WHERE id = ?1 AND (last_used_ms IS NULL OR last_used_ms < ?2)",
};
