/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_bounds.h: when a sequence of processes is looked at, the bounds of its median, and the
 * smallest effect that it detects.
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
 * Median of n values with its bounds at the ranks of decide.h; for n below 5, the whole range. `d`
 * need not be sorted. n is 1 to DECIDE_MAX_PROCESSES; for any other n the result is all 0.
 */
struct estimate decide_bounds(const double *d, size_t n);

/*
 * Minimum detectable effect: the smallest threshold T (0.005 is 0.5 %) that a look at n processes
 * with this deviation resolves. In 99 % of sequences each bound lies within r deviations of the
 * middle (r is 2.88 for five processes, 1.71 for 20). For unchanged code the upper bound must stay
 * below T, and for a slowdown of T the lower one above T / 2, so T = 2 r deviations. Hence in 99 %
 * of sequences unchanged code stays below T, the whole interval of a slowdown of T is above T / 2,
 * and a slowdown of 1.25 T is suspected; at T itself the median is above T in half of them. 0 for n
 * below 2.
 */
double decide_mde_of(double deviation, size_t n);

/*
 * The same for these n processes. Their deviation is the distance between their bounds divided by
 * its mean for normal values (for five, the range over d2, Tippett 1925), so a few outliers beyond
 * the bounds do not matter. Beyond 20 processes the result is too large rather than too small.
 */
double decide_mde(const double *d, size_t n);

#endif
