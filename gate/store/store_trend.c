/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend.c: see store_trend.h.
 *
 * One query a series reads the levels of all its points in the range; rows, pages and buckets are
 * made of these in memory. What else there is of a point is looked up for the rows that are shown.
 */
#include "gate/store/store_trend.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"
#include "gate/store/baseline_chain.h"
#include "gate/store/store_private.h"
#include "gate/store/store_trend_buckets.h"

#define MAX_POINTS 40000 /* of all series of an answer */

#define FIRST_ROWS 128

static enum gate_status no_memory(struct gate_error *err)
{
    return gate_fail(err, GATE_INTERNAL, "out of memory");
}

static void copy(char *out, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

/* ---- the series ---- */

/* As SQL_TREND_SERIES has them. */
enum {
    TRACK,
    THRESHOLD,
    BASELINE,
    BASELINE_COMMIT,
    BASELINE_TIME,
    HAS_CHANGES,
    HAS_BASELINE_LOG,
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
    out->baseline.p50_ns = column_real(q, BASELINE);
    out->baseline.time_ms = column_int(q, BASELINE_TIME);
    copy(out->baseline.commit, sizeof out->baseline.commit, column_text(q, BASELINE_COMMIT));
    out->has_changes = column_int(q, HAS_CHANGES) != 0;
    out->has_baseline_log = column_int(q, HAS_BASELINE_LOG) != 0;
    out->has_wrong = column_int(q, HAS_WRONG) != 0;
}

struct series_call {
    struct store_trend_result *out;
    bool no_memory;
};

static bool series_row(struct query *q, void *call)
{
    struct series_call *c = call;
    struct store_trend_result *out = c->out;
    read_track(q, out);
    if (sqlite3_column_type(q->stmt, SERIES) == SQLITE_NULL)
        return true;
    struct store_trend_series *more = realloc(out->series, (out->n_series + 1) * sizeof *more);
    c->no_memory = !more;
    if (!more)
        return false;
    out->series = more;
    struct store_trend_series *series = &more[out->n_series++];
    *series = (struct store_trend_series){
        .id = column_int(q, SERIES),
        .is_candidate = column_int(q, ROLE) == 0,
        .flops = column_real(q, FLOPS),
        .bytes = column_real(q, BYTES),
    };
    copy(series->provider, sizeof series->provider, column_text(q, PROVIDER));
    copy(series->contract, sizeof series->contract, column_text(q, CONTRACT));
    return true;
}

static enum gate_status read_series(struct store *s, const struct store_trend_query *query,
                                    struct store_trend_result *out, struct gate_error *err)
{
    struct series_call call = {.out = out};
    struct query q = query_begin(s, SQL_TREND_SERIES);
    bind_text(&q, query->case_id);
    bind_text(&q, query->device_model);
    bind_text_or_null(&q, query->provider);
    bind_text_or_null(&q, query->contract);
    enum gate_status status = store_each_row(s, &q, series_row, &call, err);
    return !status && call.no_memory ? no_memory(err) : status;
}

/* ---- the levels ---- */

struct level_call {
    struct store_trend_series *series;
    const struct baseline_chain *chain;
    int n_columns; /* of the statement: 4 of levels, 2 of the key, 5 of the run */
    bool no_memory;
};

static void read_chain_columns(struct query *q, const struct baseline_chain *chain,
                               struct store_trend_row *row)
{
    const struct chain_link *link = chain_find(chain, column_int(q, 10));
    row->is_main = column_int(q, 8);
    row->ratio = column_real(q, 9);
    if (row->ratio <= 0 || !link)
        return;
    row->chain = row->ratio * exp(link->level);
    row->chain_part = link->part;
}

static bool make_room(struct store_trend_series *series)
{
    if (series->n < series->cap)
        return true;
    size_t cap = series->cap ? 2 * series->cap : FIRST_ROWS;
    struct store_trend_row *more = realloc(series->rows, cap * sizeof *more);
    if (!more)
        return false;
    series->rows = more;
    series->cap = cap;
    return true;
}

static bool level_row(struct query *q, void *call)
{
    struct level_call *c = call;
    c->no_memory = !make_room(c->series);
    if (c->no_memory)
        return false;
    int64_t p50_ps = column_int(q, 1);
    struct store_trend_row *row = &c->series->rows[c->series->n++];
    *row = (struct store_trend_row){
        .time_ms = column_int(q, 0),
        .n = 1,
        .p50_ps = p50_ps,
        .min_ps = p50_ps,
        .max_ps = p50_ps,
        .p50_lo_ps = column_int(q, 2),
        .p50_hi_ps = column_int(q, 3),
        .chain_part = -1,
    };
    if (c->n_columns > 4) {
        row->run_id = column_int(q, 4);
        row->arm = column_int(q, 5);
    }
    if (c->n_columns > 6) {
        row->commit = (struct store_commit){column_int(q, 6), column_int(q, 7)};
        read_chain_columns(q, c->chain, row);
    }
    return true;
}

/* ---- the chain of baselines ---- */

struct chain_call {
    struct baseline_chain *chain;
    void (*step)(struct baseline_chain *chain, const struct chain_point *p);
};

static bool chain_row(struct query *q, void *call)
{
    const struct chain_call *c = call;
    const struct chain_point p = {
        .time_ms = column_int(q, 0),
        .ratio = column_real(q, 1),
        .baseline_ms = column_int(q, 2),
        .baseline_revision = column_int(q, 3),
        .revision = column_int(q, 4),
    };
    c->step(c->chain, &p);
    return true;
}

/* Of all points, so that a level is the same whatever range is asked for. */
static enum gate_status read_chain(struct store *s, int64_t series, struct baseline_chain *chain,
                                   struct gate_error *err)
{
    struct chain_call call = {chain, chain_add};
    chain->n = 0;
    struct query q = query_begin(s, SQL_TREND_CHAIN);
    bind_int(&q, series);
    enum gate_status status = store_each_row(s, &q, chain_row, &call, err);
    call.step = chain_tie;
    q = query_begin(s, SQL_TREND_CHAIN);
    bind_int(&q, series);
    if (!status && chain->n > 1)
        status = store_each_row(s, &q, chain_row, &call, err);
    else
        query_end(&q);
    chain_end(chain);
    return status;
}

static bool is_of_change(const struct store_trend_row *row)
{
    return row->is_main && row->chain_part == 0;
}

/* The median of up to `most` values from row `at` on, in steps of 1 or -1. */
static double end_level(const struct store_trend_series *series, size_t at, int step, size_t most,
                        int64_t *ms)
{
    double value[STORE_TREND_CHANGE_OF];
    size_t n = 0;
    for (size_t i = at; i < series->n && n < most; i += (size_t)step) {
        const struct store_trend_row *row = &series->rows[i];
        if (!is_of_change(row))
            continue;
        if (n == 0)
            *ms = row->time_ms;
        value[n++] = row->chain;
    }
    stats_sort(value, n);
    return n > 0 ? stats_quantile(value, n, 0.5) : 0;
}

/* No run is at both ends: a short history would show no change. */
static void find_change(struct store_trend_series *series)
{
    struct store_trend_change change = {0};
    size_t half = 0;
    for (size_t i = 0; i < series->n; i++)
        half += is_of_change(&series->rows[i]);
    half = half < 2 ? 1 : half / 2;
    if (half > STORE_TREND_CHANGE_OF)
        half = STORE_TREND_CHANGE_OF;
    double first = end_level(series, 0, 1, half, &change.from_ms);
    double last = end_level(series, series->n - 1, -1, half, &change.to_ms);
    if (change.from_ms >= change.to_ms)
        return;
    change.ratio = last / first;
    series->change = change;
}

static enum gate_status read_levels(struct store *s, const struct store_trend_query *query,
                                    struct store_trend_series *series, struct gate_error *err)
{
    struct store_commit from = query->from_commit, to = query->to_commit;
    struct baseline_chain chain;
    chain.n = 0; /* the links are 14 KB, and are written where they are asked for */
    enum gate_status status = GATE_OK;
    bool of_runs =
        query->by_commit || query->branch || query->main_branch || from.id != 0 || to.id != 0;
    bool with_keys = query->raw || !query->levels_only;
    if (query->main_branch && series->is_candidate)
        status = read_chain(s, series->id, &chain, err);
    if (status)
        return status;
    struct query q = query_begin(s, of_runs     ? SQL_TREND_LEVELS_OF_RUNS
                                    : with_keys ? SQL_TREND_KEYS
                                                : SQL_TREND_LEVELS);
    struct level_call call = {
        .series = series, .chain = &chain, .n_columns = sqlite3_column_count(q.stmt)};
    bind_int(&q, series->id);
    bind_int(&q, query->from_ms);
    bind_int(&q, query->to_ms);
    if (of_runs) {
        bind_text_or_null(&q, query->branch);
        bind_int(&q, from.id != 0 ? from.first_ms : INT64_MIN);
        bind_int(&q, from.id);
        bind_int(&q, to.id != 0 ? to.first_ms : INT64_MAX);
        bind_int(&q, to.id);
        bind_int(&q, query->by_commit);
        bind_text_or_null(&q, query->main_branch);
    }
    status = store_each_row(s, &q, level_row, &call, err);
    series->total = (int64_t)series->n;
    if (chain.n > 0)
        find_change(series);
    return !status && call.no_memory ? no_memory(err) : status;
}

static enum gate_status read_all_levels(struct store *s, const struct store_trend_query *query,
                                        struct store_trend_result *out, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < out->n_series && !status; i++) {
        status = read_levels(s, query, &out->series[i], err);
        out->total += out->series[i].total;
        out->bucketed |= !query->raw && out->series[i].total > query->points;
    }
    return status;
}

/* Drops the series that have no points in the range. */
static void drop_empty(struct store_trend_result *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_series; i++) {
        if (out->series[i].total > 0)
            out->series[n++] = out->series[i];
    }
    out->n_series = n;
}

/* ---- pages of raw rows ---- */

/* The row behind which a page begins: "<series>.<time>.<run>.<arm>". */
static bool parse_after(const char *text, int64_t key[4])
{
    errno = 0;
    for (int i = 0; i < 4; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        key[i] = strtoll(text, &end, 10);
        if (errno != 0 || *end != (i < 3 ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static bool is_behind(const struct store_trend_row *row, const int64_t key[4])
{
    if (row->time_ms != key[1])
        return row->time_ms > key[1];
    return row->run_id != key[2] ? row->run_id > key[2] : row->arm > key[3];
}

static void keep_rows(struct store_trend_series *series, size_t from, size_t n)
{
    if (n > 0)
        memmove(series->rows, series->rows + from, n * sizeof *series->rows);
    series->n = n;
}

static enum gate_status cut_page(const struct store_trend_query *query,
                                 struct store_trend_result *out, struct gate_error *err)
{
    int64_t key[4] = {0};
    size_t left = (size_t)query->points;
    bool begun = !query->after;
    if (query->after && !parse_after(query->after, key))
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", query->after);
    for (size_t i = 0; i < out->n_series; i++) {
        struct store_trend_series *series = &out->series[i];
        size_t from = begun || series->id == key[0] ? 0 : series->n;
        while (!begun && from < series->n && !is_behind(&series->rows[from], key))
            from++;
        begun |= series->id == key[0];
        size_t n = series->n - from < left ? series->n - from : left;
        keep_rows(series, from, n);
        left -= n;
        if (left == 0 && n > 0)
            snprintf(out->next, sizeof out->next, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
                     series->id, series->rows[n - 1].time_ms, series->rows[n - 1].run_id,
                     series->rows[n - 1].arm);
    }
    if (!begun)
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", query->after);
    return GATE_OK;
}

/* ---- the rest of a row ---- */

/* As SQL_TREND_DETAILS has them. */
enum {
    VERDICT,
    P10,
    P90,
    CONTROL,
    BASELINE_P50,
    REL_ERR,
    CLOCK,
    REGISTERS,
    SHARED,
    SPILL,
    VENDOR,
    RUN,
    COMMIT,
    BRANCH,
    KERNEL,
};

/* The text, or the one of the row before if that is the same; NULL: memory is short. */
static char *share(const char *text, char *before)
{
    return before && !strcmp(before, text) ? before : strdup(text);
}

static int64_t known_or_minus_1(struct query *q, int column)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? -1 : column_int(q, column);
}

struct detail_call {
    struct store_trend_details *row;
    const struct store_trend_details *before;
};

static bool detail_row(struct query *q, void *call)
{
    struct detail_call *c = call;
    struct store_trend_details *row = c->row;
    *row = (struct store_trend_details){
        .verdict = verdict_name((enum verdict)column_int(q, VERDICT)),
        .p10_ps = column_int(q, P10),
        .p90_ps = column_int(q, P90),
        .control_ps = column_int(q, CONTROL),
        .baseline_p50_ps = column_int(q, BASELINE_P50),
        .rel_err = -1,
        .vendor_ratio = -1,
        .sm_clock_khz = column_int(q, CLOCK),
        .registers = known_or_minus_1(q, REGISTERS),
        .shared_bytes = known_or_minus_1(q, SHARED),
        .spill_bytes = known_or_minus_1(q, SPILL),
        .branch = share(column_text(q, BRANCH), c->before ? c->before->branch : NULL),
        .kernel = share(column_text(q, KERNEL), c->before ? c->before->kernel : NULL),
    };
    if (sqlite3_column_type(q->stmt, REL_ERR) != SQLITE_NULL)
        row->rel_err = column_real(q, REL_ERR);
    if (sqlite3_column_type(q->stmt, VENDOR) != SQLITE_NULL)
        row->vendor_ratio = column_real(q, VENDOR) / 1e6;
    copy(row->run, sizeof row->run, column_text(q, RUN));
    copy(row->commit, sizeof row->commit, column_text(q, COMMIT));
    return false;
}

static bool subject_row(struct query *q, void *call)
{
    struct detail_call *c = call;
    c->row->subject = share(column_text(q, 0), c->before ? c->before->subject : NULL);
    c->row->author = share(column_text(q, 1), c->before ? c->before->author : NULL);
    return false;
}

static enum gate_status read_subject(struct store *s, int64_t run, struct detail_call *call,
                                     struct gate_error *err)
{
    struct query q = query_begin(s, SQL_TREND_SUBJECT);
    bind_int(&q, run);
    enum gate_status status = store_each_row(s, &q, subject_row, call, err);
    return !status && (!call->row->subject || !call->row->author) ? no_memory(err) : status;
}

static enum gate_status read_details(struct store *s, const struct store_trend_query *query,
                                     struct store_trend_series *series, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    series->details = calloc(series->n + 1, sizeof *series->details);
    if (!series->details)
        return no_memory(err);
    for (size_t k = 0; k < series->n && !status; k++) {
        struct detail_call call = {&series->details[k], k > 0 ? &series->details[k - 1] : NULL};
        struct query q = query_begin(s, SQL_TREND_DETAILS);
        bind_int(&q, series->id);
        bind_int(&q, series->rows[k].time_ms);
        bind_int(&q, series->rows[k].run_id);
        bind_int(&q, series->rows[k].arm);
        status = store_each_row(s, &q, detail_row, &call, err);
        if (!status && (!call.row->branch || !call.row->kernel))
            status = no_memory(err);
        if (!status && query->with_subjects)
            status = read_subject(s, series->rows[k].run_id, &call, err);
    }
    return status;
}

static void release_series(struct store_trend_series *series)
{
    for (size_t k = 0; series->details && k < series->n; k++) {
        struct store_trend_details *row = &series->details[k];
        bool last = k + 1 == series->n;
        if (last || row->kernel != row[1].kernel)
            free(row->kernel);
        if (last || row->branch != row[1].branch)
            free(row->branch);
        if (last || row->subject != row[1].subject)
            free(row->subject);
        if (last || row->author != row[1].author)
            free(row->author);
    }
    free(series->details);
    free(series->rows);
}

/* ---- all of it ---- */

enum gate_status store_trend_read(struct store *s, const struct store_trend_query *asked,
                                  struct store_trend_result *out, struct gate_error *err)
{
    struct store_trend_query part = *asked;
    const struct store_trend_query *query = &part;
    *out = (struct store_trend_result){0};
    enum gate_status status = store_check_limit(query->points, err);
    if (!status)
        status = read_series(s, query, out, err);
    int64_t share = out->n_series > 0 ? MAX_POINTS / (int64_t)out->n_series : MAX_POINTS;
    if (!query->raw && query->points > share)
        part.points = share > 0 ? share : 1;
    if (!status)
        status = read_all_levels(s, query, out, err);
    if (!status)
        drop_empty(out);
    if (!status && query->raw)
        status = cut_page(query, out, err);
    else if (!status && out->bucketed && !trend_to_buckets(query, out))
        status = no_memory(err);
    for (size_t i = 0; i < out->n_series && !status && !query->levels_only; i++)
        status = read_details(s, query, &out->series[i], err);
    return status;
}

void store_trend_release(struct store_trend_result *r)
{
    for (size_t i = 0; i < r->n_series; i++)
        release_series(&r->series[i]);
    free(r->series);
    *r = (struct store_trend_result){0};
}

struct commit_call {
    struct store_commit commit;
    int n;
};

static bool commit_row(struct query *q, void *call)
{
    struct commit_call *c = call;
    c->commit = (struct store_commit){.id = column_int(q, 0), .first_ms = column_int(q, 1)};
    c->n++;
    return true;
}

enum gate_status store_commit(struct store *s, const char *digits, struct store_commit *out,
                              struct gate_error *err)
{
    struct commit_call call = {.n = 0};
    struct query q = query_begin(s, SQL_FIND_COMMIT);
    bind_text(&q, digits);
    enum gate_status status = store_each_row(s, &q, commit_row, &call, err);
    *out = call.n == 1 ? call.commit : (struct store_commit){0};
    return status;
}
