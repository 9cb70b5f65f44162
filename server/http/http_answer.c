/* SPDX-License-Identifier: Apache-2.0 */
/* http_answer.c: answers to GET and HEAD; see http_private.h. */
#include "server/http/http_private.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/ops/log.h"
#include "server/text/emit.h"

#define SOME_BYTES 4096 /* of an answer that is not made yet, in its share of memory */

/* ---- what is not of the database ---- */

void http_get_whoami(struct peer *p)
{
    struct emit e = {.out = &p->reply.body};
    unsigned scopes = p->who.scopes | TOKEN_READ;
    emit_open(&e, '{');
    emit_key(&e, "scopes");
    emit_open(&e, '[');
    for (unsigned bit = 0; auth_scope_name(bit); bit++) {
        if (scopes & (1u << bit))
            emit_string(&e, auth_scope_name(bit));
    }
    emit_close(&e, ']');
    emit_key(&e, "name");
    if (p->who.id[0] != '\0')
        emit_string(&e, p->who.name);
    else
        emit_null(&e);
    emit_close(&e, '}');
    buf_putc(&p->reply.body, '\n');
}

void http_get_artifact(struct peer *p)
{
    const char *name = p->rest;
    struct reply *reply = &p->reply;
    if (!artifacts_is_name(name)) {
        reply_problem(reply, 404, "An artifact is named by its SHA-256, 64 lower-case hex digits.");
        return;
    }
    bool damaged;
    reply->file_fd = artifacts_find_whole(p->http->artifacts, name, &reply->file_size, &damaged);
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

/* ---- all ---- */

void http_answer(struct peer *p)
{
    bool of_page = p->route->scope == 0; /* what is open to anybody takes any query */
    if (!of_page && api_refuse_parameters(p->route, &p->request, &p->reply))
        return;
    if (p->route->get) {
        const struct http *h = p->http;
        bool is_long = p->route->is_long;
        struct api_site site = {h->options.main_branch, h->options.commit_url,
                                h->options.public_url, h->speaker};
        if (is_long && http_refuse_long(p, SOME_BYTES))
            return;
        struct store *store = http_take_store(p, is_long);
        api_get(p->route, p->rest, store, &site, &p->request, p->headers.if_none_match, &p->reply);
        http_give_store(p, store);
        if (is_long)
            malloc_trim(0);
    } else {
        p->route->answer(p);
    }
    if (p->reply.status == 200 && etag_matches(&p->reply.etag, p->headers.if_none_match))
        p->reply.status = 304;
}
