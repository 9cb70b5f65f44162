/* SPDX-License-Identifier: Apache-2.0 */
/* http_read.c: answers to GET and HEAD; see http_private.h. */
#include "server/http/http_private.h"

#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/api_call.h"
#include "server/text/emit.h"
#include "server/ops/log.h"

/* ---- what is not of the database ---- */

void http_get_whoami(struct http *h, const struct exchange *x, struct reply *reply)
{
    (void)h;
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

void http_get_artifact(struct http *h, const struct exchange *x, struct reply *reply)
{
    const char *name = x->rest;
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
                          : "No artifact has this SHA-256.");
        return;
    }
    reply->type = "application/octet-stream";
    reply->immutable = true;
    snprintf(reply->etag.text, sizeof reply->etag.text, "\"%.16s\"", name);
}

/* ---- what is of the database ---- */

static bool read_tag(struct http *h, const struct exchange *x, struct etag *tag,
                     struct reply *reply)
{
    struct gate_error err = {0};
    if (tagger_get(h->tagger, x->request.target, tag, &err) == GATE_OK)
        return true;
    log_message(LOG_LEVEL_ERROR, "%s", err.message);
    reply_problem(reply, 503, "The database cannot be read now; the server's log says why.");
    reply->retry_after = 1;
    return false;
}

void http_make(struct http *h, struct store *store, struct exchange *x, struct reply *reply)
{
    struct etag tag;
    if (!x->route->get) {
        x->route->answer(h, x, reply);
        return;
    }
    /* It is taken before the rows are, so it can only be too old. */
    if (!read_tag(h, x, &tag, reply))
        return;
    reply->etag = tag;
    struct api_site site = {h->options.main_branch, h->options.commit_url, h->options.public_url};
    api_get(x->route, x->rest, store, &site, &x->request, reply);
    if (store_saw_news(store))
        tagger_renew(h->tagger);
    if (reply->status == 200)
        reply->etag = tag;
}

/* True: it will be sent later. */
static bool make_or_wait(struct http *h, struct exchange *x, struct reply *reply,
                         enum MHD_Result *result)
{
    struct peer *peer = (struct peer *)((char *)x - offsetof(struct peer, exchange));
    if (http_is_slow(h, x)) {
        *result = MHD_YES;
        if (http_answer_later(h, peer))
            return true;
        reply_problem(reply, 503, "Too many long answers are waiting.");
        reply->retry_after = 1;
        return false;
    }
    /* A thread has one store at a time: other routes take one where they need it. */
    struct store *store = x->route->get ? http_take_store(h) : NULL;
    http_make(h, store, x, reply);
    if (store)
        http_give_store(h, store);
    return false;
}

/* True: it was sent. */
static bool answer_by_tag(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                          struct reply *reply, enum MHD_Result *result)
{
    struct etag tag;
    if (!read_tag(h, x, &tag, reply))
        return false;
    bool same = etag_matches(&tag, x->headers.if_none_match);
    if (http_send_cached(h, connection, x, &tag, same ? 304 : 200, result))
        return true;
    if (same) {
        reply->status = 304;
        reply->etag = tag;
        reply->varies = true;
        return false;
    }
    return make_or_wait(h, x, reply, result);
}

void http_get_asset(struct http *h, const struct exchange *x, struct reply *reply)
{
    const char *path = x->request.path;
    if (!strncmp(path, "/api/", 5) || !strcmp(path, "/api"))
        reply_problem(reply, 404, "The API has no such address; /api/v1/openapi.json lists all.");
    else
        assets_get(h->assets, path, accepts_gzip(x->headers.accept_encoding), reply);
}

/* True: it was sent. What is built into the program is kept as it is sent. */
static bool answer_otherwise(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                             struct reply *reply, enum MHD_Result *result)
{
    if (make_or_wait(h, x, reply, result))
        return true;
    if (etag_matches(&reply->etag, x->headers.if_none_match))
        reply->status = 304;
    return (reply->constant || reply->status == 304) && reply->etag.text[0] != '\0' &&
           http_send_cached(h, connection, x, &reply->etag, reply->status, result);
}

enum MHD_Result http_answer(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                            struct reply *reply)
{
    enum MHD_Result result = MHD_NO;
    bool of_page = x->route->scope == 0; /* what is open to anybody takes any query */
    bool sent = false;
    reply->embedded = x->route->get == get_badge;
    if (!of_page && api_refuse_parameters(x->route, &x->request, reply))
        sent = false;
    else if (x->route->get)
        sent = answer_by_tag(h, connection, x, reply, &result);
    else
        sent = answer_otherwise(h, connection, x, reply, &result);
    return sent ? result : http_send(h, connection, x, reply);
}
