/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_time.cu: the time of what one function enqueues, and the SM clock meanwhile.
 *
 * The order on the stream is: hold, stamp, event, the work, event, stamp. Between the two events
 * there is the work and nothing else, and all of it is enqueued before the first of it runs.
 */
#include "gate/device/cuda_device.cuh"

#include <math.h>

/* ---- the hold ----
 *
 * Without it the device would start on the first event at once and then wait for the host, and that
 * wait would be counted as the kernel's. A kernel of one thread polls a word of host memory. It
 * gives up after a while, since a process that is stopped, a tool that serialises launches or a
 * launch that synchronises would otherwise wait for ever.
 */

#define HOLD_LIMIT_NS 1000000000ull

static __global__ void hold(volatile struct cuda_shared *shared, uint64_t sequence)
{
    const uint64_t begin = cuda_global_ns();
    while (shared->released < sequence) {
        if (cuda_global_ns() - begin > HOLD_LIMIT_NS) {
            shared->hold_expired = sequence;
            return;
        }
    }
}

enum gate_status cuda_hold(struct device *device, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    d->sequence++;
    hold<<<1, 1, 0, d->stream>>>(d->shared, d->sequence);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

void cuda_release(struct device *device)
{
    struct cuda_device *d = cuda_of(device);
    __atomic_store_n(&d->shared->released, d->sequence, __ATOMIC_RELEASE);
}

/* GATE_ENVIRONMENT: the hold ran out first, and times taken in it mean nothing. */
static enum gate_status check_hold(const struct cuda_device *d, struct gate_error *err)
{
    if (__atomic_load_n(&d->shared->hold_expired, __ATOMIC_ACQUIRE) != d->sequence)
        return GATE_OK;
    return gate_fail(
        err, GATE_ENVIRONMENT,
        "the device stood idle for a second before all timed work was enqueued, so the "
        "time means nothing; is CUDA_LAUNCH_BLOCKING set, a debugger attached, or the "
        "host overloaded?");
}

/* ---- the clock, from the device's own counters ----
 *
 * What NVML reads is a sample of some moment; the cycle counter against the global timer, before
 * and after, is the mean over the very span. One block a multiprocessor is launched; a block that
 * shares one with another stamps it twice, which does no harm, and a multiprocessor without a block
 * is left out of the mean.
 */

/* Some chips step their global timer once a microsecond: below this span the mean would be off by
 * over one per cent. */
#define SPAN_MIN_NS 100000u

static __global__ void stamp(struct sm_stamp *stamps, uint64_t sequence)
{
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= SM_STAMPS_MAX)
        return;
    const uint64_t cycles = (uint64_t)clock64();
    const uint64_t ns = cuda_global_ns();
    stamps[sm].cycles = cycles;
    stamps[sm].ns = ns;
    stamps[sm].sequence = sequence;
}

enum gate_status cuda_clock_stamp(struct cuda_device *d, int which, struct gate_error *err)
{
    const unsigned blocks = (unsigned)d->base.info.kg.sm_count;
    stamp<<<blocks, 1, 0, d->stream>>>(d->shared->stamp[which], d->sequence);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

/* Mean between the two stamps, once both have run; 0: not measured. */
static double clock_mhz(const struct cuda_device *d)
{
    double sum = 0.0;
    int used = 0;
    for (int sm = 0; sm < SM_STAMPS_MAX; sm++) {
        const struct sm_stamp *before = &d->shared->stamp[0][sm];
        const struct sm_stamp *after = &d->shared->stamp[1][sm];
        if (before->sequence != d->sequence || after->sequence != d->sequence)
            continue;
        if (after->ns < before->ns + SPAN_MIN_NS)
            return 0.0;
        sum += 1e3 * (double)(after->cycles - before->cycles) / (double)(after->ns - before->ns);
        used++;
    }
    return used > 0 ? sum / used : 0.0;
}

/* ---- the time ---- */

static enum gate_status enqueue_timed(struct cuda_device *d, cuda_enqueue_fn enqueue,
                                      const void *work, struct gate_error *err)
{
    TRY(cuda_clock_stamp(d, 0, err));
    CUDA_TRY(cudaEventRecord(d->start, d->stream), err);
    TRY(enqueue(d, work, err));
    CUDA_TRY(cudaEventRecord(d->stop, d->stream), err);
    return cuda_clock_stamp(d, 1, err);
}

enum gate_status cuda_time(struct cuda_device *d, cuda_enqueue_fn enqueue, const void *work,
                           struct device_time *out, struct gate_error *err)
{
    TRY(cuda_hold(&d->base, err));
    const enum gate_status enqueued = enqueue_timed(d, enqueue, work, err);
    const double begin = clock_ns();
    cuda_release(&d->base);
    TRY(enqueued);
    CUDA_TRY(cudaDeviceSynchronize(), err);
    const double end = clock_ns();
    TRY(check_hold(d, err));
    float ms;
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    out->device_ns = 1e6 * (double)ms;
    out->host_ns = end - begin;
    out->sm_clock_mhz = clock_mhz(d);
    return GATE_OK;
}

/* ---- sweeps of a scratch memory: to empty the caches, and to rest ----
 *
 * A sweep writes at least twice the L2 with a pattern that changes from word to word and from sweep
 * to sweep: a constant would be compressed on the way and leave part of the cache alone.
 */

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
    TRY(check_hold(d, err));
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
