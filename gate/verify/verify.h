/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h: is the result right?
 *
 * Each arm computes every input set into poisoned outputs among red zones; each output is compared
 * with an fp64 reference that the device computed by plain kernels of its own and that is
 * spot-checked against the CPU. The figure that decides is the relative Frobenius error
 * |x - ref| / |ref| of the whole output, of every tile and of every row (verify_compare.h): unlike
 * allclose() with the usual tolerances it sees a skipped tail, a wrong scale or an fp16
 * accumulator. The allclose() figures are reported beside it. Nor may an element of a product be
 * far off. The candidate must also leave its inputs alone, give the same bits again, be right on
 * exact integers where it is large, and pass the checks of a tier.
 */
#ifndef GATE_VERIFY_VERIFY_H
#define GATE_VERIFY_VERIFY_H

#include "gate/launch/arm.h"
#include "gate/verify/verify_reference.h"

/*
 * Which checks a kernel must pass beside its canonical inputs. `commit` is what `gate run` asks of
 * every change: every neighbour shape once or twice, with layouts and probes dealt out in turn, all
 * probes on the problem itself where it is small (else exact integers, or its own inputs, on the
 * device), and random inputs on three neighbours of its own size. `nightly` asks for every probe in
 * every layout on more shapes, with more repeats. `small` is what a sanitizer has time for: one
 * probe on each neighbour shape, once, and launches on one neighbour of the problem's own size, but
 * not the problem itself.
 */
enum verify_tier { VERIFY_COMMIT, VERIFY_NIGHTLY, VERIFY_SMALL, VERIFY_TIERS };

const char *verify_tier_name(enum verify_tier tier);
/* False when no tier is named so. */
bool verify_tier_parse(void *out, const char *name);

/* What is known of an arm before it was looked at; each arm's `verification` must start as this. */
struct verification verification_start(const struct kg_problem *p);

/* What verify_arms() works on. */
struct verify_job {
    struct device *device;
    const struct suite_case *c;
    uint64_t seed;
    enum verify_tier tier;
    struct operands *operands;      /* in red zones */
    struct device_memory workspace; /* the largest of the arms' between red zones, or none */
    struct reference *reference;
    struct arm *arms; /* the candidate first */
    unsigned n_arms;
    /* Called before each check of an arm, so that a hang or crash can be put down to it. `check`
     * says what is looked at, for people; "": the problem itself, on its own inputs. */
    void (*notice)(void *context, const struct arm *arm, const char *check);
    void *context;
};

/*
 * Verifies all arms on input sets VERIFY_SEEDS-1 .. 0 of the seed in turn, then the candidate by
 * the tier's checks; afterwards the operands hold set 0 and `reference` its reference. Adds to
 * arms[i].verification; a wrong result is an answer, not a failure. A failure is that of the
 * device: GATE_WRONG when a launch caused it, with the guilty arm's verification saying so;
 * GATE_INTERNAL when the device's reference disagrees with the CPU's.
 */
enum gate_status verify_arms(const struct verify_job *job, struct gate_error *err);

/* A look at outputs of timed launches whose bits are not the verified ones. */
struct timed_check {
    struct device *device;
    const struct suite_case *c;
    struct reference *reference; /* allocated when it is needed, and then the caller's */
    unsigned content;            /* of the inputs that the reference is for */
};

/*
 * Are the outputs in `o`, of inputs of content `content`, right (audit_check_fn; `context` is the
 * look)? The candidate must give the verified bits unless it is declared otherwise; another arm,
 * which is not on trial, only what is right.
 */
enum gate_status timed_check(void *context, struct arm *arm, const struct operands *o,
                             unsigned content, struct gate_error *err);

#endif
