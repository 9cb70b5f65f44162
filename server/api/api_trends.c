/* SPDX-License-Identifier: Apache-2.0 */
/* api_trends.c: the points of one case; see api.h. */
#include <string.h>

#include "server/api/api_call.h"
#include "gate/store/store_trend.h"
#include "server/api/rows.h"
#include "server/api/trend_columns.h"

#define POINTS_DEFAULT 1000
#define POINTS_MAX 10000
#define TIME_MAX INT64_C(9007199254740991) /* what a double holds */

/* ---- points ---- */

typedef struct store_trend_series series_t;

static const char *role_of(const series_t *s)
{
    return s->is_candidate ? "candidate" : "provider";
}

static void put_change(struct emit *e, const struct store_trend_change *change)
{
    emit_key(e, "change");
    if (change->ratio <= 0) {
        emit_null(e);
        return;
    }
    emit_open(e, '{');
    emit_integer_member(e, "from_ms", change->from_ms);
    emit_integer_member(e, "to_ms", change->to_ms);
    emit_real_member(e, "ratio", change->ratio);
    emit_close(e, '}');
}

static void put_series(struct emit *e, const series_t *s, trend_columns columns)
{
    emit_open(e, '{');
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", role_of(s));
    emit_string_member(e, "contract", s->contract);
    emit_integer_member(e, "total", s->total);
    put_change(e, &s->change);
    emit_key(e, "columns");
    trend_put_columns(e, s, columns);
    emit_close(e, '}');
}

static void put_row(struct emit *e, const series_t *s, size_t k, trend_columns columns)
{
    emit_row_begin(e);
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", role_of(s));
    emit_string_member(e, "contract", s->contract);
    trend_put_row(e, s, k, columns);
    emit_row_end(e);
}

static void put_rows(struct call *c, const struct store_trend_result *t, trend_columns columns)
{
    static struct store_trend_row no_row;
    static struct store_trend_details no_details;
    static const series_t no_series = {.rows = &no_row, .details = &no_details};
    list_open(c, "points");
    for (size_t i = 0; i < t->n_series; i++) {
        for (size_t k = 0; k < t->series[i].n; k++)
            put_row(&c->emit, &t->series[i], k, columns);
    }
    list_rows_end(c);
    if (list_lacks_header(c))
        put_row(&c->emit, &no_series, 0, columns);
    list_close(c);
}

/* ---- what stands beside the points ---- */

static bool context_row(void *context, const struct store_cell *cells, int n)
{
    struct emit *e = context;
    for (int i = 0; i < n; i++) {
        emit_key(e, cells[i].name);
        emit_json(e, cells[i].kind == STORE_NULL ? "null" : cells[i].text);
    }
    return false;
}

static enum gate_status put_context(struct call *c, const struct store_trend_query *q)
{
    const struct rows_value values[] = {{"case", q->case_id},
                                        {"device", q->device_model},
                                        {"branch", request_parameter(c->request, "branch")},
                                        {NULL, NULL}};
    return rows_select(c, "trend_context.sql", values, context_row, &c->emit);
}

static enum gate_status put_answer(struct call *c, const struct store_trend_query *q,
                                   const struct store_trend_result *t, trend_columns columns)
{
    struct emit *e = &c->emit;
    emit_open(e, '{');
    emit_string_member(e, "case", q->case_id);
    emit_string_member(e, "device", q->device_model);
    emit_string_member(e, "order", q->by_commit ? "commit" : "time");
    emit_integer_member(e, "total", t->total);
    emit_bool_member(e, "bucketed", t->bucketed);
    emit_known_real(e, "threshold", t->threshold);
    emit_key(e, "series");
    emit_open(e, '[');
    for (size_t i = 0; i < t->n_series; i++) {
        if (t->series[i].n > 0)
            put_series(e, &t->series[i], columns);
    }
    emit_close(e, ']');
    enum gate_status status = put_context(c, q);
    emit_known_string(e, "next", t->next);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return status;
}

/* ---- the request ---- */

static bool read_columns(struct call *c, trend_columns *columns)
{
    if (trend_columns_of(request_parameter(c->request, "columns"), columns))
        return true;
    reply_problem(c->reply, 400,
                  "The parameter 'columns' takes names of columns, each once, with commas between "
                  "them.");
    return false;
}

/* The commit that a parameter names; its id is 0 where it is missing. */
static bool read_end(struct call *c, const char *parameter, struct store_commit *commit,
                     enum gate_status *status)
{
    const char *digits = request_parameter(c->request, parameter);
    *commit = (struct store_commit){0};
    if (!digits)
        return true;
    size_t n = strspn(digits, "0123456789abcdef");
    if (n >= 7 && n <= 40 && digits[n] == '\0')
        *status = store_commit(c->store, digits, commit, &c->err);
    if (!*status && commit->id == 0)
        reply_problem(c->reply, 400,
                      "The parameter '%s' must be 7 to 40 digits of a commit that has a run, "
                      "and of no other.",
                      parameter);
    return commit->id != 0;
}

/* False: *status says that the store could not be read, or a problem was written. */
static bool read_commits(struct call *c, struct store_trend_query *q, enum gate_status *status)
{
    *status = GATE_OK;
    if (!read_end(c, "from_commit", &q->from_commit, status) ||
        !read_end(c, "to_commit", &q->to_commit, status))
        return false;
    if (q->by_commit || (q->from_commit.id == 0 && q->to_commit.id == 0))
        return true;
    reply_problem(c->reply, 400, "A range of commits is one of their order: order=commit.");
    return false;
}

static bool read_query(struct call *c, struct store_trend_query *q, trend_columns *columns)
{
    static const char *const orders[] = {"time", "commit"};
    int order;
    int64_t raw;
    *q = (struct store_trend_query){.after = request_parameter(c->request, "after")};
    const char *points = request_parameter(c->request, "points");
    const char *limit = request_parameter(c->request, "limit");
    if (!read_case(c, true, &q->case_id) || !read_device(c, true, &q->device_model) ||
        !read_provider(c, &q->provider) || !read_contract(c, &q->contract) ||
        !read_branch(c, &q->branch) || !read_number(c, "from", 0, 0, TIME_MAX, &q->from_ms) ||
        !read_number(c, "to", TIME_MAX, 0, TIME_MAX, &q->to_ms) ||
        !read_word(c, "order", orders, 2, 0, &order) || !read_number(c, "raw", 0, 0, 1, &raw) ||
        !read_number(c, raw ? "limit" : "points", POINTS_DEFAULT, 1, POINTS_MAX, &q->points) ||
        !read_columns(c, columns))
        return false;
    q->levels_only = trend_columns_are_levels(*columns);
    q->main_branch = trend_columns_have_chain(*columns) ? c->main_branch : NULL;
    q->by_commit = order == 1;
    q->raw = raw == 1;
    if (q->raw && (q->by_commit || points)) {
        reply_problem(c->reply, 400, "Raw rows come in pages of 'limit' and in the order of time.");
        return false;
    }
    if (!q->raw && (limit || q->after)) {
        reply_problem(c->reply, 400, "Only raw rows (raw=1) come in pages.");
        return false;
    }
    return true;
}

enum gate_status get_trends(struct call *c)
{
    struct store_trend_query query;
    struct store_trend_result trend;
    trend_columns columns;
    enum gate_status status;
    if (!read_format(c) || !read_query(c, &query, &columns))
        return GATE_OK;
    if (!read_commits(c, &query, &status))
        return status;
    status = store_trend_read(c->store, &query, &trend, &c->err);
    if (status == GATE_USAGE)
        refuse_after(c);
    else if (!status && c->emit.form == EMIT_JSON)
        status = put_answer(c, &query, &trend, columns);
    else if (!status)
        put_rows(c, &trend, columns);
    store_trend_release(&trend);
    return status == GATE_USAGE ? GATE_OK : status;
}
