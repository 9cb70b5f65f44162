/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_upgrade.c: files of older versions are brought up to date, and lose nothing. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* tests/data/gate-vN.sql, dumps of files that programs of that version wrote and a server has
 * looked at: 12 runs of 4 cases on each of two devices, and 14 runs of 4 cases on one. */
static void make_version(struct store_fixture *f, int version)
{
    struct buf sql;
    char name[40];
    snprintf(name, sizeof name, "tests/data/gate-v%d.sql", version);
    buf_init(&sql, 1 << 20);
    if (file_read(name, &sql, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    buf_printf(&sql, "PRAGMA application_id = 0x4b474831; PRAGMA user_version = %d;", version);
    execute(f->path, sql.data);
    buf_release(&sql);
}

static void no_fault(void *, const char *fault)
{
    fail_msg("%s", fault);
}

static const struct {
    const char *before, *after; /* NULL: the same */
} equal[] = {
    {"SELECT count(*) FROM run", NULL},
    {"SELECT group_concat(run_id || hex(sha256) || length(packed)) FROM document", NULL},
    {"SELECT group_concat(id || name || scopes || hex(digest) || created_ms ||"
     " coalesce(expires_ms, 0) || coalesce(revoked_ms, 0)) FROM token",
     NULL},
    {"SELECT group_concat(id || state || kind || run_id || assignee || who || reason || change)"
     " FROM alert",
     NULL},
    {"SELECT group_concat(id || alert_id || who || to_state || reason) FROM alert_event", NULL},
    {"SELECT target || event_id FROM webhook",
     "SELECT substr(key, 9) || value FROM meta WHERE key LIKE 'webhook %'"},
    {"SELECT value || n_writes FROM identity", "SELECT (SELECT value FROM meta WHERE key ="
                                               " 'identity') || (SELECT value FROM meta WHERE key ="
                                               " 'n_writes')"},
    {"SELECT run_id || track_id FROM watch",
     "SELECT (SELECT value FROM meta WHERE key = 'watch_run') ||"
     " (SELECT value FROM meta WHERE key = 'watch_track')"},
    {"SELECT count(*) || ' ' || (sum(p50_ps) / 1000000) FROM point",
     "SELECT count(p50_ns) || ' ' || CAST(sum(p50_ns) / 1000 AS INTEGER) FROM result"},
    {"SELECT group_concat(run_id || track_id || (SELECT verdict FROM newest_result n WHERE"
     " n.track_id = e.track_id AND n.run_id = e.run_id) || ratio) FROM result e",
     "SELECT group_concat(run_id || track_id || (SELECT instr('pa re im wr no en',"
     " substr(n.verdict, 1, 2)) / 3 FROM newest n JOIN run r ON r.uuid = n.run JOIN track t"
     " USING (case_id, device) WHERE t.id = e.track_id AND r.id = e.run_id) || ratio)"
     " FROM (SELECT * FROM result WHERE arm = 0 ORDER BY run_id, track_id) e"},
    {"SELECT group_concat(kind || to_ns || coalesce(from_ns, 0) || commit_id) FROM baseline_log",
     "SELECT group_concat(kind || to_ns || coalesce(from_ns, 0) || commit_id) FROM"
     " (SELECT * FROM baseline_change ORDER BY run_id, track_id)"},
    {"SELECT sum(checks) || ' ' || sum(runs) FROM coverage",
     "SELECT sum(c.value ->> 'checks') || ' ' || sum(c.value ->> 'runs') FROM run,"
     " json_each(run.covered) c"},
    {"SELECT count(*) || ' ' || sum(mde) FROM calibrated",
     "SELECT count(*) || ' ' || sum(c.value ->> 'mde') FROM run,"
     " json_each(run.calibration, '$.cases') c"},
};

TEST_WITHIN(version_1_loses_nothing, store_set_up, store_tear_down)
{
    enum { N = sizeof equal / sizeof equal[0], SIZE = 1 << 14 };
    static char before[N][SIZE], after[SIZE];
    struct store_fixture *f = *state;
    struct store *s = NULL;
    char copy[600];
    int n_faults = 0;
    make_version(f, 1);
    for (size_t i = 0; i < N; i++) {
        text_of(f->path, equal[i].before, NULL, before[i], SIZE);
        assert_true(strlen(before[i]) > 0);
    }
    /* Whoever opens it first: here a reader. */
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_OK);
    assert_int_equal(store_check(s, no_fault, NULL, &n_faults, &f->err), GATE_OK);
    store_close(s);
    for (size_t i = 0; i < N; i++) {
        text_of(f->path, equal[i].after ? equal[i].after : equal[i].before, NULL, after, SIZE);
        assert_string_equal(after, before[i]);
    }
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    snprintf(copy, sizeof copy, "%s.v1.bak", f->path);
    assert_int_equal(scalar(copy, "PRAGMA user_version"), 1);
    assert_int_equal(scalar(copy, "SELECT count(*) FROM newest_result") > 0, 1);
    /* And it goes on: once, with the schema that a new file has. */
    must_put(f, s = open_store(f, STORE_READ_WRITE), run_at(500, 1790000000000));
    store_close(s);
    snprintf(copy, sizeof copy, "%s.v1.bak2", f->path);
    assert_int_equal(access(copy, F_OK), -1);
}

/* Rows of a table, in the columns that it had before, which `path` has and the file beside it
 * lacks. */
static int64_t rows_lost(const char *path, const char *beside, const char *table)
{
    char columns[2000];
    const char *const parts[] = {"ATTACH '",
                                 beside,
                                 "' AS beside",
                                 NULL,
                                 "SELECT count(*), (SELECT count(*) FROM main.",
                                 table,
                                 ") FROM (SELECT ",
                                 columns,
                                 " FROM main.",
                                 table,
                                 " EXCEPT SELECT ",
                                 columns,
                                 " FROM beside.",
                                 table,
                                 ")",
                                 NULL};
    struct buf sql[2];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    text_of(path, "SELECT group_concat(name) FROM pragma_table_info(?1)", table, columns,
            sizeof columns);
    for (size_t i = 0, at = 0; i < 2; i++, at++) {
        buf_init(&sql[i], 8000);
        for (; parts[at]; at++)
            buf_puts(&sql[i], parts[at]);
    }
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql[0].data, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql[1].data, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    assert_true(sqlite3_column_int64(stmt, 1) > 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    buf_release(&sql[0]);
    buf_release(&sql[1]);
    return n;
}

/* The oldest version that was released: each row of each table is there, value by value. */
TEST_WITHIN(version_2_loses_nothing, store_set_up, store_tear_down)
{
    static const char *const kept[] = {"meta",   "revision", "run",   "document",   "track",
                                       "result", "token",    "alert", "alert_event"};
    struct store_fixture *f = *state;
    char copy[600];
    int n_faults = 0;
    make_version(f, 2);
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_check(s, no_fault, NULL, &n_faults, &f->err), GATE_OK);
    store_close(s);
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    snprintf(copy, sizeof copy, "%s.v2.bak", f->path);
    assert_int_equal(scalar(copy, "PRAGMA user_version"), 2);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_int_equal(rows_lost(copy, f->path, kept[i]), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run WHERE place_ms <= 0"), 0);
    must_put(f, s = open_store(f, STORE_READ_WRITE), run_at(500, 1790000000000));
    store_close(s);
}

static void assert_tables_of_a_new_one(struct store_fixture *f, int version)
{
    static char columns[2][1 << 15];
    static const char sql[] =
        "SELECT group_concat(x) FROM (SELECT m.name || ' ' || c.name || ' ' || c.type ||"
        " c.\"notnull\" || c.pk AS x FROM sqlite_schema m, pragma_table_info(m.name) c"
        " WHERE m.type IN ('table', 'view') ORDER BY m.name, c.name)";
    static const char indexes[] =
        "SELECT group_concat(x) FROM (SELECT m.name || ' ' || c.name AS x FROM sqlite_schema m,"
        " pragma_index_info(m.name) c WHERE m.type = 'index' ORDER BY m.name, c.seqno)";
    make_version(f, version);
    store_close(open_store(f, STORE_READ_WRITE));
    text_of(f->path, sql, NULL, columns[0], sizeof columns[0]);
    char names[2][8000];
    text_of(f->path, indexes, NULL, names[0], sizeof names[0]);
    unlink(f->path);
    store_close(open_store(f, STORE_READ_WRITE));
    text_of(f->path, sql, NULL, columns[1], sizeof columns[1]);
    text_of(f->path, indexes, NULL, names[1], sizeof names[1]);
    assert_string_equal(columns[0], columns[1]);
    assert_string_equal(names[0], names[1]);
    unlink(f->path);
}

TEST_WITHIN(an_old_file_gets_the_tables_of_a_new_one, store_set_up, store_tear_down)
{
    for (int version = 1; version <= 2; version++)
        assert_tables_of_a_new_one(*state, version);
}

/* What cannot be brought over whole stays as it was. */
TEST_WITHIN(a_file_that_cannot_be_upgraded_stays, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = NULL;
    char copy[600];
    make_version(f, 1);
    execute(f->path, "PRAGMA foreign_keys = OFF; DELETE FROM device WHERE id = 1");
    assert_int_equal(store_open(f->path, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "rows point at nothing"));
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), 1);
    assert_true(scalar(f->path, "SELECT count(*) FROM newest_result") > 0);
    snprintf(copy, sizeof copy, "%s.v1.bak", f->path);
    assert_int_equal(access(copy, F_OK), -1);
}
