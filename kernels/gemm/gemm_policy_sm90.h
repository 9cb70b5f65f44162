/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_policy_sm90.h: which tile a product gets on compute capability 9.0.
 */
#ifndef KG_GEMM_POLICY_SM90_H
#define KG_GEMM_POLICY_SM90_H

#include "kernels/gemm/gemm_check.h"

/*
 * Tiles of gemm_sm90.cuh. 128 rows a block; the blocks of a cluster have the same columns. A turned
 * tile has columns of C as its rows: the few rows of a thin product are the columns of the tile.
 */
enum gemm_sm90_tile {
    GEMM_SM90_256,
    GEMM_SM90_128,
    GEMM_SM90_TURNED_16,
    GEMM_SM90_TURNED_32,
    GEMM_SM90_TURNED_64,
    GEMM_SM90_TURNED_96,
    GEMM_SM90_TURNED_128,
    GEMM_SM90_TURNED_160,
    GEMM_SM90_TURNED_192,
    GEMM_SM90_TURNED_224,
    GEMM_SM90_TURNED_256,
    GEMM_SM90_TILES
};

/* A tile, and in how many shares k is multiplied, each by other blocks of a cluster. */
struct gemm_sm90_choice {
    enum gemm_sm90_tile tile;
    int splits;
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

/* The tile of whole rows for which the busiest SM takes less. */
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

/* A tile, and the clocks that a multiprocessor takes for a stage of it, 64 of k. */
struct gemm_sm90_shape {
    int columns, turned, cluster;
    int64_t clocks;
};

/*
 * Clocks that a product takes, but for what all tiles take alike. The larger of two times counts
 * whole and the other for an eighth: the stages of the busiest multiprocessor, and the bytes of the
 * three matrices. Shares of k are added up in each wave.
 *
 * Of clusters of 4 and 8 blocks not as many run at once as there is room for: parts of 16 to 18
 * multiprocessors hold whole clusters only. Two blocks of a tile without multicast share a
 * multiprocessor, so their waves come in halves.
 */
static inline int64_t gemm_sm90_clocks(const struct gemm_sm90_shape *tile, int splits, int64_t m,
                                       int64_t n, int64_t k, int64_t sms)
{
    const int64_t rows = tile->turned ? n : m, columns = tile->turned ? m : n;
    const int64_t tiles =
        gemm_blocks(rows, 128 * tile->cluster) * gemm_blocks(columns, tile->columns);
    const int64_t size = tile->cluster * splits;
    const int64_t at_once = size <= 2 ? sms / size : size == 4 ? sms / 4 - 3 : sms / 8 - 1;
    int64_t halves = 2 * gemm_blocks(tiles, at_once);
    if (tile->cluster == 1) {
        halves = gemm_blocks(2 * tiles, at_once);
        halves = halves < 2 ? 2 : halves;
    }
    const int64_t stages = gemm_blocks(gemm_blocks(k, 64), splits);
    const int64_t work = halves * (stages * tile->clocks + 840) / 2;
    const int64_t memory = (m * k + n * k + m * n) / 1290;
    const int64_t column = splits == 1 ? 0 : splits == 2 ? 46 : splits == 4 ? 53 : 73;
    const int64_t adds = splits == 1 ? 0 : halves * (380 + tile->columns * column) / 2;
    return (work > memory ? work + memory / 8 : memory + work / 8) + adds;
}

/*
 * The tile and the shares of k that take least. The constants here and above were fitted to the
 * times of all tiles at 148 shapes on an H200, which are 1 to 8192 rows of common layers: the
 * choice takes 0.5 % longer than the best one, in the geometric mean. The clocks of a stage are
 * near 4 for a column (tensor cores), or 256 + 3 for a column (shared memory) where that is more.
 */
static inline struct gemm_sm90_choice gemm_sm90_choose(int64_t m, int64_t n, int64_t k, int64_t sms)
{
    static const struct gemm_sm90_shape shapes[GEMM_SM90_TILES] = {
        {256, 0, 2, 1065}, {128, 0, 2, 584}, {16, 1, 1, 485},   {32, 1, 1, 540},
        {64, 1, 1, 605},   {96, 1, 2, 545},  {128, 1, 2, 641},  {160, 1, 2, 721},
        {192, 1, 2, 888},  {224, 1, 2, 948}, {256, 1, 2, 1071},
    };
    struct gemm_sm90_choice best = {GEMM_SM90_256, 1};
    int64_t least = INT64_MAX;

    for (int tile = 0; tile < GEMM_SM90_TILES; tile++) {
        const int most = shapes[tile].turned ? 8 / shapes[tile].cluster : 1;
        for (int splits = 1; splits <= most && splits <= gemm_blocks(k, 64); splits *= 2) {
            const int64_t clocks = gemm_sm90_clocks(&shapes[tile], splits, m, n, k, sms);
            if (clocks < least) {
                best.tile = (enum gemm_sm90_tile)tile;
                best.splits = splits;
                least = clocks;
            }
        }
    }
    return best;
}

#endif
