/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_reference.h: the fp64 outputs that a result is compared with.
 *
 * The device computes those of a built-in op. The reference of a user's op is a kernel library for
 * the host. A process that was forked before any other library was loaded runs it: neither can a
 * kernel change what it computes, nor can a fault of it be put down to a kernel. It gets the inputs
 * as dense fp64 numbers, and writes the outputs likewise. Each result is computed twice, into
 * memory with other contents and with nothing mapped behind it, and then before it. A second
 * reference has a process of its own; the two have to agree.
 */
#ifndef GATE_VERIFY_VERIFY_REFERENCE_H
#define GATE_VERIFY_VERIFY_REFERENCE_H

#include "gate/cases/op_file.h"
#include "gate/launch/arm.h"
#include "gate/verify/verify_compare.h"

/* Called when a user's reference takes long, and again when it is done. */
typedef void (*own_reference_slow_fn)(void *context, const struct own_op *own, bool done);

/* Starts its process, and that of the second one. GATE_IO: there is no such library. GATE_USAGE: it
 * is no reference of the op. It ends with this process. */
enum gate_status own_reference_start(const struct own_op *own, own_reference_slow_fn slow,
                                     void *context, struct gate_error *err);

/* GATE_USAGE: the reference of a user's op made no number of finite inputs, where the kernel has
 * one, and no second reference says so too: which of the two is wrong is not known. */
enum gate_status own_reference_asked(struct device *d, const struct look *look,
                                     const double *reference, struct gate_error *err);

/* The fp64 outputs of one input set, in device memory that only grows. */
struct reference {
    struct device_memory memory;
    double *out[KG_MAX_TENSORS];
};

enum gate_status reference_reserve(struct device *d, const struct problem_tensor *outputs,
                                   uint32_t n, struct reference *r, struct gate_error *err);

/* Computes all outputs in device memory, from inputs there in any layout. GATE_USAGE: a user's
 * reference is faulty, which says how. GATE_ENVIRONMENT: there is no memory for it. */
enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct kg_tensor *in, const struct reference *r,
                                   struct gate_error *err);

/* Compares some elements with those of the CPU. Which follows from the seed; the first and the last
 * ones of a product's output, and of the first and the last head, are always among them.
 * GATE_INTERNAL when the two disagree. */
enum gate_status spot_check(struct device *d, const struct kg_problem *p, const struct operands *o,
                            const struct reference *r, uint64_t seed, struct gate_error *err);

#endif
