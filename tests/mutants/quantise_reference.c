/* SPDX-License-Identifier: Apache-2.0 */
/* quantise_reference.c: what quantise_fp8.op.json and quantise_int8.op.json mean, before it is
 * rounded. All tensors are dense and of doubles. */
#include <math.h>

#include "kernels/problem.h"

static int supports(const struct kg_problem *, const struct kg_device *)
{
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n");
    const double *x = args->in[0].data, largest = kg_is_op(p, "quantise_int8") ? 127 : 448;
    double *q = args->out[0].data, *s = args->out[1].data;
    for (int64_t i = 0; i < m; i++, x += n, q += n) {
        double most = 0;
        for (int64_t j = 0; j < n; j++)
            most = fmax(most, fabs(x[j]));
        s[i] = most > 0 ? most / largest : 1;
        for (int64_t j = 0; j < n; j++)
            q[j] = x[j] / s[i];
    }
    return KG_OK;
}

static const struct kg_kernel fp8 = {
    .struct_bytes = sizeof fp8,
    .op = "quantise_fp8",
    .name = "fp8",
    .supports = supports,
    .launch = launch,
};
static const struct kg_kernel int8 = {
    .struct_bytes = sizeof int8,
    .op = "quantise_int8",
    .name = "int8",
    .supports = supports,
    .launch = launch,
};
static const struct kg_kernel *const kernels[] = {&fp8, &int8};
static const struct kg_library library = {
    .struct_bytes = sizeof library,
    .abi_version = KG_ABI_VERSION,
    .provider = "mine",
    .version = "1.0",
    .device_kind = KG_DEVICE_HOST,
    .n_kernels = 2,
    .kernels = kernels,
};

const struct kg_library *kg_library(void)
{
    return &library;
}
