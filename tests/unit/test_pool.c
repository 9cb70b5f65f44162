/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool.c: the thread pool of the host kernels runs every item once, however often it is used.
 */
#include <pthread.h>
#include <string.h>

#include "kernels/host/host.h"
#include "tests/unit/unit.h"

enum { MAX_ITEMS = 100 };

struct tally {
    int threads;
    int runs[MAX_ITEMS]; /* written by the one thread that owns the item */
    int owner[MAX_ITEMS];
    pthread_t caller;
};

static void count(void *context, int64_t item, int thread)
{
    struct tally *t = context;
    t->runs[item]++;
    t->owner[item] = thread;
    if (thread == 0 && !pthread_equal(t->caller, pthread_self()))
        t->owner[item] = -1;
}

static void check_job(struct pool *pool, int64_t n_items)
{
    struct tally t = {.threads = pool_threads(pool), .caller = pthread_self()};
    pool_for(pool, n_items, 1 << 20, count, &t);
    for (int64_t i = 0; i < MAX_ITEMS; i++) {
        assert_int_equal(t.runs[i], i < n_items);
        if (i < n_items)
            assert_int_equal(t.owner[i], i % t.threads);
    }
}

TEST(every_item_once)
{
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_create(threads);
        assert_non_null(pool);
        assert_int_equal(pool_threads(pool), threads);
        for (int64_t n_items = 0; n_items <= MAX_ITEMS; n_items++)
            check_job(pool, n_items);
        pool_destroy(pool);
    }
}

/* Waking a thread takes longer than it would save. */
TEST(a_short_job_is_the_callers_alone)
{
    struct pool *pool = pool_create(3);
    assert_non_null(pool);
    struct tally t = {.threads = 3, .caller = pthread_self()};
    pool_for(pool, 10, 1000, count, &t);
    for (int i = 0; i < 10; i++)
        assert_int_equal(t.owner[i], 0);
    pool_destroy(pool);
}

/* Long enough a run of jobs that workers are met spinning as well as asleep. */
TEST(repeated_jobs)
{
    struct pool *pool = pool_create(3);
    assert_non_null(pool);
    for (int i = 0; i < 3000; i++)
        check_job(pool, i % 7);
    pool_destroy(pool);
}

TEST(created_and_destroyed)
{
    for (int i = 0; i < 100; i++) {
        struct pool *pool = pool_create(1 + i % 4);
        assert_non_null(pool);
        if (i % 2)
            check_job(pool, 5);
        pool_destroy(pool);
    }
    pool_destroy(NULL);
}
