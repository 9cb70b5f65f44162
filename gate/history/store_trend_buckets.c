/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend_buckets.c: see store_trend_buckets.h.
 *
 * Rows come in the order of the axis, so the rows of a bucket follow each other. A row's place on
 * the axis is its time, or the rank of its commit among those of all series.
 */
#include "gate/history/store_trend_buckets.h"

#include <stdlib.h>
#include <string.h>

struct axis {
    bool by_commit;
    struct store_commit *commits; /* sorted, each once */
    size_t n_commits;
    int64_t first, width; /* of the first bucket, and of each */
};

static int compare_commits(const void *a, const void *b)
{
    const struct store_commit *x = a, *y = b;
    if (x->first_ms != y->first_ms)
        return x->first_ms < y->first_ms ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool rank_commits(const struct store_trend_result *trend, struct axis *axis)
{
    size_t n = 0, n_unique = 0;
    struct store_commit *commits = malloc(((size_t)trend->total + 1) * sizeof *commits);
    if (!commits)
        return false;
    for (size_t i = 0; i < trend->n_series; i++)
        for (size_t k = 0; k < trend->series[i].n; k++)
            commits[n++] = trend->series[i].rows[k].commit;
    qsort(commits, n, sizeof *commits, compare_commits);
    for (size_t i = 0; i < n; i++)
        if (n_unique == 0 || compare_commits(&commits[n_unique - 1], &commits[i]) != 0)
            commits[n_unique++] = commits[i];
    axis->commits = commits;
    axis->n_commits = n_unique;
    return true;
}

static int64_t place_of(const struct axis *axis, const struct store_trend_row *row)
{
    if (!axis->by_commit)
        return row->time_ms;
    const struct store_commit *found = bsearch(&row->commit, axis->commits, axis->n_commits,
                                               sizeof *axis->commits, compare_commits);
    return found - axis->commits;
}

static void lay_axis(const struct store_trend_query *query, const struct store_trend_result *trend,
                     struct axis *axis)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < trend->n_series; i++) {
        const struct store_trend_series *series = &trend->series[i];
        int64_t from = place_of(axis, &series->rows[0]);
        int64_t to = place_of(axis, &series->rows[series->n - 1]);
        first = from < first ? from : first;
        last = to > last ? to : last;
    }
    axis->first = first;
    axis->width = (last - first) / query->points + 1;
}

static int compare_integers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The newest of n rows, with the median and the extremes of all. `p50_ps` has room for n. */
static struct store_trend_row sum_up(const struct store_trend_row *rows, size_t n, int64_t *p50_ps)
{
    struct store_trend_row sum = rows[n - 1];
    for (size_t i = 0; i < n; i++)
        p50_ps[i] = rows[i].p50_ps;
    qsort(p50_ps, n, sizeof *p50_ps, compare_integers);
    int64_t low = p50_ps[(n - 1) / 2];
    sum.n = (int64_t)n;
    sum.min_ps = p50_ps[0];
    sum.max_ps = p50_ps[n - 1];
    sum.p50_ps = low + (p50_ps[n / 2] - low) / 2;
    return sum;
}

static void fill_buckets(const struct axis *axis, struct store_trend_series *series,
                         int64_t *p50_ps)
{
    size_t n = 0;
    for (size_t from = 0, to; from < series->n; from = to) {
        int64_t bucket = (place_of(axis, &series->rows[from]) - axis->first) / axis->width;
        int64_t end = axis->first + (bucket + 1) * axis->width;
        to = from + 1;
        while (to < series->n && place_of(axis, &series->rows[to]) < end)
            to++;
        series->rows[n++] = sum_up(&series->rows[from], to - from, p50_ps);
    }
    series->n = n;
}

bool trend_to_buckets(const struct store_trend_query *query, struct store_trend_result *trend)
{
    struct axis axis = {.by_commit = query->by_commit};
    int64_t *p50_ps = malloc(((size_t)trend->total + 1) * sizeof *p50_ps);
    bool room = p50_ps && (!axis.by_commit || rank_commits(trend, &axis));
    if (room)
        lay_axis(query, trend, &axis);
    for (size_t i = 0; i < trend->n_series && room; i++)
        fill_buckets(&axis, &trend->series[i], p50_ps);
    free(axis.commits);
    free(p50_ps);
    return room;
}
