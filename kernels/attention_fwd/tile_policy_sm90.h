/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_policy_sm90.h: which Hopper kernel serves a problem, its tile sizes, and why. Figures are
 * p50 on an H200 at fp16, inputs rotating over more than the L2.
 */
#ifndef KG_ATTENTION_FWD_TILE_POLICY_SM90_H
#define KG_ATTENTION_FWD_TILE_POLICY_SM90_H

#include "kernels/attention_fwd/problem_sm90.cuh"

/*
 * Short: D = 64 and all keys of a head, 128 KB of K and V, in shared memory. Two kernels, by the
 * number of 64-row tiles, which is the number of blocks that the latency kernel needs.
 */
constexpr int SHORT_KEYS = 128, SHORT_CHUNKS = 4, SHORT_MOST_KEYS = SHORT_KEYS * SHORT_CHUNKS;

/* One exponential in four by polynomial: 5.59 us for 5.76 at (1, 8, 512, 64), 6.01 for 6.28 at
 * batch 2. Two warpgroups leave issue slots idle. */
constexpr int LATENCY_POLYNOMIAL = 4;

/* Row tiles a warpgroup: one (4 a block, 160 KB in) or two (8 a block, 192 KB, K and V once a
 * head). Two where they fill the device. Turns with one and no mask: 11.85 for 12.0 us at
 * (4, 16, 512, 64); with two the same as none, and under a mask 1 % slower or more. */
template <typename T_, int TILES_, bool TURNS_> struct resident_tile {
    using T = T_;
    static constexpr int TILES = TILES_;
    static constexpr bool TURNS = TURNS_;
    static constexpr int KEYS = 64, KEY_TILES = SHORT_MOST_KEYS / KEYS;
    static constexpr int POLYNOMIAL = 0;
    static constexpr int Q_BYTES = 64 * 64 * 2, KEY_BYTES = KEYS * 64 * 2;
};

static inline bool resident_takes_two(const struct kg_problem *p, int sm_count)
{
    return p->batch * p->heads * ((p->seqlen_q + 511) / 512) * 10 >= 9 * (int64_t)sm_count;
}

/*
 * Long: K and V pass through rings. Consumers as registers allow: at D = 64 four of 112, where S of
 * 64 keys, P and O take 80; 480 us for three of 160 with twice the keys in work and 534, at
 * (8, 32, 2048, 64) full. Two of 240 at D = 128. No polynomial. The next Q comes while one is
 * worked on: -1.8 to -6.5 % at D = 64, +0.3 to -1.1 % at D = 128. At D = 128 two stages of K, where
 * three take 1.5 to 3.6 % longer, and three of V change nothing; at D = 64 three to eight are the
 * same.
 */
template <typename T_, int D_> struct long_tile {
    using T = T_;
    static constexpr int D = D_;
    static constexpr int CONSUMERS = D == 64 ? 4 : 2;
    static constexpr int KEYS = D == 64 ? 64 : 128;
    static constexpr int Q_STAGES = 2, K_STAGES = D == 64 ? 8 : 2, V_STAGES = D == 64 ? 8 : 2;
    static constexpr int PRODUCER_REGISTERS = D == 64 ? 32 : 24;
    static constexpr int CONSUMER_REGISTERS = D == 64 ? 112 : 240;
    static constexpr int POLYNOMIAL = 0;
    static constexpr int ROWS = 64 * CONSUMERS, THREADS = 128 * (CONSUMERS + 1);
    /* Consumers take what the producer gives back of the registers that the block was launched
     * with, in eights a thread. A request for more waits for ever. */
    static constexpr int LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8;
    static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <=
                      (CONSUMERS + 1) * LAUNCH_REGISTERS,
                  "more registers than the block has");
    static constexpr int Q_BYTES = ROWS * D * 2, KV_BYTES = KEYS * D * 2;
};

enum sm90_kernel { SM90_NONE, SM90_LATENCY, SM90_RESIDENT, SM90_LONG };

/*
 * Few rows go to attention_fwd_splitkv, which packs the query heads of a KV head into one tile and
 * splits the keys; so do long keys with too few rows to give half of the multiprocessors three
 * warpgroups of 64 at D = 64, or two. What no other kernel takes, a scale that is negative or next
 * to zero, is taken here whatever the shape.
 */
static inline enum sm90_kernel choose_sm90(const struct kg_problem *p,
                                           const struct kg_device *device)
{
    if (!attention_sm90_supports(p, device))
        return SM90_NONE;
    const bool any = !attention_supports(p, device);
    if (p->seqlen_q * (p->heads / p->kv_heads) <= 16 && !any)
        return SM90_NONE;
    if (p->head_dim == 64 && p->seqlen_kv <= SHORT_MOST_KEYS)
        return p->batch * p->heads * ((p->seqlen_q + 63) / 64) <= device->sm_count ? SM90_LATENCY
                                                                                   : SM90_RESIDENT;
    const int64_t rows = p->head_dim == 64 ? 192 : 128;
    const int64_t items = p->batch * p->heads * ((p->seqlen_q + rows - 1) / rows);
    if (items > INT32_MAX / 4 || (items * 2 < device->sm_count && !any))
        return SM90_NONE;
    return SM90_LONG;
}

#endif
