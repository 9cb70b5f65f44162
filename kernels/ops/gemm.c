/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: C = A B. */
#include "kernels/ops/product.h"

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL},
    {"b", "kn", OP_FACTOR, NULL},
    {"c", "mn", OP_OUT, .whole = "k"},
};

PRODUCT_OP(op_gemm, "gemm", product_sizes_mnk, "mnk", PRODUCT_PATTERNS_SPECIAL, product_reference,
           product_element);
