/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm.c: Y = X / sqrt(mean of X^2 over a row + eps) * w. */
#include <math.h>
#include <stdlib.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/product.h"
#include "kernels/ops/rows.h"

static const struct op_size sizes[] = {OP_SIZE(0, m, 'm'), OP_SIZE(1, n, 'n')};

static double usual_eps(const struct kg_problem *)
{
    return 1e-6;
}

static const struct op_param eps = {"eps", 0, 1e-12, 1, usual_eps};

static const struct op_tensor tensors[] = {
    {"x", "mn", OP_INPUT, NULL},
    {"w", "n", OP_INPUT, NULL},
    {"y", "mn", OP_OUT, .whole = "n"},
};

/* A square, an addition and two products for each element. */
static double flops(const struct kg_problem *p)
{
    return 4.0 * (double)p->size[M].value * (double)p->size[N].value;
}

struct norm {
    const struct kg_problem *p;
    const double *x, *w;
    double *y;
};

static void norm_rows(void *context, int, int64_t first, int64_t end)
{
    const struct norm *norm = context;
    const int64_t n = norm->p->size[N].value;
    for (int64_t i = first; i < end; i++) {
        const double *x = norm->x + i * n;
        double squares = 0;
        for (int64_t j = 0; j < n; j++)
            squares += x[j] * x[j];
        const double root = sqrt(squares / (double)n + norm->p->param[0].value);
        for (int64_t j = 0; j < n; j++)
            norm->y[i * n + j] = x[j] / root * norm->w[j];
    }
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    double *x = rows_decoded(&in[0]), *w = rows_decoded(&in[1]);
    struct norm norm = {p, x, w, out[0]};
    if (x && w)
        rows_for_each(p->size[M].value, threads, norm_rows, &norm);
    enum kg_status status = x && w ? KG_OK : KG_LAUNCH_FAILED;
    free(x);
    free(w);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                      int64_t flat)
{
    const int64_t row = flat / p->size[N].value, column = flat % p->size[N].value;
    double mean = 0;
    for (int64_t j = 0; j < p->size[N].value; j++)
        mean += pow(rows_at(&in[0], row, j, 0, 0), 2) / (double)p->size[N].value;
    return rows_at(&in[0], row, column, 0, 0) * rows_at(&in[1], column, 0, 0, 0) /
           sqrt(mean + p->param[0].value);
}

/* In [0, 1) times a power of two for each row, such that the squares of many pass fp16: a row that
 * has another one's root, or a narrow sum, shows. */
static double value_of_any_size(const struct drawing *d, int64_t flat)
{
    const bool narrow = dtype_is_narrow(dtype_of(d->p));
    double value = pattern_uniform(d->seed, flat);
    int octave = pattern_integer(~d->seed, flat / d->p->size[N].value, -8, narrow ? 15 : 40);
    return d->tensor ? value - 0.5 : ldexp(value, octave);
}

static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, .value = plain_normal},
    {PROBE_UNIFORM, .value = value_of_any_size,
     .name = "random in [0, 1), times a power of two for each row"},
    {PROBE_CONSTANT, .value = product_constant},
    PLAIN_PATTERN_ROWS(NULL),
};

/* The sign of an element, which is large, is that of its result. */
static void change(const struct probing *x)
{
    product_change(&(struct probing){PROBE_NORMAL, x->p, x->in, x->seed});
}

const struct op op_rmsnorm = {
    .name = "rmsnorm",
    .sizes = sizes,
    .n_sizes = 2,
    .param = &eps,
    .tensors = tensors,
    .n_tensors = 3,
    .id = "mn",
    .flops = flops,
    .cut = 'm',
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .sharpest = PROBE_UNIFORM,
    .change = change,
    .reference = reference,
    .element = element,
};
