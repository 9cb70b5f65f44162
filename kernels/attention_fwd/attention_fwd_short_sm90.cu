/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_short_sm90: attention forward on Hopper for many heads with a few short rows.
 *
 * Regime     D = 64, up to 256 keys, more row tiles than multiprocessors
 * Block      one warpgroup with 64 rows of a head. All of its K and V is asked for at once, so that
 *            there is no producer; up to four blocks share a multiprocessor, so that one loads
 *            while others multiply
 * Pipeline   that of attention_fwd_long
 * Resources  up to 128 registers, no spills; 25 to 73 KB of shared memory, by the keys
 * Measured   H200, fp16: (64, 12, 128, 64) full 16.8 us, 0.93 of cuDNN
 */
#include "kernels/attention_fwd/key_stream_sm90.cuh"
#include "kernels/attention_fwd/policy_sm90.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_short_sm90
{

struct short_params {
    struct attention_sm90 a;
    int heads, row_tiles;
    int key_tiles; /* most of a row tile */
};

template <typename Tile> struct shared_layout {
    static constexpr int K_RING = 0;
    static constexpr int V_RING = K_RING + ring<Tile::K_STAGES>::BYTES;
    static constexpr int Q_FULL = V_RING + ring<Tile::V_STAGES>::BYTES;
    static constexpr int Q = PANEL_ALIGNMENT;
    static constexpr int K = Q + Tile::Q_BYTES; /* then V */
    static_assert(Q_FULL + 8 <= Q, "the barriers come before Q");
};

template <typename Tile>
__global__ void __launch_bounds__(128, 4)
    attention_short_kernel(const __grid_constant__ CUtensorMap map_q,
                           const __grid_constant__ CUtensorMap map_k,
                           const __grid_constant__ CUtensorMap map_v,
                           const __grid_constant__ CUtensorMap map_o,
                           const __grid_constant__ struct short_params p, float factor)
{
    using layout = shared_layout<Tile>;
    constexpr int KEYS = Tile::KEYS;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    const int row = blockIdx.x % p.row_tiles * 64, all = blockIdx.x / p.row_tiles;
    const int head = all % p.heads, batch = all / p.heads;
    const int seen = visible_keys(p.a, min(row + 64, p.a.seqlen_q) - 1);
    const int tiles = uniform(max(1, (seen + KEYS - 1) / KEYS));
    const int unmasked = uniform(visible_keys(p.a, row));
    const uint32_t q = base + layout::Q, k = base + layout::K;
    key_stream<Tile> keys = key_stream_at<Tile>(k, k + p.key_tiles * Tile::KV_BYTES,
                                                base + layout::K_RING, base + layout::V_RING);
    float o[Tile::D / 2], inverse[2];
    struct softmax_rows rows;

    if (threadIdx.x == 0) {
        const int kv_head = head / p.a.group;
        keys.k_ring.init(4);
        keys.v_ring.init(4);
        ptx::mbarrier_init(base + layout::Q_FULL, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect(base + layout::Q_FULL, Tile::Q_BYTES);
        ptx::tma_load(q, &map_q, base + layout::Q_FULL, 0, row, head, batch);
        key_stream<Tile> ahead = keys;
        for (int j = 0; j < tiles; j++) {
            load_keys<Tile>(keys.k, keys.k_ring, ahead.k_at, map_k, j * KEYS, kv_head, batch);
            load_keys<Tile>(keys.v, keys.v_ring, ahead.v_at, map_v, j * KEYS, kv_head, batch);
        }
    }
    __syncthreads();
    ptx::mbarrier_wait(base + layout::Q_FULL, 0);
    if (p.a.negative) {
        turn_signs<64, Tile::D>(q);
        __syncthreads();
    }
    auto hide = [&](float(&s)[KEYS / 2], int j) {
        if ((j + 1) * KEYS > unmasked)
            mask_tile(s, p.a, row, j * KEYS);
    };
    walk_stream<Tile>(
        keys, {0, false}, q, tiles, factor, o, rows, hide, []() {},
        [&]() { finish_sums(rows, inverse); });
    scale_rows(o, inverse);
    __syncthreads();
    stage_out(q, Tile::Q_BYTES, o, typename Tile::T());
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::tma_store(&map_o, q, 0, row, head, batch);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
    }
}

template <typename Tile> int shared_bytes(const struct attention_sizes *p)
{
    const int tiles = ((int)p->seqlen_kv + Tile::KEYS - 1) / Tile::KEYS;
    return shared_layout<Tile>::K + 2 * tiles * Tile::KV_BYTES;
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_SHORT;
}

template <typename T> enum kg_status prepare_type(const struct attention_sizes *p)
{
    return allow_shared(attention_short_kernel<short_tile<T>>, shared_bytes<short_tile<T>>(p));
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    if (status != KG_OK)
        return status;
    return p->dtype == KG_F16 ? prepare_type<__half>(p) : prepare_type<__nv_bfloat16>(p);
}

template <typename T>
enum kg_status launch_type(const struct attention_sizes *p, const struct kg_args *args)
{
    using Tile = short_tile<T>;
    struct short_params params;
    struct attention_maps maps;
    CUtensorMap map_o;
    enum kg_status status = read_attention_sm90(p, args, 64, Tile::KEYS, &maps, &params.a);
    if (status == KG_OK)
        status = map_rows(&map_o, &args->out[0], 64);
    if (status != KG_OK)
        return status;
    params.heads = (int)p->heads;
    params.row_tiles = (int)((p->seqlen_q + 63) / 64);
    params.key_tiles = ((int)p->seqlen_kv + Tile::KEYS - 1) / Tile::KEYS;
    return launch_kernel(attention_short_kernel<Tile>,
                         dim3((unsigned)(p->batch * p->heads * params.row_tiles)), dim3(128),
                         (size_t)shared_bytes<Tile>(p), args->stream, maps.q, maps.k, maps.v, map_o,
                         params, factor_of(p));
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return p->dtype == KG_F16 ? launch_type<__half>(p, args) : launch_type<__nv_bfloat16>(p, args);
}

} // namespace attention_fwd_short_sm90

using namespace attention_fwd_short_sm90;

extern "C" const struct kg_kernel kg_attention_fwd_short_sm90 =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_short_sm90");
