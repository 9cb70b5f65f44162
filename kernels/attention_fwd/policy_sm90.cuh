/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_sm90.cuh: which Hopper kernel serves a problem, its tile sizes, how the split one shares a
 * problem out, and why. Figures are p50 on an H200 at fp16, inputs rotating over more than the L2.
 *
 * Pure: supports(), workspace_bytes() and launch() ask at different times and must come to the
 * same.
 */
#ifndef KG_ATTENTION_FWD_POLICY_SM90_CUH
#define KG_ATTENTION_FWD_POLICY_SM90_CUH

#include "kernels/attention_fwd/problem.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* ---- tiles of the kernels that read K and V through rings, by D ---- */

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

/* ---- how the split kernel shares a problem out ---- */

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

/* ---- tiles for short keys, and the choice ---- */

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
