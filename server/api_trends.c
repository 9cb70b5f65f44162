/*
 * api_trends.c: the points of one case; see api.h.
 *
 * An answer has up to some ten thousand numbers, column by column, and no time for printf(): each
 * column is written in one loop into a chunk, which goes into the body when it is full.
 */
#include <stdio.h>
#include <string.h>

#include "api_private.h"
#include "base/json.h"
#include "number.h"
#include "store_best.h"
#include "store_change.h"
#include "store_trend.h"

#define POINTS_DEFAULT 1000
#define POINTS_MAX 10000
#define MAX_EVENTS 200

/* ---- columns ---- */

#define CHUNK 8192
#define LONGEST 1024 /* of a value: a kernel's name of 64 characters, escaped */

struct chunk {
    struct buf *out;
    size_t n;
    char bytes[CHUNK];
};

static void flush(struct chunk *c)
{
    buf_append(c->out, c->bytes, c->n);
    c->n = 0;
}

static void put_bytes(struct chunk *c, const char *bytes, size_t n)
{
    memcpy(c->bytes + c->n, bytes, n);
    c->n += n;
}

static void put_null(struct chunk *c)
{
    put_bytes(c, "null", 4);
}

/* Names of the run document have no character that needs an escape; the file may be another's. */
static void put_name(struct chunk *c, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789_.+-/";
    size_t n = strspn(name, plain);
    c->bytes[c->n++] = '"';
    if (name[n] == '\0' && n < LONGEST) {
        put_bytes(c, name, n);
    } else {
        flush(c);
        json_escape(name, c->out);
    }
    c->bytes[c->n++] = '"';
}

static void put_positive_ps(struct chunk *c, int64_t ps)
{
    if (ps > 0)
        c->n += number_thousandths(ps, c->bytes + c->n);
    else
        put_null(c);
}

static void put_count(struct chunk *c, int64_t count)
{
    if (count >= 0)
        c->n += number_integer(count, c->bytes + c->n);
    else
        put_null(c);
}

static void put_rate(struct chunk *c, double amount, int64_t ps)
{
    if (amount > 0)
        c->n += number_real(amount / (double)ps, c->bytes + c->n);
    else
        put_null(c);
}

typedef struct store_trend_row row_t;
typedef struct store_trend_series series_t;

#define COLUMN(column, statement)                                                                  \
    static void put_##column(struct chunk *c, const series_t *s, const row_t *r)                   \
    {                                                                                              \
        (void)s;                                                                                   \
        statement;                                                                                 \
    }

COLUMN(time_ms, c->n += number_integer(r->time_ms, c->bytes + c->n))
COLUMN(n, c->n += number_integer(r->n, c->bytes + c->n))
COLUMN(p50_ns, put_positive_ps(c, r->p50_ps))
COLUMN(min_ns, put_positive_ps(c, r->min_ps))
COLUMN(max_ns, put_positive_ps(c, r->max_ps))
COLUMN(p50_lo_ns, put_positive_ps(c, r->p50_lo_ps))
COLUMN(p50_hi_ns, put_positive_ps(c, r->p50_hi_ps))
COLUMN(p10_ns, put_positive_ps(c, r->p10_ps))
COLUMN(p90_ns, put_positive_ps(c, r->p90_ps))
COLUMN(control_ns, put_positive_ps(c, r->control_ps))
COLUMN(best_p50_ns, put_positive_ps(c, r->best_p50_ps))
COLUMN(rel_err,
       r->rel_err < 0 ? put_null(c) : (void)(c->n += number_real(r->rel_err, c->bytes + c->n)))
COLUMN(sm_clock_mhz, put_positive_ps(c, r->sm_clock_khz))
COLUMN(registers, put_count(c, r->registers))
COLUMN(shared_bytes, put_count(c, r->shared_bytes))
COLUMN(spill_bytes, put_count(c, r->spill_bytes))
COLUMN(tflops, put_rate(c, s->flops, r->p50_ps))
COLUMN(gbps, put_rate(c, 1e3 * s->bytes, r->p50_ps))
COLUMN(run, put_name(c, r->run))
COLUMN(commit, r->commit[0] ? put_name(c, r->commit) : put_null(c))
COLUMN(verdict, put_name(c, r->verdict))
COLUMN(kernel, put_name(c, r->kernel))

static const struct {
    const char *name;
    void (*put)(struct chunk *c, const series_t *s, const row_t *r);
} columns[] = {
    {"time_ms", put_time_ms},
    {"n", put_n},
    {"p50_ns", put_p50_ns},
    {"min_ns", put_min_ns},
    {"max_ns", put_max_ns},
    {"p50_lo_ns", put_p50_lo_ns},
    {"p50_hi_ns", put_p50_hi_ns},
    {"p10_ns", put_p10_ns},
    {"p90_ns", put_p90_ns},
    {"control_ns", put_control_ns},
    {"best_p50_ns", put_best_p50_ns},
    {"rel_err", put_rel_err},
    {"sm_clock_mhz", put_sm_clock_mhz},
    {"registers", put_registers},
    {"shared_bytes", put_shared_bytes},
    {"spill_bytes", put_spill_bytes},
    {"tflops", put_tflops},
    {"gbps", put_gbps},
    {"run", put_run},
    {"commit", put_commit},
    {"verdict", put_verdict},
    {"kernel", put_kernel},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void put_columns(struct emit *e, const series_t *s)
{
    struct chunk c;
    c.out = e->out;
    c.n = 0;
    emit_key(e, "columns");
    emit_open(e, '{');
    for (size_t i = 0; i < N_COLUMNS; i++) {
        emit_key(e, columns[i].name);
        emit_open(e, '[');
        for (size_t k = 0; k < s->n; k++) {
            if (k > 0)
                c.bytes[c.n++] = ',';
            columns[i].put(&c, s, &s->rows[k]);
            if (c.n > CHUNK - LONGEST - 8)
                flush(&c);
        }
        flush(&c);
        emit_close(e, ']');
    }
    emit_close(e, '}');
}

static const char *role_of(const series_t *s)
{
    return s->is_candidate ? "candidate" : "provider";
}

static void put_series(struct emit *e, const series_t *s)
{
    emit_open(e, '{');
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", role_of(s));
    emit_string_member(e, "contract", s->contract);
    emit_integer_member(e, "total", s->total);
    put_columns(e, s);
    emit_close(e, '}');
}

/* ---- one object a row ---- */

static void put_ps(struct emit *e, const char *key, int64_t ps)
{
    emit_known_real(e, key, (double)ps / 1e3);
}

static void put_known_count(struct emit *e, const char *key, int64_t count)
{
    emit_key(e, key);
    if (count < 0)
        emit_null(e);
    else
        emit_integer(e, count);
}

static void put_row(struct emit *e, const series_t *s, const row_t *r)
{
    double ps = (double)r->p50_ps;
    emit_row_begin(e);
    emit_string_member(e, "provider", s->provider);
    emit_string_member(e, "role", role_of(s));
    emit_string_member(e, "contract", s->contract);
    emit_integer_member(e, "time_ms", r->time_ms);
    emit_integer_member(e, "n", r->n);
    put_ps(e, "p50_ns", r->p50_ps);
    put_ps(e, "min_ns", r->min_ps);
    put_ps(e, "max_ns", r->max_ps);
    put_ps(e, "p50_lo_ns", r->p50_lo_ps);
    put_ps(e, "p50_hi_ns", r->p50_hi_ps);
    put_ps(e, "p10_ns", r->p10_ps);
    put_ps(e, "p90_ns", r->p90_ps);
    put_ps(e, "control_ns", r->control_ps);
    put_ps(e, "best_p50_ns", r->best_p50_ps);
    emit_key(e, "rel_err");
    if (r->rel_err < 0)
        emit_null(e);
    else
        emit_real(e, r->rel_err);
    emit_known_real(e, "sm_clock_mhz", (double)r->sm_clock_khz / 1e3);
    put_known_count(e, "registers", r->registers);
    put_known_count(e, "shared_bytes", r->shared_bytes);
    put_known_count(e, "spill_bytes", r->spill_bytes);
    emit_known_real(e, "tflops", ps > 0 ? s->flops / ps : 0);
    emit_known_real(e, "gbps", ps > 0 ? 1e3 * s->bytes / ps : 0);
    emit_known_string(e, "run", r->run);
    emit_known_string(e, "commit", r->commit);
    emit_known_string(e, "verdict", r->verdict);
    emit_known_string(e, "kernel", r->kernel);
    emit_row_end(e);
}

static void put_rows(struct call *c, const struct store_trend_result *t)
{
    static const series_t no_series;
    static const row_t no_row;
    list_open(c, "points");
    for (size_t i = 0; i < t->n_series; i++) {
        for (size_t k = 0; k < t->series[i].n; k++)
            put_row(&c->emit, &t->series[i], &t->series[i].rows[k]);
    }
    list_rows_end(c);
    if (list_lacks_header(c))
        put_row(&c->emit, &no_series, &no_row);
    list_close(c);
}

/* ---- what stands beside the points ---- */

static bool change_row(void *context, const struct store_change *row)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_integer_member(e, "id", row->id);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_known_real(e, "before_ns", row->before_ns);
    emit_known_real(e, "after_ns", row->after_ns);
    emit_real_member(e, "change", row->change);
    emit_string_member(e, "kind", row->kind);
    emit_close(e, '}');
    return true;
}

struct event {
    int64_t time_ms;
    bool accepted;
    char text[64];
    char commit[44];
};

struct events {
    size_t n;
    struct event list[MAX_EVENTS]; /* newest first */
};

static bool event_row(void *context, const struct store_best_change *row)
{
    struct events *events = context;
    struct event *event = &events->list[events->n++];
    double percent = row->from_ns > 0 ? 100 * (row->to_ns / row->from_ns - 1) : 0;
    event->time_ms = row->time_ms;
    event->accepted = strcmp(row->kind, "raised") == 0;
    if (strcmp(row->kind, "first") == 0)
        snprintf(event->text, sizeof(event->text), "first best");
    else
        snprintf(event->text, sizeof(event->text), "best %+.2f %%%s", percent,
                 strcmp(row->kind, "epoch") == 0 ? ", another epoch" : "");
    snprintf(event->commit, sizeof(event->commit), "%s", row->commit);
    return true;
}

static enum gate_status put_events(struct call *c, int64_t track)
{
    struct emit *e = &c->emit;
    struct events events;
    events.n = 0;
    enum gate_status status = store_best_log_of_track(c->store, track, INT64_MAX, MAX_EVENTS,
                                                      event_row, &events, &c->err);
    emit_key(e, "events");
    emit_open(e, '[');
    for (size_t i = events.n; i-- > 0;) {
        emit_open(e, '{');
        emit_integer_member(e, "time_ms", events.list[i].time_ms);
        emit_string_member(e, "kind", events.list[i].accepted ? "accepted" : "best");
        emit_string_member(e, "text", events.list[i].text);
        emit_known_string(e, "commit", events.list[i].commit);
        emit_close(e, '}');
    }
    emit_close(e, ']');
    return status;
}

static bool best_row(void *context, const struct store_best *row)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_real_member(e, "p50_ns", row->p50_ns);
    emit_known_string(e, "commit", row->commit);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_close(e, '}');
    return false;
}

static enum gate_status put_best(struct call *c, int64_t track)
{
    emit_key(&c->emit, "best");
    enum gate_status status = store_best_of_track(c->store, track, best_row, &c->emit, &c->err);
    if (c->emit.key)
        emit_null(&c->emit); /* no row came */
    return status;
}

static enum gate_status put_context(struct call *c, const char *device, int64_t track)
{
    enum gate_status status = put_epochs(c, device);
    emit_key(&c->emit, "change_points");
    emit_open(&c->emit, '[');
    if (status == GATE_OK)
        status = store_change_points(c->store, track, change_row, &c->emit, &c->err);
    emit_close(&c->emit, ']');
    if (status == GATE_OK)
        status = put_events(c, track);
    return status == GATE_OK ? put_best(c, track) : status;
}

static enum gate_status put_answer(struct call *c, const struct store_trend_query *q,
                                   const struct store_trend_result *t)
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
            put_series(e, &t->series[i]);
    }
    emit_close(e, ']');
    enum gate_status status = put_context(c, q->device_model, t->track);
    emit_known_string(e, "next", t->next);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return status;
}

/* ---- the request ---- */

static bool take_query(struct call *c, struct store_trend_query *q)
{
    static const char *const orders[] = {"time", "commit"};
    int order;
    int64_t raw;
    *q = (struct store_trend_query){.after = request_parameter(c->request, "after")};
    const char *points = request_parameter(c->request, "points");
    const char *limit = request_parameter(c->request, "limit");
    if (!take_case(c, true, &q->case_id) || !take_device(c, true, &q->device_model) ||
        !take_provider(c, &q->provider) || !take_contract(c, &q->contract) ||
        !take_number(c, "from", 0, 0, INT64_MAX, &q->from_ms) ||
        !take_number(c, "to", INT64_MAX, 0, INT64_MAX, &q->to_ms) ||
        !take_word(c, "order", orders, 2, 0, &order) || !take_number(c, "raw", 0, 0, 1, &raw) ||
        !take_number(c, raw ? "limit" : "points", POINTS_DEFAULT, 1, POINTS_MAX, &q->points))
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
    struct store_trend_query query;
    struct store_trend_result trend;
    if (!take_format(c) || !take_query(c, &query))
        return GATE_OK;
    enum gate_status status = store_trend_read(c->store, &query, &trend, &c->err);
    if (status == GATE_USAGE)
        reply_problem(c->reply, 400,
                      "The parameter 'after' is not the 'next' of an earlier answer.");
    else if (status == GATE_OK && c->emit.form == EMIT_JSON)
        status = put_answer(c, &query, &trend);
    else if (status == GATE_OK)
        put_rows(c, &trend);
    store_trend_release(&trend);
    return status == GATE_USAGE ? GATE_OK : status;
}
