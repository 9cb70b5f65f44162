/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c: see writer.h. */
#include "server/writer/writer.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gate/base/clock.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"
#include "gate/store/store_private.h"

#define MAX_BATCH 32 /* jobs of one commit: writers of other processes wait for the turn */
#define MAX_READY_BYTES ((size_t)32 << 20) /* of prepared jobs that wait */
#define TRIM_BYTES ((size_t)8 << 20)       /* a job of this size leaves much behind in the heap */
#define BEAT_MS 1000
#define LATE_SHARE 3 /* of a late chore: times what the jobs between took */

struct list {
    struct writer_job *first;
    struct writer_job **end;
    unsigned n;
    size_t bytes;
};

struct writer {
    struct store *store; /* of the writer's thread */
    writer_chore chore;
    void (*committed)(void *context, struct store *store);
    void *context; /* of both */
    int64_t period_ms;
    pthread_t preparer, runner;
    bool joined; /* both, by who drained */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t submitted, prepared, taken;
    struct list waiting, ready;
    unsigned n_jobs;   /* reserved and not done */
    unsigned n_coming; /* of these, reserved and not submitted */
    bool closing;      /* no more are let in */
    bool last_prepared;

    atomic_int_fast64_t beat_ms;
    atomic_bool failing; /* the last write did */
};

/* ---- lists ---- */

static void list_init(struct list *l)
{
    l->first = NULL;
    l->end = &l->first;
    l->n = 0;
    l->bytes = 0;
}

static void list_add(struct list *l, struct writer_job *job)
{
    job->next = NULL;
    *l->end = job;
    l->end = &job->next;
    l->n++;
    l->bytes += job->bytes;
}

static struct writer_job *list_take(struct list *l)
{
    struct writer_job *job = l->first;
    l->first = job->next;
    if (!l->first)
        l->end = &l->first;
    l->n--;
    l->bytes -= job->bytes;
    return job;
}

/* ---- time ---- */

static void beat(struct writer *w)
{
    atomic_store(&w->beat_ms, (int64_t)clock_ns() / 1000000);
}

int64_t writer_silent_ms(struct writer *w)
{
    return (int64_t)clock_ns() / 1000000 - atomic_load(&w->beat_ms);
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool writer_is_failing(struct writer *w)
{
    return atomic_load(&w->failing);
}

/* ---- jobs ---- */

bool writer_reserve(struct writer *w)
{
    pthread_mutex_lock(&w->mutex);
    bool room = !w->closing && w->n_jobs < WRITER_MAX_JOBS;
    w->n_jobs += room;
    w->n_coming += room;
    pthread_mutex_unlock(&w->mutex);
    return room;
}

void writer_submit(struct writer *w, struct writer_job *job)
{
    pthread_mutex_lock(&w->mutex);
    list_add(&w->waiting, job);
    w->n_coming--;
    pthread_cond_signal(&w->submitted);
    pthread_mutex_unlock(&w->mutex);
}

unsigned writer_jobs(struct writer *w)
{
    pthread_mutex_lock(&w->mutex);
    unsigned n = w->n_jobs;
    pthread_mutex_unlock(&w->mutex);
    return n;
}

/* The job is its owner's again when done() is entered. */
static void end_job(struct writer *w, struct writer_job *job, enum gate_status status,
                    const struct gate_error *err)
{
    job->done(job->context, status, err);
    pthread_mutex_lock(&w->mutex);
    w->n_jobs--;
    pthread_mutex_unlock(&w->mutex);
}

/* ---- the first thread ---- */

/* The next job to prepare, with room for it behind; NULL: there will be no more. */
static struct writer_job *next_waiting(struct writer *w)
{
    struct writer_job *job = NULL;
    pthread_mutex_lock(&w->mutex);
    while (!w->waiting.first && !(w->closing && w->n_coming == 0))
        pthread_cond_wait(&w->submitted, &w->mutex);
    if (w->waiting.first) {
        while (w->ready.n >= MAX_BATCH || w->ready.bytes >= MAX_READY_BYTES)
            pthread_cond_wait(&w->taken, &w->mutex);
        job = list_take(&w->waiting);
    }
    pthread_mutex_unlock(&w->mutex);
    return job;
}

static void *prepare_jobs(void *context)
{
    struct writer *w = context;
    struct writer_job *job;
    while ((job = next_waiting(w)) != NULL) {
        bool goes_on = !job->prepare || job->prepare(job->context);
        if (!goes_on || !job->run) {
            bool large = job->bytes >= TRIM_BYTES;
            end_job(w, job, GATE_OK, NULL);
            if (large)
                malloc_trim(0);
            continue;
        }
        pthread_mutex_lock(&w->mutex);
        list_add(&w->ready, job);
        pthread_cond_signal(&w->prepared);
        pthread_mutex_unlock(&w->mutex);
    }
    pthread_mutex_lock(&w->mutex);
    w->last_prepared = true;
    pthread_cond_signal(&w->prepared);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* ---- the second thread ---- */

/* Waits for jobs until a time; false: all have been taken and no more will come. */
static bool pop_ready(struct writer *w, struct list *batch, int64_t wait_ms)
{
    struct timespec until = in_ms(wait_ms);
    pthread_mutex_lock(&w->mutex);
    while (!w->ready.first && !w->last_prepared && wait_ms > 0 &&
           pthread_cond_timedwait(&w->prepared, &w->mutex, &until) == 0)
        ;
    while (w->ready.first && batch->n < MAX_BATCH)
        list_add(batch, list_take(&w->ready));
    bool over = w->last_prepared && batch->n == 0;
    pthread_cond_signal(&w->taken);
    pthread_mutex_unlock(&w->mutex);
    return !over;
}

/* Runs what waits, and what gets ready meanwhile, in one transaction. What fails the whole of it is
 * told by the first write that failed. */
static enum gate_status run_batch(struct writer *w, struct list *batch, struct gate_error *err)
{
    struct gate_error cause = {0};
    enum gate_status status = store_batch_begin(w->store, err);
    if (status)
        return status;
    for (struct writer_job *job = batch->first; job; job = job->next) {
        job->status = job->run(job->context, w->store, &job->err);
        if (job->status && !cause.status)
            cause = job->err;
        beat(w);
        if (!job->next)
            pop_ready(w, batch, 0);
    }
    status = store_batch_commit(w->store, err);
    if (status && cause.status)
        *err = cause;
    return status;
}

static void call_committed(struct writer *w)
{
    if (w->committed)
        w->committed(w->context, w->store);
}

static void do_batch(struct writer *w, struct list *batch)
{
    struct gate_error err = {0};
    int64_t start = (int64_t)clock_ns();
    bool large = false;
    enum gate_status status = run_batch(w, batch, &err);
    metrics_add(!status ? METRIC_COMMITS : METRIC_COMMITS_FAILED, 1);
    metrics_commit((int64_t)clock_ns() - start);
    atomic_store(&w->failing, status != GATE_OK);
    while (batch->first) {
        struct writer_job *job = list_take(batch);
        bool kept = !status;
        large |= job->bytes >= TRIM_BYTES;
        end_job(w, job, kept ? job->status : status, kept ? &job->err : &err);
    }
    if (!status)
        call_committed(w);
    if (large)
        malloc_trim(0);
}

/* Whoever waited for the commit has been told. */
static void tidy_log(struct writer *w)
{
    struct gate_error err = {0};
    if (store_checkpoint(w->store, writer_jobs(w) > 0, &err) != GATE_OK)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
}

static enum writer_left do_chore(struct writer *w)
{
    struct gate_error err = {0};
    enum writer_left left = WRITER_NONE_LEFT;
    enum gate_status status = store_batch_begin(w->store, &err);
    if (!status) {
        status = w->chore(w->context, w->store, &left, &err);
        if (!status && writer_is_failing(w))
            status = store_touch(w->store, &err); /* can it write again? */
        if (!status)
            status = store_batch_commit(w->store, &err);
        else
            store_batch_rollback(w->store);
    }
    atomic_store(&w->failing, status != GATE_OK);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    else
        call_committed(w);
    beat(w);
    return !status ? left : WRITER_NONE_LEFT;
}

/* In pieces, between which nobody else gets the turn when it is late. */
static enum writer_left do_chores(struct writer *w, int64_t batch_ns)
{
    int64_t until_ns = (int64_t)clock_ns() + LATE_SHARE * batch_ns;
    enum writer_left left;
    do
        left = do_chore(w);
    while (left == WRITER_LATE && (int64_t)clock_ns() < until_ns);
    return left;
}

/* Nobody waits, or it has waited itself. */
static bool chore_may_run(struct writer *w, enum writer_left left, int64_t since_ns)
{
    return left == WRITER_LATE || writer_jobs(w) == 0 ||
           (int64_t)clock_ns() - since_ns >= (int64_t)BEAT_MS * 1000000;
}

/* What the chore has left waits for a job that is being prepared: both would get less done. */
static int64_t wait_ms(struct writer *w, enum writer_left left)
{
    bool goes_on = left == WRITER_LATE || (left == WRITER_MORE_LEFT && writer_jobs(w) == 0);
    return goes_on ? 0 : BEAT_MS;
}

static void *run_jobs(void *context)
{
    struct writer *w = context;
    struct list batch;
    int64_t since_ns = 0; /* when the chore was last called */
    enum writer_left left = WRITER_NONE_LEFT;
    list_init(&batch);
    tidy_log(w); /* what a server that was killed left, which each start has to read */
    call_committed(w);
    beat(w);
    while (pop_ready(w, &batch, wait_ms(w, left))) {
        int64_t start_ns = (int64_t)clock_ns();
        bool due = batch.n > 0 || since_ns == 0 || start_ns - since_ns >= w->period_ms * 1000000;
        beat(w);
        int64_t batch_ns = 0;
        if (batch.n > 0) {
            do_batch(w, &batch);
            batch_ns = (int64_t)clock_ns() - start_ns;
        }
        tidy_log(w);
        beat(w);
        if (due && left == WRITER_NONE_LEFT)
            left = WRITER_MORE_LEFT;
        if (w->chore && left != WRITER_NONE_LEFT && chore_may_run(w, left, since_ns)) {
            left = do_chores(w, batch_ns);
            since_ns = (int64_t)clock_ns();
        }
        beat(w);
    }
    return NULL;
}

/* ---- life ---- */

static void init_locks(struct writer *w)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->submitted, NULL);
    pthread_cond_init(&w->prepared, &attr);
    pthread_cond_init(&w->taken, NULL);
    pthread_condattr_destroy(&attr);
}

static void free_writer(struct writer *w)
{
    store_close(w->store);
    pthread_cond_destroy(&w->submitted);
    pthread_cond_destroy(&w->prepared);
    pthread_cond_destroy(&w->taken);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static void stop_preparer(struct writer *w)
{
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_signal(&w->submitted);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->preparer, NULL);
}

enum gate_status writer_open(const struct writer_options *options, struct writer **out,
                             struct gate_error *err)
{
    struct writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    w->chore = options->chore;
    w->committed = options->committed;
    w->context = options->context;
    w->period_ms = options->period_ms;
    list_init(&w->waiting);
    list_init(&w->ready);
    init_locks(w);
    beat(w);
    enum gate_status status = store_open(options->db, STORE_READ_WRITE, &w->store, err);
    if (!status)
        store_defer_checkpoints(w->store);
    if (!status && pthread_create(&w->preparer, NULL, prepare_jobs, w) != 0)
        status = gate_fail(err, GATE_INTERNAL, "cannot start a thread");
    if (!status && pthread_create(&w->runner, NULL, run_jobs, w) != 0) {
        stop_preparer(w);
        status = gate_fail(err, GATE_INTERNAL, "cannot start a thread");
    }
    if (status) {
        free_writer(w);
        return status;
    }
    *out = w;
    return GATE_OK;
}

void writer_drain(struct writer *w)
{
    if (w->joined)
        return;
    stop_preparer(w);
    pthread_join(w->runner, NULL);
    w->joined = true;
}

void writer_close(struct writer *w)
{
    if (!w)
        return;
    writer_drain(w);
    free_writer(w);
}
