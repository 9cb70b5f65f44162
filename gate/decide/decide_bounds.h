/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_bounds.h: when a sequence of processes is looked at, and what its values say of the
 * median and of the smallest effect there.
 */
#ifndef GATE_DECIDE_DECIDE_BOUNDS_H
#define GATE_DECIDE_DECIDE_BOUNDS_H

#include <stddef.h>

#include "gate/decide/stats.h"

#define DECIDE_FIRST_LOOK 5
#define DECIDE_LAST_LOOK 20
#define DECIDE_MAX_PROCESSES 64 /* in one sequence */

/* The look after n processes; 0 when that was the last. */
size_t decide_look_after(size_t n);

/*
 * Median of n values with its bounds at the ranks of decide.h; n below 5 gives the whole range. `d`
 * need not be sorted. n is 1 to DECIDE_MAX_PROCESSES; for any other n all is 0.
 */
struct estimate decide_bounds(const double *d, size_t n);

/*
 * Minimum detectable effect: the smallest threshold T (0.005 is 0.5 %) that a look at n processes
 * of this deviation resolves. Their upper bound lies within r deviations of the middle in 99 % of
 * sequences (r is 2.88 for five processes, 1.71 for 20), the lower one as well, and they must stay
 * below T on one side and above T / 2 on the other: T = 2 r deviations. So in 99 % of sequences of
 * n unchanged code lies below T, a slowdown of T lies above T / 2 with its whole interval, and one
 * of 1.25 T is suspected; at T itself the median is above T in half of them. 0 for n below 2.
 */
double decide_mde_of(double deviation, size_t n);

/*
 * The same, of these n processes. Their deviation follows from their bounds, which a few wild ones
 * beyond these leave alone: their distance over its mean for normal values (for five the range over
 * d2, Tippett 1925). Beyond 20 processes it is too large rather than too small.
 */
double decide_mde(const double *d, size_t n);

#endif
