/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batched_gemm_sm90: C = A B for each batch by wgmma, all operands row-major.
 *
 * Regime      fp16, bf16; lines and batches of 16-byte multiples; compute capability 9.0. Layouts
 *             that are not go to the other kernels of gemm/
 * Tiles       turned, 64, 128 or 256 rows x 128 (gemm/gemm_sm90.cu), whichever takes the fewest
 *             clocks by the model of gemm/gemm_policy_sm90.h
 * Order       persistent, one batch after the other; a tile leaves while the next is multiplied
 */
#include "kernels/batched_gemm/batched_gemm.h"
#include "kernels/gemm/gemm_sm90.cuh"

namespace batched_gemm
{

using namespace gemm_sm90;

struct batched_arguments {
    int32_t tiles_m, tiles_n, tiles; /* of a batch, and of all of them */
    int32_t blocks_k, last_steps;
};

struct batched_tile {
    int batch, m, n; /* elements */
};

template <typename P>
__device__ __forceinline__ batched_tile tile_at(const batched_arguments &p, int t)
{
    const int each = p.tiles_m * p.tiles_n, batch = t / each;
    const tile_place tile = grouped<2048 / P::BM>(t - batch * each, p.tiles_m, p.tiles_n);
    return {batch, tile.m * P::BM, tile.n * P::BN};
}

/* A turned tile that leaves into a batch. */
template <typename P> struct batched_held : turned_tile<P> {
    int batch;

    __device__ __forceinline__ void store(int q, uint32_t staging) const
    {
        const uint32_t panel = staging + q % 2 * P::STAGING_PANEL;
        if (this->map == NULL)
            return;
        staging_acquire();
        this->fill(q, panel);
        ptx::fence_async_shared();
        consumer_barrier();
        if (threadIdx.x % WARPGROUP == 0) {
            ptx::tma_store(this->map, panel, this->m, this->n + q * P::PIECE, batch);
            ptx::tma_store_commit();
        }
    }
};

/* By the producer: all blocks of a tile, whose A is MN-major (the op's B) and B K-major. */
template <typename P>
__device__ __forceinline__ void load_batched(const ring<P::STAGES> &stages,
                                             ring_place<P::STAGES> &at, uint32_t shared,
                                             const CUtensorMap *map_a, const CUtensorMap *map_b,
                                             const batched_tile &tile, int blocks_k)
{
    for (int k = 0; k < blocks_k; k++) {
        stages.wait_empty(at);
        const uint32_t a = shared + at.stage * P::STAGE_BYTES, full = stages.full(at);
        stages.expect(at, P::STAGE_BYTES);
#pragma unroll
        for (int i = 0; i < P::BM / 64; i++)
            ptx::tma_load(a + i * P::MN_PANEL_BYTES, map_a, full, tile.m + i * 64, k * P::BK,
                          tile.batch);
        ptx::tma_load(a + P::A_BYTES, map_b, full, k * P::BK, tile.n, tile.batch);
        at.next();
    }
}

template <typename P>
__global__ void __launch_bounds__(THREADS, P::RESIDENT)
    kernel_sm90(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b,
                const __grid_constant__ CUtensorMap map_c,
                const __grid_constant__ batched_arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using plan = shared_plan<P, false>;
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);

    open_ring<P>(stages);
    if (warpgroup == 0) {
        if constexpr (P::RESIDENT == 1)
            ptx::registers_decrease<24>();
        if (threadIdx.x < 32 && ptx::elect_lane()) {
            ring_place<P::STAGES> at = {0, 0};
            for (int t = (int)blockIdx.x; t < p.tiles; t += (int)gridDim.x)
                load_batched<P>(stages, at, base, &map_a, &map_b, tile_at<P>(p, t), p.blocks_k);
        }
        return;
    }

    if constexpr (P::RESIDENT == 1)
        ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    consumer<P> me(stages, base, index);
    float acc[P::BN / 2];
    batched_held<P> held;
    held.map = NULL;
    for (int t = (int)blockIdx.x; t < p.tiles; t += (int)gridDim.x) {
        const batched_tile tile = tile_at<P>(p, t);
        multiply_tile<P>(me, acc, held, staging, p.blocks_k, p.last_steps);
        held.round(acc);
        held.hold(&map_c, tile.m + index * 64, tile.n);
        held.batch = tile.batch;
    }
#pragma unroll
    for (int q = 0; q < P::PIECES; q++)
        held.store(q, staging);
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* The map of row-major matrices in boxes of rows x columns. */
static enum kg_status encode_batches(CUtensorMap *map, uint32_t dtype,
                                     const struct gemm_matrix &matrix, int64_t count, int64_t rows,
                                     int64_t columns, int box_rows, int box_columns)
{
    const struct tensor_map_shape shape = {3,
                                           {columns, rows, count},
                                           {1, matrix.leading, matrix.apart},
                                           {box_columns, box_rows, 1},
                                           0};
    return tensor_map_encode(map, dtype, matrix.data, &shape);
}

/* Launches the batches, or without them prepares for it. */
template <typename P> static enum kg_status run_tile(const struct gemm_call *batches)
{
    if (batches == NULL) {
        const enum kg_status status = tensor_map_open();
        return status == KG_OK ? allow_shared(kernel_sm90<P>, shared_plan<P, false>::BYTES)
                               : status;
    }
    const struct gemm_call &call = *batches;
    const int64_t count = call.batches;
    CUtensorMap a, b, c;
    int sms;
    /* Turned: the rows of a tile are columns of C. */
    enum kg_status status =
        encode_batches(&a, call.dtype, call.b, count, call.k, call.n, P::BK, 64);
    if (status == KG_OK)
        status = encode_batches(&b, call.dtype, call.a, count, call.m, call.k, P::BN, P::BK);
    if (status == KG_OK)
        status = encode_batches(&c, call.dtype, call.c, count, call.m, call.n, P::PIECE, 64);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status != KG_OK)
        return status;

    batched_arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.n, P::BM);
    p.tiles_n = (int32_t)gemm_blocks(call.m, P::BN);
    p.tiles = (int32_t)(p.tiles_m * p.tiles_n * count);
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.last_steps = (int32_t)(gemm_blocks(call.k, P::BK / STEPS) - (p.blocks_k - 1) * STEPS);
    const int64_t most = (int64_t)sms * P::RESIDENT;
    const unsigned blocks = (unsigned)gemm_blocks(p.tiles, gemm_blocks(p.tiles, most));
    return launch_kernel(kernel_sm90<P>, dim3(blocks), dim3(THREADS), shared_plan<P, false>::BYTES,
                         call.stream, a, b, c, p);
}

/* Of three tiles the one for which the busiest multiprocessor takes the fewest clocks. */
template <typename T>
static enum kg_status run(const struct product_sizes &p, int64_t count,
                          const struct gemm_call *call)
{
    static const enum gemm_sm90_tile tiles[] = {GEMM_SM90_TURNED_64, GEMM_SM90_TURNED_128,
                                                GEMM_SM90_TURNED_256};
    enum gemm_sm90_tile best = tiles[0];
    int sms;
    const enum kg_status status = count_sms(&sms);
    int64_t least = INT64_MAX;
    if (status != KG_OK)
        return status;
    for (const enum gemm_sm90_tile tile : tiles) {
        const struct gemm_sm90_shape shape = gemm_sm90_shape_of(tile);
        const int64_t n = gemm_blocks(p.n, 128) * gemm_blocks(p.m, shape.columns) * count;
        const int64_t waves = gemm_blocks(n, sms); /* two blocks of 64 take twice as long */
        const int64_t clocks = waves * (gemm_blocks(p.k, 64) * shape.clocks + 840);
        if (clocks < least) {
            least = clocks;
            best = tile;
        }
    }
    return best == GEMM_SM90_TURNED_64 ? run_tile<product<T, 64, 4, 1, false, true, true>>(call)
           : best == GEMM_SM90_TURNED_128
               ? run_tile<product<T, 128, 6, 1, false, true, true>>(call)
               : run_tile<product<T, 256, 4, 1, false, true, true>>(call);
}

static enum kg_status run_dtype(const struct kg_problem *problem, const struct gemm_call *call)
{
    const struct product_sizes p = product_sizes_of(problem);
    const int64_t count = kg_size(problem, "b");
    return p.dtype == KG_F16 ? run<__half>(p, count, call) : run<__nv_bfloat16>(p, count, call);
}

static int supports_sm90(const struct kg_problem *p, const struct kg_device *device)
{
    const struct product_sizes s = product_sizes_of(p);
    const int64_t tiles = gemm_blocks(s.n, 128) * gemm_blocks(s.m, 64);
    return serves(p, device) && s.dtype != KG_F32 && gemm_sm90_serves(&s, device, s.k, s.n) &&
           kg_size(p, "b") <= INT32_MAX / tiles;
}

static enum kg_status prepare_sm90(const struct kg_problem *p, const struct kg_device *, void **)
{
    const enum kg_status status = gemm_mma_nn_prepare();
    return status == KG_OK ? run_dtype(p, NULL) : status;
}

static enum kg_status launch_sm90(const struct kg_problem *p, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = call_of(p, args, &call);
    if (status != KG_OK)
        return status;
    return gemm_sm90_reaches_all(&call) ? run_dtype(p, &call) : launch_plain(p, &call);
}

} // namespace batched_gemm

extern "C" const struct kg_kernel kg_batched_gemm_sm90 = {
    sizeof(struct kg_kernel),
    0,
    "batched_gemm",
    "batched_gemm_sm90",
    batched_gemm::supports_sm90,
    batched_gemm::prepare_sm90,
    NULL,
    batched_gemm::launch_sm90,
    NULL,
};
