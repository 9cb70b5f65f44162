/* SPDX-License-Identifier: Apache-2.0 */
/* device_kernels.cu: see device_kernels.h. */
#include "tests/gpu/device_kernels.h"

#include <cuda_runtime.h>

static __device__ uint64_t global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void spin(uint64_t ns)
{
    const uint64_t begin = global_ns();
    while (global_ns() - begin < ns)
        continue;
}

static __global__ void add(unsigned long long *to, unsigned long long what)
{
    atomicAdd(to, what);
}

static __global__ void write_to(int *where)
{
    *where = 1;
}

static __global__ void read_from(const volatile unsigned char *where)
{
    (void)*where;
}

static enum kg_status status_of(cudaError_t error)
{
    return error == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

enum kg_status launch_spin(void *context, unsigned, void *stream)
{
    spin<<<1, 1, 0, (cudaStream_t)stream>>>(*(const uint64_t *)context);
    return status_of(cudaGetLastError());
}

enum kg_status launch_two_in_turn(void *context, unsigned index, void *stream)
{
    const enum kg_status status = launch_spin(context, index, stream);
    return status == KG_OK ? launch_spin(context, index, stream) : status;
}

enum kg_status launch_two_side_by_side(void *context, unsigned index, void *stream)
{
    static cudaStream_t side;
    static cudaEvent_t begun, done;
    cudaStream_t const own = (cudaStream_t)stream;
    if (!side && (cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) != cudaSuccess ||
                  cudaEventCreateWithFlags(&begun, cudaEventDisableTiming) != cudaSuccess ||
                  cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess))
        return KG_LAUNCH_FAILED;
    cudaError_t error = cudaEventRecord(begun, own);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(side, begun, 0);
    if (error != cudaSuccess || launch_spin(context, index, stream) != KG_OK ||
        launch_spin(context, index, side) != KG_OK)
        return KG_LAUNCH_FAILED;
    error = cudaEventRecord(done, side);
    return status_of(error == cudaSuccess ? cudaStreamWaitEvent(own, done, 0) : error);
}

enum kg_status launch_two_early(void *context, unsigned index, void *stream)
{
    if (launch_spin(context, index, stream) != KG_OK)
        return KG_LAUNCH_FAILED;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = (cudaStream_t)stream;
    config.attrs = &early;
    config.numAttrs = 1;
    return status_of(cudaLaunchKernelEx(&config, spin, *(const uint64_t *)context));
}

enum kg_status launch_add(void *context, unsigned index, void *stream)
{
    add<<<1, 1, 0, (cudaStream_t)stream>>>((unsigned long long *)context, index + 1);
    return status_of(cudaGetLastError());
}

enum kg_status launch_fill_and_add(void *context, unsigned index, void *stream)
{
    const cudaError_t error = cudaMemsetAsync(context, 0, 8, (cudaStream_t)stream);
    return error == cudaSuccess ? launch_add(context, index, stream) : status_of(error);
}

enum kg_status launch_nothing(void *, unsigned, void *)
{
    return KG_OK;
}

enum kg_status launch_synchronising(void *context, unsigned index, void *stream)
{
    const enum kg_status status = launch_spin(context, index, stream);
    (void)cudaStreamSynchronize((cudaStream_t)stream);
    return status;
}

enum kg_status launch_allocating(void *context, unsigned index, void *stream)
{
    void *memory = NULL;
    (void)cudaMalloc(&memory, 1 << 20);
    const enum kg_status status = launch_spin(context, index, stream);
    (void)cudaFree(memory);
    return status;
}

enum kg_status launch_allocating_on_stream(void *context, unsigned index, void *stream)
{
    void *memory = NULL;
    (void)cudaMallocAsync(&memory, 1 << 20, (cudaStream_t)stream);
    const enum kg_status status = launch_spin(context, index, stream);
    (void)cudaFreeAsync(memory, (cudaStream_t)stream);
    return status;
}

enum kg_status launch_on_default_stream(void *context, unsigned index, void *)
{
    (void)launch_spin(context, index, NULL);
    return KG_OK;
}

enum kg_status launch_misconfigured(void *context, unsigned, void *stream)
{
    spin<<<1, 4096, 0, (cudaStream_t)stream>>>(*(const uint64_t *)context);
    return KG_OK;
}

enum kg_status launch_illegal(void *, unsigned, void *stream)
{
    write_to<<<1, 1, 0, (cudaStream_t)stream>>>((int *)(uintptr_t)0x10);
    return status_of(cudaGetLastError());
}

enum kg_status launch_illegal_failing(void *context, unsigned index, void *stream)
{
    (void)launch_illegal(context, index, stream);
    return KG_LAUNCH_FAILED;
}

enum kg_status launch_read(void *context, unsigned, void *stream)
{
    read_from<<<1, 1, 0, (cudaStream_t)stream>>>((const unsigned char *)context);
    return status_of(cudaGetLastError());
}

enum kg_status launch_failing(void *context, unsigned index, void *stream)
{
    (void)launch_spin(context, index, stream);
    return KG_LAUNCH_FAILED;
}
