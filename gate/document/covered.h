/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covered.h: the coverage of verification over many cases: for each op, how often each class of
 * values, shapes, layouts and launches was checked.
 */
#ifndef GATE_DOCUMENT_COVERED_H
#define GATE_DOCUMENT_COVERED_H

#include "gate/document/document.h"

#define COVERED_OPS 32 /* at most; more are left out */
#define COVERED_NAME_MAX 65

/* Of the ops whose cases say what they covered, by name. Starts as {0}. */
struct covered_sums {
    size_t n;
    struct covered_op {
        char name[COVERED_NAME_MAX];
        struct document_covered all;
        int64_t pairs, pairs_of; /* the most that one case had */
    } of[COVERED_OPS];
};

/* `verify`: of the case's candidate; NULL is fine. */
void covered_add(struct covered_sums *sums, const char *op, const struct document_verify *verify);

/* A class, as "values", "nan and infinity", and its counts. */
struct covered_class {
    const char *what;
    char name[COVERED_NAME_MAX];
    int64_t count[COVERED_OPS];
};

/* The next class that any op has; false: there are no more. *at starts as 0. */
bool covered_next(const struct covered_sums *sums, size_t *at, struct covered_class *out);

#endif
