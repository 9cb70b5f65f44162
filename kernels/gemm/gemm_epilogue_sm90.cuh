/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_epilogue_sm90.cuh: from the accumulators of a tile to C, with or without bias and ReLU
 * (sm_90a).
 *
 * Halves: a tile is rounded into registers at once, which frees the accumulators for the next tile;
 * it leaves them 64 columns at a time (stmatrix, TMA store) while the tensor cores work on that.
 * Floats have no room for this and leave before the next tile begins.
 */
#ifndef KG_GEMM_EPILOGUE_SM90_CUH
#define KG_GEMM_EPILOGUE_SM90_CUH

#include "kernels/gemm/gemm_mainloop_sm90.cuh"

namespace gemm_sm90
{

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

    /* Stores piece q of the columns, if there is something to store. */
    __device__ __forceinline__ void store(int q, uint32_t staging) const
    {
        const uint32_t panel = staging + q % 2 * P::STAGING_PANEL;
        const int lane = threadIdx.x % 32;
        const int row = lane / 16 * 8 + lane % 8, chunk = threadIdx.x / 32 % 4 * 2 + lane / 8 % 2;

        if (map == NULL)
            return;
        staging_acquire();
#pragma unroll
        for (int t = 0; t < P::PIECE / 16; t++) {
            const uint32_t *const r = pairs + q * (P::PIECE / 4) + t * 4;
            ptx::stmatrix_x4_trans(panel + (t * 16 + row) * PANEL_ROW_BYTES +
                                       (chunk ^ (row & 7)) * 16,
                                   r[0], r[1], r[2], r[3]);
        }
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

} // namespace gemm_sm90

#endif
