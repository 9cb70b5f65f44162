/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu.c: Y = max(0, X W^T + b) as one cuBLASLt product with the RELU_BIAS epilogue: bias
 * and ReLU are applied to the fp32 sums before they are rounded and stored.
 */
#include "kernels/cublas/kernels.h"
#include "kernels/cublas/matmul.h"

static struct matmul matmul_of(const struct kg_problem *p, int64_t ldx, int64_t ldw, int64_t ldy)
{
    return (struct matmul){
        .dtype = kg_dtype(p),
        .tf32 = (p->flags & KG_FLAG_TF32) != 0,
        .transpose_b = true,
        .epilogue = MATMUL_RELU_BIAS,
        .m = kg_size(p, "m"),
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .lda = ldx,
        .ldb = ldw,
        .ldd = ldy,
    };
}

static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    const struct matmul m = matmul_of(p, kg_size(p, "k"), kg_size(p, "k"), kg_size(p, "n"));
    return is_served(p, d, "linear_relu") && matmul_rounds_once(&m);
}

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *d, void **plan)
{
    struct matmul_plan *plans = NULL;
    (void)d;
    const struct matmul m = matmul_of(p, kg_size(p, "k"), kg_size(p, "k"), kg_size(p, "n"));
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
    const struct kg_tensor *x = &args->in[0], *w = &args->in[1], *b = &args->in[2];
    const struct kg_tensor *y = &args->out[0];
    if (args->n_in != 3 || args->n_out != 1 || args->workspace_bytes < MATMUL_WORKSPACE_BYTES)
        return KG_BAD_ARGUMENT;
    if (!have_unit_columns(args->in, 3) || !have_unit_columns(args->out, 1))
        return KG_UNSUPPORTED;
    const struct matmul m = matmul_of(p, leading_of(x), leading_of(w), leading_of(y));
    return matmul_launch(&m, args->plan,
                         &(struct matmul_operands){.a = x->data,
                                                   .b = w->data,
                                                   .bias = b->data,
                                                   .d = y->data,
                                                   .workspace = args->workspace,
                                                   .stream = args->stream});
}

const struct kg_kernel cublas_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "cublaslt_linear_relu",
    .supports = supports,
    .prepare = prepare,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
    .release = matmul_release,
};
