/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine: merges the partial results of attention_fwd_splitkv, in a fixed order.
 *
 * Regime      2 to 128 splits
 * Block       one output row; 128 threads in slices of D / 4, each adding up every n-th split; it
 *             is in place before the last split has ended (launch.cuh)
 * Resources   registers 56 to 61, no spills; shared memory 2.5 KB
 */
#include "kernels/attention_fwd/combine.h"

#include "kernels/cuda/ptx.cuh"

#include <math.h>

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_combine
{

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;
static_assert(COMBINE_MAX_SPLITS <= THREADS, "a thread weighs one split");

struct combine_params {
    struct attention a;
    struct partials parts;
};

__device__ __forceinline__ float warp_maximum(float x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lanes));
    return x;
}

__device__ __forceinline__ float warp_total(float x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

/* Leaves 2^(max - greatest max) / total sum of each split in `weight`. Ends with a barrier. */
__device__ __forceinline__ void weigh_splits(const struct partials &parts, int64_t row,
                                             float scale_log2, float (&weight)[THREADS])
{
    __shared__ float warp_max[WARPS];
    __shared__ float warp_sum[WARPS];
    const int thread = threadIdx.x;
    float2 stats = make_float2(-INFINITY, 0.0f);

    if (thread < parts.splits)
        stats = parts.stats[thread * parts.total_rows + row];

    const float max_of_warp = warp_maximum(stats.x);
    if (thread % 32 == 0)
        warp_max[thread / 32] = max_of_warp;
    __syncthreads();
    float max = warp_max[0];
    for (int w = 1; w < WARPS; w++)
        max = fmaxf(max, warp_max[w]);

    /* With no key in any split the weights are 2^-inf = 0, and so is the row. */
    const float scale = ptx::exp2_approx((stats.x - (max == -INFINITY ? 0.0f : max)) * scale_log2);
    const float sum_of_warp = warp_total(scale * stats.y);
    if (thread % 32 == 0)
        warp_sum[thread / 32] = sum_of_warp;
    __syncthreads();
    float sum = warp_sum[0];
    for (int w = 1; w < WARPS; w++)
        sum += warp_sum[w];

    weight[thread] = sum == 0.0f ? 0.0f : scale / sum;
    __syncthreads();
}

template <typename T, int D>
__global__ void __launch_bounds__(THREADS)
    combine_kernel(const __grid_constant__ struct combine_params p, float scale_log2)
{
    constexpr int CHUNKS = D / 4;
    constexpr int SLICES = THREADS / CHUNKS;
    constexpr int BATCH = 8; /* loads in flight a thread */
    __shared__ float weight[THREADS];
    __shared__ float4 slice_out[SLICES][CHUNKS];
    const struct attention &a = p.a;
    const int64_t row = blockIdx.x;
    const int slice = threadIdx.x / CHUNKS;
    const int chunk = threadIdx.x % CHUNKS;
    const float *const out = p.parts.out + row * D + chunk * 4;
    const int64_t split_stride = p.parts.total_rows * D;
    float4 batch[BATCH];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    wait_for_predecessor();
    for (int first = slice; first - slice < p.parts.splits; first += BATCH * SLICES) {
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const int split = first + i * SLICES;
            batch[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (split < p.parts.splits)
                batch[i] = *(const float4 *)(out + split * split_stride);
        }
        /* The first batch is on its way while the weights are found. */
        if (first == slice)
            weigh_splits(p.parts, row, scale_log2, weight);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const int split = first + i * SLICES;
            const float w = split < p.parts.splits ? weight[split] : 0.0f;
            sum.x += w * batch[i].x;
            sum.y += w * batch[i].y;
            sum.z += w * batch[i].z;
            sum.w += w * batch[i].w;
        }
    }
    slice_out[slice][chunk] = sum;
    __syncthreads();

    if (threadIdx.x < D / 8) {
        float4 low = slice_out[0][2 * threadIdx.x];
        float4 high = slice_out[0][2 * threadIdx.x + 1];
        for (int s = 1; s < SLICES; s++) {
            const float4 l = slice_out[s][2 * threadIdx.x];
            const float4 h = slice_out[s][2 * threadIdx.x + 1];
            low = make_float4(low.x + l.x, low.y + l.y, low.z + l.z, low.w + l.w);
            high = make_float4(high.x + h.x, high.y + h.y, high.z + h.z, high.w + h.w);
        }
        const int kv_head = (int)(row / p.parts.rows);
        char *const to = packed_row(a.o, a.group, kv_head / a.kv_heads, kv_head % a.kv_heads,
                                    (int)(row % p.parts.rows));
        ((uint4 *)to)[threadIdx.x] =
            make_uint4(ptx::pack(low.x, low.y, T()), ptx::pack(low.z, low.w, T()),
                       ptx::pack(high.x, high.y, T()), ptx::pack(high.z, high.w, T()));
    }
}

template <typename T, int D>
enum kg_status launch_typed(const struct combine_params &params, float scale_log2, void *stream)
{
    return launch_dependent_kernel(combine_kernel<T, D>, dim3((unsigned)params.parts.total_rows),
                                   dim3(THREADS), 0, stream, params, scale_log2);
}

} // namespace attention_fwd_combine

using namespace attention_fwd_combine;

enum kg_status launch_combine(const struct attention_sizes *p, const struct attention &a,
                              const struct partials &parts, void *stream)
{
    const struct combine_params params = {a, parts};
    const float scale_log2 = scale_log2_of(p);

    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? launch_typed<__half, 64>(params, scale_log2, stream)
                                 : launch_typed<__half, 128>(params, scale_log2, stream);
    return p->head_dim == 64 ? launch_typed<__nv_bfloat16, 64>(params, scale_log2, stream)
                             : launch_typed<__nv_bfloat16, 128>(params, scale_log2, stream);
}
