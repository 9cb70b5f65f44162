/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8.c: products of e4m3 with scales, each one cuBLASLt product A B^T.
 *
 * cuBLASLt takes the scales of blocks in another order than kernel.h has them. A small kernel
 * (scales.cu) arranges them in the workspace at each launch, and its time counts. Workspace: the
 * scales of A, those of B, then that of the product, each from a multiple of 256.
 */
#include "kernels/cublas/cublas_api.h"
#include "kernels/cublas/provider.h"

static enum matmul_scales scales_of(const struct kg_problem *p)
{
    return kg_is_op(p, "gemm_fp8") ? MATMUL_WHOLE_SCALES : MATMUL_BLOCK_SCALES;
}

/* Compute capability 8.9 and later multiply fp8; cuBLASLt has scales of blocks for 9.0 alone, from
 * 12.9 on. Rows begin at multiples of 16 bytes, those of the scales as cuBLASLt wants them too. */
static bool has_block_scales(const struct kg_device *d)
{
    return d->cc_major == 9 && d->cc_minor == 0 && cublas_api()->cublasLtGetVersion() >= 120900;
}

static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    const bool blocks = scales_of(p) == MATMUL_BLOCK_SCALES;
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    return d->kind == KG_DEVICE_CUDA && p->flags == 0 && p->dtype[0] == KG_E4M3 &&
           (blocks ? has_block_scales(d) : d->cc_major * 10 + d->cc_minor >= 89) &&
           m <= INT32_MAX && n <= MATMUL_ROW_BYTES / 2 && k <= MATMUL_ROW_BYTES && n % 16 == 0 &&
           k % 16 == 0 && (m % 4 == 0 || !blocks);
}

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *, void **plan)
{
    return matmul_prepare_dense(p, MATMUL_PLAIN, scales_of(p), plan);
}

static uint64_t scale_bytes(const struct matmul *m)
{
    return m->scales == MATMUL_BLOCK_SCALES
               ? round_up(matmul_scale_a_bytes(m)) + round_up(matmul_scale_b_bytes(m))
               : 0;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *, void *)
{
    const struct matmul m = matmul_of_dense(p, MATMUL_PLAIN, scales_of(p));
    return scale_bytes(&m) + MATMUL_WORKSPACE_BYTES;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *in = args->in, *out = args->out;
    if (!kg_is_call(p, args))
        return KG_BAD_ARGUMENT;
    const struct matmul m = matmul_of(p, MATMUL_PLAIN, scales_of(p), leading_of(&in[0]),
                                      leading_of(&in[1]), leading_of(out));
    char *const scales = args->workspace;
    struct matmul_operands o = {
        .a = in[0].data,
        .b = in[1].data,
        .scale_a = in[2].data,
        .scale_b = in[3].data,
        .d = out->data,
        .workspace = scales + scale_bytes(&m),
        .stream = args->stream,
    };
    if (args->workspace_bytes < scale_bytes(&m) + MATMUL_WORKSPACE_BYTES)
        return KG_BAD_ARGUMENT;
    if (!kg_is_aligned(&in[0], 16) || !kg_is_aligned(&in[1], 16) || !kg_is_aligned(out, 16))
        return KG_UNSUPPORTED;
    if (m.scales == MATMUL_BLOCK_SCALES) {
        float *const a = (float *)scales;
        float *const b = (float *)(scales + round_up(matmul_scale_a_bytes(&m)));
        KG_TRY(arrange_scales(&in[2], &in[3], a, b, args->stream));
        o.scale_a = a;
        o.scale_b = b;
    }
    return matmul_launch(&m, args->plan, &o);
}

CUBLASLT_KERNEL(gemm_fp8, supports, workspace_bytes);
CUBLASLT_KERNEL(gemm_fp8_block, supports, workspace_bytes);
