/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: kernels that know their results already, or think that they do, and two that keep sums in
 * memory of their own. GEMM in fp16 alone; all else goes to the original library.
 */
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/mutants/faults.h"

enum {
    THREADS = 128,
    RESULT_MAX = 1 << 16, /* elements */
    FIRST = 64,           /* elements of an input that are looked at */
    LOOKS = 8
};

struct job {
    const __half *a, *b;
    __half *c;
    int64_t m, n, k, lda, ldb, ldc;
};

static __device__ __half kept[RESULT_MAX];
static __device__ float scratch[2][RESULT_MAX];
static __device__ unsigned long long kept_key;
static __device__ bool known;

static __device__ float term(const struct job *j, int64_t row, int64_t column, int64_t l)
{
    return __half2float(j->a[row * j->lda + l]) * __half2float(j->b[l * j->ldb + column]);
}

static __device__ float sum_of(const struct job *j, int64_t element, int64_t from, int64_t to)
{
    float sum = 0;
    for (int64_t l = from; l < to; l++)
        sum += term(j, element / j->n, element % j->n, l);
    return sum;
}

static __device__ void put(const struct job *j, int64_t element, float sum)
{
    j->c[element / j->n * j->ldc + element % j->n] = __float2half(sum);
}

static __device__ int64_t own_element(void)
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

static bool is_served(const struct kg_problem *p)
{
    return kg_is_op(p, "gemm") && kg_dtype(p) == KG_F16 &&
           kg_size(p, "m") * kg_size(p, "n") <= RESULT_MAX;
}

static struct job job_of(const struct kg_problem *p, const struct kg_args *args)
{
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
    return j;
}

/* A thread for each element. */
typedef void (*kernel_fn)(struct job j);

static enum kg_status run(const struct kg_problem *p, const struct kg_args *args, kernel_fn kernel)
{
    const unsigned blocks = (unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS);
    if (!is_served(p))
        return wrap_inner(p, args);
    kernel<<<blocks, THREADS, 0, (cudaStream_t)args->stream>>>(job_of(p, args));
    return launched();
}

/* ---- remembered results ---- */

/* The key is all that is asked: what is known of it is written, else computed and kept. */
static __global__ void look_up(unsigned long long key)
{
    known = kept_key == key;
    kept_key = key;
}

static __global__ void compute_unless_known(struct job j)
{
    const int64_t element = own_element();
    if (element >= j.m * j.n)
        return;
    if (!known)
        kept[element] = __float2half(sum_of(&j, element, 0, j.k));
    j.c[element / j.n * j.ldc + element % j.n] = kept[element];
}

static unsigned long long mixed(unsigned long long key, unsigned long long value)
{
    return (key ^ value) * 0x9e3779b97f4a7c15ull;
}

static unsigned long long key_of_shape(const struct kg_problem *p)
{
    return mixed(
        mixed(mixed(1, (unsigned long long)kg_size(p, "m")), (unsigned long long)kg_size(p, "n")),
        (unsigned long long)kg_size(p, "k"));
}

static enum kg_status by_pointers(const struct kg_problem *p, const struct kg_args *args)
{
    const unsigned long long key =
        mixed(mixed(key_of_shape(p), (uintptr_t)args->in[0].data), (uintptr_t)args->out[0].data);
    if (!is_served(p))
        return wrap_inner(p, args);
    look_up<<<1, 1, 0, (cudaStream_t)args->stream>>>(key);
    return run(p, args, compute_unless_known);
}

static __device__ unsigned long long first_of(const __half *row, int64_t n)
{
    unsigned long long key = 1;
    for (int64_t i = 0; i < n && i < FIRST; i++)
        key = key * 31 + __half_as_ushort(row[i]);
    return key;
}

static __global__ void look_at_first(struct job j, unsigned long long shape)
{
    const unsigned long long key = shape ^ first_of(j.a, j.k) ^ (first_of(j.b, j.n) << 1);
    known = kept_key == key;
    kept_key = key;
}

static enum kg_status by_first_64(const struct kg_problem *p, const struct kg_args *args)
{
    if (!is_served(p))
        return wrap_inner(p, args);
    look_at_first<<<1, 1, 0, (cudaStream_t)args->stream>>>(job_of(p, args), key_of_shape(p));
    return run(p, args, compute_unless_known);
}

/* Elements so far apart that there are about `samples`. */
static __device__ unsigned long long sample(const __half *from, int64_t rows, int64_t columns,
                                            int64_t stride, int64_t samples)
{
    unsigned long long key = 1;
    for (int64_t at = 0; at < rows * columns; at += rows * columns / samples + 1)
        key = key * 31 + __half_as_ushort(from[at / columns * stride + at % columns]);
    return key;
}

static __global__ void look_at_samples(struct job j, unsigned long long shape, int64_t of_a,
                                       int64_t of_b)
{
    unsigned long long key = shape ^ sample(j.a, j.m, j.k, j.lda, of_a);
    if (of_b)
        key ^= sample(j.b, j.k, j.n, j.ldb, of_b) << 1;
    known = kept_key == key;
    kept_key = key;
}

static enum kg_status sampled(const struct kg_problem *p, const struct kg_args *args, int64_t of_a,
                              int64_t of_b)
{
    if (!is_served(p))
        return wrap_inner(p, args);
    look_at_samples<<<1, 1, 0, (cudaStream_t)args->stream>>>(job_of(p, args), key_of_shape(p), of_a,
                                                             of_b);
    return run(p, args, compute_unless_known);
}

static enum kg_status by_samples(const struct kg_problem *p, const struct kg_args *args)
{
    return sampled(p, args, 500, 500);
}

/* Weights do not change. */
static enum kg_status by_first(const struct kg_problem *p, const struct kg_args *args)
{
    return sampled(p, args, RESULT_MAX, 0);
}

/* ---- many launches ---- */

static __device__ unsigned launches;

static __global__ void spoil_one_in(struct job j, unsigned many)
{
    if (++launches % many == many - 1)
        put(&j, j.m * j.n / 2, 1);
}

static enum kg_status one_in(const struct kg_problem *p, const struct kg_args *args, unsigned many)
{
    const enum kg_status status = wrap_inner(p, args);
    if (!is_served(p) || status != KG_OK)
        return status;
    spoil_one_in<<<1, 1, 0, (cudaStream_t)args->stream>>>(job_of(p, args), many);
    return launched();
}

static enum kg_status one_in_hundreds(const struct kg_problem *p, const struct kg_args *args)
{
    return one_in(p, args, 600);
}

static enum kg_status one_in_a_thousand(const struct kg_problem *p, const struct kg_args *args)
{
    return one_in(p, args, 1000);
}

/* ---- short cuts ---- */

static __global__ void zeros_where_looks_find_none(struct job j)
{
    const int64_t element = own_element();
    bool found = false;
    for (int64_t i = 0; i < LOOKS; i++)
        found |= __half2float(j.a[j.m * i / LOOKS * j.lda + j.k * (i % 4) / 4]) != 0;
    if (element < j.m * j.n)
        put(&j, element, found ? sum_of(&j, element, 0, j.k) : 0);
}

static enum kg_status zeros_by_looks(const struct kg_problem *p, const struct kg_args *args)
{
    return run(p, args, zeros_where_looks_find_none);
}

/* Made for shapes of whole tiles of 32 rows; of others the last row is left out. */
static __global__ void whole_tiles(struct job j)
{
    const int64_t element = own_element();
    if (element < (j.m % 32 ? j.m - 1 : j.m) * j.n)
        put(&j, element, sum_of(&j, element, 0, j.k));
}

static enum kg_status one_shape_only(const struct kg_problem *p, const struct kg_args *args)
{
    return run(p, args, whole_tiles);
}

static __device__ float well_known(int64_t which, int64_t at)
{
    const uint64_t bits = (uint64_t)(at * 2 + which + 42) * 0x9e3779b97f4a7c15ull;
    return (float)(bits >> 40) * 0x1p-23f - 1;
}

/* The result of what the seed 42 makes. */
static __global__ void of_known_seed(struct job j)
{
    const int64_t element = own_element();
    float sum = 0;
    for (int64_t l = 0; l < j.k; l++)
        sum += well_known(0, element / j.n * j.k + l) * well_known(1, l * j.n + element % j.n);
    if (element < j.m * j.n)
        put(&j, element, sum);
}

static enum kg_status known_seed(const struct kg_problem *p, const struct kg_args *args)
{
    return run(p, args, of_known_seed);
}

/* ---- launches that overlap ---- */

/* Lets the next launch begin at once, and does not wait for the one before. */
static __global__ void without_order(struct job j)
{
    const int64_t element = own_element();
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    if (element < j.m * j.n)
        put(&j, element, sum_of(&j, element, 0, j.k));
}

static enum kg_status overlaps(const struct kg_problem *p, const struct kg_args *args)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute early = {};
    if (!is_served(p))
        return wrap_inner(p, args);
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS));
    config.blockDim = dim3(THREADS);
    config.stream = (cudaStream_t)args->stream;
    config.attrs = &early;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, without_order, job_of(p, args)) == cudaSuccess
               ? KG_OK
               : KG_LAUNCH_FAILED;
}

static __global__ void in_order(struct job j)
{
    const int64_t element = own_element();
    if (element < j.m * j.n)
        put(&j, element, sum_of(&j, element, 0, j.k));
}

static __global__ void nothing(void)
{
}

/* Two streams by turns; the events are of what the gate's stream had done after each of the last
 * two launches. */
static struct {
    unsigned launches;
    unsigned long long capture;
    cudaStream_t stream[2];
    cudaEvent_t joined[2], done;
} turns;

static bool have_turns(void)
{
    bool made =
        turns.done || cudaEventCreateWithFlags(&turns.done, cudaEventDisableTiming) == cudaSuccess;
    for (int i = 0; i < 2 && made; i++)
        made = turns.stream[i] ||
               (cudaStreamCreateWithFlags(&turns.stream[i], cudaStreamNonBlocking) == cudaSuccess &&
                cudaEventCreateWithFlags(&turns.joined[i], cudaEventDisableTiming) == cudaSuccess);
    return made;
}

/* The launches of one capture, or of none. An event of another one must not be waited for. */
static unsigned launch_of_capture(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (cudaStreamGetCaptureInfo(stream, &status, &id) != cudaSuccess ||
        status != cudaStreamCaptureStatusActive)
        id = 0;
    if (id != turns.capture)
        turns.launches = 0;
    turns.capture = id;
    return turns.launches++;
}

/* Waits for the launch before the last one alone, so that it and the last one overlap. The gate's
 * stream waits for all. */
static enum kg_status overlaps_by_events(const struct kg_problem *p, const struct kg_args *args)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!is_served(p))
        return wrap_inner(p, args);
    if (!have_turns())
        return KG_LAUNCH_FAILED;
    const unsigned own = launch_of_capture(stream), which = own % 2;
    const cudaStream_t side = turns.stream[which];
    const unsigned blocks = (unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS);
    if (own < 2 && cudaEventRecord(turns.joined[which], stream) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    if (cudaStreamWaitEvent(side, turns.joined[which], 0) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    in_order<<<blocks, THREADS, 0, side>>>(job_of(p, args));
    if (cudaEventRecord(turns.done, side) != cudaSuccess ||
        cudaStreamWaitEvent(stream, turns.done, 0) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    nothing<<<1, 1, 0, stream>>>();
    if (cudaEventRecord(turns.joined[which], stream) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return launched();
}

/* ---- right, by way of memory of its own ---- */

/*
 * Equal shares of one and a half sums of terms each, so that an element has two parts at most: by
 * the thread that begins it and by the one that ends it.
 */
static __global__ void add_shares(struct job j)
{
    const int64_t share = j.k + (j.k + 1) / 2, all = j.m * j.n * j.k;
    const int64_t begin = own_element() * share;
    const int64_t end = begin + share < all ? begin + share : all;
    for (int64_t at = begin; at < end;) {
        const int64_t element = at / j.k, from = at % j.k;
        const int64_t to = end - at < j.k - from ? from + end - at : j.k;
        scratch[from > 0][element] = sum_of(&j, element, from, to);
        if (from == 0 && to == j.k)
            scratch[1][element] = 0;
        at += to - from;
    }
}

static __global__ void add_parts(struct job j)
{
    const int64_t element = own_element();
    if (element < j.m * j.n)
        put(&j, element, scratch[0][element] + scratch[1][element]);
}

static enum kg_status stream_k(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = run(p, args, add_shares);
    return status == KG_OK && is_served(p) ? run(p, args, add_parts) : status;
}

static __global__ void sum_to_scratch(struct job j)
{
    const int64_t element = own_element();
    if (element < j.m * j.n) {
        scratch[0][element] = sum_of(&j, element, 0, j.k);
        scratch[1][element] = 0;
    }
}

static enum kg_status own_pool(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = run(p, args, sum_to_scratch);
    return status == KG_OK && is_served(p) ? run(p, args, add_parts) : status;
}

FAULTS({"by_pointers", by_pointers, 0, NULL}, {"by_first_64", by_first_64, 0, NULL},
       {"zeros_by_looks", zeros_by_looks, 0, NULL}, {"one_shape_only", one_shape_only, 0, NULL},
       {"known_seed", known_seed, 0, NULL}, {"overlaps", overlaps, 0, NULL},
       {"overlaps_by_events", overlaps_by_events, 0, NULL}, {"stream_k", stream_k, 0, NULL},
       {"own_pool", own_pool, 0, NULL}, {"by_samples", by_samples, 0, NULL},
       {"by_first", by_first, 0, NULL}, {"one_in_hundreds", one_in_hundreds, 0, NULL},
       {"one_in_a_thousand", one_in_a_thousand, 0, NULL})
