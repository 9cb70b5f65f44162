/* api_ingest.c: POST /api/v1/runs: a run document, checked and stored once; see api_write.h. */
#include "api_write.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/schema.h"
#include "text/emit.h"
#include "base/gzip.h"
#include "ops/metrics.h"
#include "run/run_check.h"
#include "store/run_rows.h"
#include "store/store_pack.h"

/*
 * Of the tree of a document. Mostly there is never more of it than one case, with 300 values where
 * it has four arms in ten processes, for its samples are one string; but a document may have its
 * policy, which cases are held against, behind them.
 */
#define MAX_TREE_BYTES ((size_t)160 << 20)

struct ingest {
    struct buf text;       /* inflated; empty when the body was not gzip */
    struct json_pool pool; /* of what follows */
    const cJSON *document; /* without its cases */
    struct run_rows rows;  /* what is stored of these */
    struct store_packed packed;
};

/* The cases of a document, while they come. */
struct checking {
    struct ingest *ingest;
    struct run_check check;
    size_t n;
    struct schema_fault fault; /* the first, by the schema */
    bool is_faulty, failed;    /* failed: out of memory */
};

static struct schema *run_schema;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Once for the process; never freed. */
static void open_schema(void)
{
    run_schema = schema_open("run.schema.json");
}

static bool refuse(struct api_write *w, unsigned status, const char *path, const char *message)
{
    metrics_add(METRIC_RUNS_REFUSED, 1);
    reply_fault(w->reply, status, path, message);
    return false;
}

/* Checks a case and takes what is stored of it. */
static void take_case(void *context, const cJSON *document, const cJSON *one_case)
{
    struct checking *k = context;
    if (k->is_faulty || k->failed)
        return;
    if (!schema_check_element(run_schema, "cases", k->n++, one_case, &k->fault)) {
        k->is_faulty = true;
        return;
    }
    const struct run_case *row = run_rows_add(&k->ingest->rows, one_case);
    k->failed = !row;
    if (row)
        run_check_case(&k->check, document, one_case, row->id);
}

/* What is wrong with the head of a document is told before what is with a case. */
static bool is_right(struct checking *k, struct schema_fault *fault)
{
    if (!schema_check(run_schema, k->ingest->document, fault))
        return false;
    if (k->is_faulty)
        *fault = k->fault;
    return !k->is_faulty && run_check_end(&k->check, k->ingest->document, fault);
}

static enum gate_status read_cases(const struct api_write *w, struct checking *k,
                                   struct gate_error *err)
{
    const struct json_elements cases = {"cases", "policy", take_case, k};
    struct ingest *in = k->ingest;
    const cJSON *one_case = NULL;
    enum gate_status status = json_parse_elements("document", w->body, w->len, GATE_USAGE,
                                                  &in->pool, &cases, &in->document, err);
    cJSON_ArrayForEach (one_case, json_member(in->document, "cases"))
        take_case(k, in->document, one_case);
    return status;
}

static bool check(struct api_write *w, struct checking *k)
{
    struct gate_error err = {0};
    struct schema_fault fault;
    enum gate_status status = read_cases(w, k, &err);
    if (k->ingest->pool.full)
        return refuse(w, 413, "", "the document has too many values");
    if (status != GATE_OK)
        return refuse(w, 400, "", err.message);
    if (k->failed || k->check.failed)
        return refuse(w, 503, "", "the server is out of memory");
    return is_right(k, &fault) || refuse(w, 400, fault.pointer, fault.message);
}

static bool parse(struct api_write *w, struct ingest *in)
{
    struct checking k = {.ingest = in};
    in->pool.max_bytes = MAX_TREE_BYTES;
    run_rows_begin(&in->rows, &in->pool);
    run_check_begin(&k.check, clock_wall_ms());
    bool good = check(w, &k);
    run_check_release(&k.check);
    w->state_bytes = w->len + in->pool.bytes;
    return good;
}

static bool pack(struct api_write *w, struct ingest *in, const char *body, size_t len)
{
    struct gate_error err = {0};
    enum gate_status status = w->gzipped
                                  ? store_pack_again(body, len, w->body, w->len, &in->packed, &err)
                                  : store_pack(w->body, w->len, &in->packed, &err);
    if (status != GATE_OK)
        return refuse(w, 413, "", err.message);
    buf_release(&in->text);
    return true;
}

static bool prepare_run(struct api_write *w)
{
    struct ingest *in = calloc(1, sizeof(*in));
    const char *body = w->body;
    size_t len = w->len;
    if (!in)
        return refuse(w, 503, "", "the server is out of memory");
    w->state = in;
    buf_init(&in->text, STORE_MAX_DOCUMENT);
    if (w->gzipped) {
        switch (gzip_inflate(w->body, w->len, &in->text)) {
        case GZIP_GOOD:
            break;
        case GZIP_BAD:
            return refuse(w, 400, "", "the body is not the gzip that its Content-Encoding says");
        default:
            return refuse(w, 413, "", "the document is too long");
        }
        w->body = in->text.data;
        w->len = in->text.len;
    }
    if (w->len == 0)
        return refuse(w, 400, "", "the body is empty");
    pthread_once(&once, open_schema);
    if (!run_schema) {
        reply_problem(w->reply, 500, "The schema of the run document cannot be read.");
        return false;
    }
    return parse(w, in) && pack(w, in, body, len);
}

static void say_stored(struct api_write *w, const char *uuid, bool created)
{
    struct emit e = {.out = &w->reply->body};
    w->reply->status = created ? 201 : 200;
    emit_open(&e, '{');
    emit_string_member(&e, "uuid", uuid);
    emit_bool_member(&e, "created", created);
    emit_close(&e, '}');
    buf_putc(&w->reply->body, '\n');
    w->counts = created ? METRIC_RUNS_STORED : METRIC_RUNS_REPEATED;
}

static enum gate_status store_run(struct api_write *w, struct store *store, struct gate_error *err)
{
    struct ingest *in = w->state;
    enum store_put_outcome outcome;
    const char *uuid = json_string(in->document, "uuid", "");
    enum gate_status status =
        store_put_packed(store, in->document, &in->rows, &in->packed, &outcome, err);
    store_packed_release(&in->packed);
    if (outcome == STORE_PUT_REFUSED) {
        refuse(w, 400, "", err->message);
        return GATE_OK;
    }
    if (status != GATE_OK)
        return status;
    if (outcome == STORE_PUT_DIFFERS)
        refuse(w, 409, "/uuid", "there is a run of this uuid already, and it is another document");
    else
        say_stored(w, uuid, outcome == STORE_PUT_CREATED);
    json_pool_release(&in->pool); /* not only when the answer is sent: the next one may wait */
    return GATE_OK;
}

static void release_run(struct api_write *w)
{
    struct ingest *in = w->state;
    if (!in)
        return;
    json_pool_release(&in->pool);
    store_packed_release(&in->packed);
    buf_release(&in->text);
    free(in);
    w->state = NULL;
}

const struct write_handler api_ingest_run = {
    .may_gzip = true,
    .max_body = (size_t)32 << 20,
    .prepare = prepare_run,
    .run = store_run,
    .release = release_run,
};
