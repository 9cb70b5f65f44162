/* SPDX-License-Identifier: Apache-2.0 */
/* gemv.c: y = A x. */
#include "kernels/ops/product.h"

static const struct op_size sizes[] = {OP_SIZE(0, m, 'm'), OP_SIZE(1, k, 'k')};

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL},
    {"x", "k", OP_FACTOR, NULL},
    {"y", "m", OP_OUT, .whole = "k"},
};

const struct op op_gemv = {
    .name = "gemv",
    .sizes = sizes,
    .n_sizes = 2,
    .tensors = tensors,
    .n_tensors = 3,
    .id = "mk",
    .multilinear = true,
    .flops = product_flops,
    .cut = 'k',
    .patterns = product_patterns,
    .n_patterns = PRODUCT_PATTERNS_VECTOR,
    .sharpest = PROBE_INTEGERS,
    .change = product_change,
    .reference = product_reference,
    .element = product_element,
};
