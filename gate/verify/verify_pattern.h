/*
 * verify_pattern.h: inputs that show what random numbers hide.
 *
 * Each probe fills the input tensors of a problem, in any layout, from a seed. Some make results
 * that every correct kernel must produce bit by bit, because no order of summation in fp32 can
 * round: there a single lost term, a wrong rounding of the output or a narrow accumulator shows.
 */
#ifndef GATE_VERIFY_VERIFY_PATTERN_H
#define GATE_VERIFY_VERIFY_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

enum probe {
    PROBE_NORMAL,       /* N(0,1) */
    PROBE_SAME_ENDS,    /* PROBE_NORMAL of the same seed at both ends of each tensor, new between:
                           for kernels that remember results by a look at their inputs */
    PROBE_UNIFORM,      /* [0, 1): sums that grow */
    PROBE_INTEGERS,     /* exact: [-4, 4] */
    PROBE_CANCELLATION, /* exact: partial sums past the range of fp16, small results */
    PROBE_SUBNORMAL,    /* exact, fp16: one factor subnormal */
    PROBE_NAN,       /* GEMM, GEMV: a NaN and an infinity among the inputs must reach the output */
    PROBE_CONSTANT,  /* 0, or 1 in all tensors but the first, until near the end: for kernels that
                        take a short cut where a few looks find nothing else */
    PROBE_RETRIEVAL, /* attention: each query finds one key: diagonal, its neighbours, tile edges */
    PROBE_RAMP,      /* attention: scores from -100 to 100 in rising or falling order of the keys */
    PROBE_MASKED,    /* attention: what a row must not see is huge */
    PROBES
};

const char *probe_name(enum probe probe);

/* Does the probe say something about this problem? */
bool probe_applies(enum probe probe, const struct kg_problem *p);

/* Must the output be the reference rounded once, bit by bit? */
bool probe_is_exact(enum probe probe);

/* Fills in[0..] of the problem; host memory, any strides. */
void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                unsigned n_in, uint64_t seed);

#endif
