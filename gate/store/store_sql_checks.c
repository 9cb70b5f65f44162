/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql_checks.c: what must not be in a file; see store_sql.h. */
#include "gate/store/store_sql.h"

#include <stddef.h>

const struct store_check store_checks[] = {
    {"the file is damaged", "PRAGMA integrity_check(100)"},
    {"a row points at nothing, of table", "SELECT \"table\" FROM pragma_foreign_key_check"},
    {"a run has no document", "SELECT uuid FROM run WHERE id NOT IN (SELECT run_id FROM document)"},
    {"a run does not have as many results as cases",
     "SELECT uuid FROM run r "
     "WHERE n_cases <> (SELECT count(*) FROM result e WHERE e.run_id = r.id)"},
    {"a device does not have as many runs as it says",
     "SELECT model FROM device d"
     " WHERE n_runs <> (SELECT count(*) FROM run r WHERE r.device_id = d.id)"},
    {"a case does not have as many runs as it says",
     "SELECT c.name FROM track t JOIN test_case c ON c.id = t.case_id"
     " LEFT JOIN (SELECT track_id, count(*) AS n FROM result GROUP BY track_id) e"
     " ON e.track_id = t.id WHERE t.n_runs <> coalesce(e.n, 0)"},
    {"the newest result of a case is not of its newest run",
     "SELECT c.name FROM track t JOIN test_case c ON c.id = t.case_id"
     " JOIN (SELECT e.track_id, max(r.time_ms) AS time_ms FROM result e"
     "  JOIN run r ON r.id = e.run_id GROUP BY e.track_id) n ON n.track_id = t.id"
     " WHERE t.time_ms <> n.time_ms"},
    {"the newest result of a branch is not of that branch",
     "SELECT n.branch FROM newest_result n JOIN run r ON r.id = n.run_id"
     " WHERE r.branch <> n.branch OR r.time_ms <> n.time_ms"},
    {"the newest run of a case has no newest result",
     "SELECT c.name FROM track t JOIN test_case c ON c.id = t.case_id LEFT JOIN newest_result n"
     " ON n.track_id = t.id AND n.branch = t.branch WHERE n.run_id IS NOT t.run_id"},
    {"the lowest point of a series is not its leader",
     "SELECT s.id FROM series s WHERE (SELECT min(l.p50_ps) FROM leader l WHERE l.series_id = s.id)"
     " IS NOT (SELECT min(p.p50_ps) FROM point p WHERE p.series_id = s.id)"},
    {"the leader of a branch is not of that branch",
     "SELECT l.branch FROM leader l JOIN run r ON r.id = l.run_id WHERE r.branch <> l.branch"},
    {"alerts are not as many as counted, of kind",
     "SELECT kind FROM (SELECT device_id, kind, state, n FROM alert_count UNION ALL"
     " SELECT device_id, kind, state, -1 FROM alert)"
     " GROUP BY device_id, kind, state HAVING sum(n) <> 0"},
    {NULL, NULL},
};
