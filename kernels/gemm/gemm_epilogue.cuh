/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_epilogue.cuh: from the accumulators of a tile to C, with or without bias and ReLU.
 *
 * The mma layout gives a lane two neighbouring columns of a row. As floats four lanes fill a
 * 32-byte sector and go straight to memory. As halves they would fill half of one, so each warp
 * turns 16 rows at a time through shared memory of its own and stores 16 bytes a lane.
 */
#ifndef KG_GEMM_EPILOGUE_CUH
#define KG_GEMM_EPILOGUE_CUH

#include "kernels/gemm/gemm_check.h"
#include "kernels/gemm/gemm_mainloop.cuh"

namespace gemm
{

/* Where the result goes. bias has n elements and is read only with BIAS_RELU. */
struct result {
    void *data;
    const void *bias;
    int64_t leading;
    int m, n;
};

static inline result result_of(const struct gemm_call &call)
{
    return {call.c.data, call.bias, call.c.leading, (int)call.m, (int)call.n};
}

/* NaN stays NaN, as in PyTorch; fmaxf would hide it. */
static __device__ __forceinline__ float relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

/* acc = relu(acc + bias); `column` is that of this lane's first element. */
template <typename T, typename Tile>
__device__ __forceinline__ void add_bias_relu(float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                              const T *bias, int column, int n)
{
#pragma unroll
    for (int j = 0; j < Tile::MMA_N; j++) {
        const int at = column + j * 8;
        const float bias0 = at < n ? (float)bias[at] : 0.0f;
        const float bias1 = at + 1 < n ? (float)bias[at + 1] : 0.0f;
#pragma unroll
        for (int i = 0; i < Tile::MMA_M; i++) {
            acc[i][j][0] = relu(acc[i][j][0] + bias0);
            acc[i][j][1] = relu(acc[i][j][1] + bias1);
            acc[i][j][2] = relu(acc[i][j][2] + bias0);
            acc[i][j][3] = relu(acc[i][j][3] + bias1);
        }
    }
}

/* Stores RUN neighbours of a line, of which `left` lie inside the matrix. */
template <int RUN>
__device__ __forceinline__ void store_run(float *to, const float (&run)[RUN], int left, bool vector)
{
    if (left >= RUN && vector) {
        if constexpr (RUN == 4)
            *(float4 *)to = make_float4(run[0], run[1], run[2], run[3]);
        else
            *(float2 *)to = make_float2(run[0], run[1]);
        return;
    }
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (i < left)
            to[i] = run[i];
}

/* `vector`: base and leading dimension of C are multiples of 16 bytes. (m0, n0): the warp tile's
 * corner. */
template <typename Tile, bool SPREAD_M, bool SPREAD_N>
__device__ __forceinline__ void store_floats(const float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                             const result &c, bool vector, int m0, int n0)
{
    const int lane = (int)threadIdx.x % LANES, g = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Tile::MMA_M; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int m = m0 + row_of<SPREAD_M>(i, half, lane / 4);
            if (m >= c.m)
                continue;
            float *const line = (float *)c.data + m * c.leading;
            const int v = half * 2;
#pragma unroll
            for (int j = 0; j < Tile::MMA_N; j += SPREAD_N ? 4 : 1) {
                const int n = n0 + column_of<SPREAD_N>(j, g);
                if constexpr (SPREAD_N) {
                    const float even[4] = {acc[i][j][v], acc[i][j + 1][v], acc[i][j + 2][v],
                                           acc[i][j + 3][v]};
                    const float odd[4] = {acc[i][j][v + 1], acc[i][j + 1][v + 1],
                                          acc[i][j + 2][v + 1], acc[i][j + 3][v + 1]};
                    store_run(line + n, even, c.n - n, vector);
                    store_run(line + n + 4, odd, c.n - n - 4, vector);
                } else {
                    const float run[2] = {acc[i][j][v], acc[i][j][v + 1]};
                    store_run(line + n, run, c.n - n, vector);
                }
            }
        }
    }
}

/* `scratch`: this warp's 16 lines of WN halves. (m0, n0): the warp tile's corner. */
template <typename T, typename Tile>
__device__ __forceinline__ void store_halves(const float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                             const result &c, bool vector, int m0, int n0,
                                             unsigned char *scratch)
{
    constexpr int LINE_CHUNKS = Tile::WN / CHUNK<T>;
    constexpr int LINES_AT_ONCE = LANES / LINE_CHUNKS;
    static_assert(LINE_CHUNKS == 4 || LINE_CHUNKS == 8, "the swizzle is made for 64 or 128 bytes");
    const int lane = (int)threadIdx.x % LANES;
    const auto offset = [](int line, int chunk) {
        const int phase = LINE_CHUNKS == 8 ? line % 8 : line / 2 % 4;
        return (line * LINE_CHUNKS + (chunk ^ phase)) * CHUNK_BYTES;
    };

#pragma unroll
    for (int i = 0; i < Tile::MMA_M; i++) {
        const int line = lane / 4, byte = lane % 4 * 4;
#pragma unroll
        for (int j = 0; j < Tile::MMA_N; j++) {
            *(uint32_t *)(scratch + offset(line, j) + byte) =
                ptx::pack(acc[i][j][0], acc[i][j][1], T());
            *(uint32_t *)(scratch + offset(line + 8, j) + byte) =
                ptx::pack(acc[i][j][2], acc[i][j][3], T());
        }
        __syncwarp();
#pragma unroll
        for (int first = 0; first < 16; first += LINES_AT_ONCE) {
            const int from = first + lane / LINE_CHUNKS, chunk = lane % LINE_CHUNKS;
            const T *const values = (const T *)(scratch + offset(from, chunk));
            const int m = m0 + i * 16 + from, n = n0 + chunk * CHUNK<T>;
            T *const to = (T *)c.data + m * c.leading + n;
            if (m < c.m && n + CHUNK<T> <= c.n && vector) {
                *(uint4 *)to = *(const uint4 *)values;
            } else if (m < c.m) {
                for (int v = 0; v < CHUNK<T> && n + v < c.n; v++)
                    to[v] = values[v];
            }
        }
        __syncwarp();
    }
}

/* Stores the tile with corner (m0, n0). `shared` is Tile::SHARED_BYTES that nobody uses. */
template <typename T, typename Tile, bool A_K, bool B_K, bool BIAS_RELU>
__device__ __forceinline__ void store_tile(float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                           const result &c, bool vector, int m0, int n0,
                                           unsigned char *shared)
{
    constexpr int SCRATCH_BYTES = 16 * Tile::WN * (int)sizeof(T);
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int m = m0 + warp / Tile::WARPS_N * Tile::WM, n = n0 + warp % Tile::WARPS_N * Tile::WN;

    if constexpr (BIAS_RELU) {
        static_assert(!SPREAD<T, B_K>, "the bias is added to columns in their plain order");
        add_bias_relu<T, Tile>(acc, (const T *)c.bias, n + lane % 4 * 2, c.n);
    }
    if constexpr (sizeof(T) == 4) {
        store_floats<Tile, SPREAD<T, A_K>, SPREAD<T, B_K>>(acc, c, vector, m, n);
    } else {
        static_assert(Tile::WARPS * SCRATCH_BYTES <= Tile::SHARED_BYTES, "scratch does not fit");
        store_halves<T, Tile>(acc, c, vector, m, n, shared + warp * SCRATCH_BYTES);
    }
}

} // namespace gemm

#endif
