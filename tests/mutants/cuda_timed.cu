/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: right as long as it is looked at, and something else once it is timed. GEMM in fp16 alone;
 * all else goes to the original library.
 */
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/mutants/faults.h"

enum {
    THREADS = 128,
    VERIFIED = 4000,      /* launches; verification asks for fewer, and a few samples for more */
    SLOW_VERIFIED = 1400, /* of those that make a sum many times: there is time for fewer */
    RESULT_MAX = 1 << 16, /* elements */
    SEEN_MAX = 8192,
    OWN_FIRST = 150, /* launches of the first problem before any other, when it is verified */
    SLOWLY = 20,     /* times that a sum is made, where idleness is to show */
};

enum how {
    RIGHT,
    SKIPS,
    PREVIOUS,
    PAST_END,
    INPUT,
    IF_STALE, /* from here on slow */
    ALWAYS_IF_STALE,
    TWICE_STALE,
    LESS_IF_STALE,
};

struct job {
    const __half *a, *b;
    __half *c;
    int64_t m, n, k, lda, ldb, ldc;
    int how;
    int times_if_there; /* that a sum is made where the result is there already */
};

static __device__ unsigned launches;
static __device__ __half last[RESULT_MAX];

/* Of an element: where it was written last, what, and the first factor of that product; and how
 * many times in a row it was there already. */
static __device__ struct {
    const __half *to;
    unsigned short value, first;
    unsigned stale;
} kept[RESULT_MAX];

static __global__ void count(void)
{
    launches++;
}

static __device__ bool is_there(const struct job *j, int64_t at, const __half *to)
{
    return at < RESULT_MAX && kept[at].to == to && kept[at].value == __half_as_ushort(*to) &&
           kept[at].first == __half_as_ushort(j->a[0]);
}

static __device__ void keep(const struct job *j, int64_t at, const __half *to, bool there)
{
    if (at >= RESULT_MAX)
        return;
    kept[at].to = to;
    kept[at].value = __half_as_ushort(*to);
    kept[at].first = __half_as_ushort(j->a[0]);
    kept[at].stale = there ? kept[at].stale + 1 : 0;
}

static __device__ __half result(const struct job *j, int64_t row, int64_t column, int times)
{
    float sum = 0;
    for (int time = 0; time < times; time++) {
        sum = 0;
        for (int64_t i = 0; i < j->k; i++)
            sum += __half2float(((const volatile __half *)j->a)[row * j->lda + i]) *
                   __half2float(((const volatile __half *)j->b)[i * j->ldb + column]);
    }
    return __float2half(sum);
}

static __global__ void product(struct job j)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const bool timed = launches > (j.how >= IF_STALE ? SLOW_VERIFIED : VERIFIED);
    if (at >= j.m * j.n || (timed && j.how == SKIPS))
        return;
    __half *to = &j.c[at / j.n * j.ldc + at % j.n];
    if ((j.how == ALWAYS_IF_STALE || (timed && j.how == IF_STALE)) && isfinite(__half2float(*to)))
        return;
    const bool there = is_there(&j, at, to);
    if (j.how == TWICE_STALE && there && kept[at].stale >= 2)
        return;
    const int slowly = there ? j.times_if_there : SLOWLY;
    const __half fresh = result(&j, at / j.n, at % j.n, j.how >= IF_STALE ? slowly : 1);
    const bool has_last = timed && j.how == PREVIOUS && at < RESULT_MAX;
    *to = has_last ? last[at] : fresh;
    keep(&j, at, to, there);
    if (at == 0 && timed && j.how == PAST_END)
        j.c[j.m * j.ldc] = __float2half(7.0f);
    if (at == 0 && launches == VERIFIED + 50 && j.how == INPUT)
        ((__half *)j.b)[5] = __float2half(0.5f);
    if (j.how == PREVIOUS && at < RESULT_MAX)
        last[at] = fresh;
}

static __global__ void nothing(void)
{
}

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

static bool is_served(const struct kg_problem *p)
{
    return kg_is_op(p, "gemm") && kg_dtype(p) == KG_F16;
}

static enum kg_status run_less(const struct kg_problem *p, const struct kg_args *args, enum how how,
                               int times_if_there)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!is_served(p))
        return wrap_inner(p, args);
    struct job j = {};
    j.a = (const __half *)args->in[0].data;
    j.b = (const __half *)args->in[1].data;
    j.c = (__half *)args->out[0].data;
    j.m = kg_size(p, "m");
    j.n = kg_size(p, "n");
    j.k = kg_size(p, "k");
    j.lda = args->in[0].stride[0];
    j.ldb = args->in[1].stride[0];
    j.ldc = args->out[0].stride[0];
    j.how = how;
    j.times_if_there = times_if_there;
    count<<<1, 1, 0, stream>>>();
    product<<<(unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS), THREADS, 0,
              stream>>>(j);
    return launched();
}

static enum kg_status run(const struct kg_problem *p, const struct kg_args *args, enum how how)
{
    return run_less(p, args, how, SLOWLY);
}

#define DONE(name, how)                                                                            \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return run(p, args, how);                                                                  \
    }
DONE(right, RIGHT)
DONE(skips, SKIPS)
DONE(previous, PREVIOUS)
DONE(if_stale, IF_STALE)
DONE(twice_stale, TWICE_STALE)
DONE(writes_past_end, PAST_END)
DONE(spoils_input, INPUT)

static enum kg_status half_stale(const struct kg_problem *p, const struct kg_args *args)
{
    return run_less(p, args, LESS_IF_STALE, 11);
}

static enum kg_status third_stale(const struct kg_problem *p, const struct kg_args *args)
{
    return run_less(p, args, LESS_IF_STALE, 14);
}

/* Does nothing where a result is there already, in a process that verifies nothing: one that asks
 * for the first problem alone. */
static enum kg_status unverified_stale(const struct kg_problem *p, const struct kg_args *args)
{
    static struct kg_problem first;
    static unsigned own;
    static bool saw_others;
    if (!own)
        first = *p;
    saw_others |= memcmp(&first, p, sizeof first) != 0;
    return run(p, args, ++own > OWN_FIRST && !saw_others ? ALWAYS_IF_STALE : RIGHT);
}

/* The capture that the stream is in; 0: none. */
static unsigned long long capture_of(const struct kg_args *args)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (cudaStreamGetCaptureInfo((cudaStream_t)args->stream, &status, &id) != cudaSuccess ||
        status != cudaStreamCaptureStatusActive)
        return 0;
    return id;
}

static enum kg_status do_nothing(const struct kg_args *args)
{
    nothing<<<1, 1, 0, (cudaStream_t)args->stream>>>();
    return launched();
}

static enum kg_status captured(const struct kg_problem *p, const struct kg_args *args)
{
    return capture_of(args) ? do_nothing(args) : run(p, args, RIGHT);
}

/* Works once for each output in a capture. */
static enum kg_status first_in_capture(const struct kg_problem *p, const struct kg_args *args)
{
    static const void *seen[SEEN_MAX];
    static unsigned n;
    static unsigned long long capture;
    const unsigned long long now = capture_of(args);
    if (now != capture)
        n = 0;
    capture = now;
    for (unsigned i = 0; i < n && now; i++)
        if (seen[i] == args->out[0].data)
            return do_nothing(args);
    if (n < SEEN_MAX)
        seen[n++] = args->out[0].data;
    return run(p, args, RIGHT);
}

FAULTS({"right", right, 0, NULL}, {"skips", skips, 0, NULL}, {"previous", previous, 0, NULL},
       {"if_stale", if_stale, 0, NULL}, {"twice_stale", twice_stale, 0, NULL},
       {"half_stale", half_stale, 0, NULL}, {"third_stale", third_stale, 0, NULL},
       {"writes_past_end", writes_past_end, 0, NULL}, {"spoils_input", spoils_input, 0, NULL},
       {"unverified_stale", unverified_stale, 0, NULL}, {"captured", captured, 0, NULL},
       {"first_in_capture", first_in_capture, 0, NULL})
