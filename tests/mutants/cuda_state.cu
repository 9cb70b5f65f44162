/* CUDA: launches that leave the device other than they found it. */
#include <cuda_runtime.h>

#include "faults.h"

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
       {"eat_memory", eat_memory, 0, NULL})
