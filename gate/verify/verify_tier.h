/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_tier.h: which checks a kernel must pass beside its canonical inputs.
 *
 * Tiers. `commit` is what `gate run` asks of every change: every neighbour shape once or twice,
 * with layouts and probes dealt out in turn, all probes on the problem itself where it is small
 * (else exact integers, or its own
 * inputs, on the device), and random inputs on three neighbours of its own size. `nightly` asks
 * for every probe in every layout on more shapes, with more repeats. `small` is what a sanitizer
 * has time for: one probe on each neighbour shape, once, and launches on one neighbour of
 * the problem's own size, but not the problem itself.
 */
#ifndef GATE_VERIFY_VERIFY_TIER_H
#define GATE_VERIFY_VERIFY_TIER_H

#include "gate/verify/trial.h"

enum verify_tier { VERIFY_COMMIT, VERIFY_NIGHTLY, VERIFY_SMALL, VERIFY_TIERS };

const char *verify_tier_name(enum verify_tier tier);
/* False when no tier is named so. */
bool verify_tier_parse(const char *name, enum verify_tier *out);

/* Called before each check, so that a hang or crash can be put down to it. `check` says what is
 * looked at, for people; "": the problem itself, on its own inputs. */
typedef void (*tier_notice_fn)(void *context, const struct arm *arm, const char *check);

/* Runs the tier's checks on one arm whose canonical results are right; what is wrong stands in
 * arm->verification. `given`: inputs of the problem itself. Status as that of bench_try(). */
enum gate_status tier_checks(struct device *d, const struct kg_problem *p, uint64_t seed,
                             enum verify_tier tier, struct arm *arm,
                             const struct trial_given *given, tier_notice_fn notice, void *context,
                             struct gate_error *err);

/*
 * ---- many launches, verify_soak.c ----
 *
 * A launch that loses a little each time of what it needs shows in many: counted before them, after
 * the first half and at the end, it is what grows in both halves. What a kernel keeps for good
 * grows in one.
 */

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

extern const struct endure_budget tier_endures[VERIFY_TIERS];

#endif
