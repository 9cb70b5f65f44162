/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_hooks.cuh: a product and an attention in which a fault, or a way that is right, replaces
 * single steps: a struct that derives from `usual` and hides some of its functions.
 *
 * The product is that of GEMM, GEMV and LINEAR_RELU, a thread for each result; the attention has a
 * block for each row and takes 128 keys at a time.
 */
#ifndef TESTS_MUTANTS_CUDA_HOOKS_CUH
#define TESTS_MUTANTS_CUDA_HOOKS_CUH

#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/faults.h"

#define KEYS 128  /* at a time, and threads of a block */
#define D_MAX 512 /* of a head */

struct usual {
    /* ---- products ---- */
    static __device__ float a(float value)
    {
        return value;
    }
    static __device__ float b(float value)
    {
        return value;
    }
    static __device__ float bias(float value)
    {
        return value;
    }
    /* Term `l` of `k`. */
    static __device__ float term(float a, float b, int64_t l, int64_t k)
    {
        (void)l;
        (void)k;
        return a * b;
    }
    static __device__ void store_sum(const struct view *v, int64_t at, float sum)
    {
        store(v, at, sum, 0);
    }

    /* ---- attention ---- */
    static __device__ float score(const struct job *j, float product)
    {
        return product * j->scale;
    }
    static __device__ float first_max(void)
    {
        return -INFINITY;
    }
    static __device__ bool rescales(float running, float chunk_max)
    {
        return chunk_max > running;
    }
    static __device__ float weight(float score, float max)
    {
        return expf(score - max);
    }
    static __device__ int64_t kv_head(const struct job *j, int64_t h)
    {
        return h / (j->heads / j->kv_heads);
    }
};

/* ---- products ---- */

/* The second factor of output column `line` and step `l` is b_line * line + b_step * l from its
 * begin. */
struct second {
    int64_t b_line, b_step;
    struct view bias;
    bool relu;
};

template <class How> static __global__ void hooked_product(struct job j, struct second s)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= j.m * j.n)
        return;
    const int64_t row = at / j.n, column = at % j.n;
    float sum = 0;
    for (int64_t l = 0; l < j.k; l++)
        sum += How::term(How::a(load(&j.in[0], row * j.in[0].stride[0] + l)),
                         How::b(load(&j.in[1], column * s.b_line + l * s.b_step)), l, j.k);
    if (s.relu)
        sum = fmaxf(0, sum + How::bias(load(&s.bias, column)));
    How::store_sum(&j.out, row * j.out.stride[0] + column, sum);
}

static inline enum kg_status hooks_launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

static inline bool is_product(const struct kg_problem *p)
{
    return kg_is_op(p, "gemm") || kg_is_op(p, "gemv") || kg_is_op(p, "linear_relu");
}

/* Of the first `terms` of each sum. */
template <class How>
static enum kg_status products_of(const struct kg_problem *p, const struct kg_args *args,
                                  int64_t terms)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    struct job j = job_of(p, args, PLAIN);
    struct second s = {};
    if (!is_product(p))
        return wrap_inner(p, args);
    j.n = kg_is_op(p, "gemv") ? 1 : kg_size(p, "n");
    j.k = terms;
    s.b_line = kg_is_op(p, "linear_relu") ? j.in[1].stride[0] : 1;
    s.b_step = kg_is_op(p, "gemm") ? j.in[1].stride[0] : 1;
    s.relu = kg_is_op(p, "linear_relu");
    s.bias = j.in[2];
    hooked_product<How><<<(unsigned)((j.m * j.n + KEYS - 1) / KEYS), KEYS, 0, stream>>>(j, s);
    return hooks_launched();
}

template <class How>
static enum kg_status products(const struct kg_problem *p, const struct kg_args *args)
{
    return products_of<How>(p, args, kg_size(p, "k"));
}

/* ---- attention ---- */

static __device__ float over_block(float value, bool largest)
{
    __shared__ float part[KEYS / 32];
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(~0u, value, by);
        value = largest ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < KEYS / 32; i++)
        value = largest ? fmaxf(value, part[i]) : value + part[i];
    return value;
}

/* Where a row of Q or O, or a head of K or V, begins. */
static __device__ int64_t row_at(const struct view *v, int64_t b, int64_t h, int64_t i)
{
    return b * v->stride[0] + h * v->stride[1] + i * v->stride[2];
}

template <class How>
static __device__ float hooked_score(const struct job *j, int64_t q, int64_t k, bool seen)
{
    float sum = 0;
    for (int64_t d = 0; d < j->head_dim && seen; d++)
        sum += load(&j->in[0], q + d) * load(&j->in[1], k + d);
    return seen ? How::score(j, sum) : -INFINITY;
}

static __device__ int64_t keys_of_row(const struct job *j, int64_t i)
{
    const int64_t n = j->causal ? i + 1 + j->seqlen_kv - j->seqlen_q : j->seqlen_kv;
    return n < 0 ? 0 : n > j->seqlen_kv ? j->seqlen_kv : n;
}

template <class How> static __global__ void hooked_attention(struct job j)
{
    __shared__ float weights[KEYS];
    const int64_t at = blockIdx.x;
    const int64_t i = at % j.seqlen_q, h = at / j.seqlen_q % j.heads;
    const int64_t b = at / j.seqlen_q / j.heads, kv = How::kv_head(&j, h);
    const int64_t q = row_at(&j.in[0], b, h, i), o = row_at(&j.out, b, h, i);
    const int64_t k = row_at(&j.in[1], b, kv, 0), v = row_at(&j.in[2], b, kv, 0);
    const int64_t visible = keys_of_row(&j, i);
    float running = How::first_max(), total = 0, sums[D_MAX / KEYS] = {};
    for (int64_t first = 0; first < visible; first += KEYS) {
        const int64_t key = first + threadIdx.x, there = k + key * j.in[1].stride[2];
        const float own = hooked_score<How>(&j, q, there, key < visible);
        const float most = over_block(own, true);
        if (How::rescales(running, most)) {
            const float by = running == -INFINITY ? 0 : How::weight(running, most);
            total *= by;
            for (int n = 0; n < D_MAX / KEYS; n++)
                sums[n] *= by;
            running = most;
        }
        const float weight = key < visible ? How::weight(own, running) : 0;
        total += weight;
        weights[threadIdx.x] = weight;
        __syncthreads();
        for (int n = 0; n < D_MAX / KEYS; n++)
            for (int c = 0; c < KEYS && first + c < visible; c++)
                if (n * KEYS + threadIdx.x < j.head_dim)
                    sums[n] += weights[c] * load(&j.in[2], v + (first + c) * j.in[2].stride[2] +
                                                               n * KEYS + threadIdx.x);
        __syncthreads();
    }
    total = over_block(total, false);
    for (int n = 0; n < D_MAX / KEYS; n++)
        if (n * KEYS + threadIdx.x < j.head_dim)
            store(&j.out, o + n * KEYS + threadIdx.x, visible ? sums[n] / total : 0, 0);
}

template <class How>
static enum kg_status attentions(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t rows = kg_size(p, "b") * kg_size(p, "h") * kg_size(p, "sq");
    if (!kg_is_op(p, "attention_fwd") || kg_size(p, "d") > D_MAX)
        return wrap_inner(p, args);
    hooked_attention<How>
        <<<(unsigned)rows, KEYS, 0, (cudaStream_t)args->stream>>>(job_of(p, args, PLAIN));
    return hooks_launched();
}

/* What the struct name_how makes of `of`. */
#define HOOKED(name, of)                                                                           \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return of<name##_how>(p, args);                                                            \
    }

#define FAULT(name)                                                                                \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }

#endif
