/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend.c: see store_trend.h.
 *
 * One query reads the levels of all points in the range; rows, pages and buckets are made of these
 * in memory. What else there is of a point is read for the rows that are shown.
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

#define MAX_POINTS 5000 /* of all series of an answer */

#define FIRST_ROWS 128

static enum gate_status no_memory(struct gate_error *err)
{
    return gate_fail(err, GATE_INTERNAL, "out of memory");
}

/* ---- the track ---- */

static enum gate_status read_track(struct store *s, const struct store_trend_query *query,
                                   struct store_trend_result *out, struct gate_error *err)
{
    struct query q =
        query_begin(s,
                    "SELECT t.id, (SELECT e.threshold FROM result e WHERE e.track_id = t.id "
                    " AND e.arm = 0 ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1) "
                    "FROM track t WHERE t.case_id = ?1 AND t.device = ?2",
                    CELLS(cell_text(query->case_id), cell_text(query->device_model)));
    if (query_row(&q)) {
        out->track = column_int(&q, 0);
        out->threshold = column_real(&q, 1);
    }
    return query_done(s, &q, err);
}

/* ---- the levels ---- */

struct level_call {
    struct store_trend_result *out;
    bool by_commit, no_memory;
    struct store_commit commit; /* of the last row */
    int64_t place;              /* on the axis: the same */
};

/* As LEVELS has them. */
enum {
    PROVIDER,
    CONTRACT,
    TIME,
    P50,
    RUN_ID,
    ARM,
    IS_MAIN,
    RATIO,
    BASELINE_TIME,
    PLACE_MS,
    REVISION,
};

/* The series of a row, with room for it; they are few. NULL: out of memory. */
static struct store_trend_series *series_of(struct level_call *c, struct query *q)
{
    struct store_trend_result *out = c->out;
    const char *provider = column_text(q, PROVIDER), *contract = column_text(q, CONTRACT);
    struct store_trend_series *series = out->series, *end = series + out->n_series;
    while (series < end &&
           (strcmp(series->provider, provider) != 0 || strcmp(series->contract, contract) != 0))
        series++;
    if (series == end) {
        series = realloc(out->series, (out->n_series + 1) * sizeof *series);
        if (!series)
            return NULL;
        out->series = series;
        series += out->n_series++;
        *series = (struct store_trend_series){.n = 0};
        snprintf(series->provider, sizeof series->provider, "%s", provider);
        snprintf(series->contract, sizeof series->contract, "%s", contract);
    }
    if (series->n == series->cap) {
        size_t cap = series->cap ? 2 * series->cap : FIRST_ROWS;
        struct store_trend_row *more = realloc(series->rows, cap * sizeof *more);
        if (!more)
            return NULL;
        series->rows = more;
        series->cap = cap;
    }
    return series;
}

static bool level_row(struct query *q, struct level_call *c)
{
    const struct store_commit commit = {column_int(q, PLACE_MS), column_int(q, REVISION)};
    struct store_trend_series *series = series_of(c, q);
    c->no_memory = !series;
    if (!series)
        return false;
    /* Rows come in the order of commits, so that another commit is the next one. */
    c->place += commit.place_ms != c->commit.place_ms || commit.id != c->commit.id;
    c->commit = commit;
    double p50_ns = column_real(q, P50);
    int64_t time_ms = column_int(q, TIME);
    series->rows[series->n++] = (struct store_trend_row){
        .time_ms = time_ms,
        .n = 1,
        .p50_ns = p50_ns,
        .min_ns = p50_ns,
        .max_ns = p50_ns,
        .run_id = column_int(q, RUN_ID),
        .arm = column_int(q, ARM),
        .ratio = column_real(q, RATIO),
        .baseline_ms = column_int(q, BASELINE_TIME),
        .place = c->by_commit ? c->place : time_ms,
        .is_main = column_int(q, IS_MAIN),
        .chain_part = -1,
    };
    return true;
}

/* ---- the chain of baselines ---- */

#define CHAINED                                                                                    \
    " e.track_id = ?1 AND e.provider = ?2 AND e.contract = ?3 AND e.arm = 0 AND e.paired"          \
    " AND e.p50_ns IS NOT NULL AND e.ratio > 0 "

/* Of all points, so that a level is the same whatever range is asked for: the first one of each
 * baseline, then those of the commits that became one. */
static enum gate_status read_chain(struct store *s, int64_t track,
                                   const struct store_trend_series *series,
                                   struct baseline_chain *chain, struct gate_error *err)
{
    static const char firsts[] =
        "SELECT f.time_ms, f.ratio, f.baseline_ms, b.id, 0 FROM (SELECT min(e.time_ms) AS time_ms,"
        "  e.ratio, e.baseline_ms, e.baseline_commit FROM result e INDEXED BY result_by_branch "
        " WHERE" CHAINED "GROUP BY e.baseline_ms) f "
        "LEFT JOIN revision b ON b.commit_id = f.baseline_commit ORDER BY f.time_ms";
    static const char ties[] =
        "SELECT e.time_ms, e.ratio, e.baseline_ms, 0, r.revision_id "
        "FROM (SELECT DISTINCT e.baseline_commit FROM result e INDEXED BY result_by_branch"
        " WHERE" CHAINED ") f CROSS JOIN revision v ON v.commit_id = f.baseline_commit"
        " CROSS JOIN run r ON r.revision_id = v.id CROSS JOIN result e ON e.run_id = r.id "
        "AND" CHAINED "ORDER BY e.time_ms, e.run_id";
    chain->n = 0;
    for (int tie = 0; tie == 0 || (tie == 1 && chain->n > 1); tie++) {
        struct query q = query_begin(
            s, tie ? ties : firsts,
            CELLS(cell_integer(track), cell_text(series->provider), cell_text(series->contract)));
        while (query_row(&q)) {
            const struct chain_point p = {
                .time_ms = column_int(&q, 0),
                .ratio = column_real(&q, 1),
                .baseline_ms = column_int(&q, 2),
                .baseline_revision = column_int(&q, 3),
                .revision = column_int(&q, 4),
            };
            (tie ? chain_tie : chain_add)(chain, &p);
        }
        TRY(query_done(s, &q, err));
    }
    chain_end(chain);
    return GATE_OK;
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

static int compare_series(const void *a, const void *b)
{
    const struct store_trend_series *x = a, *y = b;
    int order = strcmp(x->provider, y->provider);
    return order != 0 ? order : strcmp(x->contract, y->contract);
}

/* The place of a run in the order of commits; those outside of a repository come first. */
#define COMMIT_PLACE "iif(r.revision_id IS NULL, -1, e.place_ms), coalesce(r.revision_id, 0)"
/* ?1: track, ?2 ?3: first and last time, ?4 ?5: provider and contract or NULL, ?6: branch or NULL,
 * ?7: main branch or NULL, ?8 to ?11: first and last commit */
#define LEVELS(ratio, place, tables, more)                                                         \
    "SELECT e.provider, e.contract, e.time_ms, e.p50_ns, e.run_id, e.arm, e.branch IS ?7, " ratio  \
    ", " place " FROM result e " tables " WHERE e.track_id = ?1 AND e.time_ms BETWEEN ?2 AND ?3"   \
    " AND e.p50_ns IS NOT NULL AND (?4 IS NULL OR e.provider = ?4)"                                \
    " AND (?5 IS NULL OR e.contract = ?5) AND (?6 IS NULL OR e.branch = ?6) " more
#define RATIO_OF "iif(e.paired, e.ratio, NULL), e.baseline_ms"
#define NO_RATIO "NULL, NULL"
#define LOWEST "INDEXED BY result_lowest_of_branch"
#define OF_BRANCH "INDEXED BY result_by_branch"

/* Where no range is asked for, indexes have all that is read, in a fifth of the table's bytes. Only
 * the case's own rows, of arm 0, have ratios. */
static const char *levels_of(const struct store_trend_query *query)
{
    static const char by_commit[] = LEVELS(
        "iif(?7 IS NULL OR NOT e.paired, NULL, e.ratio), iif(?7 IS NULL, NULL, e.baseline_ms)",
        COMMIT_PLACE, "NOT INDEXED CROSS JOIN run r ON r.id = e.run_id",
        "AND (?8 IS NULL OR (" COMMIT_PLACE ") >= (?8, ?9))"
        " AND (?10 IS NULL OR (" COMMIT_PLACE ") <= (?10, ?11)) "
        "ORDER BY " COMMIT_PLACE ", e.time_ms, e.run_id, e.arm");
    static const char in_range[] = LEVELS(RATIO_OF, "0, 0", "NOT INDEXED", "");
    static const char whole[] = LEVELS(NO_RATIO, "0, 0", LOWEST, "");
    static const char chained[] = LEVELS(RATIO_OF, "0, 0", OF_BRANCH, "AND e.arm = 0 UNION ALL ")
        LEVELS(NO_RATIO, "0, 0", LOWEST, "AND e.arm > 0");
    if (query->by_commit)
        return by_commit;
    if (query->from_ms > 0 || query->to_ms < STORE_TREND_END)
        return in_range;
    return query->main_branch ? chained : whole;
}

static int compare_rows(const void *a, const void *b)
{
    const struct store_trend_row *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    if (x->run_id != y->run_id)
        return x->run_id < y->run_id ? -1 : 1;
    return (x->arm > y->arm) - (x->arm < y->arm);
}

/* The role of a series is that of its newest row. */
static enum gate_status order_series(struct store *s, struct store_trend_result *out,
                                     struct gate_error *err)
{
    if (out->n_series > 0)
        qsort(out->series, out->n_series, sizeof *out->series, compare_series);
    for (size_t i = 0; i < out->n_series; i++) {
        struct store_trend_series *series = &out->series[i];
        qsort(series->rows, series->n, sizeof *series->rows, compare_rows);
        series->total = (int64_t)series->n;
        out->total += series->total;
        const struct store_trend_row *row = &series->rows[series->n - 1];
        struct query q = query_begin(s,
                                     "SELECT role = 'candidate' FROM result WHERE track_id = ?1"
                                     " AND time_ms = ?2 AND run_id = ?3 AND arm = ?4",
                                     CELLS(cell_integer(out->track), cell_integer(row->time_ms),
                                           cell_integer(row->run_id), cell_integer(row->arm)));
        series->is_candidate = query_row(&q) && column_int(&q, 0) != 0;
        TRY(query_done(s, &q, err));
    }
    return GATE_OK;
}

static enum gate_status read_levels(struct store *s, const struct store_trend_query *query,
                                    struct store_trend_result *out, struct gate_error *err)
{
    const struct store_commit from = query->from_commit, to = query->to_commit;
    struct level_call call = {.out = out, .by_commit = query->by_commit};
    const struct store_cell cells[] = {
        cell_integer(out->track),      cell_integer(query->from_ms),
        cell_integer(query->to_ms),    cell_text(query->provider),
        cell_text(query->contract),    cell_text(query->branch),
        cell_text(query->main_branch), from.id != 0 ? cell_integer(from.place_ms) : cell_text(NULL),
        cell_integer(from.id),         to.id != 0 ? cell_integer(to.place_ms) : cell_text(NULL),
        cell_integer(to.id),
    };
    struct query q = query_begin(s, levels_of(query), cells, query->by_commit ? 11 : 7);
    while (query_row(&q) && level_row(&q, &call))
        ;
    TRY(query_done(s, &q, err));
    return call.no_memory ? no_memory(err) : order_series(s, out, err);
}

static enum gate_status read_chains(struct store *s, struct store_trend_result *out,
                                    struct gate_error *err)
{
    for (size_t i = 0; i < out->n_series; i++) {
        struct store_trend_series *series = &out->series[i];
        struct baseline_chain chain;
        if (!series->is_candidate)
            continue;
        TRY(read_chain(s, out->track, series, &chain, err));
        for (size_t k = 0; k < series->n; k++) {
            struct store_trend_row *row = &series->rows[k];
            const struct chain_link *link = chain_find(&chain, row->baseline_ms);
            if (row->ratio <= 0 || !link)
                continue;
            row->chain = row->ratio * exp(link->level);
            row->chain_part = link->part;
        }
        if (chain.n > 0)
            find_change(series);
    }
    return GATE_OK;
}

/* ---- pages of raw rows ---- */

/* The row behind which a page begins: "<place of its series>.<time>.<run>.<arm>". */
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
        size_t from = begun || (int64_t)i == key[0] ? 0 : series->n;
        while (!begun && from < series->n && !is_behind(&series->rows[from], key))
            from++;
        begun |= (int64_t)i == key[0];
        size_t n = series->n - from < left ? series->n - from : left;
        if (n > 0)
            memmove(series->rows, series->rows + from, n * sizeof *series->rows);
        series->n = n;
        left -= n;
        if (left == 0 && n > 0)
            snprintf(out->next, sizeof out->next, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
                     (int64_t)i, series->rows[n - 1].time_ms, series->rows[n - 1].run_id,
                     series->rows[n - 1].arm);
    }
    if (!begun)
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", query->after);
    return GATE_OK;
}

/*
 * ---- buckets ----
 *
 * Rows come in the order of the axis, so the rows of a bucket follow each other.
 */

/* Of all series together. */
struct buckets {
    int64_t first, width;   /* of the first one, and of each */
    double *p50_ns, *chain; /* room for the values of one */
};

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
                                     int64_t is_main, const struct buckets *b)
{
    struct store_trend_row sum = {.n = 0};
    double *p50_ns = b->p50_ns;
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
    sum.chain = median_chain(rows, n_rows, is_main, sum.chain_part, b->chain);
    return sum;
}

static void fill_buckets(const struct buckets *b, struct store_trend_series *series)
{
    size_t n = 0;
    for (size_t from = 0, to; from < series->n; from = to) {
        int64_t bucket = (series->rows[from].place - b->first) / b->width;
        int64_t end = b->first + (bucket + 1) * b->width;
        to = from + 1;
        while (to < series->n && series->rows[to].place < end)
            to++;
        struct store_trend_row other = sum_up(&series->rows[from], to - from, 0, b);
        struct store_trend_row main = sum_up(&series->rows[from], to - from, 1, b);
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

static enum gate_status to_buckets(const struct store_trend_query *query,
                                   struct store_trend_result *trend, struct gate_error *err)
{
    size_t n = (size_t)trend->total;
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < trend->n_series; i++) {
        const struct store_trend_series *series = &trend->series[i];
        int64_t from = series->rows[0].place, to = series->rows[series->n - 1].place;
        first = from < first ? from : first;
        last = to > last ? to : last;
    }
    struct buckets b = {first, (last - first) / query->points + 1, malloc(n * sizeof(double)),
                        malloc(n * sizeof(double))};
    bool good = b.p50_ns && b.chain;
    for (size_t i = 0; i < trend->n_series && good; i++)
        fill_buckets(&b, &trend->series[i]);
    free(b.p50_ns);
    free(b.chain);
    return good ? GATE_OK : no_memory(err);
}

/* ---- all of it ---- */

enum gate_status store_trend_read(struct store *s, const struct store_trend_query *asked,
                                  struct store_trend_result *out, struct gate_error *err)
{
    struct store_trend_query query = *asked;
    *out = (struct store_trend_result){0};
    TRY(read_track(s, &query, out, err));
    TRY(read_levels(s, &query, out, err));
    if (query.main_branch)
        TRY(read_chains(s, out, err));
    if (query.raw)
        return cut_page(&query, out, err);
    /* So many points of a series that all are not more than MAX_POINTS. A bucket of a trend with
     * its main branch is a row of that and one of others. */
    if (out->total > MAX_POINTS) {
        int64_t share = MAX_POINTS / (int64_t)out->n_series / (query.main_branch ? 2 : 1);
        query.points = query.points < share ? query.points : share > 0 ? share : 1;
    }
    for (size_t i = 0; i < out->n_series; i++)
        out->bucketed |= out->series[i].total > query.points;
    return out->bucketed ? to_buckets(&query, out, err) : GATE_OK;
}

void store_trend_release(struct store_trend_result *r)
{
    for (size_t i = 0; i < r->n_series; i++)
        free(r->series[i].rows);
    free(r->series);
    *r = (struct store_trend_result){0};
}

enum gate_status store_commit(struct store *s, const char *digits, struct store_commit *out,
                              struct gate_error *err)
{
    int n = 0;
    *out = (struct store_commit){0};
    struct query q = query_begin(s,
                                 "SELECT id, place_ms FROM revision "
                                 "WHERE commit_id >= ?1 AND commit_id < ?1 || '~' "
                                 "AND first_ms IS NOT NULL LIMIT 2",
                                 CELLS(cell_text(digits)));
    for (; query_row(&q); n++)
        *out = (struct store_commit){.id = column_int(&q, 0), .place_ms = column_int(&q, 1)};
    if (n != 1)
        *out = (struct store_commit){0};
    return query_done(s, &q, err);
}
