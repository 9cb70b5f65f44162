/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h: the hardware counters that are compared where a case is slower, and what each means.
 */
#ifndef GATE_COUNTERS_COUNTERS_H
#define GATE_COUNTERS_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

enum counter_unit { COUNTER_PERCENT, COUNTER_BYTES, COUNTER_COUNT, COUNTER_RATIO };

/* How a counter is made of the two metrics of ncu that it names. */
enum counter_how {
    COUNTER_PLAIN,    /* the first; there is no other */
    COUNTER_SUM,      /* both together */
    COUNTER_QUOTIENT, /* the first over the other; 0 where the other is 0 */
    COUNTER_SHARE,    /* the same in percent */
};

struct counter {
    const char *name;           /* in a run document */
    const char *label;          /* for people */
    const char *metric, *other; /* other: NULL with COUNTER_PLAIN */
    const char *meaning;        /* a sentence without its full stop */
    enum counter_unit unit;
    enum counter_how how;
    double floor;  /* so little is nothing: of a COUNTER_COUNT over the instructions executed */
    double weight; /* of its moves: what is a cause stands before what follows from it */
    bool hopper;   /* other GPUs do not have it */
};

enum {
    COUNTERS_N = 25,
    COUNTER_INSTRUCTIONS = 3, /* its place */
    COUNTER_MUFU = 5,
};

extern const struct counter counters[COUNTERS_N];
extern const char *const counter_names[COUNTERS_N + 1]; /* the same, and NULL */

/* Of one launch of a kernel; NAN: not known. */
struct counter_values {
    double of[COUNTERS_N];
};

/* How much a counter moved, from 0; NAN: it is not known on both sides. */
double counter_moved(size_t counter, const struct counter_values *new,
                     const struct counter_values *old);

/* Did it move to where a kernel becomes slower: to more work or waiting, or to less of the GPU in
 * use? Of the MUFU either can be. */
bool counter_worsened(size_t counter, const struct counter_values *new,
                      const struct counter_values *old);

#endif
