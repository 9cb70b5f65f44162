/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h: what every op is, in double precision on the CPU.
 *
 * The result of each op as kernel.h defines it, computed in fp64 from the stored (already rounded)
 * inputs and not rounded at the end. Plain loops, no blocking, no vector code of its own, and no
 * code shared with the kernels that it judges but the decoding of half.h. TF32 and the dtype change
 * the inputs' rounding alone; NaN and infinity go through as IEEE arithmetic has it (ReLU keeps a
 * NaN, so that a poisoned input can't hide).
 */
#ifndef KG_REFERENCE_H
#define KG_REFERENCE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Computes all outputs of problem `p`. in[n_in]: host memory, in the order of kernel.h, any
 * strides whose last one is 1. out[i]: caller's memory for out tensor i, dense, row-major, its
 * shape as in kernel.h. `threads` >= 1: the result does not depend on it.
 *
 * Returns KG_OK; KG_BAD_ARGUMENT when the problem or a tensor does not fit kernel.h; or
 * KG_LAUNCH_FAILED when memory for the fp64 copies of the inputs (8 bytes an element) is short.
 */
enum kg_status kg_reference_host(const struct kg_problem *p, const struct kg_tensor *in,
                                 uint32_t n_in, double *const *out, int threads);

/*
 * One element of one output: out tensor `out_index`, element `flat_index` of its dense row-major
 * order. Follows the definition on its own path, straight from the stored inputs, so it can
 * spot-check both kg_reference_host and a device's reference. `in` holds as many tensors as the op
 * takes. Allocates nothing. NaN when an argument is out of range.
 */
double kg_reference_host_element(const struct kg_problem *p, const struct kg_tensor *in,
                                 uint32_t out_index, int64_t flat_index);

#ifdef __cplusplus
}
#endif

#endif
