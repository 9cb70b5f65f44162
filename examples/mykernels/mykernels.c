/* SPDX-License-Identifier: Apache-2.0 */
/* mykernels.c: a kernel library for the host with one kernel, C = A B in fp32. kernel.h is the
 * whole interface, and says what the gate asks of a kernel; problem.h has helpers. */
#include "problem.h"

/* Row-major with a leading dimension each, which may be more than the width. */
static void multiply(const struct kg_tensor *a, const struct kg_tensor *b,
                     const struct kg_tensor *c)
{
    for (int64_t i = 0; i < c->shape[0]; i++) {
        float *row = (float *)c->data + i * c->stride[0];
        for (int64_t j = 0; j < c->shape[1]; j++)
            row[j] = 0;
        for (int64_t k = 0; k < a->shape[1]; k++) {
            const float x = ((const float *)a->data)[i * a->stride[0] + k];
            const float *from = (const float *)b->data + k * b->stride[0];
            for (int64_t j = 0; j < c->shape[1]; j++)
                row[j] += x * from[j];
        }
    }
}

static int supports(const struct kg_problem *problem, const struct kg_device *device)
{
    (void)device;
    return kg_dtype(problem) == KG_F32;
}

static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    (void)problem;
    multiply(&args->in[0], &args->in[1], &args->out[0]);
    return KG_OK;
}

static const struct kg_kernel gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemm",
    .name = "my_gemm",
    .supports = supports,
    .launch = launch,
};
static const struct kg_kernel *const kernels[] = {&gemm};
static const struct kg_library library = {
    sizeof(library), KG_ABI_VERSION, "mine", "1.0", KG_DEVICE_HOST, 1, kernels};

const struct kg_library *kg_library(void)
{
    return &library;
}
