/* SPDX-License-Identifier: Apache-2.0 */
/*
 * products.c: GEMM and the linear layer as one cuBLASLt product.
 *
 * cublas_linear_relu has the RELU_BIAS epilogue: bias and ReLU are applied to the fp32 sums before
 * they are rounded and stored. eager_linear_relu takes two steps, as a framework that runs layer by
 * layer does it (PyTorch's relu(linear(x))):
 *
 *   1. T = X W^T + b   one product with the BIAS epilogue, into the workspace
 *   2. Y = max(0, T)   one elementwise kernel (relu.cu)
 *
 * T is rounded to the dtype and the ReLU rounds nothing, so the result is rounded once. Workspace:
 * T, then the scratch of the product, from a multiple of 256.
 */
#include "kernels/cublas/provider.h"

static enum matmul_epilogue epilogue_of(const struct kg_problem *p)
{
    return kg_is_op(p, "linear_relu") ? MATMUL_RELU_BIAS : MATMUL_PLAIN;
}

/* From one batch to the next, which of a single one may be anything. */
static int64_t batch_stride(const struct kg_tensor *t)
{
    return t->rank == 3 && t->shape[0] > 1 ? t->stride[0] : 0;
}

/* The product, into `d` with rows ldd apart. */
static enum kg_status multiply(const struct kg_problem *p, const struct kg_args *args,
                               enum matmul_epilogue epilogue, void *d, int64_t ldd, void *workspace)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1];
    struct matmul m = matmul_of(p, epilogue, MATMUL_NO_SCALES, leading_of(a), leading_of(b), ldd);
    m.stride_a = batch_stride(a);
    m.stride_b = batch_stride(b);
    m.stride_d = batch_stride(&args->out[0]);
    return matmul_launch(
        &m, args->plan,
        &(struct matmul_operands){.a = a->data,
                                  .b = b->data,
                                  .bias = epilogue == MATMUL_PLAIN ? NULL : args->in[2].data,
                                  .d = d,
                                  .workspace = workspace,
                                  .stream = args->stream});
}

static enum kg_status check(const struct kg_args *args, uint32_t n_in, uint64_t workspace_bytes)
{
    if (args->n_in != n_in || args->n_out != 1 || args->workspace_bytes < workspace_bytes)
        return KG_BAD_ARGUMENT;
    return have_unit_columns(args->in, n_in) && have_unit_columns(args->out, 1) ? KG_OK
                                                                                : KG_UNSUPPORTED;
}

static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    const struct matmul m = matmul_of_dense(p, epilogue_of(p), MATMUL_NO_SCALES);
    return is_served(p, d) && matmul_rounds_once(&m) && m.batches <= INT32_MAX;
}

/* ---- GEMM, also in batches, and the linear layer ---- */

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *, void **plan)
{
    return matmul_prepare_dense(p, epilogue_of(p), MATMUL_NO_SCALES, plan);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const enum matmul_epilogue epilogue = epilogue_of(p);
    const struct kg_tensor *out = &args->out[0];
    KG_TRY(check(args, epilogue == MATMUL_PLAIN ? 2 : 3, MATMUL_WORKSPACE_BYTES));
    return multiply(p, args, epilogue, out->data, leading_of(out), args->workspace);
}

CUBLASLT_KERNEL(gemm, supports, usual_workspace_bytes);
CUBLASLT_KERNEL(batched_gemm, supports, usual_workspace_bytes);
CUBLASLT_KERNEL(linear_relu, supports, usual_workspace_bytes);

/* ---- the layer in two steps ---- */

static uint64_t layer_bytes(const struct kg_problem *p)
{
    const uint64_t element = kg_dtype_bytes(kg_dtype(p));
    return round_up((uint64_t)kg_size(p, "m") * (uint64_t)kg_size(p, "n") * element);
}

static enum kg_status prepare_layers(const struct kg_problem *p, const struct kg_device *,
                                     void **plan)
{
    return matmul_prepare_dense(p, MATMUL_BIAS, MATMUL_NO_SCALES, plan);
}

static uint64_t layers_bytes(const struct kg_problem *p, const struct kg_device *, void *)
{
    return layer_bytes(p) + MATMUL_WORKSPACE_BYTES;
}

static enum kg_status launch_layers(const struct kg_problem *p, const struct kg_args *args)
{
    char *layer = args->workspace;
    KG_TRY(check(args, 3, layer_bytes(p) + MATMUL_WORKSPACE_BYTES));
    KG_TRY(multiply(p, args, MATMUL_BIAS, layer, kg_size(p, "n"), layer + layer_bytes(p)));
    return relu(layer, &args->out[0], args->stream);
}

const struct kg_kernel eager_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "linear_then_relu",
    .supports = supports,
    .prepare = prepare_layers,
    .workspace_bytes = layers_bytes,
    .launch = launch_layers,
    .release = matmul_release,
};
