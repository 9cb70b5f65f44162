/* SPDX-License-Identifier: Apache-2.0 */
/* gemv.c: y = A x. */
#include "kernels/ops/product.h"

static const struct op_size sizes[] = {OP_SIZE(0, m, 'm'), OP_SIZE(1, k, 'k')};

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL},
    {"x", "k", OP_FACTOR, NULL},
    {"y", "m", OP_OUT, .whole = "k"},
};

PRODUCT_OP(op_gemv, "gemv", sizes, "mk", PRODUCT_PATTERNS_VECTOR, product_reference,
           product_element);
