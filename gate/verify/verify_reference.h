/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_reference.h: the fp64 outputs that a result is compared with.
 */
#ifndef GATE_VERIFY_VERIFY_REFERENCE_H
#define GATE_VERIFY_VERIFY_REFERENCE_H

#include "gate/launch/operands.h"

/* The fp64 outputs of one input set, in device memory. */
struct reference {
    struct device_memory out[KG_MAX_TENSORS];
};

enum gate_status reference_alloc(struct device *d, const struct operands *o, struct reference *out,
                                 struct gate_error *err);
void reference_free(struct device *d, struct reference *r);

/* Computes all outputs in device memory, from inputs there: on the device, or by the reference of a
 * user's op. */
enum gate_status reference_on(struct device *d, const struct kg_problem *p,
                              const struct kg_tensor *in, double *const *out,
                              struct gate_error *err);

/* The same from the inputs in `o`. */
enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct reference *r,
                                   struct gate_error *err);

#endif
