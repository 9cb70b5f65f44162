/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_policy_sm90.h: which tile a product gets on compute capability 9.0.
 */
#ifndef KG_GEMM_POLICY_SM90_H
#define KG_GEMM_POLICY_SM90_H

#include "kernels/gemm/gemm_problem.h"

#ifdef __CUDACC__
#define GEMM_SM90_BOTH static __host__ __device__ inline
#else
#define GEMM_SM90_BOTH static inline
#endif

/*
 * Tiles of gemm_sm90.cuh. 128 rows a block, two blocks a cluster, which share the columns. A turned
 * tile has columns of C as its rows: the few rows of a thin product are the columns of the tile. It
 * is a block by itself, unless it is one of a pair.
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
    GEMM_SM90_PAIR_192, /* turned */
    GEMM_SM90_PAIR_256,
    GEMM_SM90_WIDE, /* 128 x 256, a block by itself, not turned */
    GEMM_SM90_TILES
};

/*
 * A tile, and in how many shares k is multiplied, each by another block of a cluster: that of all
 * tiles, or of the rest that whole waves leave over. Or all stages of all tiles are one line that
 * is cut into equal pieces, one a multiprocessor (stream-K; it needs a workspace).
 */
struct gemm_sm90_choice {
    enum gemm_sm90_tile tile;
    int splits;
    bool rest, stream;
};

/* Whether every line of a dense product can be reached by TMA: lines of 16-byte multiples. */
static inline int gemm_sm90_serves(const struct product_sizes *problem,
                                   const struct kg_device *device, int64_t line_1, int64_t line_2)
{
    const int64_t run = 16 / (int64_t)gemm_element_bytes(problem->dtype);
    return device->cc_major == 9 && device->cc_minor == 0 &&
           gemm_serves(device, problem->m, problem->n, problem->k) && line_1 % run == 0 &&
           line_2 % run == 0;
}

/* Whether TMA reaches every line of a matrix: they are less than 2^40 bytes apart. */
static inline int gemm_sm90_reaches(const struct gemm_matrix *matrix, uint32_t dtype)
{
    const int64_t most = ((int64_t)1 << 40) / (int64_t)gemm_element_bytes(dtype);
    return matrix->leading < most && matrix->apart < most && gemm_aligned(matrix, dtype);
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

/* A tile, and the clocks that a multiprocessor takes for a stage of it, 64 of k; and where the
 * lines of both matrices are no multiples of 128 bytes. */
struct gemm_sm90_shape {
    int columns;
    int64_t clocks, apart;
};

/*
 * A box has 128 bytes of each line of a matrix. Where these lie in two lines of the L2, it is asked
 * for more than it gives to all multiprocessors at once: for 1.7 clocks a line each, as measured.
 * Blocks of a pair share what they ask for, and lose nothing. Of tiles of up to 64 columns, which
 * wait for the memory, it is not known.
 */
static inline struct gemm_sm90_shape gemm_sm90_shape_of(enum gemm_sm90_tile tile)
{
    static const struct gemm_sm90_shape shapes[GEMM_SM90_TILES] = {
        {0, 0, 0},         {128, 636, 712},  {16, 510, 510},    {32, 539, 539},    {64, 618, 618},
        {96, 616, 960},    {128, 735, 1130}, {160, 676, 967},   {192, 852, 1150},  {224, 960, 1150},
        {256, 1072, 1330}, {192, 818, 830},  {256, 1072, 1080}, {256, 1120, 1330},
    };
    return shapes[tile];
}

/* Clocks in which the memory brings the three matrices. */
static inline int64_t gemm_sm90_memory_clocks(int64_t m, int64_t n, int64_t k)
{
    return (m * k + n * k + m * n) / 1306;
}

/* The larger of two times counts whole and the other for an eighth. */
static inline int64_t gemm_sm90_together(int64_t work, int64_t memory)
{
    return work > memory ? work + memory / 8 : memory + work / 8;
}

/* A product of 16-bit elements. b_k: B is K-major. */
struct gemm_sm90_product {
    int64_t m, n, k;
    bool b_k;
};

/* Clocks of a stage, of which the columns outside of the matrix cost `outside`. Where the lines of
 * one matrix alone lie in two of the L2's, it gives enough. */
static inline int64_t gemm_sm90_stage_clocks(enum gemm_sm90_tile tile,
                                             const struct gemm_sm90_product *p, int64_t outside)
{
    const struct gemm_sm90_shape shape = gemm_sm90_shape_of(tile);
    const bool apart = p->k % 64 && (p->b_k ? p->k : p->n) % 64;
    const int64_t inside = shape.clocks + outside;
    return apart && shape.apart > inside ? shape.apart : inside;
}

/* Clusters of so many blocks that run at once: parts of 16 to 18 multiprocessors hold whole ones.
 */
static inline int64_t gemm_sm90_at_once(int blocks, int64_t sms)
{
    const int64_t lost = blocks <= 2 ? 0 : blocks == 3 ? 6 : blocks == 4 ? 3 : 1;
    return sms / blocks > lost ? sms / blocks - lost : 1;
}

/*
 * Clocks that a product takes, but for what all tiles take alike; INT64_MAX for what is no choice.
 * They are the stages of the busiest multiprocessor together with the memory's. A row that the copy
 * engine finds outside of the matrix costs it more than one inside. To these comes the addition of
 * shares, in each wave. Two blocks of up to 64 columns are in a multiprocessor: their waves come in
 * halves, and clusters of four and eight leave no gaps.
 */
static inline int64_t gemm_sm90_clocks(const struct gemm_sm90_choice *choice,
                                       const struct gemm_sm90_product *p, int64_t sms)
{
    const enum gemm_sm90_tile tile = choice->tile;
    const struct gemm_sm90_shape shape = gemm_sm90_shape_of(tile);
    const int splits = choice->splits;
    const int64_t m = p->m, n = p->n, k = p->k;
    const bool plain = tile == GEMM_SM90_128, wide = tile == GEMM_SM90_WIDE;
    const bool pair = tile == GEMM_SM90_PAIR_192 || tile == GEMM_SM90_PAIR_256;
    const bool thin = shape.columns <= 64;
    const int64_t tiles = plain  ? gemm_blocks(m, 256) * gemm_blocks(n, 128)
                          : wide ? gemm_blocks(m, 128) * gemm_blocks(n, 256)
                                 : gemm_blocks(n, pair ? 256 : 128) * gemm_blocks(m, shape.columns);
    const int64_t at_once =
        thin && splits > 3 ? sms / splits : gemm_sm90_at_once(plain || pair ? 2 : splits, sms);
    const int64_t stages = gemm_blocks(k, 64), share = gemm_blocks(stages, splits);
    const int64_t rows = gemm_blocks(m, shape.columns), outside = rows * shape.columns - m;
    /* What lies outside is in the last row of tiles alone. Of its waves a multiprocessor spends
     * `cut` of `of` there; in pairs, which share their columns, the mean fits what was measured. */
    const int64_t waves = gemm_blocks(tiles, at_once);
    const int64_t cut = pair ? 1 : gemm_blocks(waves, rows), of = pair ? rows : waves;
    const int64_t clocks =
        gemm_sm90_stage_clocks(tile, p, plain || wide ? 0 : outside * 19 / 10 * cut / of);
    const int64_t column = splits == 2   ? (thin ? 60 : 51)
                           : splits == 3 ? (thin ? 26 : 43)
                           : splits == 4 ? 54
                                         : 59;
    const int64_t adds = splits == 1 ? 0 : 379 + shape.columns * column;
    int64_t halves = 2, work, after;

    if (choice->rest) {
        const int64_t rest = tiles % sms;
        if (tiles < sms || rest == 0 || rest > at_once || thin)
            return INT64_MAX;
        work = tiles / sms * (stages * clocks + 840) + share * clocks + 840;
        after = adds + 1493; /* its first stages do not come behind others */
    } else {
        if (splits > 1 && !thin && tiles > at_once)
            return INT64_MAX;
        if (!thin)
            halves = 2 * gemm_blocks(tiles, at_once);
        else if (2 * tiles > at_once)
            halves = gemm_blocks(2 * tiles, at_once);
        halves = halves < 2 ? 2 : halves;
        work = halves * (share * clocks + 840) / 2;
        after = halves * adds / 2;
    }
    return gemm_sm90_together(work, gemm_sm90_memory_clocks(m, n, k)) + after;
}

/*
 * Stream-K: the piece of one of `blocks` blocks, in stages of a line of tiles * stages. A block
 * first multiplies the part of its last tile whose end belongs to others, and writes its sums to
 * the workspace; then its whole tiles; last the end of its first tile, to which it adds what the
 * blocks before it have written. So it waits for blocks of a smaller index alone, and these wrote
 * long ago.
 */
struct gemm_sm90_piece {
    int64_t from, to;
};

GEMM_SM90_BOTH struct gemm_sm90_piece gemm_sm90_piece_of(int64_t tiles, int64_t stages, int blocks,
                                                         int block)
{
    const int64_t all = tiles * stages;
    const struct gemm_sm90_piece piece = {all * block / blocks, all * (block + 1) / blocks};
    return piece;
}

/* What stream-K needs: sums of a tile of 256 x 128 a block, and two flags. */
#define GEMM_SM90_STREAM_SUMS ((uint64_t)256 * 128 * 4)

static inline uint64_t gemm_sm90_stream_bytes(int64_t sms)
{
    return (uint64_t)sms * (GEMM_SM90_STREAM_SUMS + 2 * sizeof(uint32_t));
}

/* Clocks as above. The flags are cleared by a launch before, and sums go through the L2. */
static inline int64_t gemm_sm90_stream_clocks(const struct gemm_sm90_product *p, int64_t sms)
{
    const struct gemm_sm90_shape shape = gemm_sm90_shape_of(GEMM_SM90_TURNED_256);
    const int64_t tiles = gemm_blocks(p->n, 128) * gemm_blocks(p->m, shape.columns);
    const int64_t stages = gemm_blocks(p->k, 64),
                  outside = gemm_blocks(p->m, shape.columns) * shape.columns - p->m;
    const int64_t others = tiles < sms ? gemm_blocks(sms, tiles) : 1;
    const int64_t work = gemm_blocks(tiles * stages, sms) *
                             gemm_sm90_stage_clocks(GEMM_SM90_TURNED_256, p, outside * 19 / 10) +
                         (tiles / sms + 1) * 840;
    const int64_t after = 9000 + (1 + others) * (int64_t)(GEMM_SM90_STREAM_SUMS / 35);
    return gemm_sm90_together(work, gemm_sm90_memory_clocks(p->m, p->n, p->k)) + after;
}

/*
 * The tile and the shares of k that take least. The constants here and above were fitted on an H200
 * to the times of tiles at 180 shapes of common layers with 1 to 8192 rows; the choices take 0.4 %
 * longer than the best tile of each, in the geometric mean. Those of up to 64 columns were fitted
 * again to 20 shapes of up to 128 rows, where the choices take 0.05 % longer (1.16 % before). 224
 * columns, pairs, the wide tile, and lines that lie in two of the L2's came by 35 shapes of 257 to
 * 8192 rows, a third with such lines: 0.9 % longer there, and 8 % at most (7.3 % before).
 */
static inline struct gemm_sm90_choice gemm_sm90_choose(const struct gemm_sm90_product *p,
                                                       int64_t sms)
{
    static const int shares[] = {1, 2, 3, 4, 8};
    struct gemm_sm90_choice best = {GEMM_SM90_TURNED_256, 1, false, false};
    int64_t least = INT64_MAX;

    for (int tile = GEMM_SM90_128; tile < GEMM_SM90_TILES; tile++) {
        const bool shared = tile >= GEMM_SM90_TURNED_16 && tile <= GEMM_SM90_TURNED_256;
        if (tile == GEMM_SM90_WIDE && p->m <= 128)
            continue;
        for (int i = 0; i < (shared ? 5 : 1); i++)
            for (int rest = 0; rest < (i == 0 ? 1 : 2); rest++) {
                const struct gemm_sm90_choice choice = {(enum gemm_sm90_tile)tile, shares[i],
                                                        rest != 0, false};
                if (shares[i] > gemm_blocks(p->k, 64))
                    continue;
                const int64_t clocks = gemm_sm90_clocks(&choice, p, sms);
                if (clocks < least) {
                    best = choice;
                    least = clocks;
                }
            }
    }
    /* Where memory is the limit the wide tile asks for the thin operand half as often. */
    const int64_t memory = gemm_sm90_memory_clocks(p->m, p->n, p->k);
    const int64_t wide = gemm_blocks(gemm_blocks(p->n, 256), sms) *
                         (gemm_blocks(p->k, 64) * gemm_sm90_shape_of(GEMM_SM90_WIDE).clocks + 840);
    if (p->m > 64 && p->m <= 128 && wide < memory && memory + wide / 8 < least - least / 50) {
        best = (struct gemm_sm90_choice){GEMM_SM90_WIDE, 1, false, false};
    }
    /* Less is known of the difference between two tiles than of what stream-K saves. */
    if (best.tile >= GEMM_SM90_TURNED_256 && gemm_sm90_stream_clocks(p, sms) < least - least / 25) {
        best = (struct gemm_sm90_choice){GEMM_SM90_TURNED_256, 1, false, true};
    }
    return best;
}

/* What the choice needs beside its tensors. */
static inline uint64_t gemm_sm90_workspace(const struct gemm_sm90_product *p, int64_t sms)
{
    return gemm_sm90_choose(p, sms).stream ? gemm_sm90_stream_bytes(sms) : 0;
}

/* ---- e4m3 (gemm_fp8_sm90.cu) ---- */

/* By columns, with 128 rows of C; thin ones by rows of C, with 128 columns. */
enum gemm_fp8_tile {
    GEMM_FP8_192,
    GEMM_FP8_128,
    GEMM_FP8_64,
    GEMM_FP8_THIN_16,
    GEMM_FP8_THIN_32,
    GEMM_FP8_THIN_64,
    GEMM_FP8_TILES
};

/* A tile, and in how many shares k is multiplied, each by another block of a cluster. */
struct gemm_fp8_choice {
    enum gemm_fp8_tile tile;
    int splits;
};

/* A tile, and the clocks of 128 of k with one scale a matrix [0] and with scales of blocks [1]. */
struct gemm_fp8_shape {
    int rows, columns;
    int64_t clocks[2];
};

/*
 * Twice the clocks of the busiest multiprocessor. It has two thin tiles at once: their waves come
 * in halves. What memory takes is not in it, since that changed no choice.
 */
static inline int64_t gemm_fp8_clocks(const struct gemm_fp8_shape *tile, int splits, int64_t m,
                                      int64_t n, int64_t k, bool blocks, int64_t sms)
{
    const int64_t tiles = gemm_blocks(m, tile->rows) * gemm_blocks(n, tile->columns);
    const int64_t at_once = gemm_sm90_at_once(splits, sms);
    const int64_t share = gemm_blocks(gemm_blocks(k, 128), splits);
    const int64_t adds = splits == 1 ? 0 : 35 * tile->rows;
    const int64_t halves = tile->rows < 128 && 2 * tiles > at_once
                               ? gemm_blocks(2 * tiles, at_once)
                               : 2 * gemm_blocks(tiles, at_once);
    return halves * (share * tile->clocks[blocks] + 800 + adds);
}

/*
 * The tile and the shares of k that take least. Thin ones where C can be written so, with up to 128
 * rows: of more, B would be read too often. The constants here and above were fitted on an H200 to
 * the times of all tiles at 16 shapes of 1 to 8192 rows with both kinds of scales; the choices take
 * 0.3 % longer than the best tile of each, in the geometric mean, and 5 % at most.
 */
static inline struct gemm_fp8_choice gemm_fp8_choose(int64_t m, int64_t n, int64_t k, bool blocks,
                                                     bool thin, int64_t sms)
{
    static const struct gemm_fp8_shape shapes[GEMM_FP8_TILES] = {
        {128, 192, {886, 959}}, {128, 128, {587, 684}}, {128, 64, {314, 423}},
        {16, 128, {222, 247}},  {32, 128, {290, 336}},  {64, 128, {439, 489}},
    };
    struct gemm_fp8_choice best = {GEMM_FP8_192, 1};
    int64_t least = INT64_MAX;

    for (int tile = 0; tile < (thin && m <= 128 ? GEMM_FP8_TILES : GEMM_FP8_THIN_16); tile++)
        for (int splits = 1; splits <= (tile < GEMM_FP8_THIN_16 ? 1 : 3); splits++) {
            const int64_t clocks = gemm_fp8_clocks(&shapes[tile], splits, m, n, k, blocks, sms);
            if (clocks < least) {
                best.tile = (enum gemm_fp8_tile)tile;
                best.splits = splits;
                least = clocks;
            }
        }
    return best;
}

#endif
