/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets.h: where groups of rows begin: n numbers from 0 to `end` that never fall. Group g has the
 * rows from number g to number g + 1, or none.
 *
 * They are drawn in one of several ways, so that what seldom happens by chance comes often: empty
 * groups, at the ends too, one group of all, groups that end at tiles. The first way is the usual
 * one.
 */
#ifndef KG_OPS_OFFSETS_H
#define KG_OPS_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* Elements `first` and on of a tensor, by their numbers in row-major order; not `varied`: in the
 * usual way. */
void offsets_draw(const struct kg_tensor *t, int64_t first, int64_t n, int64_t end, bool varied,
                  uint64_t seed);

/* Moves the border of two groups by a row; false: the one that the seed says cannot be moved. */
bool offsets_change(const struct kg_tensor *t, int64_t first, int64_t n, uint64_t seed);

#endif
