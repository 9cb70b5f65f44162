/*
 * store_trend_rows.c: see store_trend_rows.h.
 *
 * The rows of a series are one range of the table. What is told of a run, its uuid and commit,
 * never changes, and is looked up for the rows that are shown only, past a small cache.
 */
#include "store_trend_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 16384 /* of an array that grows: the rows of a small answer */

struct store_kernel {
    int64_t id;
    char *name;
};

static enum gate_status no_memory(struct gate_error *err)
{
    return gate_fail(err, GATE_INTERNAL, "out of memory");
}

bool trend_grow(void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? 2 * *cap : FIRST_BYTES / size;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
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

/* ---- names ---- */

static bool name_row(struct query *q, void *call)
{
    struct run_name *name = call;
    snprintf(name->uuid, sizeof(name->uuid), "%s", column_text(q, 0));
    snprintf(name->commit, sizeof(name->commit), "%s", column_text(q, 1));
    return true;
}

static enum gate_status name_run(struct trend_reader *r, int64_t run_id,
                                 struct store_trend_row *row)
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

static enum gate_status name_kernel(struct trend_reader *r, int64_t id, const char **name)
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

/* Of POINT_LEVELS, then of POINT_DETAILS, then the commit's id. */
enum column {
    TIME,
    ROLE,
    P50,
    P50_LO,
    P50_HI,
    RUN,
    ARM,
    VERDICT,
    KERNEL,
    P10,
    P90,
    CONTROL,
    BEST,
    REL_ERR,
    CLOCK,
    REGISTERS,
    SHARED,
    SPILL,
    COMMIT
};

/* Are the levels all that is asked for? Then the rest of a row need not be taken apart. */
static bool has_levels_only(const struct trend_reader *r)
{
    return r->query->omit == STORE_TREND_ALL_PARTS && !r->query->raw && !r->query->by_commit;
}

static int64_t known_or_minus_1(struct query *q, int column)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? -1 : column_int(q, column);
}

static void read_levels(struct query *q, struct store_trend_row *row)
{
    *row = (struct store_trend_row){
        .time_ms = column_int(q, TIME),
        .n = 1,
        .p50_ps = column_int(q, P50),
        .p50_lo_ps = column_int(q, P50_LO),
        .p50_hi_ps = column_int(q, P50_HI),
        .rel_err = -1,
        .registers = -1,
        .shared_bytes = -1,
        .spill_bytes = -1,
        .verdict = "",
    };
    row->min_ps = row->max_ps = row->p50_ps;
}

static void read_details(struct query *q, struct store_trend_row *row)
{
    row->verdict = store_verdict_name((int)column_int(q, VERDICT));
    row->p10_ps = column_int(q, P10);
    row->p90_ps = column_int(q, P90);
    row->control_ps = column_int(q, CONTROL);
    row->best_p50_ps = column_int(q, BEST);
    if (sqlite3_column_type(q->stmt, REL_ERR) != SQLITE_NULL)
        row->rel_err = column_real(q, REL_ERR);
    row->sm_clock_khz = column_int(q, CLOCK);
    row->registers = known_or_minus_1(q, REGISTERS);
    row->shared_bytes = known_or_minus_1(q, SHARED);
    row->spill_bytes = known_or_minus_1(q, SPILL);
}

/* Puts what the statement shows behind the rows of the series, but for the names. */
static enum gate_status add_row(struct trend_reader *r, struct query *q,
                                struct store_trend_series *series)
{
    void *rows = series->rows;
    bool room = trend_grow(&rows, series->n, &series->cap, sizeof(*series->rows));
    series->rows = rows;
    if (!room)
        return no_memory(r->err);
    struct store_trend_row *row = &series->rows[series->n++];
    series->is_candidate = column_int(q, ROLE) == 0;
    read_levels(q, row);
    if (has_levels_only(r))
        return GATE_OK;
    r->last = (struct trend_key){row->time_ms, column_int(q, RUN), column_int(q, ARM)};
    r->kernel_id = column_int(q, KERNEL);
    if (!(r->query->omit & STORE_TREND_DETAILS))
        read_details(q, row);
    return GATE_OK;
}

static enum gate_status name_last_row(struct trend_reader *r, struct store_trend_series *series)
{
    struct store_trend_row *row = &series->rows[series->n - 1];
    enum gate_status status = GATE_OK;
    if (!(r->query->omit & STORE_TREND_NAMES))
        status = name_run(r, r->last.run_id, row);
    if (status == GATE_OK && !(r->query->omit & STORE_TREND_KERNEL))
        status = name_kernel(r, r->kernel_id, &row->kernel);
    return status;
}

static struct query begin_points(struct trend_reader *r, size_t i, int64_t from_ms)
{
    enum store_sql id = r->query->by_commit  ? SQL_TREND_BY_COMMIT
                        : has_levels_only(r) ? SQL_TREND_LEVELS
                                             : SQL_TREND_POINTS;
    struct query q = query_begin(r->store, id);
    bind_int(&q, r->series_id[i]);
    bind_int(&q, from_ms);
    bind_int(&q, r->query->to_ms);
    return q;
}

static enum gate_status end_points(struct trend_reader *r, struct query *q, int rc,
                                   enum gate_status status)
{
    if (status == GATE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
        status = store_fail(r->store, rc, "read", r->err);
    query_end(q);
    return status;
}

/* Rows of one millisecond stand in the order of their runs. */
static bool is_behind(struct query *q, const struct trend_key *after)
{
    int64_t run_id = column_int(q, RUN);
    if (column_int(q, TIME) != after->time_ms)
        return true;
    return run_id > after->run_id || (run_id == after->run_id && column_int(q, ARM) > after->arm);
}

enum gate_status trend_read_rows(struct trend_reader *r, size_t i, const struct trend_key *after,
                                 int64_t limit, bool *more)
{
    struct store_trend_series *series = &r->result->series[i];
    struct query q = begin_points(r, i, after ? after->time_ms : r->query->from_ms);
    enum gate_status status = GATE_OK;
    int rc = SQLITE_DONE;
    *more = false;
    while (status == GATE_OK && !*more && (rc = query_step(&q)) == SQLITE_ROW) {
        if (after && !is_behind(&q, after))
            continue;
        *more = (int64_t)series->n == limit;
        if (*more)
            break;
        status = add_row(r, &q, series);
        if (status == GATE_OK)
            status = name_last_row(r, series);
    }
    return end_points(r, &q, rc, status);
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
static enum gate_status close_bucket(struct trend_reader *r, struct bucket *b,
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
    series->total += row->n;
    b->n = 0;
    return name_last_row(r, series);
}

/*
 * Where on the axis a row stands. The order of commits was read before; a commit that it does not
 * have yet is behind all.
 */
static int64_t place_of(const struct trend_reader *r, struct query *q)
{
    if (!r->query->by_commit)
        return column_int(q, TIME);
    int64_t id = column_int(q, COMMIT);
    return id < r->n_places ? r->place[id] : r->n_places;
}

/* A row into its bucket: it takes the place of the one before, unless it opens another bucket. */
static enum gate_status fill_bucket(struct trend_reader *r, struct query *q, struct bucket *b,
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
    bool room = trend_grow(&values, b->n, &b->cap, sizeof(*b->p50_ps));
    b->p50_ps = values;
    if (status != GATE_OK || !room)
        return room ? status : no_memory(r->err);
    b->p50_ps[b->n++] = column_int(q, P50);
    return add_row(r, q, series);
}

enum gate_status trend_read_buckets(struct trend_reader *r, size_t i)
{
    struct store_trend_series *series = &r->result->series[i];
    struct bucket bucket = {.index = -1};
    struct query q = begin_points(r, i, r->query->from_ms);
    enum gate_status status = GATE_OK;
    int rc = SQLITE_DONE;
    series->n = 0;
    series->total = 0;
    while (status == GATE_OK && (rc = query_step(&q)) == SQLITE_ROW)
        status = fill_bucket(r, &q, &bucket, series);
    if (status == GATE_OK)
        status = close_bucket(r, &bucket, series);
    free(bucket.p50_ps);
    return end_points(r, &q, rc, status);
}
