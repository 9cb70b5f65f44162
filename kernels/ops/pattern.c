/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/pattern.h"

#include <math.h>
#include <string.h>

#include "kernels/ops/dtype.h"

static const struct {
    const char *name;
    bool exact;
} probes[PROBES] = {
    [PROBE_NORMAL] = {"random normal", false},
    [PROBE_UNIFORM] = {"random in [0, 1)", false},
    [PROBE_INTEGERS] = {"exact integers", true},
    [PROBE_CANCELLATION] = {"exact cancellation", true},
    [PROBE_EXPONENTS] = {"exact powers of two", true},
    [PROBE_SPECIAL] = {"NaN and infinity", true},
    [PROBE_SPECIAL_SECOND] = {"NaN and infinity in the second input", true},
    [PROBE_NAN_SECOND] = {"NaN in the second input", true},
    [PROBE_CONSTANT] = {"constant until near the end", false},
    [PROBE_ZERO_FIRST] = {"zeros in the first input", false},
    [PROBE_ZERO_SECOND] = {"zeros in the second input", false},
    [PROBE_ZERO_THIRD] = {"zeros in another input", false},
    [PROBE_ZERO_PARTS] = {"rows and tiles of zeros", false},
    [PROBE_ONE_VALUE] = {"one value", false},
    [PROBE_RETRIEVAL] = {"retrieval", false},
    [PROBE_RAMP] = {"score ramp", false},
    [PROBE_MASKED] = {"huge masked keys", false},
    [PROBE_SHIFTED] = {"shifted scores", false},
    [PROBE_STRETCHED] = {"stretched scores", false},
    [PROBE_FAINT] = {"faint keys", false},
    [PROBE_LOW] = {"low scores", false},
    [PROBE_LARGEST] = {"exact largest and smallest", true},
    [PROBE_NAN] = {"NaN", false},
};

const char *probe_name(enum probe probe)
{
    return probes[probe].name;
}

bool probe_is_exact(enum probe probe)
{
    return probes[probe].exact;
}

static const struct op_pattern *pattern_of(enum probe probe, const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_patterns; i++)
        if (op->patterns[i].probe == probe)
            return &op->patterns[i];
    return NULL;
}

const char *probe_text(enum probe probe, const struct kg_problem *p)
{
    const struct op_pattern *pattern = pattern_of(probe, p);
    return pattern && pattern->name ? pattern->name : probe_name(probe);
}

bool probe_applies(enum probe probe, const struct kg_problem *p)
{
    const struct op_pattern *pattern = pattern_of(probe, p);
    return pattern && (!pattern->applies || pattern->applies(p));
}

double probe_slack(enum probe probe, const struct kg_problem *p)
{
    const struct op_pattern *pattern = pattern_of(probe, p);
    return pattern && pattern->slack ? pattern->slack(p) : 0;
}

struct drawing pattern_drawing(const struct kg_problem *p, const struct kg_tensor *in, unsigned i,
                               uint64_t seed)
{
    const struct op *op = op_of(p);
    const struct op_tensor *t = &op->tensors[i];
    struct drawing d = {.p = p,
                        .tensor = i,
                        .n = pattern_elements(&in[i]),
                        .seed = seed_at(seed, i),
                        .all = seed,
                        .terms = 1,
                        .inner = 1,
                        .longest = op_longest_sum(p),
                        /* Of a mask the sign counts, and zeros are what must not pass. */
                        .largest = t->role == OP_INPUT ? 1 : probe_integers(p)};
    const char *sum = strchr(t->axes, *op->tensors[op_inputs(op)].whole);
    if (t->role != OP_FACTOR || !sum)
        return d;
    d.terms = in[i].shape[sum - t->axes];
    for (size_t r = (size_t)(sum - t->axes) + 1; t->axes[r]; r++)
        d.inner *= in[i].shape[r];
    return d;
}

void pattern_draw_scales(const struct drawing *d, const struct kg_tensor *t, bool exact)
{
    for (int64_t flat = 0; flat < d->n; flat++)
        pattern_put(t, flat, op_of(d->p)->scale(d, flat, exact));
}

void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                unsigned n_in, uint64_t seed)
{
    const struct op_pattern *pattern = pattern_of(probe, p);
    for (unsigned i = 0; i < n_in; i++) {
        const struct drawing d = pattern_drawing(p, in, i, seed);
        if (op_of(p)->tensors[i].role == OP_SCALE)
            pattern_draw_scales(&d, &in[i], probe_is_exact(probe));
        else
            pattern_draw(pattern->value, &d, &in[i]);
    }
    if (pattern->finish)
        pattern->finish(probe, p, in, n_in, seed);
}

void probe_change(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                  unsigned n_in, uint64_t seed)
{
    op_of(p)->change(probe, p, in, n_in, seed);
}

/* Sums are below 2^24 whatever the signs, factors fit their mantissa, and what is drawn hardly ever
 * leaves a narrow range: 8 times the deviation of a sum of random signs. */
int probe_integers(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    const struct dtype *d = dtype_of(p), *out = dtype_stored(p->dtype[p->n_in]);
    double terms = (double)op_longest_sum(p);
    for (unsigned i = 0; i < op->n_tensors; i++) {
        terms += op->tensors[i].role == OP_ADDEND;
        terms *= op->tensors[i].role == OP_SCALE ? 4 : 1; /* see gemm_fp8.c */
    }
    for (int a = d->factor < 7 ? 1 << d->factor : 128; a > 1; a--) {
        bool exact = terms * a * a <= 0x1p24;
        bool in_range = 8 * sqrt(terms) * a * (a + 1) / 3 <= out->max;
        if (exact && (in_range || !dtype_is_narrow(out)))
            return a;
    }
    return 1;
}
