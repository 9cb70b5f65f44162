/* store_since.c: see store_since.h. */
#include "store_since.h"

#include <stdio.h>
#include <string.h>

#include "store_private.h"

/* Points of any branch that are read for a curve: between two of a scope there may be many. */
#define SPARK_READ (24 * STORE_SPARK)
/* The same for the start of a stretch. */
#define SINCE_READ 2048

/* ---- the curve ---- */

struct spark_call {
    struct scope_runs *scope;
    struct store_case *row;
};

/* Newest first; they are put in from the end. */
static bool spark_row(struct query *q, void *call)
{
    struct spark_call *c = call;
    if (scope_has_run(c->scope, column_int(q, 0)))
        c->row->spark_ns[STORE_SPARK - ++c->row->n_spark] = (double)column_int(q, 2) / 1e3;
    return c->row->n_spark < STORE_SPARK && c->scope->status == GATE_OK;
}

static struct query newest_points(struct store *s, int64_t series_id, int64_t limit)
{
    struct query q = query_begin(s, SQL_NEWEST_POINTS);
    bind_int(&q, series_id);
    bind_int(&q, limit);
    return q;
}

enum gate_status store_spark(struct store *s, struct scope_runs *scope, int64_t series_id,
                             struct store_case *row, struct gate_error *err)
{
    struct spark_call call = {scope, row};
    struct query q = newest_points(s, series_id, SPARK_READ);
    enum gate_status status = store_each_row(s, &q, spark_row, &call, err);
    memmove(row->spark_ns, row->spark_ns + STORE_SPARK - row->n_spark,
            (size_t)row->n_spark * sizeof(row->spark_ns[0]));
    return status == GATE_OK ? scope->status : status;
}

/* ---- since when ---- */

struct stretch {
    struct scope_runs *scope;
    int verdict;
    int64_t n_read;
    int64_t first_run; /* 0: there is none */
    int64_t other_ms;  /* of the newest point of another verdict; -1: there is none */
};

static bool tells_nothing(int verdict)
{
    return verdict == store_verdict_code("no-verdict") ||
           verdict == store_verdict_code("environment");
}

static bool verdict_row(struct query *q, void *call)
{
    struct stretch *c = call;
    int verdict = (int)column_int(q, 3);
    c->n_read++;
    if (tells_nothing(verdict) || !scope_has_run(c->scope, column_int(q, 0)))
        return c->scope->status == GATE_OK;
    if (verdict != c->verdict) {
        c->other_ms = column_int(q, 1);
        return false;
    }
    c->first_run = column_int(q, 0);
    return true;
}

static bool wrong_row(struct query *q, void *call)
{
    struct stretch *c = call;
    if (scope_has_run(c->scope, column_int(q, 0)))
        c->first_run = column_int(q, 0);
    return c->scope->status == GATE_OK;
}

static bool since_row(struct query *q, void *call)
{
    struct store_since *since = call;
    snprintf(since->run_uuid, sizeof(since->run_uuid), "%s", column_text(q, 0));
    snprintf(since->commit, sizeof(since->commit), "%s", column_text(q, 1));
    since->time_ms = column_int(q, 3);
    return true;
}

/* Wrong results have no points: they are those since the newest point. */
static enum gate_status find_wrong(struct store *s, int64_t track, struct stretch *stretch,
                                   struct gate_error *err)
{
    struct query q = query_begin(s, SQL_WRONG_RUNS);
    bind_int(&q, track);
    bind_int(&q, stretch->other_ms);
    bind_int(&q, SINCE_READ);
    return store_each_row(s, &q, wrong_row, stretch, err);
}

enum gate_status store_since(struct store *s, struct scope_runs *scope, int64_t series_id,
                             struct store_case *row, struct gate_error *err)
{
    bool is_wrong = strcmp(row->verdict, "wrong") == 0;
    struct stretch stretch = {
        .scope = scope, .verdict = store_verdict_code(row->verdict), .other_ms = -1};
    if (!is_wrong && strcmp(row->verdict, "regression") != 0)
        return GATE_OK;
    struct query q = newest_points(s, series_id, SINCE_READ);
    enum gate_status status = store_each_row(s, &q, verdict_row, &stretch, err);
    bool is_longer = stretch.n_read == SINCE_READ && stretch.other_ms < 0;
    if (status == GATE_OK && is_wrong && !is_longer)
        status = find_wrong(s, row->track, &stretch, err);
    if (status == GATE_OK)
        status = scope->status;
    if (status != GATE_OK || stretch.first_run == 0 || is_longer)
        return status;
    q = query_begin(s, SQL_RUN_NAME);
    bind_int(&q, stretch.first_run);
    return store_each_row(s, &q, since_row, &row->since, err);
}
