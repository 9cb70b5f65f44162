/* SPDX-License-Identifier: Apache-2.0 */
/* http_reply.c: an answer on its way to libmicrohttpd; see http_private.h. */
#include "server/http/http_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/gzip.h"
#include "server/ops/metrics.h"

#define GZIP_FROM 1024 /* bytes: below, the headers cost more than is saved */
/* Of answers that are on their way. Short ones are sent whatever there is: there are not more of
 * them than connections. */
#define MAX_REPLY_BYTES ((size_t)48 << 20)
#define LONG_BYTES ((size_t)128 << 10)
#define SEND_TIMES 20 /* of the timeout: how long a client may take to read an answer */

/*
 * The page runs its own scripts and nothing else, talks to its own server only, and is not shown
 * within another page.
 */
static const char *const page_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

/* Data may do nothing at all, wherever a browser shows it. */
static const char data_policy[] = "default-src 'none'; frame-ancestors 'none'";

static bool is_data(const char *type)
{
    return !strncmp(type, "application/json", 16) || !strncmp(type, "text/csv", 8) ||
           !strcmp(type, "application/problem+json");
}

static bool is_text(const char *type)
{
    return !strncmp(type, "text/", 5) || !strncmp(type, "application/", 12)
               ? strcmp(type, "application/octet-stream")
               : !strcmp(type, "image/svg+xml");
}

static bool takes_deflate(const struct exchange *x)
{
    const char *accept = x->headers.accept_encoding;
    return accept && strstr(accept, "deflate") && !strstr(accept, "deflate;q=0");
}

void http_compress(const struct exchange *x, struct reply *reply)
{
    if (reply->document.run_id != 0) {
        reply->varies = true;
        reply->deflated = takes_deflate(x);
    }
    if (reply->document.run_id != 0 || reply->constant || reply->file_fd >= 0 || reply->gzipped ||
        reply->status == 304 || reply->body.len < GZIP_FROM || !is_text(reply->type))
        return;
    reply->varies = true;
    if (!accepts_gzip(x->headers.accept_encoding))
        return;
    struct buf small;
    buf_init(&small, REPLY_MAX_BODY);
    if (gzip_compress(reply->body.data, reply->body.len, &small)) {
        buf_release(&reply->body);
        reply->body = small;
        reply->gzipped = true;
        if (reply->etag.text[0] != '\0')
            reply->etag = etag_gzipped(&reply->etag);
    } else {
        buf_release(&small);
    }
}

/* ---- the room of all answers ---- */

/* A body that is on its way. */
struct body {
    struct http *http;
    char *bytes;
    size_t n;
};

static void free_body(void *context)
{
    struct body *b = context;
    atomic_fetch_sub(&b->http->reply_bytes, b->n);
    free(b->bytes);
    free(b);
}

bool http_refuse_room(struct http *h, struct reply *reply)
{
    if (atomic_load(&h->reply_bytes) < MAX_REPLY_BYTES)
        return false;
    reply_problem(reply, 503, "Too many long answers are on their way.");
    reply->retry_after = 2;
    return true;
}

static struct MHD_Response *response_of_body(struct http *h, struct reply *reply)
{
    struct body *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (struct body){h, NULL, reply->body.len};
    if (!(b->bytes = buf_detach(&reply->body))) {
        free(b);
        return NULL;
    }
    atomic_fetch_add(&h->reply_bytes, b->n);
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback_cls(b->n, b->bytes, free_body, b);
    if (!response)
        free_body(b);
    return response;
}

/* The body's bytes change hands; NULL: out of memory. */
static struct MHD_Response *response_of(struct http *h, struct reply *reply, uint64_t *size)
{
    *size = 0;
    if (reply->status == 304)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (reply->file_fd >= 0) {
        int fd = reply->file_fd;
        struct MHD_Response *response = MHD_create_response_from_fd64(reply->file_size, fd);
        *size = reply->file_size;
        if (response)
            reply->file_fd = -1;
        return response;
    }
    if (reply->document.run_id != 0) {
        *size = reply->deflated ? reply->document.packed_bytes : reply->document.bytes;
        return http_document_response(h, reply);
    }
    *size = reply->constant ? reply->constant_size : reply->body.len;
    if (reply->constant)
        return MHD_create_response_from_buffer(
            reply->constant_size, (void *)(uintptr_t)reply->constant, MHD_RESPMEM_PERSISTENT);
    return response_of_body(h, reply);
}

static const char *cache_control(const struct http *h, const struct reply *reply)
{
    /* no-cache: keep it, but ask whether the tag still holds. */
    bool alone = h->options.private_reads || reply->personal;
    if (reply->immutable)
        return alone ? "private, max-age=31536000, immutable"
                     : "public, max-age=31536000, immutable";
    if (reply->etag.text[0] == '\0')
        return "no-store";
    return alone ? "private, no-cache" : "no-cache";
}

static void add(struct MHD_Response *response, bool *good, const char *name, const char *value)
{
    *good &= MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Of what a 304 stands for, the client has these already. */
static void add_headers_of_body(struct MHD_Response *response, bool *good,
                                const struct reply *reply)
{
    size_t n = sizeof page_headers / sizeof page_headers[0];
    if (is_data(reply->type))
        add(response, good, "Content-Security-Policy", data_policy);
    else
        for (size_t i = 0; i < n; i++)
            add(response, good, page_headers[i][0], page_headers[i][1]);
    add(response, good, "X-Content-Type-Options", "nosniff");
    add(response, good, "Cross-Origin-Resource-Policy",
        reply->embedded ? "cross-origin" : "same-origin");
    add(response, good, "Content-Type", reply->type);
    if (reply->gzipped || reply->deflated)
        add(response, good, "Content-Encoding", reply->gzipped ? "gzip" : "deflate");
}

static bool add_headers(const struct http *h, struct MHD_Response *response,
                        const struct reply *reply)
{
    bool good = true;
    if (reply->status != 304)
        add_headers_of_body(response, &good, reply);
    if (reply->allow)
        add(response, &good, "Allow", reply->allow);
    if (reply->etag.text[0] != '\0')
        add(response, &good, "ETag", reply->etag.text);
    if (reply->varies)
        add(response, &good, "Vary", "Accept-Encoding");
    if (h->options.private_reads)
        add(response, &good, "Vary", "Authorization");
    if (reply->login)
        add(response, &good, "WWW-Authenticate", "Bearer realm=\"gate-server\"");
    if (reply->retry_after != 0) {
        char text[16];
        snprintf(text, sizeof text, "%u", reply->retry_after);
        add(response, &good, "Retry-After", text);
    }
    if (reply->close || atomic_load(&h->stopping))
        add(response, &good, "Connection", "close");
    add(response, &good, "Cache-Control", cache_control(h, reply));
    return good;
}

/* What is kept is found by the address and by the tag that its client could have sent. */
static struct cache_key key_of(const struct exchange *x, const struct etag *tag, unsigned status)
{
    return (struct cache_key){tag->text, x->request.target, status};
}

static void note(struct exchange *x, unsigned status, uint64_t size, const char *why)
{
    struct peer *peer = (struct peer *)((char *)x - offsetof(struct peer, exchange));
    bool no_body = status == 304 || !strcmp(x->method, "HEAD");
    x->status = status;
    x->bytes = no_body ? 0 : size;
    snprintf(x->why, sizeof x->why, "%s", why);
    http_set_deadline(peer, SEND_TIMES * peer->http->options.timeout_s);
}

enum MHD_Result http_send(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                          struct reply *reply)
{
    enum MHD_Result result = MHD_NO;
    reply->close |= http_ends_in_doubt(x);
    uint64_t size;
    bool keep = (reply->status == 200 || reply->status == 304) && reply->file_fd < 0 &&
                reply->document.run_id == 0 && reply->etag.text[0] != '\0' && !reply->personal &&
                !reply->close && !atomic_load(&h->stopping);
    struct etag tag = reply->etag;
    if (accepts_gzip(x->headers.accept_encoding))
        tag = etag_gzipped(&tag);
    http_compress(x, reply);
    if (reply->body.len >= LONG_BYTES)
        http_refuse_room(h, reply);
    keep &= reply->status != 503;
    struct MHD_Response *response = response_of(h, reply, &size);
    if (!response)
        return MHD_NO;
    if (add_headers(h, response, reply)) {
        result = MHD_queue_response(connection, reply->status, response);
        note(x, reply->status, size, reply->why);
    }
    struct cache_key key = key_of(x, &tag, reply->status);
    if (!keep || result != MHD_YES || !cache_put(h->cache, &key, response, size))
        MHD_destroy_response(response);
    return result;
}

bool http_send_cached(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                      const struct etag *tag, unsigned status, enum MHD_Result *result)
{
    size_t size;
    struct etag asked = *tag;
    if (atomic_load_explicit(&h->stopping, memory_order_relaxed))
        return false;
    if (accepts_gzip(x->headers.accept_encoding))
        asked = etag_gzipped(tag);
    struct cache_key key = key_of(x, &asked, status);
    bool hit = cache_queue(h->cache, &key, connection, result, &size);
    metrics_add(hit ? METRIC_CACHE_HITS : METRIC_CACHE_MISSES, 1);
    if (hit)
        note(x, status, size, "");
    return hit;
}
