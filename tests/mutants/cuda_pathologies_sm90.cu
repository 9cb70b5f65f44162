/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: right, and slow for one known reason in each case: what a diagnosis is asked to find. With
 * PLAIN 1 (cuda_pathologies_plain_sm90.cu) it is the same library without any of the reasons.
 *
 * Each case has a shape of its own, by which its reason is known. Dense tensors alone (sm_90a).
 */
#include <cuda_fp16.h>

#include "kernels/cuda/ptx.cuh"
#include "kernels/problem.h"

#ifndef PLAIN
#define PLAIN 0
#endif

static constexpr bool SLOW = !PLAIN;

enum { THREADS = 256, WARPS = THREADS / 32, LANES = 32 };

struct matrices {
    const float *a, *b;
    float *c;
    int n, k;
};

/* ---- products in fp32 ---- */

static constexpr int DEPTH = 16; /* of a stage */

/* A lane has a row of its own; the columns of a block's tile are shared out to groups of warps. */
template <int ROWS, int COLUMNS, bool CONFLICTS> struct tile {
    static constexpr int GROUPS = WARPS / (ROWS / LANES), WIDTH = GROUPS * COLUMNS;
    static constexpr int STRIDE = CONFLICTS ? DEPTH : DEPTH + 1; /* in banks, of a row of A */
    float a[2][ROWS * (DEPTH + 1)];
    float b[2][DEPTH * WIDTH];
};

template <class Tile, int ROWS>
static __device__ void fetch(Tile &t, int stage, const matrices &m, int row, int column, int k)
{
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS)
        ptx::cp_async_4_zfill(
            ptx::shared_address(&t.a[stage][i / DEPTH * Tile::STRIDE + i % DEPTH]),
            m.a + (int64_t)(row + i / DEPTH) * m.k + k + i % DEPTH, true);
    for (int i = threadIdx.x; i < DEPTH * Tile::WIDTH / 4; i += THREADS)
        ptx::cp_async_16_zfill(
            ptx::shared_address(&t.b[stage][4 * i]),
            m.b + (int64_t)(k + 4 * i / Tile::WIDTH) * m.n + column + 4 * i % Tile::WIDTH, true);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <class Tile, int COLUMNS, bool BARRIERS>
static __device__ void add_stage(const Tile &t, int stage, int row, int column, float *sum)
{
    for (int k = 0; k < DEPTH; k++) {
        const float a = t.a[stage][row * Tile::STRIDE + k];
        const float4 *b = (const float4 *)&t.b[stage][k * Tile::WIDTH + column];
#pragma unroll
        for (int j = 0; j < COLUMNS / 4; j++) {
            const float4 four = b[j];
            sum[4 * j] += a * four.x;
            sum[4 * j + 1] += a * four.y;
            sum[4 * j + 2] += a * four.z;
            sum[4 * j + 3] += a * four.w;
        }
        if (BARRIERS)
            __syncthreads();
    }
}

template <int ROWS, int COLUMNS, bool CONFLICTS, bool BARRIERS, bool OVERLAP, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS) multiply(matrices m)
{
    using mine = tile<ROWS, COLUMNS, CONFLICTS>;
    __shared__ __align__(16) mine t;
    const int warp = threadIdx.x / LANES, group = warp % mine::GROUPS;
    const int row = warp / mine::GROUPS * LANES + threadIdx.x % LANES;
    const int first_row = blockIdx.y * ROWS, first_column = blockIdx.x * mine::WIDTH;
    float sum[COLUMNS] = {};
    if (OVERLAP)
        fetch<mine, ROWS>(t, 0, m, first_row, first_column, 0);
    for (int k = 0, stage = 0; k < m.k; k += DEPTH, stage ^= OVERLAP) {
        const int next = OVERLAP ? k + DEPTH : k;
        if (next < m.k)
            fetch<mine, ROWS>(t, OVERLAP ? stage ^ 1 : 0, m, first_row, first_column, next);
        if (OVERLAP && next < m.k)
            asm volatile("cp.async.wait_group 1;\n" ::: "memory");
        else
            asm volatile("cp.async.wait_group 0;\n" ::: "memory");
        __syncthreads();
        add_stage<mine, COLUMNS, BARRIERS>(t, stage, row, group * COLUMNS, sum);
        __syncthreads();
    }
    float *to = m.c + (int64_t)(first_row + row) * m.n + first_column + group * COLUMNS;
    for (int j = 0; j < COLUMNS; j++)
        to[j] = sum[j];
}

static __global__ void nothing(void)
{
}

/* ---- a product whose blocks share the rows of A ---- */

static constexpr int CLUSTER = 8, SHARED_ROWS = 64, SHARED_DEPTH = 32, STAGES = 3;
static constexpr int BLOCK_COLUMNS = 8, SHARED_THREADS = 128;
static constexpr int A_STRIDE = SHARED_DEPTH + 4; /* rows begin in other banks */

struct shared_tiles {
    float a[STAGES][SHARED_ROWS * A_STRIDE];
    float b[STAGES][SHARED_DEPTH * BLOCK_COLUMNS];
    uint64_t full[STAGES];
};

static __device__ void copy_row(uint32_t to, const float *from, int bytes, uint32_t barrier,
                                bool to_all)
{
    if (to_all)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
                     "multicast::cluster [%0], [%1], %2, [%3], %4;\n" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                     : "memory");
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                     "[%1], %2, [%3];\n" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier)
                     : "memory");
}

/* By the first warp: each block brings its share of the rows to all, or all rows to itself. */
template <bool MULTICAST>
static __device__ void fetch_shared(shared_tiles &t, int stage, const matrices &m, int row,
                                    int column, int k)
{
    const uint32_t barrier = ptx::shared_address(&t.full[stage]);
    const int rows = MULTICAST ? SHARED_ROWS / CLUSTER : SHARED_ROWS;
    const int begin = MULTICAST ? ptx::cluster_rank() * rows : 0;
    const int bytes = SHARED_DEPTH * (int)sizeof(float);
    if (threadIdx.x == 0)
        ptx::mbarrier_arrive_expect(barrier, (int)((SHARED_ROWS + BLOCK_COLUMNS) * bytes));
    __syncwarp();
    for (int i = begin + threadIdx.x; i < begin + rows; i += LANES)
        copy_row(ptx::shared_address(&t.a[stage][i * A_STRIDE]), m.a + (int64_t)(row + i) * m.k + k,
                 bytes, barrier, MULTICAST);
    copy_row(ptx::shared_address(&t.b[stage][threadIdx.x * BLOCK_COLUMNS]),
             m.b + (int64_t)(k + threadIdx.x) * m.n + column, BLOCK_COLUMNS * (int)sizeof(float),
             barrier, false);
}

static __device__ void cluster_barrier(void)
{
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

template <bool MULTICAST>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(SHARED_THREADS)
    multiply_shared(matrices m)
{
    __shared__ __align__(128) shared_tiles t;
    const int row = threadIdx.x % SHARED_ROWS, group = threadIdx.x / SHARED_ROWS * 4;
    const int first_row = blockIdx.y * SHARED_ROWS, first_column = blockIdx.x * BLOCK_COLUMNS;
    const bool fetches = threadIdx.x < LANES;
    float4 sum = {};
    if (threadIdx.x < STAGES)
        ptx::mbarrier_init(ptx::shared_address(&t.full[threadIdx.x]), 1);
    ptx::fence_mbarrier_init();
    cluster_barrier();
    for (int i = 0; i < STAGES && fetches; i++)
        fetch_shared<MULTICAST>(t, i, m, first_row, first_column, i * SHARED_DEPTH);
    for (int at = 0; at < m.k / SHARED_DEPTH; at++) {
        const int stage = at % STAGES, next = (at + STAGES) * SHARED_DEPTH;
        ptx::mbarrier_wait(ptx::shared_address(&t.full[stage]), at / STAGES % 2);
#pragma unroll
        for (int k = 0; k < SHARED_DEPTH; k += 4) {
            const float4 a = *(const float4 *)&t.a[stage][row * A_STRIDE + k];
            const float of[] = {a.x, a.y, a.z, a.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float4 b = *(const float4 *)&t.b[stage][(k + i) * BLOCK_COLUMNS + group];
                sum.x += of[i] * b.x;
                sum.y += of[i] * b.y;
                sum.z += of[i] * b.z;
                sum.w += of[i] * b.w;
            }
        }
        cluster_barrier(); /* no block of the cluster reads the stage any more */
        if (fetches && next < m.k)
            fetch_shared<MULTICAST>(t, stage, m, first_row, first_column, next);
    }
    *(float4 *)&m.c[(int64_t)(first_row + row) * m.n + first_column + group] = sum;
}

/* ---- a matrix times a vector ---- */

enum { ROWS_OF_WARP = 4 };

static __device__ float sum_over(float x, int lanes)
{
    for (int i = lanes / 2; i; i /= 2)
        x += __shfl_xor_sync(~0u, x, i);
    return x;
}

/* Of four rows a warp reads each in turn, or each eight lanes read one, a part of it a lane. */
template <bool COALESCED> static __global__ void __launch_bounds__(THREADS) times_vector(matrices m)
{
    const int lane = threadIdx.x % LANES;
    const int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / LANES) * ROWS_OF_WARP;
    if (COALESCED) {
        float sum[ROWS_OF_WARP] = {};
        for (int k = lane; k < m.k; k += LANES)
            for (int i = 0; i < ROWS_OF_WARP; i++)
                sum[i] += m.a[(first + i) * m.k + k] * m.b[k];
        for (int i = 0; i < ROWS_OF_WARP; i++) {
            const float whole = sum_over(sum[i], LANES);
            if (lane == 0)
                m.c[first + i] = whole;
        }
        return;
    }
    const int parts = LANES / ROWS_OF_WARP, length = m.k / parts, part = lane % parts;
    const float *row = m.a + (first + lane / parts) * m.k;
    float sum = 0;
#pragma unroll 4
    for (int k = part * length; k < (part + 1) * length; k++)
        sum += row[k] * m.b[k];
    sum = sum_over(sum, parts);
    if (part == 0)
        m.c[first + lane / parts] = sum;
}

/* ---- attention, a warp for each query ---- */

struct attention {
    const __half *q, *k, *v;
    __half *o;
    int length;
    float scale;
};

static constexpr int DIM = 64;

static __global__ void __launch_bounds__(THREADS) attend(attention x)
{
    const int lane = threadIdx.x % LANES, query = blockIdx.x * WARPS + threadIdx.x / LANES;
    const int64_t head = ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * x.length;
    const __half2 *k = (const __half2 *)(x.k + head * DIM) + lane;
    const __half2 *v = (const __half2 *)(x.v + head * DIM) + lane;
    const int64_t at = (head + query) * (DIM / 2) + lane;
    const float2 q = __half22float2(((const __half2 *)x.q)[at]);
    float most = -INFINITY, total = 0;
    float2 sum = {};
    for (int i = 0; i < x.length; i++) {
        const float2 key = __half22float2(k[i * (DIM / 2)]);
        const float2 value = __half22float2(v[i * (DIM / 2)]);
        const float score = x.scale * sum_over(q.x * key.x + q.y * key.y, LANES);
        const float now = fmaxf(most, score);
        const float kept = __expf(most - now), weight = __expf(score - now);
        most = now;
        total = total * kept + weight;
        sum.x = sum.x * kept + weight * value.x;
        sum.y = sum.y * kept + weight * value.y;
    }
    ((__half2 *)x.o)[at] = __floats2half2_rn(sum.x / total, sum.y / total);
}

/* ---- the cases ---- */

enum { LARGE_SHARED = 200 * 1024 };

static matrices matrices_of(const kg_problem *p, const kg_args *args)
{
    return {(const float *)args->in[0].data, (const float *)args->in[1].data,
            (float *)args->out[0].data, (int)kg_size(p, "n"), (int)kg_size(p, "k")};
}

static bool is_dense(const kg_tensor *t)
{
    int64_t stride = 1;
    for (int i = (int)t->rank - 1; i >= 0; stride *= t->shape[i--])
        if (t->stride[i] != stride)
            return false;
    return (uintptr_t)t->data % 16 == 0;
}

static bool are_dense(const kg_args *args)
{
    bool dense = is_dense(&args->out[0]);
    for (uint32_t i = 0; i < args->n_in; i++)
        dense &= is_dense(&args->in[i]);
    return dense;
}

template <int ROWS, int COLUMNS, bool CONFLICTS, bool BARRIERS, bool OVERLAP, int BLOCKS>
static void run_product(const kg_problem *p, const kg_args *args)
{
    const dim3 grid(kg_size(p, "n") / tile<ROWS, COLUMNS, CONFLICTS>::WIDTH,
                    kg_size(p, "m") / ROWS);
    multiply<ROWS, COLUMNS, CONFLICTS, BARRIERS, OVERLAP, BLOCKS>
        <<<grid, THREADS, 0, (cudaStream_t)args->stream>>>(matrices_of(p, args));
}

static void bank_conflicts(const kg_problem *p, const kg_args *args)
{
    run_product<64, 16, SLOW, false, true, 1>(p, args);
}

static void spills(const kg_problem *p, const kg_args *args)
{
    run_product<64, 32, false, false, true, SLOW ? 8 : 1>(p, args);
}

static void extra_launch(const kg_problem *p, const kg_args *args)
{
    run_product<64, 16, false, false, true, 1>(p, args);
    if (SLOW)
        nothing<<<1, LANES, 0, (cudaStream_t)args->stream>>>();
}

static void barriers(const kg_problem *p, const kg_args *args)
{
    run_product<64, 16, false, SLOW, true, 1>(p, args);
}

static void smaller_tile(const kg_problem *p, const kg_args *args)
{
    if (SLOW)
        run_product<32, 4, false, false, true, 1>(p, args);
    else
        run_product<64, 16, false, false, true, 1>(p, args);
}

static void no_overlap(const kg_problem *p, const kg_args *args)
{
    run_product<64, 16, false, false, !SLOW, 1>(p, args);
}

static void lost_multicast(const kg_problem *p, const kg_args *args)
{
    const dim3 grid(kg_size(p, "n") / BLOCK_COLUMNS, kg_size(p, "m") / SHARED_ROWS);
    multiply_shared<!SLOW>
        <<<grid, SHARED_THREADS, 0, (cudaStream_t)args->stream>>>(matrices_of(p, args));
}

static void uncoalesced(const kg_problem *p, const kg_args *args)
{
    const unsigned blocks = kg_size(p, "m") / (WARPS * ROWS_OF_WARP);
    times_vector<!SLOW><<<blocks, THREADS, 0, (cudaStream_t)args->stream>>>(matrices_of(p, args));
}

static void low_occupancy(const kg_problem *p, const kg_args *args)
{
    const unsigned blocks = kg_size(p, "m") / (WARPS * ROWS_OF_WARP);
    times_vector<true><<<blocks, THREADS, SLOW ? LARGE_SHARED : 0, (cudaStream_t)args->stream>>>(
        matrices_of(p, args));
}

static void serial_batch(const kg_problem *p, const kg_args *args)
{
    const int64_t each = kg_size(p, "h") * kg_size(p, "sq") * kg_size(p, "d"),
                  at_once = SLOW ? 1 : kg_size(p, "b");
    for (int64_t i = 0; i < kg_size(p, "b"); i += at_once) {
        const attention x = {(const __half *)args->in[0].data + i * each,
                             (const __half *)args->in[1].data + i * each,
                             (const __half *)args->in[2].data + i * each,
                             (__half *)args->out[0].data + i * each,
                             (int)kg_size(p, "s"),
                             (float)kg_param(p, "scale")};
        attend<<<dim3(kg_size(p, "sq") / WARPS, kg_size(p, "h"), at_once), THREADS, 0,
                 (cudaStream_t)args->stream>>>(x);
    }
}

/* By their sizes: m, n, k, or batch, heads and length of an attention. */
struct pathology {
    const char *op;
    int64_t sizes[3];
    void (*run)(const kg_problem *p, const kg_args *args);
};

static const pathology pathologies[] = {
    {"gemm", {1024, 1024, 1024}, bank_conflicts}, {"gemv", {4096, 0, 4096}, uncoalesced},
    {"gemv", {8192, 0, 4096}, low_occupancy},     {"gemm", {1024, 1024, 512}, spills},
    {"gemm", {256, 256, 256}, extra_launch},      {"gemm", {1024, 512, 1024}, barriers},
    {"attention_fwd", {8, 4, 256}, serial_batch}, {"gemm", {1024, 1024, 768}, lost_multicast},
    {"gemm", {2048, 1024, 512}, smaller_tile},    {"gemm", {512, 1024, 2048}, no_overlap},
};

static const pathology *find(const kg_problem *p)
{
    const bool attends = kg_is_op(p, "attention_fwd");
    const uint32_t dtype = attends ? KG_F16 : KG_F32;
    const int64_t sizes[] = {attends ? kg_size(p, "b") : kg_size(p, "m"),
                             attends ? kg_size(p, "h") : kg_size(p, "n"),
                             attends ? kg_size(p, "s") : kg_size(p, "k")};
    if (kg_dtype(p) != dtype || p->flags ||
        (attends && (kg_size(p, "kv_heads") != kg_size(p, "h") ||
                     kg_size(p, "sq") != kg_size(p, "s") || kg_size(p, "d") != DIM)))
        return NULL;
    for (const pathology &x : pathologies)
        if (kg_is_op(p, x.op) && x.sizes[0] == sizes[0] && x.sizes[1] == sizes[1] &&
            x.sizes[2] == sizes[2])
            return &x;
    return NULL;
}

static int supports(const kg_problem *p, const kg_device *d)
{
    return d->cc_major == 9 && find(p);
}

static kg_status prepare(const kg_problem *p, const kg_device *, void **)
{
    return find(p)->run != low_occupancy ||
                   cudaFuncSetAttribute((const void *)times_vector<true>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        LARGE_SHARED) == cudaSuccess
               ? KG_OK
               : KG_UNSUPPORTED;
}

static kg_status launch(const kg_problem *p, const kg_args *args)
{
    if (!are_dense(args))
        return KG_UNSUPPORTED;
    find(p)->run(p, args);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#define KERNEL(op, name)                                                                           \
    {                                                                                              \
        sizeof(kg_kernel), 0, op, name, supports, prepare, NULL, launch, NULL                      \
    }
static const kg_kernel gemm = KERNEL("gemm", "gemm"), gemv = KERNEL("gemv", "gemv"),
                       attention_fwd = KERNEL("attention_fwd", "attention_fwd");
static const kg_kernel *const table[] = {&gemm, &gemv, &attention_fwd};
static const struct kg_library library = {
    sizeof(library), KG_ABI_VERSION, "pathologies", "1", KG_DEVICE_CUDA, 3, table};

const struct kg_library *kg_library(void)
{
    return &library;
}
