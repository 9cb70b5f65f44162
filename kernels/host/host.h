/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h: what the kernels of this library share: its threads and state, and the checks of the
 * ABI's rules.
 */
#ifndef KG_HOST_HOST_H
#define KG_HOST_HOST_H

#include <stdint.h>

#include "kernels/problem.h"
#include "kernels/host/simd.h"

/*
 * ---- pool.c: threads that stay, and a parallel for over them ----
 *
 * The calling thread works too, so a pool of one has no thread of its own. Items are dealt out in
 * turn (thread t takes t, t + threads, ...): which thread computes what depends on nothing but the
 * two numbers. A job of ten microseconds or less is the caller's alone: to wake a thread takes
 * as long, and on a busy machine as long as a time slice. Idle workers spin for some microseconds,
 * for back-to-back launches, then block, so that a second library in the same process is not
 * disturbed.
 */

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

/* ---- the library ---- */

/* Set by open(), constant until close(). */
struct host {
    struct pool *pool;
    const struct simd *simd;
};

typedef uint64_t host_bytes_fn(const struct kg_problem *p, const struct kg_device *device,
                               void *plan);

/* Is this a well-formed problem on a host device with at least one thread? */
int host_supports(const struct kg_problem *p, const struct kg_device *device);

/* The first step of a launch: do problem, tensors and workspace fit each other? Returns NULL when
 * not, or outside of open() and close(): KG_BAD_ARGUMENT. */
const struct host *host_enter(const struct kg_problem *p, const struct kg_args *args,
                              host_bytes_fn *workspace_bytes);

/* The one kernel of an op, by the functions workspace_bytes() and launch() of its file. */
#define HOST_KERNEL(its_op, its_supports)                                                          \
    const struct kg_kernel host_##its_op = {                                                       \
        .struct_bytes = sizeof(struct kg_kernel),                                                  \
        .op = #its_op,                                                                             \
        .name = #its_op,                                                                           \
        .supports = its_supports,                                                                  \
        .workspace_bytes = workspace_bytes,                                                        \
        .launch = launch,                                                                          \
    }

/* Workspace is counted in floats and dealt out in cache lines, so that no two threads share one. */
static inline int64_t host_line(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

extern const struct kg_kernel host_attention_fwd, host_attention_bwd, host_gemm, host_batched_gemm,
    host_gemm_fp8, host_gemm_fp8_block, host_gemv, host_linear_relu, host_linear_relu_bwd,
    host_grouped_gemm, host_rmsnorm, host_attention_paged;

#endif
