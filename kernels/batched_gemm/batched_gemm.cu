/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batched_gemm: C = A B for each batch, by the kernels of gemm/.
 *
 * Regime      fp16, bf16, fp32, TF32; any extents and layout; compute capability 8.0 and later
 */
#include "kernels/batched_gemm/batched_gemm.h"
#include "kernels/cuda/launch.cuh"

namespace batched_gemm
{

enum kg_status check_batches(const struct kg_tensor *t, const struct gemm_call *call, int64_t rows,
                             int64_t columns, struct gemm_matrix *matrix)
{
    if (!gemm_tensor_ok(t, call->dtype, 3) || t->shape[0] != call->batches)
        return KG_BAD_ARGUMENT;
    struct kg_tensor one = *t;
    one.rank = 2;
    for (int i = 0; i < 2; i++) {
        one.shape[i] = t->shape[i + 1];
        one.stride[i] = t->stride[i + 1];
    }
    const enum kg_status status = gemm_check_matrix(&one, call->dtype, rows, columns, matrix);
    matrix->apart = call->batches > 1 ? t->stride[0] : 0;
    return status;
}

enum kg_status call_of(const struct kg_problem *problem, const struct kg_args *args,
                       struct gemm_call *call)
{
    const struct product_sizes p = product_sizes_of(problem);
    *call = {};
    call->dtype = p.dtype;
    call->m = p.m;
    call->n = p.n;
    call->k = p.k;
    call->stream = args->stream;
    call->batches = kg_size(problem, "b");
    enum kg_status status = gemm_check_frame(&p, args, "batched_gemm", 2, 1);
    if (status == KG_OK)
        status = check_batches(&args->in[0], call, p.m, p.k, &call->a);
    if (status == KG_OK)
        status = check_batches(&args->in[1], call, p.k, p.n, &call->b);
    if (status == KG_OK)
        status = check_batches(&args->out[0], call, p.m, p.n, &call->c);
    return status;
}

bool serves(const struct kg_problem *p, const struct kg_device *device)
{
    const struct product_sizes s = product_sizes_of(p);
    return gemm_is_op(&s, "batched_gemm") && kg_size(p, "b") >= 1 &&
           gemm_serves(device, s.m, s.n, s.k) && (gemm_mma_dtype(&s) || gemm_simt_dtype(&s));
}

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return serves(p, device);
}

static enum kg_status prepare(const struct kg_problem *, const struct kg_device *, void **)
{
    return gemm_mma_nn_prepare();
}

static void move(struct gemm_matrix *matrix, int64_t batches, uint32_t dtype)
{
    matrix->data =
        (char *)matrix->data + batches * matrix->apart * (int64_t)gemm_element_bytes(dtype);
}

enum kg_status launch_plain(const struct kg_problem *problem, const struct gemm_call *all)
{
    const int64_t most = 65535; /* of a grid's second extent */
    const struct product_sizes s = product_sizes_of(problem);
    const bool mma = gemm_mma_dtype(&s);
    struct gemm_call part = *all;
    enum kg_status status = KG_OK;
    for (int64_t left = all->batches; left > 0 && status == KG_OK; left -= most) {
        part.batches = left < most ? left : most;
        status = mma ? gemm_mma_nn(&part) : gemm_simt_nn(&part);
        move(&part.a, most, part.dtype);
        move(&part.b, most, part.dtype);
        move(&part.c, most, part.dtype);
    }
    return status;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = call_of(p, args, &call);
    return status == KG_OK ? launch_plain(p, &call) : status;
}

} // namespace batched_gemm

extern "C" const struct kg_kernel kg_batched_gemm = {
    sizeof(struct kg_kernel), 0,    "batched_gemm",       "batched_gemm", batched_gemm::supports,
    batched_gemm::prepare,    NULL, batched_gemm::launch, NULL,
};
