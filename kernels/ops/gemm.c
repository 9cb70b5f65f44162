/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: C = A B. */
#include "kernels/ops/product.h"

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL},
    {"b", "kn", OP_FACTOR, NULL},
    {"c", "mn", OP_OUT, .whole = "k"},
};

const struct op op_gemm = {
    .name = "gemm",
    .sizes = product_sizes_mnk,
    .n_sizes = 3,
    .tensors = tensors,
    .n_tensors = 3,
    .id = "mnk",
    .multilinear = true,
    .flops = product_flops,
    .cut = 'k',
    .patterns = product_patterns,
    .n_patterns = PRODUCT_PATTERNS_SPECIAL,
    .sharpest = PROBE_INTEGERS,
    .change = product_change,
    .reference = product_reference,
    .element = product_element,
};
