/*
 * attention_fwd_resident_sm90: attention forward on Hopper where K and V of a head fit shared
 * memory.
 *
 * Regime      D = 64, up to 512 keys, more row tiles than attention_fwd_latency takes
 * Block       4 warpgroups, each with one row tile of 64 or, where heads are many, two in turn; K
 *             and V of the head stay in shared memory, so there is no ring and no producer
 * Products    S of 128 keys by wgmma from shared memory, O += P V with P in registers; warpgroups
 *             issue them in turns, which keeps their softmaxes out of step
 * Resources   125 registers, no spills; 160 or 192 KB of shared memory
 * Measured    H200, (8, 16, 512, 64) full: 21.5 us, 400 TFLOP/s, 0.79 of cuDNN 9.14; causal 16.8
 */
#include "kernels/attention_fwd/attention_fwd.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stage_out.cuh"
#include "kernels/attention_fwd/problem_sm90.cuh"
#include "kernels/attention_fwd/softmax_sm90.cuh"
#include "kernels/attention_fwd/tile_policy_sm90.h"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_resident_sm90
{

/* The row tile that warpgroup w takes in its r-th turn. Under a causal mask later tiles see more
 * keys: the blocks of a head get every gridDim.x-th tile, there and back, and a warpgroup of two
 * tiles a heavy one and then a light one. */
template <int TILES> __device__ __forceinline__ int tile_of(int w, int r)
{
    const int slot = TILES == 1 ? w : r == 0 ? 7 - w : w;
    return slot * gridDim.x + (slot % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

template <typename Tile> struct shared_layout {
    static constexpr int K = 0;
    static constexpr int V = K + Tile::CHUNKS * Tile::CHUNK_BYTES;
    static constexpr int Q = V + Tile::CHUNKS * Tile::CHUNK_BYTES;
    static constexpr int K_FULL = Q + 4 * Tile::TILES * Tile::Q_BYTES;
    static constexpr int V_FULL = K_FULL + Tile::CHUNKS * 8;
    static constexpr int Q_FULL = V_FULL + Tile::CHUNKS * 8;
    static constexpr int BYTES = Q_FULL + 4 * Tile::TILES * 8;
};

/* One warpgroup at a time issues products, in a ring: O += P V of a chunk and then the scores of
 * the next. Barrier 8 + w is the turn of warpgroup w. */
__device__ __forceinline__ void wait_for_turn(bool in_turns, int w)
{
    if (in_turns)
        ptx::barrier_sync(8 + w, 256);
}

__device__ __forceinline__ void pass_turn(bool in_turns, int w)
{
    if (in_turns)
        ptx::barrier_arrive(8 + (w + 1) % 4, 256);
}

template <typename Tile>
__device__ __forceinline__ void load(const struct attention_sm90 &a, const CUtensorMap &map_q,
                                     const CUtensorMap &map_k, const CUtensorMap &map_v,
                                     uint32_t base)
{
    using layout = shared_layout<Tile>;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / a.group;
    const int last = tile_of<Tile::TILES>(Tile::TILES == 1 ? 3 : 0, 0) * 64 + 63;
    const int chunks = (visible_keys(a, min(last, a.seqlen_q - 1)) + Tile::KEYS - 1) / Tile::KEYS;

    for (int i = 0; i < 2 * Tile::CHUNKS + 4 * Tile::TILES; i++)
        ptx::mbarrier_init(base + layout::K_FULL + i * 8, 1);
    ptx::fence_mbarrier_init();
    auto load_q = [&](int slot) {
        const uint32_t full = base + layout::Q_FULL + slot * 8;
        ptx::mbarrier_arrive_expect(full, Tile::Q_BYTES);
        ptx::tma_load(base + layout::Q + slot * Tile::Q_BYTES, &map_q, full, 0,
                      tile_of<Tile::TILES>(slot % 4, slot / 4) * 64, head, batch);
    };
    for (int j = 0; j < max(1, chunks); j++) {
        const uint32_t k_full = base + layout::K_FULL + j * 8,
                       v_full = base + layout::V_FULL + j * 8;
        if (j < chunks) {
            ptx::mbarrier_arrive_expect(k_full, Tile::CHUNK_BYTES);
            ptx::tma_load(base + layout::K + j * Tile::CHUNK_BYTES, &map_k, k_full, 0,
                          j * Tile::KEYS, kv_head, batch);
        }
        if (j == 0)
            for (int w = 0; w < 4; w++)
                load_q(w);
        if (j < chunks) {
            ptx::mbarrier_arrive_expect(v_full, Tile::CHUNK_BYTES);
            ptx::tma_load(base + layout::V + j * Tile::CHUNK_BYTES, &map_v, v_full, 0,
                          j * Tile::KEYS, kv_head, batch);
        }
    }
    for (int slot = 4; slot < 4 * Tile::TILES; slot++)
        load_q(slot);
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
    constexpr int KEYS = Tile::KEYS, CHUNK_STEP = Tile::CHUNK_BYTES / 16;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    const int w = uniform(threadIdx.x / 128);

    if (threadIdx.x == 0)
        load<Tile>(a, map_q, map_k, map_v, base);
    __syncthreads();
    const uint32_t k_low = uniform(descriptor_low(base + layout::K));
    const uint32_t v_low = uniform(descriptor_low(base + layout::V));

    const bool in_turns = Tile::TILES == 2 || !a.causal; /* with as many chunks each */
    if (w == 3)
        pass_turn(in_turns, w);                   /* the first turn is free */
    int turns = Tile::TILES * (Tile::CHUNKS + 1); /* that every warpgroup takes */
#pragma unroll 1
    for (int r = 0; r < Tile::TILES; r++) {
        const int row = uniform(tile_of<Tile::TILES>(w, r) * 64);
        const int unmasked = uniform(visible_keys(a, row));
        const int chunks = uniform(
            row < a.seqlen_q ? (visible_keys(a, min(a.seqlen_q, row + 64) - 1) + KEYS - 1) / KEYS
                             : 0);
        const int slot = r * 4 + w;
        const uint32_t q = base + layout::Q + slot * Tile::Q_BYTES;
        const uint32_t q_low = uniform(descriptor_low(q));
        float o[32], s[KEYS / 2];
        struct softmax_rows rows;

        clear_rows(rows);
#pragma unroll
        for (int i = 0; i < 32; i++)
            o[i] = 0.0f;
        ptx::mbarrier_wait(base + layout::Q_FULL + slot * 8, 0);
        if (a.negative) {
            turn_signs<64, 64>(q);
            ptx::barrier_sync(1 + w, 128);
        }
        if (chunks > 0) {
            ptx::mbarrier_wait(base + layout::K_FULL, 0);
            wait_for_turn(in_turns, w);
        }
#pragma unroll 1
        for (int j = 0; j < chunks; j++) {
            uint32_t p[KEYS / 4];
            auto hide = [&](float(&t)[KEYS / 2]) {
                if ((j + 1) * KEYS > unmasked)
                    mask_tile(t, a, row, j * KEYS);
            };
            ptx::keep(s);
            ptx::wgmma_fence();
            issue_scores<T, 64, 64, KEYS>(s, q_low, k_low + j * CHUNK_STEP);
            ptx::wgmma_commit();
            turns--;
            if (turns > 0 || w < 3)
                pass_turn(in_turns, w);
            ptx::wgmma_wait<0>();
            ptx::keep(s);
            softmax_tile<T, 64, Tile::POLYNOMIAL>(
                s, rows, factor, j == 0, {q, base + layout::K + j * Tile::CHUNK_BYTES, 64, KEYS},
                hide, [&](const float(&shrink)[2]) { scale_rows(o, shrink); });
            pack_tile(p, s, T());
            ptx::mbarrier_wait(base + layout::V_FULL + j * 8, 0);
            if (j + 1 < chunks)
                ptx::mbarrier_wait(base + layout::K_FULL + (j + 1) * 8, 0);
            wait_for_turn(in_turns, w);
            ptx::keep(p);
            ptx::keep(o);
            ptx::wgmma_fence();
            issue_output<T>(o, p, v_low + j * CHUNK_STEP, 1);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            ptx::keep(o);
        }
        if (chunks > 0) {
            turns--;
            if (turns > 0 || w < 3)
                pass_turn(in_turns, w);
        }
        float inverse[2];
        finish_sums(rows, inverse);
        scale_rows(o, inverse);
        /* O goes over the Q of the warpgroup, whose products are done in all warps by the barrier.
         */
        ptx::barrier_sync(1 + w, 128);
        stage_out(q, 0, o, T());
        ptx::barrier_sync(1 + w, 128);
        if (threadIdx.x % 128 == 0) {
            ptx::tma_store(&map_o, q, 0, row, blockIdx.y, blockIdx.z);
            ptx::tma_store_commit();
        }
    }
    while (in_turns && turns > 0) { /* whoever has less to do hands its turns on */
        wait_for_turn(in_turns, w);
        turns--;
        if (turns > 0 || w < 3)
            pass_turn(in_turns, w);
    }
    if (threadIdx.x % 128 == 0)
        ptx::tma_store_wait_read<0>();
}

template <typename Tile> constexpr int shared_bytes = shared_layout<Tile>::BYTES;

int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_RESIDENT;
}

template <typename T, int TILES> enum kg_status prepare_tile()
{
    return allow_shared(attention_resident_kernel<resident_tile<T, TILES>>,
                        shared_bytes<resident_tile<T, TILES>>);
}

enum kg_status prepare(const struct kg_problem *p, const struct kg_device *device)
{
    const enum kg_status status = tensor_map_open();
    const bool two = resident_takes_two(p, device->sm_count);
    if (status != KG_OK)
        return status;
    if (p->dtype == KG_F16)
        return two ? prepare_tile<__half, 2>() : prepare_tile<__half, 1>();
    return two ? prepare_tile<__nv_bfloat16, 2>() : prepare_tile<__nv_bfloat16, 1>();
}

template <typename T, int TILES>
enum kg_status launch_tile(const struct kg_problem *p, const struct kg_args *args)
{
    using Tile = resident_tile<T, TILES>;
    struct attention_sm90 a;
    struct attention_maps maps;
    const enum kg_status status = read_attention_sm90(p, args, 64, Tile::KEYS, 64, &maps, &a);
    if (status != KG_OK)
        return status;
    const int64_t blocks = (p->seqlen_q + 256 * TILES - 1) / (256 * TILES);
    return launch_kernel(attention_resident_kernel<Tile>,
                         dim3((unsigned)blocks, (unsigned)p->heads, (unsigned)p->batch), dim3(512),
                         shared_bytes<Tile>, args->stream, maps.q, maps.k, maps.v, maps.o, a,
                         factor_of(p));
}

enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    int device, sm_count;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
    const bool two = resident_takes_two(p, sm_count);
    if (p->dtype == KG_F16)
        return two ? launch_tile<__half, 2>(p, args) : launch_tile<__half, 1>(p, args);
    return two ? launch_tile<__nv_bfloat16, 2>(p, args) : launch_tile<__nv_bfloat16, 1>(p, args);
}

} // namespace attention_fwd_resident_sm90

using namespace attention_fwd_resident_sm90;

const struct kg_kernel kg_attention_fwd_resident_sm90 = {
    sizeof(struct kg_kernel),
    KG_OP_ATTENTION_FWD,
    0,
    "attention_fwd_resident_sm90",
    supports,
    prepare,
    NULL,
    launch,
};
