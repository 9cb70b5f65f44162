/*
 * store_trend_buckets.c: the rows of one series in buckets; see store_trend_rows.h.
 *
 * The newest row of a bucket is shown, so rows come newest first: of each the p50 is noted, and the
 * rest is read of those only that are the newest of their buckets so far. In the order of time that
 * is one row a bucket. In the order of commits it may be more, for a commit may be run again later.
 */
#include <stdlib.h>
#include <string.h>

#include "store_trend_filter.h"

struct bucket {
    size_t n;      /* rows */
    size_t shown;  /* which row of the series it shows */
    int64_t place; /* of that row on the axis */
    size_t at;     /* its place among the values that are sorted by bucket */
};

struct value {
    int64_t p50_ps;
    size_t bucket;
};

struct filler {
    const struct trend_reader *reader;
    struct store_trend_series *series; /* with the rows as they came */
    bool with_details;
    size_t n_buckets;
    struct bucket *buckets, *open; /* `open`: where the row that was chosen belongs */
    size_t n_values, cap;
    struct value *values;
    enum gate_status status;
};

static struct bucket *bucket_of(const struct filler *f, int64_t place)
{
    const struct trend_reader *r = f->reader;
    size_t index = (size_t)((place - r->first) / r->width);
    return &f->buckets[index < f->n_buckets ? index : f->n_buckets - 1];
}

/* Arguments: time, run, p50. */
static bool choose_row(void *context, sqlite3_value **values)
{
    struct filler *f = context;
    const struct commit_order *order = f->reader->order;
    const struct trend_filter *filter = &f->reader->filter;
    if (filter->is_set && !trend_filter_wants(filter, sqlite3_value_int64(values[1])))
        return false;
    int64_t place = order ? commit_order_place(order, sqlite3_value_int64(values[1]))
                          : sqlite3_value_int64(values[0]);
    void *grown = f->values;
    if (!trend_grow(&grown, f->n_values, &f->cap, sizeof(*f->values))) {
        f->status = trend_no_memory(f->reader);
        return true;
    }
    f->values = grown;
    struct bucket *bucket = bucket_of(f, place);
    f->values[f->n_values++] =
        (struct value){sqlite3_value_int64(values[2]), (size_t)(bucket - f->buckets)};
    if (bucket->n++ > 0 && place <= bucket->place)
        return false;
    bucket->place = place;
    f->open = bucket;
    return true;
}

static bool take_row(void *context, sqlite3_value **values)
{
    struct filler *f = context;
    struct store_trend_series *series = f->series;
    if (f->status == GATE_OK && f->open->n == 1) {
        if (trend_add_row(series, f->with_details))
            f->open->shown = series->n++;
        else
            f->status = trend_no_memory(f->reader);
    }
    if (f->status != GATE_OK)
        return true;
    trend_fill_row(series, f->open->shown, values);
    return false;
}

static int compare_integers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Gives the row the median and the extremes of its bucket. */
static void sum_up(struct store_trend_row *row, int64_t *p50_ps, size_t n)
{
    qsort(p50_ps, n, sizeof(*p50_ps), compare_integers);
    row->n = (int64_t)n;
    row->min_ps = p50_ps[0];
    row->max_ps = p50_ps[n - 1];
    int64_t low = p50_ps[(n - 1) / 2];
    row->p50_ps = low + (p50_ps[n / 2] - low) / 2;
}

/* Puts each value to those of its bucket. */
static void sort_values(struct filler *f, int64_t *sorted)
{
    size_t at = 0;
    for (size_t i = 0; i < f->n_buckets; i++) {
        f->buckets[i].at = at;
        at += f->buckets[i].n;
    }
    for (size_t i = 0; i < f->n_values; i++)
        sorted[f->buckets[f->values[i].bucket].at++] = f->values[i].p50_ps;
}

/* The rows in the order of their buckets, into `out`. */
static enum gate_status lay_out(struct filler *f, struct store_trend_series *out)
{
    int64_t *sorted = malloc((f->n_values + 1) * sizeof(*sorted));
    bool room = sorted != NULL;
    if (room)
        sort_values(f, sorted);
    for (size_t i = 0; i < f->n_buckets && room; i++) {
        const struct bucket *bucket = &f->buckets[i];
        if (bucket->n == 0)
            continue;
        room = trend_add_row(out, f->with_details);
        if (!room)
            break;
        out->rows[out->n] = f->series->rows[bucket->shown];
        if (f->with_details)
            out->details[out->n] = f->series->details[bucket->shown];
        sum_up(&out->rows[out->n], sorted + bucket->at - bucket->n, bucket->n);
        out->n++;
    }
    out->total = (int64_t)f->n_values;
    free(sorted);
    return room ? GATE_OK : trend_no_memory(f->reader);
}

/* Forgets the rows that were read before there were more than were asked for. */
static void drop_rows(struct store_trend_series *series)
{
    free(series->rows);
    free(series->details);
    series->rows = NULL;
    series->details = NULL;
    series->n = series->cap = 0;
}

enum gate_status trend_read_buckets(struct trend_reader *r, size_t i)
{
    struct store_trend_series came = {0};
    struct filler f = {
        .reader = r,
        .series = &came,
        .with_details = !trend_is_of_levels(r),
        .n_buckets = (size_t)r->query->points,
    };
    drop_rows(&r->result->series[i]);
    f.buckets = calloc(f.n_buckets, sizeof(*f.buckets));
    if (!f.buckets)
        return trend_no_memory(r);
    const struct store_scan scan = {.choose = choose_row, .take = take_row, .context = &f};
    struct query q = trend_begin_chosen(
        r, f.with_details ? SQL_TREND_CHOSEN_POINTS : SQL_TREND_CHOSEN_LEVELS, i);
    enum gate_status status = store_scan_rows(r->store, &q, &scan, r->err);
    if (status == GATE_OK)
        status = f.status;
    if (status == GATE_OK)
        status = lay_out(&f, &r->result->series[i]);
    drop_rows(&came);
    free(f.buckets);
    free(f.values);
    return status;
}
