/* test_store_plans.c: no statement walks through a table that grows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/store/store_private.h"
#include "unit/store_fixture.h"

/*
 * What may be walked from end to end: tables of the size of the list of cases, or of devices, and
 * the list of runs for an export.
 */
static bool may_scan(enum store_sql id, const char *detail)
{
    if (strncmp(detail, "SCAN i", 6) == 0) /* identity, one row */
        return id == SQL_STATE || id == SQL_NAME_COPY;
    if (strncmp(detail, "SCAN d", 6) == 0) /* device */
        return id == SQL_DEVICES;
    if (strcmp(detail, "SCAN token") == 0) /* few */
        return id == SQL_TOKENS;
    if (strcmp(detail, "SCAN t") == 0 || strncmp(detail, "SCAN t USING", 12) == 0) /* track */
        return id == SQL_TRACKS || id == SQL_LEADERBOARD || id == SQL_LEADERBOARD_OF_BRANCHES ||
               id == SQL_BESTS;
    if (strncmp(detail, "SCAN n VIRTUAL TABLE", 20) == 0 ||
        strcmp(detail, "SCAN (subquery-1)") == 0)
        return id == SQL_LEADERBOARD_OF_BRANCHES || id == SQL_NEXT_KEPT_BRANCH; /* few */
    if (strcmp(detail, "SCAN r") == 0 || strncmp(detail, "SCAN r ", 7) == 0)    /* run */
        return id == SQL_DOCUMENTS || id == SQL_CHECK_DOCUMENTS;
    if (strncmp(detail, "SCAN b USING INDEX calibration_by_time", 38) == 0)
        return id == SQL_CALIBRATIONS; /* as many as the limit */
    return false;
}

/* Those that may sort: what they sort is as many rows as there are cases, or one trend. */
static bool may_sort(enum store_sql id)
{
    return id == SQL_DEVICES || id == SQL_TREND || id == SQL_LEADERBOARD ||
           id == SQL_LEADERBOARD_OF_BRANCHES || id == SQL_BESTS || id == SQL_TOKENS;
}

static void test_query_plans(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    int n_steps = 0;
    for (int id = 0; id < STORE_SQL_COUNT; id++) {
        sqlite3_stmt *stmt = NULL;
        char sql[4096];
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", store_sql[id]);
        assert_int_equal(sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(stmt, 3);
            n_steps++;
            if (strstr(detail, "SCAN") && !may_scan((enum store_sql)id, detail))
                fail_msg("statement %d: %s", id, detail);
            if ((id == SQL_TRACKS || id == SQL_TRACKS_OF_DEVICE) && strstr(detail, "SEARCH a"))
                assert_non_null(
                    strstr(detail, "alert_open")); /* for each row: the open ones only */
            /* The wall is read from results; of points only the newest of the rows that it shows.
             */
            if (id >= SQL_TRACKS && id <= SQL_CASE_OF_BRANCH)
                assert_null(strstr(detail, "point"));
            if (id == SQL_NEWEST_POINTS)
                assert_string_equal(detail, "SEARCH point USING PRIMARY KEY (series_id=?)");
            assert_null(strstr(detail, "AUTOMATIC"));
            if (strstr(detail, "TEMP B-TREE") && !may_sort((enum store_sql)id))
                fail_msg("statement %d: %s", id, detail);
        }
        sqlite3_finalize(stmt);
    }
    assert_true(n_steps > 20);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_query_plans),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
