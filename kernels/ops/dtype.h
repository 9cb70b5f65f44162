/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h: a dtype as data: one row says what storage and arithmetic in it can do.
 *
 * A row is a name that stands in suites, ids and documents. TF32 is fp32 in memory and has a row of
 * its own, since its factors are rounded. storage.h has the storage, dtype.cuh the same on a GPU.
 */
#ifndef KG_OPS_DTYPE_H
#define KG_OPS_DTYPE_H

#include <stdint.h>

#include "kernels/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The peak of a device that bounds products in a dtype. */
enum dtype_rate { RATE_FP16, RATE_BF16, RATE_TF32, RATE_FP32, RATE_FP8, RATES };

struct dtype {
    const char *name;
    uint32_t code, flags; /* enum kg_dtype; KG_FLAG_TF32 */
    unsigned bytes;       /* of an element */
    unsigned mantissa;    /* bits behind the point, as stored */
    unsigned factor;      /* bits that are left of a factor */
    int least;            /* exponent of the smallest normal number */
    double max;           /* largest finite number */
    double error_limit; /* of the relative Frobenius error: about twice the level of its rounding */
    enum dtype_rate rate;
    double balance; /* FLOP a byte above which a kernel is told in FLOP/s: half of the ratio of the
                       peaks of data-center GPUs, so that one near both bounds is told so */
};

#define DTYPES 6

extern const struct dtype dtypes[DTYPES];

/* The row of a problem, or of a name; NULL: there is none. */
const struct dtype *dtype_of(const struct kg_problem *p);
const struct dtype *dtype_by_name(const char *name);

/* The row of a tensor's elements. */
const struct dtype *dtype_stored(uint32_t code);

#ifdef __cplusplus
}
#endif

/* Is the range that of fp16, and not about that of fp32? */
static inline int dtype_is_narrow(const struct dtype *d)
{
    return d->max < 0x1p20;
}

/* e4m3 has no infinity: what is too large is its largest number. */
static inline int dtype_has_infinity(const struct dtype *d)
{
    return d->code != KG_E4M3;
}

/* Is all that fp32 has kept of a factor? */
static inline int dtype_is_full(const struct dtype *d)
{
    return d->factor >= 23;
}

#endif
