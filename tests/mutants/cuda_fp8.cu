/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: fp8 products with scales that are wrong, and one that is right as tensor cores are; a
 * thread for each result. */
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "tests/mutants/faults.h"

#define BLOCK 128 /* of k */
#define STEP 32   /* of k, which a tensor core adds up at once */

struct fp8_product {
    const uint8_t *a, *b;
    const float *sa, *sb;
    __nv_bfloat16 *c;
    int64_t m, n, k, leading_a, leading_b, leading_sa, leading_sb, leading_c;
};

struct right {
    static __device__ float factor(uint8_t code)
    {
        return __half2float((__half)__nv_cvt_fp8_to_halfraw(code, __NV_E4M3));
    }
    /* Of A for a block of k. */
    static __device__ int64_t scaled_by(int64_t block, int64_t)
    {
        return block;
    }
    /* Whether a block of k is left out. */
    static __device__ bool skipped(int64_t, int64_t)
    {
        return false;
    }
    /* A sum that has grown by a step. */
    static __device__ float kept(float sum)
    {
        return sum;
    }
    /* Each block is added to a sum that keeps all bits. */
    static constexpr bool PROMOTED = true;
};

struct scale_of_last_how : right {
    static __device__ int64_t scaled_by(int64_t block, int64_t blocks)
    {
        return block > 0 && block == blocks - 1 ? block - 1 : block;
    }
};

/* As when a stage is filled again before its scales have been read. */
struct scale_of_next_stage_how : right {
    static __device__ int64_t scaled_by(int64_t block, int64_t blocks)
    {
        return block + 2 < blocks ? block + 2 : block;
    }
};

struct last_block_how : right {
    static __device__ bool skipped(int64_t block, int64_t blocks)
    {
        return blocks > 1 && block == blocks - 1;
    }
};

struct share_left_out_how : right {
    static __device__ bool skipped(int64_t block, int64_t blocks)
    {
        return block >= blocks / 3 && block < blocks * 2 / 3;
    }
};

struct nan_is_480_how : right {
    static __device__ float factor(uint8_t code)
    {
        return (code & 0x7f) != 0x7f ? right::factor(code) : code & 0x80 ? -480.0f : 480.0f;
    }
};

/* What the tensor core keeps of a sum: 14 bits. */
struct promoted_how : right {
    static __device__ float kept(float sum)
    {
        return __uint_as_float(__float_as_uint(sum) & ~0x3ffu);
    }
};

struct not_promoted_how : promoted_how {
    static constexpr bool PROMOTED = false;
};

template <typename How> static __global__ void multiply(const fp8_product p, bool of_blocks)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t i = at / p.n, j = at % p.n, blocks = (p.k + BLOCK - 1) / BLOCK;
    float sum = 0, part = 0;
    if (i >= p.m)
        return;
    for (int64_t block = 0; block < blocks; block++) {
        if (How::skipped(block, blocks))
            continue;
        const float scale = of_blocks ? p.sa[i * p.leading_sa + How::scaled_by(block, blocks)] *
                                            p.sb[j / BLOCK * p.leading_sb + block]
                                      : *p.sa * *p.sb;
        const bool alone = How::PROMOTED || of_blocks;
        part = alone ? 0 : part;
        for (int64_t l = block * BLOCK; l < min((block + 1) * BLOCK, p.k); l += STEP) {
            float step = 0;
            for (int64_t x = l; x < min(l + STEP, p.k); x++)
                step +=
                    How::factor(p.a[i * p.leading_a + x]) * How::factor(p.b[j * p.leading_b + x]);
            part = How::kept(part + step);
        }
        sum = alone ? sum + part * scale : part * scale;
    }
    p.c[i * p.leading_c + j] = __float2bfloat16_rn(sum);
}

template <typename How>
static enum kg_status fp8(const struct kg_problem *problem, const struct kg_args *args)
{
    const struct kg_tensor *in = args->in, *out = args->out;
    const fp8_product p = {(const uint8_t *)in[0].data,
                           (const uint8_t *)in[1].data,
                           (const float *)in[2].data,
                           (const float *)in[3].data,
                           (__nv_bfloat16 *)out->data,
                           out->shape[0],
                           out->shape[1],
                           in[0].shape[1],
                           in[0].stride[0],
                           in[1].stride[0],
                           in[2].stride[0],
                           in[3].stride[0],
                           out->stride[0]};
    if (!kg_is_op(problem, "gemm_fp8") && !kg_is_op(problem, "gemm_fp8_block"))
        return wrap_inner(problem, args);
    multiply<How><<<(unsigned)((p.m * p.n + 255) / 256), 256, 0, (cudaStream_t)args->stream>>>(
        p, kg_is_op(problem, "gemm_fp8_block"));
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#define FP8(name)                                                                                  \
    {                                                                                              \
#name, fp8 < name##_how>, 0, NULL                                                          \
    }
FAULTS(FP8(scale_of_last), FP8(scale_of_next_stage), FP8(last_block), FP8(share_left_out),
       FP8(nan_is_480), FP8(not_promoted), FP8(promoted))
