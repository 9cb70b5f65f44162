/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changepoint.h: where the level of a series changed. Pure and without memory: the newest values
 * in, the change points among them out, the same for the same values however they came.
 *
 * Method: a kernel change point analysis (Arlot, Celisse and Harchaoui, "A kernel multiple
 * change-point algorithm via model selection", JMLR 2019) with the energy distance proposes splits.
 * Its distances are cut off, so that an outlier weighs as much as a large deviation and no more. A
 * proposed split stays when a t-test on values that are cut off in the same way makes it
 * improbable. It counts when, besides, that is so with autocorrelation allowed for, nearly all of
 * one side lies above nearly all of the other, and that is improbable by ranks or by how rarely one
 * side has values like those of the other: a series with a second, slower mode passes a t-test.
 * Ranks of a few values are never improbable, so a step that is many times the noise counts without
 * them: three values on either side are enough.
 *
 * A split counts as soon as it would have done so with fewer values behind it, and until the later
 * ones contradict it, so that a change near a limit does not come and go with each run.
 *
 * Values are natural logarithms of times, one a run, oldest first: a shift of 0.01 is 1 %.
 */
#ifndef SERVER_WATCH_CHANGEPOINT_H
#define SERVER_WATCH_CHANGEPOINT_H

#include <stdbool.h>
#include <stddef.h>

#define CHANGEPOINT_WINDOW 150 /* most values */
#define CHANGEPOINT_MIN_SIDE 3
#define CHANGEPOINT_FRESH 50 /* a change is found within so many values, or not at all */
#define CHANGEPOINT_EDGE 30  /* of a full window: changes so near to its start are not judged */
#define CHANGEPOINT_MAX (CHANGEPOINT_WINDOW / CHANGEPOINT_MIN_SIDE)

struct changepoint {
    size_t at;            /* index of the first value of the new level */
    size_t end;           /* of the value where that level was taken back; n: it was not */
    double before, after; /* levels: medians up to the neighbouring change points */
    bool is_return;       /* to the level before an earlier one, or beyond it: */
    double base;          /* that level; else the one before this change */
};

/*
 * The change points of x[0..n), n <= CHANGEPOINT_WINDOW, oldest first, of at least `least`; returns
 * how many were written to out. Takes O(n^2) time, 60 us for a full window on a 2020s x86 core, and
 * 100 KiB of stack.
 */
size_t changepoint_find(const double *x, size_t n, double least,
                        struct changepoint out[CHANGEPOINT_MAX]);

#endif
