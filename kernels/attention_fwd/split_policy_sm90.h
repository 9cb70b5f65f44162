/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_policy_sm90.h: how attention_fwd_split_sm90 shares a problem out, and what it and
 * attention_fwd_long_sm90 cost.
 *
 * Pure: supports(), workspace_bytes() and launch() ask at different times and must come to the
 * same.
 */
#ifndef KG_ATTENTION_FWD_SPLIT_POLICY_SM90_H
#define KG_ATTENTION_FWD_SPLIT_POLICY_SM90_H

#include "kernels/attention_fwd/tiles_sm90.h"

#define SPLIT_MOST_ROW_TILES 255 /* of a KV head: the plan is a parameter of the kernel */

struct split_plan {
    int consumers;    /* warpgroups of 64 rows */
    int tile_rows;    /* of them all */
    int rows;         /* packed rows of a KV head: queries times heads that share it */
    int row_tiles;    /* of a KV head */
    int items;        /* row tiles of all KV heads of all batches */
    int tiles_a_head; /* key tiles of all row tiles of a KV head */
    int tiles;        /* of all KV heads of all batches */
    int blocks;       /* share them equally */
    int step;         /* in steps of so many: 1, or what a row tile has */
    int share, extra; /* steps of a block, and how many of the first blocks have one more */
    int whole;        /* no row tile comes in parts */
    int slices;       /* warps that add up the parts of a row */
    int before[SPLIT_MOST_ROW_TILES + 1]; /* key tiles of a KV head before each row tile */
};

/* ---- costs, in clocks of a multiprocessor ---- */

/*
 * 64 rows on 64 keys: 4 D clocks of the tensor core and as much again for exponentials and waits
 * that nothing hides: 440 at D = 64, 720 at 128 (long kernel, (2, 16, 8192) full at 578 and 706
 * TFLOP/s). K and V of 64 keys come from the L2 at about 32 bytes a clock.
 */
static inline double cost_of_tile(const struct attention_sizes *p,
                                  const struct tile_sizes_sm90 *tile, int64_t warpgroups,
                                  double copy)
{
    const double products = (double)warpgroups * (100.0 + 5.0 * (double)tile->columns);
    const double copies = copy * (double)p->head_dim;
    return (products > copies ? products : copies) * (double)tile->keys / 64;
}

#define COST_OF_COPY_L2 8.0   /* a column of K and V of 64 keys */
#define COST_OF_COPY_HBM 13.0 /* of each multiprocessor, while all copy */

#define SPLIT_COST_OF_ITEM 4000.0    /* Q in, O out, the first scores with nothing beside */
#define LONG_COST_OF_ITEM 2500.0     /* its Q comes while another is worked on */
#define SPLIT_COST_OF_COMBINE 4000.0 /* a second kernel, for the first parts */
#define SPLIT_L2_BYTES (40 << 20)
#define SPLIT_BYTES_A_CLOCK 30.0 /* parts written and read, a multiprocessor */

/* Keys that a query sees. */
static inline int64_t keys_seen(const struct attention_sizes *p, int64_t query)
{
    const int64_t keys = query + 1 + p->seqlen_kv - p->seqlen_q;
    if (!(p->flags & KG_FLAG_CAUSAL))
        return p->seqlen_kv;
    return keys < 0 ? 0 : keys > p->seqlen_kv ? p->seqlen_kv : keys;
}

static inline int64_t key_tiles_seen(const struct attention_sizes *p, int64_t query, int64_t keys)
{
    const int64_t tiles = (keys_seen(p, query) + keys - 1) / keys;
    return tiles > 1 ? tiles : 1;
}

/* Fills in `before`; returns the key tiles of the head. */
static inline int64_t count_key_tiles(const struct attention_sizes *p, int64_t group, int64_t keys,
                                      struct split_plan *plan)
{
    int64_t all = 0;
    for (int t = 0; t < plan->row_tiles; t++) {
        const int64_t end = (int64_t)(t + 1) * plan->tile_rows;
        plan->before[t] = (int)all;
        all += key_tiles_seen(p, ((end < plan->rows ? end : plan->rows) - 1) / group, keys);
        if (all > INT32_MAX / 4)
            break;
    }
    return all;
}

/* blocks is 0 where the kernel does not serve the problem. */
static inline struct split_plan plan_split(const struct attention_sizes *p, int64_t sm_count)
{
    const struct tile_sizes_sm90 tile = sizes_of_tile<split_tile>(p->head_dim);
    const int64_t group = p->heads / p->kv_heads, heads = p->batch * p->kv_heads;
    struct split_plan plan = {};

    if (p->seqlen_q > INT32_MAX / 4 / group)
        return plan;
    const int64_t rows = p->seqlen_q * group, warpgroups = (rows + 63) / 64;
    /* As few row tiles as can be, then as even as can be. */
    const int64_t row_tiles = (warpgroups + tile.consumers - 1) / tile.consumers;
    if (row_tiles > SPLIT_MOST_ROW_TILES)
        return plan;
    plan.consumers = (int)((warpgroups + row_tiles - 1) / row_tiles);
    plan.tile_rows = plan.consumers * 64;
    plan.rows = (int)rows;
    plan.row_tiles = (int)((rows + plan.tile_rows - 1) / plan.tile_rows);
    const int64_t a_head = count_key_tiles(p, group, tile.keys, &plan);
    if (a_head > INT32_MAX / 4 / heads)
        return plan;
    plan.tiles_a_head = (int)a_head;
    plan.tiles = (int)(a_head * heads);
    plan.blocks = (int)(plan.tiles < sm_count ? plan.tiles : sm_count);

    /* Whole row tiles where they are all alike and that costs less than to add up parts. */
    const int64_t items = heads * plan.row_tiles;
    plan.items = (int)items;
    const int64_t longest = key_tiles_seen(p, p->seqlen_q - 1, tile.keys);
    const double each = cost_of_tile(p, &tile, plan.consumers, COST_OF_COPY_L2);
    plan.step = 1;
    plan.whole = longest == 1;
    if (items * longest == plan.tiles) {
        const int64_t turns = (items + sm_count - 1) / sm_count * longest;
        const double lost = ((double)turns - (double)plan.tiles / (double)sm_count) * each;
        if (items >= sm_count && lost < SPLIT_COST_OF_COMBINE) {
            plan.step = (int)longest;
            plan.whole = 1;
            plan.blocks = (int)(items < sm_count ? items : sm_count);
        }
    }
    plan.share = plan.tiles / plan.step / plan.blocks;
    plan.extra = plan.tiles / plan.step % plan.blocks;
    /* A warp of the second kernel reads up to 8 parts. */
    const int64_t parts = longest * plan.blocks / plan.tiles + 2;
    plan.slices = parts > 32 ? 8 : parts > 16 ? 4 : parts > 8 ? 2 : 1;
    return plan;
}

static inline double cost_of_split(const struct attention_sizes *p, const struct split_plan *plan)
{
    const struct tile_sizes_sm90 tile = sizes_of_tile<split_tile>(p->head_dim);
    /* Blocks that do several row tiles each are in all heads at once. */
    const int64_t bytes = p->batch * p->kv_heads * p->seqlen_kv * p->head_dim * 4;
    const bool passes_l2 = plan->items > 2 * plan->blocks && bytes > SPLIT_L2_BYTES;
    const double each =
        cost_of_tile(p, &tile, plan->consumers, passes_l2 ? COST_OF_COPY_HBM : COST_OF_COPY_L2);
    const int64_t share = (plan->tiles / plan->step + plan->blocks - 1) / plan->blocks * plan->step;
    const double items = (double)plan->items / plan->blocks;
    const double cost = ((double)share * each + (items + 1) * SPLIT_COST_OF_ITEM) *
                        (items > 1 && plan->consumers > 1 ? 1.2 : 1);
    if (plan->whole)
        return cost;
    return cost + SPLIT_COST_OF_COMBINE +
           4.0 * plan->tile_rows * (double)tile.columns * 4 / SPLIT_BYTES_A_CLOCK;
}

/* Row tiles of one head each; under a causal mask all blocks get about as much. */
static inline double cost_of_long(const struct attention_sizes *p, int64_t sm_count)
{
    const struct tile_sizes_sm90 tile = sizes_of_tile<long_tile>(p->head_dim);
    const int64_t rows = 64 * tile.consumers, row_tiles = (p->seqlen_q + rows - 1) / rows;
    const int64_t items = p->batch * p->heads * row_tiles;
    const int64_t longest = key_tiles_seen(p, p->seqlen_q - 1, tile.keys);
    const int64_t least =
        key_tiles_seen(p, rows < p->seqlen_q ? rows - 1 : p->seqlen_q - 1, tile.keys);
    const double each = cost_of_tile(p, &tile, tile.consumers, COST_OF_COPY_L2);
    const double mean = (double)(longest + least) / 2;
    const double turns = (double)((items + sm_count - 1) / sm_count);
    const double even = turns * (mean * each + LONG_COST_OF_ITEM);
    const double one = (double)longest * each;
    return even > one ? even : one;
}

#endif
