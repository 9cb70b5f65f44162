/*
 * store_trend.c: see store_trend.h.
 *
 * The rows of a series are one range of the table, and each is read once. What is told of a run,
 * its uuid and commit, never changes, and is looked up for the rows that are shown only, past a
 * small cache.
 */
#include "store_trend.h"
#include "store_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store_kernel {
    int64_t id;
    char *name;
};

/* A series as it is read: what the result does not tell. */
struct source {
    int64_t series_id;
    int64_t first_ms, last_ms; /* of its rows in the range */
};

struct reader {
    struct store *store;
    const struct store_trend_query *query;
    struct store_trend_result *result;
    struct source *sources; /* one for each series of the result */
    size_t cap;
    int64_t *place; /* of a commit in the order, by its id; NULL in the order of time */
    int64_t n_places;
    int64_t first, width;           /* of the buckets */
    int64_t last_ms, last_run, arm; /* the key of the last row */
    int64_t kernel_id;              /* its kernel */
    struct gate_error *err;
};

static enum gate_status no_memory(struct gate_error *err)
{
    return gate_fail(err, GATE_INTERNAL, "out of memory");
}

/* Room for one more element. */
static bool grow(void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? 2 * *cap : 16;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
}

/* ---- names ---- */

static bool name_row(struct query *q, void *call)
{
    struct run_name *name = call;
    snprintf(name->uuid, sizeof(name->uuid), "%s", column_text(q, 0));
    snprintf(name->commit, sizeof(name->commit), "%s", column_text(q, 1));
    return true;
}

static enum gate_status name_run(struct reader *r, int64_t run_id, struct store_trend_row *row)
{
    struct store *s = r->store;
    if (!s->names && !(s->names = calloc(STORE_N_NAMES, sizeof(*s->names))))
        return no_memory(r->err);
    struct run_name *name = &s->names[(size_t)run_id & (STORE_N_NAMES - 1)];
    enum gate_status status = GATE_OK;
    if (name->id != run_id) {
        struct query q = query_begin(s, SQL_RUN_NAME);
        bind_int(&q, run_id);
        status = store_each_row(s, &q, name_row, name, r->err);
        name->id = status == GATE_OK ? run_id : 0;
    }
    memcpy(row->run, name->uuid, sizeof(row->run));
    memcpy(row->commit, name->commit, sizeof(row->commit));
    return status;
}

static bool kernel_row(struct query *q, void *call)
{
    char **name = call;
    *name = strdup(column_text(q, 0));
    return true;
}

static enum gate_status name_kernel(struct reader *r, int64_t id, const char **name)
{
    struct store_trend_result *out = r->result;
    for (size_t i = out->n_kernels; i-- > 0;) {
        if (out->kernels[i].id == id) {
            *name = out->kernels[i].name;
            return GATE_OK;
        }
    }
    char *text = NULL;
    struct query q = query_begin(r->store, SQL_KERNEL);
    bind_int(&q, id);
    enum gate_status status = store_each_row(r->store, &q, kernel_row, &text, r->err);
    struct store_kernel *kernels =
        realloc(out->kernels, (out->n_kernels + 1) * sizeof(*out->kernels));
    if (kernels)
        out->kernels = kernels;
    if (status != GATE_OK || !text || !kernels) {
        free(text);
        return status == GATE_OK ? no_memory(r->err) : status;
    }
    kernels[out->n_kernels++] = (struct store_kernel){id, text};
    *name = text;
    return GATE_OK;
}

/* ---- rows ---- */

/* Of POINT_COLUMNS, and behind them the commit's id. */
enum column {
    TIME,
    RUN,
    ROLE,
    VERDICT,
    KERNEL,
    P50,
    P50_LO,
    P50_HI,
    P10,
    P90,
    CONTROL,
    BEST,
    REL_ERR,
    CLOCK,
    REGISTERS,
    SHARED,
    SPILL,
    ARM,
    COMMIT
};

static int64_t known_or_minus_1(struct query *q, int column)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? -1 : column_int(q, column);
}

static void read_row(struct query *q, struct store_trend_row *row)
{
    *row = (struct store_trend_row){
        .time_ms = column_int(q, TIME),
        .n = 1,
        .p50_ps = column_int(q, P50),
        .p50_lo_ps = column_int(q, P50_LO),
        .p50_hi_ps = column_int(q, P50_HI),
        .p10_ps = column_int(q, P10),
        .p90_ps = column_int(q, P90),
        .control_ps = column_int(q, CONTROL),
        .best_p50_ps = column_int(q, BEST),
        .rel_err =
            sqlite3_column_type(q->stmt, REL_ERR) == SQLITE_NULL ? -1 : column_real(q, REL_ERR),
        .sm_clock_khz = column_int(q, CLOCK),
        .registers = known_or_minus_1(q, REGISTERS),
        .shared_bytes = known_or_minus_1(q, SHARED),
        .spill_bytes = known_or_minus_1(q, SPILL),
        .verdict = store_verdict_name((int)column_int(q, VERDICT)),
    };
    row->min_ps = row->max_ps = row->p50_ps;
}

/* Puts what the statement shows behind the rows of the series, but for the names. */
static enum gate_status add_row(struct reader *r, struct query *q,
                                struct store_trend_series *series)
{
    void *rows = series->rows;
    bool room = grow(&rows, series->n, &series->cap, sizeof(*series->rows));
    series->rows = rows;
    if (!room)
        return no_memory(r->err);
    series->is_candidate = column_int(q, ROLE) == 0;
    r->last_ms = column_int(q, TIME);
    r->last_run = column_int(q, RUN);
    r->arm = column_int(q, ARM);
    r->kernel_id = column_int(q, KERNEL);
    read_row(q, &series->rows[series->n++]);
    return GATE_OK;
}

static enum gate_status name_last_row(struct reader *r, struct store_trend_series *series)
{
    struct store_trend_row *row = &series->rows[series->n - 1];
    enum gate_status status = name_run(r, r->last_run, row);
    return status == GATE_OK ? name_kernel(r, r->kernel_id, &row->kernel) : status;
}

/* ---- buckets ---- */

struct bucket {
    int64_t index; /* -1: none is open */
    size_t n;
    size_t cap;
    int64_t *p50_ps;
};

static int compare_integers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/*
 * Ends the bucket: the last row of the series, its newest, gets its names, and the median and the
 * extremes of them all.
 */
static enum gate_status close_bucket(struct reader *r, struct bucket *b,
                                     struct store_trend_series *series)
{
    if (b->n == 0)
        return GATE_OK;
    struct store_trend_row *row = &series->rows[series->n - 1];
    qsort(b->p50_ps, b->n, sizeof(*b->p50_ps), compare_integers);
    row->n = (int64_t)b->n;
    row->min_ps = b->p50_ps[0];
    row->max_ps = b->p50_ps[b->n - 1];
    int64_t low = b->p50_ps[(b->n - 1) / 2];
    row->p50_ps = low + (b->p50_ps[b->n / 2] - low) / 2;
    b->n = 0;
    return name_last_row(r, series);
}

/*
 * Where on the axis a row stands. The order of commits was read before; a commit that it does not
 * have yet is behind all.
 */
static int64_t place_of(const struct reader *r, struct query *q)
{
    if (!r->query->by_commit)
        return column_int(q, TIME);
    int64_t id = column_int(q, COMMIT);
    return id < r->n_places ? r->place[id] : r->n_places;
}

/* A row into its bucket: it takes the place of the one before, unless it opens another bucket. */
static enum gate_status fill_bucket(struct reader *r, struct query *q, struct bucket *b,
                                    struct store_trend_series *series)
{
    int64_t index = (place_of(r, q) - r->first) / r->width;
    enum gate_status status = GATE_OK;
    if (index == b->index)
        series->n--;
    else
        status = close_bucket(r, b, series);
    b->index = index;
    void *values = b->p50_ps;
    bool room = grow(&values, b->n, &b->cap, sizeof(*b->p50_ps));
    b->p50_ps = values;
    if (status != GATE_OK || !room)
        return room ? status : no_memory(r->err);
    b->p50_ps[b->n++] = column_int(q, P50);
    return add_row(r, q, series);
}

static enum gate_status add_named_row(struct reader *r, struct query *q,
                                      struct store_trend_series *series)
{
    enum gate_status status = add_row(r, q, series);
    return status == GATE_OK ? name_last_row(r, series) : status;
}

static enum gate_status each_point(struct reader *r, struct query *q, bool bucketed,
                                   struct store_trend_series *series)
{
    struct bucket bucket = {.index = -1};
    enum gate_status status = GATE_OK;
    int rc = SQLITE_DONE;
    while (status == GATE_OK && (rc = query_step(q)) == SQLITE_ROW)
        status = bucketed ? fill_bucket(r, q, &bucket, series) : add_named_row(r, q, series);
    if (status == GATE_OK && rc != SQLITE_DONE)
        status = store_fail(r->store, rc, "read", r->err);
    if (status == GATE_OK)
        status = close_bucket(r, &bucket, series);
    free(bucket.p50_ps);
    query_end(q);
    return status;
}

static enum gate_status read_points(struct reader *r, size_t i)
{
    const struct store_trend_query *w = r->query;
    struct query q;
    if (w->by_commit) {
        q = query_begin(r->store, SQL_TREND_BY_COMMIT);
        bind_int(&q, r->sources[i].series_id);
        bind_int(&q, w->from_ms);
        bind_int(&q, w->to_ms);
    } else {
        q = query_begin(r->store, SQL_TREND_POINTS);
        bind_int(&q, r->sources[i].series_id);
        bind_int(&q, w->from_ms);
        bind_int(&q, -1);
        bind_int(&q, -1);
        bind_int(&q, w->to_ms);
        bind_int(&q, INT64_MAX);
    }
    return each_point(r, &q, r->result->bucketed, &r->result->series[i]);
}

/* ---- pages of raw rows ---- */

/* The key behind which a page begins: "<series>.<time>.<run>.<arm>". */
struct after {
    int64_t series_id, time_ms, run_id, arm;
};

static bool parse_after(const char *text, struct after *after)
{
    int64_t *const parts[] = {&after->series_id, &after->time_ms, &after->run_id, &after->arm};
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

static enum gate_status read_page(struct reader *r)
{
    const struct store_trend_query *w = r->query;
    struct store_trend_result *out = r->result;
    struct after after = {-1, w->from_ms, -1, -1};
    int64_t left = w->points;
    enum gate_status status = GATE_OK;
    size_t i = 0;
    if (w->after && !parse_after(w->after, &after))
        return gate_fail(r->err, GATE_USAGE, "'%.80s' is not the end of a page", w->after);
    while (w->after && i < out->n_series && r->sources[i].series_id != after.series_id)
        i++;
    if (w->after && i == out->n_series)
        return gate_fail(r->err, GATE_USAGE, "'%.80s' is not the end of a page", w->after);
    for (; i < out->n_series && left > 0 && status == GATE_OK; i++) {
        struct query q = query_begin(r->store, SQL_TREND_POINTS);
        bind_int(&q, r->sources[i].series_id);
        bind_int(&q, after.time_ms);
        bind_int(&q, after.run_id);
        bind_int(&q, after.arm);
        bind_int(&q, w->to_ms);
        bind_int(&q, left);
        status = each_point(r, &q, false, &out->series[i]);
        left -= (int64_t)out->series[i].n;
        after = (struct after){-1, w->from_ms, -1, -1};
        if (left == 0)
            snprintf(out->next, sizeof(out->next), "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
                     r->sources[i].series_id, r->last_ms, r->last_run, r->arm);
    }
    return status;
}

/* ---- what there is ---- */

static bool track_row(struct query *q, void *call)
{
    struct store_trend_result *out = call;
    out->track = column_int(q, 0);
    out->threshold = column_real(q, 1);
    return true;
}

static bool series_row(struct query *q, void *call)
{
    struct reader *r = call;
    struct store_trend_result *out = r->result;
    size_t n = out->n_series;
    size_t cap = r->cap;
    void *series = out->series;
    void *sources = r->sources;
    bool room = grow(&series, n, &r->cap, sizeof(*out->series)) &&
                grow(&sources, n, &cap, sizeof(*r->sources));
    out->series = series;
    r->sources = sources;
    if (!room)
        return false;
    r->sources[n] = (struct source){.series_id = column_int(q, 0)};
    out->series[n] = (struct store_trend_series){
        .flops = column_real(q, 3),
        .bytes = column_real(q, 4),
    };
    snprintf(out->series[n].provider, sizeof(out->series[n].provider), "%s", column_text(q, 1));
    snprintf(out->series[n].contract, sizeof(out->series[n].contract), "%s", column_text(q, 2));
    out->n_series++;
    return true;
}

static enum gate_status find_series(struct reader *r)
{
    struct query q = query_begin(r->store, SQL_TREND_TRACK);
    bind_text(&q, r->query->case_id);
    bind_text(&q, r->query->device_model);
    enum gate_status status = store_each_row(r->store, &q, track_row, r->result, r->err);
    if (status != GATE_OK)
        return status;
    q = query_begin(r->store, SQL_TREND_SERIES);
    bind_int(&q, r->result->track);
    bind_text_or_null(&q, r->query->provider);
    bind_text_or_null(&q, r->query->contract);
    return store_each_row(r->store, &q, series_row, r, r->err);
}

struct range {
    struct source *source;
    int64_t *total;
};

static bool range_row(struct query *q, void *call)
{
    const struct range *range = call;
    *range->total = column_int(q, 0);
    range->source->first_ms = column_int(q, 1);
    range->source->last_ms = column_int(q, 2);
    return true;
}

/* Counts the rows, and drops the series that have none. */
static enum gate_status find_ranges(struct reader *r)
{
    struct store_trend_result *out = r->result;
    size_t n = 0;
    for (size_t i = 0; i < out->n_series; i++) {
        struct range range = {&r->sources[i], &out->series[i].total};
        struct query q = query_begin(r->store, SQL_TREND_RANGE);
        bind_int(&q, r->sources[i].series_id);
        bind_int(&q, r->query->from_ms);
        bind_int(&q, r->query->to_ms);
        enum gate_status status = store_each_row(r->store, &q, range_row, &range, r->err);
        if (status != GATE_OK)
            return status;
        out->total += out->series[i].total;
        if (out->series[i].total == 0)
            continue;
        out->bucketed |= !r->query->raw && out->series[i].total > r->query->points;
        r->sources[n] = r->sources[i];
        out->series[n++] = out->series[i];
    }
    out->n_series = n;
    return GATE_OK;
}

/* ---- the axis ---- */

static bool commit_row(struct query *q, void *call)
{
    struct reader *r = call;
    int64_t id = column_int(q, 0);
    if (id >= r->n_places) {
        int64_t n = 2 * id + 1024;
        int64_t *place = realloc(r->place, (size_t)n * sizeof(*place));
        if (!place)
            return false;
        memset(place + r->n_places, 0, (size_t)(n - r->n_places) * sizeof(*place));
        r->place = place;
        r->n_places = n;
    }
    r->place[id] = ++r->last_ms;
    return true;
}

/* Numbers the commits from 1 on, in the order of their first runs; outside of one is 0. */
static enum gate_status number_commits(struct reader *r)
{
    r->last_ms = 0;
    struct query q = query_begin(r->store, SQL_COMMIT_ORDER);
    return store_each_row(r->store, &q, commit_row, r, r->err);
}

static void set_width(struct reader *r, int64_t first, int64_t last)
{
    r->first = first;
    r->width = (last - first) / r->query->points + 1;
}

static enum gate_status lay_axis(struct reader *r)
{
    if (!r->result->bucketed)
        return GATE_OK;
    if (r->query->by_commit) {
        enum gate_status status = number_commits(r);
        set_width(r, 0, r->last_ms + 1);
        return status;
    }
    int64_t first = INT64_MAX;
    int64_t last = 0;
    for (size_t i = 0; i < r->result->n_series; i++) {
        first = r->sources[i].first_ms < first ? r->sources[i].first_ms : first;
        last = r->sources[i].last_ms > last ? r->sources[i].last_ms : last;
    }
    set_width(r, first, last);
    return GATE_OK;
}

enum gate_status store_trend_read(struct store *s, const struct store_trend_query *query,
                                  struct store_trend_result *out, struct gate_error *err)
{
    struct reader r = {.store = s, .query = query, .result = out, .err = err};
    *out = (struct store_trend_result){0};
    enum gate_status status = store_check_limit(query->points, err);
    if (status == GATE_OK)
        status = find_series(&r);
    if (status == GATE_OK)
        status = find_ranges(&r);
    if (status == GATE_OK)
        status = lay_axis(&r);
    if (status == GATE_OK && query->raw)
        status = read_page(&r);
    for (size_t i = 0; i < out->n_series && status == GATE_OK && !query->raw; i++)
        status = read_points(&r, i);
    free(r.sources);
    free(r.place);
    return status;
}

void store_trend_release(struct store_trend_result *r)
{
    for (size_t i = 0; i < r->n_series; i++)
        free(r->series[i].rows);
    for (size_t i = 0; i < r->n_kernels; i++)
        free(r->kernels[i].name);
    free(r->series);
    free(r->kernels);
    *r = (struct store_trend_result){0};
}
