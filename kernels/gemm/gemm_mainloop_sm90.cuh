/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_mainloop_sm90.cuh: a tile of A B by wgmma, operands through a ring of TMA stages (sm_90a).
 *
 * A block is three warpgroups: one thread of the first loads, the other two multiply 64 of the
 * tile's 128 rows each. Both blocks of a cluster have the same columns of B: each loads half of
 * them and sends it to both, which takes a third of the bytes from L2.
 *
 * The tile of a turned product is that of C transposed, which the epilogue turns back: the operand
 * with few rows is B. Its blocks share nothing: what multicast saves, no multiprocessor lacks.
 *
 * An operand is K-major (A[M,K], B[N,K] row-major) or MN-major (A[K,M], B[K,N] row-major; 16-bit
 * types only). A stage holds 128 bytes of k: 64 halves or 32 floats. What lies outside of a matrix
 * arrives as zeros.
 */
#ifndef KG_GEMM_MAINLOOP_SM90_CUH
#define KG_GEMM_MAINLOOP_SM90_CUH

#include "kernels/cuda/wgmma_sm90.cuh"

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
    static_assert(!TURNED || (sizeof(T) == 2 && B_K && CLUSTER == 1), "what is turned");
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

    if constexpr (P::TURNED) {
        ptx::tma_load(b, map, full, k * P::BK, n0);
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
        if constexpr (P::TURNED) {
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

} // namespace gemm_sm90

#endif
