/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_policy_sm90.h: into how many blocks attention_fwd_decode_sm90 cuts the keys of a KV head,
 * and why.
 *
 * Pure: supports() and launch() ask at different times and must come to the same.
 */
#ifndef KG_ATTENTION_FWD_DECODE_POLICY_SM90_H
#define KG_ATTENTION_FWD_DECODE_POLICY_SM90_H

#include "kernels/kernel.h"

#define DECODE_TILE_ELEMENTS 4096    /* of K, as many of V */
#define DECODE_RING_BYTES (24 << 10) /* of a warp: three tiles of 16-bit elements */

/* Packed rows of a KV head, see combine.h. */
static inline int64_t decode_rows(const struct attention_sizes *p)
{
    return p->seqlen_q * (p->heads / p->kv_heads);
}

/*
 * Whether K and V are the first to leave the L2, since nobody reads them again.
 *
 * Where they fit into it, as they do at batch 1, they need not push out what others left there,
 * which would have to be written back: after a sweep of the L2 17.1 us, and 19.2 without the hint.
 * Where they do not, they only push out each other, and what others left is written back all along:
 * at batch 128 504 us, and 488 without the hint. Where nobody else uses the L2 it saves
 * 0.4 %, since a part of K and V is still there at the next launch.
 */
static inline int decode_leaves_first(const struct attention_sizes *p)
{
    const int64_t l2_bytes = (int64_t)50 << 20; /* of an H100; an H200 has 60 */
    const int64_t row_bytes = 2 * p->head_dim;  /* 16-bit types */
    return 2 * p->batch * p->kv_heads * p->seqlen_kv * row_bytes <= l2_bytes;
}

/* Tiles of keys that a KV head has. */
static inline int64_t decode_tiles(const struct attention_sizes *p)
{
    const int64_t tile_keys = DECODE_TILE_ELEMENTS / p->head_dim;
    return (p->seqlen_kv + tile_keys - 1) / tile_keys;
}

/*
 * The warps of a block. With 4, two blocks share a multiprocessor; with 8 there is one. 8 heads in
 * clusters of 8 leave that room: with 8 warps they take 3.1 % less, if each has a tile. With more
 * heads clusters would soon have to wait for each other; 64 heads in clusters of 2 took 0.4 % less
 * and 256 single blocks 0.7 % more. What lies between was not measured.
 */
static inline int decode_warps(const struct attention_sizes *p)
{
    return p->batch * p->kv_heads <= 8 && decode_tiles(p) >= 8 * 8 ? 8 : 4;
}

static inline int64_t decode_shared_bytes(const struct attention_sizes *p)
{
    return (int64_t)decode_warps(p) * DECODE_RING_BYTES;
}

/*
 * The blocks of a cluster, which share a KV head: a power of two; 0: not served.
 *
 * While all run at once, as many as fit: 30, 62 and 132 clusters of 8, 4 and 2 blocks do on the 132
 * multiprocessors of an H200, and 264 single blocks; 64 clusters of 4 took 8 % longer than as many
 * of 2. 14 of 16 fit, but share too few multiprocessors: 5 % longer than of 8. Past that, 2: with
 * shorter blocks the last wave ends more evenly, 1 % of 1024 heads. Each warp gets a tile of keys.
 */
static inline int decode_cluster(const struct attention_sizes *p, int64_t sm_count)
{
    const int64_t heads = p->batch * p->kv_heads;
    const int64_t tiles = decode_tiles(p);
    int cluster = heads <= 30 ? 8 : heads <= 62 ? 4 : heads <= 132 ? 2 : heads <= 264 ? 1 : 2;

    if (decode_rows(p) > 16 || sm_count < 132)
        return 0;
    while (cluster > 1 && cluster * decode_warps(p) > tiles)
        cluster /= 2;
    return cluster;
}

#endif
