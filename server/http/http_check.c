/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_check.c: what is not let in; see http_private.h.
 *
 * libmicrohttpd 0.9.75 does not agree with proxies on where a request with odd headers ends: it
 * takes both Content-Length and Transfer-Encoding, two lengths, and waits for ever on an encoding
 * that it does not know. Each of these is refused here, and the connection closed. What its API
 * does not show (folded lines, NUL bytes, a bare CR or LF) is for a proxy to refuse.
 */
#include "server/http/http_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gate/base/clock.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"

/* ---- the shape of the request ---- */

/*
 * libmicrohttpd ends the lines between chunks at a bare LF too, also within an extension, and shows
 * nothing of them. A proxy may see the body end elsewhere, so what comes behind it is not read.
 */
bool http_ends_in_doubt(const struct peer *p)
{
    return p->headers.transfer_encoding != NULL;
}

/* A body has no meaning for a GET. "Content-Length: 0" is what some clients send. */
static bool has_body(const struct headers *h)
{
    return h->transfer_encoding || (h->content_length && strcmp(h->content_length, "0") != 0);
}

bool http_refuse_shape(struct peer *p, const char *version)
{
    const struct headers *h = &p->headers;
    const char *coding = h->transfer_encoding, *length = h->content_length;
    struct reply *reply = &p->reply;
    bool reads = !strcmp(p->method, "GET") || !strcmp(p->method, "HEAD");
    bool is_1_1 = !strcmp(version, MHD_HTTP_VERSION_1_1);
    const struct {
        bool is_so;
        const char *why;
    } faults[] = {
        {h->malformed, "The name or the value of a header holds a byte that may not be there."},
        {h->repeated, "A header is there twice that may be there once only."},
        {coding && length, "Content-Length and Transfer-Encoding exclude each other."},
        {coding && strcasecmp(coding, "chunked") != 0,
         "Of Transfer-Encoding, only 'chunked' is served."},
        {coding && !is_1_1, "Transfer-Encoding came with HTTP/1.1."},
        {length && (length[0] == '\0' || length[strspn(length, "0123456789")] != '\0'),
         "Content-Length is not a number."},
        {is_1_1 && !h->host, "The header Host is missing."},
        /* "" is of a target that has none (RFC 9112, 3.2). */
        {h->host && h->host[bytes_span(h->host, BYTE_OF_HOST)] != '\0',
         "The header Host is not a name or an address with a port."},
        {p->request.fault_status == 0 && p->route && reads && has_body(h),
         "A GET with a body is not served."},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (!faults[i].is_so)
            continue;
        reply_problem(reply, 400, "%s", faults[i].why);
        reply->close = true;
        return true;
    }
    if (p->request.fault_status == 0 && p->route)
        return false;
    if (p->request.fault_status != 0) {
        reply_problem(reply, p->request.fault_status, "%s", p->request.fault);
    } else {
        reply_problem(reply, 405, "This address does not serve that method.");
        reply->allow = route_methods(p->request.path);
    }
    reply->close = has_body(h);
    return true;
}

/* ---- the name that it was asked by ---- */

/* Is it one of the names that are listed with commas between them? */
static bool is_listed(const char *list, const char *name, size_t len)
{
    for (size_t n; list && *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == len && !strncasecmp(list, name, n))
            return true;
    }
    return false;
}

/*
 * A page of another site whose name is made to lead here could read all that a browser of this
 * machine may read. No such name is a number.
 */
bool http_refuse_host(struct peer *p)
{
    const struct http *h = p->http;
    const char *host = p->headers.host;
    if (!host || (!h->options.allow_hosts && !h->is_loopback))
        return false;
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool is_number = host[0] == '[' || strspn(host, "0123456789.") == len;
    if (is_listed(h->options.allow_hosts, host, len) ||
        (h->is_loopback && (is_number || is_listed("localhost", host, len))))
        return false;
    reply_problem(&p->reply, 421, "This server does not go by that name: see its --allow-host.");
    p->reply.close = true;
    return true;
}

/* ---- tokens ---- */

static bool refuse_token(struct peer *p, unsigned status, const char *why)
{
    reply_problem(&p->reply, status, "%s", why);
    p->reply.login = status == 401;
    return true;
}

/* Writes down when the token was used; where another writes just now, the next use is. */
static void note_use(struct http *h, const char *id)
{
    struct gate_error err = {0};
    struct store *s = writer_take(h->writer, 0);
    if (!s)
        return;
    enum gate_status status = store_touch_token(s, id, clock_wall_ms(), &err);
    writer_give(h->writer, status);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
}

/* Who sends this? `required`: somebody must; else another scheme than ours is a proxy's matter. */
static bool identify(struct peer *p, bool required)
{
    struct gate_error err = {0};
    if (!required && !auth_is_bearer(p->headers.authorization))
        return false;
    struct store *store = http_take_store(p, false);
    enum auth_result result =
        auth_check(store, p->headers.authorization, clock_wall_ms(), &p->who, &err);
    http_give_store(p, store);
    switch (result) {
    case AUTH_GOOD:
        if (p->who.touch)
            note_use(p->http, p->who.id);
        pthread_mutex_lock(&p->http->mutex);
        p->share = ~strtoull(p->who.id, NULL, 16); /* of the token, no more of the address */
        pthread_mutex_unlock(&p->http->mutex);
        return false;
    case AUTH_NONE:
        return refuse_token(p, 401, "This takes a token: Authorization: Bearer kg_....");
    case AUTH_REFUSED:
        metrics_add(METRIC_AUTH_REFUSED, 1);
        p->token_refused = true;
        return refuse_token(p, 401, "The token is not known, has expired or was revoked.");
    default:
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        return refuse_token(p, 503, "The database cannot be read now.");
    }
}

bool http_refuse_reader(struct peer *p)
{
    return p->route->scope != 0 && identify(p, p->http->options.private_reads);
}

bool http_refuse_writer(struct peer *p)
{
    enum token_scope scope = (enum token_scope)p->route->scope;
    if (identify(p, true))
        return true;
    if (identity_may(&p->who, scope))
        return false;
    unsigned bit = 0;
    while ((1u << bit) != (unsigned)scope)
        bit++;
    reply_problem(&p->reply, 403, "The token '%s' may not do this: it needs the scope '%s'.",
                  p->who.name, auth_scope_name(bit));
    return true;
}
