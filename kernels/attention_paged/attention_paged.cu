/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_paged: attention of pages, for all that attention_paged_splitkv leaves: fp32, any page,
 * layout and scale, and dimensions of a head up to 256.
 *
 * Block       a query of a head: 8 warps, which take the keys by turns, a lane every 32nd
 * dimension, and are added up at the end. Sums in fp32
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/problem.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_paged
{

constexpr int WARPS = 8, COLUMNS = 8, MOST = 32 * COLUMNS;

/* Strides are in elements, in the order of the tensor's axes. */
struct view {
    char *data;
    int64_t stride[3];
};

struct params {
    struct view q, k, v, o;
    const int32_t *table, *lengths;
    int64_t table_row;
    int heads, group, queries, page, d, rows; /* rows: of all sequences */
};

__device__ __forceinline__ float load(const float *from)
{
    return *from;
}
__device__ __forceinline__ float load(const __half *from)
{
    return __half2float(*from);
}
__device__ __forceinline__ float load(const __nv_bfloat16 *from)
{
    return __bfloat162float(*from);
}
__device__ __forceinline__ void store(float *to, float x)
{
    *to = x;
}
__device__ __forceinline__ void store(__half *to, float x)
{
    *to = __float2half_rn(x);
}
__device__ __forceinline__ void store(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

template <typename T>
__device__ __forceinline__ T *line(const struct view &v, int64_t a, int64_t b, int64_t c)
{
    return (T *)v.data + a * v.stride[0] + b * v.stride[1] + c * v.stride[2];
}

template <typename T>
__global__ void __launch_bounds__(32 * WARPS)
    attend(const __grid_constant__ struct params p, float scale)
{
    __shared__ float sums[WARPS][MOST], tops[WARPS], totals[WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.x % p.heads, i = blockIdx.x / p.heads % p.queries;
    const int sequence = blockIdx.x / p.heads / p.queries;
    const int32_t *const table = p.table + sequence * p.table_row;
    const int seen = p.lengths[sequence] - p.queries + i + 1;
    float q[COLUMNS], sum[COLUMNS], top = -INFINITY, total = 0;

#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        q[n] = lane + 32 * n < p.d ? load(line<T>(p.q, sequence, i, head) + lane + 32 * n) : 0.0f;
        sum[n] = 0;
    }
    for (int j = warp; j < seen; j += WARPS) {
        const int64_t block = table[j / p.page];
        const T *const k = line<T>(p.k, block, j % p.page, head / p.group) + lane;
        const T *const v = line<T>(p.v, block, j % p.page, head / p.group) + lane;
        float score = 0;
#pragma unroll
        for (int n = 0; n < COLUMNS; n++)
            if (lane + 32 * n < p.d)
                score = fmaf(q[n], load(k + 32 * n), score);
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
            score += __shfl_xor_sync(0xffffffffu, score, by);
        score *= scale;
        const float now = fmaxf(top, score), old = expf(top - now), weight = expf(score - now);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++)
            if (lane + 32 * n < p.d)
                sum[n] = fmaf(weight, load(v + 32 * n), sum[n] * old);
        total = total * old + weight;
        top = now;
    }
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
        sums[warp][lane + 32 * n] = sum[n];
    if (lane == 0) {
        tops[warp] = top;
        totals[warp] = total;
    }
    __syncthreads();
    float most = tops[0], all = 0, out = 0;
    for (int w = 1; w < WARPS; w++)
        most = fmaxf(most, tops[w]);
    for (int w = 0; w < WARPS && seen > 0; w++) {
        const float share = expf(tops[w] - most);
        all = fmaf(totals[w], share, all);
        out = fmaf(sums[w][threadIdx.x], share, out);
    }
    if ((int)threadIdx.x < p.d)
        store(line<T>(p.o, sequence, i, head) + threadIdx.x, seen > 0 ? out / all : 0.0f);
}

static_assert(32 * WARPS == MOST, "a thread stores one column");

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    const int64_t sizes[] = {kg_size(p, "t") * kg_size(p, "page"), kg_size(p, "sq"),
                             kg_size(p, "b") * kg_size(p, "sq") * kg_size(p, "h")};
    for (const int64_t size : sizes)
        if (size > INT32_MAX / 2)
            return 0;
    return device->kind == KG_DEVICE_CUDA && device->cc_major >= 8 &&
           kg_is_op(p, "attention_paged") && kg_size(p, "d") <= MOST &&
           (p->dtype[0] == KG_F16 || p->dtype[0] == KG_BF16 || p->dtype[0] == KG_F32);
}

static struct view view_of(const struct kg_tensor &t)
{
    return {(char *)t.data, {t.stride[0], t.stride[1], t.stride[2]}};
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    struct params params;
    if (!kg_is_call(p, args) || args->n_in != 5 || args->in[0].rank != 4 || args->in[1].rank != 4 ||
        args->in[2].rank != 4 || args->in[3].rank != 2)
        return KG_BAD_ARGUMENT;
    params.q = view_of(args->in[0]);
    params.k = view_of(args->in[1]);
    params.v = view_of(args->in[2]);
    params.o = view_of(args->out[0]);
    params.table = (const int32_t *)args->in[3].data;
    params.table_row = args->in[3].stride[0];
    params.lengths = (const int32_t *)args->in[4].data;
    params.heads = (int)kg_size(p, "h");
    params.group = (int)(kg_size(p, "h") / kg_size(p, "kv_heads"));
    params.queries = (int)kg_size(p, "sq");
    params.page = (int)kg_size(p, "page");
    params.d = (int)kg_size(p, "d");
    params.rows = (int)(kg_size(p, "b") * kg_size(p, "sq") * kg_size(p, "h"));
    const float scale = (float)kg_param(p, "scale");
#define LAUNCH(T)                                                                                  \
    return launch_kernel(attend<T>, dim3((unsigned)params.rows), dim3(32 * WARPS), 0,              \
                         args->stream, params, scale)
    KG_DISPATCH(p->dtype[0], LAUNCH)
    return KG_BAD_ARGUMENT;
}

} // namespace attention_paged

extern "C" const struct kg_kernel kg_attention_paged = {
    sizeof(struct kg_kernel),
    0,
    "attention_paged",
    "attention_paged",
    attention_paged::supports,
    NULL,
    NULL,
    attention_paged::launch,
    NULL,
};
