/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_resident_sm90: attention forward on Hopper where K and V of a head fit shared
 * memory.
 *
 * Regime      D = 64, up to 512 keys, more row tiles than attention_fwd_latency takes
 * Block       4 warpgroups, each with one row tile of 64 or, where heads are many, two in turn; K
 *             and V of the head stay in shared memory, so there is no ring and no producer
 * Pipeline    the scores of 64 keys by wgmma from shared memory and O += P V of the 64 before, with
 *             P in registers, are issued together; the second row tile's first scores go out before
 *             the first one's last product
 * Resources   115 to 124 registers, no spills; 160 or 192 KB of shared memory
 * Measured    H200, of cuDNN 9.19: (8, 16, 512, 64) full 20.4 us, 420 TFLOP/s, 0.767; causal 15.7
 *             us, 0.65; (4, 16) full 0.72, causal 0.59
 * Bound       by ncu at (8, 16) full and causal, of active cycles: special function unit 55 and
 *             45 %, tensor core 55 and 44 %, issue 44 and 42 %. By clock64() in a block, of 39700
 *             clocks 8300 are gone when the second key tile is there: all blocks ask for 25 MB of
 *             HBM at once. Then four warpgroups take 1750 clocks for 64 keys, of 1024 for either
 *             unit: they fall in step, and neither turns nor later starts keep them out of it
 */
#include "kernels/attention_fwd/softmax_sm90.cuh"
#include "kernels/attention_fwd/policy_sm90.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_resident_sm90
{

/* The row tile that warpgroup w takes in its r-th turn. Under a causal mask later tiles see more
 * keys: the blocks of a head get every gridDim.x-th tile, there and back, and a warpgroup of two
 * tiles a light one and then a heavy one, whose keys come later. */
template <int TILES> __device__ __forceinline__ int tile_of(int w, int r)
{
    const int slot = TILES == 1 ? w : r == 0 ? w : 7 - w;
    return slot * gridDim.x + (slot % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

template <typename Tile> struct shared_layout {
    static constexpr int K = 0;
    static constexpr int V = K + Tile::KEY_TILES * Tile::KEY_BYTES;
    static constexpr int Q = V + Tile::KEY_TILES * Tile::KEY_BYTES;
    static constexpr int K_FULL = Q + 4 * Tile::TILES * Tile::Q_BYTES;
    static constexpr int V_FULL = K_FULL + Tile::KEY_TILES * 8;
    static constexpr int Q_FULL = V_FULL + Tile::KEY_TILES * 8;
    static constexpr int BYTES = Q_FULL + 4 * Tile::TILES * 8;
};

/* One warpgroup at a time issues products, in a ring, which keeps their exponentials out of step.
 * Barrier 8 + w is the turn of warpgroup w; all take as many. */
template <bool TAKEN> struct turns {
    int w, left;

    __device__ __forceinline__ void wait() const
    {
        if (TAKEN)
            ptx::barrier_sync(8 + w, 256);
    }
    /* The last one is passed on to nobody. */
    __device__ __forceinline__ void pass()
    {
        left--;
        if (TAKEN && (left > 0 || w < 3))
            ptx::barrier_arrive(8 + (w + 1) % 4, 256);
    }
};

/* Key tiles that a row tile takes, one at least, even past the end; all, where there are turns. */
template <typename Tile>
__device__ __forceinline__ int key_tiles_of(const struct attention_sm90 &a, int row)
{
    const int keys =
        row < a.seqlen_q || Tile::TURNS ? visible_keys(a, min(row + 64, a.seqlen_q) - 1) : 0;
    return max(1, (keys + Tile::KEYS - 1) / Tile::KEYS);
}

/* Everything at once, first what is used first; nothing that no row tile waits for. */
template <typename Tile>
__device__ __forceinline__ void load(const struct attention_sm90 &a, const CUtensorMap &map_q,
                                     const CUtensorMap &map_k, const CUtensorMap &map_v,
                                     uint32_t base)
{
    using layout = shared_layout<Tile>;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / a.group;
    int key_tiles = 1;

    for (int i = 0; i < 2 * Tile::KEY_TILES + 4 * Tile::TILES; i++)
        ptx::mbarrier_init(base + layout::K_FULL + i * 8, 1);
    ptx::fence_mbarrier_init();
    auto load_q = [&](int slot) {
        const uint32_t full = base + layout::Q_FULL + slot * 8;
        const int row = tile_of<Tile::TILES>(slot % 4, slot / 4) * 64;
        ptx::mbarrier_arrive_expect(full, Tile::Q_BYTES);
        ptx::tma_load(base + layout::Q + slot * Tile::Q_BYTES, &map_q, full, 0, row, head, batch);
        key_tiles = max(key_tiles, key_tiles_of<Tile>(a, row));
    };
    auto load_keys = [&](const CUtensorMap &map, int at, int full, int j) {
        ptx::mbarrier_arrive_expect(base + full + j * 8, Tile::KEY_BYTES);
        ptx::tma_load(base + at + j * Tile::KEY_BYTES, &map, base + full + j * 8, 0, j * Tile::KEYS,
                      kv_head, batch);
    };
    load_keys(map_k, layout::K, layout::K_FULL, 0);
    for (int slot = 0; slot < 4; slot++)
        load_q(slot);
    load_keys(map_v, layout::V, layout::V_FULL, 0);
    for (int j = 1; j < key_tiles; j++) {
        load_keys(map_k, layout::K, layout::K_FULL, j);
        load_keys(map_v, layout::V, layout::V_FULL, j);
    }
    /* With the second tiles, and what only they see. */
    int loaded = key_tiles;
    for (int slot = 4; slot < 4 * Tile::TILES; slot++)
        load_q(slot);
    for (; loaded < key_tiles; loaded++) {
        load_keys(map_k, layout::K, layout::K_FULL, loaded);
        load_keys(map_v, layout::V, layout::V_FULL, loaded);
    }
}

template <typename Tile>
__global__ void __launch_bounds__(512, 1)
    attention_resident_kernel(const __grid_constant__ CUtensorMap map_q,
                              const __grid_constant__ CUtensorMap map_k,
                              const __grid_constant__ CUtensorMap map_v,
                              const __grid_constant__ CUtensorMap map_o,
                              const __grid_constant__ struct attention_sm90 a, float factor)
{
    using layout = shared_layout<Tile>;
    using T = typename Tile::T;
    constexpr int KEYS = Tile::KEYS, STEP = Tile::KEY_BYTES / 16;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    const int w = uniform(threadIdx.x / 128);

    if (threadIdx.x == 0) /* before anything else: a barrier of the block first costs 0.5 us */
        load<Tile>(a, map_q, map_k, map_v, base);
    __syncthreads();
    const uint32_t k_low = uniform(descriptor_low(base + layout::K));
    const uint32_t v_low = uniform(descriptor_low(base + layout::V));
    float s[KEYS / 2];

    auto q_of = [&](int r) { return base + layout::Q + (r * 4 + w) * Tile::Q_BYTES; };
    auto issue_first_scores = [&](int r) {
        ptx::mbarrier_wait(base + layout::Q_FULL + (r * 4 + w) * 8, 0);
        if (a.negative) {
            turn_signs<64, 64>(q_of(r));
            ptx::barrier_sync(1 + w, 128);
        }
        ptx::mbarrier_wait(base + layout::K_FULL, 0);
        ptx::keep(s);
        ptx::wgmma_fence();
        issue_scores<T, 64, 64, KEYS>(s, uniform(descriptor_low(q_of(r))), k_low);
        ptx::wgmma_commit();
    };
    turns<Tile::TURNS> turn = {w, Tile::TILES * uniform(key_tiles_of<Tile>(a, 0)) + 1};
    if (Tile::TURNS && w == 3)
        ptx::barrier_arrive(8, 256); /* the first turn is free */
    turn.wait();
    issue_first_scores(0);
    turn.pass();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int r = 0; r < Tile::TILES; r++) {
        const int row = uniform(tile_of<Tile::TILES>(w, r) * 64);
        const int unmasked = uniform(visible_keys(a, row));
        const int key_tiles = uniform(key_tiles_of<Tile>(a, row));
        const uint32_t q_low = uniform(descriptor_low(q_of(r)));
        float o[32], inverse[2], shrink[2];
        uint32_t p[KEYS / 4];
        struct softmax_rows rows;

        clear_rows(rows);
        auto softmax = [&](int j, bool first) {
            auto hide = [&](float(&t)[KEYS / 2]) {
                if ((j + 1) * KEYS > unmasked)
                    mask_tile(t, a, row, j * KEYS);
            };
            bool outgrown = false;
            auto settle = [&](const float(&by)[2]) {
                shrink[0] = by[0];
                shrink[1] = by[1];
                outgrown = true;
            };
            ptx::keep(s);
            softmax_tile<T, 64, Tile::POLYNOMIAL>(
                s, rows, factor, first, {q_of(r), base + layout::K + j * Tile::KEY_BYTES, 64, KEYS},
                hide, settle);
            return outgrown;
        };
        softmax(0, true);
        pack_tile(p, s, T());
#pragma unroll 1
        for (int j = 1; j < key_tiles; j++) {
            ptx::mbarrier_wait(base + layout::K_FULL + j * 8, 0);
            ptx::mbarrier_wait(base + layout::V_FULL + (j - 1) * 8, 0);
            turn.wait();
            ptx::keep(s);
            ptx::keep(o);
            ptx::keep(p);
            ptx::wgmma_fence();
            issue_scores<T, 64, 64, KEYS>(s, q_low, k_low + j * STEP);
            ptx::wgmma_commit();
            issue_output<T>(o, p, v_low + (j - 1) * STEP, j > 1);
            ptx::wgmma_commit();
            turn.pass();
            ptx::wgmma_wait<1>();
            const bool outgrown = softmax(j, false);
            ptx::wgmma_wait<0>();
            ptx::keep(o);
            ptx::keep(p);
            if (outgrown)
                scale_rows(o, shrink);
            pack_tile(p, s, T());
        }
        ptx::mbarrier_wait(base + layout::V_FULL + (key_tiles - 1) * 8, 0);
        turn.wait();
        if (r + 1 < Tile::TILES)
            issue_first_scores(r + 1);
        ptx::keep(o);
        ptx::keep(p);
        ptx::wgmma_fence();
        issue_output<T>(o, p, v_low + (key_tiles - 1) * STEP, key_tiles > 1);
        ptx::wgmma_commit();
        turn.pass();
        finish_sums(rows, inverse);
        ptx::wgmma_wait<0>();
        ptx::keep(o);
        ptx::keep(s);

        scale_rows(o, inverse);
        /* O goes over Q, which all warps of the warpgroup are done with by the barrier. */
        ptx::barrier_sync(1 + w, 128);
        stage_out(q_of(r), 0, o, T());
        ptx::barrier_sync(1 + w, 128);
        if (threadIdx.x % 128 == 0) {
            ptx::tma_store(&map_o, q_of(r), 0, row, blockIdx.y, blockIdx.z);
            ptx::tma_store_commit();
        }
    }
    if (threadIdx.x % 128 == 0)
        ptx::tma_store_wait_read<0>();
}

template <typename Tile> constexpr int shared_bytes = shared_layout<Tile>::BYTES;

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_RESIDENT;
}

template <typename Tile> enum kg_status prepare_tile()
{
    return allow_shared(attention_resident_kernel<Tile>, shared_bytes<Tile>);
}

template <typename T> enum kg_status prepare_type()
{
    enum kg_status status = prepare_tile<resident_tile<T, 2, false>>();
    if (status == KG_OK)
        status = prepare_tile<resident_tile<T, 1, false>>();
    return status == KG_OK ? prepare_tile<resident_tile<T, 1, true>>() : status;
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    if (status != KG_OK)
        return status;
    return p->dtype == KG_F16 ? prepare_type<__half>() : prepare_type<__nv_bfloat16>();
}

template <typename Tile>
enum kg_status launch_tile(const struct attention_sizes *p, const struct kg_args *args)
{
    struct attention_sm90 a;
    struct attention_maps maps;
    CUtensorMap map_o;
    enum kg_status status = read_attention_sm90(p, args, 64, Tile::KEYS, &maps, &a);
    if (status == KG_OK)
        status = map_rows(&map_o, &args->out[0], 64);
    if (status != KG_OK)
        return status;
    const int64_t blocks = (p->seqlen_q + 256 * Tile::TILES - 1) / (256 * Tile::TILES);
    return launch_kernel(attention_resident_kernel<Tile>,
                         dim3((unsigned)blocks, (unsigned)p->heads, (unsigned)p->batch), dim3(512),
                         shared_bytes<Tile>, args->stream, maps.q, maps.k, maps.v, map_o, a,
                         factor_of(p));
}

template <typename T>
enum kg_status launch_type(const struct attention_sizes *p, const struct kg_args *args)
{
    int sm_count;
    const enum kg_status status = count_sms(&sm_count);
    if (status != KG_OK)
        return status;
    if (resident_takes_two(p, sm_count))
        return launch_tile<resident_tile<T, 2, false>>(p, args);
    return p->flags & KG_FLAG_CAUSAL ? launch_tile<resident_tile<T, 1, false>>(p, args)
                                     : launch_tile<resident_tile<T, 1, true>>(p, args);
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return p->dtype == KG_F16 ? launch_type<__half>(p, args) : launch_type<__nv_bfloat16>(p, args);
}

} // namespace attention_fwd_resident_sm90

using namespace attention_fwd_resident_sm90;

extern "C" const struct kg_kernel kg_attention_fwd_resident_sm90 =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_resident_sm90");
