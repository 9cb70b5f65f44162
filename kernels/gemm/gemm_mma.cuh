/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_mma.cuh: the tensor-core GEMM kernel by mma.sync, its tiles, and the choice between them.
 *
 * A file that includes this instantiates the kernel for one pair of layouts and one epilogue:
 * mma_prepare<...>() and mma_launch<...>() are all it needs.
 *
 * One block computes the BM x BN tile acc = sum over k of A(m, k) B(k, n) in fp32. k is walked in
 * slabs of SLAB_BYTES (32 halves or 16 floats: two mma steps), STAGES of which are in flight.
 *
 *   global --cp.async--> slabs in shared memory --ldmatrix--> registers --mma.sync--> acc
 *
 * Either operand may be stored with k contiguous ("k-contiguous": A[M,K], B as W[N,K]) or with m
 * or n contiguous (A as G[K,M], B[K,N]). A slab of an operand is a panel: lines of 16-byte chunks,
 * in the order that global memory has. The chunk's place in its line is XORed with a function of
 * the line so that what a warp reads at once falls into different banks.
 *
 * What lies outside the matrices is filled with zeros, so any m, n, k >= 1 is right. The copies
 * past the last slab are zero fills too: a loop without branches schedules better, and costs
 * STAGES - 1 stores to shared memory that nobody reads.
 */
#ifndef KG_GEMM_MMA_CUH
#define KG_GEMM_MMA_CUH

#include "kernels/gemm/gemm_common.cuh"

namespace gemm
{

constexpr int SLAB_BYTES = 64;
constexpr int CHUNK_BYTES = 16;

/* Elements of k in a slab, and elements in a chunk. */
template <typename T> constexpr int SLAB = SLAB_BYTES / (int)sizeof(T);
template <typename T> constexpr int CHUNK = CHUNK_BYTES / (int)sizeof(T);

/* A block's tile BM x BN, cut into warp tiles WM x WN. BLOCKS: blocks an SM shall hold. */
template <int BM_, int BN_, int WM_, int WN_, int STAGES_, int BLOCKS_> struct tile {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int WARPS = BM / WM * WARPS_N;
    static constexpr int THREADS = WARPS * LANES;
    static constexpr int MMA_M = WM / 16; /* mma tiles of a warp along m */
    static constexpr int MMA_N = WN / 8;  /* and along n */
    static constexpr int STAGE_BYTES = (BM + BN) * SLAB_BYTES;
    static constexpr int SHARED_BYTES = STAGES * STAGE_BYTES;
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 32 == 0 && WN % 32 == 0, "ragged warp tile");
};

/* The place in shared memory of an operand's slab with EXTENT rows of A or columns of B. */
template <typename T, int EXTENT, bool K_CONTIGUOUS_> struct panel {
    static constexpr bool K_CONTIGUOUS = K_CONTIGUOUS_;
    static constexpr int LINES = K_CONTIGUOUS ? EXTENT : SLAB<T>;
    static constexpr int LINE_CHUNKS = K_CONTIGUOUS ? SLAB_BYTES / CHUNK_BYTES : EXTENT / CHUNK<T>;
    static_assert(K_CONTIGUOUS || LINE_CHUNKS >= 8, "the swizzle needs eight chunks to permute");

    /* Byte offset of a chunk. Three swizzles, one for each pattern that is read:
     *   64-byte lines: two lines span the banks, so every second line changes the order;
     *   long lines of halves: eight consecutive lines are read at one chunk (ldmatrix.trans);
     *   long lines of floats: four consecutive lines are read at two chunks (load_spread). */
    static __device__ __forceinline__ int offset(int line, int chunk)
    {
        const int phase = K_CONTIGUOUS ? line / 2 % 4 : sizeof(T) == 2 ? line % 8 : line % 4 * 2;
        return (line * LINE_CHUNKS + (chunk ^ phase)) * CHUNK_BYTES;
    }
};

/*
 * One thread's share in copying an operand's slabs. VECTOR: the operand's base and leading
 * dimension are multiples of 16 bytes, so chunks go by cp.async; otherwise element by element
 * through registers, which is right for any alignment and slow.
 */
template <typename T, int EXTENT, bool K_CONTIGUOUS, int THREADS, bool VECTOR> struct panel_loader {
    using layout = panel<T, EXTENT, K_CONTIGUOUS>;
    static constexpr int LINE_STEP = THREADS / layout::LINE_CHUNKS;
    static constexpr int COUNT = layout::LINES / LINE_STEP;
    static_assert(THREADS % layout::LINE_CHUNKS == 0 && layout::LINES % LINE_STEP == 0,
                  "ragged copy");

    const T *tensor; /* where a copy of zero bytes points: always readable */
    const T *source; /* this thread's first chunk of the next slab */
    int64_t line_stride;
    int line, column; /* of that chunk, within the panel */
    int extent_left;  /* rows or columns of the matrix from the tile's origin on */

    __device__ __forceinline__ panel_loader(const void *base, int64_t leading, int origin,
                                            int extent)
    {
        line = (int)threadIdx.x / layout::LINE_CHUNKS;
        column = (int)threadIdx.x % layout::LINE_CHUNKS * CHUNK<T>;
        tensor = (const T *)base;
        source = tensor + (K_CONTIGUOUS ? origin * leading : origin) + line * leading + column;
        line_stride = LINE_STEP * leading;
        extent_left = extent - origin;
    }

    static __device__ __forceinline__ void copy(unsigned char *shared, const T *from, int elements)
    {
        if constexpr (VECTOR) {
            ptx::cp_async_16_partial(ptx::shared_address(shared), from, elements * (int)sizeof(T));
        } else {
            alignas(CHUNK_BYTES) T chunk[CHUNK<T>];
#pragma unroll
            for (int i = 0; i < CHUNK<T>; i++)
                chunk[i] = i < elements ? from[i] : T(0.0f);
            *(uint4 *)shared = *(const uint4 *)chunk;
        }
    }

    /* k_left: from this slab on; 0 and less for slabs past the end. */
    __device__ __forceinline__ void load_next(unsigned char *shared, int k_left)
    {
        const int lines = K_CONTIGUOUS ? extent_left : k_left;
        const int columns = K_CONTIGUOUS ? k_left : extent_left;
        const int in_line = min(max(columns - column, 0), CHUNK<T>);
        const T *from = source;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int at = line + i * LINE_STEP;
            const int elements = at < lines ? in_line : 0;
            copy(shared + layout::offset(at, column / CHUNK<T>), elements > 0 ? from : tensor,
                 elements);
            from += line_stride;
        }
        source = K_CONTIGUOUS ? source + SLAB<T> : from; /* the lines of a slab end at the next */
    }
};

/* A warp's operands of one mma step. b[p] holds the B fragments of n tiles 2p and 2p + 1. */
template <typename Tile> struct fragments {
    uint32_t a[Tile::MMA_M][4];
    uint32_t b[Tile::MMA_N / 2][4];
};

/*
 * Floats with m (or n) contiguous: ldmatrix can not transpose them, so a lane reads four neighbours
 * of a line at once and gives one each to four mma tiles. Which rows of C an mma tile covers is
 * ours to choose: with SPREAD, index g of the 8 rows of tile half s (s = 0..3 in a group of 32) is
 * row 4 g + s of the group. row_of and column_of below are the map back.
 */
template <typename T, bool K_CONTIGUOUS> constexpr bool SPREAD = sizeof(T) == 4 && !K_CONTIGUOUS;

template <bool SPREAD_M> __device__ __forceinline__ int row_of(int tile, int half, int g)
{
    return SPREAD_M ? tile / 2 * 32 + g * 4 + tile % 2 * 2 + half : tile * 16 + half * 8 + g;
}

template <bool SPREAD_N> __device__ __forceinline__ int column_of(int tile, int g)
{
    return SPREAD_N ? tile / 4 * 32 + g * 4 + tile % 4 : tile * 8 + g;
}

/* Four floats each of line k and line k + 4, for the group of 32 at `origin`. */
template <typename Panel>
__device__ __forceinline__ void load_spread(uint4 &low, uint4 &high, const unsigned char *panel,
                                            int origin, int step)
{
    const int lane = (int)threadIdx.x % LANES;
    const int k = step * 8 + lane % 4, chunk = origin / 4 + lane / 4;
    low = *(const uint4 *)(panel + Panel::offset(k, chunk));
    high = *(const uint4 *)(panel + Panel::offset(k + 4, chunk));
}

template <typename T, typename Panel, int COUNT>
__device__ __forceinline__ void load_a(uint32_t (&a)[COUNT][4], const unsigned char *panel,
                                       int origin, int step)
{
    const int lane = (int)threadIdx.x % LANES;
    if constexpr (SPREAD<T, Panel::K_CONTIGUOUS>) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            uint4 low, high;
            load_spread<Panel>(low, high, panel, origin + i * 16, step);
            a[i][0] = low.x, a[i][1] = low.y, a[i + 1][0] = low.z, a[i + 1][1] = low.w;
            a[i][2] = high.x, a[i][3] = high.y, a[i + 1][2] = high.z, a[i + 1][3] = high.w;
        }
    } else if constexpr (Panel::K_CONTIGUOUS) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int m = origin + i * 16 + lane % 16;
            const int offset = Panel::offset(m, step * 2 + lane / 16);
            ptx::ldmatrix_x4(a[i], ptx::shared_address(panel + offset));
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int k = step * 16 + lane % 8 + lane / 16 * 8;
            const int offset = Panel::offset(k, origin / 8 + i * 2 + lane / 8 % 2);
            ptx::ldmatrix_x4_trans(a[i], ptx::shared_address(panel + offset));
        }
    }
}

template <typename T, typename Panel, int COUNT>
__device__ __forceinline__ void load_b(uint32_t (&b)[COUNT][4], const unsigned char *panel,
                                       int origin, int step)
{
    const int lane = (int)threadIdx.x % LANES;
    if constexpr (SPREAD<T, Panel::K_CONTIGUOUS>) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            uint4 low, high;
            load_spread<Panel>(low, high, panel, origin + i * 16, step);
            b[i][0] = low.x, b[i][2] = low.y, b[i + 1][0] = low.z, b[i + 1][2] = low.w;
            b[i][1] = high.x, b[i][3] = high.y, b[i + 1][1] = high.z, b[i + 1][3] = high.w;
        }
    } else if constexpr (Panel::K_CONTIGUOUS) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int n = origin + i * 16 + lane % 8 + lane / 16 * 8;
            const int offset = Panel::offset(n, step * 2 + lane / 8 % 2);
            ptx::ldmatrix_x4(b[i], ptx::shared_address(panel + offset));
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int k = step * 16 + lane % 16;
            const int offset = Panel::offset(k, origin / 8 + i * 2 + lane / 16);
            ptx::ldmatrix_x4_trans(b[i], ptx::shared_address(panel + offset));
        }
    }
}

template <int COUNT> __device__ __forceinline__ void round_to_tf32(uint32_t (&r)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            r[i][j] = ptx::to_tf32(__uint_as_float(r[i][j]));
}

/* acc += A B for one mma step. */
template <typename T, typename Tile>
__device__ __forceinline__ void multiply(float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                         fragments<Tile> &f)
{
    if constexpr (sizeof(T) == 4) {
        round_to_tf32(f.a);
        round_to_tf32(f.b);
    }
#pragma unroll
    for (int i = 0; i < Tile::MMA_M; i++) {
#pragma unroll
        for (int j = 0; j < Tile::MMA_N; j++) {
            const uint32_t b0 = f.b[j / 2][j % 2 * 2], b1 = f.b[j / 2][j % 2 * 2 + 1];
            if constexpr (sizeof(T) == 4)
                ptx::mma_m16n8k8_tf32(acc[i][j], f.a[i], b0, b1);
            else
                ptx::mma_m16n8k16(acc[i][j], f.a[i], b0, b1, T());
        }
    }
}

/*
 * Computes this block's tile, whose corner is (m0, n0), of an m x n x k product. `ring` is
 * Tile::SHARED_BYTES of shared memory; on return no copy into it is in flight and no thread reads
 * it any more.
 */
template <typename T, typename Tile, bool A_K, bool B_K, bool VECTOR>
__device__ __forceinline__ void mainloop(float (&acc)[Tile::MMA_M][Tile::MMA_N][4],
                                         const operand &a, const operand &b, int m0, int n0, int m,
                                         int n, int k, unsigned char *ring)
{
    using a_panel = panel<T, Tile::BM, A_K>;
    using b_panel = panel<T, Tile::BN, B_K>;
    constexpr int A_BYTES = Tile::BM * SLAB_BYTES;

    panel_loader<T, Tile::BM, A_K, Tile::THREADS, VECTOR> a_loader(a.data, a.leading, m0, m);
    panel_loader<T, Tile::BN, B_K, Tile::THREADS, VECTOR> b_loader(b.data, b.leading, n0, n);
    const int warp = (int)threadIdx.x / LANES;
    const int warp_m = warp / Tile::WARPS_N * Tile::WM, warp_n = warp % Tile::WARPS_N * Tile::WN;

#pragma unroll
    for (int i = 0; i < Tile::MMA_M; i++)
#pragma unroll
        for (int j = 0; j < Tile::MMA_N; j++)
#pragma unroll
            for (int v = 0; v < 4; v++)
                acc[i][j][v] = 0.0f;

#pragma unroll
    for (int stage = 0; stage < Tile::STAGES - 1; stage++) {
        unsigned char *const slab = ring + stage * Tile::STAGE_BYTES;
        a_loader.load_next(slab, k - stage * SLAB<T>);
        b_loader.load_next(slab + A_BYTES, k - stage * SLAB<T>);
        ptx::cp_async_commit();
    }
    ptx::cp_async_wait<Tile::STAGES - 2>();
    __syncthreads();

    /* Fragments are loaded one mma step ahead, also across the border of two slabs. */
    fragments<Tile> even, odd;
    load_a<T, a_panel>(even.a, ring, warp_m, 0);
    load_b<T, b_panel>(even.b, ring + A_BYTES, warp_n, 0);

    int read = 0, write = Tile::SHARED_BYTES - Tile::STAGE_BYTES; /* offsets in the ring */
#pragma unroll 1
    for (int k_left = k; k_left > 0; k_left -= SLAB<T>) {
        /* The stage written here was last read before the barrier of the round before. */
        a_loader.load_next(ring + write, k_left - (Tile::STAGES - 1) * SLAB<T>);
        b_loader.load_next(ring + write + A_BYTES, k_left - (Tile::STAGES - 1) * SLAB<T>);
        ptx::cp_async_commit();
        load_a<T, a_panel>(odd.a, ring + read, warp_m, 1);
        load_b<T, b_panel>(odd.b, ring + read + A_BYTES, warp_n, 1);
        multiply<T, Tile>(acc, even);

        write = read;
        read = read + Tile::STAGE_BYTES == Tile::SHARED_BYTES ? 0 : read + Tile::STAGE_BYTES;
        ptx::cp_async_wait<Tile::STAGES - 2>();
        __syncthreads();
        load_a<T, a_panel>(even.a, ring + read, warp_m, 0);
        load_b<T, b_panel>(even.b, ring + read + A_BYTES, warp_n, 0);
        multiply<T, Tile>(acc, odd);
    }
    ptx::cp_async_wait<0>();
    __syncthreads();
}

/*
 * From the accumulators of a tile to C, with or without bias and ReLU.
 *
 * The mma layout gives a lane two neighbouring columns of a row. As floats four lanes fill a
 * 32-byte sector and go straight to memory. As halves they would fill half of one, so each warp
 * turns 16 rows at a time through shared memory of its own and stores 16 bytes a lane.
 */

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

/*
 * The tiles. Traffic from shared memory per FMA falls with the warp tile, from L2 with the block
 * tile; a small tile fills the SMs when the problem is small. All fit the 99 KB that a block may
 * have on sm_86 and sm_89; only `large` needs more than the 48 KB that come without asking.
 *
 *                   BM   BN   WM  WN  stages  blocks an SM    shared memory
 */
using large = tile<128, 256, 64, 64, 4, 1>; /* 96 KB, 8 warps */
using medium = tile<64, 128, 32, 64, 4, 3>; /* 48 KB, 4 warps */
using small = tile<64, 64, 32, 32, 4, 4>;   /* 32 KB, 4 warps */

struct mma_arguments {
    operand a, b;
    result c;
    int k;
    int tiles_m, tiles_n;
    int vector; /* base and leading dimension of C are multiples of 16 bytes */
};

template <typename T, typename Tile, bool A_K, bool B_K, bool VECTOR, bool BIAS_RELU>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    mma_kernel(const __grid_constant__ mma_arguments p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int GROUP = 2048 / Tile::BM; /* a wave is then about 2048 x 2048 on a large GPU */
    const tile_place at = grouped<GROUP>((int)blockIdx.x, p.tiles_m, p.tiles_n);
    const int m0 = at.m * Tile::BM, n0 = at.n * Tile::BN;

    float acc[Tile::MMA_M][Tile::MMA_N][4];
    mainloop<T, Tile, A_K, B_K, VECTOR>(acc, of_batch<const T>(p.a), of_batch<const T>(p.b), m0, n0,
                                        p.c.m, p.c.n, p.k, shared);
    store_tile<T, Tile, A_K, B_K, BIAS_RELU>(acc, of_batch<T>(p.c), p.vector != 0, m0, n0, shared);
}

template <typename T, typename Tile, bool A_K, bool B_K, bool VECTOR, bool BIAS_RELU>
static enum kg_status launch_tile(const struct gemm_call &call)
{
    const int64_t tiles = tiles_of<Tile>(call);
    if (tiles > INT32_MAX)
        return KG_UNSUPPORTED;
    mma_arguments p;
    p.a = operand_of(call.a);
    p.b = operand_of(call.b);
    p.c = result_of(call);
    p.vector = gemm_aligned(&call.c, call.dtype) != 0;
    p.k = (int)call.k;
    p.tiles_m = (int)gemm_blocks(call.m, Tile::BM);
    p.tiles_n = (int)gemm_blocks(call.n, Tile::BN);
    return launch_kernel(mma_kernel<T, Tile, A_K, B_K, VECTOR, BIAS_RELU>, grid_of(call, tiles),
                         dim3(Tile::THREADS), Tile::SHARED_BYTES, call.stream, p);
}

template <typename T, bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status launch_dtype(const struct gemm_call &call)
{
    if (!gemm_aligned(&call.a, call.dtype) || !gemm_aligned(&call.b, call.dtype))
        return launch_tile<T, small, A_K, B_K, false, BIAS_RELU>(call);

    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t by_large = cost<large>(call, sms, 100), by_medium = cost<medium>(call, sms, 90);
    const int64_t by_small = cost<small>(call, sms, 70);
    if (by_large <= by_medium && by_large <= by_small)
        return launch_tile<T, large, A_K, B_K, true, BIAS_RELU>(call);
    if (by_medium <= by_small)
        return launch_tile<T, medium, A_K, B_K, true, BIAS_RELU>(call);
    return launch_tile<T, small, A_K, B_K, true, BIAS_RELU>(call);
}

template <bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status mma_launch(const struct gemm_call &call)
{
    switch (call.dtype) {
    case KG_F16:
        return launch_dtype<__half, A_K, B_K, BIAS_RELU>(call);
    case KG_BF16:
        return launch_dtype<__nv_bfloat16, A_K, B_K, BIAS_RELU>(call);
    case KG_F32:
        return launch_dtype<float, A_K, B_K, BIAS_RELU>(call);
    default:
        return KG_UNSUPPORTED;
    }
}

template <bool A_K, bool B_K, bool BIAS_RELU> static enum kg_status mma_prepare(void)
{
    const size_t bytes = large::SHARED_BYTES;
    enum kg_status status =
        allow_shared(mma_kernel<__half, large, A_K, B_K, true, BIAS_RELU>, bytes);
    if (status == KG_OK)
        status = allow_shared(mma_kernel<__nv_bfloat16, large, A_K, B_K, true, BIAS_RELU>, bytes);
    if (status == KG_OK)
        status = allow_shared(mma_kernel<float, large, A_K, B_K, true, BIAS_RELU>, bytes);
    return status;
}

} // namespace gemm

#endif
