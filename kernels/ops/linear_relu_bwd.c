/* SPDX-License-Identifier: Apache-2.0 */
/* linear_relu_bwd.c: G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/product.h"
#include "kernels/ops/rows.h"

static const struct op_tensor tensors[] = {
    {"dy", "mn", OP_FACTOR, NULL},      {"x", "mk", OP_FACTOR, NULL},
    {"w", "nk", OP_FACTOR, NULL},       {"y", "mn", OP_INPUT, NULL},
    {"dx", "mk", OP_OUT, .whole = "n"}, {"dw", "nk", OP_OUT, .whole = "m"},
    {"db", "n", OP_OUT, .whole = "m"},
};

static double flops(const struct kg_problem *p)
{
    return 4.0 * (double)p->size[M].value * (double)p->size[N].value * (double)p->size[K].value;
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    const int64_t m = p->size[M].value, n = p->size[N].value, k = p->size[K].value;
    double *g = rows_decoded(&in[0]), *x = rows_decoded(&in[1]);
    double *w = rows_decoded(&in[2]), *y = rows_decoded(&in[3]);
    enum kg_status status = KG_LAUNCH_FAILED;
    if (!g || !x || !w || !y)
        goto out;
    for (int64_t i = 0; i < m * n; i++)
        g[i] = y[i] > 0.0 ? g[i] : 0.0;
    rows_multiply(m, threads, (struct rows_product){g, w, out[0], k, n});
    memset(out[2], 0, (size_t)n * sizeof *out[2]);
    for (int64_t i = 0; i < m; i++)
        rows_add(out[2], g + i * n, 1.0, n);
    g = rows_transposed(g, 1, m, n);
    if (!g)
        goto out;
    rows_multiply(n, threads, (struct rows_product){g, x, out[1], k, m});
    status = KG_OK;
out:
    free(g);
    free(x);
    free(w);
    free(y);
    return status;
}

static double at(const struct kg_tensor *t, int64_t i, int64_t j)
{
    return rows_at(t, i, j, 0, 0);
}

static double gradient(const struct kg_tensor *in, int64_t i, int64_t j)
{
    return at(&in[3], i, j) > 0.0 ? at(&in[0], i, j) : 0.0;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                      int64_t flat)
{
    const int64_t m = p->size[M].value, n = p->size[N].value, k = p->size[K].value;
    int64_t row = flat / k, column = flat % k;
    double sum = 0.0;
    if (out == 0)
        for (int64_t j = 0; j < n; j++)
            sum += gradient(in, row, j) * at(&in[2], j, column);
    else if (out == 1)
        for (int64_t i = 0; i < m; i++)
            sum += gradient(in, i, row) * at(&in[1], i, column);
    else
        for (int64_t i = 0; i < m; i++)
            sum += gradient(in, i, flat);
    return sum;
}

/* Terms of dX, dW and db alike have one exponent for each sum. */
static double value_exponents(const struct drawing *d, int64_t flat)
{
    const struct kg_problem *p = d->p;
    struct exponents e = product_exponents(p, p->size[M].value + p->size[N].value);
    const uint64_t own = d->seed, shared = seed_at(d->all, 9);
    const bool dy = d->tensor == 0, w = d->tensor == 2;
    const bool narrow = dtype_is_narrow(dtype_of(p)); /* down to its subnormal numbers, for which W
                                                         makes room */
    int value = pattern_integer(own, flat, -4, 4);
    int unit = pattern_integer(shared, dy ? flat % p->size[N].value : flat / p->size[K].value,
                               narrow ? -20 : -e.step, e.step);
    if (narrow && w)
        e.outer_most = -8;
    if (dy)
        return ldexp(value, unit);
    if (d->tensor == 3) /* Y: half of them positive, of any size */
        return value > -2 ? ldexp(value, pattern_integer(own, ~flat, narrow ? -24 : -126,
                                                         narrow ? 13 : 125))
                          : 0;
    return ldexp(value, pattern_integer(own, flat % p->size[K].value, e.outer_least, e.outer_most) -
                            (w ? unit : 0));
}

static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, product_cannot_cancel, .value = plain_normal, .slack = product_slack},
    {PROBE_UNIFORM, .value = plain_uniform, .slack = product_slack},
    {PROBE_INTEGERS, .value = product_integer, .finish = product_finish_integers},
    {PROBE_EXPONENTS, .value = value_exponents},
    {PROBE_CONSTANT, .value = product_constant},
    PLAIN_PATTERN_ROWS(product_slack),
};

const struct op op_linear_relu_bwd = {
    .name = "linear_relu_bwd",
    .sizes = product_sizes_mnk,
    .n_sizes = 3,
    .tensors = tensors,
    .n_tensors = 7,
    .id = "mkn",
    .multilinear = true,
    .flops = flops,
    .cut = 'k',
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .sharpest = PROBE_INTEGERS,
    .change = product_change,
    .reference = reference,
    .element = element,
};
