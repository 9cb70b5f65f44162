/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_paged_splitkv: attention of pages, split over the keys.
 *
 * Regime      fp16, bf16; D = 64, 128; pages of 16 keys or a larger power of two; rows of whole 16
 *             bytes; a scale above 0
 * Block       as attention_fwd_splitkv, whose walk over the keys it shares: rows of 16 keys are
 *             copied from the block that the table names. A split has its share of the keys that
 *             its sequence has
 * Tiles       up to 16 rows: 4 groups of 1 warp, 32 or 64 keys a tile; more rows: 64 of them, 2
 *             groups of 4 warps, 64 keys a tile
 * Splits      four waves of blocks, so that sequences of different lengths even out; combine.cu
 *             adds them up
 */
#include "kernels/attention_fwd/splitkv.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_paged_splitkv
{

struct paged_sizes : attention_sizes {
    int64_t table, blocks, page;
};

static bool read_sizes(const struct kg_problem *p, struct paged_sizes *s)
{
    *(struct attention_sizes *)s = attention_sizes_of(p);
    s->table = kg_size(p, "t");
    s->blocks = kg_size(p, "blocks");
    s->page = kg_size(p, "page");
    s->seqlen_kv = s->table * s->page; /* at most */
    return kg_is_op(p, "attention_paged");
}

/* Keys that are copied from one block. */
constexpr int PART = 16;

template <typename T, int D> using paged_wide = tile<T, D, 1, 4, 2, 64, D == 64 ? 6 : 3>;
constexpr int SHARED_BYTES = decode_tile<__half, 64>::RINGS_BYTES;
static_assert(SHARED_BYTES == decode_tile<__half, 128>::RINGS_BYTES &&
                  SHARED_BYTES == paged_wide<__half, 64>::RINGS_BYTES &&
                  SHARED_BYTES == paged_wide<__half, 128>::RINGS_BYTES,
              "one figure for the occupancy of all tiles");

/* The keys of one group, as key_range, in the blocks that the table names. */
struct page_range {
    const char *k, *v;    /* of this KV head in block 0 */
    const int32_t *table; /* of this sequence */
    int64_t k_block, v_block, k_stride, v_stride;
    int shift; /* a page has 2^shift keys */
    int n_keys;
    int first, step, n_tiles;
};

/* K or V of a tile of keys, from `key` on. */
template <typename Tile>
__device__ __forceinline__ void copy_keys(uint32_t shared, const struct page_range &range,
                                          bool is_v, int key, int thread)
{
    constexpr int CHUNKS = Tile::D / 8, STEP = Tile::GROUP_THREADS / CHUNKS;
    static_assert(PART % STEP == 0 && Tile::KEYS % PART == 0, "a part is whole passes");
    const int row = thread / CHUNKS, chunk = thread % CHUNKS;
    const uint32_t to = shared + swizzled<2 * Tile::D>(row, chunk);
    const int64_t stride = is_v ? range.v_stride : range.k_stride;
    const int64_t block_stride = is_v ? range.v_block : range.k_block;
    const char *const base = (is_v ? range.v : range.k) + chunk * 16;
    const int in_page = (1 << range.shift) - 1;
    const bool whole = key + Tile::KEYS <= range.n_keys;

#pragma unroll
    for (int part = 0; part < Tile::KEYS; part += PART) {
        const int at = key + part;
        const int64_t block = at < range.n_keys ? range.table[at >> range.shift] : 0;
        const char *const from = base + block * block_stride + ((at & in_page) + row) * stride;
#pragma unroll
        for (int r = 0; r < PART; r += STEP) {
            const uint32_t slot = (to ^ ((r & 7) << 4)) + (part + r) * 2 * Tile::D;
            if (whole) {
                ptx::cp_async_16(slot, from + r * stride);
            } else {
                const bool exists = at + row + r < range.n_keys;
                ptx::cp_async_16_zfill(slot, exists ? from + r * stride : base, exists);
            }
        }
    }
}

template <typename Tile>
__device__ __forceinline__ void fetch_item(const struct key_ring &ring,
                                           const struct page_range &range, int item, int slot)
{
    if (item / 2 < range.n_tiles)
        copy_keys<Tile>(ring.shared + slot * Tile::SLOT_BYTES, range, item % 2 != 0,
                        (range.first + item / 2 * range.step) * Tile::KEYS, ring.thread);
    ptx::cp_async_commit();
}

struct pages {
    const int32_t *table, *lengths;
    int64_t table_row, shift;
};

template <typename Tile, int BLOCKS_PER_SM>
__global__ void __launch_bounds__(Tile::THREADS, BLOCKS_PER_SM)
    attention_paged_kernel(const __grid_constant__ struct splitkv_params p,
                           const __grid_constant__ struct pages pages, float scale_log2)
{
    let_dependents_start();

    const auto problem_of = [&](int batch) {
        struct attention a = p.a;
        a.seqlen_kv = pages.lengths[batch];
        return a;
    };
    walk_split<Tile>(p, scale_log2, problem_of, [&](int batch, int kv_head) {
        struct page_range range;
        range.k = p.a.k.data + kv_head * p.a.k.head_stride;
        range.v = p.a.v.data + kv_head * p.a.v.head_stride;
        range.table = pages.table + batch * pages.table_row;
        range.k_block = p.a.k.batch_stride;
        range.v_block = p.a.v.batch_stride;
        range.k_stride = p.a.k.row_stride;
        range.v_stride = p.a.v.row_stride;
        range.shift = (int)pages.shift;
        range.n_keys = pages.lengths[batch];
        return range;
    });
}

struct paged_plan {
    bool wide;
    int64_t rows, row_tiles, splits;
};

/* Pure: workspace_bytes() and launch() come to the same. A split has four tiles a group or more. */
static struct paged_plan plan_of(const struct paged_sizes *p, int64_t sm_count)
{
    struct paged_plan plan;
    plan.rows = p->seqlen_q * (p->heads / p->kv_heads);
    plan.wide = plan.rows > decode_tile<__half, 64>::ROWS;
    const int64_t tile_rows =
        plan.wide ? paged_wide<__half, 64>::ROWS : decode_tile<__half, 64>::ROWS;
    const int64_t round_keys = plan.wide ? 2 * 64 : 4 * 4096 / p->head_dim;
    plan.row_tiles = (plan.rows + tile_rows - 1) / tile_rows;
    const int64_t blocks = p->batch * p->kv_heads * plan.row_tiles;
    const int64_t slots = sm_count * (plan.wide ? 1 : 2);
    const int64_t wanted = (4 * slots + blocks - 1) / blocks;
    int64_t most = p->seqlen_kv / (4 * round_keys);
    most = most < COMBINE_MAX_SPLITS ? most : COMBINE_MAX_SPLITS;
    plan.splits = wanted < most ? wanted : most;
    if (plan.splits < 1)
        plan.splits = 1;
    return plan;
}

static int supports(const struct paged_sizes *p, const struct kg_device *device)
{
    if (!attention_supports(p, device) || device->shared_bytes_optin < SHARED_BYTES ||
        p->page < PART || (p->page & (p->page - 1)) != 0)
        return 0;
    const int64_t rows = p->seqlen_q * (p->heads / p->kv_heads);
    return rows <= INT32_MAX / 2 && rows * p->batch * p->kv_heads <= INT32_MAX / COMBINE_MAX_SPLITS;
}

static uint64_t out_bytes(const struct paged_sizes *p, const struct paged_plan &plan)
{
    return (uint64_t)(plan.splits * p->batch * p->kv_heads * plan.rows * p->head_dim) *
           sizeof(float);
}

static uint64_t plan_bytes(const struct paged_sizes *p, const struct paged_plan &plan)
{
    return plan.splits == 1
               ? 0
               : out_bytes(p, plan) +
                     (uint64_t)(plan.splits * p->batch * p->kv_heads * plan.rows) * sizeof(float2);
}

static uint64_t workspace_bytes(const struct paged_sizes *p, const struct kg_device *device)
{
    return plan_bytes(p, plan_of(p, device->sm_count));
}

/* Calls USE(kernel, its threads) for the instance that serves a problem. */
#define OF_TYPE(USE, T)                                                                            \
    if (plan.wide)                                                                                 \
        return p->head_dim == 64 ? USE((attention_paged_kernel<paged_wide<T, 64>, 1>), 256)        \
                                 : USE((attention_paged_kernel<paged_wide<T, 128>, 1>), 256);      \
    return p->head_dim == 64 ? USE((attention_paged_kernel<decode_tile<T, 64>, 2>), 128)           \
                             : USE((attention_paged_kernel<decode_tile<T, 128>, 2>), 128);
#define OF_PLAN(USE)                                                                               \
    if (p->dtype == KG_F16) {                                                                      \
        OF_TYPE(USE, __half)                                                                       \
    }                                                                                              \
    OF_TYPE(USE, __nv_bfloat16)

static enum kg_status prepare(const struct paged_sizes *p, const struct kg_device *device)
{
    const struct paged_plan plan = plan_of(p, device->sm_count);
#define ALLOW(kernel, threads) allow_shared(kernel, SHARED_BYTES)
    OF_PLAN(ALLOW)
}

static enum kg_status enqueue(const struct paged_sizes *p, const struct paged_plan &plan,
                              const struct splitkv_params &params, const struct pages &pages,
                              void *stream)
{
    const dim3 grid((unsigned)(plan.row_tiles * plan.splits * p->batch * p->kv_heads));
#define ENQUEUE(kernel, threads)                                                                   \
    launch_kernel(kernel, grid, dim3(threads), SHARED_BYTES, stream, params, pages,                \
                  scale_log2_of(p))
    OF_PLAN(ENQUEUE)
}

/* Its heads as the second axis, as attention has them. */
static enum kg_status view_turned(const struct kg_tensor *t, uint32_t dtype, int64_t first,
                                  int64_t rows, int64_t heads, int64_t d, struct tensor_view *view)
{
    struct kg_tensor turned = *t;
    turned.shape[1] = t->shape[2];
    turned.shape[2] = t->shape[1];
    turned.stride[1] = t->stride[2];
    turned.stride[2] = t->stride[1];
    return view_tensor(&turned, dtype, first, heads, rows, d, view);
}

static enum kg_status launch(const struct paged_sizes *p, const struct kg_args *args)
{
    const struct kg_tensor *const in = args->in, *const table = &in[3], *const lengths = &in[4];
    struct splitkv_params params;
    struct pages pages;
    int sms, shift = 0;

    if (args->struct_bytes < sizeof(*args) || args->n_in != 5 || args->n_out != 1 ||
        !kg_is_tensor(table, KG_I32, 2) || !kg_is_tensor(lengths, KG_I32, 1))
        return KG_BAD_ARGUMENT;
    struct attention &a = params.a;
    const struct {
        const struct kg_tensor *t;
        int64_t first, rows, heads;
        struct tensor_view *view;
    } views[] = {{&in[0], p->batch, p->seqlen_q, p->heads, &a.q},
                 {&in[1], p->blocks, p->page, p->kv_heads, &a.k},
                 {&in[2], p->blocks, p->page, p->kv_heads, &a.v},
                 {&args->out[0], p->batch, p->seqlen_q, p->heads, &a.o}};
    for (const auto &v : views) {
        const enum kg_status status =
            view_turned(v.t, p->dtype, v.first, v.rows, v.heads, p->head_dim, v.view);
        if (status != KG_OK)
            return status;
    }
    a.batch = (int)p->batch;
    a.kv_heads = (int)p->kv_heads;
    a.group = (int)(p->heads / p->kv_heads);
    a.seqlen_q = (int)p->seqlen_q;
    a.seqlen_kv = (int)p->seqlen_kv;
    a.causal = 1;
    while ((int64_t)1 << shift < p->page)
        shift++;
    pages.table = (const int32_t *)table->data;
    pages.lengths = (const int32_t *)lengths->data;
    pages.table_row = p->batch > 1 ? table->stride[0] : 0;
    pages.shift = shift;

    enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const struct paged_plan plan = plan_of(p, sms);
    if (args->workspace_bytes < plan_bytes(p, plan))
        return KG_BAD_ARGUMENT;
    params.row_tiles = plan.row_tiles;
    params.parts.splits = (int)plan.splits;
    params.parts.rows = (int)plan.rows;
    params.parts.total_rows = p->batch * p->kv_heads * plan.rows;
    params.parts.out = (float *)args->workspace;
    params.parts.stats = (float2 *)((char *)args->workspace + out_bytes(p, plan));
    status = enqueue(p, plan, params, pages, args->stream);
    return status != KG_OK || plan.splits == 1
               ? status
               : launch_combine(p, params.a, params.parts, args->stream);
}

} // namespace attention_paged_splitkv

using namespace attention_paged_splitkv;

extern "C" const struct kg_kernel kg_attention_paged_splitkv =
    kernel_of<paged_sizes, supports, prepare, workspace_bytes, launch>("attention_paged",
                                                                       "attention_paged_splitkv");
