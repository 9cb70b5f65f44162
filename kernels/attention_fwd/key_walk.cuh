/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_walk.cuh: the loop of FlashAttention-2 for one group of warps.
 *
 * The group holds ROWS query rows and walks key tiles of KEYS keys. Per tile: S = Q K^T, softmax
 * against a running row maximum, O += P V. Only O, the maximum and the sum of a row outlive a tile.
 * K and V pass through a ring of slots in shared memory, in the order K0 V0 K1 V1 ..., filled by
 * cp.async STAGES - 1 items ahead of their use.
 *
 * Layouts. A tile in shared memory is rows of ROW_BYTES bytes; the 16-byte chunk c of row r lies at
 * chunk c ^ (r % 8), so that ldmatrix (8 rows, one chunk) and cp.async (one row, 8 chunks) both
 * touch all 32 banks. Fragments are those of ptx.cuh: of a 16x8 block of S or O a thread holds
 * the rows lane / 4 and lane / 4 + 8 and the columns 2 (lane % 4) and the next; [half] names the
 * row. The accumulator layout of S is the A-operand layout of P, so P never leaves the registers.
 */
#ifndef KG_ATTENTION_FWD_KEY_WALK_CUH
#define KG_ATTENTION_FWD_KEY_WALK_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/attention_fwd/problem.cuh"

#include <math.h>
#include <stdint.h>

/*
 * The tile sizes, and why.
 *
 * A tile is worked on by a group of `WARPS` warps, each owning `BLOCKS` 16-row blocks of the score
 * matrix. Keys come `KEYS` at a time through a ring of `STAGES` slots in shared memory; K and V of
 * a key tile take one slot each. `GROUPS` groups of a block share its query rows and divide its
 * keys.
 */
template <typename T_, int D_, int BLOCKS_, int WARPS_, int GROUPS_, int KEYS_, int STAGES_>
struct tile {
    using T = T_; /* __half or __nv_bfloat16 */
    static constexpr int D = D_;
    static constexpr int BLOCKS = BLOCKS_;
    static constexpr int WARPS = WARPS_;
    static constexpr int GROUPS = GROUPS_;
    static constexpr int KEYS = KEYS_;
    static constexpr int STAGES = STAGES_;
    static constexpr bool READ_ONCE = false; /* no other block reads the same keys */

    static constexpr int GROUP_THREADS = 32 * WARPS;
    static constexpr int THREADS = GROUP_THREADS * GROUPS;
    static constexpr int WARP_ROWS = 16 * BLOCKS;
    static constexpr int ROWS = WARP_ROWS * WARPS;
    static constexpr int ROW_BYTES = 2 * D;
    static constexpr int SLOT_BYTES = KEYS * ROW_BYTES;
    static constexpr int RING_BYTES = STAGES * SLOT_BYTES;
    static constexpr int RINGS_BYTES = GROUPS * RING_BYTES;
    static constexpr int QUERY_BYTES = ROWS * ROW_BYTES; /* Q of the tile, and O */

    static_assert(D == 64 || D == 128, "the swizzle wants rows of 128 or 256 bytes");
    static_assert(KEYS % 16 == 0, "P V takes keys in steps of 16");
    static_assert(STAGES >= 2, "one slot is read while another is filled");
};

/*
 * Many rows: 128 rows by 4 warps. A warp of 32 rows uses every K and V fragment twice; with 16 rows
 * ldmatrix would need the whole shared-memory bandwidth just to feed mma.sync. Two blocks fit a
 * multiprocessor of every target by registers (255 a thread). The rings are as deep as two blocks
 * in 164 KB (sm_80, D = 128) and in 100 KB (sm_89, D = 64) allow.
 */
template <typename T, int D> using throughput_tile = tile<T, D, 2, 4, 1, 64, D == 64 ? 4 : 3>;

/*
 * Up to 16 rows, decode: the rows fit one mma, so nothing is shared between warps, and each warp is
 * a group that streams keys of its own without any block-wide barrier. Slots of 8 KB, two of three
 * in flight: 64 KB a block and two blocks a multiprocessor (one on sm_80, sm_89) is several times
 * what bandwidth times latency asks for.
 */
template <typename T, int D> using decode_tile = tile<T, D, 1, 1, 4, 4096 / D, 3>;

/*
 * Few blocks of many rows: 64 rows, and 4 (D = 64) or 2 groups walk the keys side by side, so a
 * block has warps enough to hide latency where the grid has too few blocks to do so. 16 warps leave
 * 128 registers a thread, which hold S of 32 keys beside O and Q at D = 64; D = 128 outgrows them.
 */
template <typename T, int D> using wide_tile = tile<T, D, 1, 4, 256 / D, D / 2, D == 64 ? 6 : 3>;

/* The keys of one group: the tiles first, first + step, ..., n_tiles of them. */
struct key_range {
    const char *k, *v;          /* key 0 of this KV head */
    int64_t k_stride, v_stride; /* bytes from a key to the next */
    int n_keys;                 /* keys from here on do not exist and are read as zeros */
    int first, step, n_tiles;   /* in tiles */
};

/* The keys of a KV head; which tiles of them is for the caller to say. */
__device__ __forceinline__ struct key_range keys_of(const struct attention &a, int batch,
                                                    int kv_head)
{
    struct key_range range;
    range.k = a.k.data + batch * a.k.batch_stride + kv_head * a.k.head_stride;
    range.v = a.v.data + batch * a.v.batch_stride + kv_head * a.v.head_stride;
    range.k_stride = a.k.row_stride;
    range.v_stride = a.v.row_stride;
    range.n_keys = a.seqlen_kv;
    return range;
}

/* Where the group keeps its ring, and who takes part. */
struct key_ring {
    uint32_t shared; /* RING_BYTES bytes, aligned to 256 */
    int thread;      /* index in the group */
    int barrier;     /* named barrier of the group, unused when it is one warp */
};

/* Q of a warp's rows, as A operands: in registers, or in shared memory where registers are short.
 */
template <typename Tile> struct query_registers {
    uint32_t fragment[Tile::D / 16][Tile::BLOCKS][4];
};
struct query_shared {
    uint32_t shared; /* the warp's first row, in the swizzled layout */
};

/* Running softmax of a thread's part of its rows. p = 2^(scale_log2 * (s - max)). */
template <typename Tile> struct softmax_state {
    float max[Tile::BLOCKS][2]; /* -inf while the row has seen no key */
    float sum[Tile::BLOCKS][2]; /* of this thread's columns only, until finish_sums() */
    float out[Tile::BLOCKS][Tile::D / 8][4];
};

/* Keys that the thread's rows see. The warp's least and most decide what a whole tile needs: a
 * mask, nothing, or no work at all. */
template <typename Tile> struct row_limits {
    int keys[Tile::BLOCKS][2];
    int warp_least, warp_most;
};

template <int ROW_BYTES> __device__ __forceinline__ uint32_t swizzled(int row, int chunk)
{
    return (uint32_t)(row * ROW_BYTES + ((chunk ^ (row & 7)) << 4));
}

/* Copies ROWS rows of a tile to shared memory; rows from `valid` on are zero-filled. valid >= 1. */
template <int D, int ROWS, int THREADS, bool ONCE = false>
__device__ __forceinline__ void copy_rows(uint32_t shared, const char *global, int64_t stride,
                                          int valid, int thread)
{
    constexpr int CHUNKS = D / 8;
    constexpr int STEP = THREADS / CHUNKS; /* rows a pass */
    static_assert(STEP >= 1 && ROWS % STEP == 0, "threads must cover whole rows");
    const int row = thread / CHUNKS;
    const int chunk = thread % CHUNKS;
    const uint32_t to = swizzled<2 * D>(row, chunk);
    const char *const from = global + row * stride + chunk * 16;

    if (valid >= ROWS) {
#pragma unroll
        for (int r = 0; r < ROWS; r += STEP) {
            const uint32_t at = shared + (to ^ ((r & 7) << 4)) + r * 2 * D;
            if (ONCE)
                ptx::cp_async_16_once(at, from + r * stride);
            else
                ptx::cp_async_16(at, from + r * stride);
        }
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; r += STEP) {
            const bool exists = row + r < valid;
            ptx::cp_async_16_zfill(shared + (to ^ ((r & 7) << 4)) + r * 2 * D,
                                   exists ? from + r * stride : global, exists);
        }
    }
}

/* Starts the copy of item `item` (K of a tile, then its V) and closes one cp.async group, empty
 * when the range has no such item: the number of groups is what wait_for_item() counts. A range of
 * another kind, of which a Range is one, has its own. */
template <typename Tile>
__device__ __forceinline__ void fetch_item(const struct key_ring &ring,
                                           const struct key_range &range, int item, int slot)
{
    if (item / 2 < range.n_tiles) {
        const bool is_v = item % 2 != 0;
        const int key = (range.first + item / 2 * range.step) * Tile::KEYS;
        const int64_t stride = is_v ? range.v_stride : range.k_stride;
        copy_rows<Tile::D, Tile::KEYS, Tile::GROUP_THREADS, Tile::READ_ONCE>(
            ring.shared + slot * Tile::SLOT_BYTES, (is_v ? range.v : range.k) + key * stride,
            stride, range.n_keys - key, ring.thread);
    }
    ptx::cp_async_commit();
}

/* Fills all slots but one. Copies started before it complete with the first item. */
template <typename Tile, typename Range>
__device__ __forceinline__ void fill_ring(const struct key_ring &ring, const Range &range)
{
#pragma unroll
    for (int item = 0; item < Tile::STAGES - 1; item++)
        fetch_item<Tile>(ring, range, item, item);
}

template <typename Tile> __device__ __forceinline__ void sync_group(const struct key_ring &ring)
{
    if (Tile::WARPS == 1)
        __syncwarp();
    else
        ptx::barrier_sync(ring.barrier, Tile::GROUP_THREADS);
}

/* Returns when the oldest item in flight is readable by the whole group, which also means that the
 * whole group is done with the item before it. */
template <typename Tile> __device__ __forceinline__ void wait_for_item(const struct key_ring &ring)
{
    ptx::cp_async_wait<Tile::STAGES - 2>();
    sync_group<Tile>(ring);
}

/* Address of the 16x16 block at the tile's origin for ldmatrix.x4; others lie at a multiple of 16
 * rows down and, XORed, an even chunk across. A: row halves first, then column halves. */
template <int ROW_BYTES> __device__ __forceinline__ uint32_t lane_rows_first(int lane)
{
    return swizzled<ROW_BYTES>(lane % 16, lane / 16);
}

/* The same for K: column halves first, so that registers 0, 1 and 2, 3 are two B operands. */
template <int ROW_BYTES> __device__ __forceinline__ uint32_t lane_columns_first(int lane)
{
    return swizzled<ROW_BYTES>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

template <typename Tile>
__device__ __forceinline__ void query_fragment(const struct query_registers<Tile> &query, int step,
                                               int block, uint32_t (&a)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        a[i] = query.fragment[step][block][i];
}

template <typename Tile>
__device__ __forceinline__ void query_fragment(const struct query_shared &query, int step,
                                               int block, uint32_t (&a)[4])
{
    const uint32_t lane = lane_rows_first<Tile::ROW_BYTES>(threadIdx.x % 32);
    ptx::ldmatrix_x4(a, ((query.shared + lane) ^ (step << 5)) + block * 16 * Tile::ROW_BYTES);
}

/* Packed rows of Q from `row` on straight from global memory: they are too small to be worth a
 * detour, and the ring is being filled meanwhile. Rows from `rows` on do not exist and are zero. */
template <typename Tile>
__device__ __forceinline__ void load_packed_query(const struct attention &a, int batch, int kv_head,
                                                  int row, int rows,
                                                  struct query_registers<Tile> *query)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int at = row + half * 8 + lane / 4;
        const bool exists = at < rows;
        const char *const from =
            packed_row(a.q, a.group, batch, kv_head, exists ? at : 0) + lane % 4 * 4;
#pragma unroll
        for (int step = 0; step < Tile::D / 16; step++)
#pragma unroll
            for (int columns = 0; columns < 2; columns++)
                query->fragment[step][0][columns * 2 + half] =
                    exists ? *(const uint32_t *)(from + step * 32 + columns * 16) : 0u;
    }
}

/* S = Q K^T for one key tile. */
template <typename Tile, typename Query>
__device__ __forceinline__ void score_tile(const Query &query, uint32_t k_slot,
                                           float (&s)[Tile::BLOCKS][Tile::KEYS / 8][4])
{
    const uint32_t k = k_slot + lane_columns_first<Tile::ROW_BYTES>(threadIdx.x % 32);

#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int n = 0; n < Tile::KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[b][n][i] = 0.0f;

#pragma unroll
    for (int step = 0; step < Tile::D / 16; step++) {
        uint32_t a[Tile::BLOCKS][4];
#pragma unroll
        for (int b = 0; b < Tile::BLOCKS; b++)
            query_fragment<Tile>(query, step, b, a[b]);
#pragma unroll
        for (int n = 0; n < Tile::KEYS / 16; n++) {
            uint32_t keys[4];
            ptx::ldmatrix_x4(keys, (k ^ (step << 5)) + n * 16 * Tile::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < Tile::BLOCKS; b++) {
                ptx::mma_m16n8k16(s[b][2 * n], a[b], keys[0], keys[1], typename Tile::T());
                ptx::mma_m16n8k16(s[b][2 * n + 1], a[b], keys[2], keys[3], typename Tile::T());
            }
        }
    }
}

/* Hides the keys that a row does not see. `key` is the tile's first. */
template <typename Tile>
__device__ __forceinline__ void mask_tile(float (&s)[Tile::BLOCKS][Tile::KEYS / 8][4], int key,
                                          const struct row_limits<Tile> &limits)
{
    const int first = key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int n = 0; n < Tile::KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (first + n * 8 + i % 2 >= limits.keys[b][i / 2])
                    s[b][n][i] = -INFINITY;
}

/* A row's elements lie in four neighbouring lanes. */
__device__ __forceinline__ float row_maximum(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float row_total(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* -inf - -inf is NaN: a row that has seen no key takes 0 for its maximum and gets p = 0. */
__device__ __forceinline__ float finite_maximum(float max)
{
    return max == -INFINITY ? 0.0f : max;
}

/*
 * Turns S into P in place and updates the running maximum and sum.
 *
 * The maximum only keeps exponents in range, so it may lag: O is rescaled when the true maximum of
 * some row has grown by a factor of more than 2^8, not whenever it moved. P is then at most 2^8,
 * which fp16 holds at full precision, and after the first tiles the rescaling is skipped.
 * The maximum is taken off before the factor: product and sum in one would round the maximum's
 * product alone, and with products from 2^24 on that is a power of two too much or too little.
 */
template <typename Tile>
__device__ __forceinline__ void softmax_tile(float (&s)[Tile::BLOCKS][Tile::KEYS / 8][4],
                                             float scale_log2, struct softmax_state<Tile> &state)
{
    constexpr float LAG_LOG2 = 8.0f;
    float tile_max[Tile::BLOCKS][2];
    bool outgrown = false;

#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float max = fmaxf(s[b][0][2 * half], s[b][0][2 * half + 1]);
#pragma unroll
            for (int n = 1; n < Tile::KEYS / 8; n++)
                max = fmaxf(max, fmaxf(s[b][n][2 * half], s[b][n][2 * half + 1]));
            tile_max[b][half] = row_maximum(max);
            outgrown |= (tile_max[b][half] - state.max[b][half]) * scale_log2 > LAG_LOG2;
        }

    if (__any_sync(0xffffffffu, outgrown)) {
#pragma unroll
        for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float max = fmaxf(state.max[b][half], tile_max[b][half]);
                const float shrink =
                    ptx::exp2_approx((state.max[b][half] - finite_maximum(max)) * scale_log2);
                state.max[b][half] = max;
                state.sum[b][half] *= shrink;
#pragma unroll
                for (int n = 0; n < Tile::D / 8; n++) {
                    state.out[b][n][2 * half] *= shrink;
                    state.out[b][n][2 * half + 1] *= shrink;
                }
            }
    }

#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float max = finite_maximum(state.max[b][half]);
#pragma unroll
            for (int n = 0; n < Tile::KEYS / 8; n++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    s[b][n][i] = ptx::exp2_approx((s[b][n][i] - max) * scale_log2);
                    state.sum[b][half] += s[b][n][i];
                }
        }
}

/* O += P V for one key tile. */
template <typename Tile>
__device__ __forceinline__ void accumulate_tile(const float (&p)[Tile::BLOCKS][Tile::KEYS / 8][4],
                                                uint32_t v_slot, struct softmax_state<Tile> &state)
{
    using T = typename Tile::T;
    const uint32_t v = v_slot + lane_rows_first<Tile::ROW_BYTES>(threadIdx.x % 32);

#pragma unroll
    for (int step = 0; step < Tile::KEYS / 16; step++) {
        uint32_t a[Tile::BLOCKS][4];
#pragma unroll
        for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[b][i] = ptx::pack(p[b][2 * step + i / 2][i % 2 * 2],
                                    p[b][2 * step + i / 2][i % 2 * 2 + 1], T());
#pragma unroll
        for (int n = 0; n < Tile::D / 16; n++) {
            uint32_t values[4];
            ptx::ldmatrix_x4_trans(values, (v ^ (n << 5)) + step * 16 * Tile::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < Tile::BLOCKS; b++) {
                ptx::mma_m16n8k16(state.out[b][2 * n], a[b], values[0], values[1], T());
                ptx::mma_m16n8k16(state.out[b][2 * n + 1], a[b], values[2], values[3], T());
            }
        }
    }
}

template <typename Tile>
__device__ __forceinline__ void clear_state(struct softmax_state<Tile> &state)
{
#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            state.max[b][half] = -INFINITY;
            state.sum[b][half] = 0.0f;
        }
#pragma unroll
        for (int n = 0; n < Tile::D / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                state.out[b][n][i] = 0.0f;
    }
}

/* Walks the whole range. The caller has called fill_ring(). One wait, so one barrier, an item: the
 * slot that it frees is refilled at once, before the item's own work. */
template <typename Tile, typename Range, typename Query>
__device__ __forceinline__ void walk_keys(const struct key_ring &ring, const Range &range,
                                          const Query &query, const struct row_limits<Tile> &limits,
                                          float scale_log2, struct softmax_state<Tile> &state)
{
    constexpr int AHEAD = Tile::STAGES - 1;
    int slot = 0;

    for (int t = 0; t < range.n_tiles; t++) {
        const int key = (range.first + t * range.step) * Tile::KEYS;
        const bool seen = key < limits.warp_most;
        float s[Tile::BLOCKS][Tile::KEYS / 8][4];

        wait_for_item<Tile>(ring);
        fetch_item<Tile>(ring, range, 2 * t + AHEAD, slot == 0 ? AHEAD : slot - 1);
        if (seen) {
            score_tile<Tile>(query, ring.shared + slot * Tile::SLOT_BYTES, s);
            if (key + Tile::KEYS > limits.warp_least)
                mask_tile<Tile>(s, key, limits);
            softmax_tile<Tile>(s, scale_log2, state);
        }
        slot = slot == AHEAD ? 0 : slot + 1;

        wait_for_item<Tile>(ring);
        fetch_item<Tile>(ring, range, 2 * t + 1 + AHEAD, slot == 0 ? AHEAD : slot - 1);
        if (seen)
            accumulate_tile<Tile>(s, ring.shared + slot * Tile::SLOT_BYTES, state);
        slot = slot == AHEAD ? 0 : slot + 1;
    }
}

/* Adds up the row sums over the four lanes of a row. Once, after the last tile. */
template <typename Tile>
__device__ __forceinline__ void finish_sums(struct softmax_state<Tile> &state)
{
#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            state.sum[b][half] = row_total(state.sum[b][half]);
}

/* O / sum. A row that saw no key has sum 0 and output 0; a NaN stays one. */
__device__ __forceinline__ float reciprocal_or_zero(float sum)
{
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/*
 * Normalises and stores the warp's rows, 16 bytes a lane, by way of the warp's own WARP_ROWS *
 * ROW_BYTES bytes at `staging`, aligned to 256. `row_address(row)` gives where the row of this
 * warp goes, NULL where it does not exist. finish_sums() has been called.
 */
template <typename Tile, typename RowAddress>
__device__ __forceinline__ void
store_rows(unsigned char *staging, const struct softmax_state<Tile> &state, RowAddress row_address)
{
    constexpr int CHUNKS = Tile::D / 8;
    const int lane = threadIdx.x % 32;

#pragma unroll
    for (int b = 0; b < Tile::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float scale = reciprocal_or_zero(state.sum[b][half]);
            const int row = b * 16 + half * 8 + lane / 4;
#pragma unroll
            for (int n = 0; n < CHUNKS; n++) {
                const uint32_t at = swizzled<Tile::ROW_BYTES>(row, n) + lane % 4 * 4;
                *(uint32_t *)(staging + at) =
                    ptx::pack(state.out[b][n][2 * half] * scale,
                              state.out[b][n][2 * half + 1] * scale, typename Tile::T());
            }
        }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Tile::WARP_ROWS; i += 32 / CHUNKS) {
        const int row = i + lane / CHUNKS;
        const int chunk = lane % CHUNKS;
        char *const to = row_address(row);
        if (to != NULL)
            *(uint4 *)(to + chunk * 16) =
                *(const uint4 *)(staging + swizzled<Tile::ROW_BYTES>(row, chunk));
    }
}

#endif
