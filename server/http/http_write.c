/* SPDX-License-Identifier: Apache-2.0 */
/* http_write.c: bodies, and what becomes of them; see http_private.h. */
#include "server/http/http_private.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/api/api_call.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"

#define MAX_BODY_BYTES ((size_t)96 << 20) /* of all uploads that are in memory */
#define TURN_MS 1000                      /* that a write waits for others */
#define TRIM_BYTES ((size_t)256 << 10)    /* a body of this size leaves much behind in the heap */
#define RETRY_SECONDS 2
#define RETRY_SECONDS_FULL 60 /* of a disk that is full */

/* One body. */
struct upload {
    const struct write_handler *handler; /* NULL: an artifact */
    struct artifact_put *artifact;
    struct buf body;
    uint64_t received, max;
    size_t charged;       /* of http->body_bytes */
    unsigned fault;       /* what the whole body will be answered with; 0: nothing is wrong */
    const char *fault_is; /* a sentence */
};

static bool refuse(struct peer *p, unsigned status, const char *why)
{
    reply_problem(&p->reply, status, "%s", why);
    p->reply.retry_after = status == 507 ? RETRY_SECONDS_FULL : status == 503 ? RETRY_SECONDS : 0;
    return true;
}

static bool refuse_failed(struct peer *p, const struct gate_error *err, const char *why)
{
    log_message(LOG_LEVEL_ERROR, "%s", err->message);
    return refuse(p, 503, why);
}

/* ---- the headers of a write ---- */

static bool refuse_artifact(struct peer *p, struct upload *u)
{
    struct gate_error err = {0};
    if (!artifacts_is_name(p->rest))
        return refuse(p, 404, "An artifact is named by its SHA-256, 64 lower-case hex digits.");
    if (artifacts_free_bytes(p->http->artifacts) < ARTIFACT_MIN_FREE_BYTES)
        return refuse(p, 507, "There is too little free space.");
    u->artifact = artifact_begin(p->http->artifacts, p->rest, &err);
    return !u->artifact &&
           refuse_failed(p, &err, "The artifact cannot be stored now; the server's log says why.");
}

bool http_begin_write(struct peer *p)
{
    const char *encoding = p->headers.content_encoding, *length = p->headers.content_length;
    const char *sent = p->headers.content_type ? p->headers.content_type : "";
    if (p->request.n_parameters > 0)
        return refuse(p, 400, "This address takes no parameters.");
    if (http_refuse_writer(p))
        return true;
    struct upload *u = calloc(1, sizeof *u);
    if (!u)
        return refuse(p, 503, "The server is out of memory.");
    p->upload = u;
    u->handler = p->route->write;
    u->max = u->handler ? u->handler->max_body : ARTIFACT_MAX_BYTES;
    buf_init(&u->body, u->handler ? u->handler->max_body : 0);
    const char *type = u->handler ? "application/json" : "application/octet-stream";
    size_t n = strlen(type);
    bool may_gzip = u->handler && u->handler->may_gzip;
    if (strncasecmp(sent, type, n) != 0 || !strchr("; ", sent[n])) /* also with parameters */
        reply_problem(&p->reply, 415, "The Content-Type of this must be %s.", type);
    else if (encoding && strcasecmp(encoding, "identity") != 0 &&
             !(may_gzip && !strcasecmp(encoding, "gzip")))
        reply_problem(&p->reply, 415, "This Content-Encoding is not taken here: send the bytes %s.",
                      may_gzip ? "as gzip, or as they are" : "as they are");
    /* Twenty digits are more than any limit, whatever they say. */
    else if (length && (strlen(length) >= 20 || strtoull(length, NULL, 10) > u->max))
        reply_problem(&p->reply, 413, "The body is longer than %llu bytes.",
                      (unsigned long long)u->max);
    else
        return !u->handler && refuse_artifact(p, u);
    return true;
}

/* ---- the body ---- */

static void spoil(struct upload *u, unsigned status, const char *why)
{
    if (u->fault == 0) {
        u->fault = status;
        u->fault_is = why;
    }
}

static void release_body(struct http *h, struct upload *u)
{
    buf_release(&u->body);
    atomic_fetch_sub(&h->body_bytes, u->charged);
    u->charged = 0;
}

/* A body that is at fault is read to its end, which its deadline bounds, so that the client gets to
 * see the answer. */
void http_read_body(struct peer *p, const char *bytes, size_t n)
{
    struct http *h = p->http;
    struct upload *u = p->upload;
    u->received += n;
    if (u->received > u->max)
        spoil(u, 413, "The body is too long.");
    if (u->fault != 0) {
        release_body(h, u);
        return;
    }
    if (u->artifact) {
        artifact_add(u->artifact, bytes, n);
        return;
    }
    u->charged += n;
    if (atomic_fetch_add(&h->body_bytes, n) + n > MAX_BODY_BYTES)
        spoil(u, 503, "The server has too many bodies in memory.");
    buf_append(&u->body, bytes, n);
    if (u->body.failed)
        spoil(u, 503, "The server is out of memory.");
}

void http_free_upload(struct peer *p)
{
    struct upload *u = p->upload;
    artifact_abort(u->artifact);
    release_body(p->http, u);
    free(u);
    p->upload = NULL;
}

/* ---- what becomes of it ---- */

static void write_artifact(struct peer *p)
{
    struct gate_error err = {0};
    struct reply *reply = &p->reply;
    enum artifact_result result = artifact_finish(p->upload->artifact, &err);
    p->upload->artifact = NULL;
    switch (result) {
    case ARTIFACT_STORED:
        metrics_add(METRIC_ARTIFACTS_STORED, 1);
        reply->status = 201;
        buf_puts(&reply->body, "{\"created\":true}\n");
        break;
    case ARTIFACT_EXISTED:
        buf_puts(&reply->body, "{\"created\":false}\n");
        break;
    case ARTIFACT_OTHER_HASH:
        refuse(p, 422, "These bytes have another SHA-256 than the address says.");
        break;
    case ARTIFACT_FULL:
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        refuse(p, 507, "There is too little free space.");
        break;
    default:
        refuse_failed(p, &err, "The artifact cannot be stored now; the server's log says why.");
    }
}

static void write_body(struct peer *p)
{
    struct http *h = p->http;
    const struct upload *u = p->upload;
    const char *encoding = p->headers.content_encoding;
    struct api_write w = {.store = writer_take(h->writer, TURN_MS),
                          .rest = p->rest,
                          .who = &p->who,
                          .body = u->body.data ? u->body.data : "",
                          .len = u->body.len,
                          .gzipped = encoding && !strcasecmp(encoding, "gzip"),
                          .reply = &p->reply};
    if (!w.store) {
        refuse(p, 503, "Others are writing: send this again.");
        return;
    }
    enum gate_status status = u->handler->write(&w);
    writer_give(h->writer, status);
    if (status)
        refuse_failed(p, &w.err, "This could not be stored now; the server's log says why.");
    else if (p->reply.status < 400)
        background_wake(h->background);
}

void http_end_body(struct peer *p)
{
    const struct upload *u = p->upload;
    bool is_large = u->body.len >= TRIM_BYTES;
    if (u->fault != 0)
        refuse(p, u->fault, u->fault_is);
    else if (u->handler)
        write_body(p);
    else
        write_artifact(p);
    release_body(p->http, p->upload);
    if (is_large)
        malloc_trim(0);
}
