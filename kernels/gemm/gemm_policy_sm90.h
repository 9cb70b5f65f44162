/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_policy_sm90.h: which tile a product gets on compute capability 9.0.
 */
#ifndef KG_GEMM_POLICY_SM90_H
#define KG_GEMM_POLICY_SM90_H

#include "kernels/gemm/gemm_check.h"

/* Tiles of gemm_sm90.cuh: 128 rows a block, two blocks a cluster, so many columns. */
enum gemm_sm90_tile {
    GEMM_SM90_128 = 128,
    GEMM_SM90_256 = 256,
};

/* Whether every line of a dense product can be reached by TMA: lines of 16-byte multiples. */
static inline int gemm_sm90_serves(const struct kg_problem *problem, const struct kg_device *device,
                                   int64_t line_1, int64_t line_2)
{
    const int64_t run = 16 / (int64_t)gemm_element_bytes(problem->dtype);
    return device->cc_major == 9 && device->cc_minor == 0 &&
           gemm_serves(device, problem->m, problem->n, problem->k) && line_1 % run == 0 &&
           line_2 % run == 0;
}

/* Whether TMA reaches every line of a matrix: they are less than 2^40 bytes apart. */
static inline int gemm_sm90_reaches(const struct gemm_matrix *matrix, uint32_t dtype)
{
    return matrix->leading < ((int64_t)1 << 40) / (int64_t)gemm_element_bytes(dtype) &&
           gemm_aligned(matrix, dtype);
}

static inline int gemm_sm90_reaches_all(const struct gemm_call *call)
{
    return gemm_sm90_reaches(&call->a, call->dtype) && gemm_sm90_reaches(&call->b, call->dtype) &&
           gemm_sm90_reaches(&call->c, call->dtype);
}

/*
 * Clocks that an SM takes for a tile of 128 rows. A stage (128 bytes of k) of 256 columns is 1024
 * clocks of tensor work and reads 128 bytes a clock of shared memory, which is all there is; one of
 * 128 columns is 512 and would read 160, so it takes 640; one of 64 takes 448. The tile takes 600
 * more to leave. Measured: 722 against 766 TFLOP/s at 4096^3 for 128 against 256 columns, and 9.4
 * against 13.6 us at 1024 x 2048 x 784, where the larger tile leaves half of the SMs idle.
 */
static inline int64_t gemm_sm90_tile_clocks(int64_t columns, int64_t blocks_k)
{
    return blocks_k * (columns == 256 ? 1024 : columns == 128 ? 640 : 448) + 600;
}

/* The tile for which the busiest SM takes less. */
static inline enum gemm_sm90_tile gemm_sm90_tile_of(int64_t m, int64_t n, int64_t blocks_k,
                                                    int64_t sms)
{
    const int64_t rows = gemm_blocks(m, 256), clusters = sms / 2;
    const int64_t waves_128 = gemm_blocks(rows * gemm_blocks(n, 128), clusters);
    const int64_t waves_256 = gemm_blocks(rows * gemm_blocks(n, 256), clusters);
    return waves_128 * gemm_sm90_tile_clocks(128, blocks_k) <
                   waves_256 * gemm_sm90_tile_clocks(256, blocks_k)
               ? GEMM_SM90_128
               : GEMM_SM90_256;
}

#endif
