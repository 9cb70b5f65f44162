/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_large.h: the problem itself where it is too large for an image (verify_layout.h).
 *
 * The candidate is launched once with nothing mapped behind its tensors. The inputs of a product
 * are integers made on the device, whose sums no order of summation in fp32 rounds: each element
 * must be the fp64 reference rounded once, to the bit. An op without such answers gets input set 0
 * once more.
 */
#ifndef GATE_VERIFY_VERIFY_LARGE_H
#define GATE_VERIFY_VERIFY_LARGE_H

#include "gate/verify/verify.h"

/*
 * What is wrong stands in the candidate's verification, which must be right so far; the operands
 * and the reference hold set 0, and keep it. Memory that is not guarded, or too short for any of
 * it, is counted as left out. Status as that of verify_arms().
 */
enum gate_status verify_large(const struct verify_job *job, struct gate_error *err);

#endif
