/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h: what ops share whose outputs are sums of products of two factors.
 *
 * The sum goes over one axis. All other axes of the first factor, then those of the second one that
 * the first has not, are the output's axes, in this order; axes of both are batches.
 */
#ifndef KG_OPS_PRODUCT_H
#define KG_OPS_PRODUCT_H

#include "kernels/ops/pattern.h"

/* Sizes of most of these ops, in this order. */
enum { M, N, K };
extern const struct op_size product_sizes_mnk[3];

double product_flops(const struct kg_problem *p);
enum kg_status product_reference(const struct kg_problem *p, const struct kg_tensor *in,
                                 double *const *out, int threads);
double product_element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                       int64_t flat);

/* The first PRODUCT_PATTERNS are for all. Those after them have NaN and infinities, which kernel.h
 * allows in plain products alone; the last one is of use where the second factor is a vector. */
#define PRODUCT_PATTERNS (6 + PLAIN_PATTERNS)
#define PRODUCT_PATTERNS_SPECIAL (PRODUCT_PATTERNS + 2)
#define PRODUCT_PATTERNS_VECTOR (PRODUCT_PATTERNS + 3)
extern const struct op_pattern product_patterns[PRODUCT_PATTERNS_VECTOR];

/* An op of one product, or what is made of it, whose tensors are in `tensors`. */
#define PRODUCT_OP(symbol, its_name, its_sizes, its_id, how_many_patterns, its_reference,          \
                   its_element)                                                                    \
    const struct op symbol = {                                                                     \
        .name = its_name,                                                                          \
        .sizes = its_sizes,                                                                        \
        .n_sizes = sizeof its_sizes / sizeof its_sizes[0],                                         \
        .tensors = tensors,                                                                        \
        .n_tensors = sizeof tensors / sizeof tensors[0],                                           \
        .id = its_id,                                                                              \
        .multilinear = true,                                                                       \
        .flops = product_flops,                                                                    \
        .cut = 'k',                                                                                \
        .patterns = product_patterns,                                                              \
        .n_patterns = how_many_patterns,                                                           \
        .sharpest = PROBE_INTEGERS,                                                                \
        .change = product_change,                                                                  \
        .reference = its_reference,                                                                \
        .element = its_element,                                                                    \
    }

void product_change(const struct probing *x);

/* For the patterns of ops that are related. */
bool product_cannot_cancel(const struct kg_problem *p);
double product_slack(const struct kg_problem *p);
pattern_fn product_integer, product_constant;
void product_finish_integers(const struct probing *x);
void product_finish_special(const struct probing *x);

/* Exponents of what multiplies the integers from -4 to 4, see product_patterns.c. */
struct exponents {
    int outer_least, outer_most, step; /* of rows and columns; steps from -step to step */
    int largest;                       /* of an element */
};

struct exponents product_exponents(const struct kg_problem *p, int64_t terms);

#endif
