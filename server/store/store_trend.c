/*
 * store_trend.c: see store_trend.h.
 *
 * Whether a series has more rows than are asked for is found by reading them: mostly it has not,
 * and then it was read once. Only pages and the order of commits count first.
 */
#include "store_trend_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pages of raw rows ---- */

/* The row behind which a page begins: "<series>.<time>.<run>.<arm>". */
static bool parse_after(const char *text, int64_t *series_id, struct trend_key *after)
{
    int64_t *const parts[] = {series_id, &after->time_ms, &after->run_id, &after->arm};
    errno = 0;
    for (int i = 0; i < 4; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        *parts[i] = strtoll(text, &end, 10);
        if (errno != 0 || *end != (i < 3 ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

/* The series where the page begins. */
static enum gate_status find_page(const struct trend_reader *r, struct trend_key *after, size_t *i)
{
    int64_t series_id = 0;
    *i = 0;
    if (!r->query->after)
        return GATE_OK;
    bool good = parse_after(r->query->after, &series_id, after);
    while (good && *i < r->result->n_series && r->result->series[*i].id != series_id)
        ++*i;
    if (!good || *i == r->result->n_series)
        return gate_fail(r->err, GATE_USAGE, "'%.80s' is not the end of a page", r->query->after);
    return GATE_OK;
}

/* The last row of series i ends the page. */
static void name_next(struct trend_reader *r, size_t i)
{
    const struct store_trend_series *series = &r->result->series[i];
    const struct store_trend_details *last = &series->details[series->n - 1];
    snprintf(r->result->next, sizeof(r->result->next),
             "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64, series->id,
             series->rows[series->n - 1].time_ms, last->run_id, last->arm);
}

static enum gate_status read_page(struct trend_reader *r)
{
    struct store_trend_result *out = r->result;
    int64_t left = r->query->points;
    struct trend_key key;
    size_t i;
    enum gate_status status = find_page(r, &key, &i);
    const struct trend_key *after = r->query->after ? &key : NULL;
    for (; i < out->n_series && left > 0 && status == GATE_OK; i++) {
        bool more;
        status = trend_read_rows(r, i, after, left, &more);
        left -= (int64_t)out->series[i].n;
        after = NULL;
        if (left == 0)
            name_next(r, i);
    }
    return status;
}

/* ---- what there is ---- */

static void copy(char *out, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

/* As SQL_TREND_SERIES has them. */
enum {
    TRACK,
    THRESHOLD,
    BEST,
    BEST_COMMIT,
    BEST_TIME,
    HAS_CHANGES,
    HAS_BEST_LOG,
    HAS_WRONG,
    SERIES,
    PROVIDER,
    CONTRACT,
    FLOPS,
    BYTES,
    ROLE,
};

static void read_track(struct query *q, struct store_trend_result *out)
{
    out->track = column_int(q, TRACK);
    out->threshold = column_real(q, THRESHOLD);
    out->best.p50_ns = column_real(q, BEST);
    out->best.time_ms = column_int(q, BEST_TIME);
    copy(out->best.commit, sizeof(out->best.commit), column_text(q, BEST_COMMIT));
    out->has_changes = column_int(q, HAS_CHANGES) != 0;
    out->has_best_log = column_int(q, HAS_BEST_LOG) != 0;
    out->has_wrong = column_int(q, HAS_WRONG) != 0;
}

static enum gate_status read_series_row(struct trend_reader *r, struct query *q)
{
    struct store_trend_result *out = r->result;
    if (out->track == 0)
        read_track(q, out);
    if (sqlite3_column_type(q->stmt, SERIES) == SQLITE_NULL)
        return GATE_OK;
    void *grown = out->series;
    if (!trend_grow(&grown, out->n_series, &r->cap, sizeof(*out->series)))
        return trend_no_memory(r);
    out->series = grown;
    struct store_trend_series *series = &out->series[out->n_series++];
    *series = (struct store_trend_series){
        .id = column_int(q, SERIES),
        .is_candidate = column_int(q, ROLE) == 0,
        .flops = column_real(q, FLOPS),
        .bytes = column_real(q, BYTES),
    };
    copy(series->provider, sizeof(series->provider), column_text(q, PROVIDER));
    copy(series->contract, sizeof(series->contract), column_text(q, CONTRACT));
    return GATE_OK;
}

static enum gate_status read_series(struct trend_reader *r)
{
    struct query q = query_begin(r->store, SQL_TREND_SERIES);
    bind_text(&q, r->query->case_id);
    bind_text(&q, r->query->device_model);
    bind_text_or_null(&q, r->query->provider);
    bind_text_or_null(&q, r->query->contract);
    enum gate_status status = GATE_OK;
    int rc;
    while ((rc = query_step(&q)) == SQLITE_ROW && status == GATE_OK)
        status = read_series_row(r, &q);
    if (status == GATE_OK && rc != SQLITE_DONE)
        status = store_fail(r->store, rc, "read", r->err);
    query_end(&q);
    return status;
}

/* What a statement says of the range of a series. */
static enum gate_status ask_range(struct trend_reader *r, enum store_sql id, size_t i,
                                  int64_t *value)
{
    struct query q = query_begin(r->store, id);
    bind_int(&q, r->result->series[i].id);
    bind_int(&q, r->query->from_ms);
    bind_int(&q, r->query->to_ms);
    return store_find_id(r->store, &q, value, r->err);
}

static enum gate_status count_series(struct trend_reader *r, size_t i, int64_t *total)
{
    struct trend_extent extent;
    if (!r->filter.is_set)
        return ask_range(r, SQL_TREND_TOTAL, i, total);
    enum gate_status status = trend_filter_extent(r, i, &extent);
    *total = extent.n;
    return status;
}

static enum gate_status count_rows(struct trend_reader *r)
{
    struct store_trend_result *out = r->result;
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < out->n_series && status == GATE_OK; i++) {
        status = count_series(r, i, &out->series[i].total);
        out->bucketed |= !r->query->raw && out->series[i].total > r->query->points;
    }
    return status;
}

/* ---- the axis ---- */

static void set_width(struct trend_reader *r, int64_t first, int64_t last)
{
    r->first = first;
    r->width = (last - first) / r->query->points + 1;
}

/* When the first and the last row of a series was; -1: there is none. */
static enum gate_status ask_times(struct trend_reader *r, size_t i, int64_t *from, int64_t *to)
{
    struct trend_extent extent;
    enum gate_status status;
    if (r->filter.is_set) {
        status = trend_filter_extent(r, i, &extent);
        *from = extent.n > 0 ? extent.first_ms : -1;
        *to = extent.n > 0 ? extent.last_ms : -1;
        return status;
    }
    status = ask_range(r, SQL_TREND_FIRST, i, from);
    return status == GATE_OK ? ask_range(r, SQL_TREND_LAST, i, to) : status;
}

/* From the first row of all series to the last. */
static enum gate_status lay_times(struct trend_reader *r)
{
    int64_t first = INT64_MAX;
    int64_t last = 0;
    for (size_t i = 0; i < r->result->n_series; i++) {
        int64_t from = 0;
        int64_t to = 0;
        enum gate_status status = ask_times(r, i, &from, &to);
        if (status != GATE_OK)
            return status;
        first = from >= 0 && from < first ? from : first;
        last = to > last ? to : last;
    }
    set_width(r, first, last);
    return GATE_OK;
}

/* ---- the rows ---- */

struct placed {
    int64_t place;
    size_t row;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void put_in_order(struct store_trend_series *series, const struct placed *order,
                         struct store_trend_row *rows, struct store_trend_details *details)
{
    for (size_t i = 0; i < series->n; i++) {
        rows[i] = series->rows[order[i].row];
        details[i] = series->details[order[i].row];
    }
    free(series->rows);
    free(series->details);
    series->rows = rows;
    series->details = details;
    series->cap = series->n;
}

/* From the order of time to that of commits. */
static enum gate_status sort_rows(const struct trend_reader *r, struct store_trend_series *series)
{
    size_t n = series->n;
    if (n == 0)
        return GATE_OK;
    struct placed *order = malloc(n * sizeof(*order));
    struct store_trend_row *rows = malloc(n * sizeof(*rows));
    struct store_trend_details *details = malloc(n * sizeof(*details));
    if (!order || !rows || !details) {
        free(order);
        free(rows);
        free(details);
        return trend_no_memory(r);
    }
    for (size_t i = 0; i < n; i++)
        order[i] = (struct placed){commit_order_place(r->order, series->details[i].run_id), i};
    qsort(order, n, sizeof(*order), by_place);
    put_in_order(series, order, rows, details);
    free(order);
    return GATE_OK;
}

/* All of them; unless there are more of a series than were asked for, when it says so. */
static enum gate_status read_rows(struct trend_reader *r)
{
    struct store_trend_result *out = r->result;
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < out->n_series && status == GATE_OK && !out->bucketed; i++) {
        status = trend_read_rows(r, i, NULL, r->query->points, &out->bucketed);
        out->series[i].total = (int64_t)out->series[i].n;
        if (status == GATE_OK && r->order)
            status = sort_rows(r, &out->series[i]);
    }
    return status;
}

static enum gate_status read_buckets(struct trend_reader *r)
{
    enum gate_status status = GATE_OK;
    if (r->filter.order)
        set_width(r, r->filter.first_place, r->filter.last_place);
    else if (r->order)
        set_width(r, 0, r->order->n_commits + 1);
    else
        status = lay_times(r);
    for (size_t i = 0; i < r->result->n_series && status == GATE_OK; i++)
        status = trend_read_buckets(r, i);
    return status;
}

static enum gate_status read_points(struct trend_reader *r)
{
    enum gate_status status = GATE_OK;
    if (r->query->by_commit)
        status = store_commit_order(r->store, &r->order, r->err);
    if (status == GATE_OK)
        status = trend_filter_open(r);
    if (status == GATE_OK && (r->query->raw || r->query->by_commit))
        status = count_rows(r);
    if (status == GATE_OK && r->query->raw)
        return read_page(r);
    if (status == GATE_OK && !r->result->bucketed)
        status = read_rows(r);
    if (status == GATE_OK && r->result->bucketed)
        status = read_buckets(r);
    return status;
}

static void drop(struct store_trend_series *series)
{
    free(series->rows);
    free(series->details);
}

/* Adds up the rows, and drops the series that have none. */
static void finish(struct store_trend_result *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_series; i++) {
        out->total += out->series[i].total;
        if (out->series[i].total > 0)
            out->series[n++] = out->series[i];
        else
            drop(&out->series[i]);
    }
    out->n_series = n;
}

enum gate_status store_trend_read(struct store *s, const struct store_trend_query *query,
                                  struct store_trend_result *out, struct gate_error *err)
{
    struct trend_reader r = {.store = s, .query = query, .result = out, .err = err};
    *out = (struct store_trend_result){0};
    enum gate_status status = store_check_limit(query->points, err);
    if (status == GATE_OK)
        status = read_series(&r);
    if (status == GATE_OK)
        status = read_points(&r);
    finish(out);
    for (size_t i = 0; i < out->n_series && status == GATE_OK; i++)
        status = trend_name_rows(&r, &out->series[i]);
    trend_filter_release(&r.filter);
    return status;
}

struct commit_call {
    int64_t id;
    int n;
};

static bool commit_row(struct query *q, void *call)
{
    struct commit_call *c = call;
    c->id = column_int(q, 0);
    c->n++;
    return true;
}

enum gate_status store_commit(struct store *s, const char *digits, int64_t *id,
                              struct gate_error *err)
{
    struct commit_call call = {0};
    struct query q = query_begin(s, SQL_FIND_COMMIT);
    bind_text(&q, digits);
    enum gate_status status = store_each_row(s, &q, commit_row, &call, err);
    *id = call.n == 1 ? call.id : 0;
    return status;
}
