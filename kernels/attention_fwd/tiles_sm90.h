/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiles_sm90.h: the tiles of the Hopper kernels that read K and V through rings, by D. Figures are
 * p50 on an H200 at fp16, inputs rotating over more than the L2.
 */
#ifndef KG_ATTENTION_FWD_TILES_SM90_H
#define KG_ATTENTION_FWD_TILES_SM90_H

#include "kernels/attention_fwd/problem_sm90.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* A D that has no tile of its own takes the next; TMA fills up with zeros. */
static inline int tile_columns(int64_t head_dim)
{
    return head_dim <= 64    ? 64
           : head_dim <= 96  ? 96
           : head_dim <= 128 ? 128
           : head_dim <= 192 ? 192
                             : 256;
}

/*
 * Consumers as registers allow: two of 240, or at D = 64 four of 112 (FOUR), where S of 64 keys, P
 * and O take 80. At D = 96 three of 160 with 96 keys were 9 % faster to 21 % slower than two.
 */
template <typename T_, int D_, bool FOUR> struct ring_tile {
    using T = T_;
    static constexpr int D = D_;
    static constexpr int CONSUMERS = FOUR ? 4 : 2;
    static constexpr int KEYS = FOUR || D == 256 ? 64 : D == 192 ? 96 : 128;
    static constexpr int PRODUCER_REGISTERS = FOUR ? 32 : 24;
    static constexpr int CONSUMER_REGISTERS = FOUR ? 112 : 240;
    static constexpr int POLYNOMIAL = 0;
    static constexpr int ROWS = 64 * CONSUMERS, THREADS = 128 * (CONSUMERS + 1);
    /* Consumers take what the producer gives back of the registers that the block was launched
     * with, in eights a thread. A request for more waits for ever. */
    static constexpr int LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8;
    static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <=
                      (CONSUMERS + 1) * LAUNCH_REGISTERS,
                  "more registers than the block has");
    static constexpr int PANELS = (D + 63) / 64; /* of 64 columns */
    static constexpr int Q_BYTES = ROWS * PANELS * 128, KV_BYTES = KEYS * PANELS * 128;
};

/*
 * attention_fwd_long. Four consumers at D = 64: 480 us for three of 160 with twice the keys in work
 * and 534, at (8, 32, 2048, 64) full. No polynomial. The next Q comes while one is worked on: -1.8
 * to -6.5 % at D = 64, +0.3 to -1.1 % at D = 128; from D = 192 on shared memory has no room for it,
 * and O leaves by one panel at a time. At D = 128 two stages of K, where three take 1.5 to 3.6 %
 * longer, and three of V change nothing; at D = 64 three to eight are the same.
 */
template <typename T_, int D_> struct long_tile : ring_tile<T_, D_, D_ == 64> {
    using base = ring_tile<T_, D_, D_ == 64>;
    static constexpr int Q_STAGES = D_ <= 128 ? 2 : 1;
    static constexpr int K_STAGES = D_ == 64 ? 8 : 2, V_STAGES = K_STAGES;
    static constexpr int O_PANELS = D_ == 64 || D_ == 128 ? base::PANELS : 1;
    static constexpr int O_BYTES = base::ROWS * O_PANELS * 128;
};

/* attention_fwd_split: one Q, no place for O, and as many stages as there is room for. Memory is
 * what bounds decode: 1.27 times as fast at D = 80 and batch 32 as with two stages. */
template <typename T_, int D_> struct split_tile : ring_tile<T_, D_, false> {
    static constexpr int K_STAGES = D_ == 64 ? 6 : D_ == 192 ? 2 : 3;
    static constexpr int V_STAGES = D_ == 64 ? 6 : D_ <= 128 ? 3 : 2;
};

struct tile_sizes_sm90 {
    int64_t columns, keys, consumers;
};

template <typename Tile>
constexpr struct tile_sizes_sm90 sizes_of_sm90 = {Tile::D, Tile::KEYS, Tile::CONSUMERS};

template <template <typename, int> class Tile>
static inline struct tile_sizes_sm90 sizes_of_tile(int64_t head_dim)
{
    switch (tile_columns(head_dim)) {
    case 64:
        return sizes_of_sm90<Tile<__half, 64>>;
    case 96:
        return sizes_of_sm90<Tile<__half, 96>>;
    case 128:
        return sizes_of_sm90<Tile<__half, 128>>;
    case 192:
        return sizes_of_sm90<Tile<__half, 192>>;
    default:
        return sizes_of_sm90<Tile<__half, 256>>;
    }
}

template <template <typename, int> class Tile, typename T, typename Run>
static inline enum kg_status with_tile_of(const struct attention_sizes *p, Run run)
{
    switch (tile_columns(p->head_dim)) {
    case 64:
        return run.template run<Tile<T, 64>>();
    case 96:
        return run.template run<Tile<T, 96>>();
    case 128:
        return run.template run<Tile<T, 128>>();
    case 192:
        return run.template run<Tile<T, 192>>();
    default:
        return run.template run<Tile<T, 256>>();
    }
}

/* run.run<Tile<T, D>>() for the problem's T and D. */
template <template <typename, int> class Tile, typename Run>
static inline enum kg_status with_tile(const struct attention_sizes *p, Run run)
{
    return p->dtype == KG_F16 ? with_tile_of<Tile, __half>(p, run)
                              : with_tile_of<Tile, __nv_bfloat16>(p, run);
}

#endif
