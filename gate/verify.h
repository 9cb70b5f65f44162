/*
 * verify.h: is the result right?
 *
 * Each arm computes every input set into poisoned outputs; each output is compared with an fp64
 * reference that the device computed by plain kernels of its own and that is spot-checked against
 * the CPU. The figure that decides is the relative Frobenius error |x - ref| / |ref| of the whole
 * output: unlike allclose() with the usual tolerances it sees a skipped tail, a wrong scale or an
 * fp16 accumulator. The allclose() figures are reported beside it.
 */
#ifndef GATE_VERIFY_H
#define GATE_VERIFY_H

#include "arm.h"

#define VERIFY_SEEDS 3

/* The fp64 outputs of one input set, in device memory. */
struct reference {
    struct device_memory out[KG_MAX_TENSORS];
};

enum gate_status reference_alloc(struct device *d, const struct operands *o, struct reference *out,
                                 struct gate_error *err);
void reference_free(struct device *d, struct reference *r);

/* What is known of an arm before it was looked at; each arm's `verification` must start as this. */
struct verification verification_start(const struct kg_problem *p);

/* Called before each launch of an arm, so that a hang or crash can be put down to it. */
typedef void (*verify_notice_fn)(void *context, const struct arm *arm);

/*
 * Verifies all arms on input sets VERIFY_SEEDS-1 .. 0 of `seed` in turn; afterwards `o` holds set
 * 0 and `r` its reference. Adds to arms[i].verification; a wrong result is an answer, not a
 * failure. A failure is that of the device: GATE_WRONG when a launch caused it, with the guilty
 * arm's verification saying so; GATE_INTERNAL when the device's reference disagrees with the CPU's.
 */
enum gate_status verify_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                             struct operands *o, struct device_memory workspace,
                             struct reference *r, struct arm *arms, unsigned n_arms,
                             verify_notice_fn notice, void *context, struct gate_error *err);

/* Compares the outputs in `o` with `r` once more and adds what it finds to `v`. */
enum gate_status verify_outputs(struct device *d, const struct suite_case *c,
                                const struct operands *o, const struct reference *r,
                                struct verification *v, struct gate_error *err);

#endif
