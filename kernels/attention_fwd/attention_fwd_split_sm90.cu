/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_split_sm90: attention forward on Hopper for a few rows on many keys: chunked
 * prefill, decode with several queries or many heads a KV head, and grids of uneven waves.
 *
 * Regime     what costs least here by the model of policy_sm90.cuh; D up to 256
 * Rows       the query heads of a KV head are packed into tiles of rows, so that K and V are read
 *            once for all of them: row r is query r / group of head r % group
 * Blocks     one a multiprocessor. All key tiles of all row tiles are one list, of which each block
 *            takes an equal share: a block ends one row tile within its keys, and begins another
 * Parts      a block that sees a row tile's keys in part leaves O, reference and sum of the rows in
 *            the workspace, at most twice; a second kernel adds them up in the order of the keys
 * Pipeline   that of attention_fwd_long, with one or two warpgroups of 64 rows, as the rows need
 * Resources  240 registers a consumer, no spills; 208 to 225 KB of shared memory
 * Measured   H200, bf16: 32 heads on 8, 256 queries on 16384 keys, D = 128, causal 109 us, 0.53 of
 *            cuDNN; 16 times 48 heads on 1, one query on 4096 keys 19.2 us, 0.94
 */
#include "kernels/attention_fwd/key_stream_sm90.cuh"
#include "kernels/attention_fwd/policy_sm90.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_split_sm90
{

struct split_params {
    struct attention_sm90 a;
    int chunks; /* of 16 bytes, a row of Q or O */
    struct split_plan plan;
    int kv_heads;
    struct tensor_view q, o;
    float *out;    /* [block][2][tile_rows][D], relative to the reference, not normalised */
    float2 *stats; /* [block][2][tile_rows]: reference, sum; -inf: no key, and no `out` */
};

/* The first key tile of a block in the list of all. */
__device__ __forceinline__ int share_of(const struct split_plan &plan, int block)
{
    return (block * plan.share + min(block, plan.extra)) * plan.step;
}

/* The block whose share holds key tile `at`. */
__device__ __forceinline__ int block_of(const struct split_plan &plan, int at)
{
    const int step = at / plan.step, longer = plan.extra * (plan.share + 1);
    return step < longer ? step / (plan.share + 1) : plan.extra + (step - longer) / plan.share;
}

/* Key tiles of a row tile. */
__device__ __forceinline__ int key_tiles_of(const struct split_plan &plan, int t)
{
    return (t + 1 < plan.row_tiles ? plan.before[t + 1] : plan.tiles_a_head) - plan.before[t];
}

/* A share of the key tiles of a row tile: what comes first of `at` to `end` of the list. Only the
 * first one of a block is looked for. */
struct segment {
    int at;   /* in the list of all key tiles */
    int head; /* of the KV heads of all batches */
    int row_tile;
    int first, tiles; /* key tiles of the segment */
    bool whole;       /* they are all of the row tile */

    __device__ __forceinline__ segment(const struct split_plan &plan, int from, int end) : at(from)
    {
        head = at / plan.tiles_a_head;
        first = at - head * plan.tiles_a_head;
        row_tile = 0;
        for (int half = 128; half > 0; half /= 2)
            if (row_tile + half < plan.row_tiles && plan.before[row_tile + half] <= first)
                row_tile += half;
        first -= plan.before[row_tile];
        end_at(plan, end);
    }
    __device__ __forceinline__ void next(const struct split_plan &plan, int end)
    {
        at += tiles;
        first = 0;
        if (++row_tile == plan.row_tiles) {
            row_tile = 0;
            head++;
        }
        end_at(plan, end);
    }
    __device__ __forceinline__ void end_at(const struct split_plan &plan, int end)
    {
        const int all = key_tiles_of(plan, row_tile);
        tiles = min(all - first, end - at);
        whole = tiles == all;
    }
};

/* The first row of `out` and `stats` for what the block leaves of a segment. */
__device__ __forceinline__ int64_t part_of(const struct split_params &p, const struct segment &s)
{
    const int is_later = s.at > share_of(p.plan, blockIdx.x);
    return ((int64_t)blockIdx.x * 2 + is_later) * p.plan.tile_rows;
}

/* A packed row of a KV head, counted over all batches. */
__device__ __forceinline__ char *row_of_head(const struct split_params &p,
                                             const struct tensor_view &view, int head, int row)
{
    return packed_row(view, p.a.group, head / p.kv_heads, head % p.kv_heads, row);
}

template <typename Tile> struct shared_layout {
    static constexpr int Q = 0;
    static constexpr int K = Q + Tile::Q_BYTES;
    static constexpr int V = K + Tile::K_STAGES * Tile::KV_BYTES;
    static constexpr int K_RING = V + Tile::V_STAGES * Tile::KV_BYTES;
    static constexpr int V_RING = K_RING + ring<Tile::K_STAGES>::BYTES;
    static constexpr int BYTES = V_RING + ring<Tile::V_STAGES>::BYTES;
};

template <typename Tile>
__device__ __forceinline__ void produce(const struct split_params &p, key_stream<Tile> &keys,
                                        const CUtensorMap &map_k, const CUtensorMap &map_v)
{
    const int begin = share_of(p.plan, blockIdx.x), end = share_of(p.plan, blockIdx.x + 1);
    for (segment s(p.plan, begin, end); s.at < end; s.next(p.plan, end)) {
        const int kv_head = s.head % p.kv_heads, batch = s.head / p.kv_heads;
        for (int j = s.first; j < s.first + s.tiles; j++) {
            load_keys<Tile>(keys.k, keys.k_ring, keys.k_at, map_k, j * Tile::KEYS, kv_head, batch);
            load_keys<Tile>(keys.v, keys.v_ring, keys.v_at, map_v, j * Tile::KEYS, kv_head, batch);
        }
    }
}

/*
 * Calls visit(n, row, chunk, shared address) for the thread's share of the 16-byte chunks of a
 * warpgroup's 64 rows at `q`, COPIED of them: from the n-th of `first` on. No more at once, for
 * registers are short.
 */
template <typename Tile> constexpr int COPIES = Tile::PANELS * 4; /* of a thread */
template <typename Tile> constexpr int COPIED = COPIES<Tile> > 8 ? COPIES<Tile> / 2 : COPIES<Tile>;

template <typename Tile, typename Visit>
__device__ __forceinline__ void for_chunks(uint32_t q, int first, Visit visit)
{
    constexpr int CHUNKS = Tile::PANELS * 8;
#pragma unroll
    for (int n = 0; n < COPIED<Tile>; n++) {
        const int i = (first + n) * 128 + threadIdx.x % 128, row = i / CHUNKS, chunk = i % CHUNKS;
        visit(n, row, chunk,
              q + chunk / 8 * (Tile::ROWS * PANEL_ROW_BYTES) + row * PANEL_ROW_BYTES +
                  ((chunk ^ row) & 7) * 16);
    }
}

/* Q of the warpgroup's 64 rows, `row` and on; zeros for what does not exist. Between two barriers
 * of the warpgroup, since the one before may still be read. */
template <typename Tile>
__device__ __forceinline__ void load_rows(const struct split_params &p, uint32_t q, int head,
                                          int row, int barrier)
{
    const uint32_t sign = p.a.negative ? 0x80008000u : 0;
    ptx::barrier_sync(barrier, 128);
#pragma unroll 1
    for (int first = 0; first < COPIES<Tile>; first += COPIED<Tile>) {
        uint4 x[COPIED<Tile>];
        for_chunks<Tile>(q, first, [&](int n, int r, int chunk, uint32_t) {
            x[n] = make_uint4(0, 0, 0, 0);
            if (row + r < p.plan.rows && chunk < p.chunks)
                x[n] = ((const uint4 *)row_of_head(p, p.q, head, row + r))[chunk];
        });
        for_chunks<Tile>(q, first, [&](int n, int, int, uint32_t to) {
            ptx::store_shared_16(
                to, make_uint4(x[n].x ^ sign, x[n].y ^ sign, x[n].z ^ sign, x[n].w ^ sign));
        });
    }
    ptx::fence_async_shared();
    ptx::barrier_sync(barrier, 128);
}

/* Asks for Q of the next segment into the L2, 128 bytes a line, so that its loads are short. */
template <typename Tile>
__device__ __forceinline__ void prefetch_rows(const struct split_params &p, segment s, int w)
{
    s.next(p.plan, share_of(p.plan, blockIdx.x + 1));
    const int row = s.row_tile * p.plan.tile_rows + w * 64 + threadIdx.x % 64;
    if (s.tiles <= 0 || row >= p.plan.rows)
        return;
    const char *const q = row_of_head(p, p.q, s.head, row);
    for (int line = threadIdx.x % 128 / 64 * 8; line < p.chunks; line += 16)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(q + line * 16));
}

/* O of whole rows, by way of the place of Q. */
template <typename Tile>
__device__ __forceinline__ void store_rows(const struct split_params &p, uint32_t q, int head,
                                           int row, int barrier, const float (&o)[Tile::D / 2])
{
    ptx::barrier_sync(barrier, 128);
    stage_out(q, Tile::ROWS * PANEL_ROW_BYTES, o, typename Tile::T());
    ptx::barrier_sync(barrier, 128);
#pragma unroll 1
    for (int first = 0; first < COPIES<Tile>; first += COPIED<Tile>)
        for_chunks<Tile>(q, first, [&](int, int r, int chunk, uint32_t from) {
            if (row + r < p.plan.rows && chunk < p.chunks)
                ((uint4 *)row_of_head(p, p.o, head, row + r))[chunk] = ptx::load_shared_16(from);
        });
}

/* O of rows that see no key. */
template <typename Tile>
__device__ __forceinline__ void store_zeros(const struct split_params &p, int head, int row)
{
    for (int i = threadIdx.x % 128; i < 64 * p.chunks; i += 128) {
        const int r = row + i / p.chunks;
        if (r < p.plan.rows)
            ((uint4 *)row_of_head(p, p.o, head, r))[i % p.chunks] = make_uint4(0, 0, 0, 0);
    }
}

/* O of a part of the keys. `at` is the place of the warpgroup's first row. */
template <typename Tile>
__device__ __forceinline__ void leave_rows(const struct split_params &p, int64_t at, int rows,
                                           const float (&o)[Tile::D / 2],
                                           const struct softmax_rows &of)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = threadIdx.x % 128 / 32 * 16 + half * 8 + threadIdx.x % 32 / 4;
        if (row >= rows)
            continue;
        float2 *const to = (float2 *)(p.out + (at + row) * Tile::D) + threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < Tile::D / 8; n++)
            to[n * 4] = make_float2(o[4 * n + 2 * half], o[4 * n + 2 * half + 1]);
        if (threadIdx.x % 4 == 0)
            p.stats[at + row] = make_float2(of.reference[half], of.sum[half]);
    }
}

template <typename Tile>
__device__ __forceinline__ void consume(const struct split_params &p, key_stream<Tile> &keys,
                                        uint32_t base, float factor)
{
    constexpr int KEYS = Tile::KEYS;
    const int w = uniform(threadIdx.x / 128) - 1, barrier = 8 + w;
    const uint32_t q = base + w * 64 * PANEL_ROW_BYTES;
    const struct turns turns = {w, p.plan.consumers == 2};

    turns.begin();
    for (segment s(p.plan, share_of(p.plan, blockIdx.x), share_of(p.plan, blockIdx.x + 1));
         s.at < share_of(p.plan, blockIdx.x + 1);
         s.next(p.plan, share_of(p.plan, blockIdx.x + 1))) {
        const int row = s.row_tile * p.plan.tile_rows + w * 64, rows = min(64, p.plan.rows - row);
        const int seen = rows > 0 ? visible_keys(p.a, (row + rows - 1) / p.a.group) : 0;
        const int unmasked = uniform(visible_keys(p.a, row / p.a.group));
        const int mine = uniform(min(max((seen + KEYS - 1) / KEYS - s.first, 0), s.tiles));
        float o[Tile::D / 2], inverse[2];
        struct softmax_rows of;

        auto hide = [&](float(&t)[KEYS / 2], int j) {
            const int key = (s.first + j) * KEYS;
            if (key + KEYS > unmasked) {
                const int r = row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
                const int limit[2] = {visible_keys(p.a, r / p.a.group),
                                      visible_keys(p.a, (r + 8) / p.a.group)};
                mask_tile(t, limit, key);
            }
        };

        if (mine > 0) {
            load_rows<Tile>(p, q, s.head, row, barrier);
            prefetch_rows<Tile>(p, s, w);
            walk_stream<Tile>(
                keys, turns, q, mine, factor, o, of, hide, []() {}, []() {});
            pass_tiles(keys, turns, s.tiles - mine);
            add_up_lanes(of);
            if (s.whole) {
                invert_sums(of, inverse);
                scale_rows(o, inverse);
                store_rows<Tile>(p, q, s.head, row, barrier, o);
            } else {
                leave_rows<Tile>(p, part_of(p, s) + w * 64, rows, o, of);
            }
        } else if (s.whole) {
            pass_tiles(keys, turns, s.tiles);
            store_zeros<Tile>(p, s.head, row);
        } else {
            pass_tiles(keys, turns, s.tiles);
            if ((int)(threadIdx.x % 128) < rows)
                p.stats[part_of(p, s) + w * 64 + threadIdx.x % 128] = make_float2(-INFINITY, 0.0f);
        }
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    attention_split_kernel(const __grid_constant__ CUtensorMap map_k,
                           const __grid_constant__ CUtensorMap map_v,
                           const __grid_constant__ struct split_params p, float factor)
{
    using layout = shared_layout<Tile>;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    key_stream<Tile> keys = key_stream_at<Tile>(base + layout::K, base + layout::V,
                                                base + layout::K_RING, base + layout::V_RING);

    let_dependents_start();
    if (threadIdx.x == 0) {
        keys.k_ring.init(4 * p.plan.consumers);
        keys.v_ring.init(4 * p.plan.consumers);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (uniform(threadIdx.x / 128) == 0) {
        ptx::registers_decrease<Tile::PRODUCER_REGISTERS>();
        if (threadIdx.x / 32 == 0 && ptx::elect_lane())
            produce<Tile>(p, keys, map_k, map_v);
    } else {
        ptx::registers_increase<Tile::CONSUMER_REGISTERS>();
        consume<Tile>(p, keys, base + layout::Q, factor);
    }
}

/* ---- adding up the parts ---- */

constexpr int COMBINE_WARPS = 8;

/* Where the parts of a row lie: the first one, and then at slot 0 of each next block. */
struct parts_of_row {
    int64_t first, next; /* rows of `out` */
    int count;
};

/*
 * The row tile that block `n` of the second kernel adds up, as one segment: the n-th, or, where
 * there are more of them than blocks of the first kernel, the one in which its block n ended.
 */
__device__ __forceinline__ segment row_tile_of(const struct split_params &p, int n)
{
    const int at = p.plan.items < p.plan.blocks ? n / p.plan.row_tiles * p.plan.tiles_a_head +
                                                      p.plan.before[n % p.plan.row_tiles]
                                                : share_of(p.plan, n + 1);
    return segment(p.plan, at, p.plan.tiles);
}

/* The parts of its rows: none if one block had it all, or if it is another's. */
__device__ __forceinline__ struct parts_of_row find_parts(const struct split_params &p,
                                                          const segment &s, int n, int row)
{
    const int begin = s.at - s.first;
    const int first = block_of(p.plan, begin),
              last = block_of(p.plan, begin + key_tiles_of(p.plan, s.row_tile) - 1);
    const int slot = share_of(p.plan, first) < begin;
    const bool is_mine = last > first && (p.plan.items < p.plan.blocks || first == n);
    return {((int64_t)first * 2 + slot) * p.plan.tile_rows + row,
            ((int64_t)first * 2 + 2) * p.plan.tile_rows + row, is_mine ? last - first + 1 : 0};
}

/* Adds up over the lanes of a warp. */
__device__ __forceinline__ float warp_total(float x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

/* `slices` warps a row, each with every slices-th part. */
template <typename T, int D>
__global__ void __launch_bounds__(32 * COMBINE_WARPS)
    combine_kernel(const __grid_constant__ struct split_params p, int slices)
{
    constexpr int PASSES = (D / 4 + 31) / 32; /* of 128 columns */
    __shared__ float4 of_slice[COMBINE_WARPS][PASSES * 32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp % slices;
    const segment s = row_tile_of(p, blockIdx.y);
    const int row = blockIdx.x * (COMBINE_WARPS / slices) + warp / slices;
    const int packed = s.row_tile * p.plan.tile_rows + row;
    const struct parts_of_row parts = find_parts(p, s, blockIdx.y, row);
    const bool exists = parts.count > 0 && row < p.plan.tile_rows && packed < p.plan.rows;
    const int count = exists ? parts.count : 0;
    auto row_of = [&](int i) {
        return i == 0 ? parts.first : parts.next + (int64_t)(i - 1) * 2 * p.plan.tile_rows;
    };
    /* Loads of the first parts are under way while the weights are found. */
    constexpr int AHEAD = 4;
    float4 sum[PASSES], x[AHEAD][PASSES];
    float2 stats = make_float2(-INFINITY, 0.0f);
    auto load = [&](int i, float4(&to)[PASSES]) {
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (i < count && pass * 32 + lane < D / 4)
                to[pass] = ((const float4 *)(p.out + row_of(i) * D))[pass * 32 + lane];
    };

    wait_for_predecessor();
    if (lane < count)
        stats = p.stats[row_of(lane)];
#pragma unroll
    for (int n = 0; n < AHEAD; n++)
        load(slice + n * slices, x[n]);
    float most = stats.x;
    for (int i = lane + 32; i < count; i += 32)
        most = fmaxf(most, p.stats[row_of(i)].x);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lanes));
    most = finite_reference(most);
    float total = ptx::exp2_approx(stats.x - most) * stats.y;
    for (int i = lane + 32; i < count; i += 32) {
        const float2 more = p.stats[row_of(i)];
        total += ptx::exp2_approx(more.x - most) * more.y;
    }
    total = warp_total(total);
    const float inverse = total == 0.0f ? 0.0f : 1.0f / total;
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++)
        sum[pass] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = slice; i < count; i += AHEAD * slices) {
#pragma unroll
        for (int n = 0; n < AHEAD; n++) {
            const int part = i + n * slices;
            const float reference = part < count ? p.stats[row_of(part)].x : -INFINITY;
            const float weight = ptx::exp2_approx(reference - most) * inverse;
#pragma unroll
            for (int pass = 0; pass < PASSES; pass++) {
                if (reference == -INFINITY) /* nothing was left */
                    continue;
                sum[pass].x = fmaf(x[n][pass].x, weight, sum[pass].x);
                sum[pass].y = fmaf(x[n][pass].y, weight, sum[pass].y);
                sum[pass].z = fmaf(x[n][pass].z, weight, sum[pass].z);
                sum[pass].w = fmaf(x[n][pass].w, weight, sum[pass].w);
            }
        }
#pragma unroll
        for (int n = 0; n < AHEAD; n++)
            load(i + (n + AHEAD) * slices, x[n]);
    }
    if (slices > 1) {
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            of_slice[warp][pass * 32 + lane] = sum[pass];
        __syncthreads();
    }
    if (!exists || slice > 0)
        return;
    char *const to = row_of_head(p, p.o, s.head, packed);
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        const int at = pass * 32 + lane;
        for (int other = 1; other < slices; other++) {
            const float4 x = of_slice[warp + other][at];
            sum[pass].x += x.x;
            sum[pass].y += x.y;
            sum[pass].z += x.z;
            sum[pass].w += x.w;
        }
        if (at < p.chunks * 2)
            ((uint2 *)to)[at] = make_uint2(ptx::pack(sum[pass].x, sum[pass].y, T()),
                                           ptx::pack(sum[pass].z, sum[pass].w, T()));
    }
}

/* ---- host ---- */

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_SPLIT;
}

uint64_t out_bytes(const struct split_plan &plan, int64_t d)
{
    return (uint64_t)(plan.blocks * 2) * (uint64_t)plan.tile_rows * (uint64_t)d * sizeof(float);
}

uint64_t plan_bytes(const struct split_plan &plan, int64_t d)
{
    if (plan.whole)
        return 0;
    return out_bytes(plan, d) +
           (uint64_t)(plan.blocks * 2) * (uint64_t)plan.tile_rows * sizeof(float2);
}

uint64_t workspace_bytes(const struct attention_sizes *p, const struct kg_device *device)
{
    return plan_bytes(plan_split(p, device->sm_count), tile_columns(p->head_dim));
}

struct prepare_tile {
    template <typename Tile> enum kg_status run()
    {
        return allow_shared(attention_split_kernel<Tile>, shared_layout<Tile>::BYTES);
    }
};

struct launch_tile {
    const struct attention_sizes *p;
    const struct kg_args *args;

    template <typename Tile> enum kg_status run()
    {
        struct split_params params;
        struct attention_maps maps;
        struct attention checked;
        int sm_count;
        enum kg_status status = read_attention_sm90(p, args, 64, Tile::KEYS, &maps, &params.a);
        if (status == KG_OK)
            status = read_attention(p, args, &checked);
        if (status == KG_OK)
            status = count_sms(&sm_count);
        if (status != KG_OK)
            return status;
        params.plan = plan_split(p, sm_count);
        if (args->workspace_bytes < plan_bytes(params.plan, Tile::D))
            return KG_BAD_ARGUMENT;
        params.chunks = (int)p->head_dim / 8;
        params.kv_heads = checked.kv_heads;
        params.q = checked.q;
        params.o = checked.o;
        params.out = (float *)args->workspace;
        params.stats = (float2 *)((char *)args->workspace + out_bytes(params.plan, Tile::D));
        status = launch_kernel(attention_split_kernel<Tile>, dim3((unsigned)params.plan.blocks),
                               dim3(128u * (unsigned)(params.plan.consumers + 1)),
                               shared_layout<Tile>::BYTES, args->stream, maps.k, maps.v, params,
                               factor_of(p));
        if (status != KG_OK || params.plan.whole || params.plan.blocks == 1)
            return status;
        const int per_block = COMBINE_WARPS / params.plan.slices;
        return launch_dependent_kernel(
            combine_kernel<typename Tile::T, Tile::D>,
            dim3((unsigned)((params.plan.tile_rows + per_block - 1) / per_block),
                 (unsigned)(params.plan.items < params.plan.blocks ? params.plan.items
                                                                   : params.plan.blocks - 1)),
            dim3(32 * COMBINE_WARPS), 0, args->stream, params, params.plan.slices);
    }
};

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? with_tile<split_tile>(p, prepare_tile()) : status;
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return with_tile<split_tile>(p, launch_tile{p, args});
}

} // namespace attention_fwd_split_sm90

using namespace attention_fwd_split_sm90;

extern "C" const struct kg_kernel kg_attention_fwd_split_sm90 =
    kernel_of<attention_sizes, supports, prepare, workspace_bytes, launch>(
        "attention_fwd", "attention_fwd_split_sm90");
