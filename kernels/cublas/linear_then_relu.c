/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_then_relu.c: Y = max(0, X W^T + b) in two steps, as a framework that runs layer by layer
 * does it (PyTorch's relu(linear(x))):
 *
 *   1. T = X W^T + b   one cuBLASLt product with the BIAS epilogue, into the workspace
 *   2. Y = max(0, T)   one elementwise kernel (relu.cu)
 *
 * T is rounded to the dtype and the ReLU rounds nothing, so the result is rounded once. Workspace:
 * T, then the scratch of the product, from a multiple of 256.
 */
#include "kernels/cublas/kernels.h"
#include "kernels/cublas/matmul.h"
#include "kernels/cublas/relu.h"

static uint64_t layer_bytes(const struct kg_problem *p)
{
    const uint64_t element = kg_dtype_bytes(kg_dtype(p));
    return round_up((uint64_t)kg_size(p, "m") * (uint64_t)kg_size(p, "n") * element);
}

static struct matmul matmul_of(const struct kg_problem *p, int64_t ldx, int64_t ldw)
{
    return (struct matmul){
        .dtype = kg_dtype(p),
        .tf32 = (p->flags & KG_FLAG_TF32) != 0,
        .transpose_b = true,
        .epilogue = MATMUL_BIAS,
        .m = kg_size(p, "m"),
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .lda = ldx,
        .ldb = ldw,
        .ldd = kg_size(p, "n"),
    };
}

static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    const struct matmul m = matmul_of(p, kg_size(p, "k"), kg_size(p, "k"));
    return is_served(p, d, "linear_relu") && matmul_rounds_once(&m);
}

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *d, void **plan)
{
    struct matmul_plan *plans = NULL;
    (void)d;
    const struct matmul m = matmul_of(p, kg_size(p, "k"), kg_size(p, "k"));
    const enum kg_status status = matmul_prepare(&m, &plans);
    *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan)
{
    (void)plan;
    (void)d;
    return layer_bytes(p) + MATMUL_WORKSPACE_BYTES;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *x = &args->in[0], *w = &args->in[1];
    char *layer = args->workspace;
    if (args->n_in != 3 || args->n_out != 1 ||
        args->workspace_bytes < layer_bytes(p) + MATMUL_WORKSPACE_BYTES)
        return KG_BAD_ARGUMENT;
    if (!have_unit_columns(args->in, 3) || !have_unit_columns(args->out, 1))
        return KG_UNSUPPORTED;
    const struct matmul m = matmul_of(p, leading_of(x), leading_of(w));
    const enum kg_status status =
        matmul_launch(&m, args->plan,
                      &(struct matmul_operands){.a = x->data,
                                                .b = w->data,
                                                .bias = args->in[2].data,
                                                .d = layer,
                                                .workspace = layer + layer_bytes(p),
                                                .stream = args->stream});
    return status == KG_OK ? relu(layer, &args->out[0], args->stream) : status;
}

const struct kg_kernel eager_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "linear_then_relu",
    .supports = supports,
    .prepare = prepare,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
    .release = matmul_release,
};
