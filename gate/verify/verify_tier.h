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
#include "gate/verify/verify_soak.h"

enum verify_tier { VERIFY_COMMIT, VERIFY_NIGHTLY, VERIFY_SMALL, VERIFY_TIERS };

const char *verify_tier_name(enum verify_tier tier);
/* False when no tier is named so. */
bool verify_tier_parse(const char *name, enum verify_tier *out);

extern const struct endure_budget tier_endures[VERIFY_TIERS];

/* Called before each check, so that a hang or crash can be put down to it. `check` says what is
 * looked at, for people; "": the problem itself, on its own inputs. */
typedef void (*tier_notice_fn)(void *context, const struct arm *arm, const char *check);

/* Runs the tier's checks on one arm whose canonical results are right; what is wrong stands in
 * arm->verification. `given`: inputs of the problem itself. Status as that of bench_try(). */
enum gate_status tier_checks(struct device *d, const struct kg_problem *p, uint64_t seed,
                             enum verify_tier tier, struct arm *arm,
                             const struct trial_given *given, tier_notice_fn notice, void *context,
                             struct gate_error *err);

#endif
