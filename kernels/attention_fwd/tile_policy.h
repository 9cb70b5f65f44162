/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_policy.h: the tile sizes of the attention kernels, and why.
 *
 * A tile is worked on by a group of `WARPS` warps, each owning `BLOCKS` 16-row blocks of the score
 * matrix. Keys come `KEYS` at a time through a ring of `STAGES` slots in shared memory; K and V of
 * a key tile take one slot each. `GROUPS` groups of a block share its query rows and divide its
 * keys.
 */
#ifndef KG_ATTENTION_FWD_TILE_POLICY_H
#define KG_ATTENTION_FWD_TILE_POLICY_H

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

#endif
