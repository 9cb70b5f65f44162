/* SPDX-License-Identifier: Apache-2.0 */
/* api_trends.c: the points of one case; see api_call.h. */
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"
#include "gate/store/store_trend.h"
#include "server/api/rows.h"

#define POINTS_DEFAULT 1000
#define POINTS_MAX 5000

/* One answer in the making. */
struct trend {
    struct call *call;
    const struct rows_query *columns; /* of trend_row.sql */
    bool is_shown[ROWS_MAX_COLUMNS];
    struct store_trend_query query;
    struct store_trend_result result;
    const struct store_trend_series *series; /* of the rows that are written */
    const struct store_trend_row *row;       /* that is read */
    struct emit_arrays arrays;               /* in JSON, of that series: one for each column */
};

/* ---- points ---- */

static void row_value(void *context, const char *name, struct store_cell *value)
{
    const struct trend *t = context;
    const struct store_trend_row *row = t->row;
    const struct {
        const char *name;
        int64_t integer;
        double real; /* 0: it is the integer */
    } values[] = {
        {"track", t->result.track, 0},
        {"time", row->time_ms, 0},
        {"run", row->run_id, 0},
        {"arm", row->arm, 0},
        {"n", row->n, 0},
        {"p50_ns", 0, row->p50_ns},
        {"min_ns", 0, row->min_ns},
        {"max_ns", 0, row->max_ns},
        {"chain", -1, row->chain},
        {"main", row->is_main, 0},
        {"chain_part", row->chain_part, 0},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (!strcmp(values[i].name, name) && (values[i].integer >= 0 || values[i].real > 0))
            *value = (struct store_cell){.kind = values[i].real > 0 ? STORE_REAL : STORE_INTEGER,
                                         .integer = values[i].integer,
                                         .real = values[i].real};
    }
}

static enum gate_status read_rows(struct trend *t, const struct store_trend_series *s,
                                  store_cells_fn fn)
{
    enum gate_status status = GATE_OK;
    for (size_t k = 0; k < s->n && !status; k++) {
        t->row = &s->rows[k];
        status = store_select(t->call->store, t->columns->sql, row_value, fn, t, &t->call->err);
    }
    return status;
}

static bool put_into_arrays(void *context, const struct store_row *row)
{
    struct trend *t = context;
    for (int i = 0; i < row->n; i++) {
        if (t->is_shown[i])
            rows_put_cell(&t->arrays.to[i], &t->columns->columns[i], &row->cells[i]);
    }
    return false;
}

static enum gate_status put_columns(struct trend *t, const struct store_trend_series *s)
{
    struct emit *e = &t->call->emit;
    const char *names[ROWS_MAX_COLUMNS];
    for (size_t i = 0; i < t->columns->n_columns; i++)
        names[i] = t->is_shown[i] ? t->columns->columns[i].name : NULL;
    emit_arrays_begin(&t->arrays, t->columns->n_columns, e);
    enum gate_status status = read_rows(t, s, put_into_arrays);
    emit_arrays_end(&t->arrays, names, e);
    return status;
}

static void put_series_names(struct emit *e, const struct store_trend_series *s)
{
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", s->is_candidate ? "candidate" : "provider");
    emit_string_member(e, "contract", s->contract);
}

static enum gate_status put_series(struct trend *t, const struct store_trend_series *s)
{
    struct emit *e = &t->call->emit;
    emit_open(e, '{');
    put_series_names(e, s);
    emit_integer_member(e, "total", s->total);
    emit_key(e, "change");
    if (s->change.ratio > 0) {
        emit_open(e, '{');
        emit_integer_member(e, "from_ms", s->change.from_ms);
        emit_integer_member(e, "to_ms", s->change.to_ms);
        emit_real_member(e, "ratio", s->change.ratio);
        emit_close(e, '}');
    } else {
        emit_null(e);
    }
    emit_key(e, "columns");
    enum gate_status status = put_columns(t, s);
    emit_close(e, '}');
    return status;
}

static bool put_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    struct emit *e = &t->call->emit;
    emit_row_begin(e);
    put_series_names(e, t->series);
    for (int i = 0; i < row->n; i++) {
        if (!t->is_shown[i])
            continue;
        emit_key(e, t->columns->columns[i].name);
        rows_put_cell(e, &t->columns->columns[i], &row->cells[i]);
    }
    emit_row_end(e);
    return false;
}

static enum gate_status put_rows(struct trend *t)
{
    static const struct store_cell unknown[ROWS_MAX_COLUMNS];
    static const struct store_trend_series no_series;
    struct call *c = t->call;
    enum gate_status status = GATE_OK;
    rows_begin(c, "points");
    for (size_t i = 0; i < t->result.n_series && !status; i++) {
        t->series = &t->result.series[i];
        status = read_rows(t, t->series, put_row);
    }
    rows_end(c);
    t->series = &no_series;
    if (rows_lack_header(c))
        put_row(t, &(struct store_row){unknown, (int)t->columns->n_columns});
    rows_close(c);
    return status;
}

/* ---- what stands beside the points ---- */

static enum gate_status put_context(struct call *c, const struct store_trend_query *q)
{
    const struct rows_value values[] = {{"case", q->case_id},
                                        {"device", q->device_model},
                                        {"branch", request_parameter(c->request, "branch")},
                                        {"main_branch", c->site.main_branch},
                                        {NULL, NULL}};
    return rows_select(c, "trend_context.sql", values, rows_put_json, &c->emit);
}

static enum gate_status put_answer(struct trend *t)
{
    struct call *c = t->call;
    struct emit *e = &c->emit;
    enum gate_status status = GATE_OK;
    emit_open(e, '{');
    emit_string_member(e, "case", t->query.case_id);
    emit_string_member(e, "device", t->query.device_model);
    emit_string_member(e, "order", t->query.by_commit ? "commit" : "time");
    emit_integer_member(e, "total", t->result.total);
    emit_bool_member(e, "bucketed", t->result.bucketed);
    emit_known_real(e, "threshold", t->result.threshold);
    emit_key(e, "series");
    emit_open(e, '[');
    for (size_t i = 0; i < t->result.n_series && !status; i++) {
        if (t->result.series[i].n > 0)
            status = put_series(t, &t->result.series[i]);
    }
    emit_close(e, ']');
    if (!status)
        status = put_context(c, &t->query);
    emit_known_string(e, "next", t->result.next);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return status;
}

/* ---- the request ---- */

static bool read_columns(struct trend *t)
{
    struct call *c = t->call;
    if (!rows_read_columns(c, t->columns))
        return false;
    for (size_t i = 0; i < t->columns->n_columns; i++) {
        const struct rows_column *column = &t->columns->columns[i];
        t->is_shown[i] = c->columns ? rows_is_one_of(column->name, c->columns) : !column->is_extra;
        /* A level of the chain needs the whole of it. */
        if (t->is_shown[i] && column->is_extra && strcmp(column->name, "subject") != 0 &&
            strcmp(column->name, "author") != 0)
            t->query.main_branch = c->site.main_branch;
    }
    return true;
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

static bool read_query(struct trend *t)
{
    struct call *c = t->call;
    struct store_trend_query *q = &t->query;
    static const char *const orders[] = {"time", "commit"};
    int order;
    int64_t raw;
    *q = (struct store_trend_query){.after = request_parameter(c->request, "after")};
    const char *points = request_parameter(c->request, "points");
    const char *limit = request_parameter(c->request, "limit");
    if (!read_parameter(c, "case", true, &q->case_id) ||
        !read_parameter(c, "device", true, &q->device_model) ||
        !read_parameter(c, "provider", false, &q->provider) ||
        !read_parameter(c, "contract", false, &q->contract) || !read_branch(c, &q->branch) ||
        !read_number(c, "from", 0, 0, STORE_TREND_END, &q->from_ms) ||
        !read_number(c, "to", STORE_TREND_END, 0, STORE_TREND_END, &q->to_ms) ||
        !read_word(c, "order", orders, 2, 0, &order) || !read_number(c, "raw", 0, 0, 1, &raw) ||
        !read_number(c, raw ? "limit" : "points", POINTS_DEFAULT, 1, POINTS_MAX, &q->points) ||
        !read_columns(t))
        return false;
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
    struct trend *t = calloc(1, sizeof *t);
    enum gate_status status = GATE_OK;
    if (!t || !(t->columns = rows_query("trend_row.sql"))) {
        free(t);
        return gate_fail(&c->err, GATE_INTERNAL, "the columns of a trend cannot be read");
    }
    t->call = c;
    if (rows_read_format(c) && read_query(t) && read_commits(c, &t->query, &status)) {
        status = store_trend_read(c->store, &t->query, &t->result, &c->err);
        if (status == GATE_USAGE) {
            refuse_after(c);
            status = GATE_OK;
        } else if (!status) {
            status = c->emit.form == EMIT_JSON ? put_answer(t) : put_rows(t);
        }
        store_trend_release(&t->result);
    }
    free(t);
    return status;
}
