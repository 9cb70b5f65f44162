/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_sm90: C = A B by wgmma, both operands row-major (B is MN-major: no transposes).
 *
 * Regime      fp16, bf16; lines of 16-byte multiples; compute capability 9.0. Lines of a view that
 *             are not, go to gemm_mma
 * Tiles       turned, 16 to 256 rows x 128: the rows are the columns of the tensor core's product.
 *             k in up to 8 shares, of all tiles or of those that whole waves leave over; the blocks
 *             of a cluster add them up in one order. Or stream-K: the stages of all tiles of 256
 *             rows in equal pieces, sums of cut tiles in the workspace. Or 128 x 128, clusters of 2
 *             share B, or 128 x 256 for thin products. gemm_policy_sm90.h chooses
 * Roles       one producer thread (24 registers), two consumer warpgroups (240); 168 at entry. Up
 *             to 64 rows: 80 for all, two blocks a multiprocessor
 * Shared      224 KB: stages 192, staging of C 32; less for the other tiles
 * Order       persistent, waves of about 2048 x 2048; a tile leaves while the next is multiplied
 * Measured    bf16: 172.7 us at 4096^3, 1340 us at 8192^3 (796 and 821 TFLOP/s; cuBLASLt 178.3 and
 *             1368); the tensor cores alone reach 900 for a millisecond. 16 x 4096 x 4096 11.5 us
 *             (13.3), 1000 x 5120 x 5120 77 us (69.6)
 */
#include "kernels/gemm/gemm_sm90.cuh"

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "gemm") && problem->dtype != KG_F32 && gemm_mma_dtype(problem) &&
           gemm_sm90_serves(problem, device, problem->k, problem->n);
}

static enum kg_status run(const struct product_sizes *problem, const struct gemm_call *call)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    return problem->dtype == KG_F16    ? gemm_sm90::run<__half, false, false>(m, n, k, call)
           : problem->dtype == KG_BF16 ? gemm_sm90::run<__nv_bfloat16, false, false>(m, n, k, call)
                                       : KG_UNSUPPORTED;
}

static enum kg_status prepare(const struct product_sizes *problem, const struct kg_device *)
{
    const enum kg_status status = gemm_mma_nn_prepare();
    return status == KG_OK ? run(problem, NULL) : status;
}

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *device)
{
    const struct gemm_sm90_product product = {problem->m, problem->n, problem->k, false};
    return problem->dtype == KG_F32 ? 0 : gemm_sm90_workspace(&product, device->sm_count);
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, false, &call);
    if (status != KG_OK)
        return status;
    if (!gemm_sm90_reaches_all(&call))
        return gemm_mma_nn(&call);
    return run(problem, &call);
}

extern "C" const struct kg_kernel kg_gemm_sm90 =
    kernel_of<product_sizes, supports, prepare, workspace_bytes, launch>("gemm", "gemm_sm90");
