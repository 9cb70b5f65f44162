/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/pattern.h"

#include <math.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

#define NORMALS 65536 /* a power of two */

static double normals[NORMALS];

double pattern_normal(uint64_t seed, int64_t index)
{
    for (int64_t i = 0; i < NORMALS && normals[NORMALS - 1] == 0; i++) /* Box and Muller */
        normals[i] = sqrt(-2 * log(pattern_uniform(0, 2 * i))) *
                     cos(2 * M_PI * pattern_uniform(0, 2 * i + 1));
    return normals[seed_at(seed, (uint64_t)index) % NORMALS];
}

int64_t pattern_elements(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

int64_t pattern_offset(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return at;
}

void pattern_put(const struct kg_tensor *t, int64_t flat, double value)
{
    storage_put(t->data, t->dtype, pattern_offset(t, flat), value);
}

struct drawn_rows {
    pattern_fn *value;
    const struct drawing *d;
    const struct kg_tensor *t;
    int64_t columns;
};

/* Row by row, whose elements are neighbours. */
static void draw_rows(void *context, int, int64_t first, int64_t end)
{
    const struct drawn_rows *r = context;
    for (int64_t row = first; row < end; row++) {
        const int64_t flat = row * r->columns, at = pattern_offset(r->t, flat);
        for (int64_t c = 0; c < r->columns; c++)
            storage_put(r->t->data, r->t->dtype, at + c, r->value(r->d, flat + c));
    }
}

void pattern_draw(pattern_fn *value, const struct drawing *d, const struct kg_tensor *t)
{
    struct drawn_rows rows = {value, d, t, t->shape[t->rank - 1]};
    /* Two numbers of 4 bits share a byte, and rows of them may. */
    const int threads = kg_dtype_bits(t->dtype) < 8 ? 1 : rows_threads(d->n);
    (void)pattern_normal(0, 0); /* the table, before threads use it */
    rows_for_each(d->n / rows.columns, threads, draw_rows, &rows);
}

double pattern_get(const struct kg_tensor *t, int64_t flat)
{
    return storage_get(t->data, t->dtype, pattern_offset(t, flat));
}

int64_t pattern_large_element(const struct kg_tensor *t, uint64_t seed)
{
    int64_t n = pattern_elements(t), found = 0;
    for (int64_t i = 0; i < PATTERN_TRIES; i++) {
        int64_t at = (int64_t)(seed_at(seed, (uint64_t)i) % (uint64_t)n);
        if (i == 0 || fabs(pattern_get(t, at)) > fabs(pattern_get(t, found)))
            found = at;
    }
    return found;
}

/* ---- shapes ---- */

/* A shape's reference and launches are on the host as often as not: products, most often much
 * fewer. */
#define PRODUCTS_MAX 0x1p20
#define LENGTH_MAX 4096
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int64_t draw_one(uint64_t *state, const int64_t *of, size_t n)
{
    return of[seed_next(state) % n];
}

double draw_products(uint64_t *state)
{
    return PRODUCTS_MAX / exp2((double)(seed_next(state) % 5));
}

int64_t draw_length(uint64_t *state, double most)
{
    static const int64_t tiles[] = {8, 16, 32, 64, 128, 256, 512},
                         counts[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9};
    if (most > LENGTH_MAX)
        most = LENGTH_MAX;
    for (unsigned tries = 0; tries < 8; tries++) {
        int64_t tile = draw_one(state, tiles, COUNT(tiles));
        const int64_t rests[] = {0, 1, tile - 1, tile / 2,
                                 (int64_t)(seed_next(state) % 512) % tile};
        int64_t n =
            tile * draw_one(state, counts, COUNT(counts)) + draw_one(state, rests, COUNT(rests));
        if (n >= 1 && (double)n <= most)
            return n;
    }
    return 1 + (int64_t)(seed_next(state) % (uint64_t)(most < 1 ? 1 : most));
}

/* ---- patterns ---- */

static const struct {
    const char *name;
    bool exact;
    const char *class; /* NULL: the name */
} probes[PROBES] = {
    [PROBE_NORMAL] = {"random normal", false},
    [PROBE_UNIFORM] = {"random in [0, 1)", false, "random uniform"},
    [PROBE_INTEGERS] = {"exact integers", true},
    [PROBE_CANCELLATION] = {"exact cancellation", true},
    [PROBE_EXPONENTS] = {"exact powers of two", true},
    [PROBE_SPECIAL] = {"NaN and infinity", true, "nan and infinity"},
    [PROBE_SPECIAL_SECOND] = {"NaN and infinity in the second input", true,
                              "nan and infinity in second"},
    [PROBE_NAN_SECOND] = {"NaN in the second input", true, "nan in second"},
    [PROBE_CONSTANT] = {"constant until near the end", false, "constant"},
    [PROBE_ZERO_FIRST] = {"zeros in the first input", false, "zeros"},
    [PROBE_ZERO_SECOND] = {"zeros in the second input", false, "zeros"},
    [PROBE_ZERO_THIRD] = {"zeros in another input", false, "zeros"},
    [PROBE_ZERO_PARTS] = {"rows and tiles of zeros", false, "zeros"},
    [PROBE_ONE_VALUE] = {"one value", false},
    [PROBE_RETRIEVAL] = {"retrieval", false},
    [PROBE_RAMP] = {"score ramp", false},
    [PROBE_MASKED] = {"huge masked keys", false},
    [PROBE_SHIFTED] = {"shifted scores", false},
    [PROBE_STRETCHED] = {"stretched scores", false},
    [PROBE_FAINT] = {"faint keys", false},
    [PROBE_LOW] = {"low scores", false},
    [PROBE_LARGEST] = {"exact largest and smallest", true, "exact largest"},
    [PROBE_NAN] = {"NaN", false, "nan and infinity"},
};

const char *probe_name(enum probe probe)
{
    return probes[probe].name;
}

const char *probe_class(enum probe probe)
{
    return probes[probe].class ? probes[probe].class : probes[probe].name;
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
                uint64_t seed)
{
    const struct op_pattern *pattern = pattern_of(probe, p);
    for (unsigned i = 0; i < p->n_in; i++) {
        const struct drawing d = pattern_drawing(p, in, i, seed);
        if (op_of(p)->tensors[i].role == OP_INDICES)
            op_of(p)->fill(p, i, &in[i], d.n, NULL, d.seed);
        else if (op_of(p)->tensors[i].role == OP_SCALE)
            pattern_draw_scales(&d, &in[i], probe_is_exact(probe));
        else
            pattern_draw(pattern->value, &d, &in[i]);
    }
    if (pattern->finish)
        pattern->finish(&(struct probing){probe, p, in, seed});
}

void probe_change(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                  uint64_t seed)
{
    op_of(p)->change(&(struct probing){probe, p, in, seed});
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
        bool in_range = 8 * sqrt(terms) * (a + 1) * (2 * a + 1) / 6 <= out->max;
        if (exact && (in_range || !dtype_is_narrow(out)))
            return a;
    }
    return 1;
}

/* ---- tensors, rows and tiles of zeros, and tensors of one value, for any op ---- */

#define TILE 64

double plain_normal(const struct drawing *d, int64_t flat)
{
    return pattern_normal(d->seed, flat);
}

/* In [0, 1), so that no sum cancels. */
double plain_uniform(const struct drawing *d, int64_t flat)
{
    return pattern_uniform(d->seed, flat);
}

/* Beside zeros a factor has negative numbers alone, and in an op without factors any input: what
 * seeks the largest one finds none. A bias or a mask would leave nothing else then. */
static double beside_zeros(const struct drawing *d, int64_t flat)
{
    const struct op_tensor *tensors = op_of(d->p)->tensors;
    const bool negative = tensors[d->tensor].role == OP_FACTOR || tensors[0].role != OP_FACTOR;
    return plain_uniform(d, flat) - negative;
}

double plain_zero_first(const struct drawing *d, int64_t flat)
{
    return d->tensor == 0 ? 0 : beside_zeros(d, flat);
}

double plain_zero_second(const struct drawing *d, int64_t flat)
{
    return d->tensor == 1 ? 0 : beside_zeros(d, flat);
}

bool plain_has_third(const struct kg_problem *p)
{
    return op_inputs(op_of(p)) > 2 && op_of(p)->tensors[2].role != OP_INDICES;
}

double plain_zero_third(const struct drawing *d, int64_t flat)
{
    return d->tensor == 2 + d->all % (d->p->n_in - 2) ? 0 : beside_zeros(d, flat);
}

/* Every third row, every other tile of what is left, and of that two of each four neighbours. */
double plain_zero_parts(const struct drawing *d, int64_t flat)
{
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const int64_t columns = shape.size[shape.rank - 1], row = flat / columns,
                  column = flat % columns;
    const bool zero =
        row % 3 == 1 || (row / TILE + column / TILE) % 2 == 0 ||
        (column + (int64_t)(seed_at(d->seed, (uint64_t)(flat - column % 4)) % 4)) % 4 < 2;
    return shape.rank > 1 && zero ? 0 : plain_uniform(d, flat);
}

/* One of few bits, so that sums of it are exact, and not 0 or 1. The first two inputs are each
 * other's size, so that what they make is near 1. */
double plain_one_value(const struct drawing *d, int64_t)
{
    const int octave = pattern_integer(d->all, -1, -6, 6);
    const uint64_t own = seed_at(d->all, d->tensor);
    return pattern_sign(own, 1) *
           ldexp(1 + 0.25 * pattern_integer(own, 2, 1, 3), d->tensor == 0   ? octave
                                                           : d->tensor == 1 ? -octave
                                                                            : 0);
}
