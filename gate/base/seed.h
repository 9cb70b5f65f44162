/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.h: hashes, and seeds from them, beside the numbers of kernels/ops/seed.h.
 *
 * FNV-1a: Fowler, Noll and Vo.
 */
#ifndef GATE_BASE_SEED_H
#define GATE_BASE_SEED_H

#include <stddef.h>
#include <string.h>

#include "kernels/ops/seed.h"

#define SEED_HASH 0xcbf29ce484222325u /* the hash of no bytes */

/* Goes on with a hash, by FNV-1a. */
static inline uint64_t seed_hash(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* A different seed for each text: the seed of a case follows from that of the run and its id. */
static inline uint64_t seed_of_text(uint64_t seed, const char *text)
{
    return seed_at(seed, seed_hash(SEED_HASH, text, strlen(text)));
}

#endif
