/* SPDX-License-Identifier: Apache-2.0 */
/* filled.h: the inputs of a pattern, dense, in an image that is the caller's. */
#ifndef TESTS_UNIT_FILLED_H
#define TESTS_UNIT_FILLED_H

#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"
#include "tests/unit/unit.h"

static inline struct image image_filled(const struct kg_problem *p, enum probe probe, uint64_t seed)
{
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    struct image image = image_make(p, &dense, 0xff);
    probe_fill(probe, p, image.view, seed);
    return image;
}

#endif
