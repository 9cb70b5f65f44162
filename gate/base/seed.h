/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.h: pseudo-random numbers from a seed, and hashes; the same in C and in CUDA.
 *
 * splitmix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
 * FNV-1a: Fowler, Noll and Vo.
 */
#ifndef GATE_BASE_SEED_H
#define GATE_BASE_SEED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SEED_ANYWHERE static inline __host__ __device__
#else
#define SEED_ANYWHERE static inline
#endif

#define SEED_STEP 0x9e3779b97f4a7c15u
#define SEED_HASH 0xcbf29ce484222325u /* the hash of no bytes */

/* The last step of splitmix64: a bijection in which each bit of z affects all bits. */
SEED_ANYWHERE uint64_t seed_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Number `index` of the sequence of a seed. */
SEED_ANYWHERE uint64_t seed_at(uint64_t seed, uint64_t index)
{
    return seed_mix(seed + (index + 1) * SEED_STEP);
}

/* The next number of a sequence. The first state is the seed. */
static inline uint64_t seed_next(uint64_t *state)
{
    return seed_mix(*state += SEED_STEP);
}

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
