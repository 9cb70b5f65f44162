/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.h: one cuBLASLt product of row-major matrices, planned once and launched many times.
 */
#ifndef KG_CUBLAS_MATMUL_H
#define KG_CUBLAS_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

#define MATMUL_WORKSPACE_BYTES ((uint64_t)32 << 20)
/* From one row to the next, at most: kernels of cuBLAS 13 with an epilogue, and those that it has
 * for one column of 16-bit types, read elsewhere when these bytes do not fit an int. */
#define MATMUL_ROW_BYTES INT32_MAX

/* What is done to the fp32 sums before they are rounded and stored. */
enum matmul_epilogue {
    MATMUL_PLAIN,
    MATMUL_BIAS,      /* + bias[n] */
    MATMUL_RELU_BIAS, /* max(0, + bias[n]) */
};

/* D[m, n] = epilogue(A' B') with A' [m, k] and B' [k, n], row-major; a transposed one is stored as
 * [k, m] or [n, k]. Leading dimensions are elements from one stored row to the next. */
struct matmul {
    uint32_t dtype; /* enum kg_dtype, of all matrices and the bias */
    bool tf32, transpose_a, transpose_b;
    enum matmul_epilogue epilogue;
    int64_t m, n, k;
    int64_t lda, ldb, ldd;
};

struct matmul_operands {
    const void *a, *b, *bias; /* bias: NULL with MATMUL_PLAIN */
    void *d;
    void *workspace; /* MATMUL_WORKSPACE_BYTES */
    void *stream;
};

/* `timed`: matmul_prepare() takes the fastest of the algorithms that cuBLASLt's heuristics name, by
 * trying them (matmul_tune.h); else the one that they name first. */
enum kg_status matmul_open(bool timed);
void matmul_close(void);

/* Whether its result is rounded once, as kernel.h asks. With a bias cuBLASLt rounds the sum and
 * then the sum with its bias where rows of 16-bit types are no multiples of 16 bytes. */
bool matmul_rounds_once(const struct matmul *m);

/* Products that are planned: the list that a kernel's plan is. NULL: none. */
struct matmul_plan;

/* Chooses an algorithm and puts it at the end of the list at *plans, unless it is there.
 * KG_UNSUPPORTED: there is none that rounds once. */
enum kg_status matmul_prepare(const struct matmul *m, struct matmul_plan **plans);

/* Frees a list of plans. */
void matmul_release(void *plans);

/* Enqueues the product. One that was not prepared, such as one of a layout that only the launch
 * knows, takes the algorithm that is named first, and joins `plans`. KG_UNSUPPORTED: rows are too
 * far apart, or it would not round once. */
enum kg_status matmul_launch(const struct matmul *m, void *plans, const struct matmul_operands *o);

#endif
