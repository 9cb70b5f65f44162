/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_control.cu: the control: fixed work whose time tells of the machine and of nothing else.
 *
 * Two halves of about 0.5 ms each on an H200: chains of dependent arithmetic, whose time is the SM
 * clock, and copies past every cache, whose time is the memory's. Nothing is tuned when it runs and
 * nothing may ever change, neither the counts, the shapes nor their order: the control of today is
 * compared with those of all past sessions, and numbers without a baseline library are measured in
 * units of it. A toolkit that compiles it to other instructions opens an epoch by itself.
 */
#include "gate/device/cuda_device.cuh"

enum {
    CHAIN_THREADS = 128,   /* one warp for each of a multiprocessor's four schedulers */
    CHAIN_STEPS = 1 << 18, /* at 4 cycles each 0.53 ms at 1.98 GHz */
    COPY_THREADS = 256,
    COPY_BLOCKS_PER_SM = 8,
    COPY_BATCH = 4,  /* loads in flight of a thread */
    COPY_PASSES = 4, /* to and fro: 2 GiB of traffic, 0.5 ms at 4.2 TB/s */
};

/* Of each of the two buffers; together at least four times any L2, so that no pass finds in the
 * cache what the one before has left there. */
#define COPY_BYTES ((size_t)256 << 20)

/* Every step waits for the one before. The value tends to 1. */
static __global__ void __launch_bounds__(CHAIN_THREADS)
    chain(float *value, float factor, float term)
{
    const unsigned i = blockIdx.x * CHAIN_THREADS + threadIdx.x;
    float x = value[i];
#pragma unroll 64
    for (int step = 0; step < CHAIN_STEPS; step++)
        x = fmaf(x, factor, term);
    value[i] = x;
}

/* `count` is a multiple of COPY_BATCH * COPY_THREADS. */
static __global__ void __launch_bounds__(COPY_THREADS)
    copy(uint4 *__restrict__ to, const uint4 *__restrict__ from, size_t count)
{
    const size_t tile = (size_t)COPY_BATCH * COPY_THREADS;
    for (size_t i = blockIdx.x * tile + threadIdx.x; i < count; i += gridDim.x * tile) {
        uint4 batch[COPY_BATCH];
#pragma unroll
        for (int j = 0; j < COPY_BATCH; j++)
            batch[j] = from[i + (size_t)j * COPY_THREADS];
#pragma unroll
        for (int j = 0; j < COPY_BATCH; j++)
            to[i + (size_t)j * COPY_THREADS] = batch[j];
    }
}

static enum gate_status enqueue_copy(struct cuda_device *d, char *to, const char *from,
                                     struct gate_error *err)
{
    const unsigned blocks = COPY_BLOCKS_PER_SM * (unsigned)d->base.info.kg.sm_count;
    static_assert(COPY_BYTES % (sizeof(uint4) * COPY_BATCH * COPY_THREADS) == 0, "whole tiles");
    copy<<<blocks, COPY_THREADS, 0, d->stream>>>((uint4 *)to, (const uint4 *)from,
                                                 COPY_BYTES / sizeof(uint4));
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static enum gate_status enqueue_control(struct cuda_device *d, const void *, struct gate_error *err)
{
    char *const first = d->control, *const second = d->control + COPY_BYTES;
    chain<<<(unsigned)d->base.info.kg.sm_count, CHAIN_THREADS, 0, d->stream>>>(
        (float *)(d->control + 2 * COPY_BYTES), 0.75f, 0.25f);
    CUDA_TRY(cudaGetLastError(), err);
    for (int pass = 0; pass < COPY_PASSES; pass += 2) {
        TRY(enqueue_copy(d, second, first, err));
        TRY(enqueue_copy(d, first, second, err));
    }
    return GATE_OK;
}

/*
 * Makes the memory when it is first needed. It is filled with random numbers, since constants would
 * be compressed on their way and cost less power. One run that nobody times loads the kernels'
 * code, which cannot be done while the stream is held.
 */
static enum gate_status prepare_control(struct cuda_device *d, struct gate_error *err)
{
    if (d->control)
        return GATE_OK;
    const size_t chains = (size_t)d->base.info.kg.sm_count * CHAIN_THREADS;
    const size_t floats = 2 * COPY_BYTES / sizeof(float) + chains;
    CUDA_TRY(cudaMalloc((void **)&d->control, floats * sizeof(float)), err);
    TRY(cuda_fill_normal(&d->base, d->control, KG_F32, (int64_t)floats, {0, 1}, 0, err));
    TRY(enqueue_control(d, NULL, err));
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

enum gate_status cuda_control_run(struct device *device, struct device_time *out,
                                  struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    TRY(prepare_control(d, err));
    return cuda_time(d, enqueue_control, NULL, out, err);
}
