/*
 * store_trend_filter.c: see store_trend_filter.h.
 *
 * A point says its run and no more, so the runs of a branch are looked up first, which an index
 * has together, and each point is asked for its run while it is read.
 */
#include "store_trend_filter.h"

#include <stdlib.h>
#include <string.h>

void trend_filter_release(struct trend_filter *f)
{
    free(f->of_branch);
    *f = (struct trend_filter){0};
}

/* ---- a branch ---- */

static enum gate_status mark_run(struct trend_reader *r, int64_t id)
{
    struct trend_filter *f = &r->filter;
    if (id >= f->n_runs) {
        int64_t n = 2 * id + 1024;
        bool *grown = realloc(f->of_branch, (size_t)n);
        if (!grown)
            return trend_no_memory(r);
        memset(grown + f->n_runs, 0, (size_t)(n - f->n_runs));
        f->of_branch = grown;
        f->n_runs = n;
    }
    f->of_branch[id] = true;
    return GATE_OK;
}

static enum gate_status read_branch(struct trend_reader *r)
{
    int rc = SQLITE_DONE;
    enum gate_status status = mark_run(r, 0); /* no run has it */
    struct query q = query_begin(r->store, SQL_BRANCH_RUNS);
    bind_text(&q, r->query->branch);
    while (status == GATE_OK && (rc = query_step(&q)) == SQLITE_ROW)
        status = mark_run(r, column_int(&q, 0));
    if (status == GATE_OK && rc != SQLITE_DONE)
        status = store_fail(r->store, rc, "read", r->err);
    query_end(&q);
    return status;
}

/* ---- a range of commits ---- */

static int64_t place_of(const struct commit_order *order, int64_t commit, int64_t otherwise)
{
    if (commit == 0)
        return otherwise;
    return commit < order->n_places ? order->place[commit] : order->n_commits + 1;
}

enum gate_status trend_filter_open(struct trend_reader *r)
{
    struct trend_filter *f = &r->filter;
    const struct store_trend_query *q = r->query;
    if (r->order && (q->from_commit != 0 || q->to_commit != 0)) {
        f->order = r->order;
        f->first_place = place_of(r->order, q->from_commit, 0);
        f->last_place = place_of(r->order, q->to_commit, r->order->n_commits + 1);
    }
    f->is_set = q->branch != NULL || f->order != NULL;
    return q->branch ? read_branch(r) : GATE_OK;
}

/* ---- what there is of it ---- */

struct measure {
    const struct trend_filter *filter;
    struct trend_extent *extent;
};

/* Arguments: time, run, p50. Rows come newest first, and none of them is taken. */
static bool measure_row(void *context, sqlite3_value **values)
{
    const struct measure *m = context;
    if (!trend_filter_wants(m->filter, sqlite3_value_int64(values[1])))
        return false;
    m->extent->first_ms = sqlite3_value_int64(values[0]);
    if (m->extent->n++ == 0)
        m->extent->last_ms = m->extent->first_ms;
    return false;
}

enum gate_status trend_filter_extent(struct trend_reader *r, size_t i, struct trend_extent *out)
{
    struct measure m = {&r->filter, out};
    const struct store_scan scan = {.choose = measure_row, .context = &m};
    *out = (struct trend_extent){0};
    struct query q = trend_begin_chosen(r, SQL_TREND_CHOSEN_LEVELS, i);
    return store_scan_rows(r->store, &q, &scan, r->err);
}
