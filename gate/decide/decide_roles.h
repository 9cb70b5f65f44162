/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_roles.h: what the order of the two sides adds to d, taken out.
 *
 * Whose kernels are loaded, recorded and started first has something of it that lasts as long as
 * the process: where code lies made 0.27 % of a decode kernel of 13 us. The roles are swapped in
 * every other process, so that this adds to one half of them what it takes from the other: a
 * crossover trial, whose effect of the order is estimated and removed (Senn, Cross-over Trials in
 * Clinical Research, 2002). What is left is spread out by sqrt(n / (n - 2)), for the two figures
 * that were taken from n: in simulation the bounds then hold the middle as often as without.
 */
#ifndef GATE_DECIDE_DECIDE_ROLES_H
#define GATE_DECIDE_DECIDE_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#define DECIDE_ROLE_MIN 4 /* processes of each role: fewer do not show the effect of the order */

/* out[0] to out[n - 1]: d without what the order adds; d itself where `swapped` is NULL or a role
 * has fewer than DECIDE_ROLE_MIN. n is at most DECIDE_MAX_PROCESSES. */
void decide_balance(const double *d, const bool *swapped, size_t n, double *out);

#endif
