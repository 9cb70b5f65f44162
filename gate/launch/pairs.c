/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/pairs.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

unsigned pairs_kind(size_t j)
{
    return j / 2 % PAIRS_KINDS;
}

unsigned pairs_copy(size_t j)
{
    return pairs_kind(j) / 2;
}

static bool log_ratios(const double *a, const double *b, size_t n, double *logs)
{
    for (size_t j = 0; j < n; j++) {
        if (!(a[j] > 0 && b[j] > 0))
            return false;
        logs[j] = log(a[j] / b[j]);
    }
    return n > 0;
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

static struct estimate estimate(double *logs, size_t n, double *scratch)
{
    bool several = n / 2 >= 2 * (size_t)PAIRS_KINDS; /* of each kind */
    double half = 0;
    if (!several)
        half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), 1);
    level_kinds(logs, n, scratch);
    if (several)
        half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), PAIRS_KINDS);
    double value = stats_middle(logs, n);
    return (struct estimate){exp(value), exp(value - half), exp(value + half)};
}

enum gate_status pairs_ratio(const double *a, const double *b, size_t n, struct estimate *out,
                             struct gate_error *err)
{
    double *logs = malloc((2 * n + 1) * sizeof *logs);
    if (!logs)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    *out = log_ratios(a, b, n, logs) ? estimate(logs, n, logs + n) : (struct estimate){0};
    free(logs);
    return GATE_OK;
}
