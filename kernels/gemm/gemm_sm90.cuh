/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_sm90.cuh: the persistent wgmma GEMM kernel, its launch, and every tile of it that a product
 * of 16-bit elements may get; gemm_policy_sm90.h chooses (sm_90a).
 *
 * A file that includes this instantiates the kernel for types, layouts and one epilogue: run<...>()
 * and run_tile<...>() are all it needs.
 */
#ifndef KG_GEMM_SM90_CUH
#define KG_GEMM_SM90_CUH

#include "kernels/gemm/gemm_tile_sm90.cuh"

namespace gemm_sm90
{

struct arguments {
    int32_t tiles_m, tiles_n; /* tiles_m: of a cluster's height */
    int32_t blocks_k, last_steps;
    int32_t rows, columns;
    int32_t begin, end; /* of the tiles, which this launch computes */
    const void *bias;
    void *c; /* and what follows: of turned tiles alone */
    int64_t leading;
    int64_t splits; /* of k, each by other blocks of a cluster */
};

/* Eight columns a thread's quad: rounds them, turns them and writes them to C. */
template <typename P, bool BIAS_RELU>
__device__ __forceinline__ void write_turned(const arguments &p, const float4 &sum, float2 bias,
                                             int m, int n)
{
    using T = typename P::T;
    const int lane = threadIdx.x % 32;
    const int line = n + lane / 4, at = m + (int)threadIdx.x / 32 % 4 * 16 + lane % 4 * 2;
    uint32_t upper, lower;

    if constexpr (BIAS_RELU) {
        upper = ptx::pack_relu(sum.x + bias.x, sum.y + bias.x, T());
        lower = ptx::pack_relu(sum.z + bias.y, sum.w + bias.y, T());
    } else {
        upper = ptx::pack(sum.x, sum.y, T());
        lower = ptx::pack(sum.z, sum.w, T());
    }
    upper = ptx::movmatrix(upper);
    lower = ptx::movmatrix(lower);
    if (line >= p.columns)
        return;
    T *const to = (T *)p.c + line * p.leading + at;
    if (at < p.rows)
        *(uint32_t *)to = upper;
    if (at + 8 < p.rows)
        *(uint32_t *)(to + 8) = lower;
}

/*
 * By the consumers of a cluster whose blocks each have the sums of a share of k: leaves them in
 * shared memory, where the ring was, adds up a part of the tile over all shares, in their order,
 * and writes it. Twice all threads of the cluster meet.
 */
template <typename P, bool BIAS_RELU, int SPLITS>
__device__ __forceinline__ void add_shares(const arguments &p, const float (&acc)[P::BN / 2],
                                           uint32_t base, int share, int m, int n)
{
    constexpr int QUADS = P::BN / 8, ALL = CONSUMERS * WARPGROUP;
    constexpr int EACH = (QUADS + SPLITS - 1) / SPLITS; /* quads that a block adds up */
    constexpr int AT_ONCE = EACH < 8 / SPLITS ? EACH : 8 / SPLITS;
    const uint32_t mine = base + (threadIdx.x - WARPGROUP) * 16;
    const int end = min((share + 1) * EACH, QUADS);
    const float2 bias = BIAS_RELU ? turned_bias<typename P::T>(p.bias, m, p.rows) : float2{0, 0};
    uint32_t from[SPLITS];

#pragma unroll
    for (int i = 0; i < SPLITS; i++)
        from[i] = ptx::cluster_address(mine, i);
    ptx::barrier_sync(4, ALL);
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        ptx::store_shared_16(mine + q * ALL * 16, acc + 4 * q);
    ptx::cluster_arrive();
    ptx::cluster_wait();
#pragma unroll 1
    for (int q = share * EACH; q < end; q += AT_ONCE) {
        float4 part[AT_ONCE][SPLITS];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
            for (int j = 0; j < SPLITS; j++)
                part[i][j] = ptx::load_cluster_16(from[j] + min(q + i, QUADS - 1) * ALL * 16);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            float4 sum = part[i][0];
#pragma unroll
            for (int j = 1; j < SPLITS; j++) {
                sum.x += part[i][j].x;
                sum.y += part[i][j].y;
                sum.z += part[i][j].z;
                sum.w += part[i][j].w;
            }
            if (q + i < end)
                write_turned<P, BIAS_RELU>(p, sum, bias, m, n + (q + i) * 8);
        }
    }
    ptx::cluster_arrive_relaxed(); /* what was read is in registers */
    ptx::cluster_wait();
}

template <typename P, bool BIAS_RELU>
__global__ void __launch_bounds__(THREADS, P::RESIDENT)
    kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
           const __grid_constant__ CUtensorMap map_c, const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using T = typename P::T;
    using plan = shared_plan<P, BIAS_RELU>;
    constexpr bool HOLD = sizeof(T) == 2, SHARES = P::TURNED && P::CLUSTER == 1;
    constexpr int GROUP = 2048 / (P::BM * P::CLUSTER); /* a wave is then about 2048 x 2048 */
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int splits = SHARES ? (int)p.splits : 1, blocks = P::CLUSTER * splits;
    const int rank = (int)ptx::cluster_rank(); /* the share of k, or which block of a pair */
    const int share = SHARES ? rank : 0, pair = SHARES ? 0 : rank;
    const int first_k = SHARES ? share * p.blocks_k / splits : 0;
    const int end_k = SHARES ? (share + 1) * p.blocks_k / splits : p.blocks_k;
    const int begin = p.begin + (int)blockIdx.x / blocks, step = (int)gridDim.x / blocks;

    if constexpr (P::TURNED)
        let_dependents_start();
    open_ring<P>(stages);
    if (warpgroup == 0) {
        if constexpr (P::RESIDENT == 1)
            ptx::registers_decrease<24>();
        if (threadIdx.x < 32 && ptx::elect_lane()) {
            ring_place<P::STAGES> at = {0, 0};
            for (int t = begin; t < p.end; t += step) {
                const tile_place tile = grouped<GROUP>(t, p.tiles_m, p.tiles_n);
                const int m0 = (tile.m * P::CLUSTER + pair) * P::BM, n0 = tile.n * P::BN;
                load_tile<P>(stages, at, base, &map_a, &map_b, m0, n0, end_k - first_k, pair,
                             first_k);
            }
            if constexpr (P::CLUSTER > 1)
                close_ring<P>(stages, at);
        }
        if (SHARES && splits > 1) { /* both times that the cluster meets */
            __syncwarp();
            ptx::cluster_arrive();
            ptx::cluster_wait();
            ptx::cluster_arrive();
            ptx::cluster_wait();
            wait_for_predecessor(); /* this launch must not end before it */
        }
        return;
    }

    if constexpr (P::RESIDENT == 1)
        ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    consumer<P> me(stages, base, index);
    float acc[P::BN / 2];
    std::conditional_t<P::TURNED, turned_tile<P>, held_tile<T, P::BN>> held;
    tile_bias<T, P::BN> bias;
    bias.shared = (T *)(shared + plan::BIAS + index * plan::BIAS_BYTES);
    held.map = NULL;
    for (int t = begin; t < p.end; t += step) {
        const tile_place tile = grouped<GROUP>(t, p.tiles_m, p.tiles_n);
        const int m0 = (tile.m * P::CLUSTER + pair) * P::BM + index * 64, n0 = tile.n * P::BN;
        if constexpr (BIAS_RELU && !P::TURNED)
            bias.ask(p.bias, n0, p.columns);
        multiply_tile<P>(me, acc, held, staging, end_k - first_k,
                         end_k == p.blocks_k ? p.last_steps : STEPS);
        if constexpr (P::TURNED) {
            if (SHARES && splits > 1) {
                if (splits == 2)
                    add_shares<P, BIAS_RELU, 2>(p, acc, base, share, m0, n0);
                else if (splits == 3)
                    add_shares<P, BIAS_RELU, 3>(p, acc, base, share, m0, n0);
                else if (splits == 4)
                    add_shares<P, BIAS_RELU, 4>(p, acc, base, share, m0, n0);
                else
                    add_shares<P, BIAS_RELU, 8>(p, acc, base, share, m0, n0);
                return;
            }
            if constexpr (BIAS_RELU)
                held.round_relu(acc, turned_bias<T>(p.bias, m0, p.rows));
            else
                held.round(acc);
            held.hold(&map_c, m0, n0);
        } else {
            if constexpr (BIAS_RELU)
                bias.write();
            if constexpr (!HOLD) {
                if constexpr (BIAS_RELU)
                    add_bias_relu(acc, bias);
                store_floats<P::BN>(acc, staging, &map_c, m0, n0);
            } else {
                if constexpr (BIAS_RELU)
                    held.round_relu(acc, bias);
                else
                    held.round(acc);
                held.hold(&map_c, m0, n0);
            }
        }
    }
    if constexpr (HOLD) {
#pragma unroll
        for (int q = 0; q < P::PIECES; q++)
            held.store(q, staging);
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* The maps of the three matrices. */
template <typename P>
static enum kg_status encode_all(CUtensorMap *a, CUtensorMap *b, CUtensorMap *c,
                                 const struct gemm_call &call)
{
    enum kg_status status = encode_a<P>(a, call.dtype, call.a, call.m, call.k);
    if (status == KG_OK)
        status = encode_b<P>(b, call.dtype, call.b, call.n, call.k);
    return status == KG_OK ? encode_c<P>(c, call.dtype, call.c, call.m, call.n) : status;
}

/* One product. Turned ones may have k in `splits` shares: of all tiles, or with `rest` of those
 * that are left over by whole waves, which another kernel computes, as soon as there is room. */
template <typename P, bool BIAS_RELU>
static enum kg_status launch(const struct gemm_call &call, int splits = 1, bool rest = false)
{
    CUtensorMap a, b, c;
    int sms;
    enum kg_status status = encode_all<P>(&a, &b, &c, call);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status != KG_OK)
        return status;

    arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.m, P::BM * P::CLUSTER);
    p.tiles_n = (int32_t)gemm_blocks(call.n, P::BN);
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.last_steps = (int32_t)(gemm_blocks(call.k, P::BK / STEPS) - (p.blocks_k - 1) * STEPS);
    p.rows = (int32_t)call.m;
    p.columns = (int32_t)call.n;
    p.bias = call.bias;
    p.c = call.c.data;
    p.leading = call.c.leading;
    const int32_t tiles = p.tiles_m * p.tiles_n, most = sms * P::RESIDENT / P::CLUSTER;
    const int32_t whole = splits == 1 ? tiles : rest ? tiles / most * most : 0;
    if (whole > 0) {
        /* No more clusters than it takes for the number of waves: what idles leaves power to
         * others. */
        const unsigned clusters = (unsigned)gemm_blocks(whole, gemm_blocks(whole, most));
        p.begin = 0;
        p.end = whole;
        p.splits = 1;
        status = launch_cluster(kernel<P, BIAS_RELU>, P::CLUSTER, false,
                                dim3(clusters * P::CLUSTER), dim3(THREADS),
                                shared_plan<P, BIAS_RELU>::BYTES, call.stream, a, b, c, p);
    }
    if (whole < tiles && status == KG_OK) {
        const int blocks = P::CLUSTER * splits;
        p.begin = whole;
        p.end = tiles;
        p.splits = splits;
        status = launch_cluster(kernel<P, BIAS_RELU>, blocks, whole > 0,
                                dim3((unsigned)((tiles - whole) * blocks)), dim3(THREADS),
                                shared_plan<P, BIAS_RELU>::BYTES, call.stream, a, b, c, p);
    }
    return status;
}

/* ---- stream-K (gemm_policy_sm90.h) ---- */

struct stream_arguments {
    int32_t tiles_m, tiles_n;
    int32_t blocks_k, last_steps;
    int32_t rows, columns;
    const void *bias;
    float *sums;     /* 256 x 128 of each block, as its threads have them */
    uint32_t *flags; /* two of each block: the sums of a warpgroup are there */
};

/* Stages `from` to `to` of a tile. */
struct stream_part {
    int tile, from, to;
};

/* The parts of a block's piece in the order in which it multiplies them. */
struct stream_parts {
    int64_t from, to;
    int stages, whole, first; /* of whole tiles */
    bool begun, ended;        /* a last tile that others end, a first one that others began */

    __device__ __forceinline__ stream_parts(const stream_arguments &p) : stages(p.blocks_k)
    {
        const gemm_sm90_piece piece = gemm_sm90_piece_of((int64_t)p.tiles_m * p.tiles_n, p.blocks_k,
                                                         (int)gridDim.x, (int)blockIdx.x);
        from = piece.from;
        to = piece.to;
        first = (int)((from + stages - 1) / stages);
        whole = max((int)(to / stages) - first, 0);
        begun = to % stages != 0;
        ended = from % stages != 0 && (from / stages + 1) * stages <= to;
    }

    __device__ __forceinline__ int count() const
    {
        return (int)begun + whole + (int)ended;
    }

    __device__ __forceinline__ stream_part at(int i) const
    {
        if (begun && i == 0) {
            const int tile = (int)(to / stages);
            const int64_t start = (int64_t)tile * stages;
            return {tile, from > start ? (int)(from - start) : 0, (int)(to - start)};
        }
        i -= (int)begun;
        if (i < whole)
            return {first + i, 0, stages};
        return {(int)(from / stages), (int)(from % stages), stages};
    }
};

/* For multiply_tile(): no tile before this one leaves. */
struct nothing_held {
    __device__ __forceinline__ void store(int, uint32_t) const
    {
    }
};

/* The flags are garbage on entry. */
static __global__ void clear_flags(uint32_t *flags, int n)
{
    let_dependents_start();
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        flags[i] = 0;
}

/* A consumer's sums, on their way to the block that ends the tile. */
template <typename P>
__device__ __forceinline__ void stream_give(const stream_arguments &p,
                                            const float (&acc)[P::BN / 2], int index)
{
    constexpr int ALL = CONSUMERS * WARPGROUP;
    const int thread = (int)threadIdx.x - WARPGROUP;
    float4 *const to = (float4 *)(p.sums + (int64_t)blockIdx.x * (P::BM * P::BN)) + thread;

#pragma unroll
    for (int q = 0; q < P::BN / 8; q++)
        __stcg(to + q * ALL,
               make_float4(acc[4 * q], acc[4 * q + 1], acc[4 * q + 2], acc[4 * q + 3]));
    consumer_barrier();
    if (threadIdx.x % WARPGROUP == 0) {
        __threadfence();
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(p.flags + blockIdx.x * 2 + index)
                     : "memory");
    }
}

/* Adds the sums of the blocks that began a tile of which this one has `missing` stages not. */
template <typename P>
__device__ __forceinline__ void stream_take(const stream_arguments &p, float (&acc)[P::BN / 2],
                                            int index, int missing)
{
    constexpr int ALL = CONSUMERS * WARPGROUP;
    const int thread = (int)threadIdx.x - WARPGROUP;

    for (int block = (int)blockIdx.x - 1; missing > 0; block--) {
        const gemm_sm90_piece piece =
            gemm_sm90_piece_of((int64_t)p.tiles_m * p.tiles_n, p.blocks_k, (int)gridDim.x, block);
        const float4 *const from =
            (const float4 *)(p.sums + (int64_t)block * (P::BM * P::BN)) + thread;
        if (threadIdx.x % WARPGROUP == 0) {
            uint32_t there = 0;
            while (there == 0)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(there)
                             : "l"(p.flags + block * 2 + index)
                             : "memory");
        }
        consumer_barrier();
#pragma unroll
        for (int q = 0; q < P::BN / 8; q += 4) {
            float4 part[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[i] = __ldcg(from + (q + i) * ALL);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                acc[4 * (q + i)] += part[i].x;
                acc[4 * (q + i) + 1] += part[i].y;
                acc[4 * (q + i) + 2] += part[i].z;
                acc[4 * (q + i) + 3] += part[i].w;
            }
        }
        missing -= (int)min(piece.to - piece.from, (int64_t)missing);
    }
}

template <typename P, bool BIAS_RELU>
__global__ void __launch_bounds__(THREADS, P::RESIDENT)
    stream_kernel(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c,
                  const __grid_constant__ stream_arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using T = typename P::T;
    using plan = shared_plan<P, BIAS_RELU>;
    constexpr int GROUP = 2048 / P::BM;
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const stream_parts parts(p);
    const int n = parts.count();

    open_ring<P>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<24>();
        if (threadIdx.x < 32 && ptx::elect_lane()) {
            ring_place<P::STAGES> at = {0, 0};
            for (int i = 0; i < n; i++) {
                const stream_part part = parts.at(i);
                const tile_place tile = grouped<GROUP>(part.tile, p.tiles_m, p.tiles_n);
                load_tile<P>(stages, at, base, &map_a, &map_b, tile.m * P::BM, tile.n * P::BN,
                             part.to - part.from, 0, part.from);
            }
        }
        return;
    }

    ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    consumer<P> me(stages, base, index);
    float acc[P::BN / 2];
    wait_for_predecessor(); /* it clears the flags */
    if (parts.begun) {
        const stream_part part = parts.at(0);
        multiply_tile<P>(me, acc, nothing_held(), staging, part.to - part.from);
        stream_give<P>(p, acc, index);
    }
    turned_tile<P> held;
    held.map = NULL;
    for (int i = (int)parts.begun; i < n; i++) {
        const stream_part part = parts.at(i);
        const tile_place tile = grouped<GROUP>(part.tile, p.tiles_m, p.tiles_n);
        const int m0 = tile.m * P::BM + index * 64, n0 = tile.n * P::BN;
        multiply_tile<P>(me, acc, held, staging, part.to - part.from, p.last_steps);
        if (part.from > 0)
            stream_take<P>(p, acc, index, part.from);
        if constexpr (BIAS_RELU)
            held.round_relu(acc, turned_bias<T>(p.bias, m0, p.rows));
        else
            held.round(acc);
        held.hold(&map_c, m0, n0);
    }
#pragma unroll
    for (int q = 0; q < P::PIECES; q++)
        held.store(q, staging);
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* One turned product by stream-K. */
template <typename P, bool BIAS_RELU>
static enum kg_status launch_stream(const struct gemm_call &call)
{
    CUtensorMap a, b, c;
    int sms;
    enum kg_status status = encode_all<P>(&a, &b, &c, call);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status == KG_OK && call.workspace_bytes < gemm_sm90_stream_bytes(sms))
        status = KG_BAD_ARGUMENT;
    if (status != KG_OK)
        return status;

    stream_arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.m, P::BM);
    p.tiles_n = (int32_t)gemm_blocks(call.n, P::BN);
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.last_steps = (int32_t)(gemm_blocks(call.k, P::BK / STEPS) - (p.blocks_k - 1) * STEPS);
    p.rows = (int32_t)call.m;
    p.columns = (int32_t)call.n;
    p.bias = call.bias;
    p.sums = (float *)call.workspace;
    p.flags = (uint32_t *)((char *)call.workspace + sms * GEMM_SM90_STREAM_SUMS);
    static_assert(P::BM * P::BN * sizeof(float) == GEMM_SM90_STREAM_SUMS, "the workspace");
    status = launch_kernel(clear_flags, dim3(1), dim3(256), 0, call.stream, p.flags, 2 * sms);
    if (status != KG_OK)
        return status;
    return launch_cluster(stream_kernel<P, BIAS_RELU>, 1, true, dim3((unsigned)sms), dim3(THREADS),
                          shared_plan<P, BIAS_RELU>::BYTES, call.stream, a, b, c, p);
}

/* A product whose C is turned: its A is the B of the op, transposed. */
static inline struct gemm_call turned(const struct gemm_call &call)
{
    struct gemm_call t = call;
    t.m = call.n;
    t.n = call.m;
    t.a = call.b;
    t.b = call.a;
    return t;
}

template <typename P, bool BIAS_RELU> static enum kg_status prepare(bool stream)
{
    const enum kg_status status = tensor_map_open();
    if (status != KG_OK)
        return status;
    if constexpr (P::TURNED && P::BN == 256 && P::CLUSTER == 1)
        if (stream)
            return allow_shared(stream_kernel<P, BIAS_RELU>, shared_plan<P, BIAS_RELU>::BYTES);
    return allow_shared(kernel<P, BIAS_RELU>, shared_plan<P, BIAS_RELU>::BYTES);
}

/* Launches the call, or without one prepares for it. */
template <typename P, bool BIAS_RELU>
static enum kg_status run_tile(const struct gemm_sm90_choice &choice, const struct gemm_call *call)
{
    if (call == NULL)
        return prepare<P, BIAS_RELU>(choice.stream);
    if constexpr (P::TURNED && P::BN == 256 && P::CLUSTER == 1)
        if (choice.stream)
            return launch_stream<P, BIAS_RELU>(turned(*call));
    if constexpr (P::TURNED)
        return launch<P, BIAS_RELU>(turned(*call), choice.splits, choice.rest);
    else
        return launch<P, BIAS_RELU>(*call);
}

/* B_K: whether B is K-major, as the weights of a linear layer are. */
template <typename T, bool B_K, bool BIAS_RELU>
static enum kg_status run_choice(const struct gemm_sm90_choice &choice,
                                 const struct gemm_call *call)
{
    switch (choice.tile) {
    case GEMM_SM90_128:
        return run_tile<product<T, 128, 6, 2, true, B_K>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_16:
        return run_tile<product<T, 16, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_32:
        return run_tile<product<T, 32, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_64:
        return run_tile<product<T, 64, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_96:
        return run_tile<product<T, 96, 7, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_128:
        return run_tile<product<T, 128, 6, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_160:
        return run_tile<product<T, 160, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_192:
        return run_tile<product<T, 192, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_224:
        return run_tile<product<T, 224, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_256:
        return run_tile<product<T, 256, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_PAIR_192:
        return run_tile<product<T, 192, 5, 2, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_PAIR_256:
        return run_tile<product<T, 256, 4, 2, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_WIDE:
        return run_tile<product<T, 256, 4, 1, true, B_K>, BIAS_RELU>(choice, call);
    default:
        return KG_UNSUPPORTED;
    }
}

/* The same for the tile of a product on this device. */
template <typename T, bool B_K, bool BIAS_RELU>
static enum kg_status run(int64_t m, int64_t n, int64_t k, const struct gemm_call *call)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const struct gemm_sm90_product product = {m, n, k, B_K};
    return run_choice<T, B_K, BIAS_RELU>(gemm_sm90_choose(&product, sms), call);
}

} // namespace gemm_sm90

#endif
