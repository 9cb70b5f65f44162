/* SPDX-License-Identifier: Apache-2.0 */
/* api_ingest.c: POST /api/v1/runs: a run document, checked and stored once; see api_call.h. */
#include "server/api/api_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/document/document.h"
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

static bool read_body(struct api_write *w, struct ingest *in)
{
    struct field_fault fault;
    struct gate_error err = {0};
    const char *text = w->body;
    size_t len = w->len;
    if (w->gzipped) {
        enum gzip_result result = gzip_inflate(w->body, w->len, &in->text);
        if (result == GZIP_BAD)
            return refuse(w, 400, "", "the body is not the gzip that its Content-Encoding says");
        if (result == GZIP_TOO_LONG)
            return refuse(w, 413, "", "the document is too long");
        text = in->text.data;
        len = in->text.len;
    }
    if (len == 0)
        return refuse(w, 400, "", "the body is empty");
    if (!document_take(text, len, &in->document, &fault))
        return refuse(w, fault.no_memory ? 503 : 400, fault.pointer, fault.message);
    if (!document_check(&in->document, clock_wall_ms(), &fault)) {
        /* It may be the server's clock that is wrong: the client is to keep the run. */
        bool is_ahead =
            !strcmp(fault.pointer, "/time_ms") && in->document.time_ms > clock_wall_ms();
        return refuse(w, is_ahead ? 503 : 400, fault.pointer, fault.message);
    }
    enum gate_status status = w->gzipped
                                  ? store_pack_again(w->body, w->len, text, len, &in->packed, &err)
                                  : store_pack(text, len, &in->packed, &err);
    return !status || refuse(w, 413, "", err.message);
}

static void reply_stored(struct api_write *w, const char *uuid, bool created)
{
    struct emit e = {.out = &w->reply->body};
    metrics_add(created ? METRIC_RUNS_STORED : METRIC_RUNS_REPEATED, 1);
    w->reply->status = created ? 201 : 200;
    emit_open(&e, '{');
    emit_string_member(&e, "uuid", uuid);
    emit_bool_member(&e, "created", created);
    emit_close(&e, '}');
    buf_putc(&w->reply->body, '\n');
}

/* Fields of the document are anybody's text; its uuid and its commit were checked. */
static void log_run(const struct api_write *w, const struct document *d)
{
    struct log_line line;
    char commit[13];
    snprintf(commit, sizeof commit, "%s", d->git.commit);
    log_begin(&line, LOG_LEVEL_INFO, "run");
    log_word(&line, "id", d->uuid);
    log_text(&line, "branch", d->git.branch);
    log_word(&line, "commit", commit);
    log_word(&line, "verdict", verdict_name((enum verdict)d->verdict));
    log_number(&line, "cases", (int64_t)d->n_cases);
    log_text(&line, "device", d->device.model);
    log_word(&line, "token", w->who->id);
    log_end(&line);
}

/* The tables refuse the document: says of which case, without the path of the file. */
static void refuse_run(struct api_write *w)
{
    char text[400];
    const char *where = strstr(w->err.message, ": cannot write");
    log_message(LOG_LEVEL_WARNING, "a run is refused: %s", w->err.message);
    int n = where ? (int)(where - w->err.message) : 300;
    snprintf(text, sizeof text, "%.*s%s", n, w->err.message,
             where ? ": a number is out of range" : "");
    refuse(w, 400, "", text);
}

static enum gate_status store_run(struct api_write *w, const struct ingest *in)
{
    enum store_put_outcome outcome;
    const struct document *d = &in->document;
    enum gate_status status = store_put_packed(w->store, d, &in->packed, &outcome, &w->err);
    if (outcome == STORE_PUT_REFUSED) {
        refuse_run(w);
        return GATE_OK;
    }
    if (status)
        return status;
    if (outcome == STORE_PUT_DIFFERS)
        refuse(w, 409, "/uuid", "a run with this uuid is already stored, with another document");
    else
        reply_stored(w, d->uuid, outcome == STORE_PUT_CREATED);
    if (outcome == STORE_PUT_CREATED)
        log_run(w, d);
    return GATE_OK;
}

static enum gate_status post_run(struct api_write *w)
{
    struct ingest in = {0};
    buf_init(&in.text, STORE_MAX_DOCUMENT);
    enum gate_status status = read_body(w, &in) ? store_run(w, &in) : GATE_OK;
    document_release(&in.document);
    store_packed_release(&in.packed);
    buf_release(&in.text);
    return status;
}

const struct write_handler api_ingest_run = {
    .may_gzip = true,
    .max_body = (size_t)32 << 20,
    .write = post_run,
};
