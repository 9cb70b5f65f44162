/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_tile_sm90.cuh: a tile of A B by wgmma, operands through a ring of TMA stages, and its way to
 * C; of these the persistent kernels are made (sm_90a).
 *
 * A block is three warpgroups: one thread of the first loads, the other two multiply 64 of the
 * tile's 128 rows each. Both blocks of a cluster have the same columns of B: each loads half of
 * them and sends it to both, which takes a third of the bytes from L2.
 *
 * The tile of a turned product is that of C transposed, which the epilogue turns back: the operand
 * with few rows is B. Its blocks share nothing, unless they are a pair: what multicast saves, no
 * multiprocessor lacks, where a line of 128 bytes is one of the L2's.
 *
 * An operand is K-major (A[M,K], B[N,K] row-major) or MN-major (A[K,M], B[K,N] row-major; 16-bit
 * types only). A stage holds 128 bytes of k: 64 halves or 32 floats. What lies outside of a matrix
 * arrives as zeros.
 */
#ifndef KG_GEMM_TILE_SM90_CUH
#define KG_GEMM_TILE_SM90_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/gemm/gemm_policy_sm90.h"

namespace gemm_sm90
{

constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (1 + CONSUMERS);
constexpr int STEPS = 4; /* products of a stage, 32 bytes of k each */

template <typename T_, int BN_, int STAGES_, int CLUSTER_, bool A_K_, bool B_K_,
          bool TURNED_ = false>
struct product {
    using T = T_;
    static constexpr int BM = 64 * CONSUMERS, BN = BN_, STAGES = STAGES_, CLUSTER = CLUSTER_;
    static constexpr bool A_K = A_K_, B_K = B_K_, TURNED = TURNED_;
    static constexpr int BK = PANEL_ROW_BYTES / (int)sizeof(T);
    static constexpr int A_BYTES = BM * PANEL_ROW_BYTES, B_BYTES = BN * PANEL_ROW_BYTES;
    static constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
    static constexpr int MN_PANEL_BYTES = BK * PANEL_ROW_BYTES; /* 64 of m or n, BK of k */
    static constexpr int B_SHARE = BN / CLUSTER;                /* columns that a block loads */
    /* Blocks of a multiprocessor. */
    static constexpr int RESIDENT = TURNED && BN <= 64 ? 2 : 1;
    /* Columns of a tile that leave at once. */
    static constexpr int PIECE = !TURNED || BN == 256 || BN == 128 ? 64 : BN % 32 == 0 ? 32 : 16;
    static constexpr int PIECES = BN / PIECE, STAGING_PANEL = PIECE * PANEL_ROW_BYTES;
    static_assert(!TURNED || (sizeof(T) == 2 && B_K), "what is turned");
    static_assert((A_K && B_K) || sizeof(T) == 2, "tf32 has K-major operands only");
    static_assert(B_K || B_SHARE % 64 == 0, "panels of 64 columns");
};

/* Asks for A's part of block k of the tile at row m0; its stage then waits for all of the block. By
 * one thread, when the stage is empty. */
template <typename P>
__device__ __forceinline__ void load_a(const ring<P::STAGES> &stages, ring_place<P::STAGES> at,
                                       uint32_t shared, const CUtensorMap *map, int m0, int k)
{
    const uint32_t a = shared + at.stage * P::STAGE_BYTES, full = stages.full(at);

    stages.expect(at, P::STAGE_BYTES);
    if constexpr (P::A_K) {
        ptx::tma_load(a, map, full, k * P::BK, m0);
    } else {
#pragma unroll
        for (int i = 0; i < P::BM / 64; i++)
            ptx::tma_load(a + i * P::MN_PANEL_BYTES, map, full, m0 + i * 64, k * P::BK);
    }
}

/* Asks for this block's share of B, for the whole cluster. */
template <typename P>
__device__ __forceinline__ void load_b(const ring<P::STAGES> &stages, ring_place<P::STAGES> at,
                                       uint32_t shared, const CUtensorMap *map, int n0, int k,
                                       int rank)
{
    const uint32_t full = stages.full(at);
    const int share = rank * P::B_SHARE;
    const uint32_t b = shared + at.stage * P::STAGE_BYTES + P::A_BYTES + share * PANEL_ROW_BYTES;
    constexpr uint16_t ALL = (1 << P::CLUSTER) - 1;

    if constexpr (P::CLUSTER == 1 && P::B_K) {
        ptx::tma_load(b, map, full, k * P::BK, n0);
    } else if constexpr (P::CLUSTER == 1) {
#pragma unroll
        for (int i = 0; i < P::BN / 64; i++)
            ptx::tma_load(b + i * P::MN_PANEL_BYTES, map, full, n0 + i * 64, k * P::BK);
    } else if constexpr (P::B_K) {
        ptx::tma_load_multicast(b, map, full, ALL, k * P::BK, n0 + share);
    } else {
#pragma unroll
        for (int i = 0; i < P::B_SHARE / 64; i++)
            ptx::tma_load_multicast(b + i * P::MN_PANEL_BYTES, map, full, ALL, n0 + share + i * 64,
                                    k * P::BK);
    }
}

/* One consumer: a warpgroup and its 64 rows of each tile. */
template <typename P> struct consumer {
    ring<P::STAGES> stages;
    ring_place<P::STAGES> at, last; /* the next block; the one before it, still to be let go */
    uint32_t a, b;                  /* low words of the descriptors of stage 0 */

    __device__ __forceinline__ consumer(const ring<P::STAGES> &ring_, uint32_t shared, int index)
        : stages(ring_), at{0, 0}, last{0, 0}
    {
        const uint32_t panel = shared + P::A_BYTES;
        a = uniform(descriptor_low(shared + index * (P::A_BYTES / CONSUMERS)));
        b = uniform(P::B_K ? descriptor_low(panel) : descriptor_low(panel, P::MN_PANEL_BYTES));
    }

    /* Both blocks of a cluster load into both: each must know. */
    __device__ __forceinline__ void release(ring_place<P::STAGES> place) const
    {
        const uint32_t rank = threadIdx.x % WARPGROUP;
        if constexpr (P::CLUSTER == 1) {
            if (rank == 0)
                stages.release(place);
        } else if (rank < P::CLUSTER) {
            stages.release_at(place, rank);
        }
    }

    /* Starts acc += A B of the first N steps of the next block, which is there. Q: a product with
     * the same stages, whose A may lie otherwise. */
    template <typename Q, int N>
    __device__ __forceinline__ void start(float (&acc)[P::BN / 2], bool first)
    {
        constexpr uint32_t STAGE = P::STAGE_BYTES / 16;
        constexpr uint32_t A_STEP = Q::A_K ? DESCRIPTOR_K_STEP : DESCRIPTOR_MN_STEP;
        constexpr uint32_t B_STEP = P::B_K ? DESCRIPTOR_K_STEP : DESCRIPTOR_MN_STEP;

        ptx::keep(acc);
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < N; i++)
            ptx::wgmma_ss<!Q::A_K, !P::B_K>(acc, descriptor(a + at.stage * STAGE + i * A_STEP),
                                            descriptor(b + at.stage * STAGE + i * B_STEP),
                                            i > 0 || !first, typename P::T());
        ptx::wgmma_commit();
    }

    /* Waits for the block before the one just started, if there is one, and lets it go. */
    __device__ __forceinline__ void advance(bool first)
    {
        if (!first) {
            ptx::wgmma_wait<1>();
            release(last);
        }
        last = at;
        at.next();
    }

    /* The next block of a tile (acc = A B with the first). */
    template <typename Q>
    __device__ __forceinline__ void multiply(float (&acc)[P::BN / 2], bool first)
    {
        stages.wait_full(at);
        start<Q, STEPS>(acc, first);
        advance(first);
    }

    /* A last block, not the first, of which K has only `steps`. */
    template <typename Q>
    __device__ __forceinline__ void multiply_last(float (&acc)[P::BN / 2], int steps)
    {
        stages.wait_full(at);
        if (steps == 1)
            start<Q, 1>(acc, false);
        else if (steps == 2)
            start<Q, 2>(acc, false);
        else if (steps == 3)
            start<Q, 3>(acc, false);
        else
            start<Q, STEPS>(acc, false);
        advance(false);
    }

    /* After the last block of a tile. */
    __device__ __forceinline__ void finish(float (&acc)[P::BN / 2])
    {
        ptx::wgmma_wait<0>();
        ptx::keep(acc);
        release(last);
    }
};

/*
 * From the accumulators of a tile to C, with or without bias and ReLU.
 *
 * Halves: a tile is rounded into registers at once, which frees the accumulators for the next tile;
 * it leaves them 64 columns at a time (stmatrix, TMA store) while the tensor cores work on that.
 * Floats have no room for this and leave before the next tile begins.
 */

/* The staging of one consumer: two panels of 64 rows, 128 bytes each. */
constexpr int STAGING_PANEL = 64 * PANEL_ROW_BYTES, STAGING_BYTES = 2 * STAGING_PANEL;

/* Each warpgroup has a barrier of its own. */
static __device__ __forceinline__ void consumer_barrier()
{
    ptx::barrier_sync(1 + threadIdx.x / WARPGROUP, WARPGROUP);
}

/* Waits until the store before the last has read its panel. */
static __device__ __forceinline__ void staging_acquire()
{
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<1>();
    consumer_barrier();
}

static __device__ __forceinline__ void staging_store(const CUtensorMap *map, uint32_t panel, int n,
                                                     int m)
{
    ptx::fence_async_shared();
    consumer_barrier();
    if (threadIdx.x % WARPGROUP == 0) {
        ptx::tma_store(map, panel, n, m);
        ptx::tma_store_commit();
    }
}

/*
 * The bias of a consumer's tile, in shared memory of its own. It is asked for before the first
 * product and written down after the last: behind the copy engine's first loads it comes late,
 * after 5000 clocks where all SMs begin at once.
 */
template <typename T, int BN> struct tile_bias {
    static constexpr int EACH = (BN + WARPGROUP - 1) / WARPGROUP;
    T *shared;
    T asked[EACH];

    __device__ __forceinline__ void ask(const void *bias, int n0, int n)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = n0 + i * WARPGROUP + (int)threadIdx.x % WARPGROUP;
            asked[i] = at < n ? ((const T *)bias)[at] : T(0.0f);
        }
    }

    __device__ __forceinline__ void write()
    {
        consumer_barrier(); /* the tile before has been read */
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (i * WARPGROUP + (int)threadIdx.x % WARPGROUP < BN)
                shared[i * WARPGROUP + (int)threadIdx.x % WARPGROUP] = asked[i];
        consumer_barrier();
    }

    /* For accumulators 4 j and 4 j + 2 (x), 4 j + 1 and 4 j + 3 (y). */
    __device__ __forceinline__ float2 at(int j) const
    {
        alignas(8) T pair[2];
        const T *const from = shared + j * 8 + threadIdx.x % 4 * 2;
        if constexpr (sizeof(T) == 2)
            *(uint32_t *)pair = *(const uint32_t *)from;
        else
            *(uint2 *)pair = *(const uint2 *)from;
        return make_float2((float)pair[0], (float)pair[1]);
    }
};

/* A consumer's 64 rows of a tile of 16-bit elements, rounded, on their way out of registers. */
template <typename T, int BN> struct held_tile {
    uint32_t pairs[BN / 4];
    const CUtensorMap *map; /* NULL: nothing is held */
    int m, n;

    __device__ __forceinline__ void hold(const CUtensorMap *to, int m0, int n0)
    {
        ptx::keep(pairs);
        map = to;
        m = m0;
        n = n0;
    }

    __device__ __forceinline__ void round(const float (&acc)[BN / 2])
    {
#pragma unroll
        for (int i = 0; i < BN / 4; i++)
            pairs[i] = ptx::pack(acc[2 * i], acc[2 * i + 1], T());
    }

    __device__ __forceinline__ void round_relu(const float (&acc)[BN / 2],
                                               const tile_bias<T, BN> &bias)
    {
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const float2 b = bias.at(j);
            pairs[2 * j] = ptx::pack_relu(acc[4 * j] + b.x, acc[4 * j + 1] + b.y, T());
            pairs[2 * j + 1] = ptx::pack_relu(acc[4 * j + 2] + b.x, acc[4 * j + 3] + b.y, T());
        }
    }

    /* Stores columns 64 q to 64 q + 63, if there is something to store. */
    __device__ __forceinline__ void store(int q, uint32_t staging) const
    {
        const uint32_t panel = staging + q % 2 * STAGING_PANEL;
        const int lane = threadIdx.x % 32;
        const int row = threadIdx.x / 32 % 4 * 16 + lane % 16;

        if (map == NULL)
            return;
        staging_acquire();
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const uint32_t *const r = pairs + q * 16 + t * 4;
            ptx::stmatrix_x4(panel + row * PANEL_ROW_BYTES + ((t * 2 + lane / 16) ^ (row & 7)) * 16,
                             r[0], r[1], r[2], r[3]);
        }
        staging_store(map, panel, n + q * 64, m);
    }
};

/* The bias of a row of a turned tile, which is a column of C: of each lane's rows. */
template <typename T>
__device__ __forceinline__ float2 turned_bias(const void *bias, int m0, int64_t rows)
{
    const int row = m0 + (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
    return make_float2(row < rows ? (float)((const T *)bias)[row] : 0.0f,
                       row + 8 < rows ? (float)((const T *)bias)[row + 8] : 0.0f);
}

/* The same of a turned product: C has a tile's columns as rows. */
template <typename P> struct turned_tile {
    using T = typename P::T;
    uint32_t pairs[P::BN / 4];
    const CUtensorMap *map; /* NULL: nothing is held */
    int m, n;

    __device__ __forceinline__ void hold(const CUtensorMap *to, int m0, int n0)
    {
        ptx::keep(pairs);
        map = to;
        m = m0;
        n = n0;
    }

    __device__ __forceinline__ void round(const float (&acc)[P::BN / 2])
    {
#pragma unroll
        for (int i = 0; i < P::BN / 4; i++)
            pairs[i] = ptx::pack(acc[2 * i], acc[2 * i + 1], T());
    }

    __device__ __forceinline__ void round_relu(const float (&acc)[P::BN / 2], float2 bias)
    {
#pragma unroll
        for (int i = 0; i < P::BN / 4; i++) {
            const float b = i % 2 ? bias.y : bias.x;
            pairs[i] = ptx::pack_relu(acc[2 * i] + b, acc[2 * i + 1] + b, T());
        }
    }

    /* Writes piece q of the columns to its panel. */
    __device__ __forceinline__ void fill(int q, uint32_t panel) const
    {
        const int lane = threadIdx.x % 32;
        const int row = lane / 16 * 8 + lane % 8, chunk = threadIdx.x / 32 % 4 * 2 + lane / 8 % 2;

#pragma unroll
        for (int t = 0; t < P::PIECE / 16; t++) {
            const uint32_t *const r = pairs + q * (P::PIECE / 4) + t * 4;
            ptx::stmatrix_x4_trans(panel + (t * 16 + row) * PANEL_ROW_BYTES +
                                       (chunk ^ (row & 7)) * 16,
                                   r[0], r[1], r[2], r[3]);
        }
    }

    /* Stores that piece, if there is something to store. */
    __device__ __forceinline__ void store(int q, uint32_t staging) const
    {
        const uint32_t panel = staging + q % 2 * P::STAGING_PANEL;

        if (map == NULL)
            return;
        staging_acquire();
        fill(q, panel);
        staging_store(map, panel, m, n + q * P::PIECE);
    }
};

/* Stores a consumer's 64 rows of floats at (m0, n0), 32 columns at a time. */
template <int BN>
__device__ __forceinline__ void store_floats(const float (&acc)[BN / 2], uint32_t staging,
                                             const CUtensorMap *map, int m0, int n0)
{
    const int lane = threadIdx.x % 32, pair = lane % 4;
    const int row = threadIdx.x / 32 % 4 * 16 + lane / 4;

#pragma unroll
    for (int q = 0; q < BN / 32; q++) {
        const uint32_t panel = staging + q % 2 * STAGING_PANEL;
        staging_acquire();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int line = row + i % 2 * 8, chunk = (i / 2 * 2 + pair / 2) ^ (row & 7);
            const float *const r = acc + q * 16 + i * 2;
            ptx::store_shared_8(panel + line * PANEL_ROW_BYTES + chunk * 16 + pair % 2 * 8, r[0],
                                r[1]);
        }
        staging_store(map, panel, n0 + q * 32, m0);
    }
}

template <typename T, int BN>
__device__ __forceinline__ void add_bias(float (&acc)[BN / 2], const tile_bias<T, BN> &bias)
{
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        const float2 b = bias.at(j);
        acc[4 * j] += b.x;
        acc[4 * j + 1] += b.y;
        acc[4 * j + 2] += b.x;
        acc[4 * j + 3] += b.y;
    }
}

template <typename T, int BN>
__device__ __forceinline__ void add_bias_relu(float (&acc)[BN / 2], const tile_bias<T, BN> &bias)
{
    add_bias(acc, bias);
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        acc[i] = acc[i] < 0.0f ? 0.0f : acc[i];
}

/* ---- a block's ring ---- */

/* Shared memory: stages, staging of each consumer, its bias, barriers. */
template <typename P, bool BIAS_RELU> struct shared_plan {
    static constexpr int STAGING = P::STAGES * P::STAGE_BYTES;
    static constexpr int EACH = 2 * P::STAGING_PANEL;
    static constexpr int BIAS = STAGING + CONSUMERS * EACH;
    static constexpr int BIAS_BYTES =
        BIAS_RELU && !P::TURNED ? P::BN * (int)sizeof(typename P::T) : 0;
    static constexpr int BARRIERS = BIAS + CONSUMERS * BIAS_BYTES;
    static constexpr int BYTES = BARRIERS + ring<P::STAGES>::BYTES;
    static_assert(BYTES <= (P::RESIDENT == 2 ? 113 : 227) * 1024, "what a multiprocessor has");
    static_assert(!P::TURNED || P::BM * P::BN * 4 <= STAGING, "the sums of a share of k");
};

/* By all threads: initialises the ring; afterwards it may be used in the whole cluster. */
template <typename P> __device__ __forceinline__ void open_ring(const ring<P::STAGES> &stages)
{
    if (threadIdx.x == 0) {
        stages.init(CONSUMERS * P::CLUSTER);
        ptx::fence_mbarrier_init();
    }
    if constexpr (P::CLUSTER == 1) {
        __syncthreads();
    } else {
        ptx::cluster_arrive_relaxed();
        ptx::cluster_wait();
    }
}

/* By the producer, at its end: a block must not end while the other of its cluster still arrives
 * at its barriers. */
template <typename P>
__device__ __forceinline__ void close_ring(const ring<P::STAGES> &stages, ring_place<P::STAGES> at)
{
    for (int i = 0; i < P::STAGES; i++) {
        stages.wait_empty(at);
        at.next();
    }
}

/* By the producer: all blocks of the tile at (m0, n0). */
template <typename P>
__device__ __forceinline__ void load_tile(const ring<P::STAGES> &stages, ring_place<P::STAGES> &at,
                                          uint32_t shared, const CUtensorMap *map_a,
                                          const CUtensorMap *map_b, int m0, int n0, int blocks_k,
                                          int rank, int first_k = 0)
{
    for (int k = first_k; k < first_k + blocks_k; k++) {
        stages.wait_empty(at);
        load_a<P>(stages, at, shared, map_a, m0, k);
        load_b<P>(stages, at, shared, map_b, n0, k, rank);
        at.next();
    }
}

/* By a consumer: acc = its rows of a tile, while the tile before leaves. Of the last block only so
 * many steps are multiplied. */
template <typename Q, typename P, typename Held>
__device__ __forceinline__ void multiply_tile(consumer<P> &me, float (&acc)[P::BN / 2],
                                              const Held &held, uint32_t staging, int blocks_k,
                                              int last_steps = STEPS)
{
#pragma unroll
    for (int q = 0; q < P::PIECES; q++) {
        if (q < blocks_k)
            me.template multiply<Q>(acc, q == 0);
        if constexpr (sizeof(typename P::T) == 2)
            held.store(q, staging);
    }
#pragma unroll 1
    for (int k = P::PIECES; k < blocks_k - 1; k++)
        me.template multiply<Q>(acc, false);
    if (P::PIECES < blocks_k)
        me.template multiply_last<Q>(acc, last_steps);
    me.finish(acc);
}

/* ---- maps ---- */

/* The map of a row-major matrix in boxes of rows x columns. */
static inline enum kg_status encode(CUtensorMap *map, uint32_t dtype,
                                    const struct gemm_matrix &matrix, int64_t rows, int64_t columns,
                                    int box_rows, int box_columns, int tf32)
{
    const struct tensor_map_shape shape = {
        2, {columns, rows}, {1, matrix.leading}, {box_columns, box_rows}, tf32};
    return tensor_map_encode(map, dtype, matrix.data, &shape);
}

template <typename P>
static enum kg_status encode_a(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &a,
                               int64_t m, int64_t k)
{
    return P::A_K ? encode(map, dtype, a, m, k, P::BM, P::BK, dtype == KG_F32)
                  : encode(map, dtype, a, k, m, P::BK, 64, 0);
}

template <typename P>
static enum kg_status encode_b(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &b,
                               int64_t n, int64_t k)
{
    return P::B_K ? encode(map, dtype, b, n, k, P::B_SHARE, P::BK, dtype == KG_F32)
                  : encode(map, dtype, b, k, n, P::BK, 64, 0);
}

template <typename P>
static enum kg_status encode_c(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &c,
                               int64_t m, int64_t n)
{
    constexpr int LINE = PANEL_ROW_BYTES / (int)sizeof(typename P::T);
    return P::TURNED ? encode(map, dtype, c, n, m, P::PIECE, LINE, 0)
                     : encode(map, dtype, c, m, n, 64, LINE, 0);
}

/*
 * The tiles of two products in one list, for a persistent kernel.
 *
 * The product with the longer tiles comes first, and each round of tiles goes the other way round,
 * so that a cluster that had a long one gets a short one next, or none.
 */

/* tiles_m: of a cluster's height. */
struct tile_list {
    int32_t tiles_m, tiles_n, blocks_k;
};

struct tile_lists {
    struct tile_list of[2];
    int32_t first; /* which of the two */
};

struct listed_tile {
    bool any;
    int which, m, n;
};

template <int GROUP>
__device__ __forceinline__ listed_tile tile_of(const tile_lists &lists, int round, int cluster,
                                               int clusters)
{
    const tile_list &first = lists.of[lists.first], &second = lists.of[1 - lists.first];
    const int tiles_first = first.tiles_m * first.tiles_n;
    int t = round * clusters + (round % 2 ? clusters - 1 - cluster : cluster);
    if (t >= tiles_first + second.tiles_m * second.tiles_n)
        return {false, 0, 0, 0};
    const bool in_first = t < tiles_first;
    t -= in_first ? 0 : tiles_first;
    const tile_place at = grouped<GROUP>(t, in_first ? first.tiles_m : second.tiles_m,
                                         in_first ? first.tiles_n : second.tiles_n);
    return {true, in_first ? lists.first : 1 - lists.first, at.m, at.n};
}

template <typename P> static struct tile_list list_of(int64_t m, int64_t n, int64_t k)
{
    return {(int32_t)gemm_blocks(m, P::BM * P::CLUSTER), (int32_t)gemm_blocks(n, P::BN),
            (int32_t)gemm_blocks(k, P::BK)};
}

/* Clocks of the busiest cluster, nearly: its share of all, or the longest tile. */
template <typename P> static int64_t clocks_of(const struct tile_lists &lists, int64_t clusters)
{
    int64_t all = 0, longest = 0;
    for (int i = 0; i < 2; i++) {
        const struct tile_list &list = lists.of[i];
        const int64_t tiles = (int64_t)list.tiles_m * list.tiles_n;
        const int64_t tile = gemm_sm90_tile_clocks(P::BN, list.blocks_k);
        all += tiles * tile;
        longest = tiles > 0 && tile > longest ? tile : longest;
    }
    const int64_t share = gemm_blocks(all, clusters);
    return share > longest ? share : longest;
}

/* Of many tiles no more clusters than the number of rounds takes; of few, the lengths differ. */
static inline int64_t clusters_for(const struct tile_lists &lists, int64_t most)
{
    const int64_t tiles = (int64_t)lists.of[0].tiles_m * lists.of[0].tiles_n +
                          (int64_t)lists.of[1].tiles_m * lists.of[1].tiles_n;
    const int64_t rounds = gemm_blocks(tiles, most);
    return rounds > 4 ? gemm_blocks(tiles, rounds) : tiles < most ? tiles : most;
}

/* The last step of column sums, by warps that have nothing else to do: to[n] = sum of sums[row][n]
 * over all rows, 32 columns for a warp, which is number `warp` of `warps`. The order of the
 * additions is fixed. */
template <typename T>
__device__ __forceinline__ void sum_columns(T *to, const float *sums, int rows, int columns,
                                            int warp, int warps)
{
    for (int64_t n = warp * 32 + (int)threadIdx.x % 32; n < columns; n += warps * 32) {
        float total = 0.0f;
#pragma unroll 4
        for (int row = 0; row < rows; row++)
            total += sums[row * (int64_t)columns + n];
        to[n] = T(total);
    }
}

} // namespace gemm_sm90

#endif
