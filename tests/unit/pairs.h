/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h: tests/data/pairs-h200.csv: what processes measured of cases whose slowdown was known.
 */
#ifndef TESTS_UNIT_PAIRS_H
#define TESTS_UNIT_PAIRS_H

#include <stddef.h>

/* A line of the file, in the order of its columns. An empty field is NAN. */
struct pair_row {
    char name[96];           /* of the case */
    double process;          /* its number, in the order in which they ran */
    double swapped;          /* 1: the baseline came first in it, 0: the candidate */
    double d;                /* ln(candidate / baseline) of the process */
    double log_ratio_cycles; /* the same in SM cycles, */
    double log_ratio_p90;    /* and of the p90 */
    double injected;         /* slowdown that was injected: 0.025 is +2.5 %, 0 is unchanged code */
    double p50_ns;           /* of the candidate alone */
};

/* Sorted by case, injected share and process, so that equal ones are neighbours. */
struct pairs {
    struct pair_row *rows;
    size_t n;
};

/* Rows of one case with one injected share: rows[from] to rows[to - 1]. */
struct pair_group {
    size_t from, to;
};

/* What cannot be read fails the test. */
void pairs_read_recording(struct pairs *p);

void pairs_free(struct pairs *p);

/* The group that starts at row `from`. */
struct pair_group pairs_group(const struct pairs *p, size_t from);

#endif
