/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_state.cu: what belongs to the whole device, and is no kernel's to change.
 *
 * The stack limit is not among it, nor are the other flags: the driver changes those by itself.
 */
#include "gate/device/cuda_device.cuh"

enum gate_status cuda_state_read(struct device *device, struct device_state *out,
                                 struct gate_error *err)
{
    const struct cuda_device *d = cuda_of(device);
    size_t total = 0;
    CUDA_TRY(cudaDeviceSynchronize(), err);
    CUDA_TRY(cudaGetDevice(&out->current), err);
    CUDA_TRY(cudaMemGetInfo(&out->memory_free_bytes, &total), err);
    out->memory_own_bytes = d->listed_as ? nvml_memory_of(d->nvml, d->listed_as) : 0;
    CUDA_TRY(cudaDeviceGetLimit(&out->malloc_heap_bytes, cudaLimitMallocHeapSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->printf_bytes, cudaLimitPrintfFifoSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->persisting_l2_bytes, cudaLimitPersistingL2CacheSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->l2_fetch_bytes, cudaLimitMaxL2FetchGranularity), err);
    unsigned flags = 0;
    CUDA_TRY(cudaGetDeviceFlags(&flags), err);
    out->wait_flags = flags & cudaDeviceScheduleMask;
    cudaFuncCache cache = cudaFuncCachePreferNone;
    CUDA_TRY(cudaDeviceGetCacheConfig(&cache), err);
    out->cache_preference = (int)cache;
    cudaMemPool_t pool;
    CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, out->current), err);
    CUDA_TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &out->pool_keeps), err);
    return GATE_OK;
}
