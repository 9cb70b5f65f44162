/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.h: do two builds of a commit run the same on the GPU?
 *
 * A text has a part for each kernel of a call of launch(), in the order of their first launch, and
 * one for the launches as a whole, with "; " between them; each is names and values by turns:
 *
 *     launches 1 code <sha256> grid 132x1x1 block 384x1x1 shared 232448; order <16 hex digits>
 *
 * `order` is a hash of the order of the launches, their clusters, attributes and dependencies.
 */
#ifndef GATE_BASELINE_LAUNCHES_H
#define GATE_BASELINE_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>

/* Else `why` says what differs first: "kernel 2 of 3 has grid 66x1x1, the stored one 132x1x1". */
bool launches_are_equal(const char *stored, const char *now, char *why, size_t size);

#endif
