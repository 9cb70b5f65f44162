/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_mma: FlashAttention-2 forward on mma.sync, for grids that fill the device.
 *
 * Regime      prefill; whatever attention_fwd_splitkv leaves. fp16, bf16; D = 64, 128
 * Block       128 query rows of a head; 4 warps of 32 rows, all on the same key tile
 * Keys        64 a tile, in a ring of 4 (D = 64) or 3 (D = 128) slots
 * Q           D = 64: in registers. D = 128, where O alone takes 128 of them: read from shared
 *             memory again for each key tile
 * Resources   registers 243 (sm_90a: 248) at D = 64, 255 at D = 128; no spills
 *             shared memory 48 KB at D = 64, 80 KB at D = 128
 *             two blocks a multiprocessor, one on sm_89 at D = 128
 *
 * A causal mask and a tail of keys are the same thing to it: a number of keys that a row sees.
 * Tiles that no row of the block sees are not visited, tiles that no row of a warp sees are not
 * computed, and only tiles that some row sees in part are masked.
 */
#include "kernels/attention_fwd/key_walk.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_mma
{

struct mma_params {
    struct attention a;
    int row_tiles; /* tiles of query rows a head */
    int section;   /* heads that are worked on together, see locate() */
};

template <typename Tile> constexpr int shared_bytes = Tile::QUERY_BYTES + Tile::RING_BYTES;

/*
 * Which rows a block works on. Heads are taken a section at a time; within one the last row tiles,
 * which see the most keys under a causal mask, come first for all its heads, so that what is left
 * at the end of the grid is small. A section's K and V stay in L2 while its row tiles pass.
 */
__device__ __forceinline__ void locate(const struct mma_params &p, int *batch_head, int *row_tile)
{
    const int heads = p.a.batch * p.a.kv_heads * p.a.group;
    const int section_blocks = p.section * p.row_tiles;
    const int section = blockIdx.x / section_blocks;
    const int in_section = blockIdx.x % section_blocks;
    const int first = section * p.section;
    const int width = min(p.section, heads - first);
    *batch_head = first + in_section % width;
    *row_tile = p.row_tiles - 1 - in_section / width;
}

/* Q of the warp's rows, from shared memory into registers where the tile has room for it. */
template <typename Tile>
__device__ __forceinline__ void load_query(uint32_t shared, struct query_registers<Tile> *query)
{
    const struct query_shared from = {shared};
#pragma unroll
    for (int step = 0; step < Tile::D / 16; step++)
#pragma unroll
        for (int b = 0; b < Tile::BLOCKS; b++)
            query_fragment<Tile>(from, step, b, query->fragment[step][b]);
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::THREADS, 2)
    attention_mma_kernel(const __grid_constant__ struct mma_params p, float scale_log2)
{
    extern __shared__ __align__(256) unsigned char shared[];
    const struct attention &a = p.a;
    const int warp = threadIdx.x / 32;
    int batch_head, row_tile;

    locate(p, &batch_head, &row_tile);
    const int batch = batch_head / (a.kv_heads * a.group);
    const int head = batch_head % (a.kv_heads * a.group);
    const int kv_head = head / a.group;
    const int block_row = row_tile * Tile::ROWS;
    const int block_rows = min(Tile::ROWS, a.seqlen_q - block_row);
    const int warp_row = block_row + warp * Tile::WARP_ROWS;

    struct row_limits<Tile> limits;
    for (int b = 0; b < Tile::BLOCKS; b++)
        for (int half = 0; half < 2; half++)
            limits.keys[b][half] =
                visible_keys(a, warp_row + b * 16 + half * 8 + threadIdx.x % 32 / 4);
    limits.warp_least = visible_keys(a, warp_row);
    limits.warp_most = warp_row < a.seqlen_q ? visible_keys(a, warp_row + Tile::WARP_ROWS - 1) : 0;

    struct key_range range = keys_of(a, batch, kv_head);
    range.first = 0;
    range.step = 1;
    range.n_tiles = (visible_keys(a, block_row + block_rows - 1) + Tile::KEYS - 1) / Tile::KEYS;

    const uint32_t query_address = ptx::shared_address(shared);
    const uint32_t warp_query = query_address + warp * Tile::WARP_ROWS * Tile::ROW_BYTES;
    const struct key_ring ring = {query_address + Tile::QUERY_BYTES, (int)threadIdx.x, 1};

    copy_rows<Tile::D, Tile::ROWS, Tile::THREADS>(
        query_address,
        a.q.data + batch * a.q.batch_stride + head * a.q.head_stride + block_row * a.q.row_stride,
        a.q.row_stride, block_rows, threadIdx.x);
    fill_ring<Tile>(ring, range);

    struct softmax_state<Tile> state;
    clear_state(state);
    if constexpr (Tile::D == 64) {
        struct query_registers<Tile> query;
        wait_for_item<Tile>(ring);
        load_query(warp_query, &query);
        walk_keys<Tile>(ring, range, query, limits, scale_log2, state);
    } else {
        walk_keys<Tile>(ring, range, query_shared{warp_query}, limits, scale_log2, state);
    }
    finish_sums(state);

    /* O is staged over Q: with no key tile at all its copy may still be on the way. */
    ptx::cp_async_wait<0>();
    __syncthreads();
    char *const o = a.o.data + batch * a.o.batch_stride + head * a.o.head_stride;
    store_rows<Tile>(shared + warp * Tile::WARP_ROWS * Tile::ROW_BYTES, state, [&](int row) {
        return warp_row + row < a.seqlen_q ? o + (warp_row + row) * a.o.row_stride : NULL;
    });
}

/* Less than half of the smallest L2 among the targets, 40 MB: Q, O and the next section pass too.
 */
constexpr int64_t SECTION_BYTES = 16 << 20;

int64_t row_tiles(const struct attention_sizes *p)
{
    const int64_t rows = throughput_tile<__half, 64>::ROWS;
    return (p->seqlen_q + rows - 1) / rows;
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    if (!attention_supports(p, device))
        return 0;
    const int64_t shared = p->head_dim == 64 ? shared_bytes<throughput_tile<__half, 64>>
                                             : shared_bytes<throughput_tile<__half, 128>>;
    return device->shared_bytes_optin >= shared && p->batch * p->heads <= INT32_MAX / row_tiles(p);
}

template <typename T, int D> enum kg_status prepare_tile()
{
    return allow_shared(attention_mma_kernel<throughput_tile<T, D>>,
                        shared_bytes<throughput_tile<T, D>>);
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? prepare_tile<__half, 64>() : prepare_tile<__half, 128>();
    return p->head_dim == 64 ? prepare_tile<__nv_bfloat16, 64>()
                             : prepare_tile<__nv_bfloat16, 128>();
}

template <typename T, int D>
enum kg_status launch_tile(const struct mma_params &params, float scale_log2, void *stream)
{
    using Tile = throughput_tile<T, D>;
    const int blocks = params.row_tiles * params.a.batch * params.a.kv_heads * params.a.group;
    return launch_kernel(attention_mma_kernel<Tile>, dim3(blocks), dim3(Tile::THREADS),
                         shared_bytes<Tile>, stream, params, scale_log2);
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    struct mma_params params;
    const enum kg_status status = read_attention(p, args, &params.a);
    if (status != KG_OK)
        return status;

    const int64_t group_bytes = p->seqlen_kv * p->head_dim * 2 * 2; /* K and V of a KV head */
    const int64_t kv_heads = SECTION_BYTES / group_bytes > 1 ? SECTION_BYTES / group_bytes : 1;
    const int64_t heads = kv_heads * params.a.group;
    const float scale_log2 = scale_log2_of(p);
    params.row_tiles = (int)row_tiles(p);
    params.section = (int)(heads < p->batch * p->heads ? heads : p->batch * p->heads);

    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? launch_tile<__half, 64>(params, scale_log2, args->stream)
                                 : launch_tile<__half, 128>(params, scale_log2, args->stream);
    return p->head_dim == 64 ? launch_tile<__nv_bfloat16, 64>(params, scale_log2, args->stream)
                             : launch_tile<__nv_bfloat16, 128>(params, scale_log2, args->stream);
}

} // namespace attention_fwd_mma

using namespace attention_fwd_mma;

extern "C" const struct kg_kernel kg_attention_fwd_mma =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_mma");
