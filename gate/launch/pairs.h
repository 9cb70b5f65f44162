/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h: how much longer one of two kernels takes, from pairs of neighbouring samples.
 *
 * Samples come in rounds of two pairs. Who comes first in a round has an advantage or a handicap of
 * up to 0.2 %, and of two copies of the same code one may be 0.5 % slower, for where it lies. So
 * there are four kinds of rounds, in turn: one begins or the other, with the first copies and then
 * with the second ones. Each kind counts the same: the medians of the four are averaged, and each
 * is moved to that average before the median of all is taken.
 *
 * The interval is the 99 % one of a mean over rounds, and holds the median 97 to 99 times in 100:
 * it says when to stop, and no verdict rests on it. What a slow drift adds to one pair of a round
 * it takes from the other, which an interval over pairs does not know (it was up to 20 times too
 * wide for GEMMs at the power limit). One wild round widens it: that asks for more rounds. From two
 * rounds of each kind on it leaves out how the kinds differ; before that it has all of it.
 */
#ifndef GATE_LAUNCH_PAIRS_H
#define GATE_LAUNCH_PAIRS_H

#include <stddef.h>

#include "gate/decide/stats.h"

#define PAIRS_KINDS 4 /* of rounds */

/* Kind of the round in which sample j of an arm was taken, and the copy that it was of. */
unsigned pairs_kind(size_t j);
unsigned pairs_copy(size_t j);

/* a over b, n samples of each. All 0 where a value is not positive. */
struct estimate pairs_ratio(const double *a, const double *b, size_t n);

#endif
