/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_soak.h: what many launches lose of what they need.
 *
 * A launch that loses a little each time shows in many: counted before them, after the first half
 * and at the end, it is what grows in both halves. What a kernel keeps for good grows in one.
 */
#ifndef GATE_VERIFY_VERIFY_SOAK_H
#define GATE_VERIFY_VERIFY_SOAK_H

#include "gate/verify/trial.h"
#include "gate/verify/verify_state.h"

/* As many launches as fit into `ns`, but no more; 0: none. Before them so many whose outputs are
 * not looked at, for what only comes with their number. */
struct soak_budget {
    unsigned launches;
    double ns;
    unsigned before;
};

/*
 * Many launches on a small problem, on inputs that differ in single elements, in an order that the
 * seed deals out, into poisoned outputs whose hashes are taken on the device. The results are those
 * of the first launches on the same inputs, which are compared with a reference, and nothing is
 * lost on the way. What is wrong stands in b->found.
 */
enum gate_status soak_small(struct bench *b, const struct kg_problem *p,
                            const struct soak_budget *budget, uint64_t seed,
                            struct gate_error *err);

/* Launches of the problem itself: what fits into `ns`, but no more than `most`; and no fewer than
 * 16 where so many fit into `few_ns`, or else 6, for those that take milliseconds. */
struct endure_budget {
    double ns, few_ns;
    unsigned most;
};

/* How many launches of `ns` each; an even number. */
unsigned endure_launches(const struct endure_budget *budget, double ns);

/*
 * Many launches on the problem itself, whose inputs are those of input set 0: nothing is lost, and
 * the results stay the same bits. What is wrong stands in v; GATE_WRONG: a launch failed.
 */
enum gate_status endure_own(struct device *d, struct arm_launch *launch,
                            const struct endure_budget *budget, struct verification *v,
                            struct gate_error *err);

#endif
