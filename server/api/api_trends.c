/* SPDX-License-Identifier: Apache-2.0 */
/* api_trends.c: the points of one case; see api_call.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/trend.h"

#define POINTS_DEFAULT 1000
#define END_MS INT64_C(9007199254740991) /* what a double holds */

/* ---- points ---- */

static enum gate_status read_rows(struct trend *t, const struct trend_series *s, store_cells_fn fn)
{
    enum gate_status status = GATE_OK;
    for (size_t i = s->at; i < s->at + s->n && !status; i++)
        status = trend_row(t, &t->points[i], fn);
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

static void put_series_names(struct emit *e, const struct trend_series *s)
{
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", s->is_candidate ? "candidate" : "provider");
    emit_string_member(e, "contract", s->contract);
}

static enum gate_status put_series(struct trend *t, const struct trend_series *s)
{
    struct emit *e = &t->call->emit;
    const char *names[ROWS_MAX_COLUMNS];
    for (size_t i = 0; i < t->columns->n_columns; i++)
        names[i] = t->is_shown[i] ? t->columns->columns[i].name : NULL;
    emit_open(e, '{');
    put_series_names(e, s);
    emit_integer_member(e, "total", (int64_t)s->total);
    emit_key(e, "change");
    if (s->change > 0) {
        emit_open(e, '{');
        emit_integer_member(e, "from_ms", s->from_ms);
        emit_integer_member(e, "to_ms", s->to_ms);
        emit_real_member(e, "ratio", s->change);
        emit_close(e, '}');
    } else {
        emit_null(e);
    }
    emit_key(e, "columns");
    emit_arrays_begin(&t->arrays, t->columns->n_columns, e);
    enum gate_status status = read_rows(t, s, put_into_arrays);
    emit_arrays_end(&t->arrays, names, e);
    emit_close(e, '}');
    return status;
}

static bool put_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    struct emit *e = &t->call->emit;
    emit_row_begin(e);
    put_series_names(e, t->of);
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
    struct call *c = t->call;
    enum gate_status status = GATE_OK;
    rows_begin(c, "points");
    rows_put_header(c, t->columns, "provider,role,contract");
    for (size_t i = 0; i < t->n_series && !status; i++) {
        t->of = &t->series[i];
        status = read_rows(t, t->of, put_row);
    }
    rows_end(c);
    rows_close(c);
    return status;
}

static enum gate_status put_answer(struct trend *t)
{
    struct call *c = t->call;
    struct emit *e = &c->emit;
    const struct rows_value values[] = {{"case", request_parameter(c->request, "case")},
                                        {"device", request_parameter(c->request, "device")},
                                        {"branch", request_parameter(c->request, "branch")},
                                        {NULL, NULL}};
    emit_open(e, '{');
    emit_string_member(e, "case", values[0].text);
    emit_string_member(e, "device", values[1].text);
    emit_string_member(e, "order", t->by_commit ? "commit" : "time");
    emit_integer_member(e, "total", (int64_t)t->total);
    emit_bool_member(e, "bucketed", t->is_cut);
    emit_real_member(e, "threshold", t->threshold > 0 ? t->threshold : NAN);
    emit_key(e, "series");
    emit_open(e, '[');
    for (size_t i = 0; i < t->n_series; i++) {
        if (t->series[i].n > 0)
            TRY(put_series(t, &t->series[i]));
    }
    emit_close(e, ']');
    TRY(rows_select(c, "trend_context.sql", values, rows_put_json, e));
    emit_known_string(e, "next", t->next);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return GATE_OK;
}

/* ---- the request ---- */

static bool read_columns(struct trend *t)
{
    struct call *c = t->call;
    if (!rows_read_columns(c, t->columns))
        return false;
    for (size_t i = 0; i < t->columns->n_columns; i++) {
        const struct rows_column *column = &t->columns->columns[i];
        t->is_shown[i] = rows_shows(c, column);
        /* A level of the chain needs the whole of it. */
        if (t->is_shown[i] && column->is_extra && !rows_is_one_of(column->name, "subject author"))
            t->split = c->site.main_branch;
    }
    return true;
}

static bool commit_row(void *context, const struct store_row *row)
{
    struct trend *t = context;
    t->place_ms = row->cells[0].integer;
    t->revision = row->cells[1].integer;
    return false;
}

/* The commit that a parameter names. False: *status says that the store could not be read, or a
 * problem was written. */
static bool read_commit_at(struct trend *t, const char *parameter, const char *place,
                           const char *revision, enum gate_status *status)
{
    struct call *c = t->call;
    const char *digits = request_parameter(c->request, parameter);
    if (!digits)
        return true;
    size_t n = strspn(digits, "0123456789abcdef");
    t->revision = 0;
    trend_set(t, "commit", cell_text(digits));
    if (n >= 7 && n <= 40 && digits[n] == '\0')
        *status = trend_query(t, "trend_commit.sql", commit_row);
    if (*status)
        return false;
    trend_set(t, place, cell_integer(t->place_ms));
    trend_set(t, revision, cell_integer(t->revision));
    if (t->revision != 0 && t->by_commit)
        return true;
    reply_problem(c->reply, 400,
                  t->revision != 0
                      ? "A range of commits is one of their order: order=commit."
                      : "The parameter '%s' must be 7 to 40 digits of a commit that has a run, "
                        "and of no other.",
                  parameter);
    return false;
}

/* The row behind which a page begins: "<place of its series>.<time>.<run>.<arm>". */
static bool read_after(struct trend *t, const char *after)
{
    int n = 0;
    size_t len = strspn(after, "0123456789.");
    if (sscanf(after, "%" SCNd64 ".%" SCNd64 ".%" SCNd64 ".%" SCNd64 "%n", &t->page,
               &t->after.time_ms, &t->after.run_id, &t->after.arm, &n) == 4 &&
        (size_t)n == len && after[len] == '\0')
        return true;
    refuse_after(t->call);
    return false;
}

static bool read_query(struct trend *t)
{
    static const char *const orders[] = {"time", "commit"};
    static const char *const names[] = {"case", "device", "provider", "contract"};
    struct call *c = t->call;
    const char *name, *branch, *after = request_parameter(c->request, "after");
    int order;
    int64_t raw, from_ms, to_ms;
    for (int i = 0; i < 4; i++) {
        if (!read_parameter(c, names[i], i < 2, &name))
            return false;
        trend_set(t, names[i], cell_text(name));
    }
    if (!read_branch(c, &branch) || !read_number(c, "from", 0, 0, END_MS, &from_ms) ||
        !read_number(c, "to", END_MS, 0, END_MS, &to_ms) ||
        !read_word(c, "order", orders, 2, 0, &order) || !read_number(c, "raw", 0, 0, 1, &raw) ||
        !read_number(c, raw ? "limit" : "points", POINTS_DEFAULT, 1, TREND_MAX_POINTS, &t->most) ||
        !read_columns(t))
        return false;
    t->by_commit = order == 1;
    t->raw = raw == 1;
    trend_set(t, "branch", cell_text(branch));
    trend_set(t, "from", from_ms > 0 ? cell_integer(from_ms) : cell_text(NULL));
    trend_set(t, "to", to_ms < END_MS ? cell_integer(to_ms) : cell_text(NULL));
    trend_set(t, "split", cell_text(t->split));
    if (t->raw && (t->by_commit || request_parameter(c->request, "points"))) {
        reply_problem(c->reply, 400, "Raw rows come in pages of 'limit' and in the order of time.");
        return false;
    }
    if (!t->raw && (after || request_parameter(c->request, "limit"))) {
        reply_problem(c->reply, 400, "Only raw rows (raw=1) come in pages.");
        return false;
    }
    return !after || read_after(t, after);
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
    t->page = -1;
    bool good = rows_read_format(c) && read_query(t) &&
                read_commit_at(t, "from_commit", "from_place", "from_revision", &status) &&
                read_commit_at(t, "to_commit", "to_place", "to_revision", &status);
    if (good)
        status = trend_read(t);
    if (good && !status && t->page >= (int64_t)t->n_series)
        refuse_after(c);
    else if (good && !status)
        status = c->emit.form == EMIT_JSON ? put_answer(t) : put_rows(t);
    free(t->points);
    free(t->series);
    free(t);
    return status;
}
