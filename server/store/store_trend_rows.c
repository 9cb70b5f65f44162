/*
 * store_trend_rows.c: see store_trend_rows.h.
 *
 * The rows of a series are one range of the table. What is told of a run, its uuid and commit,
 * never changes, and is looked up for the rows that are shown only, past a small cache.
 */
#include "store_trend_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 128
#define FIRST_ELEMENTS 8

struct store_kernel {
    int64_t id;
    char *name;
};

enum gate_status trend_no_memory(const struct trend_reader *r)
{
    return gate_fail(r->err, GATE_INTERNAL, "out of memory");
}

bool trend_grow(void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? 2 * *cap : FIRST_ELEMENTS;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
}

void store_trend_release(struct store_trend_result *r)
{
    for (size_t i = 0; i < r->n_series; i++) {
        free(r->series[i].rows);
        free(r->series[i].details);
    }
    for (size_t i = 0; i < r->n_kernels; i++)
        free(r->kernels[i].name);
    free(r->series);
    free(r->kernels);
    *r = (struct store_trend_result){0};
}

/* ---- names ---- */

struct name_call {
    struct store *store;
    struct run_name *name;
};

static bool name_row(struct query *q, void *call)
{
    const struct name_call *c = call;
    struct run_name *name = c->name;
    snprintf(name->uuid, sizeof(name->uuid), "%s", column_text(q, 0));
    snprintf(name->commit, sizeof(name->commit), "%s", column_text(q, 1));
    name->branch = store_intern(c->store, column_text(q, 2));
    return true;
}

static enum gate_status name_run(struct trend_reader *r, struct store_trend_details *row)
{
    struct store *s = r->store;
    if (!s->names && !(s->names = calloc(STORE_N_NAMES, sizeof(*s->names))))
        return trend_no_memory(r);
    struct run_name *name = &s->names[(size_t)row->run_id & (STORE_N_NAMES - 1)];
    enum gate_status status = GATE_OK;
    if (name->id != row->run_id) {
        struct query q = query_begin(s, SQL_RUN_NAME);
        bind_int(&q, row->run_id);
        struct name_call call = {s, name};
        status = store_each_row(s, &q, name_row, &call, r->err);
        name->id = status == GATE_OK ? row->run_id : 0;
    }
    memcpy(row->run, name->uuid, sizeof(row->run));
    memcpy(row->commit, name->commit, sizeof(row->commit));
    row->branch = name->branch;
    return status;
}

static bool kernel_row(struct query *q, void *call)
{
    char **name = call;
    *name = strdup(column_text(q, 0));
    return true;
}

static enum gate_status name_kernel(struct trend_reader *r, struct store_trend_details *row)
{
    struct store_trend_result *out = r->result;
    for (size_t i = out->n_kernels; i-- > 0;) {
        if (out->kernels[i].id == row->kernel_id) {
            row->kernel = out->kernels[i].name;
            return GATE_OK;
        }
    }
    char *text = NULL;
    struct query q = query_begin(r->store, SQL_KERNEL);
    bind_int(&q, row->kernel_id);
    enum gate_status status = store_each_row(r->store, &q, kernel_row, &text, r->err);
    struct store_kernel *kernels =
        realloc(out->kernels, (out->n_kernels + 1) * sizeof(*out->kernels));
    if (kernels)
        out->kernels = kernels;
    if (status != GATE_OK || !text || !kernels) {
        free(text);
        return status == GATE_OK ? trend_no_memory(r) : status;
    }
    kernels[out->n_kernels++] = (struct store_kernel){row->kernel_id, text};
    row->kernel = text;
    return GATE_OK;
}

enum gate_status trend_name_rows(struct trend_reader *r, struct store_trend_series *series)
{
    enum gate_status status = GATE_OK;
    if (!series->details)
        return status;
    for (size_t i = 0; i < series->n && status == GATE_OK; i++) {
        if (!(r->query->omit & STORE_TREND_NAMES))
            status = name_run(r, &series->details[i]);
        if (status == GATE_OK && !(r->query->omit & STORE_TREND_KERNEL))
            status = name_kernel(r, &series->details[i]);
    }
    return status;
}

/* ---- a row ---- */

/* As POINT_LEVELS and POINT_DETAILS in store_sql.c have them. */
enum {
    TIME,
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
    VENDOR,
};

static int64_t integer(sqlite3_value **values, int which) /* 0 for NULL */
{
    return sqlite3_value_int64(values[which]);
}

static int64_t known_or_minus_1(sqlite3_value **values, int which)
{
    return sqlite3_value_type(values[which]) == SQLITE_NULL ? -1 : integer(values, which);
}

static void fill_details(struct store_trend_details *row, sqlite3_value **values)
{
    *row = (struct store_trend_details){
        .run_id = integer(values, RUN),
        .arm = integer(values, ARM),
        .verdict = store_verdict_name((int)integer(values, VERDICT)),
        .kernel_id = integer(values, KERNEL),
        .p10_ps = integer(values, P10),
        .p90_ps = integer(values, P90),
        .control_ps = integer(values, CONTROL),
        .best_p50_ps = integer(values, BEST),
        .rel_err = -1,
        .vendor_ratio = -1,
        .sm_clock_khz = integer(values, CLOCK),
        .registers = known_or_minus_1(values, REGISTERS),
        .shared_bytes = known_or_minus_1(values, SHARED),
        .spill_bytes = known_or_minus_1(values, SPILL),
    };
    if (sqlite3_value_type(values[REL_ERR]) != SQLITE_NULL)
        row->rel_err = sqlite3_value_double(values[REL_ERR]);
    if (sqlite3_value_type(values[VENDOR]) != SQLITE_NULL)
        row->vendor_ratio = sqlite3_value_double(values[VENDOR]) / 1e6;
}

void trend_fill_row(struct store_trend_series *series, size_t k, sqlite3_value **values)
{
    int64_t p50_ps = integer(values, P50);
    series->rows[k] = (struct store_trend_row){
        .time_ms = integer(values, TIME),
        .n = 1,
        .p50_ps = p50_ps,
        .min_ps = p50_ps,
        .max_ps = p50_ps,
        .p50_lo_ps = integer(values, P50_LO),
        .p50_hi_ps = integer(values, P50_HI),
    };
    if (series->details)
        fill_details(&series->details[k], values);
}

bool trend_add_row(struct store_trend_series *series, bool with_details)
{
    if (series->n < series->cap)
        return true;
    size_t cap = series->cap ? 2 * series->cap : FIRST_ROWS;
    void *rows = realloc(series->rows, cap * sizeof(*series->rows));
    if (!rows)
        return false;
    series->rows = rows;
    if (with_details) {
        void *details = realloc(series->details, cap * sizeof(*series->details));
        if (!details)
            return false;
        series->details = details;
    }
    series->cap = cap;
    return true;
}

/* ---- all rows, or a page of them ---- */

bool trend_is_of_levels(const struct trend_reader *r)
{
    return (r->query->omit & STORE_TREND_ALL_PARTS) == STORE_TREND_ALL_PARTS && !r->query->raw;
}

struct query trend_begin_chosen(struct trend_reader *r, enum store_sql id, size_t i)
{
    struct query q = query_begin(r->store, id);
    bind_int(&q, r->result->series[i].id);
    bind_int(&q, r->query->from_ms);
    bind_int(&q, r->query->to_ms);
    return q;
}

struct page {
    const struct trend_reader *reader;
    struct store_trend_series *series;
    const struct trend_key *after;
    const struct trend_filter *filter; /* or NULL */
    int64_t limit;
    bool with_details;
    bool more;
    enum gate_status status;
};

/* Rows of one millisecond stand in the order of their runs. */
static bool is_behind(sqlite3_value **values, const struct trend_key *after)
{
    int64_t run_id = integer(values, RUN);
    if (integer(values, TIME) != after->time_ms)
        return true;
    return run_id > after->run_id || (run_id == after->run_id && integer(values, ARM) > after->arm);
}

static bool take_row(void *context, sqlite3_value **values)
{
    struct page *page = context;
    struct store_trend_series *series = page->series;
    if (integer(values, TIME) > page->reader->query->to_ms)
        return true;
    if (page->after && !is_behind(values, page->after))
        return false;
    if (page->filter && !trend_filter_wants(page->filter, integer(values, RUN)))
        return false;
    page->more = (int64_t)series->n == page->limit;
    if (page->more)
        return true;
    if (!trend_add_row(series, page->with_details)) {
        page->status = trend_no_memory(page->reader);
        return true;
    }
    trend_fill_row(series, series->n++, values);
    return false;
}

enum gate_status trend_read_rows(struct trend_reader *r, size_t i, const struct trend_key *after,
                                 int64_t limit, bool *more)
{
    struct page page = {
        .reader = r,
        .series = &r->result->series[i],
        .after = after,
        .limit = limit,
        .filter = r->filter.is_set ? &r->filter : NULL,
        /* The order of commits and what is wanted are found by the run. */
        .with_details = !trend_is_of_levels(r) || r->order || r->filter.is_set,
    };
    const struct store_scan scan = {.take = take_row, .context = &page};
    struct query q = query_begin(r->store, page.with_details ? SQL_TREND_POINTS : SQL_TREND_LEVELS);
    bind_int(&q, page.series->id);
    bind_int(&q, after ? after->time_ms : r->query->from_ms);
    enum gate_status status = store_scan_rows(r->store, &q, &scan, r->err);
    *more = page.more;
    if (status == GATE_OK)
        status = page.status;
    return status;
}
