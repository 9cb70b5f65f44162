/* SPDX-License-Identifier: Apache-2.0 */
/*
 * right_sums.h: sums of products in fp32 as right kernels have them, in several orders and with all
 * that kernel.h allows; and kernels made of them, which verification must call right.
 */
#ifndef TESTS_UNIT_RIGHT_SUMS_H
#define TESTS_UNIT_RIGHT_SUMS_H

#include <math.h>
#include <stdbool.h>

#include "kernels/ops/half.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/pattern.h"

enum order { IN_ORDER, BACKWARD, IN_LANES, IN_HALVES, ORDERS };

struct way {
    enum order order;
    int block; /* keys of a step of the online soft-max */
    bool fused, scale_first, base2, rounds_weights, truncates;
    bool rounds_gradients, from_rounded; /* backward: dS, made from rounded weights */
    int bits_lost;                       /* of the mantissa of fp32 factors: too many are wrong */
    bool rounds_sums, loses_key;         /* backward, wrong: D in the dtype; the last key */
};

static inline float factor(const struct kg_problem *p, const struct way *w, float value)
{
    const int lost = p->flags & KG_FLAG_TF32 ? 13 : w->bits_lost;
    const uint32_t unit = 1u << lost, half = w->truncates || !lost ? 0 : unit / 2;
    return kg_float_from_bits((kg_float_bits(value) + half) & ~(unit - 1));
}

static inline float add(const struct way *w, float sum, float a, float b)
{
    float product = a * b;
    return w->fused ? fmaf(a, b, sum) : sum + product;
}

static inline float dot(const struct way *w, const float *a, const float *b, int n)
{
    float lane[8] = {0};
    if (w->order == IN_HALVES && n > 4)
        return dot(w, a, b, n / 2) + dot(w, a + n / 2, b + n / 2, n - n / 2);
    for (int i = 0; i < n; i++) {
        int at = w->order == BACKWARD ? n - 1 - i : i;
        float *sum = &lane[w->order == IN_LANES ? at % 8 : 0];
        *sum = add(w, *sum, a[at], b[at]);
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* exp(score - reference) */
static inline float weight_of(const struct way *w, float score, float reference)
{
    const float log2e = 1.44269504f;
    return w->base2 ? exp2f(fmaf(score, log2e, -reference * log2e)) : expf(score - reference);
}

static inline float rounded_to(uint32_t dtype, float value)
{
    float stored = 0;
    kg_store_float(&stored, dtype, 0, value);
    return kg_load_float(&stored, dtype, 0);
}

/* All outputs of a problem in fp32, not yet rounded to their dtype. */
typedef void right_kernel(const struct kg_problem *p, const struct way *w,
                          const struct kg_tensor *in, float *const *out);

/* Fills the inputs, and with an odd seed changes them. The largest share of a limit that an output
 * of this kernel has; over 1: verification calls it wrong, as `text` says. */
double right_share(const struct kg_problem *p, enum probe probe, right_kernel *kernel,
                   const struct way *w, uint64_t seed, char *text, size_t size);

struct right_ways {
    right_kernel *kernel;
    const struct way *ways;
    unsigned n_ways, seeds; /* of each pattern, or 1,000 in a long run */
    double least_share;     /* of a limit that is not all in vain; 0: any */
    struct kg_problem (*draw)(const char *op, const struct dtype *dtype, uint64_t *state);
};

/* On all patterns that apply. */
void right_check(const struct right_ways *r, const char *op, const struct dtype *dtype);

#endif
