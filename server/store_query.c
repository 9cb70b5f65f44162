/* store_query.c: the questions; see store.h. Columns are those of store_sql.c. */
#include "store_private.h"

#include <stdio.h>
#include <string.h>

static double number(struct query *q, int column)
{
    return sqlite3_column_double(q->stmt, column); /* 0.0 for NULL */
}

static int64_t integer(struct query *q, int column)
{
    return sqlite3_column_int64(q->stmt, column);
}

static int count(struct query *q, int column)
{
    return sqlite3_column_int(q->stmt, column);
}

/* Tells the caller of one row; false ends the query. */
typedef bool (*row_fn)(struct query *q, void *call);

/* Steps through the rows of a query whose values are bound, and ends it. */
static enum gate_status each_row(struct store *s, struct query *q, row_fn fn, void *call,
                                 struct gate_error *err)
{
    int rc;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (!fn(q, call))
            break;
    }
    enum gate_status status = GATE_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = store_fail(s, rc, "read", err);
    query_end(q);
    return status;
}

static struct store_run read_run(struct query *q)
{
    return (struct store_run){
        .uuid = column_text(q, 0),
        .time_ms = integer(q, 1),
        .commit = column_text(q, 2),
        .branch = column_text(q, 3),
        .subject = column_text(q, 4),
        .dirty = count(q, 5) != 0,
        .suite = column_text(q, 6),
        .device_model = column_text(q, 7),
        .device_name = column_text(q, 8),
        .contract = column_text(q, 9),
        .verdict = column_text(q, 10),
        .exit_code = count(q, 11),
        .n_cases = count(q, 12),
        .n_pass = count(q, 13),
        .n_regression = count(q, 14),
        .n_improvement = count(q, 15),
        .n_wrong = count(q, 16),
        .n_no_verdict = count(q, 17),
        .n_environment = count(q, 18),
    };
}

/* A limit below 1 would mean "no limit" to SQLite. */
static enum gate_status check_limit(int64_t limit, struct gate_error *err)
{
    if (limit >= 1)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE, "the limit must be at least 1, is %lld", (long long)limit);
}

struct run_call {
    store_run_fn fn;
    void *context;
};

static bool run_row(struct query *q, void *call)
{
    const struct run_call *c = call;
    struct store_run row = read_run(q);
    return c->fn(c->context, &row);
}

enum gate_status store_runs(struct store *s, struct store_run_key after, int64_t limit,
                            store_run_fn fn, void *context, struct gate_error *err)
{
    enum gate_status status = check_limit(limit, err);
    if (status != GATE_OK)
        return status;
    struct run_call call = {fn, context};
    struct query q = query_begin(s, SQL_RUNS);
    bind_int(&q, after.time_ms);
    bind_text(&q, after.uuid);
    bind_int(&q, limit);
    return each_row(s, &q, run_row, &call, err);
}

struct device_call {
    store_device_fn fn;
    void *context;
};

static bool device_row(struct query *q, void *call)
{
    const struct device_call *c = call;
    struct store_device row = {.newest = read_run(q), .n_runs = integer(q, 19)};
    row.model = row.newest.device_model;
    return c->fn(c->context, &row);
}

enum gate_status store_devices(struct store *s, store_device_fn fn, void *context,
                               struct gate_error *err)
{
    struct device_call call = {fn, context};
    struct query q = query_begin(s, SQL_DEVICES);
    return each_row(s, &q, device_row, &call, err);
}

struct case_call {
    store_case_fn fn;
    void *context;
};

static bool case_row(struct query *q, void *call)
{
    const struct case_call *c = call;
    struct store_case row = {
        .id = column_text(q, 0),
        .op = column_text(q, 1),
        .dtype = column_text(q, 2),
        .device_model = column_text(q, 3),
        .n_runs = integer(q, 4),
        .time_ms = integer(q, 5),
        .run_uuid = column_text(q, 6),
        .commit = column_text(q, 7),
        .verdict = column_text(q, 8),
        .p50_ns = number(q, 9),
        .best_p50_ns = number(q, 10),
        .tflops = number(q, 11),
        .ceiling = number(q, 12),
        .contract = column_text(q, 13),
        .reason = column_text(q, 14),
        .p50_lo_ns = number(q, 15),
        .p50_hi_ns = number(q, 16),
        .ratio = number(q, 17),
        .ratio_lo = number(q, 18),
        .ratio_hi = number(q, 19),
        .peer = column_text(q, 20),
        .peer_ratio = number(q, 21),
        .mde = number(q, 22),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_cases(struct store *s, const char *device_model, store_case_fn fn,
                             void *context, struct gate_error *err)
{
    struct case_call call = {fn, context};
    struct query q = query_begin(s, SQL_CASES);
    bind_text_or_null(&q, device_model);
    return each_row(s, &q, case_row, &call, err);
}

struct point_call {
    store_point_fn fn;
    void *context;
};

static bool point_row(struct query *q, void *call)
{
    const struct point_call *c = call;
    struct store_point row = {
        .time_ms = integer(q, 0),
        .run_uuid = column_text(q, 1),
        .commit = column_text(q, 2),
        .provider = column_text(q, 3),
        .role = column_text(q, 4),
        .kernel = column_text(q, 5),
        .contract = column_text(q, 6),
        .verdict = column_text(q, 7),
        .p50_ns = number(q, 8),
        .p50_lo_ns = number(q, 9),
        .p50_hi_ns = number(q, 10),
        .p90_ns = number(q, 11),
        .tflops = number(q, 12),
        .gbps = number(q, 13),
        .best_p50_ns = number(q, 14),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_trend(struct store *s, const char *case_id, const char *device_model,
                             const char *provider, int64_t limit, store_point_fn fn, void *context,
                             struct gate_error *err)
{
    enum gate_status status = check_limit(limit, err);
    if (status != GATE_OK)
        return status;
    struct point_call call = {fn, context};
    struct query q = query_begin(s, SQL_TREND);
    bind_text(&q, case_id);
    bind_text(&q, device_model);
    bind_text_or_null(&q, provider);
    bind_int(&q, limit);
    return each_row(s, &q, point_row, &call, err);
}

struct leader_call {
    store_leader_fn fn;
    void *context;
};

static bool leader_row(struct query *q, void *call)
{
    const struct leader_call *c = call;
    struct store_leader row = {
        .case_id = column_text(q, 0),
        .device_model = column_text(q, 1),
        .provider = column_text(q, 2),
        .kernel = column_text(q, 3),
        .commit = column_text(q, 4),
        .run_uuid = column_text(q, 5),
        .time_ms = integer(q, 6),
        .p50_ns = number(q, 7),
        .tflops = number(q, 8),
        .gbps = number(q, 9),
        .contract = column_text(q, 10),
        .role = column_text(q, 11),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_leaderboard(struct store *s, const char *device_model, store_leader_fn fn,
                                   void *context, struct gate_error *err)
{
    struct leader_call call = {fn, context};
    struct query q = query_begin(s, SQL_LEADERBOARD);
    bind_text_or_null(&q, device_model);
    return each_row(s, &q, leader_row, &call, err);
}

struct document_call {
    store_document_fn fn;
    void *context;
};

static bool document_row(struct query *q, void *call)
{
    const struct document_call *c = call;
    const char *text = column_text(q, 0); /* before its size: the order SQLite asks for */
    return c->fn(c->context, text, (size_t)sqlite3_column_bytes(q->stmt, 0));
}

struct found_run {
    int64_t id;
    int n;
};

static bool found_row(struct query *q, void *call)
{
    struct found_run *found = call;
    found->id = integer(q, 0);
    found->n++;
    return true;
}

static enum gate_status find_run(struct store *s, const char *uuid, int64_t *id,
                                 struct gate_error *err)
{
    struct found_run found = {0, 0};
    if (strlen(uuid) < 4 || uuid[strspn(uuid, "0123456789abcdef-")] != '\0')
        return gate_fail(err, GATE_USAGE,
                         "a run is named by its uuid or by the first 4 or more characters of it");
    struct query q = query_begin(s, SQL_FIND_RUN);
    bind_text(&q, uuid);
    enum gate_status status = each_row(s, &q, found_row, &found, err);
    if (status != GATE_OK)
        return status;
    if (found.n == 0)
        return gate_fail(err, GATE_USAGE, "there is no run %s in '%s'", uuid, s->path);
    if (found.n > 1)
        return gate_fail(err, GATE_USAGE, "more than one run in '%s' begins with %s: type more",
                         s->path, uuid);
    *id = found.id;
    return GATE_OK;
}

enum gate_status store_document(struct store *s, const char *uuid, store_document_fn fn,
                                void *context, struct gate_error *err)
{
    int64_t id = 0;
    enum gate_status status = find_run(s, uuid, &id, err);
    if (status != GATE_OK)
        return status;
    struct document_call call = {fn, context};
    struct query q = query_begin(s, SQL_DOCUMENT);
    bind_int(&q, id);
    return each_row(s, &q, document_row, &call, err);
}

enum gate_status store_documents(struct store *s, store_document_fn fn, void *context,
                                 struct gate_error *err)
{
    struct document_call call = {fn, context};
    struct query q = query_begin(s, SQL_DOCUMENTS);
    return each_row(s, &q, document_row, &call, err);
}

static bool state_row(struct query *q, void *call)
{
    struct store_state *state = call;
    snprintf(state->text, sizeof(state->text), "%s %lld %s", column_text(q, 0),
             (long long)integer(q, 1), column_text(q, 2));
    return false;
}

enum gate_status store_state(struct store *s, struct store_state *out, struct gate_error *err)
{
    out->text[0] = '\0';
    struct query q = query_begin(s, SQL_STATE);
    return each_row(s, &q, state_row, out, err);
}
