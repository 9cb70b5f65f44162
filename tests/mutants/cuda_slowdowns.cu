/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: right, and slower than the original library now and then, or by one launch. Attention
 * alone; all else goes to the original library.
 */
#include <cuda_runtime.h>
#include <time.h>

#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/faults.h"

enum {
    FIRST_CALLS = 200,
    SLOW_NS = 25000, /* some times what a small attention takes */
    LOOKS = 8,
    COLD_CYCLES = 400, /* a load that misses the L2 takes longer, one that hits it does not */
    THREADS = 32,
};

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

static cudaStream_t stream_of(const struct kg_args *args)
{
    return (cudaStream_t)args->stream;
}

static __global__ void nothing(void)
{
}

static __device__ void wait(void)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < SLOW_NS);
}

static __global__ void always_wait(void)
{
    wait();
}

static enum kg_status extra_launch(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (kg_is_op(p, "attention_fwd"))
        nothing<<<1, 1, 0, stream_of(args)>>>();
    return status == KG_OK ? launched() : status;
}

/* As what is set up when it is first needed, and by far too late: a recording holds what a fresh
 * process enqueues in its first calls. */
static enum kg_status slow_at_first(const struct kg_problem *p, const struct kg_args *args)
{
    static unsigned calls;
    if (kg_is_op(p, "attention_fwd") && calls++ < FIRST_CALLS)
        always_wait<<<1, 1, 0, stream_of(args)>>>();
    const enum kg_status status = wrap_inner(p, args);
    return status == KG_OK ? launched() : status;
}

/* The quickest of some loads tells: one alone may have to wait for more than memory. */
static __global__ void wait_where_cold(const unsigned short *data, int64_t n)
{
    __shared__ volatile unsigned short there;
    long long least = COLD_CYCLES + 1;
    for (int64_t i = 0; i < LOOKS; i++) {
        unsigned short value;
        const long long begin = clock64();
        asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(value) : "l"(&data[n * i / LOOKS]));
        there = value; /* so that the clock is asked once it is */
        const long long end = clock64();
        least = end - begin < least ? end - begin : least;
    }
    if (least > COLD_CYCLES)
        wait();
}

static enum kg_status slow_where_cold(const struct kg_problem *p, const struct kg_args *args)
{
    if (kg_is_op(p, "attention_fwd"))
        wait_where_cold<<<1, 1, 0, stream_of(args)>>>((const unsigned short *)args->in[1].data,
                                                      kg_size(p, "s") * kg_size(p, "d"));
    const enum kg_status status = wrap_inner(p, args);
    return status == KG_OK ? launched() : status;
}

/* A batch of one goes to one block. */
static enum kg_status serial_at_batch_one(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t rows = kg_size(p, "b") * kg_size(p, "h") * kg_size(p, "sq");
    if (!kg_is_op(p, "attention_fwd") || kg_size(p, "b") != 1 || rows > THREADS)
        return wrap_inner(p, args);
    attention<<<1, THREADS, 0, stream_of(args)>>>(job_of(p, args, PLAIN));
    return launched();
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The device has nothing more to do; who calls waits. */
static enum kg_status call_behind(double ns, const struct kg_problem *p, const struct kg_args *args)
{
    const double end = now_ns() + ns;
    while (now_ns() < end)
        continue;
    return wrap_inner(p, args);
}

static enum kg_status slow_call(const struct kg_problem *p, const struct kg_args *args)
{
    return call_behind(SLOW_NS, p, args);
}

static enum kg_status half_ms_call(const struct kg_problem *p, const struct kg_args *args)
{
    return call_behind(5e5, p, args);
}

FAULTS({"extra_launch", extra_launch, 0, NULL}, {"slow_at_first", slow_at_first, 0, NULL},
       {"slow_where_cold", slow_where_cold, 0, NULL}, {"slow_call", slow_call, 0, NULL},
       {"half_ms_call", half_ms_call, 0, NULL},
       {"serial_at_batch_one", serial_at_batch_one, 0, NULL})
