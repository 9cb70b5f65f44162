/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_neighbours.h: the problem's own size, give or take a tail.
 *
 * The neighbours of verify_shapes.h that are as large as the problem are too large to be looked at
 * byte by byte on the host: they are filled, computed and compared on the device, like the problem
 * itself. Their outputs are dense, among red zones; their inputs lie in several layouts, since rows
 * that are padded keep the alignment that an odd length would lose, and with it a kernel's path.
 * Giants are looked at here too: one in the commit tier on a GPU, by the seed, and all nightly.
 */
#ifndef GATE_VERIFY_VERIFY_NEIGHBOURS_H
#define GATE_VERIFY_VERIFY_NEIGHBOURS_H

#include "gate/verify/verify_check.h"
#include "gate/verify/verify_tier.h"

/*
 * Adds to b->found: checks; what was left out, as no kernel serves it, memory is short or a layout
 * is refused; and the first fault. *served becomes true where the arm's own kernel takes a
 * neighbour. Status as that of bench_check().
 */
enum gate_status around_checks(const struct bench *b, const struct kg_problem *p,
                               enum verify_tier tier, uint64_t seed, tier_notice_fn notice,
                               void *context, bool *served, struct gate_error *err);

#endif
