/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h: an op with its sizes and dtype: its tensors, work, id and limits, by the tables of
 * kernels/ops.
 */
#ifndef GATE_CASES_PROBLEM_H
#define GATE_CASES_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/op.h"
#include "gate/base/error.h"

#define PROBLEM_ID_MAX 160
#define PROBLEM_MAX_TENSORS OP_TENSORS_MAX /* inputs and outputs together */

/* The problem in the i-th of what its op has as dtypes, at most DTYPES: storage types, and whether
 * products may be TF32. */
unsigned problem_dtypes(const struct kg_problem *p);
struct kg_problem problem_in_dtype(const struct kg_problem *p, unsigned i);
unsigned problem_dtype_index(const struct kg_problem *p);

/* The id that people type, e.g. "attention_fwd/fp16/b8-h16-s512-d64/causal". */
void problem_id(const struct kg_problem *p, char id[PROBLEM_ID_MAX]);

/* One tensor of an op: its name in kernel.h in lower case, and its dense shape. */
struct problem_tensor {
    const char *name;
    bool is_output;
    unsigned begins; /* op_begins() */
    bool is_updated; /* an input, in place */
    uint32_t dtype;  /* enum kg_dtype */
    uint32_t rank;
    int64_t shape[KG_MAX_RANK];
};

/* All tensors of the problem, inputs first; returns their number. */
unsigned problem_tensors(const struct kg_problem *p,
                         struct problem_tensor out[PROBLEM_MAX_TENSORS]);

int64_t problem_tensor_elements(const struct problem_tensor *t);
size_t problem_tensor_bytes(const struct problem_tensor *t);

/* A kernel finds an input that is updated in place where the output is. */
static inline void problem_update_in_place(const struct problem_tensor *outputs,
                                           struct kg_args *args)
{
    for (uint32_t i = 0; i < args->n_out; i++)
        if (outputs[i].begins)
            args->in[outputs[i].begins - 1] = args->out[i];
}

/* A dense view of `data`. */
struct kg_tensor problem_dense(const struct problem_tensor *t, void *data);

/* Useful floating-point operations (a causal mask counts the visible pairs only; a multiply-add is
 * two), and compulsory bytes: each input read once, each output written once. */
double problem_flops(const struct kg_problem *p);
double problem_bytes(const struct kg_problem *p);

/* What of them a timed launch moves: of blocks that a table names maybe not all. */
double problem_moved(const struct kg_problem *p);

/* Limit of the relative Frobenius error: about twice the rounding level of the dtype, and of long
 * sums in fp32. */
double problem_error_limit(const struct kg_problem *p);

#endif
