/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_roles.h: removes the effect of the order of the two sides from d.
 *
 * The side whose kernels are loaded, recorded and started first gains or loses time for the whole
 * life of the process: the place of the code changed a decode kernel of 13 us by 0.27 %. Every
 * other process swaps the roles, so that this effect has the opposite sign in one half of the
 * processes. This is a crossover trial, and the effect of the order is estimated and removed (Senn,
 * Cross-over Trials in Clinical Research, 2002). The remaining values are stretched by
 * sqrt(n / (n - 2)), because two figures were estimated from n values: in simulation the bounds
 * then contain the middle as often as without the correction.
 */
#ifndef GATE_DECIDE_DECIDE_ROLES_H
#define GATE_DECIDE_DECIDE_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#define DECIDE_ROLE_MIN                                                                            \
    4 /* processes of each role: the least number that shows the effect of the order */

/* out[0] to out[n - 1]: d without the effect of the order; d itself if `swapped` is NULL or a role
 * has fewer than DECIDE_ROLE_MIN. n is at most DECIDE_MAX_PROCESSES. */
void decide_balance(const double *d, const bool *swapped, size_t n, double *out);

#endif
