/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h: the hardware counters that are compared where a case is slower, and what each means.
 */
#ifndef GATE_COUNTERS_COUNTERS_H
#define GATE_COUNTERS_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"

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

/* ---- NVIDIA's Nsight Compute: how it is called, and the table that it writes ---- */

#define NCU_KERNELS_MAX 16
#define NCU_NAME_SIZE 1001 /* of a name that is longer the beginning is kept */

struct ncu_kernel {
    char name[NCU_NAME_SIZE]; /* mangled */
    struct counter_values values;
};

/* The launches of a case that were profiled, in their order; the first ones. */
struct ncu_table {
    struct ncu_kernel kernels[NCU_KERNELS_MAX];
    size_t n;
};

#define NCU_WORDS 16
#define NCU_METRICS_SIZE 4096

/* The words before the program that it is to profile, between cudaProfilerStart() and
 * cudaProfilerStop() alone; `metrics` has room for their names, and `log` is where it writes. */
unsigned ncu_words(const char *path, const char *log, bool hopper, char metrics[NCU_METRICS_SIZE],
                   const char *words[NCU_WORDS]);

/* A kernel of this name, or of one that it is part of, comes before those of each case. */
#define NCU_MARK "kernel_gate_case_begins"

/* Reads what it wrote of so many cases, which nobody vouches for; of those that were not reached n
 * is 0. GATE_ENVIRONMENT: it says that it may not, or failed, and the error is what it says;
 * GATE_IO: it is no such table. */
enum gate_status ncu_read(const char *text, size_t len, struct ncu_table *cases, size_t n_cases,
                          struct gate_error *err);

#endif
