/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_stream_sm90.cuh: the walk of a warpgroup's 64 query rows over key tiles that come by TMA
 * through two rings, one of K and one of V (sm_90a).
 *
 * The scores of a tile and O += P V of the one before are issued together; while a warpgroup takes
 * exponentials, its O and the products of the other warpgroups are at work.
 */
#ifndef KG_ATTENTION_FWD_KEY_STREAM_SM90_CUH
#define KG_ATTENTION_FWD_KEY_STREAM_SM90_CUH

#include "kernels/attention_fwd/softmax_sm90.cuh"

/* The rings of a block, and how far this thread is in them. */
template <typename Tile> struct key_stream {
    uint32_t k, v; /* shared addresses of the stages */
    ring<Tile::K_STAGES> k_ring;
    ring<Tile::V_STAGES> v_ring;
    ring_place<Tile::K_STAGES> k_at;
    ring_place<Tile::V_STAGES> v_at;
    uint32_t k_low, v_low; /* of their descriptors, for consumers */
};

template <typename Tile>
__device__ __forceinline__ key_stream<Tile> key_stream_at(uint32_t k, uint32_t v, uint32_t k_ring,
                                                          uint32_t v_ring)
{
    return {k,
            v,
            {k_ring},
            {v_ring},
            {0, 0},
            {0, 0},
            uniform(descriptor_low(k)),
            uniform(descriptor_low(v, Tile::KEYS * PANEL_ROW_BYTES))};
}

/*
 * Two warpgroups issue their products in turns, so that each has its exponentials behind the
 * products of the other. Left alone they fall into step and stay there: as much as 1.4 times the
 * time, by where in memory their code lies. `w` is 0 or 1; both take as many turns. No turns where
 * there is another number of warpgroups.
 */
struct turns {
    int w;
    bool are_taken;

    __device__ __forceinline__ void begin() const
    {
        if (are_taken && w == 1)
            ptx::barrier_arrive(2, 256);
    }
    __device__ __forceinline__ void take() const
    {
        if (are_taken)
            ptx::barrier_sync(2 + w, 256);
    }
    __device__ __forceinline__ void give() const
    {
        if (are_taken)
            ptx::barrier_arrive(3 - w, 256);
    }
};

/* By the producer: asks for a tile of K or V, whose first key is `key`, as soon as a stage is free.
 */
template <typename Tile, int STAGES>
__device__ __forceinline__ void load_keys(uint32_t stages, const ring<STAGES> &ring,
                                          ring_place<STAGES> &at, const CUtensorMap &map, int key,
                                          int kv_head, int batch)
{
    ring.wait_empty(at);
    ring.expect(at, Tile::KV_BYTES);
    for (int c = 0; c < Tile::PANELS; c++)
        ptx::tma_load(stages + at.stage * Tile::KV_BYTES + c * Tile::KEYS * PANEL_ROW_BYTES, &map,
                      ring.full(at), c * 64, key, kv_head, batch);
    at.next();
}

/* Passes over tiles that another warpgroup of the block sees, and this one does not. */
template <typename Tile>
__device__ __forceinline__ void pass_tiles(key_stream<Tile> &at, struct turns turns, int tiles)
{
    for (int j = 0; j < tiles; j++) {
        turns.take();
        turns.give();
        at.k_ring.wait_full(at.k_at);
        at.v_ring.wait_full(at.v_at);
        if (threadIdx.x % 32 == 0) {
            at.k_ring.release(at.k_at);
            at.v_ring.release(at.v_at);
        }
        at.k_at.next();
        at.v_at.next();
    }
}

/*
 * O = P V over the next `tiles` tiles, one or more, for the 64 rows of Q at `q`. The sums of `rows`
 * are of this lane alone. hide(s, j) masks the scores of the j-th tile. let_go() is called when Q
 * is not needed any more, meanwhile() while the last product is at work.
 */
template <typename Tile, typename Hide, typename LetGo, typename Meanwhile>
__device__ __forceinline__ void walk_stream(key_stream<Tile> &at, struct turns turns, uint32_t q,
                                            int tiles, float factor, float (&o)[Tile::D / 2],
                                            struct softmax_rows &rows, Hide hide, LetGo let_go,
                                            Meanwhile meanwhile)
{
    using T = typename Tile::T;
    constexpr int D = Tile::D, KEYS = Tile::KEYS;
    const bool warp_leader = threadIdx.x % 32 == 0;
    const uint32_t q_low = uniform(descriptor_low(q));
    float s[KEYS / 2], shrink[2];
    uint32_t pr[KEYS / 4];

    clear_rows(rows);
    auto issue_s = [&]() {
        at.k_ring.wait_full(at.k_at);
        ptx::keep(s);
        ptx::wgmma_fence();
        issue_scores<T, D, Tile::ROWS, KEYS>(s, q_low,
                                             at.k_low + at.k_at.stage * (Tile::KV_BYTES / 16));
        ptx::wgmma_commit();
    };
    auto issue_o = [&](int accumulate) {
        at.v_ring.wait_full(at.v_at);
        ptx::keep(o);
        ptx::keep(pr);
        ptx::wgmma_fence();
        issue_output<T>(o, pr, at.v_low + at.v_at.stage * (Tile::KV_BYTES / 16), accumulate);
        ptx::wgmma_commit();
    };
    auto finish_o = [&]() {
        ptx::wgmma_wait<0>();
        ptx::keep(o);
        ptx::keep(pr);
        if (warp_leader)
            at.v_ring.release(at.v_at);
        at.v_at.next();
    };
    auto softmax = [&](int j, bool first) {
        bool outgrown = false;
        auto settle = [&](const float(&by)[2]) {
            shrink[0] = by[0];
            shrink[1] = by[1];
            outgrown = true;
        };
        ptx::keep(s);
        softmax_tile<T, D, Tile::POLYNOMIAL>(
            s, rows, factor, first, {q, at.k + at.k_at.stage * Tile::KV_BYTES, Tile::ROWS, KEYS},
            [&](float(&t)[KEYS / 2]) { hide(t, j); }, settle);
        if (warp_leader)
            at.k_ring.release(at.k_at);
        at.k_at.next();
        return outgrown;
    };

    turns.take();
    issue_s();
    turns.give();
    ptx::wgmma_wait<0>();
    softmax(0, true);
    pack_tile(pr, s, T());
#pragma unroll 1
    for (int j = 1; j < tiles; j++) {
        turns.take();
        issue_s();
        issue_o(j > 1);
        turns.give();
        ptx::wgmma_wait<1>();
        const bool outgrown = softmax(j, false);
        finish_o();
        if (outgrown)
            scale_rows(o, shrink);
        pack_tile(pr, s, T());
    }
    let_go();
    issue_o(tiles > 1);
    meanwhile();
    finish_o();
}

#endif
