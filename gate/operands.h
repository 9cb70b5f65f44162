/*
 * operands.h: the device memory of one input set of a problem.
 */
#ifndef GATE_OPERANDS_H
#define GATE_OPERANDS_H

#include "device.h"
#include "problem.h"
#include "suite.h"

struct operands {
    struct kg_args args; /* tensors are filled in; workspace and stream are the arm's */
    struct problem_tensor in[KG_MAX_TENSORS], out[KG_MAX_TENSORS];
    struct device_memory memory[PROBLEM_MAX_TENSORS]; /* inputs, then outputs */
};

/* Allocates dense tensors of uninitialised memory. */
enum gate_status operands_alloc(struct device *d, const struct kg_problem *p, struct operands *out,
                                struct gate_error *err);
void operands_free(struct device *d, struct operands *o);

/* Fills each input with N(0,1) from `seed`, or with the case's literal values. */
enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err);

/* Fills the outputs with a byte; 0xff makes a NaN of every dtype, 0x5a a large finite number. */
enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err);

/* A seed of its own for each (seed, index): splitmix64, Steele et al., OOPSLA 2014. */
uint64_t operands_seed(uint64_t seed, uint64_t index);

#endif
