/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_long_sm90: attention forward on Hopper for more keys than shared memory holds.
 *
 * Regime     whatever attention_fwd_latency, _resident and _splitkv leave; D = 64, 128
 * Block      one a multiprocessor, stays: a producer warp and 4 (D = 64) or 2 warpgroups of 64 rows
 *            that share K and V tiles of 64 or 128 keys, which come by TMA through two rings; a
 *            third brings the next Q while one is worked on
 * Pipeline   the scores of a tile and O += P V of the one before are issued together; while a
 *            warpgroup takes exponentials, its O and the products of the others are at work
 * Items      see locate(): under a causal mask all blocks get about as much
 * Resources  112 or 240 registers a consumer, no spills; 225 KB of shared memory
 * Work       179 instructions a warp for 64 rows x 64 keys at D = 64, 32 of them on the special
 *            function unit, which takes as long for its part as the tensor core
 * Measured   H200, fp16, (2, 16, 8192, 128) full: 706 TFLOP/s, 71 % of the peak at full clock;
 *            causal 645; (2, 32, 8192, 64) full: 578, causal 601 (docs/results.md)
 */
#include "kernels/attention_fwd/attention_fwd.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ring_sm90.cuh"
#include "kernels/cuda/stage_out.cuh"
#include "kernels/attention_fwd/problem_sm90.cuh"
#include "kernels/attention_fwd/softmax_sm90.cuh"
#include "kernels/attention_fwd/tile_policy_sm90.h"

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
    static constexpr int K = O + Tile::Q_BYTES;
    static constexpr int V = K + Tile::K_STAGES * Tile::KV_BYTES;
    static constexpr int K_RING = V + Tile::V_STAGES * Tile::KV_BYTES;
    static constexpr int V_RING = K_RING + ring<Tile::K_STAGES>::BYTES;
    static constexpr int Q_RING = V_RING + ring<Tile::V_STAGES>::BYTES;
    static constexpr int ITEMS = Q_RING + ring<Tile::Q_STAGES>::BYTES;
    static constexpr int BYTES = ITEMS + 2 * Tile::Q_STAGES * sizeof(struct item);
};

template <typename Tile>
__device__ __forceinline__ void produce(const struct long_params &p, const CUtensorMap &map_q,
                                        const CUtensorMap &map_k, const CUtensorMap &map_v,
                                        uint32_t base, struct item *items)
{
    using layout = shared_layout<Tile>;
    constexpr int PANELS = Tile::D / 64;
    const ring<Tile::K_STAGES> k_ring = {base + layout::K_RING};
    const ring<Tile::V_STAGES> v_ring = {base + layout::V_RING};
    const ring<Tile::Q_STAGES> q_ring = {base + layout::Q_RING};
    ring_place<Tile::K_STAGES> k_at = {0, 0};
    ring_place<Tile::V_STAGES> v_at = {0, 0};
    ring_place<Tile::Q_STAGES> q_at = {0, 0};

    struct item i;
    for (int n = 0;; n++) {
        if (!locate<Tile::ROWS, Tile::KEYS>(p, n, &i))
            continue;
        const int kv_head = i.head / p.a.group;
        for (int j = 0; j < i.key_tiles; j++) {
            k_ring.wait_empty(k_at);
            k_ring.expect(k_at, Tile::KV_BYTES);
            for (int c = 0; c < PANELS; c++)
                ptx::tma_load(base + layout::K + k_at.stage * Tile::KV_BYTES +
                                  c * Tile::KEYS * PANEL_ROW_BYTES,
                              &map_k, k_ring.full(k_at), c * 64, j * Tile::KEYS, kv_head, i.batch);
            k_at.next();
            if (j == 0) {
                q_ring.wait_empty(q_at);
                items[slot<Tile>(q_at)] = i;
                q_ring.expect(q_at, Tile::Q_BYTES);
                for (int c = 0; c < PANELS; c++)
                    ptx::tma_load(base + layout::Q + q_at.stage * Tile::Q_BYTES +
                                      c * Tile::ROWS * PANEL_ROW_BYTES,
                                  &map_q, q_ring.full(q_at), c * 64, i.row, i.head, i.batch);
                q_at.next();
            }
            v_ring.wait_empty(v_at);
            v_ring.expect(v_at, Tile::KV_BYTES);
            for (int c = 0; c < PANELS; c++)
                ptx::tma_load(base + layout::V + v_at.stage * Tile::KV_BYTES +
                                  c * Tile::KEYS * PANEL_ROW_BYTES,
                              &map_v, v_ring.full(v_at), c * 64, j * Tile::KEYS, kv_head, i.batch);
            v_at.next();
        }
        if (i.key_tiles == 0)
            break;
    }
    q_ring.wait_empty(q_at);
    items[slot<Tile>(q_at)] = i;
    ptx::mbarrier_arrive(q_ring.full(q_at));
}

template <typename Tile>
__device__ __forceinline__ void consume(const struct long_params &p, const CUtensorMap &map_o,
                                        uint32_t base, const struct item *items, float factor)
{
    using layout = shared_layout<Tile>;
    using T = typename Tile::T;
    constexpr int D = Tile::D, KEYS = Tile::KEYS;
    const int w = uniform(threadIdx.x / 128) - 1;
    const bool leader = threadIdx.x % 128 == 0, warp_leader = threadIdx.x % 32 == 0;
    const ring<Tile::K_STAGES> k_ring = {base + layout::K_RING};
    const ring<Tile::V_STAGES> v_ring = {base + layout::V_RING};
    const ring<Tile::Q_STAGES> q_ring = {base + layout::Q_RING};
    ring_place<Tile::K_STAGES> k_at = {0, 0};
    ring_place<Tile::V_STAGES> v_at = {0, 0};
    ring_place<Tile::Q_STAGES> q_at = {0, 0};
    const uint32_t out = base + layout::O + w * 64 * PANEL_ROW_BYTES;
    const uint32_t k_low = uniform(descriptor_low(base + layout::K));
    const uint32_t v_low = uniform(descriptor_low(base + layout::V, KEYS * PANEL_ROW_BYTES));

    for (;;) {
        q_ring.wait_full(q_at);
        const struct item &i = items[slot<Tile>(q_at)]; /* the leader releases it, so it reads it */
        const int key_tiles = uniform(warp_leader ? i.key_tiles : 0);
        if (key_tiles == 0)
            break;
        const uint32_t q_rows =
            base + layout::Q + q_at.stage * Tile::Q_BYTES + w * 64 * PANEL_ROW_BYTES;
        const uint32_t q_low = uniform(descriptor_low(q_rows));
        const int row = uniform(warp_leader ? i.row : 0) + w * 64;
        const int unmasked = uniform(visible_keys(p.a, row));
        const int mine = uniform(key_tiles_of<KEYS>(p.a, row + 64)); /* of the key tiles */
        float s[KEYS / 2], o[D / 2], inverse[2], shrink[2];
        uint32_t pr[KEYS / 4];
        struct softmax_rows rows;

        clear_rows(rows);
        if (p.a.negative) {
            turn_signs<Tile::ROWS, D>(q_rows);
            ptx::barrier_sync(8 + w, 128);
        }
        auto issue_s = [&]() {
            k_ring.wait_full(k_at);
            ptx::keep(s);
            ptx::wgmma_fence();
            issue_scores<T, D, Tile::ROWS, KEYS>(s, q_low,
                                                 k_low + k_at.stage * (Tile::KV_BYTES / 16));
            ptx::wgmma_commit();
        };
        auto issue_o = [&](int accumulate) {
            v_ring.wait_full(v_at);
            ptx::keep(o);
            ptx::keep(pr);
            ptx::wgmma_fence();
            issue_output<T>(o, pr, v_low + v_at.stage * (Tile::KV_BYTES / 16), accumulate);
            ptx::wgmma_commit();
        };
        auto finish_o = [&]() {
            ptx::wgmma_wait<0>();
            ptx::keep(o);
            ptx::keep(pr);
            if (warp_leader)
                v_ring.release(v_at);
            v_at.next();
        };
        auto softmax = [&](int j, bool first) {
            auto hide = [&](float(&t)[KEYS / 2]) {
                if ((j + 1) * KEYS > unmasked)
                    mask_tile(t, p.a, row, j * KEYS);
            };
            bool outgrown = false;
            auto settle = [&](const float(&by)[2]) {
                shrink[0] = by[0];
                shrink[1] = by[1];
                outgrown = true;
            };
            ptx::keep(s);
            softmax_tile<T, D, Tile::POLYNOMIAL>(
                s, rows, factor, first,
                {q_rows, base + layout::K + k_at.stage * Tile::KV_BYTES, Tile::ROWS, KEYS}, hide,
                settle);
            if (warp_leader)
                k_ring.release(k_at);
            k_at.next();
            return outgrown;
        };

        issue_s();
        ptx::wgmma_wait<0>();
        softmax(0, true);
        pack_tile(pr, s, T());
#pragma unroll 1
        for (int j = 1; j < mine; j++) {
            issue_s();
            issue_o(j > 1);
            ptx::wgmma_wait<1>();
            const bool outgrown = softmax(j, false);
            finish_o();
            if (outgrown)
                scale_rows(o, shrink);
            pack_tile(pr, s, T());
        }
        if (warp_leader)
            q_ring.release(q_at);
        q_at.next();
        issue_o(mine > 1);
        finish_sums(rows, inverse);
        finish_o();

        scale_rows(o, inverse);
        if (leader)
            ptx::tma_store_wait_read<0>();
        ptx::barrier_sync(8 + w, 128);
        stage_out(out, Tile::ROWS * PANEL_ROW_BYTES, o, T());
        ptx::barrier_sync(8 + w, 128);
        if (leader) {
            for (int c = 0; c < D / 64; c++)
                ptx::tma_store(&map_o, out + c * Tile::ROWS * PANEL_ROW_BYTES, c * 64, row, i.head,
                               i.batch);
            ptx::tma_store_commit();
        }
        for (int j = mine; j < key_tiles; j++) { /* seen by rows of other warpgroups alone */
            k_ring.wait_full(k_at);
            v_ring.wait_full(v_at);
            if (warp_leader) {
                k_ring.release(k_at);
                v_ring.release(v_at);
            }
            k_at.next();
            v_at.next();
        }
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

template <typename Tile> constexpr int shared_bytes = shared_layout<Tile>::BYTES;

int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_LONG;
}

template <typename T, int D> enum kg_status prepare_tile()
{
    return allow_shared(attention_long_kernel<long_tile<T, D>>, shared_bytes<long_tile<T, D>>);
}

enum kg_status prepare(const struct kg_problem *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    if (status != KG_OK)
        return status;
    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? prepare_tile<__half, 64>() : prepare_tile<__half, 128>();
    return p->head_dim == 64 ? prepare_tile<__nv_bfloat16, 64>()
                             : prepare_tile<__nv_bfloat16, 128>();
}

template <typename T, int D>
enum kg_status launch_tile(const struct kg_problem *p, const struct kg_args *args)
{
    using Tile = long_tile<T, D>;
    struct long_params params;
    struct attention_maps maps;
    CUtensorMap map_o;
    int device, sm_count;
    enum kg_status status = read_attention_sm90(p, args, Tile::ROWS, Tile::KEYS, &maps, &params.a);
    if (status == KG_OK)
        status = map_rows(&map_o, &args->out[0], 64);
    if (status != KG_OK)
        return status;

    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
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
                         shared_bytes<Tile>, args->stream, maps.q, maps.k, maps.v, map_o, params,
                         factor_of(p));
}

enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? launch_tile<__half, 64>(p, args)
                                 : launch_tile<__half, 128>(p, args);
    return p->head_dim == 64 ? launch_tile<__nv_bfloat16, 64>(p, args)
                             : launch_tile<__nv_bfloat16, 128>(p, args);
}

} // namespace attention_fwd_long_sm90

using namespace attention_fwd_long_sm90;

const struct kg_kernel kg_attention_fwd_long_sm90 = {
    sizeof(struct kg_kernel),
    KG_OP_ATTENTION_FWD,
    0,
    "attention_fwd_long_sm90",
    supports,
    prepare,
    NULL,
    launch,
};
