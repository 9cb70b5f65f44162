/* SPDX-License-Identifier: Apache-2.0 */
/* api_ingest.c: POST /api/v1/runs: a run document, checked and stored once; see api_write.h. */
#include "server/api/api_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/document/document_check.h"
#include "server/text/emit.h"
#include "gate/base/gzip.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"
#include "gate/store/store_pack.h"

struct ingest {
    struct buf text; /* inflated; empty when the body was not gzip */
    struct document document;
    struct store_packed packed;
};

static bool refuse(struct api_write *w, unsigned status, const char *path, const char *message)
{
    metrics_add(METRIC_RUNS_REFUSED, 1);
    reply_fault(w->reply, status, path, message);
    return false;
}

/* It may be the server's clock that is wrong: the client is to keep the run. */
static bool is_ahead(const struct ingest *in, const struct field_fault *fault)
{
    return !strcmp(fault->pointer, "/time_ms") && in->document.time_ms > clock_wall_ms();
}

static bool parse(struct api_write *w, struct ingest *in)
{
    struct field_fault fault;
    bool good = document_take(w->body, w->len, &in->document, &fault);
    w->state_bytes = w->len + in->document.taken.bytes;
    if (!good)
        return refuse(w, fault.no_memory ? 503 : 400, fault.pointer, fault.message);
    return document_check(&in->document, clock_wall_ms(), &fault) ||
           refuse(w, is_ahead(in, &fault) ? 503 : 400, fault.pointer, fault.message);
}

static bool pack(struct api_write *w, struct ingest *in, const char *body, size_t len)
{
    struct gate_error err = {0};
    enum gate_status status = w->gzipped
                                  ? store_pack_again(body, len, w->body, w->len, &in->packed, &err)
                                  : store_pack(w->body, w->len, &in->packed, &err);
    if (status)
        return refuse(w, 413, "", err.message);
    buf_release(&in->text);
    return true;
}

static bool prepare_run(struct api_write *w)
{
    struct ingest *in = calloc(1, sizeof *in);
    const char *body = w->body;
    size_t len = w->len;
    if (!in)
        return refuse(w, 503, "", "the server is out of memory");
    w->state = in;
    buf_init(&in->text, STORE_MAX_DOCUMENT);
    if (w->gzipped) {
        enum gzip_result result = gzip_inflate(w->body, w->len, &in->text);
        w->state_bytes = in->text.cap;
        if (result == GZIP_BAD)
            return refuse(w, 400, "", "the body is not the gzip that its Content-Encoding says");
        if (result == GZIP_TOO_LONG)
            return refuse(w, 413, "", "the document is too long");
        w->body = in->text.data;
        w->len = in->text.len;
    }
    if (w->len == 0)
        return refuse(w, 400, "", "the body is empty");
    return parse(w, in) && pack(w, in, body, len);
}

static void reply_stored(struct api_write *w, const char *uuid, bool created)
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

/* Fields of the document are anybody's text; its uuid and its commit were checked. */
static void note_run(struct api_write *w, const struct document *d)
{
    char commit[13];
    snprintf(commit, sizeof commit, "%s", d->git.commit);
    log_begin(&w->log, LOG_LEVEL_INFO, "run");
    log_word(&w->log, "id", d->uuid);
    log_text(&w->log, "branch", d->git.branch);
    log_word(&w->log, "commit", commit);
    log_word(&w->log, "verdict", verdict_name((enum verdict)d->verdict));
    log_number(&w->log, "cases", (int64_t)d->n_cases);
    log_text(&w->log, "device", d->device.model);
    log_word(&w->log, "token", w->who->id);
}

static enum gate_status store_run(struct api_write *w, struct store *store, struct gate_error *err)
{
    struct ingest *in = w->state;
    enum store_put_outcome outcome;
    const char *uuid = in->document.uuid;
    enum gate_status status = store_put_packed(store, &in->document, &in->packed, &outcome, err);
    store_packed_release(&in->packed);
    if (outcome == STORE_PUT_REFUSED) {
        log_message(LOG_LEVEL_WARNING, "a run is refused: %s", err->message);
        refuse(w, 400, "", "a number of the document is out of range; the server's log says which");
        return GATE_OK;
    }
    if (status)
        return status;
    if (outcome == STORE_PUT_DIFFERS)
        refuse(w, 409, "/uuid", "a run with this uuid is already stored, with another document");
    else
        reply_stored(w, uuid, outcome == STORE_PUT_CREATED);
    if (outcome == STORE_PUT_CREATED)
        note_run(w, &in->document);
    document_release(&in->document); /* not only when the answer is sent: the next one may wait */
    return GATE_OK;
}

static void release_run(struct api_write *w)
{
    struct ingest *in = w->state;
    if (!in)
        return;
    document_release(&in->document);
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
