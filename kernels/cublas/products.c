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

static enum kg_status prepare(const struct kg_problem *p, enum matmul_epilogue epilogue,
                              void **plan)
{
    struct matmul_plan *plans = NULL;
    const struct matmul m = matmul_of_dense(p, epilogue, MATMUL_NO_SCALES);
    const enum kg_status status = matmul_prepare(&m, &plans);
    *plan = plans;
    return status;
}

/* The product, into `d` with rows ldd apart. */
static enum kg_status multiply(const struct kg_problem *p, const struct kg_args *args,
                               enum matmul_epilogue epilogue, void *d, int64_t ldd, void *workspace)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1];
    const struct matmul m =
        matmul_of(p, epilogue, MATMUL_NO_SCALES, leading_of(a), leading_of(b), ldd);
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

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args,
                             enum matmul_epilogue epilogue)
{
    const struct kg_tensor *out = &args->out[0];
    const enum kg_status status =
        check(args, epilogue == MATMUL_PLAIN ? 2 : 3, MATMUL_WORKSPACE_BYTES);
    return status == KG_OK
               ? multiply(p, args, epilogue, out->data, leading_of(out), args->workspace)
               : status;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan)
{
    (void)plan;
    (void)p;
    (void)d;
    return MATMUL_WORKSPACE_BYTES;
}

/* ---- GEMM ---- */

static int supports_gemm(const struct kg_problem *p, const struct kg_device *d)
{
    return is_served(p, d, "gemm");
}

static enum kg_status prepare_gemm(const struct kg_problem *p, const struct kg_device *d,
                                   void **plan)
{
    (void)d;
    return prepare(p, MATMUL_PLAIN, plan);
}

static enum kg_status launch_gemm(const struct kg_problem *p, const struct kg_args *args)
{
    return launch(p, args, MATMUL_PLAIN);
}

const struct kg_kernel cublas_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemm",
    .name = "cublaslt_gemm",
    .supports = supports_gemm,
    .prepare = prepare_gemm,
    .workspace_bytes = workspace_bytes,
    .launch = launch_gemm,
    .release = matmul_release,
};

/* ---- the linear layer ---- */

static int supports_linear(const struct kg_problem *p, const struct kg_device *d)
{
    const struct matmul m = matmul_of_dense(p, MATMUL_BIAS, MATMUL_NO_SCALES);
    return is_served(p, d, "linear_relu") && matmul_rounds_once(&m);
}

static enum kg_status prepare_fused(const struct kg_problem *p, const struct kg_device *d,
                                    void **plan)
{
    (void)d;
    return prepare(p, MATMUL_RELU_BIAS, plan);
}

static enum kg_status launch_fused(const struct kg_problem *p, const struct kg_args *args)
{
    return launch(p, args, MATMUL_RELU_BIAS);
}

const struct kg_kernel cublas_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "cublaslt_linear_relu",
    .supports = supports_linear,
    .prepare = prepare_fused,
    .workspace_bytes = workspace_bytes,
    .launch = launch_fused,
    .release = matmul_release,
};

/* ---- the same in two steps ---- */

static uint64_t layer_bytes(const struct kg_problem *p)
{
    const uint64_t element = kg_dtype_bytes(kg_dtype(p));
    return round_up((uint64_t)kg_size(p, "m") * (uint64_t)kg_size(p, "n") * element);
}

static enum kg_status prepare_layers(const struct kg_problem *p, const struct kg_device *d,
                                     void **plan)
{
    (void)d;
    return prepare(p, MATMUL_BIAS, plan);
}

static uint64_t layers_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan)
{
    (void)plan;
    (void)d;
    return layer_bytes(p) + MATMUL_WORKSPACE_BYTES;
}

static enum kg_status launch_layers(const struct kg_problem *p, const struct kg_args *args)
{
    char *layer = args->workspace;
    enum kg_status status = check(args, 3, layer_bytes(p) + MATMUL_WORKSPACE_BYTES);
    if (status == KG_OK)
        status = multiply(p, args, MATMUL_BIAS, layer, kg_size(p, "n"), layer + layer_bytes(p));
    return status == KG_OK ? relu(layer, &args->out[0], args->stream) : status;
}

const struct kg_kernel eager_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "linear_then_relu",
    .supports = supports_linear,
    .prepare = prepare_layers,
    .workspace_bytes = layers_bytes,
    .launch = launch_layers,
    .release = matmul_release,
};
