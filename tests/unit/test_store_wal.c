/*
 * test_store_wal.c: a log that is written in large pieces, by transactions that do not fit into the
 * cache: what was committed is there, for others and after a crash, what was not is not, and a
 * write that fails late undoes all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "server/store/store_wal.h"
#include "unit/fault_vfs.h"

#define N_ROWS 1200
#define N_CHANGED 400   /* of a transaction: in the cache's order, and again after they left it */
#define MAX_PASSES 2000 /* no transaction writes more often */
#define PASSES_STEP 17

struct fixture {
    char folder[64], path[96];
    sqlite3 *db;
};

static void run_on(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

static sqlite3 *open_db(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run_on(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = 20;"
               "PRAGMA wal_autocheckpoint = 0; SELECT count(*) FROM sqlite_master");
    return db;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    snprintf(f->folder, sizeof(f->folder), "%s/wal-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/a.db", f->folder);
    fault_vfs_install();
    f->db = open_db(f->path);
    store_wal_gather(f->db);
    run_on(f->db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, more BLOB);"
                  "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i LIMIT 1200) "
                  "INSERT INTO t SELECT n, 0, randomblob(2000) FROM i");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const endings[] = {"a.db",    "a.db-wal",    "a.db-shm",
                                          "copy.db", "copy.db-wal", "copy.db-shm"};
    struct fixture *f = *state;
    sqlite3_close(f->db);
    fault_vfs_remove();
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", f->folder, endings[i]);
        unlink(path);
    }
    rmdir(f->folder);
    free(f);
    return 0;
}

static int with_id(sqlite3 *db, const char *sql, int id)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        sqlite3_bind_int(stmt, 1, id);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        ;
    int ended = sqlite3_finalize(stmt);
    return rc == SQLITE_OK ? ended : rc;
}

/* Adds one to rows all over the file, to some of them twice, and reads others between; stops at the
 * first error. */
static int change_many(sqlite3 *db)
{
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (int i = 0; i < N_CHANGED && rc == SQLITE_OK; i++) {
        int id = i * 7 % N_ROWS + 1;
        int changed = i % 10 == 9 && id > 28 ? id - 28 : id;
        rc = with_id(db, "UPDATE t SET n = n + 1 WHERE id = ?1", changed);
        if (rc == SQLITE_OK)
            rc = with_id(db, "SELECT length(more) FROM t WHERE id BETWEEN ?1 AND ?1 + 3", id);
    }
    return rc;
}

static int64_t sum_in(const char *path)
{
    sqlite3 *db = open_db(path);
    assert_int_equal(number(db, "SELECT count(*) FROM pragma_integrity_check"
                                " WHERE integrity_check <> 'ok'"),
                     0);
    int64_t sum = number(db, "SELECT sum(n) FROM t");
    sqlite3_close(db);
    return sum;
}

static void copy_file(const char *from, const char *to)
{
    struct buf bytes;
    struct gate_error err = {0};
    buf_init(&bytes, 1 << 26);
    assert_int_equal(file_read(from, &bytes, &err), GATE_OK);
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, out), bytes.len);
    assert_int_equal(fclose(out), 0);
    buf_release(&bytes);
}

/* What a machine that stops here finds when it comes back, had all of it reached the disk. */
static int64_t sum_after_a_crash(const struct fixture *f)
{
    char from[128], to[128];
    snprintf(to, sizeof(to), "%s/copy.db-shm", f->folder);
    unlink(to);
    snprintf(to, sizeof(to), "%s/copy.db", f->folder);
    copy_file(f->path, to);
    snprintf(from, sizeof(from), "%s-wal", f->path);
    snprintf(to, sizeof(to), "%s/copy.db-wal", f->folder);
    copy_file(from, to);
    snprintf(to, sizeof(to), "%s/copy.db", f->folder);
    return sum_in(to);
}

static void test_transactions(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(change_many(f->db), SQLITE_OK);
        assert_int_equal(number(f->db, "SELECT sum(n) FROM t"), (i + 1) * N_CHANGED);
        assert_int_equal(sum_in(f->path), i * N_CHANGED);
        assert_int_equal(sum_after_a_crash(f), i * N_CHANGED);
        run_on(f->db, "COMMIT");
        assert_int_equal(sum_in(f->path), (i + 1) * N_CHANGED);
        assert_int_equal(sum_after_a_crash(f), (i + 1) * N_CHANGED);
        if (i == 1)
            run_on(f->db, "PRAGMA wal_checkpoint");
    }
}

static void test_what_is_undone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change_many(f->db), SQLITE_OK);
    run_on(f->db, "SAVEPOINT s; UPDATE t SET n = n + 100 WHERE id % 3 = 0; ROLLBACK TO s;"
                  "UPDATE t SET n = n + 1 WHERE id = 5; RELEASE s; COMMIT");
    assert_int_equal(sum_in(f->path), N_CHANGED + 1);
    assert_int_equal(change_many(f->db), SQLITE_OK);
    run_on(f->db, "ROLLBACK");
    assert_int_equal(change_many(f->db), SQLITE_OK);
    run_on(f->db, "COMMIT");
    assert_int_equal(sum_in(f->path), 2 * N_CHANGED + 1);
    assert_int_equal(sum_after_a_crash(f), 2 * N_CHANGED + 1);
}

/* A write that fails is told later than it was made, but a commit is not told as done. */
static void fail_everywhere(struct fixture *f, enum fault kind)
{
    int64_t sum = 0;
    int n_harmed = 0, n_done = 0;
    for (int passes = 0; passes <= MAX_PASSES; passes += PASSES_STEP) {
        fault_vfs_set(kind, passes);
        int rc = change_many(f->db);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(f->db, "COMMIT", NULL, NULL, NULL);
        if (!sqlite3_get_autocommit(f->db))
            sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
        n_harmed += fault_vfs_count() > 0;
        assert_int_equal(rc == SQLITE_OK, fault_vfs_count() == 0);
        fault_vfs_set(FAULT_NONE, 0);
        sum += rc == SQLITE_OK ? N_CHANGED : 0;
        n_done += rc == SQLITE_OK;
        assert_int_equal(sum_in(f->path), sum);
        if (passes % 10 == 0)
            run_on(f->db, "PRAGMA wal_checkpoint");
    }
    assert_true(n_harmed > 0 && n_done > 0);
}

static void test_full_disk(void **state)
{
    fail_everywhere(*state, FAULT_FULL);
}

static void test_writes_that_fail(void **state)
{
    fail_everywhere(*state, FAULT_WRITE);
}

static void test_syncs_that_fail(void **state)
{
    fail_everywhere(*state, FAULT_SYNC);
}

/* A database without a log, as one that is read only or not yet made, stays as it is. */
static void test_no_log(void **state)
{
    sqlite3 *db;
    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    store_wal_gather(db);
    run_on(db, "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_int_equal(number(db, "SELECT sum(a) FROM t"), 1);
    sqlite3_close(db);
}

/* Where a commit does not sync the log, nothing is gathered that others may want to read. */
static void test_commits_without_a_sync(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = open_db(f->path);
    sqlite3_file *log = NULL;
    run_on(db, "PRAGMA synchronous = NORMAL");
    assert_int_equal(sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log), 0);
    const sqlite3_io_methods *methods = log->pMethods;
    store_wal_gather(db);
    assert_ptr_equal(log->pMethods, methods);
    run_on(db, "PRAGMA synchronous = FULL");
    store_wal_gather(db);
    assert_ptr_not_equal(log->pMethods, methods);
    sqlite3_close(db);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_transactions),       TEST(test_what_is_undone),
        TEST(test_full_disk),          TEST(test_writes_that_fail),
        TEST(test_syncs_that_fail),    TEST(test_commits_without_a_sync),
        cmocka_unit_test(test_no_log),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
