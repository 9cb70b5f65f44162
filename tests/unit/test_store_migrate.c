/* test_store_migrate.c: what an older file holds is there in a newer one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sha2.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/store/store_schema.h"
#include "unit/store_fixture.h"

/* The rows that version 1 had of a run, as far as the documents are concerned. */
static void put_in_version_1(sqlite3 *db, cJSON *document)
{
    struct buf text;
    sqlite3_stmt *stmt = NULL;
    buf_init(&text, STORE_MAX_DOCUMENT);
    json_write(document, true, &text);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "INSERT INTO run SELECT NULL, ?1, ?2, '', '', '', 0, 's', 1, 'd', 'c',"
                           " 'pass', 0, 0, 0, 0, 0, 0, 0, 0",
                           -1, &stmt, NULL),
        SQLITE_OK);
    sqlite3_bind_text(stmt, 1, json_string(document, "uuid", ""), -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, json_integer(document, "time_ms", 0));
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
    assert_int_equal(
        sqlite3_prepare_v2(db, "INSERT INTO document SELECT max(id), ?1 FROM run", -1, &stmt, NULL),
        SQLITE_OK);
    sqlite3_bind_text(stmt, 1, text.data, (int)text.len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
    buf_release(&text);
    cJSON_Delete(document);
}

static void make_version_1(const char *path, int n_runs)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, store_migrations[0], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "INSERT INTO device VALUES (1, 'nvidia-h200', 1);"
                                  "INSERT INTO test_case VALUES (1, 'a', 'gemm', 'fp16');"
                                  "INSERT INTO track VALUES (1, 1, 1, 1);"
                                  "INSERT INTO series VALUES (1, 1, 'ours', 'c')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    for (int i = 0; i < n_runs; i++)
        put_in_version_1(db, sample_run(&plan, i));
    assert_int_equal(sqlite3_exec(db,
                                  "INSERT INTO result (track_id, time_ms, run_id, verdict, reason,"
                                  " peer) SELECT 1, time_ms, id, 'pass', '', '' FROM run;"
                                  "INSERT INTO point SELECT 1, time_ms, id, 0, 'candidate', 'k', 1,"
                                  " 1, 1, 1, 1, 1 FROM run;"
                                  "PRAGMA application_id = 0x4b474154; PRAGMA user_version = 1;"
                                  "PRAGMA journal_mode = WAL",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const char *const history[] = {"SELECT * FROM device ORDER BY 1, 2",
                                      "SELECT * FROM revision ORDER BY 1, 2",
                                      "SELECT * FROM run ORDER BY 1, 2",
                                      "SELECT * FROM test_case ORDER BY 1, 2",
                                      "SELECT * FROM track ORDER BY 1, 2",
                                      "SELECT * FROM series ORDER BY 1, 2",
                                      "SELECT * FROM result ORDER BY 1, 2",
                                      "SELECT * FROM kernel ORDER BY 1, 2",
                                      "SELECT * FROM point ORDER BY 1, 2",
                                      "SELECT * FROM leader ORDER BY 1, 2",
                                      "SELECT * FROM best ORDER BY 1, 2",
                                      "SELECT * FROM best_log ORDER BY 1, 2",
                                      "SELECT * FROM calibration ORDER BY 1, 2",
                                      "SELECT * FROM calibrated ORDER BY 1, 2",
                                      "SELECT * FROM injected ORDER BY 1, 2",
                                      "SELECT * FROM epoch ORDER BY 1, 2",
                                      "SELECT * FROM document ORDER BY 1, 2",
                                      "SELECT * FROM wrong ORDER BY 1, 2",
                                      NULL};

/* A hash of rows. */
static int64_t sum_of(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t sum = 17;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const unsigned char *bytes = sqlite3_column_blob(stmt, i);
            int n = sqlite3_column_bytes(stmt, i);
            for (int k = 0; k < n; k++)
                sum = (int64_t)((uint64_t)sum * 31 + bytes[k]);
            sum = (int64_t)((uint64_t)sum * 31 + 7);
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return sum;
}

/* A file of version 1 becomes, table by table, what the same documents make of a new file. */
static void test_version_1(void **state)
{
    struct store_fixture *f = *state;
    make_version_1(f->path, plan.n_runs);

    struct store *s = NULL;
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "schema version 1"));
    s = open_store(f, STORE_READ_WRITE);
    store_close(s);
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), plan.n_runs);
    assert_true(scalar(f->path, "SELECT count(*) FROM point") > plan.n_runs);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM sqlite_schema"
                                     " WHERE name = 'old_document'"),
                     0);

    char migrated[sizeof(f->path)];
    memcpy(migrated, f->path, sizeof(migrated));
    snprintf(f->path, sizeof(f->path), "%s/new.db", f->folder);
    s = open_store(f, STORE_READ_WRITE);
    for (int i = 0; i < plan.n_runs; i++) {
        /* The bytes that went into the other one. */
        struct buf text;
        bool existed;
        cJSON *run = sample_run(&plan, i);
        buf_init(&text, STORE_MAX_DOCUMENT);
        json_write(run, true, &text);
        assert_int_equal(store_put_run(s, run, text.data, text.len, &existed, &f->err), GATE_OK);
        buf_release(&text);
        cJSON_Delete(run);
    }
    store_close(s);
    for (int i = 0; history[i]; i++) {
        if (sum_of(migrated, history[i]) != sum_of(f->path, history[i]))
            fail_msg("%s: other rows", history[i]);
    }
}

/* A document that cannot be taken over leaves the file of version 1 as it was. */
static void test_version_1_with_a_bad_document(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = NULL;
    make_version_1(f->path, 3);
    execute(f->path, "UPDATE document SET text = '{' WHERE run_id = 2");
    assert_int_equal(store_open(f->path, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "schema version 1"));
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), 1);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM document"), 3);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point"), 3);
    execute(f->path, "DELETE FROM document WHERE run_id = 2");
    s = open_store(f, STORE_READ_WRITE);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 2);
}

static const char schema[] = "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2";

/* What an empty file of a version has, by the scripts of that time. */
static int64_t schema_of_version(const struct store_fixture *f, int version)
{
    char path[sizeof(f->path) + 16];
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s-%d", f->path, version);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int v = 0; v < version; v++)
        assert_int_equal(sqlite3_exec(db, store_migrations[v], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, store_schema_no_old_documents, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return sum_of(path, schema);
}

/* Takes a file of this version back to an older one, whose tables hold the same. */
static void take_back(const struct store_fixture *f, int version)
{
    static const char *const undo[STORE_SCHEMA_VERSION] = {
        [2] = "DROP TABLE token",
        [3] = "DROP TABLE alert_event; DROP TABLE alert; DROP TABLE change_point;"
              "DROP TABLE watched; DROP TABLE watch; DROP TABLE webhook",
        [4] = "DROP TABLE wrong",
        [5] = "DROP TABLE branch_leader; DROP TABLE branch_result; DROP INDEX run_by_device_branch",
        [6] = "ALTER TABLE alert DROP COLUMN by_vendor; ALTER TABLE point DROP COLUMN vendor_ppm",
    };
    char stamp[40];
    for (int v = STORE_SCHEMA_VERSION - 1; v >= version; v--)
        execute(f->path, undo[v]);
    snprintf(stamp, sizeof(stamp), "PRAGMA user_version = %d", version);
    execute(f->path, stamp);
    if (sum_of(f->path, schema) != schema_of_version(f, version))
        fail_msg("this is no file of version %d", version);
}

/* Versions 2 to the last but one: all rows stay, and those of new tables come from old ones. */
static void test_versions_between(void **state)
{
    static const char wrong[] = "SELECT track_id, time_ms, run_id FROM wrong ORDER BY 1, 2, 3";
    /* Those that are told, by what points know. */
    static const char of_branch[] =
        "SELECT n.branch, n.track_id, n.time_ms, n.run_id, n.verdict, n.series_id, n.threshold,"
        " round(n.p50_ns, 1), round(n.tflops, 3), round(n.best_p50_ns, 1),"
        " round(n.control_ns, 1), n.rel_err FROM branch_result n JOIN track t ON t.id = n.track_id"
        " JOIN run r ON r.id = t.run_id WHERE r.branch <> n.branch ORDER BY 1, 2";
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    int64_t sums[sizeof(history) / sizeof(history[0])];
    int64_t of_schema = sum_of(f->path, schema), of_wrong = sum_of(f->path, wrong);
    static const char leaders[] = "SELECT * FROM branch_leader WHERE branch = 'main' ORDER BY 1, 2";
    int64_t of_branches = sum_of(f->path, of_branch), of_leaders = sum_of(f->path, leaders);
    assert_true(scalar(f->path, "SELECT count(*) FROM branch_result") > 0);
    assert_true(scalar(f->path, "SELECT count(DISTINCT vendor_ppm) FROM point") > 10);
    for (int i = 0; history[i]; i++)
        sums[i] = sum_of(f->path, history[i]);
    for (int version = STORE_SCHEMA_VERSION - 1; version >= 2; version--) {
        take_back(f, version);
        store_close(open_store(f, STORE_READ_WRITE));
        assert_sound(f->path);
        assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
        assert_int_equal(sum_of(f->path, schema), of_schema);
        for (int i = 0; history[i]; i++)
            if (!strstr(history[i], "FROM wrong"))
                assert_int_equal(sum_of(f->path, history[i]), sums[i]);
        assert_int_equal(sum_of(f->path, wrong), of_wrong);
        assert_int_equal(sum_of(f->path, of_branch), of_branches);
        assert_int_equal(sum_of(f->path, leaders), of_leaders);
        assert_true(scalar(f->path, "SELECT count(*) FROM wrong w JOIN track t"
                                    " ON t.id = w.track_id AND t.run_id = w.run_id"
                                    " AND t.reason = w.reason AND t.reason <> ''") > 0);
    }
}

/* Opening a file of this version again changes no table. */
static void test_this_version(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    int64_t sums[sizeof(history) / sizeof(history[0])];
    for (int i = 0; history[i]; i++)
        sums[i] = sum_of(f->path, history[i]);
    store_close(open_store(f, STORE_READ_WRITE));
    for (int i = 0; history[i]; i++)
        assert_int_equal(sums[i], sum_of(f->path, history[i]));
}

/* ---- on the way ---- */

static struct {
    unsigned n, kill_at; /* 0: it lives */
    char first[512], last[512];
} told;

static void hear(const char *sentence)
{
    told.n++;
    snprintf(told.n == 1 ? told.first : told.last, sizeof(told.last), "%s", sentence);
    if (told.n == told.kill_at)
        raise(SIGKILL);
}

static void test_it_tells_how_far_it_is(void **state)
{
    struct store_fixture *f = *state;
    char first[64];
    memset(&told, 0, sizeof(told));
    store_on_migration(hear, 0);
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    store_close(open_store(f, STORE_READ_WRITE));
    assert_int_equal(told.n, 0); /* a new file, and one that is as it should be */
    for (int version = STORE_SCHEMA_VERSION - 1; version >= 2; version--) {
        take_back(f, version);
        memset(&told, 0, sizeof(told));
        store_close(open_store(f, STORE_READ_WRITE));
        snprintf(first, sizeof(first), "from schema version %d to %d:", version,
                 STORE_SCHEMA_VERSION);
        assert_non_null(strstr(told.first, first));
        assert_non_null(strstr(told.last, "has schema version"));
        assert_true(told.n > 2); /* and on the way */
    }
    store_on_migration(NULL, 0);
}

/* Opens the file in a process that dies when it was told of the migration so often; false: it did
 * not come to that. */
static bool dies_at(const struct store_fixture *f, unsigned n)
{
    struct store *s = NULL;
    int how;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        memset(&told, 0, sizeof(told));
        told.kill_at = n;
        store_on_migration(hear, 0);
        _exit(store_open(f->path, STORE_READ_WRITE, &s, NULL) == GATE_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (WIFSIGNALED(how))
        assert_int_equal(WTERMSIG(how), SIGKILL);
    else
        assert_int_equal(WEXITSTATUS(how), 0);
    return WIFSIGNALED(how);
}

/* Killed anywhere on its way, it leaves the file of the old version as it was. */
static void test_killed_on_the_way(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    int64_t sums[sizeof(history) / sizeof(history[0])];
    for (int i = 0; history[i]; i++)
        sums[i] = sum_of(f->path, history[i]);
    take_back(f, 2);
    int64_t of_schema = sum_of(f->path, schema);
    unsigned n = 1;
    for (; dies_at(f, n); n++) {
        assert_int_equal(scalar(f->path, "PRAGMA user_version"), 2);
        assert_int_equal(sum_of(f->path, schema), of_schema);
    }
    assert_true(n > 3); /* its start, its end, and on the way */
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    assert_sound(f->path);
    for (int i = 0; history[i]; i++)
        if (!strstr(history[i], "FROM wrong"))
            assert_int_equal(sum_of(f->path, history[i]), sums[i]);
}

/*
 * What each version's script is. A released version is never edited: files that have it would stay
 * as they are and call themselves the same. Update a pin only before the version is released.
 */
static void test_scripts_of_versions_are_pinned(void **state)
{
    (void)state;
    static const char *const pins[STORE_SCHEMA_VERSION] = {
        "f0741bac9bed11b84292f9707c286a11f7a612c835204fc31c767ef712a93847",
        "61ad67118b5ae1be382a41aff851bdda8c031a1d241390324705b89a74131ccf",
        "4f59a689acf9494903dc8485bee076538545f241ff839f1b24d879f2ee2f7386",
        "c8837502edf1b704a60420101ce82379d30a328442cc4afe1341230755640fe6",
        "2c5fa10e5b00991ef1440795142fd06e8aaf283aa50fbf57f5a0fad84deb09f6",
        "9cf4096b1733f6a08087a29b70aee93680961a0c6361a000b843ecd22c45140e",
        "7f026d596d54342318ea0021b2319be20d98854f2a05c10f99cbf385d14a6cfc",
    };
    for (int v = 0; v < STORE_SCHEMA_VERSION; v++) {
        char hex[65];
        SHA2_CTX context;
        SHA256Init(&context);
        SHA256Update(&context, (const uint8_t *)store_migrations[v], strlen(store_migrations[v]));
        SHA256End(&context, hex);
        if (strcmp(hex, pins[v]) != 0)
            fail_msg("the script of version %d is another one now: %s", v + 1, hex);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_version_1),
        TEST(test_version_1_with_a_bad_document),
        TEST(test_versions_between),
        TEST(test_this_version),
        TEST(test_it_tells_how_far_it_is),
        TEST(test_killed_on_the_way),
        TEST(test_scripts_of_versions_are_pinned),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
