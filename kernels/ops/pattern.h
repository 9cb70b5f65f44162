/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h: inputs that show what random numbers hide.
 *
 * Each pattern fills the input tensors of a problem, in any layout, from a seed. Some make results
 * that every correct kernel must produce bit by bit, because no order of summation in fp32 can
 * round: there a single lost term, a wrong rounding of the output or a narrow accumulator shows.
 */
#ifndef KG_OPS_PATTERN_H
#define KG_OPS_PATTERN_H

#include "kernels/ops/op.h"
#include "kernels/ops/seed.h"

/* ---- random numbers by counter, and what of a tensor's elements a function says ---- */

/* The same for equal arguments: in (0, 1), of least to most, -1 or 1. */
static inline double pattern_uniform(uint64_t seed, int64_t index)
{
    return ((double)(seed_at(seed, (uint64_t)index) >> 11) + 0.5) * 0x1p-53;
}

static inline int pattern_integer(uint64_t seed, int64_t index, int least, int most)
{
    return least + (int)(seed_at(seed, (uint64_t)index) % (uint64_t)(most - least + 1));
}

static inline double pattern_sign(uint64_t seed, int64_t index)
{
    return seed_at(seed, (uint64_t)index) & 1 ? 1 : -1;
}

/* N(0,1) out of a table: to draw each anew would take most of the time of a check. */
double pattern_normal(uint64_t seed, int64_t index);

int64_t pattern_elements(const struct kg_tensor *t);

/* In elements, of the one whose number is `flat` in row-major order. */
int64_t pattern_offset(const struct kg_tensor *t, int64_t flat);
void pattern_put(const struct kg_tensor *t, int64_t flat, double value);
double pattern_get(const struct kg_tensor *t, int64_t flat);

/* The tensor that is filled. */
struct drawing {
    const struct kg_problem *p;
    unsigned tensor;
    int64_t n;            /* elements */
    uint64_t seed, all;   /* of this tensor; of all, for those that have to fit each other */
    int64_t terms, inner; /* of a factor: length of the axis that is summed over, and elements from
                             one place in it to the next; else 1 */
    int64_t longest;      /* sum of the op */
    int largest;          /* of the integers that are drawn */
};

/* Value of element `flat`. */
typedef double pattern_fn(const struct drawing *d, int64_t flat);

void pattern_draw(pattern_fn *value, const struct drawing *d, const struct kg_tensor *t);

/* Of a few elements, PATTERN_TRIES of them, the largest: its change shows most. */
#define PATTERN_TRIES 16
int64_t pattern_large_element(const struct kg_tensor *t, uint64_t seed);

/* One of a list; a length of some tiles of a usual size and a rest, `most` at most. */
int64_t draw_one(uint64_t *state, const int64_t *of, size_t n);
int64_t draw_length(uint64_t *state, double most);
double draw_products(uint64_t *state);

/* ---- patterns ---- */

enum probe {
    PROBE_NORMAL,       /* N(0,1) */
    PROBE_UNIFORM,      /* [0, 1): sums that grow */
    PROBE_INTEGERS,     /* exact: as large as the sums allow, so that the output is rounded */
    PROBE_CANCELLATION, /* exact: partial sums past the range of fp16, small results */
    PROBE_EXPONENTS,    /* exact: powers of two over the range of the dtype, of rows, of columns and
                           within each sum; results from the subnormal to the infinite */
    PROBE_SPECIAL,      /* exact; plain products: NaN, infinities and zeros that meet them, in the
                           first input, at ends, edges of tiles and between */
    PROBE_SPECIAL_SECOND,
    PROBE_NAN_SECOND, /* exact; of a vector: a NaN, which hides whatever else it has */
    PROBE_CONSTANT,   /* 0, or 1 in all tensors but the first, until near the end: for kernels that
                         take a short cut where a few looks find nothing else */
    PROBE_ZERO_FIRST, /* the first input is zeros; the second; another one, if there is one */
    PROBE_ZERO_SECOND,
    PROBE_ZERO_THIRD,
    PROBE_ZERO_PARTS, /* rows and tiles of zeros in all inputs */
    PROBE_ONE_VALUE,  /* all elements of an input are one, which is neither 0 nor 1 */
    PROBE_RETRIEVAL, /* attention: each query finds one key: diagonal, its neighbours, tile edges */
    PROBE_RAMP,      /* attention: scores from -100 to 100 in rising or falling order of the keys */
    PROBE_MASKED,    /* attention: what a row must not see is huge */
    PROBE_SHIFTED,   /* attention: a row's scores are two, of any sign and size up to SCORE_MAX */
    PROBE_STRETCHED, /* attention: exact scores that differ by hundreds */
    PROBE_FAINT,     /* attention: many faint keys with large values beside a dominant one */
    PROBE_LOW,       /* attention: all scores are from -121 to -105 */
    PROBE_LARGEST,   /* exact; fp8: lines of the largest numbers, of the smallest, and of zeros with
                        a sign */
    PROBE_NAN,       /* an op of a user's: a few of an input that may have them */
    PROBES
};

/* Scaled scores are below this in size (kernel.h). */
#define SCORE_MAX 0x1p16

/* All inputs of a problem, in host memory, with any strides. */
struct probing {
    enum probe probe;
    const struct kg_problem *p;
    const struct kg_tensor *in;
    uint64_t seed;
};

/* A row of an op's table of patterns. */
struct op_pattern {
    enum probe probe;
    bool (*applies)(const struct kg_problem *p); /* does it say something? NULL: always */
    pattern_fn *value;                           /* of an element of any input */
    /* Changes what is drawn; NULL: nothing. */
    void (*finish)(const struct probing *x);
    double (*slack)(const struct kg_problem *p); /* see probe_slack(); NULL: none */
    const char *name; /* where it is not what the probe's says; NULL: it is */
};

/* How input i of a problem is drawn, and with it all about its sums. */
struct drawing pattern_drawing(const struct kg_problem *p, const struct kg_tensor *in, unsigned i,
                               uint64_t seed);

/* Scales, which leave exact what is. */
void pattern_draw_scales(const struct drawing *d, const struct kg_tensor *t, bool exact);

/* For any op: random numbers, tensors, rows and tiles of zeros, and tensors of one value. */
pattern_fn plain_normal, plain_uniform, plain_zero_first, plain_zero_second, plain_zero_third,
    plain_zero_parts, plain_one_value;
bool plain_has_third(const struct kg_problem *p);

#define PLAIN_PATTERNS 5
#define PLAIN_PATTERN_ROWS(loss)                                                                   \
    {PROBE_ZERO_FIRST, .value = plain_zero_first, .slack = (loss)},                                \
        {PROBE_ZERO_SECOND, .value = plain_zero_second, .slack = (loss)},                          \
        {PROBE_ZERO_THIRD, plain_has_third, .value = plain_zero_third, .slack = (loss)},           \
        {PROBE_ZERO_PARTS, .value = plain_zero_parts, .slack = (loss)},                            \
    {                                                                                              \
        PROBE_ONE_VALUE, .value = plain_one_value, .slack = (loss)                                 \
    }

const char *probe_name(enum probe probe);

/* The class of inputs that it is counted in; '_' for the spaces is its key in a run document. */
const char *probe_class(enum probe probe);

/* What a problem's inputs are in it. */
const char *probe_text(enum probe probe, const struct kg_problem *p);

/* Has the op such a pattern, and does it say something about this problem? */
bool probe_applies(enum probe probe, const struct kg_problem *p);

/* Must the output be the reference rounded once, bit by bit? */
bool probe_is_exact(enum probe probe);

/* What the arithmetic that kernel.h allows may add to the relative error. */
double probe_slack(enum probe probe, const struct kg_problem *p);

/* The largest integers to draw for a product whose sums must stay exact. */
int probe_integers(const struct kg_problem *p);

/* Changes one element of one input such that the results are others: of what the kernel may have
 * remembered nothing is of use. The results of an exact probe stay exact. */
void probe_change(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                  uint64_t seed);

/* Fills the inputs of the problem. */
void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                uint64_t seed);

#endif
