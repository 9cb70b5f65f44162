/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h: recorded pairs: what processes measured of cases whose slowdown was known.
 *
 * A CSV file with a line of names first, columns in any order:
 *   case      id of the case
 *   process   number of the process, in the order in which they ran
 *   swapped   1: the baseline came first in it, 0: the candidate (optional)
 *   d         ln(candidate / baseline) of the process
 *   log_ratio_cycles  the same in SM cycles (optional)
 *   injected  slowdown that was injected: 0.025 is +2.5 %, 0 is unchanged code
 *   p50_ns    p50 of the candidate alone, for the naive rule (optional)
 * Fields are not quoted. A column that is not there, or an empty field of an optional one, is NAN.
 * Other columns are not read.
 */
#ifndef TESTS_UNIT_PAIRS_H
#define TESTS_UNIT_PAIRS_H

#include <stddef.h>
#include <stdio.h>

struct pair_row {
    char name[96]; /* of the case */
    double process, swapped, d, log_ratio_cycles, injected, p50_ns;
};

/* Sorted by case, injected share and process, so that equal ones are neighbours. */
struct pairs {
    struct pair_row *rows;
    size_t n, room;
};

/* Rows of one case with one injected share: rows[from] to rows[to - 1]. */
struct pair_group {
    size_t from, to;
};

/* 0, or -1 with a sentence that names the line in `why`; `p` is empty then. */
int pairs_read(struct pairs *p, FILE *file, char *why, size_t why_size);

/* tests/data/pairs-h200.csv; what cannot be read fails the test. */
void pairs_read_recording(struct pairs *p);

void pairs_free(struct pairs *p);

/* The group that starts at row `from`. */
struct pair_group pairs_group(const struct pairs *p, size_t from);

#endif
