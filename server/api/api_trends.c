/* SPDX-License-Identifier: Apache-2.0 */
/* api_trends.c: the points of one case; see api.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"
#include "gate/base/utf8.h"
#include "gate/store/store_change.h"
#include "gate/store/store_trend.h"
#include "server/api/trend_columns.h"

#define POINTS_DEFAULT 1000
#define POINTS_MAX 10000
#define MAX_EVENTS 200
#define MAX_WRONG 100
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

/* Is this of the branch that was asked for, where one was? */
static bool is_of_branch(const struct call *c, const char *branch)
{
    const char *wanted = request_parameter(c->request, "branch");
    return !wanted || !strcmp(wanted, branch);
}

static bool change_row(void *context, const struct store_change *row)
{
    struct call *c = context;
    struct emit *e = &c->emit;
    if (!is_of_branch(c, row->branch))
        return true;
    emit_open(e, '{');
    emit_integer_member(e, "id", row->id);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_known_string(e, "subject", row->subject);
    emit_known_string(e, "author", row->author);
    emit_known_string(e, "parent", row->parent);
    emit_known_string(e, "before_commit", row->before_commit);
    emit_known_string(e, "before_subject", row->before_subject);
    emit_known_string(e, "before_author", row->before_author);
    emit_known_real(e, "before_ns", row->before_ns);
    emit_known_real(e, "after_ns", row->after_ns);
    emit_real_member(e, "change", row->change);
    emit_string_member(e, "kind", row->kind);
    emit_close(e, '}');
    return true;
}

/* Longer texts end early. */
struct event {
    int64_t time_ms;
    const char *kind;
    char text[256], subject[160], author[80];
    char commit[44];
    char run[40];
};

struct events {
    const struct call *call;
    size_t n;
    struct event list[MAX_EVENTS + MAX_WRONG];
};

/* A text that was cut never ends within a code point. */
static void put_text(char *out, size_t size, const char *text)
{
    uint32_t code;
    size_t len = 0, left = strlen(text);
    while (len < left) {
        size_t n = utf8_decode(text + len, left - len, &code);
        if (n == 0 || len + n >= size)
            break;
        len += n;
    }
    memcpy(out, text, len);
    out[len] = '\0';
}

static struct event *new_event(struct events *events, const char *kind, int64_t time_ms,
                               const char *commit, const char *subject, const char *author,
                               const char *run)
{
    struct event *event = &events->list[events->n++];
    event->kind = kind;
    event->time_ms = time_ms;
    snprintf(event->commit, sizeof event->commit, "%s", commit);
    put_text(event->subject, sizeof event->subject, subject);
    put_text(event->author, sizeof event->author, author);
    snprintf(event->run, sizeof event->run, "%s", run);
    return event;
}

static bool event_row(void *context, const struct store_baseline_change *row)
{
    const struct events *events = context;
    if (!is_of_branch(events->call, row->branch))
        return true;
    bool accepted = !strcmp(row->kind, "raised");
    struct event *event = new_event(context, accepted ? "accepted" : "baseline", row->time_ms,
                                    row->commit, row->subject, row->author, row->run_uuid);
    double percent = row->from_ns > 0 ? 100 * (row->to_ns / row->from_ns - 1) : 0;
    if (!strcmp(row->kind, "first"))
        snprintf(event->text, sizeof event->text, "first baseline");
    else
        snprintf(event->text, sizeof event->text, "%sbaseline %.2f %% %s%s",
                 accepted ? "accepted: " : "", fabs(percent), percent > 0 ? "slower" : "faster",
                 !strcmp(row->kind, "epoch") ? ", in another epoch" : "");
    return true;
}

static bool wrong_row(void *context, const struct store_wrong *row)
{
    const struct events *events = context;
    if (!is_of_branch(events->call, row->branch))
        return true;
    struct event *event = new_event(context, "wrong", row->time_ms, row->commit, row->subject,
                                    row->author, row->run_uuid);
    put_text(event->text, sizeof event->text,
             row->reason[0] ? row->reason : "the result was wrong, and so never timed");
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
}

static enum gate_status put_events(struct call *c, const struct store_trend_result *t)
{
    struct emit *e = &c->emit;
    struct events events;
    events.call = c;
    events.n = 0;
    enum gate_status status =
        store_baseline_changes(c->store, t->track, MAX_EVENTS, event_row, &events, &c->err);
    if (!status)
        status = store_wrong_results(c->store, t->track, MAX_WRONG, wrong_row, &events, &c->err);
    qsort(events.list, events.n, sizeof events.list[0], by_time);
    emit_key(e, "events");
    emit_open(e, '[');
    for (size_t i = 0; i < events.n; i++) {
        const struct event *event = &events.list[i];
        emit_open(e, '{');
        emit_integer_member(e, "time_ms", event->time_ms);
        emit_string_member(e, "kind", event->kind);
        emit_string_member(e, "text", event->text);
        emit_known_string(e, "commit", event->commit);
        emit_known_string(e, "subject", event->subject);
        emit_known_string(e, "author", event->author);
        emit_string_member(e, "run", event->run);
        emit_close(e, '}');
    }
    emit_close(e, ']');
    return status;
}

static bool epoch_row(void *context, int64_t from_ms, const char *epoch)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_integer_member(e, "from_ms", from_ms);
    emit_string_member(e, "epoch", epoch);
    emit_close(e, '}');
    return true;
}

static enum gate_status put_epochs(struct call *c, const char *device)
{
    struct emit *e = &c->emit;
    emit_key(e, "epochs");
    emit_open(e, '[');
    enum gate_status status = store_epochs(c->store, device, epoch_row, e, &c->err);
    emit_close(e, ']');
    return status;
}

static void put_baseline(struct emit *e, const struct store_trend_baseline *baseline)
{
    emit_key(e, "baseline");
    if (baseline->p50_ns == 0) {
        emit_null(e);
        return;
    }
    emit_open(e, '{');
    emit_real_member(e, "p50_ns", baseline->p50_ns);
    emit_known_string(e, "commit", baseline->commit);
    emit_integer_member(e, "time_ms", baseline->time_ms);
    emit_close(e, '}');
}

static enum gate_status put_context(struct call *c, const struct store_trend_query *q,
                                    const struct store_trend_result *t)
{
    enum gate_status status = put_epochs(c, q->device_model);
    emit_key(&c->emit, "change_points");
    emit_open(&c->emit, '[');
    if (!status)
        status = store_change_points(c->store, t->track, change_row, c, &c->err);
    emit_close(&c->emit, ']');
    if (!status)
        status = put_events(c, t);
    put_baseline(&c->emit, &t->baseline);
    return status;
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
    enum gate_status status = put_context(c, q, t);
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
