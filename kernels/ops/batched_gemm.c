/* SPDX-License-Identifier: Apache-2.0 */
/* batched_gemm.c: C = A B, once for each batch. */
#include "kernels/ops/product.h"

static const struct op_size sizes[] = {
    {.key = "b", .id = "b", .axis = 'b', .kind = OP_COUNT, .at = 0, .classes = 4, .few = 3},
    OP_SIZE(1, m, 'm'),
    OP_SIZE(2, n, 'n'),
    OP_SIZE(3, k, 'k'),
};

static const struct op_tensor tensors[] = {
    {"a", "bmk", OP_FACTOR, NULL},
    {"b", "bkn", OP_FACTOR, NULL},
    {"c", "bmn", OP_OUT, .whole = "k"},
};

PRODUCT_OP(op_batched_gemm, "batched_gemm", sizes, "bmnk", PRODUCT_PATTERNS_SPECIAL,
           product_reference, product_element);
