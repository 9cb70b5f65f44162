/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_long_sm90: attention forward on Hopper for more keys than shared memory holds.
 *
 * Regime     what costs least here by the model of policy_sm90.cuh; D up to 256
 * Block      one a multiprocessor, stays: a producer warp and 4 (D = 64) or 2 warpgroups of 64 rows
 *            that share K and V tiles of 64 to 128 keys, which come by TMA through two rings; a
 *            third brings the next Q while one is worked on
 * Pipeline   the scores of a tile and O += P V of the one before are issued together; while a
 *            warpgroup takes exponentials, its O and the products of the others are at work; two
 *            take turns
 * Items      see locate(): under a causal mask all blocks get about as much
 * Resources  112 or 240 registers a consumer, no spills; 225 KB of shared memory
 * Work       179 instructions a warp for 64 rows x 64 keys at D = 64, 32 of them on the special
 *            function unit, which takes as long for its part as the tensor core
 * Measured   H200, fp16, (2, 16, 8192, 128) full: 706 TFLOP/s, 71 % of the peak at full clock;
 *            causal 645; (2, 32, 8192, 64) full: 578, causal 601 (docs/results.md)
 */
#include "kernels/attention_fwd/key_stream_sm90.cuh"
#include "kernels/attention_fwd/policy_sm90.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_long_sm90
{

struct long_params {
    struct attention_sm90 a;
    int heads, batch;
    int row_tiles;   /* of a head */
    int pair_rounds; /* see locate() */
};

/* A row tile to be worked on. */
struct item {
    int row;       /* the first */
    int key_tiles; /* 0: no more items */
    int head, batch;
};

/* Key tiles that the rows before `end` see, one at least. */
template <int KEYS>
__device__ __forceinline__ int key_tiles_of(const struct attention_sm90 &a, int end)
{
    return max(1, (visible_keys(a, min(end, a.seqlen_q) - 1) + KEYS - 1) / KEYS);
}

/*
 * The n-th item of this block; false when there is none at that place.
 *
 * Under a causal mask the row tiles of a head differ in length. The first and the last make a pair,
 * the second and the last but one, ..: all pairs are as long. Blocks take pairs in the order of the
 * heads, so that those at work share K and V in L2. What is left after pair_rounds pairs a block is
 * dealt out as single tiles, the longest first, there and back over the blocks: that evens out what
 * a whole number of pairs cannot.
 */
template <int ROWS, int KEYS>
__device__ __forceinline__ bool locate(const struct long_params &p, int n, struct item *i)
{
    const int pairs_a_head = (p.row_tiles + 1) / 2;
    int pair, later;

    i->key_tiles = 0;
    if (n < 2 * p.pair_rounds) {
        /* Turned by one each round: a middle tile, half a pair, would come to the same blocks. */
        pair = n / 2 * gridDim.x + (blockIdx.x + n / 2) % gridDim.x;
        later = n % 2 == 0;
    } else {
        const int first = p.pair_rounds * gridDim.x;
        const int pairs = p.batch * p.heads * pairs_a_head - first;
        const int round = n - 2 * p.pair_rounds;
        int at = round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
        if (round * gridDim.x >= 2 * pairs)
            return true;
        if (at >= 2 * pairs)
            return false;
        later = at < pairs;
        at = later ? at : 2 * pairs - 1 - at;
        /* By place in the head, then by head. The first head may lack its first places. */
        const int lacking = first % pairs_a_head, others = (pairs + lacking) / pairs_a_head - 1;
        const int early = lacking * others;
        const int place = at < early ? at / others : lacking + (at - early) / (others + 1);
        const int head = at < early ? 1 + at % others : (at - early) % (others + 1);
        pair = (first / pairs_a_head + head) * pairs_a_head + place;
    }
    const int place = pair % pairs_a_head, other = p.row_tiles - 1 - place;
    if (place == other && !later)
        return false; /* the middle one makes a pair alone */
    i->row = (later ? other : place) * ROWS;
    i->head = pair / pairs_a_head % p.heads;
    i->batch = pair / pairs_a_head / p.heads;
    i->key_tiles = key_tiles_of<KEYS>(p.a, i->row + ROWS);
    return true;
}

/* Two of a Q stage: where its output goes is still read when its next Q is asked for. */
template <typename Tile> __device__ __forceinline__ int slot(ring_place<Tile::Q_STAGES> q_at)
{
    return q_at.stage * 2 + q_at.parity;
}

template <typename Tile> struct shared_layout {
    static constexpr int Q = 0;
    static constexpr int O = Q + Tile::Q_STAGES * Tile::Q_BYTES;
    static constexpr int K = O + Tile::O_BYTES;
    static constexpr int V = K + Tile::K_STAGES * Tile::KV_BYTES;
    static constexpr int K_RING = V + Tile::V_STAGES * Tile::KV_BYTES;
    static constexpr int V_RING = K_RING + ring<Tile::K_STAGES>::BYTES;
    static constexpr int Q_RING = V_RING + ring<Tile::V_STAGES>::BYTES;
    static constexpr int ITEMS = Q_RING + ring<Tile::Q_STAGES>::BYTES;
    static constexpr int BYTES = ITEMS + 2 * Tile::Q_STAGES * sizeof(struct item);
};

template <typename Tile> __device__ __forceinline__ key_stream<Tile> stream_of(uint32_t base)
{
    using layout = shared_layout<Tile>;
    return key_stream_at<Tile>(base + layout::K, base + layout::V, base + layout::K_RING,
                               base + layout::V_RING);
}

template <typename Tile>
__device__ __forceinline__ void produce(const struct long_params &p, const CUtensorMap &map_q,
                                        const CUtensorMap &map_k, const CUtensorMap &map_v,
                                        uint32_t base, struct item *items)
{
    using layout = shared_layout<Tile>;
    const ring<Tile::Q_STAGES> q_ring = {base + layout::Q_RING};
    ring_place<Tile::Q_STAGES> q_at = {0, 0};
    key_stream<Tile> keys = stream_of<Tile>(base);

    struct item i;
    for (int n = 0;; n++) {
        if (!locate<Tile::ROWS, Tile::KEYS>(p, n, &i))
            continue;
        const int kv_head = i.head / p.a.group;
        for (int j = 0; j < i.key_tiles; j++) {
            load_keys<Tile>(keys.k, keys.k_ring, keys.k_at, map_k, j * Tile::KEYS, kv_head,
                            i.batch);
            if (j == 0) {
                q_ring.wait_empty(q_at);
                items[slot<Tile>(q_at)] = i;
                q_ring.expect(q_at, Tile::Q_BYTES);
                for (int c = 0; c < Tile::PANELS; c++)
                    ptx::tma_load(base + layout::Q + q_at.stage * Tile::Q_BYTES +
                                      c * Tile::ROWS * PANEL_ROW_BYTES,
                                  &map_q, q_ring.full(q_at), c * 64, i.row, i.head, i.batch);
                q_at.next();
            }
            load_keys<Tile>(keys.v, keys.v_ring, keys.v_at, map_v, j * Tile::KEYS, kv_head,
                            i.batch);
        }
        if (i.key_tiles == 0)
            break;
    }
    q_ring.wait_empty(q_at);
    items[slot<Tile>(q_at)] = i;
    ptx::mbarrier_arrive(q_ring.full(q_at));
}

/* Stores the rows of a warpgroup from the panel FIRST on, O_PANELS panels at a time, by way of
 * `out`. */
template <typename Tile, int FIRST = 0>
__device__ __forceinline__ void store_output(const CUtensorMap &map_o, uint32_t out, int w,
                                             const float (&o)[Tile::D / 2], int row, int head,
                                             int batch)
{
    constexpr int LAST = FIRST + Tile::O_PANELS, LEFT = Tile::D / 2 - FIRST * 32;
    constexpr int TAKEN = LEFT < Tile::O_PANELS * 32 ? LEFT : Tile::O_PANELS * 32;
    const bool leader = threadIdx.x % 128 == 0;
    if (leader)
        ptx::tma_store_wait_read<0>();
    ptx::barrier_sync(8 + w, 128);
    stage_out(out, Tile::ROWS * PANEL_ROW_BYTES, *(const float(*)[TAKEN])(o + FIRST * 32),
              typename Tile::T());
    ptx::barrier_sync(8 + w, 128);
    if (leader) {
        for (int c = FIRST; c < LAST; c++)
            ptx::tma_store(&map_o, out + (c - FIRST) * Tile::ROWS * PANEL_ROW_BYTES, c * 64, row,
                           head, batch);
        ptx::tma_store_commit();
    }
    if constexpr (LAST < Tile::PANELS)
        store_output<Tile, LAST>(map_o, out, w, o, row, head, batch);
}

template <typename Tile>
__device__ __forceinline__ void consume(const struct long_params &p, const CUtensorMap &map_o,
                                        uint32_t base, const struct item *items, float factor)
{
    using layout = shared_layout<Tile>;
    constexpr int KEYS = Tile::KEYS;
    const int w = uniform(threadIdx.x / 128) - 1;
    const bool leader = threadIdx.x % 128 == 0, warp_leader = threadIdx.x % 32 == 0;
    const ring<Tile::Q_STAGES> q_ring = {base + layout::Q_RING};
    ring_place<Tile::Q_STAGES> q_at = {0, 0};
    key_stream<Tile> keys = stream_of<Tile>(base);
    const uint32_t out = base + layout::O + w * 64 * PANEL_ROW_BYTES;
    const struct turns turns = {w, Tile::CONSUMERS == 2};

    turns.begin();
    for (;;) {
        q_ring.wait_full(q_at);
        const struct item &i = items[slot<Tile>(q_at)]; /* the leader releases it, so it reads it */
        const int key_tiles = uniform(warp_leader ? i.key_tiles : 0);
        if (key_tiles == 0)
            break;
        const uint32_t q_rows =
            base + layout::Q + q_at.stage * Tile::Q_BYTES + w * 64 * PANEL_ROW_BYTES;
        const int row = uniform(warp_leader ? i.row : 0) + w * 64;
        const int unmasked = uniform(visible_keys(p.a, row));
        const int mine = uniform(key_tiles_of<KEYS>(p.a, row + 64)); /* of the key tiles */
        float o[Tile::D / 2], inverse[2];
        struct softmax_rows rows;

        if (p.a.negative) {
            turn_signs<Tile::ROWS, Tile::PANELS * 64>(q_rows);
            ptx::barrier_sync(8 + w, 128);
        }
        auto hide = [&](float(&s)[KEYS / 2], int j) {
            if ((j + 1) * KEYS > unmasked)
                mask_tile(s, p.a, row, j * KEYS);
        };
        auto let_go = [&]() {
            if (warp_leader)
                q_ring.release(q_at);
            q_at.next();
        };
        walk_stream<Tile>(keys, turns, q_rows, mine, factor, o, rows, hide, let_go,
                          [&]() { finish_sums(rows, inverse); });
        /* Who takes turns passes at once, since the other one waits for it. */
        if (Tile::CONSUMERS == 2)
            pass_tiles(keys, turns, key_tiles - mine);
        scale_rows(o, inverse);
        store_output<Tile>(map_o, out, w, o, row, i.head, i.batch);
        if (Tile::CONSUMERS != 2)
            pass_tiles(keys, turns, key_tiles - mine);
    }
    if (leader)
        ptx::tma_store_wait_read<0>();
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    attention_long_kernel(const __grid_constant__ CUtensorMap map_q,
                          const __grid_constant__ CUtensorMap map_k,
                          const __grid_constant__ CUtensorMap map_v,
                          const __grid_constant__ CUtensorMap map_o,
                          const __grid_constant__ struct long_params p, float factor)
{
    using layout = shared_layout<Tile>;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    struct item *const items = (struct item *)(shared + layout::ITEMS);

    if (threadIdx.x == 0) {
        ring<Tile::K_STAGES>{base + layout::K_RING}.init(4 * Tile::CONSUMERS);
        ring<Tile::V_STAGES>{base + layout::V_RING}.init(4 * Tile::CONSUMERS);
        ring<Tile::Q_STAGES>{base + layout::Q_RING}.init(4 * Tile::CONSUMERS);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (uniform(threadIdx.x / 128) == 0) {
        ptx::registers_decrease<Tile::PRODUCER_REGISTERS>();
        if (threadIdx.x / 32 == 0 && ptx::elect_lane())
            produce<Tile>(p, map_q, map_k, map_v, base, items);
    } else {
        ptx::registers_increase<Tile::CONSUMER_REGISTERS>();
        consume<Tile>(p, map_o, base, items, factor);
    }
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_LONG;
}

struct prepare_tile {
    template <typename Tile> enum kg_status run()
    {
        return allow_shared(attention_long_kernel<Tile>, shared_layout<Tile>::BYTES);
    }
};

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? with_tile<long_tile>(p, prepare_tile()) : status;
}

struct launch_tile {
    const struct attention_sizes *p;
    const struct kg_args *args;

    template <typename Tile> enum kg_status run()
    {
        struct long_params params;
        struct attention_maps maps;
        CUtensorMap map_o;
        int sm_count;
        enum kg_status status =
            read_attention_sm90(p, args, Tile::ROWS, Tile::KEYS, &maps, &params.a);
        if (status == KG_OK)
            status = map_rows(&map_o, &args->out[0], 64);
        if (status == KG_OK)
            status = count_sms(&sm_count);
        if (status != KG_OK)
            return status;

        const int row_tiles = (int)((p->seqlen_q + Tile::ROWS - 1) / Tile::ROWS);
        const int items = row_tiles * (int)(p->heads * p->batch);
        const int blocks = items < sm_count ? items : sm_count;
        params.heads = (int)p->heads;
        params.batch = (int)p->batch;
        params.row_tiles = row_tiles;
        /* One to two rounds are left. */
        params.pair_rounds = (row_tiles + 1) / 2 * params.heads * params.batch / blocks - 1;
        if (params.pair_rounds < 0)
            params.pair_rounds = 0;
        return launch_kernel(attention_long_kernel<Tile>, dim3(blocks), dim3(Tile::THREADS),
                             shared_layout<Tile>::BYTES, args->stream, maps.q, maps.k, maps.v,
                             map_o, params, factor_of(p));
    }
};

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return with_tile<long_tile>(p, launch_tile{p, args});
}

} // namespace attention_fwd_long_sm90

using namespace attention_fwd_long_sm90;

extern "C" const struct kg_kernel kg_attention_fwd_long_sm90 =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_long_sm90");
