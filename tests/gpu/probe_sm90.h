/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_sm90.h: single products by the Hopper layer of kernels/cuda, for its test.
 */
#ifndef TESTS_GPU_PROBE_SM90_H
#define TESTS_GPU_PROBE_SM90_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * D[64, n] = A[64, 128] B[128, n] in one way of reading the operands. In memory A is [64, 128] or,
 * MN-major, [128, 64]; B is [n, 128] or, MN-major, [128, n]; D is [64, n] of float. `rounded`, not
 * for tf32, gets D again, rounded to dtype and by way of a TMA store.
 */
struct probe {
    const char *name;
    uint32_t dtype;
    int n;
    int a_major, b_major; /* 1: MN-major */
    enum kg_status (*launch)(const void *a, const void *b, float *d, void *rounded, void *stream);
};

extern const struct probe probes_sm90[];
extern const unsigned n_probes_sm90;

#ifdef __cplusplus
}
#endif

#endif
