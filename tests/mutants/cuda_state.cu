/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: launches that leave the device other than they found it. */
#include <cuda_runtime.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/mutants/faults.h"

/* The driver refuses some calls while launches are recorded. */
static bool is_recorded(const struct kg_args *args)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    return cudaStreamIsCapturing((cudaStream_t)args->stream, &capture) != cudaSuccess ||
           capture != cudaStreamCaptureStatusNone;
}

static enum kg_status then_launch(const struct kg_problem *p, const struct kg_args *args,
                                  cudaError_t done)
{
    return done == cudaSuccess ? wrap_inner(p, args) : KG_LAUNCH_FAILED;
}

static enum kg_status persisting_l2(const struct kg_problem *p, const struct kg_args *args)
{
    if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, (size_t)4 << 20) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

static enum kg_status leak(const struct kg_problem *p, const struct kg_args *args)
{
    void *lost;
    if (is_recorded(args))
        return wrap_inner(p, args);
    return then_launch(p, args, cudaMalloc(&lost, (size_t)1 << 20));
}

/* In the shape of the case alone. */
static enum kg_status own_leak(const struct kg_problem *p, const struct kg_args *args)
{
    return kg_size(p, "m") == 96 && kg_size(p, "n") == 80 && kg_size(p, "k") == 72
               ? leak(p, args)
               : wrap_inner(p, args);
}

/* Fewer than a process may have. */
static enum kg_status file_left(const struct kg_problem *p, const struct kg_args *args)
{
    static unsigned launches;
    if (launches++ < 800 && dup(STDERR_FILENO) < 0)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

/* Calls wait in another way from then on. */
static enum kg_status waits_otherwise(const struct kg_problem *p, const struct kg_args *args)
{
    return then_launch(p, args, cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
}

static enum kg_status cache_preference(const struct kg_problem *p, const struct kg_args *args)
{
    if (is_recorded(args))
        return wrap_inner(p, args);
    return then_launch(p, args, cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
}

static enum kg_status l2_fetch(const struct kg_problem *p, const struct kg_args *args)
{
    if (is_recorded(args))
        return wrap_inner(p, args);
    return then_launch(p, args, cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 32));
}

static enum kg_status pool_keeps(const struct kg_problem *p, const struct kg_args *args)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    if (is_recorded(args))
        return wrap_inner(p, args);
    if (cudaDeviceGetDefaultMemPool(&pool, wrap_device.ordinal) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return then_launch(p, args,
                       cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static enum kg_status signal_blocked(const struct kg_problem *p, const struct kg_args *args)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return wrap_inner(p, args);
}

static enum kg_status variable_set(const struct kg_problem *p, const struct kg_args *args)
{
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    return wrap_inner(p, args);
}

static enum kg_status heap_leak(const struct kg_problem *p, const struct kg_args *args)
{
    volatile char *lost = (volatile char *)malloc(4096);
    if (lost)
        lost[0] = 1;
    return wrap_inner(p, args);
}

static enum kg_status event_leak(const struct kg_problem *p, const struct kg_args *args)
{
    cudaEvent_t lost;
    return then_launch(p, args, cudaEventCreate(&lost));
}

/* Memory of the host that the device may write to. */
static enum kg_status pinned_leak(const struct kg_problem *p, const struct kg_args *args)
{
    void *lost;
    if (is_recorded(args))
        return wrap_inner(p, args);
    return then_launch(p, args, cudaMallocHost(&lost, (size_t)64 << 10));
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
       {"file_left", file_left, 0, NULL}, {"waits_otherwise", waits_otherwise, 0, NULL},
       {"cache_preference", cache_preference, 0, NULL}, {"l2_fetch", l2_fetch, 0, NULL},
       {"pool_keeps", pool_keeps, 0, NULL}, {"signal_blocked", signal_blocked, 0, NULL},
       {"variable_set", variable_set, 0, NULL}, {"heap_leak", heap_leak, 0, NULL},
       {"event_leak", event_leak, 0, NULL}, {"pinned_leak", pinned_leak, 0, NULL})
