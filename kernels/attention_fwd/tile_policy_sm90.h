/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_policy_sm90.h: which Hopper kernel serves a problem, its tile sizes, and why. Figures are
 * p50 on an H200 at fp16, inputs rotating over more than the L2.
 */
#ifndef KG_ATTENTION_FWD_TILE_POLICY_SM90_H
#define KG_ATTENTION_FWD_TILE_POLICY_SM90_H

#include "kernels/attention_fwd/problem_sm90.cuh"
#include "kernels/attention_fwd/split_policy_sm90.h"

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

/* One warpgroup, up to 256 keys. */
constexpr int SHORT_LEAST_KEYS = 256;
template <typename T_> struct short_tile {
    using T = T_;
    static constexpr int D = 64, PANELS = 1, ROWS = 64, KEYS = 64;
    static constexpr int K_STAGES = SHORT_LEAST_KEYS / KEYS, V_STAGES = K_STAGES;
    static constexpr int POLYNOMIAL = 0;
    static constexpr int Q_BYTES = ROWS * 128, KV_BYTES = KEYS * 128;
};

static inline bool resident_takes_two(const struct attention_sizes *p, int sm_count)
{
    const int64_t heads = p->batch * p->heads;
    const int64_t twos = heads * ((p->seqlen_q + 511) / 512);
    const int64_t ones = heads * ((p->seqlen_q + 255) / 256);
    return twos * 10 >= 9 * (int64_t)sm_count &&
           (twos + sm_count - 1) / sm_count * 2 <= (ones + sm_count - 1) / sm_count;
}

enum sm90_kernel { SM90_NONE, SM90_LATENCY, SM90_RESIDENT, SM90_SHORT, SM90_LONG, SM90_SPLIT };

/*
 * Up to 16 packed rows go to attention_fwd_decode at D = 64 and 128. Short keys at D = 64 have
 * kernels of their own, unless the rows of a KV head, packed, make half as many tiles. All else
 * goes to what costs less, the long kernel or the split one.
 */
static inline enum sm90_kernel choose_sm90(const struct attention_sizes *p,
                                           const struct kg_device *device)
{
    if (!attention_sm90_supports(p, device))
        return SM90_NONE;
    const int64_t rows = p->seqlen_q * (p->heads / p->kv_heads);
    const int64_t short_tiles = p->heads * ((p->seqlen_q + 63) / 64);
    if (rows <= 16 && attention_supports(p, device) && device->sm_count >= 132)
        return SM90_NONE;
    if (p->head_dim == 64 && p->seqlen_kv <= SHORT_MOST_KEYS &&
        short_tiles < 2 * p->kv_heads * ((rows + 63) / 64) && p->batch * short_tiles <= INT32_MAX)
        return p->batch * short_tiles <= device->sm_count ? SM90_LATENCY
               : p->seqlen_kv <= SHORT_LEAST_KEYS         ? SM90_SHORT
                                                          : SM90_RESIDENT;
    const struct split_plan plan = plan_split(p, device->sm_count);
    const int64_t long_rows = 64 * sizes_of_tile<long_tile>(p->head_dim).consumers;
    const int64_t items = p->batch * p->heads * ((p->seqlen_q + long_rows - 1) / long_rows);
    if (plan.blocks > 0 &&
        (items > INT32_MAX / 4 || cost_of_split(p, &plan) < cost_of_long(p, device->sm_count)))
        return SM90_SPLIT;
    return items > INT32_MAX / 4 ? SM90_NONE : SM90_LONG;
}

#endif
