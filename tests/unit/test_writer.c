/* SPDX-License-Identifier: Apache-2.0 */
/* test_writer.c: jobs on their way through the writer: order, groups, failures, room, the end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "server/request/auth.h"
#include "gate/store/store_private.h"
#include "gate/store/store_token.h"
#include "tests/unit/unit.h"
#include "tests/unit/writer_fixture.h"

#define MAX_JOBS 500

/* What a job is to do; its result is a token of the job's number. */
struct job {
    struct writer_job job;
    struct fixture *fixture;
    unsigned number;
    bool refuse; /* prepare() says no */
    bool fail;   /* run() */
    bool lose;   /* run() ends the transaction behind the batch's back */
    bool wait;   /* run() waits for the fixture's gate */
    /* results */
    bool done;
    enum gate_status status;
    unsigned place;   /* how many were done before it */
    bool was_visible; /* to a reader, when it was done */
};

struct fixture {
    struct writer_fixture w;
    struct store *reader;
    struct job jobs[MAX_JOBS];
    bool open, waiting; /* the gate that `wait` waits at */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    writer_set_up(&f->w, NULL);
    assert_int_equal(store_open(f->w.files->path, STORE_READ_ONLY, &f->reader, NULL), GATE_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    store_close(f->reader);
    writer_tear_down(&f->w);
    free(f);
    return 0;
}

static struct store_token token_of(unsigned number)
{
    struct store_token token = {.name = "t", .scopes = TOKEN_READ, .created_ms = 1};
    snprintf(token.id, sizeof(token.id), "%012u", number);
    return token;
}

static bool is_visible(struct fixture *f, unsigned number)
{
    struct store_token row;
    bool found = false;
    struct store_token token = token_of(number);
    assert_int_equal(store_find_token(f->reader, token.id, &row, &found, NULL), GATE_OK);
    return found;
}

static bool prepare(void *context)
{
    return !((struct job *)context)->refuse;
}

static enum gate_status run(void *context, struct store *store, struct gate_error *err)
{
    struct job *j = context;
    struct fixture *f = j->fixture;
    struct store_token token = token_of(j->number);
    pthread_mutex_lock(&f->w.mutex);
    if (j->wait) {
        f->waiting = true;
        pthread_cond_broadcast(&f->w.changed);
        while (!f->open)
            pthread_cond_wait(&f->w.changed, &f->w.mutex);
    }
    pthread_mutex_unlock(&f->w.mutex);
    if (j->lose)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    if (j->fail)
        return gate_fail(err, GATE_IO, "job %u fails", j->number);
    return j->lose ? GATE_OK : store_put_token(store, &token, err);
}

static void done(void *context, enum gate_status status, const struct gate_error *err)
{
    struct job *j = context;
    struct fixture *f = j->fixture;
    if (status != GATE_OK)
        assert_true(err->message[0] != '\0');
    pthread_mutex_lock(&f->w.mutex);
    assert_false(j->done);
    j->was_visible = is_visible(f, j->number);
    j->done = true;
    j->status = status;
    j->place = f->w.n_done++;
    pthread_cond_broadcast(&f->w.changed);
    pthread_mutex_unlock(&f->w.mutex);
}

static bool submit(struct fixture *f, unsigned number)
{
    struct job *j = &f->jobs[number];
    j->fixture = f;
    j->number = number;
    j->job = (struct writer_job){.context = j, .prepare = prepare, .run = run, .done = done};
    if (!writer_reserve(f->w.writer))
        return false;
    writer_submit(f->w.writer, &j->job);
    return true;
}

/* Lets one job hold the writer, so that those behind it wait together. */
static void hold(struct fixture *f, unsigned number)
{
    f->jobs[number].wait = true;
    assert_true(submit(f, number));
    pthread_mutex_lock(&f->w.mutex);
    while (!f->waiting)
        pthread_cond_wait(&f->w.changed, &f->w.mutex);
    pthread_mutex_unlock(&f->w.mutex);
}

static void let_go(struct fixture *f)
{
    pthread_mutex_lock(&f->w.mutex);
    f->open = true;
    pthread_cond_broadcast(&f->w.changed);
    pthread_mutex_unlock(&f->w.mutex);
}

TEST_WITHIN(all_are_done_in_order, set_up, tear_down)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < MAX_JOBS; i++) {
        while (!submit(f, i))
            writer_wait_for(&f->w, i >= WRITER_MAX_JOBS ? i - WRITER_MAX_JOBS + 1 : 0);
    }
    writer_wait_for(&f->w, MAX_JOBS);
    for (unsigned i = 0; i < MAX_JOBS; i++) {
        assert_int_equal(f->jobs[i].status, GATE_OK);
        assert_int_equal(f->jobs[i].place, i);
        assert_true(f->jobs[i].was_visible);
    }
}

TEST_WITHIN(a_failure_costs_itself_only, set_up, tear_down)
{
    struct fixture *f = *state;
    f->jobs[3].fail = true;
    f->jobs[5].refuse = true;
    hold(f, 0);
    for (unsigned i = 1; i < 8; i++)
        assert_true(submit(f, i));
    let_go(f);
    writer_wait_for(&f->w, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(f->jobs[i].status, i == 3 ? GATE_IO : GATE_OK);
        assert_int_equal(f->jobs[i].was_visible, i != 3 && i != 5);
    }
}

TEST_WITHIN(a_commit_that_fails_takes_its_batch_along, set_up, tear_down)
{
    struct fixture *f = *state;
    f->jobs[2].lose = true;
    hold(f, 0);
    for (unsigned i = 1; i < 4; i++)
        assert_true(submit(f, i));
    /* All four are in one batch, which the first one holds open. */
    while (writer_jobs(f->w.writer) < 4)
        usleep(100);
    let_go(f);
    writer_wait_for(&f->w, 4);
    assert_int_equal(f->jobs[2].status, GATE_IO);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(f->jobs[i].was_visible, f->jobs[i].status == GATE_OK && i != 2);
    /* And the next one is stored. */
    assert_true(submit(f, 9));
    writer_wait_for(&f->w, 5);
    assert_true(f->jobs[9].was_visible);
}

TEST_WITHIN(room_is_bounded, set_up, tear_down)
{
    struct fixture *f = *state;
    unsigned n = 1;
    hold(f, 0);
    while (submit(f, n))
        n++;
    assert_int_equal(n, WRITER_MAX_JOBS);
    assert_int_equal(writer_jobs(f->w.writer), WRITER_MAX_JOBS);
    let_go(f);
    writer_wait_for(&f->w, WRITER_MAX_JOBS);
    assert_true(submit(f, n)); /* and there is room again */
    writer_wait_for(&f->w, WRITER_MAX_JOBS + 1);
}

TEST_WITHIN(draining_ends_what_was_taken, set_up, tear_down)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 40; i++)
        assert_true(submit(f, i));
    writer_drain(f->w.writer);
    assert_int_equal(f->w.n_done, 40);
    assert_int_equal(writer_jobs(f->w.writer), 0);
    assert_false(writer_reserve(f->w.writer));
    for (unsigned i = 0; i < 40; i++)
        assert_true(f->jobs[i].was_visible);
}

/* ---- work between jobs ---- */

static atomic_uint n_chores, n_behind;

static enum gate_status chore(void *context, struct store *store, enum writer_left *left,
                              struct gate_error *err)
{
    assert_ptr_equal(context, &n_chores);
    struct store_token token = token_of(1000 + atomic_load(&n_chores));
    *left = atomic_fetch_add(&n_chores, 1) < 4 ? WRITER_MORE_LEFT : WRITER_NONE_LEFT;
    return store_put_token(store, &token, err);
}

TEST_WITHIN(chores, set_up, tear_down)
{
    struct fixture *f = *state;
    struct writer_options options = {.chore = chore, .context = &n_chores, .period_ms = 3600000};
    atomic_store(&n_chores, 0);
    writer_start_again(&f->w, &options);
    /* At the start, and again as long as it says that there is more. */
    while (atomic_load(&n_chores) < 5)
        usleep(1000);
    /* And after a commit. */
    assert_true(submit(f, 0));
    writer_wait_for(&f->w, 1);
    while (atomic_load(&n_chores) < 6)
        usleep(1000);
    writer_drain(f->w.writer);
    assert_int_equal(atomic_load(&n_chores), 6);
    for (unsigned i = 0; i < 6; i++)
        assert_true(is_visible(f, 1000 + i));
}

/* A job whose preparation takes until the chore was called twice, or for a third of a second. */
static bool prepare_long(void *context)
{
    unsigned before = atomic_load(&n_chores), *n = context;
    for (unsigned i = 0; i < 333 && atomic_load(&n_chores) < before + 2; i++)
        usleep(1000);
    *n = atomic_load(&n_chores) - before;
    return false;
}

/* Is counted, and says of what is left what its context is. */
static enum gate_status count_chore(void *context, struct store *store, enum writer_left *left,
                                    struct gate_error *err)
{
    (void)store;
    (void)err;
    atomic_fetch_add(&n_chores, 1);
    *left = *(const enum writer_left *)context;
    return GATE_OK;
}

static void ignore(void *context, enum gate_status status, const struct gate_error *err)
{
    (void)context;
    (void)status;
    (void)err;
}

/* One call may be under way when the job comes. */
TEST_WITHIN(chores_wait_for_a_preparation, set_up, tear_down)
{
    struct fixture *f = *state;
    static enum writer_left left = WRITER_MORE_LEFT;
    struct writer_options options = {.chore = count_chore, .context = &left, .period_ms = 3600000};
    unsigned n_meanwhile = 0;
    struct writer_job job = {.context = &n_meanwhile, .prepare = prepare_long, .done = ignore};
    atomic_store(&n_chores, 0);
    writer_start_again(&f->w, &options);
    while (atomic_load(&n_chores) == 0)
        usleep(1000);
    int64_t start_ns = (int64_t)clock_ns();
    assert_true(writer_reserve(f->w.writer));
    writer_submit(f->w.writer, &job);
    while (writer_jobs(f->w.writer) > 0)
        usleep(1000);
    /* And one in each further second, which the preparation takes on a very slow machine. */
    assert_in_range(n_meanwhile, 0, 1 + ((int64_t)clock_ns() - start_ns) / 1000000000);
    unsigned before = atomic_load(&n_chores);
    while (atomic_load(&n_chores) < before + 3) /* it goes on afterwards */
        usleep(1000);
    writer_drain(f->w.writer);
}

/* The same of what comes after a commit: `f` counts the jobs that are done. */
static bool prepare_after_another(void *context)
{
    struct fixture *f = context;
    writer_wait_for(&f->w, 1);
    for (unsigned i = 0; i < 333 && atomic_load(&n_chores) == 1; i++)
        usleep(1000);
    atomic_store(&n_behind, atomic_load(&n_chores) - 1);
    return false;
}

TEST_WITHIN(chores_wait_for_what_comes_behind, set_up, tear_down)
{
    struct fixture *f = *state;
    static enum writer_left left = WRITER_NONE_LEFT;
    struct writer_options options = {.chore = count_chore, .context = &left, .period_ms = 3600000};
    struct writer_job job = {.context = f, .prepare = prepare_after_another, .done = ignore};
    atomic_store(&n_chores, 0);
    atomic_store(&n_behind, 100);
    writer_start_again(&f->w, &options);
    while (atomic_load(&n_chores) == 0)
        usleep(1000);
    int64_t start_ns = (int64_t)clock_ns();
    assert_true(writer_reserve(f->w.writer));
    assert_true(submit(f, 0));
    writer_submit(f->w.writer, &job);
    while (writer_jobs(f->w.writer) > 0)
        usleep(1000);
    /* Once in a second, so not at all, but on a machine that is very slow. */
    assert_in_range(atomic_load(&n_behind), 0, ((int64_t)clock_ns() - start_ns) / 1000000000);
    while (atomic_load(&n_chores) < 2) /* it is called afterwards */
        usleep(1000);
    writer_drain(f->w.writer);
    assert_int_equal(atomic_load(&n_chores), 2);
}

#define MANY_CHORES 15

static bool prepare_beside_many_chores(void *context)
{
    int64_t start_ns = (int64_t)clock_ns(), *seconds = context;
    unsigned before = atomic_load(&n_chores);
    while (atomic_load(&n_chores) < before + MANY_CHORES)
        usleep(1000);
    *seconds = ((int64_t)clock_ns() - start_ns) / 1000000000;
    return false;
}

/* A chore that is late waits for no job, not for a second each time; nor do jobs wait for its end,
 * which never comes. */
TEST_WITHIN(a_late_chore_takes_turns, set_up, tear_down)
{
    struct fixture *f = *state;
    static enum writer_left left = WRITER_LATE;
    struct writer_options options = {.chore = count_chore, .context = &left, .period_ms = 3600000};
    int64_t seconds = 0;
    struct writer_job job = {
        .context = &seconds, .prepare = prepare_beside_many_chores, .done = ignore};
    atomic_store(&n_chores, 0);
    writer_start_again(&f->w, &options);
    assert_true(writer_reserve(f->w.writer));
    writer_submit(f->w.writer, &job);
    while (writer_jobs(f->w.writer) > 0)
        usleep(1000);
    /* Once in a second, they would take no less than this, on whatever machine. */
    assert_in_range(seconds, 0, MANY_CHORES - 2);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(submit(f, i));
        writer_wait_for(&f->w, i + 1);
        assert_true(f->jobs[i].was_visible);
    }
    writer_drain(f->w.writer);
}
