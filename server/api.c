/* api.c: see api.h. */
#include "api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

#define PREFIX "/api/v1/"
#define RUNS_DEFAULT 50
#define RUNS_MAX 500
#define POINTS_DEFAULT 1000
#define POINTS_MAX 10000
#define MAX_NAMES 4 /* parameters of one address */

/* One answer in the making. */
struct call {
    struct store *store;
    const struct request *request;
    const char *rest; /* of the path, behind the route's */
    struct reply *reply;
    struct emit emit;
    struct gate_error err;
    /* of the list of runs */
    int64_t n_rows;
    int64_t limit;
    int64_t last_ms;
    char last_uuid[40];
};

/* ---- parameters ---- */

/* The names of the run document: what could be stored is what can be asked for. */
static bool is_name(const char *s, const char *more, size_t max)
{
    static const char alphanumeric[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(s);
    char good[64];
    snprintf(good, sizeof(good), "%s%s", alphanumeric, more);
    return len >= 1 && len <= max && strchr(alphanumeric, s[0]) && strspn(s, good) == len;
}

/* A name that may be missing (NULL). False: a problem was written. */
static bool take_name(struct call *c, const char *parameter, const char *more, size_t max,
                      bool required, const char **out)
{
    *out = request_parameter(c->request, parameter);
    if (!*out && required) {
        reply_problem(c->reply, 400, "The parameter '%s' is missing.", parameter);
        return false;
    }
    if (*out && !is_name(*out, more, max)) {
        reply_problem(c->reply, 400, "The parameter '%s' is not a name that can occur.", parameter);
        return false;
    }
    return true;
}

static bool take_device(struct call *c, bool required, const char **out)
{
    return take_name(c, "device", "_.+-", 64, required, out);
}

/* Decimal digits only, from 0 up; -1: anything else. */
static int64_t parse_count(const char *s, char end, const char **rest)
{
    char *stop;
    if (*s < '0' || *s > '9')
        return -1;
    errno = 0;
    long long value = strtoll(s, &stop, 10);
    if (errno != 0 || *stop != end)
        return -1;
    if (rest)
        *rest = stop;
    return value;
}

static bool take_limit(struct call *c, int64_t otherwise, int64_t max)
{
    const char *text = request_parameter(c->request, "limit");
    c->limit = text ? parse_count(text, '\0', NULL) : otherwise;
    if (c->limit >= 1 && c->limit <= max)
        return true;
    reply_problem(c->reply, 400, "The parameter 'limit' must be a number from 1 to %lld.",
                  (long long)max);
    return false;
}

/* "<time_ms>.<uuid>", the last row of the page before. */
static bool take_after(struct call *c, struct store_run_key *after)
{
    const char *text = request_parameter(c->request, "after");
    const char *uuid = NULL;
    *after = (struct store_run_key){INT64_MAX, ""};
    if (!text)
        return true;
    after->time_ms = parse_count(text, '.', &uuid);
    if (after->time_ms >= 0 && strlen(uuid) == 37 && strspn(uuid + 1, "0123456789abcdef-") == 36) {
        after->uuid = uuid + 1;
        return true;
    }
    reply_problem(c->reply, 400, "The parameter 'after' is not the 'next' of an earlier answer.");
    return false;
}

/* ---- rows ---- */

static void put_run(struct emit *e, const struct store_run *r)
{
    emit_open(e, '{');
    emit_string_member(e, "uuid", r->uuid);
    emit_integer_member(e, "time_ms", r->time_ms);
    emit_known_string(e, "commit", r->commit);
    emit_known_string(e, "branch", r->branch);
    emit_known_string(e, "subject", r->subject);
    emit_bool_member(e, "dirty", r->dirty);
    emit_string_member(e, "suite", r->suite);
    emit_string_member(e, "device", r->device_model);
    emit_string_member(e, "device_name", r->device_name);
    emit_string_member(e, "contract", r->contract);
    emit_string_member(e, "verdict", r->verdict);
    emit_integer_member(e, "exit_code", r->exit_code);
    emit_integer_member(e, "cases", r->n_cases);
    emit_key(e, "verdicts");
    emit_open(e, '{');
    emit_integer_member(e, "pass", r->n_pass);
    emit_integer_member(e, "regression", r->n_regression);
    emit_integer_member(e, "improvement", r->n_improvement);
    emit_integer_member(e, "wrong", r->n_wrong);
    emit_integer_member(e, "no-verdict", r->n_no_verdict);
    emit_integer_member(e, "environment", r->n_environment);
    emit_close(e, '}');
    emit_close(e, '}');
}

static bool run_row(void *context, const struct store_run *row)
{
    struct call *c = context;
    if (c->n_rows == c->limit) {
        c->n_rows++; /* there is a next page */
        return false;
    }
    c->n_rows++;
    c->last_ms = row->time_ms;
    snprintf(c->last_uuid, sizeof(c->last_uuid), "%s", row->uuid);
    put_run(&c->emit, row);
    return true;
}

static bool device_row(void *context, const struct store_device *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "model", row->model);
    emit_integer_member(e, "runs", row->n_runs);
    emit_key(e, "newest");
    put_run(e, &row->newest);
    emit_close(e, '}');
    return true;
}

static bool case_row(void *context, const struct store_case *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "id", row->id);
    emit_string_member(e, "op", row->op);
    emit_string_member(e, "dtype", row->dtype);
    emit_string_member(e, "device", row->device_model);
    emit_integer_member(e, "runs", row->n_runs);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "contract", row->contract);
    emit_string_member(e, "verdict", row->verdict);
    emit_string_member(e, "reason", row->reason);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "p50_lo_ns", row->p50_lo_ns);
    emit_known_real(e, "p50_hi_ns", row->p50_hi_ns);
    emit_known_real(e, "best_p50_ns", row->best_p50_ns);
    emit_known_real(e, "ratio", row->ratio);
    emit_known_real(e, "ratio_lo", row->ratio_lo);
    emit_known_real(e, "ratio_hi", row->ratio_hi);
    emit_known_real(e, "mde", row->mde);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "ceiling", row->ceiling);
    emit_known_string(e, "peer", row->peer);
    emit_known_real(e, "peer_ratio", row->peer_ratio);
    emit_close(e, '}');
    return true;
}

static bool point_row(void *context, const struct store_point *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "provider", row->provider);
    emit_string_member(e, "role", row->role);
    emit_string_member(e, "kernel", row->kernel);
    emit_string_member(e, "contract", row->contract);
    emit_string_member(e, "verdict", row->verdict);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "p50_lo_ns", row->p50_lo_ns);
    emit_known_real(e, "p50_hi_ns", row->p50_hi_ns);
    emit_known_real(e, "p90_ns", row->p90_ns);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "gbps", row->gbps);
    emit_known_real(e, "best_p50_ns", row->best_p50_ns);
    emit_close(e, '}');
    return true;
}

static bool leader_row(void *context, const struct store_leader *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "case", row->case_id);
    emit_string_member(e, "device", row->device_model);
    emit_string_member(e, "provider", row->provider);
    emit_string_member(e, "role", row->role);
    emit_string_member(e, "kernel", row->kernel);
    emit_string_member(e, "contract", row->contract);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "run", row->run_uuid);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "gbps", row->gbps);
    emit_close(e, '}');
    return true;
}

/* ---- addresses ---- */

static void open_list(struct call *c, const char *name)
{
    emit_open(&c->emit, '{');
    emit_key(&c->emit, name);
    emit_open(&c->emit, '[');
}

static void close_list(struct call *c)
{
    emit_close(&c->emit, ']');
    emit_close(&c->emit, '}');
    buf_putc(c->emit.out, '\n');
}

static enum gate_status get_runs(struct call *c)
{
    struct store_run_key after;
    if (!take_limit(c, RUNS_DEFAULT, RUNS_MAX) || !take_after(c, &after))
        return GATE_OK;
    open_list(c, "runs");
    /* One more than is shown tells whether there is a next page. */
    enum gate_status status = store_runs(c->store, after, c->limit + 1, run_row, c, &c->err);
    emit_close(&c->emit, ']');
    emit_key(&c->emit, "next");
    if (c->n_rows > c->limit) {
        char next[80];
        snprintf(next, sizeof(next), "%lld.%s", (long long)c->last_ms, c->last_uuid);
        emit_string(&c->emit, next);
    } else {
        emit_null(&c->emit);
    }
    emit_close(&c->emit, '}');
    buf_putc(c->emit.out, '\n');
    return status;
}

static bool document_row(void *context, const char *text, size_t len)
{
    struct call *c = context;
    buf_append(c->emit.out, text, len);
    return true;
}

static enum gate_status get_document(struct call *c)
{
    enum gate_status status = store_document(c->store, c->rest, document_row, c, &c->err);
    if (status != GATE_USAGE)
        return status;
    reply_problem(c->reply, 404, "No run, or more than one, has this uuid.");
    return GATE_OK;
}

static enum gate_status get_cases(struct call *c)
{
    const char *device;
    if (!take_device(c, false, &device))
        return GATE_OK;
    open_list(c, "cases");
    enum gate_status status = store_cases(c->store, device, case_row, c, &c->err);
    close_list(c);
    return status;
}

static enum gate_status get_trends(struct call *c)
{
    const char *id;
    const char *device;
    const char *provider;
    if (!take_name(c, "case", "_./+-", 160, true, &id) || !take_device(c, true, &device) ||
        !take_name(c, "provider", "_.+-", 64, false, &provider) ||
        !take_limit(c, POINTS_DEFAULT, POINTS_MAX))
        return GATE_OK;
    open_list(c, "points");
    enum gate_status status =
        store_trend(c->store, id, device, provider, c->limit, point_row, c, &c->err);
    close_list(c);
    return status;
}

static enum gate_status get_leaderboard(struct call *c)
{
    const char *device;
    if (!take_device(c, false, &device))
        return GATE_OK;
    open_list(c, "leaders");
    enum gate_status status = store_leaderboard(c->store, device, leader_row, c, &c->err);
    close_list(c);
    return status;
}

static enum gate_status get_devices(struct call *c)
{
    open_list(c, "devices");
    enum gate_status status = store_devices(c->store, device_row, c, &c->err);
    close_list(c);
    return status;
}

struct route {
    const char *path; /* behind PREFIX; one that ends in '/' takes a rest */
    const char *parameters[MAX_NAMES];
    enum gate_status (*get)(struct call *c);
};

static const struct route routes[] = {
    {"runs", {"limit", "after"}, get_runs},
    {"runs/", {NULL}, get_document},
    {"cases", {"device"}, get_cases},
    {"trends", {"case", "device", "provider", "limit"}, get_trends},
    {"leaderboard", {"device"}, get_leaderboard},
    {"devices", {NULL}, get_devices},
};

bool api_owns(const char *path)
{
    return strncmp(path, "/api/", 5) == 0 || strcmp(path, "/api") == 0;
}

static const struct route *find_route(const char *path, const char **rest)
{
    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    path += strlen(PREFIX);
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        size_t len = strlen(routes[i].path);
        bool takes_rest = routes[i].path[len - 1] == '/';
        if (strncmp(path, routes[i].path, len) == 0 && (takes_rest || path[len] == '\0')) {
            *rest = path + len;
            return &routes[i];
        }
    }
    return NULL;
}

/* The first parameter that the route does not have, or NULL. */
static const char *unknown_parameter(const struct route *route, const struct request *request)
{
    for (size_t i = 0; i < request->n_parameters; i++) {
        bool known = false;
        for (size_t k = 0; k < MAX_NAMES && route->parameters[k]; k++)
            known |= strcmp(route->parameters[k], request->parameters[i].name) == 0;
        if (!known)
            return request->parameters[i].name;
    }
    return NULL;
}

/*
 * The answer follows from the build, the state of the store and the address, so their hash is its
 * tag: it stays valid over a restart, and costs one row to check. The state is read before the
 * rows; a run that comes in between makes the tag too old, which costs a second answer, not a
 * wrong one.
 */
static enum gate_status tag_state(struct call *c, const char *build)
{
    struct store_state state;
    char text[sizeof(state.text) + REQUEST_MAX_TARGET + 128];
    enum gate_status status = store_state(c->store, &state, &c->err);
    if (status != GATE_OK)
        return status;
    int n = snprintf(text, sizeof(text), "%s %s %s", build, state.text, c->request->target);
    c->reply->etag = etag_of(text, (size_t)n);
    return GATE_OK;
}

void api_get(struct store *store, const struct request *request, const char *build,
             const char *if_none_match, struct reply *reply)
{
    struct call c = {.store = store, .request = request, .reply = reply};
    c.emit.out = &reply->body;
    const struct route *route = find_route(request->path, &c.rest);
    if (!route) {
        reply_problem(reply, 404, "There is no such address in the API.");
        return;
    }
    const char *unknown = unknown_parameter(route, request);
    if (unknown) {
        reply_problem(reply, 400, "The parameter '%s' is not known here.",
                      is_name(unknown, "_-", 64) ? unknown : "...");
        return;
    }
    enum gate_status status = tag_state(&c, build);
    if (status == GATE_OK && etag_matches(&reply->etag, if_none_match)) {
        reply->status = 304;
        return;
    }
    if (status == GATE_OK)
        status = route->get(&c);
    if (status != GATE_OK) {
        fprintf(stderr, "gate-server: %s\n", c.err.message);
        reply_problem(reply, 503, "The database cannot be read now; the server's log says why.");
    } else if (reply->body.failed) {
        reply_problem(reply, 500, "The answer is too long.");
    }
}
