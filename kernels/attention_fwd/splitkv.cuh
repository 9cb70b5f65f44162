/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splitkv.cuh: a block's share of a row tile's keys, as attention_fwd_splitkv.cu describes it.
 * Where the keys lie is for a Range to say (key_walk.cuh).
 */
#ifndef KG_ATTENTION_FWD_SPLITKV_CUH
#define KG_ATTENTION_FWD_SPLITKV_CUH

#include "kernels/attention_fwd/combine.h"
#include "kernels/attention_fwd/key_walk.cuh"

struct splitkv_params {
    struct attention a;
    struct partials parts; /* with one split only `rows` and `splits` mean something */
    int64_t row_tiles;
};

/* What merge_groups() parks of a group: O by blocks of 8 columns, and one more for max and sum. */
template <typename Tile> constexpr int parked_bytes = (Tile::D / 8 + 1) * Tile::GROUP_THREADS * 16;

/* Folds the results of all groups into group 0, in order of their index. Each group parks its own
 * in its own ring, which it alone has read. The others may leave. */
template <typename Tile>
__device__ __forceinline__ void merge_groups(unsigned char *shared, const struct key_ring &ring,
                                             int group, float scale_log2,
                                             struct softmax_state<Tile> &state)
{
    constexpr int N = Tile::D / 8;
    static_assert(parked_bytes<Tile> <= Tile::RING_BYTES, "a group parks in its own ring");

    sync_group<Tile>(ring);
    if (group > 0) {
        float4 *const mine = (float4 *)(shared + group * Tile::RING_BYTES) + ring.thread;
#pragma unroll
        for (int n = 0; n < N; n++)
            mine[n * Tile::GROUP_THREADS] = make_float4(state.out[0][n][0], state.out[0][n][1],
                                                        state.out[0][n][2], state.out[0][n][3]);
        mine[N * Tile::GROUP_THREADS] =
            make_float4(state.max[0][0], state.max[0][1], state.sum[0][0], state.sum[0][1]);
    }
    __syncthreads();
    if (group > 0)
        return;

    for (int other = 1; other < Tile::GROUPS; other++) {
        const float4 *const theirs = (float4 *)(shared + other * Tile::RING_BYTES) + ring.thread;
        const float4 stats = theirs[N * Tile::GROUP_THREADS];
        const float their_max[2] = {stats.x, stats.y};
        const float their_sum[2] = {stats.z, stats.w};
        float ours[2], other_scale[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float max = fmaxf(state.max[0][half], their_max[half]);
            const float zero = finite_maximum(max);
            ours[half] = ptx::exp2_approx((state.max[0][half] - zero) * scale_log2);
            other_scale[half] = ptx::exp2_approx((their_max[half] - zero) * scale_log2);
            state.max[0][half] = max;
            state.sum[0][half] =
                state.sum[0][half] * ours[half] + their_sum[half] * other_scale[half];
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            const float4 out = theirs[n * Tile::GROUP_THREADS];
            state.out[0][n][0] = state.out[0][n][0] * ours[0] + out.x * other_scale[0];
            state.out[0][n][1] = state.out[0][n][1] * ours[0] + out.y * other_scale[0];
            state.out[0][n][2] = state.out[0][n][2] * ours[1] + out.z * other_scale[1];
            state.out[0][n][3] = state.out[0][n][3] * ours[1] + out.w * other_scale[1];
        }
    }
}

/* Leaves the warp's rows in the workspace. `row` is the warp's first, among all rows of the
 * problem; `count` of them exist. */
template <typename Tile>
__device__ __forceinline__ void store_partials(const struct partials &parts, int split, int64_t row,
                                               int count, const struct softmax_state<Tile> &state)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int in_warp = half * 8 + lane / 4;
        const int64_t at = split * parts.total_rows + row + in_warp;
        if (in_warp >= count)
            continue;
        float2 *const out = (float2 *)(parts.out + at * Tile::D) + lane % 4;
#pragma unroll
        for (int n = 0; n < Tile::D / 8; n++)
            out[n * 4] = make_float2(state.out[0][n][2 * half], state.out[0][n][2 * half + 1]);
        if (lane % 4 == 0)
            parts.stats[at] = make_float2(state.max[0][half], state.sum[0][half]);
    }
}

/* A block's work. problem_of(batch) is p.a, with as many keys as that batch has; range_of(batch,
 * KV head) the range of all keys, of which the block takes its share. */
template <typename Tile, typename ProblemOf, typename RangeOf>
__device__ __forceinline__ void walk_split(const struct splitkv_params &p, float scale_log2,
                                           ProblemOf problem_of, RangeOf range_of)
{
    extern __shared__ __align__(256) unsigned char shared[];
    const int group = threadIdx.x / Tile::GROUP_THREADS;
    const int thread = threadIdx.x % Tile::GROUP_THREADS;
    const int warp = thread / 32;

    /* Splits of a tile side by side; the last row tiles, which see the most keys, first. */
    const int split = blockIdx.x % p.parts.splits;
    const int tile = blockIdx.x / p.parts.splits;
    const int batch_head = tile % (p.a.batch * p.a.kv_heads);
    const int row_tile = (int)p.row_tiles - 1 - tile / (p.a.batch * p.a.kv_heads);
    const int batch = batch_head / p.a.kv_heads;
    const int kv_head = batch_head % p.a.kv_heads;
    const int rows = p.parts.rows;
    const int block_row = row_tile * Tile::ROWS;
    const int last_row = min(block_row + Tile::ROWS, rows) - 1;
    const int warp_row = block_row + warp * Tile::WARP_ROWS;
    const int warp_rows = min(Tile::WARP_ROWS, rows - warp_row);
    const struct attention &a = problem_of(batch);

    struct row_limits<Tile> limits;
    for (int half = 0; half < 2; half++)
        limits.keys[0][half] =
            visible_keys(a, (warp_row + half * 8 + threadIdx.x % 32 / 4) / a.group);
    limits.warp_least = visible_keys(a, warp_row / a.group);
    limits.warp_most = warp_rows > 0 ? visible_keys(a, (warp_row + warp_rows - 1) / a.group) : 0;

    const int n_tiles = (visible_keys(a, last_row / a.group) + Tile::KEYS - 1) / Tile::KEYS;
    const int split_first = (int)((int64_t)n_tiles * split / p.parts.splits);
    const int split_tiles = (int)((int64_t)n_tiles * (split + 1) / p.parts.splits) - split_first;
    auto range = range_of(batch, kv_head);
    range.first = split_first + group;
    range.step = Tile::GROUPS;
    range.n_tiles = (split_tiles - group + Tile::GROUPS - 1) / Tile::GROUPS;

    const struct key_ring ring = {ptx::shared_address(shared) + group * Tile::RING_BYTES, thread,
                                  1 + group};
    fill_ring<Tile>(ring, range);

    struct query_registers<Tile> query;
    struct softmax_state<Tile> state;
    load_packed_query(a, batch, kv_head, warp_row, rows, &query);
    clear_state(state);
    walk_keys<Tile>(ring, range, query, limits, scale_log2, state);
    merge_groups(shared, ring, group, scale_log2, state);
    if (group > 0)
        return;

    finish_sums(state);
    if (p.parts.splits > 1) {
        store_partials(p.parts, split, (int64_t)batch_head * rows + warp_row, warp_rows, state);
        return;
    }
    static_assert(Tile::QUERY_BYTES <= Tile::RING_BYTES, "O is staged in the ring of group 0");
    unsigned char *const staging = shared + warp * Tile::WARP_ROWS * Tile::ROW_BYTES;
    store_rows<Tile>(staging, state, [&](int row) {
        return row < warp_rows ? packed_row(a.o, a.group, batch, kv_head, warp_row + row) : NULL;
    });
}

#endif
