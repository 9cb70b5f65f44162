/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_time.cu: the time of what one function enqueues, and the SM clock meanwhile.
 *
 * The order on the stream is: hold, stamp, event, the work, event, stamp. Between the two events
 * there is the work and nothing else, and all of it is enqueued before the first of it runs.
 */
#include "gate/device/cuda_device.cuh"

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

enum gate_status cuda_hold_check(const struct cuda_device *d, struct gate_error *err)
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

double cuda_clock_mhz(const struct cuda_device *d)
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
    TRY(cuda_hold_check(d, err));
    float ms;
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    out->device_ns = 1e6 * (double)ms;
    out->host_ns = end - begin;
    out->sm_clock_mhz = cuda_clock_mhz(d);
    return GATE_OK;
}
