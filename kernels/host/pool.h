/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h: threads that stay, and a parallel for over them.
 *
 * The calling thread works too, so a pool of one has no thread of its own. Items are dealt out in
 * turn (thread t takes t, t + threads, ...): which thread computes what depends on nothing but the
 * two numbers. A job of ten microseconds or less is the caller's alone: to wake a thread takes
 * as long, and on a busy machine as long as a time slice. Idle workers spin for some microseconds,
 * for back-to-back launches, then block, so that a second library in the same process is not
 * disturbed.
 */
#ifndef KG_HOST_POOL_H
#define KG_HOST_POOL_H

#include <stdint.h>

struct pool;

/* Products that take as long as to move an element. */
enum { POOL_STEP_PRODUCTS = 16 };

/* `item` of the n_items of this pool_for(); `thread` in [0, pool_threads()), for scratch memory. */
typedef void (*pool_fn)(void *context, int64_t item, int thread);

/* A pool of threads >= 1, the caller included. Returns NULL when memory or threads are short. */
struct pool *pool_create(int threads);

/* Ends and joins the workers. NULL is fine. */
void pool_destroy(struct pool *pool);

int pool_threads(const struct pool *pool);

/* Calls fn for every item in [0, n_items), returns when all are done and their writes visible.
 * `steps`: about how many elements all of them move, or multiply in vectors of POOL_STEP_PRODUCTS.
 * One caller at a time; fn must not call it. Allocates nothing. */
void pool_for(struct pool *pool, int64_t n_items, int64_t steps, pool_fn fn, void *context);

#endif
