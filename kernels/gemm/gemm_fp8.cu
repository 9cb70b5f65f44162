/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8: C = A B^T of e4m3 with scales, as gemm_fp8_sm90, on FMA units: for rows that begin
 * anywhere, and for devices other than Hopper. Tiles of 64 x 64, 32 of k at a time.
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/gemm/gemm_fp8.h"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace
{

constexpr int TILE = 64, SLAB = 32, THREADS = 256, EACH = 4;
constexpr int SLABS = GEMM_FP8_BLOCK / SLAB;

struct fp8_operand {
    const uint8_t *data;
    const float *scale;
    int64_t leading, leading_scale;
    int32_t lines;
    int32_t lines_scale; /* so many lines have one row of scales */
};

using fp8_slab = float[SLAB][TILE + EACH];

/* Lines `first` to first + 63 and 32 columns of an operand; outside of it are zeros. */
__device__ __forceinline__ void read_slab(fp8_slab &slab, const fp8_operand &x, int64_t first,
                                          int64_t k0, int64_t k)
{
    for (int i = threadIdx.x; i < TILE * SLAB; i += THREADS) {
        const int64_t line = first + i / SLAB, column = k0 + i % SLAB;
        __half value = 0.0f;
        if (line < x.lines && column < k)
            value = __nv_cvt_fp8_to_halfraw(x.data[line * x.leading + column], __NV_E4M3);
        slab[i % SLAB][i / SLAB] = __half2float(value);
    }
}

/* The scale of a line for block `block` of k. */
__device__ __forceinline__ float scale_of(const fp8_operand &x, int64_t line, int64_t block)
{
    const int64_t row = min(line, (int64_t)x.lines - 1) / x.lines_scale;
    return x.scale[row * x.leading_scale + block];
}

template <bool BLOCKS>
__global__ void __launch_bounds__(THREADS)
    fp8_plain(const fp8_operand a, const fp8_operand b, __nv_bfloat16 *c, int64_t leading,
              int64_t k, int32_t tiles_m)
{
    __shared__ __align__(16) fp8_slab slab_a, slab_b;
    const int64_t m0 = (int64_t)(blockIdx.x % tiles_m) * TILE;
    const int64_t n0 = (int64_t)(blockIdx.x / tiles_m) * TILE;
    const int row = threadIdx.x / 16 * EACH, column = threadIdx.x % 16 * EACH;
    float sum[EACH][EACH] = {};

    for (int64_t block = 0; block * GEMM_FP8_BLOCK < k; block++) {
        float part[EACH][EACH] = {};
        for (int s = 0; s < SLABS; s++) {
            const int64_t k0 = block * GEMM_FP8_BLOCK + s * SLAB;
            __syncthreads();
            read_slab(slab_a, a, m0, k0, k);
            read_slab(slab_b, b, n0, k0, k);
            __syncthreads();
#pragma unroll 8
            for (int l = 0; l < SLAB; l++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        part[i][j] += slab_a[l][row + i] * slab_b[l][column + j];
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                sum[i][j] += BLOCKS ? part[i][j] * (scale_of(a, m0 + row + i, block) *
                                                    scale_of(b, n0 + column + j, block))
                                    : part[i][j];
    }
    const float scale = BLOCKS ? 1.0f : *a.scale * *b.scale;
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (m0 + row + i < a.lines && n0 + column + j < b.lines)
                c[(m0 + row + i) * leading + n0 + column + j] =
                    __float2bfloat16_rn(sum[i][j] * scale);
}

fp8_operand operand_of(const gemm_matrix &x, const gemm_matrix &scale, int64_t lines,
                       int lines_scale)
{
    return {(const uint8_t *)x.data,
            (const float *)scale.data,
            x.leading,
            scale.leading,
            (int32_t)lines,
            lines_scale};
}

int supports(const gemm_fp8_sizes *s, const kg_device *device)
{
    return gemm_serves(device, s->m, s->n, s->k);
}

} // namespace

enum kg_status gemm_fp8_plain(const struct gemm_fp8_call *call, bool blocks)
{
    const fp8_operand a = operand_of(call->a, call->sa, call->m, 1);
    const fp8_operand b = operand_of(call->b, call->sb, call->n, GEMM_FP8_BLOCK);
    const int64_t tiles_m = gemm_blocks(call->m, TILE), tiles_n = gemm_blocks(call->n, TILE);

    return launch_kernel(blocks ? fp8_plain<true> : fp8_plain<false>,
                         dim3((unsigned)(tiles_m * tiles_n)), dim3(THREADS), 0, call->stream, a, b,
                         (__nv_bfloat16 *)call->c.data, call->c.leading, call->k, (int32_t)tiles_m);
}

static enum kg_status launch(const gemm_fp8_sizes *s, const kg_args *args)
{
    gemm_fp8_call call;
    const enum kg_status status = gemm_fp8_call_of(s, args, &call);
    return status == KG_OK ? gemm_fp8_plain(&call, s->blocks) : status;
}

extern "C" const struct kg_kernel kg_gemm_fp8 =
    kernel_of<gemm_fp8_sizes, supports, nullptr, nullptr, launch>("gemm_fp8", "gemm_fp8");
extern "C" const struct kg_kernel kg_gemm_fp8_block =
    kernel_of<gemm_fp8_sizes, supports, nullptr, nullptr, launch>("gemm_fp8_block",
                                                                  "gemm_fp8_block");
