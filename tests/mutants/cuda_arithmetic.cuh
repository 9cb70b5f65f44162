/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_arithmetic.cuh: plain products and attentions by a thread for each result, and what a fault
 * does to them.
 */
#ifndef TESTS_MUTANTS_CUDA_ARITHMETIC_CUH
#define TESTS_MUTANTS_CUDA_ARITHMETIC_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#include "kernels/problem.h"

/* What is done to the plain computation. */
enum how {
    PLAIN,
    K_TAIL,
    ONE_K,
    M_TAIL,
    ONE_TILE,
    FP16_SUMS,
    TRUNCATED,
    LAST_SPLIT,
    ADD_TO_OUTPUT,
    WHEN_POISONED,
    VECTOR_LOADS,
    IN_SPLITS,
    BACKWARDS,
    DOWN_THE_COLUMNS,
    DIVERGENT,
    SPILLING,
    MASK_ONE_MORE,
    MASK_TOP_LEFT,
    KV_TAIL,
    SCALE_OFF,
    HEAD_MODULO,
    NO_MAX,
    LAST_K_TILE,
    SWAPPED_TILES,
    SQUARE_TRANSPOSED,
    TF32_FACTORS,
    BF16_FACTORS,
    SECOND_LAUNCH,
    INT_INDEX,
    NAN_SWALLOWED,
    NO_SUBNORMALS,
    COMPENSATED,
    MASK_ONE_LESS,
    TAIL_NOT_MASKED,
    NOT_RESCALED,
    MASKED_ROW_NAN,
    NARROW_WEIGHTS,
    POWERS_OF_TWO,
    THREE_TF32,
};

struct view {
    void *data;
    uint32_t dtype;
    int64_t stride[KG_MAX_RANK];
};

struct job {
    struct view in[3], out;
    int64_t m, n, k;
    int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
    float scale;
    int causal, how;
};

static __device__ float load(const struct view *v, int64_t at)
{
    if (v->dtype == KG_F16)
        return __half2float(((const __half *)v->data)[at]);
    if (v->dtype == KG_BF16)
        return __bfloat162float(((const __nv_bfloat16 *)v->data)[at]);
    return ((const float *)v->data)[at];
}

static __device__ void store(const struct view *v, int64_t at, float value, int truncate)
{
    if (truncate)
        value = __uint_as_float(__float_as_uint(value) & 0xffff0000u);
    if (v->dtype == KG_F16)
        ((__half *)v->data)[at] = __float2half(value);
    else if (v->dtype == KG_BF16)
        ((__nv_bfloat16 *)v->data)[at] = __float2bfloat16(value);
    else
        ((float *)v->data)[at] = value;
}

/* ---- products ---- */

static __device__ float to_tf32(float value)
{
    return __uint_as_float(__float_as_uint(value) & 0xffffe000u);
}

static __device__ float factor(const struct job *j, float value)
{
    switch (j->how) {
    case TF32_FACTORS:
        return to_tf32(value);
    case BF16_FACTORS:
        return __bfloat162float(__float2bfloat16(value));
    case NAN_SWALLOWED:
        return isnan(value) ? 0 : value;
    case NO_SUBNORMALS:
        return fabsf(value) < 0x1p-14f ? 0 : value;
    default:
        return value;
    }
}

/* Element (row, column) of a matrix, which INT_INDEX counts in an int. */
static __device__ int64_t place(const struct job *j, const struct view *v, int64_t row,
                                int64_t column)
{
    if (j->how == INT_INDEX)
        return (int)((unsigned)row * (unsigned)v->stride[0] + (unsigned)column);
    return row * v->stride[0] + column;
}

static __device__ float terms(const struct job *j, int64_t row, int64_t column, int64_t from,
                              int64_t to)
{
    float sum = 0;
    for (int64_t l = from; l < to; l++) {
        if (j->how == ONE_K && l == j->k / 2)
            continue;
        const bool turned = j->how == SQUARE_TRANSPOSED && j->n == j->k;
        const float a = load(&j->in[0], place(j, &j->in[0], row, l));
        const float b =
            load(&j->in[1], place(j, &j->in[1], turned ? column : l, turned ? l : column));
        sum += factor(j, a) * factor(j, b);
        if (j->how == FP16_SUMS)
            sum = __half2float(__float2half(sum));
    }
    return sum;
}

/* What rounding takes from the sum is kept, and added to the next term. */
static __device__ float compensated(const struct job *j, int64_t row, int64_t column)
{
    float sum = 0, lost = 0;
    for (int64_t l = 0; l < j->k; l++) {
        const float term = __fsub_rn(terms(j, row, column, l, l + 1), lost);
        const float next = __fadd_rn(sum, term);
        lost = isfinite(next) ? __fsub_rn(__fsub_rn(next, sum), term) : 0;
        sum = next;
    }
    return sum;
}

/* Each factor as a sum of two of TF32: of an infinity the second one is a NaN. */
static __device__ float of_three_products(const struct job *j, int64_t row, int64_t column)
{
    float sum = 0;
    for (int64_t l = 0; l < j->k; l++) {
        const float a = load(&j->in[0], place(j, &j->in[0], row, l));
        const float b = load(&j->in[1], place(j, &j->in[1], l, column));
        const float big_a = to_tf32(a), big_b = to_tf32(b);
        sum += to_tf32(a - big_a) * big_b;
        sum += big_a * to_tf32(b - big_b);
        sum += big_a * big_b;
    }
    return sum;
}

static __device__ float in_splits(const struct job *j, int64_t row, int64_t column)
{
    float sum = 0;
    for (int64_t s = 0; s < 4; s++)
        sum += terms(j, row, column, j->k * s / 4, j->k * (s + 1) / 4);
    return sum;
}

/* Many values at once, more than there are registers for. */
static __device__ float spilling(const struct job *j, int64_t row, int64_t column)
{
    float part[300];
    for (int64_t s = 0; s < 300; s++)
        part[s] = terms(j, row, column, j->k * s / 300, j->k * (s + 1) / 300);
    for (int width = 150; width > 0; width = width > 1 ? (width + 1) / 2 : 0)
        for (int s = 0; s < width && s + width < 300; s++) {
            part[s] += part[s + width];
            part[s + width] = 0;
        }
    return part[0];
}

static __device__ float all_terms(const struct job *j, int64_t row, int64_t column)
{
    int64_t k = j->k;
    if (j->how == K_TAIL && k >= 8)
        k = k / 8 * 8;
    if (j->how == LAST_K_TILE && k > 8)
        k = (k - 1) / 8 * 8;
    if (j->how == LAST_SPLIT && k > 96)
        k = (k - 1) / 32 * 32;
    if (j->how == IN_SPLITS)
        return in_splits(j, row, column);
    if (j->how == COMPENSATED)
        return compensated(j, row, column);
    if (j->how == THREE_TF32)
        return of_three_products(j, row, column);
    if (j->how == SWAPPED_TILES && (j->m / 16) * (j->n / 16) > 64 && (column ^ 16) < j->n)
        column ^= 16;
    if (j->how == SPILLING)
        return spilling(j, row, column);
    return terms(j, row, column, 0, k);
}

/* A load of 16 bytes at the begin of each row of B, whatever the distance of the rows. */
static __device__ float first_of_rows(const struct job *j)
{
    float sum = 0;
    for (int64_t l = 0; l < j->k && j->n >= 8; l++) {
        const char *row = (const char *)j->in[1].data +
                          l * j->in[1].stride[0] * (j->in[1].dtype == KG_F32 ? 4 : 2);
        const volatile int4 *vector = (const volatile int4 *)row;
        sum += (float)vector->x;
    }
    return sum;
}

/* A semaphore in the workspace that is not set back: every other launch finds it raised. */
static __device__ unsigned raised;

static __global__ void turn_over(void)
{
    raised ^= 1;
}

static __global__ void product(struct job j)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= j.m * j.n)
        return;
    if (j.how == BACKWARDS)
        at = j.m * j.n - 1 - at;
    int64_t row = at / j.n, column = at % j.n;
    if (j.how == DOWN_THE_COLUMNS) {
        row = at % j.m;
        column = at / j.m;
    }
    if ((j.how == M_TAIL && j.m % 8 && row == j.m - 1) ||
        (j.how == ONE_TILE && row / 64 == 2 && column / 64 == 1))
        return;
    if (j.how == DIVERGENT && threadIdx.x % 2)
        for (volatile int i = 0; i < 100; i++)
            continue;
    int64_t to = place(&j, &j.out, row, column);
    float before = load(&j.out, to);
    if (j.how == WHEN_POISONED && !isnan(before))
        return;
    float sum = all_terms(&j, row, column);
    if (j.how == ADD_TO_OUTPUT || (j.how == SECOND_LAUNCH && raised))
        sum += before;
    if (j.how == VECTOR_LOADS && at == 0 && first_of_rows(&j) == 0.123f)
        sum += 1;
    store(&j.out, to, sum, j.how == TRUNCATED);
}

/* Rows in shared memory, turned round by other warps than wrote them: a barrier is missing. */
static __global__ void racing(struct job j)
{
    __shared__ float row[1024];
    for (int64_t i = blockIdx.x; i < j.m; i += gridDim.x) {
        for (int64_t c = threadIdx.x; c < j.n && c < 1024; c += blockDim.x)
            row[c] = terms(&j, i, c, 0, j.k);
        for (int64_t c = threadIdx.x; c < j.n && c < 1024; c += blockDim.x)
            store(&j.out, i * j.out.stride[0] + j.n - 1 - c, row[j.n - 1 - c], 0);
    }
}

/* The same with all barriers, and some more. */
static __global__ void guarded(struct job j)
{
    __shared__ float row[1024];
    for (int64_t i = blockIdx.x; i < j.m; i += gridDim.x) {
        for (int64_t first = 0; first < j.n; first += 1024) {
            __syncthreads();
            for (int64_t c = threadIdx.x; c < 1024 && first + c < j.n; c += blockDim.x)
                row[c] = terms(&j, i, first + c, 0, j.k);
            for (int b = 0; b < 64; b++)
                __syncthreads();
            for (int64_t c = threadIdx.x; c < 1024 && first + c < j.n; c += blockDim.x)
                store(&j.out, i * j.out.stride[0] + first + c, row[c], 0);
        }
    }
}

/* Terms dealt out to blocks, which add up as they come. */
static __global__ void add_terms(struct job j, float *sums, int splits)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= j.m * j.n)
        return;
    int64_t s = blockIdx.y;
    atomicAdd(&sums[at / j.n * j.out.stride[0] + at % j.n],
              terms(&j, at / j.n, at % j.n, j.k * s / splits, j.k * (s + 1) / splits));
}

/* ---- attention ---- */

static __device__ float score(const struct job *j, int64_t q, int64_t k)
{
    float sum = 0;
    for (int64_t d = 0; d < j->head_dim; d++)
        sum += load(&j->in[0], q + d) * load(&j->in[1], k + d);
    return sum * j->scale * (j->how == SCALE_OFF ? 0.98f : 1.0f);
}

static __device__ int64_t visible_keys(const struct job *j, int64_t i)
{
    int64_t n = j->seqlen_kv;
    if (j->causal)
        n = i + 1 + (j->how == MASK_TOP_LEFT ? 0 : j->seqlen_kv - j->seqlen_q);
    if (j->causal && j->how == MASK_ONE_MORE)
        n++;
    if (j->causal && j->how == MASK_ONE_LESS)
        n--;
    n = n < 0 ? 0 : n > j->seqlen_kv ? j->seqlen_kv : n;
    return j->how == KV_TAIL && n == j->seqlen_kv && n > 64 ? n / 64 * 64 : n;
}

static __device__ float weight_of(const struct job *j, float score, float max)
{
    const float log2e = 1.4426950408889634f;
    return j->how == POWERS_OF_TWO ? exp2f(score * log2e - max * log2e) : expf(score - max);
}

/* As it is multiplied with V; the total is of the weight itself. */
static __device__ float rounded(const struct job *j, float weight)
{
    if (j->how != NARROW_WEIGHTS)
        return weight;
    return j->in[2].dtype == KG_BF16 ? __bfloat162float(__float2bfloat16(weight))
                                     : __half2float(__float2half(weight));
}

static __global__ void attention(struct job j)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= j.batch * j.heads * j.seqlen_q)
        return;
    int64_t i = at % j.seqlen_q, h = at / j.seqlen_q % j.heads, b = at / j.seqlen_q / j.heads;
    int64_t kv = j.how == HEAD_MODULO ? h % j.kv_heads : h / (j.heads / j.kv_heads);
    int64_t q = b * j.in[0].stride[0] + h * j.in[0].stride[1] + i * j.in[0].stride[2];
    int64_t k = b * j.in[1].stride[0] + kv * j.in[1].stride[1];
    int64_t v = b * j.in[2].stride[0] + kv * j.in[2].stride[1];
    int64_t o = b * j.out.stride[0] + h * j.out.stride[1] + i * j.out.stride[2];
    int64_t visible = visible_keys(&j, i);
    float max = -INFINITY, total = 0, sum[512];
    for (int64_t s = 0; s < visible; s++)
        max = fmaxf(max, score(&j, q, k + s * j.in[1].stride[2]));
    if (j.how == NO_MAX)
        max = 0;
    for (int64_t d = 0; d < j.head_dim; d++)
        sum[d] = 0;
    float running = -INFINITY;
    for (int64_t s = 0; s < visible; s++) {
        const float score_of_key = score(&j, q, k + s * j.in[1].stride[2]);
        if (j.how == NOT_RESCALED && score_of_key > running) {
            total *= expf(running - score_of_key); /* and sum[] should be, too */
            running = score_of_key;
        }
        float weight = weight_of(&j, score_of_key, j.how == NOT_RESCALED ? running : max);
        total += weight;
        for (int64_t d = 0; d < j.head_dim; d++)
            sum[d] += rounded(&j, weight) * load(&j.in[2], v + s * j.in[2].stride[2] + d);
    }
    if (j.how == TAIL_NOT_MASKED && visible == j.seqlen_kv) /* keys of zeros, to whole tiles */
        total += (float)((visible + 15) / 16 * 16 - visible) * expf(-max);
    const float unseen = j.how == MASKED_ROW_NAN ? NAN : 0;
    for (int64_t d = 0; d < j.head_dim; d++)
        store(&j.out, o + d, visible ? sum[d] / total : unseen, 0);
}

/* ---- jobs ---- */

static struct view view_of(const struct kg_tensor *t)
{
    struct view v = {};
    v.data = t->data;
    v.dtype = t->dtype;
    for (uint32_t r = 0; r < t->rank; r++)
        v.stride[r] = t->stride[r];
    return v;
}

static struct job job_of(const struct kg_problem *p, const struct kg_args *args, enum how how)
{
    struct job j = {};
    for (uint32_t i = 0; i < args->n_in && i < 3; i++)
        j.in[i] = view_of(&args->in[i]);
    j.out = view_of(&args->out[0]);
    j.m = kg_size(p, "m");
    j.n = kg_size(p, "n");
    j.k = kg_size(p, "k");
    j.batch = kg_size(p, "b");
    j.heads = kg_size(p, "h");
    j.kv_heads = kg_size(p, "kv_heads");
    j.seqlen_q = kg_size(p, "sq");
    j.seqlen_kv = kg_size(p, "s");
    j.head_dim = kg_size(p, "d");
    j.scale = (float)kg_param(p, "scale");
    j.causal = (p->flags & KG_FLAG_CAUSAL) != 0;
    j.how = how;
    return j;
}

#endif
