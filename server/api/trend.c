/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trend.c: see trend.h.
 *
 * One query reads the levels of all points in the range; rows, pages and buckets are made of these
 * in memory. What else there is of a point is read for those that are shown.
 */
#include "server/api/trend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"

#define CHANGE_OF 5 /* runs at either end of a range */

/* ---- statements ---- */

void trend_set(struct trend *t, const char *name, struct store_cell cell)
{
    t->values[t->n_values].name = name;
    t->values[t->n_values++].cell = cell;
}

static void give_value(void *context, const char *name, struct store_cell *value)
{
    const struct trend *t = context;
    size_t i = t->n_values;
    while (i > 0 && strcmp(t->values[i - 1].name, name) != 0)
        i--;
    if (i > 0)
        *value = t->values[i - 1].cell;
}

enum gate_status trend_query(struct trend *t, const char *file, store_cells_fn fn)
{
    return store_select(t->call->store, rows_text(file), give_value, fn, t, &t->call->err);
}

static struct store_cell known(double value)
{
    return (struct store_cell){.kind = value > 0 ? STORE_REAL : STORE_NULL, .real = value};
}

enum gate_status trend_row(struct trend *t, const struct trend_point *p, store_cells_fn fn)
{
    size_t n_values = t->n_values;
    trend_set(t, "time", cell_integer(p->time_ms));
    trend_set(t, "run", cell_integer(p->run_id));
    trend_set(t, "arm", cell_integer(p->arm));
    trend_set(t, "n", cell_integer(p->n));
    trend_set(t, "p50_ns", known(p->p50_ns));
    trend_set(t, "min_ns", known(p->min_ns));
    trend_set(t, "max_ns", known(p->max_ns));
    trend_set(t, "chain", known(p->chain));
    trend_set(t, "chain_part", p->chain_part < 0 ? cell_text(NULL) : cell_integer(p->chain_part));
    trend_set(t, "main", cell_integer(p->is_main));
    enum gate_status status = trend_query(t, "trend_row.sql", fn);
    t->n_values = n_values;
    return status;
}

/* ---- the points ---- */

static bool track_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    trend_set(t, "track", row->cells[0]);
    t->threshold = row->cells[1].real;
    return false;
}

/* The series of these names; n_series: there is none. */
static size_t find_series(const struct trend *t, const char *provider, const char *contract)
{
    size_t i = 0;
    while (i < t->n_series && (strcmp(t->series[i].provider, provider) != 0 ||
                               strcmp(t->series[i].contract, contract) != 0))
        i++;
    return i;
}

/* Room for one more of n items; false: out of memory. */
static bool has_room(struct trend *t, void **list, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return true;
    void *more = realloc(*list, (n ? 2 * n : 1) * size);
    t->no_memory |= !more;
    if (more)
        *list = more;
    return !t->no_memory;
}

/* As trend_points.sql and trend_commits.sql have them. */
enum { PROVIDER, CONTRACT, TIME, RUN, ARM, P50, RATIO, BASELINE, MAIN, PLACE, REVISION };

static bool point_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    const struct store_cell *cells = row->cells;
    size_t series = find_series(t, cells[PROVIDER].text, cells[CONTRACT].text);
    if (!has_room(t, (void **)&t->series, t->n_series, sizeof *t->series) ||
        !has_room(t, (void **)&t->points, t->total, sizeof *t->points))
        return false;
    if (series == t->n_series) {
        struct trend_series *new = &t->series[t->n_series++];
        *new = (struct trend_series){.id = series};
        snprintf(new->provider, sizeof new->provider, "%s", cells[PROVIDER].text);
        snprintf(new->contract, sizeof new->contract, "%s", cells[CONTRACT].text);
    }
    /* In the order of commits another one is the next one. */
    if (t->by_commit) {
        t->place += cells[PLACE].integer != t->place_ms || cells[REVISION].integer != t->revision;
        t->place_ms = cells[PLACE].integer;
        t->revision = cells[REVISION].integer;
    }
    t->series[series].total++;
    t->points[t->total++] = (struct trend_point){
        .time_ms = cells[TIME].integer,
        .run_id = cells[RUN].integer,
        .arm = cells[ARM].integer,
        .place = t->by_commit ? t->place : cells[TIME].integer,
        .series = series,
        .n = 1,
        .p50_ns = cells[P50].real,
        .min_ns = cells[P50].real,
        .max_ns = cells[P50].real,
        .ratio = cells[RATIO].real,
        .baseline_ms = cells[BASELINE].integer,
        .chain_part = -1,
        .is_main = cells[MAIN].integer != 0,
    };
    return true;
}

static int compare_series(const void *a, const void *b)
{
    const struct trend_series *x = a, *y = b;
    int order = strcmp(x->provider, y->provider);
    return order != 0 ? order : strcmp(x->contract, y->contract);
}

static int compare_points(const void *a, const void *b)
{
    const struct trend_point *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    if (x->run_id != y->run_id)
        return x->run_id < y->run_id ? -1 : 1;
    return (x->arm > y->arm) - (x->arm < y->arm);
}

static bool role_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    t->is_candidate = !strcmp(store_text_of(row, "role"), "candidate");
    return false;
}

static enum gate_status read_points(struct trend *t)
{
    size_t at = 0;
    TRY(trend_query(t, "trend_track.sql", track_row));
    TRY(trend_query(t, t->by_commit ? "trend_commits.sql" : "trend_points.sql", point_row));
    if (t->no_memory)
        return gate_fail(&t->call->err, GATE_INTERNAL, "out of memory");
    if (t->n_series == 0)
        return GATE_OK;
    qsort(t->series, t->n_series, sizeof *t->series, compare_series);
    for (size_t k = 0; k < t->total; k++) {
        size_t i = 0;
        while (t->series[i].id != t->points[k].series)
            i++;
        t->points[k].series = i;
    }
    qsort(t->points, t->total, sizeof *t->points, compare_points);
    for (size_t i = 0; i < t->n_series; at += t->series[i++].total) {
        struct trend_series *s = &t->series[i];
        s->at = at;
        s->n = s->total;
        TRY(trend_row(t, &t->points[at + s->n - 1], role_row));
        s->is_candidate = t->is_candidate;
    }
    return GATE_OK;
}

/* ---- the chain of baselines ---- */

/* The median of the links of up to `most` points of the main branch and the newest part, from the
 * one at `at` on, in steps of 1 or -1. */
static double end_level(const struct trend *t, const struct trend_series *s, size_t at, int step,
                        size_t most, int64_t *ms)
{
    double value[CHANGE_OF];
    size_t n = 0;
    for (size_t i = at; i - s->at < s->total && n < most; i += (size_t)step) {
        const struct trend_point *p = &t->points[i];
        if (!p->is_main || p->chain_part != 0)
            continue;
        if (n == 0)
            *ms = p->time_ms;
        value[n++] = p->chain;
    }
    return stats_middle(value, n);
}

/* Medians of the runs at either end. No run is at both: a short history would show no change. */
static void find_change(const struct trend *t, struct trend_series *s)
{
    size_t half = 0;
    for (size_t i = s->at; i < s->at + s->total; i++)
        half += t->points[i].is_main && t->points[i].chain_part == 0;
    half = half < 2 ? 1 : half / 2 < CHANGE_OF ? half / 2 : CHANGE_OF;
    double first = end_level(t, s, s->at, 1, half, &s->from_ms);
    double last = end_level(t, s, s->at + s->total - 1, -1, half, &s->to_ms);
    s->change = s->from_ms < s->to_ms ? last / first : 0;
}

/* The chain of one series is read. */
static void end_chain(struct trend *t)
{
    struct trend_series *s = t->of;
    chain_end(&t->chain);
    for (size_t i = s ? s->at : 0; s && i < s->at + s->total; i++) {
        struct trend_point *p = &t->points[i];
        const struct chain_link *link = chain_find(&t->chain, p->baseline_ms);
        if (p->ratio > 0 && link) {
            p->chain = p->ratio * exp(link->level);
            p->chain_part = link->part;
        }
    }
    if (s)
        find_change(t, s);
    t->chain.n = 0;
}

static bool chain_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    size_t i = find_series(t, row->cells[0].text, row->cells[1].text);
    struct trend_series *of = i < t->n_series && t->series[i].is_candidate ? &t->series[i] : NULL;
    const struct chain_point p = {
        .time_ms = row->cells[3].integer,
        .ratio = row->cells[4].real,
        .baseline_ms = row->cells[5].integer,
        .baseline_revision = row->cells[6].integer,
        .revision = row->cells[7].integer,
    };
    if (of != t->of)
        end_chain(t);
    t->of = of;
    if (of)
        (row->cells[2].integer ? chain_tie : chain_add)(&t->chain, &p);
    return true;
}

/* ---- pages of raw rows ---- */

static void cut_page(struct trend *t)
{
    size_t left = (size_t)t->most;
    for (size_t i = 0; i < t->n_series; i++) {
        struct trend_series *s = &t->series[i];
        t->after.series = i; /* by which the points of a page are behind it */
        t->after.place = t->after.time_ms;
        while (s->n > 0 &&
               ((int64_t)i < t->page ||
                ((int64_t)i == t->page && compare_points(&t->points[s->at], &t->after) <= 0))) {
            s->at++;
            s->n--;
        }
        s->n = s->n < left ? s->n : left;
        left -= s->n;
        const struct trend_point *last = &t->points[s->at + s->n - 1];
        if (left == 0 && s->n > 0)
            snprintf(t->next, sizeof t->next, "%zu.%" PRId64 ".%" PRId64 ".%" PRId64, i,
                     last->time_ms, last->run_id, last->arm);
    }
}

/* ---- buckets: points come in the order of the axis, so those of a bucket follow each other ----
 */

/* The newest of the points, with the median and the extremes of all that are of the main branch, or
 * not; n is 0 where none is. `room` is for their values. */
static struct trend_point sum_up(const struct trend_point *points, size_t n_points, bool is_main,
                                 double *room)
{
    struct trend_point sum = {.n = 0};
    size_t n = 0, n_chained = 0;
    for (size_t i = 0; i < n_points; i++) {
        if (points[i].is_main == is_main) {
            sum = points[i];
            room[n++] = points[i].p50_ns;
        }
    }
    if (n < 2)
        return sum;
    sum.n = (int64_t)n;
    sum.p50_ns = stats_middle(room, n);
    sum.min_ns = room[0];
    sum.max_ns = room[n - 1];
    for (size_t i = 0; i < n_points; i++) {
        if (points[i].is_main == is_main && points[i].chain_part == sum.chain_part)
            room[n_chained++] = points[i].chain;
    }
    sum.chain = stats_middle(room, n_chained);
    return sum;
}

static void fill_buckets(struct trend *t, struct trend_series *s, int64_t first, int64_t width,
                         double *room)
{
    const struct trend_point *points = t->points + s->at;
    struct trend_point *out = t->points + s->at;
    size_t n = 0;
    for (size_t from = 0, to; from < s->total; from = to) {
        int64_t bucket = (points[from].place - first) / width;
        to = from + 1;
        while (to < s->total && (points[to].place - first) / width == bucket)
            to++;
        struct trend_point other = sum_up(points + from, to - from, false, room);
        struct trend_point main = sum_up(points + from, to - from, true, room);
        const bool main_first = main.n > 0 && main.time_ms < other.time_ms;
        if (main_first)
            out[n++] = main;
        if (other.n > 0)
            out[n++] = other;
        if (main.n > 0 && !main_first)
            out[n++] = main;
    }
    s->n = n;
}

/* Of equal width on the axis, the same for all series. */
static enum gate_status cut_into_buckets(struct trend *t)
{
    int64_t first = INT64_MAX, last = 0, most = t->most;
    /* A bucket of a trend with its main branch is a row of that and one of others. */
    if (t->total > TREND_MAX_POINTS) {
        int64_t share = TREND_MAX_POINTS / (int64_t)t->n_series / (t->split ? 2 : 1);
        most = most < share ? most : share > 0 ? share : 1;
    }
    for (size_t i = 0; i < t->n_series; i++) {
        const struct trend_series *s = &t->series[i];
        int64_t from = t->points[s->at].place, to = t->points[s->at + s->total - 1].place;
        first = from < first ? from : first;
        last = to > last ? to : last;
        t->is_cut |= (int64_t)s->total > most;
    }
    if (!t->is_cut)
        return GATE_OK;
    double *room = malloc(t->total * sizeof *room);
    if (!room)
        return gate_fail(&t->call->err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < t->n_series; i++)
        fill_buckets(t, &t->series[i], first, (last - first) / most + 1, room);
    free(room);
    return GATE_OK;
}

/* ---- all of it ---- */

enum gate_status trend_read(struct trend *t)
{
    TRY(read_points(t));
    if (t->split)
        TRY(trend_query(t, "trend_chain.sql", chain_row));
    end_chain(t);
    if (t->raw)
        cut_page(t);
    return t->raw || t->n_series == 0 ? GATE_OK : cut_into_buckets(t);
}
