/* test_writer_faults.c: the writer on a disk that fails: what was told as done is there, what was
 * told as failed is not, and the next job finds a sound database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/auth.h"
#include "server/store_private.h"
#include "server/store_token.h"
#include "unit/fault_vfs.h"
#include "unit/writer_fixture.h"

#define JOBS_A_TRY 3
#define MAX_PASSES 40 /* beyond it a try of this size has no more operations to fail */
#define MAX_JOBS ((MAX_PASSES + 1) * (JOBS_A_TRY + 1))

struct job {
    struct writer_job job;
    struct fixture *fixture;
    unsigned number;
    enum gate_status status;
};

struct fixture {
    struct writer_fixture w;
    struct job jobs[MAX_JOBS];
    unsigned n_jobs;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    fault_vfs_install();
    writer_set_up(&f->w);
    *state = f;
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

static void done(void *context, enum gate_status status, const struct gate_error *err)
{
    struct job *j = context;
    struct fixture *f = j->fixture;
    (void)err;
    pthread_mutex_lock(&f->w.mutex);
    j->status = status;
    f->w.n_done++;
    pthread_cond_signal(&f->w.changed);
    pthread_mutex_unlock(&f->w.mutex);
}

static void submit(struct fixture *f)
{
    struct job *j = &f->jobs[f->n_jobs];
    j->fixture = f;
    j->number = f->n_jobs++;
    j->job = (struct writer_job){.context = j, .run = run, .done = done};
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

static void assert_as_told(struct fixture *f)
{
    struct store *s;
    unsigned rows[MAX_JOBS] = {0};
    assert_int_equal(store_open(f->w.files->path, STORE_READ_ONLY, &s, NULL), GATE_OK);
    assert_int_equal(store_tokens(s, count_row, rows, NULL), GATE_OK);
    for (unsigned i = 0; i < f->n_jobs; i++) {
        if (rows[i] != (f->jobs[i].status == GATE_OK ? 60u : 0u))
            fail_msg("job %u ended with %d and has %u rows", i, f->jobs[i].status, rows[i]);
    }
    store_close(s);
    assert_sound(f->w.files->path);
}

/* The fault comes ever later, until a try goes through it unharmed. */
static void try_all_places(struct fixture *f, enum fault kind)
{
    unsigned n_harmed = 0;
    for (int passes = 0; passes <= MAX_PASSES; passes++) {
        fault_vfs_set(kind, passes);
        for (int i = 0; i < JOBS_A_TRY; i++)
            submit(f);
        writer_wait_for(&f->w, f->n_jobs);
        n_harmed += fault_vfs_count() > 0;
        fault_vfs_set(FAULT_NONE, 0);
        assert_as_told(f);
        submit(f); /* the disk is good again */
        writer_wait_for(&f->w, f->n_jobs);
        assert_int_equal(f->jobs[f->n_jobs - 1].status, GATE_OK);
    }
    assert_true(n_harmed > 0);
    /* And all of it is there for the next server. */
    writer_start_again(&f->w);
    assert_as_told(f);
}

static void test_syncs_that_fail(void **state)
{
    try_all_places(*state, FAULT_SYNC);
}

static void test_full_disk(void **state)
{
    try_all_places(*state, FAULT_FULL);
}

static void test_writes_that_fail(void **state)
{
    try_all_places(*state, FAULT_WRITE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_syncs_that_fail),
        TEST(test_full_disk),
        TEST(test_writes_that_fail),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
