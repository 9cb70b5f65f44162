/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batched_gemm_sm90: C = A B for each batch by wgmma, all operands row-major.
 * grouped_gemm_sm90: C = A B[g] in the rows of each group; it ends where the offsets say.
 *
 * Regime      fp16, bf16; lines and batches of 16-byte multiples; compute capability 9.0. Layouts
 *             that are not go to the other kernels of gemm/, and of grouped_gemm.cu
 * Tiles       turned, 64, 128 or 256 rows x 128 (gemm/gemm_sm90.cu), whichever takes the fewest
 *             clocks by the model of gemm/gemm_policy_sm90.h
 * Order       persistent, one batch after the other; a tile leaves while the next is multiplied.
 *             The tiles of groups are known on the device alone: each block reads all offsets, and
 *             walks on from the group of its last tile
 * Tails       the last rows of a group leave by plain stores: a box of TMA would reach into the
 *             next group. What is loaded of it is multiplied and dropped
 */
#include "kernels/batched_gemm/batched_gemm.h"
#include "kernels/gemm/gemm_sm90.cuh"

namespace batched_gemm
{

using namespace gemm_sm90;

struct batched_arguments {
    int32_t tiles_m, tiles_n, tiles; /* of a batch, and of all of them; of groups tiles_m alone */
    int32_t blocks_k, last_steps;
    int32_t groups;
    int64_t leading, columns; /* of C, and what follows: of groups alone */
    void *c;
    const int32_t *offsets;
};

/* The most groups whose offsets fit beside the ring. */
template <typename P> constexpr int MOST_GROUPS = P::RESIDENT == 2 ? 200 : 512;

/* Where a tile lies, in elements. */
struct batched_tile {
    int batch; /* of B; of A and C too, but of groups, whose rows are one matrix */
    int m, n;
    int end; /* of a group's rows */
};

/* The tiles of a block, one after the other. */
template <typename P, bool GROUPS> struct batched_walk {
    const batched_arguments &p;
    const int32_t *offsets; /* in shared memory */
    int group, first;       /* that of the last tile, and its first tile */

    __device__ __forceinline__ batched_walk(const batched_arguments &arguments,
                                            const int32_t *copied)
        : p(arguments), offsets(copied), group(0), first(0)
    {
    }

    /* Tile t, which is past that of the call before; false: there is none. */
    __device__ __forceinline__ bool go(int t, batched_tile &tile)
    {
        constexpr int BAND = 2048 / P::BM;
        if constexpr (!GROUPS) {
            const int each = p.tiles_m * p.tiles_n, batch = t / each;
            const tile_place at = grouped<BAND>(t - batch * each, p.tiles_m, p.tiles_n);
            tile = {batch, at.m * P::BM, at.n * P::BN, 0};
            return t < p.tiles;
        } else {
            for (; group < p.groups; group++) {
                const int from = offsets[group], to = offsets[group + 1];
                const int tiles_n = (to - from + P::BN - 1) / P::BN, tiles = tiles_n * p.tiles_m;
                if (t - first < tiles) {
                    const tile_place at = grouped<BAND>(t - first, p.tiles_m, tiles_n);
                    tile = {group, at.m * P::BM, from + at.n * P::BN, to};
                    return true;
                }
                first += tiles;
            }
            return false;
        }
    }
};

/* A turned tile that leaves into a batch, or into rows of a group. */
template <typename P, bool GROUPS> struct batched_held : turned_tile<P> {
    const batched_arguments &p;
    int batch, end;

    __device__ __forceinline__ batched_held(const batched_arguments &arguments)
        : p(arguments), batch(0), end(0)
    {
        this->map = NULL;
    }

    /* `left` rows of a piece. Each commits, so that the panels are counted. */
    __device__ __forceinline__ void store_tail(uint32_t panel, int row, int left) const
    {
        using T = typename P::T;
        consumer_barrier();
        for (int i = (int)threadIdx.x % WARPGROUP; i < left * 8; i += WARPGROUP) {
            const int line = i / 8, column = this->m + i % 8 * 8;
            if (column < p.columns)
                *(uint4 *)((T *)p.c + (row + line) * p.leading + column) =
                    ptx::load_shared_16(panel + line * PANEL_ROW_BYTES + (i % 8 ^ (line & 7)) * 16);
        }
        if (threadIdx.x % WARPGROUP == 0)
            ptx::tma_store_commit();
    }

    __device__ __forceinline__ void store(int q, uint32_t staging) const
    {
        const uint32_t panel = staging + q % 2 * P::STAGING_PANEL;
        const int row = this->n + q * P::PIECE, left = end - row;
        if (this->map == NULL)
            return;
        staging_acquire();
        if constexpr (GROUPS) {
            if (left < P::PIECE) {
                if (left > 0)
                    this->fill(q, panel);
                store_tail(panel, row, left);
                return;
            }
        }
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
                                             const batched_tile &tile, int blocks_k, int of_a)
{
    for (int k = 0; k < blocks_k; k++) {
        stages.wait_empty(at);
        const uint32_t a = shared + at.stage * P::STAGE_BYTES, full = stages.full(at);
        stages.expect(at, P::STAGE_BYTES);
#pragma unroll
        for (int i = 0; i < P::BM / 64; i++)
            ptx::tma_load(a + i * P::MN_PANEL_BYTES, map_a, full, tile.m + i * 64, k * P::BK,
                          tile.batch);
        ptx::tma_load(a + P::A_BYTES, map_b, full, k * P::BK, tile.n, of_a);
        at.next();
    }
}

template <typename P, bool GROUPS>
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
    int32_t *const offsets = (int32_t *)(shared + plan::BYTES);
    batched_walk<P, GROUPS> walk(p, offsets);
    batched_tile tile;

    for (int i = (int)threadIdx.x; GROUPS && i <= p.groups; i += THREADS)
        offsets[i] = p.offsets[i];
    open_ring<P>(stages);
    if (warpgroup == 0) {
        if constexpr (P::RESIDENT == 1)
            ptx::registers_decrease<24>();
        if (threadIdx.x < 32 && ptx::elect_lane()) {
            ring_place<P::STAGES> at = {0, 0};
            for (int t = (int)blockIdx.x; walk.go(t, tile); t += (int)gridDim.x)
                load_batched<P>(stages, at, base, &map_a, &map_b, tile, p.blocks_k,
                                GROUPS ? 0 : tile.batch);
        }
        return;
    }

    if constexpr (P::RESIDENT == 1)
        ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    consumer<P> me(stages, base, index);
    float acc[P::BN / 2];
    batched_held<P, GROUPS> held(p);
    for (int t = (int)blockIdx.x; walk.go(t, tile); t += (int)gridDim.x) {
        multiply_tile<P>(me, acc, held, staging, p.blocks_k, p.last_steps);
        held.round(acc);
        held.hold(&map_c, tile.m + index * 64, tile.n);
        held.batch = GROUPS ? 0 : tile.batch;
        held.end = tile.end;
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

/* Tiles along the rows of A: about half of one is lost in each group, and those of fewer groups
 * are not whole. */
static int64_t row_tiles(int64_t m, int64_t groups, int64_t rows)
{
    const int64_t many = gemm_blocks(m, rows) + groups / 2, few = groups < m ? groups : m;
    return many > few ? many : few;
}

/* Launches the batches, or groups, or without a call prepares for it. */
template <typename P, bool GROUPS>
static enum kg_status run_tile(const struct gemm_call *batches, const int32_t *offsets)
{
    constexpr int BYTES =
        shared_plan<P, false>::BYTES + (GROUPS ? (MOST_GROUPS<P> + 1) * (int)sizeof(int32_t) : 0);
    static_assert(BYTES <= (P::RESIDENT == 2 ? 113 : 227) * 1024, "what a multiprocessor has");
    if (batches == NULL) {
        const enum kg_status status = tensor_map_open();
        return status == KG_OK ? allow_shared(kernel_sm90<P, GROUPS>, BYTES) : status;
    }
    const struct gemm_call &call = *batches;
    const int64_t count = call.batches, rows_count = GROUPS ? 1 : count;
    CUtensorMap a, b, c;
    int sms;
    /* Turned: the rows of a tile are columns of C. */
    enum kg_status status =
        encode_batches(&a, call.dtype, call.b, count, call.k, call.n, P::BK, 64);
    if (status == KG_OK)
        status = encode_batches(&b, call.dtype, call.a, rows_count, call.m, call.k, P::BN, P::BK);
    if (status == KG_OK)
        status = encode_batches(&c, call.dtype, call.c, rows_count, call.m, call.n, P::PIECE, 64);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status != KG_OK)
        return status;

    batched_arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.n, P::BM);
    p.tiles_n = (int32_t)gemm_blocks(call.m, P::BN);
    p.tiles = (int32_t)(p.tiles_m * (GROUPS ? row_tiles(call.m, count, P::BN) : p.tiles_n * count));
    p.groups = (int32_t)count;
    p.leading = call.c.leading;
    p.columns = call.n;
    p.c = call.c.data;
    p.offsets = offsets;
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.last_steps = (int32_t)(gemm_blocks(call.k, P::BK / STEPS) - (p.blocks_k - 1) * STEPS);
    const int64_t most = (int64_t)sms * P::RESIDENT;
    /* How many tiles groups have is not known. */
    const int64_t blocks = !GROUPS          ? gemm_blocks(p.tiles, gemm_blocks(p.tiles, most))
                           : p.tiles < most ? p.tiles
                                            : most;
    return launch_kernel(kernel_sm90<P, GROUPS>, dim3((unsigned)blocks), dim3(THREADS), BYTES,
                         call.stream, a, b, c, p);
}

/* Of three tiles the one for which the busiest multiprocessor takes the fewest clocks. */
template <typename T, bool GROUPS>
static enum kg_status run(const struct product_sizes &p, int64_t count,
                          const struct gemm_call *call, const int32_t *offsets)
{
    using turned_64 = product<T, 64, 4, 1, false, true, true>;
    using turned_128 = product<T, 128, 6, 1, false, true, true>;
    using turned_256 = product<T, 256, 4, 1, false, true, true>;
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
        if (GROUPS && count > MOST_GROUPS<turned_64> && shape.columns == 64)
            continue;
        const int64_t rows =
            GROUPS ? row_tiles(p.m, count, shape.columns) : gemm_blocks(p.m, shape.columns) * count;
        const int64_t n = gemm_blocks(p.n, 128) * rows;
        const int64_t waves = gemm_blocks(n, sms); /* two blocks of 64 take twice as long */
        const int64_t clocks = waves * (gemm_blocks(p.k, 64) * shape.clocks + 840);
        if (clocks < least) {
            least = clocks;
            best = tile;
        }
    }
    return best == GEMM_SM90_TURNED_64    ? run_tile<turned_64, GROUPS>(call, offsets)
           : best == GEMM_SM90_TURNED_128 ? run_tile<turned_128, GROUPS>(call, offsets)
                                          : run_tile<turned_256, GROUPS>(call, offsets);
}

template <bool GROUPS>
static enum kg_status run_dtype(const struct kg_problem *problem, const struct gemm_call *call,
                                const int32_t *offsets = NULL)
{
    const struct product_sizes p = group_sizes_of(problem);
    const int64_t count = kg_size(problem, GROUPS ? "g" : "b");
    return p.dtype == KG_F16 ? run<__half, GROUPS>(p, count, call, offsets)
                             : run<__nv_bfloat16, GROUPS>(p, count, call, offsets);
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
    return status == KG_OK ? run_dtype<false>(p, NULL) : status;
}

static enum kg_status launch_sm90(const struct kg_problem *p, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = call_of(p, args, &call);
    if (status != KG_OK)
        return status;
    return gemm_sm90_reaches_all(&call) ? run_dtype<false>(p, &call) : launch_plain(p, &call);
}

static int supports_groups_sm90(const struct kg_problem *p, const struct kg_device *device)
{
    using widest = product<__half, 256, 4, 1, false, true, true>;
    const struct product_sizes s = group_sizes_of(p);
    const int64_t tiles = gemm_blocks(s.m, 64) + kg_size(p, "g");
    return serves_groups(p, device) && s.dtype != KG_F32 &&
           gemm_sm90_serves(&s, device, s.k, s.n) && kg_size(p, "g") <= MOST_GROUPS<widest> &&
           gemm_blocks(s.n, 128) <= INT32_MAX / tiles;
}

static enum kg_status prepare_groups_sm90(const struct kg_problem *p, const struct kg_device *,
                                          void **)
{
    return run_dtype<true>(p, NULL);
}

static enum kg_status launch_groups_sm90(const struct kg_problem *p, const struct kg_args *args)
{
    struct gemm_call call;
    const int32_t *offsets;
    const enum kg_status status = groups_of(p, args, &call, &offsets);
    if (status != KG_OK)
        return status;
    return gemm_sm90_reaches_all(&call) ? run_dtype<true>(p, &call, offsets)
                                        : launch_groups_plain(p, &call, offsets);
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

extern "C" const struct kg_kernel kg_grouped_gemm_sm90 = {
    sizeof(struct kg_kernel),
    0,
    "grouped_gemm",
    "grouped_gemm_sm90",
    batched_gemm::supports_groups_sm90,
    batched_gemm::prepare_groups_sm90,
    NULL,
    batched_gemm::launch_groups_sm90,
    NULL,
};
