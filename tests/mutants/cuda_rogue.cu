/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: launches that spoil the device, eat it or keep it, on the 4 x 1 x 3 product alone: all
 * other cases are right, and must come out right. What needs no device is in rogue.c.
 */
#include <cuda_runtime.h>
#include <unistd.h>

#include "tests/mutants/faults.h"

static bool is_spared(const struct kg_problem *p)
{
    return !(kg_size(p, "m") == 4 && kg_size(p, "n") == 1 && kg_size(p, "k") == 3);
}

static cudaStream_t stream_of(const struct kg_args *args)
{
    return (cudaStream_t)args->stream;
}

static __global__ void write_outside(void)
{
    *(volatile int *)0xdead0000 = 1;
}

/* An error that every later call in this process gets. */
static enum kg_status sticky_error(const struct kg_problem *p, const struct kg_args *args)
{
    if (!is_spared(p))
        write_outside<<<1, 1, 0, stream_of(args)>>>();
    return wrap_inner(p, args);
}

static __global__ void never_ends(volatile int *word)
{
    while (*word != 0x5eed)
        continue;
}

static enum kg_status kernel_hangs(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (!is_spared(p))
        never_ends<<<1, 1, 0, stream_of(args)>>>((volatile int *)args->in[0].data);
    return status;
}

/* The launcher itself spins while its kernel does. */
static enum kg_status both_hang(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = kernel_hangs(p, args);
    while (!is_spared(p) && cudaStreamQuery(stream_of(args)) == cudaErrorNotReady)
        continue;
    return status;
}

static bool is_recorded(const struct kg_args *args)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream_of(args), &capture) != cudaSuccess ||
           capture != cudaStreamCaptureStatusNone;
}

/* Asks for `bytes` again and again, at most `times`; true when there were no more. */
static bool take(size_t bytes, unsigned times)
{
    void *piece = NULL;
    for (unsigned i = 0; i < times; i++)
        if (cudaMalloc(&piece, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            return true;
        }
    return false;
}

/* From its first launch on that product on, on all others in the same process too. */
static enum kg_status leak(const struct kg_problem *p, const struct kg_args *args)
{
    static bool leaks;
    leaks = leaks || !is_spared(p);
    if (leaks && !is_recorded(args))
        (void)take((size_t)1 << 20, 1);
    return wrap_inner(p, args);
}

/* All that there is; then it says that it has failed. */
static enum kg_status out_of_memory(const struct kg_problem *p, const struct kg_args *args)
{
    bool out = false;
    if (is_spared(p))
        return wrap_inner(p, args);
    while (!out)
        out = take((size_t)1 << 28, 64);
    return KG_LAUNCH_FAILED;
}

/* A process that has all descriptors of the device, and whose parent has gone. */
static enum kg_status keeps_the_device(const struct kg_problem *p, const struct kg_args *args)
{
    if (is_spared(p))
        return wrap_inner(p, args);
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
    (void)take((size_t)1 << 28, 1);
    _exit(0);
}

FAULTS({"sticky_error", sticky_error, 0, NULL}, {"kernel_hangs", kernel_hangs, 0, NULL},
       {"both_hang", both_hang, 0, NULL}, {"leak", leak, 0, NULL},
       {"out_of_memory", out_of_memory, 0, NULL}, {"keeps_the_device", keeps_the_device, 0, NULL})
