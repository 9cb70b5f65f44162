/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h: what the kernels of this library share: its state, and the checks of the ABI's rules.
 */
#ifndef KG_HOST_HOST_H
#define KG_HOST_HOST_H

#include <stdint.h>

#include "kernels/problem.h"
#include "kernels/host/pool.h"
#include "kernels/host/simd.h"

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
    host_rmsnorm;

#endif
