/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_tune.h: which of several algorithms for one product is the fastest here.
 */
#ifndef KG_CUBLAS_MATMUL_TUNE_H
#define KG_CUBLAS_MATMUL_TUNE_H

#include "kernels/cublas/matmul.h"

enum { MATMUL_CANDIDATES_MAX = 16 };

/* Enqueues candidate i. */
typedef enum kg_status (*matmul_candidate)(void *context, unsigned i,
                                           const struct matmul_operands *o);

/*
 * Times n candidates on memory of its own, which is freed again, and says which takes the least.
 * As the gate times: recorded in CUDA graphs, on operands that rotate over more than the caches, in
 * turns and with rests. Candidates that fail are passed over; the status is theirs when all do.
 * Where the device has no memory for one set of operands nothing is timed, and the first one
 * stands.
 */
enum kg_status matmul_tune(const struct matmul *m, matmul_candidate run, void *context, unsigned n,
                           unsigned *fastest);

#endif
