/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/session.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gate/base/alloc.h"

unsigned pairs_kind(size_t j)
{
    return j / 2 % PAIRS_KINDS;
}

unsigned pairs_copy(size_t j)
{
    return pairs_kind(j) / 2;
}

/* Moves the kinds that are there to the average of their medians. */
static void level_kinds(double *logs, size_t n, double *scratch)
{
    double medians[PAIRS_KINDS], sum = 0;
    unsigned kinds = n / 2 < PAIRS_KINDS ? (unsigned)((n + 1) / 2) : PAIRS_KINDS;
    for (unsigned kind = 0; kind < kinds; kind++) {
        size_t m = 0;
        for (size_t j = 0; j < n; j++)
            if (pairs_kind(j) == kind)
                scratch[m++] = logs[j];
        sum += medians[kind] = stats_middle(scratch, m);
    }
    for (size_t j = 0; j < n; j++)
        logs[j] += sum / kinds - medians[pairs_kind(j)];
}

/* Means of the two pairs of each round; returns how many rounds there are. */
static size_t take_rounds(const double *logs, size_t n, double *rounds)
{
    for (size_t r = 0; r < n / 2; r++)
        rounds[r] = (logs[2 * r] + logs[2 * r + 1]) / 2;
    return n / 2;
}

struct estimate pairs_ratio(const double *a, const double *b, size_t n)
{
    double *logs = xcalloc(2 * n, sizeof *logs), *scratch = logs + n, half = 0;
    bool several = n / 2 >= 2 * (size_t)PAIRS_KINDS; /* of each kind */
    bool measured = n > 0;
    struct estimate out = {0};
    for (size_t j = 0; j < n && measured; j++) {
        measured = a[j] > 0 && b[j] > 0;
        logs[j] = measured ? log(a[j] / b[j]) : 0;
    }
    if (measured) {
        if (!several)
            half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), 1);
        level_kinds(logs, n, scratch);
        if (several)
            half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), PAIRS_KINDS);
        double value = stats_middle(logs, n);
        out = (struct estimate){exp(value), exp(value - half), exp(value + half)};
    }
    free(logs);
    return out;
}
