/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_clock.cu: the SM clock during a measurement, from the device's own counters.
 *
 * What NVML reads is a sample of some moment; the cycle counter against the global timer, before
 * and after, is the mean over the very span. One block a multiprocessor is launched; a block that
 * shares one with another stamps it twice, which does no harm, and a multiprocessor without a block
 * is left out of the mean.
 */
#include "gate/device/cuda_device.cuh"

/* Some chips step their global timer once a microsecond: below this span the mean would be off by
 * over one per cent. */
#define SPAN_MIN_NS 100000u

static __global__ void stamp(struct sm_stamp *stamps, uint64_t sequence)
{
    uint32_t sm;
    uint64_t ns;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= SM_STAMPS_MAX)
        return;
    const uint64_t cycles = (uint64_t)clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
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
