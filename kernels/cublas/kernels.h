/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: what the files of the providers share: one entry of a table each, and common checks.
 */
#ifndef KG_CUBLAS_KERNELS_H
#define KG_CUBLAS_KERNELS_H

#include <stdbool.h>

#include "kernels/problem.h"

extern const struct kg_kernel cublas_gemm;            /* gemm.c */
extern const struct kg_kernel cublas_linear_relu;     /* linear_relu.c */
extern const struct kg_kernel cublas_linear_relu_bwd; /* linear_relu_bwd.c */
extern const struct kg_kernel cublas_gemv;            /* gemv.c */
extern const struct kg_kernel eager_linear_relu;      /* linear_then_relu.c */

/* A library has one provider, in a file of its own: provider_*.c. */
struct provider {
    const char *name;
    const struct kg_kernel *const *kernels;
    uint32_t n_kernels;
    bool timed; /* see matmul_open() */
};

extern const struct provider provider;

enum kg_status gemv_open(void);
void gemv_close(void);

/* Whether the problem is `op` with a dtype, flags and sizes that cuBLAS takes; n is checked where
 * the op has one. */
bool is_served(const struct kg_problem *p, const struct kg_device *d, const char *op);

/* The next multiple of 256: what is put in one piece of memory is aligned so. */
static inline uint64_t round_up(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The one stride that cuBLAS cannot express is a last one other than 1. */
bool have_unit_columns(const struct kg_tensor *t, uint32_t count);

/* From one row of a matrix to the next. The stride of a single row may be anything, and cuBLAS
 * checks it. */
int64_t leading_of(const struct kg_tensor *t);

#endif
