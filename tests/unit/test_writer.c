/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_writer.c: turns to write, and what becomes of writes on a disk that fails: what was told as
 * done is there, what was told as failed is not, and the next write finds a sound database.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/store/store_private.h"
#include "gate/store/store_token.h"
#include "gate/store/store_rows.h"
#include "server/watch/alerts.h"
#include "server/writer/writer.h"
#include "tests/tools/sample_put.h"
#include "tests/tools/sample_runs.h"
#include "tests/unit/fault_vfs.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define WRITES_A_TRY 3
#define EACH_PLACE 40 /* operations that fail one after the other; then in longer steps */
#define MAX_TRIES 60
#define MAX_WRITES (MAX_TRIES * (WRITES_A_TRY + 1))
#define LONG_MS 60000

static const struct sample_plan history = {
    .seed = 5, .n_runs = MAX_WRITES, .n_cases = 4, .n_devices = 1};

struct fixture {
    struct store_fixture *files;
    struct writer *writer;
    unsigned n_writes;
    enum gate_status status[MAX_WRITES];
    struct gate_error err;
};

static int set_up(void **state)
{
    void *files = NULL;
    struct fixture *f = calloc(1, sizeof *f);
    fault_vfs_install();
    assert_int_equal(store_set_up(&files), 0);
    f->files = files;
    assert_int_equal(writer_open(f->files->path, &f->writer, NULL), GATE_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *files = f->files;
    writer_close(f->writer);
    assert_int_equal(store_tear_down(&files), 0);
    fault_vfs_remove();
    free(f);
    return 0;
}

/* ---- turns ---- */

struct waiter {
    struct fixture *f;
    pthread_t thread;
    unsigned *n_served;
    unsigned place;
};

static void *wait_for_turn(void *context)
{
    struct waiter *w = context;
    if (writer_take(w->f->writer, LONG_MS)) {
        w->place = (*w->n_served)++;
        writer_give(w->f->writer, GATE_OK);
    }
    return NULL;
}

/* Also where those before it have gone. */
TEST_WITHIN(turns_are_in_the_order_of_asking, set_up, tear_down)
{
    enum { N = 8 };
    struct fixture *f = *state;
    struct waiter w[N];
    unsigned n_served = 0;
    assert_non_null(writer_take(f->writer, 0));
    for (unsigned i = 0; i < N; i++) {
        assert_null(writer_take(f->writer, 0)); /* who waits no longer is passed over */
        w[i] = (struct waiter){.f = f, .n_served = &n_served, .place = N};
        pthread_create(&w[i].thread, NULL, wait_for_turn, &w[i]);
        while (writer_waiting(f->writer) < i + 2)
            sched_yield();
    }
    writer_give(f->writer, GATE_OK);
    for (unsigned i = 0; i < N; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].place, i);
    }
    assert_int_equal(writer_waiting(f->writer), 0);
}

TEST_WITHIN(a_process_that_writes_for_long_is_no_fault, set_up, tear_down)
{
    struct fixture *f = *state;
    struct store *other = open_store(f->files, STORE_READ_WRITE);
    assert_int_equal(store_lock(other, &f->err), GATE_OK);
    struct store *s = writer_take(f->writer, 0);
    store_set_patience(s, 1);
    enum gate_status status = store_probe(s, &f->err);
    writer_give(f->writer, status);
    assert_int_equal(status, GATE_IO);
    assert_false(writer_is_failing(f->writer));
    store_unlock(other);
    store_close(other);
}

/* ---- a disk that fails ---- */

static const char *uuid_of(const cJSON *run)
{
    return json_string(run, "uuid", "");
}

/* As the server does it: a run, and then what the watch finds in it. */
static void write_run(struct fixture *f)
{
    bool more = true;
    unsigned i = f->n_writes++;
    cJSON *run = sample_run(&history, (int)i);
    assert_true(i < MAX_WRITES);
    struct store *s = writer_take(f->writer, LONG_MS);
    f->status[i] = sample_put(s, run, NULL, &f->err);
    writer_give(f->writer, f->status[i]);
    assert_int_equal(writer_is_failing(f->writer), f->status[i] != GATE_OK);
    cJSON_Delete(run);
    s = writer_take(f->writer, LONG_MS);
    enum gate_status status = alerts_look(s, "main", LONG_MS, &more, &f->err);
    writer_give(f->writer, status);
}

/* Through a connection that waits for the writer where it must. */
static int64_t count_of(struct store *s, const char *sql, const char *text)
{
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return n;
}

/* Those that were told as stored, each with what its document says of it, and nothing of others. */
static void assert_kept(struct fixture *f)
{
    struct store *s = open_store(f->files, STORE_READ_ONLY);
    for (unsigned i = 0; i < f->n_writes; i++) {
        cJSON *run = sample_run(&history, (int)i);
        int64_t n = count_of(s, "SELECT count(*) FROM run WHERE uuid = ?1", uuid_of(run));
        cJSON_Delete(run);
        if (n != (f->status[i] == GATE_OK))
            fail_msg("run %u ended with %d and is there %d times", i, f->status[i], (int)n);
    }
    assert_int_equal(
        count_of(s,
                 "SELECT count(*) FROM run r WHERE r.n_cases <>"
                 " (SELECT count(*) FROM result e WHERE e.run_id = r.id AND e.arm = 0)",
                 NULL),
        0);
    assert_int_equal(count_of(s,
                              "SELECT count(*) FROM run r WHERE NOT EXISTS"
                              " (SELECT 1 FROM document d WHERE d.run_id = r.id)",
                              NULL),
                     0);
    assert_int_equal(count_of(s, "SELECT count(*) FROM pragma_foreign_key_check", NULL), 0);
    assert_int_equal(count_of(s, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", NULL),
                     1);
    store_close(s);
}

/* What another process does meanwhile moves the end of the log. */
static void write_beside(const struct fixture *f, int64_t value)
{
    struct gate_error err = {0};
    struct store *s;
    assert_int_equal(store_open(f->files->path, STORE_READ_WRITE, &s, &err), GATE_OK);
    if (store_put_mark(s, "webhook", "beside", cell_integer(value), &err) != GATE_OK)
        fail_msg("%s", err.message);
    store_close(s);
}

/* The fault comes ever later, until a try goes through it unharmed. */
static void try_all_places(struct fixture *f, enum fault kind)
{
    unsigned n_harmed = 0;
    bool harmed = true;
    for (int passes = 0; harmed || passes <= EACH_PLACE;
         passes += passes < EACH_PLACE ? 1 : passes / 2) {
        fault_vfs_set(kind, passes);
        for (int i = 0; i < WRITES_A_TRY; i++)
            write_run(f);
        harmed = fault_vfs_count() > 0;
        n_harmed += harmed;
        fault_vfs_set(FAULT_NONE, 0);
        assert_kept(f);
        write_beside(f, passes); /* the disk is good again */
        write_run(f);
        assert_int_equal(f->status[f->n_writes - 1], GATE_OK);
    }
    assert_true(n_harmed > 0);
    /* And all of it is there for the next server. */
    writer_close(f->writer);
    assert_int_equal(writer_open(f->files->path, &f->writer, NULL), GATE_OK);
    assert_kept(f);
}

TEST_WITHIN(syncs_that_fail, set_up, tear_down)
{
    try_all_places(*state, FAULT_SYNC);
}

TEST_WITHIN(full_disk, set_up, tear_down)
{
    try_all_places(*state, FAULT_FULL);
}

TEST_WITHIN(writes_that_fail, set_up, tear_down)
{
    try_all_places(*state, FAULT_WRITE);
}
