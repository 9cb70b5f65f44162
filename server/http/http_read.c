/* http_read.c: answers to GET and HEAD; see http_private.h. */
#include "http_private.h"

#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/badge.h"
#include "text/emit.h"
#include "api/feed.h"
#include "ops/log.h"

#define ARTIFACTS "/api/v1/artifacts/"

/* ---- what is not of the database ---- */

static void answer_whoami(const struct exchange *x, struct reply *reply)
{
    struct emit e = {.out = &reply->body};
    unsigned scopes = x->who.scopes | TOKEN_READ;
    emit_open(&e, '{');
    emit_key(&e, "scopes");
    emit_open(&e, '[');
    for (unsigned bit = 0; auth_scope_name(bit); bit++) {
        if (scopes & (1u << bit))
            emit_string(&e, auth_scope_name(bit));
    }
    emit_close(&e, ']');
    emit_key(&e, "name");
    if (x->who.id[0] != '\0')
        emit_string(&e, x->who.name);
    else
        emit_null(&e);
    emit_close(&e, '}');
    buf_putc(&reply->body, '\n');
}

static void answer_artifact(const struct http *h, const char *name, struct reply *reply)
{
    if (!artifacts_is_name(name)) {
        reply_problem(reply, 404, "An artifact is named by its SHA-256, 64 lower-case hex digits.");
        return;
    }
    bool damaged;
    reply->file_fd = artifacts_find_whole(h->artifacts, name, &reply->file_size, &damaged);
    if (damaged)
        log_message(LOG_LEVEL_WARNING, "the artifact %s has other bytes than its name says", name);
    if (reply->file_fd < 0) {
        reply_problem(reply, 404,
                      damaged
                          ? "The artifact of this SHA-256 was damaged on its disk: send it again."
                          : "There is no artifact of this SHA-256.");
        return;
    }
    reply->type = "application/octet-stream";
    reply->immutable = true;
    snprintf(reply->etag.text, sizeof(reply->etag.text), "\"%.16s\"", name);
}

/* ---- what is of the database ---- */

static bool is_of_store(const char *path)
{
    return api_owns(path) || badge_owns(path) || strcmp(path, FEED_PATH) == 0;
}

bool http_is_open(const char *path)
{
    return !is_of_store(path) && strcmp(path, "/metrics") != 0;
}

/* The tag is taken before the rows are, so it can only be too old. */
static void answer_from_store(struct http *h, const struct exchange *x, const struct etag *tag,
                              struct reply *reply)
{
    struct store *store = http_take_store(h);
    reply->etag = *tag;
    if (api_owns(x->request.path))
        api_get(store, h->options.main_branch, &x->request, reply);
    else if (badge_owns(x->request.path))
        badge_get(store, h->options.main_branch, &x->request, reply);
    else
        feed_get(store, &x->request, reply);
    http_give_store(h, store);
    if (reply->status == 200)
        reply->etag = *tag;
}

/* True: it was sent. */
static bool answer_by_tag(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                          struct reply *reply, enum MHD_Result *result)
{
    struct gate_error err = {0};
    struct etag tag;
    if (tagger_get(h->tagger, x->request.target, &tag, &err) != GATE_OK) {
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        reply_problem(reply, 503, "The database cannot be read now; the server's log says why.");
        reply->retry_after = 1;
        return false;
    }
    bool same = etag_matches(&tag, x->headers.if_none_match);
    if (http_send_cached(h, connection, x, &tag, same ? 304 : 200, result))
        return true;
    if (same) {
        reply->status = 304;
        reply->etag = tag;
        reply->varies = true;
    } else {
        answer_from_store(h, x, &tag, reply);
    }
    return false;
}

static void answer_asset(const struct http *h, const struct exchange *x, struct reply *reply)
{
    assets_get(h->assets, x->request.path, accepts_gzip(x->headers.accept_encoding), reply);
    if (etag_matches(&reply->etag, x->headers.if_none_match))
        reply->status = 304;
}

/* The files that were built in are the same bytes each time. */
static bool answer_asset_cached(struct http *h, struct MHD_Connection *connection,
                                struct exchange *x, const struct reply *reply,
                                enum MHD_Result *result)
{
    return (reply->constant || reply->status == 304) && reply->etag.text[0] != '\0' &&
           http_send_cached(h, connection, x, &reply->etag, reply->status, result);
}

enum MHD_Result http_answer(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                            struct reply *reply)
{
    const char *path = x->request.path;
    enum MHD_Result result = MHD_NO;
    bool sent = false;
    reply->embedded = badge_owns(path);
    if (strcmp(path, "/api/v1/whoami") == 0 && x->request.n_parameters == 0) {
        answer_whoami(x, reply);
    } else if (strncmp(path, ARTIFACTS, strlen(ARTIFACTS)) == 0) {
        answer_artifact(h, path + strlen(ARTIFACTS), reply);
        if (etag_matches(&reply->etag, x->headers.if_none_match))
            reply->status = 304;
    } else if (is_of_store(path)) {
        sent = answer_by_tag(h, connection, x, reply, &result);
    } else if (!http_answer_ops(h, x, reply)) {
        answer_asset(h, x, reply);
        sent = answer_asset_cached(h, connection, x, reply, &result);
    }
    return sent ? result : http_send(h, connection, x, reply);
}
