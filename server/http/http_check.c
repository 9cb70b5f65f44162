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
#include "server/http/routes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gate/base/clock.h"
#include "server/text/bytes.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"

/* ---- the shape of the request ---- */

static bool refuse_shape(struct reply *reply, const char *why)
{
    reply_problem(reply, 400, "%s", why);
    reply->close = true;
    return true;
}

/*
 * libmicrohttpd ends the lines between chunks at a bare LF too, also within an extension, and shows
 * nothing of them. A proxy may see the body end elsewhere, so what comes behind it is not read.
 */
bool http_ends_in_doubt(const struct exchange *x)
{
    return x->headers.transfer_encoding != NULL;
}

/* A body has no meaning for a GET. "Content-Length: 0" is what some clients send. */
static bool has_body(const struct headers *h)
{
    return h->transfer_encoding || (h->content_length && strcmp(h->content_length, "0") != 0);
}

/* "" is of a target that has none (RFC 9112, 3.2). */
static bool is_host(const char *host)
{
    return host[bytes_span(host, BYTE_OF_HOST)] == '\0';
}

bool http_refuse_shape(const struct exchange *x, const char *version, struct reply *reply)
{
    const struct headers *h = &x->headers;
    bool reads = !strcmp(x->method, "GET") || !strcmp(x->method, "HEAD");
    bool is_1_1 = !strcmp(version, MHD_HTTP_VERSION_1_1);
    if (h->malformed)
        return refuse_shape(
            reply, "The name or the value of a header holds a byte that may not be there.");
    if (h->repeated)
        return refuse_shape(reply, "A header is there twice that may be there once only.");
    if (h->transfer_encoding && h->content_length)
        return refuse_shape(reply, "Content-Length and Transfer-Encoding exclude each other.");
    if (h->transfer_encoding && strcasecmp(h->transfer_encoding, "chunked") != 0)
        return refuse_shape(reply, "Of Transfer-Encoding, only 'chunked' is served.");
    if (h->transfer_encoding && !is_1_1)
        return refuse_shape(reply, "Transfer-Encoding came with HTTP/1.1.");
    if (h->content_length && (h->content_length[0] == '\0' ||
                              strspn(h->content_length, "0123456789") != strlen(h->content_length)))
        return refuse_shape(reply, "Content-Length is not a number.");
    if (is_1_1 && !h->host)
        return refuse_shape(reply, "The header Host is missing.");
    if (h->host && !is_host(h->host))
        return refuse_shape(reply, "The header Host is not a name or an address with a port.");
    if (x->request.fault_status != 0) {
        reply_problem(reply, x->request.fault_status, "%s", x->request.fault);
        reply->close = has_body(h);
        return true;
    }
    if (!x->route) {
        reply_problem(reply, 405, "This address does not serve that method.");
        reply->allow = route_methods(x->request.path);
        reply->close = has_body(h);
        return true;
    }
    if (reads && has_body(h))
        return refuse_shape(reply, "A GET with a body is not served.");
    return false;
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
bool http_refuse_host(struct http *h, const struct exchange *x, struct reply *reply)
{
    const char *host = x->headers.host;
    if (!host || (!h->options.allow_hosts && !h->is_loopback))
        return false;
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool is_number = host[0] == '[' || strspn(host, "0123456789.") == len;
    if (is_listed(h->options.allow_hosts, host, len) ||
        (h->is_loopback && (is_number || is_listed("localhost", host, len))))
        return false;
    reply_problem(reply, 421, "This server does not go by that name: see its --allow-host.");
    reply->close = true;
    return true;
}

/* ---- rates ---- */

static bool refuse_rate(struct limits *limits, uint64_t key, struct reply *reply)
{
    unsigned retry_after = 0;
    if (limits_take(limits, key, http_now_ms(), &retry_after))
        return false;
    metrics_add(METRIC_RATE_LIMITED, 1);
    reply_problem(reply, 429, "Too many requests: wait for %u s.", retry_after);
    reply->retry_after = retry_after;
    return true;
}

bool http_refuse_rate(struct http *h, const struct peer *peer, struct reply *reply)
{
    return refuse_rate(h->read_limits, peer->address_key, reply);
}

/* ---- tokens ---- */

struct touch {
    struct writer_job job;
    struct writer *writer;
    char id[TOKEN_ID_LENGTH + 1];
};

static enum gate_status run_touch(void *context, struct store *store, struct gate_error *err)
{
    const struct touch *t = context;
    return store_touch_token(store, t->id, clock_wall_ms(), err);
}

static void touch_done(void *context, enum gate_status status, const struct gate_error *err)
{
    if (status && err)
        log_message(LOG_LEVEL_WARNING, "%s", err->message);
    free(context);
}

/* Has the token's last use written down, without waiting for it; each token's once a second at
 * most, while what was said before is not in the database yet. */
static void touch(struct http *h, const char *id)
{
    unsigned retry_after;
    uint64_t key = limits_key(h->touch_limits, id, TOKEN_ID_LENGTH);
    if (!limits_take(h->touch_limits, key, http_now_ms(), &retry_after))
        return;
    struct touch *t = calloc(1, sizeof *t);
    if (!t || !writer_reserve(h->writer)) {
        free(t);
        return;
    }
    memcpy(t->id, id, sizeof t->id);
    t->job = (struct writer_job){.context = t, .run = run_touch, .done = touch_done};
    writer_submit(h->writer, &t->job);
}

static bool refuse_token(struct reply *reply, unsigned status, const char *why)
{
    reply_problem(reply, status, "%s", why);
    reply->login = status == 401;
    return true;
}

/* Who sends this? `required`: somebody must; else another scheme than ours is a proxy's matter. */
static bool identify(struct http *h, struct exchange *x, bool required, struct reply *reply)
{
    struct gate_error err = {0};
    if (!required && !auth_is_bearer(x->headers.authorization))
        return false;
    struct store *store = http_take_store(h);
    enum auth_result result =
        auth_check(store, x->headers.authorization, clock_wall_ms(), &x->who, &err);
    http_give_store(h, store);
    switch (result) {
    case AUTH_GOOD:
        if (x->who.touch)
            touch(h, x->who.id);
        return false;
    case AUTH_NONE:
        return refuse_token(reply, 401, "This takes a token: Authorization: Bearer kg_....");
    case AUTH_REFUSED:
        metrics_add(METRIC_AUTH_REFUSED, 1);
        x->token_refused = true;
        return refuse_token(reply, 401, "The token is not known, has expired or was revoked.");
    default:
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
        return refuse_token(reply, 503, "The database cannot be read now.");
    }
}

bool http_refuse_reader(struct http *h, struct exchange *x, struct reply *reply)
{
    return x->route->scope != 0 && identify(h, x, h->options.private_reads, reply);
}

bool http_refuse_writer(struct http *h, struct peer *peer, struct reply *reply)
{
    struct exchange *x = &peer->exchange;
    enum token_scope scope = (enum token_scope)x->route->scope;
    if (identify(h, x, true, reply))
        return true;
    if (!identity_may(&x->who, scope)) {
        unsigned bit = 0;
        while ((1u << bit) != (unsigned)scope)
            bit++;
        reply_problem(reply, 403, "The token '%s' may not do this: it needs the scope '%s'.",
                      x->who.name, auth_scope_name(bit));
        return true;
    }
    return refuse_rate(h->write_limits, limits_key(h->write_limits, x->who.id, sizeof x->who.id),
                       reply);
}
