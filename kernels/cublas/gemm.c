/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: C = A B as one cuBLASLt product. */
#include "kernels/cublas/kernels.h"
#include "kernels/cublas/matmul.h"

static struct matmul matmul_of(const struct kg_problem *p, int64_t lda, int64_t ldb, int64_t ldc)
{
    return (struct matmul){
        .dtype = kg_dtype(p),
        .tf32 = (p->flags & KG_FLAG_TF32) != 0,
        .m = kg_size(p, "m"),
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .lda = lda,
        .ldb = ldb,
        .ldd = ldc,
    };
}

static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    return is_served(p, d, "gemm");
}

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *d, void **plan)
{
    struct matmul_plan *plans = NULL;
    (void)d;
    const struct matmul m = matmul_of(p, kg_size(p, "k"), kg_size(p, "n"), kg_size(p, "n"));
    const enum kg_status status = matmul_prepare(&m, &plans);
    *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan)
{
    (void)plan;
    (void)p;
    (void)d;
    return MATMUL_WORKSPACE_BYTES;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    if (args->n_in != 2 || args->n_out != 1 || args->workspace_bytes < MATMUL_WORKSPACE_BYTES)
        return KG_BAD_ARGUMENT;
    if (!have_unit_columns(args->in, 2) || !have_unit_columns(args->out, 1))
        return KG_UNSUPPORTED;
    const struct matmul m = matmul_of(p, leading_of(a), leading_of(b), leading_of(c));
    return matmul_launch(&m, args->plan,
                         &(struct matmul_operands){.a = a->data,
                                                   .b = b->data,
                                                   .d = c->data,
                                                   .workspace = args->workspace,
                                                   .stream = args->stream});
}

const struct kg_kernel cublas_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemm",
    .name = "cublaslt_gemm",
    .supports = supports,
    .prepare = prepare,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
    .release = matmul_release,
};
