/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.h: ratios of a candidate against its baseline as machines give them, drawn by a seed.
 *
 * A model is a sum: the code's own change, a spread between processes that may have heavy tails and
 * a memory, and what a badly kept machine adds to a pair. All sizes are shares: 0.0015 is 0.15 %.
 */
#ifndef TESTS_UNIT_NOISE_H
#define TESTS_UNIT_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64; normal values come in pairs. */
struct rng {
    uint64_t s[4];
    double spare;
    bool has_spare;
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
double rng_uniform(struct rng *r); /* in (0, 1) */
size_t rng_below(struct rng *r, size_t n);
double rng_normal(struct rng *r);
double rng_student4(struct rng *r); /* Student's t with four degrees of freedom, scale 1 */

struct noise_model {
    const char *name;
    double sd;         /* between processes; the scale where tails are heavy */
    bool heavy;        /* t with four degrees of freedom instead of normal */
    double memory;     /* of an AR(1) process: correlation of a process with the one before */
    double drift;      /* up or down over 20 processes, on through the confirmation */
    double slow_share; /* of processes that fall into a mode that is 4 % slower */
    double first_slot; /* penalty of the arm that starts first; roles swap with each process */
    double offset; /* SD of an error that all processes of a run share: that of a stored number */
};

struct noise {
    const struct noise_model *model;
    struct rng rng;
    double change; /* ln(1 + the code's own change) */
    double slope, offset, previous;
    size_t index; /* of the process in its run */
};

void noise_init(struct noise *n, const struct noise_model *model, double change, uint64_t seed);

/* A new run of the suite: drift, offset and memory start afresh. */
void noise_begin(struct noise *n);

/* d of the next process of the run. */
double noise_next(struct noise *n);

#endif
