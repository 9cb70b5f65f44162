/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_hold.cu: makes a stream wait until the host has enqueued all that it wants to time.
 *
 * Without it the device would start on the first event at once and then wait for the host, and that
 * wait would be counted as the kernel's. A kernel of one thread polls a word of host memory. It
 * gives up after a while, since a process that is stopped, a tool that serialises launches or a
 * launch that synchronises would otherwise wait for ever.
 */
#include "gate/device/cuda_device.cuh"

#define HOLD_LIMIT_NS 1000000000ull

static __device__ uint64_t global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void hold(volatile struct cuda_shared *shared, uint64_t sequence)
{
    const uint64_t begin = global_ns();
    while (shared->released < sequence) {
        if (global_ns() - begin > HOLD_LIMIT_NS) {
            shared->hold_expired = sequence;
            return;
        }
    }
}

enum gate_status cuda_hold(struct cuda_device *d, struct gate_error *err)
{
    d->sequence++;
    hold<<<1, 1, 0, d->stream>>>(d->shared, d->sequence);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

void cuda_release(struct cuda_device *d)
{
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
