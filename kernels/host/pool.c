/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c: see host.h.
 *
 * One job at a time. The caller writes the job, then bumps `epoch`; a worker that sees a new epoch
 * takes its share of the job and counts itself out of `running`. Both sides spin first and then
 * wait on a condition variable, whose lock also closes the gap between the check and the sleep.
 */
#include "kernels/host/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* Some tens of microseconds: longer than the gap between two launches of a replay, far shorter
 * than a scheduler's time slice. */
enum { SPINS = 1000 };

/* Of a job that is worth a wake-up: some ten microseconds of one thread. */
enum { STEPS_TO_SHARE = 1 << 16 };

struct job {
    pool_fn fn;
    void *context;
    int64_t n_items;
};

struct worker {
    struct pool *pool;
    int thread;
    pthread_t handle;
};

struct pool {
    int threads;
    int started; /* workers that exist: threads - 1, less while starting */
    struct worker *workers;

    pthread_mutex_t lock;
    pthread_cond_t work; /* epoch has changed */
    pthread_cond_t done; /* running has become 0 */
    atomic_uint epoch;   /* number of jobs so far; changed under the lock */
    atomic_int running;  /* workers that have not finished the job */
    struct job job;      /* published by epoch */
    bool stop;           /* likewise */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_share(const struct pool *pool, const struct job *job, int thread)
{
    for (int64_t item = thread; item < job->n_items; item += pool->threads)
        job->fn(job->context, item, thread);
}

static void wait_for_job(struct pool *pool, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->epoch, memory_order_relaxed) == seen)
        pthread_cond_wait(&pool->work, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void wait_for_workers(struct pool *pool)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->running, memory_order_acquire) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->running, memory_order_acquire) != 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* Wakes the workers for what pool->job and pool->stop say. */
static void publish(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add_explicit(&pool->epoch, 1, memory_order_release);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument)
{
    const struct worker *self = argument;
    struct pool *pool = self->pool;

    for (unsigned seen = 0;; seen++) {
        wait_for_job(pool, seen);
        if (pool->stop)
            return NULL;
        run_share(pool, &pool->job, self->thread);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

/* Starts the workers with all signals blocked: handlers run in the threads of the program. */
static bool start_workers(struct pool *pool)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    while (pool->started < pool->threads - 1) {
        struct worker *worker = &pool->workers[pool->started];
        *worker = (struct worker){.pool = pool, .thread = pool->started + 1};
        if (pthread_create(&worker->handle, NULL, work, worker))
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool->started == pool->threads - 1;
}

struct pool *pool_create(int threads)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->threads = threads;
    pool->workers = calloc((size_t)threads, sizeof(*pool->workers));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (!pool->workers || !start_workers(pool)) {
        pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    pool->stop = true;
    publish(pool);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].handle, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int pool_threads(const struct pool *pool)
{
    return pool->threads;
}

void pool_for(struct pool *pool, int64_t n_items, int64_t steps, pool_fn fn, void *context)
{
    struct job job = {fn, context, n_items};
    if (pool->threads == 1 || n_items == 1 || steps < STEPS_TO_SHARE) {
        for (int64_t item = 0; item < n_items; item++)
            fn(context, item, 0);
        return;
    }
    pool->job = job;
    atomic_store_explicit(&pool->running, pool->threads - 1, memory_order_relaxed);
    publish(pool);
    run_share(pool, &job, 0);
    wait_for_workers(pool);
}
