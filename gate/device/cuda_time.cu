/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_time.cu: the time of what one function enqueues.
 *
 * The order on the stream is: hold, stamp, event, the work, event, stamp. Between the two events
 * there is the work and nothing else, and all of it is enqueued before the first of it runs.
 */
#include "gate/device/cuda_device.cuh"

static enum gate_status enqueue_timed(struct cuda_device *d, cuda_enqueue_fn enqueue,
                                      const void *work, struct gate_error *err)
{
    GATE_TRY(cuda_clock_stamp(d, 0, err));
    CUDA_TRY(cudaEventRecord(d->start, d->stream), err);
    GATE_TRY(enqueue(d, work, err));
    CUDA_TRY(cudaEventRecord(d->stop, d->stream), err);
    return cuda_clock_stamp(d, 1, err);
}

enum gate_status cuda_time(struct cuda_device *d, cuda_enqueue_fn enqueue, const void *work,
                           struct device_time *out, struct gate_error *err)
{
    GATE_TRY(cuda_hold(d, err));
    const enum gate_status enqueued = enqueue_timed(d, enqueue, work, err);
    const double begin = clock_ns();
    cuda_release(d);
    GATE_TRY(enqueued);
    CUDA_TRY(cudaDeviceSynchronize(), err);
    const double end = clock_ns();
    GATE_TRY(cuda_hold_check(d, err));
    float ms;
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    out->device_ns = 1e6 * (double)ms;
    out->host_ns = end - begin;
    out->sm_clock_mhz = cuda_clock_mhz(d);
    return GATE_OK;
}
