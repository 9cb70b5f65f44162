/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_cold.cu: sweeps of a scratch memory: to empty the caches, and to rest.
 *
 * A sweep writes at least twice the L2 with a pattern that changes from word to word and from sweep
 * to sweep: a constant would be compressed on the way and leave part of the cache alone.
 */
#include "gate/device/cuda_device.cuh"

#include <math.h>

static __global__ void sweep(uint64_t *to, size_t words, uint64_t salt)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) {
        to[i] = seed_mix(i + salt);
    }
}

static enum gate_status enqueue_sweep(struct cuda_device *d, struct gate_error *err)
{
    const unsigned blocks = 8u * (unsigned)d->base.info.kg.sm_count;
    d->sweep_salt += d->sweep_words;
    sweep<<<blocks, 256, 0, d->stream>>>(d->sweep, d->sweep_words, d->sweep_salt);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

/* The first sweep loads the kernel's code, so the second is the one that is timed. */
static enum gate_status time_sweep(struct cuda_device *d, double *ns, struct gate_error *err)
{
    enum { SWEEPS = 8 };
    float ms;
    TRY(enqueue_sweep(d, err));
    CUDA_TRY(cudaEventRecord(d->start, d->stream), err);
    for (int i = 0; i < SWEEPS; i++)
        TRY(enqueue_sweep(d, err));
    CUDA_TRY(cudaEventRecord(d->stop, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    *ns = 1e6 * (double)ms / SWEEPS;
    return GATE_OK;
}

/* Makes the scratch when it is first needed, and times a sweep over it. */
static enum gate_status prepare_sweep(struct cuda_device *d, struct gate_error *err)
{
    if (d->sweep)
        return GATE_OK;
    const size_t l2 = (size_t)d->base.info.kg.l2_bytes;
    const size_t bytes = 2 * (l2 > (32u << 20) ? l2 : (32u << 20));
    CUDA_TRY(cudaMalloc((void **)&d->sweep, bytes), err);
    d->sweep_words = bytes / sizeof(*d->sweep);
    return time_sweep(d, &d->sweep_ns, err);
}

/* Between the two events there is the launch and nothing else. The sweep ends right before, so
 * the device neither idles nor is the launch's cost on the host seen. */
static enum gate_status enqueue_single(struct cuda_device *d, device_launch_fn launch,
                                       void *context, unsigned index, struct gate_error *err)
{
    TRY(enqueue_sweep(d, err));
    CUDA_TRY(cudaEventRecord(d->start, d->stream), err);
    TRY(cuda_call_launch(d, launch, context, index, err));
    CUDA_TRY(cudaEventRecord(d->stop, d->stream), err);
    return GATE_OK;
}

enum gate_status cuda_single_run(struct device *device, device_launch_fn launch, void *context,
                                 unsigned index, double *device_ns, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    float ms;
    TRY(prepare_sweep(d, err));
    TRY(cuda_hold(device, err));
    const enum gate_status enqueued = enqueue_single(d, launch, context, index, err);
    cuda_release(device);
    TRY(enqueued);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    TRY(cuda_hold_check(d, err));
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    *device_ns = 1e6 * (double)ms;
    return GATE_OK;
}

enum gate_status cuda_rest(struct device *device, double ns, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    TRY(prepare_sweep(d, err));
    const double sweeps = ceil(ns / d->sweep_ns);
    for (double i = 0.0; i < sweeps; i += 1.0)
        TRY(enqueue_sweep(d, err));
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}
