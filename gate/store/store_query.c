/* SPDX-License-Identifier: Apache-2.0 */
/* store_query.c: runs, documents, leaders; see store.h. Columns are those of store_sql.c.
 */
#include "gate/store/store_pack.h"
#include "gate/store/store_private.h"

#include <stdio.h>
#include <string.h>

static int count(struct query *q, int column)
{
    return sqlite3_column_int(q->stmt, column);
}

struct store_run store_read_run(struct query *q)
{
    return (struct store_run){
        .uuid = column_text(q, 0),
        .time_ms = column_int(q, 1),
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
        .parent = column_text(q, 19),
        .epoch = column_text(q, 20),
        .host = column_text(q, 22),
        .gpu = column_text(q, 23),
        .machine = column_text(q, 24),
        .control_ns = column_real(q, 25),
        .control_drift = sqlite3_column_type(q->stmt, 26) == SQLITE_NULL ? -1 : column_real(q, 26),
        .vendor_ratio = column_real(q, 27),
        .n_vendor = count(q, 28),
        .author = column_text(q, 29),
    };
}

/* A limit below 1 would mean "no limit" to SQLite. */
enum gate_status store_check_limit(int64_t limit, struct gate_error *err)
{
    if (limit >= 1)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE, "the limit must be at least 1, is %lld", (long long)limit);
}

/* ---- runs ---- */

struct run_call {
    store_run_fn fn;
    void *context;
};

static bool run_row(struct query *q, void *call)
{
    const struct run_call *c = call;
    struct store_run row = store_read_run(q);
    return c->fn(c->context, &row);
}

/* The index that leaves the fewest runs to look at. */
static enum store_sql runs_by(const struct store_run_filter *f)
{
    if (f->commit)
        return SQL_RUNS_OF_COMMIT;
    if (f->machine)
        return SQL_RUNS_OF_MACHINE;
    if (f->branch)
        return SQL_RUNS_OF_BRANCH;
    if (f->verdict)
        return SQL_RUNS_OF_VERDICT;
    return f->device_model ? SQL_RUNS_OF_DEVICE : SQL_RUNS;
}

enum gate_status store_runs(struct store *s, const struct store_run_filter *filter,
                            struct store_run_key after, int64_t limit, store_run_fn fn,
                            void *context, struct gate_error *err)
{
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct run_call call = {fn, context};
    struct query q = query_begin(s, runs_by(filter));
    bind_int(&q, after.time_ms);
    bind_text(&q, after.uuid);
    bind_int(&q, limit);
    bind_text_or_null(&q, filter->device_model);
    bind_text_or_null(&q, filter->branch);
    bind_text_or_null(&q, filter->verdict);
    bind_text_or_null(&q, filter->commit);
    bind_text_or_null(&q, filter->machine);
    return store_each_row(s, &q, run_row, &call, err);
}

struct found_run {
    int64_t id;
    int n;
};

static bool found_row(struct query *q, void *call)
{
    struct found_run *found = call;
    found->id = column_int(q, 0);
    found->n++;
    return true;
}

static bool is_hex(const char *s, const char *more, size_t least)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = strspn(s, hex);
    while (s[n] != '\0' && strchr(more, s[n]))
        n += 1 + strspn(s + n + 1, hex);
    return n >= least && s[n] == '\0';
}

static enum gate_status find_by_uuid(struct store *s, const char *uuid, int64_t *id,
                                     struct gate_error *err)
{
    struct found_run found = {0, 0};
    if (!is_hex(uuid, "-", 4))
        return gate_fail(err, GATE_USAGE,
                         "a run is named by its uuid or by the first 4 or more characters of it");
    struct query q = query_begin(s, SQL_FIND_RUN);
    bind_text(&q, uuid);
    enum gate_status status = store_each_row(s, &q, found_row, &found, err);
    if (status)
        return status;
    if (found.n == 0)
        return gate_fail(err, GATE_USAGE, "run %s is not in '%s'", uuid, s->path);
    if (found.n > 1)
        return gate_fail(err, GATE_USAGE, "more than one run in '%s' begins with %s: type more",
                         s->path, uuid);
    *id = found.id;
    return GATE_OK;
}

static enum gate_status find_by_commit(struct store *s, const char *commit,
                                       const char *device_model, int64_t *id,
                                       struct gate_error *err)
{
    struct found_run found = {0, 0};
    struct query q = query_begin(s, SQL_FIND_RUN_OF_COMMIT);
    bind_text(&q, commit);
    bind_text_or_null(&q, device_model);
    enum gate_status status = store_each_row(s, &q, found_row, &found, err);
    if (!status && found.n == 1 && found.id != 0)
        *id = found.id;
    else if (!status && found.n > 1)
        status =
            gate_fail(err, GATE_USAGE, "more than one commit begins with %s: type more", commit);
    else if (!status)
        status = gate_fail(err, GATE_USAGE, "no run is of a commit %s", commit);
    return status;
}

static enum gate_status read_run_of(struct store *s, int64_t id, struct run_call *call,
                                    struct gate_error *err)
{
    struct query q = query_begin(s, SQL_RUN);
    bind_int(&q, id);
    return store_each_row(s, &q, run_row, call, err);
}

enum gate_status store_find_run(struct store *s, const char *name, const char *device_model,
                                store_run_fn fn, void *context, int64_t *id, struct gate_error *err)
{
    struct run_call call = {fn, context};
    struct gate_error no_run = {0};
    int64_t found = 0;
    enum gate_status status = find_by_uuid(s, name, &found, &no_run);
    if (status == GATE_USAGE && is_hex(name, "", 7))
        status = find_by_commit(s, name, device_model, &found, err);
    else if (status)
        gate_fail(err, status, "%s", no_run.message);
    if (!status)
        status = read_run_of(s, found, &call, err);
    if (id)
        *id = found;
    return status;
}

/* ---- documents ---- */

struct document_call {
    store_document_fn fn;
    void *context;
    struct buf text;
    enum gate_status status;
    struct gate_error *err;
};

static bool document_row(struct query *q, void *call)
{
    struct document_call *c = call;
    const void *bytes = sqlite3_column_blob(q->stmt, 0); /* before its size */
    size_t len = (size_t)sqlite3_column_bytes(q->stmt, 0);
    buf_clear(&c->text);
    c->status = store_unpack(bytes, len, (size_t)column_int(q, 1), &c->text, c->err);
    return c->status == GATE_OK && c->fn(c->context, c->text.data, c->text.len);
}

static enum gate_status each_document(struct store *s, struct query *q, store_document_fn fn,
                                      void *context, struct gate_error *err)
{
    struct document_call call = {.fn = fn, .context = context, .err = err};
    buf_init(&call.text, STORE_MAX_DOCUMENT);
    enum gate_status status = store_each_row(s, q, document_row, &call, err);
    buf_release(&call.text);
    return !status ? call.status : status;
}

enum gate_status store_document(struct store *s, const char *uuid, store_document_fn fn,
                                void *context, struct gate_error *err)
{
    int64_t id = 0;
    enum gate_status status = find_by_uuid(s, uuid, &id, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_DOCUMENT);
    bind_int(&q, id);
    return each_document(s, &q, fn, context, err);
}

struct length_call {
    size_t *n_bytes, *n_packed;
};

static bool length_row(struct query *q, void *call)
{
    struct length_call *c = call;
    *c->n_packed = (size_t)column_int(q, 0);
    *c->n_bytes = (size_t)column_int(q, 1);
    return true;
}

enum gate_status store_find_document(struct store *s, const char *uuid, int64_t *run_id,
                                     size_t *n_bytes, size_t *n_packed, struct gate_error *err)
{
    struct length_call call = {n_bytes, n_packed};
    enum gate_status status = find_by_uuid(s, uuid, run_id, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_DOCUMENT_LENGTH);
    bind_int(&q, *run_id);
    return store_each_row(s, &q, length_row, &call, err);
}

enum gate_status store_document_piece(struct store *s, int64_t run_id, size_t n_packed, size_t at,
                                      void *out, size_t n, struct gate_error *err)
{
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(s->db, "main", "document", "packed", run_id, 0, &blob);
    if (rc == SQLITE_OK && (size_t)sqlite3_blob_bytes(blob) != n_packed)
        rc = SQLITE_ABORT;
    if (rc == SQLITE_OK)
        rc = sqlite3_blob_read(blob, out, (int)n, (int)at);
    sqlite3_blob_close(blob);
    return rc == SQLITE_OK ? GATE_OK : store_fail(s, rc, "read", err);
}

enum gate_status store_documents(struct store *s, store_document_fn fn, void *context,
                                 struct gate_error *err)
{
    struct query q = query_begin(s, SQL_DOCUMENTS);
    return each_document(s, &q, fn, context, err);
}

/* ---- rows of `gate history` and `gate baseline` ---- */

static const char *role_name(struct query *q, int column)
{
    return column_int(q, column) == 0 ? "candidate" : "provider";
}

static double ns(struct query *q, int column)
{
    return (double)column_int(q, column) / 1e3;
}

struct point_call {
    store_point_fn fn;
    void *context;
};

static bool point_row(struct query *q, void *call)
{
    const struct point_call *c = call;
    double p50_ps = (double)column_int(q, 8);
    struct store_point row = {
        .time_ms = column_int(q, 0),
        .run_uuid = column_text(q, 1),
        .commit = column_text(q, 2),
        .provider = column_text(q, 3),
        .role = role_name(q, 4),
        .kernel = column_text(q, 5),
        .contract = column_text(q, 6),
        .verdict = verdict_name((enum verdict)count(q, 7)),
        .p50_ns = ns(q, 8),
        .p50_lo_ns = ns(q, 9),
        .p50_hi_ns = ns(q, 10),
        .p90_ns = ns(q, 11),
        .tflops = column_real(q, 12) / p50_ps,
        .gbps = column_real(q, 13) / p50_ps * 1e3,
        .baseline_p50_ns = ns(q, 14),
        .dirty = column_int(q, 15) != 0,
    };
    return c->fn(c->context, &row);
}

enum gate_status store_trend(struct store *s, const char *case_id, const char *device_model,
                             const char *provider, int64_t limit, store_point_fn fn, void *context,
                             struct gate_error *err)
{
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct point_call call = {fn, context};
    struct query q = query_begin(s, SQL_TREND);
    bind_text(&q, case_id);
    bind_text(&q, device_model);
    bind_text_or_null(&q, provider);
    bind_int(&q, limit);
    return store_each_row(s, &q, point_row, &call, err);
}

struct leader_call {
    store_leader_fn fn;
    void *context;
};

static bool leader_row(struct query *q, void *call)
{
    const struct leader_call *c = call;
    double p50_ps = (double)column_int(q, 7);
    struct store_leader row = {
        .case_id = column_text(q, 0),
        .device_model = column_text(q, 1),
        .provider = column_text(q, 2),
        .kernel = column_text(q, 3),
        .commit = column_text(q, 4),
        .run_uuid = column_text(q, 5),
        .time_ms = column_int(q, 6),
        .p50_ps = column_int(q, 7),
        .p50_ns = ns(q, 7),
        .tflops = column_real(q, 8) / p50_ps,
        .gbps = column_real(q, 9) / p50_ps * 1e3,
        .contract = column_text(q, 10),
        .role = role_name(q, 11),
        .branch = column_text(q, 12),
        .dirty = column_int(q, 13) != 0,
        .subject = column_text(q, 14),
        .author = column_text(q, 15),
        .newest_run = column_text(q, 16),
        .newest_p50_ns = ns(q, 17),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_leaderboard(struct store *s, const char *branch, const char *device_model,
                                   struct store_leader_key after, int64_t limit, store_leader_fn fn,
                                   void *context, struct gate_error *err)
{
    struct leader_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_LEADERBOARD);
    bind_text_or_null(&q, device_model);
    bind_int(&q, limit);
    bind_text_or_null(&q, after.case_id);
    bind_text_or_null(&q, after.device_model);
    bind_int(&q, after.p50_ps);
    bind_text_or_null(&q, after.provider);
    bind_text_or_null(&q, branch);
    return store_each_row(s, &q, leader_row, &call, err);
}

/* ---- the state ---- */

static bool state_row(struct query *q, void *call)
{
    struct store_state *state = call;
    snprintf(state->text, sizeof state->text, "%s %lld %s", column_text(q, 0),
             (long long)column_int(q, 1), column_text(q, 2));
    return false;
}

enum gate_status store_state(struct store *s, struct store_state *out, struct gate_error *err)
{
    out->text[0] = '\0';
    struct query q = query_begin(s, SQL_STATE);
    return store_each_row(s, &q, state_row, out, err);
}

enum gate_status store_read_begin(struct store *s, struct gate_error *err)
{
    struct query q = query_begin(s, SQL_READ_BEGIN);
    int rc = query_step(&q);
    query_end(&q);
    return rc == SQLITE_DONE ? GATE_OK : store_fail(s, rc, "read", err);
}

void store_read_end(struct store *s)
{
    struct query q = query_begin(s, SQL_READ_END);
    query_step(&q); /* it wrote nothing, so there is nothing that could fail to be kept */
    query_end(&q);
}
