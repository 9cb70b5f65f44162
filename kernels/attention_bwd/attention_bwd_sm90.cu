/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_bwd_sm90: attention backward on Hopper, dQ, dK and dV from O, dO and the log-sum-exp.
 *
 * Regime     fp16, bf16; D up to 128, in tiles of 64 and 128; lines of 16-byte multiples
 * Block      128 keys of a KV head, which walk over all tiles of 64 queries that see them. K and V
 *            stay in shared memory, Q and dO come by TMA in three stages
 * Roles      two warpgroups of 64 keys each: S^T = K Q^T, dP^T = V dO^T, then P^T and dS^T, which
 *            are factors of dV += P^T dO and dK += dS^T Q from registers (at D = 128 dS^T from
 *            shared memory). A third one asks for Q and dO, and multiplies dQ = dS K from shared
 *            memory, two tiles deep. It adds that to fp32 sums in the workspace, in any order:
 *            results differ in the last bits
 * Pipeline   a warpgroup's dK of the tile before is at work while it makes P, its dV while it makes
 *            dS; no barrier joins the two
 * Launches   three: begin_rows, this one, end_rows; see rows_sm90.cuh
 * Resources  208 registers a consumer, 88 the third, no spills; 193 KB of shared memory (D = 128)
 * Measured   H200, bf16, (2, 16, 8192, 128): 635 TFLOP/s full, 593 causal; 0.94 and 0.91 of cuDNN's
 *            time (docs/results.md)
 */
#include "kernels/attention_bwd/rows_sm90.cuh"
#include "kernels/attention_fwd/softmax_sm90.cuh"

namespace attention_bwd_sm90
{

template <typename T_, int D_> struct tile {
    using T = T_;
    static constexpr int D = D_, PANELS = D / 64;
    static constexpr int KEYS = 128, ROWS = 64;
    /* Where registers are short, dS^T is read from shared memory for dK too. */
    static constexpr bool DS_SHARED = D == 128;
    static constexpr int STAGES = 3, DS_STAGES = 2;
    static constexpr int THREADS = 384;
    static constexpr int CONSUMER_REGISTERS = 208, HELPER_REGISTERS = 88;
    static constexpr int KV_BYTES = KEYS * D * 2, Q_BYTES = ROWS * D * 2, STAT_BYTES = ROWS * 4;
    static constexpr int DS_BYTES = KEYS * PANEL_ROW_BYTES; /* a panel */
};

template <typename Tile> struct shared_layout {
    static constexpr int K = 0;
    static constexpr int V = K + Tile::KV_BYTES;
    static constexpr int Q = V + Tile::KV_BYTES;
    static constexpr int DO = Q + Tile::STAGES * Tile::Q_BYTES;
    static constexpr int DS = DO + Tile::STAGES * Tile::Q_BYTES;
    static constexpr int EXPONENT = DS + Tile::DS_STAGES * Tile::DS_BYTES;
    static constexpr int DELTA = EXPONENT + Tile::STAGES * Tile::STAT_BYTES;
    static constexpr int Q_RING = DELTA + Tile::STAGES * Tile::STAT_BYTES;
    static constexpr int DO_RING = Q_RING + ring<Tile::STAGES>::BYTES;
    static constexpr int DS_RING = DO_RING + ring<Tile::STAGES>::BYTES;
    static constexpr int KV_FULL = DS_RING + ring<Tile::DS_STAGES>::BYTES;
    static constexpr int BYTES = KV_FULL + 16;
    static_assert(BYTES <= 227 * 1024, "what a multiprocessor has");
};

constexpr int NO_MASK = 1 << 30;

struct params {
    const float *exponent, *delta;
    float *dq;
    int heads, kv_heads, group;
    int seqlen_kv;
    int shift; /* query i sees the keys up to i + shift; NO_MASK where it sees them all */
    int row_tiles, key_tiles; /* of a head */
    int section;              /* KV heads, of all batches, that are worked on at a time */
};

/* What a block works on: its keys, and the query tiles that see them. */
struct place {
    int key, kv_head, batch; /* the first key */
    int begin;               /* the first tile that sees it */
    int start;               /* the tile that is worked on first */
};

template <typename Tile> __device__ __forceinline__ struct place locate(const struct params &p)
{
    struct place at;
    /* Heads in sections; the first key tile of a head, which most rows see, comes first. */
    const int of_section = p.section * p.key_tiles, section = blockIdx.x / of_section;
    const int heads = min(p.section, (int)gridDim.x / p.key_tiles - section * p.section);
    const int in_section = blockIdx.x % of_section, tile = in_section / heads;
    const int head = section * p.section + in_section % heads;
    at.key = tile * Tile::KEYS;
    at.kv_head = head % p.kv_heads;
    at.batch = head / p.kv_heads;
    at.begin = max(0, at.key - p.shift) / Tile::ROWS;
    /* Under a full mask each block begins elsewhere, so that not all add to one place of dQ. */
    at.start = p.shift == NO_MASK ? tile * (Tile::KEYS / Tile::ROWS) % p.row_tiles : at.begin;
    return at;
}

__device__ __forceinline__ int items_of(const struct params &p, const struct place &at)
{
    return max(0, p.row_tiles - at.begin) * p.group;
}

/* A place in the walk over the query tiles, of one head of the group after the other. */
struct walk {
    int head, tile; /* the head within its group */

    __device__ __forceinline__ void next(const struct params &p, const struct place &at)
    {
        if (++tile == p.row_tiles)
            tile = at.begin;
        if (tile == at.start)
            head++;
    }
};

/* ---- the third warpgroup ---- */

template <typename Tile>
__device__ __forceinline__ void load_kv(const CUtensorMap &map, uint32_t to, uint32_t barrier,
                                        const struct place &at)
{
    ptx::mbarrier_arrive_expect(barrier, Tile::KV_BYTES);
    for (int c = 0; c < Tile::PANELS; c++)
        ptx::tma_load(to + c * Tile::KEYS * PANEL_ROW_BYTES, &map, barrier, c * 64, at.key,
                      at.kv_head, at.batch);
}

/* Asks for a tile of Q or dO and what belongs to its rows. */
template <typename Tile>
__device__ __forceinline__ void
load_rows(const CUtensorMap &map, uint32_t stages, uint32_t stats, const ring<Tile::STAGES> &ring,
          ring_place<Tile::STAGES> at, const float *stat, int row, int head, int batch)
{
    ring.wait_empty(at);
    ring.expect(at, Tile::Q_BYTES + Tile::STAT_BYTES);
    for (int c = 0; c < Tile::PANELS; c++)
        ptx::tma_load(stages + at.stage * Tile::Q_BYTES + c * Tile::ROWS * PANEL_ROW_BYTES, &map,
                      ring.full(at), c * 64, row, head, batch);
    ptx::bulk_load(stats + at.stage * Tile::STAT_BYTES, stat, Tile::STAT_BYTES, ring.full(at));
}

template <typename Tile>
__device__ __forceinline__ void help(const struct params &p, const CUtensorMap &map_q,
                                     const CUtensorMap &map_k, const CUtensorMap &map_v,
                                     const CUtensorMap &map_do, uint32_t base)
{
    using layout = shared_layout<Tile>;
    constexpr int D = Tile::D, AHEAD = Tile::STAGES - 1;
    const bool leader = threadIdx.x == 0, warp_leader = threadIdx.x % 32 == 0;
    const ring<Tile::STAGES> q_ring = {base + layout::Q_RING}, do_ring = {base + layout::DO_RING};
    const ring<Tile::DS_STAGES> ds_ring = {base + layout::DS_RING};
    ring_place<Tile::STAGES> q_at = {0, 0}; /* in both rings */
    ring_place<Tile::DS_STAGES> ds_at = {0, 0};
    const struct place at = locate<Tile>(p);
    const int items = items_of(p, at), head = at.kv_head * p.group;
    const int first_tile = (at.batch * p.heads + head) * p.row_tiles; /* of the workspace */
    struct walk asked = {0, at.start}, mine = {0, at.start};

    auto ask = [&]() {
        const int64_t rows =
            (int64_t)(first_tile + asked.head * p.row_tiles + asked.tile) * Tile::ROWS;
        const int row = asked.tile * Tile::ROWS;
        load_rows<Tile>(map_q, base + layout::Q, base + layout::EXPONENT, q_ring, q_at,
                        p.exponent + rows, row, head + asked.head, at.batch);
        load_rows<Tile>(map_do, base + layout::DO, base + layout::DELTA, do_ring, q_at,
                        p.delta + rows, row, head + asked.head, at.batch);
        q_at.next();
        asked.next(p, at);
    };

    if (leader) {
        load_kv<Tile>(map_k, base + layout::K, base + layout::KV_FULL, at);
        load_kv<Tile>(map_v, base + layout::V, base + layout::KV_FULL + 8, at);
    }
    wait_for_predecessor();
    if (leader)
        for (int i = 0; i < AHEAD && i < items; i++)
            ask();
    __syncwarp();
    ptx::mbarrier_wait(base + layout::KV_FULL, 0);

    const uint32_t k_low = uniform(descriptor_low(base + layout::K));
    const uint32_t ds_low = uniform(descriptor_low(base + layout::DS));
#pragma unroll 1
    for (int n = 0; n < items; n++) {
        /* The stage that this takes was left by both consumers about a tile ago. */
        if (leader && n + AHEAD < items)
            ask();
        __syncwarp();
        ds_ring.wait_full(ds_at);
        const uint32_t from = ds_low + ds_at.stage * (Tile::DS_BYTES / 16);
        float *const to =
            p.dq + (int64_t)(first_tile + mine.head * p.row_tiles + mine.tile) * (Tile::ROWS * D);
#pragma unroll 1
        for (int c = 0; c < Tile::PANELS; c++) {
            float dq[32];
            ptx::forget(dq);
            ptx::wgmma_fence();
#pragma unroll
            for (int t = 0; t < Tile::KEYS / 16; t++)
                ptx::wgmma_ss<1, 1>(dq, descriptor(from + t * DESCRIPTOR_MN_STEP),
                                    descriptor(k_low + c * (Tile::KEYS * PANEL_ROW_BYTES / 16) +
                                               t * DESCRIPTOR_MN_STEP),
                                    t > 0, typename Tile::T());
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            ptx::keep(dq);
            if (c == Tile::PANELS - 1 && warp_leader)
                ds_ring.release(ds_at);
#pragma unroll
            for (int i = 0; i < 8; i++)
                ptx::add_global_16(to + (c * 8 + i) * 512 + threadIdx.x * 4, dq + 4 * i);
        }
        ds_at.next();
        mine.next(p, at);
    }
}

/* ---- the consumers ---- */

/* Of a thread's two keys: the first column of a query tile, counted from the thread's own first
 * one, that sees it. */
struct seen_from {
    int column[2];
};

template <typename Tile>
__device__ __forceinline__ struct seen_from columns_that_see(const struct params &p, int key,
                                                             int row)
{
    struct seen_from from;
    key += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int own = key + half * 8;
        from.column[half] =
            own < p.seqlen_kv ? own - p.shift - row - (int)threadIdx.x % 4 * 2 : INT32_MAX;
    }
    return from;
}

/* S^T becomes P^T = 2^(factor S + exponent), rounded and packed as a factor of the next product.
 * Each column has its exponent. */
template <typename T, bool MASKED, int R>
__device__ __forceinline__ void weigh(const float (&s)[R], uint32_t (&p16)[R / 2],
                                      const float *exponent, float factor,
                                      const struct seen_from &from)
{
    exponent += threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < R / 4; j++) {
        const float2 e = *(const float2 *)(exponent + 8 * j);
        float p[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float x = fmaf(s[4 * j + i], factor, i % 2 ? e.y : e.x);
            if (MASKED && 8 * j + i % 2 < from.column[i / 2])
                x = -INFINITY;
            p[i] = ptx::exp2_approx(x);
        }
        p16[2 * j] = ptx::pack(p[0], p[1], T());
        p16[2 * j + 1] = ptx::pack(p[2], p[3], T());
    }
}

/* dS^T = P^T (dP^T - delta), of which each column has its own. */
template <typename T, int R>
__device__ __forceinline__ void weigh_gradient(const float (&dp)[R], const uint32_t (&p16)[R / 2],
                                               uint32_t (&ds16)[R / 2], const float *delta)
{
    delta += threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < R / 4; j++) {
        const float2 d = *(const float2 *)(delta + 8 * j);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float2 p = to_floats(p16[2 * j + half], T());
            ds16[2 * j + half] = ptx::pack(p.x * (dp[4 * j + 2 * half] - d.x),
                                           p.y * (dp[4 * j + 2 * half + 1] - d.y), T());
        }
    }
}

/* A warp's 16 keys of dS^T to shared memory: rows of keys, in panels of 64 queries. */
template <typename Tile, int R>
__device__ __forceinline__ void write_ds(uint32_t panel, const uint32_t (&ds)[R])
{
    const int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 16;
    const uint32_t at =
        panel + row * PANEL_ROW_BYTES + (threadIdx.x / 16 % 2 ^ threadIdx.x % 8) * 16;
#pragma unroll
    for (int t = 0; t < R / 4; t++)
        ptx::stmatrix_x4(at ^ t * 32, ds[4 * t], ds[4 * t + 1], ds[4 * t + 2], ds[4 * t + 3]);
    ptx::fence_async_shared();
}

/* By a warpgroup: its 64 keys of dK or dV, by way of `panel`. */
template <typename Tile>
__device__ __forceinline__ void store_keys(const CUtensorMap &map, uint32_t panel, int w,
                                           const float (&d)[Tile::D / 2], const struct place &at)
{
    stage_out(panel, Tile::KEYS * PANEL_ROW_BYTES, d, typename Tile::T());
    ptx::barrier_sync(1 + w, 128);
    if (threadIdx.x % 128 == 0) {
        for (int c = 0; c < Tile::PANELS; c++)
            ptx::tma_store(&map, panel + c * Tile::KEYS * PANEL_ROW_BYTES, c * 64, at.key + w * 64,
                           at.kv_head, at.batch);
        ptx::tma_store_commit();
    }
}

template <typename Tile>
__device__ __forceinline__ void consume(const struct params &p, const CUtensorMap &map_dk,
                                        const CUtensorMap &map_dv, uint32_t base,
                                        const unsigned char *shared, float factor, float scale)
{
    using layout = shared_layout<Tile>;
    using T = typename Tile::T;
    constexpr int D = Tile::D, ROWS = Tile::ROWS, KEYS = Tile::KEYS;
    const int w = uniform(threadIdx.x / 128) - 1;
    const bool leader = threadIdx.x % 128 == 0, warp_leader = threadIdx.x % 32 == 0;
    const ring<Tile::STAGES> q_ring = {base + layout::Q_RING}, do_ring = {base + layout::DO_RING};
    const ring<Tile::DS_STAGES> ds_ring = {base + layout::DS_RING};
    ring_place<Tile::STAGES> q_at = {0, 0}, before = {-1, 0}; /* in both rings */
    ring_place<Tile::DS_STAGES> ds_at = {0, 0};
    int ds_before = 0;
    const struct place at = locate<Tile>(p);
    const int items = items_of(p, at);
    /* Only a causal mask asks for the row, and then the walk starts at the first one. */
    int row = at.begin * ROWS;
    const uint32_t half = w * 64 * PANEL_ROW_BYTES;
    const uint32_t k_low = uniform(descriptor_low(base + layout::K + half));
    const uint32_t v_low = uniform(descriptor_low(base + layout::V + half));
    const uint32_t q_low = uniform(descriptor_low(base + layout::Q));
    const uint32_t do_low = uniform(descriptor_low(base + layout::DO));
    const uint32_t ds_low = uniform(descriptor_low(base + layout::DS + half));
    const uint32_t across = (ROWS * PANEL_ROW_BYTES) >> 4 << 16; /* MN-major, over panels */
    float s[ROWS / 2], dp[ROWS / 2], dk[D / 2], dv[D / 2];
    uint32_t p16[ROWS / 4], ds16[ROWS / 4];

#pragma unroll
    for (int i = 0; i < D / 2; i++)
        dk[i] = dv[i] = 0.0f;

    auto issue_s = [&](ring_place<Tile::STAGES> from) {
        q_ring.wait_full(from);
        ptx::forget(s);
        ptx::wgmma_fence();
        issue_scores<T, D, KEYS, ROWS>(s, k_low, q_low + from.stage * (Tile::Q_BYTES / 16));
        ptx::wgmma_commit();
    };
    auto issue_dp = [&]() {
        do_ring.wait_full(q_at);
        ptx::forget(dp);
        ptx::wgmma_fence();
        issue_scores<T, D, KEYS, ROWS>(dp, v_low, do_low + q_at.stage * (Tile::Q_BYTES / 16));
        ptx::wgmma_commit();
    };

    auto issue_dk = [&]() {
        const uint32_t q = (q_low | across) + before.stage * (Tile::Q_BYTES / 16);
        if constexpr (Tile::DS_SHARED) {
            const uint32_t ds = ds_low + ds_before * (Tile::DS_BYTES / 16);
#pragma unroll
            for (int t = 0; t < ROWS / 16; t++)
                ptx::wgmma_ss<0, 1>(dk, descriptor(ds + t * DESCRIPTOR_K_STEP),
                                    descriptor(q + t * DESCRIPTOR_MN_STEP), 1, T());
        } else {
            issue_output<T>(dk, ds16, q, 1);
        }
        ptx::wgmma_commit();
    };
    auto keep_dk = [&]() {
        ptx::keep(dk);
        if constexpr (!Tile::DS_SHARED)
            ptx::keep(ds16);
    };
    /* dK of the tile before is done. */
    auto finish_dk = [&]() {
        keep_dk();
        if (warp_leader) {
            q_ring.release(before);
            if constexpr (Tile::DS_SHARED)
                ptx::mbarrier_arrive(base + layout::DS_RING + (Tile::DS_STAGES + ds_before) * 8);
        }
    };

    ptx::mbarrier_wait(base + layout::KV_FULL, 0);
    ptx::mbarrier_wait(base + layout::KV_FULL + 8, 0);
    /* While P is made, dK of the tile before is at work; while dS is, dV. */
    if (items > 0) {
        issue_s(q_at);
        ptx::wgmma_wait<0>();
        for (int n = items;;) {
            const float *exponent =
                (const float *)(shared + layout::EXPONENT + q_at.stage * Tile::STAT_BYTES);
            const float *delta =
                (const float *)(shared + layout::DELTA + q_at.stage * Tile::STAT_BYTES);
            ptx::keep(s);
            if (at.key + KEYS > p.seqlen_kv || row + p.shift < at.key + KEYS - 1)
                weigh<T, true>(s, p16, exponent, factor,
                               columns_that_see<Tile>(p, at.key + w * 64, row));
            else
                weigh<T, false>(s, p16, exponent, factor, {});
            if (before.stage >= 0) {
                ptx::wgmma_wait<0>();
                finish_dk();
            }

            issue_dp();
            ptx::keep(dv);
            ptx::keep(p16);
            issue_output<T>(dv, p16, (do_low | across) + q_at.stage * (Tile::Q_BYTES / 16), 1);
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            ptx::keep(dp);
            weigh_gradient<T>(dp, p16, ds16, delta);
            ds_ring.wait_empty(ds_at);
            write_ds<Tile>(base + layout::DS + ds_at.stage * Tile::DS_BYTES + half, ds16);
            if constexpr (Tile::DS_SHARED)
                ptx::barrier_sync(1 + w, 128);
            else
                __syncwarp();
            if (warp_leader)
                ptx::mbarrier_arrive(ds_ring.full(ds_at));
            ds_before = ds_at.stage;
            ds_at.next();

            before = q_at;
            q_at.next();
            row = row + ROWS < p.row_tiles * ROWS ? row + ROWS : at.begin * ROWS;
            if (--n == 0)
                break;
            issue_s(q_at);
            keep_dk();
            issue_dk();
            ptx::wgmma_wait<1>();
            ptx::keep(dv);
            ptx::keep(p16);
            if (warp_leader)
                do_ring.release(before);
        }
        keep_dk();
        ptx::wgmma_fence();
        issue_dk();
        ptx::wgmma_wait<0>();
        finish_dk();
        ptx::keep(dv);
        ptx::keep(p16);
    }

    /* Nobody else reads these rows of V; those of K are read for dQ till the last tile. */
    store_keys<Tile>(map_dv, base + layout::V + half, w, dv, at);
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        dk[i] *= scale;
    if (items > 0) {
        for (int i = 0; i < Tile::DS_STAGES; i++) {
            ds_ring.wait_empty(ds_at);
            ds_at.next();
        }
    }
    store_keys<Tile>(map_dk, base + layout::K + half, w, dk, at);
    if (leader)
        ptx::tma_store_wait_read<0>();
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    attention_bwd_kernel(const __grid_constant__ CUtensorMap map_q,
                         const __grid_constant__ CUtensorMap map_k,
                         const __grid_constant__ CUtensorMap map_v,
                         const __grid_constant__ CUtensorMap map_do,
                         const __grid_constant__ CUtensorMap map_dk,
                         const __grid_constant__ CUtensorMap map_dv,
                         const __grid_constant__ struct params p, float factor, float scale)
{
    using layout = shared_layout<Tile>;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);

    let_dependents_start();
    if (threadIdx.x == 0) {
        ring<Tile::STAGES>{base + layout::Q_RING}.init(8);
        ring<Tile::STAGES>{base + layout::DO_RING}.init(8);
        for (int i = 0; i < Tile::DS_STAGES; i++) {
            ptx::mbarrier_init(base + layout::DS_RING + i * 8, 8);
            ptx::mbarrier_init(base + layout::DS_RING + (Tile::DS_STAGES + i) * 8,
                               Tile::DS_SHARED ? 12 : 4);
        }
        ptx::mbarrier_init(base + layout::KV_FULL, 1);
        ptx::mbarrier_init(base + layout::KV_FULL + 8, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (uniform(threadIdx.x / 128) == 0) {
        ptx::registers_decrease<Tile::HELPER_REGISTERS>();
        help<Tile>(p, map_q, map_k, map_v, map_do, base);
    } else {
        ptx::registers_increase<Tile::CONSUMER_REGISTERS>();
        consume<Tile>(p, map_dk, map_dv, base, shared, factor, scale);
    }
}

/* ---- the launch ---- */

static int64_t rows_of(const struct attention_sizes *p)
{
    const int64_t tile = p->head_dim <= 64 ? 128 : 64;
    return p->batch * p->heads * ((p->seqlen_q + tile - 1) / tile * tile);
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    const int64_t longest = 1 << 29;
    return device->kind == KG_DEVICE_CUDA && device->cc_major == 9 && device->cc_minor == 0 &&
           (p->dtype == KG_F16 || p->dtype == KG_BF16) &&
           (p->flags & ~(uint32_t)KG_FLAG_CAUSAL) == 0 && p->head_dim >= 8 && p->head_dim <= 128 &&
           p->head_dim % 8 == 0 && p->batch >= 1 && p->heads >= 1 && p->kv_heads >= 1 &&
           p->heads % p->kv_heads == 0 && p->seqlen_q >= 1 && p->seqlen_kv >= 1 &&
           p->seqlen_q <= longest && p->seqlen_kv <= longest && p->heads <= UINT16_MAX &&
           p->batch <= UINT16_MAX && rows_of(p) / 64 <= longest &&
           p->batch * p->kv_heads * (p->seqlen_kv / 128 + 1) <= longest;
}

uint64_t workspace_bytes(const struct attention_sizes *p, const struct kg_device *)
{
    return (uint64_t)rows_of(p) * (p->head_dim <= 64 ? 64 + 2 : 128 + 2) * sizeof(float);
}

template <typename Run> static enum kg_status with_tile(const struct attention_sizes *p, Run run)
{
    if (p->dtype == KG_F16)
        return p->head_dim <= 64 ? run.template run<tile<__half, 64>>()
                                 : run.template run<tile<__half, 128>>();
    return p->head_dim <= 64 ? run.template run<tile<__nv_bfloat16, 64>>()
                             : run.template run<tile<__nv_bfloat16, 128>>();
}

struct prepare_tile {
    template <typename Tile> enum kg_status run()
    {
        return allow_shared(attention_bwd_kernel<Tile>, shared_layout<Tile>::BYTES);
    }
};

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? with_tile(p, prepare_tile()) : status;
}

/* The tensors of a launch, each looked at. */
struct tensors {
    struct tensor_view q, k, v, o, d_o, dq, dk, dv;
};

static enum kg_status read_tensors(const struct attention_sizes *p, const struct kg_args *args,
                                   struct tensors *t)
{
    struct tensor_view *const rows[] = {&t->q, &t->o, &t->d_o, &t->dq};
    struct tensor_view *const keys[] = {&t->k, &t->v, &t->dk, &t->dv};
    const struct kg_tensor *const row_args[] = {&args->in[0], &args->in[3], &args->in[4],
                                                &args->out[0]};
    const struct kg_tensor *const key_args[] = {&args->in[1], &args->in[2], &args->out[1],
                                                &args->out[2]};
    const struct kg_tensor *const lse = &args->in[5];

    if (args->struct_bytes < sizeof(*args) || args->n_in != 6 || args->n_out != 3)
        return KG_BAD_ARGUMENT;
    for (int i = 0; i < 4; i++) {
        enum kg_status status = view_tensor(row_args[i], p->dtype, p->batch, p->heads, p->seqlen_q,
                                            p->head_dim, rows[i]);
        if (status == KG_OK)
            status = view_tensor(key_args[i], p->dtype, p->batch, p->kv_heads, p->seqlen_kv,
                                 p->head_dim, keys[i]);
        if (status != KG_OK)
            return status;
    }
    if (lse->rank != 3 || lse->dtype != KG_F32 || lse->data == NULL || lse->shape[0] != p->batch ||
        lse->shape[1] != p->heads || lse->shape[2] != p->seqlen_q || lse->stride[2] != 1)
        return KG_BAD_ARGUMENT;
    return KG_OK;
}

struct launch_tile {
    const struct attention_sizes *p;
    const struct kg_args *args;

    template <typename Tile> enum kg_status run()
    {
        using T = typename Tile::T;
        const float factor = (float)(p->scale * LOG2_E), scale = (float)p->scale;
        const struct kg_tensor *const lse = &args->in[5];
        const int64_t rows = rows_of(p);
        const bool causal = (p->flags & KG_FLAG_CAUSAL) != 0;
        CUtensorMap q, k, v, d_o, dk, dv;
        struct tensors t;
        struct row_params r;
        struct params m;

        enum kg_status status = read_tensors(p, args, &t);
        if (status == KG_OK)
            status = map_rows(&q, &args->in[0], Tile::ROWS);
        if (status == KG_OK)
            status = map_rows(&k, &args->in[1], Tile::KEYS);
        if (status == KG_OK)
            status = map_rows(&v, &args->in[2], Tile::KEYS);
        if (status == KG_OK)
            status = map_rows(&d_o, &args->in[4], Tile::ROWS);
        if (status == KG_OK)
            status = map_rows(&dk, &args->out[1], 64);
        if (status == KG_OK)
            status = map_rows(&dv, &args->out[2], 64);
        if (status != KG_OK)
            return status;

        r.o = t.o;
        r.d_o = t.d_o;
        r.dq = t.dq;
        r.lse = (const float *)lse->data;
        r.lse_batch = p->batch > 1 ? lse->stride[0] : 0;
        r.lse_head = p->heads > 1 ? lse->stride[1] : 0;
        r.sums = (float *)args->workspace;
        r.exponent = r.sums + rows * Tile::D;
        r.delta = r.exponent + rows;
        r.heads = (int)p->heads;
        r.seqlen_q = (int)p->seqlen_q;
        r.head_dim = (int)p->head_dim;
        r.blocks = (int)(rows / (p->batch * p->heads) / BLOCK_ROWS);
        m.exponent = r.exponent;
        m.delta = r.delta;
        m.dq = r.sums;
        m.heads = (int)p->heads;
        m.kv_heads = (int)p->kv_heads;
        m.group = (int)(p->heads / p->kv_heads);
        m.seqlen_kv = (int)p->seqlen_kv;
        m.shift = causal ? (int)(p->seqlen_kv - p->seqlen_q) : NO_MASK;
        m.row_tiles = (int)(rows / (p->batch * p->heads) / Tile::ROWS);
        m.key_tiles = (int)((p->seqlen_kv + Tile::KEYS - 1) / Tile::KEYS);

        /* Few heads at a time, so that their Q and dO stay in L2. Under a causal mask blocks differ
         * in length: as many heads as give each multiprocessor a few, the longest first. */
        const int64_t all = p->batch * p->kv_heads, each = causal ? 132 / m.key_tiles + 1 : 1;
        const int64_t sections = (all + each - 1) / each;
        m.section = (int)((all + sections - 1) / sections);

        const dim3 row_blocks((unsigned)(rows / BLOCK_ROWS));
        status = launch_kernel(begin_rows<T, Tile::D>, row_blocks, dim3(ROW_THREADS), 0,
                               args->stream, r);
        if (status == KG_OK)
            status = launch_dependent_kernel(attention_bwd_kernel<Tile>,
                                             dim3((unsigned)(p->batch * p->kv_heads * m.key_tiles)),
                                             dim3(Tile::THREADS), shared_layout<Tile>::BYTES,
                                             args->stream, q, k, v, d_o, dk, dv, m, factor, scale);
        if (status == KG_OK)
            status = launch_dependent_kernel(end_rows<T, Tile::D>, row_blocks, dim3(ROW_THREADS), 0,
                                             args->stream, r, scale);
        return status;
    }
};

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return with_tile(p, launch_tile{p, args});
}

} // namespace attention_bwd_sm90

using namespace attention_bwd_sm90;

extern "C" const struct kg_kernel kg_attention_bwd_sm90 =
    kernel_of<attention_sizes, supports, prepare, workspace_bytes, launch>(
        "attention_bwd", "attention_bwd_sm90", KG_KERNEL_NONDETERMINISTIC);
