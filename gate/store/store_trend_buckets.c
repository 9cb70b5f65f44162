/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend_buckets.c: see store_trend_buckets.h.
 *
 * Rows come in the order of the axis, so the rows of a bucket follow each other. A row's place on
 * the axis is its time, or the rank of its commit among those of all series.
 */
#include "gate/store/store_trend_buckets.h"

#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"

/* For the values of a bucket. */
struct room {
    double *p50_ns;
    double *chain;
};

struct axis {
    bool by_commit;
    struct store_commit *commits; /* sorted, each once */
    size_t n_commits;
    int64_t first, width; /* of the first bucket, and of each */
};

static int compare_commits(const void *a, const void *b)
{
    const struct store_commit *x = a, *y = b;
    if (x->place_ms != y->place_ms)
        return x->place_ms < y->place_ms ? -1 : 1;
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

/* The median of those of the newest one's part of the chain; `values` has room for n. */
static double median_chain(const struct store_trend_row *rows, size_t n, int64_t is_main,
                           int64_t part, double *values)
{
    size_t n_values = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].is_main == is_main && rows[i].chain_part == part)
            values[n_values++] = rows[i].chain;
    }
    if (part < 0 || n_values == 0)
        return 0;
    stats_sort(values, n_values);
    return stats_quantile(values, n_values, 0.5);
}

/* The newest of the rows, with the median and the extremes of all, where n > 0 are of the main
 * branch, or not. */
static struct store_trend_row sum_up(const struct store_trend_row *rows, size_t n_rows,
                                     int64_t is_main, const struct room *room)
{
    struct store_trend_row sum = {.n = 0};
    double *p50_ns = room->p50_ns;
    size_t n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].is_main != is_main)
            continue;
        sum = rows[i];
        p50_ns[n++] = rows[i].p50_ns;
    }
    if (n < 2)
        return sum;
    stats_sort(p50_ns, n);
    double low = p50_ns[(n - 1) / 2];
    sum.n = (int64_t)n;
    sum.min_ns = p50_ns[0];
    sum.max_ns = p50_ns[n - 1];
    sum.p50_ns = low + (p50_ns[n / 2] - low) / 2;
    sum.chain = median_chain(rows, n_rows, is_main, sum.chain_part, room->chain);
    return sum;
}

static void fill_buckets(const struct axis *axis, struct store_trend_series *series,
                         const struct room *room)
{
    size_t n = 0;
    for (size_t from = 0, to; from < series->n; from = to) {
        int64_t bucket = (place_of(axis, &series->rows[from]) - axis->first) / axis->width;
        int64_t end = axis->first + (bucket + 1) * axis->width;
        to = from + 1;
        while (to < series->n && place_of(axis, &series->rows[to]) < end)
            to++;
        struct store_trend_row other = sum_up(&series->rows[from], to - from, 0, room);
        struct store_trend_row main = sum_up(&series->rows[from], to - from, 1, room);
        const bool main_first = main.n > 0 && main.time_ms < other.time_ms;
        if (main_first)
            series->rows[n++] = main;
        if (other.n > 0)
            series->rows[n++] = other;
        if (main.n > 0 && !main_first)
            series->rows[n++] = main;
    }
    series->n = n;
}

bool trend_to_buckets(const struct store_trend_query *query, struct store_trend_result *trend)
{
    struct axis axis = {.by_commit = query->by_commit};
    size_t n = (size_t)trend->total + 1;
    struct room room = {malloc(n * sizeof *room.p50_ns), malloc(n * sizeof *room.chain)};
    bool good = room.p50_ns && room.chain && (!axis.by_commit || rank_commits(trend, &axis));
    if (good)
        lay_axis(query, trend, &axis);
    for (size_t i = 0; i < trend->n_series && good; i++)
        fill_buckets(&axis, &trend->series[i], &room);
    free(axis.commits);
    free(room.p50_ns);
    free(room.chain);
    return good;
}
