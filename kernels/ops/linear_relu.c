/* SPDX-License-Identifier: Apache-2.0 */
/* linear_relu.c: Y = max(0, X W^T + b). */
#include <stdlib.h>

#include "kernels/ops/product.h"
#include "kernels/ops/rows.h"

static const struct op_tensor tensors[] = {
    {"x", "mk", OP_FACTOR, NULL},
    {"w", "nk", OP_FACTOR, NULL},
    {"b", "n", OP_ADDEND, NULL},
    {"y", "mn", OP_OUT, .whole = "k"},
};

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    enum kg_status status = product_reference(p, in, out, threads);
    double *bias = rows_decoded(&in[2]);
    if (!bias)
        status = KG_LAUNCH_FAILED;
    for (int64_t i = 0; i < p->size[M].value * p->size[N].value && status == KG_OK; i++)
        out[0][i] = rows_relu(out[0][i] + bias[i % p->size[N].value]);
    free(bias);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                      int64_t flat)
{
    return rows_relu(rows_at(&in[2], flat % p->size[N].value, 0, 0, 0) +
                     product_element(p, in, out, flat));
}

/* The id has the order in which the shapes of linear layers are quoted. */
PRODUCT_OP(op_linear_relu, "linear_relu", product_sizes_mnk, "mkn", PRODUCT_PATTERNS, reference,
           element);
