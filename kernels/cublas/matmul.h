/*
 * matmul.h: one cuBLASLt product of row-major matrices, planned once and launched many times.
 */
#ifndef KG_CUBLAS_MATMUL_H
#define KG_CUBLAS_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

#include "../kernel.h"

#define MATMUL_WORKSPACE_BYTES ((uint64_t)32 << 20)

/* D[m, n] = A' B' with A' [m, k] and B' [k, n], row-major; a transposed one is stored as [k, m] or
 * [n, k]. With relu_bias D = max(0, A' B' + bias[n]). Leading dimensions are elements from one
 * stored row to the next. */
struct matmul {
    uint32_t dtype; /* enum kg_dtype, of all matrices and the bias */
    bool tf32, transpose_a, transpose_b, relu_bias;
    int64_t m, n, k;
    int64_t lda, ldb, ldd;
};

struct matmul_operands {
    const void *a, *b, *bias; /* bias: NULL without relu_bias */
    void *d;
    void *workspace; /* MATMUL_WORKSPACE_BYTES */
    void *stream;
};

enum kg_status matmul_open(void);
void matmul_close(void);

/* Asks for the heuristically best algorithm and keeps it. KG_UNSUPPORTED: there is none. */
enum kg_status matmul_prepare(const struct matmul *m);

/* Enqueues the product. One that was not prepared, such as one of a layout that only the launch
 * knows, is prepared now. */
enum kg_status matmul_launch(const struct matmul *m, const struct matmul_operands *o);

#endif
