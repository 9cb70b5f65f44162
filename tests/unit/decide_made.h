/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_made.h: sequences made of changes in percent, and what decide() must make of them.
 */
#ifndef TESTS_UNIT_DECIDE_MADE_H
#define TESTS_UNIT_DECIDE_MADE_H

#include <stddef.h>

#include "gate/decide/decide.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROOM (DECIDE_MAX_PROCESSES + 1)

/* A threshold of 2 % and a baseline of 100 us. */
extern const struct decide_input made_policy;

/* n changes in percent from centre - half to centre + half, evenly, not in order. */
void fill_changes(double *d, size_t n, double centre, double half);

/* A sequence with room of its own. */
struct made {
    double d[ROOM], cycles[ROOM];
    struct decide_sequence s;
};

struct decide_sequence make_sequence(struct made *m, size_t n, double centre, double half);
struct decide_sequence with_cycles(struct made *m, double percent);

/* Each fails the running test. */
void assert_decided(struct decision d, enum verdict verdict);
void assert_asks(struct decision d, enum decide_next next, size_t n);
void assert_near(double got, double expected);

#endif
