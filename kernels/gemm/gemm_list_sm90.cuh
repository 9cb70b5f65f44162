/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_list_sm90.cuh: the tiles of two products in one list, for a persistent kernel (sm_90a).
 *
 * The product with the longer tiles comes first, and each round of tiles goes the other way round,
 * so that a cluster that had a long one gets a short one next, or none.
 */
#ifndef KG_GEMM_LIST_SM90_CUH
#define KG_GEMM_LIST_SM90_CUH

#include "kernels/gemm/gemm_policy_sm90.h"
#include "kernels/gemm/gemm_raster.cuh"

namespace gemm_sm90
{

/* tiles_m: of a cluster's height. */
struct tile_list {
    int32_t tiles_m, tiles_n, blocks_k;
};

struct tile_lists {
    struct tile_list of[2];
    int32_t first; /* which of the two */
};

struct listed_tile {
    bool any;
    int which, m, n;
};

template <int GROUP>
__device__ __forceinline__ listed_tile tile_of(const tile_lists &lists, int round, int cluster,
                                               int clusters)
{
    const tile_list &first = lists.of[lists.first], &second = lists.of[1 - lists.first];
    const int tiles_first = first.tiles_m * first.tiles_n;
    int t = round * clusters + (round % 2 ? clusters - 1 - cluster : cluster);
    if (t >= tiles_first + second.tiles_m * second.tiles_n)
        return {false, 0, 0, 0};
    const bool in_first = t < tiles_first;
    t -= in_first ? 0 : tiles_first;
    const tile_place at = grouped<GROUP>(t, in_first ? first.tiles_m : second.tiles_m,
                                         in_first ? first.tiles_n : second.tiles_n);
    return {true, in_first ? lists.first : 1 - lists.first, at.m, at.n};
}

template <typename P> static struct tile_list list_of(int64_t m, int64_t n, int64_t k)
{
    return {(int32_t)gemm_blocks(m, P::BM * P::CLUSTER), (int32_t)gemm_blocks(n, P::BN),
            (int32_t)gemm_blocks(k, P::BK)};
}

/* Clocks of the busiest cluster, nearly: its share of all, or the longest tile. */
template <typename P> static int64_t clocks_of(const struct tile_lists &lists, int64_t clusters)
{
    int64_t all = 0, longest = 0;
    for (int i = 0; i < 2; i++) {
        const struct tile_list &list = lists.of[i];
        const int64_t tiles = (int64_t)list.tiles_m * list.tiles_n;
        const int64_t tile = gemm_sm90_tile_clocks(P::BN, list.blocks_k);
        all += tiles * tile;
        longest = tiles > 0 && tile > longest ? tile : longest;
    }
    const int64_t share = gemm_blocks(all, clusters);
    return share > longest ? share : longest;
}

/* Of many tiles no more clusters than the number of rounds takes; of few, the lengths differ. */
static inline int64_t clusters_for(const struct tile_lists &lists, int64_t most)
{
    const int64_t tiles = (int64_t)lists.of[0].tiles_m * lists.of[0].tiles_n +
                          (int64_t)lists.of[1].tiles_m * lists.of[1].tiles_n;
    const int64_t rounds = gemm_blocks(tiles, most);
    return rounds > 4 ? gemm_blocks(tiles, rounds) : tiles < most ? tiles : most;
}

} // namespace gemm_sm90

#endif
