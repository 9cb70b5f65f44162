/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splitkv_plan.h: how attention_fwd_splitkv cuts up a problem.
 *
 * Pure: workspace_bytes() and launch() ask at different times and must come to the same.
 */
#ifndef KG_ATTENTION_FWD_SPLITKV_PLAN_H
#define KG_ATTENTION_FWD_SPLITKV_PLAN_H

#include "kernels/attention_fwd/combine.h"
#include "kernels/attention_fwd/tile_policy.h"

#include <cuda_fp16.h>

struct splitkv_plan {
    bool wide;         /* wide_tile, else decode_tile */
    int64_t rows;      /* packed rows of a KV head, see combine.h */
    int64_t row_tiles; /* tiles that these take */
    int64_t splits;    /* blocks that share the keys of a row tile; 1: no combine kernel */
};

/* A tile's sizes at run time. */
struct tile_sizes {
    int64_t rows, keys, groups;
};

template <typename Tile>
constexpr struct tile_sizes sizes_of = {Tile::ROWS, Tile::KEYS, Tile::GROUPS};

constexpr int SPLITKV_DECODE_ROWS = decode_tile<__half, 64>::ROWS;
constexpr int SPLITKV_WIDE_ROWS = wide_tile<__half, 64>::ROWS;
constexpr int SPLITKV_SHARED_BYTES = decode_tile<__half, 64>::RINGS_BYTES;
static_assert(SPLITKV_SHARED_BYTES == decode_tile<__half, 128>::RINGS_BYTES &&
                  SPLITKV_SHARED_BYTES == wide_tile<__half, 64>::RINGS_BYTES &&
                  SPLITKV_SHARED_BYTES == wide_tile<__half, 128>::RINGS_BYTES,
              "one figure for the occupancy of all tiles");

static inline struct tile_sizes tile_of(bool wide, int64_t head_dim)
{
    if (wide)
        return head_dim == 64 ? sizes_of<wide_tile<__half, 64>> : sizes_of<wide_tile<__half, 128>>;
    return head_dim == 64 ? sizes_of<decode_tile<__half, 64>> : sizes_of<decode_tile<__half, 128>>;
}

/*
 * The number of splits that finishes first, in a model where blocks run in waves of `slots` and a
 * block takes the longest walk of its groups, in keys, and an overhead for filling the ring and
 * merging; combining costs twice that overhead. The overhead, as many keys as the tile has rows, is
 * a guess at the scale on which a walk is short. Ties go to fewer splits.
 */
static inline int64_t choose_splits(const struct tile_sizes &tile, int64_t keys, int64_t blocks,
                                    int64_t slots)
{
    const int64_t overhead = tile.rows;
    const int64_t key_tiles = (keys + tile.keys - 1) / tile.keys;
    int64_t best = 1, best_cost = INT64_MAX;

    for (int64_t splits = 1; splits <= COMBINE_MAX_SPLITS; splits++) {
        /* A split with less than a tile a group, or the fifth wave, gains nothing. */
        if (splits > 1 && (splits * tile.groups > key_tiles || splits * blocks > 4 * slots))
            break;
        const int64_t waves = (blocks * splits + slots - 1) / slots;
        const int64_t walk = (key_tiles + splits * tile.groups - 1) / (splits * tile.groups);
        const int64_t cost =
            waves * (walk * tile.keys + overhead) + (splits > 1 ? 2 * overhead : 0);
        if (cost < best_cost) {
            best_cost = cost;
            best = splits;
        }
    }
    return best;
}

static inline struct splitkv_plan plan_splitkv(const struct attention_sizes *p, int64_t sm_count,
                                               int64_t shared_optin)
{
    const int64_t reserved = 1024; /* shared memory a block that the system keeps */
    struct splitkv_plan plan;

    plan.rows = p->seqlen_q * (p->heads / p->kv_heads);
    plan.wide = plan.rows > SPLITKV_DECODE_ROWS;
    const struct tile_sizes tile = tile_of(plan.wide, p->head_dim);
    plan.row_tiles = (plan.rows + tile.rows - 1) / tile.rows;

    const int64_t fit = (shared_optin + reserved) / (SPLITKV_SHARED_BYTES + reserved);
    const int64_t per_sm = plan.wide || fit < 2 ? 1 : 2;
    plan.splits = choose_splits(tile, p->seqlen_kv, p->batch * p->kv_heads * plan.row_tiles,
                                sm_count * per_sm);
    return plan;
}

#endif
