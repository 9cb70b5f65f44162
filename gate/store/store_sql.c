/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql.c: see store_sql.h. The order of the columns is what the files of the queries read. */
#include "gate/store/store_sql.h"

#include <stddef.h>

#define RUN_COLUMNS                                                                                \
    "r.uuid, r.time_ms, coalesce(v.commit_id, ''), r.branch, r.subject, r.dirty, r.suite, "        \
    "d.model, r.device_name, r.contract, r.verdict, r.exit_code, r.n_cases, r.n_pass, "            \
    "r.n_regression, r.n_improvement, r.n_wrong, r.n_no_verdict, r.n_environment, "                \
    "coalesce(v.parent, ''), r.epoch, r.id, r.host, coalesce(m.gpu, ''), coalesce(m.name, ''), "   \
    "r.control_ns, r.control_drift, r.vendor_ratio, r.n_vendor, r.author"

#define RUN_TABLES                                                                                 \
    "CROSS JOIN device d ON d.id = r.device_id "                                                   \
    "LEFT JOIN revision v ON v.id = r.revision_id LEFT JOIN machine m ON m.id = r.machine_id "

/* Of a GPU's uuid, or of a host. */
#define MACHINES_NAMED(name) "(SELECT id FROM machine WHERE " name " IN (name, host))"

/* ?1 ?2: the key before the first row, ?3: limit, then the filters, NULL for any. */
#define RUNS(first)                                                                                \
    "SELECT " RUN_COLUMNS " FROM run r " RUN_TABLES "WHERE " first                                 \
    " (r.time_ms, r.uuid) < (?1, ?2) AND (?4 IS NULL OR d.model = ?4)"                             \
    " AND (?5 IS NULL OR r.branch = ?5) AND (?6 IS NULL OR r.verdict = ?6)"                        \
    " AND (?8 IS NULL OR r.machine_id IN " MACHINES_NAMED(                                         \
        "?8") ") "                                                                                 \
              "ORDER BY r.time_ms DESC, r.uuid DESC LIMIT ?3"

/* What a curve is drawn of. ?1: series, ?2 ?3: first and last time. */
#define TREND_LEVELS(more, tables, range, order)                                                   \
    "SELECT p.time_ms, p.p50_ps, p.p50_lo_ps, p.p50_hi_ps" more " FROM point p " tables            \
    "WHERE p.series_id = ?1 AND p.time_ms BETWEEN ?2 AND ?3 " range "ORDER BY " order              \
    "p.time_ms, p.run_id, p.arm"
/* The place of a run in the order of commits; those outside of a repository come first. */
#define COMMIT_PLACE "coalesce(v.first_ms, -1), coalesce(v.id, 0)"

/* The commit of baseline `g`, and a run of it for the subject and the author. */
#define BASELINE_SUBJECT                                                                           \
    "nullif(g.commit_id, '') AS 'commit', nullif(w.subject, '') AS subject,"                       \
    " nullif(w.author, '') AS author"
#define BASELINE_COMMIT                                                                            \
    "LEFT JOIN run w ON w.id = (SELECT n.id FROM run n WHERE n.revision_id ="                      \
    "  (SELECT o.id FROM revision o WHERE o.commit_id = g.commit_id) ORDER BY n.time_ms LIMIT 1) "
/* A part of the key before the first row; it comes as text, or as NULL for the start. */
#define NUMBER(parameter, start) "CAST(coalesce(" parameter ", " start ") AS INTEGER)"
#define NEWEST "9223372036854775807"
/* :after: an id */
#define BASELINE_LOG(first)                                                                        \
    "SELECT g.id AS '#', c.name AS 'case', d.model AS device, r.time_ms AS time_ms, r.uuid AS "    \
    "run,"                                                                                         \
    " g.from_ns AS from_ns, g.to_ns AS to_ns, " BASELINE_SUBJECT ", g.kind AS kind, "              \
    "r.branch AS '-branch' FROM baseline_log g CROSS JOIN run r ON r.id = g.run_id "               \
    "CROSS JOIN device d ON d.id = g.device_id CROSS JOIN track t ON t.id = g.track_id "           \
    "CROSS JOIN test_case c ON c.id = t.case_id " BASELINE_COMMIT "WHERE " first                   \
    " g.id < " NUMBER(":after", NEWEST) " ORDER BY g.id DESC LIMIT :limit"

/* A sum that a double holds, whatever documents say. */
#define ADD(column) " " column " = min(9007199254740991, " column " + excluded." column ")"

/* :after :after2: time and id */
#define CALIBRATIONS(first)                                                                        \
    "SELECT r.uuid AS run, b.time_ms AS '#time_ms', b.run_id AS '#', d.model AS device,"           \
    " nullif(r.host, '') AS host, nullif(m.gpu, '') AS gpu, m.name AS machine,"                    \
    " v.commit_id AS 'commit', nullif(r.subject, '') AS subject, nullif(r.author, '') AS author,"  \
    " r.contract AS contract, b.threshold AS threshold, b.processes AS processes,"                 \
    " (SELECT json_group_array(json_object('id', k.name, 'mde', k.mde,"                            \
    "   'resolved', json(iif(k.resolved, 'true', 'false')), 'injected', json((SELECT"              \
    "    json_group_array(json_object('share', i.share, 'decisions', i.decisions, 'red', i.red,"   \
    "     'pass', i.pass, 'no_verdict', i.no_verdict)) FROM (SELECT * FROM injected j"             \
    "     WHERE j.run_id = k.run_id AND j.place = k.place ORDER BY j.step) i)))) FROM"             \
    "   (SELECT * FROM calibrated l WHERE l.run_id = b.run_id ORDER BY l.place) k) AS '*cases' "   \
    "FROM calibration b CROSS JOIN run r ON r.id = b.run_id " RUN_TABLES "WHERE " first            \
    " (b.time_ms, b.run_id) < (" NUMBER(":after", NEWEST) ", " NUMBER(                             \
        ":after2", "0") ")"                                                                        \
                        " AND (:device IS NULL OR d.model = :device)"                              \
                        " ORDER BY b.time_ms DESC, b.run_id DESC LIMIT :limit"

#define TOKEN_COLUMNS "id, name, scopes, digest, created_ms, expires_ms, last_used_ms, revoked_ms"

const char *const store_sql[STORE_SQL_COUNT] = {
    [SQL_READ_BEGIN] = "BEGIN",
    [SQL_READ_END] = "COMMIT",
    [SQL_STATE] = "SELECT i.value || i.copy, i.n_writes, coalesce(r.uuid, '') "
                  "FROM identity i LEFT JOIN run r ON r.id = (SELECT max(id) FROM run)",

    [SQL_RUNS] = RUNS(""),
    [SQL_RUNS_OF_DEVICE] = RUNS("r.device_id = (SELECT id FROM device WHERE model = ?4) AND"),
    [SQL_RUNS_OF_BRANCH] = RUNS("r.branch = ?5 AND"),
    [SQL_RUNS_OF_VERDICT] = RUNS("r.verdict = ?6 AND"),
    [SQL_RUNS_OF_MACHINE] = RUNS("r.machine_id IN " MACHINES_NAMED("?8") " AND"),
    /* ?7: the whole commit */
    [SQL_RUNS_OF_COMMIT] =
        RUNS("r.revision_id = (SELECT CASE count(*) WHEN 1 THEN min(id) END FROM revision "
             "WHERE commit_id >= ?7 AND commit_id < ?7 || '~') AND"),

    /* ?1: a prefix of hex digits */
    [SQL_FIND_COMMIT] =
        "SELECT id, first_ms FROM revision WHERE commit_id >= ?1 AND commit_id < ?1 || '~' "
        "LIMIT 2",
    /* ?1: limit; by their newest runs. From one branch to the next, not from run to run. */
    [SQL_BRANCHES] =
        "WITH RECURSIVE name(branch) AS (SELECT min(branch) FROM run UNION ALL"
        "  SELECT (SELECT min(r.branch) FROM run r WHERE r.branch > n.branch) FROM name n"
        "  WHERE n.branch IS NOT NULL) "
        "SELECT n.branch, r.time_ms, r.uuid FROM name n "
        "CROSS JOIN run r ON r.id = (SELECT o.id FROM run o WHERE o.branch = n.branch"
        "  ORDER BY o.time_ms DESC, o.uuid DESC LIMIT 1) "
        "ORDER BY r.time_ms DESC, n.branch LIMIT ?1",

    [SQL_RUN] = "SELECT " RUN_COLUMNS " FROM run r " RUN_TABLES "WHERE r.id = ?1",
    /* ?1: a prefix of hex digits and hyphens, all of which sort before '~' */
    [SQL_FIND_RUN] = "SELECT id FROM run WHERE uuid >= ?1 AND uuid < ?1 || '~' LIMIT 2",
    /* ?1: a prefix of hex digits, ?2: device model or NULL; the newest run of each such commit */
    [SQL_FIND_RUN_OF_COMMIT] =
        "SELECT coalesce((SELECT r.id FROM run r WHERE r.revision_id = v.id"
        "  AND (?2 IS NULL OR r.device_id = (SELECT id FROM device WHERE model = ?2))"
        "  ORDER BY r.time_ms DESC, r.uuid DESC LIMIT 1), 0) "
        "FROM revision v WHERE v.commit_id >= ?1 AND v.commit_id < ?1 || '~' LIMIT 2",

    /* ?1: branch or NULL */
    [SQL_DEVICES] = "SELECT " RUN_COLUMNS ", d.n_runs "
                    "FROM device d CROSS JOIN run r ON r.id = iif(?1 IS NULL,"
                    "  (SELECT n.id FROM run n WHERE n.device_id = d.id"
                    "   ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1),"
                    "  (SELECT n.id FROM run n WHERE n.device_id = d.id AND n.branch = ?1"
                    "   ORDER BY n.time_ms DESC, n.uuid DESC LIMIT 1)) "
                    "LEFT JOIN revision v ON v.id = r.revision_id "
                    "LEFT JOIN machine m ON m.id = r.machine_id "
                    "ORDER BY r.time_ms DESC, d.model",
    [SQL_EPOCHS] =
        "SELECT e.from_ms, e.epoch FROM epoch e "
        "WHERE e.device_id = (SELECT id FROM device WHERE model = ?1) ORDER BY e.from_ms",

    /* What the list of cases is filtered and sorted by. ?1: branch, ?2: device model, or NULL. */
    [SQL_TRACKS] =
        "SELECT t.id, c.name, c.op, c.dtype, d.model, n.verdict, n.ratio, n.p50_ns, n.time_ms,"
        " EXISTS (SELECT 1 FROM alert a INDEXED BY alert_open WHERE a.track_id = t.id"
        "  AND a.state IN ('new', 'acknowledged') AND a.kind = 'regression'), n.peer_ratio,"
        " n.ceiling "
        "FROM device d CROSS JOIN track t ON t.device_id = d.id "
        "CROSS JOIN newest_result n ON n.track_id = t.id AND n.branch = coalesce(?1, t.branch) "
        "CROSS JOIN test_case c ON c.id = t.case_id WHERE ?2 IS NULL OR d.model = ?2",
    /* ?1: track, ?2: branch or NULL; columns as store_list.c reads them */
    [SQL_CASE] =
        "SELECT c.name AS id, c.op AS op, c.dtype AS dtype, d.model AS device, t.n_runs AS runs,"
        " n.time_ms AS time_ms, r.uuid AS run, v.commit_id AS 'commit',"
        " nullif(n.branch, '') AS branch, r.contract AS contract, n.verdict AS '!verdict',"
        " n.reason AS reason, n.p50_ns AS p50_ns, n.p50_lo_ns AS p50_lo_ns,"
        " n.p50_hi_ns AS p50_hi_ns, n.baseline_p50_ns AS baseline_p50_ns, n.ratio AS ratio,"
        " n.ratio_lo AS ratio_lo, n.ratio_hi AS ratio_hi, n.mde AS mde, n.tflops AS tflops,"
        " n.ceiling AS ceiling, nullif(n.peer, '') AS peer, n.peer_ratio AS peer_ratio,"
        " n.gbps AS gbps, n.control_ns AS control_ns, nullif(n.rel_err, 0) AS rel_err,"
        " n.threshold AS threshold, n.ratio - 1 AS change,"
        " (SELECT a.id FROM alert a INDEXED BY alert_open WHERE a.track_id = t.id"
        "  AND a.state IN ('new', 'acknowledged') ORDER BY a.id DESC LIMIT 1) AS alert,"
        " n.series_id AS '-series' "
        "FROM track t "
        "CROSS JOIN newest_result n ON n.track_id = t.id AND n.branch = coalesce(?2, t.branch) "
        "CROSS JOIN test_case c ON c.id = t.case_id CROSS JOIN device d ON d.id = t.device_id "
        "CROSS JOIN run r ON r.id = n.run_id LEFT JOIN revision v ON v.id = r.revision_id "
        "WHERE t.id = ?1",
    /* ?1: series, ?2: branch or NULL, ?3: limit, ?4: how many of any branch are looked at */
    [SQL_NEWEST_POINTS] =
        "SELECT p.p50_ps FROM (SELECT run_id, p50_ps FROM point WHERE series_id = ?1 AND role = 0"
        "  ORDER BY time_ms DESC, run_id DESC, arm DESC LIMIT ?4) p "
        "CROSS JOIN run r ON r.id = p.run_id WHERE ?2 IS NULL OR r.branch = ?2 LIMIT ?3",

    /*
     * ?1: case, ?2: device model, ?3: provider or NULL, ?4: limit. Of each series no more than the
     * newest ?4 points are read, however long it is.
     */
    [SQL_TREND] = "SELECT p.time_ms, r.uuid, coalesce(v.commit_id, ''), s.provider, p.role, k.name,"
                  " s.contract, p.verdict, p.p50_ps, p.p50_lo_ps, p.p50_hi_ps, p.p90_ps,"
                  " s.flops, s.bytes, p.baseline_p50_ps, r.dirty "
                  "FROM test_case c CROSS JOIN device d "
                  "CROSS JOIN track t ON t.case_id = c.id AND t.device_id = d.id "
                  "CROSS JOIN series s ON s.track_id = t.id "
                  "CROSS JOIN point p ON p.series_id = s.id AND p.time_ms >= coalesce(("
                  "  SELECT n.time_ms FROM point n WHERE n.series_id = s.id"
                  "  ORDER BY n.time_ms DESC LIMIT 1 OFFSET ?4), 0) "
                  "CROSS JOIN run r ON r.id = p.run_id "
                  "CROSS JOIN kernel k ON k.id = p.kernel_id "
                  "LEFT JOIN revision v ON v.id = r.revision_id "
                  "WHERE c.name = ?1 AND d.model = ?2 AND (?3 IS NULL OR s.provider = ?3) "
                  "ORDER BY p.time_ms DESC, p.run_id DESC, p.arm LIMIT ?4",

    /*
     * ?1: case, ?2: device model, ?3: provider or NULL, ?4: contract or NULL. A row for each
     * series, or one with none, and the role of its newest point; and what there is to be asked
     * for besides, which mostly is nothing.
     */
    [SQL_TREND_SERIES] =
        "SELECT t.id, n.threshold, b.p50_ns, b.commit_id, b.stored_ms,"
        " EXISTS (SELECT 1 FROM alert a WHERE a.track_id = t.id),"
        " EXISTS (SELECT 1 FROM baseline_log g WHERE g.track_id = t.id),"
        " EXISTS (SELECT 1 FROM wrong w WHERE w.track_id = t.id),"
        " s.id, s.provider, s.contract, s.flops, s.bytes,"
        " (SELECT p.role FROM point p WHERE p.series_id = s.id"
        "  ORDER BY p.time_ms DESC, p.run_id DESC, p.arm DESC LIMIT 1) "
        "FROM test_case c CROSS JOIN device d "
        "CROSS JOIN track t ON t.case_id = c.id AND t.device_id = d.id "
        "CROSS JOIN newest_result n ON n.track_id = t.id AND n.branch = t.branch "
        "LEFT JOIN baseline b ON b.track_id = t.id "
        "LEFT JOIN series s ON s.track_id = t.id AND (?3 IS NULL OR s.provider = ?3)"
        " AND (?4 IS NULL OR s.contract = ?4) "
        "WHERE c.name = ?1 AND d.model = ?2 ORDER BY s.provider, s.contract",
    [SQL_TREND_LEVELS] = TREND_LEVELS("", "", "", ""),
    [SQL_TREND_KEYS] = TREND_LEVELS(", p.run_id, p.arm", "", "", ""),
    /* ?4: branch or NULL, ?5 to ?8: first and last commit, ?9: in the order of commits? */
    /* ?10: main branch or NULL */
    [SQL_TREND_LEVELS_OF_RUNS] = TREND_LEVELS(
        ", p.run_id, p.arm, " COMMIT_PLACE ", r.branch = ?10, p.ratio, p.baseline_ms",
        "CROSS JOIN run r ON r.id = p.run_id LEFT JOIN revision v ON v.id = r.revision_id ",
        "AND (?4 IS NULL OR r.branch = ?4) AND (" COMMIT_PLACE ") >= (?5, ?6)"
        " AND (" COMMIT_PLACE ") <= (?7, ?8) ",
        "iif(?9, coalesce(v.first_ms, -1), 0), iif(?9, v.id, 0), "),
    /* ?1: series */
    [SQL_TREND_CHAIN] =
        "SELECT p.time_ms, p.ratio, p.baseline_ms, p.baseline_revision_id, r.revision_id "
        "FROM point p CROSS JOIN run r ON r.id = p.run_id "
        "WHERE p.series_id = ?1 AND p.ratio > 0 ORDER BY p.time_ms, p.run_id, p.arm",
    /* ?1 to ?4: key of the point */
    [SQL_TREND_DETAILS] =
        "SELECT p.verdict, p.p10_ps, p.p90_ps, p.control_ps, p.baseline_p50_ps, p.rel_err,"
        " p.sm_clock_khz, p.registers, p.shared_bytes, p.spill_bytes, p.vendor_ppm, r.uuid,"
        " v.commit_id, r.branch, k.name "
        "FROM point p CROSS JOIN run r ON r.id = p.run_id "
        "CROSS JOIN kernel k ON k.id = p.kernel_id LEFT JOIN revision v ON v.id = r.revision_id "
        "WHERE p.series_id = ?1 AND p.time_ms = ?2 AND p.run_id = ?3 AND p.arm = ?4",
    /* ?1: run */
    [SQL_TREND_SUBJECT] = "SELECT subject, author FROM run WHERE id = ?1",

    /*
     * ?1: device model or NULL, ?2: limit, ?3 to ?6: the key before the first row, or NULL, ?7:
     * branch or NULL. The contract of a track is that of its newest point.
     */
    [SQL_LEADERBOARD] =
        "SELECT c.name, d.model, s.provider, k.name, coalesce(v.commit_id, ''), r.uuid, l.time_ms,"
        " l.p50_ps, s.flops, s.bytes, s.contract, p.role, r.branch, r.dirty, r.subject, r.author,"
        " coalesce(m.uuid, ''), n.p50_ps "
        "FROM test_case c CROSS JOIN track t ON t.case_id = c.id "
        "CROSS JOIN device d ON d.id = t.device_id "
        "CROSS JOIN series s ON s.track_id = t.id AND s.contract = t.point_contract "
        "CROSS JOIN leader l ON l.series_id = s.id AND l.branch = coalesce(?7,"
        "  (SELECT b.branch FROM leader b WHERE b.series_id = s.id"
        "   ORDER BY b.p50_ps, b.time_ms, b.run_id LIMIT 1)) "
        "CROSS JOIN point p ON p.series_id = s.id AND p.time_ms = l.time_ms"
        " AND p.run_id = l.run_id AND p.arm = l.arm CROSS JOIN run r ON r.id = l.run_id "
        "CROSS JOIN kernel k ON k.id = p.kernel_id LEFT JOIN revision v ON v.id = r.revision_id "
        "LEFT JOIN newest_result w ON w.track_id = t.id AND w.branch = coalesce(?7, t.branch) "
        "LEFT JOIN point n ON n.series_id = s.id AND n.time_ms = w.time_ms"
        " AND n.run_id = w.run_id AND n.arm = (SELECT o.arm FROM point o WHERE"
        "  o.series_id = s.id AND o.time_ms = w.time_ms AND o.run_id = w.run_id"
        "  ORDER BY o.p50_ps LIMIT 1) "
        "LEFT JOIN run m ON m.id = n.run_id "
        "WHERE (?1 IS NULL OR d.model = ?1) AND c.name >= coalesce(?3, '')"
        " AND (?3 IS NULL OR (c.name, d.model, l.p50_ps, s.provider) > (?3, ?4, ?5, ?6)) "
        "ORDER BY c.name, d.model, l.p50_ps, s.provider LIMIT ?2",

    /* ?1: run */
    [SQL_RESULTS] = "SELECT c.name, e.verdict, e.series_id, e.arm, r.time_ms, e.threshold, e.ratio,"
                    " e.ratio_lo, e.ratio_hi, r.revision_id "
                    "FROM run r CROSS JOIN result e ON e.run_id = r.id "
                    "CROSS JOIN track t ON t.id = e.track_id "
                    "CROSS JOIN test_case c ON c.id = t.case_id WHERE r.id = ?1",
    /* ?1 to ?4: key */
    [SQL_RESULT_POINT] = "SELECT p50_ps, p50_lo_ps, p50_hi_ps, control_ps, rel_err, baseline_ms,"
                         " baseline_revision_id FROM point "
                         "WHERE series_id = ?1 AND time_ms = ?2 AND run_id = ?3 AND arm = ?4",

    /* ?1: series, ?2: when the one became a baseline, ?3 ?4: commit of the next, and when */
    [SQL_BASELINE_LINK] =
        "SELECT e.ratio, e.ratio_lo, e.ratio_hi FROM run r "
        "CROSS JOIN point p ON p.series_id = ?1 AND p.time_ms = r.time_ms AND p.run_id = r.id "
        "CROSS JOIN series s ON s.id = p.series_id "
        "CROSS JOIN result e ON e.run_id = r.id AND e.track_id = s.track_id "
        "WHERE r.revision_id = ?3 AND r.time_ms <= ?4 AND p.role = 0 AND p.baseline_ms = ?2"
        " AND e.ratio > 0 AND e.ratio_lo > 0 AND e.ratio_hi > 0 "
        "ORDER BY r.time_ms DESC LIMIT 1",
    /* Statements of lists: see store_list.c for the names of their columns and parameters. */
    [SQL_BASELINES] =
        "SELECT c.name AS '#case', d.model AS '#device', r.contract AS contract,"
        " g.p50_ns AS p50_ns, " BASELINE_SUBJECT ", g.stored_ms AS time_ms,"
        " nullif(r.epoch, '') AS epoch, r.uuid AS run "
        "FROM test_case c CROSS JOIN track t ON t.case_id = c.id "
        "CROSS JOIN baseline g ON g.track_id = t.id "
        "CROSS JOIN device d ON d.id = t.device_id "
        "CROSS JOIN run r ON r.id = g.run_id " BASELINE_COMMIT
        "WHERE (:device IS NULL OR d.model = :device) AND c.name >= coalesce(:after, '')"
        " AND (:after IS NULL OR (c.name, d.model) > (:after, :after2)) "
        "ORDER BY c.name, d.model LIMIT :limit",
    [SQL_BASELINE_LOG] = BASELINE_LOG(""),
    [SQL_BASELINE_LOG_OF_DEVICE] =
        BASELINE_LOG("g.device_id = (SELECT id FROM device WHERE model = :device) AND"),
    [SQL_BASELINE_LOG_OF_CASE] = BASELINE_LOG(
        "g.track_id = (SELECT o.id FROM test_case p CROSS JOIN device q CROSS JOIN track o"
        "  ON o.case_id = p.id AND o.device_id = q.id"
        "  WHERE p.name = :case AND q.model = :device) AND"),

    [SQL_CALIBRATIONS] = CALIBRATIONS(""),
    [SQL_CALIBRATIONS_OF_DEVICE] =
        CALIBRATIONS("b.device_id = (SELECT id FROM device WHERE model = :device) AND"),
    [SQL_CALIBRATIONS_OF_MACHINE] =
        CALIBRATIONS("b.machine_id IN " MACHINES_NAMED(":machine") " AND"),
    /* ?1: device model or NULL, ?2: limit; the newest */
    [SQL_MACHINES] = "SELECT m.id, d.model, m.name, m.host, m.gpu, m.n_runs, m.time_ms "
                     "FROM machine m CROSS JOIN device d ON d.id = m.device_id "
                     "WHERE ?1 IS NULL OR d.model = ?1 ORDER BY m.time_ms DESC, m.id DESC LIMIT ?2",
    /* ?1: machine, ?2: limit; the newest */
    [SQL_MACHINE_RUNS] = "SELECT control_ns, control_drift, n_cases, n_no_verdict, n_environment "
                         "FROM run WHERE machine_id = ?1 ORDER BY time_ms DESC, uuid DESC LIMIT ?2",
    /* ?1: machine; the newest */
    [SQL_MACHINE_CALIBRATION] =
        "SELECT r.uuid, b.time_ms, b.threshold, count(*), sum(c.resolved), max(c.mde) "
        "FROM (SELECT run_id, time_ms, threshold FROM calibration WHERE machine_id = ?1"
        "  ORDER BY time_ms DESC, run_id DESC LIMIT 1) b "
        "CROSS JOIN run r ON r.id = b.run_id CROSS JOIN calibrated c ON c.run_id = b.run_id "
        "GROUP BY b.run_id",
    [SQL_COVERAGE] =
        "SELECT d.model AS device, v.op AS op, v.runs AS runs, v.cases AS cases,"
        " v.checks AS checks, v.shapes AS shapes, v.layouts AS layouts, v.launches AS launches,"
        " v.skipped AS skipped, v.most_values AS 'values', v.most_pairs AS pairs,"
        " v.pairs_of AS pairs_of "
        "FROM coverage v CROSS JOIN device d ON d.id = v.device_id "
        "WHERE :device IS NULL OR d.model = :device ORDER BY d.model, v.op",

    [SQL_DOCUMENT] = "SELECT packed, n_bytes FROM document WHERE run_id = ?1",
    [SQL_DOCUMENT_LENGTH] = "SELECT length(packed), n_bytes FROM document WHERE run_id = ?1",
    [SQL_DOCUMENTS] = "SELECT t.packed, t.n_bytes FROM run r "
                      "CROSS JOIN document t ON t.run_id = r.id ORDER BY r.time_ms, r.uuid",

    [SQL_CHECK_DOCUMENTS] = "SELECT r.uuid, t.packed, t.n_bytes, t.sha256, t.thinned_ms FROM run r "
                            "CROSS JOIN document t ON t.run_id = r.id",

    /* A deferred transaction that turns into a writer can fail at once, without the busy wait. */
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT write",
    [SQL_RELEASE] = "RELEASE write",
    [SQL_ROLLBACK_TO] = "ROLLBACK TO write",
    [SQL_NAME_COPY] = "UPDATE identity SET copy = lower(hex(randomblob(8))) WHERE only = 1",
    [SQL_TOUCH] = "UPDATE identity SET n_writes = n_writes + 1 WHERE only = 1",

    [SQL_RUN_EXISTS] = "SELECT t.sha256 FROM run r CROSS JOIN document t ON t.run_id = r.id "
                       "WHERE r.uuid = ?1",
    [SQL_PUT_DEVICE] = "INSERT INTO device (model, n_runs) VALUES (?1, 1) "
                       "ON CONFLICT (model) DO UPDATE SET n_runs = n_runs + 1 RETURNING id",
    /* ?1: device, ?2: name, ?3: host, ?4: GPU, ?5: time of the run */
    [SQL_PUT_MACHINE] =
        "INSERT INTO machine (device_id, name, host, gpu, time_ms, n_runs) "
        "VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT (device_id, name) DO UPDATE SET"
        " host = iif(excluded.time_ms >= time_ms, excluded.host, host),"
        " time_ms = max(time_ms, excluded.time_ms), n_runs = n_runs + 1 RETURNING id",
    /* ?1: commit, ?2: parent, ?3: branch, ?4: time of the run */
    [SQL_PUT_REVISION] = "INSERT INTO revision (commit_id, parent, branch, first_ms) "
                         "VALUES (?1, ?2, ?3, ?4) "
                         "ON CONFLICT (commit_id) DO UPDATE SET"
                         " parent = iif(parent = '', excluded.parent, parent),"
                         " first_ms = min(first_ms, excluded.first_ms) RETURNING id",
    [SQL_PUT_RUN] =
        "INSERT INTO run (uuid, time_ms, revision_id, branch, subject, author, dirty,"
        " suite, device_id, device_name, contract, epoch, verdict, exit_code, n_cases, n_pass,"
        " n_regression, n_improvement, n_wrong, n_no_verdict, n_environment, host,"
        " machine_id, control_ns, control_drift, vendor_ratio, n_vendor) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
        " ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)",
    [SQL_PUT_DOCUMENT] = "INSERT INTO document (run_id, n_bytes, sha256, has_samples, packed) "
                         "VALUES (?1, ?2, ?3, ?4, ?5)",

    /* ?1: device, ?2: time */
    [SQL_EPOCH_BEFORE] = "SELECT from_ms, epoch FROM epoch WHERE device_id = ?1 AND from_ms <= ?2 "
                         "ORDER BY from_ms DESC LIMIT 1",
    [SQL_PUT_EPOCH] = "INSERT INTO epoch (device_id, from_ms, epoch) VALUES (?1, ?2, ?3) "
                      "ON CONFLICT DO NOTHING",
    [SQL_DROP_EPOCH] = "DELETE FROM epoch WHERE device_id = ?1 AND from_ms = ?2",
    [SQL_NEXT_RUN] = "SELECT time_ms, epoch FROM run WHERE device_id = ?1 AND time_ms > ?2"
                     " AND epoch <> '' ORDER BY time_ms, uuid LIMIT 1",

    [SQL_PUT_CASE] = "INSERT INTO test_case (name, op, dtype) VALUES (?1, ?2, ?3)",
    /* ?1: case, ?2: device; a row of NULLs where the case has no track on it */
    [SQL_FIND_TRACK] = "SELECT c.id, t.id, t.time_ms, t.run_id, t.point_ms FROM test_case c "
                       "LEFT JOIN track t ON t.case_id = c.id AND t.device_id = ?2 "
                       "WHERE c.name = ?1",
    [SQL_PUT_TRACK] = "INSERT INTO track (case_id, device_id, n_runs, time_ms, run_id, branch) "
                      "VALUES (?1, ?2, 0, ?3, ?4, ?5)",
    /* ?2 to ?4: of its newest run, ?5 ?6: of its newest point; NULL where this run is not that */
    [SQL_ADD_TO_TRACK] =
        "UPDATE track SET n_runs = n_runs + 1, time_ms = coalesce(?2, time_ms),"
        " run_id = coalesce(?3, run_id), branch = coalesce(?4, branch),"
        " point_ms = coalesce(?5, point_ms), point_contract = coalesce(?6, point_contract) "
        "WHERE id = ?1",
    /* The newest of its branch stays. */
    [SQL_PUT_NEWEST_RESULT] =
        "INSERT INTO newest_result (track_id, time_ms, run_id, verdict, reason, series_id,"
        " threshold, p50_ns, p50_lo_ns, p50_hi_ns, tflops, gbps, ceiling, baseline_p50_ns, ratio,"
        " ratio_lo, ratio_hi, mde, peer, peer_ratio, control_ns, rel_err, branch) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
        " ?19, ?20, ?21, ?22, ?23) ON CONFLICT (track_id, branch) DO UPDATE SET"
        " time_ms = excluded.time_ms, run_id = excluded.run_id, verdict = excluded.verdict,"
        " reason = excluded.reason, series_id = coalesce(excluded.series_id, series_id),"
        " threshold = excluded.threshold, p50_ns = excluded.p50_ns,"
        " p50_lo_ns = excluded.p50_lo_ns, p50_hi_ns = excluded.p50_hi_ns,"
        " tflops = excluded.tflops, gbps = excluded.gbps, ceiling = excluded.ceiling,"
        " baseline_p50_ns = excluded.baseline_p50_ns, ratio = excluded.ratio,"
        " ratio_lo = excluded.ratio_lo, ratio_hi = excluded.ratio_hi, mde = excluded.mde,"
        " peer = excluded.peer, peer_ratio = excluded.peer_ratio,"
        " control_ns = excluded.control_ns, rel_err = excluded.rel_err "
        "WHERE (excluded.time_ms, excluded.run_id) > (time_ms, run_id)",
    [SQL_PUT_RESULT] = "INSERT INTO result (run_id, track_id, verdict, evidence, threshold, ratio,"
                       " ratio_lo, ratio_hi, series_id, arm) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    /* ?4: branch */
    [SQL_FIND_SERIES] = "SELECT s.id, l.p50_ps FROM series s "
                        "LEFT JOIN leader l ON l.series_id = s.id AND l.branch = ?4 "
                        "WHERE s.track_id = ?1 AND s.provider = ?2 AND s.contract = ?3",
    [SQL_PUT_SERIES] = "INSERT INTO series (track_id, provider, contract, flops, bytes) "
                       "VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_FIND_KERNEL] = "SELECT id FROM kernel WHERE name = ?1",
    [SQL_PUT_KERNEL] = "INSERT INTO kernel (name) VALUES (?1)",
    [SQL_PUT_POINT] =
        "INSERT INTO point (series_id, time_ms, run_id, arm, role, verdict,"
        " kernel_id, p50_ps, p50_lo_ps, p50_hi_ps, p10_ps, p90_ps, control_ps,"
        " baseline_p50_ps, sm_clock_khz, registers, shared_bytes, spill_bytes, rel_err,"
        " vendor_ppm, ratio, baseline_ms, baseline_revision_id) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
        " ?16, ?17, ?18, ?19, ?20, ?21, ?22,"
        " (SELECT id FROM revision WHERE commit_id = ?23))",
    /* ?1: series, then the point, ?6: branch; of equal ones the oldest leads */
    [SQL_PUT_LEADER] =
        "INSERT INTO leader (series_id, p50_ps, time_ms, run_id, arm, branch) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (series_id, branch) DO UPDATE SET"
        " p50_ps = excluded.p50_ps, time_ms = excluded.time_ms, run_id = excluded.run_id,"
        " arm = excluded.arm WHERE (excluded.p50_ps, excluded.time_ms, excluded.run_id,"
        " excluded.arm) < (p50_ps, time_ms, run_id, arm)",

    [SQL_FIND_BASELINE] =
        "SELECT b.time_ms, b.run_id, b.logged_ms, b.logged_ns, r.epoch, r.contract,"
        " b.logged_run_id "
        "FROM baseline b CROSS JOIN run r ON r.id = b.logged_run_id "
        "WHERE b.track_id = ?1",
    [SQL_PUT_BASELINE] =
        "INSERT INTO baseline (track_id, time_ms, run_id, p50_ns, commit_id, stored_ms,"
        " logged_ms, logged_ns, logged_run_id) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
        "ON CONFLICT (track_id) DO UPDATE SET time_ms = excluded.time_ms,"
        " run_id = excluded.run_id, p50_ns = excluded.p50_ns,"
        " commit_id = excluded.commit_id, stored_ms = excluded.stored_ms,"
        " logged_ms = excluded.logged_ms, logged_ns = excluded.logged_ns,"
        " logged_run_id = excluded.logged_run_id",
    [SQL_PUT_BASELINE_LOG] =
        "INSERT INTO baseline_log (device_id, track_id, run_id, from_ns, to_ns,"
        " commit_id, kind) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",

    [SQL_PUT_CALIBRATION] = "INSERT INTO calibration (run_id, device_id, machine_id, time_ms,"
                            " threshold, processes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_PUT_CALIBRATED] = "INSERT INTO calibrated (run_id, place, name, mde, resolved) "
                           "VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_PUT_INJECTED] = "INSERT INTO injected (run_id, place, step, share, decisions, red, pass,"
                         " no_verdict) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",

    [SQL_PUT_COVERAGE] =
        "INSERT INTO coverage (device_id, op, run_id, checks, shapes, layouts, launches, skipped,"
        " most_values, most_pairs, pairs_of, runs, cases)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, 1) "
        "ON CONFLICT (device_id, op) DO UPDATE SET runs = runs + (run_id <> excluded.run_id),"
        " run_id = excluded.run_id, cases = cases + 1," ADD("checks") "," ADD("shapes") "," ADD(
            "layouts") "," ADD("launches") "," ADD("skipped") ","
                                                              " most_values = max(most_values, "
                                                              "excluded.most_values),"
                                                              " most_pairs = max(most_pairs, "
                                                              "excluded.most_pairs),"
                                                              " pairs_of = max(pairs_of, "
                                                              "excluded.pairs_of)",

    /* ?1: runs before this time, ?2: after this run */
    [SQL_TO_THIN] = "SELECT t.run_id, t.packed, t.n_bytes "
                    "FROM document t INDEXED BY document_with_samples "
                    "CROSS JOIN run r ON r.id = t.run_id "
                    "WHERE t.has_samples = 1 AND t.run_id > ?2 AND r.time_ms < ?1 "
                    "ORDER BY t.run_id LIMIT 1",
    [SQL_THIN] = "UPDATE document SET n_bytes = ?2, has_samples = 0, thinned_ms = ?3, packed = ?4 "
                 "WHERE run_id = ?1",

    [SQL_FIND_TOKEN] = "SELECT " TOKEN_COLUMNS " FROM token WHERE id = ?1",
    [SQL_TOKENS] = "SELECT " TOKEN_COLUMNS " FROM token ORDER BY created_ms, id",
    [SQL_PUT_TOKEN] = "INSERT INTO token (id, name, scopes, digest, created_ms, expires_ms) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_REVOKE_TOKEN] = "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
    [SQL_TOUCH_TOKEN] = "UPDATE token SET last_used_ms = ?2 "
                        "WHERE id = ?1 AND (last_used_ms IS NULL OR last_used_ms < ?2)",
    [SQL_EXPIRE_TOKENS] = "UPDATE token SET revoked_ms = expires_ms "
                          "WHERE expires_ms <= ?1 AND revoked_ms IS NULL",

    [SQL_IDENTITY] = "SELECT value FROM identity WHERE only = 1",
    /* ?1: device, ?2: branch */
    [SQL_BADGE_DEVICE] = "SELECT verdict FROM run WHERE device_id = (SELECT id FROM device "
                         "WHERE model = ?1) AND branch = ?2 "
                         "ORDER BY time_ms DESC, uuid DESC LIMIT 1",
    /* ?1: device; what is not dealt with */
    [SQL_BADGE_ALERTS] = "SELECT sum(n) FROM alert_count WHERE device_id = (SELECT id FROM device "
                         "WHERE model = ?1) AND state IN ('new', 'acknowledged')"
                         " AND kind <> 'improvement'",
    /* ?1: device, ?2: branch, ?3: case */
    [SQL_BADGE_CASE] = "SELECT n.verdict, n.p50_ns FROM test_case c CROSS JOIN device d "
                       "CROSS JOIN track t ON t.case_id = c.id AND t.device_id = d.id "
                       "CROSS JOIN newest_result n ON n.track_id = t.id AND n.branch = ?2 "
                       "WHERE d.model = ?1 AND c.name = ?3",
};
