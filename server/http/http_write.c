/* SPDX-License-Identifier: Apache-2.0 */
/* http_write.c: bodies on their way to the writer; see http_private.h. */
#include "server/http/http_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/api/api_write.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"

#define MAX_BODY_BYTES ((size_t)192 << 20) /* of all uploads that wait in memory */
#define RETRY_SECONDS 2

/* One body. It belongs to its exchange, and to the writer while the connection is suspended. */
struct upload {
    struct writer_job job;
    struct http *http;
    struct peer *peer;
    const struct write_handler *handler; /* NULL: an artifact */
    struct api_write write;
    struct artifact_put *artifact;
    struct buf body;
    uint64_t received, max;
    size_t charged;       /* of http->body_bytes */
    unsigned fault;       /* what the whole body will be answered with; 0: nothing is wrong */
    const char *fault_is; /* a sentence */
};

/* ---- the headers of a write ---- */

/* The type, with or without parameters. */
static bool is_type(const char *value, const char *type)
{
    size_t len = strlen(type);
    return value && !strncasecmp(value, type, len) &&
           (value[len] == '\0' || value[len] == ';' || value[len] == ' ');
}

static bool refuse_type(const struct exchange *x, const struct upload *u, struct reply *reply)
{
    const char *type = u->handler ? "application/json" : "application/octet-stream";
    const char *encoding = x->headers.content_encoding;
    if (!is_type(x->headers.content_type, type)) {
        reply_problem(reply, 415, "The Content-Type of this must be %s.", type);
        return true;
    }
    bool may_gzip = u->handler && u->handler->may_gzip;
    if (encoding && strcasecmp(encoding, "identity") != 0 &&
        !(may_gzip && !strcasecmp(encoding, "gzip"))) {
        reply_problem(reply, 415, "This Content-Encoding is not taken here: send the bytes %s.",
                      may_gzip ? "as gzip, or as they are" : "as they are");
        return true;
    }
    return false;
}

static bool refuse_length(const struct exchange *x, const struct upload *u, struct reply *reply)
{
    const char *length = x->headers.content_length;
    /* Twenty digits are more than any limit, whatever they say. */
    if (length && (strlen(length) >= 20 || strtoull(length, NULL, 10) > u->max)) {
        reply_problem(reply, 413, "The body is longer than %llu bytes.",
                      (unsigned long long)u->max);
        return true;
    }
    return false;
}

static bool refuse_artifact(struct http *h, const char *name, struct upload *u, struct reply *reply)
{
    struct gate_error err = {0};
    if (!artifacts_is_name(name)) {
        reply_problem(reply, 404, "An artifact is named by its SHA-256, 64 lower-case hex digits.");
        return true;
    }
    if (artifacts_free_bytes(h->artifacts) < ARTIFACT_MIN_FREE_BYTES) {
        reply_problem(reply, 507, "There is too little free space.");
        return true;
    }
    u->artifact = artifact_begin(h->artifacts, name, &err);
    if (!u->artifact) {
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        reply_problem(reply, 503, "The artifact cannot be stored now; the server's log says why.");
        reply->retry_after = RETRY_SECONDS;
        return true;
    }
    return false;
}

static void set_up(struct http *h, struct peer *peer, struct upload *u)
{
    struct exchange *x = &peer->exchange;
    const struct write_handler *handler = x->route->write;
    u->http = h;
    u->peer = peer;
    u->handler = handler;
    u->max = handler ? handler->max_body : ARTIFACT_MAX_BYTES;
    u->write = (struct api_write){.request = &x->request,
                                  .rest = x->rest,
                                  .who = &x->who,
                                  .reply = &x->reply,
                                  .counts = METRIC_COUNT};
    u->write.gzipped =
        x->headers.content_encoding && !strcasecmp(x->headers.content_encoding, "gzip");
    buf_init(&u->body, handler ? handler->max_body : 0);
    reply_init(&x->reply);
    x->has_reply = true;
}

bool http_begin_write(struct http *h, struct peer *peer, struct reply *reply)
{
    struct exchange *x = &peer->exchange;
    if (x->request.n_parameters > 0) {
        reply_problem(reply, 400, "This address takes no parameters.");
        return true;
    }
    if (http_refuse_writer(h, peer, reply))
        return true;
    struct upload *u = calloc(1, sizeof *u);
    if (!u) {
        reply_problem(reply, 503, "The server is out of memory.");
        return true;
    }
    set_up(h, peer, u);
    x->upload = u;
    return refuse_type(x, u, reply) || refuse_length(x, u, reply) ||
           (!u->handler && refuse_artifact(h, x->rest, u, reply));
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
void http_read_body(struct http *h, struct exchange *x, const char *bytes, size_t n)
{
    struct upload *u = x->upload;
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

/* ---- the writer's ---- */

static bool prepare_artifact(struct upload *u)
{
    struct gate_error err = {0};
    struct reply *reply = u->write.reply;
    enum artifact_result result = artifact_finish(u->artifact, &err);
    u->artifact = NULL;
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
        reply_problem(reply, 422, "These bytes have another SHA-256 than the address says.");
        break;
    case ARTIFACT_FULL:
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        reply_problem(reply, 507, "There is too little free space.");
        break;
    default:
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        reply_problem(reply, 503, "The artifact cannot be stored now; the server's log says why.");
        reply->retry_after = RETRY_SECONDS;
    }
    return false;
}

static bool prepare(void *context)
{
    struct upload *u = context;
    if (!u->handler)
        return prepare_artifact(u);
    u->write.body = u->body.data ? u->body.data : "";
    u->write.len = u->body.len;
    bool good = u->handler->prepare(&u->write);
    u->job.bytes = u->write.state_bytes;
    u->write.body = NULL;
    release_body(u->http, u);
    if (!good)
        u->handler->release(&u->write); /* before the memory is given back */
    return good;
}

static enum gate_status run(void *context, struct store *store, struct gate_error *err)
{
    struct upload *u = context;
    enum gate_status status = u->handler->run(&u->write, store, err);
    u->handler->release(&u->write); /* before the commit: it may be large */
    return status;
}

static void done(void *context, enum gate_status status, const struct gate_error *err)
{
    struct upload *u = context;
    struct peer *peer = u->peer;
    if (status) {
        log_message(LOG_LEVEL_ERROR, "%s", err->message);
        reply_problem(u->write.reply, 503,
                      "This could not be stored now; the server's log says why.");
        u->write.reply->retry_after = RETRY_SECONDS;
    } else if (u->write.counts != METRIC_COUNT) {
        metrics_add(u->write.counts, 1);
    }
    if (!status)
        log_end(&u->write.log);
    peer->exchange.phase = PHASE_WRITTEN;
    MHD_resume_connection(peer->connection);
}

static enum MHD_Result send_fault(struct http *h, struct MHD_Connection *connection,
                                  struct exchange *x, unsigned status, const char *why)
{
    reply_problem(&x->reply, status, "%s", why);
    x->reply.retry_after = status == 503 ? RETRY_SECONDS : 0;
    return http_send(h, connection, x, &x->reply);
}

enum MHD_Result http_end_body(struct http *h, struct MHD_Connection *connection, struct peer *peer)
{
    struct exchange *x = &peer->exchange;
    struct upload *u = x->upload;
    if (u->fault != 0)
        return send_fault(h, connection, x, u->fault, u->fault_is);
    if (!writer_reserve(h->writer))
        return send_fault(h, connection, x, 503,
                          "Too many writes are waiting, or the server is about to stop.");
    x->phase = PHASE_WRITING;
    http_set_deadline(peer, 0);
    u->job = (struct writer_job){.context = u,
                                 .prepare = prepare,
                                 .run = u->handler ? run : NULL,
                                 .done = done,
                                 .bytes = u->body.len};
    MHD_suspend_connection(connection);
    writer_submit(h->writer, &u->job);
    return MHD_YES;
}

void http_free_upload(struct http *h, struct exchange *x)
{
    struct upload *u = x->upload;
    if (u->handler)
        u->handler->release(&u->write);
    artifact_abort(u->artifact);
    log_drop(&u->write.log);
    release_body(h, u);
    free(u);
    x->upload = NULL;
}
