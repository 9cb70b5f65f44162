/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_splitkv: attention forward for few query rows, split over the keys.
 *
 * Regime      decode, and prefill grids of less than a wave. fp16, bf16; D = 64, 128
 * Block       the query heads of a KV head packed into one tile of rows, so that K and V are read
 *             once a KV head, and a contiguous share of the keys, dealt out to groups of warps that
 *             keep step only among themselves; at the end the groups are merged in a fixed order
 * Tiles       up to 16 rows: 4 groups of 1 warp, 32 or 64 keys a tile, 3 slots of 8 KB a group
 *             more rows: 64 of them; D = 64: 4 groups of 4 warps, 32 keys a tile, 6 slots of 4 KB;
 *             D = 128: 2 groups of 4 warps, 64 keys a tile, 3 slots of 16 KB
 * Splits      as many blocks as fill the device share the keys of a row tile; each leaves maximum,
 *             sum and O in fp32 in the workspace for combine.cu. One split writes O itself
 * Resources   registers with 16 rows: 161 (sm_90a: 165) at D = 64, 209 (215) at D = 128
 *             registers with 64 rows: 128 at D = 64, 225 (232) at D = 128; no spills
 *             shared memory 96 KB; with 16 rows two blocks a multiprocessor, one on sm_80, sm_89
 */
#include "kernels/attention_fwd/splitkv.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_splitkv
{

/* How a problem is cut up. Pure: workspace_bytes() and launch() ask at different times and must
 * come to the same. */
struct splitkv_plan {
    bool wide;         /* wide_tile, else decode_tile */
    int64_t rows;      /* packed rows of a KV head, see problem.cuh */
    int64_t row_tiles; /* tiles that these take */
    int64_t splits;    /* blocks that share the keys of a row tile; 1: no combine kernel */
};

/* A tile's sizes at run time. */
struct tile_sizes {
    int64_t rows, keys, groups;
};

template <typename Tile>
constexpr struct tile_sizes sizes_of = {Tile::ROWS, Tile::KEYS, Tile::GROUPS};

constexpr int SPLITKV_DECODE_ROWS = decode_tile<__half, 64>::ROWS;
constexpr int SPLITKV_WIDE_ROWS = wide_tile<__half, 64>::ROWS;
constexpr int SPLITKV_SHARED_BYTES = decode_tile<__half, 64>::RINGS_BYTES;
static_assert(SPLITKV_SHARED_BYTES == decode_tile<__half, 128>::RINGS_BYTES &&
                  SPLITKV_SHARED_BYTES == wide_tile<__half, 64>::RINGS_BYTES &&
                  SPLITKV_SHARED_BYTES == wide_tile<__half, 128>::RINGS_BYTES,
              "one figure for the occupancy of all tiles");

static inline struct tile_sizes tile_of(bool wide, int64_t head_dim)
{
    if (wide)
        return head_dim == 64 ? sizes_of<wide_tile<__half, 64>> : sizes_of<wide_tile<__half, 128>>;
    return head_dim == 64 ? sizes_of<decode_tile<__half, 64>> : sizes_of<decode_tile<__half, 128>>;
}

/*
 * The number of splits that finishes first, in a model where blocks run in waves of `slots` and a
 * block takes the longest walk of its groups, in keys, and an overhead for filling the ring and
 * merging; combining costs twice that overhead. The overhead, as many keys as the tile has rows, is
 * a guess at the scale on which a walk is short. Ties go to fewer splits.
 */
static inline int64_t choose_splits(const struct tile_sizes &tile, int64_t keys, int64_t blocks,
                                    int64_t slots)
{
    const int64_t overhead = tile.rows;
    const int64_t key_tiles = (keys + tile.keys - 1) / tile.keys;
    int64_t best = 1, best_cost = INT64_MAX;

    for (int64_t splits = 1; splits <= COMBINE_MAX_SPLITS; splits++) {
        /* A split with less than a tile a group, or the fifth wave, gains nothing. */
        if (splits > 1 && (splits * tile.groups > key_tiles || splits * blocks > 4 * slots))
            break;
        const int64_t waves = (blocks * splits + slots - 1) / slots;
        const int64_t walk = (key_tiles + splits * tile.groups - 1) / (splits * tile.groups);
        const int64_t cost =
            waves * (walk * tile.keys + overhead) + (splits > 1 ? 2 * overhead : 0);
        if (cost < best_cost) {
            best_cost = cost;
            best = splits;
        }
    }
    return best;
}

static inline struct splitkv_plan plan_splitkv(const struct attention_sizes *p, int64_t sm_count,
                                               int64_t shared_optin)
{
    const int64_t reserved = 1024; /* shared memory a block that the system keeps */
    struct splitkv_plan plan;

    plan.rows = p->seqlen_q * (p->heads / p->kv_heads);
    plan.wide = plan.rows > SPLITKV_DECODE_ROWS;
    const struct tile_sizes tile = tile_of(plan.wide, p->head_dim);
    plan.row_tiles = (plan.rows + tile.rows - 1) / tile.rows;

    const int64_t fit = (shared_optin + reserved) / (SPLITKV_SHARED_BYTES + reserved);
    const int64_t per_sm = plan.wide || fit < 2 ? 1 : 2;
    plan.splits = choose_splits(tile, p->seqlen_kv, p->batch * p->kv_heads * plan.row_tiles,
                                sm_count * per_sm);
    return plan;
}

template <typename Tile, int BLOCKS_PER_SM>
__global__ void __launch_bounds__(Tile::THREADS, BLOCKS_PER_SM)
    attention_splitkv_kernel(const __grid_constant__ struct splitkv_params p, float scale_log2)
{
    /* First of all, so that combine's code is there when it is needed: fetched at the end, it took
     * up to 0.4 % of a short problem longer or shorter, by where it lay. In the blocks' way, it
     * takes 0.5 % itself; let go after the walk it would save 2.8 %, and vary twice as much. */
    let_dependents_start();

    const auto problem_of = [&](int) -> const struct attention &
    {
        return p.a;
    };
    walk_split<Tile>(p, scale_log2, problem_of,
                     [&](int batch, int kv_head) { return keys_of(p.a, batch, kv_head); });
}

/*
 * Serves what leaves attention_fwd_mma idle: query rows that, packed, fit a tile or nearly so (its
 * 128-row tiles would be mostly padding, and every query head would read K and V again), or a grid
 * of its tiles that does not give every multiprocessor one.
 */
int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    if (!attention_supports(p, device) || device->shared_bytes_optin < SPLITKV_SHARED_BYTES)
        return 0;
    const int64_t rows = p->seqlen_q * (p->heads / p->kv_heads);
    const int64_t mma_rows = throughput_tile<__half, 64>::ROWS;
    const int64_t mma_blocks = p->batch * p->heads * ((p->seqlen_q + mma_rows - 1) / mma_rows);
    if (rows > SPLITKV_WIDE_ROWS && mma_blocks >= device->sm_count)
        return 0;
    return rows <= INT32_MAX / 2 && rows * p->batch * p->kv_heads <= INT32_MAX / COMBINE_MAX_SPLITS;
}

uint64_t out_bytes(const struct attention_sizes *p, const struct splitkv_plan &plan)
{
    return (uint64_t)(plan.splits * p->batch * p->kv_heads * plan.rows * p->head_dim) *
           sizeof(float);
}

uint64_t plan_bytes(const struct attention_sizes *p, const struct splitkv_plan &plan)
{
    if (plan.splits == 1)
        return 0;
    return out_bytes(p, plan) +
           (uint64_t)(plan.splits * p->batch * p->kv_heads * plan.rows) * sizeof(float2);
}

uint64_t workspace_bytes(const struct attention_sizes *p, const struct kg_device *device)
{
    return plan_bytes(p, plan_splitkv(p, device->sm_count, device->shared_bytes_optin));
}

template <typename T, int D> enum kg_status prepare_typed(const struct splitkv_plan &plan)
{
    if (plan.wide)
        return allow_shared(attention_splitkv_kernel<wide_tile<T, D>, 1>, SPLITKV_SHARED_BYTES);
    return allow_shared(attention_splitkv_kernel<decode_tile<T, D>, 2>, SPLITKV_SHARED_BYTES);
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *device)
{
    const struct splitkv_plan plan = plan_splitkv(p, device->sm_count, device->shared_bytes_optin);

    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? prepare_typed<__half, 64>(plan)
                                 : prepare_typed<__half, 128>(plan);
    return p->head_dim == 64 ? prepare_typed<__nv_bfloat16, 64>(plan)
                             : prepare_typed<__nv_bfloat16, 128>(plan);
}

template <typename T, int D>
enum kg_status launch_typed(const struct splitkv_plan &plan, const struct splitkv_params &params,
                            float scale_log2, void *stream)
{
    const dim3 grid((unsigned)(plan.row_tiles * plan.splits * params.a.batch * params.a.kv_heads));
    if (plan.wide)
        return launch_kernel(attention_splitkv_kernel<wide_tile<T, D>, 1>, grid,
                             dim3(wide_tile<T, D>::THREADS), SPLITKV_SHARED_BYTES, stream, params,
                             scale_log2);
    return launch_kernel(attention_splitkv_kernel<decode_tile<T, D>, 2>, grid,
                         dim3(decode_tile<T, D>::THREADS), SPLITKV_SHARED_BYTES, stream, params,
                         scale_log2);
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    struct splitkv_params params;
    int device, sm_count, shared_optin;
    enum kg_status status = read_attention(p, args, &params.a);

    if (status != KG_OK)
        return status;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
    CUDA_TRY(
        cudaDeviceGetAttribute(&shared_optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));

    const struct splitkv_plan plan = plan_splitkv(p, sm_count, shared_optin);
    if (args->workspace_bytes < plan_bytes(p, plan))
        return KG_BAD_ARGUMENT;
    const float scale_log2 = scale_log2_of(p);
    params.row_tiles = plan.row_tiles;
    params.parts.splits = (int)plan.splits;
    params.parts.rows = (int)plan.rows;
    params.parts.total_rows = p->batch * p->kv_heads * plan.rows;
    params.parts.out = (float *)args->workspace;
    params.parts.stats = (float2 *)((char *)args->workspace + out_bytes(p, plan));

    if (p->dtype == KG_F16)
        status = p->head_dim == 64
                     ? launch_typed<__half, 64>(plan, params, scale_log2, args->stream)
                     : launch_typed<__half, 128>(plan, params, scale_log2, args->stream);
    else
        status = p->head_dim == 64
                     ? launch_typed<__nv_bfloat16, 64>(plan, params, scale_log2, args->stream)
                     : launch_typed<__nv_bfloat16, 128>(plan, params, scale_log2, args->stream);
    if (status != KG_OK || plan.splits == 1)
        return status;
    return launch_combine(p, params.a, params.parts, args->stream);
}

} // namespace attention_fwd_splitkv

using namespace attention_fwd_splitkv;

extern "C" const struct kg_kernel kg_attention_fwd_splitkv =
    kernel_of<attention_sizes, supports, prepare, workspace_bytes, launch>("attention_fwd",
                                                                           "attention_fwd_splitkv");
