/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.h: the blocked product that all ops of the GEMM family are made of.
 */
#ifndef KG_HOST_MATMUL_H
#define KG_HOST_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/host/host.h"
#include "kernels/host/pack.h"

/* c[m, n] = a b, summed over depth k; a's extent is m, b's is n. c is stored in `dtype`. */
struct matmul {
    int64_t m, n, k;
    struct operand a, b;
    void *c;
    uint32_t dtype;
    int64_t c_stride;
    const void *bias; /* NULL, or n elements of `dtype`, added to each row before the ReLU */
    bool relu;
};

/* Bytes of workspace, for any instruction set. */
uint64_t matmul_workspace_bytes(int64_t m, int64_t n, int64_t k, int threads);

/* Computes it in all threads of the pool. The result does not depend on their number. */
void matmul(const struct host *host, const struct matmul *mm, float *workspace);

#endif
