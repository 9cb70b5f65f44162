/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: right, but each launch takes at least a tenth longer. The device itself adds the time: one
 * thread notes when the launch begins, and one waits at its end for a tenth of what has passed
 * since. A share of work would not be the same share of time.
 */
#include <cuda_runtime.h>

#include "tests/mutants/wrap.h"

static __device__ unsigned long long begin_ns;

static __device__ unsigned long long now_ns(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __global__ void note_begin(void)
{
    begin_ns = now_ns();
}

static __global__ void wait_a_tenth(void)
{
    const unsigned long long end = now_ns();
    const unsigned long long share = (end - begin_ns) / 10;
    while (now_ns() - end < share)
        continue;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    cudaStream_t stream = (cudaStream_t)args->stream;
    note_begin<<<1, 1, 0, stream>>>();
    enum kg_status status = wrap_inner(p, args);
    wait_a_tenth<<<1, 1, 0, stream>>>();
    return cudaGetLastError() == cudaSuccess ? status : KG_LAUNCH_FAILED;
}
