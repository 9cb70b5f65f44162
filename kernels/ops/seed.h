/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.h: pseudo-random numbers from a seed; the same in C and in CUDA.
 *
 * splitmix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
 */
#ifndef KG_OPS_SEED_H
#define KG_OPS_SEED_H

#include <stdint.h>

#ifdef __CUDACC__
#define SEED_ANYWHERE static inline __host__ __device__
#else
#define SEED_ANYWHERE static inline
#endif

#define SEED_STEP 0x9e3779b97f4a7c15u

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

/* An integer in [-largest, largest] but 0, from a number of seed_at(): a factor of exact sums, of
 * which none may be what a kernel leaves out. */
SEED_ANYWHERE int seed_factor(uint64_t number, int largest)
{
    const int n = (int)(number % (uint64_t)(2 * largest)) - largest;
    return n + (n >= 0);
}

#endif
