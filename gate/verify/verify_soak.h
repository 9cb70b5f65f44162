/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_soak.h: what many launches lose of what they need.
 *
 * A launch that loses a little each time shows in many: counted before them, after the first half
 * and at the end, it is what grows in both halves. What a kernel keeps for good grows in one.
 */
#ifndef GATE_VERIFY_VERIFY_SOAK_H
#define GATE_VERIFY_VERIFY_SOAK_H

#include "gate/verify/verify_check.h"
#include "gate/verify/verify_state.h"
#include "gate/verify/verify_tier.h"

struct verify_job;

/*
 * Many launches on a small problem: 2,000 in the commit tier and 100,000 in the nightly one, if
 * there is time, on inputs that differ in single elements, in an order that the seed deals out,
 * into poisoned outputs whose hashes are taken on the device. The results are those of the first
 * launches on the same inputs, which are compared with a reference, and nothing is lost on the way.
 * What is wrong stands in b->found.
 */
enum gate_status soak_small(struct bench *b, const struct kg_problem *p, enum verify_tier tier,
                            uint64_t seed, struct gate_error *err);

/* How many launches of `ns` each there is time for; an even number. */
unsigned endure_launches(enum verify_tier tier, double ns);

/*
 * Many launches of the arm on the problem itself, whose inputs are those of input set 0: nothing is
 * lost, and the results stay the same bits. What is wrong stands in arm->verification; status as
 * that of bench_check().
 */
enum gate_status endure_own(const struct verify_job *job, struct arm *arm, struct gate_error *err);

#endif
