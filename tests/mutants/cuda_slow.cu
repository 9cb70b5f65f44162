/*
 * CUDA: right, but each launch takes about a tenth longer. The time that is added is a share of the
 * original's own, taken on the first launches outside of a capture: a share of work is not the same
 * share of time.
 */
#include <cuda_runtime.h>

#include "wrap.h"

#define SHARE 0.10

static struct kg_problem known;
static float known_ns;

static __global__ void delay(unsigned ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

/* The least of some runs between two events. */
static enum kg_status time_inner(const struct kg_problem *p, const struct kg_args *args)
{
    cudaStream_t stream = (cudaStream_t)args->stream;
    cudaEvent_t start, end;
    float best_ms = 1e9f, ms;
    if (cudaEventCreate(&start) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    for (int i = 0; i < 20; i++) {
        cudaEventRecord(start, stream);
        for (int j = 0; j < 10; j++)
            wrap_inner(p, args);
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, start, end);
        best_ms = ms < best_ms ? ms : best_ms;
    }
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    known = *p;
    known_ns = best_ms * 1e5f;
    return KG_OK;
}

static bool same(const struct kg_problem *a, const struct kg_problem *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->flags == b->flags && a->m == b->m &&
           a->n == b->n && a->k == b->k && a->batch == b->batch && a->heads == b->heads &&
           a->seqlen_q == b->seqlen_q && a->seqlen_kv == b->seqlen_kv;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing((cudaStream_t)args->stream, &capture);
    if (capture == cudaStreamCaptureStatusNone && !same(&known, p) && time_inner(p, args) != KG_OK)
        return KG_LAUNCH_FAILED;
    enum kg_status status = wrap_inner(p, args);
    delay<<<1, 1, 0, (cudaStream_t)args->stream>>>((unsigned)(known_ns * SHARE));
    return status;
}
