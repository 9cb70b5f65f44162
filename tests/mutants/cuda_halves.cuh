/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_halves.cuh: GEMM in two launches of half the rows each, which the including file has
 * SIDE_BY_SIDE or one after the other. Few blocks each, so that there is room for both. All else
 * goes to the original library.
 */
#ifndef TESTS_MUTANTS_CUDA_HALVES_CUH
#define TESTS_MUTANTS_CUDA_HALVES_CUH

#include <cuda_runtime.h>

#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/wrap.h"

enum { BLOCKS = 8, THREADS = 128 };

static __global__ void half_of_rows(struct job j)
{
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < j.m * j.n;
         at += BLOCKS * THREADS)
        store(&j.out, at / j.n * j.out.stride[0] + at % j.n, terms(&j, at / j.n, at % j.n, 0, j.k),
              0);
}

static cudaStream_t side;
static cudaEvent_t fork_event, join_event;

static bool have_side(void)
{
    return side || (cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) == cudaSuccess &&
                    cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming) == cudaSuccess &&
                    cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming) == cudaSuccess);
}

/* All that `after` was given so far comes before what `stream` is given next. */
static bool wait(cudaStream_t stream, cudaStream_t after, cudaEvent_t event)
{
    return cudaEventRecord(event, after) == cudaSuccess &&
           cudaStreamWaitEvent(stream, event, 0) == cudaSuccess;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    const int64_t each = kg_dtype(p) == KG_F32 ? 4 : 2, upper = kg_size(p, "m") / 2;
    struct job first = job_of(p, args, PLAIN), second = first;
    if (!kg_is_op(p, "gemm"))
        return wrap_inner(p, args);
    first.m = upper;
    second.m = kg_size(p, "m") - upper;
    second.in[0].data = (char *)first.in[0].data + upper * first.in[0].stride[0] * each;
    second.out.data = (char *)first.out.data + upper * first.out.stride[0] * each;
    if (!have_side() || (SIDE_BY_SIDE && !wait(side, stream, fork_event)))
        return KG_LAUNCH_FAILED;
    half_of_rows<<<BLOCKS, THREADS, 0, stream>>>(first);
    half_of_rows<<<BLOCKS, THREADS, 0, SIDE_BY_SIDE ? side : stream>>>(second);
    if (SIDE_BY_SIDE && !wait(stream, side, join_event))
        return KG_LAUNCH_FAILED;
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#endif
