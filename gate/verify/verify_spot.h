/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_spot.h: does the device's fp64 reference agree with the CPU's?
 *
 * The CPU computes elements of each output by the formula, on a path of its own. Only what they
 * depend on is brought to the host: bands of the axes on which an output depends by its place, as
 * some rows and columns of a product, or a head, so that it costs next to nothing however large the
 * problem is.
 */
#ifndef GATE_VERIFY_VERIFY_SPOT_H
#define GATE_VERIFY_VERIFY_SPOT_H

#include "gate/verify/verify_reference.h"

/* Which elements are looked at follows from the seed; the first and the last ones of a product's
 * output, and of the first and the last head, are always among them. GATE_INTERNAL when the two
 * disagree. */
enum gate_status spot_check(struct device *d, const struct kg_problem *p, const struct operands *o,
                            const struct reference *r, uint64_t seed, struct gate_error *err);

#endif
