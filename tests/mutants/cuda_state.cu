/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: launches that leave the device other than they found it. */
#include <cuda_runtime.h>
#include <unistd.h>

#include "tests/mutants/faults.h"

static enum kg_status persisting_l2(const struct kg_problem *p, const struct kg_args *args)
{
    if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, (size_t)4 << 20) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

/* Not while it is recorded, which the driver would refuse. */
static enum kg_status leak(const struct kg_problem *p, const struct kg_args *args)
{
    void *lost = NULL;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing((cudaStream_t)args->stream, &capture) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    if (capture == cudaStreamCaptureStatusNone && cudaMalloc(&lost, (size_t)1 << 20) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

/* In the shape of the case alone. */
static enum kg_status own_leak(const struct kg_problem *p, const struct kg_args *args)
{
    return p->m == 96 && p->n == 80 && p->k == 72 ? leak(p, args) : wrap_inner(p, args);
}

/* Fewer than a process may have. */
static enum kg_status file_left(const struct kg_problem *p, const struct kg_args *args)
{
    static unsigned launches;
    if (launches++ < 800 && dup(STDERR_FILENO) < 0)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

/* All that there is but a little, in ever smaller pieces, at the first launch. */
static enum kg_status eat_memory(const struct kg_problem *p, const struct kg_args *args)
{
    static bool eaten;
    void *piece = NULL;
    for (size_t bytes = (size_t)1 << 34; bytes >= ((size_t)1 << 26) && !eaten;)
        if (cudaMalloc(&piece, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            bytes /= 2;
        }
    eaten = true;
    return wrap_inner(p, args);
}

FAULTS({"persisting_l2", persisting_l2, 0, NULL}, {"leak", leak, 0, NULL},
       {"eat_memory", eat_memory, 0, NULL}, {"own_leak", own_leak, 0, NULL},
       {"file_left", file_left, 0, NULL})
