/* SPDX-License-Identifier: Apache-2.0 */
/* test_writer_faults.c: the writer on a disk that fails: what was told as done is there, what was
 * told as failed is not, and the next job finds a sound database. Jobs are tokens, and whole runs,
 * which are there with all of their rows or with none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "server/request/auth.h"
#include "gate/store/store_private.h"
#include "gate/store/store_webhook.h"
#include "gate/store/store_token.h"
#include "server/watch/watch.h"
#include "tests/tools/sample_put.h"
#include "tests/tools/sample_runs.h"
#include "tests/unit/fault_vfs.h"
#include "tests/unit/unit.h"
#include "tests/unit/writer_fixture.h"

#define JOBS_A_TRY 3
#define EACH_PLACE 40 /* operations that fail one after the other; then in longer steps */
#define MAX_TRIES 60
#define MAX_JOBS (MAX_TRIES * (JOBS_A_TRY + 1))

static const struct sample_plan history = {
    .seed = 5, .n_runs = MAX_JOBS, .n_cases = 4, .n_devices = 1};

struct job {
    struct writer_job job;
    struct fixture *fixture;
    unsigned number;
    enum gate_status status;
};

struct fixture {
    struct writer_fixture w;
    enum gate_status (*run)(void *context, struct store *store, struct gate_error *err);
    struct job jobs[MAX_JOBS];
    unsigned n_jobs;
    unsigned n_without_cause; /* that failed because "an earlier write" did */
};

/* A row that takes a few pages: names are short, so there are many of them. */
static enum gate_status run(void *context, struct store *store, struct gate_error *err)
{
    const struct job *j = context;
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < 60 && status == GATE_OK; i++) {
        struct store_token token = {.name = "t", .scopes = TOKEN_READ, .created_ms = 1};
        snprintf(token.id, sizeof(token.id), "%06u%06u", i * 16411 % 1000000, j->number);
        status = store_put_token(store, &token, err);
    }
    return status;
}

/* A run as the gate would write it. */
static enum gate_status run_run(void *context, struct store *store, struct gate_error *err)
{
    const struct job *j = context;
    cJSON *document = sample_run(&history, (int)j->number);
    enum gate_status status = sample_put(store, document, NULL, err);
    cJSON_Delete(document);
    return status;
}

/* As the server's: it writes too, and finds the same disk. */
static enum gate_status watch_chore(void *context, struct store *store, enum writer_left *left,
                                    struct gate_error *err)
{
    bool more = false;
    (void)context;
    enum gate_status status = watch_pending(store, "main", 1000, &more, err);
    *left = more ? WRITER_MORE_LEFT : WRITER_NONE_LEFT;
    return status;
}

static void done(void *context, enum gate_status status, const struct gate_error *err)
{
    struct job *j = context;
    struct fixture *f = j->fixture;
    pthread_mutex_lock(&f->w.mutex);
    j->status = status;
    f->n_without_cause += status && strstr(err->message, "an earlier write");
    f->w.n_done++;
    pthread_cond_signal(&f->w.changed);
    pthread_mutex_unlock(&f->w.mutex);
}

/* ---- life ---- */

static void set_up(void **state,
                   enum gate_status (*job)(void *, struct store *, struct gate_error *),
                   writer_chore chore)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct writer_options options = {.chore = chore, .period_ms = 3600000};
    f->run = job;
    fault_vfs_install();
    writer_set_up(&f->w, &options);
    *state = f;
}

static int set_up_tokens(void **state)
{
    set_up(state, run, NULL);
    return 0;
}

static int set_up_runs(void **state)
{
    set_up(state, run_run, watch_chore);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    writer_tear_down(&f->w);
    fault_vfs_remove();
    free(f);
    return 0;
}

/* ---- jobs ---- */

static void submit(struct fixture *f)
{
    assert_true(f->n_jobs < MAX_JOBS);
    struct job *j = &f->jobs[f->n_jobs];
    j->fixture = f;
    j->number = f->n_jobs++;
    j->job = (struct writer_job){.context = j, .run = f->run, .done = done};
    assert_true(writer_reserve(f->w.writer));
    writer_submit(f->w.writer, &j->job);
}

static bool count_row(void *context, const struct store_token *row)
{
    unsigned *rows = context;
    unsigned number = (unsigned)strtoul(row->id + 6, NULL, 10);
    assert_true(number < MAX_JOBS);
    rows[number]++;
    return true;
}

/* Through a connection that waits for the writer where it must. */
static int64_t count_of(struct store *s, const char *sql)
{
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return n;
}

static void assert_tokens(struct fixture *f, struct store *s)
{
    unsigned rows[MAX_JOBS] = {0};
    assert_int_equal(store_tokens(s, count_row, rows, NULL), GATE_OK);
    for (unsigned i = 0; i < f->n_jobs; i++) {
        if (rows[i] != (f->jobs[i].status == GATE_OK ? 60u : 0u))
            fail_msg("job %u ended with %d and has %u rows", i, f->jobs[i].status, rows[i]);
    }
}

static bool has_run(struct store *s, unsigned index)
{
    sqlite3_stmt *stmt;
    cJSON *document = sample_run(&history, (int)index);
    assert_int_equal(
        sqlite3_prepare_v2(s->db, "SELECT 1 FROM run WHERE uuid = ?1", -1, &stmt, NULL), SQLITE_OK);
    sqlite3_bind_text(stmt, 1, json_string(document, "uuid", ""), -1, SQLITE_TRANSIENT);
    bool found = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    cJSON_Delete(document);
    return found;
}

/* Those that were told as stored, each with what its document says of it, and nothing of others. */
static void assert_runs(struct fixture *f, struct store *s)
{
    for (unsigned i = 0; i < f->n_jobs; i++) {
        if (has_run(s, i) != (f->jobs[i].status == GATE_OK))
            fail_msg("run %u ended with %d and is %sthere", i, f->jobs[i].status,
                     has_run(s, i) ? "" : "not ");
    }
    assert_int_equal(count_of(s, "SELECT count(*) FROM run r WHERE r.n_cases <>"
                                 " (SELECT count(*) FROM result e WHERE e.run_id = r.id)"),
                     0);
    assert_int_equal(count_of(s, "SELECT count(*) FROM run r WHERE NOT EXISTS"
                                 " (SELECT 1 FROM document d WHERE d.run_id = r.id)"),
                     0);
    assert_int_equal(count_of(s,
                              "SELECT count(*) FROM result e WHERE e.series_id IS NOT NULL AND NOT"
                              " EXISTS (SELECT 1 FROM point p WHERE p.series_id = e.series_id"
                              " AND p.run_id = e.run_id AND p.arm = e.arm)"),
                     0);
    assert_int_equal(count_of(s, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static void assert_kept(struct fixture *f)
{
    struct store *s = open_store(f->w.files, STORE_READ_ONLY);
    if (f->run == run_run)
        assert_runs(f, s);
    else
        assert_tokens(f, s);
    assert_int_equal(count_of(s, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    store_close(s);
}

/* What another process does meanwhile moves the end of the log. */
static void write_beside(const struct fixture *f, int64_t value)
{
    struct gate_error err = {0};
    struct store *s;
    assert_int_equal(store_open(f->w.files->path, STORE_READ_WRITE, &s, &err), GATE_OK);
    if (store_put_webhook_mark(s, "beside", value, &err) != GATE_OK)
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
        for (int i = 0; i < JOBS_A_TRY; i++)
            submit(f);
        writer_wait_for(&f->w, f->n_jobs);
        harmed = fault_vfs_count() > 0;
        n_harmed += harmed;
        fault_vfs_set(FAULT_NONE, 0);
        assert_kept(f);
        write_beside(f, passes); /* the disk is good again */
        submit(f);
        writer_wait_for(&f->w, f->n_jobs);
        assert_int_equal(f->jobs[f->n_jobs - 1].status, GATE_OK);
    }
    assert_true(n_harmed > 0);
    assert_int_equal(f->n_without_cause, 0);
    /* And all of it is there for the next server. */
    writer_start_again(&f->w, NULL);
    assert_kept(f);
}

TEST_WITHIN(syncs_that_fail_of_tokens, set_up_tokens, tear_down)
{
    try_all_places(*state, FAULT_SYNC);
}

TEST_WITHIN(syncs_that_fail_of_whole_runs, set_up_runs, tear_down)
{
    try_all_places(*state, FAULT_SYNC);
}

TEST_WITHIN(full_disk_of_tokens, set_up_tokens, tear_down)
{
    try_all_places(*state, FAULT_FULL);
}

TEST_WITHIN(full_disk_of_whole_runs, set_up_runs, tear_down)
{
    try_all_places(*state, FAULT_FULL);
}

TEST_WITHIN(writes_that_fail_of_tokens, set_up_tokens, tear_down)
{
    try_all_places(*state, FAULT_WRITE);
}

TEST_WITHIN(writes_that_fail_of_whole_runs, set_up_runs, tear_down)
{
    try_all_places(*state, FAULT_WRITE);
}
