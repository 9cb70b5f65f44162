/*
 * operands.h: the device memory of one input set of a problem.
 */
#ifndef GATE_OPERANDS_H
#define GATE_OPERANDS_H

#include "device.h"
#include "problem.h"
#include "suite.h"

struct operands {
    struct kg_args args; /* tensors and stream are filled in; the workspace is the launch's */
    struct problem_tensor in[KG_MAX_TENSORS], out[KG_MAX_TENSORS];
};

/* Bytes of one set of dense tensors, each aligned to 256 bytes. */
size_t operands_bytes(const struct kg_problem *p);

/* The set at `memory`, which is operands_bytes() long, aligned to 256 bytes, and stays the
 * caller's. The contents are garbage. */
struct operands operands_at(struct device *d, const struct kg_problem *p, void *memory);

/* Fills each input with N(0,1) from `seed`, or with the case's literal values. */
enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err);

/* Fills the outputs with a byte; 0xff makes a NaN of every dtype, 0x5a a large finite number. */
enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err);

/* A seed of its own for each (seed, index): splitmix64, Steele et al., OOPSLA 2014. */
uint64_t operands_seed(uint64_t seed, uint64_t index);

#endif
