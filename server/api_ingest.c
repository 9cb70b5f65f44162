/* api_ingest.c: POST /api/v1/runs: a run document, checked and stored once; see api_write.h. */
#include "api_write.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/schema.h"
#include "emit.h"
#include "base/gzip.h"
#include "metrics.h"
#include "run_check.h"
#include "store_pack.h"

/*
 * Of a document's values, before it is parsed: each takes a node of the tree then. A case of four
 * arms in ten processes has 300 of them, for its samples are one string: 5,000 such cases in one
 * run take 1.5 million, 5,000 series (a case and a provider) a quarter of that.
 */
#define MAX_VALUES ((size_t)2 << 20)
#define VALUE_BYTES sizeof(cJSON)

struct ingest {
    struct buf text; /* inflated; empty when the body was not gzip */
    struct json_pool pool;
    const cJSON *document; /* in the pool */
    struct store_packed packed;
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

/* No fewer than the values of the text; those in strings are counted too. */
static size_t count_values(const char *text, size_t len)
{
    size_t n = 1;
    for (size_t i = 0; i < len; i++)
        n += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return n;
}

static bool parse(struct api_write *w, struct ingest *in)
{
    struct gate_error err = {0};
    struct schema_fault fault;
    size_t n_values = count_values(w->body, w->len);
    w->state_bytes = w->len;
    if (n_values > MAX_VALUES)
        return refuse(w, 413, "", "the document has too many values");
    w->state_bytes += n_values * VALUE_BYTES;
    if (json_parse_pooled("document", w->body, w->len, GATE_USAGE, &in->pool, &in->document,
                          &err) != GATE_OK)
        return refuse(w, 400, "", err.message);
    pthread_once(&once, open_schema);
    if (!run_schema) {
        reply_problem(w->reply, 500, "The schema of the run document cannot be read.");
        return false;
    }
    if (!schema_check(run_schema, in->document, &fault) ||
        !run_check(in->document, clock_wall_ms(), &fault))
        return refuse(w, 400, fault.pointer, fault.message);
    return true;
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

bool api_prepare_run(struct api_write *w)
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

enum gate_status api_store_run(struct api_write *w, struct store *store, struct gate_error *err)
{
    struct ingest *in = w->state;
    enum store_put_outcome outcome;
    const char *uuid = json_string(in->document, "uuid", "");
    enum gate_status status = store_put_packed(store, in->document, &in->packed, &outcome, err);
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

void api_release_run(struct api_write *w)
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
